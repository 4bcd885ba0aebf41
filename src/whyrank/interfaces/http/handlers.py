"""Handlers of the routes."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ... import __version__
from ...analysis.normalize import clean
from ...config.load import Config, notes_of
from ...engine.arguments import scopes_of
from ...errors import BadDataset, ConfigError
from ...evaluation.results import read_data
from ...ingest.embedding import Progress
from ...protocols import SortingKey, sorting_key
from ...ranking.recipes import RECIPES, honoured
from ...search.explain import Why
from ...types.memory import Memory, Scope, visible
from .. import serialize, serialize_candidates
from ..engine_pool import Access, Values, timeout_of
from ..errors import FORMAT, BadRequest

if TYPE_CHECKING:
    import threading

    from ...engine.engine import Engine
    from ...protocols import StoreStatus
    from ...search.explain import Pooled
    from ...types.memory import Order

_FILTERS = (
    "kind", "tags", "path", "since", "before", "as_of", "include_superseded", "category", "decay", "min_importance",
    "language", "where",
)  # fmt: skip
_SEARCHED = ("limit", "offset", "recipe", "strict", "min_confidence", "max_tokens", "expand", "syntax", *_FILTERS)
_EXPLAINED = ("limit", "recipe", "expand", "syntax", *_FILTERS)
_LISTED = (*_FILTERS, "superseded", "expired")
PAGE_MEMORIES = 50  # default page size of a list


class JsonResult(NamedTuple):
    """Response of a route: data in one of the documented schemas, and the status."""

    data: dict[str, Any]
    status: int = 200


Call = Callable[[Access, Values], JsonResult]
LongCall = Callable[[Access, Values, Progress], JsonResult]


def _given(values: Values, names: tuple[str, ...]) -> dict[str, Any]:
    return {name: values[name] for name in names if name in values}


def search(access: Access, values: Values) -> JsonResult:
    """Find memories."""
    engine = access.pooled.reading()
    asked = {"timeout_ms": timeout_of(engine, values), **_given(values, _SEARCHED)}
    found = engine.search(values["query"], scope=access.seen(values), **asked)
    return JsonResult(serialize.results(found, explain=values.get("explain", False)))


def recall(access: Access, values: Values) -> JsonResult:
    """Return what an agent should be reminded of in a turn, or nothing."""
    engine = access.pooled.reading()
    given = engine.recall(
        values["turn"], budget=values.get("max_tokens"), scope=access.seen(values), session=values.get("session", ""),
        timeout_ms=timeout_of(engine, values), host="http",
    )  # fmt: skip
    return JsonResult(serialize.reminder(given))


def why(access: Access, values: Values) -> JsonResult:
    """Explain a rank, an absence, or the order of two memories."""
    known = {"scope": access.seen(values), **_given(values, _EXPLAINED)}
    engine = access.pooled.reading()
    if "over" in values:
        return JsonResult(serialize.contrast(engine.why(values["query"], values["id"], over=values["over"], **known)))
    placed = engine.why(values["query"], values["id"], **known)
    return JsonResult(serialize.why(placed) if isinstance(placed, Why) else serialize.contrast(placed))


def listed(access: Access, values: Values) -> JsonResult:
    """List memories by pages; each page begins after the last memory of the one before."""
    limit, sort = values.get("limit", PAGE_MEMORIES), values.get("sort", "place")
    asked = {"scope": access.seen(values), **_given(values, _LISTED)}
    behind = after(values["cursor"], sort) if "cursor" in values else None
    # One memory more than the limit shows whether there is another page.
    engine = access.pooled.reading()
    found = engine.list(limit=limit + 1, sort=sort, after=behind, **asked)
    page = found[:limit]
    following = cursor_of(page[-1], sort) if len(found) > limit and page else None
    memories, notices = [serialize.memory(one) for one in page], engine.memories.list_notices(page, **asked)
    told = {"memories": memories, "next": following, "notices": serialize.notices(notices), "format": FORMAT}
    return JsonResult(told)


def added(access: Access, values: Values) -> JsonResult:
    """Store a fact; the status is 201 if it is new, else 200."""
    fields = {name: value for name, value in values.items() if name not in ("text", "scope")}
    engine = access.pooled.writing()
    done = engine.facts.remember(values["text"], scope=access.home_for(values, engine), **fields)
    return JsonResult(serialize.added(done), 201 if done.outcome == "stored" else 200)


def shown(access: Access, values: Values) -> JsonResult:
    """Return one memory with its history."""
    return JsonResult(_shown(access.pooled.reading(), values["id"], access.seen(values)))


def _shown(engine: Engine, identity: str, seen: list[str]) -> dict[str, Any]:
    memory = engine.get(identity, scope=seen)
    history, replaced = engine.history(memory.id, scope=seen), engine.memories.replaced(memory.id, scope=seen)
    return serialize.shown(memory, history, replaced, engine.memories.text_notices([memory], scope=seen))


def updated(access: Access, values: Values) -> JsonResult:
    """Change a fact; null clears a field."""
    engine, seen = access.pooled.reading(), access.seen(values)
    fields = {name: value for name, value in values.items() if name not in ("id", "scope")}
    _refuse_others(access, engine.get(values["id"], scope=seen), values, "changed")
    done = engine.facts.revise(values["id"], scope=seen, **fields)
    told = _shown(engine, values["id"], seen)
    return JsonResult({**told, "notices": [*serialize.notices(done.notices), *told["notices"]]})


def forgotten(access: Access, values: Values) -> JsonResult:
    """Remove one memory; with `purge` no byte of it remains."""
    engine, seen = access.pooled.reading(), access.seen(values)
    _refuse_others(access, engine.get(values["id"], scope=seen), values, "removed")
    done = engine.forget(values["id"], scope=seen, purge=values.get("purge", False))
    return JsonResult(serialize.forgotten([values["id"]], None, done))


def recalled(access: Access, values: Values) -> JsonResult:
    """Count a recall for each memory."""
    ids = list(dict.fromkeys(values["ids"]))
    access.pooled.reading().mark_used(*ids, scope=access.seen(values))
    return JsonResult({"recalled": ids, "format": FORMAT})


def ingested(access: Access, values: Values, progress: Progress = lambda *_: None) -> JsonResult:
    """Index files of the workspace."""
    if access.workspace is None:
        hint = "ingest on the command line, or keep the store in a folder without other people's things and tokens"
        raise BadRequest(403, "outside", "this server does not ingest files", hint)
    paths, dry_run = inside(access.workspace, values["paths"]), values.get("dry_run", False)
    engine = access.pooled.reading() if dry_run else access.pooled.writing()
    home, base = access.home(values), notes_of(access.pooled.store)
    report = engine.ingest(*paths, scope=home, dry_run=dry_run, base=base, progress=progress)
    return JsonResult(serialize.report(report))


def status(access: Access, values: Values) -> JsonResult:
    """Return the status of the store, limited to the scopes the caller may see."""
    told = told_status(access, values, __version__)
    return JsonResult({**told, "multi_scope": access.is_multi_scope, "read_only": access.is_read_only})


def recipes(_: Access, __: Values) -> JsonResult:
    """Return the recipes, each as its printable value, with the settings that change it."""
    told = {name: {"value": repr(recipe), "settings": list(honoured(recipe))} for name, recipe in RECIPES.items()}
    return JsonResult({"recipes": told, "format": FORMAT})


def _refuse_others(access: Access, memory: Memory, values: Values, done: str) -> None:
    try:
        access.refuse_others([memory], values, done)
    except ConfigError as error:
        raise BadRequest(403, "not-own", error.message, error.hint) from error


def told_status(access: Access, values: Values, version: str) -> dict[str, Any]:
    """Return the full status visible to a caller; counts, names and sizes of other scopes are left out."""
    engine, share = access.pooled.reading(), _share(access, values)
    own = None if share is None else {str(scope) for scope in visible(scopes_of(share))}
    calibrations = [made for made in engine.models.calibrations() if own is None or own.issuperset(made.scopes)]
    scopes = None if own is None else frozenset(map(Scope.parse, own))
    notices = (*engine.config.notices, *engine.models.waiting_notices(scope=share))
    return {
        **serialize.status(held_for(access, values), engine.models.space, calibrations),
        "roles": serialize.spaces(engine.models.list(scope=share)),
        "backlog": serialize.backlog(engine.models.backlog(scope=share)),
        "old_words": engine.maintenance.stale_count(scopes),
        "notices": serialize.notices((*notices, *engine.maintenance.stale_notices(scopes), *engine.models.notices())),
        "evaluation": _kept_evaluation(engine.config),
        "version": version,
    }


def held_for(access: Access, values: Values) -> StoreStatus:
    """Return the store status visible to a caller; with the file size if the server has no scopes."""
    engine, share = access.pooled.reading(), _share(access, values)
    # Without a store, an empty one at another location answers.
    seen = replace(engine.status(scope=share), location=str(access.pooled.store))
    if share != []:
        return seen
    whole = engine.status("")
    return replace(
        seen,
        bytes=whole.bytes,
        free_bytes=whole.free_bytes,
        ballast_bytes=whole.ballast_bytes,
        server=whole.server,
    )


def _share(access: Access, values: Values) -> list[str] | None:
    """Return the scopes of a caller besides the global one; None if it may choose any and chose none."""
    seen = access.seen(values)
    return None if access.is_multi_scope and not seen else seen


def _kept_evaluation(config: Config) -> dict[str, Any] | None:
    """Return the figures of the last evaluation kept beside the store, if any, without its queries."""
    try:
        kept = read_data(config.evaluation)
    except BadDataset:
        return None
    sets = [
        {"set": one["set"], "queries": one["queries"], "lines": {name: line["measures"] for name, line in lines}}
        for one in kept.get("sets", ())
        for lines in [one["lines"].items()]
    ]
    return {**{name: kept[name] for name in ("made", "whyrank", "settings")}, "sets": sets}


def candidates(access: Access, values: Values) -> JsonResult:
    """Return the candidates of a query, for ranking in the browser."""
    return JsonResult(serialize_candidates.pool(_pooled(access, values, likeness=False)))


def likeness(access: Access, values: Values) -> JsonResult:
    """Return the pairwise similarity of the candidates of a query."""
    return JsonResult(serialize_candidates.likeness(_pooled(access, values, likeness=True)))


def _pooled(access: Access, values: Values, *, likeness: bool) -> Pooled:
    asked = {"scope": access.seen(values), **_given(values, _SEARCHED)}
    return access.pooled.reading().pool(values["query"], likeness=likeness, **asked)


_NEWS_SECONDS = 0.1  # between two progress events
_HEARTBEAT_SECONDS = 10.0  # of silence until a comment is sent that keeps the stream open


def inside(workspace: Path, names: Sequence[str]) -> list[Path]:
    """Return paths inside the workspace; paths that lead outside or to hidden files are refused."""
    root = workspace.resolve()
    paths = []
    for name in names:
        path = Path(os.path.normpath(workspace / name))
        try:
            is_inside = path.is_relative_to(workspace) and path.resolve().is_relative_to(root)
        except (OSError, ValueError, RuntimeError):
            is_inside = False
        if not is_inside or ".." in Path(name).parts:
            said = f"{name[:100]!r} is not in the workspace"
            raise BadRequest(403, "outside", said, "name paths below the workspace")
        ways = (*path.relative_to(workspace).parts, *path.resolve().relative_to(root).parts)
        if any(part.startswith(".") for part in ways):
            raise BadRequest(403, "outside", f"{name[:100]!r} is hidden", "name paths that do not begin with a dot")
        paths.append(path)
    if not paths:
        raise ConfigError("no path was named", "name files or folders of the workspace")
    return paths


def until(leaving: threading.Event, tell: Progress) -> Progress:
    """Return a progress callback that aborts the work between two files when the server stops."""

    def tick(done: int, total: int, what: str) -> None:
        if leaving.is_set():
            # Files are stored in batches: some of those just read may not be stored yet.
            hint = "send it again: files that are stored are not read again"
            raise BadRequest(503, "stopping", "the server is shutting down; files that were stored stay", hint)
        tell(done, total, what)

    return tick


class News:
    """Progress of a worker thread, queued for a server-sent event stream and throttled."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._queue = asyncio.Queue[dict[str, Any] | None]()
        self._last = 0.0

    def tell(self, done: int, total: int, what: str) -> None:
        """Report progress, from the worker thread."""
        now = time.monotonic()
        if now - self._last >= _NEWS_SECONDS or done >= total:
            self._last = now
            self._loop.call_soon_threadsafe(self._queue.put_nowait, {"done": done, "total": total, "what": what})

    async def events(
        self, task: asyncio.Future[bytes], failed: Callable[[BaseException], bytes]
    ) -> AsyncIterator[bytes]:
        """Yield server-sent events: progress, then the report or the error; the work outlives the listener."""
        task.add_done_callback(lambda _: self._queue.put_nowait(None))
        while True:
            try:
                news = await asyncio.wait_for(self._queue.get(), _HEARTBEAT_SECONDS)
            except TimeoutError:
                yield b": still running\n\n"
                continue
            if news is None:
                break
            yield event("progress", json.dumps(news).encode())
        error = task.exception()
        yield event("report", task.result()) if error is None else event("error", failed(error))


def event(name: str, data: bytes) -> bytes:
    """Return one server-sent event."""
    return b"event: " + name.encode() + b"\ndata: " + data + b"\n\n"


MAX_CURSOR_CHARACTERS = 20_000  # a path may be long
# Types of the sort values before the content key (path, line, hash, id) in each order.
_FIRST: dict[Order, tuple[type, ...]] = {
    "place": (), "created": (float,), "date": (int, float), "importance": (int,), "recalls": (int,),
}  # fmt: skip
_CONTENT_KEY = (str, int, str, str)
_GREATEST = 2**62  # within the integer range of SQLite


def cursor_of(memory: Memory, order: Order) -> str:
    """Return the cursor of the position after a memory in a list of this order."""
    text = json.dumps([order, *sorting_key(memory, order)], separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def after(cursor: str, order: Order) -> SortingKey:
    """Return the position of a cursor; a cursor issued for another order is refused."""
    place = _read_cursor(cursor)
    types = (str, *_FIRST[order], *_CONTENT_KEY)
    fits = isinstance(place, list) and len(place) == len(types) and all(map(_is_kind, place, types))
    if not fits or place[0] != order:
        hint = "give `next` of the previous page, with the same sort"
        raise BadRequest(404, "cursor", "the cursor does not belong to this list", hint)
    return tuple(place[1:])


def _read_cursor(cursor: str) -> Any:
    try:
        return json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    except (ValueError, RecursionError):
        return None


def _is_kind(value: object, kind: type) -> bool:
    if kind is str:
        return isinstance(value, str) and not clean(value).replaced
    return isinstance(value, int | float) and abs(value) < _GREATEST
