"""Every cache is bounded by the bytes it holds, and an engine says how many that are."""

from __future__ import annotations

import gc
import random
from typing import TYPE_CHECKING

import pytest

import whyrank
from whyrank import Engine
from whyrank.analysis.normalize import (
    ENTRY_BYTES,
    LONGEST_WORD,
    ByteBoundedCache,
    Memo,
    most_shared_bytes,
    shared_bytes,
    text_cache,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ROUND = 150  # questions
WORDS = 6
LETTERS = "abcdefghijklmnopqrstuvwxyz"


def test_the_least_recently_used_entries_go_first() -> None:
    cache = ByteBoundedCache[str, bytes](3 * (100 + ENTRY_BYTES), lambda _, value: len(value))
    cache.update({name: bytes(100) for name in "abc"})
    assert cache.get("a") is not None  # now b is the oldest
    cache.put("d", bytes(100))
    assert cache.keys() == ["c", "a", "d"]
    assert cache.nbytes == 3 * (100 + ENTRY_BYTES)


def test_an_entry_that_is_put_again_is_counted_once() -> None:
    cache = ByteBoundedCache[str, bytes](10_000, lambda _, value: len(value))
    cache.put("a", bytes(1_000))
    cache.put("a", bytes(10))
    assert (len(cache), cache.nbytes) == (1, 10 + ENTRY_BYTES)
    cache.drop(["a", "unknown"])
    assert (len(cache), cache.nbytes) == (0, 0)


def test_the_newest_entry_stays_even_if_it_is_too_large() -> None:
    cache = ByteBoundedCache[str, bytes](100, lambda _, value: len(value))
    cache.put("small", bytes(1))
    cache.put("large", bytes(1_000))
    assert cache.keys() == ["large"]


def test_results_for_long_texts_are_not_kept() -> None:
    asked: list[str] = []

    @text_cache(10, longest=3)
    def shout(text: str) -> str:
        asked.append(text)
        return text.upper()

    assert [shout(text) for text in ("tea", "tea", "teapot", "teapot")] == ["TEA", "TEA", "TEAPOT", "TEAPOT"]
    assert asked == ["tea", "teapot", "teapot"]


def question(number: int) -> str:
    chance = random.Random(number)
    return " ".join("".join(chance.choices(LETTERS, k=8)) for _ in range(WORDS))


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    place: Path = tmp_path_factory.mktemp("caches")
    chance = random.Random(0)
    words = [question(number).split()[0] for number in range(10_000, 10_300)]
    with whyrank.open(place / "memory.db", workspace=place, embedding="none", cache_megabytes=8) as opened:
        (place / "notes").mkdir()
        for number in range(300):
            (place / "notes" / f"{number}.md").write_text(" ".join(chance.choices(words, k=12)))
        opened.ingest(place / "notes")
        yield opened


def test_fresh_questions_fill_the_caches_up_to_their_bounds(engine: Engine) -> None:
    """Lists may hold 36 % · 3/8 of 8 MB: at 14 terms of 420 bytes a question, full after 200 questions."""
    for number in range(2 * ROUND):
        engine.search(question(number))
    first = dict(engine.status().caches)
    for number in range(2 * ROUND, 3 * ROUND):
        engine.search(question(number))
    second = dict(engine.status().caches)
    shared = second.pop("analyzer")
    assert shared <= most_shared_bytes()
    assert second["lists"] <= 8 * 1024 * 1024 * 36 // 100 * 3 // 8
    assert second["lists"] >= 0.9 * first["lists"] > 0
    assert sum(second.values()) <= 8 * 1024 * 1024


def test_fresh_questions_leave_no_more_objects_behind_once_the_caches_are_full(engine: Engine) -> None:
    """Without a bound every question leaves about 14 lists in the store, and 150 of them 2,100."""
    for number in range(20_000, 20_000 + 2 * ROUND):
        engine.search(question(number))
    before = objects_of_the_store()
    for number in range(30_000, 30_000 + ROUND):
        engine.search(question(number))
    assert objects_of_the_store() - before < ROUND // 10


def objects_of_the_store() -> int:
    gc.collect()
    return sum(str(type(one).__module__).startswith("whyrank.storage.") for one in gc.get_objects())


def test_what_the_whole_process_shares_is_counted_by_entries() -> None:
    assert 0 < shared_bytes() <= most_shared_bytes()


def test_a_share_of_a_store_is_told_nothing_of_its_caches(engine: Engine) -> None:
    assert engine.status().caches["lists"] > 0
    assert engine.status(scope="user:1").caches == {}


def test_a_word_is_worked_out_once() -> None:
    asked: list[str] = []

    def shouted(word: str) -> str:
        asked.append(word)
        return word.upper()

    memo = Memo(shouted)
    assert [*map(memo.__getitem__, ("tea", "pot", "tea"))] == ["TEA", "POT", "TEA"]
    assert asked == ["tea", "pot"]


def test_what_is_too_long_to_come_again_is_not_kept() -> None:
    memo = Memo(len)
    assert memo["x" * LONGEST_WORD] == LONGEST_WORD
    assert memo["x" * (LONGEST_WORD + 1)] == LONGEST_WORD + 1
    assert [*memo.values()] == [LONGEST_WORD]


def test_the_older_half_goes_where_there_is_too_much() -> None:
    memo = Memo(len, most=4)
    for word in ("a", "b", "c", "d", "e"):
        assert memo[word] == 1
    assert [*memo] == ["c", "d", "e"]
