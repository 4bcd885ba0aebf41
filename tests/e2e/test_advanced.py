"""The advanced syntax as users type it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from whyrank.errors import BadQuery, ConfigError

from .conftest import Run, still_answers

if TYPE_CHECKING:
    import whyrank


def paths(call: Run, query: str, *options: str) -> list[str]:
    found = call("search", "--advanced", query, "--json", *options)
    assert found.status == 0, found.err
    return [hit["path"] for hit in found.data["hits"]]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("moor*", {"notes/boat.md", "notes/chat.jsonl"}),
        ("moor* speaker:mara", {"notes/chat.jsonl"}),
        ("moor* -ferry", {"notes/boat.md"}),
        ("(compost OR glove) path:notes/diary", {"notes/diary/2026-02-01.md"}),
        ("tea tag:kitchen", {"notes/tea.md"}),
        ("heading:mooring", {"notes/boat.md"}),
        ('"green tea"', {"notes/tea.md"}),
        ("rotat* OR squeak*", {"notes/servers.md", "notes/boat.md"}),
        ("tea AND oarlock", set()),
    ],
)
def test_an_advanced_query_finds_what_it_says(call: Run, query: str, expected: set[str]) -> None:
    assert set(paths(call, query)) == expected


def test_without_the_option_the_same_text_is_plain(call: Run) -> None:
    plain = call("search", "moor* -ferry", "--json").data
    assert "notes/chat.jsonl" in {hit["path"] for hit in plain["hits"]}


def test_explain_says_what_a_beginning_stands_for(call: Run) -> None:
    data = call("search", "--advanced", "moor*", "--json", "--explain").data
    assert data["analysis"]["terms"] == ["moor*"]
    assert data["analysis"]["beginnings"] == {"moor*": ["moor"]}


def test_a_beginning_is_marked_in_the_snippet(call: Run) -> None:
    data = call("search", "--advanced", "oarl*", "--json").data
    assert "**oarlock**" in data["hits"][0]["snippet"]


def test_a_query_that_cannot_be_read_is_refused_with_its_place(call: Run) -> None:
    refused = call("search", "--advanced", "tea AND (milk OR")
    assert refused.status == 20
    assert "at character 17" in refused.err
    assert call("why", "--advanced", "foo:tea", "notes/tea.md", "--json").data["error"]["code"] == "bad-query"
    assert still_answers(call)


def test_why_says_what_keeps_a_memory_out(call: Run) -> None:
    said = call("why", "--advanced", "moor* -ferry", "notes/chat.jsonl")
    assert said.status == 0
    assert "it contains ferry" in said.out
    assert "it is result 1" in call("why", "--advanced", "moor* -ferry", "notes/boat.md").out


def test_the_real_command_takes_an_advanced_query(run: Run) -> None:
    found = run("search", "--advanced", "moor* NOT ferry")
    assert found.status == 0
    assert "notes/boat.md" in found.out


def test_the_library_takes_it_by_name(engine: whyrank.Engine) -> None:
    assert [hit.memory.source.path for hit in engine.search("oarl*", syntax="advanced") if hit.memory.source] == [
        "notes/boat.md"
    ]
    with pytest.raises(BadQuery):
        engine.search("tea AND", syntax="advanced")
    with pytest.raises(ConfigError, match="the syntaxes are plain, advanced"):
        engine.search("tea", syntax="sql")


def test_the_help_teaches_the_syntax(call: Run) -> None:
    said = call("search", "--help").out
    assert all(part in said for part in ("deploy*", "OR", "NOT", "tag:work", "speaker:"))
