"""The postings index: flushes, merges, removals, kills and damage change nothing that is found."""

from __future__ import annotations

import tempfile
import zlib
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whyrank.analysis.dates import is_mark
from whyrank.analysis.document import entry_for
from whyrank.protocols import Changes
from whyrank.storage.bm25 import GRAMS, WORDS
from whyrank.storage.sqlite import indexes, top_k
from whyrank.storage.sqlite import writer as writer_module
from whyrank.storage.sqlite.database import ChecksumError, Database, add_checksum, check_body, run_script
from whyrank.storage.sqlite.indexes import PostingsIndex, prepare_index
from whyrank.storage.sqlite.postings import format, scorer, segments
from whyrank.storage.sqlite.postings.format import Text, invert, key_of, merged, pack, unpack
from whyrank.storage.sqlite.postings.kernel import KERNEL, NUMPY, Kernel
from whyrank.storage.sqlite.schema import give_tokens_rows, key_segments_by_scope, number_pages
from whyrank.storage.store import SqliteStore
from whyrank.testing.memory_store import MemoryStore
from whyrank.testing.store_contract import NOW, fact
from whyrank.types.memory import GLOBAL, Entry, Memory, Scope, Source
from whyrank.types.query import Where
from whyrank.types.results import Run, forgotten, memory_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from whyrank.types.trail import TermValue

EVERYTHING = Where(now=NOW)
VOCABULARY = ("tea", "green", "pot", "kettle", "boil", "water", "leaves", "cup")


@pytest.fixture(autouse=True)
def _small_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    """Flush every three memories, merge two segments at a time in tiny steps, so that small worlds reach every path."""
    monkeypatch.setattr(segments, "FRESH_MEMORIES", 3)
    monkeypatch.setattr(segments, "POSTINGS_PER_STEP", 8)
    monkeypatch.setattr(format, "PAGE_BYTES", 64)


def told(run: Run) -> dict[str, float]:
    return {candidate.id: candidate.score for candidate in run.candidates}


def by_term(addends: Sequence[TermValue]) -> Mapping[tuple[str, str, str], float]:
    """Add up a term in its own text and in its surroundings, which are one where a file has one chunk."""
    sums: Counter[tuple[str, str, str]] = Counter()
    for term, field, context, value in addends:
        sums[term, field, "own" if context == "file" else context] += value  # type: ignore[assignment]
    return sums


@st.composite
def memories(draw: st.DrawFn, number: int) -> Memory:
    text = " ".join(draw(st.lists(st.sampled_from(VOCABULARY), min_size=1, max_size=6)))
    kind = draw(st.sampled_from(["fact", "chunk", "turn"]))
    path = draw(st.sampled_from(["a.md", "b.md", f"{number}.md"]))
    source = Source("" if kind == "fact" else path, number, number, str(number))
    session = draw(st.sampled_from(["s1", "s2"])) if kind == "turn" else ""
    shape = "fact" if kind == "fact" else "chunk"
    return fact(f"m_{number}", text, kind=shape, source=source, session=session, position=number)


@st.composite
def histories(draw: st.DrawFn) -> list[Changes]:
    """Writes and removals in any order."""
    changes: list[Changes] = []
    for number in range(draw(st.integers(1, 14))):
        dates = draw(st.sampled_from([(), ("day=1", "month=5", "year=2023"), ("day=2", "month=5", "year=2022")]))
        memory = draw(memories(number))
        speaker = draw(st.sampled_from([("by=ann",), ("by=bob",)])) if memory.is_turn else ()
        entry = replace(entry_for(memory, "en"), letters=draw(st.booleans()), marks=(*dates, *speaker))
        changes.append(Changes(put=[entry]))
        if number and draw(st.booleans()):
            changes.append(Changes(remove=[f"m_{draw(st.integers(0, number))}"]))
    return changes


def asked_terms() -> st.SearchStrategy[list[str]]:
    # A word twice in a row overlaps itself, and how often that counts is nobody's promise.
    phrases = st.lists(st.sampled_from(VOCABULARY), min_size=2, max_size=3, unique=True).map(" ".join)
    marks = st.sampled_from(["day=1", "month=5", "year=2023", "by=ann", "by=bob", "by=nobody"])
    return st.lists(st.sampled_from(VOCABULARY) | phrases | marks, min_size=1, max_size=5, unique=True)


some_repeats = st.dictionaries(st.sampled_from(VOCABULARY), st.integers(1, 17), max_size=3)


@given(histories(), asked_terms(), some_repeats)
@settings(max_examples=120, deadline=None)
def test_any_history_gives_what_the_oracle_gives(
    history: list[Changes], terms: list[str], repeats: dict[str, int]
) -> None:
    with tempfile.TemporaryDirectory() as place:
        real, oracle = SqliteStore(Path(place) / "memory.db", "postings"), MemoryStore()
        for changes in history:
            real.write(changes)
            oracle.write(changes)
        assert told(real.keyword(terms, EVERYTHING, None, repeats=repeats)) == pytest.approx(
            told(oracle.keyword(terms, EVERYTHING, None, repeats=repeats))
        )
        words = [term for term in terms if not is_mark(term)]
        assert real.statistics(words, EVERYTHING.scopes) == oracle.statistics(words, EVERYTHING.scopes)
        ids = [memory.id for memory in oracle.browse(EVERYTHING, 99)]
        [ours], [theirs] = (store.score(ids, terms, None, "", EVERYTHING, repeats) for store in (real, oracle))
        assert ours.values == pytest.approx(theirs.values)
        assert ours.coverage == pytest.approx(theirs.coverage)
        for identity in ids:
            assert by_term(ours.terms[identity]) == pytest.approx(by_term(theirs.terms[identity]))
        real.close()


@given(histories(), asked_terms())
@settings(max_examples=40, deadline=None)
def test_a_cache_that_lived_through_a_history_answers_like_a_fresh_one(
    history: list[Changes], terms: list[str]
) -> None:
    with tempfile.TemporaryDirectory() as place:
        served = SqliteStore(Path(place) / "memory.db", "postings")
        for changes in history:
            served.write(changes)
            served.keyword(terms, EVERYTHING, None)
        opened = SqliteStore(Path(place) / "memory.db", "postings")
        assert served.keyword(terms, EVERYTHING, None) == opened.keyword(terms, EVERYTHING, None)
        served.close()
        opened.close()


@given(histories(), asked_terms(), some_repeats, st.integers(1, 4), st.booleans())
@settings(max_examples=80, deadline=None)
def test_reading_long_lists_only_where_they_can_win_changes_nothing(
    history: list[Changes], terms: list[str], repeats: dict[str, int], limit: int, only_facts: bool
) -> None:
    where = Where(kinds=frozenset({"fact"}) if only_facts else frozenset(), now=NOW)
    with tempfile.TemporaryDirectory() as place, pytest.MonkeyPatch.context() as patch:
        store = SqliteStore(Path(place) / "memory.db", "postings")
        for changes in history:
            store.write(changes)
        exhaustive = store.keyword(terms, where, limit, repeats=repeats)
        patch.setattr(scorer, "LONG_FROM", 0)
        patch.setattr(scorer, "LONG_SHARE", 0.3)
        patch.setattr(scorer, "LATER_SHARE", 1e9)  # whatever is long is left for later
        patch.setattr(scorer, "ENOUGH", 0)
        patch.setattr(top_k, "MORE", 0)  # so that few are enough, and many can be passed over
        opened = SqliteStore(Path(place) / "memory.db", "postings")
        pruned = opened.keyword(terms, where, limit, repeats=repeats)
        assert [candidate.id for candidate in pruned.candidates] == [c.id for c in exhaustive.candidates]
        assert told(pruned) == pytest.approx(told(exhaustive))
        store.close()


@pytest.mark.parametrize("kernel", [KERNEL, NUMPY], ids=["compiled", "numpy"])
def test_chunks_of_one_file_that_alone_can_win_do_not_hide_other_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kernel: Kernel
) -> None:
    texts = [("a.md", "pot pot tea"), ("a.md", "pot tea pot"), ("b.md", "tea"), ("c.md", "tea")]
    store = SqliteStore(tmp_path / "memory.db", "postings")
    for number, (path, text) in enumerate(texts):
        chunk = fact(f"m_{number}", text, kind="chunk", source=Source(path, number, number, str(number)))
        store.write(Changes(put=[entry_for(chunk, "en")]))
    # Everything holds "tea", so its list waits; without it two chunks are the best two, and of one file.
    for name, value in {"LONG_FROM": 0, "LONG_SHARE": 0.9, "LATER_SHARE": 1e9, "ENOUGH": 0}.items():
        monkeypatch.setattr(scorer, name, value)
    monkeypatch.setattr(top_k, "MORE", 0)
    with store.view() as view:
        found = PostingsIndex(kernel=kernel).run(view, ["pot", "tea"], EVERYTHING, "or", 2)
    assert sorted(found.rows.ids) == ["m_0", "m_1", "m_2"]
    store.close()


@given(st.lists(st.lists(st.sampled_from(VOCABULARY), min_size=1, max_size=6), min_size=1, max_size=9), asked_terms())
@settings(max_examples=60, deadline=None)
def test_the_scores_of_a_run_are_the_sums_of_the_trail(texts: list[list[str]], terms: list[str]) -> None:
    with tempfile.TemporaryDirectory() as place:
        store = SqliteStore(Path(place) / "memory.db", "postings")
        for number, words in enumerate(texts):
            entry = replace(entry_for(fact(f"m_{number}", " ".join(words)), "en"), letters=bool(number % 2))
            store.write(Changes(put=[entry]))
        ids = [f"m_{number}" for number in range(len(texts))]
        listed = told(store.keyword(terms, EVERYTHING, None))
        [signal] = store.score(ids, terms, None, "", EVERYTHING)
        assert {key: sum_of(signal.terms[key]) for key in ids} == dict(signal.values)
        assert listed == pytest.approx({key: value for key, value in signal.values.items() if value}, abs=1e-9)
        store.close()


def sum_of(terms: Iterable[TermValue]) -> float:
    total = 0.0
    for term in terms:
        total += term.value
    return total


def filled(path: Path, count: int = 12) -> SqliteStore:
    store = SqliteStore(path, "postings")
    for number in range(count):
        store.write(Changes(put=[entry_for(fact(f"m_{number}", f"tea number{number} green pot"), "en")]))
    return store


def count(store: SqliteStore, query: str) -> int:
    found: int = store._database.reader().execute(query).fetchone()[0]
    return found


def merge_all(store: SqliteStore) -> None:
    more = True
    while more:
        with store._database.writing() as connection:
            more = segments.merge_step(connection)


def test_what_is_written_one_by_one_is_rewritten_only_a_few_times(tmp_path: Path) -> None:
    store = filled(tmp_path / "memory.db", 96)
    merge_all(store)
    sizes = [segment.memories for segment in format.live_segments(store._database.reader(), "global")]
    # 96 memories are 32 flushes of three; each segment is larger than all behind it, so there are at most five.
    assert sum(sizes) == 96
    assert all(size > sum(sizes[place + 1 :]) for place, size in enumerate(sizes))
    store.close()


def test_segments_are_merged(tmp_path: Path) -> None:
    store = filled(tmp_path / "memory.db", 24)
    before = told(store.keyword(["tea", "number7"], EVERYTHING, None))
    merge_all(store)
    assert count(store, "SELECT count(*) FROM posting_segments") <= 2
    assert told(store.keyword(["tea", "number7"], EVERYTHING, None)) == before
    store.close()


def test_what_many_writes_left_behind_is_merged_when_no_more_are_to_come(tmp_path: Path) -> None:
    store = filled(tmp_path / "memory.db", 45)
    before = told(store.keyword(["tea", "number7"], EVERYTHING, None))
    # 45 memories are 15 flushes of three: segments of 24, 12, 6 and 3.
    assert count(store, "SELECT count(*) FROM posting_segments") == 4
    store.settle([GLOBAL])
    assert count(store, "SELECT count(*) FROM posting_segments") == 1
    assert told(store.keyword(["tea", "number7"], EVERYTHING, None)) == before
    store.close()


def test_segments_of_a_bulk_are_merged_many_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segments, "BULK_MEMORIES", 3)
    monkeypatch.setattr(segments, "BULK_SEGMENTS", 4)
    store, sizes = SqliteStore(tmp_path / "memory.db"), list[list[int]]()
    for start in range(0, 12, 3):
        put = [entry_for(fact(f"m_{number}", f"tea number{number}"), "en") for number in range(start, start + 3)]
        store.write(Changes(put=put))
        merge_all(store)
        sizes.append([one.memories for one in format.live_segments(store._database.reader(), "global")])
    assert sizes == [[3], [3, 3], [3, 3, 3], [12]]
    assert {*told(store.keyword(["tea"], EVERYTHING, None))} == {f"m_{number}" for number in range(12)}
    store.close()


def test_segments_of_a_bulk_that_was_killed_are_merged_by_the_next_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(segments, "BULK_MEMORIES", 3)
    store = SqliteStore(tmp_path / "memory.db")
    for start in range(0, 12, 3):
        put = [entry_for(fact(f"m_{number}", f"tea number{number}"), "en") for number in range(start, start + 3)]
        store.write(Changes(put=put))  # and nobody settles it
    store.close()
    assert live_sizes(tmp_path / "memory.db") == [3, 3, 3, 3]
    for _ in range(50):  # whoever writes merges a little, here eight postings of some 200
        store = SqliteStore(tmp_path / "memory.db")
        store.write(Changes())
        store.close()
    assert live_sizes(tmp_path / "memory.db") == [12]


def live_sizes(path: Path) -> list[int]:
    store = SqliteStore(path)
    sizes = [segment.memories for segment in format.live_segments(store._database.reader(), "global")]
    store.close()
    return sizes


def test_a_few_memories_are_no_reason_to_rewrite_many(tmp_path: Path) -> None:
    store = filled(tmp_path / "memory.db", 45)
    store.settle([GLOBAL])
    # Three new ones are less than an eighth of 45.
    store.write(Changes(put=[entry_for(fact(f"m_{number}", "tea"), "en") for number in range(45, 48)]))
    store.settle([GLOBAL])
    sizes = [segment.memories for segment in format.live_segments(store._database.reader(), "global")]
    assert sizes == [45, 3]
    store.close()


def test_pages_of_earlier_schemas_are_found_by_their_scope(tmp_path: Path) -> None:
    store = filled(tmp_path / "memory.db", 24)
    before = told(store.keyword(["tea", "number7"], EVERYTHING, None))
    with store._database.writing() as connection:
        run_script(connection, PAGES_OF_SCHEMA_2)
        number_pages(connection)
        key_segments_by_scope(connection)
    store.close()
    again = SqliteStore(tmp_path / "memory.db", "postings")
    assert told(again.keyword(["tea", "number7"], EVERYTHING, None)) == before
    assert count(again, "SELECT count(*) FROM posting_pages WHERE scope <> 'global'") == 0
    assert count(again, "SELECT count(*) FROM posting_segments WHERE directory IS NULL") == 0
    newest = count(again, "SELECT max(segment) FROM posting_segments")
    for number in range(24, 48):
        again.write(Changes(put=[entry_for(fact(f"m_{number}", f"tea number{number}"), "en")]))
    assert count(again, "SELECT min(segment) FROM posting_segments") >= newest
    again.close()


PAGES_OF_SCHEMA_2 = """
CREATE TABLE before (
    segment INTEGER NOT NULL, field INTEGER NOT NULL, first_key INTEGER NOT NULL, page BLOB NOT NULL,
    PRIMARY KEY (segment, field, first_key)
) WITHOUT ROWID;
INSERT INTO before SELECT segment, field, first_key, page FROM posting_pages;
DROP TABLE posting_pages;
ALTER TABLE before RENAME TO posting_pages;
DROP INDEX posting_segments_by_scope;
CREATE TABLE before (
    segment INTEGER PRIMARY KEY AUTOINCREMENT, scope TEXT NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL,
    memories INTEGER NOT NULL, state INTEGER NOT NULL, field INTEGER NOT NULL DEFAULT 0,
    next_key INTEGER NOT NULL DEFAULT 0, directory BLOB
);
INSERT INTO before SELECT segment, scope, first, last, memories, state, field, next_key, NULL FROM posting_segments;
DROP TABLE posting_segments;
ALTER TABLE before RENAME TO posting_segments;
CREATE INDEX posting_segments_by_scope ON posting_segments (scope, state, first);
ALTER TABLE posting_scopes DROP COLUMN segments;
"""


def test_a_page_that_lost_its_segment_before_a_migration_is_made_up_for(tmp_path: Path) -> None:
    store = filled(tmp_path / "memory.db", 24)
    before = told(store.keyword(["tea", "number7"], EVERYTHING, None))
    with store._database.writing() as connection:
        run_script(connection, PAGES_OF_SCHEMA_2)
        number_pages(connection)
        connection.execute(
            "UPDATE posting_pages SET segment = 99 WHERE number = (SELECT min(number) FROM posting_pages)"
        )
        key_segments_by_scope(connection)
    store.close()
    again = SqliteStore(tmp_path / "memory.db", "postings")
    assert told(again.keyword(["tea", "number7"], EVERYTHING, None)) == before
    assert [notice.code for notice in again.keyword(["tea"], EVERYTHING, None).notices] == ["index-damaged"]
    again.write(Changes(put=[entry_for(fact("m_24", "cup"), "en")]))
    assert not again.keyword(["tea"], EVERYTHING, None).notices
    assert told(again.keyword(["tea", "number7"], EVERYTHING, None)).keys() == before.keys()
    again.close()


def test_scopes_number_their_segments_apart_and_never_use_a_number_again(tmp_path: Path) -> None:
    store, mine = SqliteStore(tmp_path / "memory.db", "postings"), Scope("user", "mine")
    numbers: dict[str, list[int]] = {"global": [], "user:mine": []}
    for number in range(300):
        for scope in (GLOBAL, mine) if number % 3 == 0 else (GLOBAL,):
            store.write(Changes(put=[entry_for(replace(fact(f"{scope}{number}", "tea"), scope=scope), "en")]))
        with store._database.reading() as view:
            for scope, segment in view.connection.execute("SELECT scope, segment FROM posting_segments").fetchall():
                if segment not in numbers[scope]:
                    numbers[scope].append(segment)
    assert [found[:2] for found in numbers.values()] == [[1, 2], [1, 2]]
    assert all(found == sorted(found) for found in numbers.values())
    last = count(store, "SELECT max(segment) FROM posting_segments WHERE scope = 'global'")
    with store._database.writing() as connection:
        segments.renumber(connection, "global", (), 300)
    assert count(store, "SELECT min(segment) FROM posting_segments WHERE scope = 'global'") == last + 1
    with store._database.writing() as connection:  # a count that is lost is made up for by the segments there are
        connection.execute("DELETE FROM posting_scopes WHERE scope = 'global'")
        assert [one.segment for one in segments.made_sound(connection, "global").segments] == [last + 2]
    store.close()


def test_tokens_of_the_schema_before_lie_in_rows_of_their_own(tmp_path: Path) -> None:
    store = filled(tmp_path / "memory.db", 24)
    asked = "SELECT scope, number, letters, dates, tokens FROM posting_tokens ORDER BY scope, number"
    with store._database.writing() as connection:
        before = connection.execute(asked).fetchall()
        run_script(connection, TOKENS_OF_SCHEMA_4)
        give_tokens_rows(connection)
        assert connection.execute(asked).fetchall() == before
        assert [row for (row,) in connection.execute("SELECT rowid FROM posting_tokens")] == [*range(1, 25)]
    store.close()


TOKENS_OF_SCHEMA_4 = """
CREATE TABLE before (
    scope TEXT NOT NULL, number INTEGER NOT NULL, letters INTEGER NOT NULL, dates TEXT NOT NULL, tokens BLOB NOT NULL,
    PRIMARY KEY (scope, number)
) WITHOUT ROWID;
INSERT INTO before SELECT scope, number, letters, dates, tokens FROM posting_tokens;
DROP TABLE posting_tokens;
ALTER TABLE before RENAME TO posting_tokens;
"""


def test_a_merge_killed_at_any_step_leaves_the_old_segments_and_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SqliteStore, "_tidy", lambda store, written: None)  # so that all merging is still to be done
    store = filled(tmp_path / "memory.db", 24)
    expected = told(store.keyword(["tea", "number7", "pot"], EVERYTHING, None))
    steps, more = 0, True
    while more:
        with store._database.writing() as connection:
            more = segments.merge_step(connection)
        store.close()
        store = SqliteStore(tmp_path / "memory.db", "postings")
        assert told(store.keyword(["tea", "number7", "pot"], EVERYTHING, None)) == expected
        steps += 1
    assert steps >= 3
    store.close()


def test_a_merge_drops_what_was_removed(tmp_path: Path) -> None:
    store = filled(tmp_path / "memory.db", 24)
    for number in range(20):
        store.write(Changes(remove=[f"m_{number}"]))
    before = count(store, "SELECT sum(length(page)) FROM posting_pages")
    for number in range(30, 60):
        store.write(Changes(put=[entry_for(fact(f"m_{number}", "tea"), "en")]))
    merge_all(store)
    assert count(store, "SELECT sum(length(page)) FROM posting_pages") < before
    assert len(told(store.keyword(["tea"], EVERYTHING, None))) == 4 + 30
    store.close()


def test_no_word_of_a_removed_memory_stays_in_the_file(tmp_path: Path) -> None:
    store = filled(tmp_path / "memory.db")
    store.write(Changes(remove=["m_1"]))
    store.close()
    assert b"number1\x00" not in (tmp_path / "memory.db").read_bytes()


def test_a_store_is_switched_in_place_and_back(tmp_path: Path) -> None:
    store = filled(tmp_path / "memory.db")
    before = told(store.keyword(["green", "number3"], EVERYTHING, None))
    store.close()
    other = SqliteStore(tmp_path / "memory.db", "fts5")
    assert other.status("").keyword_index == "fts5"
    run = other.keyword(["number3"], EVERYTHING, None)
    assert run.candidates[0].id == "m_3"
    assert [notice.code for notice in run.notices] == ["fts5"]
    other.close()
    again = SqliteStore(tmp_path / "memory.db", "postings")
    assert told(again.keyword(["green", "number3"], EVERYTHING, None)) == before
    again.close()


def test_a_switch_that_was_killed_goes_on_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(indexes, "ROWS_PER_STEP", 5)
    store = filled(tmp_path / "memory.db")
    expected = told(store.keyword(["number3", "tea"], EVERYTHING, None))
    store.close()
    SqliteStore(tmp_path / "memory.db", "fts5").close()
    database = Database(tmp_path / "memory.db")
    indexes._begin(database, "postings")
    assert indexes._step(database, "postings")
    database.close()

    # Half of it is moved; who opens it as it is goes on writing, and what is removed is removed from both.
    half = SqliteStore(tmp_path / "memory.db", "fts5")
    half.write(Changes(remove=["m_2"], put=[entry_for(fact("m_99", "tea number99"), "en")]))
    half.close()
    whole = SqliteStore(tmp_path / "memory.db", "postings")
    found = told(whole.keyword(["number3", "tea"], EVERYTHING, None))
    assert found.keys() == (expected.keys() - {"m_2"}) | {"m_99"}
    assert count(whole, "SELECT count(*) FROM meta WHERE key IN ('keyword-to-come', 'keyword-moved')") == 0
    whole.close()


def test_a_store_follows_the_index_another_process_switched_to(tmp_path: Path) -> None:
    served = filled(tmp_path / "memory.db")
    SqliteStore(tmp_path / "memory.db", "fts5").close()
    assert served.keyword(["number3"], EVERYTHING, None).candidates[0].id == "m_3"
    served.write(Changes(put=[entry_for(fact("m_99", "tea number99"), "en")]))
    assert served.keyword(["number99"], EVERYTHING, None).candidates[0].id == "m_99"
    served.close()


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE posting_pages SET page = zeroblob(length(page))",
        "UPDATE records SET records = zeroblob(length(records))",
    ],
)
def test_a_damaged_block_is_made_anew_from_the_texts_and_said_so(tmp_path: Path, damage: str) -> None:
    store = filled(tmp_path / "memory.db")
    expected = told(store.keyword(["tea", "number7"], EVERYTHING, None))
    store.close()
    database = Database(tmp_path / "memory.db")
    with database.writing() as connection:
        connection.execute(damage)
    database.close()

    store = SqliteStore(tmp_path / "memory.db", "postings")
    run = store.keyword(["tea", "number7"], EVERYTHING, None)
    assert told(run) == pytest.approx(expected)
    assert [notice.code for notice in run.notices] == ["index-damaged"]
    store.close()


def test_the_next_writes_put_damaged_pages_right(tmp_path: Path) -> None:
    store = filled(tmp_path / "memory.db")
    store.close()
    database = Database(tmp_path / "memory.db")
    with database.writing() as connection:
        connection.execute("UPDATE posting_pages SET page = zeroblob(length(page))")
    database.close()
    store = SqliteStore(tmp_path / "memory.db", "postings")
    said = []
    for number in range(100, 130):
        said.append(store.keyword(["tea", "green", "pot"], EVERYTHING, None).notices != ())
        store.write(Changes(put=[entry_for(fact(f"m_{number}", "kettle"), "en")]))
    # A segment that was being merged may carry damage over; it is met, said and mended in its turn.
    assert said[0]
    assert not any(said[-5:])
    store.close()


def test_damage_that_another_process_mended_is_not_spoken_of_any_more(tmp_path: Path) -> None:
    store = filled(tmp_path / "memory.db")
    merge_all(store)
    store.close()
    database = Database(tmp_path / "memory.db")
    with database.writing() as connection:
        connection.execute("UPDATE posting_pages SET page = zeroblob(length(page))")
    database.close()
    reader, writer = SqliteStore(tmp_path / "memory.db"), SqliteStore(tmp_path / "memory.db")
    for store in (reader, writer):
        assert store.keyword(["tea"], EVERYTHING, None).notices
    for number in range(100, 140):
        writer.write(Changes(put=[entry_for(fact(f"m_{number}", "kettle"), "en")]))
    assert not writer.keyword(["tea"], EVERYTHING, None).notices
    assert not reader.keyword(["tea"], EVERYTHING, None).notices
    reader.close()
    writer.close()


def test_texts_become_pages_and_come_back() -> None:
    texts = [Text(3, ["tea", "pot", "tea"], True), Text(70, ["pot"], False), Text(71, ["tea"] * 300, True)]
    inverted = invert(texts)
    words = inverted[WORDS]
    assert [first for first, _ in format.pages(words, 3)] == sorted([key_of("tea"), key_of("pot")])
    found = {}
    for _, part in format.pages(words, 3):
        page = format.read(part)
        for term in ("tea", "pot"):
            listed = format.find_list(page, key_of(term), 3)
            if listed is not None:
                found[term] = listed
    assert found["tea"].numbers.tolist() == [3, 71]
    assert found["tea"].frequencies.tolist() == [2, 255]
    # After "tea" comes "pot", then the end of the text; a word is followed no more than 255 times.
    assert found["tea"].followers.tolist()[:3] == [key_of("pot") & 0xFFFFFFFF, 0, key_of("tea") & 0xFFFFFFFF]
    assert len(found["tea"].followers) == 2 + 255
    assert sorted(inverted[GRAMS].numbers.tolist()) == [3, 3, 71]  # 70 is written where words suffice


def test_merging_is_inverting_together() -> None:
    texts = [Text(number, [VOCABULARY[number % 3], "tea", VOCABULARY[number % 5]], True) for number in range(20)]
    together = invert(texts)[WORDS]
    apart = merged([invert(texts[:7])[WORDS], invert(texts[7:8])[WORDS], invert(texts[8:])[WORDS]])
    assert together.keys.tolist() == apart.keys.tolist()
    assert together.numbers.tolist() == apart.numbers.tolist()
    assert together.frequencies.tolist() == apart.frequencies.tolist()
    assert together.followers.tolist() == apart.followers.tolist()


def test_a_store_that_cannot_be_written_serves_with_the_index_it_has(tmp_path: Path) -> None:
    filled(tmp_path / "memory.db").close()
    database = Database(tmp_path / "memory.db")
    database.read_only = True
    assert prepare_index(database, "fts5") == "postings"
    database.close()


def test_an_index_that_was_left_and_made_again_is_read_anew(tmp_path: Path) -> None:
    # Numbers of segments begin anew with their table, so nothing kept of the first index may answer for the second.
    served = filled(tmp_path / "memory.db", 30)
    served.keyword(["tea", "number7"], EVERYTHING, None)
    SqliteStore(tmp_path / "memory.db", "fts5").close()
    again = SqliteStore(tmp_path / "memory.db", "postings")
    again.write(Changes(remove=[f"m_{number}" for number in range(0, 30, 2)]))
    assert served.keyword(["tea", "number7"], EVERYTHING, None) == again.keyword(["tea", "number7"], EVERYTHING, None)
    served.close()
    again.close()


def test_a_score_is_the_fold_of_its_terms_also_for_one_alone(tmp_path: Path) -> None:
    store = filled(tmp_path / "memory.db", 40)
    terms = ["tea", "green", "pot", "number3", "number33"]
    for ids in (["m_3"], ["m_3", "m_4"]):
        [signal] = store.score(ids, terms, None, "", EVERYTHING)
        total = 0.0
        for found in signal.terms["m_3"]:
            total += found.value
        assert signal.values["m_3"] == total
    store.close()


def test_tokens_that_cannot_be_read_are_made_again(tmp_path: Path) -> None:
    store = filled(tmp_path / "memory.db", 7)
    store.write(Changes(put=[entry_for(fact("m_de", "Häuser"), "de")]))
    expected = told(store.keyword(["tea", "number6", "haus"], EVERYTHING, None))
    store.close()
    database = Database(tmp_path / "memory.db")
    with database.writing() as connection:
        connection.execute("UPDATE posting_tokens SET tokens = x'00ff00ff'")
    database.close()
    store = SqliteStore(tmp_path / "memory.db", "postings")
    assert told(store.keyword(["tea", "number6", "haus"], EVERYTHING, None)) == expected
    for number in range(20, 30):
        store.write(Changes(put=[entry_for(fact(f"m_{number}", "kettle"), "en")]))
    assert told(store.keyword(["number6"], EVERYTHING, None)).keys() == {"m_6"}
    store.close()


def test_a_turn_that_is_stored_again_keeps_its_neighbours(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "memory.db", "postings")
    turns = [
        entry_for(fact(f"m_{number}", f"{word} said", kind="chunk", source=Source("log", number), session="s"), "en")
        for number, word in enumerate(["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta"])
    ]
    for turn in turns:
        store.write(Changes(put=[turn]))
    before = told(store.keyword(["delta"], EVERYTHING, None))
    store.write(Changes(put=[turns[3]]))
    assert told(store.keyword(["delta"], EVERYTHING, None)) == before
    store.close()


@pytest.mark.parametrize("blob", [b"", b"\0\0\0\0", b"\1\2\3\4\5"])
def test_what_was_never_sealed_is_not_believed(blob: bytes) -> None:
    with pytest.raises(ChecksumError):
        check_body(blob)
    assert bytes(check_body(add_checksum(b"tea"))) == b"tea"


def test_a_scope_that_is_rewritten_often_is_renumbered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer_module, "LOOKED_AT_EVERY", 32)
    served, oracle = SqliteStore(tmp_path / "memory.db", "postings"), MemoryStore()
    for round_ in range(12):
        for number in range(9):
            text = f"tea number{number} round{round_ % 3} {VOCABULARY[number % 8]}"
            changes = Changes(put=[entry_for(fact(f"m_{number}", text), "en")])
            served.write(changes)
            oracle.write(changes)
            for terms in (["tea", f"number{number}"], ["round1", "green"]):
                ours, theirs = (store.keyword(terms, EVERYTHING, None) for store in (served, oracle))
                assert told(ours) == pytest.approx(told(theirs))
    # 108 writes of nine memories: the numbers stay within reach of the memories.
    assert count(served, "SELECT numbers FROM scopes") < 64
    assert count(served, "SELECT epoch FROM scopes") >= 2
    opened = SqliteStore(tmp_path / "memory.db", "postings")
    assert served.keyword(["tea"], EVERYTHING, 5) == opened.keyword(["tea"], EVERYTHING, 5)
    served.close()
    opened.close()


def turn(identity: str, text: str, speaker: str, position: int) -> Entry:
    source = Source("log.jsonl", position, position, identity)
    memory = fact(identity, text, kind="chunk", source=source, session="s", speaker=speaker, position=position)
    return entry_for(memory, "en")


def test_the_turns_of_the_one_speaker_a_question_names_gain_a_tenth_of_the_best(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "memory.db", "postings")
    far = [turn(f"m_{place}", "nothing at all", "Cal", place) for place in range(20, 26)]
    store.write(Changes(put=[turn("m_a", "green tea", "Ann", 1), *far, turn("m_b", "green tea", "Bob", 40)]))
    plain, named, both = (
        store.score(["m_a", "m_b"], terms, None, "", EVERYTHING)[0]
        for terms in (["tea"], ["tea", "by=ann"], ["tea", "by=ann", "by=bob"])
    )
    assert named.values["m_a"] == pytest.approx(1.1 * plain.values["m_a"])  # it is itself the best: 1 + 0.1
    assert named.values["m_b"] == plain.values["m_b"]
    *key, bonus = named.terms["m_a"][-1]
    assert key == ["ann", "speakers", "own"]
    assert bonus == pytest.approx(0.1 * plain.values["m_a"])
    assert both.values == plain.values
    store.close()


def test_the_dates_of_a_question_count_for_what_of_it_is_covered(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "memory.db", "postings")
    dated = replace(entry_for(fact("m_a", "rowing"), "en"), marks=("day=24", "month=12", "year=2023"))
    store.write(Changes(put=[dated, *(entry_for(fact(f"m_{i}", "sailing"), "en") for i in range(9))]))
    [asked] = store.score(["m_a", "m_1"], ["yesterday", "day=24", "month=12", "year=2023"], None, "", EVERYTHING)
    # A date in one of ten memories: idf ln(1 + 9.5/1.5) = 1.992; the unknown word: ln(1 + 10.5/0.5) = 3.091.
    # Three marks where the mean is 0.3: K = 1.2·(0.25 + 0.75·23/20.3) = 1.320, so each date scores 1.992/2.320 = 0.859.
    assert asked.coverage["m_a"] == pytest.approx(3 * 0.859 / (3 * 1.992 + 3.091), abs=1e-3)
    assert asked.coverage["m_1"] == 0.0
    store.close()


def test_what_a_dropped_hit_was_is_never_read_from_another_scope(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "memory.db", "postings")
    mine, theirs = Scope("user", "1"), Scope("user", "2")
    store.write(Changes(put=[entry_for(fact("given", "my tea", scope=mine), "en")]))
    held = store.held(["given"], frozenset({mine}))["given"]
    store.write(Changes(remove=["given"]))
    store.write(Changes(put=[entry_for(fact("given", "their secret", scope=theirs), "en")]))
    assert memory_of(held) == forgotten("given", mine)
    assert memory_of(held).text == "(forgotten since the search)"
    store.close()


@pytest.mark.parametrize("letters", [1, 300, 65_531, 65_532, 65_535, 65_536, 200_000])
def test_packed_tokens_are_found_changed_or_at_another_place(letters: int) -> None:
    tokens = ["é", "t" * (letters - 1)] if letters > 1 else ["t"]
    packed = pack(tokens, "user:1", 7)
    assert unpack(packed, "user:1", 7) == tokens
    for place in (("user:1", 8), ("user:2", 7)):
        with pytest.raises(ChecksumError):
            unpack(packed, *place)
    with pytest.raises(ChecksumError):
        unpack(packed[:-6] + b"x" + packed[-5:], "user:1", 7)
    with pytest.raises(ChecksumError):  # as earlier versions packed them
        unpack(zlib.compress(" ".join(tokens).encode()), "user:1", 7)


def test_no_tokens_are_packed_too() -> None:
    assert unpack(pack([], "user:1", 7), "user:1", 7) == []
