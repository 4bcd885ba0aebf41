"""Limits on every input at every door, as one table: what is asked where, and the refusal that must come."""

from __future__ import annotations

import io
import json
import sys
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

import whyrank
from whyrank.engine.arguments import MAX_FACT_CHARACTERS, MAX_IDS, MAX_NAME_CHARACTERS, MAX_NAMES, MAX_SCOPES
from whyrank.engine.open import open_engine
from whyrank.errors import ConfigError, NotFound, WhyrankError
from whyrank.interfaces.arguments import understood
from whyrank.interfaces.engine_pool import Access, PooledEngine
from whyrank.interfaces.http.routes import MAX_BODY_BYTES, OPERATIONS
from whyrank.interfaces.mcp.server import RECALL, TOOLS, offered

from .rest import Serving, code_of, serving

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from .conftest import Run

NAME = "x" * (MAX_NAME_CHARACTERS + 1)
NAMES = [f"t{number}" for number in range(MAX_NAMES + 1)]
SCOPES = [f"user:{number}" for number in range(MAX_SCOPES + 1)]
FACT = "x" * (MAX_FACT_CHARACTERS + 1)
IDS = [f"m_{number}" for number in range(MAX_IDS + 1)]
HUGE = 10**30

# -- the library ------------------------------------------------------------------------------------------------------

LIBRARY: list[tuple[str, Callable[[whyrank.Engine], object], str]] = [
    ("search", lambda memory: memory.search("tea", limit=-1), "limit is -1"),
    ("search", lambda memory: memory.search("tea", offset=-1), "offset is -1"),
    ("search", lambda memory: memory.search("tea", max_tokens=0), "max_tokens is 0"),
    ("search", lambda memory: memory.search("tea", tags=NAMES), "201 of tag"),
    ("search", lambda memory: memory.search("tea", tags=[NAME]), "1001 characters"),
    ("search", lambda memory: memory.search("tea", scope=SCOPES), "1,001 scopes"),
    ("search", lambda memory: memory.search("tea", scope=f"user:{NAME}"), "scope has 1,006 characters"),
    ("search", lambda memory: memory.search("tea", path=NAME), "1001 characters"),
    ("search", lambda memory: memory.search("tea", since=HUGE), "not a date"),
    ("search", lambda memory: memory.search("tea", min_importance=HUGE), "importance is"),
    ("list", lambda memory: memory.list(tags=NAMES), "201 of tag"),
    ("list", lambda memory: memory.list(limit=-1), "limit is -1"),
    ("add", lambda memory: memory.add(FACT), "50,001 characters"),
    ("add", lambda memory: memory.add("tea", name=NAME), "1001 characters"),
    ("add", lambda memory: memory.add("tea", tags=NAMES), "201 of tag"),
    ("add", lambda memory: memory.add("tea", tags=[NAME]), "1001 characters"),
    ("add", lambda memory: memory.add("tea", entities=NAMES), "201 of entit"),
    ("add", lambda memory: memory.add("tea", key=NAME), "key"),
    ("add", lambda memory: memory.add("tea", importance=HUGE), "importance is"),
    ("add", lambda memory: memory.add("tea", expires=HUGE), "not a date"),
    ("add", lambda memory: memory.add("tea", scope=f"user:{NAME}"), "scope has 1,006 characters"),
    ("update", lambda memory: memory.update("m_1", text=FACT), "50,001 characters"),
]


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[whyrank.Engine]:
    with whyrank.open(tmp_path / "memory.db", workspace=tmp_path, embedding="none") as opened:
        opened.add("Robin drinks tea")
        yield opened


@pytest.mark.parametrize(("call", "said"), [row[1:] for row in LIBRARY], ids=[f"{one[0]}-{one[2]}" for one in LIBRARY])
def test_the_library_refuses(memory: whyrank.Engine, call: Callable[[whyrank.Engine], object], said: str) -> None:
    with pytest.raises((ConfigError, NotFound), match=said):
        call(memory)
    assert memory.status().memories == 1


# -- agents -----------------------------------------------------------------------------------------------------------

AGENTS: list[tuple[str, dict[str, Any], str]] = [
    ("memory_search", {"query": "tea", "tags": NAMES}, "201 of tag"),
    ("memory_search", {"query": "tea", "tags": [NAME]}, "1001 characters"),
    ("memory_search", {"query": "tea", "path": NAME}, "1001 characters"),
    ("memory_search", {"query": "tea", "scope": SCOPES}, "1,001 scopes"),
    ("memory_search", {"query": "tea", "scope": f"user:{NAME}"}, "1,006 characters"),
    ("memory_search", {"query": "tea", "limit": -1}, "limit is -1"),
    ("memory_search", {"query": "tea", "limit": 1.5}, "limit is 1.5"),
    ("memory_search", {"query": "tea", "limit": float("inf")}, "limit is inf"),
    ("memory_search", {"query": "tea", "offset": -1}, "offset is -1"),
    ("memory_search", {"query": "tea", "max_tokens": 0}, "max_tokens is 0"),
    ("memory_search", {"query": "tea", "since": HUGE}, "not a date"),
    ("memory_search", {"query": {"a": 1}}, "query is"),
    ("memory_search", {"query": "tea"} | {f"a{number}": 1 for number in range(10_000)}, "10,001 arguments"),
    ("memory_recall", {"turn": "tea", "max_tokens": 0}, "budget is 0"),
    ("memory_recall", {"turn": "tea", "session": "x" * 201}, "201 characters"),
    ("memory_get", {"id": "x" * 100_000}, "no memory"),
    ("memory_get", {"id": "m_1", "offset": -1}, "no memory|offset is -1"),
    ("memory_forget", {"ids": IDS}, "1,001 ids"),
    ("memory_forget", {"ids": []}, "no memory was named"),
    ("memory_add", {"text": FACT}, "50,001 characters"),
    ("memory_add", {"text": "tea", "name": NAME}, "1001 characters"),
    ("memory_add", {"text": "tea", "tags": NAMES}, "201 of tag"),
    ("memory_add", {"text": "tea", "importance": HUGE}, "importance is"),
    ("memory_add", {"text": "tea", "date": HUGE}, "not a date"),
    ("memory_why", {"query": "tea", "id": "x" * 100_000}, "no memory"),
    ("memory_why", {"query": "tea", "id": "m_1", "limit": -1}, "limit is -1|no memory"),
]


@pytest.mark.parametrize(
    ("tool", "given", "said"),
    AGENTS,
    ids=[f"{tool}-{max(given, key=lambda key: len(str(given[key])))}-{said}" for tool, given, said in AGENTS],
)
def test_tools_refuse(tmp_path: Path, tool: str, given: dict[str, Any], said: str) -> None:
    pooled = PooledEngine(tmp_path / "memory.db", partial(open_engine, workspace=tmp_path, embedding="none"))
    pooled.writing().add("Robin drinks tea")
    access = Access(pooled, (), is_multi_scope=True)
    known = offered(access, (*TOOLS, RECALL))[tool]
    with pytest.raises(WhyrankError, match=said):
        known.call(access, understood(tool, known.arguments, given).values)
    pooled.close()


# -- programs ---------------------------------------------------------------------------------------------------------

PROGRAMS: list[tuple[str, str, Any, int]] = [
    ("POST", "/v1/search", {"query": "tea", "tags": NAMES}, 422),
    ("POST", "/v1/search", {"query": "tea", "tags": [NAME]}, 422),
    ("POST", "/v1/search", {"query": "tea", "scope": [*NAMES]}, 422),
    ("POST", "/v1/search", {"query": "tea", "path": NAME}, 422),
    ("POST", "/v1/search", {"query": "tea", "limit": 1_001}, 422),
    ("POST", "/v1/search", {"query": "tea", "limit": -1}, 422),
    ("POST", "/v1/search", {"query": "tea", "offset": 1_000_001}, 422),
    ("POST", "/v1/search", {"query": "tea", "max_tokens": 10_000_001}, 422),
    ("POST", "/v1/search", {"query": "x" * MAX_BODY_BYTES}, 413),
    ("POST", "/v1/recall", {"turn": "tea", "session": "x" * 201}, 422),
    ("POST", "/v1/recall", {"turn": "tea", "max_tokens": 10_000_001}, 422),
    ("POST", "/v1/candidates", {"query": "tea", "limit": 1_001}, 422),
    ("POST", "/v1/likeness", {"query": "tea", "limit": 1_001}, 422),
    ("POST", "/v1/why", {"query": "tea", "id": NAME}, 422),
    ("POST", "/v1/why", {"query": "tea", "id": "m_1", "over": NAME}, 422),
    ("POST", "/v1/memories", {"text": FACT}, 422),
    ("POST", "/v1/memories", {"text": "tea", "name": NAME}, 422),
    ("POST", "/v1/memories", {"text": "tea", "tags": NAMES}, 422),
    ("POST", "/v1/memories", {"text": "tea", "entities": [NAME]}, 422),
    ("POST", "/v1/memories", {"text": "tea", "key": NAME}, 422),
    ("POST", "/v1/memories", {"text": "tea", "supersedes": FACT}, 422),
    ("PATCH", "/v1/memories/m_1", {"text": FACT}, 422),
    ("POST", "/v1/recalled", {"ids": IDS}, 422),
    ("POST", "/v1/recalled", {"ids": [NAME]}, 422),
    ("POST", "/v1/recalled", {"ids": []}, 422),
    ("POST", "/v1/ingest", {"paths": IDS}, 422),
    ("POST", "/v1/ingest", {"paths": [NAME]}, 422),
    ("POST", "/ticket", {"ticket": NAME}, 422),
    ("GET", f"/v1/memories?limit={HUGE}", None, 422),
    ("GET", "/v1/memories?limit=0", None, 422),
    ("GET", f"/v1/memories?cursor={'x' * 20_001}", None, 422),
    ("GET", "/v1/memories?" + "&".join(f"tags={name}" for name in NAMES), None, 422),
    ("GET", "/v1/memories?" + "&".join("tags=t" for _ in range(1_001)), None, 422),
    ("GET", f"/v1/memories/{'x' * 10_000}", None, 404),
    ("DELETE", f"/v1/memories/{'x' * 10_000}", None, 404),
    ("GET", f"/v1/search?query={'x' * 64_000}&path={'x' * 1_500}", None, 431),
]


@pytest.fixture(scope="module")
def server(template: Path) -> Iterator[Serving]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("XDG_CONFIG_HOME", str(template / "no-config"))
        with serving(template) as server:
            yield server


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    PROGRAMS,
    ids=[f"{row[0]}-{row[1][:40]}-{number}" for number, row in enumerate(PROGRAMS)],
)
def test_routes_refuse(server: Serving, method: str, path: str, body: Any, status: int) -> None:
    answer = server.client.request(method, path, json=body)
    assert answer.status_code == status, answer.text[:300]
    assert code_of(answer)


def test_every_text_and_list_of_every_route_has_a_limit() -> None:
    unlimited = [
        (operation.method, operation.path, field.name)
        for operation in OPERATIONS
        for field in (*operation.fields, *operation.scope_field)
        if not all(map(_is_limited, field.kind.schema.get("anyOf", [field.kind.schema])))
    ]
    # Any text is a question: a long one is cut, with a notice.
    assert {name for _, _, name in unlimited} == {"query", "turn"}


def _is_limited(schema: Any) -> bool:
    if schema["type"] == "string":
        return bool({"maxLength", "enum", "format"} & schema.keys())
    if schema["type"] == "array":
        return "maxItems" in schema and _is_limited(schema["items"])
    return bool(schema["type"] != "integer" or {"minimum", "maximum"} <= schema.keys())


# -- people -----------------------------------------------------------------------------------------------------------

PEOPLE: list[tuple[list[str], str]] = [
    (["search", "tea", "--limit", "-1"], "limit is -1"),
    (["search", "tea", "--offset", "-1"], "offset is -1"),
    (["search", "tea", "--max-tokens", "0"], "max_tokens is 0"),
    (["search", "tea", "--scope", f"user:{NAME}"], "1,006 characters"),
    (["search", "tea", "--tag", NAME], "1001 characters"),
    (["search", "tea", *(word for name in NAMES for word in ("--tag", name))], "201 of tag"),
    (["search", "tea", "--path", NAME], "1001 characters"),
    (["add", FACT], "50,001 characters"),
    (["add", "tea", "--name", NAME], "1001 characters"),
    (["add", "tea", "--tag", NAME], "1001 characters"),
    (["add", "tea", "--key", NAME], "key"),
    (["list", "--limit", "-1"], "limit is -1"),
]


@pytest.mark.parametrize(
    ("arguments", "said"),
    PEOPLE,
    ids=[f"{row[0][0]}-{row[0][2][:12]}-{row[1]}" if len(row[0]) > 2 else row[1] for row in PEOPLE],
)
def test_commands_refuse(call: Run, arguments: list[str], said: str) -> None:
    done = call(*arguments, "--embedding", "none", "--json")
    assert done.status == 2
    assert said in done.data["error"]["message"]
    assert done.data["error"]["hint"]


def test_a_line_of_standard_input_that_is_too_long_keeps_no_other_from_being_stored(
    call: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = b"the first tin\n" + b"x" * 1_000_000 + b"\nthe second tin\n"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(given)))
    done = call("add", "-", "--embedding", "none", "--json")
    assert [one["text"] for one in done.data["memories"]] == ["the first tin", "the second tin"]
    assert [one["line"] for one in done.data["refused"]] == [2]
    assert json.dumps(done.data["refused"]).count("50,000") == 1


def test_a_long_standard_input_changes_no_fact(call: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    identity = call("add", "the first tin", "--embedding", "none", "--json").data["memories"][0]["id"]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"x" * 1_000_000)))
    done = call("update", identity, "--text", "-", "--embedding", "none")
    assert done.status == 2
    assert "50,000 characters" in done.err
