"""Output of the verbs, and the settings they run with."""

from __future__ import annotations

import json
import os
import re
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...analysis.sanitize import visible, visible_json
from ...analysis.snippets import snippet
from ...config import load as settings
from ...formatting import counted, on_one_line
from ..errors import FORMAT
from ..serialize import UNREMARKABLE, moment

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from ...engine.records import Backlog, SpaceState
    from ...ingest.pipeline import Report
    from ...search.confidence import Calibration
    from ...types.memory import Memory, Notice
    from ...types.results import Hit, Results

_DROPPED_SHOWN = 10
_CALIBRATIONS_SHOWN = 10
_GLIMPSE = 60  # characters of a text, printed after its title
_UNDERLINES = ({"="}, {"-"})  # of setext headings
_BOLD, _DIM, _YELLOW, _RESET = "\x1b[1m", "\x1b[2m", "\x1b[33m", "\x1b[0m"
_STYLES = re.compile(r"(\x1b\[(?:0|1|2|33)m)")


def settings_of(asked: argparse.Namespace) -> settings.Config:
    """Return the settings for the arguments of this call."""
    store = None if asked.store is None else settings.store_setting(asked.store)
    given = {"store": store, "embedding": asked.embedding}
    return settings.load(given, workspace=Path(asked.workspace) if asked.workspace else None)


def coloured() -> bool:
    """Return whether the output may be coloured."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def say(text: str = "") -> None:
    """Print a line with control sequences made visible, except for whyrank's own styles."""
    print(_styled(text) if coloured() else visible(text))


def say_json(data: dict[str, Any]) -> None:
    """Print one JSON object with its format; control and hidden characters are written as JSON escapes."""
    told = {**data, "format": data.get("format", FORMAT)}
    print(visible_json(json.dumps(told, ensure_ascii=False, indent=2)))


def say_json_line(data: dict[str, Any]) -> None:
    """Print one JSON object on one line, at once: for verbs that go on."""
    print(visible_json(json.dumps({**data, "format": FORMAT}, ensure_ascii=False)), flush=True)


def complain(text: str) -> None:
    """Print one line to standard error; line breaks and control characters in it are escaped."""
    print(visible(on_one_line(text)), file=sys.stderr)


def _styled(text: str) -> str:
    """Replace every control sequence but those that make text bold, faint or coloured."""
    pieces = _STYLES.split(text)
    return "".join(piece if _STYLES.fullmatch(piece) else visible(piece) for piece in pieces)


def style(text: str, code: str) -> str:
    """Style text if the output may be coloured."""
    return f"{code}{text}{_RESET}" if coloured() else text


def bold(text: str) -> str:
    """Make text bold."""
    return style(text, _BOLD)


def dim(text: str) -> str:
    """Make text faint."""
    return style(text, _DIM)


def show_results(answer: Results, *, explain: bool, offset: int) -> None:
    """Print search results: the verdict unless it is `found`, then the hits, then the notices."""
    if answer.verdict == "nothing":
        say(style("Nothing relevant was found." + (" The nearest:" if answer.hits else ""), _YELLOW))
    elif answer.verdict == "weak":
        say(style("Only weak matches were found.", _YELLOW))
    for rank, hit in enumerate(answer.hits, offset + 1):
        _show_hit(rank, hit, answer.analysis.terms, explain)
    if explain and answer.dropped:
        _show_dropped(answer.dropped)
    show_notices(answer.notices)


def _show_dropped(dropped: Sequence[Hit]) -> None:
    best = sorted(dropped, key=lambda hit: (-hit.tier, -hit.score, hit.id))
    say(dim(f"{counted(len(dropped), 'further candidate')}, the best first:"))
    for hit in best[:_DROPPED_SHOWN]:
        say(dim(f"  {hit.score:.4f}  {place(hit.memory)}  {hit.id}  {hit.trail[-1].stage}: {hit.trail[-1].why}"))
    if len(best) > _DROPPED_SHOWN:
        say(dim("  … (all of them with --json)"))


def _show_hit(rank: int, hit: Hit, terms: tuple[str, ...], explain: bool) -> None:
    confidence = f"{hit.confidence:.0%}" if hit.confidence is not None else "–"
    say(f"{rank:>2}. {bold(heading(hit.memory))}  {dim(f'confidence {confidence} · score {hit.score:.3f}')}")
    day = (moment(hit.memory.date) or "")[:10]
    say("    " + dim(" · ".join(part for part in (place(hit.memory), day, hit.id) if part)))
    before, after = (_BOLD, _RESET) if coloured() else ("**", "**")
    say("    " + snippet(visible(hit.memory.text), terms).marked(before, after))
    if explain:
        for line in hit.explain().splitlines():
            say("      " + dim(line))
    say()


def heading(memory: Memory) -> str:
    """Return the display name of a memory: its title and last heading, else the beginning of its text."""
    last = memory.headings[-1] if memory.headings else ""
    called = " › ".join(dict.fromkeys(part for part in (memory.title, last) if part)) or memory.text[:60]
    return " ".join(visible(called).split())  # a name must not imitate a line of whyrank's own


def glimpse(memory: Memory) -> str:
    """Return the beginning of a memory after its headings; empty if that is already its display name."""
    if not (memory.title or memory.headings):
        return ""
    said = [line.strip() for line in memory.text.splitlines() if line.strip()]
    while said and said[0].startswith("#"):
        said = said[1:]
    if len(said) > 1 and set(said[1]) in _UNDERLINES:
        said = said[2:]
    begin = " ".join(visible(" ".join(said)[:_GLIMPSE]).split())
    return f"{begin}…" if len(" ".join(said)) > _GLIMPSE else begin


def place(memory: Memory) -> str:
    """Return the source of a memory on one line, whatever characters its path has."""
    if not memory.source or not memory.source.path:
        return f"{memory.kind} in {memory.scope}"
    return on_one_line(str(memory.source))


def show_ingest(report: Report) -> None:
    """Print the report of an ingest."""
    counts = [*report.files.items(), ("unchanged", report.unchanged)]
    files = ", ".join(f"{count} {action}" for action, count in counts if count) or "none found"
    would = "would be " if report.dry_run else ""
    say(f"files: {files}")
    embedded = "" if report.dry_run else f", {report.embedded} embedded"
    say(f"chunks: {report.chunks} {would}written, {report.removed} {would}removed{embedded}")
    if report.dry_run:
        for path, action in report.plans:
            before = f"  (was {on_one_line(report.renamed[path])})" if path in report.renamed else ""
            say(f"  {action:8} {on_one_line(path)}{before}")
    if report.without_vector:
        say(f"without a vector: {report.without_vector} (they can be found by words)")
    for path, reason, failed in report.skipped:
        complain(f"{'could not read' if failed else 'skipped'} {path}: {reason}")
    for path, remark in report.remarks:
        complain(f"{path}: {remark}")


def show_notices(notices: tuple[Notice, ...]) -> None:
    """Print the notices to standard error, so that a pipe gets the answer alone."""
    for notice in notices:
        if notice.code not in UNREMARKABLE:
            complain(f"notice: {notice.message}")


def show_calibrations(calibrations: Sequence[Calibration], now: float) -> None:
    """Print the calibrations, scope by scope."""
    if not calibrations:
        say("calibration: – (default thresholds; `whyrank calibrate` measures this store's own)")
    for made in calibrations[:_CALIBRATIONS_SHOWN]:
        bar = made.both or made.words
        limits = f"weak from {bar.weak:.2f}, found from {bar.found:.2f}"
        over = counted(made.memories, "memory", "memories")
        say(f"calibration: {' + '.join(made.scopes)}: {limits}; {over}, {_age(now - made.made)}")
    if len(calibrations) > _CALIBRATIONS_SHOWN:
        say(f"  … {len(calibrations) - _CALIBRATIONS_SHOWN} more (all of them with --json)")


def counts_in(table: Mapping[str, Any]) -> str:
    """Return the counts of a table by name; lists in it are shown by themselves."""
    return ", ".join(f"{name} {count}" for name, count in table.items() if not isinstance(count, list))


def show_replicas(replicas: Iterable[Mapping[str, Any]]) -> None:
    """Print the state of each replica of a server, and how far it is behind."""
    for one in replicas:
        lag = "" if one["behind_bytes"] is None else f", {one['behind_bytes']:,} bytes behind"
        lag += f" ({one['behind_seconds']} s)" if one["behind_bytes"] else ""
        say(on_one_line(f"replica {one['host']}: {one['state']}{lag}"))


def show_spaces(states: Sequence[SpaceState]) -> None:
    """Print the spaces of a store, each with its role and progress."""
    if not states:
        say("space: –")
    for state in states:
        waiting = f", {counted(state.waiting, 'memory waits', 'memories wait')} for one" if state.waiting else ""
        error = f": {state.error}" if state.error else ""
        about = f"{state.role}, {counted(state.vectors, 'vector')}{waiting}{error}"
        say(f"space: {state.name}  {dim(about)}")


def show_backlog(behind: Backlog) -> None:
    """Print the embedding backlog with its error, and the memories that never get a vector."""
    if behind.nowhere:
        told = f"{counted(behind.nowhere, 'memory', 'memories')} the model knows no part of"
        say(f"without a vector: {told} (words find {'it' if behind.nowhere == 1 else 'them'})")
    if not behind.waiting:
        return
    refused = f", {behind.refused} of them refused" if behind.refused else ""
    again = f"; next try {moment(behind.next_try)}" if behind.next_try is not None else ""
    why = f": {behind.error} (attempt {behind.attempts}{again})" if behind.error else ""
    say(f"waiting for a vector: {behind.waiting}{refused}{why}")


def _age(seconds: float) -> str:
    for unit, length in (("days", 86_400), ("hours", 3_600), ("minutes", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit} ago"
    return "just now"


@contextmanager
def progress(label: str, *, quiet: bool, unit: str = "") -> Iterator[Callable[[int, int, str], None]]:
    """Show a progress bar on a terminal; nothing in a pipe."""
    if quiet or not sys.stderr.isatty():
        yield lambda done, total, name: None
        return
    from tqdm import tqdm

    with tqdm(desc=label, unit=unit, unit_scale=bool(unit), leave=False, file=sys.stderr) as bar:

        def tick(done: int, total: int, name: str) -> None:
            bar.total = total
            bar.set_postfix_str(visible(on_one_line(name)[-40:]), refresh=False)
            bar.update(done - bar.n)

        yield tick
