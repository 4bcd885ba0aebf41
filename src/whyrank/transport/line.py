"""One HTTP exchange that ends when it must: a deadline over names, connecting, headers and body together.

A client's own time-outs start anew with every byte, so that an answer that drips may take for ever. Here the exchange
runs in a thread, and what is late has its socket shut down under it.
"""

from __future__ import annotations

import contextlib
import ipaddress
import socket
import threading
import weakref
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import httpx

_FAREWELL_S = 0.5  # how long a thread whose socket was shut down may take to notice


class Late(Exception):
    """The deadline has passed."""


class Lost(Exception):
    """Nobody is there, or the connection broke."""


class TooLarge(Exception):
    """The answer is larger than it may be."""


class Exchange(NamedTuple):
    """What is sent where, and how much may come back."""

    url: str
    headers: Mapping[str, str]
    body: bytes
    most_bytes: int


class Hurry(NamedTuple):
    """How many seconds there are for all of it, and for connecting."""

    total_s: float
    connect_s: float


class Answer(NamedTuple):
    """What came back; names of headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Lines:
    """Connections to one host, kept for the next question; each serves one question at a time."""

    def __init__(self, scheme: str, host: str) -> None:
        self._is_secure = scheme == "https"
        self._is_local = _is_local(host)
        self._idle: list[_Line] = []
        weakref.finalize(self, _close_all, self._idle)

    def exchanged(self, exchange: Exchange, hurry: Hurry) -> Answer:
        """Send and receive; raise Late, Lost or TooLarge."""
        if hurry.total_s <= 0:
            raise Late
        try:
            line = self._idle.pop()
        except IndexError:
            line = _Line(self._is_secure, self._is_local)
        said = line.asked(exchange, hurry)
        if isinstance(said, Answer):
            self._idle.append(line)
            return said
        line.close()
        raise said


def _close_all(lines: list[_Line]) -> None:
    for line in lines:
        line.close()


class _Line:
    """A client whose connection can be cut from outside."""

    def __init__(self, is_secure: bool, is_local: bool) -> None:
        import httpx  # nobody who calls no provider waits for it

        # Proxies of the environment are for other machines, of no use on the way to this one; certificates take 20 ms
        # to load, of no use where nothing is encrypted.
        self._client = httpx.Client(trust_env=not is_local, verify=is_secure, follow_redirects=False)
        self._stream: Any = None
        self._asking: threading.Thread | None = None
        self._is_closing = threading.Event()

    def asked(self, exchange: Exchange, hurry: Hurry) -> Answer | Late | Lost | TooLarge:
        """Ask in a thread, which can be left behind; as a daemon it does not keep the process from leaving."""
        said: list[Answer | Late | Lost | TooLarge] = []
        asking = threading.Thread(target=lambda: said.append(self._exchanged(exchange, hurry)), daemon=True)
        self._asking = asking
        asking.start()
        try:
            asking.join(hurry.total_s)
            answer = said[0] if said else None
        finally:
            if not said:
                self._cut(asking)
        return Late() if answer is None else answer

    def close(self) -> None:
        """Let the connection go; where it is still in use, its thread does that when it is done."""
        self._is_closing.set()
        if self._asking is None or not self._asking.is_alive():
            self._client.close()

    def _cut(self, asking: threading.Thread) -> None:
        """Shut the socket down, which wakes whoever waits for it; closing it would not."""
        self._is_closing.set()
        if self._stream is not None:
            with contextlib.suppress(OSError):
                self._stream.get_extra_info("socket").shutdown(socket.SHUT_RDWR)
        asking.join(_FAREWELL_S)

    def _watch(self, event: str, info: Mapping[str, Any]) -> None:
        """Remember the connection when there is one; whoever comes back late from a lookup sends nothing any more."""
        is_connected = event in ("connection.connect_tcp.complete", "connection.start_tls.complete")
        if is_connected:
            self._stream = info["return_value"]
        if self._is_closing.is_set() and event.startswith("connection."):
            if is_connected:
                self._stream.close()  # nobody else knows of it yet
            raise Late

    def _exchanged(self, exchange: Exchange, hurry: Hurry) -> Answer | Late | Lost | TooLarge:
        import httpx

        try:
            return self._streamed(exchange, httpx.Timeout(hurry.total_s, connect=hurry.connect_s))
        except (TooLarge, Late) as error:
            return error
        except httpx.ConnectTimeout:
            return Lost(f"no connection within {hurry.connect_s:g} seconds")
        except httpx.TimeoutException:
            return Late()
        except Exception as error:  # whatever a client throws, the one who waits must hear of it
            return Lost(str(error) or type(error).__name__)
        finally:
            if self._is_closing.is_set():
                self._client.close()

    def _streamed(self, exchange: Exchange, timeout: httpx.Timeout) -> Answer:
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
            return Answer(response.status_code, headers, bytes(body))


def _is_local(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
