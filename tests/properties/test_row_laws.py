"""Rows that are read, and rows that are cut: the compiled loops tell the same as Python does, and no more than it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from whyrank.analysis.document import entry_for
from whyrank.storage.sqlite.database import sqlite3  # type: ignore[attr-defined]
from whyrank.storage.sqlite.doc_values import RECORD, ScopeDocValues, Timed
from whyrank.storage.sqlite.postings.kernel import COMPILED, NUMPY
from whyrank.storage.sqlite.rows import COLUMNS, read_row, to_row, without_damage
from whyrank.storage.sqlite.top_k import ScoredOrdinals, cut
from whyrank.testing.store_contract import fact
from whyrank.types.memory import Memory

pytestmark = pytest.mark.skipif(COMPILED is None, reason="the package was built without a C compiler")

SOUND = to_row(entry_for(fact("m_1", "green tea"), "en"), 0)[: len(COLUMNS)]
VALUES = st.one_of(
    st.none(),
    st.integers(-3, 3),
    st.floats(),
    st.sampled_from(["", "[]", '["a"]', "[", "global"]),
    st.binary(max_size=2),
)
NOTHING = np.zeros(0, np.int64)


@st.composite
def rows(draw: st.DrawFn) -> tuple[Any, ...]:
    row = list(SOUND)
    for place in draw(st.lists(st.integers(0, len(COLUMNS) - 1), max_size=3)):
        row[place] = draw(VALUES)
    return (*row, draw(st.integers(1, 9)))  # behind the columns stands the number of the row


@given(st.lists(rows(), max_size=5))
def test_every_row_becomes_a_memory_and_a_sound_one_as_it_is(some: list[tuple[Any, ...]]) -> None:
    found = [*map(read_row, some)]
    assert all(isinstance(held.memory, Memory) for held in found)
    assert [held.is_mended for held in found] == [without_damage(row) is not row for row in some]


@st.composite
def shelves(draw: st.DrawFn) -> ScopeDocValues:
    size = draw(st.integers(1, 12))
    records = np.zeros(size, RECORD)
    for place in range(size):
        records[place]["group"] = draw(st.sampled_from([place, place, 1, 2**63]))
        records[place]["id"] = draw(st.sampled_from([f"m_{place}".encode(), b"", b"a" * 20]))
        records[place]["tie"] = draw(st.sampled_from([f"{place}.md".encode(), b"", b"b" * 24, b"b" * 23]))
    columns = {name: np.ascontiguousarray(records[name]) for name in RECORD.names or ()}
    return ScopeDocValues(
        draw(st.sampled_from(["global", "user:1"])), 1, columns, NOTHING, Timed(NOTHING, np.zeros(0), np.zeros(0))
    )


@given(st.data(), st.lists(shelves(), min_size=1, max_size=3), st.integers(1, 9), st.booleans())
def test_what_is_cut_by_the_kernel_is_what_is_cut_without(
    data: st.DataObject, held: list[ScopeDocValues], limit: int, is_all: bool
) -> None:
    """Where it says anything it says what Python does, who need not even ask the file."""
    places = [(number, place) for number, shelf in enumerate(held) for place in range(len(shelf))]
    chosen = data.draw(st.lists(st.sampled_from(places), unique=True))
    scores = [data.draw(st.sampled_from([0.5, 1.0, 1.5, 2.0 + place, 3.0 + number])) for number, place in chosen]
    asked = ScoredOrdinals(
        np.array([number for number, _ in chosen], np.int64),
        np.array([place for _, place in chosen], np.int64),
        np.array(scores, np.float64),
    )
    assert COMPILED is not None
    found = COMPILED.cut(*asked, limit, is_all, tuple(shelf.known for shelf in held))
    if found is None:
        return
    nobody = sqlite3.connect(":memory:")
    nobody.close()
    assert tuple(found) == tuple(map(list, cut(nobody, NUMPY, held, asked, limit, is_all) or ()))


def test_unlike_scores_of_unlike_sources_are_cut_by_the_kernel() -> None:
    columns = np.zeros(3, RECORD)
    columns["group"], columns["id"] = [1, 2, 3], [b"a", b"b", b"c"]
    shelf = ScopeDocValues(
        "global", 1, {name: np.ascontiguousarray(columns[name]) for name in RECORD.names or ()}, NOTHING,
        Timed(NOTHING, np.zeros(0), np.zeros(0)),
    )  # fmt: skip
    assert COMPILED is not None
    found = COMPILED.cut(np.zeros(3, np.int64), np.arange(3), np.array([0.1, 0.3, 0.2]), 2, False, (shelf.known,))
    assert found == ([1, 2], [0.3, 0.2], ["b", "c"], ["global", "global"], [2, 3])


@pytest.mark.parametrize(
    "arguments",
    [
        ([0], [3], [1.0]),  # beyond the last
        ([0], [-1], [1.0]),
        ([1], [0], [1.0]),  # on no shelf
        ([0, 0], [0], [1.0]),  # not of one size
    ],
)
def test_a_place_that_stands_nowhere_is_refused(arguments: tuple[list[int], list[int], list[float]]) -> None:
    record = np.zeros(3, RECORD)
    known = (np.arange(3), *(np.ascontiguousarray(record[name]) for name in ("group", "id", "tie")), "global")
    numbers, places, scores = arguments
    assert COMPILED is not None
    with pytest.raises(ValueError, match=r"no shelf|one size"):
        COMPILED.cut(np.array(numbers), np.array(places), np.array(scores), 5, True, (known,))
