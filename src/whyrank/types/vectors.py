"""Check and normalise vectors given by embedders."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


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
