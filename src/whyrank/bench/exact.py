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


def first_ten(peer: Peer, answers: Mapping[int, Sequence[Key]]) -> dict[int, list[int]]:
    """Return the numbers of the first ten notes of every answer."""
    return {turn: peer.numbers(keys[:DEPTH]) for turn, keys in answers.items()}


def found(answers: Mapping[int, Sequence[int]], asked: Sequence[int]) -> float:
    """Return the share of the answers that hold the note that was asked about."""
    return sum(asked[turn] in numbers for turn, numbers in answers.items()) / max(1, len(answers))


def recall(answers: Mapping[int, Sequence[int]], exact: NDArray[np.int64]) -> float:
    """Return the share of the ten nearest that the answers hold, over all turns."""
    held = possible = 0
    for turn, numbers in answers.items():
        nearest = {number for number in exact[turn].tolist() if number >= 0}
        held += len(nearest & {*numbers})
        possible += len(nearest)
    return held / possible if possible else 1.0
