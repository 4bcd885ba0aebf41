"""Confidence, verdict and budget on rankings small enough to follow."""

from __future__ import annotations

import pytest

from tests.unit.ranking.builders import hit, memory, ranking
from whyrank.search.budget import within_budget
from whyrank.search.confidence import COVERAGE_THRESHOLDS, evidence, judged
from whyrank.testing.embedder import WordDirections
from whyrank.trail import Step, replay
from whyrank.types import Signal

EMBEDDER = WordDirections()  # weak from 0.4, found from 0.9


def signals(cosine: float | None = None, coverage: float | None = None) -> dict[str, Signal]:
    """Return what the signals say of the memory a."""
    said = {"vector": Signal("vector", {"a": cosine})} if cosine is not None else {}
    return said if coverage is None else {**said, "keyword": Signal("keyword", {"a": coverage}, {"a": coverage})}


def test_evidence_is_the_best_cosine_plus_the_best_coverage() -> None:
    assert evidence([0.3], [0.1]) == pytest.approx(0.3 + 0.1)
    assert evidence([0.3, 0.2], [0.1, 0.5]) == pytest.approx(0.3 + 0.5)
    assert evidence([-0.2, None], [None, 0.1]) == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("cosine", "coverage", "verdict"), [(0.1, 0.2, "nothing"), (0.3, 0.2, "weak"), (0.6, 0.5, "found")]
)
def test_the_verdict_follows_the_thresholds(cosine: float, coverage: float, verdict: str) -> None:
    assert judged(ranking(hit(memory("a"), 0.9)), EMBEDDER, signals(cosine, coverage))[1] == verdict


def test_confidence_is_a_fifth_at_weak_and_four_fifths_at_found() -> None:
    for value, expected in ((0.4, 0.2), (0.9, 0.8)):
        ranked, *_ = judged(ranking(hit(memory("a"), 0.9)), EMBEDDER, signals(value, 0.0))
        assert ranked.hits[0].confidence == pytest.approx(expected)


def test_confidence_is_noted_in_the_trail_and_changes_no_key() -> None:
    found = hit(memory("a"), 0.9)
    ranked, *_ = judged(ranking(found), EMBEDDER, signals(0.5, 0.1))
    note = ranked.hits[0].trail[-1]
    assert (note.stage, note.op) == ("confidence", "note")
    assert "cosine + coverage = 0.600" in note.why
    assert replay(ranked.hits[0].trail) == found.key


def test_without_vectors_coverage_stands_alone() -> None:
    found, said = hit(memory("a"), 0.9), signals(coverage=COVERAGE_THRESHOLDS.found)
    assert judged(ranking(found), EMBEDDER, said)[1] == "found"
    assert judged(ranking(found), None, said)[1] == "found"


def test_an_exact_name_is_certain_whatever_else_is_said() -> None:
    named = hit(memory("a"), 0.1).after(Step("name", "lift", 16))
    ranked, verdict, _ = judged(ranking(named), EMBEDDER, signals(0.0, 0.0))
    assert (ranked.hits[0].confidence, verdict) == (1.0, "found")


def test_no_hits_are_nothing() -> None:
    assert judged(ranking(), EMBEDDER, {})[1] == "nothing"


def test_a_budget_keeps_whole_memories_from_the_top() -> None:
    # 8, 40 and 4 characters are 2, 10 and 1 tokens
    hits = [hit(memory(name, "x" * size), 0.5) for name, size in (("a", 8), ("b", 40), ("c", 4))]
    kept = within_budget(ranking(*hits), 5)
    assert [found.id for found in kept.hits] == ["a"]  # c would fit, but comes after what does not
    assert [found.trail[-1].stage for found in kept.dropped] == ["budget", "budget"]
    assert kept.notices[0].code == "budget"


def test_no_budget_keeps_everything() -> None:
    everything = ranking(hit(memory("a", "x" * 9_999), 0.5))
    assert within_budget(everything, None) is everything
