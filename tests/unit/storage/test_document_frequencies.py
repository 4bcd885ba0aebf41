"""Counts of the terms of a segment: exact, and kept as long as they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from whyrank.analysis.document import entry_for
from whyrank.protocols import Changes
from whyrank.storage.sqlite.postings.format import Inverted, one_page
from whyrank.storage.sqlite.postings.reader import DocumentFrequencyCache, tally
from whyrank.storage.store import SqliteStore
from whyrank.types.memory import GLOBAL, Memory

if TYPE_CHECKING:
    from pathlib import Path

# Two terms: 10 in the memories 0 and 2, 20 in 0, 1 and 2.
PAGE = one_page(
    Inverted(
        np.array([10, 10, 20, 20, 20], np.int64),
        np.array([0, 2, 0, 1, 2], np.int64),
        np.ones(5, np.uint8),
        np.zeros(5, np.uint32),
    ),
    0,
)
ALL, FIRST_GONE = np.array([True, True, True]), np.array([False, True, True])


def test_only_the_living_are_counted() -> None:
    asked = np.array([20, 10, 15, 99])
    assert tally([PAGE], ALL).of(asked).tolist() == [3, 2, 0, 0]
    assert tally([PAGE], FIRST_GONE).of(asked).tolist() == [2, 1, 0, 0]
    assert tally([], ALL).of(asked).tolist() == [0, 0, 0, 0]


def test_a_tally_is_made_anew_when_one_of_its_memories_is_gone() -> None:
    kept = DocumentFrequencyCache()
    for living, is_known in ((ALL, False), (ALL, True), (FIRST_GONE, False), (FIRST_GONE, True)):
        known = kept.known("global", 1, living)
        assert (known is not None) == is_known
        kept.put("global", 1, known or tally([PAGE], living))
        assert (known or tally([PAGE], living)).of(np.array([10])).tolist() == [int(living[[0, 2]].sum())]


def test_of_too_many_tallies_the_one_asked_for_last_stays() -> None:
    kept = DocumentFrequencyCache(max_bytes=2 * 12 * 2)  # two terms of 12 bytes each; an entry takes some more
    kept.put("global", 1, tally([PAGE], ALL))
    kept.put("global", 2, tally([PAGE], ALL))
    assert kept.known("global", 1, ALL) is None
    assert kept.known("global", 2, ALL) is not None
    assert kept.nbytes > 0


def test_beginnings_of_few_and_of_many_words_are_counted_alike(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "memory.db")
    texts = [f"stone{i % 40} star{i % 7} moon{i}" for i in range(200)]
    store.write(Changes(put=[entry_for(Memory(f"m_{i}", text), "en") for i, text in enumerate(texts)]))
    scopes = frozenset({GLOBAL})
    for gone in range(3):
        store.write(Changes(remove=[f"m_{gone}"]))
        held = [set(text.split()) for text in texts[gone + 1 :]]
        for start in ("moon1", "st", "star3", "moon", "s"):
            words = {word for words in held for word in words if word.startswith(start)}
            assert store.beginning(start, scopes) == {word: sum(word in one for one in held) for word in words}
    store.close()
