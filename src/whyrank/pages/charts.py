"""Charts as inline SVG: bars with intervals, lines, and bars that rise and fall around zero."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from .markup import Child, Markup, element, joined
from .scales import Axis, short
from .style import SERIES

_WIDTH, _HEIGHT = 420.0, 280.0  # of the drawing; it is scaled to the page
_LEFT, _RIGHT, _TOP, _BOTTOM = 52.0, 18.0, 10.0, 42.0
_BAR = 100.0  # a bar's own width, stretched to the page


class Bar(NamedTuple):
    """One bar: its name, its length, where its interval ends, its colour, and what is written behind it."""

    label: Child
    value: float
    low: float | None = None
    high: float | None = None
    colour: int = 1
    written: str = ""


class Series(NamedTuple):
    """One line: its name, its points, and whether it is the one the page is about."""

    name: str
    points: Sequence[tuple[float, float]]
    is_strong: bool = False
    has_dots: bool = False


class Spot(NamedTuple):
    """A single point that belongs to a line, by the line's number."""

    x: float
    y: float
    series: int
    said: str


def bars(shown: Sequence[Bar], axis: Axis, *, caption: str, marks: Sequence[float] = ()) -> Markup:
    """Return bars beside their names, each with its interval and its figure; marks are limits across all of them."""
    rows = [part for bar in shown for part in _bar(bar, axis, marks)]
    return element("figure", element("figcaption", caption), element("div", *rows, class_="bars"))


def _bar(bar: Bar, axis: Axis, marks: Sequence[float]) -> Iterator[Markup]:
    at, zero = axis.place(bar.value) * _BAR, axis.place(max(axis.low, 0.0)) * _BAR
    start, width = (0.0, at) if axis.is_log else (min(at, zero), abs(at - zero))
    drawn = [element("rect", x="0", y="1", width=_BAR, height="8", class_="track")]
    drawn.append(element("rect", x=start, y="1", width=width, height="8", class_=f"f{bar.colour % SERIES}"))
    if bar.low is not None and bar.high is not None:
        drawn.append(_stroke(axis.place(bar.low) * _BAR, axis.place(bar.high) * _BAR, 5.0, 5.0, "whisker"))
        drawn += [_stroke(x, x, 2.5, 7.5, "whisker") for x in (axis.place(v) * _BAR for v in (bar.low, bar.high))]
    drawn += [_stroke(x, x, 0.0, 10.0, "mark") for x in (axis.place(mark) * _BAR for mark in marks)]
    yield element("div", bar.label, class_="l")
    yield element("svg", *drawn, viewBox=f"0 0 {_BAR:g} 10", preserveAspectRatio="none", aria_hidden="true")
    yield element("div", bar.written or axis.written(bar.value), class_="v")


def _stroke(x1: float, x2: float, y1: float, y2: float, kind: str) -> Markup:
    return element("line", x1=x1, x2=x2, y1=y1, y2=y2, class_=kind, vector_effect="non-scaling-stroke")


def lines(series: Sequence[Series], x: Axis, y: Axis, *, caption: str, spots: Sequence[Spot] = ()) -> Markup:
    """Return lines over two axes with a legend below; spots are single points of them."""
    drawn = [*_frame(x, y)]
    for number, one in reversed(list(enumerate(series))):  # the first is drawn last, above the others
        drawn += _line(number, one, x, y)
    drawn += [_spot(spot, x, y) for spot in spots]
    return _figure(drawn, caption, [one.name for one in series])


def _line(number: int, one: Series, x: Axis, y: Axis) -> Iterator[Markup]:
    places = [(_across(x, a), _up(y, b)) for a, b in one.points]
    path = " ".join(f"{a:.1f},{b:.1f}" for a, b in places)
    yield element("polyline", points=path, class_=f"line {_tint(number)}{' strong' if one.is_strong else ''}")
    for (a, b), (at, value) in zip(places, one.points, strict=True) if one.has_dots else ():
        said = element("title", f"{one.name}: {short(value)} at {short(at)}")
        yield element("circle", said, cx=a, cy=b, r="3.5", class_=f"f{number % SERIES}")


def _spot(spot: Spot, x: Axis, y: Axis) -> Markup:
    a, b = _across(x, spot.x), _up(y, spot.y)
    cross = f"M{a - 5:.1f} {b - 5:.1f}l10 10m0 -10l-10 10"
    return element("path", element("title", spot.said), d=cross, class_=f"line strong k{spot.series % SERIES}")


def falls_and_rises(differences: Sequence[float], *, caption: str, label: str) -> Markup:
    """Return every difference as a bar up or down, the best first: at a glance, who wins how often and by how much."""
    ordered = sorted(differences, reverse=True)
    reach = max((abs(value) for value in ordered), default=0.0) or 1.0
    y = Axis(label, -reach, reach)
    x = Axis(
        f"{len(ordered):,} {'query' if len(ordered) == 1 else 'queries'}, the most gained first",
        0.0,
        float(len(ordered) or 1),
    )
    wide = (_WIDTH - _LEFT - _RIGHT) / max(1, len(ordered))
    drawn = [*_frame(x, y, has_x_ticks=False)]
    for place, value in enumerate(ordered):
        top, bottom = sorted((_up(y, value), _up(y, 0.0)))
        kind = "f3" if value > 0 else "f2"
        at = {"x": _LEFT + place * wide, "y": top, "width": max(wide * 0.92, 0.3), "height": bottom - top}
        drawn += [element("rect", **at, class_=kind)] if value else []
    return _figure(drawn, caption, [])


def _frame(x: Axis, y: Axis, *, has_x_ticks: bool = True) -> Iterator[Markup]:
    for value in y.ticks():
        at = _up(y, value)
        kind = "zero" if value == 0 else "grid"
        yield element("line", x1=_LEFT, x2=_WIDTH - _RIGHT, y1=at, y2=at, class_=kind)
        yield element("text", y.written(value), x=_LEFT - 6, y=at + 4, text_anchor="end")
    for value in x.ticks() if has_x_ticks else ():
        at = _across(x, value)
        yield element("line", x1=at, x2=at, y1=_TOP, y2=_HEIGHT - _BOTTOM, class_="grid")
        yield element("text", x.written(value), x=at, y=_HEIGHT - _BOTTOM + 15, text_anchor="middle")
    yield element("text", x.label, x=(_LEFT + _WIDTH - _RIGHT) / 2, y=_HEIGHT - 8, text_anchor="middle")
    middle = (_TOP + _HEIGHT - _BOTTOM) / 2
    turned = f"rotate(-90 11 {middle:g})"
    yield element("text", y.label, x="11", y=middle, text_anchor="middle", transform=turned)


def _figure(drawn: Sequence[Markup], caption: str, names: Sequence[str]) -> Markup:
    picture = element(
        "svg", *drawn, viewBox=f"0 0 {_WIDTH:g} {_HEIGHT:g}", class_="chart", role="img", aria_label=caption
    )
    legend = element("ul", *(_entry(number, name) for number, name in enumerate(names)), class_="legend")
    return element("figure", element("figcaption", caption), picture, legend if names else None)


def _entry(number: int, name: str) -> Markup:
    swatch = element("line", x1="0", x2="20", y1="5", y2="5", class_=f"line strong {_tint(number)}")
    return element("li", joined(element("svg", swatch, viewBox="0 0 20 10", aria_hidden="true"), name))


def _tint(number: int) -> str:
    """Return the classes of a line's colour; where colours come round again, dashes tell lines apart."""
    return f"k{number % SERIES}" + (f" d{min(2, number // SERIES)}" if number >= SERIES else "")


def _across(axis: Axis, value: float) -> float:
    return _LEFT + axis.place(value) * (_WIDTH - _LEFT - _RIGHT)


def _up(axis: Axis, value: float) -> float:
    return _HEIGHT - _BOTTOM - axis.place(value) * (_HEIGHT - _BOTTOM - _TOP)
