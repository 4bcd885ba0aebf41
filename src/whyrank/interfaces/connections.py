"""The server under an application: connections that are slow, wrong or too many, and an end that loses nothing."""

from __future__ import annotations

import asyncio
import json
import secrets
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator, MutableMapping
from contextlib import contextmanager
from functools import partial
from types import FrameType
from typing import Any, ClassVar, cast

import httptools
import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from .gate import App, Refusal
from .heads import MAX_HEAD_BYTES, TOO_LONG, fault_of, without_upgrade
from .shapes import FORMAT

HEAD_SECONDS = 10.0  # for the head of a request to arrive; more slowly is how servers are starved
TAKE_SECONDS = 30.0  # for an answer to be taken; who reads none of it keeps its bytes and a connection
LINGER_SECONDS = 2.0  # for who still sends to read that it is refused: closed at once, their side loses the answer
IDLE_SECONDS = 75  # a connection may rest between two requests
LEAVE_SECONDS = 30  # for what has begun to come to its end when the server is told to
MAX_CONNECTIONS = 4_000  # of one process; whoever comes then is told to come later
_RETRY_SECONDS = 2
_OURS = "whyrank"  # our corner of what servers tell applications beyond the standard
_SHOWN_TARGET_BYTES = 1_024  # of a request that is refused; of a very long target no path can be read
_HANDED_OVER = 64  # connections that are taken over at once
_FILES = 65_536  # a process wants to have open at most; connections are files


class Connection(HttpToolsProtocol):
    """One connection; whoever does not say in time what they want, or does not take the answer, is let go."""

    seconds: ClassVar[float] = HEAD_SECONDS
    take_seconds: ClassVar[float] = TAKE_SECONDS
    most: ClassVar[int] = MAX_CONNECTIONS

    def connection_made(self, transport: Any) -> None:
        """Begin; one too many is told so."""
        super().connection_made(transport)
        self._late: asyncio.TimerHandle | None = None
        self._untaken: asyncio.TimerHandle | None = None
        self._in_head = False
        self._hears = True
        self._has_ended = False
        self._without_sense = 0  # bytes that came since the last head, piece of a body or end of one
        if len(self.connections) > self.most:
            self._end(503, "busy", "there are too many connections", "try again in a moment")
        else:
            self._await_head()

    def data_received(self, data: bytes) -> None:
        """Take in what came; between two requests the next head has its time too."""
        if not self._hears:
            return
        if self._late is None and (self.cycle is None or self.cycle.response_complete):
            self._await_head()
        self._unset_keepalive_if_required()
        self._without_sense += len(data)
        try:
            self._parse(data)
        except httptools.HttpParserError:
            self.logger.warning("what came is no HTTP")
            self.send_400_response("")
        else:
            if self._without_sense > MAX_HEAD_BYTES:
                self._cut(*TOO_LONG)

    def _parse(self, data: bytes) -> None:
        """Read on; a parser that stops where another protocol might begin gives way to one that reads the body."""
        rest = memoryview(data)
        while rest:
            try:
                self.parser.feed_data(rest)
                return
            except httptools.HttpParserUpgrade as stopped:
                rest = rest[stopped.args[0] :]
            method, version = self.parser.get_method(), self.parser.get_http_version()
            if method == b"CONNECT":
                raise httptools.HttpParserError("there is no body after this, and we are no proxy")
            self.parser = httptools.HttpRequestParser(self)
            if hasattr(self.parser, "set_dangerous_leniencies"):  # as uvicorn has it: what follows a last request
                self.parser.set_dangerous_leniencies(lenient_data_after_close=True)
            self.parser.feed_data(without_upgrade(method, self.url, version, self.headers))

    def on_message_begin(self) -> None:
        """A head begins."""
        self._in_head = True
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header; what stands after the body is none, and nobody may add to a head that was judged."""
        if self._in_head:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """The head is whole, unless it is read again because it offers another protocol."""
        self._in_head = False
        self._without_sense = 0
        if self.parser.should_upgrade():
            return
        self._arrived()
        if (fault := fault_of(self.url, self.headers)) is not None:
            self.scope["extensions"] = {_OURS: {"fault": fault}}
            self.url = self.url[:_SHOWN_TARGET_BYTES]
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """A piece of the body came."""
        self._without_sense = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """The body is whole, also one that nobody waited for."""
        self._without_sense = 0
        if self.parser.should_upgrade():
            return
        super().on_message_complete()
        self._arrived()

    def on_response_complete(self) -> None:
        """The answer is on its way; if it was the last, it has its time to get there."""
        super().on_response_complete()
        if self.transport.is_closing():
            self._await_taking()

    def pause_writing(self) -> None:
        """More lies here than is taken."""
        super().pause_writing()
        self._await_taking()

    def resume_writing(self) -> None:
        """It was taken; of a last answer all must be."""
        super().resume_writing()
        if not (self.transport.is_closing() or self._has_ended):
            self._taken()

    def timeout_keep_alive_handler(self) -> None:
        """It rested for too long; an answer that was not taken by now never will be."""
        if self.transport.get_write_buffer_size():
            self.transport.abort()
        super().timeout_keep_alive_handler()

    def connection_lost(self, exc: Exception | None) -> None:
        """End."""
        self._arrived()
        self._taken()
        super().connection_lost(exc)

    def send_400_response(self, msg: str) -> None:
        """Answer what is no HTTP."""
        self._arrived()
        self._cut(400, "bad-http", "this is no HTTP request", "send HTTP/1.1")

    def _cut(self, status: int, code: str, message: str, hint: str) -> None:
        """Answer what cannot be read on, unless it follows a request whose answer must come first and be the last."""
        cycle = self.cycle
        is_its_body = cycle is not None and cycle.more_body and not cycle.response_started and not self.pipeline
        if cycle is None or cycle.response_complete or is_its_body:
            self._end(status, code, message, hint)
        else:
            cycle.keep_alive = False
            self._hears = False

    def _await_taking(self) -> None:
        if self._untaken is None:
            self._untaken = self.loop.call_later(self.take_seconds, self.transport.abort)

    def _taken(self) -> None:
        if self._untaken is not None:
            self._untaken.cancel()
            self._untaken = None

    def _await_head(self) -> None:
        self._late = self.loop.call_later(self.seconds, self._too_late)

    def _arrived(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None

    def _too_late(self) -> None:
        self._late = None
        self._end(408, "slow", f"no request came within {self.seconds:.0f} seconds", "send it at once")

    def _end(self, status: int, code: str, message: str, hint: str) -> None:
        if self.transport.is_closing() or self._has_ended:
            return
        self._has_ended = True
        identity = secrets.token_hex(8)
        told = {"code": code, "message": message, "hint": hint, "request_id": identity}
        body = json.dumps({"error": told, "format": FORMAT})
        retry = f"retry-after: {_RETRY_SECONDS}\r\n" if status == 503 else ""
        head = f"HTTP/1.1 {status} {code}\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n"
        self.transport.write(f"{head}{retry}x-request-id: {identity}\r\nconnection: close\r\n\r\n{body}".encode())
        self.transport.write_eof()
        self._hears = False
        self.loop.call_later(LINGER_SECONDS, self.transport.close)
        self._await_taking()


class Host(uvicorn.Server):
    """Serves until the process is told to end; then what has begun ends, and nothing new begins.

    Connections come from sockets that listen, or one by one from another process over a channel.
    """

    def __init__(self, config: uvicorn.Config, leaving: Callable[[], None], channel: socket.socket | None) -> None:
        super().__init__(config)
        self._leaving = leaving
        self._channel = channel
        self._welcomed = set[asyncio.Task[object]]()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to listen, and to take what is handed over."""
        await super().startup(sockets)
        if self._channel is not None:
            self._channel.setblocking(False)
            asyncio.get_running_loop().add_reader(self._channel.fileno(), self._take)

    def _take(self) -> None:
        """Take over connections; one who hands over no more has ended, and so do we."""
        assert self._channel is not None
        try:
            said, numbers, _, _ = socket.recv_fds(self._channel, _HANDED_OVER, _HANDED_OVER)
        except BlockingIOError:
            return
        except OSError:
            said, numbers = b"", []
        if not said:
            asyncio.get_running_loop().remove_reader(self._channel.fileno())
            self.should_exit = True
        for number in numbers:
            taken = asyncio.get_running_loop().create_task(self._welcome(socket.socket(fileno=number)))
            self._welcomed.add(taken)
            taken.add_done_callback(self._welcomed.discard)

    async def _welcome(self, connection: socket.socket) -> None:
        connection.setblocking(False)
        kind = cast(type[Connection], self.config.http_protocol_class)
        make = partial(kind, config=self.config, server_state=self.server_state, app_state={})
        await asyncio.get_running_loop().connect_accepted_socket(make, connection)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """End on a signal, and end well: whoever waits for this process sees that it was not killed."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        with heard_by(self.handle_exit) as was_told:
            self.should_exit |= was_told
            yield

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Let what has begun end, and tell what takes long to stop where it can."""
        self._leaving()
        if self._channel is not None:
            asyncio.get_running_loop().remove_reader(self._channel.fileno())
        await super().shutdown(sockets)


def host_for(
    app: App,
    leaving: Callable[[], None],
    connection: type[Connection] = Connection,
    channel: socket.socket | None = None,
    *,
    leave_seconds: int = LEAVE_SECONDS,
    has_lifespan: bool = False,
) -> Host:
    """Return what serves an application; one with a lifespan is told when it begins and ends."""
    config = uvicorn.Config(
        app,
        http=connection,
        ws="none",
        lifespan="on" if has_lifespan else "off",
        log_config=None,  # uvicorn's own would print to standard output
        access_log=False,
        server_header=False,
        timeout_keep_alive=IDLE_SECONDS,
        timeout_graceful_shutdown=leave_seconds,
    )
    return Host(config, leaving, channel)


def fault_in(scope: MutableMapping[str, Any]) -> Refusal | None:
    """Return what was found wrong with the head of a request, if something was."""
    fault: Refusal | None = scope.get("extensions", {}).get(_OURS, {}).get("fault")
    return fault


def ending_signals() -> list[signal.Signals]:
    """Return the signals that tell a server to end; a terminal that closes does, unless we are to outlive it."""
    numbers = [signal.SIGINT, signal.SIGTERM]
    if sys.platform != "win32" and signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        numbers.append(signal.SIGHUP)
    return numbers


class _Heard:
    """Hears a signal to end when there is no server yet; the server looks here as it begins.

    To raise where a signal comes would cut imports short, whose locks then stay taken: other threads wait for ever.
    """

    was_told = False

    def __call__(self, *_: object) -> None:
        self.was_told = True


@contextmanager
def ending_in_order() -> Iterator[None]:
    """Let a signal to end unwind what was begun, also before a server listens to it; killed, it would leave files."""
    with heard_by(_Heard()):
        yield


@contextmanager
def heard_by(handler: Callable[[int, FrameType | None], object]) -> Iterator[bool]:
    """Let a handler hear the signals to end; yield whether one came before there was a handler like this."""
    before = {number: signal.signal(number, handler) for number in ending_signals()}
    try:
        yield any(isinstance(earlier, _Heard) and earlier.was_told for earlier in before.values())
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)


def allow_many_files() -> None:
    """Raise the number of files a process may have open as far as it goes, where there is such a number."""
    if sys.platform == "win32":
        return
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _FILES if hard == resource.RLIM_INFINITY else min(_FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
