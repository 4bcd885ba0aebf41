"""Vectors in the file, exact cosine in memory: a matrix per space that is thrown away when the store has changed."""

from __future__ import annotations

import threading
import zlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ...errors import SpaceMismatch
from ...ports import Vector
from ...types import MemoryId, Notice, Where
from ..pools import Scored
from .connection import Connection
from .passing import passing

UNIT_TOLERANCE = 1e-3  # how far from 1 a length may be and still count as rounding
PREVIOUS_TURN_WEIGHT = 0.5  # of the turn before in a turn's vector
# float32 products of unit vectors are right to about 1e-6; what is closer than this is decided in float64.
SELECTION_MARGIN = 1e-5


@dataclass(frozen=True)
class Matrix:
    """All vectors of one space at one generation: row numbers in order, and their unit vectors."""

    generation: int
    rows: NDArray[np.int64]
    vectors: NDArray[np.float32]
    damaged: frozenset[int]

    def positions(self, rows: Sequence[int]) -> NDArray[np.int64]:
        """Return where these store rows stand in the matrix; rows without a vector are left out."""
        wanted = np.asarray(rows, dtype=np.int64)
        places = np.searchsorted(self.rows, wanted)
        inside = places < len(self.rows)
        inside[inside] = self.rows[places[inside]] == wanted[inside]
        return places[inside]

    def cosines(self, positions: NDArray[np.int64], vector: Vector) -> NDArray[np.float64]:
        """Return cosines in float64, each computed from its own row alone."""
        if not len(positions):
            return np.zeros(0)
        products = self.vectors[positions].astype(np.float64) * vector.astype(np.float64)
        cosines: NDArray[np.float64] = products.sum(axis=1)
        return cosines


class VectorIndex:
    """Exact nearest neighbours over the vectors of the file."""

    def __init__(self) -> None:
        self._matrices: dict[str, Matrix] = {}
        self._turn = threading.Lock()

    def put(self, connection: Connection, space: str, vectors: Mapping[str, Vector]) -> None:
        """Store vectors by the hash of the text they embed, unit length checked."""
        for text_hash, vector in vectors.items():
            blob = unit(vector, text_hash).astype("<f4").tobytes()
            connection.execute(
                "INSERT INTO vectors (space, hash, checksum, vector) VALUES (?, ?, ?, ?) "
                "ON CONFLICT DO UPDATE SET checksum = excluded.checksum, vector = excluded.vector",
                (space, text_hash, zlib.crc32(blob), blob),
            )

    def select(
        self, connection: Connection, generation: int, space: str, vector: Vector, where: Where, limit: int | None
    ) -> tuple[list[Scored], list[Notice]]:
        """Return the rows that can be among the `limit` nearest sources, with exact cosines."""
        matrix = self.matrix(connection, generation, space)
        notices = _damage(connection, matrix.damaged, where)
        if not len(matrix.rows):
            return [], notices
        # float32 selects with a margin, float64 decides.
        coarse = matrix.vectors @ vector
        near = dict(passing(connection, matrix.rows, coarse, where, limit, SELECTION_MARGIN))
        positions = matrix.positions(sorted(near))
        cosines = matrix.cosines(positions, vector).tolist()
        rows = matrix.rows[positions].tolist()
        return [near[row]._replace(score=cosine) for row, cosine in zip(rows, cosines, strict=True)], notices

    def score(
        self, connection: Connection, generation: int, space: str, vector: Vector, rows: Mapping[int, MemoryId]
    ) -> dict[MemoryId, float]:
        """Return the exact cosine of each given row that has a vector."""
        matrix = self.matrix(connection, generation, space)
        positions = matrix.positions(sorted(rows))
        cosines = matrix.cosines(positions, vector).tolist()
        return {rows[row]: cosine for row, cosine in zip(matrix.rows[positions].tolist(), cosines, strict=True)}

    def damaged(self, connection: Connection, space: str) -> list[str]:
        """Return the hashes of the texts whose vectors fail their checksum."""
        stored = connection.execute("SELECT hash, checksum, vector FROM vectors WHERE space = ?", (space,))
        return [text_hash for text_hash, checksum, blob in stored if zlib.crc32(blob) != checksum]

    def matrix(self, connection: Connection, generation: int, space: str) -> Matrix:
        """Return the vectors of a space as of a generation, from memory if they are still those."""
        with self._turn:
            matrix = self._matrices.get(space)
            if matrix is None or matrix.generation != generation:
                matrix = self._matrices[space] = _load(connection, generation, space)
            return matrix


def unit(vector: Vector, owner: str) -> Vector:
    """Return a vector at unit length; refuse what has no direction or no finite number."""
    length = float(np.linalg.norm(vector.astype(np.float64)))
    if vector.ndim != 1 or not np.isfinite(length) or length == 0.0:
        raise SpaceMismatch(f"the vector of {owner} has no direction (length {length})", "check the embedder's output")
    return vector if abs(length - 1.0) <= UNIT_TOLERANCE else (vector / length).astype(np.float32)


def _load(connection: Connection, generation: int, space: str) -> Matrix:
    rows: list[int] = []
    blobs: list[bytes] = []
    turns: dict[int, tuple[str, str, int]] = {}
    damaged: set[int] = set()
    for row, checksum, blob, scope, session, position in connection.execute(
        "SELECT m.row, v.checksum, v.vector, m.scope, m.session, m.position FROM memories AS m "
        "JOIN vectors AS v ON v.space = ? AND v.hash = m.embed_hash ORDER BY m.row",
        (space,),
    ):
        if zlib.crc32(blob) != checksum:
            damaged.add(row)
            continue
        if session:
            turns[len(rows)] = (scope, session, position)
        rows.append(row)
        blobs.append(blob)
    vectors = (
        np.frombuffer(b"".join(blobs), dtype="<f4").reshape(len(rows), -1) if rows else np.zeros((0, 0), np.float32)
    )
    return Matrix(generation, np.array(rows, dtype=np.int64), mixed(vectors, turns), frozenset(damaged))


def mixed(vectors: NDArray[np.float32], turns: Mapping[int, tuple[str, str, int]]) -> NDArray[np.float32]:
    """Mix half of the turn before into each turn: what is said answers what was said. Stored vectors stay unmixed."""
    order = sorted(turns, key=lambda place: (turns[place], place))
    pairs = [(one, other) for one, other in pairwise(order) if turns[one][:2] == turns[other][:2]]
    if not pairs:
        return vectors
    before, after = (np.array(places) for places in zip(*pairs, strict=True))
    blended = vectors.copy()
    blended[after] += PREVIOUS_TURN_WEIGHT * vectors[before]
    lengths = np.linalg.norm(blended[after].astype(np.float64), axis=1, keepdims=True)
    blended[after] = (blended[after] / np.where(lengths > 0, lengths, 1.0)).astype(np.float32)
    return blended


def _damage(connection: Connection, rows: Collection[int], where: Where) -> list[Notice]:
    """Say how many of the vectors the caller would see are damaged."""
    visible = list(passing(connection, np.array(sorted(rows), np.int64), np.zeros(len(rows)), where, None))
    if not visible:
        return []
    message = f"{len(visible)} vectors fail their checksum and were left out; the next `whyrank ingest` makes them anew"
    return [Notice("vectors-damaged", message)]
