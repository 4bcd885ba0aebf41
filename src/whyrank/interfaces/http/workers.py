"""Several processes that answer: one takes the connections and hands each to the worker that has the fewest.

Were they to take connections from one socket themselves, the first to wake would take all that wait, and a few clients
that stay connected would keep one core busy and the other idle.
"""

from __future__ import annotations

import errno
import json
import logging
import os
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from ...errors import ConfigError, WhyrankError
from ..connections import LEAVE_SECONDS, allow_many_files, heard_by

_METRICS_VARIABLE = "PROMETHEUS_MULTIPROC_DIR"
_AT_ONCE = 64  # connections that are taken before anything else is looked at
_SHORT_LIFE_SECONDS = 5.0  # a worker that ends sooner has not come up
_SHORT_LIVES = 3  # in a row after which nothing is to be hoped for
_FULL_SECONDS = 0.02  # to wait when no worker takes another connection, as while they come up
_NO_FILES_SECONDS = 0.05  # to wait when the process may open no more files
_EXTRA_SECONDS = 5.0  # beyond what workers take to end well, after which they are ended
_log = logging.getLogger(__name__)


class Worker:
    """A process that answers, the channel to it, and how many connections it has."""

    def __init__(self, plan: Mapping[str, Any], metrics: str) -> None:
        self.channel, theirs = socket.socketpair()
        self.began = time.monotonic()
        self.connections = 0
        command = [sys.executable, "-m", "whyrank.interfaces.http.worker", str(theirs.fileno())]
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            pass_fds=[theirs.fileno()],
            env={**os.environ, _METRICS_VARIABLE: metrics},
            start_new_session=True,  # what is typed at the terminal is said to us, and we say it to them
        )
        theirs.close()
        self.channel.setblocking(False)
        assert self.process.stdin is not None
        with self.process.stdin as stream:
            stream.write(json.dumps(plan).encode())  # not as an argument: it holds the tokens

    def take(self, connection: socket.socket) -> bool:
        """Hand a connection over; tell whether the worker took it."""
        try:
            socket.send_fds(self.channel, [b"+"], [connection.fileno()])
        except OSError:
            return False
        self.connections += 1
        return True

    def listen(self) -> bool:
        """Hear which connections ended; tell whether the worker is still there."""
        try:
            said = self.channel.recv(4096)
        except BlockingIOError:
            return True
        except OSError:
            return False
        self.connections -= len(said)
        return bool(said)


def run_workers(plan: Mapping[str, Any], listening: socket.socket, count: int) -> None:
    """Serve with so many workers until the process is told to end."""
    if not hasattr(socket, "send_fds"):
        raise ConfigError("several workers need an operating system that hands over sockets", "leave --workers out")
    allow_many_files()
    # In this order, because a folder that is made before signals are heard may be left behind by one.
    with _signals() as ending, tempfile.TemporaryDirectory(prefix="whyrank-metrics-") as metrics:
        _Crew(plan, listening, metrics, ending).serve(count)


@contextmanager
def _signals() -> Iterator[socket.socket]:
    """Yield a socket that can be read from when the process is told to end."""
    heard, told = socket.socketpair()
    heard.setblocking(False)
    told.setblocking(False)
    woken = signal.set_wakeup_fd(told.fileno())
    try:
        with heard_by(lambda *_: None) as was_told:
            if was_told:
                told.send(b"-")
            yield heard
    finally:
        signal.set_wakeup_fd(woken)
        heard.close()
        told.close()


class _Crew:
    """The workers of one server; one that ends is replaced."""

    def __init__(self, plan: Mapping[str, Any], listening: socket.socket, metrics: str, ending: socket.socket) -> None:
        self._plan = plan
        self._listening = listening
        self._metrics = metrics
        self._ending = ending
        self._workers: list[Worker] = []
        self._short_lives = 0
        self._held: socket.socket | None = None  # a connection that no worker has room for yet
        self._selector = selectors.DefaultSelector()

    def serve(self, count: int) -> None:
        self._listening.setblocking(False)
        self._selector.register(self._listening, selectors.EVENT_READ)
        self._selector.register(self._ending, selectors.EVENT_READ)
        try:
            for _ in range(count):
                self._begin()
            while self._look():
                continue
        finally:
            self._selector.close()
            self._listening.close()
            if self._held is not None:
                self._held.close()
            self._end()

    def _begin(self) -> None:
        worker = Worker(self._plan, self._metrics)
        self._workers.append(worker)
        self._selector.register(worker.channel, selectors.EVENT_READ, worker)

    def _look(self) -> bool:
        """Do what is to be done next; tell whether there is more to come."""
        for key, _ in self._selector.select(None if self._held is None else _FULL_SECONDS):
            if key.fileobj is self._ending:
                return False
            if key.fileobj is self._listening:
                self._accept()
            elif not key.data.listen():
                self._replace(key.data)
        if self._held is not None and self._handed(self._held):
            self._held = None
            self._selector.register(self._listening, selectors.EVENT_READ)
        return True

    def _accept(self) -> None:
        for _ in range(_AT_ONCE):
            try:
                connection, _ = self._listening.accept()
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno in (errno.EMFILE, errno.ENFILE):
                    time.sleep(_NO_FILES_SECONDS)
                return
            if not self._handed(connection):
                # Whoever comes now waits where the system keeps them, until this one is taken.
                self._held = connection
                self._selector.unregister(self._listening)
                return

    def _handed(self, connection: socket.socket) -> bool:
        """Hand a connection to the worker that has the fewest and takes one more; tell whether one did."""
        is_taken = any(worker.take(connection) for worker in sorted(self._workers, key=lambda one: one.connections))
        if is_taken:
            connection.close()
        return is_taken

    def _replace(self, worker: Worker) -> None:
        self._selector.unregister(worker.channel)
        self._workers.remove(worker)
        worker.channel.close()
        status = worker.process.wait()
        is_short = time.monotonic() - worker.began < _SHORT_LIFE_SECONDS
        self._short_lives = self._short_lives + 1 if is_short else 0
        _log.warning("a worker ended with status %d and is replaced", status)
        if self._short_lives >= _SHORT_LIVES:
            raise WhyrankError("workers end as soon as they begin", "what they said stands above")
        self._begin()

    def _end(self) -> None:
        """Let every worker end well; end those that do not."""
        for worker in self._workers:
            worker.process.terminate()
        deadline = time.monotonic() + LEAVE_SECONDS + _EXTRA_SECONDS
        for worker in self._workers:
            try:
                worker.process.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                _log.warning("a worker did not end in time and was killed")
                worker.process.kill()
                worker.process.wait()
            worker.channel.close()
