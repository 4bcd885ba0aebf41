"""What is gathered for the stages that ask for it: likeness, and the opinions of rerankers good and bad."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

import whyrank
from whyrank.ranking.recipes import RECIPES
from whyrank.ranking.stages import Rerank
from whyrank.testing.fakes import SharedWords

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

FACTS = (
    "tea tea tea tea, and more tea",
    "the green pot is for tea",
    "a pot",
    "oil for the engine",
    "green is the colour of the green door",
)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    with whyrank.open(tmp_path / "memory.db", workspace=tmp_path) as memory:
        for fact in FACTS:
            memory.add(fact)
    return tmp_path


def search(place: Path, recipe: whyrank.Recipe | None = None, **options: Any) -> whyrank.Results:
    with whyrank.open(place / "memory.db", workspace=place, **options) as memory:
        return memory.search("green tea pot", limit=5, recipe=recipe)


def told(results: whyrank.Results) -> list[tuple[str, int, float]]:
    return [(hit.memory.text, hit.tier, hit.score) for hit in results]


@dataclass(frozen=True)
class Says:
    """A reranker that gives whatever it was told to give."""

    answer: Any

    def scores(self, question: str, texts: Sequence[str]) -> Any:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


class Late:
    """A reranker that waits until it is let go."""

    def __init__(self) -> None:
        self.release = threading.Event()

    def scores(self, question: str, texts: Sequence[str]) -> list[float]:
        self.release.wait(10)
        return [float(len(text)) for text in texts]


def test_a_reranker_orders_the_head_by_what_it_read(place: Path) -> None:
    results = search(place, reranker=SharedWords())
    assert results[0].memory.text == FACTS[1]
    steps = [step.op for step in results[0].trail if step.stage == "rerank"]
    assert steps == ["set", "lift"]
    assert results[0].score == SharedWords().scores("green tea pot", [FACTS[1]])[0]


def test_only_the_window_is_read_and_the_rest_follows_in_its_order(place: Path) -> None:
    plain = [hit.memory.text for hit in search(place)]
    recipe = RECIPES["default"].with_stages(Rerank(SharedWords(), top=2))
    read = [hit.memory.text for hit in search(place, recipe)]
    assert sorted(read[:2]) == sorted(plain[:2])
    assert read[2:] == plain[2:]


def test_a_recipe_that_brings_a_reranker_keeps_it(place: Path) -> None:
    recipe = RECIPES["default"].with_stages(Rerank(Says([1.0, 2.0, 3.0, 4.0, 5.0]), top=5))
    assert search(place, recipe, reranker=SharedWords())[0].score == 5.0


def test_a_recipe_with_an_empty_place_for_a_reranker_gets_the_one_of_the_engine(place: Path) -> None:
    recipe = RECIPES["default"].with_stages(Rerank(top=1))
    results = search(place, recipe, reranker=SharedWords())
    assert [hit.tier > 0 for hit in results] == [True] + [False] * (len(results) - 1)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (RuntimeError("no weights"), "it failed (RuntimeError: no weights)"),
        ([1.0], "it returned 1 score for"),
        ([float("nan")] * 5, "not finite"),
        (["high"] * 5, "not numbers"),
        (None, "not numbers"),
    ],
)
def test_a_reranker_that_fails_changes_nothing_and_is_named(place: Path, answer: object, said: str) -> None:
    results = search(place, reranker=Says(answer))
    assert told(results) == told(search(place))
    [notice] = [notice for notice in results.notices if notice.code == "rerank-off"]
    assert said in notice.message


def test_a_reranker_that_is_late_changes_nothing_and_is_named(place: Path) -> None:
    late = Late()
    recipe = RECIPES["default"].with_stages(Rerank(late, deadline_ms=30))
    results = search(place, recipe)
    late.release.set()
    assert told(results) == told(search(place))
    assert any("longer than 30 ms" in notice.message for notice in results.notices)


def test_a_stage_without_a_reranker_says_so(place: Path) -> None:
    results = search(place, RECIPES["default"].with_stages(Rerank()))
    assert told(results) == told(search(place))
    assert any("there is no reranker" in notice.message for notice in results.notices)


def test_being_read_makes_nobody_certain(place: Path) -> None:
    plain, read = search(place), search(place, reranker=SharedWords())
    assert read.verdict == plain.verdict
    assert {hit.id: hit.confidence for hit in read} == {hit.id: hit.confidence for hit in plain}


def test_nothing_is_gathered_for_recipes_that_do_not_ask(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from whyrank.storage.sqlite.index_reader import IndexReader

    asked: list[object] = []
    vectors = IndexReader.vectors

    def counted(*given: Any) -> Any:
        asked.append(given)
        return vectors(*given)

    monkeypatch.setattr(IndexReader, "vectors", counted)
    search(place)
    assert not asked
    search(place, ranking_mmr_lambda=0.5)
    assert len(asked) == 1


def test_without_an_embedder_diversity_goes_by_words(tmp_path: Path) -> None:
    with whyrank.open(tmp_path / "memory.db", workspace=tmp_path, embedding="none", ranking_mmr_lambda=0.3) as memory:
        for fact in ("green tea in a pot", "green tea in the pot", "tea and oil"):
            memory.add(fact)
        results = memory.search("green tea pot")
    assert results[1].memory.text == "tea and oil"
    assert "most like" in results[2].trail[-2].why
