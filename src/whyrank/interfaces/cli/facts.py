"""Facts from the command line: added one by one or line by line, and changed."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

from ...arguments import MAX_FACT_CHARACTERS
from ...engine import Engine
from ...errors import ConfigError
from ...facts import Added
from ...remembering import UNSAID
from ...types import Notice
from .. import fact_shapes, shapes
from ..failures import OK, PARTLY_READ
from . import output
from .verbs import open_existing, open_or_make, suggesting

STANDARD_INPUT = "-"
_NOTHING = "none"
_MOST_BYTES = 4 * MAX_FACT_CHARACTERS  # of one fact in UTF-8
_BYTES_FROM = 0xDC00  # where half characters stand for bytes (PEP 383)
_TOLD = {
    "known": "it was stored already",
    "merged": "the new fact was merged into this one, which says almost the same",
    "replacing": "it was stored already, and replaces the other now",
    "revived": "it lives again",
}


class Refused(NamedTuple):
    """A line that could not be stored, and why."""

    line: int
    reason: str


def add(asked: argparse.Namespace) -> int:
    """Store facts, each durable when it is named; a line that cannot be stored keeps no other from it."""
    from_input = asked.text == [STANDARD_INPUT]
    if from_input and (asked.supersedes or asked.name or asked.key):
        raise ConfigError("one name, key and replaced memory belong to one fact", "give the fact as an argument")
    fields = _fields(asked)
    refused: list[Refused] = []
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
        data = {"memories": [fact_shapes.added(done) for done in stored], "refused": [one._asdict() for one in refused]}
        output.say_json({**data, "notices": shapes.notices(waiting), "format": shapes.FORMAT})
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
            output.say_json(fact_shapes.changed(done, history, engine.replaced(memory.id, scope=asked.scope)))
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
    engine: Engine, asked: argparse.Namespace, fields: dict[str, Any], refused: list[Refused]
) -> Iterator[Added]:
    # Bytes that are no UTF-8 are refused with their line, not with all lines.
    for number, line in enumerate(_lines(), 1):
        if len(line) > _MOST_BYTES:
            refused.append(Refused(number, f"it has more than {MAX_FACT_CHARACTERS:,} characters, and is no fact"))
            continue
        text = line.decode("utf-8", errors="surrogateescape").strip()
        if not text:
            continue
        if (wrong := _undecoded(text)) is not None:
            refused.append(Refused(number, wrong))
            continue
        try:
            yield _added(engine, asked, text, fields)
        except ConfigError as error:
            refused.append(Refused(number, error.message))


def _lines() -> Iterator[bytes]:
    """Yield the lines of standard input; of one that is too long its beginning, so that no line fills the memory."""
    while line := sys.stdin.buffer.readline(_MOST_BYTES + 1):
        yield line
        while len(line) > _MOST_BYTES and not line.endswith(b"\n"):
            line = sys.stdin.buffer.readline(_MOST_BYTES + 1)


def _undecoded(text: str) -> str | None:
    """Say which byte of a line is no UTF-8, if one is; such bytes stand in the text as half characters."""
    byte = next((ord(letter) - _BYTES_FROM for letter in text if "\udc80" <= letter <= "\udcff"), None)
    return None if byte is None else f"it is no UTF-8 (byte 0x{byte:02x}); convert it, for instance with iconv"


def _added(engine: Engine, asked: argparse.Namespace, text: str, fields: dict[str, Any]) -> Added:
    return engine.remember(text, scope=asked.scope, supersedes=asked.supersedes, key=asked.key, **fields)


def _replaced(named: str | None) -> str | None:
    """Return what a fact shall replace, if that was said; `none` takes it back."""
    unsaid: str = UNSAID
    return unsaid if named is None else None if named == _NOTHING else named


def _fields(asked: argparse.Namespace) -> dict[str, Any]:
    """Return the fields that were named; `none` takes one back."""
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
