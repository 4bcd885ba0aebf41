"""A deterministic embedder for tests: a text's direction is the sum of its words' directions."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..analysis.words import tokens_of
from ..embedding.vectors import STATIC_WEIGHT, unit_rows
from ..ports import Thresholds

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ..ports import Vector


class WordDirections:
    """Texts that share words are near each other; nothing else is known."""

    def __init__(self, dimension: int = 32, name: str = "word-directions") -> None:
        self._dimension = dimension
        self._name = name

    @property
    def fingerprint(self) -> str:
        """Name the space."""
        return f"testing/{self._name}@1/{self._dimension}/no-prompt"

    @property
    def thresholds(self) -> Thresholds:
        """Return thresholds of evidence."""
        return Thresholds(weak=0.4, found=0.9)

    def weight(self, language: str) -> float:
        """Return what its vote is worth."""
        return STATIC_WEIGHT

    def documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one unit vector per text."""
        import numpy as np

        rows = np.zeros((len(texts), self._dimension), dtype=np.float32)
        for row, text in zip(rows, texts, strict=True):
            for token in tokens_of(text):
                row += self._direction(token)
        return unit_rows(rows)

    def query(self, text: str) -> Vector:
        """Return the unit vector of a question."""
        vector: Vector = self.documents([text])[0]
        return vector

    def _direction(self, token: str) -> NDArray[np.float32]:
        import numpy as np

        digest = hashlib.shake_128(token.encode("utf-8", errors="replace")).digest(self._dimension)
        return np.frombuffer(digest, dtype=np.uint8).astype(np.float32) / 127.5 - 1.0
