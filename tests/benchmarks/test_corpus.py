"""The corpus is the same for the same seed, and behaves like text and its vectors."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
import pytest

from benchmarks.speed.corpus import (
    COMMON_WORDS,
    FUNCTION_SHARE,
    FUNCTION_WORDS,
    LONGEST,
    OPENERS,
    SHORTEST,
    VOCABULARY,
    Corpus,
    Written,
    content_shares,
    function_shares,
    vocabulary,
    write,
)

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return Corpus(2_000, words=60, seed=5)


@pytest.fixture(scope="module")
def written(corpus: Corpus, tmp_path_factory: pytest.TempPathFactory) -> Written:
    return write(corpus, 50, tmp_path_factory.mktemp("corpus"))


def test_the_same_seed_gives_the_same_corpus(written: Written, tmp_path: Path) -> None:
    again = write(Corpus(2_000, words=60, seed=5), 50, tmp_path)
    assert list(again.notes()) == list(written.notes())
    assert np.array_equal(again.vectors, written.vectors)
    assert again.questions == written.questions
    assert np.array_equal(again.question_vectors, written.question_vectors)


def test_another_seed_gives_another_corpus(written: Written, tmp_path: Path) -> None:
    other = write(Corpus(2_000, words=60, seed=6), 50, tmp_path)
    assert not set(other.notes()) & set(written.notes())


def test_function_words_are_43_of_100_tokens(written: Written) -> None:
    tokens = [token for note in written.notes() for token in note.split()]
    share = sum(token in FUNCTION_WORDS for token in tokens) / len(tokens)
    assert share == pytest.approx(0.43, abs=0.01)


def test_the_is_as_often_as_its_share_of_the_function_words_says(written: Written) -> None:
    counts = Counter(token for note in written.notes() for token in note.split())
    shares = dict(zip(FUNCTION_WORDS, function_shares(), strict=True))
    assert shares["the"] == max(shares.values())
    assert counts["the"] / counts.total() == pytest.approx(0.43 * shares["the"], rel=0.1)


def test_notes_are_about_as_long_as_asked(written: Written) -> None:
    lengths = [len(note.split()) for note in written.notes()]
    assert len(lengths) == 2_000
    assert np.mean(lengths) == pytest.approx(60, abs=1)
    assert min(lengths) >= 30


def test_words_come_in_bursts(written: Written) -> None:
    """A note that says an uncommon word once says it again far more often than chance would have it."""
    notes = [note.split() for note in written.notes()]
    total = Counter(word for note in notes for word in note)
    uncommon = {word for word, count in total.items() if 20 <= count <= 60 and word not in FUNCTION_WORDS}
    held = [count for note in notes for word, count in Counter(note).items() if word in uncommon]
    # Spread evenly, 60 of 120,000 tokens make a second one among 60 words with odds of 60 × 60/120,000 = 0.03.
    assert sum(count > 1 for count in held) / len(held) > 2 * 0.03


def test_the_vocabulary_is_small_letters_no_two_alike_and_no_function_word() -> None:
    words = vocabulary(20_000, seed=1)
    assert len(set(words)) == len(words) == 20_000
    assert all(word.isascii() and word.isalpha() and word.islower() for word in words)
    assert {len(word) for word in words} <= set(range(SHORTEST, LONGEST + 1))
    assert not set(words) & {*FUNCTION_WORDS, *OPENERS}


def test_frequent_words_are_shorter() -> None:
    words = vocabulary(20_000, seed=1)
    assert np.mean([len(word) for word in words[:2_000]]) < np.mean([len(word) for word in words[-2_000:]]) - 2


def test_frequencies_fall_as_zipf_and_mandelbrot_say() -> None:
    shares = content_shares(1_000)
    assert shares.sum() == pytest.approx(1)
    # Ranks 1 and 62: (62 + 60)/(1 + 60) = 2 times as often, to the power of 1.07.
    assert shares[0] / shares[61] == pytest.approx(2**1.07)


def test_vectors_are_of_unit_length_and_lie_in_clusters(written: Written) -> None:
    assert written.vectors.shape == (2_000, 256)
    assert np.allclose(np.linalg.norm(written.vectors, axis=1), 1, atol=1e-5)
    cosines = np.sort(written.vectors @ written.question_vectors.T, axis=0)[::-1]
    assert np.median(cosines[0]) == pytest.approx(0.76, abs=0.04)
    assert np.median(cosines[9]) == pytest.approx(0.68, abs=0.04)
    assert abs(np.median(cosines[1_000])) < 0.1


def test_a_question_has_6_to_12_words_more_than_half_of_them_function_words_the_rest_its_notes(
    written: Written,
) -> None:
    notes = list(written.notes())
    known = {*FUNCTION_WORDS, *OPENERS}
    assert len(written.questions) == 50
    for question in written.questions:
        words = question.text.split()
        told = [word for word in words if word not in known]
        assert 6 <= len(words) <= 12
        assert 0 < len(told) < len(words) / 2
        assert set(told) <= set(notes[question.note].split())


def test_the_first_content_word_is_about_as_frequent_as_time_is_in_english() -> None:
    assert content_shares(VOCABULARY)[0] * (1 - FUNCTION_SHARE) == pytest.approx(0.0015, abs=0.0001)


def test_a_question_asks_in_common_words(written: Written, corpus: Corpus) -> None:
    common = {*corpus.lexicon[:COMMON_WORDS], *OPENERS}
    assert all(word in common for question in written.questions for word in question.text.split())


def test_a_name_is_one_or_two_of_the_rarest_words_of_its_note(written: Written, corpus: Corpus) -> None:
    notes, rank = list(written.notes()), {word: place for place, word in enumerate(corpus.lexicon)}
    for question in written.questions:
        name = question.name.split()
        rarest = sorted(set(notes[question.note].split()), key=lambda word: -rank[word])
        assert name == rarest[: len(name)]
        assert len(name) in (1, 2)


def test_a_question_is_nearest_to_its_own_note(written: Written) -> None:
    nearest = (written.vectors @ written.question_vectors.T).argmax(axis=0)
    own = [question.note for question in written.questions]
    assert np.mean(nearest == own) > 0.6


def test_spare_notes_stand_in_no_batch(written: Written, corpus: Corpus) -> None:
    texts, vectors = corpus.spare(10)
    assert len(texts) == len(vectors) == 10
    assert not set(texts) & set(written.notes())
