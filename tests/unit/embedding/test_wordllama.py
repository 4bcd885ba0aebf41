"""The embedded default: the package's own vectors, without its loader."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from whyrank.errors import ConfigError, MissingExtra, ProviderError
from whyrank.providers.registry import earlier_embedder, embedder_named
from whyrank.providers.wordllama import WordLlama, plainly_spelled

TEXTS = ["what does Suzy drink?", "Lärmschutz", "日本語", "a", "x" * 5_000, "\ufffd🙂"]


@pytest.fixture(scope="module")
def package() -> Any:
    """Load the model as its own package does."""
    import wordllama

    return wordllama.WordLlama.load(cache_dir=Path(wordllama.__file__).parent, disable_download=True)


def test_unprepared_vectors_are_those_of_the_package(package: Any) -> None:
    assert np.allclose(WordLlama("no-prompt").documents(TEXTS), package.embed(TEXTS, norm=True), atol=1e-6)


def test_vectors_are_those_of_the_package_for_plain_words_without_what_all_tokens_share(package: Any) -> None:
    means = package.embed([plainly_spelled(text) for text in TEXTS], norm=False)
    common = package.embedding.mean(axis=0)
    common /= np.linalg.norm(common)
    apart = means - np.outer(means @ common, common)
    ours = WordLlama().documents(TEXTS)
    assert np.allclose(ours, apart / np.linalg.norm(apart, axis=1, keepdims=True), atol=1e-5)
    assert np.abs(ours @ common).max() < 1e-5


def test_spelling_that_says_nothing_changes_no_vector() -> None:
    one, other, third = WordLlama().documents(["Tea Pot\ntea-pot\nThe pot", "tea pot\nthe Pot", "tea/pot the pot"])
    assert one.tolist() == other.tolist() == third.tolist()


def test_the_spaces_of_earlier_versions_are_still_made() -> None:
    today, before = WordLlama(), WordLlama("no-prompt")
    made = earlier_embedder(before.fingerprint)
    assert made is not None
    assert made.query("Tea-Pot").tolist() == before.query("Tea-Pot").tolist() != today.query("Tea-Pot").tolist()
    assert earlier_embedder(today.fingerprint) is None
    assert earlier_embedder("wordllama/l2_supercat@0.1/256/no-prompt") is None
    assert earlier_embedder("minilm/any@1/384/no-prompt") is None


def test_without_its_package_nothing_is_made_of_earlier_versions(monkeypatch: pytest.MonkeyPatch) -> None:
    space = WordLlama("no-prompt").fingerprint
    monkeypatch.setitem(sys.modules, "wordllama", None)
    assert earlier_embedder.__wrapped__(space) is None


def test_vectors_have_unit_length_and_a_text_without_tokens_none() -> None:
    lengths = np.linalg.norm(WordLlama().documents(["tea", ""]), axis=1)
    assert lengths == pytest.approx([1.0, 0.0])


def test_a_batch_gives_what_single_texts_give() -> None:
    many = [f"note number {i}" for i in range(150)]
    embedder = WordLlama()
    assert embedder.documents(many)[149].tolist() == embedder.query(many[149]).tolist()


def test_its_vote_is_worth_less_in_a_language_it_does_not_know() -> None:
    assert (WordLlama().weight("en"), WordLlama().weight("ru")) == (0.35, 0.25)


def test_the_space_names_model_revision_dimension_and_preparation() -> None:
    assert WordLlama().fingerprint == "wordllama/l2_supercat@0.4.0.post1/256/plain-words"


def test_a_missing_package_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "wordllama", None)
    with pytest.raises(MissingExtra, match="whyrank model fetch wordllama"):
        WordLlama()


def test_a_package_without_its_table_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("whyrank.providers.wordllama.TABLE", "weights/none.safetensors")
    with pytest.raises(ProviderError, match=r"none\.safetensors"):
        WordLlama()


def test_an_unknown_embedder_is_an_error_with_a_suggestion() -> None:
    with pytest.raises(ConfigError, match="wordllama"):
        embedder_named("wordlama")


def test_none_is_a_mode_of_its_own() -> None:
    assert embedder_named("none") is None
