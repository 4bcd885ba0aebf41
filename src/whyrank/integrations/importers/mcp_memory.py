"""The knowledge graph server of MCP: entities with observations, and relations, as JSON lines."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from ...analysis.normalize import same_text
from ...engine.export import Item, Record, items_of_lines
from ...errors import ConfigError
from . import streams
from .records import Numbering, fact, file_moment, read_item

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from ...types.memory import Scope
    from .records import Findings

_ENTITY = frozenset({"type", "name", "entityType", "observations"})
_RELATION = frozenset({"type", "from", "to", "relationType"})


def records(path: Path, scope: Scope, findings: Findings) -> Iterator[Item]:
    """Yield a fact for every observation and for every relation."""
    streams.check_file(path, "the file of MEMORY_FILE_PATH")
    return _read(path, scope, findings)


def _read(path: Path, scope: Scope, findings: Findings) -> Iterator[Item]:
    numbering, written = Numbering(), file_moment(path)
    found: dict[int, dict[str, Any]] = {}

    def keep(number: int, line: str) -> None:
        found[number] = _object(line)

    for line in items_of_lines(path, keep):
        if line.wrong:
            yield line._replace(line=f"line {line.line}")
            continue
        [(number, said)] = found.items()
        found.clear()
        kind = said.get("type")
        if kind == "entity":
            findings.name_unknown("entity", said, _ENTITY)
            yield from _observations(f"line {number}", said, scope, numbering, written)
        elif kind == "relation":
            findings.name_unknown("relation", said, _RELATION)
            yield read_item(f"line {number}", _relation, said, scope, numbering, written)
        else:
            yield Item(f"line {number}", None, f"its type is {kind!r:.60}; entity and relation are known")


def _object(line: str) -> dict[str, Any]:
    try:
        said = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"it is not JSON: {error}") from error
    if not isinstance(said, dict):
        raise ValueError("it is no object")
    return said


def _observations(
    place: str, said: Mapping[str, Any], scope: Scope, numbering: Numbering, written: float
) -> Iterator[Item]:
    name, kind, observations = said.get("name"), said.get("entityType") or "", said.get("observations", [])
    if not _is_name(name) or not isinstance(kind, str) or not isinstance(observations, list):
        yield Item(place, None, "an entity has a name, an entityType and a list of observations")
        return
    assert isinstance(name, str)
    about = {"entities": [name], "subject": name, "tags": [kind] if kind else [], "trust": "agent"}
    if not observations:
        text = f"{name}: {kind}" if kind else name
        yield read_item(place, fact, text, scope, written, {**about, "category": "entity"}, numbering)
    for number, one in enumerate(observations, 1):
        where = f"{place}, observation {number}"
        if not isinstance(one, str) or not one.strip():
            yield Item(where, None, f"it is {one!r:.60}, which is not a text")
            continue
        text = one if same_text(name) in same_text(one) else f"{name}: {one}"
        yield read_item(where, fact, text, scope, written, about, numbering)


def _relation(said: Mapping[str, Any], scope: Scope, numbering: Numbering, written: float) -> Record:
    ends = said.get("from"), said.get("to"), said.get("relationType")
    if not all(map(_is_name, ends)):
        raise ConfigError("a relation has from, to and relationType")
    first, second, kind = (str(one).strip() for one in ends)
    fields = {
        "entities": [first, second],
        "subject": first,
        "attribute": kind,
        "metadata": {"from": first, "to": second, "relation": kind},
        "trust": "agent",
    }
    return Record(fact(f"{first} {kind.replace('_', ' ')} {second}", scope, written, fields, numbering))


def _is_name(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())
