"""The compiled loops: they refuse what does not fit, and give what numpy gives."""

from __future__ import annotations

import numpy as np
import pytest

from whyrank.kernel import COMPILED
from whyrank.storage.fields import WORDS
from whyrank.storage.sqlite.postings.inversion import Text, follower_of, invert, key_of
from whyrank.storage.sqlite.postings.pages import Listed, list_of, one_page
from whyrank.storage.sqlite.postings.sums import Given
from whyrank.storage.sqlite.sealed import seal

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


TEXTS = [Text(3, ["tea", "pot", "tea"]), Text(5, ["pot", "tea", "pot", "tea", "pot"]), Text(8, ["pot"])]
PAGE = one_page(invert(TEXTS)[WORDS], 3)
LENGTHS = np.array([0, 0, 0, 3, 0, 5, 0, 0, 1], np.uint32)


def lists_of(word: str) -> tuple[Listed, ...]:
    listed = list_of(PAGE, key_of(word), 3, COMPILED)
    return () if listed is None else (listed,)


def asked(*terms: tuple[float, str]) -> tuple[Given, ...]:
    return (Given(LENGTHS, 0.5, 1.0, 2.0, 1.5, None, tuple((idf, lists_of(word)) for idf, word in terms)),)


@pytest.mark.parametrize("size", [1, 15, 16, 63, 64, 65, 127, 128, 200, 16_380])
def test_a_seal_is_that_of_zlib(size: int) -> None:
    assert COMPILED is not None
    blob = seal(np.random.default_rng(size).bytes(size))
    assert COMPILED.sealed(blob)
    for place in (0, 3, 4, size // 2 + 4, size + 3):
        assert not COMPILED.sealed(blob[:place] + bytes([blob[place] ^ 64]) + blob[place + 1 :])
    assert not COMPILED.sealed(blob[:4])
    assert not COMPILED.sealed(b"")


def test_a_list_is_found_where_its_page_holds_it() -> None:
    assert COMPILED is not None
    [tea] = lists_of("tea")
    assert tea.numbers.tolist() == [3, 5]
    assert tea.frequencies.tolist() == [2, 2]
    assert COMPILED.listed(PAGE.blob, key_of("coffee")) is None


def test_pairs_are_places_where_a_word_follows_and_how_often() -> None:
    assert COMPILED is not None
    [pot] = lists_of("pot")
    found = COMPILED.pairs(pot, follower_of("tea"))
    assert found is not None
    # "pot tea" stands once in 3, and twice in 5.
    assert np.frombuffer(found[0], np.int64).tolist() == [3, 5]
    assert np.frombuffer(found[1]).tolist() == [1.0, 2.0]
    assert COMPILED.pairs(pot, follower_of("coffee")) is None


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
    assert COMPILED.living(lists_of("pot"), alive) == 2
    totals = np.zeros(9)
    COMPILED.sums(totals, (asked((4.0, "tea"))[0]._replace(wanted=alive),))
    assert np.flatnonzero(totals).tolist() == [3]


def test_lists_that_name_places_that_are_not_there_are_refused() -> None:
    assert COMPILED is not None
    few = (asked((1.0, "pot"))[0]._replace(lengths=LENGTHS[:8]),)
    for ask in (
        lambda: COMPILED.sums(np.zeros(9), few),
        lambda: COMPILED.best(8, few, None, 5),
        lambda: COMPILED.living(lists_of("pot"), np.ones(8, np.bool_)),
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
    for end in range(len(PAGE.blob) - 4 * PAGE.heard):  # its followers may lie behind those of the term
        with pytest.raises(ValueError, match="shorter than it says"):
            COMPILED.listed(PAGE.blob[:end], key_of("pot"))
    [pot] = lists_of("pot")
    with pytest.raises(ValueError, match="fewer followers"):
        COMPILED.pairs(pot._replace(heard=2), follower_of("tea"))


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
        with pytest.raises(ValueError, match=r"one size|at least"):
            COMPILED.top(np.zeros(9), mask, wanted)
    with pytest.raises(ValueError, match="not of one size"):
        COMPILED.given((kind,), np.array([1]), np.zeros((2, 1)))
    with pytest.raises(ValueError, match="one kind"):
        COMPILED.given((kind, kind), np.array([1]), np.zeros((2, 1)))
    with pytest.raises(TypeError, match="a tuple is wanted"):
        COMPILED.sums(np.zeros(9), (kind[:5],))
    for ask in (
        COMPILED.listed,
        COMPILED.pairs,
        COMPILED.living,
        COMPILED.sums,
        COMPILED.best,
        COMPILED.top,
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
