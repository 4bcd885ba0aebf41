"""A new fact is whole in its transaction: found at once by everybody, and readers never write."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
import time
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import pytest

import whyrank
from tests.processes import started
from whyrank.analysis.document import content_hash, entry_for
from whyrank.config import load as config
from whyrank.engine.engine import Engine
from whyrank.errors import StoreLocked
from whyrank.protocols import Arrival, Changes
from whyrank.storage.sqlite.database import connect
from whyrank.storage.sqlite.lock import locked
from whyrank.storage.store import SqliteStore
from whyrank.testing.fakes import WordDirections
from whyrank.types.memory import GLOBAL, Memory, Scope
from whyrank.types.query import Where

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

EVERYTHING = Where(frozenset({GLOBAL}))
SECRET = "Xyzzyplugh drinks quinoa lemonade"


def counted(path: Path, table: str) -> int:
    """Count rows as they stand in the file."""
    # By the same library: another one in this process would give up the locks of the first.
    other = connect(path)
    found: int = other.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
    other.close()
    return found


def arrival(number: int, scope: Scope = GLOBAL) -> Arrival:
    return Arrival(Memory(f"m_{number}", f"tea number {number}", scope=scope, created=1.0, date=1.0), "en")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "memory.db"


def opened(path: Path) -> Engine:
    return whyrank.open(path, workspace=path.parent, embedding="none")


def test_a_fact_is_found_while_another_holds_the_lock_of_the_writers(path: Path) -> None:
    with opened(path) as engine, opened(path) as other:
        fact = other.add("Robin prefers tea")
        with locked(f"{path}.lock", 5):
            results = engine.search("tea")
            assert [hit.id for hit in results] == [fact.id]
            assert "not-indexed-yet" not in {notice.code for notice in results.notices}
            assert engine.list() == [fact]
            assert engine.status().memories == 1


def test_readers_write_nothing(path: Path) -> None:
    """The log is as long after a search as before it, however new the facts are."""
    with opened(path) as writer, opened(path) as reader:
        for number in range(70):  # more than the keyword index makes a segment of
            fact = writer.add(f"tea number{number}")
            before = path.with_name(path.name + "-wal").read_bytes()
            assert reader.search(f"number{number}")[0].id == fact.id
            assert path.with_name(path.name + "-wal").read_bytes() == before


def test_what_is_kept_in_memory_of_the_time_before_does_not_answer(path: Path) -> None:
    one, other = SqliteStore(path), SqliteStore(path)
    for number in range(5):
        assert one.take_in(arrival(number))
        assert len(other.keyword(["tea"], EVERYTHING, 10).ids) == number + 1
        assert len(one.keyword(["tea"], EVERYTHING, 10).ids) == number + 1
    one.close()
    other.close()


def _counted_on(counter: Iterator[int]) -> int:
    return 0 * next(counter)  # anything else would stop the statement


def test_what_a_change_costs_does_not_grow_with_the_store(path: Path) -> None:
    store = SqliteStore(path)
    steps: list[int] = []
    for many in (100, 2_000):
        memories = [Memory(f"m_{many}_{number}", f"tea number {number}") for number in range(many)]
        store.write(Changes(put=[entry_for(memory, "en") for memory in memories]))
        counter = itertools.count()
        connection = store._database._write_connection()
        connection.set_progress_handler(partial(_counted_on, counter), 1)  # asked at every step
        store.write(Changes(revised=[replace(memories[7], importance=5)], basis={memories[7].id: memories[7]}))
        connection.set_progress_handler(None, 1)
        steps.append(next(counter))
    assert steps[0] > 100
    assert steps[1] < 1.2 * steps[0]
    store.close()


def test_a_duplicate_is_not_embedded_where_that_takes_time(path: Path) -> None:
    asked: list[str] = []

    class Slow(WordDirections):
        def documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
            asked.extend(texts)
            time.sleep(0.002)
            return super().documents(texts)

    with Engine(SqliteStore(path), Slow(), config.load({"calibration": "manual"}, workspace=path.parent)) as engine:
        for _ in range(3):
            engine.add("the first of a space is written whole")
            engine.add("tea is green")
        assert sorted(asked) == ["tea is green", "the first of a space is written whole"]


def test_who_adds_merges_segments(path: Path) -> None:
    with whyrank.open(path, workspace=path.parent, calibration="manual", embedding="none") as engine:
        for number in range(700):
            engine.add(f"tea number {number}")
            if number % 10 == 0:
                engine.search("tea")
        assert counted(path, "posting_segments") <= 6  # of sixty-four each there would be eleven


def test_a_fact_that_was_purged_leaves_no_byte(path: Path) -> None:
    with whyrank.open(path, workspace=path.parent, calibration="manual") as engine:
        engine.add("the first of a space opens it")
        fact = engine.add(SECRET)
        assert SECRET.encode() in b"".join(file.read_bytes() for file in path.parent.glob("memory.db*"))
        engine.forget(fact.id, purge=True)
    assert b"xyzzyplugh" not in b"".join(file.read_bytes().lower() for file in path.parent.glob("memory.db*"))


def test_a_key_is_kept_with_its_fact(path: Path) -> None:
    with opened(path) as engine:
        fact = engine.add("Robin prefers tea", key="k")
        assert engine.add("Robin prefers tea", key="k") == fact
        with pytest.raises(whyrank.errors.Conflict, match="used for another write"):
            engine.add("Robin prefers milk", key="k")


ADD = """
import sys, whyrank
engine = whyrank.open(sys.argv[1], workspace=sys.argv[2], embedding="none")
for line in sys.stdin:
    print(engine.add(line.strip()).id, flush=True)
"""


def test_another_process_finds_it_at_once(path: Path) -> None:
    command = [sys.executable, "-c", ADD, str(path), str(path.parent)]
    with (
        opened(path) as engine,
        started(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as writer,
    ):
        assert writer.stdin is not None
        assert writer.stdout is not None
        for number in range(5):
            writer.stdin.write(f"Robin prefers tea number{number}\n")
            writer.stdin.flush()
            identity = writer.stdout.readline().strip()
            assert engine.search(f"number{number}")[0].id == identity
        writer.stdin.write("Robin prefers milk\n")
        writer.stdin.flush()
        identity = writer.stdout.readline().strip()
        writer.kill()
        writer.wait()
        assert engine.add("robin  prefers MILK").id == identity


# -- what schema 5 left to be indexed --------------------------------------------------------------------------

LEFT = """
INSERT INTO arrivals (entry, id, scope, text, content_hash, created, date, text_key, rest, language, space, vector)
VALUES (?, ?, 'global', ?, '', 1.0, 1.0, ?, ?, 'en', '', NULL)
"""


def left_waiting(path: Path, *rests: str) -> None:
    """Write facts as an earlier version did that was killed before anybody indexed them."""
    SqliteStore(path).close()
    other = connect(path)
    for number, rest in enumerate(rests, start=1):
        text = f"tea number {number}"
        other.execute(LEFT, (number, f"m_{number}", text, f"key {number}", rest))
    other.commit()
    other.close()


def test_facts_that_an_earlier_version_left_are_indexed_when_the_store_is_opened(path: Path) -> None:
    left_waiting(path, "", json.dumps({"tags": '["hot"]'}))
    store = SqliteStore(path)
    assert sorted(store.keyword(["tea"], EVERYTHING, 5).ids) == ["m_1", "m_2"]
    assert list(store.keyword(["tea"], replace(EVERYTHING, tags=frozenset({"hot"})), 5).ids) == ["m_2"]
    assert counted(path, "arrivals") == 0
    store.close()


@pytest.mark.parametrize("rest", ["{", "[1]", "7", '{"name": 5}'])
def test_one_of_them_that_cannot_be_read_is_set_aside_and_told_of_until_it_is_gone(path: Path, rest: str) -> None:
    left_waiting(path, rest, "")
    for _ in range(2):  # when it is met, and from then on
        store = SqliteStore(path)
        run = store.keyword(["tea"], EVERYTHING, 5)
        assert list(run.ids) == ["m_2"]
        assert [notice.code for notice in run.notices] == ["facts-damaged"]
        store.close()
    store = SqliteStore(path)
    assert store.take_in(arrival(3))
    assert not store.take_in(arrival(1))  # for `write` to think about
    store.write(Changes(put=[entry_for(arrival(1).memory, "en")]))
    run = store.keyword(["tea"], EVERYTHING, 5)
    assert (sorted(run.ids), run.notices) == (["m_1", "m_2", "m_3"], ())
    store.close()


def test_a_text_that_an_earlier_version_has_changed_is_found_by_what_it_says_now(path: Path) -> None:
    with opened(path) as engine:
        fact = engine.add("Robin drinks tea")
    other = connect(path)
    other.execute(
        "UPDATE memories SET text = ?, content_hash = ?", ("Robin drinks milk", content_hash("Robin drinks milk"))
    )
    other.execute("INSERT INTO meta VALUES (?, ?)", (f"restated {fact.id}", json.dumps(["", "en"])))
    other.commit()
    other.close()
    with opened(path) as engine:
        assert [hit.id for hit in engine.search("milk")] == [fact.id]
        assert not engine.search("tea")
        assert engine.doctor().is_sound


def test_a_change_that_is_durable_is_acknowledged_though_merging_failed(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise StoreLocked("somebody else merges", "wait")

    with opened(path) as engine:
        fact = engine.add("Robin drinks tea")
        assert isinstance(engine._store, SqliteStore)
        monkeypatch.setattr(engine._store, "_tidy", fail)
        engine._store._is_untidy = True
        assert engine.update(fact.id, text="Robin drinks milk").text == engine.get(fact.id).text
