"""The outcome as tables: for the terminal, and for a page of its own with plots beside."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from whyrank.formatting import counted

if TYPE_CHECKING:
    from .results import Entrant, KeptCategory, KeptContest, KeptLine, KeptRound, Skipped

Table: TypeAlias = tuple[list[str], list[list[str]]]
Drawn: TypeAlias = Callable[[Table], Iterator[str]]
_NONE = "–"
HEADING = "# Benchmarks"
HOW = (
    "Milliseconds, median and 95th percentile. CPU is that of all threads of the process; the ratio is the median of a "
    "contestant's turns over the median of whyrank's in the same turns: above 1 it is slower than whyrank. "
    "recall@10 is the share of the exact ten nearest, found@10 that of questions whose own note is among the first ten."
)


def as_text(contest: KeptContest) -> str:
    """Return the tables as aligned columns."""
    return "\n".join(_sections(contest, _aligned)) + "\n"


def as_markdown(contest: KeptContest, plots: Sequence[str]) -> str:
    """Return the page: when and where, the tables, what was skipped, and the plots."""
    lines = [HEADING, "", f"Taken on {contest.date} by `python -m benchmarks`.", "", HOW, "", *_about(contest), ""]
    lines += [line for name in plots for line in (f"![{name}]({name}.svg)", "")]
    if not plots:
        lines += ["There are no plots, because matplotlib is not installed.", ""]
    return "\n".join([*lines, *_sections(contest, _piped)]) + "\n"


def about_machine(machine: Mapping[str, Any]) -> str:
    """Return where a contest was held."""
    return f"{machine['cpu']}, {machine['cores']} cores, {machine['system']}"


def versions_of(contest: KeptContest) -> list[str]:
    """Return who took part, in which version."""
    peers = {
        f"{name} {at}" for one in contest.rounds for entrant in one.entrants for name, at in entrant.versions.items()
    }
    return ["whyrank " + contest.machine["whyrank"], *sorted(peers)]


def _about(contest: KeptContest) -> Iterator[str]:
    machine, settings = contest.machine, contest.settings
    yield f"- Machine: {about_machine(machine)}"
    yield f"- Python {machine['python']}, numpy {machine['numpy']}, SQLite {machine['sqlite']}"
    yield f"- Contestants: {', '.join(versions_of(contest))}"
    yield (
        f"- Corpus: notes of about {settings['words']} words, seed {settings['seed']}; up to {settings['queries']} "
        f"questions, {settings['limit']} results each"
    )
    if not machine["one_thread"]:
        yield "- Numpy was loaded before its threads could be held to one"


def _sections(contest: KeptContest, drawn: Drawn) -> Iterator[str]:
    for one in contest.rounds:
        yield from (f"## {one.notes:,} notes", "")
        for category in one.categories:
            yield from (f"### {category.name}", "", *drawn(category_table(category)), "")
        yield from _special(one, drawn)
        yield from ("### building and opening", "", *drawn(entrants_table(one.entrants)), "")
        yield from _skipped(one.skipped)
    if contest.scopes:
        scopes = contest.scopes
        yield from (f"## {counted(scopes.scopes, 'scope')} of {counted(scopes.memories, 'memory', 'memories')}", "")
        yield from (*drawn(category_table(scopes.category)), "")


def _special(one: KeptRound, drawn: Drawn) -> Iterator[str]:
    if one.filtered:
        rows = [
            [category.name, *_figures(line), _share(line.recall)]
            for category in one.filtered
            for line in category.lines
        ]
        head = ["whyrank, vectors behind a filter", *_HEAD, "recall@10"]
        yield from ("### filtered vectors", "", *drawn((head, rows)), "")
    if one.ranking_share is not None:
        yield from (f"Ranking, with every trail, is {one.ranking_share:.0%} of a whyrank search.", "")


_HEAD = ["CPU p50", "CPU p95", "wall p50", "wall p95"]
_WORTH: tuple[tuple[str, Callable[[KeptLine], float | None]], ...] = (
    ("recall@10", lambda line: line.recall),
    ("found@10", lambda line: line.found),
)


def category_table(category: KeptCategory) -> Table:
    """Return what every contestant took in a category."""
    worth = [(title, of) for title, of in _WORTH if any(of(line) is not None for line in category.lines)]
    head = ["", *_HEAD, "ratio CPU", "ratio wall", "turns", *(title for title, _ in worth)]
    rows = [
        [
            line.name,
            *_figures(line),
            *_ratios(line),
            str(line.turns),
            *(_share(of(line)) for _, of in worth),
        ]
        for line in category.lines
    ]
    return head, rows


def _figures(line: KeptLine) -> list[str]:
    return [_number(value) for value in (*line.cpu, *line.wall)]


def _ratios(line: KeptLine) -> list[str]:
    return [_NONE, _NONE] if line.ratio is None else [_number(line.ratio.cpu), _number(line.ratio.wall)]


def entrants_table(entrants: Sequence[Entrant]) -> Table:
    """Return what building and opening took."""
    head = ["", "build CPU s", "build wall s", "disk MB", "import ms", "open ms", "first search ms", "peak RSS MB"]
    rows = [
        [
            entrant.name,
            *(_number(entrant.build.get(key)) for key in ("cpu_s", "wall_s", "disk_mb")),
            *(_number(entrant.cold.get(key)) for key in ("import_ms", "open_ms", "first_search_ms", "peak_mb")),
        ]
        for entrant in entrants
    ]
    return head, rows


def _skipped(skipped: Sequence[Skipped]) -> Iterator[str]:
    if skipped:
        yield from ("### skipped", "", *(f"- {skip.name}: {skip.reason}" for skip in skipped), "")


def _number(value: float | None) -> str:
    """Write three figures that count."""
    if value is None:
        return _NONE
    digits = 0 if value >= 100 else 1 if value >= 10 else 2 if value >= 0.1 else 3
    return f"{value:,.{digits}f}"


def _share(value: float | None) -> str:
    return _NONE if value is None else f"{value:.3f}"


def _aligned(table: Table) -> Iterator[str]:
    head, rows = table
    widths = [max(len(row[column]) for row in [head, *rows]) for column in range(len(head))]
    for row in [head, *rows]:
        cells = [cell.rjust(width) for cell, width in zip(row, widths, strict=True)]
        yield "  ".join([row[0].ljust(widths[0]), *cells[1:]]).rstrip()


def _piped(table: Table) -> Iterator[str]:
    head, rows = table
    yield f"| {' | '.join(head)} |"
    yield f"|{'|'.join(['---', *['---:'] * (len(head) - 1)])}|"
    yield from (f"| {' | '.join(row)} |" for row in rows)
