"""uvicorn with our sockets, connection limits, worker processes and graceful stop."""

from __future__ import annotations

import json
import logging
import re
import secrets
import signal
import socket
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import unquote

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.supervisors import Multiprocess

from ..errors import ConfigError, WhyrankError
from .auth import Refusal, repeated
from .errors import FORMAT

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Iterator, MutableMapping
    from types import FrameType

HEAD_SECONDS = 10.0  # for the head of a request to arrive
WRITE_SECONDS = 30.0  # for a client to read a response that is waiting in the write buffer
LINGER_SECONDS = 2.0  # between a refusal and the close: a reset would discard the refusal unread
IDLE_SECONDS = 75
GRACEFUL_SECONDS = 30  # for running requests after a stop signal
MAX_CONNECTIONS = 4_000  # of one process
MAX_HEAD_BYTES = 65_536
MAX_HEADERS = 100
HEALTHCHECK_SECONDS = 30  # for a worker to answer its supervisor; also the time it may take to start
_GRACE_SECONDS = 5  # after those, before a worker is killed
_SHORT_LIFE_SECONDS = 10.0
_MOST_SHORT_LIVES = 3  # of each worker, within that time, before the server gives up
_BACKLOG = 2_048
_HIGHEST_PORT = 65_535
_LOCAL = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}
_RETRY_SECONDS = 2
_HEADER_OVERHEAD = 4  # bytes of a header besides its name and value
_ABSOLUTE = re.compile(rb"(?P<scheme>https?)://(?P<authority>[^/?#]*)", re.IGNORECASE)
_DEFAULT_PORTS = {b"http": b":80", b"https": b":443"}
_MAX_FILES = 65_536
_TOO_LONG = Refusal(
    431,
    "long-head",
    f"the head of the request has more than {MAX_HEAD_BYTES:,} bytes or {MAX_HEADERS} headers",
    "send fewer and shorter headers; long questions go into the body of a POST",
)
_BAD_HTTP = Refusal(400, "bad-http", "this is not an HTTP request", "send HTTP/1.1")
_BUSY = Refusal(503, "busy", "there are too many connections", "try again in a moment")
_log = logging.getLogger(__name__)


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket; port 0 takes a free one."""
    if not 0 <= port <= _HIGHEST_PORT:
        # The system would take the lowest sixteen bits of it.
        raise ConfigError(f"there is no port {port}", f"give one from 0 to {_HIGHEST_PORT}")
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        return _bind(socket.socket(family, kind, protocol), address)
    except (OSError, OverflowError, UnicodeError) as error:
        said = getattr(error, "strerror", None) or error
        raise ConfigError(f"cannot listen on {host}:{port}: {said}", "choose others with --host and --port") from error


def _bind(listening: socket.socket, address: Any) -> socket.socket:
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(_BACKLOG)
    except BaseException:
        listening.close()
        raise
    return listening


def url_of(listening: socket.socket, host: str, path: str = "") -> str:
    """Return the URL of a server; for a wildcard address, that of the loopback address."""
    host = _LOCAL.get(host, host)
    name = f"[{host}]" if ":" in host else host
    return f"http://{name}:{listening.getsockname()[1]}{path}"


def server_config(app: Any, *, graceful_seconds: int = GRACEFUL_SECONDS, **options: Any) -> uvicorn.Config:
    """Return uvicorn's configuration for an application that has a lifespan."""
    return uvicorn.Config(
        app,
        http=Connection,
        ws="none",
        lifespan="on",
        log_config=None,  # uvicorn's own would print to standard output
        log_level=logging.ERROR,  # its warnings are about requests, which the application logs
        access_log=False,
        server_header=False,
        backlog=_BACKLOG,
        h11_max_incomplete_event_size=MAX_HEAD_BYTES,
        timeout_keep_alive=IDLE_SECONDS,
        timeout_graceful_shutdown=graceful_seconds,
        timeout_worker_healthcheck=HEALTHCHECK_SECONDS,
        **options,
    )


class Connection(H11Protocol):
    """uvicorn's connection plus features it has no setting for: head and read timeouts, refusals as JSON."""

    head_seconds: ClassVar[float] = HEAD_SECONDS
    write_seconds: ClassVar[float] = WRITE_SECONDS
    max_connections: ClassVar[int] = MAX_CONNECTIONS

    def connection_made(self, transport: Any) -> None:
        """Start the timeout of the first head; refuse connections above the limit."""
        super().connection_made(transport)
        self._head_timer: asyncio.TimerHandle | None = None
        self._write_timer: asyncio.TimerHandle | None = None
        self._is_refused = False
        if len(self.connections) > self.max_connections:
            self._refuse(_BUSY)
        else:
            self._start_head_timer()

    def data_received(self, data: bytes) -> None:
        """Parse data, unless the connection only lingers."""
        if not self._is_refused:
            super().data_received(data)

    def handle_events(self) -> None:
        """Dispatch parsed events; the timeout of a head runs from its first byte to its last.

        The rest of a body that arrives after its response has the time of a head; after it, the connection is idle.
        """
        super().handle_events()
        is_answered = self.cycle is not None and self.cycle.response_complete
        if self.conn.their_state is h11.SEND_BODY and is_answered:
            self._start_head_timer()
        elif self.conn.their_state is not h11.IDLE:
            self._stop_head_timer()
        elif self.conn.trailing_data[0]:
            self._start_head_timer()
        elif is_answered:
            self._stop_head_timer()
            if self.timeout_keep_alive_task is None:
                self.timeout_keep_alive_task = self.loop.call_later(
                    self.timeout_keep_alive, self.timeout_keep_alive_handler
                )

    def send_400_response(self, msg: str) -> None:
        """Refuse a request that h11 could not parse."""
        cycle = self.cycle
        if cycle is not None and cycle.response_started and not cycle.response_complete:
            self._is_refused, cycle.keep_alive = True, False
        else:
            is_too_long = getattr(sys.exception(), "error_status_hint", 400) == _TOO_LONG.status
            self._refuse(_TOO_LONG if is_too_long else _BAD_HTTP)

    def on_response_complete(self) -> None:
        """Start the timeout for reading the last response."""
        super().on_response_complete()
        if self.transport.is_closing():
            self._start_write_timer()

    def pause_writing(self) -> None:
        """Start the write timeout: the write buffer is full and the client has to read."""
        super().pause_writing()
        self._start_write_timer()

    def resume_writing(self) -> None:
        """Stop the write timeout, unless a last response is still unread."""
        super().resume_writing()
        if not (self.transport.is_closing() or self._is_refused):
            self._stop_write_timer()

    def timeout_keep_alive_handler(self) -> None:
        """Close an idle connection; a response unread by now is given up."""
        if self.transport.get_write_buffer_size():
            self.transport.abort()
        super().timeout_keep_alive_handler()

    def shutdown(self) -> None:
        """Notify the application that the server stops, while its requests still run."""
        if (stopping := self.app_state.get("stopping")) is not None:
            stopping.set()
        if self.cycle is not None:
            self.cycle.default_headers = [*self.cycle.default_headers, (b"connection", b"close")]
        super().shutdown()

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the timeouts."""
        self._stop_head_timer()
        self._stop_write_timer()
        super().connection_lost(exc)

    def _start_head_timer(self) -> None:
        if self._head_timer is not None:
            return
        late = Refusal(408, "slow", f"no request came within {self.head_seconds:.0f} seconds", "send it at once")
        self._head_timer = self.loop.call_later(self.head_seconds, self._refuse, late)

    def _stop_head_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _start_write_timer(self) -> None:
        if self._write_timer is None:
            self._write_timer = self.loop.call_later(self.write_seconds, self.transport.abort)

    def _stop_write_timer(self) -> None:
        if self._write_timer is not None:
            self._write_timer.cancel()
            self._write_timer = None

    def _refuse(self, refusal: Refusal) -> None:
        """Write a refusal, and close after the time a client needs to read it."""
        if self.transport.is_closing() or self._is_refused:
            return
        self._is_refused = True
        self._stop_head_timer()
        if self.cycle is not None and not self.cycle.response_complete:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        status, code, message, hint = refusal
        request_id = secrets.token_hex(8)
        error = {"code": code, "message": message, "hint": hint, "request_id": request_id}
        body = json.dumps({"error": error, "format": FORMAT})
        retry = f"retry-after: {_RETRY_SECONDS}\r\n" if status == 503 else ""
        head = f"HTTP/1.1 {status} {code}\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n"
        self.transport.write(f"{head}{retry}x-request-id: {request_id}\r\nconnection: close\r\n\r\n{body}".encode())
        self.transport.write_eof()
        self.loop.call_later(LINGER_SECONDS, self.transport.close)
        self._start_write_timer()


def check_head(scope: MutableMapping[str, Any]) -> Refusal | None:
    """Refuse a head that is too long or ambiguous; turn an absolute target into its path."""
    target, headers = scope["raw_path"], scope["headers"]
    size = len(target) + len(scope["query_string"])
    size += sum(len(name) + len(value) + _HEADER_OVERHEAD for name, value in headers)
    if size > MAX_HEAD_BYTES or len(headers) > MAX_HEADERS:
        return _TOO_LONG
    names = {name for name, _ in headers}
    if scope["method"] == "CONNECT" or {b"content-length", b"transfer-encoding"} <= names:
        return _BAD_HTTP  # with two lengths of a body, a proxy in front may have used the other
    if (refusal := repeated(headers)) is not None:
        return refusal
    if (absolute := _ABSOLUTE.match(target)) is None:
        return None
    port = _DEFAULT_PORTS[absolute["scheme"].lower()]
    hosts = {value.lower().removesuffix(port) for name, value in headers if name == b"host"}
    if hosts != {absolute["authority"].lower().removesuffix(port)}:
        # A proxy in front of the server may have used either of them.
        hint = "send the path alone, and Host"
        return Refusal(400, "bad-http", "the address of the request and its Host differ", hint)
    scope["raw_path"] = target[absolute.end() :] or b"/"
    scope["path"] = unquote(scope["raw_path"].decode("ascii", "replace"))
    return None


class Workers(Multiprocess):
    """uvicorn's supervisor; a terminal that closes stops it instead of restarting the workers."""

    def __init__(self, config: uvicorn.Config, sockets: list[socket.socket]) -> None:
        hangup = getattr(signal, "SIGHUP", None)
        is_ignored = hangup is not None and signal.getsignal(hangup) is signal.SIG_IGN
        super().__init__(config, sockets)
        self._is_stopped = False
        self._replaced: list[float] = []  # when workers were replaced
        if hangup is not None and is_ignored:
            signal.signal(hangup, signal.SIG_IGN)

    def run(self) -> None:
        """Serve until a signal stops it; workers that cannot start are an error."""
        super().run()
        if not self._is_stopped:
            raise WhyrankError("the workers exit as soon as they start", "the log says why; try it without --workers")

    def handle_signals(self) -> None:
        """Handle the signals received; any of them that stops the server is no failure."""
        super().handle_signals()
        self._is_stopped = self.should_exit.is_set()

    def join_all(self) -> None:
        """Wait for the workers to finish their requests, and kill those that do not stop."""
        deadline = time.monotonic() + GRACEFUL_SECONDS + _GRACE_SECONDS
        for process in self.processes:
            process.process.join(max(0.0, deadline - time.monotonic()))
            if process.process.is_alive():
                _log.warning("a worker did not stop within %s seconds and is killed", GRACEFUL_SECONDS)
                process.process.kill()
                process.process.join()

    def handle_hup(self) -> None:
        """Stop."""
        self.should_exit.set()

    def keep_subprocess_alive(self) -> None:
        """Replace workers that died, and log it."""
        before = list(self.processes)
        super().keep_subprocess_alive()
        for process in before:
            if process not in self.processes:
                _log.warning("a worker ended with status %s and is replaced", process.exitcode)
                self._replaced.append(time.monotonic())
        recent = [moment for moment in self._replaced if moment > time.monotonic() - _SHORT_LIFE_SECONDS]
        if len(recent) >= _MOST_SHORT_LIVES * self.processes_num:
            self.should_exit.set()


@contextmanager
def stop_signals(handler: Callable[[int, FrameType | None], object]) -> Iterator[None]:
    """Install a handler for the stop signals; SIGHUP is one, unless the process ignores it (nohup)."""
    numbers = [signal.SIGINT, signal.SIGTERM]
    if sys.platform != "win32" and signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        numbers.append(signal.SIGHUP)
    before = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)


def raise_file_limit() -> None:
    """Raise the number of open files as far as the system allows; connections are files."""
    if sys.platform == "win32":
        return
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MAX_FILES if hard == resource.RLIM_INFINITY else min(_MAX_FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
