"""What becomes of memories, from the command line: shown, recalled, forgotten, pruned, exported."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ...arguments import scope_of
from ...engine import Engine
from ...errors import ConfigError
from ...lives import Forgotten, lost_past
from ...types import GLOBAL, Memory, Notice
from ...wording import counted, on_one_line
from .. import fact_shapes, shapes
from ..failures import OK
from . import output
from .files import check_export
from .typed import name_of
from .verbs import open_existing, suggesting

_PRUNED_SHOWN = 20
_MICROSECONDS = re.compile(r"(?<=:\d\d)\.\d{6}Z$")
_APART = ("text", "format", "history", "replaced", "notices", "superseded_by", "superseded_at")


def show(asked: argparse.Namespace) -> int:
    """Print one memory whole, with its past."""
    with open_existing(asked) as engine:
        wanted = name_of(engine, asked.id, asked.scope)
        with suggesting(engine, asked, wanted):
            memory = engine.get(wanted, scope=asked.scope)
        history = engine.history(memory.id, scope=asked.scope)
        altered = engine.text_notices([memory], scope=asked.scope)
        data = fact_shapes.shown(memory, history, engine.replaced(memory.id, scope=asked.scope), altered)
    notices = (*altered, *lost_past(history))
    if asked.json:
        output.say_json(data)
        return OK
    for key, value in data.items():
        if value not in (None, "", [], {}, 0) and key not in _APART:
            output.say(f"{key}: {on_one_line(', '.join(value) if isinstance(value, list) else str(value))}")
    _say_past(memory, data)
    output.say()
    output.say(memory.text)
    output.show_notices(notices)
    return OK


def _say_past(memory: Memory, data: dict[str, Any]) -> None:
    if memory.superseded_by:
        output.say(f"replaced by: {memory.superseded_by} on {(data['superseded_at'] or '')[:10]}")
    for one in data["replaced"]:
        output.say(f"replaced: {one['id']}  {_line(one['text'])}")
    for change in data["history"]:
        was = "; ".join(f"{name}: {_plainly(value)}" for name, value in change["was"].items())
        until = str(change["changed"])[:19] if change["changed"] else "a time that was damaged"
        output.say(f"until {until}: {was or 'damaged'}")


def _plainly(value: Any) -> str:
    """Say what a field was in plain words; a moment to the second."""
    if value in (None, "", []):
        return "none"
    return ", ".join(value) if isinstance(value, list) else _MICROSECONDS.sub("Z", _line(str(value)))


def _line(text: str) -> str:
    return " ".join(text.split())


def recalled(asked: argparse.Namespace) -> int:
    """Count that memories were of use."""
    with open_existing(asked) as engine:
        ids = [name_of(engine, typed, asked.scope) for typed in asked.id]
        with suggesting(engine, asked, *ids):
            count = engine.recalled(*ids, scope=asked.scope)
    if asked.json:
        output.say_json({"recalled": list(dict.fromkeys(asked.id)), "format": shapes.FORMAT})
    else:
        output.say(f"{_memories(count)} of use")
    return OK


def forget(asked: argparse.Namespace) -> int:
    """Remove memories by their exact ids, or a whole scope; if one of the ids is not there, all stay."""
    if bool(asked.id) == bool(asked.whole_scope):
        raise ConfigError("say what to forget", "give ids, or --whole-scope with one scope")
    ids = list(dict.fromkeys(asked.id))
    with open_existing(asked) as engine:
        if asked.whole_scope:
            done = _scope_forgotten(engine, asked)
        else:
            ids = [name_of(engine, typed, asked.scope) for typed in ids]
            with suggesting(engine, asked, *ids):
                done = engine.forget(*ids, scope=asked.scope, purge=asked.purge)
    if asked.json:
        output.say_json(fact_shapes.forgotten(ids, asked.whole_scope, done))
    elif asked.whole_scope:
        output.say(f"forgot {_memories(done.memories)} of {asked.whole_scope}")
    else:
        output.say("\n".join(f"forgot {identity}" for identity in ids))
    for remains in done.remains if not asked.json else ():
        output.complain(f"mind: {remains}")
    return OK


def _scope_forgotten(engine: Engine, asked: argparse.Namespace) -> Forgotten:
    if not asked.yes:
        _confirm(asked)
    return engine.forget_scope(asked.whole_scope, purge=asked.purge)


def _confirm(asked: argparse.Namespace) -> None:
    """Have the scope typed again, where there is somebody to type it."""
    if asked.json or not sys.stdin.isatty():
        raise ConfigError(f"this removes all there is of {asked.whole_scope}", "say --yes if that is meant")
    output.complain(f"This removes all there is of {asked.whole_scope}. Type its name again to go on:")
    if sys.stdin.readline().strip() != asked.whole_scope:
        raise ConfigError("the names differ", "nothing was removed")


def prune(asked: argparse.Namespace) -> int:
    """Remove what has expired."""
    with open_existing(asked) as engine, output.progress("prune", quiet=asked.json or asked.dry_run) as tick:
        gone = engine.prune(scope=asked.scope, every_scope=asked.every_scope, dry_run=asked.dry_run, progress=tick)
    if asked.json:
        ids = [memory.id for memory in gone]
        output.say_json({"pruned": ids, "dry_run": asked.dry_run, "format": shapes.FORMAT})
        return OK
    output.say(f"{_memories(len(gone))} {'would be ' if asked.dry_run else ''}pruned")
    _say_some(gone if asked.dry_run else [])
    return OK


def _say_some(memories: Sequence[Memory]) -> None:
    for memory in memories[:_PRUNED_SHOWN]:
        output.say(f"  {memory.id}  {(shapes.moment(memory.expires) or '')[:10]}  {output.heading(memory)}")
    if len(memories) > _PRUNED_SHOWN:
        output.say(f"  … {len(memories) - _PRUNED_SHOWN} more (`whyrank list --expired` lists what is past)")


def export(asked: argparse.Namespace) -> int:
    """Write everything of one scope, or of all, as lines of JSON."""
    if asked.every_scope and asked.scope:
        raise ConfigError("--scope and --every-scope are given", "give one of them")
    scope = asked.scope or str(GLOBAL)
    if asked.out:
        check_export(Path(asked.out), None if asked.every_scope else str(scope_of(scope)))
    quiet = asked.json or (asked.out is None and sys.stdout.isatty())
    with open_existing(asked) as engine, output.progress("export", quiet=quiet) as tick:
        notices: list[Notice] = []
        count = engine.export(
            asked.out or sys.stdout, scope=scope, every_scope=asked.every_scope, progress=tick, notices=notices
        )
    if asked.json and asked.out:
        told = {"exported": count, "scope": None if asked.every_scope else scope, "file": asked.out}
        output.say_json({**told, "notices": shapes.notices(notices), "format": shapes.FORMAT})
        return OK
    if asked.out:
        output.say(f"{_memories(count)} of {'every scope' if asked.every_scope else scope} written to {asked.out}")
    output.show_notices(tuple(notices))
    return OK


def _memories(count: int) -> str:
    return counted(count, "memory", "memories")
