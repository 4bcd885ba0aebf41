"""An agent that knows nothing of whyrank but what the server says about itself gets along with it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .agents import over_stdio, run

if TYPE_CHECKING:
    from pathlib import Path

    from mcp import Client
    from mcp_types import Tool


@dataclass
class Agent:
    """Chooses tools and arguments by their descriptions alone, and remembers only what answers showed it."""

    client: Client
    tools: list[Tool]

    def tool(self, *words: str) -> Tool:
        """Return the one tool whose description holds all these words."""
        [found] = [tool for tool in self.tools if all(word in (tool.description or "").lower() for word in words)]
        return found

    @staticmethod
    def argument(tool: Tool, *words: str, kind: str = "string") -> str:
        """Return the first argument of a kind whose description holds one of these words, required ones first."""
        schema = tool.input_schema
        names = sorted(schema["properties"], key=lambda name: name not in schema["required"])
        for name in names:
            told = schema["properties"][name]
            if told["type"] == kind and any(word in told["description"].lower() for word in words):
                return str(name)
        raise AssertionError(f"{tool.name} has no argument about {words}")

    async def call(self, tool: Tool, arguments: dict[str, Any]) -> str:
        """Call a tool and read its text, as a model would."""
        answer = await self.client.call_tool(tool.name, arguments)
        assert not answer.is_error
        return "\n".join(part.text for part in answer.content if part.type == "text")


def identity_in(text: str) -> str:
    """Read the first id out of an answer."""
    found = re.search(r"\bm_\w+", text)
    assert found is not None, text
    return found[0]


def test_an_agent_adds_corrects_finds_reads_explains_and_forgets(workspace: Path) -> None:
    async def story() -> None:
        async with over_stdio(workspace, "--scope", "user:42") as client:
            agent = Agent(client, (await client.list_tools()).tools)
            search = agent.tool("search long-term memory", "before you answer")
            add = agent.tool("store one fact")
            get = agent.tool("read a memory whole")
            why = agent.tool("explain a search")
            forget = agent.tool("remove memories for good")
            assert forget.annotations is not None
            assert forget.annotations.destructive_hint
            question = agent.argument(search, "question")

            # It is told to search before it adds.
            before = await agent.call(search, {question: "Where does Robin live?"})
            assert "Robin" not in "".join(line for line in before.splitlines() if line.startswith("> "))
            fact = agent.argument(add, "the fact")
            first = identity_in(await agent.call(add, {fact: "Robin lives in Bergen"}))

            # The fact has changed: it was told what to name then.
            known = identity_in(await agent.call(search, {question: "Where does Robin live?"}))
            assert known == first
            moved = {fact: "Robin lives in Tromsø since March 2026", agent.argument(add, "replaces"): known}
            second = identity_in(await agent.call(add, moved))
            found = await agent.call(search, {question: "Where does Robin live?"})
            assert identity_in(found) == second
            assert "Bergen" not in found

            read = await agent.call(get, {agent.argument(get, "id"): second})
            assert "> Robin lives in Tromsø since March 2026" in read
            lost = {agent.argument(why, "query that was searched"): "Where does Robin live?"}
            told = await agent.call(why, {**lost, agent.argument(why, "id or path of the memory"): first})
            assert f"replaced by {second}" in told

            await agent.call(forget, {agent.argument(forget, "exact ids", kind="array"): [second, first]})
            after = await agent.call(search, {question: "Where does Robin live?"})
            assert "Tromsø" not in after

    run(story)


def test_an_agent_that_finds_nothing_is_told_so(workspace: Path) -> None:
    async def story() -> None:
        async with over_stdio(workspace) as client:
            agent = Agent(client, (await client.list_tools()).tools)
            search = agent.tool("search long-term memory")
            strict = agent.argument(search, "verdict is found", kind="boolean")
            asked = {agent.argument(search, "question"): "quarterly revenue of the Lisbon office", strict: True}
            assert "Nothing relevant is stored" in await agent.call(search, asked)

    run(story)
