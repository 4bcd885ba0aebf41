"""Shelves: where the rows of a scope stand, be they its own alone or a few among those of others."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from whyrank.storage.sqlite.doc_values import GONE, NOWHERE, RECORD, ScopeDocValues, Timed

NOTHING = np.zeros(0, np.int64)


def shelf_of(rows: list[int], gone: set[int]) -> ScopeDocValues:
    records = np.zeros(len(rows), RECORD)
    records["row"] = rows
    records["unit"] = [GONE if row in gone else 0 for row in rows]
    columns = {name: np.ascontiguousarray(records[name]) for name in RECORD.names or ()}
    return ScopeDocValues("global", 1, columns, NOTHING, Timed(NOTHING, np.zeros(0), np.zeros(0)))


@given(
    st.one_of(*(st.lists(st.integers(1, most), unique=True, max_size=12) for most in (14, 60, 2**40))),
    st.sets(st.integers(1, 14)),
    st.lists(st.integers(-3, 2**40 + 3), max_size=5),
)
def test_every_row_is_found_at_its_place_and_no_other_anywhere(
    rows: list[int], gone: set[int], asked: list[int]
) -> None:
    places = {row: place for place, row in enumerate(rows) if row not in gone}
    wanted = [*asked, *rows, *gone, *(row + 1 for row in rows)]
    found = shelf_of(rows, gone).places_of(np.array(wanted, np.int64))
    assert found.tolist() == [places.get(row, NOWHERE) for row in wanted]


def test_of_two_that_say_they_have_one_row_the_first_has_it_and_odd_rows_are_looked_up() -> None:
    assert shelf_of([5, 5, 7], set()).places_of(np.array([5, 6, 7])).tolist() == [0, NOWHERE, 2]
    lowest = -(2**63)
    assert shelf_of([lowest, lowest + 1], set()).places_of(np.array([lowest + 1, lowest, 3])).tolist() == [
        1,
        0,
        NOWHERE,
    ]
