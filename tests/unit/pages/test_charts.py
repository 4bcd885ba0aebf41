"""Charts: where a value stands can be computed by hand."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.pages.reading import Read, read
from whyrank.evaluation.report.html import (
    Axis,
    ChartBar,
    Markup,
    Section,
    Series,
    Spot,
    bars,
    falls_and_rises,
    lines,
    page,
    reaching,
    short,
)


def drawn(chart: Markup) -> Read:
    return read(page("t", Markup(""), [Section("chart", chart)]))


def test_an_axis_places_values_between_its_ends() -> None:
    assert Axis("", 0, 4).place(1) == 0.25
    assert Axis("", 1, 100, is_log=True).place(10) == pytest.approx(0.5)
    assert Axis("", 0, 1).place(7) == 1.0  # what is outside stays at the edge


def test_ticks_are_round_and_lie_on_the_axis() -> None:
    assert Axis("", 0, 1).ticks() == [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    assert Axis("", -0.3, 0.3).ticks() == [-0.2, 0.0, 0.2]
    assert Axis("", 0.5, 2_000, is_log=True).ticks() == [1.0, 10.0, 100.0, 1_000.0]
    assert Axis("", 0.9, 4, is_log=True).ticks() == [1.0, 2.0]


@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6))
def test_ticks_never_leave_the_axis(low: float, width: float) -> None:
    axis = Axis("", low, low + width)
    slack = 1e-6 * max(abs(low), width)
    assert all(low - slack <= tick <= axis.high + slack for tick in axis.ticks())


def test_an_axis_reaches_over_its_values_and_ignores_what_is_no_number() -> None:
    assert reaching("", [0.2, 0.8])[1:3] == (0.0, 0.8)
    assert reaching("", [-1.0, math.nan, 2.0])[1:3] == (-1.0, 2.0)
    assert reaching("", [], is_log=True)[1:3] == (0.1, 1.0)
    assert reaching("", [1.0, 10.0], is_log=True)[1:3] == (1 / 1.3, 13.0)


def test_numbers_are_written_short() -> None:
    assert [short(value) for value in (0, 0.0123, 5.25, 12_345.6)] == ["0", "0.0123", "5.25", "12,346"]


def test_a_bar_is_as_long_as_its_value_and_has_its_interval() -> None:
    parsed = drawn(bars([ChartBar("a <b>", 0.5, 0.25, 0.75)], Axis("", 0, 1), caption="c", marks=[0.9]))
    _, bar = [a for tag, a in parsed.tags if tag == "rect"]
    assert (bar["x"], bar["width"]) == ("0", "50")  # 0.5 of 100
    whisker, low, high, mark = [a for tag, a in parsed.tags if tag == "line"]
    assert (whisker["x1"], whisker["x2"], low["x1"], high["x1"], mark["x1"]) == ("25", "75", "25", "75", "90")
    assert "a <b>" in parsed.text


def test_lines_have_a_legend_dots_and_spots_that_say_their_figures() -> None:
    series = [Series("ours", [(1, 1.0), (10, 2.0)], is_strong=True, has_dots=True), Series("theirs", [(1, 3.0)])]
    chart = lines(series, Axis("notes", 1, 10), Axis("ms", 0, 3), caption="c", spots=[Spot(5, 1.5, 0, "here")])
    parsed = drawn(chart)
    assert parsed.count("polyline") == 2
    assert "ours: 2 at 10" in parsed.text
    assert [a["class"] for tag, a in parsed.tags if tag == "circle"] == ["f0", "f0"]
    assert parsed.text.endswith("ours theirs")
    # 420 × 280 with 52 left, 18 right, 10 above, 42 below: (10, 2.0) is at 402 and 280 − 42 − 2/3 · 228 = 86.
    [ours] = [a["points"] for tag, a in parsed.tags if tag == "polyline" and "strong" in a["class"]]
    assert ours == "52.0,162.0 402.0,86.0"


def test_more_lines_than_colours_are_told_apart_by_dashes() -> None:
    parsed = drawn(lines([Series(str(n), [(0, 0)]) for n in range(20)], Axis("", 0, 1), Axis("", 0, 1), caption="c"))
    kinds = {a["class"] for tag, a in parsed.tags if tag == "polyline"}
    assert len(kinds) == 20


def test_differences_rise_and_fall_from_the_middle_and_ties_are_empty_places() -> None:
    parsed = drawn(falls_and_rises([-1.0, 0.0, 0.5], caption="c", label="d"))
    up, down = [a for tag, a in parsed.tags if tag == "rect"]
    # Half of the height, 228 / 2 = 114, is a difference of 1; the middle is at 10 + 114 = 124.
    assert (float(up["y"]), float(up["height"])) == (67.0, 57.0)
    assert (float(down["y"]), float(down["height"])) == (124.0, 114.0)


@pytest.mark.parametrize("values", [[], [0.0], [0.0, 0.0]])
def test_nothing_gained_or_lost_can_be_drawn(values: list[float]) -> None:
    assert drawn(falls_and_rises(values, caption="c", label="d")).count("rect") == 0
