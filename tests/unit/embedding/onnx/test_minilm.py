"""The real model, compared with an independent forward pass."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

import numpy as np
import pytest
from tokenizers import Tokenizer

from tests.minilm import MODELS, TOKENIZER, forward, installed, minilm
from whyrank.errors import MissingExtra, ProviderError
from whyrank.providers.onnx.embedder import OnnxEmbedder, parts_of
from whyrank.providers.registry import embedder_named

if TYPE_CHECKING:
    from pathlib import Path

TEXTS = [
    "what does Suzy drink?",
    "tea",
    "The left oarlock squeaks; a drop of oil helps for a week.",
    "def restart(self) -> None: self._collector.run(api_key='…')",
    "Lärmschutz am Haus",
    "茶 and 日本 on 2026-03-14",
    "Turn the heap every third weekend, and crush the eggshells first. " * 16,
]


def pieces(text: str) -> list[int]:
    tokenizer = Tokenizer.from_file(str(installed() / TOKENIZER.name))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    ids: list[int] = tokenizer.encode(text).ids
    return ids


@pytest.fixture(scope="module")
def embedder() -> OnnxEmbedder:
    return minilm()


def test_half_precision_is_as_good_as_the_forward_pass_in_double(embedder: OnnxEmbedder) -> None:
    oracle = np.array([forward(pieces(text)) for text in TEXTS])
    cosines = (oracle * embedder.documents(TEXTS)).sum(axis=1)
    assert cosines.min() > 0.999999


def test_bytes_are_close_to_it() -> None:
    oracle = np.array([forward(pieces(text)) for text in TEXTS])
    cosines = (oracle * minilm("minilm-int8").documents(TEXTS)).sum(axis=1)
    assert cosines.min() > 0.98


def test_the_order_of_words_counts(embedder: OnnxEmbedder) -> None:
    # What no mean of static vectors can tell.
    one, other = embedder.documents(["the dog bit the postman", "the postman bit the dog"])
    assert 0.8 < float(one @ other) < 0.999


@pytest.mark.parametrize("name", ["minilm", "minilm-int8"])
def test_a_vector_is_the_same_to_the_last_bit_in_any_company(name: str) -> None:
    embedder = minilm(name)
    alike = [f"note {number}, on the kettle and the boat" for number in range(10, 40)]
    mixed = [*alike, *TEXTS, "word " * 900]
    together = embedder.documents(mixed)
    for place in (0, 17, 29, len(alike) + 6, len(mixed) - 1):
        assert together[place].tolist() == embedder.documents([mixed[place]])[0].tolist()


def test_more_threads_give_the_same_vectors(embedder: OnnxEmbedder) -> None:
    assert minilm(threads=2).documents(TEXTS).tolist() == embedder.documents(TEXTS).tolist()


@pytest.mark.parametrize(
    ("length", "lengths"),
    [(0, []), (1, [1]), (254, [254]), (255, [127, 128]), (600, [200, 200, 200])],  # 254 + begin + end = 256
)
def test_a_text_is_cut_into_as_few_even_parts_as_fit(length: int, lengths: list[int]) -> None:
    parts = list(parts_of(range(length), room=254))
    assert [len(part) for part in parts] == lengths
    assert [place for part in parts for place in part] == list(range(length))


def test_a_text_longer_than_the_model_reads_is_the_mean_of_its_parts(embedder: OnnxEmbedder) -> None:
    # Two halves of 200 pieces each, the first about tea, the second about tar: both weigh the same.
    tea, tar = "green tea " * 100, "black tar " * 100
    first, second, whole = embedder.documents([tea, tar, tea + tar])
    middle = (first + second) / np.linalg.norm(first + second)
    assert float(whole @ middle) == pytest.approx(1.0, abs=1e-6)


def test_the_end_of_a_long_text_is_not_lost(embedder: OnnxEmbedder) -> None:
    filler = "The minutes of the meeting were read and agreed. " * 40
    with_end, without = embedder.documents([filler + "The oarlock of the rowing boat squeaks. " * 10, filler])
    asked = embedder.query("which boat squeaks?")
    assert float(with_end @ asked) > float(without @ asked) + 0.1


def test_a_question_of_unknown_words_alone_has_no_direction(embedder: OnnxEmbedder) -> None:
    assert not embedder.query("ภาษาไทย").any()
    assert not embedder.query("").any()


def test_its_vote_depends_on_the_language() -> None:
    votes = [minilm().weight(language) for language in ("en", "de", "zh", "th", "ta")]
    assert votes == [0.5, 0.25, 0.25, 0.0, 0.0]


def test_the_space_names_model_revision_and_dimension() -> None:
    assert minilm().fingerprint == "minilm/all-MiniLM-L6-v2-fp16@53aa5117-1/384/no-prompt"
    assert minilm("minilm-int8").fingerprint == "minilm/all-MiniLM-L6-v2-int8@53aa5117-1/384/no-prompt"


def test_it_goes_by_two_names() -> None:
    known = [embedder_named(name, MODELS) for name in ("minilm", "minilm-int8")]
    assert [found.fingerprint for found in known if found] == [
        minilm(name).fingerprint for name in ("minilm", "minilm-int8")
    ]


def cpu_seconds_with_pauses(embedder: OnnxEmbedder) -> float:
    embedder.query("warm")
    begun = time.process_time()
    for _ in range(20):
        embedder.query("green tea")
        time.sleep(0.01)
    return (time.process_time() - begun) / 20


def test_threads_do_not_spin_while_they_wait(embedder: OnnxEmbedder) -> None:
    # Two threads that spin take more than twice the CPU of one; two that sleep take about as much.
    # A busy machine can make any one round dear, not the cheapest of several cheaper than it is.
    two = minilm(threads=2)
    cheapest_of_two, cheapest_of_one = (min(cpu_seconds_with_pauses(one) for _ in range(5)) for one in (two, embedder))
    assert cheapest_of_two < 1.6 * cheapest_of_one


def test_a_missing_extra_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(MissingExtra, match="pip install onnx onnxruntime"):
        minilm()


def test_a_model_that_was_not_fetched_says_how_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(ProviderError, match="whyrank model fetch minilm"):
        minilm(folder=tmp_path)


def test_a_damaged_model_says_which_file(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_bytes((installed() / "tokenizer.json").read_bytes())
    (tmp_path / "fp16-1.onnx").write_bytes((installed() / "fp16-1.onnx").read_bytes()[:1_000_000])
    with pytest.raises(ProviderError, match=r"fp16-1\.onnx cannot be loaded"):
        minilm(folder=tmp_path).query("tea")
