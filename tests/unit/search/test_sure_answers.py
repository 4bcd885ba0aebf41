"""Answers for callers who want to be sure: `strict` by the verdict, `min_confidence` hit by hit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import whyrank
from whyrank.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

QUESTION = "copper kettle descaling vinegar"


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[whyrank.Engine]:
    """Return three notes that hold four, two and one of the words of the question, among others."""
    with whyrank.open(tmp_path / "memory.db", workspace=tmp_path, embedding="none", calibration="manual") as engine:
        engine.add("descaling the copper kettle takes vinegar", name="all four")
        engine.add("the copper kettle whistles", name="two")
        engine.add("vinegar stands in the larder", name="one")
        for number in range(9):
            engine.add(f"an unrelated remark, number {number}, on gardens and weather")
        yield engine


def test_hits_below_the_least_confidence_are_dropped_with_their_reason(memory: whyrank.Engine) -> None:
    everything = memory.search(QUESTION)
    sure = {hit.memory.name: hit.confidence or 0.0 for hit in everything}
    assert sure["all four"] > sure["two"] > sure["one"]
    least = (sure["two"] + sure["one"]) / 2
    results = memory.search(QUESTION, min_confidence=least)
    assert [hit.memory.name for hit in results] == ["all four", "two"]
    assert [hit.confidence for hit in results] == [sure["all four"], sure["two"]]
    dropped = {hit.memory.name: hit.trail[-1] for hit in results.dropped}
    assert dropped["one"].stage == "min-confidence"
    assert f"{sure['one']:.0%} confidence" in dropped["one"].why
    assert results.verdict == everything.verdict


def test_the_page_is_cut_among_the_confident(memory: whyrank.Engine) -> None:
    least = 0.01
    whole = [hit.id for hit in memory.search(QUESTION, min_confidence=least)]
    pages = [memory.search(QUESTION, min_confidence=least, limit=1, offset=offset) for offset in range(len(whole))]
    assert [hit.id for page in pages for hit in page] == whole
    assert {page.verdict for page in pages} == {memory.search(QUESTION).verdict}


@pytest.mark.parametrize("least", [-0.1, 1.1, float("nan"), "half"])
def test_a_confidence_that_is_none_is_refused(memory: whyrank.Engine, least: float) -> None:
    with pytest.raises(ConfigError, match="min_confidence"):
        memory.search(QUESTION, min_confidence=least)


def test_strict_gives_results_only_on_found(memory: whyrank.Engine) -> None:
    assert memory.search(QUESTION, strict=True).verdict == "found"
    assert len(memory.search(QUESTION, strict=True)) == 3
    # one word of five
    weak = memory.search("vinegar prices rise again tomorrow", strict=True)
    assert weak.verdict != "found"
    assert len(weak) == 0
    assert {hit.trail[-1].stage for hit in weak.dropped} == {"strict"}
