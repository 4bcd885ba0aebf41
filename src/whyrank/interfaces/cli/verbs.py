"""The verbs of the command line, each a thin layer over the engine."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ... import config as settings
from ...engine import Engine
from ...errors import ConfigError, NotFound, StoreError
from ...opening import open_engine
from ...places import settled, stored_pattern
from ...ranking.recipes import RECIPES, recipe_named
from ...search.why import Why
from ...settings import SETTINGS, setting_named
from ...wording import on_one_line
from .. import shapes, space_shapes
from ..failures import OK, PARTLY_READ
from . import output
from .typed import name_of

if TYPE_CHECKING:
    from ...search.contrast import Contrast

_TOLD_OTHERWISE = frozenset({"format", "calibrations", "space", "spaces", "roles", "backlog", "without_vector"})
_NOTHING_STORED = "there is no memory here; `whyrank add TEXT` and `whyrank ingest PATH` store some"
_TAKE_PATHS = frozenset({"why", "pin"})  # verbs that take the path of a file for any of its memories


def ingest(asked: argparse.Namespace) -> int:
    """Index files and report what happened."""
    with writable(asked) as engine, output.progress("ingest", quiet=asked.json) as tick:
        base = settings_of(asked).notes
        report = engine.ingest(*asked.paths, scope=asked.scope, dry_run=asked.dry_run, base=base, progress=tick)
    if asked.json:
        output.say_json(shapes.report(report))
    else:
        _say_report(report)
    return PARTLY_READ.exit_status if report.failed else OK


@contextmanager
def writable(asked: argparse.Namespace) -> Iterator[Engine]:
    """Open or make the store; a dry run where there is none uses one that is thrown away."""
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
            max_tokens=asked.max_tokens,
            timeout_ms=asked.timeout_ms,
            expand=asked.expand,
            syntax="advanced" if asked.advanced else "plain",
            **_filters(asked, engine),
        )
        # What was dropped is read from the store when it is shown.
        if asked.json:
            output.say_json(shapes.results(answer, explain=asked.explain))
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
        output.say_json(shapes.why(answer) if isinstance(answer, Why) else shapes.contrast(answer))
        return OK
    output.say(str(answer))
    output.show_notices(() if isinstance(answer, Why) else answer.notices)
    return OK


@contextmanager
def suggesting(engine: Engine, asked: argparse.Namespace, *named: str | None) -> Iterator[None]:
    """Say which memory was meant where one that was named is not there."""
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
        memories = [shapes.memory(memory) for memory in found]
        output.say_json({"memories": memories, "notices": shapes.notices(notices), "format": shapes.FORMAT})
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
    """Count what the store holds."""
    with open_existing(asked) as engine:
        calibrations = engine.calibrations()
        data = shapes.status(engine.status(), engine.space, calibrations)
        states, behind = engine.spaces(), engine.backlog()
        data |= {"roles": space_shapes.spaces(states), "backlog": space_shapes.backlog(behind)}
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
        data = shapes.config(values)
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
        output.say_json({"recipes": {recipe.name: repr(recipe) for recipe in chosen}, "format": shapes.FORMAT})
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
    """Open the store that is there; a question to a store that is not there should not make one."""
    store = settings_of(asked).store
    if not os.path.lexists(store):
        raise StoreError(f"there is no store at {store}", "`whyrank ingest PATH` makes one; --store names another")
    return open_or_make(asked)


def open_or_make(asked: argparse.Namespace) -> Engine:
    """Open the store, or make one."""
    return open_engine(asked.store, workspace=asked.workspace, embedding=asked.embedding)


@contextmanager
def thrown_away(asked: argparse.Namespace) -> Iterator[Engine]:
    """Open an empty store that is gone afterwards; nothing is calibrated in it but by those who ask for it."""
    import tempfile

    with (
        tempfile.TemporaryDirectory(prefix="whyrank-eval-") as place,
        open_engine(
            Path(place) / "memory.db", workspace=asked.workspace, embedding=asked.embedding, calibration="manual"
        ) as engine,
    ):
        yield engine


def settings_of(asked: argparse.Namespace) -> settings.Config:
    """Return the settings as they stand for this call."""
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
        "path": None if asked.path is None else stored_pattern(engine.config.notes, asked.path),
        "since": asked.since,
        "before": asked.before,
        "as_of": asked.as_of,
        "include_superseded": asked.include_superseded,
    }
