"""JSON to a provider and back: time-outs, back-off, a limit on answers, and errors that say what to do."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Mapping
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import SplitResult, urljoin, urlsplit

from ..errors import ProviderError, ProviderGarbage, ProviderRefused, ProviderTimeout, ProviderUnavailable
from .endpoint import Endpoint, Patience, without_users
from .line import Answer, Exchange, Hurry, Late, Lines, Lost, TooLarge

# 64 vectors of 4096 dimensions, each number written with 20 letters, six times over.
MOST_ANSWER_BYTES = 32 * 1024 * 1024
MOST_QUOTED = 200  # letters of a provider's own words in an error
MOST_HOPS = 3
PATIENT = Patience()
_AGAIN = frozenset({408, 429, 500, 502, 503, 504})
_KEEPS_THE_QUESTION = frozenset({307, 308})  # other redirects turn a POST into a GET


class Transport:
    """Asks one provider, patiently and within a deadline; the sleeper and the die may be given."""

    def __init__(
        self,
        endpoint: Endpoint,
        patience: Patience = PATIENT,
        *,
        sleep: Callable[[float], None] = time.sleep,
        draw: Callable[[], float] = random.random,
        most_bytes: int = MOST_ANSWER_BYTES,
    ) -> None:
        self.endpoint = endpoint
        self.patience = patience
        self._sleep = sleep
        self._draw = draw
        self._most_bytes = most_bytes
        parts = urlsplit(endpoint.url)
        self._lines = Lines(parts.scheme, parts.hostname or "")

    def __repr__(self) -> str:
        return f"Transport({self.endpoint!r})"

    def post(self, path: str, payload: Mapping[str, object], *, patience: Patience | None = None) -> dict[str, Any]:
        """Ask, again if that may help, and return the answer's object; whatever goes wrong is a ProviderError."""
        patience = patience or self.patience
        body = json.dumps(payload, ensure_ascii=True).encode()
        deadline = time.monotonic() + patience.total_s
        attempt = 0
        while True:
            attempt += 1
            said = self._once(path, body, patience, deadline)
            if not isinstance(said, ProviderUnavailable):
                return said
            pause = patience.pause_s(attempt, self._draw(), said.retry_after_s)
            if attempt >= patience.attempts or time.monotonic() + pause >= deadline:
                raise said
            self._sleep(pause)

    def _once(
        self, path: str, body: bytes, patience: Patience, deadline: float
    ) -> dict[str, Any] | ProviderUnavailable:
        """Return the answer, or what kept it away and may pass."""
        try:
            answer = self._answered(self.endpoint.at(path), body, patience, deadline)
        except Lost as error:
            return self._unavailable(f"cannot be reached: {self._quoted(str(error))}")
        if answer.status in _AGAIN:
            told = f"answers {answer.status}{self._words_of(answer)}"
            return self._unavailable(told, _retry_after_s(answer.headers.get("retry-after")))
        if answer.status != 200:
            raise self._refusal(answer)
        return self._object(answer.body)

    def _answered(self, url: str, body: bytes, patience: Patience, deadline: float) -> Answer:
        """Ask one address, and where it leads on the same host."""
        for _ in range(MOST_HOPS):
            answer = self._exchanged(url, body, patience, deadline)
            target = answer.headers.get("location", "")
            if not 300 <= answer.status < 400 or not target:
                return answer
            url = self._next(url, target, answer.status)
        raise ProviderRefused(f"{self._who} redirects in circles", self._look_at("url"))

    def _next(self, url: str, target: str, status: int) -> str:
        """Return where a redirect leads; a key and texts are for the host they were meant for."""
        joined = urljoin(url, target)
        there = urlsplit(joined)
        if _origin(there) != _origin(urlsplit(url)) or status not in _KEEPS_THE_QUESTION:
            place = self._quoted(f"{there.scheme}://{there.netloc}{there.path}")
            message = f"{self._who} redirects to {place}, which was not followed"
            raise ProviderRefused(message, f"set {self.endpoint.settings}.url to where it really is", status=status)
        return joined

    def _exchanged(self, url: str, body: bytes, patience: Patience, deadline: float) -> Answer:
        left = min(deadline - time.monotonic(), patience.attempt_s)
        headers = {"Content-Type": "application/json", "Accept": "application/json", "Accept-Encoding": "identity"}
        if self.endpoint.key is not None:
            headers["Authorization"] = self.endpoint.key.header()
        hurry = Hurry(left, min(patience.connect_s, left))
        try:
            return self._lines.exchanged(Exchange(url, headers, body, self._most_bytes), hurry)
        except Late as error:
            seconds = f"{min(patience.attempt_s, patience.total_s):g} seconds"
            raise ProviderTimeout(f"{self._who} did not answer within {seconds}", self._look_at("timeout_s")) from error
        except TooLarge as error:
            limit = f"{self._most_bytes // 1_000_000} MB"
            raise ProviderGarbage(f"{self._who} answers with more than {limit}", self._look_at("url")) from error

    def _object(self, body: bytes) -> dict[str, Any]:
        try:
            found = json.loads(body)
        except (ValueError, RecursionError) as error:
            message = f"{self._who} answers what is no JSON: {self._quoted(_text(body)) or 'nothing'}"
            raise ProviderGarbage(message, self._look_at("url")) from error
        if not isinstance(found, dict):
            raise ProviderGarbage(f"{self._who} answers JSON that is no object", self._look_at("url"))
        return found

    # -- what is told of failures ----------------------------------------------------------------------------------

    @property
    def _who(self) -> str:
        return f"the {self.endpoint.settings} at {self.endpoint.host}"

    def _look_at(self, setting: str) -> str:
        return f"is {self.endpoint.settings}.{setting} right? `whyrank config` shows the settings"

    def _unavailable(self, told: str, retry_after_s: float | None = None) -> ProviderUnavailable:
        hint = f"is it running, and is {self.endpoint.settings}.url right?"
        if retry_after_s is not None:
            hint = f"it asks to wait {retry_after_s:g} seconds"
        return ProviderUnavailable(f"{self._who} {told}", hint, retry_after_s=retry_after_s)

    def _refusal(self, answer: Answer) -> ProviderError:
        told = f"{self._who} answers {answer.status}{self._words_of(answer)}"
        if 200 <= answer.status < 300:
            return ProviderGarbage(told, self._look_at("url"))
        return ProviderRefused(told, self._remedy(answer.status), status=answer.status)

    def _remedy(self, status: int) -> str:
        name = self.endpoint.settings
        if status in (401, 403):
            variable = f"WHYRANK_{name.upper()}_KEY"
            sent = f"the key from {self.endpoint.key.origin}" if self.endpoint.key else "no key"
            return f"{sent} was sent; set {variable} or {name}.key_file"
        if status in (404, 405):
            return f"are {name}.url and {name}.model right?"
        return f"is {name}.model right, and is the text one that it takes?"

    def _words_of(self, answer: Answer) -> str:
        """Return what the provider says itself, if it says anything that can be read."""
        try:
            found = json.loads(answer.body)
        except (ValueError, RecursionError):
            return ""
        said = found.get("error", found.get("detail")) if isinstance(found, dict) else None
        words = said.get("message") if isinstance(said, dict) else said
        return f": {self._quoted(words)}" if isinstance(words, str) and words.strip() else ""

    def _quoted(self, text: str) -> str:
        """Return foreign words fit to be shown: without the key, on one line, not too long."""
        hidden = without_users(self.endpoint.key.hidden_in(text) if self.endpoint.key else text)
        line = " ".join("".join(letter if letter.isprintable() else " " for letter in hidden).split())
        return line if len(line) <= MOST_QUOTED else f"{line[: MOST_QUOTED - 1]}…"


def _origin(parts: SplitResult) -> tuple[str, str | None, int]:
    return parts.scheme, parts.hostname, parts.port or (443 if parts.scheme == "https" else 80)


def _text(body: bytes) -> str:
    return body[: 4 * MOST_QUOTED].decode("utf-8", errors="replace")


def _retry_after_s(given: str | None, now: Callable[[], float] = time.time) -> float | None:
    """Read `Retry-After`: seconds, or a date; what is neither is not said."""
    if given is None:
        return None
    try:
        seconds = float(given)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(given).timestamp() - now()
        except (ValueError, TypeError, OverflowError):
            return None
    return max(seconds, 0.0) if seconds < float("inf") else None
