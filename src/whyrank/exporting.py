"""Memories as lines of JSON that hold all there is to say of each, for erasure requests, backups and moves."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TextIO

from .errors import ConfigError
from .types import Former, Memory, Source

FORMAT = 1
_MOMENTS = ("created", "date", "valid_from", "valid_until", "expires", "superseded_at", "recalled")
_PLAIN = (
    "id", "kind", "text", "name", "title", "slug", "owner", "summary", "category", "importance", "decay",
    "expires_given", "evergreen", "supersedes", "superseded_by", "trust", "session", "speaker", "position", "recalls",
)  # fmt: skip
_LISTS = ("aliases", "headings", "tags", "entities")


def as_record(memory: Memory, formers: Sequence[Former] = ()) -> dict[str, Any]:
    """Return one memory with all its fields and its history; moments in ISO 8601, UTC, to the microsecond."""
    place = memory.source or Source("")
    return {
        **{name: getattr(memory, name) for name in _PLAIN},
        **{name: list(getattr(memory, name)) for name in _LISTS},
        **{name: exact_moment(getattr(memory, name)) for name in _MOMENTS},
        "scope": str(memory.scope),
        "path": place.path,
        "start_line": place.start_line,
        "end_line": place.end_line,
        "content_hash": place.content_hash,
        "history": [as_change(one) for one in formers],
        "format": FORMAT,
    }


def as_change(one: Former) -> dict[str, Any]:
    """Return one change: when it was, and what the changed fields were until then."""
    return {"changed": exact_moment(one.changed), "was": _dated(one.was)}


def _dated(was: Mapping[str, Any]) -> dict[str, Any]:
    return {name: exact_moment(value) if name in _MOMENTS else value for name, value in was.items()}


def exact_moment(seconds: float | None) -> str | float | None:
    """Return a moment in ISO 8601 to the microsecond; one that no calendar holds as the number it is."""
    if seconds is None:
        return None
    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
    except (OverflowError, ValueError, OSError):
        return seconds


def write_lines(out: TextIO, records: Iterable[Mapping[str, Any]]) -> int:
    """Write one record per line; return how many."""
    count = 0
    for record in records:
        out.write(json.dumps(record, ensure_ascii=False) + "\n")
        count += 1
    return count


@contextmanager
def written_whole(file: Path) -> Iterator[TextIO]:
    """Write a file beside its place, for its owner alone, and put it there when it is whole."""
    file = file.resolve()  # a link stays one, and leads to what was written
    if file.exists() and not file.is_file():
        raise ConfigError(f"{file} is no regular file", "name a file, or leave --out away to write to standard output")
    try:
        number, fresh = tempfile.mkstemp(prefix=f".{file.name}.", dir=file.parent)
    except OSError as error:
        raise ConfigError(f"{file} cannot be written: {error.strerror}", "check the folder") from error
    try:
        with os.fdopen(number, "w", encoding="utf-8") as out:
            yield out
            out.flush()
            os.fsync(out.fileno())
        os.replace(fresh, file)
    except BaseException as error:
        Path(fresh).unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise ConfigError(f"{file} cannot be written: {error.strerror}", "nothing is in its place") from error
        raise
