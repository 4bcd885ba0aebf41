"""JSON lines, one memory each: a text, and any field that a fact of whyrank has."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from ...analysis.normalize import same_text
from ...engine.arguments import scope_of
from ...engine.export import Record, items_of_lines
from ...engine.facts import Fields
from ...errors import ConfigError
from . import streams
from .records import Numbering, Turns, fact, file_moment, moment_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from ...engine.export import Item
    from ...types.memory import MemoryId, Scope
    from .records import Findings

_FIELDS = frozenset(Fields.__annotations__)
_KNOWN = _FIELDS | {"text", "scope", "created", "id", "supersedes", "session", "speaker"}


def records(path: Path, scope: Scope, findings: Findings) -> Iterator[Item]:
    """Yield a fact for every line, or a turn for one with a session."""
    streams.check_file(path, "a file with one JSON object per line")
    return items_of_lines(path, _Lines(path, scope, findings).read)


class _Lines:
    """Reads lines in their order; a later one may replace an earlier one, by its `id` or its text."""

    def __init__(self, path: Path, scope: Scope, findings: Findings) -> None:
        self._name = path.name
        self._written = file_moment(path)
        self._scope = scope
        self._findings = findings
        self._numbering = Numbering()
        self._before: dict[tuple[Scope, str], MemoryId] = {}
        self._turns: dict[tuple[Scope, str], Turns] = {}

    def read(self, number: int, line: str) -> Record:
        """Read one line; one that is no memory raises ValueError with the reason."""
        try:
            said = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"it is not JSON: {error}") from error
        if not isinstance(said, dict) or not isinstance(said.get("text"), str):
            raise ValueError("it is no object with a text")
        try:
            record = self._record(said)
        except ConfigError as error:
            raise ValueError(error.message) from error
        self._findings.name_unknown("line", said, _KNOWN)
        return record

    def _record(self, said: Mapping[str, Any]) -> Record:
        scope = self._scope if said.get("scope") in (None, "") else scope_of(said["scope"])
        created = moment_of("created", said.get("created"))
        created = self._written if created is None else created
        if session := said.get("session"):
            if not isinstance(session, str) or not isinstance(said.get("speaker", ""), str):
                raise ConfigError("its session and its speaker must be texts")
            key = scope, session
            turns = self._turns.setdefault(key, Turns(f"{self._name}/{session}", scope, "", self._written))
            return turns.turn(said.get("speaker", ""), said["text"], said.get("date"))
        fields = {name: said[name] for name in _FIELDS & said.keys()}
        memory = fact(said["text"], scope, created, {"trust": "owner", **fields}, self._numbering)
        replaces = self._replaced(scope, said.get("supersedes"))
        self._before[scope, same_text(memory.text)] = memory.id
        if isinstance(said.get("id"), str):
            self._before[scope, f"id {said['id']}"] = memory.id
        return Record(memory, replaces=[(replaces, created)] if replaces else [])

    def _replaced(self, scope: Scope, named: object) -> MemoryId | None:
        if named in (None, ""):
            return None
        for key in (f"id {named}", same_text(str(named))):
            if (scope, key) in self._before:
                return self._before[scope, key]
        raise ConfigError(f"it supersedes {str(named)[:60]!r}, which no line before it is")
