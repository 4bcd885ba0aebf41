"""Verbs that carry a whole store, or all its memories, elsewhere and back."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from ...errors import ConfigError
from ...imports import Skipped
from ...opening import check_backup, count_memories
from ...opening import restore as restored_into
from ...wording import counted
from .. import shapes
from ..failures import OK, PARTLY_READ
from . import output
from .verbs import open_existing, settings_of, writable

_YES = "yes"
_LINES_SHOWN = 20


def backup(asked: argparse.Namespace) -> int:
    """Copy the store into one verified file."""
    with open_existing(asked) as engine, output.progress("backup", quiet=asked.json) as tick:
        made = engine.backup(asked.file, progress=tick)
    if asked.json:
        data = {**made._asdict(), "created": shapes.moment(made.created)}
        output.say_json({**data, "format": shapes.FORMAT})
    else:
        output.say(f"{_memories(made.memories)} written to {asked.file} ({made.bytes:,} bytes, verified)")
    return OK


def restore(asked: argparse.Namespace) -> int:
    """Replace what the store holds by the content of a backup."""
    store = settings_of(asked).store
    if not asked.yes:
        check_backup(asked.file, store)
        _confirm(asked, str(store), count_memories(store))
    with output.progress("restore", quiet=asked.json) as tick:
        done = restored_into(asked.file, asked.store, workspace=asked.workspace, keep=not asked.no_keep, progress=tick)
    if asked.json:
        data = {"restored": done.memories, "file": asked.file, "created": shapes.moment(done.created)}
        output.say_json({**data, "schema": done.schema, "kept": done.kept or None, "format": shapes.FORMAT})
        return OK
    since = f" of {shapes.moment(done.created)}" if done.created else ""
    output.say(f"{_memories(done.memories)} restored from {asked.file}{since}")
    if done.kept:
        output.say(f"the store as it was is kept as {done.kept}; delete it when nothing is missing")
    return OK


def _confirm(asked: argparse.Namespace, store: str, held: int | None) -> None:
    """Ask before memories are replaced, where there is somebody to answer."""
    if held == 0:
        return
    what = f"this replaces {'everything' if held is None else _memories(held)} in {store}"
    if asked.json or not sys.stdin.isatty():
        raise ConfigError(what, "say --yes if that is meant")
    output.complain(f"{what[0].upper()}{what[1:]}. Type {_YES} to go on:")
    if sys.stdin.readline().strip() != _YES:
        raise ConfigError(f"that was not {_YES}", "nothing was changed")


def import_memories(asked: argparse.Namespace) -> int:
    """Take in the memories of a file."""
    with writable(asked) as engine, output.progress("import", quiet=asked.json) as tick:
        done = engine.import_from(asked.format, asked.path, dry_run=asked.dry_run, progress=tick)
    if asked.json:
        data = {"new": done.new, "unchanged": done.unchanged, "pins": done.pins}
        lists = {name: [one._asdict() for one in getattr(done, name)] for name in ("skipped", "bad")}
        output.say_json({**data, **lists, "dry_run": done.dry_run, "format": shapes.FORMAT})
    else:
        would = "would be " if done.dry_run else ""
        output.say(f"{_memories(done.new)} {would}imported, {done.unchanged:,} unchanged")
        if done.pins:
            output.say(f"{counted(done.pins, 'pin')} {would}imported")
        for what, lines in (("skipped", done.skipped), ("could not read", done.bad)):
            _complain(what, lines)
    return PARTLY_READ.exit_status if done.bad else OK


def _complain(what: str, lines: Sequence[Skipped]) -> None:
    """Name the first of some lines and why they were left out, and count the others."""
    for line, identity, reason in lines[:_LINES_SHOWN]:
        output.complain(f"{what} line {line:,}{f' ({identity})' if identity else ''}: {reason}")
    if len(lines) > _LINES_SHOWN:
        output.complain(f"{what} {len(lines) - _LINES_SHOWN:,} more lines (--json names all of them)")


def _memories(count: int) -> str:
    return counted(count, "memory", "memories")
