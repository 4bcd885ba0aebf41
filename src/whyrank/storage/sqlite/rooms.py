"""Arrays that grow without being copied: behind those who read one there is room for what comes."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

SPARE_SHARE = 4  # a quarter more room than needed, so that a write does not copy everything

Number = TypeVar("Number", bound=np.generic)


def roomy(known: NDArray[Number] | None, shape: tuple[int, ...], dtype: type[Number]) -> NDArray[Number]:
    """Return room of a shape with what is known in it; what is beyond a reader's own size is nothing to it."""
    size = shape[0]
    if known is not None and isinstance(known.base, np.ndarray) and len(known.base) >= size:
        grown: NDArray[Number] = known.base[:size]
        return grown
    room = np.zeros((size + size // SPARE_SHARE, *shape[1:]), dtype)
    if known is not None:
        room[: len(known)] = known
    return room[:size]
