"""Scores and other numbers by memory, held in columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeVar, overload

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MemoryId = str
Numbers = Sequence["float | None"]
Item = TypeVar("Item", covariant=True)


class Candidate(NamedTuple):
    """A memory proposed by one retriever; a higher score is always better."""

    id: MemoryId
    score: float


class Lazily(Sequence[Item]):
    """Lazy sequence: items are created when read; it equals the sequence of all its items."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return repr(tuple(self))


class Listed(Lazily[Candidate]):
    """Candidates as two columns, with items created lazily."""

    __slots__ = ("ids", "scores")

    def __init__(self, ids: Sequence[MemoryId], scores: Sequence[float]) -> None:
        self.ids = ids
        self.scores = scores

    def __iter__(self) -> Iterator[Candidate]:
        return map(Candidate, self.ids, self.scores)

    def __len__(self) -> int:
        return len(self.ids)

    @overload
    def __getitem__(self, index: int) -> Candidate: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Candidate]: ...
    def __getitem__(self, index: int | slice) -> Candidate | Sequence[Candidate]:
        if isinstance(index, slice):
            return Listed(self.ids[index], self.scores[index])
        return Candidate(self.ids[index], self.scores[index])


class Column(Mapping[MemoryId, float]):
    """One number per memory, in the order of the requested ids; None for those without one.

    If all have one, a store may supply the same numbers as an array. Instead of numbers there may be a function that
    computes them lazily.
    """

    __slots__ = ("_by_id", "_numbers", "array", "ids")

    def __init__(
        self,
        ids: Sequence[MemoryId],
        numbers: Numbers | Callable[[], Numbers],
        array: NDArray[np.float64] | None = None,
    ) -> None:
        self.ids = ids
        self._numbers = numbers
        self.array = array
        self._by_id: dict[MemoryId, float] | None = None

    @property
    def numbers(self) -> Numbers:
        """Return the numbers, in the order of the memories."""
        numbers = self._numbers
        if not isinstance(numbers, Sequence):
            numbers = self._numbers = numbers()
        return numbers

    def __getitem__(self, identity: MemoryId) -> float:
        return self.by_id[identity]

    def __iter__(self) -> Iterator[MemoryId]:
        return iter(self.by_id)

    def __len__(self) -> int:
        return len(self.by_id)

    @property
    def by_id(self) -> dict[MemoryId, float]:
        """Return the numbers there are, by memory."""
        if self._by_id is None:
            pairs = zip(self.ids, self.numbers, strict=True)
            self._by_id = {identity: number for identity, number in pairs if number is not None}
        return self._by_id


def with_gaps(ids: Sequence[MemoryId], numbers: NDArray[np.float64]) -> Column:
    """Return a column of the numbers of an array; NaN becomes None."""
    listed: list[float] = numbers.tolist()
    if (numbers == numbers).all():
        return Column(ids, listed, numbers)
    return Column(ids, [None if number != number else number for number in listed])


def by_id(values: Mapping[MemoryId, float]) -> Mapping[MemoryId, float]:
    """Return numbers in the form that is fastest for single lookups."""
    return values.by_id if isinstance(values, Column) else values


def array_of(values: Mapping[MemoryId, float], ids: Sequence[MemoryId]) -> NDArray[np.float64] | None:
    """Return the numbers of these memories, in this order, if they are available as an array."""
    return values.array if isinstance(values, Column) and values.ids == ids else None


def column_of(values: Mapping[MemoryId, float], ids: Sequence[MemoryId]) -> Sequence[float | None]:
    """Return the numbers of these memories, in this order."""
    if isinstance(values, Column) and values.ids == ids:
        return values.numbers
    return [*map(by_id(values).get, ids)]


_TOLERANCE = 1e-4  # of a length that is one but for rounding; such rows stay as they are, to the bit
_SURELY = _TOLERANCE / 2  # in float32, which is off by a hundredth of that


def lone_row(rows: object, dimension: int | None) -> NDArray[np.float32] | None:
    """Return the one row of a table, if it is a vector of this dimension and beyond doubt at unit length."""
    if getattr(rows, "shape", None) == (1, dimension):
        row: NDArray[np.float32] = rows[0]  # type: ignore[index]
        return row if _is_unit(row) else None
    return None


def _is_unit(row: NDArray[np.float32]) -> bool:
    return row.dtype.char == "f" and abs(float(row.dot(row)) - 1.0) <= _SURELY


def unit_row(row: object, dimension: int | None) -> NDArray[np.float32]:
    """Return one vector at unit length; zeros stay zeros. Any other shape is a ValueError."""
    import numpy as np

    given = np.asarray(row)
    if given.shape == (dimension,) and _is_unit(given):  # as those of most questions are
        return given
    unit: NDArray[np.float32] = unit_rows(given[np.newaxis], 1, dimension)[0]
    return unit


def unit_rows(rows: object, count: int, dimension: int | None) -> NDArray[np.float32]:
    """Return `count` vectors at unit length; a row of zeros stays one. Any other shape is a ValueError."""
    import numpy as np

    found = np.asarray(rows, np.float32)
    if count == 1 and lone_row(found, dimension) is not None:
        return found
    if found.ndim != 2 or len(found) != count or (dimension is not None and found.shape[1] != dimension):
        wanted = "any number" if dimension is None else dimension
        raise ValueError(f"the embedder gave an array of {found.shape}, not of ({count}, {wanted})")
    wide = found.astype(np.float64)
    lengths = np.sqrt(np.add.reduce(wide * wide, axis=1))  # in float64 no square of a finite float32 is infinite
    if not np.isfinite(lengths).all():
        raise ValueError("the embedder gave what is no number")
    odd = (np.abs(lengths - 1.0) > _TOLERANCE) & (lengths > 0.0)
    if odd.any():
        found = found.copy()
        found[odd] = (wide[odd] / lengths[odd, np.newaxis]).astype(np.float32)
    return found


def squares_of(rows: NDArray[np.float32]) -> list[float]:
    """Return the squares of the lengths of vectors: one that has no direction has none."""
    import numpy as np

    squares: list[float] = np.vecdot(rows, rows).tolist()
    return squares
