"""JSON requests to providers: timeouts, backoff, limits, errors."""

from __future__ import annotations

import contextlib
import ipaddress
import json
import random
import socket
import threading
import time
import weakref
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import SplitResult, urljoin, urlsplit

from ..errors import ProviderError, ProviderGarbage, ProviderRefused, ProviderTimeout, ProviderUnavailable
from .endpoint import Endpoint, Patience, without_users

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import httpx

_FAREWELL_S = 0.5  # grace period for a thread whose socket was shut down


class Late(Exception):
    """The deadline has passed."""


class Lost(Exception):
    """The server cannot be reached, or the connection broke."""


class TooLarge(Exception):
    """The response exceeds the size limit."""


class Exchange(NamedTuple):
    """One request, the size limit of its response, and timeouts for all of it and for connecting."""

    url: str
    headers: Mapping[str, str]
    body: bytes
    most_bytes: int
    total_s: float
    connect_s: float


class HttpResponse(NamedTuple):
    """One response; names of headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class ConnectionPool:
    """Connection pool of one host; each connection serves one request at a time."""

    def __init__(self, scheme: str, host: str) -> None:
        self._is_secure = scheme == "https"
        self._is_local = _is_local(host)
        self._idle: list[_Line] = []
        weakref.finalize(self, _close_all, self._idle)

    def exchanged(self, exchange: Exchange) -> HttpResponse:
        """Send and receive; raise Late, Lost or TooLarge."""
        if exchange.total_s <= 0:
            raise Late
        try:
            line = self._idle.pop()
        except IndexError:
            line = _Line(self._is_secure, self._is_local)
        said = line.asked(exchange)
        if isinstance(said, HttpResponse):
            self._idle.append(line)
            return said
        line.close()
        raise said


def _close_all(lines: list[_Line]) -> None:
    for line in lines:
        line.close()


class _Line:
    """An HTTP client whose connection can be cut from another thread."""

    def __init__(self, is_secure: bool, is_local: bool) -> None:
        import httpx  # imported late: only callers of a provider need it

        # Proxies of the environment are for other machines, of no use on the way to this one; certificates take 20 ms
        # to load, of no use where nothing is encrypted.
        self._client = httpx.Client(trust_env=not is_local, verify=is_secure, follow_redirects=False)
        self._stream: Any = None
        self._asking: threading.Thread | None = None
        self._is_closing = threading.Event()

    def asked(self, exchange: Exchange) -> HttpResponse | Late | Lost | TooLarge:
        """Send a request in a daemon thread, which is abandoned on timeout and does not block process exit."""
        said: list[HttpResponse | Late | Lost | TooLarge] = []
        asking = threading.Thread(target=lambda: said.append(self._exchanged(exchange)), daemon=True)
        self._asking = asking
        asking.start()
        try:
            asking.join(exchange.total_s)
            answer = said[0] if said else None
        finally:
            if not said:
                self._cut(asking)
        return Late() if answer is None else answer

    def close(self) -> None:
        """Close the connection; while it is in use, its thread closes it when it is done."""
        self._is_closing.set()
        if self._asking is None or not self._asking.is_alive():
            self._client.close()

    def _cut(self, asking: threading.Thread) -> None:
        """Shut the socket down, which wakes the thread that reads from it; closing it would not."""
        self._is_closing.set()
        if self._stream is not None:
            with contextlib.suppress(OSError):
                self._stream.get_extra_info("socket").shutdown(socket.SHUT_RDWR)
        asking.join(_FAREWELL_S)

    def _watch(self, event: str, info: Mapping[str, Any]) -> None:
        """Remember the connection once it exists; abort a thread that returns late from a DNS lookup."""
        is_connected = event in ("connection.connect_tcp.complete", "connection.start_tls.complete")
        if is_connected:
            self._stream = info["return_value"]
        if self._is_closing.is_set() and event.startswith("connection."):
            if is_connected:
                self._stream.close()  # no other reference to it exists yet
            raise Late

    def _exchanged(self, exchange: Exchange) -> HttpResponse | Late | Lost | TooLarge:
        import httpx

        try:
            return self._streamed(exchange, httpx.Timeout(exchange.total_s, connect=exchange.connect_s))
        except (TooLarge, Late) as error:
            return error
        except httpx.ConnectTimeout:
            return Lost(f"no connection within {exchange.connect_s:g} seconds")
        except httpx.TimeoutException:
            return Late()
        except Exception as error:  # whatever the client raises must reach the waiting thread
            return Lost(str(error) or type(error).__name__)
        finally:
            if self._is_closing.is_set():
                self._client.close()

    def _streamed(self, exchange: Exchange, timeout: httpx.Timeout) -> HttpResponse:
        body = bytearray()
        with self._client.stream(
            "POST",
            exchange.url,
            content=exchange.body,
            headers=dict(exchange.headers),
            timeout=timeout,
            extensions={"trace": self._watch},
        ) as response:
            for piece in response.iter_bytes():
                body += piece
                if len(body) > exchange.most_bytes:
                    raise TooLarge
            headers = {name.lower(): value for name, value in response.headers.items()}
            return HttpResponse(response.status_code, headers, bytes(body))


def _is_local(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


# 64 vectors of 4096 dimensions, each number written with 20 letters, six times over.
MOST_ANSWER_BYTES = 32 * 1024 * 1024
MOST_QUOTED = 200  # characters of a provider's message in an error
MOST_HOPS = 3
PATIENT = Patience()
_AGAIN = frozenset({408, 429, 500, 502, 503, 504})
_KEEPS_THE_QUESTION = frozenset({307, 308})  # other redirects turn a POST into a GET


class Transport:
    """HTTP transport to one provider, with retries and a deadline; sleep and random may be injected."""

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
        self._lines = ConnectionPool(parts.scheme, parts.hostname or "")

    def __repr__(self) -> str:
        return f"Transport({self.endpoint!r})"

    def post(self, path: str, payload: Mapping[str, object], *, patience: Patience | None = None) -> dict[str, Any]:
        """Send a POST request with retries and return the JSON object; every failure is a ProviderError."""
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
        """Return the response, or the transient failure."""
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

    def _answered(self, url: str, body: bytes, patience: Patience, deadline: float) -> HttpResponse:
        """Send a request, and follow redirects on the same host."""
        for _ in range(MOST_HOPS):
            answer = self._exchanged(url, body, patience, deadline)
            target = answer.headers.get("location", "")
            if not 300 <= answer.status < 400 or not target:
                return answer
            url = self._next(url, target, answer.status)
        raise ProviderRefused(f"{self._who} redirects in a loop", self._look_at("url"))

    def _next(self, url: str, target: str, status: int) -> str:
        """Return the target of a redirect; refuse other hosts, which must not receive the key and texts."""
        joined = urljoin(url, target)
        there = urlsplit(joined)
        if _origin(there) != _origin(urlsplit(url)) or status not in _KEEPS_THE_QUESTION:
            place = self._quoted(f"{there.scheme}://{there.netloc}{there.path}")
            message = f"{self._who} redirects to {place}, which was not followed"
            raise ProviderRefused(message, f"set {self.endpoint.settings}.url to the final URL", status=status)
        return joined

    def _exchanged(self, url: str, body: bytes, patience: Patience, deadline: float) -> HttpResponse:
        left = min(deadline - time.monotonic(), patience.attempt_s)
        headers = {"Content-Type": "application/json", "Accept": "application/json", "Accept-Encoding": "identity"}
        if self.endpoint.key is not None:
            headers["Authorization"] = self.endpoint.key.header()
        connect_s = min(patience.connect_s, left)
        try:
            return self._lines.exchanged(Exchange(url, headers, body, self._most_bytes, left, connect_s))
        except Late as error:
            seconds = f"{min(patience.attempt_s, patience.total_s):g} seconds"
            raise ProviderTimeout(f"{self._who} did not answer within {seconds}", self._look_at("timeout_s")) from error
        except TooLarge as error:
            limit = f"{self._most_bytes // 1_000_000} MB"
            raise ProviderGarbage(f"{self._who} answered with more than {limit}", self._look_at("url")) from error

    def _object(self, body: bytes) -> dict[str, Any]:
        try:
            found = json.loads(body)
        except (ValueError, RecursionError) as error:
            text = body[: 4 * MOST_QUOTED].decode("utf-8", errors="replace")
            message = f"{self._who} answered with something other than JSON: {self._quoted(text) or 'nothing'}"
            raise ProviderGarbage(message, self._look_at("url")) from error
        if not isinstance(found, dict):
            raise ProviderGarbage(f"{self._who} answered with JSON that is not an object", self._look_at("url"))
        return found

    # -- error messages --------------------------------------------------------------------------------------------

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

    def _refusal(self, answer: HttpResponse) -> ProviderError:
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

    def _words_of(self, answer: HttpResponse) -> str:
        """Return the provider's own error message, if it is readable."""
        try:
            found = json.loads(answer.body)
        except (ValueError, RecursionError):
            return ""
        said = found.get("error", found.get("detail")) if isinstance(found, dict) else None
        words = said.get("message") if isinstance(said, dict) else said
        return f": {self._quoted(words)}" if isinstance(words, str) and words.strip() else ""

    def _quoted(self, text: str) -> str:
        """Return a foreign message for display: without the key, on one line, truncated."""
        hidden = without_users(self.endpoint.key.hidden_in(text) if self.endpoint.key else text)
        line = " ".join("".join(letter if letter.isprintable() else " " for letter in hidden).split())
        return line if len(line) <= MOST_QUOTED else f"{line[: MOST_QUOTED - 1]}…"


def _origin(parts: SplitResult) -> tuple[str, str | None, int]:
    return parts.scheme, parts.hostname, parts.port or (443 if parts.scheme == "https" else 80)


def _retry_after_s(given: str | None) -> float | None:
    """Parse `Retry-After`: seconds, or a date; None if it is neither."""
    if given is None:
        return None
    try:
        seconds = float(given)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(given).timestamp() - time.time()
        except (ValueError, TypeError, OverflowError):
            return None
    return max(seconds, 0.0) if seconds < float("inf") else None
