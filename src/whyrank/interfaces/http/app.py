"""ASGI application: authentication, routing, refusals and the request log."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import hmac
import html
import json
import logging
import math
import multiprocessing
import os
import re
import secrets
import signal
import sys
import tempfile
import threading
import time
import webbrowser
from collections import deque
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from ...config import load as settings
from ...engine.engine import check_store
from ...engine.open import open_engine
from ...errors import ConfigError, Conflict, NotFound, ProviderUnavailable, StoreLocked, StoreUnavailable, WhyrankError
from ..arguments import Argument
from ..asgi_server import Workers, check_head, listen, raise_file_limit, server_config, stop_signals, url_of
from ..auth import (
    LOOPBACK,
    AuthPolicy,
    Left,
    Receive,
    Refusal,
    Send,
    auth_policy,
)
from ..engine_pool import Access, EnginePool, PooledEngine, max_open_stores
from ..errors import AT_HTTP, FORMAT, OK, BadRequest, failure_of, hint_at, notices_at
from ..tenants import ServedTenants, Tenant, check_stores, served_to, settings_of
from . import observability
from .handlers import JsonResult, LongCall, News, held_for, until
from .observability import FOLDER_VARIABLE, Descriptor, Log, LogWriter, log_to, lost_lines, tracing
from .routes import (
    IDEMPOTENCY_KEY,
    TEXT,
    Operation,
    by_path,
    document,
    drained,
    parameters,
    read_body,
    read_json,
    strictly,
)

if TYPE_CHECKING:
    import argparse
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, MutableMapping, Sequence

    from starlette.requests import Request

    from ..engine_pool import Values
    from .observability import Tracing

_SECONDS = 60.0  # for a browser to start on a slow machine
_BYTES = 32
_PAGE = """<!doctype html>
<meta charset="utf-8">
<meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0; url={address}">
<title>whyrank</title>
<a href="{address}">whyrank</a>
"""


class Ticket(NamedTuple):
    """One-time ticket of a browser, valid until `until` and while its file exists; use removes the file."""

    text: str
    file: str
    until: float


@contextmanager
def issued(page: str) -> Iterator[Ticket]:
    """Write a file that redirects to the page with a new ticket; remove it after use, timeout or exit."""
    folder = _folder()
    ticket = Ticket(secrets.token_urlsafe(_BYTES), str(folder / "whyrank.html"), time.time() + _SECONDS)
    address = html.escape(f"{page}#ticket={ticket.text}")
    end = threading.Timer(_SECONDS, _remove, [ticket])
    end.daemon = True
    try:
        # Other users can neither list the folder nor read the file.
        number = os.open(ticket.file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(number, "w", encoding="utf-8") as file:
            file.write(_PAGE.format(address=address))
        end.start()
        yield ticket
    finally:
        end.cancel()
        _remove(ticket)


def is_good(ticket: Ticket | None, given: str) -> bool:
    """Redeem a ticket and return whether it was valid: of several processes only one can redeem it."""
    if ticket is None or not hmac.compare_digest(given.encode("utf-8", "replace"), ticket.text.encode()):
        return False
    return _remove(ticket) and time.time() < ticket.until


def _folder() -> Path:
    """Return a new private folder, in the home folder if possible: sandboxed browsers may read there."""
    with suppress(OSError, RuntimeError):
        return Path(tempfile.mkdtemp(prefix="whyrank-", dir=Path.home()))
    return Path(tempfile.mkdtemp(prefix="whyrank-"))


def _remove(ticket: Ticket) -> bool:
    """Remove the file and its folder; return whether the file existed."""
    try:
        os.unlink(ticket.file)
    except OSError:
        return False
    finally:
        with suppress(OSError):
            os.rmdir(os.path.dirname(ticket.file))
    return True


PAGE = Path(__file__).with_name("page")
_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".woff2": "font/woff2",
}
# The page runs its own files alone and sends requests to this server alone.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self';"
    " base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


class PageFile(NamedTuple):
    """One file of the page and its response headers."""

    content: bytes
    headers: Mapping[str, str]


def page_file(name: str, folder: Path = PAGE, *, packed: bool = False) -> PageFile | None:
    """Return a file of the page, index.html for an empty name; None for any path outside the folder.

    `packed` compresses it for clients that accept gzip.
    """
    try:
        path = (folder / (name or "index.html")).resolve()
        kind = _TYPES.get(path.suffix)
        if kind is None or not path.is_relative_to(folder.resolve()) or not path.is_file():
            return None
        content = path.read_bytes()
    except (OSError, ValueError):
        return None
    if packed:
        content = _packed(content)
    headers = {
        "content-type": kind,
        **({"content-encoding": "gzip"} if packed else {}),
        "vary": "accept-encoding",
        "content-security-policy": POLICY,
        "cache-control": "no-cache",
        "etag": f'"{hashlib.blake2b(content, digest_size=12).hexdigest()}"',
    }
    return PageFile(content, headers)


@lru_cache(maxsize=128)
def _packed(content: bytes) -> bytes:
    """Compress a file with gzip, cached; without a timestamp, so that the bytes are the same everywhere."""
    return gzip.compress(content, mtime=0)


JSON = "application/json"
_RETRY_SECONDS = 5  # Retry-After for a locked store or a stopping server
_MESSAGE_CHARACTERS = 500
_WHERE_IDS_ARE = "/v1/search and /v1/memories show all ids; it may have been forgotten, or belong to another scope"


class ErrorBody(NamedTuple):
    """Error response: status and body."""

    status: int
    body: bytes


def told(error: WhyrankError, identity: str) -> ErrorBody:
    """Return status and body of an error; one schema for all errors."""
    failure = failure_of(error)
    status, code = (error.status, error.code) if isinstance(error, BadRequest) else (failure.http_status, failure.code)
    hint = _WHERE_IDS_ARE if isinstance(error, NotFound) else hint_at(AT_HTTP, error.hint)
    said = {"code": code, "message": error.message[:_MESSAGE_CHARACTERS], "hint": hint, "request_id": identity}
    return ErrorBody(status, json.dumps({"error": said, "format": FORMAT}).encode())


def refused(error: WhyrankError, identity: str, headers: Mapping[str, str] | None = None) -> Response:
    """Return the response to a failed request."""
    status, body = told(error, identity)
    more = {**(headers or {}), **_advice(error, status)}
    if status in (408, 413, 431) or (isinstance(error, BadRequest) and error.code == "bad-http"):
        return _Closing(body, status, {**more, "connection": "close"}, JSON)
    return Response(body, status, more, JSON)


def _advice(error: WhyrankError, status: int) -> dict[str, str]:
    if status == 401:
        return {"www-authenticate": "Bearer"}
    if isinstance(error, ProviderUnavailable | BadRequest) and error.retry_after_s is not None:
        return {"retry-after": str(max(1, math.ceil(error.retry_after_s)))}
    is_passing = isinstance(error, StoreLocked) or (isinstance(error, BadRequest) and error.code == "stopping")
    is_passing = is_passing or (isinstance(error, StoreUnavailable) and error.may_pass)
    return {"retry-after": str(_RETRY_SECONDS)} if is_passing else {}


class RateLimit:
    """Sliding-window rate limit: at most so many requests in any span of so many seconds."""

    def __init__(self, most: int, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._most = most
        self._seconds = seconds
        self._clock = clock
        self._let_through: deque[float] = deque()

    def check(self, what: str, hint: str) -> None:
        """Count one request; raise 429 with the time to wait if there were too many."""
        now = self._clock()
        while self._let_through and self._let_through[0] <= now - self._seconds:
            self._let_through.popleft()
        if len(self._let_through) >= self._most:
            message = f"there were {self._most} {what} within {self._seconds:.0f} seconds"
            raise BadRequest(429, "too-many", message, hint, self._let_through[0] + self._seconds - now)
        self._let_through.append(now)


class _Closing(Response):
    """Response to a client that is still sending: sent at once, closed after time to read it."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        await send({"type": "http.response.body", "body": self.body, "more_body": True})
        await drained(receive)
        await send({"type": "http.response.body", "body": b"", "more_body": False})


_SANE_ID = re.compile(r"[A-Za-z0-9._-]{1,64}", re.ASCII)
_PUBLIC = frozenset({"/", "/health", "/openapi.json", "/ticket"})
_EVENTS = "text/event-stream"
_HEALTH_SECONDS = 1.0  # for which a health result is cached, because /health needs no token
_LEFT = 499  # status proxies log for a client that disconnected
_NOWHERE = "none"  # route label of requests without a route
_GUARDED = ((b"x-content-type-options", b"nosniff"), (b"referrer-policy", b"no-referrer"))
_NOT_KEPT = (b"cache-control", b"no-store")
# A purge holds the write lock for as long as it overwrites the freed pages.
MOST_PURGES, PURGE_SECONDS = 10, 60.0  # of one tenant, in one process
_PURGE_LATER = "wait, or purge on the command line with `whyrank forget --purge`; without purge it is forgotten at once"
_TICKET = (Argument("ticket", TEXT, "What the browser was opened with", required=True),)
_log = logging.getLogger(__name__)


class Principal(NamedTuple):
    """One authenticated party of a server: name, auth policy and access."""

    name: str
    policy: AuthPolicy
    access: Access


@dataclass
class RequestContext:
    """State of one request: id, principal if authenticated, route, status and answer."""

    id: str
    principal: Principal | None = None
    route: str = _NOWHERE
    status: int = 0
    began_ns: int = 0
    answer: Mapping[str, Any] = field(default_factory=dict)

    @property
    def access(self) -> Access:
        """Return the access of the principal; raise 401 without one, as only public routes work without."""
        if self.principal is None:
            raise BadRequest(401, "token", "the token is missing or wrong", "send Authorization: Bearer TOKEN")
        return self.principal.access


class Application:
    """The ASGI application of a server, for one or several principals."""

    def __init__(
        self,
        principals: Sequence[Principal],
        log: Log,
        leaving: threading.Event,
        tracing: Tracing | None = None,
        ticket: Ticket | None = None,
        close: Callable[[], None] = lambda: None,
    ) -> None:
        self._principals = principals
        self._log = log
        self._leaving = leaving
        self._tracing = tracing
        self._ticket = ticket
        self._close = close
        self._metrics = observability.Metrics()
        self._purges = {principal.name: RateLimit(MOST_PURGES, PURGE_SECONDS) for principal in principals}
        self._healthy: tuple[float, bool] = (0.0, False)
        self._checking: asyncio.Task[bool] | None = None
        multi_scope = any(principal.access.is_multi_scope for principal in principals)
        has_token = any(principal.policy.token is not None for principal in principals)
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
        app = Starlette(routes=routes, exception_handlers=handlers, lifespan=self._lifespan)
        app.router.redirect_slashes = False
        return app

    @asynccontextmanager
    async def _lifespan(self, _: Starlette) -> AsyncIterator[dict[str, object]]:
        yield {"stopping": self._leaving}
        self._leaving.set()
        self._close()

    def _route(self, path: str, operations: Mapping[str, Operation]) -> Route:
        async def answer(request: Request) -> Response:
            method = "GET" if request.method == "HEAD" else request.method
            return await self._answered(operations[method], request)

        return self._caught(path, answer, list(operations))

    def _simple(self, path: str, endpoint: Callable[[Request], Awaitable[Response]]) -> Route:
        return self._caught(path, endpoint, ["GET"])

    def _caught(self, path: str, endpoint: Callable[[Request], Awaitable[Response]], methods: list[str]) -> Route:
        """Return a route whose exceptions become error responses with a hint."""

        async def answer(request: Request) -> Response:
            context: RequestContext = request.scope["whyrank"]
            context.route = path
            if request.method == "OPTIONS":
                heads = ["HEAD"] if "GET" in methods else []
                return Response(status_code=204, headers={"allow": ", ".join([*methods, *heads, "OPTIONS"])})
            try:
                return await endpoint(request)
            except Left:
                return Response(status_code=_LEFT)
            except Exception as error:
                return refused(_known(error, context), context.id)

        return Route(path, answer, methods=[*methods, "OPTIONS"])

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """Answer one request, authenticated first; every response has the request's id."""
        if scope["type"] == "lifespan":
            await self._inside(scope, receive, send)
            return
        began = time.perf_counter()
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        sent_id = headers.get("x-request-id", "")
        context = RequestContext(sent_id if _SANE_ID.fullmatch(sent_id) else secrets.token_hex(8))
        span = self._tracing.begin(scope["method"], headers) if self._tracing else None

        async def answer(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                context.status = message["status"]
                is_cached = any(name == b"cache-control" for name, _ in message["headers"])
                identity = (b"x-request-id", context.id.encode())
                message["headers"] = [*message["headers"], identity, *_GUARDED, *([] if is_cached else [_NOT_KEPT])]
            await send(message)

        try:
            # An ambiguous head is refused before any policy reads it.
            admitted = check_head(scope) or self._admitted(scope["path"], headers)
            if isinstance(admitted, Refusal):
                await refused(BadRequest(*admitted), context.id)(scope, receive, answer)
            else:
                context.principal, scope["whyrank"] = admitted, context
                await self._inside(scope, receive, answer)
        finally:
            self._written_down(scope, context, time.perf_counter() - began)
            if self._tracing and span is not None:
                if found := observability.counted(context.answer):
                    self._tracing.stages(span, context.began_ns, found[1])
                self._tracing.end(span, context.route, context.status, context.id)

    def _admitted(self, path: str, headers: Mapping[str, str]) -> Principal | Refusal | None:
        """Return the principal of a request, None for a public route without one, or the refusal."""
        foreign = self._principals[0].policy.foreign(headers.get("host"), headers.get("origin"))
        if foreign is not None:
            return foreign
        # Every policy is checked, so that the response time does not reveal which of the tokens is nearly right.
        refusals = [principal.policy.stranger(headers.get("authorization")) for principal in self._principals]
        if None in refusals:
            return self._principals[refusals.index(None)]
        return None if path in _PUBLIC or path.startswith("/page/") else refusals[0]

    def _written_down(self, scope: MutableMapping[str, Any], context: RequestContext, seconds: float) -> None:
        """Count and log a request; neither holds the query."""
        whose = context.principal.name if context.principal else ""
        self._metrics.request(whose, context.route, context.status, seconds)
        if found := observability.counted(context.answer):
            self._metrics.searched(whose, *found)
        self._log.request(scope["method"], scope["raw_path"], context.status, seconds, context.id)

    async def _answered(self, operation: Operation, request: Request) -> Response:
        context: RequestContext = request.scope["whyrank"]
        access = context.access
        if operation.writes and access.is_read_only:
            raise BadRequest(403, "read-only", "this server is read-only", "ask the owner of the server")
        values = operation.read(access, await _given(operation, request)) | request.path_params
        if values.get("purge") and context.principal is not None:
            self._purges[context.principal.name].check("purges", _PURGE_LATER)
        if operation.takes_long:
            return await self._streamed(operation, request, values)
        work = partial(_rendered, partial(operation.call, access, values), context)
        status, body = await access.pooled.task(work, writes=operation.writes)
        return Response(body, status, media_type=JSON)

    async def _streamed(self, operation: Operation, request: Request, values: Values) -> Response:
        """Run a long operation; with progress events, if the client accepts an event stream."""
        context: RequestContext = request.scope["whyrank"]
        listens = _EVENTS in request.headers.get("accept", "")
        news = News()
        tick = until(self._leaving, news.tell if listens else lambda *_: None)
        call = partial(cast("LongCall", operation.call), context.access, values, tick)
        task = context.access.pooled.task(lambda: _rendered(call, context)[1], takes_long=True)
        if not listens:
            return Response(await task, media_type=JSON)
        events = news.events(task, lambda error: told(_known(error, context), context.id).body)
        return StreamingResponse(events, media_type=_EVENTS)

    async def _health(self, _: Request) -> Response:
        """Report whether a real query works; concurrent and recent requests share one result."""
        checked, well = self._healthy
        if self._checking is not None or time.monotonic() - checked > _HEALTH_SECONDS:
            self._checking = self._checking or asyncio.create_task(self._checked())
            well = await asyncio.shield(self._checking)  # a disconnect must not cancel the shared check
        data = {"status": "ok" if well else "failing", "memories_searchable": well, "format": FORMAT}
        return Response(json.dumps(data), 200 if well else 503, media_type=JSON)

    async def _checked(self) -> bool:
        """Run a real query on every store that is open or failed to open.

        Opening the stores of all tenants would close stores that are in use.
        """
        try:
            accesses = [
                principal.access
                for principal in self._principals
                if len(self._principals) == 1 or not principal.access.pooled.is_resting
            ]
            asked = [access.pooled.task(partial(access.pooled.probe, "health", limit=1)) for access in accesses]
            well = not any(await asyncio.gather(*asked, return_exceptions=True))
            self._healthy = (time.monotonic(), well)
            return well
        finally:
            self._checking = None

    async def _figures(self, request: Request) -> Response:
        context: RequestContext = request.scope["whyrank"]
        stock = await context.access.pooled.task(partial(held_for, context.access, {}))
        name = context.principal.name if context.principal else ""
        return Response(self._metrics.text(name, stock), headers={"content-type": observability.CONTENT_TYPE})

    async def _let_in_by_ticket(self, request: Request) -> Response:
        """Exchange the ticket of the opened browser for the token, once."""
        given = strictly("POST /ticket", _TICKET, await _sent(request))
        if not is_good(self._ticket, given["ticket"]):
            hint = "enter the token, or open the page again at the address that `whyrank serve` printed"
            raise BadRequest(403, "ticket", "this ticket is used, expired or not valid", hint)
        return Response(json.dumps({"token": self._principals[0].policy.token, "format": FORMAT}), media_type=JSON)

    async def _described(self, _: Request) -> Response:
        return Response(self._document, media_type=JSON)


def _known(error: BaseException, context: RequestContext) -> WhyrankError:
    """Return an error as a WhyrankError; any other exception is a defect and is logged with its trace."""
    if isinstance(error, WhyrankError):
        return error
    _log.error("%s failed (%s)", context.route, context.id, exc_info=error)
    said = f"this failed inside whyrank: {type(error).__name__}"
    return WhyrankError(said, "see the server's log under this request id")


async def _given(operation: Operation, request: Request) -> Mapping[str, object]:
    """Return the fields of a request, from the query string or the body."""
    if not operation.has_body:
        return parameters(operation.fields_at(request.scope["whyrank"].access), request.scope["query_string"])
    given, headers = await _sent(request), request.headers
    if "idempotency-key" not in headers or not any(field.name == "key" for field in operation.fields):
        return given
    name, sent = IDEMPOTENCY_KEY.name, headers["idempotency-key"]
    key = strictly("a request", [IDEMPOTENCY_KEY], {name: sent})[name]
    if given.get("key", key) != key:
        raise Conflict(f"key and {name} differ", "give one of them")
    return {**given, "key": key}


async def _sent(request: Request) -> dict[str, Any]:
    if request.scope["query_string"]:
        raise ConfigError("the address has parameters", "send them in the body")
    headers = request.headers
    body = await read_body(request.receive, headers.get("content-length"))
    return read_json(headers.get("content-type"), headers.get("content-encoding"), body)


def _rendered(call: Callable[[], JsonResult], context: RequestContext) -> tuple[int, bytes]:
    """Run a handler in its thread and encode the response."""
    context.began_ns = time.time_ns()
    answer = call()
    context.answer = answer.data
    text = json.dumps(notices_at(AT_HTTP, answer.data), ensure_ascii=False, separators=(",", ":"))
    # A lone surrogate of a query, which UTF-8 cannot encode, becomes its JSON escape.
    return answer.status, text.encode("utf-8", "backslashreplace")


async def _page(request: Request) -> Response:
    found = page_file(request.path_params.get("name", ""), packed="gzip" in request.headers.get("accept-encoding", ""))
    if found is None:
        raise BadRequest(404, "not-found", "the page has no such file", "begin at /")
    if request.headers.get("if-none-match") == found.headers["etag"]:
        return Response(status_code=304, headers={"etag": found.headers["etag"]})
    return Response(found.content, headers=found.headers)


async def _not_here(request: Request, error: HTTPException) -> Response:
    """Return the error response for an unknown path or method."""
    identity = request.scope["whyrank"].id
    if error.status_code == 405:
        allowed = (error.headers or {}).get("Allow", "")
        asked = BadRequest(405, "method", f"{request.method[:20]} is not done here", f"use one of {allowed}")
        return refused(asked, identity, {"allow": allowed})
    return refused(BadRequest(404, "not-found", "there is no such route", "/openapi.json lists all routes"), identity)


_STDERR = 2


@dataclass(frozen=True)
class ServerOptions:
    """Configuration of a server, sent to worker processes."""

    tenants: Sequence[Tenant]
    names: Sequence[str]
    workspace: str
    embedding: str | None = None
    log_json: bool = False
    ticket: Ticket | None = None  # of the browser that was opened with the server


def serve_http(asked: argparse.Namespace) -> int:
    """Serve the API and the page until the process is stopped."""
    if asked.no_token and asked.host not in LOOPBACK:
        raise ConfigError(f"without a token everybody who can reach {asked.host} may read the store", "omit --no-token")
    if asked.workers < 1:
        raise ConfigError(f"there are {asked.workers} workers", "give 1 or more")
    whom = served_to(asked)
    check_stores(whom, check_store)
    if asked.no_token:
        whom = ServedTenants([tenant._replace(token=None) for tenant in whom.tenants], False)
    plan = ServerOptions(
        tenants=whom.tenants,
        names=[asked.host, *asked.allow_host],
        workspace=str(settings_of(asked).workspace),
        embedding=asked.embedding,
        log_json=asked.log_json,
    )
    with listen(asked.host, asked.port) as listening, ExitStack() as stack:
        raise_file_limit()
        config = server_config(None, factory=True, workers=asked.workers)
        # Signals are handled from here on: killed by one, the process would leave files behind.
        if asked.workers > 1:
            run = Workers(config, [listening]).run
            _log_to_stderr(plan, stack)
            os.environ[FOLDER_VARIABLE] = stack.enter_context(tempfile.TemporaryDirectory(prefix="whyrank-metrics-"))
        else:
            server = uvicorn.Server(config)
            stack.enter_context(stop_signals(server.handle_exit))
            run = partial(server.run, sockets=[listening])
        page = url_of(listening, asked.host, "/")
        ticket = stack.enter_context(issued(page)) if asked.open and _only_token(whom) else None
        config.app = partial(_worker if asked.workers > 1 else application, replace(plan, ticket=ticket))
        _print_address(asked, page, whom)
        if asked.open:
            # Text browsers block this terminal until they quit, and need responses meanwhile.
            threading.Thread(target=_open, args=(page, ticket), daemon=True).start()
        run()
    return OK


def application(plan: ServerOptions) -> Application:
    """Return the application of a plan; the end of its lifespan closes all stores."""
    stack = ExitStack()
    log = _log_to_stderr(plan, stack)
    pool = EnginePool(max_open_stores())
    principals = [_principal(plan, tenant, stack, pool) for tenant in plan.tenants]
    if len(principals) == 1:
        principals[0].access.pooled.warm()
    spans = tracing(settings.exports_spans())
    if spans is not None:
        stack.callback(spans.close)
    return Application(principals, log, threading.Event(), spans, plan.ticket, stack.close)


def _worker(plan: ServerOptions) -> Application:
    """Return the application of a worker process, which ends with its supervisor."""
    if sys.platform != "win32":
        signal.signal(signal.SIGHUP, signal.SIG_IGN)  # SIGHUP of a closed terminal is handled by the supervisor
    threading.Thread(target=_follow_supervisor, daemon=True).start()
    return application(plan)


def _follow_supervisor() -> None:
    supervisor = multiprocessing.parent_process()
    if supervisor is not None:
        supervisor.join()
        signal.raise_signal(signal.SIGTERM)


def _log_to_stderr(plan: ServerOptions, stack: ExitStack) -> Log:
    """Send all logging to standard error, through a non-blocking writer."""
    writer = LogWriter(Descriptor(_STDERR), partial(lost_lines, as_json=plan.log_json))
    stack.callback(writer.close)
    log_to(writer, as_json=plan.log_json)
    return Log(writer, as_json=plan.log_json)


def _principal(plan: ServerOptions, tenant: Tenant, stack: ExitStack, pool: EnginePool) -> Principal:
    pooled = PooledEngine(tenant.store, partial(open_engine, workspace=plan.workspace, embedding=plan.embedding), pool)
    stack.callback(pooled.close)
    files = tenant.files if tenant.name else Path(plan.workspace)
    access = Access(pooled, tenant.scopes, tenant.is_multi_scope, tenant.is_read_only, files)
    host, *others = plan.names
    return Principal(tenant.name, auth_policy(host, others, tenant.token), access)


def _only_token(whom: ServedTenants) -> str | None:
    """Return the token if there is one tenant, else None."""
    [token, *others] = [tenant.token for tenant in whom.tenants]
    return None if others else token


def _open(page: str, ticket: Ticket | None) -> None:
    if not webbrowser.open(Path(ticket.file).as_uri() if ticket else page):
        print("whyrank: no browser was found", file=sys.stderr, flush=True)


def _print_address(asked: argparse.Namespace, page: str, whom: ServedTenants) -> None:
    """Print the URL of the page; a new token is in its fragment, which browsers never send."""
    token = _only_token(whom)
    shown = f"{page}#token={token}" if token and whom.is_new_token else page
    print(f"whyrank: the page is at {shown}", file=sys.stderr, flush=True)
    if asked.json:
        told = {"url": page.removesuffix("/"), "page": shown, "token": token if whom.is_new_token else None}
        print(json.dumps({**told, "format": FORMAT}), flush=True)
