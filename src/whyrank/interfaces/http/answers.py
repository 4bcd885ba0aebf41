"""What each route does: it takes what was read of a request, asks the engine, and answers by the documented shapes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ... import __version__
from ...config import notes_of
from ...engine import Engine
from ...errors import ConfigError
from ...ingest.filling import Progress
from ...ranking.recipes import RECIPES
from ...ranking.settings import honoured
from ...search.why import Why
from ...types import Memory
from .. import fact_shapes, shapes
from ..door import Door, Values, timeout_of
from .bodies import Refused
from .cursors import after, cursor_of
from .ingesting import inside
from .status import told_status

_FILTERS = (
    "kind", "tags", "path", "since", "before", "as_of", "include_superseded", "category", "decay", "min_importance",
)  # fmt: skip
_SEARCHED = ("limit", "offset", "recipe", "strict", "max_tokens", "expand", "syntax", *_FILTERS)
_EXPLAINED = ("limit", "recipe", "expand", "syntax", *_FILTERS)
_LISTED = (*_FILTERS, "superseded", "expired")
PAGE_MEMORIES = 50  # of a list, if nothing else is asked for


class Answer(NamedTuple):
    """What a route answers: data by one of the shapes, and the status it goes with."""

    data: dict[str, Any]
    status: int = 200


Call = Callable[[Door, Values], Answer]
LongCall = Callable[[Door, Values, Progress], Answer]


def _given(values: Values, names: tuple[str, ...]) -> dict[str, Any]:
    return {name: values[name] for name in names if name in values}


def searched(values: Values) -> dict[str, Any]:
    """Return what was said of how to search."""
    return _given(values, _SEARCHED)


def search(door: Door, values: Values) -> Answer:
    """Find memories."""
    engine = door.desk.reading()
    asked = {"timeout_ms": timeout_of(engine, values), **searched(values)}
    found = engine.search(values["query"], scope=door.seen(values), **asked)
    return Answer(shapes.results(found, explain=values.get("explain", False)))


def why(door: Door, values: Values) -> Answer:
    """Explain a place, an absence, or why not the other way round."""
    known = {"scope": door.seen(values), **_given(values, _EXPLAINED)}
    engine = door.desk.reading()
    if "over" in values:
        return Answer(shapes.contrast(engine.why(values["query"], values["id"], over=values["over"], **known)))
    placed = engine.why(values["query"], values["id"], **known)
    return Answer(shapes.why(placed) if isinstance(placed, Why) else shapes.contrast(placed))


def listed(door: Door, values: Values) -> Answer:
    """List memories, a page at a time; each begins behind the last memory of the one before."""
    limit, sort = values.get("limit", PAGE_MEMORIES), values.get("sort", "place")
    asked = {"scope": door.seen(values), **_given(values, _LISTED)}
    behind = after(values["cursor"], sort) if "cursor" in values else None
    # One more than asked for says whether there is another page.
    engine = door.desk.reading()
    found = engine.list(limit=limit + 1, sort=sort, after=behind, **asked)
    page = found[:limit]
    following = cursor_of(page[-1], sort) if len(found) > limit and page else None
    memories, notices = [shapes.memory(one) for one in page], engine.unlisted(page, **asked)
    told = {"memories": memories, "next": following, "notices": shapes.notices(notices), "format": shapes.FORMAT}
    return Answer(told)


def added(door: Door, values: Values) -> Answer:
    """Store a fact; one that was there is told apart from one that is new."""
    fields = {name: value for name, value in values.items() if name not in ("text", "scope")}
    engine = door.desk.writing()
    done = engine.remember(values["text"], scope=door.home_for(values, engine), **fields)
    return Answer(fact_shapes.added(done), 201 if done.outcome == "stored" else 200)


def shown(door: Door, values: Values) -> Answer:
    """Show one memory whole, with its past."""
    return Answer(_shown(door.desk.reading(), values["id"], door.seen(values)))


def _shown(engine: Engine, identity: str, seen: list[str]) -> dict[str, Any]:
    memory = engine.get(identity, scope=seen)
    history, replaced = engine.history(memory.id, scope=seen), engine.replaced(memory.id, scope=seen)
    return fact_shapes.shown(memory, history, replaced, engine.text_notices([memory], scope=seen))


def updated(door: Door, values: Values) -> Answer:
    """Change a fact; what is null is taken back."""
    engine, seen = door.desk.reading(), door.seen(values)
    fields = {name: value for name, value in values.items() if name not in ("id", "scope")}
    _refuse_others(door, engine.get(values["id"], scope=seen), values, "changed")
    done = engine.revise(values["id"], scope=seen, **fields)
    told = _shown(engine, values["id"], seen)
    return Answer({**told, "notices": [*shapes.notices(done.notices), *told["notices"]]})


def forgotten(door: Door, values: Values) -> Answer:
    """Remove one memory; with `purge` no byte of it stays."""
    engine, seen = door.desk.reading(), door.seen(values)
    _refuse_others(door, engine.get(values["id"], scope=seen), values, "removed")
    done = engine.forget(values["id"], scope=seen, purge=values.get("purge", False))
    return Answer(fact_shapes.forgotten([values["id"]], None, done))


def recalled(door: Door, values: Values) -> Answer:
    """Count that memories were of use."""
    ids = list(dict.fromkeys(values["ids"]))
    door.desk.reading().recalled(*ids, scope=door.seen(values))
    return Answer({"recalled": ids, "format": shapes.FORMAT})


def ingested(door: Door, values: Values, progress: Progress = lambda *_: None) -> Answer:
    """Index files of the workspace."""
    if door.workspace is None:
        hint = "ingest on the command line, or keep the store in a folder without other people's things and tokens"
        raise Refused(403, "outside", "no files are taken in here", hint)
    paths, dry_run = inside(door.workspace, values["paths"]), values.get("dry_run", False)
    engine = door.desk.reading() if dry_run else door.desk.writing()
    home, base = door.home(values), notes_of(door.desk.store)
    return Answer(shapes.report(engine.ingest(*paths, scope=home, dry_run=dry_run, base=base, progress=progress)))


def status(door: Door, values: Values) -> Answer:
    """Say what the store holds, of what the caller may see."""
    told = told_status(door, values, __version__)
    return Answer({**told, "multi_scope": door.is_multi_scope, "read_only": door.is_read_only})


def recipes(_: Door, __: Values) -> Answer:
    """Name the recipes, each as the printable value it is, with the settings that change it."""
    told = {name: {"value": repr(recipe), "settings": list(honoured(recipe))} for name, recipe in RECIPES.items()}
    return Answer({"recipes": told, "format": shapes.FORMAT})


def _refuse_others(door: Door, memory: Memory, values: Values, done: str) -> None:
    try:
        door.refuse_others([memory], values, done)
    except ConfigError as error:
        raise Refused(403, "not-own", error.message, error.hint) from error
