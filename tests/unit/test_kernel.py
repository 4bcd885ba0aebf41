"""The compiled loops: they refuse what does not fit, and give what numpy gives."""

from __future__ import annotations

import numpy as np
import pytest

from whyrank.kernel import COMPILED

pytestmark = pytest.mark.skipif(COMPILED is None, reason="the package was built without a C compiler")


def test_dots_of_codes_are_sums_of_products_times_the_scale_of_the_row() -> None:
    assert COMPILED is not None
    codes = np.array([[1, 2, 3], [-127, 0, 127]], np.int8)
    out = np.zeros(2, np.float32)
    COMPILED.dots(codes, np.array([0.5, 2.0], np.float32), np.array([10, -20, 30], np.int16), out)
    # (1·10 − 2·20 + 3·30) · 0.5 and (−127·10 + 127·30) · 2
    assert out.tolist() == [30.0, 5080.0]


@pytest.mark.parametrize("size", [1, 15, 16, 17, 256, 1000])
def test_dots_do_not_depend_on_how_many_numbers_are_looked_at_together(size: int) -> None:
    assert COMPILED is not None
    random = np.random.default_rng(size)
    codes = random.integers(-127, 128, (50, size), np.int8)
    question = random.integers(-16_000, 16_001, size, np.int16)
    out = np.zeros(50, np.float32)
    COMPILED.dots(codes, np.ones(50, np.float32), question, out)
    assert out.tolist() == (codes.astype(np.int64) @ question.astype(np.int64)).astype(np.float32).tolist()


@pytest.mark.parametrize(
    ("rows", "size", "told"), [(2, 4, "not of one size"), (3, 3, "not of one size"), (2, 0, "not of one size")]
)
def test_dots_refuse_what_is_not_of_one_size(rows: int, size: int, told: str) -> None:
    assert COMPILED is not None
    codes, scales = np.zeros((rows, size), np.int8), np.ones(2, np.float32)
    with pytest.raises(ValueError, match=told):
        COMPILED.dots(codes, scales, np.zeros(3, np.int16), np.zeros(2, np.float32))


def test_dots_refuse_numbers_of_another_kind() -> None:
    assert COMPILED is not None
    codes, scales, out = np.zeros((2, 3), np.int8), np.ones(2, np.float32), np.zeros(2, np.float32)
    with pytest.raises(ValueError, match="question: numbers of 2 bytes are wanted, not of 8"):
        COMPILED.dots(codes, scales, np.zeros(3), out)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="4 arguments"):
        COMPILED.dots(codes, scales, out)  # type: ignore[call-arg,arg-type]
