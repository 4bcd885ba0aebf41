"""OpenVault: memories out of the metadata of a chat, their embeddings where the model is ours, and its settings."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from whyrank.errors import ConfigError
from whyrank.integrations.importers import import_into

if TYPE_CHECKING:
    from pathlib import Path

    import whyrank
    from tests.unit.importers.conftest import Bring, Counting

EVENT: dict[str, Any] = {
    "id": "event_1", "type": "event", "summary": "Suzy hides the tea tin", "importance": 4, "timestamp": 1773446400000,
    "characters_involved": ["Suzy"], "witnesses": ["Robin"], "message_ids": [3], "tokens": ["suzi"],
}  # fmt: skip


def written(folder: Path, said: Any, name: str = "chat.json") -> Path:
    (folder / name).write_text(said if isinstance(said, str) else json.dumps(said), encoding="utf-8")
    return folder / name


def vault(*memories: Any, **more: Any) -> dict[str, Any]:
    return {"schema_version": 3, "memories": [*memories], **more}


def test_fields_of_a_memory_are_mapped(engine: whyrank.Engine, bring: Bring, tmp_path: Path) -> None:
    assert bring("openvault", written(tmp_path, vault(EVENT))).unknown == {}
    [memory] = engine.list()
    assert (memory.text, memory.importance, memory.entities) == ("Suzy hides the tea tin", 4, ("Suzy",))
    assert memory.created == 1773446400.0  # milliseconds
    assert memory.metadata == {"type": "event", "witnesses": ["Robin"], "message_ids": [3]}


@pytest.mark.parametrize("wrap", [
    lambda data: data,
    lambda data: {"openvault": data},
    lambda data: {"chat_metadata": {"openvault": data}},
    lambda data: json.dumps({"user_name": "u", "chat_metadata": {"openvault": data}}) + '\n{"mes": "hello"}\n',
])  # fmt: skip
def test_data_is_found_where_sillytavern_keeps_it(bring: Bring, tmp_path: Path, wrap: Any) -> None:
    assert bring("openvault", written(tmp_path, wrap(vault(EVENT)))).new == 1


def test_archived_memories_and_derived_data_are_left_out_by_name(bring: Bring, tmp_path: Path) -> None:
    done = bring("openvault", written(tmp_path, vault(EVENT, {**EVENT, "archived": True}, communities={"C0": {}})))
    assert (done.new, done.unchanged) == (1, 0)
    assert [one.line for one in done.skipped] == ["communities", "memory 2 (event_1)"]


def test_entities_and_relations_of_the_graph_are_facts(engine: whyrank.Engine, bring: Bring, tmp_path: Path) -> None:
    graph = {
        "nodes": {
            "suzy": {"name": "Suzy", "type": "PERSON", "description": "keeps the tin", "aliases": ["Sue"]},
            "tin": {"name": "Tin", "type": "OBJECT", "description": ""},
        },
        "edges": {"suzy__tin": {"source": "suzy", "target": "tin", "description": "hides it"}},
    }
    done = bring("openvault", written(tmp_path, vault(graph=graph)))
    held = {memory.text: memory for memory in engine.list()}
    assert set(held) == {"Suzy: keeps the tin", "Suzy – Tin: hides it"}
    assert held["Suzy: keeps the tin"].entities == ("Suzy", "Sue")
    assert [(one.line, one.reason) for one in done.skipped] == [("entity tin", "it has no description")]


def test_memories_that_cannot_be_read_are_named(bring: Bring, tmp_path: Path) -> None:
    done = bring(
        "openvault", written(tmp_path, vault(7, {"id": "x"}, {**EVENT, "importance": 9}, {**EVENT, "mood": 1}))
    )
    assert (done.new, done.unknown) == (1, {"memory.mood": 1})
    assert [one.reason for one in done.bad] == [
        "it is no object with a summary",
        "its text is None, which is not a text",
        "its importance is 9, which is not between 0 and 5",
    ]


def test_a_second_import_stores_nothing_new(bring: Bring, tmp_path: Path) -> None:
    file = written(tmp_path, vault(EVENT))
    assert (bring("openvault", file).new, bring("openvault", file).new) == (1, 0)


@pytest.mark.parametrize("said", ["", "[1]", '{"memories": 7}', '{"a": 1', '{"x": {}}'])
def test_what_holds_no_data_is_refused(bring: Bring, tmp_path: Path, said: str) -> None:
    with pytest.raises(ConfigError, match=r"chat\.json"):
        bring("openvault", written(tmp_path, said))


def test_a_schema_of_a_later_version_is_read_with_a_remark(bring: Bring, tmp_path: Path) -> None:
    done = bring("openvault", written(tmp_path, {**vault(EVENT), "schema_version": 99, "dreams": []}))
    assert (done.new, done.unknown) == (1, {"openvault.dreams": 1})
    assert done.remarks[0] == ("schema_version", "it is 99; what is known of it was read")


def test_embeddings_of_the_same_model_are_taken_over(
    embedding: whyrank.Engine, embedder: Counting, tmp_path: Path
) -> None:
    coded = base64.b64encode(np.array([0.0, 1.0, 0.0], "<f4").tobytes()).decode()
    data = vault(
        {**EVENT, "embedding": [1.0, 0.0, 0.0]},
        {**EVENT, "summary": "Robin sails", "embedding_b64": coded},
        {**EVENT, "summary": "too short", "embedding": [1.0]},
        embedding_model_id="ollama:tiny-3",
    )
    done = import_into(embedding, "openvault", written(tmp_path, data))
    assert embedder.asked == ["too short"]
    assert (done.vectors.offered, done.vectors.taken) == (3, 2)
    assert dict(done.vectors.refused) == {"they have 1 dimensions, and this store 3": 1}


def test_settings_become_ours(bring: Bring, tmp_path: Path) -> None:
    """The boost weight is the vector weight, 20, and alpha = 20 / (20 + 5) = 0.8."""
    settings = {"vectorSimilarityWeight": 20, "keywordMatchWeight": 5, "debugMode": True}
    done = bring("openvault", written(tmp_path, {"extension_settings": {"openvault": settings}}, "settings.json"))
    mapped, other = done.settings
    assert mapped.becomes == {"recipe": "openvault", "ranking.boost_weight": 20.0, "ranking.alpha": 0.8}
    assert (other.name, other.becomes, other.value) == ("debugMode", {}, None)


def test_a_setting_that_is_not_valid_is_named(bring: Bring, tmp_path: Path) -> None:
    file = written(tmp_path, {"extension_settings": {"openvault": {"alpha": 7}}})
    done = bring("openvault", file)
    assert not done.is_whole
    assert "alpha" in done.bad[0].reason
