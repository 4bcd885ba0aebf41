"""whyrank as a contestant, through its public parts, with vectors that are given and cost nothing."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from whyrank.analysis.query import terms_of
from whyrank.config import load as settings
from whyrank.engine.engine import Engine
from whyrank.protocols import Thresholds
from whyrank.providers.names import STATIC_WEIGHT
from whyrank.storage.bm25 import WORDS
from whyrank.storage.sqlite.indexes import PostingsIndex
from whyrank.storage.sqlite.postings.kernel import KERNEL, NUMPY, Kernel
from whyrank.storage.store import SqliteStore
from whyrank.types.memory import GLOBAL, Document, Scope, visible
from whyrank.types.query import Where

from .peers import OURS, Ability, Key, Peer

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from whyrank.protocols import Vector
    from whyrank.types.results import Run

    from .corpus import Written

LANGUAGE = "en"
NOTES_PER_CALL = 4_096
_SHELVES = 200  # a note's path says which of 200 shelves it stands on, so that a path is a filter of a known share
# The share of the notes that passes, and the path they have.
SHARES: dict[float, str] = {0.5: "0??/*", 0.05: "00?/*", 0.005: "000/*"}
_CHUNK_TOKENS = 4_000  # the most there is: a note is one memory for us as it is one row for the others


class GivenVectors:
    """An embedder that embeds nothing: it hands out the vectors it was given."""

    def __init__(self) -> None:
        self.known: Mapping[str, Vector] = {}
        self.asked: Vector | None = None

    @property
    def fingerprint(self) -> str:
        """Name the space."""
        return "bench/given@1"

    languages: tuple[str, ...] = ()

    @property
    def floor(self) -> float:
        """Return the cosine of unrelated texts."""
        return 0.0

    @property
    def thresholds(self) -> Thresholds:
        """Return thresholds of evidence."""
        return Thresholds(weak=0.4, found=0.9)

    def weight(self, language: str) -> float:
        """Return what its vote is worth."""
        return STATIC_WEIGHT

    def documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Look the vectors of these texts up."""
        if len(texts) == 1:  # as it was given: no copy of it is made for those who store one note
            return self.known[texts[0]].reshape(1, -1)
        return np.stack([self.known[text] for text in texts]) if texts else np.zeros((0, 0), dtype=np.float32)

    def query(self, text: str) -> Vector:
        """Return the vector that was given with the question."""
        assert self.asked is not None
        return self.asked


class WordsAlone:
    """The words field of the index and nothing else: what other keyword engines do."""

    def __init__(self, store: SqliteStore) -> None:
        self._store = store
        with store.view() as view:
            assert isinstance(view.keyword, PostingsIndex)
            self._index = view.keyword.only((WORDS,))

    def run(self, question: str, limit: int) -> list[Key]:
        """Rank by words."""
        with self._store.view() as view:
            return list(self._index.run(view, terms_of(question, LANGUAGE), Where(), "or", limit).rows.ids)


class Ours(Peer):
    """One whyrank store."""

    name = OURS
    needs = ()
    modules = ("whyrank.engine.engine",)
    offers: frozenset[Ability] = frozenset({"keyword", "nearest", "search", "add"})
    engine: Engine
    store: SqliteStore

    kernel: Kernel = KERNEL

    def __init__(self) -> None:
        self._embedder = GivenVectors()

    def build(self, corpus: Written, folder: Path) -> None:
        """Add the notes as documents, in batches."""
        self.open(folder)
        self.fill(shelved(corpus.notes()), corpus.vectors)
        self.close()

    def fill(self, documents: Iterable[Document], vectors: Iterable[Vector]) -> None:
        """Add documents with their vectors."""
        for batch in batched_pairs(documents, vectors):
            self._embedder.known = {document.text: vector for document, vector in batch}
            self.engine.add_documents(document for document, _ in batch)

    def open(self, folder: Path) -> None:
        """Open the store."""
        path = folder / "memory.db"
        given = {
            "store": str(path),
            "language": LANGUAGE,
            "chunk.tokens": _CHUNK_TOKENS,
            "chunk.overlap": 0,
            "calibration": "manual",  # others do none, and questions have no vectors but those given with them
        }
        self.store = SqliteStore(path, kernel=self.kernel)
        self._words = WordsAlone(self.store)
        self.engine = Engine(self.store, self._embedder, settings.load(given, workspace=folder))

    def keyword(self, question: str, limit: int) -> Sequence[Key]:
        """Rank by words alone."""
        return self._words.run(question, limit)

    def nearest(self, vector: Vector, limit: int) -> Sequence[Key]:
        """Rank by cosine alone."""
        return self.nearest_where(vector, Where(), limit)

    def nearest_where(self, vector: Vector, where: Where, limit: int) -> Sequence[Key]:
        """Rank what passes a filter by cosine alone."""
        return _ids(self.store.nearest(vector, self._embedder.fingerprint, where, limit))

    def search(self, question: str, vector: Vector, limit: int) -> Sequence[Key]:
        """Search as everybody does: words, vectors and names, with the trail of every hit."""
        self._embedder.asked = vector
        return [hit.id for hit in self.engine.search(question, limit=limit)]

    def search_in(self, scope: Scope, question: str, vector: Vector, limit: int) -> Sequence[Key]:
        """Search with the eyes of one scope."""
        self._embedder.asked = vector
        return [hit.id for hit in self.engine.search(question, limit=limit, scope=str(scope))]

    def timings(self, question: str, vector: Vector, limit: int) -> Mapping[str, float]:
        """Return the milliseconds a search spent in each stage."""
        self._embedder.asked = vector
        return self.engine.search(question, limit=limit).timings

    def add(self, number: int, text: str, vector: Vector) -> None:
        """Store one fact."""
        self._embedder.known = {text: vector}
        self.engine.add(text)

    def index(self) -> None:
        """Read, which indexes what waits."""
        with self.store.reading():
            return

    def numbers(self, keys: Sequence[Key]) -> list[int]:
        """Read the numbers off the paths."""
        found = self.store.get([str(key) for key in keys], visible([GLOBAL]))
        sources = [found[str(key)].source for key in keys]
        return [int(source.path.rpartition("/")[2]) for source in sources if source is not None]

    def close(self) -> None:
        """Close the store."""
        self.engine.close()


class WithoutKernel(Ours):
    """The store searched by numpy alone, as where no C compiler was found; writing is the same and competes once."""

    name = "whyrank without kernel"
    offers: frozenset[Ability] = frozenset({"keyword", "nearest", "search"})
    kernel = NUMPY


def shelved(notes: Iterable[str]) -> Iterator[Document]:
    """Return documents whose paths spread them evenly over the shelves."""
    return (Document(f"{number % _SHELVES:03d}/{number}", note) for number, note in enumerate(notes))


def passing(share: float, count: int) -> NDArray[np.int64]:
    """Return the numbers of the notes that pass the filter of a share."""
    numbers = np.arange(count)
    return numbers[numbers % _SHELVES < round(share * _SHELVES)]


def batched_pairs(
    documents: Iterable[Document], vectors: Iterable[Vector]
) -> Iterator[tuple[tuple[Document, Vector], ...]]:
    """Yield documents and vectors together, some thousand at a time."""
    pairs = zip(documents, vectors, strict=True)
    while batch := tuple(islice(pairs, NOTES_PER_CALL)):
        yield batch


def _ids(run: Run) -> list[Key]:
    return [candidate.id for candidate in run.candidates]
