"""Windows of 800 characters, each beginning 100 characters before the last one ends."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from whyrank.errors import ConfigError
from whyrank.ingest.extraction.prompts import Window, WindowSize, windows

SIZE = WindowSize()


def spans(text: str, size: WindowSize = SIZE) -> list[Window]:
    return list(windows(text, size))


def test_a_short_text_is_one_window() -> None:
    assert spans("Tea is in the tin.\n") == [Window("Tea is in the tin.", 1, 1)]


def test_a_blank_text_is_none() -> None:
    assert spans("") == spans(" \n\n\t") == []


def test_where_nothing_offers_itself_windows_are_cut_every_700_characters() -> None:
    text = "".join(chr(0x4E00 + i) for i in range(2_000))  # no two letters alike, no spaces
    # 0…800, 700…1500, 1400…2000: each begins 100 before the end of the one before
    assert [window.text for window in spans(text)] == [text[0:800], text[700:1_500], text[1_400:2_000]]


def test_a_text_of_exactly_one_window_is_not_cut() -> None:
    assert len(spans("x" * 800)) == 1
    assert [len(window.text) for window in spans("x" * 801)] == [800, 101]


def test_windows_end_after_a_line_and_begin_with_a_word() -> None:
    line = "nine words of ten letters or so on every line"  # 45 letters and a line break: 46
    text = "\n".join([line] * 40)
    first, second, *_ = spans(text)
    assert first.text == "\n".join([line] * 17)  # 17 × 46 = 782 ≤ 800 < 18 × 46 = 828
    # 782 − 100 = 682 is inside line 15 (644…690), 38 letters in, inside "every"; the next word is "line"
    assert (second.text[:10], second.start_line) == ("line\nnine ", 15)
    assert (first.start_line, first.end_line) == (1, 17)


def test_a_window_ends_before_a_heading_so_that_a_change_above_it_stays_above_it() -> None:
    below = "# Below\n\n" + "words " * 300
    one = spans("a" * 500 + " above\n" + below)
    other = spans("b" * 650 + " above\n" + below)
    assert one[0].text.endswith("above")
    assert other[0].text.endswith("above")
    assert [window.text for window in one[2:]] == [window.text for window in other[2:]]


def test_lines_are_counted_from_one_and_blank_ends_left_out() -> None:
    assert spans("\n\nfirst\nsecond\n\n") == [Window("first\nsecond", 3, 4)]


@pytest.mark.parametrize(("characters", "overlap"), [(99, 10), (800, 400), (800, -1)])
def test_sizes_that_get_nowhere_are_refused(characters: int, overlap: int) -> None:
    with pytest.raises(ConfigError, match="windows of"):
        WindowSize(characters, overlap)


@given(
    st.text(alphabet=st.sampled_from("ab \n#é中"), max_size=3_000),
    st.integers(100, 400).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n // 2 - 1))),
)
def test_no_word_is_lost_no_window_too_long_and_every_span_right(text: str, size: tuple[int, int]) -> None:
    cut = spans(text, WindowSize(*size))
    lines = text.split("\n")
    for window in cut:
        assert len(window.text) <= size[0]
        assert window.text in "\n".join(lines[window.start_line - 1 : window.end_line])
    joined = "".join(window.text for window in cut)
    assert all(joined.count(letter) >= text.count(letter) for letter in "ab#é中")
