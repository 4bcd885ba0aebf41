"""`whyrank doctor`, `backup`, `restore` and `import`."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...engine.export import SkippedRecord
from ...engine.open import check_backup, count_memories
from ...engine.open import doctor as looked_after
from ...engine.open import restore as restored_into
from ...errors import ConfigError, StoreDamaged, StoreError
from ...formatting import counted, on_one_line
from ...ingest.entries import READER_VERSION
from .. import serialize
from ..errors import OK, PARTLY_READ, WAITING, failure_of
from . import output
from .search import open_existing, open_or_make, settings_of, writable

if TYPE_CHECKING:
    from ...storage.sqlite.check import Checkup, Finding

_EARLIER = "read by an earlier whyrank"


def doctor(asked: argparse.Namespace) -> int:
    """Check the file, the words and the vectors of a store; with `--repair`, repair them."""
    place = settings_of(asked).store
    if not os.path.lexists(place):
        raise StoreError(f"there is no store at {place}", "`whyrank ingest PATH` makes one; --store names another")
    if not place.is_file():
        open_or_make(asked).close()  # opening it reports what it is instead
    if asked.give_up:
        return _give_up(asked)
    with output.progress("repairing" if asked.repair else "looking", quiet=asked.json) as tick:
        found = looked_after(
            asked.store,
            workspace=asked.workspace,
            repair=asked.repair,
            deep=asked.deep,
            progress=tick,
            embedding=asked.embedding,
        )
    (_say_json if asked.json else _say)(asked, found)
    if not found.is_sound:
        return failure_of(StoreDamaged("")).exit_status
    return OK if found.is_whole else WAITING.exit_status


def _give_up(asked: argparse.Namespace) -> int:
    """Delete the damaged memories that were set aside, and print their ids for the last time."""
    with open_or_make(asked) as engine:
        gone = engine.give_up_damaged()
    if asked.json:
        output.say_json({"given_up": list(gone), "format": serialize.FORMAT})
    else:
        output.say(f"gave up {counted(len(gone), 'damaged memory', 'damaged memories')}")
        for identity in gone:
            output.say(f"  {identity}")
    return OK


def _say_json(asked: argparse.Namespace, found: Checkup) -> None:
    damage = [{**finding._asdict(), "names": list(finding.names)} for finding in found.findings]
    told: dict[str, Any] = {
        "file": {"sound": found.is_sound, "findings": damage, "kept": found.kept or None},
        "free_bytes": found.free_bytes,
        "words": None,
        "vectors": None,
        "compared": None if found.compared is None else found.compared._asdict(),
        "notices": [],
        "format": serialize.FORMAT,
    }
    if found.looked_inside:
        with open_or_make(asked) as engine:
            behind, notices = engine.backlog(), (*engine.word_notices(), *engine.vector_notices())
        told["words"] = {"reader": READER_VERSION, "old": found.old_words, "read_anew": found.read_anew}
        told["vectors"] = {
            **serialize.backlog(behind),
            "earlier": found.has_earlier_vectors,
            "embedded": found.embedded,
        }
        told["notices"] = serialize.notices(notices)
    output.say_json(told)


def _say(asked: argparse.Namespace, found: Checkup) -> None:
    _say_file([finding for finding in found.findings if finding.code != "disk"], found.kept)
    _say_disk(found)
    if found.compared is not None:
        done = found.compared
        output.say(
            f"compared anew in {done.seconds:.1f} s: {counted(done.memories, 'memory', 'memories')}, "
            f"{counted(done.words, 'word')}, {counted(done.segments, 'segment')}, {counted(done.vectors, 'vector')}"
        )
    if not found.looked_inside:
        return
    with open_or_make(asked) as engine:
        behind, notices = engine.backlog(), (*engine.word_notices(), *engine.vector_notices())
    if asked.repair:
        read = counted(found.read_anew, "memory was", "memories were")
        output.say(f"{read} read anew, {counted(found.embedded, 'text was', 'texts were')} embedded")
    old = found.old_words
    output.say("words: in order" if not old else f"words: {counted(old, 'memory was', 'memories were')} {_EARLIER}")
    if found.has_earlier_vectors:
        output.say("vectors: as an earlier whyrank made them; they go on answering")
    elif not behind.waiting:
        output.say("vectors: in order")
    output.show_backlog(behind)
    output.show_notices(notices)


def _say_disk(found: Checkup) -> None:
    """Print low disk space of the store, with a hint; `status` prints the amount."""
    for finding in found.findings:
        if finding.code == "disk":
            output.say(on_one_line(f"disk: {finding.message} ({finding.hint})"))


def _say_file(findings: Sequence[Finding], kept: str) -> None:
    """Print the damage of the file, one finding per line, with a hint."""
    if not findings:
        output.say("file: in order")
        return
    left = [finding for finding in findings if not finding.mended]
    output.say("file: damaged" if left else "file: mended")
    for finding in findings:
        what_next = "mended" if finding.mended else finding.hint
        output.say(on_one_line(f"  {finding.code}: {finding.message}" + (f" ({what_next})" if what_next else "")))
    if kept:
        output.say(f"the store as it was is kept as {kept}; delete it when nothing is missing")


_YES = "yes"
_LINES_SHOWN = 20


def backup(asked: argparse.Namespace) -> int:
    """Copy the store into one verified file."""
    with open_existing(asked) as engine, output.progress("backup", quiet=asked.json) as tick:
        made = engine.backup(asked.file, progress=tick)
    if asked.json:
        data = {**made._asdict(), "created": serialize.moment(made.created)}
        output.say_json({**data, "format": serialize.FORMAT})
    else:
        output.say(f"{_memories(made.memories)} written to {asked.file} ({made.bytes:,} bytes, verified)")
    return OK


def restore(asked: argparse.Namespace) -> int:
    """Replace the content of the store by that of a backup."""
    store = settings_of(asked).store
    if not asked.yes:
        check_backup(asked.file, store)
        _confirm(asked, str(store), count_memories(store))
    with output.progress("restore", quiet=asked.json) as tick:
        done = restored_into(asked.file, asked.store, workspace=asked.workspace, keep=not asked.no_keep, progress=tick)
    if asked.json:
        data = {"restored": done.memories, "file": asked.file, "created": serialize.moment(done.created)}
        output.say_json({**data, "schema": done.schema, "kept": done.kept or None, "format": serialize.FORMAT})
        return OK
    since = f" of {serialize.moment(done.created)}" if done.created else ""
    output.say(f"{_memories(done.memories)} restored from {asked.file}{since}")
    if done.kept:
        output.say(f"the store as it was is kept as {done.kept}; delete it when nothing is missing")
    return OK


def _confirm(asked: argparse.Namespace, store: str, held: int | None) -> None:
    """Ask for confirmation before memories are replaced; without a terminal, require --yes."""
    if held == 0:
        return
    what = f"this replaces {'everything' if held is None else _memories(held)} in {store}"
    if asked.json or not sys.stdin.isatty():
        raise ConfigError(what, "say --yes if that is meant")
    output.complain(f"{what[0].upper()}{what[1:]}. Type {_YES} to go on:")
    if sys.stdin.readline().strip() != _YES:
        raise ConfigError(f"that was not {_YES}", "nothing was changed")


def import_memories(asked: argparse.Namespace) -> int:
    """Import the memories of a file."""
    with writable(asked) as engine, output.progress("import", quiet=asked.json) as tick:
        done = engine.import_from(asked.format, asked.path, dry_run=asked.dry_run, progress=tick)
    if asked.json:
        data = {"new": done.new, "unchanged": done.unchanged, "pins": done.pins}
        lists = {name: [one._asdict() for one in getattr(done, name)] for name in ("skipped", "bad")}
        output.say_json({**data, **lists, "dry_run": done.dry_run, "format": serialize.FORMAT})
    else:
        would = "would be " if done.dry_run else ""
        output.say(f"{_memories(done.new)} {would}imported, {done.unchanged:,} unchanged")
        if done.pins:
            output.say(f"{counted(done.pins, 'pin')} {would}imported")
        for what, lines in (("skipped", done.skipped), ("could not read", done.bad)):
            _complain(what, lines)
    return PARTLY_READ.exit_status if done.bad else OK


def _complain(what: str, lines: Sequence[SkippedRecord]) -> None:
    """Print the first skipped or unreadable lines with their reason, and count the others."""
    for line, identity, reason in lines[:_LINES_SHOWN]:
        output.complain(f"{what} line {line:,}{f' ({identity})' if identity else ''}: {reason}")
    if len(lines) > _LINES_SHOWN:
        output.complain(f"{what} {len(lines) - _LINES_SHOWN:,} more lines (--json names all of them)")


def _memories(count: int) -> str:
    return counted(count, "memory", "memories")
