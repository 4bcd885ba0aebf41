"""A workspace of OpenClaw and skills of ClawHub: files through the ingest, settings, embeddings; nothing outside."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from whyrank.errors import ConfigError
from whyrank.integrations.importers import import_into
from whyrank.integrations.importers.openclaw import read_settings

if TYPE_CHECKING:
    import whyrank
    from tests.unit.importers.conftest import Bring, Counting

QUERY = {"maxResults": 10, "minScore": 0.25, "hybrid": {"vectorWeight": 3, "textWeight": 1}}
NOTES = {
    "MEMORY.md": "# Tea\n\nSuzy keeps the tin behind the flour.\n",
    "USER.md": "Suzy lives by the sea.\n",
    "memory/2026-03-14.md": "# Boat\n\nThe hull was tarred.\n",
    "memory/ideas/garden.md": "# Compost\n\nTurn it every third weekend.\n",
    "AGENTS.md": "not a memory\n",
}


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "claw" / "workspace"
    for name, text in NOTES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def configured(folder: Path, said: Any) -> Path:
    file = folder / "openclaw.json"
    file.write_text(said if isinstance(said, str) else json.dumps(said), encoding="utf-8")
    return folder


def names(engine: whyrank.Engine) -> set[str]:
    return {Path(memory.source.path).name for memory in engine.list() if memory.source}


def test_memory_files_are_ingested_with_their_dates(engine: whyrank.Engine, bring: Bring, workspace: Path) -> None:
    done = bring("openclaw", workspace)
    assert names(engine) == {"MEMORY.md", "USER.md", "2026-03-14.md", "garden.md"}
    assert done.files is not None
    assert done.files.files == {"new": 4}
    held = {Path(memory.source.path).name: memory for memory in engine.list() if memory.source}
    assert held["2026-03-14.md"].date == 1773446400.0
    assert (held["MEMORY.md"].evergreen, held["garden.md"].evergreen) == (True, True)


def test_a_second_import_reads_what_changed(engine: whyrank.Engine, bring: Bring, workspace: Path) -> None:
    bring("openclaw", workspace)
    (workspace / "USER.md").write_text("Suzy moved to the hills.\n", encoding="utf-8")
    done = bring("openclaw", workspace)
    assert done.files is not None
    assert (done.files.files, done.files.unchanged) == ({"changed": 1}, 3)


def test_a_dry_run_stores_nothing(engine: whyrank.Engine, bring: Bring, workspace: Path) -> None:
    done = bring("openclaw", workspace, dry_run=True)
    assert done.files is not None
    assert (done.files.files, engine.list()) == ({"new": 4}, [])


def test_of_the_state_folder_its_workspace_is_read(engine: whyrank.Engine, bring: Bring, workspace: Path) -> None:
    bring("openclaw", configured(workspace.parent, {}), scope="agent:main")
    assert len(engine.list(scope="agent:main")) == 4


def test_settings_become_ours_and_none_is_set(engine: whyrank.Engine, bring: Bring, workspace: Path) -> None:
    """10 results with 4 candidates each are a pool of 40; the weight of the cosine is 3 / (3 + 1) = 0.75."""
    said = {"agents": {"defaults": {"memorySearch": {"query": QUERY, "remote": {"apiKey": "secret-1"}}}}}
    done = bring("openclaw", configured(workspace.parent, said))
    becomes: dict[str, Any] = {}
    for one in done.settings:
        becomes |= one.becomes
    assert becomes == {
        "recipe": "openclaw", "limit": 10, "ranking.pool": 40, "ranking.vector_weight": 0.75, "ranking.min_score": 0.25,
    }  # fmt: skip
    assert all(one.reason for one in done.settings)
    assert engine.config["recipe"] == "default"
    [other] = [one for one in done.settings if not one.becomes]
    assert (other.name, other.value) == ("memorySearch.remote.apiKey", None)
    assert "secret-1" not in repr(done)


def test_many_comments_are_read_in_no_time(tmp_path: Path) -> None:
    file = tmp_path / "openclaw.json"
    file.write_text('{"a": 1, ' + "/* b */ " * 5_000 + "c", encoding="utf-8")  # a quantifier in another would take ages
    with pytest.raises(ConfigError, match="cannot be read"):
        read_settings(file)


def test_settings_may_be_json5_and_of_this_years_names(tmp_path: Path) -> None:
    configured(tmp_path, """{
      // the usual one
      memory: { search: { 'provider': "none", /* no key */ query: { minScore: 0.3, },
        extraPaths: ["http://x//y",], }, },
    }""")  # fmt: skip
    assert read_settings(tmp_path / "openclaw.json") == {
        "memory.search.provider": "none", "memory.search.query.minScore": 0.3,
        "memory.search.extraPaths": ["http://x//y"],
    }  # fmt: skip


@pytest.mark.parametrize("said", ["{ half", "[1]", {"memorySearch": {"query": {"minScore": "much"}}}])
def test_settings_that_cannot_be_read_are_named_and_the_files_are_taken(
    engine: whyrank.Engine, bring: Bring, workspace: Path, said: Any
) -> None:
    done = bring("openclaw", configured(workspace.parent, said))
    assert not done.is_whole
    assert done.bad[0].line == "openclaw.json"
    assert len(names(engine)) == 4


def test_nothing_outside_of_the_workspace_is_followed(
    engine: whyrank.Engine, bring: Bring, workspace: Path, tmp_path: Path
) -> None:
    (tmp_path / "secret.md").write_text("the password is swordfish\n", encoding="utf-8")
    (workspace / "USER.md").unlink()
    (workspace / "USER.md").symlink_to(tmp_path / "secret.md")
    (workspace / "memory" / "link.md").symlink_to(tmp_path / "secret.md")
    (workspace / "notes").mkdir()
    (workspace / "notes" / "sail.md").write_text("The sail is white.\n", encoding="utf-8")
    said = {"memorySearch": {"extraPaths": ["notes", "../../secret.md", str(tmp_path), "gone"]}}
    done = bring("openclaw", configured(workspace, said))
    assert not any("swordfish" in memory.text for memory in engine.list())
    assert "sail.md" in names(engine)
    assert {one.line for one in done.skipped} == {"USER.md", "../../secret.md", str(tmp_path), "gone"}


def test_a_workspace_that_is_elsewhere_is_named(bring: Bring, workspace: Path, tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    said = {"agents": {"defaults": {"workspace": str(workspace), "memorySearch": {"query": QUERY}}}}
    done = bring("openclaw", configured(tmp_path / "state", said))
    assert done.files is None
    assert [(one.line, one.reason) for one in done.skipped] == [
        (str(workspace), "this workspace is outside of the folder; import it by its own path")
    ]


def test_a_folder_without_memories_is_refused(bring: Bring, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is no workspace of OpenClaw"):
        bring("openclaw", tmp_path)
    with pytest.raises(ConfigError, match="is no folder"):
        bring("openclaw", tmp_path / "nowhere")


def indexed(folder: Path, table: str, *rows: tuple[str, str, Any]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(folder / "main.sqlite")) as connection, connection:
        connection.execute(f"CREATE TABLE {table} (id INTEGER PRIMARY KEY, model TEXT, text TEXT, embedding)")
        connection.executemany(f"INSERT INTO {table} (model, text, embedding) VALUES (?, ?, ?)", rows)
    return folder


@pytest.mark.parametrize("table", ["chunks", "memory_index_chunks"])
def test_embeddings_of_the_same_model_and_text_are_taken_over(
    embedding: whyrank.Engine, embedder: Counting, workspace: Path, table: str
) -> None:
    """What is embedded of a note has its title in front: only where their text begins so, the texts are equal."""
    import_into(embedding, "openclaw", workspace)
    [ours] = [text for text in embedder.asked if "sea" in text]
    embedding.forget(*[memory.id for memory in embedding.list()])
    embedder.asked.clear()
    for name, text in NOTES.items():  # so that they are read again
        (workspace / name).write_text(f"{text}\n", encoding="utf-8")
    blob = np.array([1.0, 0.0, 0.0], "<f4").tobytes()
    rows = [("tiny-3", ours, blob), ("tiny-3", "another", "[0, 1, 0]"), ("big-9", "x", "[1]"), ("fts-only", "y", "")]
    indexed(workspace.parent / "memory", table, *rows)
    done = import_into(embedding, "openclaw", configured(workspace.parent, {}))
    assert ours not in embedder.asked
    assert (done.vectors.offered, done.vectors.taken) == (3, 1)
    assert dict(done.vectors.refused) == {"they are of big-9, and this store embeds with openai/tiny-3": 1}


def test_an_index_that_cannot_be_read_is_named(bring: Bring, workspace: Path) -> None:
    (workspace.parent / "memory").mkdir()
    (workspace.parent / "memory" / "main.sqlite").write_bytes(b"half a database" * 100)
    done = bring("openclaw", configured(workspace.parent, {}))
    assert [one.line for one in done.bad] == [str(Path("memory") / "main.sqlite")]
    assert done.files is not None
    assert done.files.files == {"new": 4}


def skill(folder: Path, name: str) -> None:
    (folder / name).mkdir(parents=True)
    text = f"---\nname: {name} me\ndescription: It does {name}.\n---\n\n# Use\n\nSay it.\n"
    (folder / name / "SKILL.md").write_text(text, encoding="utf-8")
    (folder / name / "notes.md").write_text("not a skill\n", encoding="utf-8")


def test_skills_are_ingested_with_name_slug_and_summary(engine: whyrank.Engine, bring: Bring, tmp_path: Path) -> None:
    skill(tmp_path / "skills", "remind")
    skill(tmp_path / "skills", "weather")
    (tmp_path / "skills" / "empty").mkdir()
    (tmp_path / "skills" / "link").symlink_to(tmp_path / "skills" / "remind")
    done = bring("clawhub", tmp_path / "skills")
    assert {(memory.name, memory.slug, memory.summary) for memory in engine.list()} == {
        ("remind me", "remind", "It does remind."), ("weather me", "weather", "It does weather."),
    }  # fmt: skip
    assert [(one.line, one.reason) for one in done.skipped] == [
        ("empty", "it has no SKILL.md"),
        ("link", "it is a link, and links are not followed"),
    ]


def test_one_skill_may_be_named_and_a_folder_without_any_is_refused(bring: Bring, tmp_path: Path) -> None:
    skill(tmp_path / "skills", "remind")
    done = bring("clawhub", tmp_path / "skills" / "remind")
    assert done.files is not None
    assert done.files.files == {"new": 1}
    (tmp_path / "none").mkdir()
    with pytest.raises(ConfigError, match="no skill is in"):
        bring("clawhub", tmp_path / "none")
