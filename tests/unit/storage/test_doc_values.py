"""Doc values: the places of memories by scope and number, and the analyzer versions of ranges of numbers."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from whyrank.storage.sqlite.doc_values import (
    GONE,
    NOWHERE,
    RECORD,
    DocValues,
    ReaderRange,
    ScopeDocValues,
    Timed,
    renumbered,
)

NOTHING = np.zeros(0, np.int64)


def shelf_of(scope: str, living: list[bool]) -> ScopeDocValues:
    records = np.zeros(len(living), RECORD)
    records["unit"] = [0 if is_living else GONE for is_living in living]
    columns = {name: np.ascontiguousarray(records[name]) for name in RECORD.names or ()}
    return ScopeDocValues(scope, 1, columns, NOTHING, Timed(NOTHING, np.zeros(0), np.zeros(0)))


LIVING = st.lists(st.booleans(), max_size=12)
ODD = st.sampled_from([None, "odd", b"\xff", 1.5, -1, -(2**63), 2**62, True])


@given(LIVING, st.lists(st.one_of(st.integers(-3, 14), ODD)))
def test_a_number_is_the_place_of_a_living_memory_and_all_else_is_nowhere(
    living: list[bool], asked: list[object]
) -> None:
    known = {number for number, is_living in enumerate(living) if is_living}
    expected = [number if type(number) is int and number in known else NOWHERE for number in asked]
    assert shelf_of("global", living).places_of(asked).tolist() == expected


@given(LIVING, LIVING, st.lists(st.tuples(st.sampled_from(["global", "user:1", "user:2"]), st.integers(-3, 14))))
def test_a_key_is_found_in_its_scope_alone(one: list[bool], other: list[bool], keys: list[tuple[str, int]]) -> None:
    shelves = [shelf_of("global", one), shelf_of("user:1", other)]
    found = DocValues(lambda *_: ()).locate(shelves, keys)
    for shelf, places in zip(shelves, found, strict=True):
        theirs = [number if scope == shelf.scope else NOWHERE for scope, number in keys]
        assert places.tolist() == shelf.places_of(theirs).tolist()


RANGES = (ReaderRange(0, 3), ReaderRange(4, 5), ReaderRange(9, 4))


def test_ranges_of_analyzer_versions_move_with_the_numbers() -> None:
    assert renumbered(RANGES, [1, 3, 4, 8, 12]) == (ReaderRange(0, 3), ReaderRange(2, 5), ReaderRange(4, 4))
    assert renumbered(RANGES, []) == (ReaderRange(0, 3), ReaderRange(0, 5), ReaderRange(0, 4))
