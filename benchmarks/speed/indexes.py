"""Libraries for one half of a search: tantivy and bm25s for words, usearch and hnswlib for vectors."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np

from .corpus import DIMENSION, FUNCTION_WORDS, NOTES_PER_BATCH, OPENERS, Written
from .peers import Ability, Peer

if TYPE_CHECKING:
    from pathlib import Path

    from whyrank.protocols import Vector

_HEAP_BYTES = 256 * 1024 * 1024
_LINKS = 16  # a node; both libraries' default
_BUILD_WIDTH, _SEARCH_WIDTH = 128, 128  # the search width that gives a recall of 0.99 and more


class Tantivy(Peer):
    """The Rust library tantivy: English stems, every word counts, block-max pruning."""

    name = "tantivy"
    needs = ("tantivy",)
    modules = ("tantivy",)
    offers: frozenset[Ability] = frozenset({"keyword", "add"})
    _tokenizer = "en_stem"
    _index: Any
    _writer: Any = None

    def build(self, corpus: Written, folder: Path) -> None:
        """Index the words without their places, and merge the segments."""
        import tantivy

        index = self._prepared(tantivy.Index(self._schema(), path=str(folder)))
        writer = index.writer(_HEAP_BYTES, 1)
        for number, text in enumerate(corpus.notes()):
            writer.add_document(tantivy.Document(number=number, text=text))
        writer.commit()
        writer.wait_merging_threads()

    def open(self, folder: Path) -> None:
        """Open the index."""
        import tantivy

        self._index = self._prepared(tantivy.Index.open(str(folder)))
        self._index.reload()

    def keyword(self, question: str, limit: int) -> list[int]:
        """Return the notes with any of the words, by BM25."""
        searcher = self._index.searcher()
        found = searcher.search(self._index.parse_query(question, ["text"]), limit, count=False)
        numbers: list[int] = searcher.fast_field_values("number", [address for _, address in found.hits])
        return numbers

    def add(self, number: int, text: str, vector: Vector) -> None:
        """Add the words and commit."""
        import tantivy

        if self._writer is None:
            self._writer = self._index.writer(_HEAP_BYTES, 1)
        self._writer.add_document(tantivy.Document(number=number, text=text))
        self._writer.commit()

    def _schema(self) -> Any:
        import tantivy

        builder = tantivy.SchemaBuilder()
        builder.add_integer_field("number", stored=False, indexed=False, fast=True)
        builder.add_text_field("text", stored=False, tokenizer_name=self._tokenizer, index_option="freq")
        return builder.build()

    def _prepared(self, index: Any) -> Any:
        return index


class TantivyWithoutStopWords(Tantivy):
    """Tantivy with the function words left out of index and question, as whyrank leaves them out."""

    name = "tantivy without stop words"
    offers: frozenset[Ability] = frozenset({"keyword"})
    _tokenizer = "told"

    def _prepared(self, index: Any) -> Any:
        from tantivy import Filter, TextAnalyzerBuilder, Tokenizer

        words = TextAnalyzerBuilder(Tokenizer.simple()).filter(Filter.lowercase())
        told = words.filter(Filter.custom_stopword([*FUNCTION_WORDS, *OPENERS])).filter(Filter.stemmer("english"))
        index.register_tokenizer(self._tokenizer, told.build())
        return index


class Bm25s(Peer):
    """The library bm25s: scores computed when the index is built, summed by numba where that is installed."""

    name = "bm25s"
    needs = ("bm25s",)
    modules = ("bm25s",)
    offers: frozenset[Ability] = frozenset({"keyword"})
    _retriever: Any

    def build(self, corpus: Written, folder: Path) -> None:
        """Compute the score of every word in every note."""
        import bm25s

        tokens = bm25s.tokenize(list(corpus.notes()), show_progress=False)
        retriever = bm25s.BM25(backend="numba" if find_spec("numba") else "numpy")
        retriever.index(tokens, show_progress=False)
        retriever.save(str(folder))

    def open(self, folder: Path) -> None:
        """Read the index whole."""
        import bm25s

        self._retriever = bm25s.BM25.load(str(folder), show_progress=False)

    def keyword(self, question: str, limit: int) -> list[int]:
        """Return the notes with the largest sums."""
        import bm25s

        tokens = bm25s.tokenize(question, show_progress=False, return_ids=False)
        numbers, _ = self._retriever.retrieve(tokens, k=limit, show_progress=False, n_threads=1)
        found: list[int] = numbers[0].tolist()
        return found


class Usearch(Peer):
    """The HNSW graph of usearch, on full vectors."""

    name = "usearch"
    needs = ("usearch",)
    modules = ("usearch.index",)
    offers: frozenset[Ability] = frozenset({"nearest"})
    _index: Any

    def build(self, corpus: Written, folder: Path) -> None:
        """Link the vectors and save the graph."""
        index = self._empty()
        for start in range(0, len(corpus.vectors), NOTES_PER_BATCH):
            rows = np.asarray(corpus.vectors[start : start + NOTES_PER_BATCH])
            index.add(np.arange(start, start + len(rows)), rows, threads=1)
        index.save(str(folder / "graph"))

    def open(self, folder: Path) -> None:
        """Read the graph."""
        self._index = self._empty()
        self._index.load(str(folder / "graph"))

    def nearest(self, vector: Vector, limit: int) -> list[int]:
        """Walk the graph."""
        numbers: list[int] = self._index.search(vector, limit, threads=1).keys.tolist()
        return numbers

    def _empty(self) -> Any:
        from usearch.index import Index

        return Index(
            ndim=DIMENSION,
            metric="ip",
            dtype="f32",
            connectivity=_LINKS,
            expansion_add=_BUILD_WIDTH,
            expansion_search=_SEARCH_WIDTH,
        )


class Hnswlib(Peer):
    """The HNSW graph of hnswlib, on full vectors."""

    name = "hnswlib"
    needs = ("hnswlib",)
    modules = ("hnswlib",)
    offers: frozenset[Ability] = frozenset({"nearest"})
    _index: Any

    def build(self, corpus: Written, folder: Path) -> None:
        """Link the vectors and save the graph."""
        import hnswlib

        index = hnswlib.Index(space="ip", dim=DIMENSION)
        index.init_index(max_elements=len(corpus.vectors), M=_LINKS, ef_construction=_BUILD_WIDTH)
        for start in range(0, len(corpus.vectors), NOTES_PER_BATCH):
            rows = np.asarray(corpus.vectors[start : start + NOTES_PER_BATCH])
            index.add_items(rows, np.arange(start, start + len(rows)), num_threads=1)
        index.save_index(str(folder / "graph"))

    def open(self, folder: Path) -> None:
        """Read the graph."""
        import hnswlib

        self._index = hnswlib.Index(space="ip", dim=DIMENSION)
        self._index.load_index(str(folder / "graph"))
        self._index.set_ef(_SEARCH_WIDTH)

    def nearest(self, vector: Vector, limit: int) -> list[int]:
        """Walk the graph."""
        labels, _ = self._index.knn_query(vector, k=limit, num_threads=1)
        numbers: list[int] = labels[0].tolist()
        return numbers
