"""Names with umlauts are found however they are spelled, if no memory that may be seen has the spelling asked for."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import whyrank
from whyrank.analysis.words import foreign_stems

TEXTS = (
    "Jürgen Müller met us in the lobby of the hotel",
    "Goethe stayed in the inn",
    "The value of the blue book is high",
)


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[whyrank.Engine]:
    place = tmp_path_factory.mktemp("umlauts")
    with whyrank.open(place / "memory.db", workspace=place, embedding="none") as engine:
        for text in TEXTS:
            engine.add(text)
        engine.add("Mr Schroeder of the bank called", scope="user:1")
        engine.add("Mueller is another one", scope="user:2")
        yield engine


@pytest.mark.parametrize(("query", "text"), [("Mueller", 0), ("juergen mueller", 0), ("Göthe", 1), ("value blue", 2)])
def test_either_spelling_finds_the_other(engine: whyrank.Engine, query: str, text: int) -> None:
    [hit] = engine.search(query, recipe="keyword")
    assert hit.memory.text == TEXTS[text]


def test_another_spelling_is_asked_only_where_nobody_has_the_one_that_was_asked_for(engine: whyrank.Engine) -> None:
    assert [hit.memory.text for hit in engine.search("Schröder", recipe="keyword")] == []
    assert len(engine.search("Schröder", recipe="keyword", scope="user:1")) == 1
    assert [hit.memory.text for hit in engine.search("Mueller", recipe="keyword", scope="user:2")] == [
        "Mueller is another one"
    ]


def test_a_word_has_other_spellings_in_both_directions() -> None:
    assert "müller" in foreign_stems("Mueller")["mueller"]
    assert "mueller" in foreign_stems("Müller")["müller"]
    assert "tea" not in foreign_stems("tea")["tea"]
