"""Files that verbs write: none over what whyrank did not write, and each named when it is there."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from ...errors import ConfigError
from ...pages.document import is_page
from . import output

_MADE_BY = b"whyrank"
_TAIL = 1_000_000  # bytes: the last line of an export is hardly ever longer
_LOOKED_AT = 2_000  # characters: what a file is stands at its beginning


def check_page(file: Path) -> None:
    """Refuse, before the work, a page that could not be written or would take the place of something else."""
    check(file, lambda: is_page(_beginning(file)), "a page that whyrank wrote")


def check_data(file: Path, kind: str, of: Callable[[Any], bool]) -> None:
    """Do the same for JSON, which tells by its fields what it is."""
    check(file, lambda: of(_data(file)), kind)


def check(file: Path, is_ours: Callable[[], bool], kind: str) -> None:
    """Do the same for whatever can tell what is its own."""
    if file.is_dir() or not file.absolute().parent.is_dir():
        raise ConfigError(f"{file} cannot be written", "name a file in a folder that is there")
    _try_to_write(file)
    if file.is_file() and file.stat().st_size and not is_ours():
        raise ConfigError(f"{file} is there already, and is not {kind}", "name another file, or move that one away")


def _try_to_write(file: Path) -> None:
    """Try it without a trace: what the rights of a folder come to, only the system knows."""
    try:
        if file.exists():
            file.open("ab").close()
        else:
            tempfile.TemporaryFile(dir=file.absolute().parent).close()
    except OSError as error:
        raise ConfigError(f"{file} cannot be written: {error.strerror}", "check the folder") from error


def check_picture(file: Path) -> None:
    """Do the same for a picture; those that whyrank draws name it."""
    check(file, lambda: _MADE_BY in file.read_bytes()[:_LOOKED_AT], "a picture that whyrank drew")


def check_run(file: Path) -> None:
    """Do the same for a TREC run, whose lines end with the name of who made it."""
    check(file, lambda: " whyrank-" in _beginning(file).partition("\n")[0], "a run that whyrank wrote")


def check_export(file: Path, scope: str | None) -> None:
    """Do the same for an export, which may take the place of one of the same scope; one of every scope of any."""
    if file.exists() and not file.is_file():
        return  # it is said of in its own words
    check(file, lambda: _is_export_of(scope, file), f"an export of {scope}" if scope else "an export")


def _is_export_of(scope: str | None, file: Path) -> bool:
    """Tell by the first line and the last: those of every scope stand in the order of their scopes."""
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
    """Name the files that were written, on standard error: pipes get the answer alone."""
    for file in files:
        output.complain(f"written: {file}")


def begins_with(file: Path, beginning: str) -> bool:
    """Tell whether a file begins so."""
    return _beginning(file).startswith(beginning)


def _beginning(file: Path) -> str:
    with file.open(encoding="utf-8", errors="replace") as lines:
        return lines.read(_LOOKED_AT)


def _data(file: Path) -> Any:
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except (ValueError, RecursionError):
        return None
