"""The exact answer, by comparing everything with everything, and how much of it was found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from .contestant import Key, Peer

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .directions import Matrix

DEPTH = 10
_ROWS_AT_ONCE = 100_000


def nearest_numbers(vectors: Matrix, questions: Matrix, among: NDArray[np.int64] | None = None) -> NDArray[np.int64]:
    """Return the numbers of the ten notes nearest to each question, of all notes or of some."""
    numbers = np.arange(len(vectors)) if among is None else among
    best = np.full((len(questions), DEPTH), -np.inf, dtype=np.float32)
    held = np.full((len(questions), DEPTH), -1, dtype=np.int64)
    for start in range(0, len(numbers), _ROWS_AT_ONCE):
        part = numbers[start : start + _ROWS_AT_ONCE]
        scores = np.hstack([best, questions @ np.asarray(vectors[part]).T])
        known = np.hstack([held, np.broadcast_to(part, (len(questions), len(part)))])
        order = np.argsort(-scores, axis=1, kind="stable")[:, :DEPTH]
        best, held = np.take_along_axis(scores, order, 1), np.take_along_axis(known, order, 1)
    return held


def recall(peer: Peer, answers: Mapping[int, Sequence[Key]], exact: NDArray[np.int64]) -> float:
    """Return the share of the ten nearest that stand among the first ten answered, over all turns."""
    found = possible = 0
    for turn, keys in answers.items():
        nearest = {number for number in exact[turn].tolist() if number >= 0}
        found += len(nearest & {*peer.numbers(keys[:DEPTH])})
        possible += len(nearest)
    return found / possible if possible else 1.0
