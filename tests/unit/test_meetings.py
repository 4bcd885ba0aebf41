"""What happens where two things meet: writers of one fact, a write and a change of model, an embedder and its word."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import whyrank
from whyrank.config import load as config
from whyrank.engine.engine import Engine
from whyrank.engine.models import Background
from whyrank.engine.spaces import Active, Makers, Serving
from whyrank.errors import ConfigError, ProviderRefused, StoreFull
from whyrank.storage.sqlite import purge
from whyrank.storage.store import SqliteStore
from whyrank.testing.fakes import WordDirections
from whyrank.types.memory import unit_row, unit_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from whyrank.protocols import Embedder


def over(path: Path, embedder: Embedder | None, **given: object) -> Engine:
    return Engine(SqliteStore(path / "memory.db"), embedder, config.load(given, workspace=path))


class Odd(WordDirections):
    """Gives what it is told to give for a question, and vectors of another length for texts."""

    answer: Any = None
    length = 1.0

    def query(self, text: str) -> Any:
        return super().query(text) if self.answer is None else self.answer

    def documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return super().documents(texts) * np.float32(self.length)


def test_a_model_that_takes_over_during_a_write_makes_its_own_vector(tmp_path: Path) -> None:
    serving: list[Embedder] = []

    class Leaving(WordDirections):
        def documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
            serving[0] = second
            return super().documents(texts)

    class Switching(Serving):
        def current(self) -> Active:
            return Active(serving[0])

    first, second = Leaving(16, "first"), WordDirections(16, "second")
    serving.append(first)
    store, told = SqliteStore(tmp_path / "memory.db"), config.load({}, workspace=tmp_path)
    engine = Engine(store, first, told, serving=Switching(store, first, Makers()))
    fact = engine.facts.remember("green tea").memory
    scopes = frozenset({fact.scope})
    assert engine._store.vectors([fact.id], first.fingerprint, scopes) == {}
    [vector] = engine._store.vectors([fact.id], second.fingerprint, scopes).values()
    assert vector @ second.documents(["green tea"])[0] == pytest.approx(1.0, abs=1e-6)
    engine.close()


def test_who_adds_what_another_has_just_added_learns_that_it_is_known(tmp_path: Path) -> None:
    with whyrank.open(tmp_path / "memory.db", workspace=tmp_path, embedding="none") as engine:
        write = engine._store.write
        raced: list[int] = []

        def racing(changes: Any) -> None:
            if not raced:
                raced.append(1)
                engine.add("tea", tags=["mine"], importance=5)
            write(changes)

        engine._store.write = racing  # type: ignore[method-assign]
        done = engine.facts.remember("tea")
        assert (done.outcome, done.memory.tags, done.memory.importance) == ("known", ("mine",), 5)
        assert engine.get(done.memory.id).importance == 5


def test_an_export_does_not_take_the_place_of_the_store(tmp_path: Path) -> None:
    with whyrank.open(tmp_path / "memory.db", workspace=tmp_path, embedding="none") as engine:
        engine.add("tea")
        os.mkfifo(tmp_path / "pipe")
        with pytest.raises(ConfigError, match="is not a regular file"):
            engine.export(tmp_path / "pipe")
        (tmp_path / "real.jsonl").write_text("", encoding="utf-8")
        (tmp_path / "link.jsonl").symlink_to("real.jsonl")
        assert engine.export(tmp_path / "link.jsonl") == 1
        assert (tmp_path / "link.jsonl").is_symlink()
        assert "tea" in (tmp_path / "real.jsonl").read_text(encoding="utf-8")
        for name in ("memory.db", "./memory.db", "memory.db-wal", "memory.pins"):
            with pytest.raises(ConfigError, match="belongs to the store itself"):
                engine.export(tmp_path / name)
        assert [one.text for one in engine.list()] == ["tea"]


def test_what_a_provider_said_of_a_text_is_shown_to_nobody_else_and_purged(tmp_path: Path) -> None:
    class Quoting(WordDirections):
        def documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
            raise ProviderRefused(f"will not embed {texts[0]!r}", "", status=503)

    with over(tmp_path, Quoting()) as engine:
        for number in range(6):
            engine.add(f"zebrasecret {number}", scope="user:ann")
        said = engine.facts.remember("tea", scope="user:bob")
        assert "near-unknown" in [notice.code for notice in said.notices]
        assert not any("zebrasecret" in notice.message for notice in said.notices)
        [remains] = engine.memories.forget_scope("user:ann", purge=True).remains
        assert remains == "the store still lists the name of user:ann among the scopes it has known"
    assert b"zebrasecret" not in (tmp_path / "memory.db").read_bytes()


def test_a_purge_that_cannot_be_ended_keeps_nobody_from_opening(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*given: object) -> tuple[str, ...]:
        raise StoreFull("no room", "")

    with whyrank.open(tmp_path / "memory.db", workspace=tmp_path, embedding="none") as engine:
        kept, gone = engine.add("tea"), engine.add("secret")
        with monkeypatch.context() as patched:
            patched.setattr(purge, "purge", full)
            with pytest.raises(StoreFull):
                engine.forget(gone.id, purge=True)
    with monkeypatch.context() as patched:
        patched.setattr(purge, "purge", full)
        with whyrank.open(tmp_path / "memory.db", workspace=tmp_path, embedding="none") as engine:
            assert engine.search("tea")[0].id == kept.id
    whyrank.open(tmp_path / "memory.db", workspace=tmp_path, embedding="none").close()
    assert b"secret" not in (tmp_path / "memory.db").read_bytes()


def test_work_that_was_told_to_stop_is_not_released_by_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("whyrank.engine.models._JOIN_S", 0.01)
    background, go_on, steps = Background(), threading.Event(), list[str]()

    def slow(tick: Callable[[int, int, str], None]) -> None:
        go_on.wait(10)
        tick(1, 2, "")
        steps.append("not stopped")

    background.start(slow)
    first = background._thread
    background.start(lambda tick: steps.append("next"))
    assert background.wait(10)
    go_on.set()
    assert first is not None
    first.join(10)
    assert steps == ["next"]


def test_vectors_of_any_length_are_compared_by_their_direction(tmp_path: Path) -> None:
    embedder = Odd()
    embedder.length = 10.0
    with over(tmp_path, embedder, **{"dedup.near": "merge"}) as engine:
        engine.add("Suzy drinks green tea")
        assert engine.facts.remember("Suzy drives to Berlin").outcome == "stored"
        embedder.answer = WordDirections().query("green tea") * 7
        [raw] = [part.raw for part in engine.search("green tea")[0].trail[0].parts if part.signal == "vector"]
        assert raw is not None
        assert 0.5 < raw <= 1.0 + 1e-6  # two of four words, and not 70 times that


@pytest.mark.parametrize("answer", [np.ones(7, np.float32), [1.0, 2.0], None, np.full(64, np.nan, np.float32), "x"])
def test_no_vector_of_a_question_keeps_words_from_answering(tmp_path: Path, answer: object) -> None:
    embedder = Odd()
    with over(tmp_path, embedder) as engine:
        engine.add("green tea")
        embedder.answer = [answer] if answer is None else answer
        results = engine.search("green tea")
        assert results[0].memory.text == "green tea"
        assert "vector-off" in [notice.code for notice in results.notices]


def test_saying_a_living_fact_again_over_another_keeps_its_end(tmp_path: Path) -> None:
    with whyrank.open(tmp_path / "memory.db", workspace=tmp_path, embedding="none") as engine:
        fact = engine.add("tea", expires="2099-01-01")
        other = engine.add("coffee")
        done = engine.facts.remember("tea", supersedes=other.id)
        assert (done.outcome, done.memory.id, done.memory.expires) == ("replacing", fact.id, fact.expires)
        assert engine.get(other.id).superseded_by == fact.id


def test_the_less_trusted_does_not_change_what_the_owner_said(tmp_path: Path) -> None:
    with over(tmp_path, WordDirections(), **{"dedup.near": "merge", "dedup.cosine": 0.5}) as engine:
        own = engine.add("Suzy drinks green tea")
        said = engine.facts.remember("Suzy drinks green tea daily", trust="untrusted", importance=5, tags=["pinned"])
        assert said.outcome == "stored"
        assert [one.memory.id for one in said.near] == [own.id]
        assert engine.get(own.id).importance is None
        assert engine.facts.remember("Suzy drinks much green tea", importance=4).outcome == "merged"


@pytest.mark.parametrize(
    ("rows", "complaint"),
    [([[1.0, 2.0]], "not of (2, any number)"), ([[1.0], [float("nan")]], "not numbers"), (1.0, "an array of ()")],
)
def test_what_is_no_table_of_vectors_is_refused(rows: object, complaint: str) -> None:
    with pytest.raises(ValueError, match="the embedder returned") as caught:
        unit_rows(rows, 2, None)
    assert complaint in str(caught.value)


def test_a_vector_that_is_one_long_stays_as_it_is_and_others_are_made_so() -> None:
    unit = np.array([[0.6, 0.8], [0.0, 0.0]], np.float32)
    assert unit_rows(unit, 2, 2).tobytes() == unit.tobytes()
    almost = np.array([[0.6, 0.80005]], np.float32)  # 0.00004 too long, which is rounding
    assert unit_rows(almost, 1, 2).tobytes() == almost.tobytes()
    # 3² + 4² = 5²
    assert unit_rows([[3.0, 4.0]], 1, 2).tolist() == [[pytest.approx(0.6), pytest.approx(0.8)]]


def test_who_says_a_correction_once_more_is_told_that_it_is_known(tmp_path: Path) -> None:
    with whyrank.open(tmp_path / "memory.db", workspace=tmp_path, embedding="none") as engine:
        old = engine.add("coffee")
        new = engine.add("tea", supersedes=old.id)
        again = engine.facts.remember("tea", supersedes="coffee")
        assert (again.outcome, again.memory.id) == ("known", new.id)


def test_what_was_true_once_is_found_in_its_time_whenever_it_was_written_down(tmp_path: Path) -> None:
    with whyrank.open(tmp_path / "memory.db", workspace=tmp_path, embedding="none") as engine:
        engine.add("the office is in Hamburg", valid_from="2020-01-01", valid_until="2024-01-01")
        engine.add("the office has a garden")
        assert [hit.memory.text for hit in engine.search("office", as_of="2022-01-01")] == ["the office is in Hamburg"]
        assert [hit.memory.text for hit in engine.search("office")] == ["the office has a garden"]


def test_merging_keeps_the_longer_life_and_the_higher_trust(tmp_path: Path) -> None:
    with over(tmp_path, WordDirections(), **{"dedup.near": "merge", "dedup.cosine": 0.5}) as engine:
        short = engine.add("the cellar key hangs behind the green door", decay="session", trust="untrusted")
        done = engine.facts.remember("the old cellar key hangs behind the green door", decay="permanent")
        assert (done.outcome, done.memory.id) == ("merged", short.id)
        assert (done.memory.decay, done.memory.expires, done.memory.trust) == ("permanent", None, "owner")


def test_the_vector_of_a_question_is_brought_to_unit_length_and_looked_at() -> None:
    assert unit_row([3.0, 4.0], 2).tolist() == pytest.approx([0.6, 0.8])  # a length of 5
    with pytest.raises(ValueError, match="not of"):
        unit_row([3.0, 4.0], 3)
    with pytest.raises(ValueError, match="not of"):
        unit_row([[3.0, 4.0]], 2)
