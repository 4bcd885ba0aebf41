"""Loops compiled from `kernel/`, where the package was built with a C compiler; numpy does the same elsewhere."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Protocol, cast

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_VERSION = 2  # the same in kernel/kernel.h: a module left over from an earlier build is not used


class Kernel(Protocol):
    """What the compiled module offers; each function has a twin in numpy beside the place that calls it."""

    VERSION: int
    SEALS: int  # whether it is quick at checksums on this processor

    def dots(
        self,
        codes: NDArray[np.int8],
        scales: NDArray[np.float32],
        question: NDArray[np.int16],
        out: NDArray[np.float32],
        /,
    ) -> None:
        """Write what each row of codes gives with a question, times the row's scale."""

    def sealed(self, blob: bytes, /) -> bool:
        """Tell whether bytes are those that the checksum in front of them was made of."""

    def listed(self, page: bytes, key: int, /) -> tuple[int, int, int, int, int] | None:
        """Find the list of a term in a page: where offsets and frequencies stand, how many; followers, how many."""

    def pairs(self, listed: tuple[object, ...], follower: int, /) -> tuple[bytes, bytes] | None:
        """Find the places (int64) of a list where a word follows, and how often (float64)."""

    def living(self, parts: tuple[tuple[object, ...], ...], alive: NDArray[np.bool_], /) -> int:
        """Count the places of some lists that are alive."""

    def sums(self, totals: NDArray[np.float64], kinds: tuple[tuple[object, ...], ...], /) -> None:
        """Add what terms give to every place, in their order."""

    def best(
        self,
        places: int,
        kinds: tuple[tuple[object, ...], ...],
        mask: NDArray[np.bool_] | None,
        wanted: int,
        /,
    ) -> tuple[bytes, bytes]:
        """Find the `wanted` places (int64) that terms give most to, with their sums (float64), and all as good."""

    def top(self, values: NDArray[np.float64], mask: NDArray[np.bool_] | None, wanted: int, /) -> tuple[bytes, bytes]:
        """Find the same of values that are at hand."""

    def given(
        self, kinds: tuple[tuple[object, ...], ...], places: NDArray[np.int64], out: NDArray[np.float64], /
    ) -> None:
        """Write what each term (a row) of one kind of text gives to each of some places (a column)."""


def _compiled() -> Kernel | None:
    try:
        found = cast(Kernel, import_module("whyrank._kernel"))
    except ImportError:
        return None
    return found if found.VERSION == _VERSION else None


COMPILED = _compiled()
