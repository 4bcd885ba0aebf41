"""What tools say about themselves: little enough to be read at every turn, and true."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest
from mcp import Client
from mcp_types import CallToolResult, TextContent

from whyrank.engine.open import open_engine
from whyrank.errors import ConfigError
from whyrank.interfaces.arguments import understood
from whyrank.interfaces.engine_pool import Access, PooledEngine
from whyrank.interfaces.mcp.server import SCOPE, TOOLS, server_for
from whyrank.providers.wordllama import WordLlama

if TYPE_CHECKING:
    from pathlib import Path

MOST_TOKENS = 1_600


def listed(tmp_path: Path, **options: Any) -> dict[str, Any]:
    """Return what tools/list answers, as it goes over the wire."""
    access = Access(PooledEngine(tmp_path / "memory.db", open_engine), **options)

    async def ask() -> dict[str, Any]:
        async with Client(server_for(access)) as client:
            return (await client.list_tools()).model_dump(mode="json", by_alias=True, exclude_none=True)

    return asyncio.run(ask())


def text_of(answer: CallToolResult) -> str:
    (content,) = answer.content
    assert isinstance(content, TextContent)
    return content.text


def tokens(data: dict[str, Any]) -> int:
    text = json.dumps(data, ensure_ascii=False)
    return len(WordLlama()._tokenizer.encode(text, add_special_tokens=False).ids)


@pytest.mark.parametrize("is_multi_scope", [False, True])
def test_the_five_tools_cost_less_than_1600_tokens(tmp_path: Path, is_multi_scope: bool) -> None:
    told = listed(tmp_path, is_multi_scope=is_multi_scope)
    assert [tool["name"] for tool in told["tools"]] == [
        "memory_search", "memory_get", "memory_add", "memory_forget", "memory_why",
    ]  # fmt: skip
    assert tokens({"tools": told["tools"]}) < MOST_TOKENS


def test_a_recall_can_be_called_and_is_not_listed(tmp_path: Path) -> None:
    access = Access(PooledEngine(tmp_path / "memory.db", open_engine))
    access.pooled.writing().add("Suzy drinks green tea in the morning and never after four o'clock.")

    async def ask() -> list[CallToolResult]:
        async with Client(server_for(access)) as client:
            turns = ("what does Suzy drink in the morning?", "quarterly revenue of semiconductor vendors")
            return [await client.call_tool("memory_recall", {"message": turn, "session": "s"}) for turn in turns]

    found, nothing = asyncio.run(ask())
    assert "> Suzy drinks green tea" in text_of(found)
    assert text_of(nothing).startswith("Nothing to recall: ")
    assert "memory_recall" not in {tool["name"] for tool in listed(tmp_path)["tools"]}


def test_hints_say_what_reads_and_what_destroys(tmp_path: Path) -> None:
    hints = {tool["name"]: tool["annotations"] for tool in listed(tmp_path)["tools"]}
    assert {name for name, hint in hints.items() if hint["readOnlyHint"]} == {
        "memory_search", "memory_get", "memory_why",
    }  # fmt: skip
    assert {name for name, hint in hints.items() if hint["destructiveHint"]} == {"memory_forget"}
    assert all(hint["idempotentHint"] and not hint["openWorldHint"] for hint in hints.values())


def test_a_server_that_only_reads_offers_nothing_that_writes(tmp_path: Path) -> None:
    names = [tool["name"] for tool in listed(tmp_path, is_read_only=True)["tools"]]
    assert names == ["memory_search", "memory_get", "memory_why"]


def test_a_scope_can_be_chosen_only_where_the_server_allows_it(tmp_path: Path) -> None:
    def choosing(told: dict[str, Any]) -> set[str]:
        return {tool["name"] for tool in told["tools"] if "scope" in tool["inputSchema"]["properties"]}

    assert choosing(listed(tmp_path)) == set()
    assert choosing(listed(tmp_path, is_multi_scope=True)) == {tool.name for tool in TOOLS}


def test_a_list_of_no_scopes_is_refused_and_does_not_mean_those_of_the_server() -> None:
    for nothing in ([], [""], " ", "[]"):
        with pytest.raises(ConfigError, match="no scope; give one"):
            understood("memory_search", (SCOPE,), {"scope": nothing})
    assert understood("memory_search", (SCOPE,), {"scope": "user:1, user:2"}).values == {"scope": ["user:1", "user:2"]}


def test_every_argument_is_described_and_no_other_name_stands_for_two() -> None:
    for tool in TOOLS:
        names = [name for argument in tool.arguments for name in (argument.name, *argument.aliases)]
        assert all(argument.about for argument in tool.arguments)
        assert sorted(set(names)) == sorted(names), tool.name
