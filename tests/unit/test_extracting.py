"""Facts from files through the facade: whose they are, and what is left of them when they are erased."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import whyrank
from whyrank.errors import ConfigError, ProviderUnavailable
from whyrank.testing.fakes import ScriptedLlm

if TYPE_CHECKING:
    from pathlib import Path

TEXT = "The lamp tool is switched on with the command lampctl start."
LINE = '{"text": "Say lampctl start to switch on the lämp", "evidence": "the command lampctl"}'


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    folder = tmp_path / "workspace"
    folder.mkdir()
    (folder / "TOOLS.md").write_text(TEXT, encoding="utf-8")
    return folder


def opened(place: Path, *answers: str) -> whyrank.Engine:
    return whyrank.open(place / "memory.db", workspace=place, llm=ScriptedLlm(*answers), embedding="wordllama")


def bytes_below(place: Path) -> bytes:
    return b"".join(file.read_bytes() for file in place.glob("memory.db*")).lower()


def test_a_purged_fact_leaves_no_trace_in_what_was_left_out(place: Path) -> None:
    loud = LINE.replace("Say lampctl start", "SAY LAMPCTL START").replace("\u00e4", "\\u00e4")
    with opened(place, f"{LINE}\n{loud}\nSome chatter about birds") as memory:
        [(fact, _)] = memory.ingest_files(scope="user:1").stored
        [record] = memory.memories.extraction_rejects(scope="user:1")
        assert [line.line for line in record.left_out] == [
            "SAY LAMPCTL START to switch on the l\u00e4mp", "Some chatter about birds",
        ]  # fmt: skip
        assert memory.memories.extraction_rejects() == []  # scope is a wall here too
        memory.forget(fact.id, scope="user:1", purge=True)
        [record] = memory.memories.extraction_rejects(scope="user:1")
        assert [line.line for line in record.left_out] == ["Some chatter about birds"]
        assert record.more_left_out == 1
        assert b"lampctl" not in bytes_below(place)
        assert memory.ingest_files(scope="user:1").asked == 0  # and it does not come back


def test_an_erased_scope_keeps_no_record(place: Path) -> None:
    with opened(place, "I know a secret", "I know a secret", LINE) as memory:
        memory.ingest_files(scope="user:1")
        memory.ingest_files(scope="user:11")
        memory.memories.forget_scope("user:1", purge=True)
        assert memory.memories.extraction_rejects(scope="user:1") == []
        assert b"secret" not in bytes_below(place)
        assert memory.ingest_files(scope="user:11").asked == 0  # another scope, though its name begins alike


def test_a_store_opened_without_a_model_can_plan_and_says_what_is_missing(place: Path) -> None:
    with whyrank.open(place / "memory.db", workspace=place, embedding="none") as memory:
        assert memory.ingest_files(plan=True).waiting == 1
        with pytest.raises(ProviderUnavailable, match=r"llm\.model is not set"):
            memory.ingest_files()
        with pytest.raises(ConfigError, match="there is no folder"):
            memory.ingest_files(plan=True, workspace=place / "nowhere")
