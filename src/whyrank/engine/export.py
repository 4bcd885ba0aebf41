"""Export and import of memories: each record is imported completely or skipped with a reason."""

from __future__ import annotations

import json
import math
import os
import tempfile
from contextlib import contextmanager
from dataclasses import fields, replace
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TextIO

from ..analysis.document import entry_for
from ..analysis.normalize import same_text
from ..errors import ConfigError
from ..evaluation.pins import Pin, from_line, to_line
from ..protocols import Changes, FileRecord, Store, Written
from ..search.searcher import altered_notices
from ..types.memory import GLOBAL, KINDS, TRUSTS, Former, Memory, MemoryId, Notice, Scope, Source
from ..types.query import Where
from .arguments import metadata_of
from .records import MOMENTS, as_change, exact_moment, lost_past, shown_in_part

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, MutableSequence, Sequence

    from ..evaluation.pins import Pinboard
    from ..ingest.embedding import Progress


FORMAT = 1
_PLAIN = (
    "id", "kind", "text", "name", "title", "slug", "owner", "summary", "category", "importance", "decay",
    "expires_given", "evergreen", "supersedes", "superseded_by", "trust", "session", "speaker", "position", "recalls",
    "subject", "attribute",
)  # fmt: skip
_LISTS = ("aliases", "headings", "tags", "entities")
_PLACE = ("path", "start_line", "end_line", "content_hash")
_FILE = ("size", "mtime_ns", "content_hash")
_DEFAULTS = {one.name: one.default for one in fields(Memory)}
_WHOLE_BITS = 63  # of a number that a store can keep


class Record(NamedTuple):
    """Export record of one memory: its history, the keys it was written with, the file it was read from.

    `replaces` holds ids of memories that a record of another system replaced, with the moment.
    """

    memory: Memory
    formers: Sequence[Former] = ()
    keys: Mapping[str, str] = {}  # fingerprints of the write requests, by key
    file: FileRecord | None = None
    replaces: Sequence[tuple[MemoryId, float]] = ()


# -- writing ---------------------------------------------------------------------------------------------------------


def as_record(one: Record) -> dict[str, Any]:
    """Return one memory with all its fields and its history; moments in ISO 8601, UTC, to the microsecond.

    What a store knows to a finer part of a second stands under `exact`, in seconds since 1970.
    """
    memory, formers, keys, file, _ = one
    place = memory.source or Source("")
    exact = _exact({name: getattr(memory, name) for name in MOMENTS})
    return {
        **{name: getattr(memory, name) for name in _PLAIN},
        **{name: list(getattr(memory, name)) for name in _LISTS},
        **{name: exact_moment(getattr(memory, name)) for name in MOMENTS},
        "scope": str(memory.scope),
        "path": place.path,
        "start_line": place.start_line,
        "end_line": place.end_line,
        "content_hash": place.content_hash,
        "metadata": memory.metadata,
        "history": [{**as_change(former), **_finer(former)} for former in formers],
        "format": FORMAT,
        **({"keys": dict(sorted(keys.items()))} if keys else {}),
        **({"file": {name: getattr(file, name) for name in _FILE}} if file is not None and _is_sound(file) else {}),
        **({"exact": exact} if exact else {}),
    }


def _is_sound(file: FileRecord) -> bool:
    """Check that a file record is undamaged; a damaged one is left out and written by the next ingest."""
    return _is_whole(file.size) and _is_whole(file.mtime_ns) and isinstance(file.content_hash, str)


def pin_record(pin: Pin, scope: str) -> dict[str, Any]:
    """Return the record of a pin, a line of its own: its memory may be of another scope, or missing."""
    return {"pin": json.loads(to_line(pin)), "scope": scope, "format": FORMAT}


def _finer(one: Former) -> dict[str, Any]:
    exact = _exact({"changed": one.changed, **{name: one.was[name] for name in MOMENTS if name in one.was}})
    return {"exact": exact} if exact else {}


def _exact(moments: Mapping[str, Any]) -> dict[str, float]:
    """Return the moments that ISO 8601 to the microsecond does not represent exactly."""
    numbers = {name: value for name, value in moments.items() if isinstance(value, float)}
    return {name: value for name, value in numbers.items() if _seconds(exact_moment(value)) != value}


def _seconds(moment: object) -> float | None:
    """Return the seconds since 1970 of what `exact_moment` has written."""
    if moment is None:
        return None
    if isinstance(moment, str):
        return datetime.fromisoformat(moment).timestamp()
    if isinstance(moment, bool) or not isinstance(moment, int | float) or math.isnan(moment):
        raise ValueError(f"{moment!r} is not a time")
    return float(moment)


# -- reading ---------------------------------------------------------------------------------------------------------


def read_line(line: str) -> Record | Pin:
    """Parse a line of an export; a line of anything else raises ValueError with the reason."""
    try:
        said = json.loads(line)
        line.encode("utf-8"), json.dumps(said, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        raise ValueError("it contains half a surrogate pair, which no file can hold") from None
    except (ValueError, RecursionError) as error:
        raise ValueError(f"it is not JSON: {error}") from error
    if not isinstance(said, dict) or not ("pin" in said or {"id", "text", "scope"} <= said.keys()):
        raise ValueError("it is not a line of an export: it has no id, text and scope")
    if said.get("format") != FORMAT:
        raise ValueError(f"it has format {said.get('format')!r}; this whyrank reads {FORMAT}")
    if "pin" in said:
        try:
            return from_line(json.dumps(said["pin"], ensure_ascii=False), "its pin")
        except ConfigError as error:
            raise ValueError(error.message) from error
    return _record(said)


def _record(said: Mapping[str, Any]) -> Record:
    exact = _section(said, "exact", dict)
    plain = {name: _plain(name, said.get(name, _DEFAULTS.get(name))) for name in _PLAIN}
    lists: dict[str, Any] = {name: tuple(_all_text(name, said.get(name, []))) for name in _LISTS}
    moments: dict[str, Any] = {
        name: _moment(name, exact.get(name, said.get(name, _DEFAULTS[name]))) for name in MOMENTS
    }
    if moments["created"] is None:
        raise ValueError("its created is missing")
    place: dict[str, Any] = {name: said.get(name, "" if name in ("path", "content_hash") else 0) for name in _PLACE}
    for name, value in place.items():
        _check(isinstance(value, str) if name in ("path", "content_hash") else _is_whole(value), name, value)
    source = Source(**place) if place["path"] or place["content_hash"] else None
    scope = Scope.parse(_text("scope", said["scope"]))
    metadata = _metadata(_section(said, "metadata", dict))
    memory = Memory(**plain, **lists, **moments, source=source, scope=scope, metadata=metadata)
    formers = tuple(_former(memory.id, one) for one in _section(said, "history", list))
    keys = {_text("key", key): _text("key", value) for key, value in _section(said, "keys", dict).items()}
    return Record(memory, formers, keys, _file(memory, said.get("file")))


def _metadata(value: Any) -> Mapping[str, Any]:
    try:
        return metadata_of(value)
    except ConfigError as error:
        raise ValueError(f"its metadata: {error.message}") from error


def _plain(name: str, value: Any) -> Any:
    if name in ("kind", "trust"):
        _check(value in (KINDS if name == "kind" else TRUSTS), name, value)
    elif name in ("expires_given", "evergreen"):
        _check(isinstance(value, bool), name, value)
    elif name in ("importance", "position", "recalls"):
        _check(_is_whole(value) or (value is None and name == "importance"), name, value)
    elif name in ("supersedes", "superseded_by"):
        _check(value is None or (isinstance(value, str) and value != ""), name, value)
    else:
        _check(isinstance(value, str) and (value != "" or name not in ("id", "text")), name, value)
    return value


def _former(identity: str, said: Any) -> Former:
    if not isinstance(said, dict):
        raise ValueError("a change in its history is not valid")
    exact, was = _section(said, "exact", dict), _section(said, "was", dict)
    dated = {name: _moment(name, exact.get(name, value)) if name in MOMENTS else value for name, value in was.items()}
    return Former(identity, _moment("changed", exact.get("changed", said.get("changed"))), dated)


def _file(memory: Memory, said: Any) -> FileRecord | None:
    if said is None:
        return None
    told: list[Any] = [said.get(name) if isinstance(said, dict) else None for name in _FILE]
    _check(_is_whole(told[0]) and _is_whole(told[1]) and isinstance(told[2], str), "file", said)
    _check(memory.source is not None, "file", said)
    return FileRecord((memory.source or Source("")).path, memory.scope, *told)


def _moment(name: str, value: Any) -> float | None:
    try:
        return _seconds(value)
    except (ValueError, OverflowError) as error:
        raise ValueError(f"its {name} is not a time: {value!r:.60}") from error


def _section(said: Mapping[str, Any], name: str, kind: Callable[[], Any]) -> Any:
    value = said.get(name, kind())
    _check(type(value) is kind, name, value)
    return value


def _all_text(name: str, values: Any) -> list[str]:
    _check(isinstance(values, list), name, values)
    return [_text(name, value) for value in values]


def _text(name: str, value: Any) -> str:
    _check(isinstance(value, str), name, value)
    text: str = value
    return text


def _is_whole(value: object) -> bool:
    return type(value) is int and value.bit_length() <= _WHOLE_BITS


def _check(is_right: bool, name: str, value: object) -> None:
    if not is_right:
        raise ValueError(f"its {name} cannot be {value!r:.60}")


class Exporter:
    """Reads all records of a store for an export, in one snapshot; damage goes to `notices`."""

    def __init__(self, store: Store, pinboard: Pinboard, clock: Callable[[], float]) -> None:
        self._store = store
        self._pinboard = pinboard
        self._clock = clock

    def records(
        self, owners: Sequence[Scope], is_all: bool, progress: Progress, notices: MutableSequence[Notice]
    ) -> Generator[dict[str, Any]]:
        """Yield all records of some scopes in one snapshot, and the pins of these scopes alone."""
        with self._store.reading():
            for owner in owners:
                yield from self._records(owner, progress, notices)
        try:
            pins = self._pinboard.pins(None)
        except ConfigError as error:
            notices.append(Notice("pins-unreadable", f"pins are not in the export: {error.message}; {error.hint}"))
            return
        for pin in pins:
            of = pin.scopes or (str(GLOBAL),)
            if is_all or of == (str(owners[0]),):
                yield pin_record(pin, " ".join(of))

    def _records(self, owner: Scope, progress: Progress, notices: MutableSequence[Notice]) -> Generator[dict[str, Any]]:
        only = frozenset({owner})
        where = Where(only, include_superseded=True, include_expired=True, now=self._clock())
        with self._store.reading():
            total, done, damaged, lost = self._store.statistics((), only).total, 0, 0, list[Former]()
            files, keys = self._store.manifest(owner), dict[MemoryId, dict[str, str]]()
            for key, written in self._store.keys(owner).items():
                keys.setdefault(written.memory, {})[key] = written.content
            altered = 0
            for part in _portions(self._store.each(where)):
                told = self._store.history([memory.id for memory in part], only)
                for memory in part:
                    is_of_file = memory.kind == "chunk" and memory.source is not None
                    file = files.get(memory.source.path) if memory.source is not None and is_of_file else None
                    past = told.get(memory.id, ())
                    yield as_record(Record(memory, past, keys.get(memory.id, {}), file))
                lost += (former for formers in told.values() for former in formers if not former.was)
                read = self._store.fetch([memory.id for memory in part], only)
                done, damaged, altered = done + len(part), damaged + len(read.mended), altered + len(read.altered)
                progress(done, max(total, done), "")  # what waits to be indexed is in no statistics
        if damaged:
            notices.append(shown_in_part(damaged))
        notices.extend((*altered_notices(altered), *lost_past(lost)))


def _portions(memories: Iterator[Memory]) -> Iterator[Sequence[Memory]]:
    part: list[Memory] = []
    for memory in memories:
        part.append(memory)
        if len(part) == _RECORDS_AT_ONCE:
            yield part
            part = []
    if part:
        yield part


# -- files -----------------------------------------------------------------------------------------------------------


def write_lines(out: TextIO, records: Iterable[Mapping[str, Any]]) -> int:
    """Write one record per line; return how many are memories."""
    count = 0
    for record in records:
        out.write(json.dumps(record, ensure_ascii=False) + "\n")
        count += "pin" not in record
    return count


@contextmanager
def written_whole(file: Path) -> Iterator[TextIO]:
    """Write a file to a temporary name, mode 0600, and rename it when it is complete."""
    file = file.resolve()  # a link stays one, and leads to what was written
    if file.exists() and not file.is_file():
        raise ConfigError(f"{file} is not a regular file", "name a file, or omit --out to write to standard output")
    try:
        number, fresh = tempfile.mkstemp(prefix=f".{file.name}.", dir=file.parent)
    except OSError as error:
        raise ConfigError(f"{file} cannot be written: {error.strerror}", "check the folder") from error
    try:
        with os.fdopen(number, "w", encoding="utf-8") as out:
            yield out
            out.flush()
            os.fsync(out.fileno())
        os.replace(fresh, file)
    except BaseException as error:
        Path(fresh).unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise ConfigError(f"{file} cannot be written: {error.strerror}", "nothing is in its place") from error
        raise


_RECORDS_AT_ONCE = 500
_PER_TRANSACTION = 256  # memories, so that a reader or another writer never waits long
_LONGEST_LINE = 32 * 1024 * 1024  # bytes: longer ones are no memory, and would be read into memory whole


class Item(NamedTuple):
    """Content of one line of a file, or of one place of another system; None and a reason if it cannot be read."""

    line: int | str
    holds: Record | Pin | None
    wrong: str = ""


class SkippedRecord(NamedTuple):
    """A line or place that was not imported, or only in part, with the reason."""

    line: int | str
    id: MemoryId
    reason: str


class Imported(NamedTuple):
    """Outcome of an import, or the predicted outcome of a dry run."""

    new: int = 0
    unchanged: int = 0
    pins: int = 0
    skipped: tuple[SkippedRecord, ...] = ()  # they can be read, and the store holds something else
    bad: tuple[SkippedRecord, ...] = ()  # they cannot be read
    scopes: frozenset[Scope] = frozenset()
    dry_run: bool = False


def exported_lines(file: Path) -> Iterator[Item]:
    """Read the lines of a file that `whyrank export` wrote."""
    return items_of_lines(file, lambda number, line: read_line(line))


def items_of_lines(file: Path, read: Callable[[int, str], Record | Pin | None]) -> Iterator[Item]:
    """Read a file line by line; a line for which `read` raises ValueError, or that is too long, gets its reason."""
    with file.open("rb") as lines:
        number = 0
        while line := lines.readline(_LONGEST_LINE):
            number += 1
            if len(line) == _LONGEST_LINE and not line.endswith(b"\n"):
                while (rest := lines.readline(_LONGEST_LINE)) and not rest.endswith(b"\n"):
                    continue
                yield Item(number, None, f"it is longer than {_LONGEST_LINE:,} bytes")
            elif line.strip():
                yield _item(number, line, read)


def _item(number: int, line: bytes, read: Callable[[int, str], Record | Pin | None]) -> Item:
    try:
        return Item(number, read(number, line.decode("utf-8")))
    except UnicodeDecodeError:
        return Item(number, None, "it is not UTF-8")
    except ValueError as error:
        return Item(number, None, str(error))


_DATABASE = b"SQLite format 3\0"  # how a backup begins
OTHERS = "`whyrank import --help` names those of other systems"
FORMATS: Mapping[str, Callable[[Path], Iterator[Item]]] = {"whyrank": exported_lines}


def items_in(format_name: str, file: Path) -> Iterator[Item]:
    """Read a file in a format by its name."""
    reader = FORMATS.get(format_name)
    if reader is None:
        raise ConfigError(
            f"there is no format {format_name!r} to import", f"the formats are {', '.join(FORMATS)}; {OTHERS}"
        )
    if not file.is_file():
        told = f"{file} is a folder" if file.is_dir() else f"there is no file {file}"
        raise ConfigError(told, "name a file that `whyrank export` wrote")
    with file.open("rb") as opened:
        begins = opened.read(len(_DATABASE))
    if begins == _DATABASE:
        raise ConfigError(f"{file} is a database, not an export", "`whyrank restore` reads a backup")
    return reader(file)


class Importer:
    """One import into a store: `write` stores a transaction's worth of changes, with vectors.

    Records of another system (no pinboard) are unchanged as long as the store holds their text under their id: what was
    updated since is the store's.
    """

    def __init__(
        self, store: Store, write: Callable[[Changes], None], pinboard: Pinboard | None, language: str, now: float
    ) -> None:
        self._store = store
        self._write = write
        self._pinboard = pinboard
        self._language = language
        self._now = now
        self._seen: set[MemoryId] = set()
        self._skipped: list[SkippedRecord] = []
        self._bad: list[SkippedRecord] = []
        self._files: dict[tuple[Scope, str], FileRecord] = {}
        self._incomplete: set[tuple[Scope, str]] = set()

    def run(self, items: Iterator[Item], scopes: frozenset[Scope], dry_run: bool, tick: Progress) -> Imported:
        """Import all valid records into a store that knows these scopes; a dry run writes nothing."""
        new = unchanged = 0
        pins: list[Pin] = []
        while batch := list(islice(items, _PER_TRANSACTION)):
            self._bad += [SkippedRecord(one.line, "", one.wrong) for one in batch if one.holds is None]
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
        pinned = self._take_pins(pins, dry_run) if pins else 0
        return Imported(new, unchanged, pinned, (*self._skipped,), (*self._bad,), scopes, dry_run)

    def _take_pins(self, pins: Sequence[Pin], dry_run: bool) -> int:
        assert self._pinboard is not None  # only exports of whyrank hold pins
        known = {pin.key for pin in self._pinboard.pins(None)}
        pinned = {pin.key: pin for pin in pins if pin.key not in known}
        if pinned and not dry_run:
            self._pinboard.take([*pinned.values()])
        return len(pinned)

    def _is_first(self, line: int | str, record: Record) -> bool:
        """Check that a memory id occurs for the first time in this file; a repetition is reported and skipped."""
        if record.memory.id in self._seen:
            self._skip(line, record, "the file holds it twice; the first one counts")
            return False
        self._seen.add(record.memory.id)
        if record.file is not None:
            self._files[record.file.scope, record.file.path] = record.file
        return True

    def _skip(self, line: int | str, record: Record, reason: str) -> None:
        self._skipped.append(SkippedRecord(line, record.memory.id, reason))
        if record.memory.source is not None:
            self._incomplete.add((record.memory.scope, record.memory.source.path))

    def _new_among(
        self, wanted: Sequence[tuple[int | str, Record]], scopes: frozenset[Scope]
    ) -> tuple[list[tuple[int | str, Record]], int]:
        """Return the records the store lacks, and the number it holds unchanged; differing ones are skipped."""
        known = self._store.get([record.memory.id for _, record in wanted], scopes)
        new: list[tuple[int | str, Record]] = []
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
            elif not self._is_same(held, memory):
                self._skip(line, record, "the store holds it already, with other content, which stays")
            else:
                unchanged += 1
        return new, unchanged

    def _is_same(self, held: Memory, memory: Memory) -> bool:
        if self._pinboard is None:
            return same_text(held.text) == same_text(memory.text)
        return _unrecalled(held) == _unrecalled(memory)

    def _twin(self, memory: Memory) -> Memory | None:
        """Return a living fact of the store, but not of this file, with the text of a living fact of the file."""
        where = Where(frozenset({memory.scope}), now=self._now)
        if memory.kind != "fact" or not where.allows(memory):
            return None
        same = self._store.with_text(memory.text, memory.scope)
        # An id that the file names too is no twin, except that other systems name theirs by the text alone.
        seen: Collection[MemoryId] = () if self._pinboard is None else self._seen
        return next((one for one in same if one.id not in seen and where.allows(one)), None)

    def _changes(self, taken: Sequence[tuple[int | str, Record]]) -> Changes:
        replaced = {
            one.memory.id: (one.memory.superseded_by, one.memory.superseded_at or 0.0)
            for _, one in taken
            if one.memory.superseded_by is not None
        }
        if any(one.replaces for _, one in taken):
            replaced |= self._replaced([one for _, one in taken])
        return Changes(
            put=[entry_for(one.memory, self._language) for _, one in taken],
            superseded=replaced,
            history=[former for _, one in taken for former in one.formers],
            keys=dict(self._keys(taken)),
        )

    def _replaced(self, taken: Sequence[Record]) -> dict[MemoryId, tuple[MemoryId, float]]:
        """Return what records of another system replace: memories that live here, or come with them."""
        said = {old: (one.memory.id, moment) for one in taken for old, moment in one.replaces}
        held = self._store.get([*said], frozenset(one.memory.scope for one in taken))
        living = {identity for identity, memory in held.items() if memory.superseded_by is None}
        living |= {one.memory.id for one in taken}
        return {old: successor for old, successor in said.items() if old in living}

    def _keys(self, taken: Sequence[tuple[int | str, Record]]) -> Iterator[tuple[tuple[Scope, str], Written]]:
        for line, (memory, _, keys, *_) in taken:
            for key, content in keys.items():
                known = self._store.written(memory.scope, key)
                if known is None:
                    yield (memory.scope, key), Written(memory.id, content)
                else:
                    reason = f"it was imported without its key {key!r}, which belongs to {known.memory}"
                    self._skipped.append(SkippedRecord(line, memory.id, reason))

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
