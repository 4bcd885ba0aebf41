"""Weights of the vector vote, and unit rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from ..protocols import Embedder, Vector

# Weight of the vector vote against the keyword vote, measured over all visible sets (docs/decisions).
TRANSFORMER_WEIGHT = 0.5
STATIC_WEIGHT = 0.35
UNKNOWN_LANGUAGE_WEIGHT = 0.25


def unit_rows(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Scale every row to unit length; a zero row stays zero."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    scaled: NDArray[np.float32] = (vectors / np.where(lengths > 0, lengths, 1.0)).astype(np.float32)
    return scaled


def with_cache(embedder: Embedder) -> Embedder:
    """Return the embedder with a cache of all its vectors; all other attributes are its own."""
    return cast("Embedder", _CachedEmbedder(embedder))


class _CachedEmbedder:
    """An unbounded cache: it lives as long as one evaluation, and holds the texts of its sets."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._documents: dict[str, Vector] = {}
        self._queries: dict[str, Vector] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._embedder, name)

    def documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        missing = [text for text in dict.fromkeys(texts) if text not in self._documents]
        if missing or not texts:
            rows = self._embedder.documents(missing)
            self._documents.update(zip(missing, rows, strict=True))
        return np.stack([self._documents[text] for text in texts]) if texts else rows

    def query(self, text: str) -> Vector:
        if text not in self._queries:
            self._queries[text] = self._embedder.query(text)
        return self._queries[text]
