"""Codes choose and exact cosines decide: the rows found are those that are found by comparing every vector."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from whyrank.storage.bm25 import Unit
from whyrank.storage.sqlite.doc_values import RECORD, ScopeDocValues, Timed
from whyrank.storage.sqlite.postings.kernel import COMPILED, NUMPY
from whyrank.storage.sqlite.vectors import index
from whyrank.storage.sqlite.vectors.index import exact_rows, select_by_codes
from whyrank.storage.sqlite.vectors.table import CachedVectors, codes_of

if TYPE_CHECKING:
    from whyrank.storage.sqlite.database import Connection
    from whyrank.storage.sqlite.top_k import Rows

pytestmark = pytest.mark.skipif(COMPILED is None, reason="the package was built without a C compiler")

Vectors = NDArray[np.float32]
NOTHING = np.zeros(0, np.int64)
NO_FILE: Connection = sqlite3.connect(":memory:")  # no tie needs it: content keys begin differently


def unit(rows: NDArray[np.float64]) -> Vectors:
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    found: Vectors = (rows / np.where(lengths > 0, lengths, 1.0)).astype(np.float32)
    return found


def world(kind: str, count: int, dimensions: int, chance: np.random.Generator) -> Vectors:
    """Return unit vectors of one kind."""
    rows = chance.standard_normal((count, dimensions))
    if kind == "clustered":
        rows = chance.standard_normal((count // 20 + 1, dimensions))[np.arange(count) // 20] + 0.5 * rows
    elif kind == "nearly equal":
        rows = chance.standard_normal(dimensions) + 1e-4 * rows
    elif kind == "as near as a code's step":
        rows = chance.standard_normal(dimensions) + 0.03 * rows
    elif kind == "equal":
        rows = rows[chance.integers(0, min(3, count), count)]
    elif kind == "one direction each":
        rows = np.eye(dimensions)[chance.integers(0, dimensions, count)] * chance.choice([-1.0, 1.0], (count, 1))
    elif kind == "one large number":
        rows[:, 0] = 1e4
    elif kind == "tiny numbers":
        rows *= chance.choice([1.0, 1e-6, 1e-20], (count, dimensions))
    return unit(rows)


KINDS = (
    "random",
    "clustered",
    "as near as a code's step",
    "nearly equal",
    "equal",
    "one direction each",
    "one large number",
    "tiny numbers",
)


def shelf_of(scope: str, count: int, chunks_per_file: int) -> ScopeDocValues:
    columns = {name: np.zeros(count, RECORD[name]) for name in RECORD.names or ()}
    columns["unit"][:] = Unit.CHUNK
    columns["group"] = np.arange(count, dtype=np.uint64) // chunks_per_file
    columns["id"] = np.array([f"{scope[0]}{i}".encode() for i in range(count)], RECORD["id"])
    columns["tie"] = np.array([f"{scope[0]}{(i * 7) % 1_000_003:07d}".encode() for i in range(count)], RECORD["tie"])
    return ScopeDocValues(scope, 1, columns, NOTHING, Timed(NOTHING, np.zeros(0), np.zeros(0)))


def held_of(vectors: Vectors, missing: float, chance: np.random.Generator) -> CachedVectors:
    assert COMPILED is not None
    has = chance.random(len(vectors)) >= missing
    stored = vectors * has[:, np.newaxis]
    return CachedVectors(1, has, stored, None, NOTHING, codes=codes_of(COMPILED, stored, None, (), is_new=True))


def coded(vectors: Vectors) -> CachedVectors:
    return held_of(vectors, 0.0, np.random.default_rng(0))


@given(
    seed=st.integers(0, 2**32 - 1),
    kind=st.sampled_from(KINDS),
    counts=st.lists(st.integers(1, 900), min_size=1, max_size=3),
    dimensions=st.one_of(st.integers(1, 40), st.sampled_from([64, 255, 256, 300])),
    chunks_per_file=st.sampled_from([1, 1, 3, 50]),
    missing=st.sampled_from([0.0, 0.0, 0.3, 1.0]),
    share=st.sampled_from([None, 0.5, 0.02]),
    limit=st.sampled_from([1, 5, 50, 100, 2_000]),
)
@settings(max_examples=150, deadline=None)
def test_codes_find_what_comparing_every_vector_finds(
    seed: int,
    kind: str,
    counts: list[int],
    dimensions: int,
    chunks_per_file: int,
    missing: float,
    share: float | None,
    limit: int,
) -> None:
    chance = np.random.default_rng(seed)
    points = [world(kind, count, dimensions, chance) for count in counts]
    shelves = [shelf_of(name, count, chunks_per_file) for name, count in zip("abc", counts, strict=False)]
    held = [held_of(vectors, missing, chance) for vectors in points]
    masks = [None if share is None else chance.random(count) < share for count in counts]
    visible = [own.has if mask is None else own.has & mask for own, mask in zip(held, masks, strict=True)]
    question = unit(points[0][:1] + chance.choice([0.0, 0.1]) * chance.standard_normal((1, dimensions)))[0]

    def found(kernel: object) -> Rows:
        return exact_rows(NO_FILE, kernel, shelves, held, visible, question, limit)  # type: ignore[arg-type]

    assert found(COMPILED) == found(NUMPY)


@pytest.mark.parametrize("seed", range(5))
def test_the_margin_of_codes_keeps_the_nearest_vector_that_another_one_overtakes(seed: int) -> None:
    chance = np.random.default_rng(seed)
    vectors = world("as near as a code's step", 800, 64, chance)
    shelf, held = shelf_of("a", 800, 1), held_of(vectors, 0.0, chance)
    question = unit(vectors[:1] + 0.1 * chance.standard_normal((1, 64)))[0]

    def found(kernel: object) -> Rows:
        return exact_rows(NO_FILE, kernel, [shelf], [held], [None], question, 5)  # type: ignore[arg-type]

    # Decoded, a number is up to half a step off (3/127/2 = 0.012), which is as much as these vectors differ by.
    assert found(COMPILED) == found(NUMPY)


@pytest.mark.parametrize("kind", KINDS)
def test_codes_choose_few_unless_vectors_are_nearly_equal(kind: str) -> None:
    assert COMPILED is not None
    vectors = world(kind, 5_000, 256, np.random.default_rng(5))
    found = select_by_codes(COMPILED, [coded(vectors)], [None], vectors[7], 100)
    if kind in ("random", "clustered"):
        assert found is not None
        assert 100 <= len(found[0][0]) <= 400
    elif kind in ("nearly equal", "equal"):
        assert found is None  # more than a thousand are as near as the margin tells


def test_codes_of_what_has_changed_are_made_anew_and_readers_of_the_old_ones_see_no_change() -> None:
    assert COMPILED is not None
    chance = np.random.default_rng(3)
    vectors = world("random", 300, 48, chance)
    before = codes_of(COMPILED, vectors[:200], None, (), is_new=True)
    kept = before.values.copy(), before.scales.copy()
    grown = codes_of(COMPILED, vectors, before, [(200, 300)], is_new=True)
    changed = vectors.copy()
    changed[10:20] = world("random", 10, 48, chance)
    after = codes_of(COMPILED, changed, grown, [(10, 20)], is_new=False)
    for made, wanted in ((grown, vectors), (after, changed)):
        anew = codes_of(COMPILED, wanted, None, (), is_new=True)
        assert (made.values == anew.values).all()
        assert (made.scales == anew.scales).all()
        assert made.reach == anew.reach
    assert (before.values == kept[0]).all()
    assert (before.scales == kept[1]).all()


def test_what_has_no_numbers_is_left_to_whole_vectors() -> None:
    assert COMPILED is not None
    vectors = world("random", 50, 16, np.random.default_rng(1))
    damaged = vectors.copy()
    damaged[3, 2] = np.nan
    assert select_by_codes(COMPILED, [coded(damaged)], [None], vectors[0], 5) is None
    own = [coded(vectors)]
    assert select_by_codes(COMPILED, own, [None], np.zeros(16, np.float32), 5) is None
    assert select_by_codes(COMPILED, own, [None], np.full(16, np.inf, np.float32), 5) is None
    assert select_by_codes(COMPILED, own, [None], vectors[0][:8], 5) is None
    assert select_by_codes(COMPILED, own, [None], vectors[0], 5) is not None
    assert index.CHOSEN_FEW > 50
