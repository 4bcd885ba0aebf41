"""A rehearsal asks a copy of the store, hides the words of its questions there, and leaves the store alone."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

import whyrank
from whyrank.errors import ConfigError
from whyrank.evaluation.tuning import Pseudo, Tuning, TuningSetup, _hidden
from whyrank.storage.store import SqliteStore
from whyrank.types.memory import GLOBAL
from whyrank.types.query import Where

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

WORDS = [
    a + b for a in ("bel", "dor", "fin", "gol", "hum", "kar", "lum", "mir", "nol", "pra") for b in ("ta", "vik", "son")
]


def notes(folder: Path, count: int, seed: int = 1) -> Path:
    """Write notes of sentences drawn from thirty words, each note with a few that are its own."""
    chance = random.Random(seed)
    folder.mkdir(parents=True)
    for number in range(count):
        own = [f"{word}{number}" for word in chance.sample(WORDS, 3)]
        sentences = [" ".join(chance.sample(WORDS, 7) + own) for _ in range(6)]
        title = " ".join(chance.sample(WORDS, 3))
        (folder / f"{number}.md").write_text(f"# {title} {own[0]}\n\n" + ". ".join(sentences) + ".\n", encoding="utf-8")
    return folder


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[whyrank.Engine]:
    with whyrank.open(tmp_path / "memory.db", workspace=tmp_path, ranking_vector_weight=1.0) as opened:
        opened.ingest(notes(tmp_path / "notes", 50))
        yield opened


def test_a_weight_that_shuts_the_words_out_is_found_and_written_only_if_told_to(
    engine: whyrank.Engine, tmp_path: Path
) -> None:
    file = tmp_path / "whyrank.toml"
    file.write_text("# mine\nlimit = 7  # seven\n\n[ranking]\nvector_weight = 1.0  # alone\nmax_per_file = 1\n")
    # Words without meaning have no direction, so that only letters can find them.
    tried = engine.tune(queries=200)
    assert tried.changes["ranking.vector_weight"] != 1.0
    assert "vector_weight = 1.0" in file.read_text()
    assert engine.tune(queries=200, apply=True) == tried
    text = file.read_text()
    assert "vector_weight = 1.0" not in text
    assert text.startswith("# mine\nlimit = 7  # seven\n\n[ranking]\n")
    assert "max_per_file = 1" in text


def test_the_store_itself_is_never_touched(engine: whyrank.Engine, tmp_path: Path) -> None:
    before = [(memory.id, memory.text, memory.headings) for memory in engine.list()]
    stored = (tmp_path / "memory.db").read_bytes()
    ticks: list[tuple[int, int, str]] = []
    tuning = engine.tune(queries=24, progress=lambda *told: ticks.append(told))
    assert ticks[-1][:2] == (len(tuning.trials), len(tuning.trials))
    assert (tmp_path / "memory.db").read_bytes() == stored
    assert [(memory.id, memory.text, memory.headings) for memory in engine.list()] == before


def test_words_are_hidden_while_asked_and_back_afterwards(engine: whyrank.Engine, tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "memory.db")
    memory = engine.list(path="notes/3.md")[0]
    stage = TuningSetup(store, None, engine.config, Where(now=0.0))
    question = Pseudo("title", memory.name, (GLOBAL, "notes/3.md"), memory.name, (GLOBAL, "notes/3.md"))
    word = memory.name.split()[-1]
    assert len(engine.search(word, recipe="keyword")) == 1
    with _hidden(stage, [question]):
        hidden = engine.get(memory.id)
        assert memory.name not in hidden.text
        assert hidden.headings == ()
    assert engine.get(memory.id) == memory
    store.close()


def test_the_seed_decides(engine: whyrank.Engine) -> None:
    def asked(tuning: Tuning) -> list[str]:
        return [trial.question.text for trial in tuning.trials]

    first = engine.tune(queries=24)
    assert engine.tune(queries=24) == first
    assert asked(engine.tune(queries=24, seed=2)) != asked(first)


def test_scope_is_a_wall_for_tuning_too(tmp_path: Path) -> None:
    ours, theirs = notes(tmp_path / "ours", 40), notes(tmp_path / "theirs", 40, seed=2)
    with (
        whyrank.open(tmp_path / "both.db", workspace=tmp_path) as both,
        whyrank.open(tmp_path / "alone.db", workspace=tmp_path) as alone,
    ):
        both.ingest(theirs, scope="user:2")
        for engine in (both, alone):
            engine.ingest(ours, scope="user:1")
        assert both.tune(scope="user:1", queries=48) == alone.tune(scope="user:1", queries=48)


def test_a_recipe_without_weights_has_nothing_to_fit(engine: whyrank.Engine) -> None:
    tuning = engine.tune(recipe="rrf")
    assert (tuning.decision, tuning.reason, tuning.trials) == ("keep", "the recipe has no setting to fit", ())


def test_without_an_embedder_only_the_name_bonus_is_tried(tmp_path: Path) -> None:
    with whyrank.open(tmp_path / "words.db", workspace=tmp_path, embedding="none") as engine:
        engine.ingest(notes(tmp_path / "notes", 40))
        tuning = engine.tune(queries=24)
    assert [fit.setting for fit in tuning.fits] == ["name_bonus"]
    assert {choice.vector_weight for choice in tuning.choices} == {None}


def test_an_empty_store_is_too_few(tmp_path: Path) -> None:
    with whyrank.open(tmp_path / "empty.db", workspace=tmp_path) as engine:
        assert engine.tune().decision == "too few"


def test_a_number_of_questions_that_is_none_is_refused(engine: whyrank.Engine) -> None:
    with pytest.raises(ConfigError, match="queries is 0"):
        engine.tune(queries=0)
