"""Verbs for those who come from another system: import its memories, compare its ranking."""

from __future__ import annotations

import json
import shutil
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...engine.export import FORMATS as OURS
from ...errors import ConfigError
from ...formatting import counted, on_one_line
from ...integrations.comparison import NEW, compare, policy_of
from ...integrations.importers import format_named, import_into
from .. import serialize
from ..errors import OK, PARTLY_READ
from . import output
from .output import settings_of
from .search import open_existing, writable

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from ...engine.export import Imported, SkippedRecord
    from ...integrations.comparison import ComparedHit, ComparedQuery, Policy
    from ...integrations.importers import ImportReport

_LINES_SHOWN = 20  # of each kind; --json has all


def import_memories(asked: argparse.Namespace) -> int:
    """Import the memories of an export, or of another system."""
    if asked.format in OURS:
        return _import_export(asked)
    format_named(asked.format)  # before a store is created
    with writable(asked) as engine, output.progress("import", quiet=asked.json) as tick:
        report = import_into(
            engine,
            asked.format,
            asked.path,
            scope=asked.scope or "global",
            dry_run=asked.dry_run,
            base=settings_of(asked).notes,
            progress=tick,
        )
    if asked.json:
        output.say_json(_as_data(report))
    else:
        _say_report(report)
    return OK if report.is_whole else PARTLY_READ.exit_status


def _import_export(asked: argparse.Namespace) -> int:
    """Import what `whyrank export` wrote."""
    if asked.scope is not None:
        raise ConfigError("--scope is given", "an export names the scope of every memory; leave it out")
    with writable(asked) as engine, output.progress("import", quiet=asked.json) as tick:
        done = engine.import_from(asked.format, asked.path, dry_run=asked.dry_run, progress=tick)
    if asked.json:
        data = {"new": done.new, "unchanged": done.unchanged, "pins": done.pins}
        output.say_json({**data, **_lists(done, "line"), "dry_run": done.dry_run})
    else:
        would = "would be " if done.dry_run else ""
        output.say(f"{_memories(done.new)} {would}imported, {done.unchanged:,} unchanged")
        if done.pins:
            output.say(f"{counted(done.pins, 'pin')} {would}imported")
        for what, lines in (("skipped", done.skipped), ("could not read", done.bad)):
            _complain(what, lines, "line ")
    return PARTLY_READ.exit_status if done.bad else OK


def _lists(done: Imported | ImportReport, place: str) -> dict[str, Any]:
    """Return what was skipped and what could not be read, with the line or place."""
    return {
        name: [{place: one.line, "id": one.id, "reason": one.reason} for one in getattr(done, name)]
        for name in ("skipped", "bad")
    }


def _as_data(report: ImportReport) -> dict[str, Any]:
    vectors = report.vectors
    return {
        "system": report.system,
        "new": report.new,
        "unchanged": report.unchanged,
        **_lists(report, "place"),
        "unknown_fields": dict(report.unknown),
        "settings": [{**one._asdict(), "becomes": dict(one.becomes)} for one in report.settings],
        "vectors": {"offered": vectors.offered, "taken": vectors.taken, "refused": dict(vectors.refused)},
        "remarks": [{"place": one.place, "remark": one.text} for one in report.remarks],
        "files": None if report.files is None else serialize.report(report.files),
        "dry_run": report.dry_run,
    }


def _say_report(report: ImportReport) -> None:
    would = "would be " if report.dry_run else ""
    if report.files is None:
        output.say(f"{_memories(report.new)} {would}imported, {report.unchanged:,} unchanged")
    else:
        output.show_ingest(report.files)
    _say_settings(report)
    _say_vectors(report)
    for field, count in report.unknown.items():
        output.complain(f"not read: the field {field} of {counted(count, 'record')}")
    for place, remark in report.remarks:
        output.complain(f"{place}: {remark}")
    for what, lines in (("skipped", report.skipped), ("could not read", report.bad)):
        _complain(what, lines)


def _say_settings(report: ImportReport) -> None:
    """Print what settings become, as lines for whyrank.toml; nothing is written."""
    mapped = [one for one in report.settings if one.becomes]
    if mapped:
        output.say("its settings, as `whyrank config KEY VALUE` or whyrank.toml would keep them (nothing was set):")
    for one in mapped:
        for key, value in one.becomes.items():
            output.say(f"  {key} = {json.dumps(value, ensure_ascii=False)}")
        output.say(f"    from {one.name}: {one.reason}")
    if others := [one.name for one in report.settings if not one.becomes]:
        output.say(f"without effect here: {', '.join(others)}")


def _say_vectors(report: ImportReport) -> None:
    vectors = report.vectors
    if vectors.taken:
        output.say(f"{counted(vectors.taken, 'vector')} taken over; the other texts were embedded here")
    for reason, count in vectors.refused.items():
        output.complain(f"{counted(count, 'vector')} not taken over: {reason}")


def _complain(what: str, lines: Sequence[SkippedRecord], before: str = "") -> None:
    """Print the first skipped or unreadable lines with their reason, and count the others."""
    for line, identity, reason in lines[:_LINES_SHOWN]:
        place = f"{line:,}" if isinstance(line, int) else line
        output.complain(f"{what} {before}{place}{f' ({identity})' if identity else ''}: {reason}")
    if len(lines) > _LINES_SHOWN:
        output.complain(f"{what} {len(lines) - _LINES_SHOWN:,} more lines (--json names all of them)")


def _memories(count: int) -> str:
    return counted(count, "memory", "memories")


_NARROWEST, _WIDEST = 60, 160  # columns of the table of a comparison
_LOST, _WON = "-", "+"


def compare_with(asked: argparse.Namespace) -> int:
    """Compare the ranking of another system with the default one on the user's questions."""
    policy = policy_of(asked.system, Path(asked.settings) if asked.settings else None)
    if asked.limit is not None and asked.limit < 1:
        raise ConfigError(f"--limit is {asked.limit}", "give 1 or more")
    queries = _queries_in(Path(asked.queries))
    with open_existing(asked) as engine, output.progress("compare", quiet=asked.json) as tick:
        done = []
        for one in compare(engine, queries, policy, limit=asked.limit, scope=asked.scope):
            done.append(one)
            tick(len(done), len(queries), one.query)
    lost = {"old": sum(_count_lost(one.new) for one in done), "new": sum(_count_lost(one.old) for one in done)}
    if asked.json:
        output.say_json({
            "system": asked.system,
            "recipes": {"old": policy.recipe.name, "new": NEW},
            "settings": [{**one._asdict(), "becomes": dict(one.becomes)} for one in policy.settings],
            "queries": [_compared(one) for one in done],
            "lost": lost,
        })  # fmt: skip
        return OK
    _say_compared(done, policy)
    output.say(
        f"{counted(len(done), 'question')}: {policy.recipe.name} does not show {counted(lost['old'], 'hit')} of {NEW} "
        f"({_WON}), {NEW} does not show {counted(lost['new'], 'hit')} of {policy.recipe.name} ({_LOST})"
    )
    return OK


def _queries_in(file: Path) -> list[str]:
    if not file.is_file():
        raise ConfigError(f"there is no file {file}", "name a file with one question per line")
    lines = file.read_text(encoding="utf-8-sig", errors="replace").splitlines()
    queries = [line.strip() for line in lines if line.strip()]
    if not queries:
        raise ConfigError(f"{file} holds no question", "write one question per line")
    return queries


def _count_lost(hits: Sequence[ComparedHit]) -> int:
    return sum(bool(hit.lost) for hit in hits)


def _compared(one: ComparedQuery) -> dict[str, Any]:
    return {"query": one.query, "verdict": one.verdict, "old": [*map(_hit, one.old)], "new": [*map(_hit, one.new)]}


def _hit(hit: ComparedHit) -> dict[str, Any]:
    place = serialize.location(hit.memory)
    told = {"id": hit.memory.id, **place, "title": hit.memory.title, "text": hit.memory.text}
    return {**told, "score": hit.score, "confidence": hit.confidence, "lost": hit.lost or None}


def _say_compared(done: Sequence[ComparedQuery], policy: Policy) -> None:
    """Print the hits of both side by side, and below them why a marked one is not shown by the other."""
    width = min(_WIDEST, max(_NARROWEST, shutil.get_terminal_size().columns)) // 2 - 2
    for one in done:
        output.say(output.bold(one.query))
        output.say(f"  {policy.recipe.name:{width}}  {NEW} (verdict: {one.verdict})")
        pairs = zip_longest(one.old, one.new)
        for rank, (old, new) in enumerate(pairs, 1):
            output.say(f"  {_cell(rank, old, _LOST, width):{width}}  {_cell(rank, new, _WON, width)}".rstrip())
        for mark, hits in ((_LOST, one.old), (_WON, one.new)):
            for rank, hit in enumerate(hits, 1):
                if hit.lost:
                    output.say(output.dim(f"    {mark}{rank}: {on_one_line(hit.lost)}"))
        output.say()


def _cell(rank: int, hit: ComparedHit | None, mark: str, width: int) -> str:
    if hit is None:
        return ""
    name = on_one_line(output.heading(hit.memory))
    sure = "    " if hit.confidence is None else f"{hit.confidence:4.0%}"
    cell = f"{mark if hit.lost else ' '}{rank:2}. {sure}  {name}"
    return cell if len(cell) <= width else f"{cell[: width - 1]}…"
