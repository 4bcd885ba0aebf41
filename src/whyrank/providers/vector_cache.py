"""An embedder wrapper that embeds every text once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from ..protocols import Embedder, Vector


def with_cache(embedder: Embedder) -> Embedder:
    """Return the embedder with a cache of all its vectors; all other attributes are its own."""
    return cast(Embedder, _CachedEmbedder(embedder))


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
