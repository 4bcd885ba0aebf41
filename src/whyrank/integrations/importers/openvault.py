"""OpenVault: the memories that it keeps in the metadata of a SillyTavern chat, and its settings."""

from __future__ import annotations

import base64
import binascii
from itertools import chain
from typing import TYPE_CHECKING, Any

from ...config.load import flatten
from ...engine.export import Item
from ...errors import ConfigError
from . import streams
from .records import (
    NO_COUNTERPART,
    MappedSetting,
    Numbering,
    fact,
    file_moment,
    filled,
    importance_of,
    map_settings,
    moment_of,
    names_in,
    read_item,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from ...types.memory import Memory, Scope
    from .records import Findings

WHAT = "a chat file of SillyTavern, its chat metadata as JSON, or settings.json"
_IN_METADATA = (
    "type", "witnesses", "location", "is_secret", "temporal_anchor", "is_transient", "message_id", "message_ids",
    "event_type",
)  # fmt: skip
_MEMORY = frozenset({
    "id", "summary", "importance", "embedding", "embedding_b64", "timestamp", "created_at", "characters_involved",
    "archived", "tags", *_IN_METADATA,
    # Counts of its own, derived data, and what is also in the graph.
    "tokens", "level", "mentions", "retrieval_hits", "sequence", "source_ids", "parent_ids", "_st_synced",
    "_proxyVectorScore", "message_fingerprints", "emotional_impact", "relationship_impact",
})  # fmt: skip
_NODE = frozenset({"name", "type", "description", "mentions", "embedding", "embedding_b64", "aliases", "_st_synced"})
_EDGE = frozenset({
    "source", "target", "description", "weight", "embedding", "embedding_b64", "_descriptionTokens", "_st_synced",
})  # fmt: skip
_DATA = frozenset({"schema_version", "memories", "graph", "embedding_model_id"})
# Made of the others, or the state of the chat.
_DERIVED = frozenset({
    "characters", "character_states", "processed_messages", "processed_message_ids", "communities", "reflection_state",
    "graph_message_count", "global_world_state", "extracted_batches", "last_processed_message_id", "relationships",
})  # fmt: skip
_SCHEMAS = (None, 1, 2, 3, 4)
_SERVED = "ollama:"  # before the name of a model on a server


def records(path: Path, scope: Scope, findings: Findings) -> Iterator[Item]:
    """Yield a fact for every memory, entity and relation; settings are mapped."""
    streams.check_file(path, WHAT)
    try:
        said = streams.first_value(path)
    except streams.Unreadable as error:
        raise ConfigError(f"{path}: {error}", f"name {WHAT}") from error
    data, settings = _found(said)
    if data is None and settings is None:
        raise ConfigError(f"{path} holds no data of OpenVault", f"name {WHAT}")
    if settings is not None:
        _map(settings, findings)
    return iter(()) if data is None else _read(data, scope, findings, file_moment(path))


def _found(said: Any) -> tuple[dict[str, Any] | None, dict[str, Any] | None]:
    """Return the data and the settings in a file: at the top, or where SillyTavern keeps them."""
    if not isinstance(said, dict):
        return None, None
    settings = said.get("extension_settings")
    for place in (said.get("chat_metadata"), said):
        if isinstance(place, dict) and isinstance(place.get("openvault"), dict):
            said = place["openvault"]
            break
    ours = settings.get("openvault") if isinstance(settings, dict) else None
    is_data = isinstance(said.get("memories"), list)
    return said if is_data else None, ours if isinstance(ours, dict) else None


def _map(settings: Mapping[str, Any], findings: Findings) -> None:
    flat = flatten(settings)
    map_settings(flat, "settings of OpenVault", findings)
    mapped = {name for one in findings.settings for name in one.name.split(" and ")}
    findings.settings += [MappedSetting(name, None, {}, NO_COUNTERPART) for name in sorted(flat.keys() - mapped)]


def _read(data: Mapping[str, Any], scope: Scope, findings: Findings, written: float) -> Iterator[Item]:
    if data.get("schema_version") not in _SCHEMAS:
        findings.remark("schema_version", f"it is {data['schema_version']!r}; what is known of it was read")
    findings.name_unknown("openvault", data, _DATA | _DERIVED)
    for name in sorted(_DERIVED & data.keys()):
        if data[name]:
            findings.left_out.append((name, "it is made of the others, or is the state of the chat"))
    numbering = Numbering()
    model = data.get("embedding_model_id")
    model = model.removeprefix(_SERVED) if isinstance(model, str) else ""
    for number, said in enumerate(data["memories"], 1):
        place = f"memory {number}"
        if not isinstance(said, dict):
            yield Item(place, None, "it is no object with a summary")
            continue
        place = f"{place} ({said['id']})" if isinstance(said.get("id"), str) else place
        findings.name_unknown("memory", said, _MEMORY)
        if said.get("archived") is True:
            findings.left_out.append((place, "it is archived: a newer one took its place"))
            continue
        item = read_item(place, _memory, said, scope, numbering, written)
        if item.holds is not None and (row := _row(said)) is not None:
            findings.vectors.offer(model, item.holds.memory.text, row)  # type: ignore[union-attr]
        yield item
    yield from _graph(data.get("graph"), scope, findings, numbering, written)


def _memory(said: Mapping[str, Any], scope: Scope, numbering: Numbering, written: float) -> Memory:
    created = moment_of("timestamp", said.get("timestamp") or said.get("created_at"))
    fields = {
        "importance": importance_of(said.get("importance"), 5),
        "entities": names_in(said.get("characters_involved")),
        "tags": names_in(said.get("tags")),
        "category": "pattern" if said.get("type") == "reflection" else "",
        "trust": "agent",
        "metadata": filled({name: said.get(name) for name in _IN_METADATA}),
    }
    return fact(said.get("summary"), scope, written if created is None else created, fields, numbering)


def _row(said: Mapping[str, Any]) -> object:
    if said.get("embedding"):
        return said["embedding"]
    coded = said.get("embedding_b64")
    try:
        return base64.b64decode(coded, validate=True) if isinstance(coded, str) and coded else None
    except (binascii.Error, ValueError):
        return b""


def _graph(graph: object, scope: Scope, findings: Findings, numbering: Numbering, written: float) -> Iterator[Item]:
    """Yield a fact for every entity and relation with a description."""
    if not isinstance(graph, dict):
        return
    nodes, edges = (one if isinstance(one, dict) else {} for one in (graph.get("nodes"), graph.get("edges")))
    names = {key: one.get("name") for key, one in nodes.items() if isinstance(one, dict)}
    every = chain((("entity", *one) for one in nodes.items()), (("relation", *one) for one in edges.items()))
    for kind, key, said in every:
        place = f"{kind} {key}"
        if not isinstance(said, dict):
            yield Item(place, None, "it is no object with a description")
            continue
        findings.name_unknown(kind, said, _NODE if kind == "entity" else _EDGE)
        if not isinstance(said.get("description"), str) or not said["description"].strip():
            findings.left_out.append((place, "it has no description"))
        elif kind == "entity":
            yield read_item(place, _node, said, scope, numbering, written)
        else:
            yield read_item(place, _edge, said, names, scope, numbering, written)


def _node(said: Mapping[str, Any], scope: Scope, numbering: Numbering, written: float) -> Memory:
    name, kind = _named(said.get("name"), "name"), said.get("type")
    aliases = names_in(said.get("aliases"))
    fields = {
        "category": "entity",
        "entities": [name, *aliases],
        "subject": name,
        "tags": [kind.lower()] if isinstance(kind, str) and kind else [],
        "trust": "agent",
    }
    return fact(f"{name}: {said['description']}", scope, written, fields, numbering)


def _edge(
    said: Mapping[str, Any], names: Mapping[str, Any], scope: Scope, numbering: Numbering, written: float
) -> Memory:
    ends = [_named(names.get(said.get(end, "")) or said.get(end), end) for end in ("source", "target")]
    fields = {"entities": ends, "subject": ends[0], "trust": "agent"}
    return fact(f"{ends[0]} – {ends[1]}: {said['description']}", scope, written, fields, numbering)


def _named(value: object, what: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ConfigError(f"its {what} is {value!r:.60}, which is not a name")
    return value.strip()
