"""The contest as one self-contained page: goals, bars of every category, growth, and an earlier contest beside it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..pages.charts import Bar, Series, bars, lines
from ..pages.document import Section, facts, listing, notice, page, paragraph, table
from ..pages.markup import Markup, element, foreign, joined
from ..pages.scales import reaching, short
from ..wording import counted
from .contestant import OURS
from .goals import held_to
from .kept import KeptCategory, KeptContest, KeptLine, KeptRound
from .report import HOW, Table, about_machine, category_table, entrants_table, versions_of

_GROWING = ("hybrid", "keyword", "vector", "insert")
_MARKS = {"aim reached": "good", "must reached": "", "missed": "bad"}
_OURS, _THEIRS = 1, 6  # colours


def page_of(contest: KeptContest, earlier: KeptContest | None = None) -> str:
    """Return the page of a contest, beside an earlier one if there is one."""
    sections = [*_goals(contest), *_growth(contest), *_earlier(contest, earlier)]
    sections += [Section(f"{one.notes:,} notes", _round(one)) for one in contest.rounds]
    if contest.scopes:
        scopes = contest.scopes
        title = f"{counted(scopes.scopes, 'scope')} of {counted(scopes.memories, 'memory', 'memories')}"
        sections.append(Section(title, _category(scopes.category)))
    foot = "Made by whyrank bench. This page is one file: it fetches nothing and runs nothing."
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


def _bar(line: KeptLine, baseline: str) -> Bar:
    colour = _OURS if line.name == baseline else _THEIRS
    times = f" · {short(line.ratio.cpu)} ×" if line.ratio and line.name != baseline else ""
    return Bar(foreign(line.name), line.cpu.p50, line.cpu.p50, line.cpu.p95, colour, f"{short(line.cpu.p50)} ms{times}")


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
