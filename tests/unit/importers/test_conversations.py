"""Exports of claude.ai and ChatGPT: turns with session, speaker, position and date, on the branch that was kept."""

from __future__ import annotations

import json
import zipfile
from typing import TYPE_CHECKING, Any

import pytest

from whyrank.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import whyrank
    from tests.unit.importers.conftest import Bring


def said(sender: str, text: str, **more: Any) -> dict[str, Any]:
    return {"uuid": f"u-{text}", "sender": sender, "text": text, "content": [], "created_at": "2026-04-02T10:00:00Z",
            **more}  # fmt: skip


def claude(*messages: Any, **more: Any) -> dict[str, Any]:
    return {"uuid": "c1", "name": "The pier", "created_at": "2026-04-01T00:00:00Z", "chat_messages": messages, **more}


def node(parent: str | None, role: str, *parts: Any, **message: Any) -> dict[str, Any]:
    content = {"content_type": "text", "parts": parts}
    return {"parent": parent, "message": {
        "author": {"role": role}, "content": content, "create_time": 1775124000.5, **message,
    }}  # fmt: skip


def chatgpt(current: str, **mapping: Any) -> dict[str, Any]:
    return {"id": "g1", "title": "The pier", "create_time": 1775000000, "current_node": current, "mapping": mapping}


def written(folder: Path, conversations: Sequence[Any], name: str = "conversations.json") -> Path:
    (folder / name).write_text(json.dumps(conversations), encoding="utf-8")
    return folder / name


def test_messages_of_claude_are_turns(engine: whyrank.Engine, bring: Bring, tmp_path: Path) -> None:
    blocks = [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "At the north pier."}]
    file = written(tmp_path, [claude(said("human", "Where to?"), said("assistant", "x", content=blocks))])
    assert bring("claude", file).new == 2
    first, second = engine.list()
    assert (first.text, first.speaker, first.position) == ("human: Where to?", "human", 0)
    assert (second.text, second.position) == ("assistant: At the north pier.", 1)
    assert first.session == second.session == "claude/c1"
    assert (first.title, first.date) == ("The pier", 1775124000.0)  # 2026-04-02T10:00Z


def test_of_claude_the_branch_to_the_last_message_is_read_where_it_is_named(
    engine: whyrank.Engine, bring: Bring, tmp_path: Path
) -> None:
    messages = [
        said("human", "a"),
        said("assistant", "left", parent_message_uuid="u-a"),
        said("assistant", "kept", parent_message_uuid="u-a"),
    ]
    bring("claude", written(tmp_path, [claude(*messages, current_leaf_message_uuid="u-kept")]))
    assert [turn.text for turn in engine.list()] == ["human: a", "assistant: kept"]


def test_of_chatgpt_the_branch_to_the_current_node_is_read(
    engine: whyrank.Engine, bring: Bring, tmp_path: Path
) -> None:
    mapping = {
        "root": {"parent": None, "message": None},
        "system": node("root", "system", "Be kind."),
        "one": node("system", "user", "Where to?"),
        "left": node("one", "assistant", "To the south pier."),
        "tool": node("one", "tool", "42"),
        "kept": node("tool", "assistant", "To the north pier.", {"asset_pointer": "file"}),
        "hidden": node("kept", "user", "profile", metadata={"is_visually_hidden_from_conversation": True}),
        "call": node("hidden", "assistant", "search()", recipient="browser"),
    }
    done = bring("chatgpt", written(tmp_path, [chatgpt("call", **mapping)]))
    turns = engine.list()
    assert [turn.text for turn in turns] == ["user: Where to?", "assistant: To the north pier."]
    assert [turn.position for turn in turns] == [0, 1]
    assert turns[0].date == 1775124000.5
    assert [one.reason for one in done.skipped] == ["1 message is on branches that were left"]


def test_an_export_is_read_out_of_its_archive(bring: Bring, engine: whyrank.Engine, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "export.zip", "w") as archive:
        for number in (0, 1):
            one = {**chatgpt("a", a=node(None, "user", f"note {number}")), "id": f"g{number}"}
            archive.writestr(f"export/conversations-00{number}.json", json.dumps([one]))
        archive.writestr("../outside.json", "[]")
        archive.writestr("user.json", "{}")
    done = bring("chatgpt", tmp_path / "export.zip")
    assert done.new == 2
    assert [one.line for one in done.skipped] == ["../outside.json", "user.json"]
    assert {turn.session for turn in engine.list()} == {"chatgpt/g0", "chatgpt/g1"}
    assert not (tmp_path.parent / "outside.json").exists()


def test_an_unpacked_export_is_read_from_its_folder(bring: Bring, tmp_path: Path) -> None:
    (tmp_path / "export").mkdir()
    written(tmp_path / "export", [claude(said("human", "a"))])
    assert bring("claude", tmp_path / "export").new == 1


def test_a_later_export_adds_what_was_said_since(bring: Bring, engine: whyrank.Engine, tmp_path: Path) -> None:
    messages = [said("human", "a"), said("human", "a"), said("assistant", "b")]
    assert bring("claude", written(tmp_path, [claude(*messages[:2])])).new == 2  # said twice, kept twice
    done = bring("claude", written(tmp_path, [claude(*messages)]))
    assert (done.new, done.unchanged) == (1, 2)
    assert [turn.position for turn in engine.list()] == [0, 1, 2]


def test_conversations_that_cannot_be_read_are_named(bring: Bring, tmp_path: Path) -> None:
    done = bring("chatgpt", written(tmp_path, [
        7, {"id": "x"}, chatgpt("gone", a=node(None, "user", "a")),
        chatgpt("b", a=node("b", "user", "first"), b=node("a", "user", "second")),
    ]))  # fmt: skip
    assert done.new == 2  # parents in a circle end where they began
    assert [one.line for one in done.bad] == [f"conversations.json, conversation {number}" for number in (1, 2, 3)]
    done = bring("claude", written(tmp_path, [claude(said("human", "a", created_at="soon"), 7, said("human", ""))]))
    assert [one.line.rpartition(", ")[2] for one in done.bad if isinstance(one.line, str)] == ["message 1", "message 2"]
    assert [one.reason for one in done.skipped] == ["it holds no text"]


def test_messages_without_text_and_exports_of_others_are_reported(bring: Bring, tmp_path: Path) -> None:
    done = bring("claude", written(tmp_path, [chatgpt("a", a=node(None, "user", "a"))]))
    assert done.bad[0].reason == "a conversation of claude.ai has a uuid and chat_messages"
    (tmp_path / "empty").mkdir()
    with pytest.raises(ConfigError, match=r"there is no conversations\.json"):
        bring("chatgpt", tmp_path / "empty")
    with zipfile.ZipFile(tmp_path / "other.zip", "w") as archive:
        archive.writestr("chat.html", "")
    with pytest.raises(ConfigError, match=r"there is no conversations\.json"):
        bring("chatgpt", tmp_path / "other.zip")


def test_damaged_archives_are_named(bring: Bring, tmp_path: Path) -> None:
    file = tmp_path / "export.zip"
    conversations = [claude(said("human", f"note {number} " * 50), uuid=f"c{number}") for number in range(400)]
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("conversations.json", json.dumps(conversations))
    whole = file.read_bytes()
    file.write_bytes(whole[:100] + bytes(byte ^ 0xFF for byte in whole[100:200]) + whole[200:])
    done = bring("claude", file)
    assert not done.is_whole
    file.write_bytes(whole[:-30])  # half downloaded: no list of members at its end
    assert not bring("claude", file).is_whole
