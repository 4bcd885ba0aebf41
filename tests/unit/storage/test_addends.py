"""Contributions of terms to candidates: as of the time of the question, and small."""

from __future__ import annotations

import gc
import tracemalloc
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from whyrank.analysis.document import content_hash, entry_for
from whyrank.protocols import Changes
from whyrank.storage.store import SqliteStore
from whyrank.testing.store_contract import NOW, fact
from whyrank.types.memory import GLOBAL, Source
from whyrank.types.query import Where

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from whyrank.types.results import Signal
    from whyrank.types.trail import TermValue

EVERYTHING = Where(frozenset({GLOBAL}), now=NOW)
MEMORIES = 3_000  # every one of them holds both terms: 3,000 places and frequencies of 8 bytes each are 96 kB
CANDIDATES = [f"m_{number}" for number in range(20)]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    opened = SqliteStore(tmp_path / "memory.db")
    entries = [entry_for(fact(f"m_{number}", f"tea and cake {number}"), "en") for number in range(MEMORIES)]
    opened.write(Changes(put=entries))
    yield opened
    opened.close()


def scored(store: SqliteStore) -> Signal:
    [signal] = store.score(CANDIDATES, ["tea", "cake"], None, "", EVERYTHING)
    return signal


def told(signal: Signal) -> dict[str, tuple[TermValue, ...]]:
    return {identity: tuple(found) for identity, found in signal.terms.items()}


def write(store: SqliteStore, number: int) -> None:
    store.write(Changes(put=[entry_for(fact(f"later_{number}", f"tea again {number}"), "en")]))


def test_answers_kept_while_others_write_hold_little_more_than_their_own_numbers(store: SqliteStore) -> None:
    kept: list[Signal] = []
    tracemalloc.start()
    for number in range(10):
        kept.append(scored(store))
        write(store, number)
    last = scored(store)
    gc.collect()
    holding = tracemalloc.get_traced_memory()[0]
    kept.clear()
    gc.collect()
    freed = holding - tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert len(last.values) == len(CANDIDATES)
    assert freed / 10 < 20_000  # bytes


def test_what_is_read_late_is_what_was_true_when_it_was_asked(store: SqliteStore) -> None:
    at_once, late = told(scored(store)), scored(store)
    write(store, 1)
    now = told(scored(store))
    assert told(late) == at_once != now


QUESTION = ["tea", "green", "cake", "pot"]
FILES = ("green tea", "a pot of green cake", "tea cake and a green pot", "the cake")


def asked(store: SqliteStore, terms: list[str]) -> Signal:
    [signal] = store.score([f"c_{number}" for number in range(len(FILES))], terms, None, "", EVERYTHING)
    return signal


@pytest.mark.parametrize("paths", [["a.md", "a.md", "b.md", "b.md"], [""] * 4], ids=["with files", "without"])
@pytest.mark.parametrize("left_out", QUESTION)
def test_a_question_without_one_of_its_words_scores_as_if_it_were_the_first(
    tmp_path: Path, paths: list[str], left_out: str
) -> None:
    less = [word for word in QUESTION if word != left_out]  # without "green", "tea cake" is asked for as a pair
    put = []
    for number, (text, path) in enumerate(zip(FILES, paths, strict=True)):
        fields = {"kind": "chunk", "source": Source(path, number + 1, number + 1, content_hash(text))} if path else {}
        put.append(entry_for(fact(f"c_{number}", text, **fields), "en"))
    with closing(SqliteStore(tmp_path / "memory.db")) as store:
        store.write(Changes(put=put))
        alone = asked(store, less)
        whole = asked(store, QUESTION)
        again = asked(store, less)
        assert told(again) == told(alone) != told(whole)
        assert dict(again.values) == dict(alone.values)
        assert dict(again.coverage) == dict(alone.coverage)


def test_a_question_without_a_word_is_answered_from_what_the_whole_one_found(
    store: SqliteStore, tmp_path: Path
) -> None:
    words = ["tea", "cake", "7"]  # without "cake", "tea" stands before "7", which no text says
    store.score(CANDIDATES, words, None, "", EVERYTHING)
    [left] = store.score(CANDIDATES, ["tea", "7"], None, "", EVERYTHING)
    with closing(SqliteStore(tmp_path / "memory.db")) as other:  # who has not been asked for more before
        [alone] = other.score(CANDIDATES, ["tea", "7"], None, "", EVERYTHING)
    assert dict(left.values) == dict(alone.values)
    assert dict(left.coverage) == dict(alone.coverage)
    assert left.coverage["m_7"] > left.coverage["m_6"] > 0
    assert told(left) == told(alone)


def test_the_same_words_find_the_same_again_and_something_else_once_something_was_written(store: SqliteStore) -> None:
    first = store.keyword(["tea"], EVERYTHING, 5)
    assert store.keyword(["cake"], EVERYTHING, 5).ids == store.keyword(["cake"], EVERYTHING, 5).ids
    assert store.keyword(["tea"], EVERYTHING, 5) == first
    assert store.keyword(["tea"], EVERYTHING, 3).ids == first.ids[:3]
    store.write(Changes(put=[entry_for(fact("best", "tea tea tea"), "en")]))
    assert store.keyword(["tea"], EVERYTHING, 5).ids[0] == "best"
