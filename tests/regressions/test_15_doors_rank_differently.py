"""Failure 15: CLI, tool and API rank differently."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

import whyrank
from whyrank.interfaces.cli.main import main

if TYPE_CHECKING:
    from pathlib import Path

# More than a hundred questions go through MCP too, in tests/e2e/test_same_answer.py.


@pytest.mark.parametrize("query", ["green tea", "Remind Me", "what is to be done?", "zebra"])
def test_library_and_command_line_give_the_same_answer(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], query: str
) -> None:
    store = tmp_path / "memory.db"
    with whyrank.open(store, workspace=tmp_path) as engine:
        for text in ("green tea", "black tea", "a list of what is to be done", "the zoo"):
            engine.add(text)
        library = [(hit.id, hit.score, hit.confidence) for hit in engine.search(query)]
    assert main(["search", query, "--store", str(store), "--workspace", str(tmp_path), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [(hit["id"], hit["score"], hit["confidence"]) for hit in told["hits"]] == library
