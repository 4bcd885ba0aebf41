"""The knowledge graph of MCP: observations and relations become facts about their entities."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    import whyrank
    from tests.unit.importers.conftest import Bring

SUZY = {"type": "entity", "name": "Suzy", "entityType": "person", "observations": ["drinks tea", "Suzy has a boat"]}
BOAT = {"type": "entity", "name": "Boat", "entityType": "thing", "observations": []}
OWNS = {"type": "relation", "from": "Suzy", "to": "Boat", "relationType": "is_owner_of"}


def written(folder: Path, *lines: Any) -> Path:
    file = folder / "memory.jsonl"
    file.write_text("\n".join(one if isinstance(one, str) else json.dumps(one) for one in lines), encoding="utf-8")
    return file


def test_observations_name_their_entity_and_relations_both(
    engine: whyrank.Engine, bring: Bring, tmp_path: Path
) -> None:
    assert bring("mcp-memory", written(tmp_path, SUZY, BOAT, OWNS)).new == 4
    held = {memory.text: memory for memory in engine.list()}
    assert set(held) == {"Suzy: drinks tea", "Suzy has a boat", "Boat: thing", "Suzy is owner of Boat"}
    assert (held["Suzy: drinks tea"].subject, held["Suzy: drinks tea"].tags) == ("Suzy", ("person",))
    assert held["Suzy is owner of Boat"].entities == ("Suzy", "Boat")
    assert held["Suzy is owner of Boat"].metadata["relation"] == "is_owner_of"


def test_a_second_import_stores_only_new_observations(bring: Bring, tmp_path: Path) -> None:
    bring("mcp-memory", written(tmp_path, SUZY))
    done = bring("mcp-memory", written(tmp_path, {**SUZY, "observations": ["drinks tea", "swims"]}))
    assert (done.new, done.unchanged) == (1, 1)


def test_lines_that_are_no_part_of_a_graph_are_named(bring: Bring, tmp_path: Path) -> None:
    done = bring("mcp-memory", written(
        tmp_path, "{", {"type": "song"}, {"type": "entity"}, {**SUZY, "observations": ["a", 7]},
        {"type": "relation", "from": "a"}, {**OWNS, "weight": 2},
    ))  # fmt: skip
    assert done.new == 2  # the observation that is a text, and the last relation
    assert [one.line for one in done.bad] == ["line 1", "line 2", "line 3", "line 4, observation 2", "line 5"]
    assert done.unknown == {"relation.weight": 1}
