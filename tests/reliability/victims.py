"""Real programs that are killed: the library, the command line, `whyrank serve` and `whyrank mcp`.

Starting Python takes longer than all a victim does before it is killed, so most are forked from a server process that
has imported everything and opened nothing; every `START_ANEW`th is the installed command, started anew.
"""

from __future__ import annotations

import http.client
import json
import multiprocessing
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from whyrank.config.load import load
from whyrank.engine.engine import Engine
from whyrank.engine.spaces import Makers
from whyrank.errors import WhyrankError
from whyrank.providers.registry import MissingModel
from whyrank.storage.store import SqliteStore
from whyrank.testing.fakes import WordDirections

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from multiprocessing.connection import Connection

    from whyrank.protocols import Embedder

COMMAND = Path(sys.executable).with_name("whyrank")
TOKEN = "a-token-for-these-tests"
START_ANEW = 20
SECONDS = 60.0  # for a victim to end when it was killed
MODELS: Mapping[str, Embedder] = {"small": WordDirections(16, "small"), "large": WordDirections(24, "large")}

FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload([
    "tests.reliability.victims", "whyrank", "whyrank.ingest.pipeline", "uvicorn",
    "whyrank.interfaces.cli.main", "whyrank.interfaces.cli.memories",
    "whyrank.interfaces.http.app",
    "whyrank.interfaces.mcp.command", "whyrank.interfaces.mcp.server",
])  # fmt: skip


class Gone(Exception):
    """The victim is dead: what was asked last was not acknowledged."""


class Op(NamedTuple):
    """One write: a verb, the text it brings, and the text it is done to."""

    verb: str
    text: str = ""
    old: str = ""


class Victim(Protocol):
    """A program that writes, one operation at a time, until it is killed."""

    def perform(self, op: Op, identity: str) -> str:
        """Do it to the memory of this id; return the id it acknowledges, or raise `Gone`."""
        ...

    def kill(self) -> None:
        """Send SIGKILL, whatever it is doing."""
        ...

    def close(self) -> None:
        """Kill it if it still lives, and wait for its end."""
        ...


# -- the library ----------------------------------------------------------------------------------------------


def opened(store: Path) -> Engine:
    """Open a store with two small models, so that it can change between them."""

    def make(provider: str, settings: Mapping[str, object]) -> Embedder | None:
        return MODELS.get(provider) or MissingModel(provider, WhyrankError(f"no model {provider}"))

    config = load({"store": str(store), "calibration": "manual"}, workspace=store.parent, environment={})
    return Engine(SqliteStore(store), MODELS["small"], config, makers=Makers("small", make=make))


def done_by(engine: Engine, op: Op, identity: str) -> str:
    """Do one operation with an engine; return the id of the memory."""
    if op.verb == "update":
        return engine.update(identity, text=op.text).id
    if op.verb == "forget":
        engine.forget(identity)
        return ""
    if op.verb == "switch":
        engine.models.use(op.text)
        return ""
    return engine.add(op.text, supersedes=identity or None).id


def _write(orders: Connection, store: Path, is_early: bool) -> None:
    """Do what is ordered, and acknowledge each; a planted fault acknowledges it before it is done."""
    with opened(store) as engine:
        orders.send(("ready", ""))
        while True:
            op, identity = orders.recv()
            try:
                if is_early:
                    orders.send(("done", ""))
                made = done_by(engine, op, identity)
                if not is_early:
                    orders.send(("done", made))
            except WhyrankError as error:
                orders.send(("error", repr(error)))


class Library:
    """An engine in a process of its own."""

    def __init__(self, store: Path, is_early: bool = False) -> None:
        self._orders, theirs = FORKS.Pipe()
        self._process = FORKS.Process(target=_write, args=(theirs, store, is_early), daemon=True)
        self._process.start()
        theirs.close()
        assert self._heard() == ("ready", "")

    def _heard(self) -> tuple[str, str]:
        try:
            kind, told = self._orders.recv()
        except (EOFError, ConnectionError) as error:
            raise Gone from error
        assert kind != "error", told
        return kind, told

    def perform(self, op: Op, identity: str) -> str:
        try:
            self._orders.send((op, identity))
        except OSError as error:
            raise Gone from error
        return self._heard()[1]

    def kill(self) -> None:
        self._process.kill()

    def close(self) -> None:
        self._process.kill()
        self._process.join(SECONDS)
        self._orders.close()


# -- commands -------------------------------------------------------------------------------------------------


def _command(given: int, said: int, arguments: list[str], environment: dict[str, str]) -> None:
    """Be the command line, with these descriptors as standard input and output."""
    os.dup2(given, 0)
    os.dup2(said, 1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    sys.stdin, sys.stdout = os.fdopen(0, closefd=False), os.fdopen(1, "w", closefd=False)
    os.environ.update(environment)
    from whyrank.interfaces.cli.main import main

    main(arguments)
    sys.stdout.flush()


def run_command(given: Connection, said: Connection, arguments: list[str], environment: dict[str, str]) -> None:
    _command(given.fileno(), said.fileno(), arguments, environment)


def _additions(given: Connection, said: Connection, arguments: list[str], environment: dict[str, str]) -> None:
    """Be a shell that runs `whyrank add` once for every line."""
    with os.fdopen(os.dup(given.fileno())) as lines:
        for line in lines:
            _command(given.fileno(), said.fileno(), ["add", line.strip(), *arguments], environment)


class Program:
    """A process with pipes, forked or started anew, whose lines are read as they come."""

    def __init__(self, arguments: list[str], forked: Callable[..., None] | None) -> None:
        environment = {"WHYRANK_TOKEN": TOKEN}
        self._process: Any
        if forked is None:
            self._process = subprocess.Popen(
                [str(COMMAND), *arguments], env={**os.environ, **environment},
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            )  # fmt: skip
            self._ends: tuple[Any, ...] = (self._process.stdin, self._process.stdout)
        else:
            theirs_in, ours_in = FORKS.Pipe(duplex=False)
            ours_out, theirs_out = FORKS.Pipe(duplex=False)
            given = (theirs_in, theirs_out, arguments, environment)
            self._process = FORKS.Process(target=forked, args=given, daemon=True)
            self._process.start()
            theirs_in.close()
            theirs_out.close()
            self._ends = (ours_in, ours_out)
        self._read = b""

    def say(self, line: str) -> None:
        try:
            os.write(self._ends[0].fileno(), line.encode() + b"\n")
        except OSError as error:
            raise Gone from error

    def line(self) -> str:
        """Return the next whole line; one that was cut short acknowledges nothing."""
        while b"\n" not in self._read:
            part = os.read(self._ends[1].fileno(), 65_536)
            if not part:
                raise Gone
            self._read += part
        line, _, self._read = self._read.partition(b"\n")
        return line.decode()

    def kill(self) -> None:
        if isinstance(self._process, subprocess.Popen):
            self._process.send_signal(signal.SIGKILL)
        else:
            self._process.kill()

    def close(self) -> None:
        self.kill()
        self._process.wait(SECONDS) if isinstance(self._process, subprocess.Popen) else self._process.join(SECONDS)
        for end in self._ends:
            end.close()


def store_options(store: Path) -> list[str]:
    return ["--store", str(store), "--workspace", str(store.parent), "--embedding", "none"]


class CommandLine:
    """`whyrank add`, once for every fact."""

    def __init__(self, store: Path, is_new: bool) -> None:
        self._store, self._is_new = store, is_new
        self._is_killed = False
        self._program: Program | None = None if is_new else Program(store_options(store), _additions)

    def perform(self, op: Op, identity: str) -> str:
        if self._is_killed:
            raise Gone
        if self._is_new:
            if self._program is not None:
                self._program.close()
            self._program = Program(["add", op.text, *store_options(self._store)], None)
        else:
            assert self._program is not None
            self._program.say(op.text)
        return self._program.line().split()[0]

    def kill(self) -> None:
        self._is_killed = True
        if self._program is not None:
            self._program.kill()

    def close(self) -> None:
        if self._program is not None:
            self._program.close()


class Served:
    """`whyrank serve`, and a client that stays connected to it."""

    def __init__(self, store: Path, is_new: bool) -> None:
        arguments = ["serve", "--port", "0", "--json", *store_options(store)]
        self._program = Program(arguments, None if is_new else run_command)
        said = ""
        while not said.endswith("}"):  # one JSON object over several lines
            said += self._program.line()
        port = int(json.loads(said)["url"].rpartition(":")[2])
        self._client = http.client.HTTPConnection("127.0.0.1", port, timeout=SECONDS)
        self.kill = self._program.kill

    def perform(self, op: Op, identity: str) -> str:
        method, path, body = {
            "add": ("POST", "/v1/memories", {"text": op.text}),
            "supersede": ("POST", "/v1/memories", {"text": op.text, "supersedes": identity}),
            "update": ("PATCH", f"/v1/memories/{identity}", {"text": op.text}),
            "forget": ("DELETE", f"/v1/memories/{identity}", None),
        }[op.verb]
        headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
        try:
            self._client.request(method, path, None if body is None else json.dumps(body), headers)
            answer = self._client.getresponse()
            said = answer.read()
        except (OSError, http.client.HTTPException) as error:
            raise Gone from error
        assert answer.status in (200, 201), said
        return str(json.loads(said).get("id", ""))

    def close(self) -> None:
        self._client.close()
        self._program.close()


class Agent:
    """`whyrank mcp` over standard input and output."""

    def __init__(self, store: Path, is_new: bool) -> None:
        self._program = Program(["mcp", *store_options(store)], None if is_new else run_command)
        self._number = 0
        about = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "tests", "version": "1"}}
        self._asked("initialize", about)
        self._program.say(json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}))
        self.kill, self.close = self._program.kill, self._program.close

    def _asked(self, method: str, parameters: dict[str, Any]) -> Any:
        self._number += 1
        self._program.say(json.dumps({"jsonrpc": "2.0", "id": self._number, "method": method, "params": parameters}))
        while True:
            answer = json.loads(self._program.line())
            if answer.get("id") == self._number:
                return answer["result"]

    def perform(self, op: Op, identity: str) -> str:
        if op.verb == "forget":
            answer = self._asked("tools/call", {"name": "memory_forget", "arguments": {"ids": [identity]}})
        else:
            arguments = {"text": op.text, **({"supersedes": identity} if identity else {})}
            answer = self._asked("tools/call", {"name": "memory_add", "arguments": arguments})
        assert not answer["isError"], answer
        return "" if op.verb == "forget" else str(answer["structuredContent"]["memories"][0]["id"])
