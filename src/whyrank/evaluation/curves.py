"""The picture of a tuning run: what every value of a setting gains, by kind of question; an SVG, drawn by hand."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from html import escape
from typing import NamedTuple

from .pseudo import KINDS
from .tuning import WITNESSES, Choice, SettingName, Tuning

WIDTH, HEIGHT = 760, 440  # pixels
LEFT, RIGHT, TOP, BOTTOM = 60, 190, 80, 50  # margins; the legend stands in the right one
_COLOURS = {
    "heading": "#0072b2", "title": "#d55e00", "link": "#009e73", "paraphrase": "#cc79a7", "terms": "#e69f00",
    "name": "#56b4e9",
}  # fmt: skip  # Okabe and Ito's, which everybody can tell apart
_LINES = 5  # of the grid


class _Point(NamedTuple):
    """One setting on a curve: its value, the mean, and the 95 % interval."""

    x: float
    mean: float
    low: float
    high: float


class _Axis(NamedTuple):
    """Maps values onto pixels."""

    low: float
    high: float
    start: float
    end: float

    def at(self, value: float) -> float:
        """Return the pixel of a value."""
        return self.start + (value - self.low) / ((self.high - self.low) or 1.0) * (self.end - self.start)


def draw(tuning: Tuning) -> str:
    """Return the picture: by how much other values of a setting are better than the present one."""
    setting: SettingName = "vector_weight" if _values(tuning, "vector_weight") else "name_bonus"
    curves = {"": _points(tuning, setting, WITNESSES[setting])}
    curves |= {kind: points for kind in KINDS if (points := _points(tuning, setting, {kind}))}
    x = _Axis(*_reach([point.x for point in curves[""]]), LEFT, WIDTH - RIGHT)
    y = _Axis(*_reach([0.0, *(point.mean for points in curves.values() for point in points)]), HEIGHT - BOTTOM, TOP)
    parts = [*_frame(x, y, setting, tuning)]
    parts += [part for kind, points in curves.items() for part in _curve(kind, points, x, y)]
    place = f'viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {place}>'
    made_by = "<desc>drawn by whyrank</desc>"  # and so known as one that may be drawn over
    return "\n".join((head, made_by, f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>', *parts, "</svg>", ""))


def _values(tuning: Tuning, name: str) -> list[Choice]:
    """Return the choices that differ from the present one in this setting alone, by its value."""
    other = "name_bonus" if name == "vector_weight" else "vector_weight"
    along = [choice for choice in tuning.choices if getattr(choice, other) == getattr(tuning.present, other)]
    known = [choice for choice in along if getattr(choice, name) is not None]
    return sorted(known, key=lambda choice: getattr(choice, name)) if len(known) > 1 else []


def _points(tuning: Tuning, name: str, kinds: Collection[str]) -> list[_Point]:
    leads = tuning.leads(kinds)
    return [_Point(getattr(choice, name), *leads[choice]) for choice in _values(tuning, name) if choice in leads]


def _reach(values: Sequence[float]) -> tuple[float, float]:
    return (min(values), max(values)) if values else (0.0, 1.0)


def _frame(x: _Axis, y: _Axis, name: str, tuning: Tuning) -> Iterator[str]:
    yield f'<text x="{LEFT}" y="20" font-size="15">{tuning.decision}</text>'
    yield f'<text x="{LEFT}" y="38">{escape(tuning.reason)}</text>'
    for step in range(_LINES + 1):
        value = y.low + (y.high - y.low) * step / _LINES
        yield f'<line x1="{x.start}" x2="{x.end}" y1="{y.at(value):.1f}" y2="{y.at(value):.1f}" stroke="#ddd"/>'
        yield f'<text x="{LEFT - 8}" y="{y.at(value) + 4:.1f}" text-anchor="end">{value:+.3f}</text>'
    yield f'<line x1="{x.start}" x2="{x.end}" y1="{y.at(0):.1f}" y2="{y.at(0):.1f}" stroke="#333"/>'
    for choice in _values(tuning, name):
        value = getattr(choice, name)
        yield f'<text x="{x.at(value):.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{value:g}</text>'
    yield f'<text x="{(x.start + x.end) / 2}" y="{HEIGHT - 12}" text-anchor="middle">ranking.{name}</text>'
    yield f'<text x="{LEFT}" y="{TOP - 10}">nDCG@10 of made questions, against the present setting</text>'
    present = getattr(tuning.present, name)
    if present is not None:
        at = f"{x.at(present):.1f}"
        yield f'<line x1="{at}" x2="{at}" y1="{y.start}" y2="{y.end}" stroke="#333" stroke-dasharray="4 3"/>'


def _curve(kind: str, points: Sequence[_Point], x: _Axis, y: _Axis) -> Iterator[str]:
    colour, width = (_COLOURS[kind], 1.5) if kind else ("black", 3)
    line = " ".join(f"{x.at(point.x):.1f},{y.at(point.mean):.1f}" for point in points)
    if not kind:
        upper = [f"{x.at(point.x):.1f},{y.at(min(point.high, y.high)):.1f}" for point in points]
        lower = [f"{x.at(point.x):.1f},{y.at(max(point.low, y.low)):.1f}" for point in reversed(points)]
        yield f'<polygon points="{" ".join((*upper, *lower))}" fill="black" opacity="0.12"/>'
    yield f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="{width}"/>'
    at = f'x="{WIDTH - RIGHT + 12}" y="{TOP + 20 * ((KINDS.index(kind) + 1) if kind else 0) + 10}"'
    yield f'<text {at} fill="{colour}">{escape(kind or "witnesses, 95 % interval")}</text>'
