"""The facade's embedding spaces: the old one answers until the new one is whole, and nothing is lost meanwhile."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np
import pytest

from whyrank.config.load import load
from whyrank.engine.engine import Engine
from whyrank.engine.spaces import NOTE, Makers
from whyrank.errors import ConfigError, NotFound, ProviderRefused, ProviderUnavailable
from whyrank.storage.store import SqliteStore
from whyrank.testing.fakes import WordDirections
from whyrank.types.memory import Memory

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from whyrank.protocols import Embedder

NOTES = 200
SMALL, LARGE = WordDirections(16, "small"), WordDirections(48, "large")
QUESTION = "where does parcel 17 wait?"


class Gated(WordDirections):
    """Embeds only as long as it is let; fails as told."""

    def __init__(self, dimension: int = 48, name: str = "large") -> None:
        super().__init__(dimension, name)
        self.open = threading.Event()
        self.open.set()
        self.error: Exception | None = None
        self.entered = threading.Event()

    def documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.entered.set()
        assert self.open.wait(30)
        if self.error is not None:
            raise self.error
        return super().documents(texts)


Open = Callable[..., Engine]


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Open]:
    """Open engines over one file, all of which can make the same models."""
    engines: list[Engine] = []

    def open_engine(
        name: str = "small",
        models: Mapping[str, Embedder] | None = None,
        chosen: bool = True,
        calibration: str = "manual",
        clock: Callable[[], float] = time.time,
        **known: Embedder,
    ) -> Engine:
        there = {"small": SMALL, "large": LARGE, **known} if models is None else dict(models)

        def make(provider: str, settings: Mapping[str, object]) -> Embedder | None:
            if provider not in there:
                raise ProviderUnavailable(f"{provider} is not here", f"`fetch {provider}` gets it")
            return there[provider]

        def provider_of(space: str) -> str:
            return next((name for name, made in there.items() if made.fingerprint == space), "")

        makers = Makers(name, is_chosen=chosen, make=make, provider_of=provider_of)
        given = {"store": str(tmp_path / "m.db"), "calibration": calibration}
        config = load(given, workspace=tmp_path, environment={})
        embedder = None if name == "none" else there[name]
        engines.append(Engine(SqliteStore(tmp_path / "m.db"), embedder, config, clock, makers=makers))
        return engines[-1]

    yield open_engine
    for engine in engines:
        engine.close()


@pytest.fixture
def engine(opened: Open) -> Engine:
    engine = opened()
    texts = [f"Parcel {number} waits in row {number % 9} of the harbour shed" for number in range(NOTES)]
    engine.facts.import_memories([Memory(f"m_{number}", text) for number, text in enumerate(texts)])
    return engine


def answer(engine: Engine, question: str = QUESTION) -> list[tuple[str, float]]:
    return [(hit.id, hit.score) for hit in engine.search(question, limit=10)]


def codes(engine: Engine) -> set[str]:
    return {notice.code for notice in engine.search(QUESTION).notices}


def roles(engine: Engine) -> dict[str, str]:
    return {state.name: state.role for state in engine.models.list()}


def test_all_who_have_the_store_open_follow_the_switch(opened: Open, engine: Engine) -> None:
    other = opened()
    before = answer(engine)
    assert answer(other) == before
    change = engine.models.use("large")
    assert (change.switched, change.embedded, change.before) == (True, NOTES, SMALL.fingerprint)
    after = answer(engine)
    assert after != before
    assert answer(other) == after
    assert other.models.space == LARGE.fingerprint
    assert roles(engine) == {LARGE.fingerprint: "serving", SMALL.fingerprint: "before"}
    assert "model-differs" not in codes(other)  # it was right when it was opened


def test_the_old_model_answers_while_the_new_one_is_filled(opened: Open, engine: Engine) -> None:
    large = Gated()
    busy, before = opened(large=large), answer(engine)
    large.open.clear()
    assert not busy.models.use("large", background=True).switched
    assert large.entered.wait(30)
    assert answer(busy) == answer(engine) == before
    assert roles(engine) == {SMALL.fingerprint: "serving", LARGE.fingerprint: "filling"}
    added = busy.add("Parcel 9999 waits on the quay")  # in the old space, while the new one is filled
    large.open.set()
    assert busy.models.wait(30)
    assert busy.models.space == LARGE.fingerprint
    assert added.id in {hit.id for hit in engine.search("quay")}
    assert engine.status().without_vector == 0


def test_what_was_filled_before_it_was_stopped_is_not_filled_again(opened: Open, engine: Engine) -> None:
    def stop(done: int, total: int, label: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        engine.models.use("large", progress=stop)
    assert engine.models.space == SMALL.fingerprint
    assert roles(opened())[LARGE.fingerprint] == "filling"
    assert opened().models.use("large").embedded == NOTES - 64
    assert engine.models.space == LARGE.fingerprint


def test_closing_stops_what_is_done_in_the_background(opened: Open, engine: Engine) -> None:
    large = Gated()
    busy = opened(large=large)
    busy.models.use("large", background=True)
    busy.close()
    assert engine.models.space in (SMALL.fingerprint, LARGE.fingerprint)
    assert engine.models.use("large").switched


def test_a_provider_that_fails_leaves_the_old_model_in_place(opened: Open, engine: Engine) -> None:
    large = Gated()
    large.error = ProviderUnavailable("nobody there")
    busy = opened(large=large)
    with pytest.raises(ProviderUnavailable, match="nobody there"):
        busy.models.use("large")
    assert engine.models.space == SMALL.fingerprint
    large.error = ProviderRefused("no", status=400)
    with pytest.raises(ProviderUnavailable, match="no"):
        busy.models.use("large")
    assert engine.models.space == SMALL.fingerprint
    assert next(state for state in engine.models.list() if state.role == "filling").error


def test_in_the_background_a_provider_that_failed_is_asked_again(opened: Open, engine: Engine) -> None:
    large = Gated()
    large.error = ProviderUnavailable("away for a second")
    busy = opened(large=large)
    busy.models.use("large", background=True)
    assert large.entered.wait(30)
    large.error = None
    assert busy.models.wait(30)
    assert engine.models.space == LARGE.fingerprint


def test_rolled_back_the_old_answers_come_back_with_what_was_added_since(engine: Engine) -> None:
    engine.models.use("large")
    added = engine.add("A crate of oranges stands on the quay")
    change = engine.models.rollback()
    assert (change.switched, change.embedded, engine.models.space) == (True, 1, SMALL.fingerprint)
    assert engine.search("oranges on the quay")[0].id == added.id
    assert engine.status().without_vector == 0
    assert roles(engine) == {SMALL.fingerprint: "serving", LARGE.fingerprint: "before"}
    engine.models.rollback()  # and forth again
    assert engine.models.space == LARGE.fingerprint


def test_the_first_answer_of_a_new_space_has_thresholds_of_its_own(opened: Open, engine: Engine) -> None:
    assert "uncalibrated" in codes(engine)
    opened(calibration="automatic").models.use("large")
    assert "uncalibrated" not in codes(engine)
    [made] = engine.models.calibrations()
    assert made.space == LARGE.fingerprint


def test_without_a_model_before_there_is_nothing_to_go_back_to(engine: Engine) -> None:
    with pytest.raises(NotFound, match="no model before"):
        engine.models.rollback()


@pytest.mark.parametrize("name", ["small", SMALL.fingerprint])
def test_a_space_that_does_not_answer_can_be_dropped_by_its_model_or_its_name(engine: Engine, name: str) -> None:
    engine.models.use("large")
    before = answer(engine)
    assert engine.models.drop(name) == NOTES
    assert roles(engine) == {LARGE.fingerprint: "serving"}
    assert answer(engine) == before
    with pytest.raises(NotFound):
        engine.models.rollback()
    assert engine.models.use("small").embedded == NOTES  # made anew, and found again
    assert "vectors-damaged" not in codes(engine)


def test_the_space_that_answers_is_not_dropped(engine: Engine) -> None:
    with pytest.raises(ConfigError, match="is the model in use"):
        engine.models.drop("small")
    with pytest.raises(NotFound, match="no vectors of 'huge'"):
        engine.models.drop("huge")


def test_opened_with_another_model_the_old_one_answers_and_says_so(opened: Open, engine: Engine) -> None:
    other = opened("large")
    assert answer(other) == answer(engine)
    assert "model-differs" in codes(other)
    other.add("Parcel 777 waits on the quay")
    assert set(other.status().spaces) == {SMALL.fingerprint}
    assert "model-differs" not in codes(opened("large", chosen=False))  # nobody asked for it


def test_where_the_model_of_the_store_cannot_be_made_words_answer_and_nothing_is_lost(
    opened: Open, engine: Engine
) -> None:
    poor = opened("large", models={"large": LARGE})
    assert poor.search(QUESTION)
    [said] = [notice.message for notice in poor.search(QUESTION).notices if notice.code == "vector-off"]
    assert "`fetch small` gets it" in said
    added = poor.add("A crate of oranges stands on the quay")
    assert poor.models.backlog()[:2] == (1, 0)
    assert "small is not here" in poor.models.backlog().error
    assert engine.models.embed().embedded == 1
    assert engine.search("oranges")[0].id == added.id


def test_a_store_that_does_not_know_its_space_goes_by_its_vectors(opened: Open, engine: Engine, tmp_path: Path) -> None:
    with engine._store._database.writing() as connection:  # type: ignore[attr-defined]  # as an older version left it
        connection.execute("DELETE FROM meta WHERE key = ?", (f"note:{NOTE}",))
        connection.execute("UPDATE meta SET value = value + 1 WHERE key = 'generation'")
    assert opened("large").models.space == SMALL.fingerprint
    assert opened().models.space == SMALL.fingerprint
    opened("large").add("one more")
    assert roles(engine) == {SMALL.fingerprint: "serving"}


def test_none_is_obeyed_at_once_and_changes_nothing_for_others(opened: Open, engine: Engine) -> None:
    silent = opened("none")
    assert silent.models.space == ""
    silent.add("A crate of oranges stands on the quay")
    assert engine.models.space == SMALL.fingerprint
    assert engine.status().without_vector == 1
    assert silent.models.use("large").switched
    assert engine.models.space == LARGE.fingerprint


# -- the queue ---------------------------------------------------------------------------------------------------------


@contextmanager
def failing(embedder: Gated, error: Exception) -> Iterator[None]:
    embedder.error = error
    yield
    embedder.error = None


def test_what_cannot_be_embedded_is_stored_and_the_next_write_takes_it_along(opened: Open) -> None:
    large = Gated()
    clock = Clock()
    engine = opened("large", large=large, clock=clock)
    with failing(large, ProviderUnavailable("nobody there", "wait")):
        added = engine.add("green tea")
    assert engine.search("tea")[0].id == added.id
    assert engine.models.backlog() == (1, 0, 1, "nobody there (wait)", 1001.0, 0)
    [notice] = engine.models.waiting_notices()
    assert "1 wait for a vector: nobody there" in notice.message
    clock.now += 2
    engine.add("black tea")
    assert engine.models.backlog() == (0, 0, 0, "", None, 0)
    assert engine.models.waiting_notices() == ()


def test_what_the_model_knows_no_part_of_is_asked_for_once_and_waits_for_nothing(opened: Open, tmp_path: Path) -> None:
    model = Speechless()
    engine = opened("large", large=model)
    engine.add("black tea")  # the first of a space
    for folder in ("notes", "notes/more"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "odd.md").write_text(f"odd {folder}\n", encoding="utf-8")
    for number in range(40):
        (tmp_path / "notes" / f"{number}.md").write_text(f"tea number {number}\n", encoding="utf-8")
    asked: list[int] = []
    for _ in range(2):
        model.odd.clear()
        report = engine.ingest(tmp_path / "notes")
        asked.append(len(model.odd))
        assert report.without_vector == 2
    assert asked == [2, 0]
    engine.add("an odd fact")
    engine.update(engine.add("one more fact").id, text="one more odd fact")
    assert engine.models.backlog() == (0, 0, 0, "", None, 4)
    assert engine.models.waiting_notices() == ()
    assert [(state.waiting, state.error) for state in engine.models.list()] == [(0, "")]
    assert engine.status().without_vector == 4
    assert len(engine.search("odd fact")) >= 2
    engine.add("an odd fact", scope="user:7")  # one text, two memories
    assert engine.models.backlog() == (0, 0, 0, "", None, 5)
    assert engine.models.backlog(scope="user:7") == engine.models.backlog()  # who sees the global scope as well


class Speechless(WordDirections):
    """Knows nothing of texts that say odd, and remembers who asked for these."""

    def __init__(self) -> None:
        super().__init__(48, "large")
        self.odd: list[str] = []

    def documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        rows = super().documents(texts)
        self.odd += [text for text in texts if "odd" in text]
        return np.array([row * ("odd" not in text) for row, text in zip(rows, texts, strict=True)])


def test_the_queue_of_others_is_no_news_to_whoever_does_not_see_it(opened: Open) -> None:
    large = Gated()
    engine = opened("large", large=large, clock=Clock())
    engine.add("black tea")
    with failing(large, ProviderUnavailable("nobody there", "wait")):
        engine.add("green tea", scope="user:7")
    assert engine.models.backlog(scope=["user:42"]) == engine.models.backlog(scope=[]) == (0, 0, 0, "", None, 0)
    assert engine.models.waiting_notices(scope=["user:42"]) == ()
    [state] = engine.models.list(scope=["user:42"])
    assert (state.vectors, state.waiting, state.error) == (1, 0, "")
    assert engine.status(scope="user:42").without_vector == 0
    assert (
        engine.models.backlog(scope="user:7") == engine.models.backlog() == (1, 0, 1, "nobody there (wait)", 1001.0, 0)
    )
    assert engine.models.waiting_notices(scope="user:7") == engine.models.waiting_notices()
    assert engine.models.list(scope="user:7") == engine.models.list()


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_the_queue_is_drained_in_the_background(opened: Open) -> None:
    large = Gated()
    engine = opened("large", large=large)
    with failing(large, ProviderUnavailable("away")):
        engine.add("green tea")
        large.entered.clear()
        engine.models.embed(background=True)
        assert large.entered.wait(30)
    assert engine.models.wait(30)
    assert engine.models.backlog().waiting == 0


# -- comparing ---------------------------------------------------------------------------------------------------------


class Unlike(WordDirections):
    """A model that finds the same row, whatever is asked for."""

    def query(self, text: str) -> NDArray[np.float32]:
        return super().query("row 7")


def test_a_model_that_loses_pinned_answers_is_not_taken_unless_forced(opened: Open, engine: Engine) -> None:
    for question in ("harbour shed", "rows of parcels", "what waits?"):  # every note holds these words
        engine.pins.add(question, engine.search(question, limit=1)[0].id, within=1)
    worse = opened(large=Unlike(48, "large"))
    agreement = worse.models.use("large", check=True).agreement
    assert agreement is not None
    assert agreement.overlap < 1.0
    lost = len(agreement.lost)
    assert 0 < lost <= 3
    assert str(agreement).endswith(f"pins lost: {lost} of 3")
    assert engine.models.space == SMALL.fingerprint
    assert worse.models.use("large", check=True, force=True).switched
    assert engine.models.space == LARGE.fingerprint


def test_a_model_that_answers_the_same_is_taken(opened: Open, engine: Engine) -> None:
    engine.pins.add("parcel 17", engine.search("parcel 17")[0].id)
    same = WordDirections(16, "same")
    change = opened(same=same).models.use("same", check=True)
    assert change.switched
    assert change.agreement is not None
    assert (change.agreement.overlap, change.agreement.lost) == (1.0, ())
    assert str(change.agreement).endswith("pins lost: 0 of 1")
    with pytest.raises(ConfigError, match="in the background"):
        engine.models.use("large", check=True, background=True)


def test_without_pins_only_the_overlap_is_told(engine: Engine) -> None:
    agreement = engine.models.use("large", check=True).agreement
    assert agreement is not None
    assert agreement.questions == 100
    assert str(agreement).endswith("nothing is pinned")


def test_a_model_that_is_dropped_while_it_is_filled_does_not_take_over(opened: Open, engine: Engine) -> None:
    gated = Gated()
    changing = opened(large=gated)
    gated.open.clear()
    gated.entered.clear()
    changing.models.use("large", background=True)
    assert gated.entered.wait(30)
    engine.models.drop(gated.fingerprint)
    gated.open.set()
    with pytest.raises(ConfigError, match="dropped while it was being filled"):
        changing.models.wait(30)
    assert roles(engine)[SMALL.fingerprint] == "serving"


# -- a second model beside the first -----------------------------------------------------------------------------------


def test_a_second_model_is_filled_and_the_first_goes_on_answering(opened: Open, engine: Engine) -> None:
    before = answer(engine)
    change = engine.models.add("large")
    assert (change.embedded, change.without_vector, change.before) == (NOTES, 0, SMALL.fingerprint)
    assert roles(opened()) == {SMALL.fingerprint: "serving", LARGE.fingerprint: "added"}
    assert answer(engine) == before


def test_what_is_written_later_gets_a_vector_of_both(engine: Engine, tmp_path: Path) -> None:
    engine.models.add("large")
    engine.add("Parcel 9999 waits on the quay")
    engine.facts.import_memories([Memory("m_x", "Parcel 7777 was sent back")])
    (tmp_path / "note.md").write_text("# Cranes\n\nThe crane of the quay is broken.\n", encoding="utf-8")
    engine.ingest(tmp_path / "note.md")
    assert {state.role: (state.vectors, state.waiting) for state in engine.models.list()} == {
        "serving": (NOTES + 3, 0),
        "added": (NOTES + 3, 0),
    }


def test_what_the_second_model_fails_on_is_stored_and_waits(opened: Open, engine: Engine) -> None:
    large = Gated()
    writer = opened(large=large)
    writer.models.add("large")
    large.error = ProviderUnavailable("nobody is there")
    added = writer.add("Parcel 9999 waits on the quay")
    assert added.id in {hit.id for hit in engine.search("quay")}
    [state] = [state for state in engine.models.list() if state.role == "added"]
    assert (state.vectors, state.waiting, state.error) == (NOTES, 1, "nobody is there")
    large.error = None
    assert writer.models.embed().embedded == 1


def test_a_second_model_that_was_stopped_goes_on_where_it_was(opened: Open, engine: Engine) -> None:
    def stop(done: int, total: int, label: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        engine.models.add("large", progress=stop)
    assert roles(engine)[LARGE.fingerprint] == "added"
    assert opened().models.add("large").embedded == NOTES - 64  # what one transaction holds was kept


def test_a_second_model_is_filled_in_the_background(engine: Engine) -> None:
    assert engine.models.add("large", background=True).without_vector == NOTES
    assert engine.models.wait(30)
    assert {state.role: state.waiting for state in engine.models.list()} == {"serving": 0, "added": 0}


def test_a_second_model_is_dropped_or_takes_over(engine: Engine) -> None:
    engine.models.add("large")
    assert engine.models.drop("large") == NOTES
    assert roles(engine) == {SMALL.fingerprint: "serving"}
    engine.models.add("large")
    assert engine.models.use("large").embedded == 0
    assert roles(engine) == {LARGE.fingerprint: "serving", SMALL.fingerprint: "before"}


class English(WordDirections):
    languages = ("en",)


def test_a_model_that_can_be_no_second_one_is_refused(opened: Open, engine: Engine) -> None:
    with pytest.raises(ConfigError, match="small is the model in use"):
        engine.models.add("small")
    with pytest.raises(ConfigError, match="english only knows en"):
        opened(english=English(24, "english")).models.add("english")
    with pytest.raises(ConfigError, match="no embedding model"):
        opened("none").models.add("large")
    assert roles(engine) == {SMALL.fingerprint: "serving"}
