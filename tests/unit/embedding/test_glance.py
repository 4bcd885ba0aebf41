"""A glance at the model's files gives what loading them gives: the same tokens, the same vector to the bit."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import numpy as np
import pytest

from whyrank.providers.wordllama import MAX_LETTERS, TABLE, TOKENIZER, Glance, WordLlama, plainly_spelled

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

QUESTIONS = [
    "what does Suzy drink?", "Remind Me", 'the "exact phrase" of C:\\notes', "Lärmschutz an der Straße", "где мой чай",
    "don't use api-key v1.2.3 (see docs/setup_guide.md)", "TGFb1 and GitHub", "§ 5 — 10 €", "a",
]  # fmt: skip


@pytest.fixture(scope="module")
def model() -> WordLlama:
    return WordLlama()


@pytest.fixture(scope="module")
def glance(model: WordLlama) -> Glance:
    found = Glance.at(model._folder / TOKENIZER, model._folder / TABLE)
    assert found is not None
    return found


def loaded(text: str) -> list[float]:
    """Return the vector that the loaded model gives."""
    vector: list[float] = WordLlama().documents([text, "and another"])[0].tolist()
    return vector


def texts(model: WordLlama, count: int) -> list[str]:
    """Make texts of the model's own tokens, of letters of many scripts, and of both."""
    chance = random.Random(1)
    known = sorted(model._tokenizer.get_vocab())
    ranges = [(0x20, 0x7E), (0x20, 0x7E), (0xA0, 0x24F), (0x370, 0x52F), (0x4E00, 0x9FFF), (0x1F300, 0x1F6FF)]
    parts: list[Callable[[], str]] = [
        lambda: chance.choice(known).replace("▁", " "),
        lambda: chr(chance.randint(*chance.choice(ranges))),
        lambda: " ",
    ]
    return ["".join(chance.choice(parts)() for _ in range(chance.randint(1, 25))) for _ in range(count)]


def test_tokens_are_those_of_the_tokenizer(model: WordLlama, glance: Glance) -> None:
    read = 0
    for text in [*QUESTIONS, *texts(model, 4_000)]:
        spelled = plainly_spelled(text)
        tokens = glance.tokens(spelled)
        if tokens is not None:
            read += 1
            assert tokens == model._tokenizer.encode(spelled, add_special_tokens=False).ids, text
    assert read > 400  # all the others hold a letter that is spelled in bytes, a tag or an odd space


def test_every_token_that_is_a_word_is_known_by_its_number(model: WordLlama, glance: Glance) -> None:
    for token, number in model._tokenizer.get_vocab().items():
        word = token.removeprefix("▁")
        tokens = glance.tokens(word) if token.startswith("▁") else None
        if tokens is not None and len(tokens) == 1:
            assert tokens == [number]


def test_no_token_reaches_from_one_word_into_the_next(model: WordLlama) -> None:
    # So a text of single spaces may be read word by word.
    assert not [token for token in model._tokenizer.get_vocab() if "▁" in token.lstrip("▁")]


@pytest.mark.parametrize("text", QUESTIONS)
def test_the_first_vectors_are_those_of_the_loaded_model(text: str) -> None:
    embedder = WordLlama()
    first = embedder.query(text).tolist()
    assert "_tokenizer" not in embedder.__dict__
    assert first == loaded(text)


def test_who_asks_again_and_again_loads_the_model(model: WordLlama) -> None:
    embedder = WordLlama()
    answers = [embedder.query("green tea").tolist() for _ in range(5)]
    assert all(answer == answers[0] for answer in answers)
    assert "_tokenizer" in embedder.__dict__
    assert "_glance" not in embedder.__dict__


@pytest.mark.parametrize("text", ["", "  ", "tea <s> pot", "🙂", "\x00", "x" * 61, "tea " * MAX_LETTERS])
def test_what_is_not_surely_read_alike_is_left_to_the_model(glance: Glance, text: str) -> None:
    assert glance.tokens(plainly_spelled(text)) is None
    assert WordLlama().query(text).tolist() == loaded(text)


def test_the_mean_of_all_rows_is_that_of_the_table(model: WordLlama, glance: Glance) -> None:
    assert glance.common.tobytes() == model._common.tobytes()
    assert np.array_equal(glance._table, model._table)


@pytest.mark.parametrize("part", [TOKENIZER, TABLE])
def test_files_that_are_not_known_are_left_to_the_model(model: WordLlama, tmp_path: Path, part: str) -> None:
    other = tmp_path / "other"
    data = bytearray((model._folder / part).read_bytes())
    data[-9] ^= 1
    other.write_bytes(data)
    paths = {name: other if name == part else model._folder / name for name in (TOKENIZER, TABLE)}
    assert Glance.at(paths[TOKENIZER], paths[TABLE]) is None


@pytest.mark.parametrize("content", [None, b""])
def test_files_that_cannot_be_read_are_left_to_the_model(
    model: WordLlama, tmp_path: Path, content: bytes | None
) -> None:
    other = tmp_path / "other"
    if content is not None:
        other.write_bytes(content)
    assert Glance.at(model._folder / TOKENIZER, other) is None
