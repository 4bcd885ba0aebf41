"""The embedder: word pieces by tokenizers, vectors by onnxruntime, on as many threads as it is told."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...errors import MissingExtra, ProviderError
from ...ports import Thresholds
from ..vectors import TRANSFORMER_WEIGHT, UNKNOWN_LANGUAGE_WEIGHT, unit_rows
from .files import CONVERSION, MODEL, TOKENIZER, WEIGHTS, Place, Precision
from .graph import INPUT, MAX_PIECES, WIDTH

if TYPE_CHECKING:
    from onnxruntime import InferenceSession
    from tokenizers import Tokenizer

EXTRA = "pip install onnxruntime"
LANGUAGES = frozenset({"en"})
# Nearly every word of these is one unknown piece: all their texts look alike.
UNREAD_LANGUAGES = frozenset({"ta", "th"})
_BEGIN, _END, _UNKNOWN = 101, 102, 100  # [CLS], [SEP], [UNK]
_ROOM = MAX_PIECES - 2  # beside the marks of begin and end
_TEXTS_PER_TOKENIZING = 64
# Short texts are a quarter faster together; from about this many pieces on, more rows gain nothing.
_PIECES_PER_BATCH = 320


class _Piece(NamedTuple):
    """A part of a text that the model can read at once."""

    text: int
    ids: list[int]


class MiniLm:
    """all-MiniLM-L6-v2; a text longer than the model reads is the mean of its parts."""

    def __init__(self, place: Place, precision: Precision = "fp16", threads: int = 1) -> None:
        check_extra()
        if not place.is_ready(precision):
            raise ProviderError(
                f"{MODEL} is not in {place.folder}", "`whyrank model fetch minilm` gets it, once for all workspaces"
            )
        self._place = place
        self._precision = precision
        self._threads = threads

    @property
    def fingerprint(self) -> str:
        """Name the space: provider, model, revision, dimension and prompts."""
        return fingerprint(self._precision)

    def weight(self, language: str) -> float:
        """Return what its vote is worth in a language."""
        if language in UNREAD_LANGUAGES:
            return 0.0
        return TRANSFORMER_WEIGHT if language in LANGUAGES else UNKNOWN_LANGUAGE_WEIGHT

    # Over four sets, 95 to 100 % of answerable questions reach 0.4, and 65 to 100 % 0.65; of foreign ones 47 to 85 %
    # stay below 0.4, 93 to 99 % below 0.65. Calling an answer weak is a smaller error than calling it nothing.
    thresholds = Thresholds(weak=0.4, found=0.65)

    def documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one unit vector per text; a text without tokens gets a zero row."""
        pieces = list(self._pieces(texts))
        vectors = np.zeros((len(pieces), WIDTH), dtype=np.float32)
        # Whole numbers are scaled by what stands in the batch, so that a text must stand alone in it.
        for batch in _batches(pieces, 1 if self._precision == "int8" else _PIECES_PER_BATCH):
            vectors[batch] = self._run([pieces[place].ids for place in batch])
        sums = np.zeros((len(texts), WIDTH), dtype=np.float32)
        for piece, vector in zip(pieces, vectors, strict=True):
            sums[piece.text] += len(piece.ids) * vector
        return unit_rows(sums)

    def query(self, text: str) -> NDArray[np.float32]:
        """Return the unit vector of a question, or zeros if it knows no word of it."""
        ids = self._tokenizer.encode(text, add_special_tokens=False).ids
        if all(piece == _UNKNOWN for piece in ids):
            return np.zeros(WIDTH, np.float32)
        vector: NDArray[np.float32] = self.documents([text])[0]
        return vector

    def _pieces(self, texts: Sequence[str]) -> Iterator[_Piece]:
        for start in range(0, len(texts), _TEXTS_PER_TOKENIZING):
            batch = list(texts[start : start + _TEXTS_PER_TOKENIZING])
            encodings = self._tokenizer.encode_batch(batch, add_special_tokens=False)
            for text, encoding in enumerate(encodings, start):
                yield from (_Piece(text, [_BEGIN, *part, _END]) for part in parts_of(encoding.ids))

    def _run(self, rows: list[list[int]]) -> NDArray[np.float32]:
        vectors: NDArray[np.float32] = self._session.run(None, {INPUT: np.array(rows, np.int64)})[0]
        return vectors

    @cached_property
    def _session(self) -> InferenceSession:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = self._threads
        options.inter_op_num_threads = 1
        options.log_severity_level = 3  # errors
        # Threads that spin while they wait take the machine from everybody else, and from each other.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        path = self._place.graph(self._precision)
        try:
            return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        except Exception as error:  # onnxruntime's own errors have no common root
            raise ProviderError(
                f"{path} cannot be loaded: {error}", "remove that file, then `whyrank model fetch minilm`"
            ) from error

    @cached_property
    def _tokenizer(self) -> Tokenizer:
        from tokenizers import Tokenizer

        path = self._place.file(TOKENIZER)
        try:
            tokenizer = Tokenizer.from_file(str(path))
        except Exception as error:  # tokenizers raises no class of its own
            raise ProviderError(
                f"{path} cannot be loaded: {error}", "remove that file, then `whyrank model fetch minilm`"
            ) from error
        tokenizer.no_padding()
        tokenizer.no_truncation()
        return tokenizer


def check_extra() -> None:
    """Refuse to go on without onnxruntime."""
    if not has_extra():
        raise MissingExtra("minilm needs onnxruntime, which is not installed", EXTRA)


def has_extra() -> bool:
    """Tell whether onnxruntime is installed."""
    try:
        return importlib.util.find_spec("onnxruntime") is not None
    except ValueError:  # a stub without a spec stands in its place
        return False


def fingerprint(precision: Precision) -> str:
    """Name the space of a variant, whether it is installed or not."""
    return f"minilm/{MODEL}-{precision}@{WEIGHTS.sha256[:8]}-{CONVERSION}/{WIDTH}/no-prompt"


def parts_of(ids: Sequence[int]) -> Iterator[Sequence[int]]:
    """Cut a text into as few parts as the model needs, all about equally long."""
    count = -(-len(ids) // _ROOM)
    bounds = [len(ids) * number // count for number in range(count + 1)] if count else []
    return (ids[low:high] for low, high in pairwise(bounds))


def _batches(pieces: Sequence[_Piece], most: int) -> Iterator[list[int]]:
    """Put pieces of equal length together, up to so many word pieces, at least one piece."""
    waiting: dict[int, list[int]] = {}
    for place, piece in enumerate(pieces):
        length = len(piece.ids)
        batch = waiting.setdefault(length, [])
        batch.append(place)
        if (len(batch) + 1) * length > most:
            yield waiting.pop(length)
    yield from waiting.values()
