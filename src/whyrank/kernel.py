"""Loops compiled from `kernel/`, where the package was built with a C compiler; numpy does the same elsewhere."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Protocol, cast

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_VERSION = 1  # the same in kernel/kernel.h: a module left over from an earlier build is not used


class Kernel(Protocol):
    """What the compiled module offers; each function has a twin in numpy beside the place that calls it."""

    VERSION: int

    def dots(
        self,
        codes: NDArray[np.int8],
        scales: NDArray[np.float32],
        question: NDArray[np.int16],
        out: NDArray[np.float32],
        /,
    ) -> None:
        """Write what each row of codes gives with a question, times the row's scale."""


def _compiled() -> Kernel | None:
    try:
        found = cast(Kernel, import_module("whyrank._kernel"))
    except ImportError:
        return None
    return found if found.VERSION == _VERSION else None


COMPILED = _compiled()
