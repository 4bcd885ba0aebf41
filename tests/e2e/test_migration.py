"""Coming from another system on the command line: what is imported, what is said, and how the rankings compare."""

from __future__ import annotations

import json
import signal
from typing import TYPE_CHECKING

import pytest

from ..processes import started
from .conftest import COMMAND

if TYPE_CHECKING:
    from pathlib import Path

    from .conftest import Run

TEA = {"memory": "Suzy prefers tea", "user_id": "42", "mood": 1}


def exported(workspace: Path, *memories: object) -> str:
    (workspace / "mem0.json").write_text(json.dumps([*memories]), encoding="utf-8")
    return "mem0.json"


def test_an_import_says_what_it_took_and_what_it_did_not(workspace: Path, call: Run) -> None:
    done = call("import", "mem0", exported(workspace, TEA, {"memory": 7}))
    assert done.status == 14
    assert done.out == "1 memory imported, 0 unchanged\n"
    assert done.err.splitlines() == [
        "not read: the field memory.mood of 1 record",
        "could not read memory 2: its text is 7, which is not a text",
    ]
    assert (
        call("search", "what does Suzy prefer?", "--scope", "user:42", "--json").data["hits"][0]["text"]
        == TEA["memory"]
    )


def test_the_json_of_an_import_has_the_documented_keys(workspace: Path, call: Run) -> None:
    done = call("import", "mem0", exported(workspace, TEA, {"memory": 7}), "--json", "--dry-run")
    assert done.data == {
        "system": "mem0", "new": 1, "unchanged": 0, "skipped": [],
        "bad": [{"place": "memory 2", "id": "", "reason": "its text is 7, which is not a text"}],
        "unknown_fields": {"memory.mood": 1}, "settings": [], "vectors": {"offered": 0, "taken": 0, "refused": {}},
        "remarks": [], "files": None, "dry_run": True, "format": 1,
    }  # fmt: skip


def test_a_workspace_is_imported_with_its_settings(workspace: Path, call: Run) -> None:
    claw = workspace / "claw"
    (claw / "memory").mkdir(parents=True)
    (claw / "MEMORY.md").write_text("# Ferry\n\nThe ferry leaves at noon.\n", encoding="utf-8")
    said = {"memorySearch": {"query": {"minScore": 0.25}, "store": {"path": "x"}}}
    (claw / "openclaw.json").write_text(json.dumps(said), encoding="utf-8")
    done = call("import", "openclaw", "claw")
    assert done.status == 0
    assert "files: 1 new" in done.out
    assert "  ranking.min_score = 0.25\n    from memorySearch.query.minScore: the minimum" in done.out
    assert "without effect here: memorySearch.store.path" in done.out
    assert call("config", "ranking.min_score").out.startswith("ranking.min_score = unset")
    data = call("import", "openclaw", "claw", "--json").data
    assert data["files"]["files"]["unchanged"] == 1
    assert data["settings"][0]["becomes"] == {"recipe": "openclaw", "ranking.min_score": 0.25}


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        (("import", "openclw", "x"), "did you mean 'openclaw'?"),
        (("import", "mem0", "nowhere.json"), "there is no file nowhere.json"),
        (("import", "whyrank", "x.jsonl", "--scope", "user:1"), "an export names the scope of every memory"),
        (("compare-with", "opnclaw", "--queries", "q"), "did you mean 'openclaw'?"),
        (("compare-with", "openclaw", "--queries", "nowhere"), "there is no file nowhere"),
        (("compare-with", "clawhub", "--queries", "q", "--settings", "s"), "leave --settings out"),
    ],
)
def test_a_slip_is_answered_with_advice(call: Run, typed: tuple[str, ...], said: str) -> None:
    done = call(*typed)
    assert done.status == 2
    assert said in done.err


def test_a_killed_import_goes_on_where_it_was(workspace: Path, call: Run) -> None:
    lines = (json.dumps({"text": f"note number {number} of the harbour"}) for number in range(4_000))
    (workspace / "many.jsonl").write_text("\n".join(lines), encoding="utf-8")
    held = call("status", "--json").data["memories"]
    with started([str(COMMAND), "import", "jsonl", "many.jsonl", "--json"], cwd=workspace) as child:
        while call("status", "--json").data["memories"] < held + 256:  # the first transaction
            assert child.poll() is None
        child.send_signal(signal.SIGKILL)
        child.wait()
    stored = call("status", "--json").data["memories"] - held
    assert stored % 256 == 0  # whole transactions
    done = call("import", "jsonl", "many.jsonl", "--json").data
    assert (done["new"], done["unchanged"]) == (4_000 - stored, stored)
    assert call("doctor").status == 0


def test_rankings_are_compared_and_lost_hits_marked(workspace: Path, call: Run) -> None:
    """openclaw-2026-02 joins words by AND and cuts at 0.35, so a natural question loses what only some words match."""
    (workspace / "q.txt").write_text("when does Suzy drink tea?\n\nwhere is the oarlock oiled\n", encoding="utf-8")
    done = call("compare-with", "openclaw", "--queries", "q.txt", "--limit", "2", "--json").data
    assert done["recipes"] == {"old": "openclaw-2026-02", "new": "default"}
    assert [one["query"] for one in done["queries"]] == ["when does Suzy drink tea?", "where is the oarlock oiled"]
    first = done["queries"][0]
    assert first["verdict"] == "found"
    assert first["new"][0]["path"] == "notes/tea.md"
    lost = [hit["lost"] for one in done["queries"] for hit in one["new"] if hit["lost"]]
    assert done["lost"]["old"] == len(lost) > 0
    assert any("is below 0.35" in reason for reason in lost)
    text = call("compare-with", "openclaw", "--queries", "q.txt", "--limit", "2").out
    assert "default (verdict: found)" in text
    assert f"does not show {len(lost)} hits of default (+)" in text


def test_their_settings_decide_the_old_ranking_and_ours_do_not(workspace: Path, call: Run) -> None:
    (workspace / "q.txt").write_text("when does Suzy drink tea?\n", encoding="utf-8")
    (workspace / "openclaw.json").write_text('{"memorySearch": {"query": {"maxResults": 1}}}', encoding="utf-8")
    (workspace / "whyrank.toml").write_text("limit = 4\n", encoding="utf-8")
    done = call("compare-with", "openclaw", "--queries", "q.txt", "--settings", "openclaw.json", "--json").data
    assert done["recipes"]["old"] == "openclaw"
    assert [len(done["queries"][0][side]) for side in ("old", "new")] == [1, 1]
    assert done["settings"][0]["becomes"] == {"recipe": "openclaw", "limit": 1, "ranking.pool": 4}
