"""Facts from files on the command line: extracted, planned, and what was left out."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from ...access import served_llm
from ...arguments import scope_of
from ...errors import ProviderError
from ...extracting import check_workspace
from ...ingest.asked import Record
from ...ingest.extraction import Extraction, Unused
from ...ingest.globs import parsed
from ...wording import counted, on_one_line
from ..extraction import extraction, left_out
from ..failures import OK, PARTLY_READ, failure_of
from . import output
from .verbs import open_existing, settings_of, writable

_SHOWN = 20  # of each kind; all are in --json, and those left out are kept besides
_SHOWN_CHARACTERS = 160


def ingest_files(asked: argparse.Namespace) -> int:
    """Extract facts from files, or say what that would take, or what was left out before."""
    if asked.left_out:
        return _show_left_out(asked)
    _check(asked)
    # What stores nothing makes no store.
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
    """Refuse what cannot be done before a store is made for it."""
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


def _say_records(records: Sequence[Record]) -> None:
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
