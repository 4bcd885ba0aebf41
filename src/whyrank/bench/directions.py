"""Vectors that lie as those of real texts do: clusters around topics, most of the variance in few dimensions."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Matrix = NDArray[np.float32]

DIMENSION = 256
# How fast the variance of the axes falls, how far notes lie from their topic, and questions from their note: chosen so
# that a question's best neighbour is at a cosine of about 0.75 and its tenth at 0.65 to 0.7, as with sentence models.
_DECAY = 0.5
_NOTE_SPREAD = 0.5
_QUESTION_SPREAD = 0.87
_SPECTRUM, _TURN, _CENTRES = 1, 2, 3  # streams of chance


@dataclass(frozen=True)
class Directions:
    """A space with one cluster for every topic."""

    topics: int
    seed: int

    @cached_property
    def _scale(self) -> Matrix:
        scale: Matrix = (np.arange(1, DIMENSION + 1) ** -_DECAY).astype(np.float32)
        return scale / np.float32(np.linalg.norm(scale))

    @cached_property
    def _turn(self) -> Matrix:
        """Return a rotation, so that no axis of the vectors is special."""
        square = np.random.default_rng([self.seed, _TURN]).standard_normal((DIMENSION, DIMENSION))
        turn: Matrix = np.linalg.qr(square)[0].astype(np.float32)
        return turn

    @cached_property
    def _centres(self) -> Matrix:
        return self._cloud(self.topics, np.random.default_rng([self.seed, _CENTRES]))

    def notes(self, topics: NDArray[np.int32], chance: np.random.Generator) -> Matrix:
        """Return one unit vector a note, each near its topic's centre."""
        return _unit(self._centres[topics] + np.float32(_NOTE_SPREAD) * self._cloud(len(topics), chance)) @ self._turn

    def questions(self, notes: Matrix, chance: np.random.Generator) -> Matrix:
        """Return one unit vector near each of these notes."""
        return _unit(notes + np.float32(_QUESTION_SPREAD) * (self._cloud(len(notes), chance) @ self._turn))

    def _cloud(self, count: int, chance: np.random.Generator) -> Matrix:
        cloud: Matrix = chance.standard_normal((count, DIMENSION), dtype=np.float32) * self._scale
        return cloud


def _unit(rows: Matrix) -> Matrix:
    lengths: Matrix = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / lengths
