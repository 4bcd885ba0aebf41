"""Weights of the vector vote, and unit rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

# Weight of the vector vote against the keyword vote, measured over all visible sets (docs/decisions).
TRANSFORMER_WEIGHT = 0.5
STATIC_WEIGHT = 0.35
UNKNOWN_LANGUAGE_WEIGHT = 0.25


def unit_rows(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Scale every row to unit length; a zero row stays zero."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    scaled: NDArray[np.float32] = (vectors / np.where(lengths > 0, lengths, 1.0)).astype(np.float32)
    return scaled
