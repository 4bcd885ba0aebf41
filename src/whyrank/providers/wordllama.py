"""The embedded default: WordLlama's static vectors, read from its package or from two fetched files."""

from __future__ import annotations

import importlib.util
import mmap
import os
import zlib
from base64 import b85decode
from contextlib import suppress
from functools import cache, cached_property
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from ..analysis.normalize import pattern
from ..errors import MissingExtra, ProviderError
from ..protocols import Thresholds
from ..types.memory import scale_rows
from .names import STATIC_WEIGHT, UNKNOWN_LANGUAGE_WEIGHT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray
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
    letters = text.replace(" ", "")
    if letters.isascii() and letters.isalpha():  # as most questions
        return " ".join([word if word.isupper() else word.lower() for word in text.split()])
    first, _, rest = text.partition("\n")
    second, _, others = rest.partition("\n")
    return " ".join(_plain_words(f"{first}\n{others}" if second and _is_echo(second, first) else text))


def _is_echo(line: str, before: str) -> bool:
    """Check that all words of a line occur in the line before; most lines fail on the first word."""
    first = next(_folded_words(line), "")
    return first in before.casefold() and frozenset(_folded_words(before)).issuperset(_folded_words(line))


def _folded_words(line: str) -> Iterator[str]:
    return (word for piece in _plain_words(line) for word in piece.casefold().split())


def _plain_words(text: str) -> Iterator[str]:
    """Yield the words of a text without capitals and joiners, except where they carry meaning."""
    for joiner in _JOINERS:  # four times as fast as `translate` where a text is not all ASCII
        text = text.replace(joiner, " ")
    for word in text.split():
        if word.islower() or word.isupper():  # as most words are, and acronyms with the signs around them
            yield word
        elif word.isascii() and word.isalpha():
            yield word.lower()
        else:
            yield _MIXED.sub(lambda found: found.group().lower(), word)


TABLE = "weights/l2_supercat_256.safetensors"
TOKENIZER = "tokenizers/l2_supercat_tokenizer_config.json"
DIMENSION = 256
LANGUAGES = ("en",)
# Where the package has no wheel (Python 3.14, Linux on ARM) its two files are fetched from a wheel of another system.
VERSION = "0.4.0.post1"
FILES = (
    (TABLE, 16_384_096, "64b47a2dc493cb8e85944076601189739852d7b64e0e1eedcb1937a251cd9fd5"),
    (TOKENIZER, 1_842_796, "93248f2a9ec36c7b35f700a033d5f36228aae48db61aee31007fa49062cdeb68"),
)
FETCHED_BYTES = 19_076_345
FINGERPRINT = f"wordllama/l2_supercat@{VERSION}/{DIMENSION}/plain-words"  # of the fetched files
FETCH = "whyrank model fetch wordllama"
_WHEEL_TARGET = ("--python-version", "3.13", "--implementation", "cp", "--platform", "manylinux2014_x86_64")
_BATCH = 64
_VERSION = "Version: "  # as a package's metadata has it
_GLANCES = 3  # texts embedded before the model is loaded: some commands need no more, and a server soon loads it

# Preparation of texts, as named in the space; `no-prompt`: none, as in the package.
Preparation = Literal["plain-words", "no-prompt"]
PREPARATIONS: tuple[Preparation, ...] = ("plain-words", "no-prompt")  # today's first


class WordLlama:
    """Static embedder: the mean of the token vectors, at unit length."""

    def __init__(self, preparation: Preparation = "plain-words", models: Path | None = None) -> None:
        self._folder = _find_folder(models)
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
        is_plain = self._preparation == "plain-words"
        if self._glances > 0 and len(texts) == 1 and (seen := self._seen(texts[0])) is not None:
            means, common = seen
        else:
            means, common = np.zeros((len(texts), DIMENSION), np.float32), self._common
            for start in range(0, len(texts), _BATCH):
                batch = [plainly_spelled(text) if is_plain else text for text in texts[start : start + _BATCH]]
                # Fast means without token offsets, which are not needed.
                encodings = self._tokenizer.encode_batch_fast(batch, add_special_tokens=False)
                for mean, encoding in zip(means[start : start + _BATCH], encodings, strict=True):
                    if encoding.ids:
                        mean[:] = self._table.take(encoding.ids, axis=0, mode="clip").mean(axis=0)
        if is_plain:  # subtracted row by row: BLAS would add up in an order that the environment chooses
            means = means - (means * common).sum(axis=1)[:, np.newaxis] * common
        return scale_rows(means)

    def _seen(self, text: str) -> tuple[NDArray[np.float32], NDArray[np.float32]] | None:
        """Return the mean of one text and the common direction without loading the model, if possible.

        The last such text releases the files.
        """
        self._glances -= 1
        glance = self._glance
        rows = None if glance is None else glance.rows(plainly_spelled(text))
        if rows is None or self._glances <= 0:  # threads may get here at the same time
            self._glances = 0
            self.__dict__.pop("_glance", None)
        return None if glance is None or rows is None else (rows.mean(axis=0, keepdims=True), glance.common)

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
        direction: NDArray[np.float32] = scale_rows(mean)[0]
        return direction

    @cached_property
    def _tokenizer(self) -> Tokenizer:
        from tokenizers import Tokenizer

        tokenizer = Tokenizer.from_file(str(self._folder / TOKENIZER))
        tokenizer.no_padding()
        tokenizer.no_truncation()
        return tokenizer


def earlier_wordllama(space: str, models: Path | None = None) -> WordLlama | None:
    """Return the embedder that made the vectors of a space in an earlier version, if there is one."""
    made = (WordLlama(preparation, models) for preparation in PREPARATIONS[1:])
    return next((embedder for embedder in made if embedder.fingerprint == space), None)


def install(models: Path, tick: Callable[[int, int, str], None] = lambda done, total, label: None) -> bool:
    """Fetch the two files if package and folder lack them; return whether they were missing."""
    from filelock import FileLock

    from .onnx.description import Pinned
    from .onnx.fetch import Archive, fetch

    if not _lacking(_package_folder()) or not _lacking(fetched_folder(models)):
        return False
    folder = fetched_folder(models)
    source = Archive("pip", f"wordllama=={VERSION}", FETCHED_BYTES, _WHEEL_TARGET)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with FileLock(folder / ".lock"):
            fetch("wordllama", [Pinned(*file) for file in FILES], [source], folder, tick)
    except OSError as error:
        raise ProviderError(
            f"wordllama cannot be kept in {folder}: {error.strerror or error}",
            "free space there, or set model.folder to another folder",
        ) from error
    return True


def fetched_folder(models: Path) -> Path:
    """Return the folder of the fetched files, below that of all models."""
    return models / f"wordllama-{VERSION}"


def _find_folder(models: Path | None) -> Path:
    """Return the folder of the package, else that of the fetched files."""
    package = _package_folder()
    for folder in (package, fetched_folder(models) if models is not None else None):
        if folder is not None and not _lacking(folder):
            return folder
    if package is not None:
        hint = f'reinstall wordllama, `{FETCH}`, or set embedding = "none"'
        raise ProviderError(f"wordllama's package lacks {_lacking(package)}", hint)
    raise MissingExtra(
        "wordllama, the default model, is not installed",
        f'`{FETCH}` gets it ({FETCHED_BYTES // 1_000_000} MB), once for all workspaces, or set embedding = "none"',
    )


def _lacking(folder: Path | None) -> str:
    """Return the first file that a folder does not have; nothing if the model can be loaded from it."""
    return next((part for part in (TABLE, TOKENIZER) if folder is None or not (folder / part).is_file()), "")


def _package_folder() -> Path | None:
    """Find the package without importing it: the import configures logging and loads unneeded modules."""
    try:
        spec = importlib.util.find_spec("wordllama")
    except ValueError:  # a stub without a spec stands in its place
        spec = None
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(next(iter(spec.submodule_search_locations)))


@cache
def _version(folder: Path) -> str:
    """Return the version of the package, from its dist-info folder, or of the fetched files."""
    if folder.name == fetched_folder(folder).name:
        return VERSION
    names = (name for name in os.listdir(folder.parent) if name.startswith("wordllama-"))
    beside = [os.path.join(folder.parent, name) for name in names if name.endswith(".dist-info")]
    with suppress(OSError, ValueError, StopIteration):
        (told,) = beside
        with open(os.path.join(told, "METADATA"), encoding="utf-8") as lines:
            return next(line for line in lines if line.startswith(_VERSION)).removeprefix(_VERSION).strip()
    import importlib.metadata  # knows all other ways to install a package, and takes long to load

    return importlib.metadata.version("wordllama")


# Embedding of a short text without loading the tables: a faster cold start, the same vector.

# The files of wordllama 0.4: their checksums, where the numbers begin, and the mean of all rows, which takes longest.
TOKENIZER_CHECKSUM = 0x3FAF5800
TABLE_CHECKSUM = 0x56C6AE6F
_TABLE_SHAPE = (32_000, 256)
_TABLE_BYTES = 2 * 32_000 * 256
_MEAN_OF_ROWS = (
    "6f_0C#(ma3f#cIW{Re5jB=fF3fW17u61%)T1TE^ln+T3PDMB7S2>L=i_(^}fVbO`ZY+7hMqn^0EO`{OL"
    "Ib<C@Ogm6Ms&$J!aGu${`vy_H-K6Ke;mW~1iGljPUI(N+7KST6h0&Zn7xoFgwvflYC9ng#_a;C*I;_0A"
    "qe?hE?gxpzC9$x*4h@q&D9yLL{#%|s$o82&$K(?}$7bn0n+uOUtQ7#hsASr_a8jbZ)8)LqQ|!z=1%i-0"
    "RO|e`IZ<7`hOe$Z#t9)ko!-|yoGjD5sM4~%<lJvQ(Njjg?iL0;KlcSZAic;tA#aksI5Bj+Sss-=FV+RV"
    "7$D+3&U$;jDddbiiQvdRG<Al&1uZH(j~Xz&Jlvl>qr=}lgM7|C2XrpI&i>6jUgSo-rqN_Q{*U3jxb>X9"
    "lFuK#`l1CsUR@f!SCCh|%gmxZpNN$_x_8IDPX!h|c9qV&yL!Jp@Rf$VR@w+Wp@Y6Wm{JD5nmD~Z{|zQR"
    "TA)=ub8hH6T4}(%;I5v$0dhpXAXLOX)%XrQP7qbSga{%%R8F=$v5*Kn@fH?6|BYO`EqhtKXPO7RpuT@S"
    "j}wHwbwAX-XnqkrU_7inCL4e~3}@)Q86?%bto*k)ga!A!j^Q%B8&HZo`tNc)r3bCO)SMwba?y#s2e+j?"
    "mr+K&W@9nDy!I_Uql3FV)w*9j{0*}^Cwt~S#zA$w?vN$D*A+`W8Cr(D87+xBRONELgR8Z?Y*HgVg{LV!"
    "u+uHQ%-TLYbT%40-`(vzc{Yi?q=vJ-4B(VJ*5!~q3D06Z;?4v;X)jMbQ)f0lP1n0Tno3-~OL?n3r5n+_"
    "1y;E{t1Z#JINlY$clbFyo|4qP25<_!(zC$5a!v3(LSW%MkJNcQ{2>;-6oWs#c(Ay=AHwau+^1MQIaZ53"
    "s7-A=B~z$88AmX^y)VDLa#)BwF>eArvaWEw*x#JJC3i_ZyiW(c&y2u3nV!wP)S9I`6X)MO<FiLRcm<HW"
    "_KDTJ5{$IH*QTDlj+y(sC>5DK3WB3O7i$weXjj8M12mt!Q5c!MNB0cAlX=rS?#J=GTp#+nT|T_LylUq?"
    "qCE*b?X3hp3G#70NFA2Db$q}*exBI8@P?&3Qg?d2=#lum=X!)aj`18k-NSUf?CKjmoLefrM1$46-B8QC"
    "%haDeraXqdNpIXdhIz`pJL!(S5stDu@?b-~ULQC;G4lSs3=*%sp~v&R^JnzEQexb_i;gTk)iK1p_zNYy"
    "2Z5qIbf#QA63P=j+VPRS*_DyKv@6;@H06Ig8>`VctBjPq&g<j6(vti<*{IFE5=cG1s?>=+BGo)SV|%{6"
)

MAX_LETTERS = 2_000  # of a text; longer ones justify loading the tokenizer
_MAX_WORD_LETTERS = 60  # the work grows with their square
_NEVER = 1 << 30  # the rank of two tokens that are not merged
_SPACE = "▁"  # as the model spells the space before a word
_AS_JSON = {'"': b'\\"', "\\": b"\\\\"}


class Glance:
    """Memory-mapped model files that are read only where needed."""

    def __init__(self, tokenizer: bytes, table: mmap.mmap) -> None:
        self._tokenizer = tokenizer
        self._table = np.frombuffer(table, "<f2", offset=len(table) - _TABLE_BYTES).reshape(_TABLE_SHAPE)

    @classmethod
    def at(cls, tokenizer: Path, table: Path) -> Glance | None:
        """Open the files of a model, if their checksums are known."""
        try:
            spelled = tokenizer.read_bytes()
            with table.open("rb") as file:
                numbers = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError):  # the loader of the files reports the error
            return None
        is_known = zlib.crc32(spelled) == TOKENIZER_CHECKSUM and zlib.crc32(numbers) == TABLE_CHECKSUM
        return cls(spelled, numbers) if is_known else None

    def rows(self, text: str) -> NDArray[np.float32] | None:
        """Return the token vectors of a plainly spelled text; None if its tokens are uncertain."""
        ids = self.tokens(text)
        return None if ids is None else self._table[ids].astype(np.float32)

    @property
    def common(self) -> NDArray[np.float32]:
        """Return the direction of the mean of all rows."""
        mean = np.frombuffer(b85decode(_MEAN_OF_ROWS), "<f4").astype(np.float32)
        direction: NDArray[np.float32] = scale_rows(mean[np.newaxis])[0]
        return direction

    def tokens(self, text: str) -> list[int] | None:
        """Return the tokens of a text with single spaces, printable characters and no tag; else None."""
        words = text.split(" ")
        is_plain = text.isprintable() and "<" not in text and _SPACE not in text and all(words)
        if not is_plain or len(text) > MAX_LETTERS or max(map(len, words)) > _MAX_WORD_LETTERS:
            return None
        ids = [self._number(token) for word in words for token in self._merged(_letters(_SPACE + word))]
        return None if -1 in ids else ids

    def _merged(self, tokens: Sequence[bytes]) -> list[bytes]:
        """Merge the adjacent pair with the lowest rank, leftmost first, until none is left."""
        merged = [*tokens]
        while len(merged) > 1:
            ranks = [self._ranks.get(b"%b %b" % pair, _NEVER) for pair in pairwise(merged)]
            first = min(ranks)
            if first == _NEVER:
                break
            place = ranks.index(first)
            merged[place : place + 2] = [merged[place] + merged[place + 1]]
        return merged

    def _number(self, token: bytes) -> int:
        """Return the id of a token; −1 for a character that the model encodes as bytes."""
        place = self._vocabulary.find(b'\n      "%b": ' % token)
        if place < 0:
            return -1
        begin = place + len(b'\n      "": ') + len(token)
        return int(self._vocabulary[begin : self._vocabulary.find(b"\n", begin)].rstrip(b","))

    @cached_property
    def _vocabulary(self) -> bytes:
        return self._tokenizer[self._tokenizer.index(b'"vocab": {') : self._tokenizer.index(b'"merges": [')]

    @cached_property
    def _ranks(self) -> dict[bytes, int]:
        """Return the ranks of all merges, as the file spells them, in the order they were learned."""
        begin = self._tokenizer.index(b'"merges": [')
        lines = self._tokenizer[self._tokenizer.index(b'"', begin + len(b'"merges": [')) + 1 :]
        learned = lines[: lines.rindex(b'"\n')].split(b'",\n      "')
        return dict(zip(learned, range(len(learned)), strict=True))


def _letters(word: str) -> list[bytes]:
    return [_AS_JSON.get(letter) or letter.encode() for letter in word]
