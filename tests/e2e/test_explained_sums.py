"""Law 1 through every interface: what library, command line, REST and MCP say of a score adds up to it, read from JSON.

The example memories have German notes (a word of four letters is a gram too), files of several chunks, and the log of a
call with speakers, dates and windows.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import whyrank
from tests.sums import TERM_FIELDS, faults, faults_of_hits, folded, replayed, shared_names
from whyrank.interfaces import serialize
from whyrank.interfaces.cli.main import main
from whyrank.ranking.recipes import RECIPES
from whyrank.testing.fakes import ScriptedLlm

from .agents import listening, over_http, run, told
from .conftest import STORE
from .rest import Serving, serving

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mcp import Client

EXAMPLES = Path(__file__).parents[2] / "examples"
QUESTIONS = (
    "Suzy's day rate in May",  # of which a memory holds every word, as a recipe that joins them by AND wants
    "What did Suzy say to Tomas in June 2026?",
    "Raum und Saal: Messung im Mai, Miete für das Studio",
    '"day rate" of Suzy in the cafe in May',
    "what changed since the last call about the wind farm survey?",
    "saal* OR raum*",
)
WITH_WORDS = [name for name, recipe in RECIPES.items() if "keyword" in recipe.plan.runs]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("explained")
    with whyrank.open(folder / STORE, workspace=folder, embedding="wordllama") as memory:
        memory.ingest(EXAMPLES / "memory", base=EXAMPLES / "memory")
        memory.add("Suzy paid the day rate in the café, on 19 May 2026", entities=["Suzy"])
        memory.add("Suzy's rate in the cafe was paid in May", importance=5)
    return folder


@pytest.fixture(scope="module")
def engine(folder: Path) -> Iterator[whyrank.Engine]:
    with whyrank.open(folder / STORE, workspace=folder) as memory:
        yield memory


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Serving]:
    with serving(folder) as server:
        yield server


def explained(engine: whyrank.Engine, question: str, recipe: str, limit: int = 6) -> dict[str, Any]:
    results = engine.search(question, recipe=recipe, limit=limit)
    data: dict[str, Any] = json.loads(json.dumps(serialize.results(results, explain=True)))
    return data


@pytest.mark.parametrize("recipe", WITH_WORDS)
def test_the_librarys_hits_and_their_json_add_up(engine: whyrank.Engine, recipe: str) -> None:
    for question in QUESTIONS:
        results = engine.search(question, recipe=recipe)
        for hit in (*results.hits, *results.dropped):
            for part in hit.trail[0].parts:
                if part.signal == "keyword":
                    assert folded(term.value for term in part.terms) == (part.raw or 0.0)
        assert faults_of_hits(explained(engine, question, recipe)) == []


def has_terms(answer: dict[str, Any]) -> bool:
    return any(part["terms"] for hit in answer["hits"] for step in hit["trail"] for part in step["parts"])


def test_some_terms_of_these_answers_share_their_name(engine: whyrank.Engine) -> None:
    assert sum(shared_names(explained(engine, question, "default")) for question in QUESTIONS) > 100


@pytest.mark.parametrize("recipe", WITH_WORDS)
def test_what_the_command_line_prints_adds_up(
    folder: Path, recipe: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    for question in QUESTIONS[:2]:
        assert main(["search", question, "--recipe", recipe, "--json", "--explain"]) == 0
        answer = json.loads(capsys.readouterr().out)
        assert has_terms(answer) or question != QUESTIONS[0]
        assert faults_of_hits(answer) == []


def test_what_why_prints_adds_up(
    folder: Path, engine: whyrank.Engine, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    answer = explained(engine, QUESTIONS[0], "default")
    for hit in (answer["hits"][0], answer["dropped"][0]):
        assert main(["why", QUESTIONS[0], hit["id"], "--json"]) == 0
        assert_adds_up(json.loads(capsys.readouterr().out))


def assert_adds_up(why: dict[str, Any]) -> None:
    assert any(part["terms"] for part in why["trail"][0]["parts"])
    assert [*faults(why["trail"])] == []
    assert replayed(why["trail"])[1] == why["score"]


@pytest.mark.parametrize("recipe", WITH_WORDS)
def test_what_rest_answers_adds_up(server: Serving, recipe: str) -> None:
    for question in QUESTIONS:
        body = {"query": question, "recipe": recipe, "explain": True}
        answer = server.client.post("/v1/search", json=body).json()
        assert has_terms(answer) or question != QUESTIONS[0]
        assert faults_of_hits(answer) == []
    asked = {"query": QUESTIONS[0], "recipe": recipe}
    first = server.client.post("/v1/search", json=asked).json()["hits"][0]["id"]
    assert_adds_up(server.client.post("/v1/why", json={**asked, "id": first}).json())


@pytest.mark.parametrize("recipe", WITH_WORDS)
def test_the_terms_that_the_page_ranks_from_add_up(server: Serving, recipe: str) -> None:
    for question in QUESTIONS:
        pool = server.client.post("/v1/candidates", json={"query": question, "recipe": recipe}).json()
        [keyword] = [signal for signal in pool["signals"] if signal["name"] == "keyword"]
        keys, added = keyword["terms"]["keys"], keyword["terms"]["added"]
        assert {tuple(key) for key in keys} <= {TERM_FIELDS[:3]}
        assert len(keys) > 3 or question != QUESTIONS[0]
        totals = [folded(own[1::2]) for own in added] if added else [0.0 for _ in keyword["raw"]]
        assert totals == [raw or 0.0 for raw in keyword["raw"]]


def test_what_mcp_answers_adds_up(folder: Path, engine: whyrank.Engine) -> None:
    asked = []
    for question in QUESTIONS[:4]:
        answer = explained(engine, question, "default")
        asked += [(question, hit["id"]) for hit in (*answer["hits"], *answer["dropped"][:6])]

    async def ask() -> list[Any]:
        async with over_http(listener.url) as client:
            return [await _why(client, *one) for one in asked]

    with listening(folder) as listener:
        answers = run(ask)
    assert len(answers) > 30
    for why in answers:
        assert [*faults(why["trail"])] == []
        assert replayed(why["trail"])[1] == why["score"]


async def _why(client: Client, question: str, identity: str) -> dict[str, Any]:
    data: dict[str, Any] = (await told(client, "memory_why", query=question, id=identity)).data
    return data


def test_every_wording_of_an_expanded_question_adds_up(folder: Path) -> None:
    llm = ScriptedLlm(json.dumps({"variants": ["day rate of Suzy", "Miete für das Studio"]}))
    with whyrank.open(folder / STORE, workspace=folder, llm=llm, **{"query_expansion.mode": "variants"}) as memory:  # type: ignore[arg-type]
        results = memory.search("what does she charge?", expand=True)
        answer = json.loads(json.dumps(serialize.results(results, explain=True)))
    parts = [part for hit in answer["hits"] for part in hit["trail"][0]["parts"]]
    assert {part["signal"] for part in parts if part["terms"]} >= {"keyword:2", "keyword:3"}
    assert faults_of_hits(answer) == []
