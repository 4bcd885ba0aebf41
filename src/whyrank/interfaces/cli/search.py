"""Verbs for search, ingest, status and settings, each a thin layer over the engine."""

from __future__ import annotations

import argparse
import os
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from ...analysis.normalize import is_clean
from ...config import load as settings
from ...config.settings import SETTINGS, setting_named
from ...engine.arguments import MAX_PATTERN_CHARACTERS
from ...engine.engine import Engine
from ...engine.open import open_engine
from ...errors import ConfigError, NotFound, StoreError
from ...formatting import on_one_line
from ...ingest.paths import settled, stored_name, stored_pattern
from ...ranking.recipes import RECIPES, recipe_named
from ...search.explain import Why
from ...types.query import literally
from .. import serialize
from ..errors import OK, PARTLY_READ
from . import output

if TYPE_CHECKING:
    from ...protocols import Embedder
    from ...search.contrast import Contrast

_TOLD_OTHERWISE = frozenset({"format", "calibrations", "space", "spaces", "roles", "backlog", "without_vector"})
_NOTHING_STORED = "there is no memory here; `whyrank add TEXT` and `whyrank ingest PATH` store some"
_TAKE_PATHS = frozenset({"why", "pin"})  # verbs that accept the path of a file for any of its memories


def ingest(asked: argparse.Namespace) -> int:
    """Index files and print the report."""
    with writable(asked) as engine, output.progress("ingest", quiet=asked.json) as tick:
        base = settings_of(asked).notes
        report = engine.ingest(*asked.paths, scope=asked.scope, dry_run=asked.dry_run, base=base, progress=tick)
    if asked.json:
        output.say_json(serialize.report(report))
    else:
        _say_report(report)
    return PARTLY_READ.exit_status if report.failed else OK


@contextmanager
def writable(asked: argparse.Namespace) -> Iterator[Engine]:
    """Open or create the store; a dry run without a store uses a temporary one."""
    if not asked.dry_run or settings_of(asked).store.exists():
        with open_or_make(asked) as engine:
            yield engine
        return
    import tempfile

    with tempfile.TemporaryDirectory(prefix="whyrank-dry-run-") as place:
        store = Path(place) / "memory.db"
        with open_engine(store, workspace=asked.workspace, embedding=asked.embedding) as engine:
            yield engine


def _say_report(report: Any) -> None:
    counts = {**report.files, "unchanged": report.unchanged}
    files = ", ".join(f"{count} {action}" for action, count in counts.items() if count) or "none found"
    would = "would be " if report.dry_run else ""
    output.say(f"files: {files}")
    embedded = "" if report.dry_run else f", {report.embedded} embedded"
    output.say(f"chunks: {report.chunks} {would}written, {report.removed} {would}removed{embedded}")
    if report.dry_run:
        for path, action in report.plans:
            before = f"  (was {on_one_line(report.renamed[path])})" if path in report.renamed else ""
            output.say(f"  {action:8} {on_one_line(path)}{before}")
    if report.without_vector:
        output.say(f"without a vector: {report.without_vector} (they can be found by words)")
    for path, reason, failed in report.skipped:
        output.complain(f"{'could not read' if failed else 'skipped'} {path}: {reason}")
    for path, remark in report.remarks:
        output.complain(f"{path}: {remark}")


def search(asked: argparse.Namespace) -> int:
    """Find memories."""
    with open_existing(asked) as engine:
        answer = engine.search(
            " ".join(asked.query),
            limit=asked.limit,
            offset=asked.offset,
            recipe=asked.recipe,
            strict=asked.strict,
            min_confidence=asked.min_confidence,
            max_tokens=asked.max_tokens,
            timeout_ms=asked.timeout_ms,
            expand=asked.expand,
            syntax="advanced" if asked.advanced else "plain",
            **_filters(asked, engine),
        )
        # Dropped hits are read from the store when they are printed.
        if asked.json:
            output.say_json(serialize.results(answer, explain=asked.explain))
        else:
            output.show_results(answer, explain=asked.explain, offset=asked.offset)
    return OK


def why(asked: argparse.Namespace) -> int:
    """Explain a rank or an absence."""
    with open_existing(asked) as engine:
        known: dict[str, Any] = {
            "limit": asked.limit,
            "recipe": asked.recipe,
            "expand": asked.expand,
            "syntax": "advanced" if asked.advanced else "plain",
            **_filters(asked, engine),
        }
        wanted, over = name_of(engine, asked.id, asked.scope), name_of(engine, asked.over, asked.scope)
        with suggesting(engine, asked, wanted, over):
            answer: Why | Contrast = engine.why(asked.query, wanted, over=over, **known)
    if asked.json:
        output.say_json(serialize.why(answer) if isinstance(answer, Why) else serialize.contrast(answer))
        return OK
    output.say(str(answer))
    output.show_notices(() if isinstance(answer, Why) else answer.notices)
    return OK


@contextmanager
def suggesting(engine: Engine, asked: argparse.Namespace, *named: str | None) -> Iterator[None]:
    """Add a suggestion to a NotFound error about a named memory."""
    try:
        yield
    except NotFound as error:
        missing = next((name for name in named if name and repr(name) in error.message), None)
        near = engine.meant(missing, scope=asked.scope) if missing else None
        hint = f"did you mean {near!r}?" if near else error.hint
        if near and not near.startswith("m_") and asked.verb not in _TAKE_PATHS:
            hint = f"{near} is a file; `whyrank list --path {near}` shows the ids of its memories"
        raise NotFound(error.message, hint) from error


def list_memories(asked: argparse.Namespace) -> int:
    """List memories."""
    with open_existing(asked) as engine:
        limit = 50 if asked.limit is None else asked.limit
        lives = {"superseded": asked.superseded, "expired": asked.expired}
        filters = {**lives, **_filters(asked, engine)}
        found = engine.list(limit=limit, offset=asked.offset, sort=asked.sort, **filters)
        notices = engine.unlisted(found, **filters)
        is_empty = not found and not engine.status(scope=asked.scope or ()).memories
    if asked.json:
        memories = [serialize.memory(memory) for memory in found]
        output.say_json({"memories": memories, "notices": serialize.notices(notices), "format": serialize.FORMAT})
        return OK
    for memory in found:
        begin = output.dim(f"  {glimpse}") if (glimpse := output.glimpse(memory)) else ""
        output.say(f"{memory.id}  {output.place(memory)}  {output.heading(memory)}{begin}")
    if not found:
        output.complain(f"notice: {_NOTHING_STORED if is_empty else _nothing_listed(limit, asked.offset)}")
    output.show_notices(notices)
    return OK


def _nothing_listed(limit: int, offset: int) -> str:
    if limit == 0:
        return "a limit of 0 asks for no memories; give 1 or more to see some"
    return f"there is no memory from number {offset + 1} on" if offset else "no memory here passes what was asked for"


def status(asked: argparse.Namespace) -> int:
    """Print the status of the store."""
    with open_existing(asked) as engine:
        calibrations = engine.calibrations()
        data = serialize.status(engine.status(), engine.space, calibrations)
        states, behind = engine.spaces(), engine.backlog()
        data |= {"roles": serialize.spaces(states), "backlog": serialize.backlog(behind)}
        data["old_words"], notices = engine.old_words(), (*engine.word_notices(), *engine.vector_notices())
        notices = (*notices, *engine.damage_notices())
    if asked.json:
        output.say_json(data)
        return OK
    for key, value in data.items():
        if key not in _TOLD_OTHERWISE:
            text = ", ".join(f"{name} {count}" for name, count in value.items()) if isinstance(value, dict) else value
            output.say(f"{key.replace('_', ' ')}: {'–' if text in (None, '') else on_one_line(str(text))}")
    output.show_spaces(states)
    output.show_backlog(behind)
    output.show_calibrations(calibrations, time.time())
    output.show_notices(notices)
    return OK


def config(asked: argparse.Namespace) -> int:
    """Show or change settings."""
    values = settings_of(asked)
    if asked.default and (asked.key is None or asked.value is not None):
        raise ConfigError("--default is for one setting, and takes no value", "whyrank config KEY --default")
    if asked.default or asked.value is not None:
        key = setting_named(asked.key).key
        file = settings.unset(values, key) if asked.default else settings.save(values, key, asked.value)
        values = settings_of(asked)
        if not asked.json:
            output.say(f"{'not in' if asked.default else 'written to'} {file}")
    keys = [setting_named(asked.key).key] if asked.key else list(SETTINGS)
    if asked.json:
        data = serialize.config(values)
        output.say_json({**data, "settings": {key: data["settings"][key] for key in keys}})
        return OK
    for key in keys:
        value, origin = values.values[key]
        about = output.dim(f"({origin}; {SETTINGS[key].meaning})")
        output.say(f"{key} = {'unset' if value is None else value}  {about}")
    output.show_notices(values.notices)
    return OK


def recipes(asked: argparse.Namespace) -> int:
    """Print recipes."""
    chosen = [recipe_named(asked.name)] if asked.name else list(RECIPES.values())
    if asked.json:
        output.say_json({"recipes": {recipe.name: repr(recipe) for recipe in chosen}, "format": serialize.FORMAT})
        return OK
    for recipe in chosen:
        output.say(output.bold(recipe.name))
        plan = recipe.plan
        output.say(f"  runs: {', '.join(plan.runs)}; terms joined by {plan.join.upper()}; pool {plan.pool}")
        if plan.analysis != "standard" or plan.entities:
            entities = f"; {plan.entities!r}" if plan.entities else ""
            output.say(f"  query terms: {plan.analysis}{entities}")
        if recipe.fusion.strength is not None:
            output.say(f"  blend: the votes add up to {recipe.fusion.strength:g} at most")
        others = [recipe.fusion.others] if recipe.fusion.others else []
        for vote in (*recipe.fusion.votes, *others):
            signal = "any other run" if vote.signal == "*" else vote.signal
            weight = "what the embedder leaves or declares" if vote.weight is None else vote.weight
            output.say(f"  vote: {signal} × {weight}, {vote.normaliser!r}")
        for stage in recipe.stages:
            output.say(f"  stage: {stage!r}")
    return OK


def open_existing(asked: argparse.Namespace) -> Engine:
    """Open an existing store: a search must not create one."""
    store = settings_of(asked).store
    if not os.path.lexists(store):
        raise StoreError(f"there is no store at {store}", "`whyrank ingest PATH` makes one; --store names another")
    return open_or_make(asked)


def open_or_make(asked: argparse.Namespace) -> Engine:
    """Open the store, or create it."""
    return open_engine(asked.store, workspace=asked.workspace, embedding=asked.embedding)


@contextmanager
def thrown_away(asked: argparse.Namespace, embedder: Embedder | None = None) -> Iterator[Engine]:
    """Open an empty temporary store; it is calibrated on request only."""
    import tempfile

    with (
        tempfile.TemporaryDirectory(prefix="whyrank-eval-") as place,
        open_engine(
            Path(place) / "memory.db",
            workspace=asked.workspace,
            embedder=embedder,
            embedding=asked.embedding,
            calibration="manual",
        ) as engine,
    ):
        if asked.add is not None:
            engine.add_model(asked.add)
        yield engine


def settings_of(asked: argparse.Namespace) -> settings.Config:
    """Return the settings for the arguments of this call."""
    store = None if asked.store is None else str(settled(os.path.expanduser(asked.store)))
    given = {"store": store, "embedding": asked.embedding}
    return settings.load(given, workspace=Path(asked.workspace) if asked.workspace else None)


def _filters(asked: argparse.Namespace, engine: Engine) -> dict[str, Any]:
    return {
        "scope": asked.scope,
        "kind": asked.kind,
        "tags": asked.tag,
        "category": asked.category,
        "decay": asked.decay,
        "min_importance": asked.min_importance,
        "language": asked.language,
        "path": None if asked.path is None else stored_pattern(engine.config.notes, asked.path),
        "since": asked.since,
        "before": asked.before,
        "as_of": asked.as_of,
        "include_superseded": asked.include_superseded,
    }


_LINES = re.compile(r":\d+-\d+$")  # after a path, as results show it


@overload
def name_of(engine: Engine, typed: str, scope: Sequence[str] | None) -> str: ...
@overload
def name_of(engine: Engine, typed: None, scope: Sequence[str] | None) -> None: ...
def name_of(engine: Engine, typed: str | None, scope: Sequence[str] | None) -> str | None:
    """Return the id or stored path for a typed name; an unknown name is returned unchanged."""
    if not typed or not is_clean(typed) or _is_id(engine, typed, scope):
        return typed
    from_here = stored_name(engine.config.notes, typed)
    return next((name for name in (from_here, typed) if _is_file(engine, name, scope)), typed)


def _is_id(engine: Engine, typed: str, scope: Sequence[str] | None) -> bool:
    try:
        engine.get(typed, scope=scope)
    except NotFound:
        return False
    return True


def _is_file(engine: Engine, name: str, scope: Sequence[str] | None) -> bool:
    """Return whether memories come from a file of this name, with or without a line range."""
    patterns = {literally(name), literally(_LINES.sub("", name))}
    return any(
        engine.list(limit=1, path=pattern, scope=scope, include_superseded=True)
        for pattern in patterns
        if len(pattern) <= MAX_PATTERN_CHARACTERS
    )
