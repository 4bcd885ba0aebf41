"""The embedded default: the package's own vectors, without its loader."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from whyrank.embedding.providers import embedder_named
from whyrank.embedding.wordllama import WordLlama
from whyrank.errors import ConfigError, MissingExtra, ProviderError

TEXTS = ["what does Suzy drink?", "Lärmschutz", "日本語", "a", "x" * 5_000, "\ufffd🙂"]


def test_the_vectors_are_those_of_the_package() -> None:
    import wordllama

    folder = Path(wordllama.__file__).parent
    theirs = wordllama.WordLlama.load(cache_dir=folder, disable_download=True).embed(TEXTS, norm=True)
    assert np.allclose(WordLlama().documents(TEXTS), theirs, atol=1e-6)


def test_vectors_have_unit_length_and_a_text_without_tokens_none() -> None:
    lengths = np.linalg.norm(WordLlama().documents(["tea", ""]), axis=1)
    assert lengths == pytest.approx([1.0, 0.0])


def test_a_batch_gives_what_single_texts_give() -> None:
    many = [f"note number {i}" for i in range(150)]
    embedder = WordLlama()
    assert embedder.documents(many)[149].tolist() == embedder.query(many[149]).tolist()


def test_its_vote_is_worth_less_in_a_language_it_does_not_know() -> None:
    assert (WordLlama().weight("en"), WordLlama().weight("ru")) == (0.6, 0.4)


def test_the_space_names_model_revision_and_dimension() -> None:
    assert WordLlama().fingerprint == "wordllama/l2_supercat@0.4.0.post1/256/no-prompt"


def test_a_missing_package_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "wordllama", None)
    with pytest.raises(MissingExtra, match="pip install"):
        WordLlama()


def test_a_package_without_its_table_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("whyrank.embedding.wordllama.TABLE", "weights/none.safetensors")
    with pytest.raises(ProviderError, match=r"none\.safetensors"):
        WordLlama()


def test_an_unknown_embedder_is_an_error_with_a_suggestion() -> None:
    with pytest.raises(ConfigError, match="wordllama"):
        embedder_named("wordlama")


def test_none_is_a_mode_of_its_own() -> None:
    assert embedder_named("none") is None
