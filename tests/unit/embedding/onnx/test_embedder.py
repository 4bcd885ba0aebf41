"""Any model in ONNX: pooling, prompts and long texts, added up by hand with a model of eight words."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tests.tiny import IDS, write_embedder
from whyrank.errors import ProviderError
from whyrank.providers.names import Prompts
from whyrank.providers.onnx.description import Description, Pooling
from whyrank.providers.onnx.embedder import MATTERS, OnnxEmbedder
from whyrank.testing.embedder_contract import EmbedderContract

if TYPE_CHECKING:
    from pathlib import Path

TINY = Description("folder:tiny", "folder/tiny", "1", 2, 512, "mean")


def made(folder: Path, **changes: object) -> OnnxEmbedder:
    return OnnxEmbedder(replace(TINY, **changes), write_embedder(folder))  # type: ignore[arg-type]


def unit(*numbers: float) -> list[float]:
    return [float(number) for number in np.array(numbers) / np.linalg.norm(numbers)]


@pytest.mark.parametrize(
    ("pooling", "expected"),
    [
        # [CLS] (0, 1), green (1, 0), tea (3, 0), [SEP] (1, 1)
        ("cls", unit(0, 1)),
        ("mean", unit((0 + 1 + 3 + 1) / 4, (1 + 0 + 0 + 1) / 4)),
        ("max", unit(3, 1)),
        ("lasttoken", unit(1, 1)),
    ],
)
def test_the_vectors_of_tokens_become_one(tmp_path: Path, pooling: Pooling, expected: list[float]) -> None:
    embedder = made(tmp_path, pooling=pooling)
    assert embedder.query("green tea").tolist() == pytest.approx(expected)
    assert embedder.documents(["green tea"])[0].tolist() == pytest.approx(expected)


def test_a_graph_that_pools_is_believed(tmp_path: Path) -> None:
    folder = write_embedder(tmp_path, output="sentence_embedding", pools=True)
    embedder = OnnxEmbedder(replace(TINY, pooling="graph"), folder)
    assert embedder.query("green tea").tolist() == pytest.approx(unit(5, 2))


@pytest.mark.parametrize("inputs", [("input_ids",), ("input_ids", "attention_mask"), ("pieces",)])
def test_a_graph_gets_the_inputs_it_has(tmp_path: Path, inputs: tuple[str, ...]) -> None:
    embedder = OnnxEmbedder(TINY, write_embedder(tmp_path, inputs=inputs))
    assert embedder.query("green tea").tolist() == pytest.approx(unit(5, 2))


def test_prompts_stand_before_questions_and_texts(tmp_path: Path) -> None:
    embedder = made(tmp_path, prompts=Prompts("asking", "ask: ", "boat "))
    # (0, 1) + ask (0, 2) + : (0, 0) + tea (3, 0) + (1, 1), and boat (0, 4) in place of "ask:"
    assert embedder.query("tea").tolist() == pytest.approx(unit(4, 4))
    assert embedder.documents(["tea"])[0].tolist() == pytest.approx(unit(4, 6))
    assert not embedder.documents([""])[0].any()  # a prompt alone says nothing
    assert not embedder.query("").any()


def test_every_part_of_a_long_text_has_the_prompt_before_it(tmp_path: Path) -> None:
    # Six tokens at once: two marks and the prompt leave three of the text, so that four words make two parts.
    embedder = made(tmp_path, max_tokens=6, prompts=Prompts("asking", "", "boat "))
    one, other, whole = embedder.documents(["tea tea", "ask ask", "tea tea ask ask"])
    assert one.tolist() == pytest.approx(unit(7, 6))  # (0, 1) + (0, 4) + 2 · (3, 0) + (1, 1)
    assert whole.tolist() == pytest.approx(unit(*(one + other)))


def test_a_question_of_unknown_words_alone_has_no_direction(tmp_path: Path) -> None:
    assert not made(tmp_path).query("ภาษาไทย").any()


def test_without_a_language_of_its_own_it_votes_in_all(tmp_path: Path) -> None:
    assert [made(tmp_path).weight(language) for language in ("en", "th")] == [made(tmp_path).weight("de")] * 2
    english = made(tmp_path, languages=("en",), unread=("th",), weight=0.8)
    assert [english.weight(language) for language in ("en", "de", "th")] == [0.8, 0.25, 0.0]


def test_matters_have_nothing_in_common() -> None:
    words = [set(f"{question} {note}".lower().replace("?", "").replace(".", "").split()) for question, note in MATTERS]
    usual = {
        "the",
        "a",
        "and",
        "is",
        "in",
        "of",
        "on",
        "for",
        "to",
        "with",
        "what",
        "how",
        "which",
        "who",
        "when",
        "why",
    }
    rare = [{word for word in said - usual if len(word) > 6} for said in words]
    assert not {word for place, said in enumerate(rare) for other in rare[place + 1 :] for word in said & other}


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"inputs": ("pixel_values",)}, "its inputs are pixel_values"),
        ({"inputs": ("input_ids", "past_key_values")}, "its inputs are input_ids, past_key_values"),
        ({"output": "logits"}, "it is a classifier or a reranker"),
    ],
)
def test_what_is_no_encoder_is_refused(tmp_path: Path, change: dict[str, object], complaint: str) -> None:
    folder = write_embedder(tmp_path, **change)  # type: ignore[arg-type]
    with pytest.raises(ProviderError, match=complaint):
        OnnxEmbedder(TINY, folder).query("tea")


def test_the_marks_are_those_of_the_tokenizer(tmp_path: Path) -> None:
    # One token at a time: begin, tea, end, and the mean of both parts is that of one.
    embedder = made(tmp_path, max_tokens=3)
    assert embedder.documents(["tea tea"])[0].tolist() == pytest.approx(unit(4, 2))
    assert (IDS["[CLS]"], IDS["[SEP]"]) == (1, 2)


class TestContract(EmbedderContract):
    """The tiny model knows words of the contract's texts as unknown ones; a file of its own has no empty vectors."""

    @pytest.fixture(autouse=True)
    def _written(self, tmp_path: Path) -> None:
        self.folder = write_embedder(tmp_path)

    def make(self) -> OnnxEmbedder:
        return OnnxEmbedder(TINY, self.folder)
