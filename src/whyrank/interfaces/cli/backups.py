"""Verbs that carry a whole store, or all its memories, elsewhere and back."""

from __future__ import annotations

import argparse
import sys

from ...errors import ConfigError
from ...opening import count_memories
from ...opening import restore as restored_into
from ...wording import counted
from .. import shapes
from ..failures import OK
from . import output
from .verbs import open_existing, settings_of

_YES = "yes"


def backup(asked: argparse.Namespace) -> int:
    """Copy the store into one verified file."""
    with open_existing(asked) as engine, output.progress("backup", quiet=asked.json) as tick:
        made = engine.backup(asked.file, progress=tick)
    if asked.json:
        data = {**made._asdict(), "created": shapes.moment(made.created)}
        output.say_json({**data, "format": shapes.FORMAT})
    else:
        output.say(f"{_memories(made.memories)} written to {made.path} ({made.bytes:,} bytes, verified)")
    return OK


def restore(asked: argparse.Namespace) -> int:
    """Replace what the store holds by the content of a backup."""
    store = settings_of(asked).store
    if not asked.yes:
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


def _memories(count: int) -> str:
    return counted(count, "memory", "memories")
