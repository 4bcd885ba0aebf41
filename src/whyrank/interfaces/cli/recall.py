"""Verb for recalls: what an agent should be reminded of now, and the log of it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from ...engine.recall_log import RecallLog, log_file
from ...errors import ConfigError
from ...formatting import counted, on_one_line
from .. import serialize
from ..errors import OK
from . import output
from .search import open_existing

if TYPE_CHECKING:
    import argparse

    from ...engine.recall_log import RecallEntry

_STANDARD_INPUT = ["-"]
_MOST_INPUT = 1_048_576  # characters of a turn
_SHOWN = 70  # characters of a turn in the log


def recall(asked: argparse.Namespace) -> int:
    """Print what a turn should be reminded of, or nothing; or the log."""
    if asked.log:
        return _show_log(asked)
    if asked.limit is not None:
        raise ConfigError("--limit is for --log", "--max-tokens bounds what is recalled; see also recall.limit")
    if not asked.text:
        raise ConfigError("there is no turn to recall for", "give it as text, or - to read it from standard input")
    turn = sys.stdin.read(_MOST_INPUT) if asked.text == _STANDARD_INPUT else " ".join(asked.text)
    with open_existing(asked) as engine:
        reminder = engine.recall(turn, budget=asked.max_tokens, scope=asked.scope, session=asked.session)
    if asked.json:
        output.say_json(serialize.reminder(reminder))
        return OK
    if reminder:
        print(reminder.text)  # its hidden characters are visible
    else:
        output.complain(f"nothing to recall: {reminder.reason}")
    output.show_notices(reminder.notices)
    return OK


def _show_log(asked: argparse.Namespace) -> int:
    """Print the latest recalls; without a store there may be failures of hooks."""
    if asked.text:
        raise ConfigError("--log takes no turn", "leave out one of them")
    limit = 20 if asked.limit is None else asked.limit
    if limit < 1:
        raise ConfigError(f"--limit is {limit}", "give 1 or more")
    log = RecallLog(log_file(output.settings_of(asked)))
    entries = [one for one in log.entries() if not one.is_reset and (not asked.session or one.session == asked.session)]
    latest = entries[: -limit - 1 : -1]
    if asked.json:
        output.say_json({"recalls": [serialize.recall_entry(one) for one in latest], "file": str(log.file)})
        return OK
    for entry in latest:
        _show(entry)
    if not latest:
        output.complain(f"notice: there are no recalls in {log.file}")
    return OK


def _show(entry: RecallEntry) -> None:
    origin = " · ".join(part for part in (entry.host, entry.session and f"session {entry.session}") if part)
    about = f"{serialize.moment(entry.time)}  {origin}  {entry.milliseconds:.0f} ms"
    output.say(f"{output.bold(entry.id or '–')}  {output.dim(on_one_line(about))}")
    if entry.query:
        shown = " ".join(entry.query.split())
        output.say(f"    “{shown[:_SHOWN]}{'…' if len(shown) > _SHOWN else ''}”")
    if entry.given:
        tokens = f"{counted(entry.tokens, 'token')} of {entry.budget}"
        output.say(f"    given ({entry.verdict}, {tokens}):")
        for one in entry.given:
            output.say(f"      {on_one_line(one.citation)}  {output.dim(f'{one.confidence:.0%} confident')}")
    else:
        output.say(f"    nothing: {on_one_line(entry.reason)}")
