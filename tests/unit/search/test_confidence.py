"""Confidence, verdict and budget on rankings small enough to follow."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.ranking.builders import context, hit, memory, ranking
from whyrank.analysis.query import analyse
from whyrank.search.confidence import COVERAGE_THRESHOLDS, coverage_counts, judge
from whyrank.search.searcher import within_budget
from whyrank.testing.fakes import WordDirections
from whyrank.types.results import Signal
from whyrank.types.trail import Step, Unheld, replay

if TYPE_CHECKING:
    from whyrank.types.results import Context

EMBEDDER = WordDirections()  # weak from 0.4, found from 0.9


def asked(cosine: float | None = None, coverage: float | None = None, text: str = "green tea") -> Context:
    """Return a question, of two words if no other is given, with what the signals say of the memory a."""
    said = {"vector": Signal("vector", {"a": cosine})} if cosine is not None else {}
    words = {"keyword": Signal("keyword", {"a": coverage}, {"a": coverage})} if coverage is not None else {}
    return context(memory("a"), text=text, signals={**said, **words})


ONE = ranking(hit(memory("a"), 0.9))


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        ("", 1.0),
        ("tea", 1.0),  # more than 2 * 1 / (1 + 2)
        ("green tea", 2 * 2 / (2 + 2)),
        ("green tea kettle", 2 * 3 / (3 + 2)),
        ("what does the green tea of the kettle cost?", 2 * 4 / (4 + 2)),  # green, tea, kettle, cost
        ('"green tea kettle"', 2 * 3 / (3 + 2)),  # one term of three words
    ],
)
def test_coverage_counts_the_more_the_more_words_are_asked_for(text: str, counts: float) -> None:
    assert coverage_counts(analyse(text)) == pytest.approx(counts)


def test_evidence_is_what_speaks_for_the_best_hit_by_cosine_and_coverage() -> None:
    three = "green tea kettle"
    assert judge(ONE, EMBEDDER, asked(0.3, 0.1, three)).evidence == pytest.approx(0.3 + 6 / 5 * 0.1)
    signals = {
        "vector": Signal("vector", {"a": 0.3, "b": -0.2}),
        "keyword": Signal("keyword", {"a": 1.0, "b": 1.0}, {"a": 0.1, "b": 0.5}),
    }
    two = ranking(hit(memory("a"), 0.9), hit(memory("b"), 0.8))
    judgement = judge(two, EMBEDDER, context(memory("a"), memory("b"), text=three, signals=signals))
    assert judgement.evidence == pytest.approx(6 / 5 * 0.5)  # b's own, not a's cosine with b's words
    of_each = [str(found.trail[-1].why) for found in judgement.ranking.hits]
    assert "= 0.420;" in of_each[0]  # 0.3 + 6/5 × 0.1
    assert "= 0.600;" in of_each[1]  # 0 + 6/5 × 0.5: no cosine speaks against a memory


@pytest.mark.parametrize(
    ("cosine", "coverage", "verdict"), [(0.1, 0.2, "nothing"), (0.3, 0.2, "weak"), (0.6, 0.5, "found")]
)
def test_the_verdict_follows_the_thresholds(cosine: float, coverage: float, verdict: str) -> None:
    assert judge(ONE, EMBEDDER, asked(cosine, coverage)).verdict == verdict


def test_confidence_is_a_fifth_at_weak_and_four_fifths_at_found() -> None:
    for value, expected in ((0.4, 0.2), (0.9, 0.8)):
        ranked, *_ = judge(ONE, EMBEDDER, asked(value, 0.0))
        assert ranked.hits[0].confidence == pytest.approx(expected)


@pytest.mark.parametrize(
    ("cosine", "confidence"),
    # weak from 0.4, found from 0.9: 0.2 · 0.1/0.4; 0.2 + 0.6 · 0.25/0.5; 1 − 0.2 · 0.9/1.0
    [(0.0, 0.0), (0.1, 0.05), (0.4, 0.2), (0.65, 0.5), (0.9, 0.8), (1.0, 0.82)],
)
def test_confidence_rises_in_lines_to_found_and_slowly_beyond(cosine: float, confidence: float) -> None:
    [found] = judge(ONE, EMBEDDER, asked(cosine)).ranking.hits
    assert found.confidence == pytest.approx(confidence)


@given(st.lists(st.tuples(st.floats(-1.0, 1.0), st.floats(0.0, 1.0)), min_size=1, max_size=6))
def test_the_verdict_never_contradicts_the_confidence(said: list[tuple[float, float]]) -> None:
    found = [memory(f"m_{place}") for place in range(len(said))]
    signals = {
        "vector": Signal("vector", {one.id: cosine for one, (cosine, _) in zip(found, said, strict=True)}),
        "keyword": Signal(
            "keyword",
            {one.id: coverage for one, (_, coverage) in zip(found, said, strict=True)},
            {one.id: coverage for one, (_, coverage) in zip(found, said, strict=True)},
        ),
    }
    hits = ranking(*(hit(one, 0.5) for one in found))
    judgement = judge(hits, EMBEDDER, context(*found, text="green tea kettle", signals=signals))
    best = max(one.confidence or 0.0 for one in judgement.ranking.hits)
    assert judgement.verdict == ("found" if best >= 0.8 else "weak" if best >= 0.2 else "nothing")


def test_rounding_lifts_no_confidence_above_its_verdict() -> None:
    for cosine, most in ((math.nextafter(0.9, 0.0), 0.8), (math.nextafter(0.4, 0.0), 0.2)):
        judgement = judge(ONE, EMBEDDER, asked(cosine))
        assert (judgement.ranking.hits[0].confidence or 0.0) < most, cosine


def test_a_memory_without_a_vector_counts_as_unrelated_and_not_as_opposite() -> None:
    # The floor is 0.3: a has a cosine of 0.35; b has none yet, and covers half of the question.
    signals = {
        "vector": Signal("vector", {"a": 0.35}, floor=0.3),
        "keyword": Signal("keyword", {"b": 1.0}, {"b": 0.5}),
    }
    two = ranking(hit(memory("b"), 0.9), hit(memory("a"), 0.8))
    judgement = judge(two, EMBEDDER, context(memory("a"), memory("b"), text="green tea kettle", signals=signals))
    assert judgement.evidence == pytest.approx(0.3 + 6 / 5 * 0.5)


def test_cosines_of_a_model_that_cannot_read_the_question_are_no_evidence() -> None:
    class Blind(type(EMBEDDER)):  # type: ignore[misc]
        def weight(self, language: str) -> float:
            return 0.0

    assert judge(ONE, Blind(), asked(0.9, 0.1, "green tea kettle")).evidence == pytest.approx(6 / 5 * 0.1)


def test_confidence_is_noted_in_the_trail_and_changes_no_key() -> None:
    found = hit(memory("a"), 0.9)
    ranked, *_ = judge(ranking(found), EMBEDDER, asked(0.5, 0.1, "green tea kettle"))
    note = ranked.hits[0].trail[-1]
    assert (note.stage, note.op) == ("confidence", "note")
    assert "cosine + 1.2 × coverage = 0.620" in note.why  # 0.5 + 1.2 × 0.1
    assert replay(ranked.hits[0].trail) == found.key


def test_who_holds_the_only_word_asked_for_is_never_nothing() -> None:
    # 0.1 + 0.2 = 0.3, where the model says weak from 0.4
    ranked, verdict, evidence, _ = judge(ONE, EMBEDDER, asked(0.1, 0.2, "tea"))
    assert (verdict, evidence) == ("weak", 0.4)
    assert ranked.hits[0].confidence == pytest.approx(0.2)
    assert "cosine + coverage is less than 0.400, but it contains the only word" in ranked.hits[0].trail[-1].why
    assert judge(ONE, EMBEDDER, asked(0.1, 0.0, "tea")).verdict == "nothing"  # which does not hold it
    dated = replace(analyse("tea"), dates=("@2026-05",))
    assert judge(ONE, EMBEDDER, replace(asked(0.1, 0.2), analysis=dated)).verdict == "nothing"  # the day is covered
    assert judge(ONE, EMBEDDER, asked(0.6, 0.6, "tea")).evidence == pytest.approx(0.6 + 0.6)


def test_where_a_code_stands_nowhere_all_speaks_for_the_rest_alone() -> None:
    missing = Unheld(("ERR-4012",), 0.75)
    three, two = (replace(asked(0.5, 0.6, text), unheld=missing) for text in ("green tea kettle", "green tea"))
    assert judge(ONE, EMBEDDER, three).evidence == pytest.approx((1 - 0.75) * (0.5 + 6 / 5 * 0.6))
    judgement = judge(ONE, EMBEDDER, two)
    assert judgement.verdict == "nothing"
    assert judgement.evidence == pytest.approx((1 - 0.75) * (0.5 + 0.6))
    why = judgement.ranking.hits[0].trail[-1].why
    assert "(cosine + coverage) × 0.25, because no memory contains ERR-4012, = 0.275" in why


def test_without_vectors_coverage_stands_alone() -> None:
    said = asked(coverage=COVERAGE_THRESHOLDS.found)
    for embedder in (EMBEDDER, None):
        ranked, verdict, *_ = judge(ONE, embedder, said)
        assert verdict == "found"
        assert ", coverage = " in ranked.hits[0].trail[-1].why


def test_an_exact_name_is_certain_whatever_else_is_said() -> None:
    named = hit(memory("a"), 0.1).after(Step("name", "lift", 16))
    ranked, verdict, *_ = judge(ranking(named), EMBEDDER, asked(0.0, 0.0))
    assert (ranked.hits[0].confidence, verdict) == (1.0, "found")


def test_no_hits_are_nothing() -> None:
    assert judge(ranking(), EMBEDDER, context()).verdict == "nothing"


def test_a_budget_keeps_whole_memories_from_the_top() -> None:
    # 8, 40 and 4 characters are 2, 10 and 1 tokens
    hits = [hit(memory(name, "x" * size), 0.5) for name, size in (("a", 8), ("b", 40), ("c", 4))]
    kept = within_budget(ranking(*hits), 5)
    assert [found.id for found in kept.hits] == ["a"]  # c would fit, but comes after what does not
    assert [found.trail[-1].stage for found in kept.dropped] == ["budget", "budget"]
    assert kept.notices[0].code == "budget"


def test_a_budget_for_all_keeps_everything() -> None:
    everything = ranking(hit(memory("a", "x" * 9_999), 0.5))
    assert within_budget(everything, 10_000) == everything
