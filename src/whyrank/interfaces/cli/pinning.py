"""`whyrank pin` and `whyrank check`: good answers recorded once, and looked after."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from ...errors import ConfigError
from ...wording import counted, on_one_line
from .. import shapes
from ..failures import OK, PINS_LOST
from . import output
from .typed import name_of
from .verbs import open_existing, suggesting

if TYPE_CHECKING:
    from ...evaluation.pinboard import Checkup
    from ...evaluation.pins import Pin


def pin(asked: argparse.Namespace) -> int:
    """Record, list or remove pins."""
    _check_typed(asked)
    with open_existing(asked) as engine:
        wanted = name_of(engine, asked.id, asked.scope)
        if asked.list:
            pins = engine.pins(scope=asked.scope, all_scopes=asked.all_scopes)
        elif asked.remove:
            pins = engine.unpin(asked.query, wanted, scope=asked.scope, all_scopes=asked.all_scopes)
        else:
            with suggesting(engine, asked, wanted):
                pins = [engine.pin(asked.query, wanted, scope=asked.scope, within=asked.within, recipe=asked.recipe)]
        file = engine.config.pins
    if asked.json:
        output.say_json({"pins": [shapes.pin(held) for held in pins], "file": str(file), "format": shapes.FORMAT})
        return OK
    done = "" if asked.list else "removed: " if asked.remove else "pinned: "
    for held in pins:
        output.say(done + _told(held))
    output.say(output.dim(f"{counted(len(pins), 'pin')} in {file}" if asked.list else f"written to {file}"))
    return OK


def _check_typed(asked: argparse.Namespace) -> None:
    if asked.list and asked.query is not None:
        raise ConfigError("--list takes no query", "`whyrank pin --list` prints all pins")
    if not asked.list and asked.query is None:
        raise ConfigError(
            "no query was given", "`whyrank pin QUERY ID` records a pin, `whyrank pin --list` prints them"
        )
    if not asked.list and not asked.remove and asked.id is None:
        raise ConfigError("no memory was named", "give its id or its path after the query; `whyrank search` shows both")


def _told(held: Pin) -> str:
    whose = f"  {output.dim(', '.join(held.scopes))}" if held.scopes else ""
    return f"{held.query!r} → {on_one_line(held.place)}  {output.dim(f'within {held.within}')}{whose}"


def check(asked: argparse.Namespace) -> int:
    """Ask every pinned query again."""
    with open_existing(asked) as engine, output.progress("check", quiet=asked.json) as tick:
        done = engine.check(scope=asked.scope, all_scopes=asked.all_scopes, recipe=asked.recipe, progress=tick)
    if asked.json:
        output.say_json(shapes.checkup(done))
    else:
        _say(done)
    return PINS_LOST.exit_status if done.count("lost") else OK


def _say(done: Checkup) -> None:
    for one in done.checked:
        if one.status == "kept":
            continue
        place = f", at {output.place(one.memory)}" if one.memory is not None else ""
        output.say(f"{output.bold(one.status)}  {_told(one.pin)}")
        output.say(f"       {one.why}{place}" + (f", result {one.rank}" if one.status == "moved" else ""))
    output.say(str(done))
