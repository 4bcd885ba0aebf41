"""HTML elements as values, and the page around them."""

from __future__ import annotations

import math
import re
from html import escape
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from ...errors import ConfigError, MissingExtra
from ..tuning import KINDS, WITNESSES, Choice, SettingName, Tuning

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from ..abstention import Abstention

_VOID = frozenset({"meta", "link", "br", "hr", "rect", "line", "circle", "path", "polyline", "polygon"})
_MARK = "\ufffd"  # replaces characters that must not be shown as they are

# Control characters and bidirectional overrides; invisible tag characters are removed.
_HARMLESS = {code: _MARK for code in (*range(0x20), 0x7F, *range(0x80, 0xA0)) if code not in (0x09, 0x0A)}
_HARMLESS |= dict.fromkeys((*range(0x202A, 0x202F), *range(0x2066, 0x206A)), _MARK)
_HARMLESS |= dict.fromkeys(range(0xD800, 0xE000), _MARK)  # lone surrogates, which no file could hold
_HARMLESS |= dict.fromkeys(range(0xE0000, 0xE0080), "")


class Markup(str):
    """Text that is HTML already and is not escaped again."""

    __slots__ = ()


Child: TypeAlias = "str | Markup | float | None"  # None is left out
Attribute: TypeAlias = "str | float | None"


def text(value: object) -> Markup:
    """Return a value as HTML text: escaped, without control or bidirectional characters."""
    return value if isinstance(value, Markup) else Markup(escape(str(value).translate(_HARMLESS), quote=True))


def element(tag: str, *children: Child, **attributes: Attribute) -> Markup:
    """Return an element; `class_` becomes class, `stroke_width` stroke-width, None is left out."""
    written = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{text(_number(value))}"'
        for name, value in attributes.items()
        if value is not None
    )
    if tag in _VOID and not children:
        return Markup(f"<{tag}{written}>" if tag in ("meta", "link", "br", "hr") else f"<{tag}{written}/>")
    return Markup(f"<{tag}{written}>{joined(*children)}</{tag}>")


def joined(*children: Child) -> Markup:
    """Return the concatenated children."""
    return Markup("".join(text(child) for child in children if child is not None))


def foreign(value: object) -> Markup:
    """Return text of foreign origin, isolated so that its writing direction stays its own."""
    return element("bdi", str(value))


def _number(value: Attribute) -> str:
    """Format a coordinate to a hundredth of a pixel."""
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)


SERIES = 8  # distinguishable colours; further lines are dashed


# No fetching and no scripts, whatever the text contains.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
_GUARD = element("meta", http_equiv="Content-Security-Policy", content=_POLICY)


class Section(NamedTuple):
    """A section of a page with a heading linked from the table of contents."""

    title: str
    body: Markup


def page(title: str, lead: Markup, sections: Sequence[Section], foot: str = "") -> str:
    """Return a complete, self-contained page."""
    places = _anchors([section.title for section in sections])
    contents = [element("li", element("a", one.title, href=f"#{at}")) for one, at in zip(sections, places, strict=True)]
    body = [
        element("section", element("h2", one.title), one.body, id=at) for one, at in zip(sections, places, strict=True)
    ]
    main = element(
        "main",
        element("h1", title),
        lead,
        element("nav", element("ul", *contents)) if len(sections) > 1 else None,
        *body,
        element("footer", foot) if foot else None,
    )
    head = element(
        "head",
        element("meta", charset="utf-8"),
        _GUARD,
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", title),
        element("link", rel="icon", href="data:,"),
        element("style", Markup(f"\n{_style()}")),
    )
    return f"<!doctype html>\n{element('html', head, element('body', main), lang='en')}\n"


def _style() -> str:
    colours = (f".f{n}{{fill:var(--s{n})}}.k{n}{{stroke:var(--s{n})}}" for n in range(SERIES))
    return Path(__file__).with_name("report.css").read_text(encoding="utf-8") + "".join(colours)


def is_page(beginning: str) -> bool:
    """Check by its beginning that a text is a page that this module made."""
    return beginning.startswith("<!doctype html>") and str(_GUARD) in beginning


def table(
    head: Sequence[Child],
    rows: Iterable[Sequence[Child]],
    *,
    words: int = 1,
    strong: Iterable[int] = (),
    caption: str = "",
) -> Markup:
    """Return a table: the first `words` columns are text, the others figures; strong rows stand out."""
    emphasised = frozenset(strong)
    top = [element("th", cell, scope="col", class_=None if at < words else "n") for at, cell in enumerate(head)]
    body = [
        element("tr", *_cells(row, words), class_="ours" if number in emphasised else None)
        for number, row in enumerate(rows)
    ]
    whole = element(
        "table",
        element("caption", caption) if caption else None,
        element("thead", element("tr", *top)),
        element("tbody", *body),
    )
    # Wide tables scroll by themselves; to be scrolled from the keyboard they must take the focus.
    return element("div", whole, class_="wide", tabindex="0", role="region", aria_label=caption or "table")


def _cells(row: Sequence[Child], words: int) -> Iterable[Markup]:
    yield element("th", row[0], scope="row") if words else element("td", row[0], class_="n")
    yield from (element("td", cell, class_="w" if at < words else "n") for at, cell in enumerate(row[1:], 1))


def facts(pairs: Mapping[str, Child]) -> Markup:
    """Return a definition list of names and values."""
    rows = (joined(element("dt", name), element("dd", value)) for name, value in pairs.items())
    return element("dl", *rows, class_="facts")


def paragraph(*children: Child, kind: str | None = None) -> Markup:
    """Return a paragraph; a kind is one of the classes dim, small, notice, good, bad, warn."""
    return element("p", *children, class_=kind)


def notice(*children: Child) -> Markup:
    """Return a highlighted notice."""
    return element("div", *children, class_="notice", role="note")


def folded(summary: Child, *body: Child, is_open: bool = False) -> Markup:
    """Return a collapsible block, closed by default."""
    return element("details", element("summary", summary), *body, open="" if is_open else None)


def listing(items: Iterable[Child]) -> Markup:
    """Return a list."""
    return element("ul", *(element("li", item) for item in items))


def preformatted(written: str) -> Markup:
    """Return preformatted text."""
    return element("pre", element("bdi", text(written)))


def _anchors(titles: Sequence[str]) -> list[str]:
    """Return a unique anchor for every title."""
    seen: dict[str, int] = {}
    places = []
    for title in titles:
        base = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-") or "part"
        seen[base] = seen.get(base, 0) + 1
        places.append(base if seen[base] == 1 else f"{base}-{seen[base]}-")
    return places


_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)  # times a power of ten: round tick steps
_WANTED_TICKS = 5


class Axis(NamedTuple):
    """An axis: its label and range."""

    label: str
    low: float
    high: float
    is_log: bool = False
    is_share: bool = False  # written in per cent

    def place(self, value: float) -> float:
        """Return the position of a value from 0 (low end) to 1 (high end), clamped to the edges."""
        low, high, at = (_log(v) if self.is_log else v for v in (self.low, self.high, value))
        return min(1.0, max(0.0, (at - low) / ((high - low) or 1.0)))

    def ticks(self) -> list[float]:
        """Return a few round values of the axis."""
        return _decades(self.low, self.high) if self.is_log else _round_steps(self.low, self.high)

    def written(self, value: float) -> str:
        """Format a value for this axis."""
        return f"{value:.0%}" if self.is_share else short(value)


def short(value: float) -> str:
    """Format a number with three significant digits and thousands separators."""
    if value == 0 or abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def reaching(label: str, values: list[float], *, is_log: bool = False) -> Axis:
    """Return an axis that holds all values with a margin; a linear one begins at zero or below."""
    known = [value for value in values if math.isfinite(value) and (value > 0 or not is_log)]
    if not known:
        return Axis(label, 0.1 if is_log else 0.0, 1.0, is_log)
    if is_log:
        return Axis(label, min(known) / 1.3, max(known) * 1.3, is_log=True)
    low, high = min(0.0, *known), max(0.0, *known)
    return Axis(label, low, high if high > low else low + 1.0)


def _log(value: float) -> float:
    return math.log10(max(value, 1e-12))


def _round_steps(low: float, high: float) -> list[float]:
    rough = (high - low) / _WANTED_TICKS
    if rough <= 0:
        return [low]
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(times * power for times in _STEPS if times * power >= rough - 1e-12 * power)
    first = math.ceil(low / step - 1e-9)
    return [round(number * step, 12) for number in range(first, math.floor(high / step + 1e-9) + 1)]


def _decades(low: float, high: float) -> list[float]:
    """Return 1, 10, 100 …; with 2 and 5 between where that leaves too few."""
    powers = range(math.floor(_log(low)), math.ceil(_log(high)) + 1)
    for times in ((1.0,), (1.0, 3.0), (1.0, 2.0, 5.0)):
        found = [t * 10.0**power for power in powers for t in times if low <= t * 10.0**power <= high]
        if len(found) >= 3:
            break
    return found


_WIDTH, _HEIGHT = 420.0, 280.0  # of the drawing; it is scaled to the page
_LEFT, _RIGHT, _TOP, _BOTTOM = 52.0, 18.0, 10.0, 42.0
_BAR = 100.0  # a bar's own width, stretched to the page


class ChartBar(NamedTuple):
    """One bar: its label, value, interval, colour, and the text behind it."""

    label: Child
    value: float
    low: float | None = None
    high: float | None = None
    colour: int = 1
    written: str = ""


class Series(NamedTuple):
    """One line: its name, its points, and the flag of the main line."""

    name: str
    points: Sequence[tuple[float, float]]
    is_strong: bool = False
    has_dots: bool = False


class Spot(NamedTuple):
    """A single point on a line, by the line's number."""

    x: float
    y: float
    series: int
    said: str


def bars(shown: Sequence[ChartBar], axis: Axis, *, caption: str, marks: Sequence[float] = ()) -> Markup:
    """Return a bar chart with labels, intervals and figures; marks are limits drawn across all bars."""
    rows = [part for bar in shown for part in _bar(bar, axis, marks)]
    return element("figure", element("figcaption", caption), element("div", *rows, class_="bars"))


def _bar(bar: ChartBar, axis: Axis, marks: Sequence[float]) -> Iterator[Markup]:
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
    """Return a line chart with a legend below; spots are single points of the lines."""
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
    """Return one bar per difference, up or down, in descending order."""
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
    """Return the CSS classes of a line's colour; when the colours repeat, dashes distinguish lines."""
    return f"k{number % SERIES}" + (f" d{min(2, number // SERIES)}" if number >= SERIES else "")


def _across(axis: Axis, value: float) -> float:
    return _LEFT + axis.place(value) * (_WIDTH - _LEFT - _RIGHT)


def _up(axis: Axis, value: float) -> float:
    return _HEIGHT - _BOTTOM - axis.place(value) * (_HEIGHT - _BOTTOM - _TOP)


WIDTH, HEIGHT = 760, 440  # pixels
LEFT, RIGHT, TOP, BOTTOM = 60, 190, 80, 50  # margins; the legend stands in the right one
_COLOURS = {
    "heading": "#0072b2", "title": "#d55e00", "link": "#009e73", "paraphrase": "#cc79a7", "terms": "#e69f00",
    "name": "#56b4e9",
}  # fmt: skip  # Okabe and Ito: safe for colour blindness
_LINES = 5  # of the grid


class _Point(NamedTuple):
    """One setting on a curve: its value, the mean, and the 95 % interval."""

    x: float
    mean: float
    low: float
    high: float


class _Axis(NamedTuple):
    """Linear scale from values to pixels."""

    low: float
    high: float
    start: float
    end: float

    def at(self, value: float) -> float:
        """Return the pixel of a value."""
        return self.start + (value - self.low) / ((self.high - self.low) or 1.0) * (self.end - self.start)


def draw_curves(tuning: Tuning) -> str:
    """Return the SVG chart of the gains of a setting's other values over the present one."""
    setting: SettingName = "vector_weight" if _values(tuning, "vector_weight") else "name_bonus"
    curves = {"": _points(tuning, setting, WITNESSES[setting])}
    curves |= {kind: points for kind in KINDS if (points := _points(tuning, setting, {kind}))}
    x = _Axis(*_reach([point.x for point in curves[""]]), LEFT, WIDTH - RIGHT)
    y = _Axis(*_reach([0.0, *(point.mean for points in curves.values() for point in points)]), HEIGHT - BOTTOM, TOP)
    parts = [*_curve_frame(x, y, setting, tuning)]
    parts += [part for kind, points in curves.items() for part in _curve(kind, points, x, y)]
    place = f'viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {place}>'
    made_by = "<desc>drawn by whyrank</desc>"  # marks the file as one that may be overwritten
    return "\n".join((head, made_by, f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>', *parts, "</svg>", ""))


def _values(tuning: Tuning, name: str) -> list[Choice]:
    """Return the choices that differ from the present one in this setting alone, sorted by its value."""
    other = "name_bonus" if name == "vector_weight" else "vector_weight"
    along = [choice for choice in tuning.choices if getattr(choice, other) == getattr(tuning.present, other)]
    known = [choice for choice in along if getattr(choice, name) is not None]
    return sorted(known, key=lambda choice: getattr(choice, name)) if len(known) > 1 else []


def _points(tuning: Tuning, name: str, kinds: Collection[str]) -> list[_Point]:
    leads = tuning.leads(kinds)
    return [_Point(getattr(choice, name), *leads[choice]) for choice in _values(tuning, name) if choice in leads]


def _reach(values: Sequence[float]) -> tuple[float, float]:
    return (min(values), max(values)) if values else (0.0, 1.0)


def _curve_frame(x: _Axis, y: _Axis, name: str, tuning: Tuning) -> Iterator[str]:
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


FORMATS = (".png", ".svg")


def check_drawable(file: Path) -> None:
    """Refuse a file that could not be drawn, before the measurement runs."""
    if file.suffix.lower() not in FORMATS:
        raise ConfigError(f"{file} is neither .png nor .svg", "name a file with one of these endings")
    if find_spec("matplotlib") is None:
        raise MissingExtra("plots need matplotlib", "pip install matplotlib")


def draw_plot(measured: Abstention, file: Path) -> None:
    """Write one plot: a line per kind of unanswerable query, a cross at the verdict."""
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "whyrank"  # the same figures give the same file
    from matplotlib import pyplot

    figure, (shares, risks) = pyplot.subplots(1, 2, figsize=(11, 5), layout="constrained")
    _fill(shares, risks, measured)
    figure.suptitle(measured.set_name)
    is_svg = file.suffix.lower() == ".svg"
    # The creator marks a picture as one that may be overwritten.
    made_by = {"Creator": "whyrank", "Date": None} if is_svg else {"Software": "whyrank"}
    try:
        figure.savefig(file, metadata=made_by)
    except OSError as error:
        raise ConfigError(f"{file} cannot be written: {error.strerror}", "check the folder") from error
    finally:
        pyplot.close(figure)


def _fill(shares: Any, risks: Any, measured: Abstention) -> None:
    for side in measured.sides:
        points = side.curve()
        [line] = shares.plot([p.rejected for p in points], [p.kept for p in points], label=side.name)
        risks.plot([p.coverage for p in points], [p.risk for p in points], color=line.get_color())
        own, other = side.verdicts
        shares.plot([1 - other.kept], [own.kept], marker="x", color=line.get_color())
    shares.set(xlabel="unanswerable rejected", ylabel="answerable kept", xlim=(0, 1.01), ylim=(0, 1.01))
    risks.set(xlabel="answered, of all", ylabel="risk: no answer among those", xlim=(0, 1.01), ylim=(0, 0.51))
    for axes in (shares, risks):
        axes.grid(alpha=0.25)
    shares.legend(fontsize="small", loc="lower left")
