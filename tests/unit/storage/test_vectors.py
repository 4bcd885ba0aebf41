"""Vectors by signs: the same nearest memories as by exact cosines, with filters, late vectors, turns and damage."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from whyrank.analysis.document import entry_for
from whyrank.errors import SpaceMismatch
from whyrank.protocols import Changes
from whyrank.storage.sqlite.doc_values import BLOCK
from whyrank.storage.sqlite.postings.kernel import COMPILED, KERNEL, NUMPY, Kernel
from whyrank.storage.sqlite.vectors import index
from whyrank.storage.sqlite.vectors.table import signs_of
from whyrank.storage.store import SqliteStore
from whyrank.testing.store_contract import NOW, fact
from whyrank.types.memory import GLOBAL, Scope, Source
from whyrank.types.query import Where

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from whyrank.types.results import Run

SPACE = "test/40"
DIMENSIONS = 40  # no multiple of 64: the bits beyond must not count
COUNT = 600
EVERYTHING = Where(now=NOW)
KERNELS = (KERNEL, NUMPY) if COMPILED is not None else (NUMPY,)


@pytest.fixture(autouse=True)
def _signs_from_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index, "EXACT_ROWS", 10)
    monkeypatch.setattr(index, "LOOKED_AT", 250)
    monkeypatch.setattr(index, "COMPARED", 120)


def cloud(count: int = COUNT, seed: int = 1) -> NDArray[np.float32]:
    """Return unit vectors in clusters of twenty, as embeddings of notes on a few topics are."""
    chance = np.random.default_rng(seed)
    centres = chance.standard_normal((count // 20 + 1, DIMENSIONS))
    points = centres[np.arange(count) // 20] + 0.8 * chance.standard_normal((count, DIMENSIONS))
    unit: NDArray[np.float32] = (points / np.linalg.norm(points, axis=1, keepdims=True)).astype(np.float32)
    return unit


def filled(
    path: Path,
    points: NDArray[np.float32],
    scope: str = "global",
    prefix: str = "m",
    kernel: Kernel = KERNEL,
) -> SqliteStore:
    return grow(SqliteStore(path, kernel=kernel), points, prefix, scope)


def grow(store: SqliteStore, points: NDArray[np.float32], prefix: str, scope: str = "global") -> SqliteStore:
    for start in range(0, len(points), 100):
        entries = [
            entry_for(
                fact(
                    f"{prefix}_{number}",
                    f"{prefix} note {number}",
                    scope=Scope.parse(scope),
                    kind="chunk",
                    source=Source(f"{number % 200:03d}/{number}.md"),
                ),
                "en",
            )
            for number in range(start, min(start + 100, len(points)))
        ]
        given = {entry.embed_hash: points[start + i] for i, entry in enumerate(entries)}
        store.write(Changes(put=entries, space=SPACE, vectors=given))
    return store


def exact(points: NDArray[np.float32], vector: NDArray[np.float32], passing: NDArray[np.int64], best: int) -> list[str]:
    cosines = points[passing].astype(np.float64) @ vector.astype(np.float64)
    return [f"m_{passing[i]}" for i in np.argsort(-cosines)[:best]]


def ids(run: Run, best: int) -> list[str]:
    return [candidate.id for candidate in run.candidates[:best]]


@pytest.mark.parametrize(("path", "share"), [(None, 1.0), ("0??/*", 0.5), ("00?/*", 0.05), ("000/*", 0.005)])
def test_signs_find_the_nearest_behind_any_filter(tmp_path: Path, path: str | None, share: float) -> None:
    points = cloud()
    store = filled(tmp_path / "memory.db", points)
    numbers = np.arange(COUNT)
    passing = numbers[numbers % 200 < round(share * 200)]
    for number in range(0, COUNT, 37):
        run = store.nearest(points[number], SPACE, Where(path=path, now=NOW), 50)
        assert ids(run, 10) == exact(points, points[number], passing, 10)
    store.close()


def test_an_open_store_and_a_new_one_hold_the_same_signs(tmp_path: Path) -> None:
    points = cloud()
    served = filled(tmp_path / "memory.db", points[:500])
    served.nearest(points[0], SPACE, EVERYTHING, 20)
    other = SqliteStore(tmp_path / "memory.db")
    more = [entry_for(fact(f"late_{number}", f"late note {number}"), "en") for number in range(100)]
    given = {entry.embed_hash: points[500 + i] for i, entry in enumerate(more)}
    other.write(Changes(put=more, space=SPACE, vectors=given))
    other.write(Changes(remove=["m_3", "m_7"]))
    for number in (0, 3, 333, 540, 599):
        expected = SqliteStore(tmp_path / "memory.db")
        assert served.nearest(points[number], SPACE, EVERYTHING, 20) == expected.nearest(
            points[number], SPACE, EVERYTHING, 20
        )
        expected.close()
    served.close()
    other.close()


def test_a_vector_that_comes_later_is_found(tmp_path: Path) -> None:
    points = cloud()
    store = filled(tmp_path / "memory.db", points)
    late = entry_for(fact("late", "a memory whose embedder was away"), "en")
    store.write(Changes(put=[late]))
    away = -points[0]
    assert "late" not in ids(store.nearest(away, SPACE, EVERYTHING, 5), 5)
    store.write(Changes(space=SPACE, vectors={late.embed_hash: away}))
    assert ids(store.nearest(away, SPACE, EVERYTHING, 5), 1) == ["late"]
    store.close()


def test_a_memory_that_is_put_again_keeps_its_vector_though_another_of_its_text_has_none(tmp_path: Path) -> None:
    entries = [
        entry_for(fact(f"m_{number}", "the same text", kind="chunk", source=Source(f"{number}.md"), name="Same"), "en")
        for number in range(2)
    ]
    one, other = entries
    assert one.embed_hash == other.embed_hash
    store = SqliteStore(tmp_path / "memory.db")
    store.write(Changes(put=entries, space=SPACE, vectors={one.embed_hash: cloud(1)[0]}))
    with store._database.writing() as connection:
        assert connection.execute("DELETE FROM vectors WHERE number = 1").rowcount == 1
    store.write(Changes(put=[one]))
    assert store.vectors(["m_0"], SPACE, frozenset([GLOBAL])).keys() == {"m_0"}
    store.close()


def test_a_damaged_block_of_signs_is_made_from_the_vectors(tmp_path: Path) -> None:
    points = cloud()
    store = filled(tmp_path / "memory.db", points)
    expected = store.nearest(points[5], SPACE, EVERYTHING, 30)
    with store._database.writing() as connection:
        assert connection.execute("UPDATE sign_blocks SET signs = zeroblob(length(signs))").rowcount == COUNT // BLOCK
    store.close()
    store = SqliteStore(tmp_path / "memory.db")
    assert store.nearest(points[5], SPACE, EVERYTHING, 30) == expected
    store.close()


def test_what_others_hold_changes_nothing(tmp_path: Path) -> None:
    points = cloud()
    alone = filled(tmp_path / "alone.db", points, "user:me")
    filled(tmp_path / "shared.db", cloud(300, seed=9), "user:other", "o").close()
    shared = filled(tmp_path / "shared.db", points, "user:me")
    mine = Where(frozenset({Scope("user", "me")}), now=NOW)
    for number in range(0, COUNT, 61):
        assert shared.nearest(points[number], SPACE, mine, 40) == alone.nearest(points[number], SPACE, mine, 40)
    alone.close()
    shared.close()


def test_turns_are_mixed_on_both_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    points = cloud(60)
    store = SqliteStore(tmp_path / "memory.db")
    entries = [
        entry_for(
            fact(f"m_{i}", f"turn {i}", kind="chunk", source=Source("log.jsonl", i), session="s", position=i), "en"
        )
        for i in range(60)
    ]
    given = {entry.embed_hash: points[i] for i, entry in enumerate(entries)}
    store.write(Changes(put=entries, space=SPACE, vectors=given))
    by_signs = store.nearest(points[30], SPACE, EVERYTHING, 60)
    # A turn is its own vector plus half of the one before: 1·a + 0.5·b, at unit length.
    both = points[30].astype(np.float64) + 0.5 * points[29]
    scores = {candidate.id: candidate.score for candidate in by_signs.candidates}
    assert scores["m_30"] == pytest.approx(float(both @ points[30]) / float(np.linalg.norm(both)), abs=1e-6)
    monkeypatch.setattr(index, "EXACT_ROWS", 20_000)
    exactly = SqliteStore(tmp_path / "memory.db").nearest(points[30], SPACE, EVERYTHING, 60)
    assert [candidate.id for candidate in by_signs.candidates] == [candidate.id for candidate in exactly.candidates]
    store.close()


@pytest.mark.parametrize("kernel", KERNELS)
def test_distance_is_the_number_of_signs_that_differ(kernel: Kernel) -> None:
    points = np.array([[1, -1, 1], [1, 1, 1], [-1, 1, -1], [1, -1, 1]], np.float32)
    question = signs_of(points[:1])
    found = index.apart(signs_of(points), question, np.array([True, True, True, False]), kernel)
    assert found.distances.tolist() == [0, 1, 3, index.FAR]
    assert found.counts.tolist() == [1, 1, 0, 1, *[0] * 61]  # one at each distance but 2, of 64 signs


def test_the_last_of_the_nearest_takes_its_equals_along() -> None:
    def of(*distances: int) -> index.Apart:
        seen = [distance for distance in distances if distance != index.FAR]
        return index.Apart(np.array(distances, np.uint16), np.bincount(seen, minlength=5))

    found = index.nearest([of(0, 2, 1, 2), of(2, 3)], 3)
    assert [places.tolist() for places in found] == [[0, 1, 2, 3], [0]]
    masked = index.nearest([of(index.FAR, 2, 1, 2), of(2, 3)], 1)
    assert [places.tolist() for places in masked] == [[2], []]


@pytest.mark.parametrize("kernel", KERNELS)
def test_numbers_are_added_where_signs_are_positive(kernel: Kernel) -> None:
    held = signs_of(np.array([[1, 1, -1], [-1, 1, 1], [-1, -1, -1]], np.float32))
    numbers = index.whole_numbers(np.array([0.5, -0.25, 1.0], np.float32))
    most = (2**24 - 1) // 3
    assert numbers[:4].tolist() == [round(most / 2), -round(most / 4), most, 0]
    sums = index.sums_under(held, np.array([1, 0, 2]), numbers, kernel)
    assert sums.tolist() == [float(numbers[1] + numbers[2]), float(numbers[0] + numbers[1]), 0.0]


@pytest.mark.parametrize("dimensions", [1, 63, 64, 65, 256, 2_000])
@pytest.mark.skipif(COMPILED is None, reason="the package was built without a C compiler")
def test_compiled_loops_over_signs_give_what_numpy_gives(dimensions: int) -> None:
    chance = np.random.default_rng(dimensions)
    held = signs_of(chance.standard_normal((1_003, dimensions)).astype(np.float32))
    asked = chance.standard_normal(dimensions).astype(np.float32)
    question, numbers = signs_of(asked[np.newaxis]), index.whole_numbers(asked)
    for mask in (None, chance.random(1_003) < 0.3):
        compiled, plain = (index.apart(held, question, mask, kernel) for kernel in (KERNEL, NUMPY))
        assert compiled.distances.tolist() == plain.distances.tolist()
        assert compiled.counts.tolist() == plain.counts.tolist()
    places = chance.integers(0, 1_003, 200)
    sums = [index.sums_under(held, places, numbers, kernel).tolist() for kernel in (KERNEL, NUMPY)]
    assert sums[0] == sums[1]


@pytest.mark.skipif(COMPILED is None, reason="the package was built without a C compiler")
def test_the_nearest_by_signs_are_the_same_with_and_without_compiled_loops(tmp_path: Path) -> None:
    points = cloud()
    compiled, plain = (filled(tmp_path / f"{n}.db", points, kernel=own) for n, own in enumerate((KERNEL, NUMPY)))
    for where in (EVERYTHING, Where(path="00?/*", now=NOW)):
        for question in points[::40]:
            runs = [list(store.nearest(question, SPACE, where, 20).candidates) for store in (compiled, plain)]
            assert runs[0] == runs[1]


def test_a_vector_of_another_dimension_is_refused_and_named(tmp_path: Path) -> None:
    points = cloud()
    store = filled(tmp_path / "memory.db", points[:50])
    entry = entry_for(fact("odd", "an odd one"), "en")
    with pytest.raises(SpaceMismatch, match="odd"):
        store.write(Changes(put=[entry], space=SPACE, vectors={entry.embed_hash: np.ones(8, np.float32)}))
    store.close()


def test_a_damaged_vector_is_left_out_and_said_so(tmp_path: Path) -> None:
    points = cloud()
    store = filled(tmp_path / "memory.db", points)
    with store._database.writing() as connection:
        # Bytes of 0xff are no numbers at all.
        damaged = (b"\xff" * 4 * DIMENSIONS,)
        assert connection.execute("UPDATE vectors SET vector = ? WHERE entry = 6", damaged).rowcount == 1
    store.close()
    store = SqliteStore(tmp_path / "memory.db")
    run = store.nearest(points[5], SPACE, EVERYTHING, 30)
    assert "m_5" not in ids(run, 99)
    assert [notice.code for notice in run.notices] == ["vectors-damaged"]
    assert all(-1.001 < candidate.score < 1.001 for candidate in run.candidates)
    [_, signal] = store.score(["m_5", "m_7"], ["note"], points[5], SPACE, EVERYTHING)
    assert signal.values.keys() == {"m_7"}
    store.close()


def test_a_damaged_vector_among_few_that_pass_does_not_keep_a_search_from_ending(tmp_path: Path) -> None:
    points = cloud()
    store = filled(tmp_path / "memory.db", points)
    with store._database.writing() as connection:
        connection.execute("UPDATE vectors SET checksum = checksum + 1 WHERE entry = 1")
    run = store.nearest(points[0], SPACE, Where(path="000/*", now=NOW), 50)
    assert set(ids(run, 99)) == {"m_200", "m_400"}  # of 0, 200 and 400 on that shelf
    store.close()


def test_a_turn_after_a_damaged_one_stays_as_it_is(tmp_path: Path) -> None:
    points = cloud(60)
    store = SqliteStore(tmp_path / "memory.db")
    entries = [
        entry_for(fact(f"m_{i}", f"turn {i}", kind="chunk", source=Source("log", i), session="s", position=i), "en")
        for i in range(60)
    ]
    given = {entry.embed_hash: points[i] for i, entry in enumerate(entries)}
    store.write(Changes(put=entries, space=SPACE, vectors=given))
    store.nearest(points[3], SPACE, EVERYTHING, 60)  # the signs are held now
    with store._database.writing() as connection:
        connection.execute("UPDATE vectors SET checksum = checksum + 1 WHERE hash = ?", (entries[2].embed_hash,))
    [_, signal] = store.score(["m_2", "m_3"], ["turn"], points[3], SPACE, EVERYTHING)
    assert signal.values == {"m_3": pytest.approx(1.0, abs=1e-6)}
    store.close()


@pytest.mark.skipif(COMPILED is None, reason="the package was built without a C compiler")
def test_codes_follow_what_is_written_and_count_as_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index, "EXACT_ROWS", 20_000)
    points = cloud()
    kinds = (KERNEL, NUMPY)
    stores = [filled(tmp_path / f"{number}.db", points[:400], kernel=kernel) for number, kernel in enumerate(kinds)]
    question = points[450]
    for change in range(3):
        runs = [store.nearest(question, SPACE, EVERYTHING, 50).candidates for store in stores]
        assert list(runs[0]) == list(runs[1])
        for store in stores:
            grow(store, points[400 + 60 * change : 460 + 60 * change], f"n{change}")
            store.write(Changes(remove=[f"m_{change}"]))
    cached = [store.status("").caches["vectors"] for store in stores]
    numbers_given = 400 + 2 * 60  # the cache is of the last question
    assert cached[0] - cached[1] == numbers_given * (DIMENSIONS + 4 + 4)  # a byte a number, a scale and an error


def test_a_store_says_whether_a_compiled_kernel_helps(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "memory.db", kernel=NUMPY)
    assert store.status("").engine.endswith(", no compiled kernel")
    if COMPILED is not None:
        assert SqliteStore(tmp_path / "memory.db").status("").engine.endswith(", a compiled kernel")
