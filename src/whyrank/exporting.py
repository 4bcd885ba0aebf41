"""Memories as lines of JSON that hold all there is to say of each, for erasure requests, backups and moves."""

from __future__ import annotations

import json
import math
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple, TextIO

from .errors import ConfigError
from .evaluation.pins import Pin, from_line, to_line
from .ports import FileRecord
from .types import KINDS, TRUSTS, Former, Memory, Scope, Source

FORMAT = 1
_MOMENTS = ("created", "date", "valid_from", "valid_until", "expires", "superseded_at", "recalled")
_PLAIN = (
    "id", "kind", "text", "name", "title", "slug", "owner", "summary", "category", "importance", "decay",
    "expires_given", "evergreen", "supersedes", "superseded_by", "trust", "session", "speaker", "position", "recalls",
)  # fmt: skip
_LISTS = ("aliases", "headings", "tags", "entities")
_PLACE = ("path", "start_line", "end_line", "content_hash")
_FILE = ("size", "mtime_ns", "content_hash")
_DEFAULTS = {one.name: one.default for one in fields(Memory)}
_WHOLE_BITS = 63  # of a number that a store can keep


class Record(NamedTuple):
    """All there is to say of one memory: what it was, the keys it was written with, the file it was read from."""

    memory: Memory
    formers: Sequence[Former] = ()
    keys: Mapping[str, str] = {}  # fingerprints of what was asked to be written, by key
    file: FileRecord | None = None


# -- writing ---------------------------------------------------------------------------------------------------------


def as_record(one: Record) -> dict[str, Any]:
    """Return one memory with all its fields and its history; moments in ISO 8601, UTC, to the microsecond.

    What a store knows to a finer part of a second stands under `exact`, in seconds since 1970.
    """
    memory, formers, keys, file = one
    place = memory.source or Source("")
    exact = _exact({name: getattr(memory, name) for name in _MOMENTS})
    return {
        **{name: getattr(memory, name) for name in _PLAIN},
        **{name: list(getattr(memory, name)) for name in _LISTS},
        **{name: exact_moment(getattr(memory, name)) for name in _MOMENTS},
        "scope": str(memory.scope),
        "path": place.path,
        "start_line": place.start_line,
        "end_line": place.end_line,
        "content_hash": place.content_hash,
        "history": [{**as_change(former), **_finer(former)} for former in formers],
        "format": FORMAT,
        **({"keys": dict(sorted(keys.items()))} if keys else {}),
        **({"file": {name: getattr(file, name) for name in _FILE}} if file is not None and _is_sound(file) else {}),
        **({"exact": exact} if exact else {}),
    }


def _is_sound(file: FileRecord) -> bool:
    """Tell whether a record of a file was not damaged; one that was is left out, and the next ingest makes it again."""
    return _is_whole(file.size) and _is_whole(file.mtime_ns) and isinstance(file.content_hash, str)


def pin_record(pin: Pin, scope: str) -> dict[str, Any]:
    """Return a pin, which stands on a line of its own: it may be about a memory of another scope, or of none."""
    return {"pin": json.loads(to_line(pin)), "scope": scope, "format": FORMAT}


def as_change(one: Former) -> dict[str, Any]:
    """Return one change: when it was, and what the changed fields were until then."""
    return {"changed": exact_moment(one.changed), "was": _dated(one.was)}


def _dated(was: Mapping[str, Any]) -> dict[str, Any]:
    return {name: exact_moment(value) if name in _MOMENTS else value for name, value in was.items()}


def _finer(one: Former) -> dict[str, Any]:
    exact = _exact({"changed": one.changed, **{name: one.was[name] for name in _MOMENTS if name in one.was}})
    return {"exact": exact} if exact else {}


def _exact(moments: Mapping[str, Any]) -> dict[str, float]:
    """Return the moments that ISO 8601 to the microsecond does not say exactly."""
    numbers = {name: value for name, value in moments.items() if isinstance(value, float)}
    return {name: value for name, value in numbers.items() if _seconds(exact_moment(value)) != value}


def exact_moment(seconds: float | None) -> str | float | None:
    """Return a moment in ISO 8601 to the microsecond; one that no calendar holds as the number it is."""
    if seconds is None:
        return None
    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
    except (OverflowError, ValueError, OSError):
        return seconds


def _seconds(moment: object) -> float | None:
    """Return the seconds since 1970 of what `exact_moment` has written."""
    if moment is None:
        return None
    if isinstance(moment, str):
        return datetime.fromisoformat(moment).timestamp()
    if isinstance(moment, bool) or not isinstance(moment, int | float) or math.isnan(moment):
        raise ValueError(f"{moment!r} is no moment")
    return float(moment)


# -- reading ---------------------------------------------------------------------------------------------------------


def read_line(line: str) -> Record | Pin:
    """Read a line that an export has written; ValueError says what is wrong with one that it has not."""
    try:
        said = json.loads(line)
        line.encode("utf-8"), json.dumps(said, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        raise ValueError("it holds half a character, which no file can") from None
    except (ValueError, RecursionError) as error:
        raise ValueError(f"it is no JSON: {error}") from error
    if not isinstance(said, dict) or not ("pin" in said or {"id", "text", "scope"} <= said.keys()):
        raise ValueError("it is no line of an export: it has no id, text and scope")
    if said.get("format") != FORMAT:
        raise ValueError(f"it has format {said.get('format')!r}; this whyrank reads {FORMAT}")
    if "pin" in said:
        try:
            return from_line(json.dumps(said["pin"], ensure_ascii=False), "its pin")
        except ConfigError as error:
            raise ValueError(error.message) from error
    return _record(said)


def _record(said: Mapping[str, Any]) -> Record:
    exact = _section(said, "exact", dict)
    plain = {name: _plain(name, said.get(name, _DEFAULTS.get(name))) for name in _PLAIN}
    lists: dict[str, Any] = {name: tuple(_all_text(name, said.get(name, []))) for name in _LISTS}
    moments: dict[str, Any] = {
        name: _moment(name, exact.get(name, said.get(name, _DEFAULTS[name]))) for name in _MOMENTS
    }
    if moments["created"] is None:
        raise ValueError("its created is missing")
    place: dict[str, Any] = {name: said.get(name, "" if name in ("path", "content_hash") else 0) for name in _PLACE}
    for name, value in place.items():
        _check(isinstance(value, str) if name in ("path", "content_hash") else _is_whole(value), name, value)
    source = Source(**place) if place["path"] or place["content_hash"] else None
    scope = Scope.parse(_text("scope", said["scope"]))
    memory = Memory(**plain, **lists, **moments, source=source, scope=scope)
    formers = tuple(_former(memory.id, one) for one in _section(said, "history", list))
    keys = {_text("key", key): _text("key", value) for key, value in _section(said, "keys", dict).items()}
    return Record(memory, formers, keys, _file(memory, said.get("file")))


def _plain(name: str, value: Any) -> Any:
    if name in ("kind", "trust"):
        _check(value in (KINDS if name == "kind" else TRUSTS), name, value)
    elif name in ("expires_given", "evergreen"):
        _check(isinstance(value, bool), name, value)
    elif name in ("importance", "position", "recalls"):
        _check(_is_whole(value) or (value is None and name == "importance"), name, value)
    elif name in ("supersedes", "superseded_by"):
        _check(value is None or (isinstance(value, str) and value != ""), name, value)
    else:
        _check(isinstance(value, str) and (value != "" or name not in ("id", "text")), name, value)
    return value


def _former(identity: str, said: Any) -> Former:
    if not isinstance(said, dict):
        raise ValueError("a change in its history is none")
    exact, was = _section(said, "exact", dict), _section(said, "was", dict)
    dated = {name: _moment(name, exact.get(name, value)) if name in _MOMENTS else value for name, value in was.items()}
    return Former(identity, _moment("changed", exact.get("changed", said.get("changed"))), dated)


def _file(memory: Memory, said: Any) -> FileRecord | None:
    if said is None:
        return None
    told: list[Any] = [said.get(name) if isinstance(said, dict) else None for name in _FILE]
    _check(_is_whole(told[0]) and _is_whole(told[1]) and isinstance(told[2], str), "file", said)
    _check(memory.source is not None, "file", said)
    return FileRecord((memory.source or Source("")).path, memory.scope, *told)


def _moment(name: str, value: Any) -> float | None:
    try:
        return _seconds(value)
    except (ValueError, OverflowError) as error:
        raise ValueError(f"its {name} is no moment: {value!r:.60}") from error


def _section(said: Mapping[str, Any], name: str, kind: Callable[[], Any]) -> Any:
    value = said.get(name, kind())
    _check(type(value) is kind, name, value)
    return value


def _all_text(name: str, values: Any) -> list[str]:
    _check(isinstance(values, list), name, values)
    return [_text(name, value) for value in values]


def _text(name: str, value: Any) -> str:
    _check(isinstance(value, str), name, value)
    text: str = value
    return text


def _is_whole(value: object) -> bool:
    return type(value) is int and value.bit_length() <= _WHOLE_BITS


def _check(is_right: bool, name: str, value: object) -> None:
    if not is_right:
        raise ValueError(f"its {name} cannot be {value!r:.60}")


# -- files -----------------------------------------------------------------------------------------------------------


def write_lines(out: TextIO, records: Iterable[Mapping[str, Any]]) -> int:
    """Write one record per line; return how many are memories."""
    count = 0
    for record in records:
        out.write(json.dumps(record, ensure_ascii=False) + "\n")
        count += "pin" not in record
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
