"""A text is embedded once, and the vectors are the embedder's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import whyrank
from whyrank.providers.registry import with_cache
from whyrank.testing.fakes import WordDirections
from whyrank.types.memory import Document

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


class Counting(WordDirections):
    """Writes down what it embeds, questions with a mark."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def documents(self, texts: Sequence[str]) -> Any:
        self.seen += texts
        return super().documents(texts)

    def query(self, text: str) -> Any:
        self.seen.append(f"? {text}")
        return WordDirections().query(text)


def test_a_text_is_embedded_once_in_whatever_batch_it_comes() -> None:
    counting = Counting()
    embedder = with_cache(counting)
    texts = ["green tea", "oil", "green tea"]
    expected = WordDirections().documents(texts)
    assert np.array_equal(embedder.documents(texts), expected)
    assert np.array_equal(embedder.documents(["oil", "wool"])[0], expected[1])
    assert counting.seen == ["green tea", "oil", "wool"]


def test_a_question_is_no_document() -> None:
    counting = Counting()
    embedder = with_cache(counting)
    embedder.documents(["tea"])
    first, again = embedder.query("tea"), embedder.query("tea")
    assert np.array_equal(first, WordDirections().query("tea"))
    assert np.array_equal(first, again)
    assert counting.seen == ["tea", "? tea"]


def test_a_second_store_with_the_same_texts_embeds_none(tmp_path: Path) -> None:
    counting = Counting()
    embedder = with_cache(counting)
    seen = []
    for name in ("first.db", "second.db"):
        with whyrank.open(tmp_path / name, workspace=tmp_path, embedder=embedder, calibration="manual") as memory:
            memory.add_documents([Document("a", "green tea"), Document("b", "engine oil")])
            assert memory.models.space == counting.fingerprint
            assert [hit.memory.text for hit in memory.search("tea", limit=1)] == ["green tea"]
        seen.append(len(counting.seen))
    assert seen == [3, 3]  # two texts and a question


def test_what_an_embedder_declares_is_declared() -> None:
    own = WordDirections()
    embedder = with_cache(own)
    assert embedder.fingerprint == own.fingerprint
    assert embedder.weight("en") == own.weight("en")
    assert embedder.thresholds == own.thresholds
    with pytest.raises(AttributeError):
        _ = embedder.no_such_thing  # type: ignore[attr-defined]
