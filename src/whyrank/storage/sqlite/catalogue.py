"""What the visible scopes hold, as arrays: a shelf per scope, kept in memory and renewed where the file has changed."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...ports import UNREADABLE
from ...types import Notice, Scope
from ...wording import counted, which
from ..contexts import OWN_WEIGHT, WINDOW_TURNS, Unit
from ..fields import FIELDS, Field
from .connection import Connection
from .records import BLOCK, GONE, NUMBERED, RECORD, StoredTokens, code, decoded, made_anew, numbers_given, vacant
from .sealed import BrokenSeal

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
NOWHERE = -1
SPREAD = 4  # rows a memory up to which a place for each of them is soon made and holds little memory
_ROW_LOST = (None, 0, 0)  # what the row of a scope says that was lost
_HOLDS_ANY = "SELECT 1 FROM memories WHERE scope = ? LIMIT 1"
_ROWS = "SELECT number, row FROM memories WHERE scope = ?"
_PRIME = 1_000_003  # keeps a sum of numbers times rows small
_ROWS_CHECKSUM = f"SELECT count(*), sum((number + 1) * row % {_PRIME}) FROM memories WHERE scope = ?"  # from an index
RECORD_BYTES = 160  # of a memory on a shelf, with all columns that are made of its record
SHELF_BYTES = 20 * 1024 * 1024  # of all shelves, those of one question aside; a hundred thousand memories


class Timed(NamedTuple):
    """Memories that are not for all times: their numbers, and from when until when they count."""

    numbers: Integers
    begins: Floats
    ends: Floats


class ByRow(NamedTuple):
    """A place for each row from one on, and NOWHERE at both ends."""

    first: int
    places: Integers


@dataclass(frozen=True, eq=False)
class Files:
    """The files of chunks: how many, each memory's file (one past the last for none), and their lengths by field."""

    count: int
    of: Integers
    lengths: Mapping[str, Floats]


@dataclass(frozen=True, eq=False)
class Shelf:
    """One scope at one moment; places are the numbers its memories were given, in the order they came."""

    scope: str
    changed: int
    columns: Mapping[str, NDArray[np.generic]]
    superseded: Integers
    timed: Timed
    broken: tuple[int, ...] = ()
    epoch: int = 0  # how often the scope was given new numbers
    lost: int = 0  # memories whose rows are not in the file, or say no number, and so cannot be found

    def __len__(self) -> int:
        return len(self.columns["row"])

    @property
    def rows(self) -> Integers:
        """Return the row of the memory at each place."""
        rows: Integers = self.columns["row"]  # type: ignore[assignment]
        return rows

    @property
    def groups(self) -> NDArray[np.uint64]:
        """Return a number for the source of each memory."""
        groups: NDArray[np.uint64] = self.columns["group"]  # type: ignore[assignment]
        return groups

    @cached_property
    def known(self) -> tuple[object, ...]:
        """Return what a run says of a memory, by its place: row, source, id, what breaks ties; and whose all are."""
        return self.rows, self.groups, self.columns["id"], self.columns["tie"], self.scope

    @cached_property
    def alive(self) -> Flags:
        """Tell which places hold a memory."""
        living: Flags = self.columns["unit"] != GONE
        return living

    @cached_property
    def count(self) -> int:
        """Return how many memories there are."""
        return int(np.count_nonzero(self.alive))

    @property
    def has_gaps(self) -> bool:
        """Tell whether some places are empty."""
        return self.count < len(self)

    @cached_property
    def units(self) -> Integers:
        """Return what each memory is."""
        units: Integers = self.columns["unit"].astype(np.int64)
        return units

    @cached_property
    def own_weights(self) -> Floats:
        """Return how much each memory's own text counts beside its surroundings."""
        weights = np.array([OWN_WEIGHT[unit] for unit in Unit])
        own: Floats = weights[np.maximum(self.units, 0)]
        return own

    @cached_property
    def lengths(self) -> Mapping[str, Floats]:
        """Return how many terms of each field every memory holds."""
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
        """Tell whether every memory is the only chunk of its file, so that file and chunk are one text."""
        return self.files.count == self.count

    @cached_property
    def is_one_chunk_each(self) -> bool:
        """Tell whether no file has a second chunk, so that every memory is a source of its own."""
        return self.files.count == np.count_nonzero((self.units == Unit.CHUNK) & self.alive)

    @cached_property
    def windows(self) -> Integers:
        """Return, for each step from −2 to 2, the turn that far from each turn in its session; NOWHERE beyond it."""
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
        """Return how many terms of a field each turn's window holds; 0 for what is no turn."""
        around = np.zeros(len(self))
        lengths = np.append(self.lengths[field.name], 0.0)  # the last for NOWHERE
        for step in self.windows:
            around[self.turns] += lengths[step[self.turns]]
        return around

    def places_of(self, rows: Integers) -> Integers:
        """Return the places of rows; NOWHERE for those that do not stand here."""
        if self._by_row is not None:
            return self._by_row.places.take(rows - self._by_row.first, mode="clip")
        known, places = self._ordered_rows
        found = np.minimum(known.searchsorted(rows), len(known) - 1)
        return np.where(known[found] == rows, places[found], NOWHERE)

    def _living_rows(self) -> tuple[Integers, Integers]:
        """Return the rows of what there is, and their places."""
        places = np.flatnonzero(self.alive)
        return self.rows[places], places

    @cached_property
    def _by_row(self) -> ByRow | None:
        """Return a place for every row, if this scope has a good part of those between its first and its last."""
        rows, places = self._living_rows()
        first, last = (int(rows.min()), int(rows.max())) if len(rows) else (1, 1)
        if first < 1 or last - first > SPREAD * len(rows):  # no row of SQLite's own is below 1
            return None
        table = np.full(last - first + 3, NOWHERE)  # those before the first and behind the last are nowhere as well
        table[(rows - first + 1)[::-1]] = places[::-1]  # the first of those that say they have one row
        return ByRow(first - 1, table)

    @cached_property
    def _ordered_rows(self) -> tuple[Integers, Integers]:
        rows, places = self._living_rows()
        order = np.argsort(rows, kind="stable")
        return rows[order], places[order]


class Catalogue:
    """Shelves by scope; each is read again only where its scope has changed."""

    def __init__(self, tokens: StoredTokens, max_bytes: int = SHELF_BYTES) -> None:
        self._tokens = tokens
        self._max_bytes = max_bytes
        self._shelves: OrderedDict[str, Shelf] = OrderedDict()
        self._last: tuple[tuple[int, frozenset[Scope]], list[Shelf]] | None = None
        self._standing: tuple[Sequence[int], Sequence[Shelf], list[Integers]] | None = None
        self._turn = threading.Lock()

    @property
    def nbytes(self) -> int:
        """Return about how much memory all shelves hold."""
        return RECORD_BYTES * sum(map(len, [*self._shelves.values()]))

    def shelves(self, connection: Connection, generation: int, scopes: frozenset[Scope]) -> list[Shelf]:
        """Return the shelves of the scopes that hold anything, always in the same order."""
        asked = (generation, scopes)
        last = self._last
        if last is None or last[0] != asked:
            last = self._last = (asked, self._all(connection, scopes))
        return last[1]

    def standing(self, shelves: Sequence[Shelf], rows: Sequence[int]) -> list[Integers]:
        """Return the places of rows on each of some shelves; words and vectors ask for those of the same candidates."""
        last = self._standing
        if last is None or last[0] is not rows or last[1] is not shelves:
            numbers = np.array(rows, np.int64)
            last = self._standing = (rows, shelves, [shelf.places_of(numbers) for shelf in shelves])
        return last[2]

    def broken(self) -> dict[str, tuple[int, ...]]:
        """Return the blocks of records that were found broken, by scope."""
        with self._turn:
            return {scope: shelf.broken for scope, shelf in self._shelves.items() if shelf.broken}

    def _all(self, connection: Connection, scopes: frozenset[Scope]) -> list[Shelf]:
        with self._turn:
            found = [self._shelf(connection, scope) for scope in sorted(str(scope) for scope in scopes)]
            kept = self.nbytes
            while kept > self._max_bytes and len(self._shelves) > len(scopes):
                kept -= RECORD_BYTES * len(self._shelves.popitem(last=False)[1])
        return [shelf for shelf in found if shelf is not None]

    def _shelf(self, connection: Connection, scope: str) -> Shelf | None:
        stored = connection.execute("SELECT numbers, changed, epoch FROM scopes WHERE scope = ?", (scope,)).fetchone()
        is_lost = stored is None and connection.execute(_HOLDS_ANY, (scope,)).fetchone() is not None
        if stored is None and not is_lost:
            return None
        said, changed, epoch = stored or _ROW_LOST
        known = self._shelves.get(scope)
        if known is None or known.changed != changed:
            same = known if known is not None and known.epoch == epoch else None
            numbers = numbers_given(connection, scope, said)
            known = replace(self._read(connection, scope, numbers, changed, same), epoch=epoch)
            if is_lost:  # the next write makes its row anew along with a block
                known = replace(known, broken=known.broken or (0,))
            self._shelves[scope] = known
        self._shelves.move_to_end(scope)
        return known

    def _read(self, connection: Connection, scope: str, numbers: int, changed: int, known: Shelf | None) -> Shelf:
        # A writer that was rolled back, or another file under the same name, begins anew.
        is_older = known is not None and known.changed < changed and len(known) <= numbers
        blocks = connection.execute(
            "SELECT first, records FROM records WHERE scope = ? AND changed > ? AND typeof(first) = 'integer'",
            (scope, known.changed if known and is_older else -1),
        ).fetchall()
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
            except BrokenSeal:
                records = made_anew(connection, scope, first, self._tokens)
                broken |= {first} if blob is not None or (records["unit"] != GONE).any() else set()
            records = records[: max(0, numbers - first)] if first >= 0 else records[:0]
            for name, column in columns.items():
                column[first : first + len(records)] = records[name]
        lost = known.lost if known and is_older else 0
        if not is_older and not _agree(connection, scope, columns):
            lost = self._put_right(connection, scope, columns, broken)
        superseded = connection.execute(
            f"SELECT number FROM memories WHERE scope = ? AND superseded_by IS NOT NULL AND {NUMBERED}",
            (scope, numbers),
        ).fetchall()
        return Shelf(
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
        """Make the blocks anew that do not say what the memories say; return how many memories cannot be found."""
        rows = connection.execute(_ROWS, (scope,)).fetchall()
        stored = np.full(len(columns["row"]), NOWHERE)
        places = {number: row for number, row in rows if isinstance(number, int) and 0 <= number < len(stored)}
        stored[[*places]] = [*places.values()]
        recorded = np.where(columns["unit"] != GONE, columns["row"], NOWHERE)
        wrong = np.flatnonzero(stored != recorded)
        lost = set(recorded[wrong].tolist()) - {row for _, row in rows} - {NOWHERE}
        for first in sorted({int(place) - int(place) % BLOCK for place in wrong}):
            records = made_anew(connection, scope, first, self._tokens)[: len(stored) - first]
            for name, column in columns.items():
                column[first : first + len(records)] = records[name]
            broken.add(first)
        return len(lost) + len(rows) - len(places)  # those without a number cannot be found either


def _agree(connection: Connection, scope: str, columns: Mapping[str, NDArray[np.generic]]) -> bool:
    """Tell whether records and memories name the same rows by the same numbers: as many, with the same checksum."""
    count, checksum = connection.execute(_ROWS_CHECKSUM, (scope,)).fetchone()
    living = np.flatnonzero(columns["unit"] != GONE)
    rows: Integers = columns["row"][living]  # type: ignore[assignment]
    return (len(living), int(((living + 1) * rows % _PRIME).sum())) == (count, checksum or 0)


def _grown(known: Mapping[str, NDArray[np.generic]], size: int) -> dict[str, NDArray[np.generic]]:
    """Return columns with room for more: copies, because others may be reading the known ones."""
    columns = {}
    for name in RECORD.names or ():
        column = np.full(size, vacant(1)[0][name], RECORD[name])
        if known:
            column[: len(known[name])] = known[name]
        columns[name] = column
    return columns


def _timed(connection: Connection, scope: str, size: int) -> Timed:
    rows = connection.execute(
        # A moment that is no number was damaged, and limits nothing.
        "SELECT number, iif(typeof(valid_from) IN ('real', 'integer'), valid_from, -9e999), "
        "min(iif(typeof(expires) IN ('real', 'integer'), expires, 9e999), "
        "iif(typeof(valid_until) IN ('real', 'integer'), valid_until, 9e999)) FROM memories "
        "WHERE scope = ? AND (expires IS NOT NULL OR valid_from IS NOT NULL OR valid_until IS NOT NULL) "
        f"AND {NUMBERED}",
        (scope, size),
    ).fetchall()
    numbers, begins, ends = zip(*rows, strict=True) if rows else ((), (), ())
    return Timed(np.array(numbers, np.int64), np.array(begins, np.float64), np.array(ends, np.float64))


def lost_notice(count: int) -> Notice:
    """Say how many memories cannot be found because the file was damaged."""
    memories = f"{counted(count, 'memory', 'memories')} {which(count, 'is', 'are')}"
    told = f"{memories} missing from the file, which was damaged"
    return Notice(UNREADABLE, f"{told}; `whyrank doctor` names what is lost, and `--repair` mends the rest")


def damage(shelves: Sequence[Shelf]) -> int:
    """Count the blocks of these shelves that had to be made anew."""
    return sum(len(shelf.broken) for shelf in shelves)


__all__ = [
    "BLOCK",
    "NOWHERE",
    "Catalogue",
    "Files",
    "Flags",
    "Floats",
    "Integers",
    "Shelf",
    "Timed",
    "damage",
    "lost_notice",
]
