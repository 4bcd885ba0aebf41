"""The embedded default: WordLlama's static vectors, read straight from its package. No network, no torch.

Texts are spelled plainly before, and what all tokens have in common is taken off after (docs/decisions/0015). Vectors
as earlier versions made them, who did neither, are still made for the stores that have them.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from ..errors import MissingExtra, ProviderError
from ..ports import Thresholds
from .spelling import plainly_spelled
from .vectors import STATIC_WEIGHT, UNKNOWN_LANGUAGE_WEIGHT, unit_rows

if TYPE_CHECKING:
    from tokenizers import Tokenizer

TABLE = "weights/l2_supercat_256.safetensors"
TOKENIZER = "tokenizers/l2_supercat_tokenizer_config.json"
DIMENSION = 256
LANGUAGES = frozenset({"en"})
_BATCH = 64

# How texts are prepared, as it stands in the name of the space; `no-prompt`: not at all, as the package does it.
Preparation = Literal["plain-words", "no-prompt"]
PREPARATIONS: tuple[Preparation, ...] = ("plain-words", "no-prompt")  # today's first


class WordLlama:
    """The mean of its tokens' vectors, at unit length."""

    def __init__(self, preparation: Preparation = "plain-words") -> None:
        self._folder = _package_folder()
        self._preparation = preparation

    @cached_property
    def fingerprint(self) -> str:
        """Name the space: provider, model, revision, dimension and preparation."""
        return f"wordllama/l2_supercat@{importlib.metadata.version('wordllama')}/{DIMENSION}/{self._preparation}"

    def bytes(self) -> int:
        """Return the room its files take on the disk."""
        return sum((self._folder / part).stat().st_size for part in (TABLE, TOKENIZER))

    def weight(self, language: str) -> float:
        """Return what its vote is worth in a language."""
        return STATIC_WEIGHT if language in LANGUAGES else UNKNOWN_LANGUAGE_WEIGHT

    # Over seven sets, 96 to 100 % of answerable questions reach 0.3, and 30 to 100 % 0.65; of foreign ones 5 to 90 %
    # stay below 0.3, nearly all below 0.65. Calling an answer weak is a smaller error than calling it nothing.
    thresholds = Thresholds(weak=0.3, found=0.65)

    def documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one unit vector per text; a text without tokens gets a zero row."""
        means = np.zeros((len(texts), DIMENSION), dtype=np.float32)
        is_plain = self._preparation == "plain-words"
        for start in range(0, len(texts), _BATCH):
            batch = [plainly_spelled(text) if is_plain else text for text in texts[start : start + _BATCH]]
            # Fast is without the places of the tokens in the text, which nobody asks for.
            for i, encoding in enumerate(self._tokenizer.encode_batch_fast(batch, add_special_tokens=False), start):
                if encoding.ids:
                    mean = self._table.take(encoding.ids, axis=0, mode="clip").mean(axis=0)
                    # Row by row, so that a vector does not depend on the batch in its last bit.
                    means[i] = mean - np.dot(mean, self._common) * self._common if is_plain else mean
        return unit_rows(means)

    def query(self, text: str) -> NDArray[np.float32]:
        """Return the unit vector of a question; the model has no prompt of its own for questions."""
        vector: NDArray[np.float32] = self.documents([text])[0]
        return vector

    @cached_property
    def _table(self) -> NDArray[np.float32]:
        from safetensors.numpy import load_file

        tensors = load_file(self._folder / TABLE)
        table = next(iter(tensors.values())).astype(np.float32)
        if table.ndim != 2 or table.shape[1] != DIMENSION:
            raise ProviderError(f"wordllama's table has the shape {table.shape}", "reinstall wordllama")
        return table

    @cached_property
    def _common(self) -> NDArray[np.float32]:
        """Return the direction of the mean of all tokens: it tells no text from another."""
        mean: NDArray[np.float32] = self._table.mean(axis=0, keepdims=True)
        direction: NDArray[np.float32] = unit_rows(mean)[0]
        return direction

    @cached_property
    def _tokenizer(self) -> Tokenizer:
        from tokenizers import Tokenizer

        tokenizer = Tokenizer.from_file(str(self._folder / TOKENIZER))
        tokenizer.no_padding()
        tokenizer.no_truncation()
        return tokenizer


def earlier_wordllama(space: str) -> WordLlama | None:
    """Return what makes the vectors of a space as an earlier whyrank made them, if one did."""
    made = (WordLlama(preparation) for preparation in PREPARATIONS[1:])
    return next((embedder for embedder in made if embedder.fingerprint == space), None)


def _package_folder() -> Path:
    """Find the package without importing it: its import configures logging and loads what we do not need."""
    try:
        spec = importlib.util.find_spec("wordllama")
    except ValueError:  # a stub without a spec stands in its place
        spec = None
    if spec is None or not spec.submodule_search_locations:
        raise MissingExtra("wordllama is not installed", 'pip install whyrank, or set embedding = "none"')
    folder = Path(next(iter(spec.submodule_search_locations)))
    for part in (TABLE, TOKENIZER):
        if not (folder / part).is_file():
            raise ProviderError(f"wordllama's package lacks {part}", 'reinstall wordllama, or set embedding = "none"')
    return folder
