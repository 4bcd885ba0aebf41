"""Exports of ChatGPT: conversations as trees of messages, of which the branch to the current node is read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...engine.export import Item
from ...errors import ConfigError
from ...formatting import counted
from . import streams
from .records import Turns, moment_of, read_item

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from ...types.memory import Scope
    from .records import Findings

WHAT = "the zip of the export, or its conversations.json"
_SPEAKERS = ("user", "assistant")  # messages of the system and of tools are not what somebody said
_TEXTS = ("text", "multimodal_text", "code")


def records(path: Path, scope: Scope, findings: Findings) -> Iterator[Item]:
    """Yield a turn for every message of users and the assistant on the current branch."""
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
    identity = (said.get("conversation_id") or said.get("id")) if isinstance(said, dict) else None
    if not isinstance(identity, str) or not isinstance(said.get("mapping"), dict):
        yield Item(place, None, "a conversation of ChatGPT has an id and a mapping")
        return
    branch = _branch(said["mapping"], said.get("current_node"))
    if not branch:
        yield Item(place, None, f"its current_node is {said.get('current_node')!r:.60}, which is not in its mapping")
        return
    try:
        created = moment_of("create_time", said.get("create_time"))
    except ConfigError as error:
        yield Item(place, None, error.message)
        return
    title = said.get("title")
    turns = Turns(f"chatgpt/{identity}", scope, title if isinstance(title, str) else "", created or 0.0)
    others = sum(_is_spoken(node) for node in said["mapping"].values()) - sum(map(_is_spoken, branch))
    if others:
        told = counted(others, "message is", "messages are")
        findings.left_out.append((place, f"{told} on branches that were left"))
    for number, node in enumerate(branch, 1):
        where = f"{place}, message {number}"
        if not _is_spoken(node):
            continue
        message = node["message"]
        if text := _text(message["content"]):
            yield read_item(where, turns.turn, message["author"]["role"], text, message.get("create_time"))
        else:
            findings.left_out.append((where, "it holds no text"))


def _branch(mapping: Mapping[str, Any], current: object) -> list[dict[str, Any]]:
    """Return the nodes from the first to the current one; a circle of parents ends where it began."""
    branch: list[dict[str, Any]] = []
    met: set[str] = set()
    while isinstance(current, str) and current not in met and isinstance(mapping.get(current), dict):
        met.add(current)
        branch.append(mapping[current])
        current = branch[-1].get("parent")
    return branch[::-1]


def _is_spoken(node: object) -> bool:
    """Return whether a node is a message of a user or of the assistant to the user."""
    message = node.get("message") if isinstance(node, dict) else None
    if not isinstance(message, dict) or not isinstance(message.get("content"), dict):
        return False
    author, metadata = message.get("author"), message.get("metadata")
    is_hidden = isinstance(metadata, dict) and metadata.get("is_visually_hidden_from_conversation") is True
    is_said = isinstance(author, dict) and author.get("role") in _SPEAKERS
    is_text = message["content"].get("content_type") in _TEXTS
    return is_said and is_text and not is_hidden and message.get("recipient") in (None, "all")


def _text(content: Mapping[str, Any]) -> str:
    """Return the texts of a message; images and files among its parts have none."""
    parts = content.get("parts")
    said = parts if isinstance(parts, list) else [content.get("text")]
    return "\n".join(one.strip() for one in said if isinstance(one, str) and one.strip())
