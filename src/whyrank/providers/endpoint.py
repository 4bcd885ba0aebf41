"""Endpoints of providers: address, key, patience; addresses without secrets for messages."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from ..errors import ConfigError

_MOST_DOUBLINGS = 32  # a pause is longer than a century by then
# Up to the last @: a password may hold any character, and a mistyped URL may not have it escaped.
_USER = re.compile(r"\A(\s*[\w+.-]*://)?.*@", re.DOTALL)
_QUERY = re.compile(r"[?#].*", re.DOTALL)
_NO_PORT = re.compile(r"(\A\s*(?:[\w+.-]*://)?(?:\[[^\]]*\]|[^/:\[]*):)(?!//|\d{1,5}(?:/|\Z))[^/]+")
_USER_IN_TEXT = re.compile(r"(?<=://)[^/\s@]*@")


class Key:
    """An API key that is revealed only in the request header."""

    def __init__(self, secret: str, origin: str) -> None:
        # A key with line ends could smuggle headers in, and the error message of the HTTP client would quote it.
        if not secret or not secret.isascii() or not secret.isprintable() or " " in secret:
            raise ConfigError(f"the key from {origin} is not valid", "it must be one line of visible ASCII characters")
        self._secret = secret
        self.origin = origin

    def __repr__(self) -> str:
        return f"Key(from {self.origin})"

    def header(self) -> str:
        """Return the value of the Authorization header."""
        return f"Bearer {self._secret}"

    def hidden_in(self, text: str) -> str:
        """Return a text with the secret masked, in case the provider quoted it."""
        return text.replace(self._secret, "…")


@dataclass(frozen=True)
class Endpoint:
    """URL and key of a provider; `settings` is the prefix of its settings (`embedder`, `llm`)."""

    url: str
    settings: str
    key: Key | None = None

    def __repr__(self) -> str:
        return f"Endpoint({masked_url(self.url)!r}, {self.settings!r}, {self.key!r})"

    def at(self, path: str) -> str:
        """Return the URL of one service."""
        return f"{self.url}/{path}"

    @property
    def host(self) -> str:
        """Return the host, as errors name it, without a user or password."""
        return urlsplit(self.url).netloc.rpartition("@")[2]


@dataclass(frozen=True)
class Patience:
    """Retry policy of requests; `jitter` is the random share of a pause.

    `attempt_s` limits one request from connecting to the last byte, `total_s` all attempts and the pauses between.
    """

    total_s: float = 30.0
    attempt_s: float = math.inf
    connect_s: float = 5.0
    attempts: int = 4
    first_pause_s: float = 0.5
    longest_pause_s: float = 20.0
    jitter: float = 0.5

    def pause_s(self, attempt: int, drawn: float, asked_for_s: float | None = None) -> float:
        """Return the pause after an attempt: doubled each time, and at least the given `Retry-After`."""
        doublings = min(attempt - 1, _MOST_DOUBLINGS)
        longest = min(self.first_pause_s * 2.0**doublings, self.longest_pause_s)
        return max(longest * (1 - self.jitter * drawn), asked_for_s or 0.0)


def checked_url(given: str) -> str:
    """Return the canonical form of a base URL, or raise ValueError. Without a path, `/v1` is added."""
    try:
        parts = urlsplit(given.strip())
        port = parts.port
    except ValueError:
        # Python's error message quotes the parsed host or port, which may be a password.
        raise ValueError("must be a URL like http://localhost:11434/v1") from None
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0 or not given.strip().isprintable():
        raise ValueError("must be a URL like http://localhost:11434/v1")
    if parts.username is not None or parts.password is not None:
        raise ValueError("must not contain a user or a password; keys go into a key file or the environment")
    if parts.query or parts.fragment:
        raise ValueError("must end with the path, for instance /v1")
    return f"{parts.scheme}://{parts.netloc.lower()}{parts.path.rstrip('/') or '/v1'}"


def masked_url(text: str) -> str:
    """Return a URL with a possible user, password or key masked."""
    return _NO_PORT.sub(r"\1…", _QUERY.sub("?…", _USER.sub(r"\1…@", text)))


def without_users(text: str) -> str:
    """Return a foreign text with the users and passwords of URLs masked."""
    return _USER_IN_TEXT.sub("…@", text)
