"""Checks of output files before the work, and `whyrank ingest-files`."""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from ...engine.arguments import scope_of
from ...engine.engine import check_workspace
from ...engine.open import served_llm
from ...errors import ConfigError, ProviderError
from ...evaluation.report.html import is_page
from ...formatting import counted, on_one_line
from ...ingest.extraction.extractor import Extraction, Unused
from ...ingest.extraction.ledger import PartRecord
from ...ingest.walk import parsed
from ..errors import OK, PARTLY_READ, failure_of
from ..serialize import extraction, left_out
from . import output
from .search import open_existing, settings_of, writable

_MADE_BY = b"whyrank"
_TAIL = 1_000_000  # bytes: the last line of an export is hardly ever longer
_LOOKED_AT = 2_000  # characters: the type of a file shows at its beginning


def check_page(file: Path) -> None:
    """Refuse, before the work, an HTML page that cannot be written or would overwrite another file."""
    check(file, lambda: is_page(_beginning(file)), "a page that whyrank wrote")


def check_data(file: Path, kind: str, of: Callable[[Any], bool]) -> None:
    """Check a JSON file likewise; whyrank's own is recognized by its fields."""
    check(file, lambda: of(_data(file)), kind)


def check(file: Path, is_ours: Callable[[], bool], kind: str) -> None:
    """Refuse a path that cannot be written, or holds a file that `is_ours` does not recognize."""
    if file.is_dir() or not file.absolute().parent.is_dir():
        raise ConfigError(f"{file} cannot be written", "name a file in a folder that is there")
    _try_to_write(file)
    if file.is_file() and file.stat().st_size and not is_ours():
        raise ConfigError(f"{file} is there already, and is not {kind}", "name another file, or move that one away")


def _try_to_write(file: Path) -> None:
    """Try to write without leaving a trace: only the system knows the effective permissions."""
    try:
        if file.exists():
            file.open("ab").close()
        else:
            tempfile.TemporaryFile(dir=file.absolute().parent).close()
    except OSError as error:
        raise ConfigError(f"{file} cannot be written: {error.strerror}", "check the folder") from error


def check_picture(file: Path) -> None:
    """Check a picture likewise; those that whyrank draws contain its name."""
    check(file, lambda: _MADE_BY in file.read_bytes()[:_LOOKED_AT], "a picture that whyrank drew")


def check_run(file: Path) -> None:
    """Check a TREC run likewise; whyrank's own is recognized by the run name at the end of its lines."""
    check(file, lambda: " whyrank-" in _beginning(file).partition("\n")[0], "a run that whyrank wrote")


def check_export(file: Path, scope: str | None) -> None:
    """Check an export likewise; it may replace one of the same scope, or any if it is of all scopes."""
    if file.exists() and not file.is_file():
        return  # reported by the export itself
    check(file, lambda: _is_export_of(scope, file), f"an export of {scope}" if scope else "an export")


def _is_export_of(scope: str | None, file: Path) -> bool:
    """Return whether a file exports a scope, by its first and last line: exports are ordered by scope."""
    with file.open("rb") as lines:
        first = last = lines.readline()
        lines.seek(-min(file.stat().st_size, _TAIL), os.SEEK_END)
        for line in lines:
            last = line if line.strip() else last
    scopes = [_scope_of(first), _scope_of(last) if len(last) < _TAIL else scope]
    return None not in scopes[: 1 if scope is None else 2] and (scope is None or scopes == [scope, scope])


def _scope_of(line: bytes) -> object:
    """Return the scope of the memory or pin in a line of an export."""
    try:
        record = json.loads(line.decode("utf-8", errors="replace"))
    except (ValueError, RecursionError):
        return None
    return record.get("scope") if isinstance(record, dict) and ("history" in record or "pin" in record) else None


def tell_written(files: Iterable[Path | str]) -> None:
    """Print the written files to standard error, so that a pipe gets the answer alone."""
    for file in files:
        output.complain(f"written: {file}")


def begins_with(file: Path, beginning: str) -> bool:
    """Return whether a file begins with a text."""
    return _beginning(file).startswith(beginning)


def _beginning(file: Path) -> str:
    with file.open(encoding="utf-8", errors="replace") as lines:
        return lines.read(_LOOKED_AT)


def _data(file: Path) -> Any:
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except (ValueError, RecursionError):
        return None


_SHOWN = 20  # of each kind; --json has all, and left-out lines stay recorded
_SHOWN_CHARACTERS = 160


def ingest_files(asked: argparse.Namespace) -> int:
    """Extract facts from files, print the plan, or list lines left out before."""
    if asked.left_out:
        return _show_left_out(asked)
    _check(asked)
    # A run that stores nothing must not create a store.
    asked.dry_run = asked.dry_run or asked.plan
    with writable(asked) as engine, output.progress("ingest-files", quiet=asked.json) as tick:
        report = engine.ingest_files(
            asked.paths,
            scope=asked.scope,
            dry_run=asked.dry_run and not asked.plan,
            plan=asked.plan,
            base=settings_of(asked).notes,
            progress=tick,
        )
    if asked.json:
        output.say_json(extraction(report))
    else:
        _say(report)
    if report.stopped:
        return failure_of(ProviderError(report.stopped)).exit_status
    return PARTLY_READ.exit_status if report.unread or report.failed else OK


def _check(asked: argparse.Namespace) -> None:
    """Refuse invalid arguments before a store is created."""
    config = settings_of(asked)
    scope_of(asked.scope)
    parsed(config["ingest.paths"] if asked.paths is None else asked.paths)
    check_workspace(config.workspace)
    if not asked.plan:
        served_llm(config)


def _show_left_out(asked: argparse.Namespace) -> int:
    with open_existing(asked) as engine:
        records = engine.left_out(scope=asked.scope)
    if asked.json:
        output.say_json(left_out(records))
        return OK
    _say_records(records)
    return OK


def _say_records(records: Sequence[PartRecord]) -> None:
    if not records:
        output.say("nothing was left out")
    for record in records:
        how = f"failed: {record.reason}" if record.outcome == "failed" else "done"
        output.say(on_one_line(f"{record.path}:{record.start_line}-{record.end_line}  {how} ({record.model})"))
        for line, reason in record.left_out:
            output.say(f"  {line}\n    {reason}")
        if record.more_left_out:
            output.say(f"  … {counted(record.more_left_out, 'line')} more, not kept")


def _say(report: Extraction) -> None:
    output.say(f"files: {report.files}; chunks: {report.chunks}, {report.done_before} of them done before")
    if not report.files:
        output.complain("no file matches; --paths names others, --workspace another folder")
    if report.plan:
        output.say(f"would ask about {counted(report.waiting, 'chunk')}, some {report.estimated_tokens:,} tokens")
    elif report.waiting:
        _say_asked(report)
    _say_facts(report)
    _say_trouble(report)


def _say_asked(report: Extraction) -> None:
    tokens = report.tokens
    about = "about " if tokens.is_estimate else ""
    output.say(
        f"asked {report.model} about {report.asked} of {counted(report.waiting, 'chunk')} "
        f"in {counted(report.calls, 'call')}: "
        f"{about}{tokens.prompt:,} tokens sent, {about}{tokens.completion:,} received"
    )
    would = "would be " if report.dry_run else ""
    known = f"{len(report.known)} known already, {counted(report.refused_lines, 'line')} refused"
    output.say(f"facts: {len(report.stored)} {would}stored, {known}")


def _say_facts(report: Extraction) -> None:
    for learned in report.stored:
        output.say(f"  {output.place(learned.memory)}  {learned.memory.text}")
    if report.renewed:
        output.say(f"kept alive: {counted(report.renewed, 'fact')} whose text still stands")
    if report.fading:
        output.say(
            f"fading: {counted(len(report.fading), 'fact')} whose text is gone; `whyrank forget ID` removes one at once"
        )
        for memory in report.fading[:_SHOWN]:
            output.say(f"  {memory.id}  {output.place(memory)}  {memory.text}")


def _say_trouble(report: Extraction) -> None:
    _complain_of("known already", report.known)
    _complain_of("refused", report.refused)
    if not report.dry_run and (report.known or report.refused):
        output.complain("`whyrank ingest-files --left-out` prints all of these")
    for path, start, end, reason in report.failed[:_SHOWN]:
        output.complain(f"failed {path}:{start}-{end}: {reason}")
    for path, reason, failed in report.skipped:
        output.complain(f"{'could not read' if failed else 'skipped'} {path}: {reason}")
    for path, remark in report.remarks:
        output.complain(f"{path}: {remark}")
    if report.stopped:
        output.complain(f"stopped: {report.stopped}")
    if report.left and not report.plan and not report.dry_run:
        output.complain(f"{counted(report.left, 'chunk is', 'chunks are')} left; the same command goes on from there")


def _complain_of(what: str, lines: Sequence[Unused]) -> None:
    for path, start, end, line, reason in lines[:_SHOWN]:
        output.complain(f"{what} {path}:{start}-{end}: {line[:_SHOWN_CHARACTERS]}: {reason[:_SHOWN_CHARACTERS]}")
    if len(lines) > _SHOWN:
        output.complain(f"{what}: {counted(len(lines) - _SHOWN, 'line')} more")
