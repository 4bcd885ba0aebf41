"""Means of the rows of a table of static vectors, compiled and in numpy: the same to the last bit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from whyrank.kernel import COMPILED
from whyrank.providers.wordllama import write_means

pytestmark = pytest.mark.skipif(COMPILED is None, reason="the package was built without a C compiler")

TABLE = np.random.default_rng(7).normal(size=(40, 16)).astype(np.float32)
TABLE[3] = -0.0


@given(st.lists(st.lists(st.integers(-2, 45), max_size=400), max_size=5))
def test_means_are_the_same_to_the_bit(rows: list[list[int]]) -> None:
    compiled, plain = np.full((2, len(rows), 16), 0.5, np.float32)
    write_means(TABLE, rows, compiled, COMPILED)
    write_means(TABLE, rows, plain, None)
    assert compiled.tobytes() == plain.tobytes()


def test_means_of_another_size_are_refused() -> None:
    assert COMPILED is not None
    for out, size in ((np.zeros((2, 16), np.float32), 16), (np.zeros((1, 15), np.float32), 15)):
        with pytest.raises(ValueError, match="not of this size"):
            COMPILED.means(TABLE, [[1]], out, size)
    for size in (0, -1, 41 * 16):
        with pytest.raises(ValueError, match="not of this size"):
            COMPILED.means(TABLE, [[1]], np.zeros((1, 16), np.float32), size)
    for wrong in ([1], [(1,)], [["a"]]):
        with pytest.raises(TypeError):
            COMPILED.means(TABLE, wrong, np.zeros((1, 16), np.float32), 16)  # type: ignore[arg-type]
