"""The JSON shape of an extraction of facts, and of what was left out of one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..ingest.asked import Record
from ..ingest.extraction import Extraction, Learned
from .shapes import FORMAT, memory, moment


def extraction(done: Extraction) -> dict[str, Any]:
    """Return what an extraction did, or would do."""
    tokens = done.tokens
    return {
        "dry_run": done.dry_run,
        "plan": done.plan,
        "model": done.model or None,
        "files": done.files,
        "chunks": {
            "total": done.chunks,
            "done_before": done.done_before,
            "waiting": done.waiting,
            "asked": done.asked,
            "failed": len(done.failed),
            "left": done.left,
        },
        "calls": done.calls,
        "tokens": {"prompt": tokens.prompt, "completion": tokens.completion, "estimated": tokens.is_estimate},
        "estimated_tokens": done.estimated_tokens,
        "lines": {
            "total": done.lines,
            "stored": len(done.stored),
            "known": len(done.known),
            "refused": done.refused_lines,
        },
        "facts": [_learned(fact) for fact in done.stored],
        "known": [line._asdict() for line in done.known],
        "refused": [line._asdict() for line in done.refused],
        "failed": [part._asdict() for part in done.failed],
        "renewed": done.renewed,
        "fading": [memory(fact) for fact in done.fading],
        "skipped": [skipped._asdict() for skipped in done.skipped],
        "remarks": [{"path": path, "remark": remark} for path, remark in done.remarks],
        "stopped": done.stopped or None,
        "format": FORMAT,
    }


def left_out(records: Sequence[Record]) -> dict[str, Any]:
    """Return what earlier extractions did not store."""
    return {"chunks": [_record(record) for record in records], "format": FORMAT}


def _learned(fact: Learned) -> dict[str, Any]:
    return {**memory(fact.memory), "evidence": fact.evidence}


def _record(record: Record) -> dict[str, Any]:
    return {
        "path": record.path,
        "start_line": record.start_line,
        "end_line": record.end_line,
        "model": record.model,
        "outcome": record.outcome,
        "reason": record.reason,
        "at": moment(record.at),
        "lines": [line._asdict() for line in record.left_out],
        "more_lines": record.more_left_out,
    }
