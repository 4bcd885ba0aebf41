"""A model that was added beside the first: it votes for memories in another language than the question alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from whyrank.config.load import load
from whyrank.engine.engine import Engine
from whyrank.engine.spaces import Makers
from whyrank.errors import ProviderUnavailable
from whyrank.ranking.recipes import RECIPES
from whyrank.storage.store import SqliteStore
from whyrank.testing.fakes import WordDirections
from whyrank.types.memory import Memory, Scope
from whyrank.types.trail import replay

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    from whyrank.protocols import Embedder, Vector
    from whyrank.types.results import Hit

FIRST = WordDirections(32, "first")
GERMAN = {
    "wer": "who", "gießt": "waters", "die": "the", "pflanzen": "plants", "im": "in", "sommer": "summer",
    "das": "the", "boot": "boat", "liegt": "lies", "am": "at", "steg": "jetty", "und": "and", "nicht": "not",
    "der": "the", "hecke": "hedge", "wird": "is", "geschnitten": "cut", "frühling": "spring", "von": "by",
}  # fmt: skip
NOTES = {
    "plants": "Die Pflanzen gießt im Sommer Anna, und nicht der Gärtner.",
    "hedge": "Die Hecke wird im Frühling geschnitten, und nicht im Sommer.",
    "boat": "The boat lies at the jetty in the summer, and in the shed for the rest of the year.",
    "router": "The router in the hall is restarted by holding the red button for ten seconds.",
}
QUESTION = "who waters the plants in the summer?"


class Meanings(WordDirections):
    """Puts a German word where its English one is."""

    languages = ("de", "en")

    def __init__(self) -> None:
        super().__init__(64, "meanings")
        self.error: Exception | None = None
        self.is_writing = True

    def documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        if not self.is_writing:
            raise ProviderUnavailable("nobody is there")
        return super().documents([_in_english(text) for text in texts])

    def query(self, text: str) -> Vector:
        if self.error is not None:
            raise self.error
        vector: Vector = super().documents([_in_english(text)])[0]
        return vector


def _in_english(text: str) -> str:
    words = (word.strip(".,?") for word in text.lower().split())
    return " ".join(GERMAN.get(word, word) for word in words)


Open = Callable[..., Engine]


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Open]:
    engines: list[Engine] = []

    def open_engine(meanings: Embedder | None = None) -> Engine:
        there = {"first": FIRST, "meanings": meanings or Meanings()}

        def make(provider: str, settings: Mapping[str, object]) -> Embedder | None:
            return there[provider]

        def provider_of(space: str) -> str:
            return next((name for name, made in there.items() if made.fingerprint == space), "")

        makers = Makers("first", is_chosen=True, make=make, provider_of=provider_of)
        config = load({"store": str(tmp_path / "m.db"), "calibration": "manual"}, workspace=tmp_path, environment={})
        engines.append(Engine(SqliteStore(tmp_path / "m.db"), FIRST, config, makers=makers))
        return engines[-1]

    yield open_engine
    for engine in engines:
        engine.close()


@pytest.fixture
def engine(opened: Open) -> Engine:
    engine = opened()
    engine.facts.import_memories([Memory(identity, text) for identity, text in NOTES.items()])
    return engine


def weights(hit: Hit) -> dict[str, float]:
    return {part.signal: part.weight for part in hit.trail[0].parts}


def test_a_question_finds_a_note_in_another_language(engine: Engine) -> None:
    assert engine.search(QUESTION)[0].id == "boat"
    engine.models.add("meanings")
    found = engine.search(QUESTION)
    assert found[0].id == "plants"
    assert found.verdict == "found"


def test_the_weights_of_a_note_depend_on_its_language_alone(engine: Engine) -> None:
    engine.models.add("meanings")
    by_id = {hit.id: hit for hit in engine.search(QUESTION)}
    # The two votes before give 0.35 and 0.65 of 1, the added one 9 of 10: 0.035, 0.9 and 0.065.
    for other in ("plants", "hedge"):
        assert weights(by_id[other]) == pytest.approx({"vector": 0.035, "vector:testing": 0.9, "keyword": 0.065})
    for same in ("boat", "router"):
        assert weights(by_id[same]) == pytest.approx({"vector": 0.35, "keyword": 0.65})


def test_notes_in_the_language_of_the_question_keep_their_scores(engine: Engine) -> None:
    before = {hit.id: hit.score for hit in engine.search(QUESTION)}
    engine.models.add("meanings")
    after = {hit.id: hit.score for hit in engine.search(QUESTION)}
    assert after["boat"] == pytest.approx(before["boat"], abs=1e-15)
    assert after["router"] == pytest.approx(before["router"], abs=1e-15)
    assert after["plants"] > before["plants"]


def test_the_explanation_adds_up_and_shows_the_vote(engine: Engine) -> None:
    engine.models.add("meanings")
    [plants] = engine.search(QUESTION, limit=1)
    assert replay(plants.trail) == (plants.tier, plants.score)
    fused, preferred, *_ = plants.trail
    assert fused.value == sum(part.value for part in fused.parts)
    # It is the best in its language: 0.9 of its vote, of which four fifths are left, since the question is English.
    [vote] = [part for part in fused.parts if part.signal == "vector:testing"]
    assert (vote.rank, vote.raw) == (1, vote.best)
    assert vote.value == pytest.approx(0.9)
    assert (preferred.stage, preferred.op, preferred.value) == ("language", "scale", 0.8)
    assert "vector:testing: 0.9000 = 0.900 × 1.0000" in plants.explain()


def test_a_store_of_one_language_answers_as_before(engine: Engine) -> None:
    for identity in ("plants", "hedge"):
        engine.forget(identity)
    before = [(hit.id, hit.score, hit.confidence) for hit in engine.search(QUESTION)]
    engine.models.add("meanings")
    assert [(hit.id, hit.score, hit.confidence) for hit in engine.search(QUESTION)] == before


def test_single_words_stay_in_the_language_of_most_notes(engine: Engine) -> None:
    engine.forget("boat")
    engine.models.add("meanings")
    asked = engine.search("Hecke")  # shows no language; two notes of three are German
    assert asked[0].id == "hedge"
    assert "vector:testing" not in weights(asked[0])


def test_another_scope_says_nothing_of_the_languages(engine: Engine) -> None:
    engine.models.add("meanings")
    ours = Scope("user", "ours")
    engine.facts.import_memories(
        [Memory("ours", "Wer die Pflanzen gießt, und nicht im Sommer, der ist Anna.", scope=ours)]
    )
    for identity in ("plants", "hedge"):
        engine.forget(identity)
    assert {part for hit in engine.search(QUESTION) for part in weights(hit)} == {"vector", "keyword"}
    assert engine.search(QUESTION, scope=ours)[0].id == "ours"


def test_a_note_without_a_vector_there_shares_its_weight_out_with_a_notice(opened: Open, engine: Engine) -> None:
    failing = Meanings()
    writer = opened(failing)
    writer.models.add("meanings")
    failing.is_writing = False
    writer.facts.import_memories([Memory("late", "Das Boot und die Pflanzen sind im Sommer nicht am Steg.")])
    answer = writer.search(QUESTION)
    [late] = [hit for hit in answer if hit.id == "late"]
    assert weights(late) == pytest.approx({"vector": 0.35, "keyword": 0.65})
    assert "added-vectors-missing" in {notice.code for notice in answer.notices}
    failing.is_writing = True
    assert writer.models.embed().embedded == 1
    assert "added-vectors-missing" not in {notice.code for notice in writer.search(QUESTION).notices}


def test_a_model_that_fails_leaves_the_others_at_work_and_says_so(opened: Open, engine: Engine) -> None:
    failing = Meanings()
    asking = opened(failing)
    before = [(hit.id, hit.score) for hit in asking.search(QUESTION)]
    asking.models.add("meanings")
    failing.error = ProviderUnavailable("nobody is there")
    answer = asking.search(QUESTION)
    assert [(hit.id, hit.score) for hit in answer] == before
    assert "added-off" in {notice.code for notice in answer.notices}


def test_why_says_what_would_turn_two_languages_round(engine: Engine) -> None:
    engine.models.add("meanings")
    contrast = engine.why(QUESTION, "boat", over="plants")
    assert contrast.first == "plants"
    assert "vector:testing weight 0.90" in str(contrast)
    # Of two English notes it says nothing, whatever its weight is.
    assert "vector:testing" not in str(engine.why(QUESTION, "router", over="boat"))


def test_why_says_how_far_from_its_run_a_note_is(engine: Engine) -> None:
    engine.models.add("meanings")
    default = RECIPES["default"]
    narrow = replace(default, plan=replace(default.plan, pool=1))
    hedge, router = (str(engine.why(QUESTION, identity, recipe=narrow)) for identity in ("hedge", "router"))
    assert "vector:testing: rank 2 of a pool of 1 sources" in hedge
    assert "vector:testing: it is in the language of the query, or its language is unknown" in router


def test_dropped_it_votes_no_more(engine: Engine) -> None:
    before = [(hit.id, hit.score) for hit in engine.search(QUESTION)]
    engine.models.add("meanings")
    engine.models.drop("meanings")
    assert [(hit.id, hit.score) for hit in engine.search(QUESTION)] == before
