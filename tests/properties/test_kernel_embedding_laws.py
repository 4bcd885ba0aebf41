"""Spelling texts and adding up their tokens for static vectors, compiled and in Python: the same to the last bit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from whyrank.embedding.spelling import spelled
from whyrank.embedding.wordllama import write_means
from whyrank.kernel import COMPILED

pytestmark = pytest.mark.skipif(COMPILED is None, reason="the package was built without a C compiler")

ASCII = st.characters(max_codepoint=127)
# Capitals, digits, joiners and spaces beside each other more often than chance would have them.
TANGLED = st.sampled_from("aZzA09-_/.,'\t\n\x1c ›—“…→─✅🎉\ufe0f❶❷Ⅷé\u2003\xa0")
TABLE = np.random.default_rng(7).normal(size=(40, 16)).astype(np.float32)
TABLE[3] = -0.0


@given(st.one_of(st.text(ASCII), st.text(TANGLED), st.text()))
def test_texts_are_spelled_alike(text: str) -> None:
    assert spelled(text, COMPILED) == spelled(text, None)


def test_signs_are_spelled_alike_whatever_stands_beside_them() -> None:
    for sign in map(chr, [*range(0x80, 0xD800), *range(0xE000, 0x20000)]):
        for text in (f"Te{sign}A", f"a {sign} B", f"{sign}Tea{sign}POT"):
            assert spelled(text, COMPILED) == spelled(text, None), hex(ord(sign))


@pytest.mark.parametrize("text", ["iPhone", "TGFb1", "4MyApp", "(GitHub)", "US.", "a-B_c/D", "x\x7fY", "", " ", "é"])
def test_so_are_words_of_every_kind(text: str) -> None:
    assert spelled(text, COMPILED) == spelled(text, None)


def test_what_has_other_letters_is_left_to_others() -> None:
    assert COMPILED is not None
    assert COMPILED.spelled("Tea › “Pot”") == "tea “pot”"
    for text in ("Té", "\ud800", "Tea\u2003Pot"):
        assert COMPILED.spelled(text) is None
    with pytest.raises(TypeError):
        COMPILED.spelled(7)  # type: ignore[arg-type]


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
