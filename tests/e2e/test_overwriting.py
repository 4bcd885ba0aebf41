"""Nothing is written over that whyrank did not write, nothing said is ignored, and no folder is made unasked."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from .conftest import STORE, Run

if TYPE_CHECKING:
    from pathlib import Path

SET = {
    "corpus.jsonl": '{"id": "d1", "text": "Robin prefers green tea"}\n{"id": "d2", "text": "The ferry leaves"}\n',
    "queries.jsonl": '{"id": "q1", "text": "which tea?"}\n',
    "qrels.tsv": "query\tdocument\tgain\nq1\td1\t1\n",
}


@pytest.fixture
def dataset(workspace: Path) -> str:
    folder = workspace / "set"
    folder.mkdir()
    for name, text in SET.items():
        (folder / name).write_text(text, encoding="utf-8")
    return str(folder)


def test_an_export_takes_the_place_of_an_earlier_one_of_its_scope_alone(call: Run, workspace: Path) -> None:
    call("add", "Robin prefers tea", "--scope", "user:42")
    assert call("export", "--scope", "user:42", "--out", "kept.jsonl").status == 0
    assert call("export", "--scope", "user:42", "--out", "kept.jsonl").status == 0
    before = (workspace / "kept.jsonl").read_bytes()
    refused = call("export", "--out", "kept.jsonl")
    assert refused.status == 2
    assert "already exists and is not an export of global" in refused.err
    assert "name another file" in refused.err
    assert (workspace / "kept.jsonl").read_bytes() == before
    refused = call("export", "--out", "notes/tea.md", "--json")
    assert (refused.status, refused.data["error"]["code"]) == (2, "config")
    assert "Suzy" in (workspace / "notes/tea.md").read_text(encoding="utf-8")


def test_a_run_is_written_over_a_run_alone(call: Run, workspace: Path, dataset: str) -> None:
    (workspace / "run.txt").write_text("my own notes\n", encoding="utf-8")
    refused = call("eval", dataset, "--embedding", "none", "--run-out", "run.txt")
    assert (refused.status, "is not a run that whyrank wrote" in refused.err) == (2, True)
    assert (workspace / "run.txt").read_text(encoding="utf-8") == "my own notes\n"
    for _ in range(2):
        assert call("eval", dataset, "--embedding", "none", "--run-out", "new.txt").status == 0
    assert (workspace / "new.txt").read_text(encoding="utf-8").startswith("q1 Q0 d1 1 ")


@pytest.mark.parametrize("verb", [["tune"], ["eval", "set", "--abstention", "set"]], ids=["tune", "eval"])
def test_a_plot_is_drawn_over_a_plot_alone(call: Run, workspace: Path, dataset: str, verb: list[str]) -> None:
    picture = workspace / "mine.svg"
    picture.write_text("<svg>my own</svg>", encoding="utf-8")
    refused = call(*verb, "--plot", "mine.svg")
    assert (refused.status, "is not a picture that whyrank drew" in refused.err) == (2, True)
    assert picture.read_text(encoding="utf-8") == "<svg>my own</svg>"


def test_a_plot_of_ours_may_be_drawn_again(call: Run, workspace: Path) -> None:
    for _ in range(2):
        assert call("tune", "--plot", "tuning.svg").status == 0
    assert "whyrank" in (workspace / "tuning.svg").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (["--port", "9000"], "--port is for servers that listen"),
        (["--port", "8642"], "--port is for servers that listen"),
        (["--host", "0.0.0.0", "--port", "1"], "--host and --port are for servers that listen"),
        (["--allow-host", "box"], "--allow-host is for servers that listen"),
        (["--token-file", "token.txt", "--print-config", "cursor"], "--token-file is for servers that listen"),
    ],
)
def test_where_to_listen_is_not_ignored_by_a_server_that_does_not(call: Run, options: list[str], named: str) -> None:
    refused = call("mcp", *options)
    assert (refused.status, refused.out) == (2, "")
    assert named in refused.err
    assert "add --http" in refused.err


def test_a_client_is_still_told_of_the_usual_place(call: Run) -> None:
    told = json.dumps(call("mcp", "--http", "--print-config", "cursor", "--json").data["config"])
    assert "http://127.0.0.1:8642/mcp" in told


@pytest.mark.parametrize("verb", [["add", "tea"], ["search", "tea"], ["config"], ["serve"]])
def test_a_workspace_that_is_not_there_is_not_made(call: Run, workspace: Path, verb: list[str]) -> None:
    refused = call(*verb, "--workspace", "tpyo")
    assert (refused.status, refused.out) == (2, "")
    assert f"there is no folder {workspace / 'tpyo'}" in refused.err
    assert "create it, or name another one with --workspace" in refused.err
    assert not (workspace / "tpyo").exists()
    assert call("status", WHYRANK_WORKSPACE="tpyo").status == 2
    assert (workspace / STORE).exists()
