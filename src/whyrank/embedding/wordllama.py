"""The embedded default: WordLlama's static vectors, read straight from its package. No network, no torch.

Texts are spelled plainly before, and what all tokens have in common is taken off after (docs/decisions/0015). Vectors
as earlier versions made them, who did neither, are still made for the stores that have them.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Sequence
from contextlib import suppress
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from ..errors import MissingExtra, ProviderError
from ..kernel import COMPILED, Kernel
from ..ports import Thresholds
from .glance import Glance
from .spelling import plainly_spelled
from .vectors import STATIC_WEIGHT, UNKNOWN_LANGUAGE_WEIGHT, unit_rows

if TYPE_CHECKING:
    from tokenizers import Tokenizer

TABLE = "weights/l2_supercat_256.safetensors"
TOKENIZER = "tokenizers/l2_supercat_tokenizer_config.json"
DIMENSION = 256
LANGUAGES = frozenset({"en"})
_BATCH = 64
_VERSION = "Version: "  # as a package's metadata has it
_GLANCES = 3  # texts, before the model is loaded: some commands ask no more, and a server soon has it

# How texts are prepared, as it stands in the name of the space; `no-prompt`: not at all, as the package does it.
Preparation = Literal["plain-words", "no-prompt"]
PREPARATIONS: tuple[Preparation, ...] = ("plain-words", "no-prompt")  # today's first


class WordLlama:
    """The mean of its tokens' vectors, at unit length."""

    def __init__(self, preparation: Preparation = "plain-words") -> None:
        self._folder = _package_folder()
        self._preparation = preparation
        self._glances = _GLANCES if preparation == "plain-words" else 0

    @cached_property
    def fingerprint(self) -> str:
        """Name the space: provider, model, revision, dimension and preparation."""
        return f"wordllama/l2_supercat@{_version(self._folder)}/{DIMENSION}/{self._preparation}"

    def bytes(self) -> int:
        """Return the room its files take on the disk."""
        return sum((self._folder / part).stat().st_size for part in (TABLE, TOKENIZER))

    def weight(self, language: str) -> float:
        """Return what its vote is worth in a language."""
        return STATIC_WEIGHT if language in LANGUAGES else UNKNOWN_LANGUAGE_WEIGHT

    # Over six sets, 95 to 100 % of answerable questions reach 0.35, and 52 to 100 % 0.7; of foreign ones 4 to 75 % stay
    # below 0.35, 85 to 99 % below 0.7. Calling an answer weak is a smaller error than calling it nothing.
    thresholds = Thresholds(weak=0.35, found=0.7)

    def documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one unit vector per text; a text without tokens gets a zero row."""
        if self._glances > 0 and len(texts) == 1 and (seen := self._seen(texts[0])) is not None:
            return seen
        means = np.zeros((len(texts), DIMENSION), dtype=np.float32)
        is_plain = self._preparation == "plain-words"
        for start in range(0, len(texts), _BATCH):
            batch = [plainly_spelled(text) if is_plain else text for text in texts[start : start + _BATCH]]
            # Fast is without the places of the tokens in the text, which nobody asks for.
            encodings = self._tokenizer.encode_batch_fast(batch, add_special_tokens=False)
            write_means(self._table, [encoding.ids for encoding in encodings], means[start : start + _BATCH])
        return unit_rows(_apart(means, self._common) if is_plain else means)

    def _seen(self, text: str) -> NDArray[np.float32] | None:
        """Embed one text by a glance at the files, if that is enough for it; the last one lets go of them."""
        self._glances -= 1
        glance = self._glance
        rows = None if glance is None else glance.rows(plainly_spelled(text))
        if rows is None or self._glances <= 0:  # threads may look at the same time
            self._glances = 0
            self.__dict__.pop("_glance", None)
        return (
            None
            if glance is None or rows is None
            else unit_rows(_apart(rows.mean(axis=0, keepdims=True), glance.common))
        )

    def query(self, text: str) -> NDArray[np.float32]:
        """Return the unit vector of a question; the model has no prompt of its own for questions."""
        vector: NDArray[np.float32] = self.documents([text])[0]
        return vector

    @cached_property
    def _glance(self) -> Glance | None:
        return Glance.at(self._folder / TOKENIZER, self._folder / TABLE)

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


def write_means(
    table: NDArray[np.float32], rows: list[list[int]], means: NDArray[np.float32], kernel: Kernel | None = COMPILED
) -> None:
    """Write the mean of some rows of a table for each list of them; for an empty list nothing is written."""
    if kernel is not None:
        kernel.means(table, rows, means, table.shape[1])
        return
    for mean, ids in zip(means, rows, strict=True):
        if ids:
            mean[:] = table.take(ids, axis=0, mode="clip").mean(axis=0)


def _apart(means: NDArray[np.float32], common: NDArray[np.float32]) -> NDArray[np.float32]:
    """Take the common direction off means, row by row: so none depends on the others in its last bit."""
    apart: NDArray[np.float32] = means - np.vecdot(means, common)[:, np.newaxis] * common
    return apart


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


@cache
def _version(folder: Path) -> str:
    """Return the version of the package as it stands beside it, where it does."""
    beside = [entry.path for entry in os.scandir(folder.parent) if _is_told_in(entry.name)]
    with suppress(OSError, ValueError, StopIteration):
        (told,) = beside
        with open(os.path.join(told, "METADATA"), encoding="utf-8") as lines:
            return next(line for line in lines if line.startswith(_VERSION)).removeprefix(_VERSION).strip()
    import importlib.metadata  # knows all other ways to install a package, and takes long to load

    return importlib.metadata.version("wordllama")


def _is_told_in(name: str) -> bool:
    return name.startswith("wordllama-") and name.endswith(".dist-info")
