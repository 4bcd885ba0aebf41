"""Reading, inverting and merging words, compiled and in Python: the same to the last byte."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whyrank.kernel import COMPILED, Kernel, Told
from whyrank.storage.sqlite.postings.inversion import Text, invert, inverted
from whyrank.storage.sqlite.postings.merging import Source, merged_pages
from whyrank.storage.sqlite.postings.pages import pages
from whyrank.storage.sqlite.postings.vocabulary import key_for
from whyrank.storage.sqlite.sealed import BrokenSeal, seal

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
    fields, words = inverted(numbered, COMPILED)
    assert [*words] == sorted({token for tokens in spoken for token in tokens})
    for field, postings in fields.items():
        for one, other in zip(map(np.asarray, postings), invert(numbered, None)[field], strict=True):
            np.testing.assert_array_equal(one, other, strict=True)


def test_no_texts_have_no_postings() -> None:
    for kernel in (COMPILED, None):
        fields, words = inverted([], kernel)
        assert [*words] == []
        for postings in fields.values():
            assert [len(part) for part in postings] == [0, 0, 0, 0]


def test_words_that_begin_alike_are_ordered_by_what_comes_then() -> None:
    tokens = ["teapotsx", "teapots", "teapotsxz", "teapotsxa", "teapotsé", "teapotsx" * 3]
    assert [*inverted([Text(1, tokens)], COMPILED)[1]] == sorted(tokens)


def test_as_many_numbers_are_wanted_as_texts() -> None:
    assert COMPILED is not None
    with pytest.raises(ValueError, match="as many numbers"):
        COMPILED.inverted([["tea"]], np.zeros(2, np.int64))


def test_what_a_piece_says_is_asked_once_and_an_error_goes_through() -> None:
    assert COMPILED is not None
    asked = list[tuple[list[str], ...]]()
    said: dict[str, Told] = {
        "tea": "tea",
        "l'été": (("l", "été"), 7, 2, 1),
        "the": ((), 3, 1, 2),
        "a": (("A",), -1, 1, 0),
    }

    def learn(*pieces: list[str]) -> list[Told]:
        asked.append(pieces)
        return [said[piece] for each in pieces for piece in each]

    pieces = COMPILED.pieces((), {}, ())
    for _ in range(2):
        read = COMPILED.read(pieces, "the\u2003l'été\x1ctea the a ", learn)
        assert read == (("l", "été", "tea", "A"), 1 + 2 + 1 + 1 + 1, 3 + 7 + 0 + 3 - 1, 1 | 2, 4)
    assert asked == [(["the", "tea", "a"], [], ["l'été"])]  # each once
    with pytest.raises(KeyError):
        COMPILED.read(pieces, "tea green", learn)
    for wrong in ((), ["black", "tea"], [1], [((), 0)], [("black", 0, 1, 0)], [((), 0, 1, -1)]):
        with pytest.raises((TypeError, OverflowError)):
            COMPILED.read(pieces, "black", lambda *_, wrong=wrong: wrong)


def test_a_word_is_known_by_whatever_signs_stand_around_it_unless_it_says_more_than_its_token() -> None:
    assert COMPILED is not None
    asked = list[tuple[list[str], ...]]()

    def learn(*pieces: list[str]) -> list[Told]:
        asked.append(pieces)
        told = (piece for each in pieces for piece in each)
        return [((), 1, 1, 2) if piece.lower().startswith("may") else piece for piece in told]

    pieces = COMPILED.pieces((), {}, ["may"])
    for _ in range(2):
        read = COMPILED.read(pieces, "(Tea TEA, May tea; may", learn)
        assert read == (("tea", "tea", "tea"), 5, 2, 2, 3)
    # `May` is asked for as it is written once it is known that its word says more.
    assert asked == [(["tea"], [], ["may"]), ([], [], ["May"])]


def test_of_a_piece_that_is_taken_apart_only_words_are_asked_for_that_nobody_has_said() -> None:
    assert COMPILED is not None
    asked = list[tuple[list[str], ...]]()

    def learn(*pieces: list[str]) -> list[Told]:
        asked.append(pieces)
        return [piece[:3] for each in pieces for piece in each]

    pieces = COMPILED.pieces(["of"], {"die": -1}, ["may"])
    assert COMPILED.read(pieces, "kettles", learn)[0] == ("ket",)
    # The whole before its parts, neither function words nor parts that come to the same; months are asked for whole.
    read = COMPILED.read(pieces, "kettle-of-Kettles ofOf kettles.2023 (may-5 die,", learn)
    assert read == (("ket", "ofo", "kettles.2023", "ket", "2023", "(ma", "die"), 5, -1, 4, 7)
    # `die` leans away, so what is written with signs is a piece of its own.
    asked_then: list[tuple[list[str], ...]] = [
        ([], ["kettleofkettles", "kettle", "ofof", "die"], ["(may-5"]),
        ([], ["die"], []),
    ]
    assert asked == [(["kettles"], [], []), *asked_then]


@pytest.mark.parametrize("wrong", [None, 1, [b"tea"], [["tea"]]])
def test_what_is_watched_for_are_words(wrong: Any) -> None:
    assert COMPILED is not None
    with pytest.raises(TypeError):
        COMPILED.pieces((), {}, wrong)


@pytest.mark.parametrize("wrong", [["die"], {"die": "1"}, {"die": 2}, {"die": -2}, {b"die": 1}])
def test_what_leans_leans_by_one(wrong: Any) -> None:
    assert COMPILED is not None
    with pytest.raises((TypeError, ValueError)):
        COMPILED.pieces((), wrong, ())


def test_lists_may_change_while_what_a_piece_says_is_read() -> None:
    assert COMPILED is not None
    lists: list[list[str]] = []

    class Odd:
        """A number that lets all pieces go when it is looked at."""

        def __index__(self) -> int:
            for each in lists:
                each.clear()
            return 1

    def learn(*pieces: list[str]) -> list[Any]:
        lists.extend(pieces)
        return [((piece,), Odd(), 1, 0) for each in pieces for piece in each]

    said = "l'" + "ä" * 30
    assert COMPILED.read(COMPILED.pieces((), {}, ()), said, learn) == ((said,), 1, 1, 0, 1)


def test_a_stem_is_a_text() -> None:
    assert COMPILED is not None
    with pytest.raises(TypeError):
        COMPILED.read(COMPILED.pieces((), {}, ()), "tea-pot", lambda plain, words, rest: [((), 0, 1, 0)] * len(words))


def test_many_pieces_are_known_again() -> None:
    assert COMPILED is not None
    pieces, words = COMPILED.pieces((), {}, ()), [f"ä{number}" for number in range(20_000)]
    first = COMPILED.read(pieces, " ".join(words), lambda *each: [((piece,), 1, 1, 0) for piece in each[-1]])
    again = COMPILED.read(pieces, " ".join(words), lambda *each: [*each[-1]])
    assert first == again == (tuple(words), 20_000, 20_000, 0, 20_000)


def test_pieces_take_the_room_of_their_letters_and_of_their_tokens() -> None:
    assert COMPILED is not None
    pieces = COMPILED.pieces((), {}, ())
    address, spoken = "tea/" * 30, "茶" * 20  # no longer than a word
    read = COMPILED.read(pieces, f"{address} {spoken}", lambda plain, words, rest: [*words, (("茶茶",) * 59, 0, 1, 0)])
    assert read[-1] == 120 // 24 + 59 // 8


@given(
    st.lists(
        st.sets(st.one_of(st.sampled_from(["tea", "teapot", "teapots", "é", "茶", "🍵"]), st.text("ab", min_size=1)))
    ),
    st.sampled_from(["", "a", "b", "teapot", "é"]),
    st.sampled_from(["", "b", "teapots", "茶"]),
)
def test_ordered_words_are_merged_alike(lists: list[set[str]], low: str, below: str) -> None:
    assert COMPILED is not None
    end = key_for(below) if below else 1 << 56
    texts = [" ".join(sorted(words)).encode() for words in lists]
    merged = COMPILED.merged_words(texts, key_for(low), end).decode()
    words = sorted(word for word in set().union(*lists) if key_for(low) <= key_for(word) < end)
    assert merged == " ".join(words)


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
        sources = [Source(begin, tuple(page for _, page in pages(made[field], begin))) for begin, made in indexes]
        keys = sorted({-(2**63), 2**63 - 1, *(key for _, made in indexes for key in made[field].keys[:4].tolist())})
        low, below = data.draw(st.sampled_from(keys)), data.draw(st.sampled_from([None, *keys]))
        compiled = [*merged_pages(sources, first, low, below, gone)]
        assert compiled == [*merged_pages(sources, first, low, below, gone, None)]


def lying(terms: int, ends: list[int], heard: list[int], postings: bytes, keys: Sequence[int] = range(2)) -> bytes:
    """Return a page that is sealed, and as long as it says, but not what it says."""
    counts = np.array([terms], "<u4").tobytes(), np.array(keys[:terms], "<i8").tobytes()
    return seal(b"".join((*counts, np.array(ends, "<u4").tobytes(), np.array(heard, "<u4").tobytes(), postings)))


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
    with pytest.raises(BrokenSeal):
        merged_pages([Source(first, (page,))], 0, 0, None, np.zeros(0, np.bool_))


def test_keys_go_on_from_page_to_page() -> None:
    page = lying(1, [1], [0], b"\0\0\1")
    with pytest.raises(BrokenSeal):
        merged_pages([Source(0, (page, page))], 0, 0, None, np.zeros(0, np.bool_))


@pytest.mark.parametrize("kernel", [COMPILED, None])
@pytest.mark.parametrize("page", ["text", None, 5, b"", b"\0" * 40])
def test_what_is_no_page_breaks_its_seal(page: bytes, kernel: Kernel | None) -> None:
    with pytest.raises(BrokenSeal):
        merged_pages([Source(0, (page,))], 0, 0, None, np.zeros(0, np.bool_), kernel)


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
