"""Inverting and merging words, compiled and in Python: the same to the last byte."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whyrank.storage.sqlite.database import ChecksumError, add_checksum
from whyrank.storage.sqlite.postings.format import Text, invert, pages
from whyrank.storage.sqlite.postings.kernel import COMPILED, KERNEL, NUMPY, Kernel
from whyrank.storage.sqlite.postings.segments import MergeSource, inverted, merged_pages

if TYPE_CHECKING:
    from collections.abc import Sequence

pytestmark = pytest.mark.skipif(COMPILED is None, reason="the package was built without a C compiler")

# Terms that are one, few and many; longer than a block of what hashes them; and letters of one to four bytes.
TERMS = ("tea", "pot", "é", "茶", "🍵", "x" * 128, "y" * 129, "z" * 300)


WRITTEN = st.characters(exclude_categories=("Cs", "Zs"), exclude_characters="\0")


@given(
    st.lists(
        st.lists(st.one_of(st.sampled_from(TERMS), st.text(WRITTEN, min_size=1, max_size=9)), max_size=8), max_size=6
    ),
    st.integers(0, 600),
)
@settings(deadline=None)
def test_texts_are_inverted_alike(texts: list[list[str]], often: int) -> None:
    spoken = [*texts, ["tea"] * often, ["pot", *["tea"] * often]]  # more often than a byte holds
    numbered = [Text(3 * number, tokens, letters=True) for number, tokens in enumerate(spoken)]
    fields, words = inverted(numbered)
    assert [*words] == sorted({token for tokens in spoken for token in tokens})
    for field, postings in fields.items():
        for one, other in zip(map(np.asarray, postings), invert(numbered)[field], strict=True):
            np.testing.assert_array_equal(one, other, strict=True)


def test_no_texts_have_no_postings() -> None:
    for kernel in (KERNEL, NUMPY):
        fields, words = inverted([], kernel)
        assert [*words] == []
        for postings in fields.values():
            assert [len(part) for part in postings] == [0, 0, 0, 0]


def test_words_that_begin_alike_are_ordered_by_what_comes_then() -> None:
    tokens = ["teapotsx", "teapots", "teapotsxz", "teapotsxa", "teapotsé", "teapotsx" * 3]
    assert [*inverted([Text(1, tokens)])[1]] == sorted(tokens)


def test_as_many_numbers_are_wanted_as_texts() -> None:
    assert COMPILED is not None
    with pytest.raises(ValueError, match="as many numbers"):
        COMPILED.inverted([["tea"]], np.zeros(2, np.int64))


@st.composite
def segments(draw: st.DrawFn) -> list[list[Text]]:
    """Texts of some segments, some with so many words that they need several pages; some numbers are nobody's."""
    number, made = draw(st.integers(0, 70_000)), list[list[Text]]()
    for sizes in draw(st.lists(st.lists(st.sampled_from([0, 1, 3, 700, 2_000]), max_size=4), max_size=5)):
        texts = []
        for size in sizes:
            number += draw(st.integers(1, 9))
            words = [f"w{draw(st.integers(0, 3)) + 5 * word}" for word in range(size)]
            texts.append(Text(number, ["tea"] * draw(st.sampled_from([0, 1, 300])) + words, letters=size < 9))
        made.append(texts)
    return made


@given(segments(), st.data())
@settings(deadline=None, max_examples=60)
def test_pages_are_merged_alike(texts: list[list[Text]], data: st.DataObject) -> None:
    everybody = [text.number for segment in texts for text in segment]
    first, last = min(everybody, default=0), max(everybody, default=0)
    gone = np.zeros(data.draw(st.sampled_from([0, last - first + 1])), np.bool_)
    for number in data.draw(st.sets(st.sampled_from([*everybody, first]))) if len(gone) else ():
        gone[number - first] = True
    indexes = [(min((text.number for text in segment), default=first), invert(segment)) for segment in texts]
    for field in invert([]):
        sources = [MergeSource(begin, tuple(page for _, page in pages(made[field], begin))) for begin, made in indexes]
        keys = sorted({-(2**63), 2**63 - 1, *(key for _, made in indexes for key in made[field].keys[:4].tolist())})
        low, below = data.draw(st.sampled_from(keys)), data.draw(st.sampled_from([None, *keys]))
        compiled = [*merged_pages(sources, first, low, below, gone)]
        assert compiled == [*merged_pages(sources, first, low, below, gone, NUMPY)]


def lying(terms: int, ends: list[int], heard: list[int], postings: bytes, keys: Sequence[int] = range(2)) -> bytes:
    """Return a page that is sealed, and as long as it says, but not what it says."""
    counts = np.array([terms], "<u4").tobytes(), np.array(keys[:terms], "<i8").tobytes()
    return add_checksum(
        b"".join((*counts, np.array(ends, "<u4").tobytes(), np.array(heard, "<u4").tobytes(), postings))
    )


@pytest.mark.parametrize(
    ("why", "page", "first"),
    [
        ("a list ends before it begins", lying(2, [2, 1], [0, 0], bytes(3)), 0),
        ("a list ends behind the page", lying(2, [9, 1], [0, 0], bytes(3)), 0),
        ("keys do not ascend", lying(2, [1, 2], [0, 0], b"\0\0\1\0\1\1", keys=[7, 7]), 0),
        ("followers end before they begin", lying(2, [1, 2], [1, 0], b"\0\0\1\0\1\1"), 0),
        ("there are more followers than occurrences", lying(1, [1], [2], b"\0\0\1" + bytes(8)), 0),
        ("numbers are too far from the first", lying(1, [1], [0], b"\0\0\1"), 65_536),
        ("numbers are before the first", lying(1, [1], [0], b"\0\0\1"), -1),
        ("it is shorter than it says", lying(1, [1], [0], b"\0\0"), 0),
    ],
)
def test_a_page_that_is_not_what_it_says_is_no_page(why: str, page: bytes, first: int) -> None:
    with pytest.raises(ChecksumError):
        merged_pages([MergeSource(first, (page,))], 0, 0, None, np.zeros(0, np.bool_))


def test_keys_go_on_from_page_to_page() -> None:
    page = lying(1, [1], [0], b"\0\0\1")
    with pytest.raises(ChecksumError):
        merged_pages([MergeSource(0, (page, page))], 0, 0, None, np.zeros(0, np.bool_))


@pytest.mark.parametrize("kernel", [KERNEL, NUMPY])
@pytest.mark.parametrize("page", ["text", None, 5, b"", b"\0" * 40])
def test_what_is_no_page_breaks_its_seal(page: bytes, kernel: Kernel) -> None:
    with pytest.raises(ChecksumError):
        merged_pages([MergeSource(0, (page,))], 0, 0, None, np.zeros(0, np.bool_), kernel)


def test_what_pages_are_merged_from_is_checked() -> None:
    assert COMPILED is not None
    gone = np.zeros(0, np.bool_)
    assert COMPILED.merged_pages((), 0, 0, None, gone, 9) == []
    wrong: list[tuple[object, ...]] = [
        ([], 0, 0, None, gone, 9), ((1,), 0, 0, None, gone, 9), (((0, [b""]),), 0, 0, None, gone, 9),
        (((0, ("",)),), 0, 0, None, gone, 9), ((), "0", 0, None, gone, 9), ((), 0, 0, "", gone, 9),
        ((), 0, 0, None, None, 9), ((), 0, 0, None, gone),
    ]  # fmt: skip
    for arguments in wrong:
        with pytest.raises(TypeError):
            COMPILED.merged_pages(*arguments)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="some bytes"):
        COMPILED.merged_pages((), 0, 0, None, gone, 0)
