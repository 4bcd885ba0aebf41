"""Calibration: what is measured, kept, read again, and said about it."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.unit.ranking.builders import context, hit, memory, ranking
from whyrank.analysis.document import entry_for
from whyrank.errors import ConfigError, ProviderError
from whyrank.protocols import Changes, Store, Vector
from whyrank.ranking.recipes import recipe_named
from whyrank.ranking.stages import Evidence
from whyrank.search.calibrator import MIN_GAP, MIN_WEAK, _bar, calibrate, quantile
from whyrank.search.confidence import (
    MIN_MEMORIES,
    Calibration,
    Cutoffs,
    calibrated_owners,
    calibration_for,
    calibrations_in,
    is_due,
    judge,
    keep_calibration,
    notes_about,
    notices_about,
)
from whyrank.search.searcher import Searcher
from whyrank.storage.store import SqliteStore
from whyrank.testing.fakes import WordDirections
from whyrank.testing.memory_store import MemoryStore
from whyrank.testing.store_contract import NOW, fact
from whyrank.types.memory import GLOBAL, Scope
from whyrank.types.query import Query, Where
from whyrank.types.results import Signal

if TYPE_CHECKING:
    from pathlib import Path

EMBEDDER = WordDirections()
SPACE = EMBEDDER.fingerprint
USER, SESSION = Scope("user", "1"), Scope("session", "9")
THINGS = ("kettle", "lathe", "harbour", "violin", "glacier", "orchard", "turbine", "lantern", "quarry", "saddle")
DEEDS = ("rusted near the northern gate", "was sold to Marta in spring", "needs oil every second week")


def notes(count: int, scope: Scope = GLOBAL) -> list[str]:
    return [f"The {THINGS[i % 10]} number {i} {DEEDS[i % 3]}, said {scope} clerk {i * 7}." for i in range(count)]


def filled(folder: Path, count: int, *scopes: Scope) -> Store:
    folder.mkdir(exist_ok=True)
    store = SqliteStore(folder / "memory.db")
    for scope in scopes or (GLOBAL,):
        found = [fact(f"{scope}_{i}", text, scope=scope) for i, text in enumerate(notes(count, scope))]
        entries = [entry_for(memory, "en") for memory in found]
        rows = EMBEDDER.documents([entry.embed_text for entry in entries])
        vectors = {entry.embed_hash: row for entry, row in zip(entries, rows, strict=True)}
        store.write(Changes(put=entries, space=SPACE, vectors=vectors))
    return store


def made(memories: int = 100, **fields: object) -> Calibration:
    plain = Calibration(
        SPACE, ("global",), memories, NOW, 200, 96, ("en",),
        coverage=Cutoffs(0.15, 0.2, 0.95, 0.9), words=Cutoffs(0.2, 0.3, 0.95, 0.9), cosine=Cutoffs(0.1, 0.4, 0.95, 0.9),
        both=Cutoffs(0.5, 0.7, 0.95, 0.9),
    )  # fmt: skip
    return replace(plain, **fields)  # type: ignore[arg-type]


def test_a_quantile_lies_between_its_neighbours_in_proportion() -> None:
    assert quantile([4.0, 1.0, 2.0, 3.0], 0.1) == pytest.approx(1 + 0.3 * (2 - 1))  # place 0.1 × 3 = 0.3
    assert quantile([5.0], 0.9) == 5.0


def test_apart_weak_begins_above_seven_of_ten_foreign_questions_and_found_above_nearly_all() -> None:
    foreign, own = [i / 10 for i in range(11)], [5.0 + i / 10 for i in range(11)]
    bar = _bar(own, foreign)
    # 70 % and 92 % of 0 … 1, and one tenth of 5 … 6 is 5.1
    assert (bar.weak, bar.found) == pytest.approx((0.7, 0.92))
    assert (bar.kept, bar.rejected) == pytest.approx((1.0, 7 / 11))


def test_overlapping_nine_of_ten_own_questions_are_kept() -> None:
    foreign, own = [i / 10 for i in range(11)], [i / 10 for i in range(11)]
    bar = _bar(own, foreign)
    assert (bar.weak, bar.found) == pytest.approx((0.1, 0.92))
    assert bar.kept == pytest.approx(10 / 11)


def test_weak_and_found_are_never_the_same() -> None:
    bar = _bar([0.5] * 30, [0.5] * 30)
    assert bar.found - bar.weak == pytest.approx(MIN_GAP)


def test_own_questions_find_more_than_foreign_ones(tmp_path: Path) -> None:
    found = calibrate(filled(tmp_path, 60), EMBEDDER, "en", Where(now=NOW))
    assert (found.memories, found.own, found.foreign, found.languages) == (60, 200, 96, ("en",))
    assert found.both is not None
    assert found.cosine is not None
    assert found.both.kept > 0.85
    assert found.both.rejected > 0.6
    assert (found.space, found.scopes, found.made) == (SPACE, ("global",), NOW)


def test_without_an_embedder_only_words_have_bars(tmp_path: Path) -> None:
    found = calibrate(filled(tmp_path, 40), None, "en", Where(now=NOW))
    assert (found.space, found.both, found.cosine) == ("", None, None)
    # Foreign questions share no word with so few notes, so that weak begins at its floor.
    assert found.coverage.weak == MIN_WEAK < found.coverage.found
    assert found.coverage.rejected > 0.9
    assert found.words.weak == MIN_WEAK < found.words.found


def test_too_few_memories_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=f"{MIN_MEMORIES - 1} memories give too few questions"):
        calibrate(filled(tmp_path, MIN_MEMORIES - 1), EMBEDDER, "en", Where(now=NOW))


def test_a_failing_embedder_is_an_error_and_not_another_measurement(tmp_path: Path) -> None:
    class Down(WordDirections):
        def query(self, text: str) -> Vector:
            raise RuntimeError("no route")

    with pytest.raises(ProviderError, match="no route"):
        calibrate(filled(tmp_path, 40), Down(), "en", Where(now=NOW))


def test_what_others_may_see_is_not_measured(tmp_path: Path) -> None:
    alone, shared = filled(tmp_path / "alone", 40), filled(tmp_path / "shared", 40, GLOBAL, USER)
    assert calibrate(alone, EMBEDDER, "en", Where(now=NOW)) == calibrate(shared, EMBEDDER, "en", Where(now=NOW))


def test_what_was_kept_is_read_again_for_the_same_scopes_and_space_only() -> None:
    store = MemoryStore()
    keep_calibration(store, made())
    keep_calibration(store, made(7, scopes=("global", "user:1")))
    assert calibration_for(store.note, SPACE, frozenset({GLOBAL}), 9_000) == made()
    assert calibration_for(store.note, SPACE, frozenset({GLOBAL, USER}), 9_000) == made(7, scopes=("global", "user:1"))
    assert calibration_for(store.note, "another", frozenset({GLOBAL}), 100) is None
    assert [found.memories for found in calibrations_in(store, SPACE)] == [100, 7]
    assert calibrations_in(store, "another") == []


def test_few_memories_more_go_by_what_they_are_added_to() -> None:
    store = MemoryStore()
    keep_calibration(store, made(100))
    keep_calibration(store, made(150, scopes=("global", "user:1")))

    def over(memories: int, *scopes: Scope) -> int | None:
        found = calibration_for(store.note, SPACE, frozenset({GLOBAL, *scopes}), memories)
        return found.memories if found is not None else None

    assert over(299, USER, SESSION) == 150  # the session in what the user sees
    assert over(199, Scope("user", "2")) == 100  # another user among what all see
    assert over(200, Scope("user", "2")) is None  # who has as much as all the others


@pytest.mark.parametrize("text", ["", "nonsense", "[]", '{"format": 99}', '{"format": 2, "coverage": 3}'])
def test_a_note_in_another_shape_is_no_calibration(text: str) -> None:
    store = MemoryStore()
    keep_calibration(store, made())
    [name] = store.notes()
    store.put_note(name, text)
    assert calibration_for(store.note, SPACE, frozenset({GLOBAL}), 100) is None
    assert calibrations_in(store, SPACE) == []


@pytest.mark.parametrize(
    "damaged",
    [
        {"both": [0.9, 0.1, 1, 1]}, {"both": [0.5, 0.5, 1, 1]}, {"both": ["a", "b", 1, 1]}, {"words": None},
        {"words": [0.1, float("nan"), 1, 1]}, {"memories": "many"}, {"memories": None}, {"made": "today"},
    ],
)  # fmt: skip
def test_a_note_that_says_what_nobody_measures_is_no_calibration(damaged: dict[str, object]) -> None:
    store = MemoryStore()
    keep_calibration(store, made())
    [(name, text)] = store.notes().items()
    store.put_note(name, json.dumps({**json.loads(text), **damaged}))
    assert calibration_for(store.note, SPACE, frozenset({GLOBAL}), 100) is None


def test_a_calibration_of_another_evidence_is_measured_again_and_forgotten_with_its_scope(tmp_path: Path) -> None:
    store = filled(tmp_path, 40)
    keep_calibration(store, made(40))
    keep_calibration(store, made(40, scopes=("global", "user:1")))
    for name, text in store.notes().items():
        store.put_note(name, text.replace('"format": 3', '"format": 2'))
    assert calibration_for(store.note, SPACE, frozenset({GLOBAL}), 40) is None
    assert is_due(store, SPACE, frozenset({GLOBAL}))
    assert calibrated_owners(store) == [GLOBAL, USER]
    assert notes_about(store, USER) == [name for name in store.notes() if "user:1" in name]
    assert len(notes_about(store, GLOBAL)) == 2


@pytest.mark.parametrize(("memories", "outgrown"), [(50, True), (51, False), (199, False), (200, True)])
def test_a_store_outgrows_its_calibration_when_it_doubles_or_halves(memories: int, outgrown: bool) -> None:
    assert made(100).is_outgrown(memories) == outgrown
    assert [notice.code for notice in notices_about(made(100), memories)] == ["calibration-old"] * outgrown


def test_calibration_is_due_when_there_is_none_and_when_it_is_outgrown(tmp_path: Path) -> None:
    store, scopes = filled(tmp_path, 40), frozenset({GLOBAL})
    assert is_due(store, SPACE, scopes)
    keep_calibration(store, made(40))
    assert not is_due(store, SPACE, scopes)
    keep_calibration(store, made(20))
    assert is_due(store, SPACE, scopes)
    assert not is_due(filled(tmp_path / "small", MIN_MEMORIES - 1), SPACE, scopes)


def test_what_confidence_rests_on_is_said() -> None:
    assert [notice.code for notice in notices_about(None, MIN_MEMORIES)] == ["uncalibrated"]
    assert [notice.code for notice in notices_about(None, MIN_MEMORIES - 1)] == ["few-memories"]
    assert notices_about(made(100), 100) == ()


@pytest.mark.parametrize(("cosine", "verdict"), [(0.49, "nothing"), (0.5, "weak"), (0.69, "weak"), (0.7, "found")])
def test_the_verdict_follows_the_calibration(cosine: float, verdict: str) -> None:
    said = {"vector": Signal("vector", {"a": cosine})}
    judgement = judge(ranking(hit(memory("a"), 0.9)), EMBEDDER, context(signals=said), made())
    assert (judgement.verdict, judgement.evidence) == (verdict, cosine)


def test_where_no_vector_spoke_the_bar_of_words_counts() -> None:
    asked = context(text="green tea", signals={"keyword": Signal("keyword", {"a": 1.0}, {"a": 0.25})})
    found = ranking(hit(memory("a"), 0.9))
    assert judge(found, EMBEDDER, asked, made()).verdict == "weak"
    assert judge(found, None, asked, made()).verdict == "weak"


def test_a_space_that_never_spoke_goes_by_the_model() -> None:
    said = {"vector": Signal("vector", {"a": 0.6})}  # the model: weak from 0.4, found from 0.9
    assert judge(ranking(hit(memory("a"), 0.9)), EMBEDDER, context(signals=said), made(both=None)).verdict == "weak"


def test_a_search_reads_the_calibration_and_writes_none(tmp_path: Path) -> None:
    store = filled(tmp_path, 40)
    searcher = Searcher(store, EMBEDDER, "en")
    query = Query("which lathe needs oil?", Where(now=NOW))
    before = searcher.search(query, recipe_named("default"))
    assert [notice.code for notice in before.notices] == ["uncalibrated"]
    assert store.notes() == {}
    keep_calibration(store, made(40, both=Cutoffs(1.9, 2.0, 1.0, 1.0)))
    after = searcher.search(query, recipe_named("default"))
    assert (after.notices, after.verdict) == ((), "nothing")
    assert after.evidence == before.evidence
    assert "weak from 1.9, found from 2" in after[0].explain()
    assert len(searcher.search(replace(query, strict=True), recipe_named("default"))) == 0


def test_evidence_without_thresholds_goes_by_the_calibration(tmp_path: Path) -> None:
    store = filled(tmp_path, 40)
    searcher = Searcher(store, EMBEDDER, "en")
    recipe = recipe_named("default").with_stages(Evidence())
    query = Query("which lathe needs oil?", Where(now=NOW))
    everything = searcher.search(query, recipe)
    assert not [dropped for dropped in everything.dropped if dropped.trail[-1].stage == "evidence"]
    strict = Cutoffs(0.99, 1.0, 1.0, 1.0)
    keep_calibration(store, made(40, coverage=strict, cosine=strict))
    assert len(searcher.search(query, recipe)) == 0
    lost = [dropped for dropped in searcher.search(query, recipe).dropped if dropped.trail[-1].stage == "evidence"]
    assert "is below 0.99" in lost[0].trail[-1].why
