"""The application: who comes in, which route answers, and how every answer and every refusal looks."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping, MutableMapping, Sequence
from typing import Any, NamedTuple

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ...errors import ConfigError, NotFound, StoreLocked, WhyrankError
from ..door import Door
from ..failures import failure_of
from ..gate import App, Gate, Receive, Refusal, Send
from ..shapes import FORMAT
from .answers import Answer
from .bodies import Left, Refused, drained, read_body, read_json
from .fields import parameters
from .logs import Log
from .pagefiles import page_file
from .routes import Operation, by_path

_SANE_ID = re.compile(r"[A-Za-z0-9._-]{1,64}", re.ASCII)
_PUBLIC = frozenset({"/", "/health", "/openapi.json"})
_RETRY_SECONDS = 5  # of those who met a lock that others held
_HEALTH_SECONDS = 1.0  # that an answer about health is good for, because everybody may ask
_MESSAGE_CHARACTERS = 500
_LEFT = 499  # as proxies log a client that has gone
_GUARDED = {"cache-control": "no-store", "x-content-type-options": "nosniff", "referrer-policy": "no-referrer"}
_WHERE_IDS_ARE = "/v1/search and /v1/memories show the ids there are; it may have been forgotten, or be another's"
_log = logging.getLogger(__name__)


class Seat(NamedTuple):
    """One whom a server serves: who it is, what lets them in, and what they are let in to."""

    name: str
    gate: Gate
    door: Door


class Visit(NamedTuple):
    """One request on its way: its id, and whose it is, if it said so."""

    id: str
    seat: Seat | None


class Site:
    """Everything a server shows, to each of its seats what is theirs."""

    def __init__(self, seats: Sequence[Seat], log: Log) -> None:
        self._seats = seats
        self._log = log
        self._healthy: tuple[float, bool] = (0.0, False)
        self._inside = self._routed()

    def _routed(self) -> Starlette:
        routes = [self._route(path, operations) for path, operations in by_path().items()]
        routes += [
            self._open("/health", self._health),
            self._open("/", _page),
            self._open("/page/{name:path}", _page),
        ]
        handlers: Mapping[Any, Any] = {HTTPException: _not_here}
        app = Starlette(routes=routes, exception_handlers=handlers)
        app.router.redirect_slashes = False
        return app

    def _route(self, path: str, operations: Mapping[str, Operation]) -> Route:
        async def answer(request: Request) -> Response:
            if request.method == "OPTIONS":
                return _options(operations)
            method = "GET" if request.method == "HEAD" else request.method
            return await self._caught(request, lambda: self._answered(operations[method], request))

        return Route(path, answer, methods=[*operations, "OPTIONS"])

    def _open(self, path: str, endpoint: Callable[[Request], Awaitable[Response]]) -> Route:
        async def answer(request: Request) -> Response:
            if request.method == "OPTIONS":
                return _options({"GET": None})
            return await self._caught(request, lambda: endpoint(request))

        return Route(path, answer, methods=["GET", "OPTIONS"])

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """Answer one request; nobody gets past the gate, and nothing goes out without its id."""
        if scope["type"] != "http":
            await self._inside(scope, receive, send)
            return
        began = time.perf_counter()
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        sent_id = headers.get("x-request-id", "")
        visit = Visit(sent_id if _SANE_ID.fullmatch(sent_id) else secrets.token_hex(8), None)
        status = 0

        async def answer(message: MutableMapping[str, Any]) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = _with_headers(message["headers"], visit.id)
            await send(message)

        admitted = self._admitted(scope["path"], headers)
        if isinstance(admitted, Refusal):
            refused = Refused(admitted.status, admitted.code, admitted.message, admitted.hint)
            await _refused(refused, visit.id)(scope, receive, answer)
        else:
            visit = Visit(visit.id, admitted)
            scope["whyrank"] = visit
            await self._inside(scope, receive, answer)
        self._log.request(scope["method"], scope["raw_path"], status, time.perf_counter() - began, visit.id)

    def _admitted(self, path: str, headers: Mapping[str, str]) -> Seat | Refusal | None:
        """Return whose request it is; nobody's, if it asks for what is open to all; or why it is refused."""
        foreign = self._seats[0].gate.foreign(headers.get("host"), headers.get("origin"))
        if foreign is not None:
            return foreign
        # Every gate is asked, so that the time it takes does not tell which of the tokens is nearly right.
        refusals = [seat.gate.stranger(headers.get("authorization")) for seat in self._seats]
        if None in refusals:
            return self._seats[refusals.index(None)]
        return None if path in _PUBLIC or path.startswith("/page/") else refusals[0]

    async def _caught(self, request: Request, work: Callable[[], Awaitable[Response]]) -> Response:
        """Do the work; whatever goes wrong is an answer too, one that says what to do."""
        identity = request.scope["whyrank"].id
        try:
            return await work()
        except WhyrankError as error:
            return _refused(error, identity)
        except Left:
            return Response(status_code=_LEFT)
        except Exception as error:
            _log.exception("%s %s failed (%s)", request.method, request.scope["route"].path, identity)
            said = f"this failed inside whyrank: {type(error).__name__}"
            return _refused(WhyrankError(said, "the server's log has more, under this request id"), identity)

    async def _answered(self, operation: Operation, request: Request) -> Response:
        door = request.scope["whyrank"].seat.door
        if operation.writes and door.is_read_only:
            raise Refused(403, "read-only", "this server only reads", "start it without --read-only")
        values = operation.read(door, await _given(operation, request))
        values |= request.path_params
        status, body = await door.desk.task(lambda: _rendered(operation.call(door, values)), writes=operation.writes)
        return Response(body, status, media_type="application/json")

    async def _health(self, _: Request) -> Response:
        """Run a real query at every door, unless one was run a moment ago."""
        checked, well = self._healthy
        if time.monotonic() - checked > _HEALTH_SECONDS:
            asked = [seat.door.desk.task(_searched(seat.door)) for seat in self._seats]
            well = all(isinstance(done, bool) for done in await asyncio.gather(*asked, return_exceptions=True))
            self._healthy = (time.monotonic(), well)
        data = {"status": "ok" if well else "failing", "memories_searchable": well, "format": FORMAT}
        return Response(json.dumps(data), 200 if well else 503, media_type="application/json")


def _searched(door: Door) -> Callable[[], bool]:
    return lambda: bool(door.desk.reading().search("health", limit=1, expand=False).query)


async def _given(operation: Operation, request: Request) -> Mapping[str, object]:
    """Return what a request says, from where its kind of request says it."""
    if not operation.has_body:
        return parameters(operation.fields_at(request.scope["whyrank"].seat.door), request.scope["query_string"])
    if request.scope["query_string"]:
        raise ConfigError("the address has parameters", "put them into the body")
    headers = request.headers
    body = await read_body(request.receive, headers.get("content-length"))
    given = read_json(headers.get("content-type"), headers.get("content-encoding"), body)
    key = headers.get("idempotency-key")
    if key is None or not any(field.name == "key" for field in operation.fields):
        return given
    if given.get("key", key) != key:
        raise ConfigError("key and Idempotency-Key differ", "give one of them")
    return {**given, "key": key}


def _rendered(answer: Answer) -> tuple[int, bytes]:
    return answer.status, json.dumps(answer.data).encode()


async def _page(request: Request) -> Response:
    found = page_file(request.path_params.get("name", ""), packed="gzip" in request.headers.get("accept-encoding", ""))
    if found is None:
        raise Refused(404, "not-found", "the page has no such file", "begin at /")
    if request.headers.get("if-none-match") == found.headers["etag"]:
        return Response(status_code=304, headers=found.headers)
    return Response(found.content, headers=found.headers)


async def _not_here(request: Request, error: HTTPException) -> Response:
    """Answer what no route does."""
    identity = request.scope["whyrank"].id
    if error.status_code == 405:
        allowed = (error.headers or {}).get("Allow", "")
        refused = Refused(405, "method", f"{request.method} is not done here", f"ask by one of {allowed}")
        return _refused(refused, identity, {"allow": allowed})
    return _refused(Refused(404, "not-found", "there is nothing here", "/openapi.json says what there is"), identity)


def _options(operations: Mapping[str, object]) -> Response:
    methods = [*operations, *(["HEAD"] if "GET" in operations else []), "OPTIONS"]
    return Response(status_code=204, headers={"allow": ", ".join(methods)})


class _Closing(Response):
    """An answer to somebody who is still sending: said at once, closed when they have had the time to read it."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        start = {"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers}
        await send(start)
        await send({"type": "http.response.body", "body": self.body, "more_body": True})
        await drained(receive)
        await send({"type": "http.response.body", "body": b"", "more_body": False})


def _refused(error: WhyrankError, identity: str, headers: Mapping[str, str] | None = None) -> Response:
    """Return what an error looks like over HTTP; one schema for all."""
    failure = failure_of(error)
    status, code = (error.status, error.code) if isinstance(error, Refused) else (failure.http_status, failure.code)
    hint = _WHERE_IDS_ARE if isinstance(error, NotFound) else error.hint
    told = {"code": code, "message": error.message[:_MESSAGE_CHARACTERS], "hint": hint, "request_id": identity}
    body = json.dumps({"error": told, "format": FORMAT}).encode()
    more = dict(headers or {})
    if status == 401:
        more["www-authenticate"] = "Bearer"
    if isinstance(error, StoreLocked):
        more["retry-after"] = str(_RETRY_SECONDS)
    if status in (408, 413):
        return _Closing(body, status, {**more, "connection": "close"}, "application/json")
    return Response(body, status, more, "application/json")


def _with_headers(headers: Sequence[tuple[bytes, bytes]], identity: str) -> list[tuple[bytes, bytes]]:
    """Return headers with the id, and with what keeps answers from being stored, sniffed or told of."""
    named = {name for name, _ in headers}
    guarded = [(name.encode(), value.encode()) for name, value in _GUARDED.items() if name.encode() not in named]
    return [*headers, (b"x-request-id", identity.encode()), *guarded]


def as_app(site: Site) -> App:
    """Return a site as what servers serve."""
    return site
