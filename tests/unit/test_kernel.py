"""The compiled loops: they refuse what does not fit, and give what numpy gives."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from whyrank.storage.bm25 import WORDS
from whyrank.storage.sqlite.database import ChecksumError, add_checksum
from whyrank.storage.sqlite.postings.format import (
    FOLLOWER_MASK,
    PostingList,
    Text,
    find_list,
    invert,
    key_of,
    one_page,
    read,
)
from whyrank.storage.sqlite.postings.kernel import COMPILED, FieldTerms
from whyrank.storage.sqlite.postings.reader import Postings

pytestmark = pytest.mark.skipif(COMPILED is None, reason="the package was built without a C compiler")

Coded = tuple[NDArray[np.int8], NDArray[np.float32], NDArray[np.float32]]


def coded(vectors: NDArray[np.float32]) -> Coded:
    assert COMPILED is not None
    rows = len(vectors)
    made = np.zeros(vectors.shape, np.int8), np.zeros(rows, np.float32), np.zeros(rows, np.float32)
    COMPILED.coded(vectors, *made)
    return made


def cloud(rows: int, size: int) -> NDArray[np.float32]:
    return np.random.default_rng(size).standard_normal((rows, size)).astype(np.float32)


def test_codes_are_whole_numbers_of_a_hundred_and_twenty_seventh_of_the_largest() -> None:
    codes, scales, errors = coded(np.array([[12.7, -1.0, 0.26], [0.0, 0.0, 0.0]], np.float32))
    assert codes.tolist() == [[127, -10, 3], [0, 0, 0]]
    assert scales.tolist() == pytest.approx([0.1, 0.0])
    assert errors.tolist() == pytest.approx([0.04, 0.0], rel=1e-4)  # 0.26 is told as 0.3, the others as they are


@pytest.mark.parametrize("size", [1, 7, 8, 9, 256, 300])
def test_errors_are_how_far_rows_are_from_their_codes(size: int) -> None:
    vectors = cloud(50, size)
    codes, scales, errors = coded(vectors)
    apart = vectors.astype(np.float64) - codes * scales.astype(np.float64)[:, np.newaxis]
    lengths = np.linalg.norm(apart, axis=1)
    assert (errors >= lengths).all()
    assert errors.tolist() == pytest.approx(lengths.tolist(), rel=1e-5, abs=1e-12)
    assert (np.abs(apart) <= scales[:, np.newaxis] * 0.5001).all()


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_row_with_what_is_no_number_has_no_error(value: float) -> None:
    vectors = cloud(3, 20)
    vectors[1, 4] = value
    assert np.isnan(coded(vectors)[2]).tolist() == [False, True, False]


def test_numbers_too_small_for_a_scale_count_as_nothing() -> None:
    codes, scales, errors = coded(np.full((1, 4), 1e-38, np.float32))
    assert codes.tolist() == [[0, 0, 0, 0]]
    assert scales.tolist() == [0.0]
    assert errors[0] == pytest.approx(2e-38, rel=1e-4)  # √(4 · (1e-38)²)


@pytest.mark.parametrize("rows", [400, 401, 403])  # some are compared together, the last ones alone
@pytest.mark.parametrize("size", [1, 15, 16, 17, 256, 300, 5_000])
def test_the_nearest_are_chosen_with_all_that_may_be_as_near(rows: int, size: int) -> None:
    assert COMPILED is not None
    vectors = cloud(rows, size)
    question = vectors[-1]
    codes, scales, errors = coded(vectors)
    places = np.zeros(rows, np.int64)
    reach, step = float(errors.max()), float(scales.max())
    count, floor = COMPILED.nearest(codes, scales, question, places, None, 20, reach, step)
    exact = vectors.astype(np.float64) @ question.astype(np.float64)
    chosen = places[:count]
    assert count >= 20
    assert np.flatnonzero(exact >= floor).tolist() == [place for place in chosen.tolist() if exact[place] >= floor]
    assert np.count_nonzero(exact >= floor) >= 20


def test_only_what_a_mask_allows_is_chosen_and_fewer_than_wanted_are_all() -> None:
    assert COMPILED is not None
    vectors = cloud(100, 30)
    codes, scales, errors = coded(vectors)
    mask, places = np.zeros(100, np.bool_), np.zeros(100, np.int64)
    mask[[3, 50, 99]] = True
    given = (codes, scales, vectors[0], places)
    assert COMPILED.nearest(*given, mask, 20, float(errors.max()), float(scales.max())) == (3, -math.inf)
    assert places[:3].tolist() == [3, 50, 99]
    assert COMPILED.nearest(*given, None, 100, float(errors.max()), float(scales.max())) == (100, -math.inf)


def test_more_than_there_is_room_for_and_a_question_without_direction_are_left_to_others() -> None:
    assert COMPILED is not None
    vectors = cloud(100, 30)
    codes, scales, errors = coded(vectors)
    bounds = (float(errors.max()), float(scales.max()))
    assert COMPILED.nearest(codes, scales, vectors[0], np.zeros(9, np.int64), None, 10, *bounds)[0] == -1
    for question in (np.zeros(30, np.float32), np.full(30, np.nan, np.float32), np.full(30, np.inf, np.float32)):
        assert COMPILED.nearest(codes, scales, question, np.zeros(99, np.int64), None, 10, *bounds)[0] == -1
    assert COMPILED.nearest(codes, scales, vectors[0], np.zeros(99, np.int64), None, 10, math.inf, 1.0)[0] == -1


@pytest.mark.parametrize(
    ("rows", "size", "masked", "wanted"), [(2, 4, 2, 1), (3, 3, 2, 1), (2, 0, 2, 1), (2, 3, 3, 1), (2, 3, 2, 0)]
)
def test_what_is_not_of_one_size_is_refused(rows: int, size: int, masked: int, wanted: int) -> None:
    assert COMPILED is not None
    codes, scales, mask = np.zeros((rows, size), np.int8), np.ones(2, np.float32), np.ones(masked, np.bool_)
    with pytest.raises(ValueError, match="not of one size"):
        COMPILED.nearest(codes, scales, np.zeros(3, np.float32), np.zeros(9, np.int64), mask, wanted, 0.0, 1.0)


@pytest.mark.parametrize(
    ("codes", "scales", "errors"), [((2, 4), 2, 2), ((2, 3), 3, 2), ((2, 3), 2, 1), ((1, 3), 2, 2)]
)
def test_codes_that_do_not_fit_their_vectors_are_refused(codes: tuple[int, int], scales: int, errors: int) -> None:
    assert COMPILED is not None
    made = np.zeros(codes, np.int8), np.zeros(scales, np.float32), np.zeros(errors, np.float32)
    with pytest.raises(ValueError, match="not of one size"):
        COMPILED.coded(cloud(2, 3), *made)


def test_numbers_of_another_kind_are_refused() -> None:
    assert COMPILED is not None
    codes, scales, errors = coded(cloud(2, 3))
    places = np.zeros(2, np.int64)
    with pytest.raises(ValueError, match="question: numbers of 4 bytes are wanted, not of 8"):
        COMPILED.nearest(codes, scales, np.zeros(3), places, None, 1, 0.0, 1.0)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="contiguous"):
        COMPILED.nearest(codes[::-1], scales, np.zeros(3, np.float32), places, None, 1, 0.0, 1.0)
    with pytest.raises(TypeError, match="8 arguments"):
        COMPILED.nearest(codes, scales)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="4 arguments"):
        COMPILED.coded(codes, scales)  # type: ignore[call-arg,arg-type]
    errors.flags.writeable = False
    with pytest.raises((BufferError, ValueError)):
        COMPILED.coded(cloud(2, 3), codes, scales, errors)


def test_signs_that_do_not_fit_are_refused() -> None:
    assert COMPILED is not None
    signs, question, counts = np.zeros((2, 5), np.uint64), np.zeros(2, np.uint64), np.zeros(129, np.int64)
    apart, mask = np.zeros(5, np.uint16), np.ones(5, np.bool_)
    COMPILED.apart(signs, question, apart, counts, mask)
    assert counts[0] == 5
    for wrong in (
        (signs[:1], question, apart, counts, mask),
        (signs, question, apart[:4], counts, mask),
        (signs, question, apart, counts[:128], mask),
        (signs, question, apart, counts, mask[:4]),
        (np.zeros((1_024, 1), np.uint64), np.zeros(1_024, np.uint64), apart[:1], np.zeros(65_537, np.int64), None),
    ):
        with pytest.raises(ValueError, match="not of one size"):
            COMPILED.apart(*wrong)
    with pytest.raises(TypeError, match="5 arguments"):
        COMPILED.apart(signs)  # type: ignore[call-arg]


def test_sums_under_signs_that_are_not_there_are_refused() -> None:
    assert COMPILED is not None
    signs, numbers = np.full((1, 3), 3, np.uint64), np.arange(64, dtype=np.int32)
    sums = np.zeros(2)
    COMPILED.under(signs, np.array([0, 2]), numbers, sums)
    assert sums.tolist() == [1.0, 1.0]  # 0 + 1: the two lowest signs are positive
    for place in (-1, 3, 2**40):
        with pytest.raises(IndexError, match="beyond"):
            COMPILED.under(signs, np.array([0, place]), numbers, sums)
    for wrong in ((signs, np.array([0]), numbers, sums), (signs, np.array([0, 1]), numbers[:63], sums)):
        with pytest.raises(ValueError, match="not of one size"):
            COMPILED.under(*wrong)
    with pytest.raises(TypeError, match="4 arguments"):
        COMPILED.under(signs)  # type: ignore[call-arg]


@pytest.mark.parametrize("size", [*range(1, 20), 127, 128, 129, 136, 255, 256, 257, 300, 768, 1_023, 10_000])
def test_cosines_are_added_up_in_the_order_numpy_adds(size: int) -> None:
    assert COMPILED is not None
    vectors, question = cloud(30, size), cloud(1, size)[0].astype(np.float64)
    vectors[1] = -0.0
    places, out = np.random.default_rng(size).integers(0, 30, 50), np.empty(50)
    COMPILED.cosines(vectors, places, question, out)
    assert out.tobytes() == np.add.reduce(vectors[places].astype(np.float64) * question, axis=1).tobytes()


def test_cosines_of_rows_that_are_not_there_are_refused() -> None:
    assert COMPILED is not None
    vectors, question, out = cloud(3, 4), np.ones(4), np.zeros(2)
    for place in (-1, 3, 2**60):
        with pytest.raises(IndexError, match="beyond"):
            COMPILED.cosines(vectors, np.array([0, place]), question, out)
    for wrong in (
        (vectors, np.array([0]), question, out),
        (vectors, np.array([0, 1]), np.ones(5), out),
        (vectors, np.array([0, 1]), np.ones(0), out),
    ):
        with pytest.raises(ValueError, match="not of one size"):
            COMPILED.cosines(*wrong)
    with pytest.raises(TypeError, match="4 arguments"):
        COMPILED.cosines(vectors)  # type: ignore[call-arg]


TEXTS = [Text(3, ["tea", "pot", "tea"]), Text(5, ["pot", "tea", "pot", "tea", "pot"]), Text(8, ["pot"])]
PAGE = one_page(invert(TEXTS)[WORDS], 3)
LENGTHS = np.array([0, 0, 0, 3, 0, 5, 0, 0, 1], np.uint32)


def lists_of(word: str) -> tuple[PostingList, ...]:
    listed = find_list(PAGE, key_of(word), 3)
    return () if listed is None else (listed,)


def asked(*terms: tuple[float, str]) -> tuple[FieldTerms, ...]:
    return (FieldTerms(LENGTHS, 0.5, 1.0, 2.0, 1.5, None, tuple((idf, lists_of(word)) for idf, word in terms)),)


def test_a_list_is_found_where_its_page_holds_it() -> None:
    assert COMPILED is not None
    [tea] = lists_of("tea")
    assert tea.numbers.tolist() == [3, 5]
    assert tea.frequencies.tolist() == [2, 2]
    assert find_list(PAGE, key_of("coffee"), 3) is None


def test_pairs_are_places_where_a_word_follows_and_how_often() -> None:
    assert COMPILED is not None
    [pot] = lists_of("pot")
    found = COMPILED.pairs(pot, (key_of("tea") & FOLLOWER_MASK))
    assert found is not None
    # "pot tea" stands once in 3, and twice in 5.
    assert np.frombuffer(found[0], np.int64).tolist() == [3, 5]
    assert np.frombuffer(found[1]).tolist() == [1.0, 2.0]
    assert COMPILED.pairs(pot, (key_of("coffee") & FOLLOWER_MASK)) is None


def test_sums_are_weights_times_what_each_term_tells_and_best_are_the_highest_of_them() -> None:
    assert COMPILED is not None
    kinds, totals = asked((4.0, "tea"), (1.0, "pot")), np.zeros(9)
    COMPILED.sums(totals, kinds)
    # tf/(tf + 1 + 0.5·length) · idf · 2 · 1.5; 3 has three words, tea twice; 5 has five, pot thrice; 8 has pot alone.
    three, five, eight = 2 / 4.5 * 4 * 3 + 1 / 3.5 * 3, 2 / 5.5 * 4 * 3 + 3 / 6.5 * 3, 1 / 2.5 * 3
    assert totals.tolist() == pytest.approx([0, 0, 0, three, 0, five, 0, 0, eight])
    places, values = COMPILED.best(9, kinds, None, 2)
    assert np.frombuffer(places, np.int64).tolist() == [3, 5]
    assert np.frombuffer(values).tolist() == [totals[3], totals[5]]
    mask = np.array([True] * 3 + [False] + [True] * 5)
    assert np.frombuffer(COMPILED.best(9, kinds, mask, 2)[0], np.int64).tolist() == [5, 8]
    assert np.frombuffer(COMPILED.best(9, kinds, None, 50)[0], np.int64).tolist() == [3, 5, 8]


def test_what_each_term_gives_to_each_place_is_written_in_rows() -> None:
    assert COMPILED is not None
    out = np.zeros((2, 3))
    COMPILED.given(asked((4.0, "tea"), (1.0, "pot")), np.array([8, 3, 0]), out)
    assert out.tolist() == [[0.0, pytest.approx(2 / 4.5 * 12), 0.0], [pytest.approx(1.2), pytest.approx(3 / 3.5), 0.0]]


def test_only_the_living_are_counted_and_added_to() -> None:
    assert COMPILED is not None
    alive = np.array([True] * 5 + [False] + [True] * 3)
    assert Postings(lists_of("pot"), alive).size == 2
    totals = np.zeros(9)
    COMPILED.sums(totals, (asked((4.0, "tea"))[0]._replace(wanted=alive),))
    assert np.flatnonzero(totals).tolist() == [3]


def test_lists_that_name_places_that_are_not_there_are_refused() -> None:
    assert COMPILED is not None
    few = (asked((1.0, "pot"))[0]._replace(lengths=LENGTHS[:8]),)
    for ask in (
        lambda: COMPILED.sums(np.zeros(9), few),
        lambda: COMPILED.best(8, few, None, 5),
        lambda: COMPILED.given(few, np.array([8]), np.zeros((1, 1))),
        lambda: COMPILED.given(few, np.array([-1]), np.zeros((1, 1))),
    ):
        with pytest.raises(IndexError, match="not there"):
            ask()


@pytest.mark.parametrize(
    "moved",
    [
        {"first": -1},
        {"offsets_at": -2},
        {"offsets_at": 10**9},
        {"frequencies_at": len(PAGE.blob)},
        {"size": 2**62},
        {"size": -1},
        {"heard": 2**40},
        {"followers_at": len(PAGE.blob) - 3},
    ],
)
def test_lists_outside_of_their_page_are_refused(moved: dict[str, int]) -> None:
    assert COMPILED is not None
    [pot] = lists_of("pot")
    wrong = pot._replace(**moved)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="outside of its page"):
        COMPILED.pairs(wrong, 1)
    with pytest.raises(ValueError, match="outside of its page"):
        COMPILED.sums(np.zeros(9), (asked()[0]._replace(terms=((1.0, (wrong,)),)),))


def test_pages_and_lists_that_are_cut_off_are_refused() -> None:
    assert COMPILED is not None
    for end in range(len(PAGE.blob)):
        with pytest.raises(ChecksumError):
            read(add_checksum(PAGE.blob[4:end]))
    [pot] = lists_of("pot")
    with pytest.raises(ValueError, match="fewer followers"):
        COMPILED.pairs(pot._replace(heard=2), (key_of("tea") & FOLLOWER_MASK))


def test_what_is_not_of_one_size_or_kind_is_refused() -> None:
    assert COMPILED is not None
    [kind] = asked((1.0, "pot"))
    flags = np.ones(8, np.bool_)
    for wrong, told in (
        (kind._replace(wanted=flags), "flags are not of one size"),
        (kind._replace(own=np.ones(8)), "own weights are not of one size"),
        (kind._replace(lengths=LENGTHS.astype(np.uint16)), "lengths: numbers of 8 bytes are wanted, not of 2"),  # type: ignore[arg-type]
        (kind._replace(terms=((1.0, ((np.zeros(2, np.int64), np.zeros(3)),)),)), "not of one size"),  # type: ignore[arg-type]
        (kind._replace(terms=((1.0, ((1, 2, 3),)),)), "places and frequencies"),  # type: ignore[arg-type]
    ):
        with pytest.raises(ValueError, match=told):
            COMPILED.sums(np.zeros(9), (wrong,))
    for mask, wanted in ((flags, 5), (None, 0)):
        with pytest.raises(ValueError, match=r"one size|at least"):
            COMPILED.best(9, (kind,), mask, wanted)
    with pytest.raises(ValueError, match="not of one size"):
        COMPILED.given((kind,), np.array([1]), np.zeros((2, 1)))
    with pytest.raises(ValueError, match="one kind"):
        COMPILED.given((kind, kind), np.array([1]), np.zeros((2, 1)))
    with pytest.raises(TypeError, match="a tuple is wanted"):
        COMPILED.sums(np.zeros(9), (kind[:5],))  # type: ignore[arg-type]
    for ask in (
        COMPILED.pairs,
        COMPILED.sums,
        COMPILED.best,
        COMPILED.given,
    ):
        with pytest.raises(TypeError, match="arguments"):
            ask()  # type: ignore[call-arg]


def test_wide_lists_name_no_places_that_are_not_there() -> None:
    assert COMPILED is not None
    [kind] = asked()
    for place in (-1, 9, 2**62):
        wide = (np.array([place]), np.ones(1))
        if place > 0:
            with pytest.raises(IndexError, match="not there"):
                COMPILED.sums(np.zeros(9), (kind._replace(terms=((1.0, (wide,)),)),))  # type: ignore[arg-type]
        else:
            totals = np.zeros(9)
            COMPILED.sums(totals, (kind._replace(terms=((1.0, (wide,)),)),))  # type: ignore[arg-type]
            assert not totals.any()  # what stands before the first place is passed over


def unaligned(numbers: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the same numbers one byte beside where a number may stand."""
    room = np.zeros(numbers.nbytes + 8, np.uint8)
    start = 1 + -room.ctypes.data % 8
    moved = room[start : start + numbers.nbytes].view(numbers.dtype).reshape(numbers.shape)
    moved[:] = numbers
    assert not moved.flags.aligned
    return moved


def test_numbers_that_are_not_aligned_are_read_all_the_same() -> None:
    vectors = cloud(5, 24)
    codes, scales, errors = coded(unaligned(vectors))
    wanted = coded(vectors)
    assert codes.tolist() == wanted[0].tolist()
    assert (scales.tolist(), errors.tolist()) == (wanted[1].tolist(), wanted[2].tolist())


def test_numbers_that_are_not_aligned_are_not_written() -> None:
    assert COMPILED is not None
    scales = unaligned(np.zeros(5, np.float32))
    with pytest.raises(ValueError, match="have to be aligned"):
        COMPILED.coded(cloud(5, 24), np.zeros((5, 24), np.int8), scales, np.zeros(5, np.float32))
