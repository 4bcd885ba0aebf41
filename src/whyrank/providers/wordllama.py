"""The embedded default: WordLlama's static vectors, read from its package."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from ..analysis.normalize import pattern
from ..errors import MissingExtra, ProviderError
from ..kernel import COMPILED, Kernel
from ..protocols import Thresholds
from .vectors import STATIC_WEIGHT, UNKNOWN_LANGUAGE_WEIGHT, unit_rows
from .wordllama_bpe import Glance

if TYPE_CHECKING:
    from tokenizers import Tokenizer


# Characters that only join words: both sides are words of their own.
_JOINERS = "-_/›"
# A word with small letters and capitals; not beside a digit, where capitals are part of a sign (`TGFb1`).
_MIXED = pattern(r"(?<![\p{Lu}\p{Ll}\p{N}])(?>(?:\p{Lu}+\p{Ll}|\p{Ll}+\p{Lu})[\p{Lu}\p{Ll}]*)(?!\p{N})")


def plainly_spelled(text: str) -> str:
    """Normalize spellings that change tokens but not the meaning: capitals, joiners, a repeated line.

    `Invoice` and `invoice` are two tokens, `GitHub` is two and `github` is one, and `tea-pot` has one for its hyphen;
    only words all in capitals (`API`, `US`) keep them. A text titled `Tea Pot`, and on the next line `tea-pot`, keeps
    one of the lines: in a mean of tokens twice would weigh twice.
    """
    first, _, rest = text.partition("\n")
    second, _, others = rest.partition("\n")
    return spelled(f"{first}\n{others}" if second and _is_echo(second, first) else text)


def _is_echo(line: str, before: str) -> bool:
    """Check that all words of a line occur in the line before; most lines fail on the first word."""
    first = next(_words(line), "")
    return first in before.casefold() and frozenset(_words(before)).issuperset(_words(line))


def _words(line: str) -> Iterator[str]:
    return (word for piece in _parted(line) for word in _small(piece).casefold().split())


def spelled(text: str) -> str:
    """Return a text without capitals and joiners, except where they carry meaning."""
    return " ".join([word if word.islower() else _small(word) for word in _parted(text)])


def _parted(text: str) -> list[str]:
    for joiner in _JOINERS:  # four times as fast as `translate` where a text is not all ASCII
        text = text.replace(joiner, " ")
    return text.split()


def _small(word: str) -> str:
    if word.islower() or word.isupper():  # as most words are, and acronyms with the signs around them
        return word
    return word.lower() if word.isascii() and word.isalpha() else _MIXED.sub(lambda found: found.group().lower(), word)


TABLE = "weights/l2_supercat_256.safetensors"
TOKENIZER = "tokenizers/l2_supercat_tokenizer_config.json"
DIMENSION = 256
LANGUAGES = ("en",)
_BATCH = 64
_VERSION = "Version: "  # as a package's metadata has it
_GLANCES = 3  # texts embedded before the model is loaded: some commands need no more, and a server soon loads it

# Preparation of texts, as named in the space; `no-prompt`: none, as in the package.
Preparation = Literal["plain-words", "no-prompt"]
PREPARATIONS: tuple[Preparation, ...] = ("plain-words", "no-prompt")  # today's first


class WordLlama:
    """Static embedder: the mean of the token vectors, at unit length."""

    def __init__(self, preparation: Preparation = "plain-words") -> None:
        self._folder = _package_folder()
        self._preparation = preparation
        self._glances = _GLANCES if preparation == "plain-words" else 0

    @cached_property
    def fingerprint(self) -> str:
        """Return the name of the space: provider, model, revision, dimension and preparation."""
        return f"wordllama/l2_supercat@{_version(self._folder)}/{DIMENSION}/{self._preparation}"

    def bytes(self) -> int:
        """Return the size of its files on disk."""
        return sum((self._folder / part).stat().st_size for part in (TABLE, TOKENIZER))

    floor = 0.0  # unrelated texts have cosines around 0
    languages = LANGUAGES

    def weight(self, language: str) -> float:
        """Return the weight of the vector vote in a language."""
        return STATIC_WEIGHT if language in LANGUAGES else UNKNOWN_LANGUAGE_WEIGHT

    # The 70 % and 92 % quantiles of foreign questions in stores of 22 to 45 files out of four sets are 0.20 to 0.35 and
    # 0.27 to 0.46; what is larger than that is calibrated.
    thresholds = Thresholds(weak=0.27, found=0.4)

    def documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one unit vector per text; a text without tokens gets a zero row."""
        if self._glances > 0 and len(texts) == 1 and (seen := self._seen(texts[0])) is not None:
            return seen
        means = np.zeros((len(texts), DIMENSION), dtype=np.float32)
        is_plain = self._preparation == "plain-words"
        for start in range(0, len(texts), _BATCH):
            batch = [plainly_spelled(text) if is_plain else text for text in texts[start : start + _BATCH]]
            # Fast means without token offsets, which are not needed.
            encodings = self._tokenizer.encode_batch_fast(batch, add_special_tokens=False)
            write_means(self._table, [encoding.ids for encoding in encodings], means[start : start + _BATCH])
        return unit_rows(_apart(means, self._common) if is_plain else means)

    def _seen(self, text: str) -> NDArray[np.float32] | None:
        """Embed one text without loading the model, if possible; the last such text releases the files."""
        self._glances -= 1
        glance = self._glance
        rows = None if glance is None else glance.rows(plainly_spelled(text))
        if rows is None or self._glances <= 0:  # threads may get here at the same time
            self._glances = 0
            self.__dict__.pop("_glance", None)
        return (
            None
            if glance is None or rows is None
            else unit_rows(_apart(rows.mean(axis=0, keepdims=True), glance.common))
        )

    def query(self, text: str) -> NDArray[np.float32]:
        """Return the unit vector of a query; the model has no query prompt."""
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
        """Return the direction of the mean of all tokens, which does not discriminate between texts."""
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
    """Write the mean of the table rows of each list; for an empty list nothing is written."""
    if kernel is not None:
        kernel.means(table, rows, means, table.shape[1])
        return
    for mean, ids in zip(means, rows, strict=True):
        if ids:
            mean[:] = table.take(ids, axis=0, mode="clip").mean(axis=0)


def _apart(means: NDArray[np.float32], common: NDArray[np.float32]) -> NDArray[np.float32]:
    """Subtract the common direction row by row, so that no row depends on others in its last bit."""
    apart: NDArray[np.float32] = means - np.vecdot(means, common)[:, np.newaxis] * common
    return apart


def earlier_wordllama(space: str) -> WordLlama | None:
    """Return the embedder that made the vectors of a space in an earlier version, if there is one."""
    made = (WordLlama(preparation) for preparation in PREPARATIONS[1:])
    return next((embedder for embedder in made if embedder.fingerprint == space), None)


def _package_folder() -> Path:
    """Find the package without importing it: the import configures logging and loads unneeded modules."""
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
    """Return the version of the package, read from its dist-info folder if there is one."""
    beside = [entry.path for entry in os.scandir(folder.parent) if _is_told_in(entry.name)]
    with suppress(OSError, ValueError, StopIteration):
        (told,) = beside
        with open(os.path.join(told, "METADATA"), encoding="utf-8") as lines:
            return next(line for line in lines if line.startswith(_VERSION)).removeprefix(_VERSION).strip()
    import importlib.metadata  # knows all other ways to install a package, and takes long to load

    return importlib.metadata.version("wordllama")


def _is_told_in(name: str) -> bool:
    return name.startswith("wordllama-") and name.endswith(".dist-info")
