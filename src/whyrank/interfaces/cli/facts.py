"""Facts from the command line: added one by one or line by line, forgotten by their exact ids."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from typing import NamedTuple

from ...engine import Engine
from ...errors import ConfigError
from ...types import Memory
from .. import shapes
from ..failures import OK, PARTLY_READ
from . import output
from .verbs import open_existing, open_or_make

STANDARD_INPUT = "-"


class Refused(NamedTuple):
    """A line that could not be stored, and why."""

    line: int
    reason: str


def add(asked: argparse.Namespace) -> int:
    """Store facts, each durable when it is named; a line that cannot be stored keeps no other from it."""
    from_input = asked.text == [STANDARD_INPUT]
    if from_input and (asked.supersedes or asked.name):
        raise ConfigError("one name and one replaced memory belong to one fact", "give the fact as an argument")
    refused: list[Refused] = []
    stored: list[Memory] = []
    with open_or_make(asked) as engine:
        for memory in _from_lines(engine, asked, refused) if from_input else [_added(engine, asked, _text(asked))]:
            stored.append(memory)
            if not asked.json:
                output.say(f"{memory.id}  {memory.text}")
        waiting = engine.waiting_notices()
    for line, reason in refused:
        output.complain(f"line {line} was not stored: {reason}")
    if asked.json:
        data = {"memories": [shapes.memory(memory) for memory in stored], "refused": [one._asdict() for one in refused]}
        output.say_json({**data, "notices": shapes.notices(waiting), "format": shapes.FORMAT})
    output.show_notices(() if asked.json else waiting)
    return PARTLY_READ.exit_status if refused else OK


def forget(asked: argparse.Namespace) -> int:
    """Remove memories by their exact ids; if one of them is not there, all stay."""
    with open_existing(asked) as engine:
        ids = list(dict.fromkeys(asked.id))
        for identity in ids:
            engine.get(identity, scope=asked.scope)
        for identity in ids:
            engine.forget(identity, scope=asked.scope)
    if asked.json:
        output.say_json({"forgotten": ids, "format": shapes.FORMAT})
    else:
        output.say("\n".join(f"forgot {identity}" for identity in ids))
    return OK


def _text(asked: argparse.Namespace) -> str:
    return " ".join(asked.text)


def _from_lines(engine: Engine, asked: argparse.Namespace, refused: list[Refused]) -> Iterator[Memory]:
    # Bytes that are no UTF-8 are refused with their line, not with all lines.
    for number, line in enumerate(sys.stdin.buffer, 1):
        text = line.decode("utf-8", errors="surrogateescape").strip()
        if not text:
            continue
        try:
            yield _added(engine, asked, text)
        except ConfigError as error:
            refused.append(Refused(number, error.message))


def _added(engine: Engine, asked: argparse.Namespace, text: str) -> Memory:
    return engine.add(
        text,
        scope=asked.scope,
        name=asked.name,
        category=asked.category,
        tags=asked.tag,
        importance=asked.importance,
        date=asked.date,
        expires=asked.expires,
        supersedes=asked.supersedes,
    )
