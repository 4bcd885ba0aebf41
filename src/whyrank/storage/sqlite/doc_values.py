"""Doc values: the per-memory columns that a search needs for every memory without reading its row.

In the file they are records of fixed size, in blocks by scope; in memory they are arrays by scope, which grow without
being copied and are renewed where the file has changed.
"""

from __future__ import annotations

import json
import threading
from bisect import bisect_left
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from ...analysis.dates import date_words_in
from ...errors import StoreDamaged
from ...formatting import counted, which
from ...protocols import UNREADABLE
from ...types.memory import UNKNOWN_READER, Entry, Memory, Notice, Scope, Source
from ..bm25 import FIELDS, OWN_WEIGHT, WINDOW_TURNS, Field, Unit, gram_count
from .database import Asked, ChecksumError, Connection, Key, add_checksum, check_body, foresee
from .rows import NUMBERED, SELECT, as_far_as_legible, code

SPARE_SHARE = 4  # allocate a quarter more than needed, so that a write does not copy everything

Number = TypeVar("Number", bound=np.generic)


def grow(known: NDArray[Number] | None, shape: tuple[int, ...], dtype: type[Number]) -> NDArray[Number]:
    """Return an array of a shape that begins with the known values; spare capacity is shared, not copied."""
    size = shape[0]
    if known is not None and isinstance(known.base, np.ndarray) and len(known.base) >= size:
        grown: NDArray[Number] = known.base[:size]
        return grown
    room = np.zeros((size + size // SPARE_SHARE, *shape[1:]), dtype)
    if known is not None:
        room[: len(known)] = known
    return room[:size]


RECORD = np.dtype(
    [
        ("unit", "<i1"),
        ("words", "<u4"),
        ("pairs", "<u4"),
        ("grams", "<u4"),
        ("dates", "<u4"),
        ("group", "<u8"),
        ("session", "<u8"),
        ("position", "<i8"),
        ("id", "S20"),
        ("tie", "S24"),
    ]
)
_ID_BYTES, _TIE_BYTES = RECORD["id"].itemsize, RECORD["tie"].itemsize
_MEND = "`whyrank doctor --repair` rewrites the store with all that can be read; nothing was changed"
GONE = -1  # the unit of a record whose memory was removed
BLOCK = 64  # records that are written and read together: six kilobytes, so that one more memory rewrites little

Records = NDArray[np.void]
Record = tuple[int | bytes, ...]
StoredTokens = Callable[[Connection, str, int], Sequence[str]]  # by scope and number
# Unreadable memories are stored under a number below zero, with a key that no text has, until they are stored again.
ASIDE = (
    "INSERT INTO arrivals (entry, id, scope, text_key, text, content_hash, created, date, rest, language, space) "
    "VALUES ((SELECT min(0, coalesce(min(entry), 0)) - 1 FROM arrivals), ?1, ?2, 'aside ' || ?1, ?3, '', 0, NULL, ?4, "
    "'', '') ON CONFLICT DO NOTHING"
)


def record_of(entry: Entry) -> Record:
    """Return the record of a memory."""
    memory = entry.memory
    session = code(memory.session) if memory.is_turn else 0
    place = (code(memory.group), session, memory.position, id_in_record(memory.id), tie_of(memory))
    return unit_of(memory), *lengths_of(entry), *place


def lengths_of(entry: Entry) -> tuple[int, int, int, int]:
    """Return the number of terms in each field of an entry, without making them."""
    tokens, dates = entry.tokens, len(date_words_in(entry.marks)) if entry.marks else 0
    if not entry.letters and "".join(tokens).isascii():  # as most are: every token has letters, and a neighbour
        return len(tokens), max(0, len(tokens) - 1), 0, dates
    grams = [*map(gram_count, tokens)]
    pairs = sum(1 for one, next_one in pairwise(grams) if one and next_one) if 0 in grams else max(0, len(grams) - 1)
    return len(grams), pairs, sum(grams) if entry.letters else 0, dates


def id_in_record(identity: object) -> bytes:
    """Return the id if it fits the record; a longer one, given by a caller, is read from its row."""
    if not isinstance(identity, str) or not identity.isascii() or len(identity) > _ID_BYTES or "\0" in identity:
        return b""
    return identity.encode("ascii")


def tie_of(memory: Memory) -> bytes:
    """Return the prefix of the content key, in its order: of the path, or of the content hash without one.

    Rows with an empty or equal prefix are ordered by their whole keys.
    """
    place = memory.source or Source("")
    if place.path:
        return place.path.encode("utf-8", errors="replace")[:_TIE_BYTES].rstrip(b"\0")
    return b"\1" + place.content_hash.encode("utf-8")[:23] if place.content_hash and not place.start_line else b""


def unit_of(memory: Memory) -> Unit:
    """Return the kind of a memory for context scoring."""
    if memory.is_turn:
        return Unit.TURN
    return Unit.CHUNK if memory.kind == "chunk" and memory.source else Unit.FACT


def vacant(count: int) -> Records:
    """Return vacant records, marked as GONE."""
    records = np.zeros(count, RECORD)
    records["unit"] = GONE
    return records


NUMBERS = "SELECT numbers, readers FROM scopes WHERE scope = ?"
_BLOCK_AT = "SELECT records FROM records WHERE scope = ? AND first = ?"
_LAST = "SELECT number FROM memories WHERE scope = ?1 AND typeof(number) = 'integer'{} ORDER BY number DESC LIMIT 1"
# The end of the last block of records, the last number of a memory, and the last one of these within the blocks.
BOUNDS = (
    f"SELECT most, ({_LAST.format('')}), ({_LAST.format(' AND number < most')}) FROM "
    f"(SELECT coalesce(max(first), -{BLOCK}) + {BLOCK} AS most FROM records "
    "WHERE scope = ?1 AND typeof(first) = 'integer') AS bounds"
)


def numbers_given(connection: Connection, scope: str, said: object) -> int:
    """Return the count of numbers a scope has given out, from its memories if the stored count is damaged.

    Every number has a record. Of the count, the blocks of records and the numbers of memories, two that agree show
    that the third is wrong.
    """
    [(most, last, within)] = connection.execute(BOUNDS, (scope,))
    least = max(0, within + 1) if within is not None else 0
    if isinstance(said, int) and said > most and last is not None and most <= last < said:
        return int(last) + 1  # the last blocks were lost
    return said if isinstance(said, int) and least <= said <= most else least


class RecordWriter:
    """The records one transaction changes, written block by block at its end."""

    def __init__(self, connection: Connection, generation: int, tokens: StoredTokens) -> None:
        self._connection = connection
        self._generation = generation
        self._tokens = tokens
        self._numbers: dict[str, int] = {}
        self._readers: dict[str, ReaderRanges] = {}
        self._changed: dict[str, dict[int, Record | None]] = defaultdict(dict)
        self._touched: set[str] = set()
        self._names: dict[str, tuple[int, int]] = {}
        self._unknown: set[str] = set()  # scopes whose own row was lost

    def next_number(self, scope: str) -> int:
        """Return a number that no memory of the scope ever had."""
        self._numbers[scope] = self.size(scope) + 1
        return self._numbers[scope] - 1

    def asked(self, places: Iterable[tuple[str, int]]) -> Iterator[Asked]:
        """Yield the statements that read the blocks of some numbers of scopes."""
        for scope, first in dict.fromkeys((scope, number - number % BLOCK) for scope, number in places):
            yield _BLOCK_AT, (scope, first)

    def size(self, scope: str) -> int:
        """Return how many numbers a scope has given out."""
        if scope not in self._numbers:
            known = self._connection.execute(NUMBERS, (scope,)).fetchone()
            self._numbers[scope] = numbers_given(self._connection, scope, known[0] if known else None)
            self._readers[scope] = ranges_in(known[1] if known else None)
            if known is None and self._numbers[scope]:
                self._unknown.add(scope)
        return self._numbers[scope]

    def count_names(self, scope: str, names: int, words: int) -> None:
        """Add to the counts of names and name words of a scope; negative numbers subtract."""
        before = self._names.get(scope, (0, 0))
        self._names[scope] = (before[0] + names, before[1] + words)

    def put(self, scope: str, number: int, entry: Entry) -> None:
        """Record a new memory, and the analyzer version that it was indexed by; its number must follow all others."""
        self._changed[scope][number] = record_of(entry)
        readers = self._readers[scope]
        if readers[-1].reader != entry.reader:
            self._readers[scope] = (*readers, ReaderRange(number, entry.reader))

    def remove(self, scope: str, number: int) -> None:
        """Mark a memory as GONE; a number its scope never gave is refused: it would make an unreadable block."""
        if not isinstance(number, int) or not 0 <= number < self.size(scope):
            raise StoreDamaged(f"a memory of {scope} has the number {number!r}, which is not valid", _MEND)
        self._changed[scope][number] = None

    def touch(self, scope: str, numbers: Iterable[int] = ()) -> None:
        """Mark a scope, and the blocks of some of its memories, as changed in this generation."""
        self._touched.add(scope)
        for first in {number - number % BLOCK for number in numbers}:
            self._connection.execute(
                "UPDATE records SET changed = ? WHERE scope = ? AND first = ?", (self._generation, scope, first)
            )

    def mend(self, scope: str, first: int) -> None:
        """Rebuild a block from the memories; memories found only in the block are set aside."""
        set_aside_lost(self._connection, scope, first)
        self._write(scope, first, made_anew(self._connection, scope, first, self._tokens))
        self._touched.add(scope)

    def close(self) -> None:
        """Write the changed blocks and the rows of their scopes."""
        for scope, changes in self._changed.items():
            for first, records in self._blocks(scope, changes):
                self._write(scope, first, records)
        for scope in {*self._changed, *self._touched, *self._names}:
            size, (names, words) = self.size(scope), self._names.get(scope, (0, 0))
            is_unknown = scope in self._unknown  # its earlier names were never counted
            self._connection.execute(
                "INSERT INTO scopes VALUES (:scope, :numbers, :generation, 0, :first_names, :first_words, :readers) "
                "ON CONFLICT DO UPDATE SET numbers = :numbers, changed = :generation, readers = :readers, "
                "names = scopes.names + :names, name_words = scopes.name_words + :words",
                {
                    "scope": scope,
                    "numbers": size,
                    "generation": self._generation,
                    "names": names,
                    "words": words,
                    "first_names": None if is_unknown else names,
                    "first_words": None if is_unknown else words,
                    "readers": json.dumps(self._living_readers(scope)),
                },
            )
        self._names.clear()

    def _living_readers(self, scope: str) -> ReaderRanges:
        """Return the ranges that hold a memory, and the last one, which receives the memories to come."""
        known = self._readers[scope]
        if len(known) == 1:
            return known
        kept: list[ReaderRange] = []
        for (first, reader), end in with_ends(known):
            held = self._connection.execute(
                "SELECT 1 FROM memories WHERE scope = ? AND number >= ? AND number < ? LIMIT 1", (scope, first, end)
            )
            is_over = end != NO_END and held.fetchone() is None
            if not is_over and (not kept or kept[-1].reader != reader):
                kept.append(ReaderRange(first if kept else 0, reader))
        return tuple(kept)

    def _write(self, scope: str, first: int, records: Records) -> None:
        self._connection.execute(
            "INSERT INTO records VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET changed = excluded.changed, "
            "records = excluded.records",
            (scope, first, self._generation, add_checksum(records.tobytes(), scope, first)),
        )

    def _blocks(self, scope: str, changes: dict[int, Record | None]) -> Iterator[tuple[int, Records]]:
        by_block: dict[int, list[int]] = defaultdict(list)
        for number in changes:
            by_block[number - number % BLOCK].append(number)
        for first, numbers in by_block.items():
            records = self._stored(scope, first)
            for number in numbers:
                change = changes[number]
                records[number - first] = change if change is not None else vacant(1)[0]
            yield first, records

    def _stored(self, scope: str, first: int) -> Records:
        stored = self._connection.execute(_BLOCK_AT, (scope, first)).fetchone()
        if stored is None:
            return vacant(BLOCK)
        try:
            return decoded(stored[0], scope, first).copy()
        except ChecksumError:
            return made_anew(self._connection, scope, first, self._tokens)


def decoded(blob: bytes, scope: object, first: object) -> Records:
    """Decode the block of records at a place; raise ChecksumError if it is damaged or another's."""
    return np.frombuffer(check_body(blob, scope, first), RECORD)


def made_anew(connection: Connection, scope: str, first: int, tokens: StoredTokens) -> Records:
    """Rebuild a block from the rows of the memories."""
    records = vacant(BLOCK)
    for number, letters, dates, *columns in connection.execute(
        f"SELECT m.number, m.letters, m.dates, {SELECT} FROM memories AS m "
        "WHERE m.scope = ? AND m.number BETWEEN ? AND ? AND typeof(m.number) = 'integer'",
        (scope, first, first + BLOCK - 1),
    ).fetchall():
        memory, spoken = as_far_as_legible(tuple(columns)), tuple(tokens(connection, scope, number))
        entry = Entry(memory, spoken, (), "", "", bool(letters), tuple(dates.split()) if isinstance(dates, str) else ())
        records[number - first] = record_of(entry)
    return records


def set_aside_lost(connection: Connection, scope: str, first: int) -> None:
    """Set aside the memories that a block records and whose rows are lost, so that they are reported."""
    stored = connection.execute(_BLOCK_AT, (scope, first)).fetchone()
    for number, identity, _ in recorded(stored[0], scope, first) if stored else ():
        known = "SELECT 1 FROM memories WHERE (scope = ? AND number = ?) OR id = ?"  # or its number is damaged
        if connection.execute(known, (scope, number, identity)).fetchone() is None:
            connection.execute(ASIDE, (identity or f"{scope} {number}", scope, "", ""))


def recorded(blob: bytes, scope: object, first: object) -> list[tuple[int, str, int]]:
    """Return number, id (blank if it did not fit) and source code of a block's memories; none if it is damaged."""
    try:
        records = decoded(blob, scope, first)
    except (ChecksumError, ValueError):
        return []
    if not isinstance(first, int):
        return []
    places = np.flatnonzero(records["unit"] != GONE)
    living = records[places]
    columns = ((places + first).tolist(), living["id"].tolist(), living["group"].tolist())
    return [
        (number, identity.decode("ascii", "replace"), group) for number, identity, group in zip(*columns, strict=True)
    ]


# -- analyzer versions, as ranges of numbers ---------------------------------------------------------------------------

# A memory that is stored again gets a new number, so a reindexed memory leaves its range, and an empty range is
# dropped. Numbers before the first range belong to stores that did not record the version.
NO_END = 2**63 - 1  # behind the last number there can be


class ReaderRange(NamedTuple):
    """A range of numbers indexed by one analyzer version, given by its first number."""

    first: int
    reader: int


ReaderRanges = tuple[ReaderRange, ...]


@lru_cache(maxsize=16)
def ranges_in(text: str | None) -> ReaderRanges:
    """Parse the stored ranges of a scope; malformed JSON counts as an unknown analyzer version."""
    try:
        found = [ReaderRange(int(first), int(reader)) for first, reader in json.loads(text or "[]")]
    except (ValueError, TypeError):
        return (ReaderRange(0, UNKNOWN_READER),)
    return tuple(found) if found and found[0].first == 0 else (ReaderRange(0, UNKNOWN_READER), *found)


def with_ends(known: ReaderRanges) -> Iterator[tuple[ReaderRange, int]]:
    """Yield ranges with their ends."""
    ends = (*(one.first for one in known[1:]), NO_END)
    return zip(known, ends, strict=True)


def renumbered(known: ReaderRanges, numbers: Sequence[int]) -> ReaderRanges:
    """Return the ranges of memories whose ascending numbers become 0, 1, …"""
    return tuple(ReaderRange(bisect_left(numbers, first), reader) for first, reader in known)


def count_readers(shelves: Sequence[ScopeDocValues]) -> dict[int, int]:
    """Count the memories of some scopes by analyzer version."""
    found: dict[int, int] = {}
    for shelf in shelves:
        counts = [shelf.count]
        if len(shelf.readers) > 1:
            firsts = [one.first for one in shelf.readers]
            ranges = np.searchsorted(firsts, np.flatnonzero(shelf.alive), side="right") - 1
            counts = np.bincount(ranges, minlength=len(firsts)).tolist()
        for one, count in zip(shelf.readers, counts, strict=True):
            if count:
                found[one.reader] = found.get(one.reader, 0) + count
    return found


Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
NOWHERE = -1
_ROW_LOST = (None, 0, 0, None)  # in place of the row of a scope that was lost
SCOPE_ROW = "SELECT numbers, changed, epoch, readers FROM scopes WHERE scope = ?"
HOLDS_ANY = "SELECT 1 FROM memories WHERE scope = ? LIMIT 1"
_RECORDS = "SELECT first, records FROM records WHERE scope = ? AND changed > ? AND typeof(first) = 'integer'"
_SUPERSEDED = f"SELECT number FROM memories WHERE scope = ? AND superseded_by IS NOT NULL AND {NUMBERED}"
_TIMED = (  # a time that is not a number was damaged, and limits nothing
    "SELECT number, iif(typeof(valid_from) IN ('real', 'integer'), valid_from, -9e999), "
    "min(iif(typeof(expires) IN ('real', 'integer'), expires, 9e999), "
    "iif(typeof(valid_until) IN ('real', 'integer'), valid_until, 9e999)) FROM memories "
    "WHERE scope = ? AND (expires IS NOT NULL OR valid_from IS NOT NULL OR valid_until IS NOT NULL) "
    f"AND {NUMBERED}"
)
_PLACES = "SELECT number FROM memories WHERE scope = ?"
_PLACES_SUM = "SELECT count(*), sum(iif(typeof(number) = 'integer', number + 1, 0)) FROM memories WHERE scope = ?"
RECORD_BYTES = 160  # of a memory in a scope's doc values, with all columns derived from its record
SHELF_BYTES = 20 * 1024 * 1024  # of all scopes; those of the current query always stay; 100,000 memories


class Timed(NamedTuple):
    """Memories with limited validity: their numbers, and the begin and end of each."""

    numbers: Integers
    begins: Floats
    ends: Floats


@dataclass(frozen=True, eq=False)
class Files:
    """Files of chunks: their number, each memory's file (one past the last for none), lengths by field."""

    count: int
    of: Integers
    lengths: Mapping[str, Floats]


@dataclass(frozen=True, eq=False)
class ScopeDocValues:
    """Doc values of one scope at one generation; a place is the number of a memory, in order of arrival."""

    scope: str
    changed: int
    columns: Mapping[str, NDArray[np.generic]]
    superseded: Integers
    timed: Timed
    broken: tuple[int, ...] = ()
    epoch: int = 0  # number of times the scope was renumbered
    lost: int = 0  # memories whose rows are missing or have no number, and so cannot be found
    readers: ReaderRanges = (ReaderRange(0, UNKNOWN_READER),)

    def __len__(self) -> int:
        return len(self.columns["unit"])

    @property
    def groups(self) -> NDArray[np.uint64]:
        """Return a number for the source of each memory."""
        groups: NDArray[np.uint64] = self.columns["group"]  # type: ignore[assignment]
        return groups

    @cached_property
    def known(self) -> tuple[object, ...]:
        """Return the columns of a result row, by place: number, source, id, tie; and the scope of all."""
        return np.arange(len(self)), self.groups, self.columns["id"], self.columns["tie"], self.scope

    @cached_property
    def alive(self) -> Flags:
        """Return the mask of places that hold a memory."""
        living: Flags = self.columns["unit"] != GONE
        return living

    @cached_property
    def count(self) -> int:
        """Return the number of memories."""
        return int(np.count_nonzero(self.alive))

    @cached_property
    def has_gaps(self) -> bool:
        """Return whether some places are vacant."""
        return self.count < len(self)

    @cached_property
    def units(self) -> Integers:
        """Return the unit of each memory."""
        units: Integers = self.columns["unit"].astype(np.int64)
        return units

    @cached_property
    def own_weights(self) -> Floats:
        """Return the weight of each memory's own text relative to its context."""
        weights = np.array([OWN_WEIGHT[unit] for unit in Unit])
        own: Floats = weights[np.maximum(self.units, 0)]
        return own

    @cached_property
    def lengths(self) -> Mapping[str, Floats]:
        """Return the number of terms per field of every memory."""
        return {field.name: self.columns[field.name].astype(np.float64) for field in FIELDS}

    @cached_property
    def files(self) -> Files:
        """Number the files of chunks in the order they came, so that those of ascending places mostly ascend."""
        chunks = np.flatnonzero(self.units == Unit.CHUNK)
        codes, firsts, numbers = np.unique(self.groups[chunks], return_index=True, return_inverse=True)
        numbers = firsts.argsort().argsort()[numbers]
        of = np.full(len(self), len(codes))
        of[chunks] = numbers
        lengths = {
            name: np.bincount(numbers, own[chunks], len(codes)).astype(np.float64) for name, own in self.lengths.items()
        }
        return Files(len(codes), of, lengths)

    @cached_property
    def turns(self) -> Integers:
        """Return the places of turns."""
        return np.flatnonzero(self.units == Unit.TURN)

    @cached_property
    def is_plain(self) -> bool:
        """Return whether every memory is the only chunk of its file, so that file and chunk are one text."""
        return self.files.count == self.count

    @cached_property
    def is_one_chunk_each(self) -> bool:
        """Return whether no file has a second chunk, so that every memory is a source of its own."""
        return self.files.count == np.count_nonzero((self.units == Unit.CHUNK) & self.alive)

    @cached_property
    def windows(self) -> Integers:
        """Return the neighbours from −2 to 2 of each turn in its session; NOWHERE beyond its ends."""
        sessions, positions = self.columns["session"], self.columns["position"]
        turns = self.turns
        # At one position the ids decide: a turn that is stored again keeps its place.
        order = turns[np.lexsort((turns, self.columns["id"][turns], positions[turns], sessions[turns]))]
        ordered = sessions[order]
        steps = []
        for step in range(-WINDOW_TURNS, WINDOW_TURNS + 1):
            neighbours = np.full(len(self), NOWHERE)
            here = np.arange(max(0, -step), len(order) - max(0, step))
            same = ordered[here] == ordered[here + step]
            neighbours[order[here[same]]] = order[here[same] + step]
            steps.append(neighbours)
        return np.stack(steps)

    def last_position(self, session: str) -> int | None:
        """Return the position of the last turn of a session, if it has one."""
        turns = self.turns[self.alive[self.turns]]
        own = turns[self.columns["session"][turns] == code(session)]
        return int(self.columns["position"][own].max()) if len(own) else None

    def window_lengths(self, field: Field) -> Floats:
        """Return the number of terms of a field in each turn's window; 0 for memories that are no turns."""
        around = np.zeros(len(self))
        lengths = np.append(self.lengths[field.name], 0.0)  # the last for NOWHERE
        for step in self.windows:
            around[self.turns] += lengths[step[self.turns]]
        return around

    def places_of(self, numbers: Sequence[object]) -> Integers:
        """Return the places of numbers; NOWHERE for those that no memory of the scope has."""
        size = len(self.alive)
        known = [number if type(number) is int and 0 <= number < size else NOWHERE for number in numbers]
        places = np.array(known, np.int64)
        if self.has_gaps and size:
            places[~self.alive[places]] = NOWHERE
        return places


class DocValues:
    """Cache of doc values by scope; a scope is read again only where it has changed."""

    def __init__(
        self, tokens: StoredTokens, max_bytes: int = SHELF_BYTES, also: Callable[[str], Iterable[Asked]] = lambda _: ()
    ) -> None:
        self._tokens = tokens
        self._also = also  # statements that are asked next of a scope that has changed
        self._max_bytes = max_bytes
        self._shelves: OrderedDict[str, ScopeDocValues] = OrderedDict()
        self._located: tuple[Sequence[Key], Sequence[ScopeDocValues], list[Integers]] | None = None
        self._turn = threading.Lock()

    @property
    def nbytes(self) -> int:
        """Return the approximate memory of all cached scopes, in bytes."""
        return RECORD_BYTES * sum(map(len, [*self._shelves.values()]))

    def shelves(self, connection: Connection, scopes: frozenset[Scope]) -> list[ScopeDocValues]:
        """Return the doc values of the scopes that exist, always in the same order."""
        names = sorted(map(str, scopes))
        foresee(connection, ((SCOPE_ROW, (scope,)) for scope in names))
        with self._turn:
            foresee(connection, self._foreseen(connection, names))
            found = [self._shelf(connection, scope) for scope in names]
            kept = self.nbytes
            while kept > self._max_bytes and len(self._shelves) > len(scopes):
                kept -= RECORD_BYTES * len(self._shelves.popitem(last=False)[1])
        return [shelf for shelf in found if shelf is not None]

    def _foreseen(self, connection: Connection, scopes: Sequence[str]) -> Iterator[Asked]:
        """Yield the statements that read the scopes which have changed."""
        for scope in scopes:
            stored, known = connection.execute(SCOPE_ROW, (scope,)).fetchone(), self._shelves.get(scope)
            if stored is None or (known is not None and known.changed == stored[1]):
                continue
            numbers, changed, epoch, _ = stored
            is_older = known is not None and known.changed < changed and known.epoch == epoch
            yield BOUNDS, (scope,)
            yield _RECORDS, (scope, known.changed if known is not None and is_older else -1)
            yield _SUPERSEDED, (scope, numbers)
            yield _TIMED, (scope, numbers)
            if not is_older:
                yield _PLACES_SUM, (scope,)
            yield from self._also(scope)

    def locate(self, shelves: Sequence[ScopeDocValues], keys: Sequence[Key]) -> list[Integers]:
        """Return the places of memories in each scope; cached, as words and vectors use the same candidates."""
        last = self._located
        if last is None or last[0] is not keys or last[1] is not shelves:
            numbers = ([number if scope == shelf.scope else NOWHERE for scope, number in keys] for shelf in shelves)
            places = [shelf.places_of(theirs) for shelf, theirs in zip(shelves, numbers, strict=True)]
            last = self._located = (keys, shelves, places)
        return last[2]

    def broken(self) -> dict[str, tuple[int, ...]]:
        """Return the damaged blocks of records, by scope."""
        with self._turn:
            return {scope: shelf.broken for scope, shelf in self._shelves.items() if shelf.broken}

    def _shelf(self, connection: Connection, scope: str) -> ScopeDocValues | None:
        stored = connection.execute(SCOPE_ROW, (scope,)).fetchone()
        is_lost = stored is None and connection.execute(HOLDS_ANY, (scope,)).fetchone() is not None
        if stored is None and not is_lost:
            return None
        said, changed, epoch, readers = stored or _ROW_LOST
        known = self._shelves.get(scope)
        if known is None or known.changed != changed:
            same = known if known is not None and known.epoch == epoch else None
            numbers = numbers_given(connection, scope, said)
            known = self._read(connection, scope, numbers, changed, same)
            known = replace(known, epoch=epoch, readers=ranges_in(readers))
            if is_lost:  # the next write restores its row along with a block
                known = replace(known, broken=known.broken or (0,))
            self._shelves[scope] = known
        self._shelves.move_to_end(scope)
        return known

    def _read(
        self, connection: Connection, scope: str, numbers: int, changed: int, known: ScopeDocValues | None
    ) -> ScopeDocValues:
        # After a rolled-back writer, or with another file under the same name, everything is read again.
        is_older = known is not None and known.changed < changed and len(known) <= numbers
        blocks = connection.execute(_RECORDS, (scope, known.changed if known and is_older else -1)).fetchall()
        if not is_older:
            there = {first for first, _ in blocks}
            blocks += [(first, None) for first in range(0, numbers, BLOCK) if first not in there]
        if known and is_older and not blocks and len(known) == numbers:
            columns = known.columns
        else:
            columns = _grown(known.columns if known and is_older else {}, numbers)
        broken = set(known.broken) - {first for first, _ in blocks} if known and is_older else set()
        for first, blob in blocks:
            try:
                records = decoded(blob, scope, first)
            except ChecksumError:
                records = made_anew(connection, scope, first, self._tokens)
                broken |= {first} if blob is not None or (records["unit"] != GONE).any() else set()
            records = records[: max(0, numbers - first)] if first >= 0 else records[:0]
            for name, column in columns.items():
                column[first : first + len(records)] = records[name]
        lost = known.lost if known and is_older else 0
        if not is_older and not _agree(connection, scope, columns):
            lost = self._put_right(connection, scope, columns, broken)
        superseded = connection.execute(_SUPERSEDED, (scope, numbers)).fetchall()
        return ScopeDocValues(
            scope,
            changed,
            columns,
            np.array([number for (number,) in superseded], np.int64),
            _timed(connection, scope, numbers),
            tuple(sorted(broken)),
            lost=lost,
        )

    def _put_right(
        self, connection: Connection, scope: str, columns: Mapping[str, NDArray[np.generic]], broken: set[int]
    ) -> int:
        """Rebuild the blocks that differ from the memories; return the count of memories that cannot be found."""
        numbers = connection.execute(_PLACES, (scope,)).fetchall()
        there, noted = np.zeros(len(columns["unit"]), np.bool_), columns["unit"] != GONE
        there[[number for (number,) in numbers if isinstance(number, int) and 0 <= number < len(there)]] = True
        for first in sorted({place - place % BLOCK for place in np.flatnonzero(there != noted).tolist()}):
            records = made_anew(connection, scope, first, self._tokens)[: len(there) - first]
            for name, column in columns.items():
                column[first : first + len(records)] = records[name]
            broken.add(first)
        # Those that are recorded and lost, and those without a number.
        return max(int(np.count_nonzero(noted)), len(numbers)) - int(np.count_nonzero(there))


def _agree(connection: Connection, scope: str, columns: Mapping[str, NDArray[np.generic]]) -> bool:
    """Check that records and memories have the same numbers, by their count and sum."""
    count, total = connection.execute(_PLACES_SUM, (scope,)).fetchone()
    living = np.flatnonzero(columns["unit"] != GONE)
    return (len(living), int((living + 1).sum())) == (count, total or 0)


def _grown(known: Mapping[str, NDArray[np.generic]], size: int) -> dict[str, NDArray[np.generic]]:
    """Return enlarged columns: copies, because other threads may be reading the known ones."""
    columns = {}
    for name in RECORD.names or ():
        column = np.full(size, vacant(1)[0][name], RECORD[name])
        if known:
            column[: len(known[name])] = known[name]
        columns[name] = column
    return columns


def _timed(connection: Connection, scope: str, size: int) -> Timed:
    rows = connection.execute(_TIMED, (scope, size)).fetchall()
    numbers, begins, ends = zip(*rows, strict=True) if rows else ((), (), ())
    return Timed(np.array(numbers, np.int64), np.array(begins, np.float64), np.array(ends, np.float64))


def lost_notice(count: int) -> Notice:
    """Return the notice with the number of memories that are missing from a damaged file."""
    memories = f"{counted(count, 'memory', 'memories')} {which(count, 'is', 'are')}"
    told = f"{memories} missing from the file, which was damaged"
    return Notice(UNREADABLE, f"{told}; `whyrank doctor` lists what is lost, and `--repair` fixes the rest")
