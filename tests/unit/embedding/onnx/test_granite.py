"""granite-embedding-30m-english, compared with an independent forward pass over the published weights."""

from __future__ import annotations

import numpy as np
import pytest
from tokenizers import Tokenizer

from tests.granite import fetched, forward, granite
from tests.minilm import MODELS
from whyrank.errors import ProviderError
from whyrank.providers.onnx.catalog import GRANITE
from whyrank.providers.onnx.conversion import read_pack
from whyrank.providers.onnx.embedder import measure_floor

TEXTS = [
    "what does Suzy drink?",
    "tea",
    "The left oarlock squeaks; a drop of oil helps for a week.",
    "def restart(self) -> None: self._collector.run(api_key='…')",
    "茶 and 日本 on 2026-03-14",
    "Turn the heap every third weekend, and crush the eggshells first. " * 24,
]


def tokens(text: str) -> list[int]:
    tokenizer = Tokenizer.from_file(str(MODELS / GRANITE.folder / "tokenizer.json"))
    ids: list[int] = tokenizer.encode(text).ids
    return ids


def test_the_graph_is_as_good_as_the_forward_pass_in_double() -> None:
    embedder = granite()
    assert max(len(tokens(text)) for text in TEXTS) in range(300, 513)  # all in one part
    oracle = np.array([forward(tokens(text)) for text in TEXTS])
    cosines = (oracle * embedder.documents(TEXTS)).sum(axis=1)
    assert cosines.min() > 0.99999


def test_a_vector_is_the_same_to_the_last_bit_in_any_company() -> None:
    alike = [f"note {number}, on the kettle and the boat" for number in range(10, 40)]
    together = granite().documents([*alike, *TEXTS])
    for place in (0, 17, len(alike) + 2):
        assert together[place].tolist() == granite().documents([[*alike, *TEXTS][place]])[0].tolist()


def test_it_finds_a_note_that_shares_no_word_with_the_question() -> None:
    notes = granite().documents(["The tin behind the flour holds green leaves for hot water", "Pay the tax by May"])
    near = notes @ granite().query("what is there to drink?")
    assert near[0] > near[1]


def test_the_space_names_model_revision_and_dimension_and_says_what_its_cosines_begin_at() -> None:
    assert granite().fingerprint == "granite/granite-embedding-30m-english-fp16@6a1cc247-1/384/no-prompt"
    assert measure_floor(granite()) == pytest.approx(granite().floor, abs=0.005)
    assert (granite().floor, granite().languages) == (0.53, ("en",))
    assert granite().thresholds.weak == pytest.approx(0.53 + 0.47 * 0.25)


def test_weights_of_another_format_are_refused() -> None:
    with pytest.raises(ProviderError, match="HMSEMB01"):
        read_pack(b"GGUF" + fetched().read_bytes()[:100])
