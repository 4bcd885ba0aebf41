"""`whyrank add`, `update`, `show`, `forget`, `recalled`, `prune` and `export`."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ...engine.arguments import MAX_FACT_CHARACTERS, scope_of
from ...engine.engine import Engine
from ...engine.facts import UNSAID, Added
from ...engine.memories import Forgotten, lost_past
from ...errors import ConfigError
from ...formatting import counted, on_one_line
from ...types.memory import GLOBAL, Memory, Notice
from .. import serialize
from ..errors import OK, PARTLY_READ
from . import output
from .files import check_export
from .search import name_of, open_existing, open_or_make, suggesting

STANDARD_INPUT = "-"
_NOTHING = "none"
_MOST_BYTES = 4 * MAX_FACT_CHARACTERS  # of one fact in UTF-8
_BYTES_FROM = 0xDC00  # first surrogate of undecodable bytes (PEP 383)
_TOLD = {
    "known": "it was stored already",
    "merged": "the new fact was merged into this one, which says almost the same",
    "replacing": "it was stored already, and replaces the other now",
    "revived": "it lives again",
}


class RefusedFact(NamedTuple):
    """A line that could not be stored, and why."""

    line: int
    reason: str


def add(asked: argparse.Namespace) -> int:
    """Store facts, each durable once its id is printed; a line that fails does not stop the others."""
    from_input = asked.text == [STANDARD_INPUT]
    if from_input and (asked.supersedes or asked.name or asked.key):
        raise ConfigError("one name, key and replaced memory belong to one fact", "give the fact as an argument")
    fields = _fields(asked)
    refused: list[RefusedFact] = []
    stored: list[Added] = []
    with open_or_make(asked) as engine:
        one = (_added(engine, asked, text, fields) for text in [" ".join(asked.text)])
        for done in _from_lines(engine, asked, fields, refused) if from_input else one:
            stored.append(done)
            if not asked.json:
                _say_added(done)
        waiting = engine.waiting_notices()
    if not stored and not refused:
        waiting = (Notice("nothing-given", "standard input holds no line, so nothing was stored"), *waiting)
    for line, reason in refused:
        output.complain(f"line {line} was not stored: {reason}")
    if asked.json:
        data = {"memories": [serialize.added(done) for done in stored], "refused": [one._asdict() for one in refused]}
        output.say_json({**data, "notices": serialize.notices(waiting), "format": serialize.FORMAT})
    output.show_notices(() if asked.json else waiting)
    return PARTLY_READ.exit_status if refused else OK


def update(asked: argparse.Namespace) -> int:
    """Change a fact."""
    text = asked.text
    if text == STANDARD_INPUT:
        given = sys.stdin.buffer.read(_MOST_BYTES + 1)
        if len(given) > _MOST_BYTES:
            told = f"standard input holds more than {MAX_FACT_CHARACTERS:,} characters"
            raise ConfigError(told, "write it into a file and ingest that; nothing was changed")
        text = given.decode("utf-8", errors="surrogateescape")
        if (wrong := _undecoded(text)) is not None:
            raise ConfigError(f"standard input cannot be read: {wrong}", "nothing was changed")
    with open_existing(asked) as engine:
        with suggesting(engine, asked, asked.id, asked.supersedes):
            done = engine.revise(
                asked.id, text=text, supersedes=_replaced(asked.supersedes), scope=asked.scope, **_fields(asked)
            )
        memory = done.memory
        if asked.json:
            history = engine.history(memory.id, scope=asked.scope)
            output.say_json(serialize.changed(done, history, engine.replaced(memory.id, scope=asked.scope)))
        else:
            output.say(f"{memory.id}  {memory.text}")
            output.show_notices(done.notices)
    return OK


def _say_added(done: Added) -> None:
    identity = done.memory.id
    output.say(f"{identity}  {done.memory.text}")
    if done.outcome in _TOLD:
        output.complain(f"{identity}: {_TOLD[done.outcome]}")
    for near in done.near if done.outcome != "merged" else ():
        same = f"{near.memory.id} says almost the same ({near.cosine:.2f}): {near.memory.text}"
        output.complain(f"{identity}: {same}")
    output.show_notices(done.notices)


def _from_lines(
    engine: Engine, asked: argparse.Namespace, fields: dict[str, Any], refused: list[RefusedFact]
) -> Iterator[Added]:
    # Bytes that are not UTF-8 refuse their line, not all lines.
    for number, line in enumerate(_lines(), 1):
        if len(line) > _MOST_BYTES:
            refused.append(RefusedFact(number, f"it has more than {MAX_FACT_CHARACTERS:,} characters, and is no fact"))
            continue
        text = line.decode("utf-8", errors="surrogateescape").strip()
        if not text:
            continue
        if (wrong := _undecoded(text)) is not None:
            refused.append(RefusedFact(number, wrong))
            continue
        try:
            yield _added(engine, asked, text, fields)
        except ConfigError as error:
            refused.append(RefusedFact(number, error.message))


def _lines() -> Iterator[bytes]:
    """Yield the lines of standard input; a long one is truncated, which bounds memory use."""
    while line := sys.stdin.buffer.readline(_MOST_BYTES + 1):
        yield line
        while len(line) > _MOST_BYTES and not line.endswith(b"\n"):
            line = sys.stdin.buffer.readline(_MOST_BYTES + 1)


def _undecoded(text: str) -> str | None:
    """Return an error about a byte that is not UTF-8, or None; such bytes are surrogates in the text."""
    byte = next((ord(letter) - _BYTES_FROM for letter in text if "\udc80" <= letter <= "\udcff"), None)
    return None if byte is None else f"it is no UTF-8 (byte 0x{byte:02x}); convert it, for instance with iconv"


def _added(engine: Engine, asked: argparse.Namespace, text: str, fields: dict[str, Any]) -> Added:
    return engine.remember(text, scope=asked.scope, supersedes=asked.supersedes, key=asked.key, **fields)


def _replaced(named: str | None) -> str | None:
    """Return the id of the replaced fact, UNSAID if not given; `none` clears it."""
    unsaid: str = UNSAID
    return unsaid if named is None else None if named == _NOTHING else named


def _fields(asked: argparse.Namespace) -> dict[str, Any]:
    """Return the given fields; `none` clears one."""
    given = {
        "name": asked.name,
        "category": asked.category,
        "tags": asked.tag,
        "entities": asked.entity,
        "importance": asked.importance,
        "decay": asked.decay,
        "date": asked.date,
        "valid_from": asked.valid_from,
        "valid_until": asked.valid_until,
        "expires": asked.expires,
        "trust": asked.trust,
    }
    named: dict[str, Any] = {key: value for key, value in given.items() if value is not None}
    read = {key: None if value in (_NOTHING, [_NOTHING]) else value for key, value in named.items()}
    importance = read.get("importance")
    if importance is not None and importance.isdecimal():
        read["importance"] = int(importance[:3])
    return read


_PRUNED_SHOWN = 20
_MICROSECONDS = re.compile(r"(?<=:\d\d)\.\d{6}Z$")
_APART = ("text", "format", "history", "replaced", "notices", "superseded_by", "superseded_at")


def show(asked: argparse.Namespace) -> int:
    """Print one memory with its history."""
    with open_existing(asked) as engine:
        wanted = name_of(engine, asked.id, asked.scope)
        with suggesting(engine, asked, wanted):
            memory = engine.get(wanted, scope=asked.scope)
        history = engine.history(memory.id, scope=asked.scope)
        altered = engine.text_notices([memory], scope=asked.scope)
        data = serialize.shown(memory, history, engine.replaced(memory.id, scope=asked.scope), altered)
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
    """Format an old value of a field; timestamps to the second."""
    if value in (None, "", []):
        return "none"
    return ", ".join(value) if isinstance(value, list) else _MICROSECONDS.sub("Z", _line(str(value)))


def _line(text: str) -> str:
    return " ".join(text.split())


def recalled(asked: argparse.Namespace) -> int:
    """Count a recall for each memory."""
    with open_existing(asked) as engine:
        ids = [name_of(engine, typed, asked.scope) for typed in asked.id]
        with suggesting(engine, asked, *ids):
            count = engine.recalled(*ids, scope=asked.scope)
    if asked.json:
        output.say_json({"recalled": list(dict.fromkeys(asked.id)), "format": serialize.FORMAT})
    else:
        output.say(f"{_memories(count)} of use")
    return OK


def forget(asked: argparse.Namespace) -> int:
    """Remove memories by exact id, or a whole scope; if one id does not exist, none is removed."""
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
        output.say_json(serialize.forgotten(ids, asked.whole_scope, done))
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
    """Ask for the name of the scope as confirmation; without a terminal, require --yes."""
    if asked.json or not sys.stdin.isatty():
        raise ConfigError(f"this removes all there is of {asked.whole_scope}", "say --yes if that is meant")
    output.complain(f"This removes all there is of {asked.whole_scope}. Type its name again to go on:")
    if sys.stdin.readline().strip() != asked.whole_scope:
        raise ConfigError("the names differ", "nothing was removed")


def prune(asked: argparse.Namespace) -> int:
    """Remove expired memories."""
    with open_existing(asked) as engine, output.progress("prune", quiet=asked.json or asked.dry_run) as tick:
        gone = engine.prune(scope=asked.scope, every_scope=asked.every_scope, dry_run=asked.dry_run, progress=tick)
    if asked.json:
        ids = [memory.id for memory in gone]
        output.say_json({"pruned": ids, "dry_run": asked.dry_run, "format": serialize.FORMAT})
        return OK
    output.say(f"{_memories(len(gone))} {'would be ' if asked.dry_run else ''}pruned")
    _say_some(gone if asked.dry_run else [])
    return OK


def _say_some(memories: Sequence[Memory]) -> None:
    for memory in memories[:_PRUNED_SHOWN]:
        output.say(f"  {memory.id}  {(serialize.moment(memory.expires) or '')[:10]}  {output.heading(memory)}")
    if len(memories) > _PRUNED_SHOWN:
        output.say(f"  … {len(memories) - _PRUNED_SHOWN} more (`whyrank list --expired` lists what is past)")


def export(asked: argparse.Namespace) -> int:
    """Write all memories of one scope, or of all, as JSON lines."""
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
        output.say_json({**told, "notices": serialize.notices(notices), "format": serialize.FORMAT})
        return OK
    if asked.out:
        output.say(f"{_memories(count)} of {'every scope' if asked.every_scope else scope} written to {asked.out}")
    output.show_notices(tuple(notices))
    return OK


def _memories(count: int) -> str:
    return counted(count, "memory", "memories")
