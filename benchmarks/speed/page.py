"""The folder of a contest: its data, its plots, and a page with goals, bars, growth and an earlier contest beside."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from whyrank.evaluation.report.html import (
    ChartBar,
    Markup,
    Section,
    Series,
    bars,
    element,
    facts,
    foreign,
    joined,
    lines,
    listing,
    notice,
    page,
    paragraph,
    reaching,
    short,
    table,
)
from whyrank.formatting import counted

from .peers import OURS, SHARED
from .report import HOW, Table, about_machine, as_markdown, category_table, entrants_table, versions_of
from .results import KeptCategory, KeptContest, KeptLine, KeptRound, kept_from

if TYPE_CHECKING:
    from pathlib import Path

DATA, PAGE, INDEX = "results.json", "page.html", "index.md"
DRAWN = ("hybrid", "keyword")
PICTURES = ("png", "svg")
_Points: TypeAlias = dict[str, list[tuple[int, float]]]  # size and milliseconds, by contestant
_GROWING = ("hybrid", "keyword", "vector", "insert")
_MARKS = {"aim reached": "good", "must reached": "", "missed": "bad"}
_OURS, _THEIRS = 1, 6  # colours


def write_folder(data: dict[str, Any], folder: Path, earlier: KeptContest | None = None) -> list[Path]:
    """Write the data, the pages made of it and the plots into a folder; return the files."""
    folder.mkdir(parents=True, exist_ok=True)
    contest = kept_from(data)
    plots = draw(contest, folder)
    texts = {
        DATA: json.dumps(data, ensure_ascii=False, indent=2) + "\n",
        INDEX: as_markdown(contest, plots),
        PAGE: page_of(contest, earlier),
    }
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    return [folder / name for name in (*texts, *(f"{plot}.{ending}" for plot in plots for ending in PICTURES))]


def page_of(contest: KeptContest, earlier: KeptContest | None = None) -> str:
    """Return the page of a contest, beside an earlier one if there is one."""
    sections = [*_goals(contest), *_growth(contest), *_earlier(contest, earlier)]
    sections += [Section(f"{one.notes:,} notes", _round(one)) for one in contest.rounds]
    if contest.scopes:
        scopes = contest.scopes
        title = f"{counted(scopes.scopes, 'scope')} of {counted(scopes.memories, 'memory', 'memories')}"
        sections.append(Section(title, _category(scopes.category)))
    foot = "Made by python -m benchmarks. This page is one file: it fetches nothing and runs nothing."
    return page("How fast it is, beside what else there is", _lead(contest), sections, foot)


def _lead(contest: KeptContest) -> Markup:
    machine, settings = contest.machine, contest.settings
    told = {
        "taken on": contest.date,
        "machine": about_machine(machine),
        "software": f"Python {machine['python']}, numpy {machine['numpy']}, SQLite {machine['sqlite']}",
        "contestants": ", ".join(versions_of(contest)),
        "corpus": f"notes of about {settings['words']} words, seed {settings['seed']}; up to {settings['queries']} "
        f"questions, {settings['limit']} results each",
    }
    return joined(facts({name: foreign(said) for name, said in told.items()}), paragraph(HOW, kind="dim small"))


def _goals(contest: KeptContest) -> Iterator[Section]:
    held = held_to(contest)
    if not held:
        return
    rows = []
    for goal, value, standing in sorted(held, key=lambda one: one.standing != "missed"):
        sign = "≤" if goal.is_most else "≥"
        mark = element("span", standing, class_=_MARKS[standing] or None)
        limits = f"{sign} {short(goal.must)}", f"{sign} {short(goal.aim)}"
        rows.append([goal.name, f"{goal.notes:,}", short(value), *limits, mark])
    reached = sum(one.standing != "missed" for one in held)
    said = (
        f"{reached} of {len(held)} limits that must be kept are kept; what is missed stands first. "
        "A / B is the CPU A takes over the CPU B takes."
    )
    head = ["", "notes", "measured", "must", "aim", "standing"]
    yield Section("What it holds itself to", joined(paragraph(said), table(head, rows)))


def _growth(contest: KeptContest) -> Iterator[Section]:
    if len(contest.rounds) < 2:
        return
    parts = []
    for name in _GROWING:
        found = _points(contest, name)
        series = [Series(who, points, who == OURS, has_dots=True) for who, points in found.items() if len(points) > 1]
        if series:
            x = reaching("notes", [at for one in series for at, _ in one.points], is_log=True)
            y = reaching("CPU ms, median", [value for one in series for _, value in one.points], is_log=True)
            parts.append(lines(series, x, y, caption=f"{name}: both axes by powers of ten"))
    yield Section("How it grows", joined(*parts))


def _points(contest: KeptContest, name: str) -> dict[str, list[tuple[float, float]]]:
    found: dict[str, list[tuple[float, float]]] = {}
    for one in contest.rounds:
        category = one.category(name)
        for line in category.lines if category else ():
            found.setdefault(line.name, []).append((float(one.notes), line.cpu.p50))
    return dict(sorted(found.items(), key=lambda item: item[0] != OURS))


def _round(one: KeptRound) -> Markup:
    parts = [joined(element("h3", category.name), _category(category)) for category in one.categories]
    parts += [_filtered(one.filtered)] if one.filtered else []
    if one.ranking_share is not None:
        parts.append(paragraph(f"Ranking, with every trail, is {one.ranking_share:.0%} of a whyrank search."))
    parts += [element("h3", "building and opening"), _table(entrants_table(one.entrants), OURS)]
    if one.skipped:
        parts += [element("h3", "skipped"), listing(foreign(f"{who}: {why}") for who, why in one.skipped)]
    return joined(*parts)


def _category(category: KeptCategory) -> Markup:
    ordered = sorted(category.lines, key=lambda line: line.cpu.p50)
    axis = reaching("CPU ms", [value for line in ordered for value in line.cpu], is_log=True)
    drawn = bars(
        [_bar(line, category.baseline) for line in ordered],
        axis,
        caption="CPU milliseconds, the fastest first; the line ends where 95 of 100 turns do; by powers of ten",
    )
    return joined(drawn, _table(category_table(category), category.baseline))


def _bar(line: KeptLine, baseline: str) -> ChartBar:
    colour = _OURS if line.name == baseline else _THEIRS
    times = f" · {short(line.ratio.cpu)} ×" if line.ratio and line.name != baseline else ""
    return ChartBar(
        foreign(line.name), line.cpu.p50, line.cpu.p50, line.cpu.p95, colour, f"{short(line.cpu.p50)} ms{times}"
    )


def _filtered(filtered: Sequence[KeptCategory]) -> Markup:
    rows = [
        [category.name, short(line.cpu.p50), short(line.cpu.p95), "–" if line.recall is None else f"{line.recall:.3f}"]
        for category in filtered
        for line in category.lines
    ]
    head = ["whyrank, vectors behind a filter", "CPU p50", "CPU p95", "recall@10"]
    return joined(element("h3", "filtered vectors"), table(head, rows))


def _table(made: Table, strong: str) -> Markup:
    head, rows = made
    emphasised = [number for number, row in enumerate(rows) if row[0] == strong]
    return table(head, [[foreign(row[0]), *row[1:]] for row in rows], strong=emphasised)


def _earlier(contest: KeptContest, earlier: KeptContest | None) -> Iterator[Section]:
    """Compare by ratios, which hold on another machine too; milliseconds stand beside."""
    if earlier is None:
        return
    rows: list[list[str | Markup]] = []
    for now, then, size, name in _met(contest, earlier):
        if now.ratio and then.ratio:
            figures = [then.cpu.p50, now.cpu.p50, then.ratio.cpu, now.ratio.cpu]
            grown = short(now.ratio.cpu / then.ratio.cpu) if then.ratio.cpu else "–"  # less than the clock can tell
            rows.append([f"{size:,} {name}", foreign(now.name), *map(short, figures), grown])
    head = ["", "contestant", "CPU ms then", "now", "times whyrank's then", "now", "now / then"]
    remarks = list(_remarks(contest, earlier))
    yield Section(
        f"Against {earlier.date}",
        joined(
            paragraph("A ratio that grew means that whyrank gained on that contestant, or that it lost."),
            notice("Mind:", listing(map(foreign, remarks))) if remarks else None,
            table(head, rows, words=2)
            if rows
            else paragraph("Nothing can be compared: no size and category is in both."),
        ),
    )


def _met(contest: KeptContest, earlier: KeptContest) -> Iterator[tuple[KeptLine, KeptLine, int, str]]:
    """Return the lines both contests have, with their size and category."""
    for one in contest.rounds:
        before = earlier.round_of(one.notes)
        for category in one.categories if before else ():
            old = before.category(category.name) if before else None
            for line in category.lines if old else ():
                then = old.line(line.name) if old else None
                if then:
                    yield line, then, one.notes, category.name


def _remarks(contest: KeptContest, earlier: KeptContest) -> Iterator[str]:
    for key in ("cpu", "cores", "system", "python", "numpy", "sqlite", "whyrank"):
        if contest.machine[key] != earlier.machine[key]:
            yield f"{key} was {earlier.machine[key]} and is {contest.machine[key]}"
    for key in ("words", "seed", "limit"):
        if contest.settings[key] != earlier.settings[key]:
            yield f"{key} was {earlier.settings[key]} and is {contest.settings[key]}: the work is another"
    then, now = set(versions_of(earlier)), set(versions_of(contest))
    if then != now:
        changed = ", ".join(sorted(then ^ now))
        yield f"contestants differ: {changed}"
    sizes = sorted({one.notes for one in contest.rounds} ^ {one.notes for one in earlier.rounds})
    if sizes:
        yield f"only one side has {', '.join(f'{size:,}' for size in sizes)} notes"


# -- what whyrank holds itself to: for each figure what it must reach, and what it aims at ----------------------

Standing = Literal["aim reached", "must reached", "missed"]
_K, _M = 1_000, 1_000_000


class Goal(NamedTuple):
    """One figure and its limits: at least so much, or at most where `is_most`. `A / B` is A's CPU over B's."""

    name: str
    must: float
    aim: float
    is_most: bool = False
    notes: int = 0

    def standing(self, value: float) -> Standing:
        """Tell how far a figure gets."""
        sign = -1 if self.is_most else 1
        if sign * value >= sign * self.aim:
            return "aim reached"
        return "must reached" if sign * value >= sign * self.must else "missed"


class Held(NamedTuple):
    """A goal and the figure that was measured."""

    goal: Goal
    value: float
    standing: Standing


_Figure: TypeAlias = Callable[[KeptRound], float | None]


def held_to(contest: KeptContest) -> list[Held]:
    """Return every goal the contest says something about."""
    measured = [*_of_rounds(contest), *_of_scopes(contest)]
    return [Held(goal, value, goal.standing(value)) for goal, value in measured]


def _of_rounds(contest: KeptContest) -> Iterator[tuple[Goal, float]]:
    for notes, goal, figure in _GOALS:
        one = contest.round_of(notes)
        value = figure(one) if one else None
        if value is not None:
            yield goal._replace(notes=notes), value


def _of_scopes(contest: KeptContest) -> Iterator[tuple[Goal, float]]:
    line = contest.scopes.category.line(SHARED) if contest.scopes else None
    if contest.scopes and line and line.ratio:
        name = f"search in one scope of {contest.scopes.scopes:,} / in a store of its own"
        yield Goal(name, 1.5, 1.1, is_most=True, notes=contest.scopes.memories), line.ratio.cpu


def _slower(category: str, peer: str) -> _Figure:
    """Return how many times whyrank's CPU a peer takes."""

    def of(one: KeptRound) -> float | None:
        found = one.category(category)
        line = found.line(peer) if found else None
        return line.ratio.cpu if line and line.ratio else None

    return of


def _faster(category: str, peer: str) -> _Figure:
    """Return how many times a peer's CPU whyrank takes."""

    def of(one: KeptRound) -> float | None:
        ratio = _slower(category, peer)(one)
        return 1 / ratio if ratio else None

    return of


def _recall(one: KeptRound) -> float | None:
    found = one.category("vector")
    line = found.line(OURS) if found else None
    return line.recall if line else None


def _worst_filtered(one: KeptRound) -> float | None:
    recalls = [line.recall for category in one.filtered for line in category.lines if line.recall is not None]
    return min(recalls, default=None)


def _peak(one: KeptRound) -> float | None:
    ours = one.entrant(OURS)
    return ours.cold.get("peak_mb") if ours else None


_USUAL = "search: FTS5 + numpy / whyrank"
_WORDS = "words: FTS5 / whyrank"
_GOALS: tuple[tuple[int, Goal, _Figure], ...] = (
    *((notes, Goal(_USUAL, must, aim), _slower("hybrid", "fts5+numpy"))
      for notes, must, aim in ((10 * _K, 4, 12), (100 * _K, 20, 60), (_M, 40, 100))),
    (100 * _K, Goal("search: LanceDB / whyrank", 2, 5), _slower("hybrid", "lancedb")),
    (10 * _K, Goal("search: Chroma / whyrank", 5, 20), _slower("hybrid", "chroma")),
    (10 * _K, Goal("search: txtai / whyrank", 3, 10), _slower("hybrid", "txtai")),
    (10 * _K, Goal("search: whyrank / qdrant-edge", 12, 4, is_most=True),
     _faster("hybrid", "qdrant-edge")),
    *((notes, Goal(_WORDS, must, aim), _slower("keyword", "fts5+numpy"))
      for notes, must, aim in ((10 * _K, 15, 30), (100 * _K, 60, 130), (_M, 80, 300))),
    (100 * _K, Goal("words: FTS5 without stop words / whyrank", 10, 20),
     _slower("keyword", "fts5 without stop words")),
    (100 * _K, Goal("words: whyrank / tantivy", 1.5, 0.8, is_most=True),
     _faster("keyword", "tantivy")),
    (10 * _K, Goal("a new memory: whyrank / a bare SQLite row", 2, 1.3, is_most=True),
     _faster("insert", "sqlite insert")),
    *((notes, Goal("recall@10 of vectors", 0.99, 0.999), _recall) for notes in (10 * _K, 100 * _K, _M)),
    *((notes, Goal("recall@10 behind a filter, the worst", 0.99, 0.999), _worst_filtered)
      for notes in (10 * _K, 100 * _K, _M)),
    (10 * _K, Goal("ranking and trails, share of a search", 0.25, 0.10, is_most=True),
     lambda one: one.ranking_share),
    (100 * _K, Goal("memory at its peak, MB", 250, 120, is_most=True), _peak),
)  # fmt: skip


# -- plots: how the time of a question grows with the notes -----------------------------------------------------


def draw(contest: KeptContest, folder: Path) -> list[str]:
    """Write a PNG and an SVG for each drawn category; return their names, none without matplotlib."""
    if find_spec("matplotlib") is None:
        return []
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = OURS  # the same figures give the same file
    from matplotlib import pyplot

    drawn = {name: points for name in DRAWN if (points := _plotted(contest, name))}
    for name, points in drawn.items():
        figure, axes = pyplot.subplots(figsize=(8, 5), layout="constrained")
        _fill(axes, name, points)
        for ending in PICTURES:
            figure.savefig(folder / f"{name}.{ending}", metadata={"Date": None} if ending == "svg" else None)
        pyplot.close(figure)
    return list(drawn)


def _fill(axes: Any, name: str, points: _Points) -> None:
    for contestant, places in points.items():
        sizes, medians = zip(*places, strict=True)
        ours = {"color": "black", "linewidth": 3, "zorder": 3} if contestant == OURS else {"linewidth": 1.2}
        axes.plot(sizes, medians, marker="o", label=contestant, **ours)
    axes.set(xscale="log", yscale="log", xlabel="notes", ylabel="CPU ms, median of the questions", title=name)
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.yaxis.set_major_formatter("{x:g}")
    axes.grid(which="both", alpha=0.25)
    axes.legend(fontsize="small", loc="center left", bbox_to_anchor=(1, 0.5))


def _plotted(contest: KeptContest, name: str) -> _Points:
    points: _Points = {}
    for one in contest.rounds:
        category = one.category(name)
        for line in category.lines if category else ():
            points.setdefault(line.name, []).append((one.notes, line.cpu.p50))
    return points
