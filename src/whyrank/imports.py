"""Memories from files of other stores: each taken whole or skipped with a reason, in short transactions.

An import changes nothing that is there. A memory that the store holds already, to the letter, is counted as unchanged:
so a second import changes nothing, and one that was killed goes on when it is called again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from .analysis.entries import entry_for
from .columns import MemoryId
from .errors import ConfigError
from .evaluation.pins import Pin
from .exporting import Record, read_line
from .ports import Changes, FileRecord, Store, Written
from .types import Memory, Scope, Where

if TYPE_CHECKING:
    from .evaluation.pinboard import Pinboard
    from .ingest.filling import Progress

_PER_TRANSACTION = 256  # memories, so that a reader or another writer never waits long
_LONGEST_LINE = 32 * 1024 * 1024  # bytes: longer ones are no memory, and would be read into memory whole


class Item(NamedTuple):
    """What stands on one line of a file; nothing and a reason if it cannot be read."""

    line: int
    holds: Record | Pin | None
    wrong: str = ""


class Skipped(NamedTuple):
    """A line that was not taken, or not all of it, and why."""

    line: int
    id: MemoryId
    reason: str


class Imported(NamedTuple):
    """What came of an import, or of a dry run what would."""

    new: int = 0
    unchanged: int = 0
    pins: int = 0
    skipped: tuple[Skipped, ...] = ()  # they can be read, and the store holds something else
    bad: tuple[Skipped, ...] = ()  # they cannot be read
    scopes: frozenset[Scope] = frozenset()
    dry_run: bool = False


def exported_lines(file: Path) -> Iterator[Item]:
    """Read what `whyrank export` has written."""
    with file.open("rb") as lines:
        number = 0
        while line := lines.readline(_LONGEST_LINE):
            number += 1
            if len(line) == _LONGEST_LINE and not line.endswith(b"\n"):
                while (rest := lines.readline(_LONGEST_LINE)) and not rest.endswith(b"\n"):
                    continue
                yield Item(number, None, f"it is longer than {_LONGEST_LINE:,} bytes")
            elif line.strip():
                yield _item(number, line)


def _item(number: int, line: bytes) -> Item:
    try:
        return Item(number, read_line(line.decode("utf-8")))
    except UnicodeDecodeError:
        return Item(number, None, "it is no UTF-8")
    except ValueError as error:
        return Item(number, None, str(error))


_DATABASE = b"SQLite format 3\0"  # how a backup begins
FORMATS: Mapping[str, Callable[[Path], Iterator[Item]]] = {"whyrank": exported_lines}


def items_in(format_name: str, file: Path) -> Iterator[Item]:
    """Read a file in a format by its name."""
    reader = FORMATS.get(format_name)
    if reader is None:
        raise ConfigError(f"there is no format {format_name!r} to import", f"the formats are {', '.join(FORMATS)}")
    if not file.is_file():
        told = f"{file} is a folder" if file.is_dir() else f"there is no file {file}"
        raise ConfigError(told, "name a file that `whyrank export` wrote")
    with file.open("rb") as opened:
        begins = opened.read(len(_DATABASE))
    if begins == _DATABASE:
        raise ConfigError(f"{file} is a database, not an export", "`whyrank restore` takes a backup back")
    return reader(file)


class Importer:
    """One import into a store: `write` stores a transaction's worth of changes, with vectors."""

    def __init__(
        self, store: Store, write: Callable[[Changes], None], pinboard: Pinboard, language: str, now: float
    ) -> None:
        self._store = store
        self._write = write
        self._pinboard = pinboard
        self._language = language
        self._now = now
        self._seen: set[MemoryId] = set()
        self._skipped: list[Skipped] = []
        self._bad: list[Skipped] = []
        self._files: dict[tuple[Scope, str], FileRecord] = {}
        self._incomplete: set[tuple[Scope, str]] = set()

    def run(self, items: Iterator[Item], scopes: frozenset[Scope], dry_run: bool, tick: Progress) -> Imported:
        """Take all that can be taken into a store that knows these scopes; a dry run writes nothing."""
        new = unchanged = 0
        pins: list[Pin] = []
        while batch := list(islice(items, _PER_TRANSACTION)):
            self._bad += [Skipped(one.line, "", one.wrong) for one in batch if one.holds is None]
            pins += [one.holds for one in batch if isinstance(one.holds, Pin)]
            records = [(one.line, one.holds) for one in batch if isinstance(one.holds, Record)]
            scopes |= {record.memory.scope for _, record in records}
            taken, same = self._new_among([pair for pair in records if self._is_first(*pair)], scopes)
            unchanged += same
            if taken and not dry_run:
                self._write(self._changes(taken))
            new += len(taken)
            tick(new + unchanged, 0, "")
        if not dry_run:
            self._write_files()
        known = {pin.key for pin in self._pinboard.pins(None)} if pins else set()
        pinned = {pin.key: pin for pin in pins if pin.key not in known}
        if pinned and not dry_run:
            self._pinboard.take([*pinned.values()])
        return Imported(new, unchanged, len(pinned), (*self._skipped,), (*self._bad,), scopes, dry_run)

    def _is_first(self, line: int, record: Record) -> bool:
        """Tell whether a memory was not met in this file before; the second of two is named and left out."""
        if record.memory.id in self._seen:
            self._skip(line, record, "the file holds it twice; the first one counts")
            return False
        self._seen.add(record.memory.id)
        if record.file is not None:
            self._files[record.file.scope, record.file.path] = record.file
        return True

    def _skip(self, line: int, record: Record, reason: str) -> None:
        self._skipped.append(Skipped(line, record.memory.id, reason))
        if record.memory.source is not None:
            self._incomplete.add((record.memory.scope, record.memory.source.path))

    def _new_among(
        self, wanted: Sequence[tuple[int, Record]], scopes: frozenset[Scope]
    ) -> tuple[list[tuple[int, Record]], int]:
        """Return what the store lacks, and how much it holds to the letter; what it holds otherwise is left out."""
        known = self._store.get([record.memory.id for _, record in wanted], scopes)
        new: list[tuple[int, Record]] = []
        unchanged = 0
        for line, record in wanted:
            memory, held = record.memory, known.get(record.memory.id)
            if held is None:
                twin = self._twin(memory)
                if twin is None:
                    new.append((line, record))
                else:
                    self._skip(line, record, f"{twin.id} says the same already")
            elif held.scope != memory.scope:
                self._skip(line, record, f"its id belongs to {held.scope}")
            elif _unrecalled(held) != _unrecalled(memory):
                self._skip(line, record, "the store holds it already, with other content, which stays")
            else:
                unchanged += 1
        return new, unchanged

    def _twin(self, memory: Memory) -> Memory | None:
        """Return a living fact of the store, not of this file, that says what a living fact of the file says."""
        where = Where(frozenset({memory.scope}), now=self._now)
        if memory.kind != "fact" or not where.allows(memory):
            return None
        same = self._store.with_text(memory.text, memory.scope)
        return next((one for one in same if one.id not in self._seen and where.allows(one)), None)

    def _changes(self, taken: Sequence[tuple[int, Record]]) -> Changes:
        replaced = {
            one.memory.id: (one.memory.superseded_by, one.memory.superseded_at or 0.0)
            for _, one in taken
            if one.memory.superseded_by is not None
        }
        return Changes(
            put=[entry_for(one.memory, self._language) for _, one in taken],
            superseded=replaced,
            history=[former for _, one in taken for former in one.formers],
            keys=dict(self._keys(taken)),
        )

    def _keys(self, taken: Sequence[tuple[int, Record]]) -> Iterator[tuple[tuple[Scope, str], Written]]:
        for line, (memory, _, keys, _) in taken:
            for key, content in keys.items():
                known = self._store.written(memory.scope, key)
                if known is None:
                    yield (memory.scope, key), Written(memory.id, content)
                else:
                    reason = f"it was imported without its key {key!r}, which belongs to {known.memory}"
                    self._skipped.append(Skipped(line, memory.id, reason))

    def _write_files(self) -> None:
        """Write the manifest of files whose chunks are all there, so that an ingest knows them as read."""
        known = {scope: self._store.manifest(scope) for scope, _ in self._files}
        files = [
            file
            for (scope, path), file in self._files.items()
            if path not in known[scope] and (scope, path) not in self._incomplete
        ]
        if files:
            self._store.write(Changes(files=files))


def _unrecalled(memory: Memory) -> Memory:
    """Return a memory apart from how often it was recalled, which each store counts for itself."""
    return replace(memory, recalls=0, recalled=None)
