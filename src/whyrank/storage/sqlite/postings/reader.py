"""Reading the index: what the visible scopes hold, side by side as arrays, and the posting lists of terms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ....types import Scope
from ...contexts import WINDOW_TURNS, Unit
from ...fields import PAIRS, WORDS, Field, pairs_of
from ..connection import Connection
from .codec import GONE, NOTHING, RECORD, Postings, checked, decode, joined
from .writer import Key, inverted, unpack

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
NOWHERE = -1


@dataclass(frozen=True)
class Part:
    """One scope inside what is visible: where its numbers begin, and its fresh memories inverted."""

    scope: str
    start: int
    fresh: Mapping[Key, list[tuple[int, int]]]


@dataclass(frozen=True, eq=False)
class Visible:
    """Everything the visible scopes hold at one generation; places run over all scopes, one after the other."""

    generation: int
    parts: Sequence[Part]
    records: NDArray[np.void]

    @cached_property
    def alive(self) -> NDArray[np.bool_]:
        """Tell which places hold a memory."""
        living: NDArray[np.bool_] = self.records["unit"] != GONE
        return living

    @cached_property
    def units(self) -> Integers:
        """Return what each memory is."""
        units: Integers = self.records["unit"].astype(np.int64)
        return units

    def lengths(self, field: Field) -> Floats:
        """Return how many terms of a field each memory holds."""
        lengths: Floats = self.records[field.name].astype(np.float64)
        return lengths

    @cached_property
    def by_row(self) -> tuple[Integers, Integers]:
        """Return the rows of all memories in order, and their places."""
        places = np.flatnonzero(self.alive)
        rows = self.records["row"][places]
        order = np.argsort(rows)
        return rows[order], places[order]

    def places_of(self, rows: Integers) -> Integers:
        """Return the places of rows; NOWHERE for those that are not visible."""
        known, places = self.by_row
        if not len(known):
            return np.full(len(rows), NOWHERE)
        found = np.minimum(np.searchsorted(known, rows), len(known) - 1)
        return np.where(known[found] == rows, places[found], NOWHERE)

    @cached_property
    def files(self) -> tuple[int, Integers]:
        """Number the files of chunks: how many there are, and each memory's, NOWHERE for what is no chunk."""
        is_chunk = self.units == Unit.CHUNK
        codes, numbers = np.unique(self.records["group"][is_chunk], return_inverse=True)
        files = np.full(len(self.records), NOWHERE)
        files[is_chunk] = numbers
        return len(codes), files

    @cached_property
    def windows(self) -> Sequence[Integers]:
        """Return, for each step from −2 to 2, the turn that far from each turn in its session; NOWHERE beyond it."""
        turns = np.flatnonzero(self.units == Unit.TURN)
        records = self.records[turns]
        scope = np.searchsorted([part.start for part in self.parts], turns, side="right")
        order = turns[np.lexsort((records["row"], records["position"], records["session"], scope))]
        sessions, scopes = self.records["session"][order], np.sort(scope)
        steps = []
        for step in range(-WINDOW_TURNS, WINDOW_TURNS + 1):
            neighbours = np.full(len(self.records), NOWHERE)
            here = np.arange(len(order))
            there = here + step
            inside = (there >= 0) & (there < len(order))
            here, there = here[inside], there[inside]
            same = (sessions[here] == sessions[there]) & (scopes[here] == scopes[there])
            neighbours[order[here[same]]] = order[there[same]]
            steps.append(neighbours)
        return steps


def load(connection: Connection, generation: int, scopes: frozenset[Scope]) -> Visible:
    """Read the records of the visible scopes."""
    parts: list[Part] = []
    records: list[NDArray[np.void]] = []
    start = 0
    for scope in sorted(str(scope) for scope in scopes):
        size = connection.execute("SELECT numbers FROM posting_scopes WHERE scope = ?", (scope,)).fetchone()
        if size is None:
            continue
        found = np.zeros(size[0], RECORD)
        found["unit"] = GONE
        for first, blob in connection.execute("SELECT first, records FROM posting_records WHERE scope = ?", (scope,)):
            flushed = np.frombuffer(checked(blob), RECORD)
            found[first : first + len(flushed)] = flushed
        fresh = connection.execute(
            "SELECT number, record, tokens FROM posting_fresh WHERE scope = ? ORDER BY number", (scope,)
        ).fetchall()
        for number, record, _ in fresh:
            found[number] = np.frombuffer(record, RECORD)[0]
        parts.append(Part(scope, start, inverted((number, unpack(tokens)) for number, _, tokens in fresh)))
        records.append(found)
        start += len(found)
    return Visible(generation, parts, np.concatenate(records) if records else np.zeros(0, RECORD))


def postings(connection: Connection, visible: Visible, field: Field, term: str) -> Postings:
    """Return the places that hold a term, ascending, over all visible scopes."""
    lists = []
    for part in visible.parts:
        stored = connection.execute(
            "SELECT list FROM posting_lists WHERE scope = ? AND field = ? AND term = ? ORDER BY flush",
            (part.scope, field.number, term),
        )
        found = [decode(blob) for (blob,) in stored]
        fresh = part.fresh.get((field.number, term))
        if fresh:
            numbers, frequencies = zip(*fresh, strict=True)
            found.append(Postings(np.array(numbers, np.int64), np.array(frequencies, np.float64)))
        if found:
            here = joined(found)
            lists.append(Postings(here.numbers + part.start, here.frequencies))
    return joined(lists)


def phrase(connection: Connection, visible: Visible, tokens: Sequence[str]) -> Postings:
    """Return the places that hold tokens side by side: where all neighbouring pairs of them stand."""
    lists = [postings(connection, visible, PAIRS, f"{one} {next_one}") for one, next_one in pairwise(tokens)]
    if not any(len(found.numbers) for found in lists):
        # Scripts without spaces have no pairs; their overlapping bigrams say nearly as much.
        bigrams = pairs_of(tokens) == []
        lists = [postings(connection, visible, WORDS, token) for token in tokens] if bigrams else [NOTHING]
    common = lists[0].numbers
    for found in lists[1:]:
        common = np.intersect1d(common, found.numbers, assume_unique=True)
    if not len(common):
        return NOTHING
    frequencies = np.min([found.frequencies[np.searchsorted(found.numbers, common)] for found in lists], axis=0)
    return Postings(common, frequencies)
