"""The words of segments: listed with them, merged with them, and found without where they are missing."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np
import pytest

from whyrank.analysis.document import entry_for
from whyrank.protocols import Changes
from whyrank.storage.sqlite.database import Connection, connect, run_script
from whyrank.storage.sqlite.postings import segments, terms
from whyrank.storage.sqlite.postings.format import TABLES, Segment, live_segments
from whyrank.storage.sqlite.postings.terms import FIELD, FIRST, key_for
from whyrank.storage.store import SqliteStore
from whyrank.testing.store_contract import fact
from whyrank.types.memory import GLOBAL

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

MINE = frozenset({GLOBAL})
_LIVING = "(scope, segment) IN (SELECT scope, segment FROM posting_segments WHERE state = 0)"


@pytest.fixture(autouse=True)
def _small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segments, "FRESH_MEMORIES", 4)
    monkeypatch.setattr(segments, "POSTINGS_PER_STEP", 50)
    monkeypatch.setattr(terms, "PAGE_WORDS", 3)
    monkeypatch.setattr(terms, "PAGES_PER_STEP", 2)


def put(store: SqliteStore, texts: Sequence[str], start: int = 0) -> None:
    for number, text in enumerate(texts, start):
        store.write(Changes(put=[entry_for(fact(f"m_{number}", text), "en")]))


@contextmanager
def opened(path: Path) -> Iterator[Connection]:
    connection = connect(path)
    with connection:
        yield connection
    connection.close()


def pages(path: Path) -> list[bytes]:
    with opened(path) as connection:
        found = connection.execute(
            "SELECT page FROM posting_pages WHERE field = ? AND first_key > ?", (FIELD, FIRST)
        ).fetchall()
    return [page for (page,) in found]


def forget_words(path: Path) -> None:
    """Make the store one that was written before words were listed."""
    with opened(path) as connection:
        connection.execute("DELETE FROM posting_pages WHERE field = ?", (FIELD,))
        connection.execute("UPDATE posting_segments SET next_key = ? WHERE state = 1 AND field >= 3", (-(2**63),))
        connection.execute("UPDATE posting_scopes SET due = 0")


def test_keys_are_ordered_as_words_are() -> None:
    words = sorted(["a", "ab", "abcdefgh", "abcdefghi", "б", "日本", "api-key", "z", "tea", "🙂"])
    assert [key_for(word) for word in words] == sorted(key_for(word) for word in words)
    assert all(0 <= key_for(word) < 2**63 for word in words)


def test_words_that_share_seven_letters_stay_on_one_page(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "m.db")
    put(store, [f"deployment{number} alpha beta" for number in range(20)])
    assert store.beginning("zebra", MINE) == {}
    assert len(store.beginning("deployment", MINE)) == 20
    assert store.beginning("deployment1", MINE).keys() == {"deployment1", *(f"deployment1{i}" for i in range(10))}


def test_a_merge_leaves_out_words_that_nobody_holds_any_more(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "m.db")
    put(store, [f"word{number}" for number in range(8)])
    store.write(Changes(remove=[f"m_{number}" for number in range(1, 8)]))
    put(store, [f"other{number}" for number in range(24)], start=100)
    assert store.beginning("word", MINE) == {"word0": 1}
    with opened(tmp_path / "m.db") as connection:
        listed = live_segments(connection, str(GLOBAL))
        held = {word for segment in listed for word in terms.beginning(connection, segment, "word")}
    assert held == {"word0"}


def test_a_store_of_before_is_read_as_it_is_and_listed_as_it_is_written(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    store = SqliteStore(path)
    put(store, [f"deploy{number} tea" for number in range(30)])
    store.close()
    forget_words(path)
    store = SqliteStore(path)
    assert len(store.beginning("deploy", MINE)) == 30
    assert pages(path) == []  # a reader writes nothing
    put(store, [f"tea{number}" for number in range(30)], start=100)
    assert len(store.beginning("deploy", MINE)) == 30
    assert pages(path)
    with opened(path) as connection:
        listed = live_segments(connection, str(GLOBAL))
        assert all(terms.is_listed(connection, segment) for segment in listed)
    store.close()


def test_listing_goes_on_in_another_process_where_it_was(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    store = SqliteStore(path)
    put(store, [f"deploy{number} tea" for number in range(40)])
    store.close()
    forget_words(path)
    for start in range(100, 160):
        store = SqliteStore(path)  # each writes once and is gone
        put(store, ["green pot"], start)
        assert len(store.beginning("deploy", MINE)) == 40
        store.close()
    with opened(path) as connection:
        listed = live_segments(connection, str(GLOBAL))
        assert all(terms.is_listed(connection, segment) for segment in listed)


def test_what_an_older_version_left_half_listed_is_listed_whole(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    store = SqliteStore(path)
    put(store, [f"deploy{number} tea" for number in range(8)])
    store.close()
    with opened(path) as connection:
        for key in (FIRST, key_for("deploy0")):
            connection.execute(
                f"DELETE FROM posting_pages WHERE field = ? AND first_key = ? AND {_LIVING}", (FIELD, key)
            )
    store = SqliteStore(path)
    assert len(store.beginning("deploy", MINE)) == 8
    put(store, ["oil", "oil pot", "pot", "cup"], start=100)
    assert len(store.beginning("deploy", MINE)) == 8
    store.close()


def test_a_broken_page_of_words_is_made_up_for_from_the_texts_and_mended(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    store = SqliteStore(path)
    put(store, [f"deploy{number} tea" for number in range(8)])
    store.close()
    with opened(path) as connection:
        connection.execute(
            f"UPDATE posting_pages SET page = x'00010203' WHERE field = ? AND first_key > ? AND {_LIVING}",
            (FIELD, FIRST),
        )
    store = SqliteStore(path)
    assert len(store.beginning("deploy", MINE)) == 8
    put(store, ["oil"] * 12, start=100)
    assert b"\x00\x01\x02\x03" not in pages(path)
    assert len(store.beginning("deploy", MINE)) == 8
    store.close()


def test_a_switch_from_fts5_lists_the_words(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    store = SqliteStore(path, "fts5")
    put(store, [f"deploy{number} tea" for number in range(8)])
    store.close()
    store = SqliteStore(path, "postings")
    assert len(store.beginning("deploy", MINE)) == 8
    assert pages(path)
    store.close()


def test_words_of_several_segments_are_merged(tmp_path: Path) -> None:
    lists = [["tea", "teapot", "täglich", "a"], [f"w{number}" for number in range(20)], [], ["tea", "w3", "茶"]]
    with opened(tmp_path / "words.db") as connection:
        run_script(connection, TABLES)
        *sources, target = (Segment("global", number, 0, 0, 0) for number in range(len(lists) + 1))
        for source, words in zip(sources, lists, strict=True):
            terms.write(connection, source, words)
        key: int | None = -(2**63)
        while key is not None:
            key = terms.merge(connection, sources, target, key, lambda words: np.array(words) != "w7")
        found = terms.beginning(connection, target, "")
    assert found == sorted({word for words in lists for word in words} - {"w7"})
