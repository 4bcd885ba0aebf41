"""In the planted embedder every note lies as near to every question as its corpus says."""

from __future__ import annotations

import numpy as np
import pytest

from whyrank_conformance.corpora import everyday, planted
from whyrank_conformance.meanings import DIMENSION, TOPICS, Corpus, Meanings

NOTES = (
    planted("near", "the ferry leaves at seven", {"ferry": 0.9, "tea": 0.1}),
    planted("long", "the kettle sings on the stove", {"tea": 0.5}, length=9.0),
    *everyday(30, 1),
)
MEANINGS = Meanings(Corpus(NOTES, {"when does it leave?": "ferry", "what sings?": "tea"}, question_length=2.0))


def cosine(a: str, b: str) -> float:
    one, other = MEANINGS.documents([a, b]).astype(np.float64)
    return float(one @ other / np.linalg.norm(one) / np.linalg.norm(other))


@pytest.mark.parametrize(
    ("text", "question", "wanted"),
    [
        ("the ferry leaves at seven", "when does it leave?", 0.9),
        ("the ferry leaves at seven", "what sings?", 0.1),
        ("the kettle sings on the stove", "what sings?", 0.5),
        ("the kettle sings on the stove", "when does it leave?", 0.0),
    ],
)
def test_the_cosine_is_the_one_that_was_planted(text: str, question: str, wanted: float) -> None:
    assert cosine(text, question) == pytest.approx(wanted, abs=1e-6)


def test_lengths_are_those_that_were_asked_for() -> None:
    lengths = np.linalg.norm(
        MEANINGS.documents(["the ferry leaves at seven", "the kettle sings on the stove", "what sings?"]), axis=1
    )
    assert lengths.tolist() == pytest.approx([1.0, 9.0, 2.0], abs=1e-5)


def test_a_text_with_something_around_it_means_the_same_and_so_does_a_part_of_it() -> None:
    whole = "the ferry leaves at seven"
    assert cosine(f"# Heading\n\n{whole.upper()}\n", whole) == pytest.approx(1.0)
    assert cosine("the ferry leaves", whole) == pytest.approx(1.0)


def test_a_text_nobody_planted_is_near_to_nothing() -> None:
    assert abs(cosine("sailing", "when does it leave?")) < 1e-6
    assert abs(cosine("sailing", "the ferry leaves at seven")) < 0.3
    assert MEANINGS.documents([]).shape == (0, DIMENSION)


def test_everyday_notes_are_the_same_for_a_seed_and_others_for_another() -> None:
    texts = [one.note.text for one in everyday(50, 3)]
    assert texts == [one.note.text for one in everyday(50, 3)]
    assert texts != [one.note.text for one in everyday(50, 4)]
    assert len(set(texts)) == 50


def test_a_corpus_with_too_many_topics_is_refused() -> None:
    with pytest.raises(ValueError, match="at most 16 topics, not 17"):
        Meanings(Corpus((), {f"question {i}": f"topic {i}" for i in range(TOPICS + 1)}))
