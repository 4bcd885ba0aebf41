"""The lines of a set: every measure, intervals, and the same by kind of query."""

from __future__ import annotations

from ...pages.charts import Bar, bars
from ...pages.document import table
from ...pages.markup import Markup, element, foreign, joined
from ...pages.scales import Axis
from ...wording import counted
from ..harness import CEILING
from ..kept import KeptQuery, KeptSet
from ..measures import MAIN, MEASURES
from ..significance import bootstrap, compare

_OURS, _OTHER, _CEILING = 1, 6, 3  # colours


def mean_of(one: KeptSet, line: str, measure: str = MAIN) -> float:
    """Return the mean of a measure of a line."""
    values = one.values(line, measure)
    return sum(values) / len(values)


def figures_part(one: KeptSet) -> Markup:
    """Return every line with every measure, and as bars."""
    names = [measure.name for measure in MEASURES]
    rows = [[_name(line), *(f"{mean_of(one, line, name):.3f}" for name in names), _interval(one, line)]
            for line in one.lines]  # fmt: skip
    strong = [place for place, line in enumerate(one.lines) if line == one.recipes[0]]
    caption = counted(len(one.queries), "query", "queries")
    head = ["", *names, f"95 % of {MAIN}"]
    return joined(table(head, rows, strong=strong, caption=caption), _bars(one), _standing(one))


def _interval(one: KeptSet, line: str) -> str:
    low, high = bootstrap(one.values(line))
    return f"{low:.3f}–{high:.3f}"


def _standing(one: KeptSet) -> Markup:
    """Return every other line against the first recipe; with the ceiling nobody competes."""
    rows: list[list[Markup | str]] = []
    for line in one.lines:
        if line not in (one.recipes[0], CEILING):
            found = compare(one.values(one.recipes[0]), one.values(line))
            counts = [f"{number:,}" for number in (found.better, found.worse, found.same)]
            rows.append([_name(line), f"{found.difference:+.4f}", *counts, f"{found.p:.4f}"])
    head = ["", "difference", "queries better", "worse", "same", "p"]
    return table(head, rows, caption=f"{MAIN} against {one.recipes[0]}, query by query")


def _bars(one: KeptSet) -> Markup:
    shown = []
    for line in one.lines:
        low, high = bootstrap(one.values(line))
        colour = _OURS if line in one.recipes else _CEILING if line == CEILING else _OTHER
        shown.append(Bar(_name(line), mean_of(one, line), low, high, colour, f"{mean_of(one, line):.3f}"))
    return bars(shown, Axis(MAIN, 0, 1), caption=f"{MAIN}, with its 95 % interval")


def kinds_part(one: KeptSet) -> Markup | None:
    """Return the first recipe by kind of query, beside every other line; nothing where there is one kind."""
    groups: dict[str, list[KeptQuery]] = {}
    for query in one.queries:
        groups.setdefault(query.kind, []).append(query)
    if len(groups) < 2:
        return None
    recipe = one.recipes[0]
    others = [line for line in one.lines if line != recipe]
    rows: list[list[Markup | str]] = []
    shown = []
    for kind, queries in sorted(groups.items()):
        values = [query.main(recipe) for query in queries]
        low, high = bootstrap(values)
        mean = sum(values) / len(values)
        rest = [f"{sum(query.main(line) for query in queries) / len(queries):.3f}" for line in others]
        rows.append([_name(kind), f"{len(queries):,}", f"{mean:.3f}", f"{low:.3f}–{high:.3f}", *rest])
        shown.append(Bar(_name(kind), mean, low, high, written=f"{mean:.3f}"))
    head = ["kind", "queries", recipe, "95 %", *others]
    return joined(
        element("h3", "By kind of query"),
        table(head, rows, caption=MAIN),
        bars(shown, Axis(MAIN, 0, 1), caption=f"{MAIN} of {recipe}, with its 95 % interval"),
    )


def _name(said: str) -> Markup:
    return foreign(said or "no kind")
