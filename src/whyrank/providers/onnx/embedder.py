"""Sentence embedders in ONNX, and the floor of their cosines."""

from __future__ import annotations

import math
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ...errors import MissingExtra, ProviderError
from ...protocols import Thresholds
from ...types.memory import scale_rows
from .conversion import EXTRA, INPUT, has_package
from .description import TOKENIZER, Description, Pooling

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray
    from onnxruntime import InferenceSession
    from tokenizers import Encoding, Tokenizer

IDS = ("input_ids", INPUT)
MASK, TYPES = "attention_mask", "token_type_ids"
_TEXTS_PER_TOKENIZING = 64
# Short texts are a quarter faster together; from about this many tokens on, more rows gain nothing.
_TOKENS_PER_BATCH = 320


class _Piece(NamedTuple):
    """A part of a text that the model can read at once."""

    text: int
    ids: list[int]


class OnnxEmbedder:
    """Any sentence-embedding model in ONNX; a text over the token limit is the mean of its parts."""

    def __init__(self, description: Description, folder: Path, threads: int = 1) -> None:
        check_runtime(description.name)
        if not description.is_at(folder):
            raise ProviderError(f"{description.name} is not in {folder}", fetching_hint(description.name))
        self.description = description
        self.fingerprint = description.fingerprint
        self.floor = description.floor
        self.languages = description.languages
        # MiniLM's, rescaled to the range above the floor: its 70 % and 92 % quantiles of foreign queries in stores of
        # 22 to 45 files out of four sets are 0.20 to 0.32 and 0.27 to 0.43; larger stores are calibrated.
        self.thresholds = Thresholds(*(self.floor + (1 - self.floor) * share for share in (0.25, 0.36)))
        self._folder = folder
        self._threads = threads

    def weight(self, language: str) -> float:
        """Return the weight of the vector vote in a language."""
        return self.description.weight_in(language)

    def documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one unit vector per text; a text without tokens gets a zero row."""
        return self._embed(texts, self.description.prompts.passage)

    def query(self, text: str) -> NDArray[np.float32]:
        """Return the unit vector of a query, or zeros if all its tokens are unknown."""
        ids = self._tokenizer.encode(text, add_special_tokens=False).ids
        if all(token == self._unknown for token in ids):
            return np.zeros(self.description.dimension, np.float32)
        vector: NDArray[np.float32] = self._embed([text], self.description.prompts.query)[0]
        return vector

    def _embed(self, texts: Sequence[str], prompt: str) -> NDArray[np.float32]:
        width = self.description.dimension
        pieces = list(self._pieces(texts, prompt))
        vectors = np.zeros((len(pieces), width), dtype=np.float32)
        # A quantised graph may scale its numbers by the whole batch: a text then runs alone.
        for batch in _batches(pieces, _TOKENS_PER_BATCH if self.description.is_exact_in_batches else 1):
            vectors[batch] = self._run([pieces[place].ids for place in batch])
        sums = np.zeros((len(texts), width), dtype=np.float32)
        for piece, vector in zip(pieces, vectors, strict=True):
            sums[piece.text] += len(piece.ids) * vector
        return scale_rows(sums)

    def _pieces(self, texts: Sequence[str], prompt: str) -> Iterator[_Piece]:
        begin, end = self._marks
        for start in range(0, len(texts), _TEXTS_PER_TOKENIZING):
            batch = [prompt + text for text in texts[start : start + _TEXTS_PER_TOKENIZING]]
            encodings = self._tokenizer.encode_batch(batch, add_special_tokens=False)
            for text, encoding in enumerate(encodings, start):
                said = _tokens_of(encoding, prompt)
                opening = [*begin, *encoding.ids[:said]]
                room = max(1, self.description.max_tokens - len(opening) - len(end))
                for part in parts_of(encoding.ids[said:], room):
                    yield _Piece(text, [*opening, *part, *end])

    def _run(self, rows: list[list[int]]) -> NDArray[np.float32]:
        ids = np.array(rows, np.int64)
        [values] = self._session.run([self._graph.output], feed(self._graph, ids))
        return _pooled(np.asarray(values, np.float32), self.description.pooling)

    @cached_property
    def _session(self) -> InferenceSession:
        return open_session(self._folder / self.description.graph, self.description.name, self._threads)

    @cached_property
    def _graph(self) -> Graph:
        return embedding_graph(self._session, self.description.name)

    @cached_property
    def _tokenizer(self) -> Tokenizer:
        return open_tokenizer(self._folder / TOKENIZER, self.description.name)

    @cached_property
    def _marks(self) -> tuple[list[int], list[int]]:
        """Return the special tokens before and after a text, found by encoding a word with and without them."""
        bare = self._tokenizer.encode("a", add_special_tokens=False).ids
        marked = self._tokenizer.encode("a").ids
        places = (place for place in range(len(marked)) if marked[place : place + len(bare)] == bare)
        place = next(places, 0)
        return marked[:place], marked[place + len(bare) :]

    @cached_property
    def _unknown(self) -> int | None:
        token = getattr(self._tokenizer.model, "unk_token", None)
        return self._tokenizer.token_to_id(token) if token is not None else None


def parts_of(ids: Sequence[int], room: int) -> Iterator[Sequence[int]]:
    """Split a text into as few parts as the model needs, all about equally long."""
    count = -(-len(ids) // room)
    bounds = [len(ids) * number // count for number in range(count + 1)] if count else []
    return (ids[low:high] for low, high in pairwise(bounds))


def _tokens_of(encoding: Encoding, prompt: str) -> int:
    """Count the tokens of the prompt; they are made together with the text's, as the model was trained."""
    last = len(prompt.rstrip())
    return sum(end <= last for _, end in encoding.offsets) if last else 0


def _batches(pieces: Sequence[_Piece], most: int) -> Iterator[list[int]]:
    """Group pieces of equal length, up to so many tokens, at least one piece."""
    waiting: dict[int, list[int]] = {}
    for place, piece in enumerate(pieces):
        length = len(piece.ids)
        batch = waiting.setdefault(length, [])
        batch.append(place)
        if (len(batch) + 1) * length > most:
            yield waiting.pop(length)
    yield from waiting.values()


def _pooled(values: NDArray[np.float32], pooling: Pooling) -> NDArray[np.float32]:
    """Pool (texts, tokens, width) to one unit vector per text; a pooling graph's output is returned as is."""
    if pooling == "graph":
        return values
    pooled: NDArray[np.float32]
    match pooling:
        case "cls":
            pooled = values[:, 0]
        case "lasttoken":
            pooled = values[:, -1]
        case "max":
            pooled = values.max(axis=1)
        case _:
            pooled = values.mean(axis=1)
    return scale_rows(pooled)


# -- graphs and tokenizers, for embedders and rerankers ----------------------------------------------------------------


class Graph(NamedTuple):
    """Inputs of a graph, and the name and rank of the output that is read."""

    ids: str
    others: tuple[str, ...]
    output: str
    rank: int


def embedding_graph(session: InferenceSession, name: str) -> Graph:
    """Find the output that holds vectors; refuse a graph that is no text encoder."""
    inputs = _inputs(session, name)
    outputs = {output.name: output for output in session.get_outputs()}
    if set(outputs) == {"logits"}:
        raise ProviderError(
            f"{name} gives logits, not vectors: it is a classifier or a reranker",
            f"if it is a cross-encoder, `whyrank model rerank {name}` uses it",
        )
    preferred = ("sentence_embedding", "last_hidden_state", "token_embeddings", *outputs)
    found = outputs[next(output for output in preferred if output in outputs)]
    rank = len(found.shape or ())
    if rank not in (2, 3) or "float" not in found.type:
        raise ProviderError(
            f"{name} gives {found.name} of type {found.type} and shape {found.shape}, which is not one vector per text",
            "an embedding model gives (texts, tokens, width) or (texts, width)",
        )
    return Graph(*inputs, found.name, rank)


def scoring_graph(session: InferenceSession, name: str) -> Graph:
    """Find the output that holds scores; refuse a graph that is no cross-encoder."""
    inputs = _inputs(session, name)
    [first, *_] = session.get_outputs()
    shape: list[int | str | None] = first.shape or []
    # A dimension that the graph leaves open is checked when the model is installed.
    if len(shape) != 2 or (isinstance(shape[1], int) and shape[1] not in (1, 2)):
        raise ProviderError(
            f"{name} gives {first.name} of shape {first.shape}, which is not one score per pair",
            "a cross-encoder gives one or two logits for each pair: (pairs, 1) or (pairs, 2)",
        )
    return Graph(*inputs, first.name, len(shape))


def _inputs(session: InferenceSession, name: str) -> tuple[str, tuple[str, ...]]:
    names = [given.name for given in session.get_inputs()]
    ids = next((known for known in IDS if known in names), None)
    strange = [given for given in names if given not in (ids, MASK, TYPES)]
    if ids is None or strange:
        raise ProviderError(
            f"{name} is not a text encoder: its inputs are {', '.join(names)}",
            f"an encoder takes {IDS[0]}, and at most {MASK} and {TYPES} beside it",
        )
    return ids, tuple(given for given in names if given != ids)


def feed(graph: Graph, ids: NDArray[np.int64], types: NDArray[np.int64] | None = None) -> dict[str, NDArray[np.int64]]:
    """Return the inputs of a graph for texts of equal length: no padding."""
    kinds = np.zeros_like(ids) if types is None else types
    known = {graph.ids: ids, MASK: np.ones_like(ids), TYPES: kinds}
    return {name: known[name] for name in (graph.ids, *graph.others)}


def open_session(path: Path, name: str, threads: int) -> InferenceSession:
    """Load a graph."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3  # errors
    # Spinning threads take the processor from other processes, and from each other.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    try:
        return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime's own errors have no common root
        raise ProviderError(f"{path} cannot be loaded: {error}", f"remove that file; {fetching_hint(name)}") from error


def open_tokenizer(path: Path, name: str) -> Tokenizer:
    """Load a tokenizer without padding and truncation."""
    from tokenizers import Tokenizer

    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:  # tokenizers raises no class of its own
        raise ProviderError(f"{path} cannot be loaded: {error}", f"remove that file; {fetching_hint(name)}") from error
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer


def fetching_hint(name: str) -> str:
    """Return the hint with the command that installs a model."""
    if name.startswith("folder:"):
        return f"`whyrank model use PATH/{name.removeprefix('folder:')}` copies it from a folder"
    return f"`whyrank model fetch {name}` gets it, once for all workspaces"


def check_runtime(name: str) -> None:
    """Raise MissingExtra without onnxruntime."""
    if not has_package("onnxruntime"):
        raise MissingExtra(f"{name} needs onnxruntime, which is not installed", EXTRA)


# A query and a note each, on unrelated subjects.
MATTERS: tuple[tuple[str, str], ...] = (
    ("how long do soft eggs cook?", "Eggs from the fridge: six minutes in boiling water, then straight under the tap."),
    ("who tunes the piano?", "Mrs Okafor comes every April; the upper octaves drift when the heating starts."),
    ("where is the spare key of the shed?", "It hangs on the nail behind the rain barrel, under the blue pot."),
    ("why did the nightly backup fail?", "The volume was full: old snapshots are kept for 90 days, prune them first."),
    ("what does the visa for Kenya need?", "Passport valid for six months, two photographs, proof of onward travel."),
    ("how is the invoice number made?", "Year, month and a running count, for instance 2025-07-014; never reused."),
    ("which trail has shade in summer?", "The path along the north bank is under beeches nearly all the way."),
    ("what did the vet say about the cat?", "Half a tablet twice a day with food, and weigh her again in three weeks."),
    ("how do I reset the router?", "Hold the small button for ten seconds until all four lights blink orange."),
    ("when is the choir rehearsal?", "Tuesdays at half past seven in the parish hall, not during school holidays."),
    ("what is the deposit on the flat?", "Three months of rent, paid back within six weeks of moving out."),
    ("which glue holds the chair leg?", "Hide glue; clean the old joint with warm vinegar and clamp it overnight."),
    ("how did the marathon training go?", "Long run of 28 km at an easy pace, left knee a little sore afterwards."),
    ("what colour was the living room?", "Warm white with a drop of ochre, mixed at the shop; one litre is left."),
    ("why do the tomatoes split?", "Heavy watering after a dry week bursts the skins; mulch and water evenly."),
    ("who signs contracts over ten thousand?", "Two of the three directors; the original is kept in the safe."),
)  # fmt: skip


def measure_floor(embedder: OnnxEmbedder) -> float:
    """Return the mean cosine of queries and notes on different subjects, at least 0."""
    questions = np.array([embedder.query(question) for question, _ in MATTERS])
    cosines = questions @ embedder.documents([note for _, note in MATTERS]).T
    unrelated = cosines[~np.eye(len(MATTERS), dtype=bool)]
    return max(0.0, round(float(unrelated.mean()), 3))


_QUESTION_SHARE = 0.5  # of the model's token limit; the rest is for the text


class CrossEncoder:
    """A reranker in ONNX; a text over the token limit is truncated."""

    def __init__(self, description: Description, folder: Path, threads: int = 1) -> None:
        self.description = description
        self._folder = folder
        self._threads = threads

    def __repr__(self) -> str:
        return f"{self.description.name}@{self.description.revision}"

    def scores(self, question: str, texts: Sequence[str]) -> list[float]:
        """Return a number from 0 to 1 for each text: the logistic function of the model's logit."""
        name = self.description.name
        check_runtime(name)
        if not self.description.is_at(self._folder):
            raise ProviderError(f"{name} is not in {self._folder}", fetching_hint(name))
        # One pair at a time: a score then depends on its pair alone.
        return [self._score(question, text) for text in texts]

    def _score(self, question: str, text: str) -> float:
        tokenizer = self._tokenizer
        room = self.description.max_tokens - tokenizer.num_special_tokens_to_add(True)
        first = tokenizer.encode(question, add_special_tokens=False)
        first.truncate(max(1, int(room * _QUESTION_SHARE)))
        second = tokenizer.encode(text, add_special_tokens=False)
        second.truncate(max(1, room - len(first.ids)))
        pair = tokenizer.post_process(first, second)
        ids, types = (np.array([values], np.int64) for values in (pair.ids, pair.type_ids))
        [logits] = self._session.run([self._graph.output], feed(self._graph, ids, types))
        if logits.shape not in ((1, 1), (1, 2)):
            raise ProviderError(
                f"{self.description.name} gives scores of shape {logits.shape} for one pair",
                "a cross-encoder gives one or two logits for each",
            )
        # Of two logits the second is that of "relevant", and their difference is the single logit.
        logit = float(logits[0, -1]) - (float(logits[0, 0]) if logits.shape[1] == 2 else 0.0)
        return 0.5 * (1 + math.tanh(logit / 2))

    @cached_property
    def _session(self) -> InferenceSession:
        return open_session(self._folder / self.description.graph, self.description.name, self._threads)

    @cached_property
    def _graph(self) -> Graph:
        return scoring_graph(self._session, self.description.name)

    @cached_property
    def _tokenizer(self) -> Tokenizer:
        return open_tokenizer(self._folder / TOKENIZER, self.description.name)
