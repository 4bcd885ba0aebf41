"""The application: who comes in, which route answers, and what is written down about it."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import secrets
import threading
import time
from collections.abc import Awaitable, Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple, cast

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from ...errors import ConfigError, Conflict, WhyrankError
from ..connections import fault_in
from ..door import Door, Values
from ..failures import AT_HTTP, notices_at
from ..forgiving import Argument
from ..gate import Gate, Receive, Refusal, Send
from ..shapes import FORMAT
from . import metrics
from .answers import Answer, LongCall
from .bodies import Left, Refused, read_body, read_json
from .fields import TEXT, parameters, strictly
from .ingesting import News, until
from .logs import Log
from .openapi import document
from .pagefiles import page_file
from .refusals import JSON, RateLimit, refused, told
from .routes import IDEMPOTENCY_KEY, Operation, by_path
from .status import held_for
from .tickets import Ticket, is_good
from .tracing import Tracing

_SANE_ID = re.compile(r"[A-Za-z0-9._-]{1,64}", re.ASCII)
_PUBLIC = frozenset({"/", "/health", "/openapi.json", "/ticket"})
_EVENTS = "text/event-stream"
_HEALTH_SECONDS = 1.0  # that an answer about health is good for, because everybody may ask
_LEFT = 499  # as proxies write down a client that has gone
_NOWHERE = "none"  # the route of what no route answers
_GUARDED = ((b"x-content-type-options", b"nosniff"), (b"referrer-policy", b"no-referrer"))
_NOT_KEPT = (b"cache-control", b"no-store")
# A purge holds the lock of writers for as long as it overwrites what it frees.
MOST_PURGES, PURGE_SECONDS = 10, 60.0  # of one tenant, in one process
_PURGE_LATER = "wait, or purge on the command line with `whyrank forget --purge`; without purge it is forgotten at once"
_TICKET = (Argument("ticket", TEXT, "What the browser was opened with", required=True),)
_log = logging.getLogger(__name__)


class Seat(NamedTuple):
    """One whom a server serves: who it is, what lets them in, and what they are let in to."""

    name: str
    gate: Gate
    door: Door


@dataclass
class Visit:
    """One request on its way: its id, whose it is, if it said so, and what is found out about it."""

    id: str
    seat: Seat | None = None
    route: str = _NOWHERE
    status: int = 0
    began_ns: int = 0
    answer: Mapping[str, Any] = field(default_factory=dict)

    @property
    def door(self) -> Door:
        """Return what it was let in to; only what is open to all is reached without."""
        if self.seat is None:
            raise Refused(401, "token", "the token is missing or wrong", "send Authorization: Bearer TOKEN")
        return self.seat.door


class Site:
    """Everything a server shows, to each of its seats what is theirs."""

    def __init__(
        self,
        seats: Sequence[Seat],
        log: Log,
        leaving: threading.Event,
        tracing: Tracing | None = None,
        ticket: Ticket | None = None,
    ) -> None:
        self._seats = seats
        self._log = log
        self._leaving = leaving
        self._tracing = tracing
        self._ticket = ticket
        self._metrics = metrics.Metrics()
        self._purges = {seat.name: RateLimit(MOST_PURGES, PURGE_SECONDS) for seat in seats}
        self._healthy: tuple[float, bool] = (0.0, False)
        self._checking: asyncio.Task[bool] | None = None
        multi_scope = any(seat.door.is_multi_scope for seat in seats)
        has_token = any(seat.gate.token is not None for seat in seats)
        self._document = json.dumps(document(multi_scope=multi_scope, has_token=has_token)).encode()
        self._inside = self._routed()

    def _routed(self) -> Starlette:
        routes = [self._route(path, operations) for path, operations in by_path().items()]
        routes += [
            self._simple("/health", self._health),
            self._simple("/metrics", self._figures),
            self._simple("/openapi.json", self._described),
            self._caught("/ticket", self._let_in_by_ticket, ["POST"]),
            self._simple("/", _page),
            self._simple("/page/{name:path}", _page),
        ]
        handlers: Mapping[Any, Any] = {HTTPException: _not_here}
        app = Starlette(routes=routes, exception_handlers=handlers)
        app.router.redirect_slashes = False
        return app

    def _route(self, path: str, operations: Mapping[str, Operation]) -> Route:
        async def answer(request: Request) -> Response:
            method = "GET" if request.method == "HEAD" else request.method
            return await self._answered(operations[method], request)

        return self._caught(path, answer, list(operations))

    def _simple(self, path: str, endpoint: Callable[[Request], Awaitable[Response]]) -> Route:
        return self._caught(path, endpoint, ["GET"])

    def _caught(self, path: str, endpoint: Callable[[Request], Awaitable[Response]], methods: list[str]) -> Route:
        """Return a route whose failures are answers too, that say what to do."""

        async def answer(request: Request) -> Response:
            visit: Visit = request.scope["whyrank"]
            visit.route = path
            if request.method == "OPTIONS":
                heads = ["HEAD"] if "GET" in methods else []
                return Response(status_code=204, headers={"allow": ", ".join([*methods, *heads, "OPTIONS"])})
            try:
                return await endpoint(request)
            except Left:
                return Response(status_code=_LEFT)
            except Exception as error:
                return refused(_known(error, visit), visit.id)

        return Route(path, answer, methods=[*methods, "OPTIONS"])

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """Answer one request; nobody gets past the gate, and nothing goes out without its id."""
        began = time.perf_counter()
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        sent_id = headers.get("x-request-id", "")
        visit = Visit(sent_id if _SANE_ID.fullmatch(sent_id) else secrets.token_hex(8))
        span = self._tracing.begin(scope["method"], headers) if self._tracing else None

        async def answer(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                visit.status = message["status"]
                message["headers"] = _with_headers(message["headers"], visit.id)
            await send(message)

        try:
            await self._let_in(visit, headers)(scope, receive, answer)
        finally:
            self._written_down(scope, visit, time.perf_counter() - began)
            if self._tracing and span is not None:
                if found := metrics.counted(visit.answer):
                    self._tracing.stages(span, visit.began_ns, found[1])
                self._tracing.end(span, visit.route, visit.status, visit.id)

    def _let_in(self, visit: Visit, headers: Mapping[str, str]) -> Callable[..., Awaitable[None]]:
        """Return what answers a request: the routes, or a refusal."""

        async def go_on(scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
            # What the server made out about the head; one that is ambiguous is shown to no gate.
            admitted = fault_in(scope) or self._admitted(scope["path"], headers)
            if isinstance(admitted, Refusal):
                await refused(Refused(*admitted), visit.id)(scope, receive, send)
                return
            visit.seat = admitted
            scope["whyrank"] = visit
            await self._inside(scope, receive, send)

        return go_on

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

    def _written_down(self, scope: MutableMapping[str, Any], visit: Visit, seconds: float) -> None:
        """Count a request and write it to the log; what was asked stands in neither."""
        whose = visit.seat.name if visit.seat else ""
        self._metrics.request(whose, visit.route, visit.status, seconds)
        if found := metrics.counted(visit.answer):
            self._metrics.searched(whose, *found)
        self._log.request(scope["method"], scope["raw_path"], visit.status, seconds, visit.id)

    async def _answered(self, operation: Operation, request: Request) -> Response:
        visit: Visit = request.scope["whyrank"]
        door = visit.door
        if operation.writes and door.is_read_only:
            raise Refused(403, "read-only", "this server only reads", "ask whoever looks after it")
        values = operation.read(door, await _given(operation, request)) | request.path_params
        if values.get("purge") and visit.seat is not None:
            self._purges[visit.seat.name].check("purges", _PURGE_LATER)
        if operation.takes_long:
            return await self._streamed(operation, request, values)
        work = partial(_rendered, partial(operation.call, door, values), visit)
        status, body = await door.desk.task(work, writes=operation.writes)
        return Response(body, status, media_type=JSON)

    async def _streamed(self, operation: Operation, request: Request, values: Values) -> Response:
        """Answer what takes long: with news on the way, if whoever asks listens to events."""
        visit: Visit = request.scope["whyrank"]
        listens = _EVENTS in request.headers.get("accept", "")
        news = News()
        tick = until(self._leaving, news.tell if listens else lambda *_: None)
        call = partial(cast(LongCall, operation.call), visit.door, values, tick)
        task = visit.door.desk.task(lambda: _rendered(call, visit)[1], takes_long=True)
        if not listens:
            return Response(await task, media_type=JSON)
        events = news.events(task, lambda error: told(_known(error, visit), visit.id).body)
        return StreamingResponse(events, media_type=_EVENTS)

    async def _health(self, _: Request) -> Response:
        """Tell how a real query fares; all who ask while one runs, or soon after, are told of the same one."""
        checked, well = self._healthy
        if self._checking is not None or time.monotonic() - checked > _HEALTH_SECONDS:
            self._checking = self._checking or asyncio.create_task(self._checked())
            well = await asyncio.shield(self._checking)  # whoever goes takes it away from nobody
        data = {"status": "ok" if well else "failing", "memories_searchable": well, "format": FORMAT}
        return Response(json.dumps(data), 200 if well else 503, media_type=JSON)

    async def _checked(self) -> bool:
        """Run a real query at every door whose store is open or failed to open; to open those of all tenants would
        close what is in use.
        """
        try:
            doors = [seat.door for seat in self._seats if len(self._seats) == 1 or not seat.door.desk.is_resting]
            asked = [door.desk.task(partial(_searchable, door)) for door in doors]
            well = all(done is True for done in await asyncio.gather(*asked, return_exceptions=True))
            self._healthy = (time.monotonic(), well)
            return well
        finally:
            self._checking = None

    async def _figures(self, request: Request) -> Response:
        visit: Visit = request.scope["whyrank"]
        stock = await visit.door.desk.task(partial(_stock, visit.door))
        name = visit.seat.name if visit.seat else ""
        return Response(self._metrics.text(name, stock), headers={"content-type": metrics.CONTENT_TYPE})

    async def _let_in_by_ticket(self, request: Request) -> Response:
        """Tell the token to the browser that was opened with the server, once."""
        given = strictly("POST /ticket", _TICKET, await _sent(request))
        if not is_good(self._ticket, given["ticket"]):
            hint = "give the token, or open the page again by the address that `whyrank serve` printed"
            raise Refused(403, "ticket", "this ticket is used up, too old, or none", hint)
        return Response(json.dumps({"token": self._seats[0].gate.token, "format": FORMAT}), media_type=JSON)

    async def _described(self, _: Request) -> Response:
        return Response(self._document, media_type=JSON)


def _known(error: BaseException, visit: Visit) -> WhyrankError:
    """Return an error as one of ours; another one is a defect, of which the log has more."""
    if isinstance(error, WhyrankError):
        return error
    _log.error("%s failed (%s)", visit.route, visit.id, exc_info=error)
    said = f"this failed inside whyrank: {type(error).__name__}"
    return WhyrankError(said, "the server's log has more, under this request id")


def _searchable(door: Door) -> bool:
    door.desk.probe("health", limit=1)
    return True


def _stock(door: Door) -> metrics.Stock:
    held = held_for(door, {})
    return metrics.Stock(held.memories, held.bytes, held.without_vector, held.caches)


async def _given(operation: Operation, request: Request) -> Mapping[str, object]:
    """Return what a request says, from where its kind of request says it."""
    if not operation.has_body:
        return parameters(operation.fields_at(request.scope["whyrank"].door), request.scope["query_string"])
    given, headers = await _sent(request), request.headers
    if "idempotency-key" not in headers or not any(field.name == "key" for field in operation.fields):
        return given
    name, sent = IDEMPOTENCY_KEY.name, headers["idempotency-key"]
    key = strictly("a request", [IDEMPOTENCY_KEY], {name: sent})[name]
    if given.get("key", key) != key:
        raise Conflict(f"key and {name} differ", "give one of them")
    return {**given, "key": key}


async def _sent(request: Request) -> dict[str, Any]:
    """Return what the body of a request says."""
    if request.scope["query_string"]:
        raise ConfigError("the address has parameters", "put them into the body")
    headers = request.headers
    body = await read_body(request.receive, headers.get("content-length"))
    return read_json(headers.get("content-type"), headers.get("content-encoding"), body)


def _rendered(call: Callable[[], Answer], visit: Visit) -> tuple[int, bytes]:
    """Do the work of a route in its thread, up to the bytes that are sent."""
    visit.began_ns = time.time_ns()
    answer = call()
    visit.answer = answer.data
    text = json.dumps(notices_at(AT_HTTP, answer.data), ensure_ascii=False, separators=(",", ":"))
    # What no encoding has, half of a pair in a question, becomes what JSON calls it.
    return answer.status, text.encode("utf-8", "backslashreplace")


async def _page(request: Request) -> Response:
    found = page_file(request.path_params.get("name", ""), packed="gzip" in request.headers.get("accept-encoding", ""))
    if found is None:
        raise Refused(404, "not-found", "the page has no such file", "begin at /")
    if request.headers.get("if-none-match") == found.headers["etag"]:
        return Response(status_code=304, headers={"etag": found.headers["etag"]})
    return Response(found.content, headers=found.headers)


async def _not_here(request: Request, error: HTTPException) -> Response:
    """Answer what no route does."""
    identity = request.scope["whyrank"].id
    if error.status_code == 405:
        allowed = (error.headers or {}).get("Allow", "")
        asked = Refused(405, "method", f"{request.method[:20]} is not done here", f"ask by one of {allowed}")
        return refused(asked, identity, {"allow": allowed})
    return refused(Refused(404, "not-found", "there is nothing here", "/openapi.json says what there is"), identity)


def _with_headers(headers: Sequence[tuple[bytes, bytes]], identity: str) -> list[tuple[bytes, bytes]]:
    """Return headers with the id, and with what keeps answers from being stored, sniffed or told of."""
    kept = any(name == b"cache-control" for name, _ in headers)
    return [*headers, (b"x-request-id", identity.encode()), *_GUARDED, *([] if kept else [_NOT_KEPT])]
