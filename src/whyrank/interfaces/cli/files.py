"""Checks of the files that verbs write, before the work: writable, and no other file in their place."""

from __future__ import annotations

import json
import os
import tempfile
from typing import TYPE_CHECKING, Any

from ...errors import ConfigError
from ...evaluation.report.html import is_page
from . import output

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

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
        raise ConfigError(f"{file} cannot be written", "name a file in an existing folder")
    _try_to_write(file)
    if file.is_file() and file.stat().st_size and not is_ours():
        raise ConfigError(f"{file} already exists and is not {kind}", "name another file, or move that one away")


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
