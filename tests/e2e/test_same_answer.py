"""Law 9: the same question gets the same answer through library, command line, MCP over stdio and HTTP, and REST."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from whyrank.analysis.sanitize import visible_data
from whyrank.interfaces import serialize

from .agents import listening, over_http, over_stdio, run, told
from .conftest import NOTES, STORE, Run
from .rest import searched, serving

if TYPE_CHECKING:
    from pathlib import Path

    from mcp import Client

    import whyrank

FACTS = {
    "user:42": ["Robin prefers green tea", "Robin's boat is called Heron", "The spare key hangs in the shed"],
    "user:7": ["Kim prefers coffee", "Kim's boat is called Swift"],
    "global": ["The ferry leaves at seven", "Завтра привезут дрова", "茶は棚の上にあります"],
}
FOREIGN = [
    "who won the chess tournament in Oslo", "quantum chromodynamics lattice", "price of copper", "", "   ",
    "the of and", "c++", "api-key", "don't", "NOT", '"green tea"', "NEAR(a b)", "*", "дрова", "棚の茶", "🙂",
    "a" * 300, "tea\x00pot",
]  # fmt: skip
VARIED: list[dict[str, Any]] = [
    {}, {"limit": 1}, {"limit": 50}, {"offset": 2}, {"kind": "fact"}, {"kind": "chunk"}, {"strict": True},
    {"max_tokens": 30}, {"tags": ["kitchen"]}, {"path": "notes/garden/*"}, {"since": "2026-03-01"},
    {"before": "2026-03-01"}, {"include_superseded": True}, {"language": "en"}, {"language": "ru"},
]  # fmt: skip


def questions() -> list[tuple[str, dict[str, Any]]]:
    """Make questions of the notes: sentences, their halves, their rarest words, misspelt; each asked in some way."""
    texts = [*NOTES.values(), *(fact for facts in FACTS.values() for fact in facts)]
    sentences = [one.strip() for text in texts for one in re.split(r"[.\n]", text) if len(one.split()) > 2]
    asked = dict.fromkeys(FOREIGN)
    for sentence in sentences:
        words = sentence.split()
        longest = max(words, key=len)
        swapped = longest[:2] + longest[3:4] + longest[2:3] + longest[4:]
        asked |= dict.fromkeys([f"{sentence}?", " ".join(words[: len(words) // 2]), longest, f"what about {swapped}"])
    return [(question, VARIED[place % len(VARIED)]) for place, question in enumerate(asked)]


def comparable(answer: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in answer.items() if key != "timings"}


def options(arguments: dict[str, Any]) -> list[str]:
    """Write arguments as one types them."""
    words = []
    for key, value in arguments.items():
        option = "--" + {"tags": "tag"}.get(key, key).replace("_", "-")
        words += [option] if value is True else [option, str(value[0] if isinstance(value, list) else value)]
    return words


def written(arguments: dict[str, Any]) -> dict[str, Any]:
    """Write arguments as they stand in an address."""
    return {key: "true" if value is True else value for key, value in arguments.items()}


def test_every_door_gives_the_same_answer_to_more_than_a_hundred_questions(
    workspace: Path, engine: whyrank.Engine, call: Run
) -> None:
    for scope, facts in FACTS.items():
        for fact in facts:
            engine.add(fact, scope=scope)
    asked = questions()
    assert len(asked) > 100
    library = [
        comparable(serialize.results(engine.search(question, scope="user:42", **arguments)))
        for question, arguments in asked
    ]
    assert {answer["verdict"] for answer in library} == {"found", "weak", "nothing"}
    assert sum(len(answer["hits"]) for answer in library) > 200

    async def answers(client: Client) -> list[dict[str, Any]]:
        return [
            comparable((await told(client, "memory_search", query=question, **arguments)).data)
            for question, arguments in asked
        ]

    async def ask() -> tuple[list[Any], list[Any]]:
        async with over_stdio(workspace, "--scope", "user:42") as one, over_http(served.url) as other:
            return await answers(one), await answers(other)

    with listening(workspace, "--scope", "user:42") as served:
        stdio, http = run(ask)
    with serving(workspace, "--scope", "user:42") as server:
        rest = [comparable(searched(server, question, **arguments).json()) for question, arguments in asked]
        addressed = [
            comparable(server.client.get("/v1/search", params={"query": question, **written(arguments)}).json())
            for question, arguments in asked
        ]
    for place, (question, arguments) in enumerate(asked):
        assert rest[place] == library[place], (question, arguments)
        assert addressed[place] == library[place], (question, arguments)
        agents = visible_data(library[place])  # what no person would see is written out for agents
        assert stdio[place] == agents, (question, arguments)
        assert http[place] == agents, (question, arguments)
    typed = [place for place, (question, _) in enumerate(asked) if "\x00" not in question]
    assert len(typed) > 100
    for place in typed:
        question, arguments = asked[place]
        done = call("search", "--scope", "user:42", "--json", *options(arguments), "--", question)
        assert comparable(done.data) == library[place], (question, arguments)


def test_the_other_answers_are_the_librarys_too(workspace: Path, engine: whyrank.Engine) -> None:
    query = "what does Suzy drink"
    first, second = [hit.id for hit in engine.search(query)[:2]]
    expected = [
        serialize.why(engine.why(query, first)),
        serialize.contrast(engine.why(query, second, over=first)),
        serialize.memory(engine.get(first)),
    ]

    async def ask() -> list[Any]:
        async with over_stdio(workspace, "--store", str(workspace / STORE)) as client:
            why = await told(client, "memory_why", query=query, id=first)
            contrast = await told(client, "memory_why", query=query, id=second, over=first)
            [memory] = (await told(client, "memory_get", id=first)).data["memories"]
            return [why.data, contrast.data, memory]

    why, contrast, memory = run(ask)
    assert why == {**expected[0], "notices": []}
    assert contrast == expected[1]
    assert {key: value for key, value in memory.items() if key not in ("offset", "characters")} == expected[2]
