"""A server that speaks the OpenAI-compatible protocol, well or badly, on a plan: for tests of whoever calls one.

    with FaultyServer(["429", "garbage"]) as server:      # then it answers well
        Transport(Endpoint(server.url, "embedder")).post("embeddings", {"model": "m", "input": ["tea"]})

A plan is used up request by request; `seeded_plan` makes one of any length from a seed.
"""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Callable, Iterable, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

from whyrank.testing.fakes import WordDirections

if TYPE_CHECKING:
    from types import TracebackType

Fault = Literal[
    "ok",
    "400",
    "401",
    "403",
    "404",
    "413",
    "429",
    "500",
    "503",
    "hang",
    "drip",
    "drip-headers",
    "cut",
    "garbage",
    "not-an-object",
    "no-data",
    "deep",
    "wrong-count",
    "wrong-dimension",
    "mixed-dimensions",
    "nan",
    "zero",
    "text-for-numbers",
    "shuffled",
    "twice-the-same-index",
    "huge",
    "empty",
    "redirect-elsewhere",
    "redirect-here",
]
FAULTS: tuple[Fault, ...] = get_args(Fault)
DRIP_S = 0.02  # between two bytes of a slow answer
HUGE_BYTES = 200_000_000  # more than anybody should read; it is sent until the caller hangs up
_BLOCK = b'"' + b"x" * 65_534 + b'"'

Reply = Callable[[Sequence[dict[str, str]]], str]


class Request(NamedTuple):
    """What was asked: the path, the headers by lower-case name, and the body."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]


def seeded_plan(
    seed: int, count: int, faults: Sequence[Fault] = FAULTS, *, among: int = 0, never: Iterable[Fault] = ()
) -> list[Fault]:
    """Return so many faults in an order that depends on the seed alone, with so many good answers strewn in."""
    draw = random.Random(seed)
    chosen = [fault for fault in faults if fault not in frozenset(never)]
    plan: list[Fault] = [chosen[i % len(chosen)] for i in range(count)]
    plan += ["ok"] * among
    draw.shuffle(plan)
    return plan


def echo(messages: Sequence[dict[str, str]]) -> str:
    """Answer with what was said last."""
    return messages[-1]["content"] if messages else ""


class FaultyServer:
    """Listens on a free port of this machine; `url` is what a user would set, `requests` what was asked so far.

    Embeddings are those of `WordDirections`, so texts that share words are near each other. Above `most_texts` in a
    batch, or above `most_letters` in a text, it refuses with 413 and 400, as real servers do.
    """

    def __init__(
        self,
        plan: Iterable[Fault] = (),
        *,
        key: str | None = None,
        dimension: int = 32,
        reply: Reply = echo,
        most_texts: int | None = None,
        most_letters: int | None = None,
        knows_schemas: bool = True,
        retry_after: str | None = None,
        hang_s: float = 30.0,
    ) -> None:
        self.requests: list[Request] = []
        self.plan: list[Fault] = list(plan)
        self.key = key
        self.reply = reply
        self.most_texts = most_texts
        self.most_letters = most_letters
        self.knows_schemas = knows_schemas
        self.retry_after = retry_after
        self.hang_s = hang_s
        self._embedder = WordDirections(dimension)
        self._leaving = threading.Event()
        self._lock = threading.Lock()
        self._server = _Listener(("127.0.0.1", 0), _Handler)
        self._server.owner = self
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    @property
    def url(self) -> str:
        """Return the base URL of the API."""
        host, port = self._server.server_address[:2]
        return f"http://{host!s}:{port}/v1"

    def __enter__(self) -> FaultyServer:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._leaving.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def next_fault(self, request: Request) -> Fault:
        """Remember what was asked and say how to answer it."""
        with self._lock:
            self.requests.append(request)
            return self.plan.pop(0) if self.plan else "ok"

    def pause(self, seconds: float) -> bool:
        """Wait; tell whether the server is closing meanwhile."""
        return self._leaving.wait(seconds)

    def embeddings(self, texts: Sequence[str]) -> list[list[float]]:
        """Return what a good answer holds."""
        return [[float(value) for value in row] for row in self._embedder.documents(texts)]


class _Listener(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    owner: FaultyServer

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of callers that hang up: here they are meant to."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Listener

    def log_message(self, format: str, *args: Any) -> None:
        """Keep the tests' output clean."""

    def do_GET(self) -> None:
        """Answer what a caller that followed a redirect would ask."""
        self._send(405, {"error": {"message": "use POST"}})

    def do_POST(self) -> None:
        """Answer as the plan says."""
        owner = self.server.owner
        request = Request(self.path, {name.lower(): value for name, value in self.headers.items()}, self._body())
        fault = owner.next_fault(request)
        refusal = _refusal(owner, request)
        if fault in _TROUBLES:
            _TROUBLES[fault](self, request)
        elif fault.isdigit():
            self._send(int(fault), {"error": {"message": f"planned {fault}"}}, _waiting(owner, fault))
        elif refusal is not None:
            self._send(refusal[0], {"error": {"message": refusal[1]}})
        elif self.path.endswith("/chat/completions"):
            self._send(200, _completion(owner, request))
        else:
            self._send(200, _ANSWERS.get(fault, _same)(_embedded(owner, request)))

    def _body(self) -> dict[str, Any]:
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        try:
            body = json.loads(raw)
        except ValueError:
            return {}
        return body if isinstance(body, dict) else {}

    def _send(self, status: int, data: object, headers: dict[str, str] | None = None) -> None:
        self._send_bytes(status, json.dumps(data).encode(), headers or {})

    def _send_bytes(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        self._head(status, len(body), headers)
        self.wfile.write(body)

    def _head(self, status: int, length: int, headers: dict[str, str]) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(length))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def hang(self, request: Request) -> None:
        """Take the question and say nothing."""
        self.close_connection = True
        self.server.owner.pause(self.server.owner.hang_s)

    def drip(self, request: Request) -> None:
        """Send an answer byte by byte, so that no read ever waits long."""
        self.close_connection = True
        self._head(200, 1_000_000, {})
        self._trickle(b" ")

    def drip_headers(self, request: Request) -> None:
        """Do the same before the answer has begun."""
        self.close_connection = True
        self.wfile.write(b"HTTP/1.1 200 OK\r\nX-Slow: ")
        self._trickle(b"x")

    def _trickle(self, byte: bytes) -> None:
        for _ in range(int(self.server.owner.hang_s / DRIP_S)):
            self.wfile.write(byte)
            self.wfile.flush()
            if self.server.owner.pause(DRIP_S):
                return

    def cut(self, request: Request) -> None:
        """Hang up in the middle of an answer."""
        self.close_connection = True
        self._head(200, 1_000, {})
        self.wfile.write(b'{"data": [')

    def garbage(self, request: Request) -> None:
        """Answer with a page for people."""
        self._send_bytes(200, b"<html>\xff\xfe it works </html>", {})

    def not_an_object(self, request: Request) -> None:
        """Answer with JSON that is not an object."""
        self._send(200, ["no", "object"])

    def no_data(self, request: Request) -> None:
        """Answer with an object that holds nothing."""
        self._send(200, {})

    def deep(self, request: Request) -> None:
        """Answer with JSON that a recursive reader does not survive."""
        self._send_bytes(200, b"[" * 200_000 + b"]" * 200_000, {})

    def empty(self, request: Request) -> None:
        """Answer with nothing."""
        self._send_bytes(200, b"", {})

    def huge(self, request: Request) -> None:
        """Answer without end."""
        self.close_connection = True
        self._head(200, HUGE_BYTES, {})
        for _ in range(HUGE_BYTES // len(_BLOCK)):
            self.wfile.write(_BLOCK)

    def redirect_elsewhere(self, request: Request) -> None:
        """Send the caller, and its key, to another host."""
        self._send(307, {}, {"Location": f"http://localhost.example:1{request.path}"})

    def redirect_here(self, request: Request) -> None:
        """Send the caller to the same place on the same host."""
        self._send(307, {}, {"Location": request.path})


_TROUBLES: dict[Fault, Callable[[_Handler, Request], None]] = {
    "hang": _Handler.hang,
    "drip": _Handler.drip,
    "drip-headers": _Handler.drip_headers,
    "cut": _Handler.cut,
    "garbage": _Handler.garbage,
    "not-an-object": _Handler.not_an_object,
    "no-data": _Handler.no_data,
    "deep": _Handler.deep,
    "empty": _Handler.empty,
    "huge": _Handler.huge,
    "redirect-elsewhere": _Handler.redirect_elsewhere,
    "redirect-here": _Handler.redirect_here,
}


def _waiting(owner: FaultyServer, fault: Fault) -> dict[str, str]:
    return {"Retry-After": owner.retry_after} if owner.retry_after is not None and fault in ("429", "503") else {}


def _refusal(owner: FaultyServer, request: Request) -> tuple[int, str] | None:
    """Say what a strict server does not take."""
    given = request.headers.get("authorization", "")
    if owner.key is not None and given != f"Bearer {owner.key}":
        return 401, f"the key {given.removeprefix('Bearer ')!r} is wrong"
    texts = _texts(request)
    if owner.most_texts is not None and len(texts) > owner.most_texts:
        return 413, f"{len(texts)} texts are too many"
    if owner.most_letters is not None and any(len(text) > owner.most_letters for text in texts):
        return 400, "the input is longer than the context"
    if request.path.endswith("/embeddings") and not all(texts):
        return 400, "the input must not be empty"
    if "response_format" in request.body and not owner.knows_schemas:
        return 400, "response_format is not supported"
    return None


def _texts(request: Request) -> list[str]:
    given = request.body.get("input", [])
    return [given] if isinstance(given, str) else [str(text) for text in given]


def _embedded(owner: FaultyServer, request: Request) -> list[dict[str, Any]]:
    rows = owner.embeddings(_texts(request))
    return [{"object": "embedding", "index": i, "embedding": row} for i, row in enumerate(rows)]


def _completion(owner: FaultyServer, request: Request) -> dict[str, Any]:
    messages = request.body.get("messages", [])
    text = owner.reply(messages)
    usage = {"prompt_tokens": sum(len(message["content"]) // 4 for message in messages), "completion_tokens": 1}
    message = {"role": "assistant", "content": text}
    return {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}], "usage": usage}


Rows = list[dict[str, Any]]


def _same(rows: Rows) -> dict[str, Any]:
    return {"object": "list", "data": rows}


def _with(change: Callable[[list[float]], list[Any]], which: slice = slice(None)) -> Callable[[Rows], dict[str, Any]]:
    def answer(rows: Rows) -> dict[str, Any]:
        changed = [{**row, "embedding": change(row["embedding"])} for row in rows[which]]
        return _same([*rows[: len(rows) - len(changed)], *changed])

    return answer


_ANSWERS: dict[Fault, Callable[[Rows], dict[str, Any]]] = {
    "wrong-count": lambda rows: _same(rows[:-1]),
    "wrong-dimension": _with(lambda vector: vector[:-1]),
    "mixed-dimensions": _with(lambda vector: [*vector, 0.5], slice(-1, None)),
    "nan": _with(lambda vector: [float("nan"), *vector[1:]]),
    "zero": _with(lambda vector: [0.0] * len(vector)),
    "text-for-numbers": _with(lambda vector: ["one", *vector[1:]]),
    "shuffled": lambda rows: _same(rows[::-1]),
    "twice-the-same-index": lambda rows: _same([{**row, "index": 0} for row in rows]),
}
