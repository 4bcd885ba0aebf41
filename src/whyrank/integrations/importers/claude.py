"""Exports of claude.ai: conversations with their messages, in their order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...engine.export import Item
from ...errors import ConfigError
from . import streams
from .records import Turns, moment_of, read_item

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from ...types.memory import Scope
    from .records import Findings

WHAT = "the zip of the export, or its conversations.json"
_KNOWN = frozenset({
    "uuid", "name", "summary", "created_at", "updated_at", "account", "chat_messages", "current_leaf_message_uuid",
})  # fmt: skip
_MESSAGE = frozenset({
    "uuid", "sender", "text", "content", "created_at", "updated_at", "attachments", "files", "index",
    "parent_message_uuid",
})  # fmt: skip


def records(path: Path, scope: Scope, findings: Findings) -> Iterator[Item]:
    """Yield a turn for every message that holds text."""
    findings.left_out += [(name, "it holds no conversations") for name in streams.others(path, "conversations")]
    for name, stream in streams.parts(path, "conversations", WHAT):
        number = 0
        try:
            for key, said in streams.elements(stream, ["conversations"]):
                if key not in ("", "conversations"):
                    continue
                number += 1
                yield from _conversation(f"{name}, conversation {number}", said, scope, findings)
        except streams.Unreadable as error:
            yield Item(f"{name}, after conversation {number}", None, str(error))


def _conversation(place: str, said: Any, scope: Scope, findings: Findings) -> Iterator[Item]:
    if not isinstance(said, dict) or not said.get("uuid") or not isinstance(said.get("chat_messages"), list):
        yield Item(place, None, "a conversation of claude.ai has a uuid and chat_messages")
        return
    findings.name_unknown("conversation", said, _KNOWN)
    try:
        created = moment_of("created_at", said.get("created_at"))
    except ConfigError as error:
        yield Item(place, None, error.message)
        return
    title = said.get("name")
    turns = Turns(f"claude/{said['uuid']}", scope, title if isinstance(title, str) else "", created or 0.0)
    for number, message in enumerate(_branch(said), 1):
        where = f"{place}, message {number}"
        if not isinstance(message, dict):
            yield Item(where, None, "it is no object")
            continue
        findings.name_unknown("message", message, _MESSAGE)
        if text := _text(message):
            yield read_item(where, turns.turn, _speaker(message), text, message.get("created_at"))
        else:
            findings.left_out.append((where, "it holds no text"))


def _branch(said: Mapping[str, Any]) -> Sequence[Any]:
    """Return the messages that led to the last one, where an export names it; all of them else."""
    messages: list[Any] = said["chat_messages"]
    by_id = {one["uuid"]: one for one in messages if isinstance(one, dict) and isinstance(one.get("uuid"), str)}
    leaf, branch = said.get("current_leaf_message_uuid"), list[Any]()
    while isinstance(leaf, str) and leaf in by_id:
        branch.append(by_id.pop(leaf))
        leaf = branch[-1].get("parent_message_uuid")
    return branch[::-1] or messages


def _speaker(message: Mapping[str, Any]) -> str:
    sender = message.get("sender")
    return sender if isinstance(sender, str) else ""


def _text(message: Mapping[str, Any]) -> str:
    """Return what was said: the blocks of text, or the text where there are none; attachments by their texts."""
    content = message.get("content")
    blocks = content if isinstance(content, list) else []
    said = [
        one["text"] for one in blocks
        if isinstance(one, dict) and one.get("type") == "text" and isinstance(one.get("text"), str)
    ]  # fmt: skip
    if not any(one.strip() for one in said) and isinstance(message.get("text"), str):
        said = [message["text"]]
    return "\n".join(one.strip() for one in said if one.strip())
