"""Metadata of memories, filters on them, keys of facts, and scopes that are paths."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING, Any

import pytest

import whyrank
from whyrank.engine.arguments import metadata_filter, metadata_of
from whyrank.errors import ConfigError, NotFound
from whyrank.types.memory import Document, Memory, Scope
from whyrank.types.query import Where

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[whyrank.Engine]:
    with whyrank.open(tmp_path / "memory.db", workspace=tmp_path) as engine:
        yield engine


def passes(filters: Any, metadata: dict[str, Any]) -> bool:
    return Where(metadata=metadata_filter(filters)).allows(Memory("m_1", "tea", metadata=metadata))


STORED = {"status": "open", "n": 2, "share": 0.5, "is": True, "none": None, "list": ["a", 1], "in": {"a": 1}, "one": 1}


@pytest.mark.parametrize(
    "filters",
    [
        {"status": "open"},
        {"status": {"$eq": "open"}},
        {"status": {"$ne": "shut"}},
        {"missing": {"$ne": "shut"}},
        {"n": {"$gt": 1, "$lt": 3}},
        {"n": {"$gte": 2, "$lte": 2}},
        {"n": 2.0},
        {"share": {"$lt": 1}},
        {"status": {"$gte": "open", "$lt": "p"}},
        {"status": {"$in": ["shut", "open"]}},
        {"status": {"$nin": ["shut"]}},
        {"missing": {"$nin": ["shut"]}},
        {"is": True},
        {"none": None},
        {"list": ["a", 1]},
        {"in": {"a": 1}},
        {"status": {"$not": {"$eq": "shut"}}},
        {"$not": {"status": "shut"}},
        {"$or": [{"status": "shut"}, {"n": 2}]},
        {"$and": [{"status": "open"}, {"$or": [{"n": 9}, {"is": True}]}]},
        {},
    ],
)
def test_metadata_that_satisfy_a_filter(filters: dict[str, Any]) -> None:
    assert passes(filters, STORED)
    assert passes(json.dumps(filters), STORED)


@pytest.mark.parametrize(
    "filters",
    [
        {"status": "shut"},
        {"status": "open", "n": 3},
        {"missing": None},
        {"missing": {"$gt": 0}},
        {"n": "2"},
        {"n": {"$gt": "1"}},  # a number and a text have no order
        {"one": True},
        {"is": 1},
        {"is": {"$gte": 1}},
        {"none": {"$lt": 1}},
        {"list": ["a"]},
        {"list": ["a", True]},
        {"status": {"$in": []}},
        {"status": {"$nin": ["open"]}},
        {"$not": {"n": {"$gt": 1}}},
        {"$or": [{"n": 1}, {"n": 3}]},
    ],
)
def test_metadata_that_do_not_satisfy_a_filter(filters: dict[str, Any]) -> None:
    assert not passes(filters, STORED)


@pytest.mark.parametrize(
    ("filters", "said"),
    [
        ({"n": {"$gtt": 1}}, r"no operator '\$gtt' for n.*did you mean \$gt"),
        ({"$nor": []}, r"no operator '\$nor' beside fields.*\$or"),
        ({"n": {"$gt": None}}, "give it a number or a text"),
        ({"n": {"$in": 1}}, "give it a list of values"),
        ({"$or": []}, "give it a list of conditions"),
        ({"$or": [{}]}, "is no condition"),
        ({"n": {"$gt": 1, "x": 2}}, "no operator 'x' for n"),
        ("{", "cannot be read as JSON"),
        ("[1]", "no JSON object"),
        ({"n": float("inf")}, "cannot be read as JSON"),
        ({"$or": [{"n": number} for number in range(201)]}, "give at most 200"),
    ],
)
def test_a_filter_that_makes_no_sense_is_refused_with_a_hint(filters: Any, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        metadata_filter(filters)


def test_a_filter_nested_too_deep_is_refused() -> None:
    deep: dict[str, Any] = {"n": 1}
    for _ in range(20):
        deep = {"$not": deep}
    with pytest.raises(ConfigError, match="nested too deep"):
        metadata_filter(deep)


def test_metadata_are_read_as_json_and_bounded() -> None:
    assert metadata_of('{"b": 1, "a": [true]}') == {"a": [True], "b": 1}
    assert [*metadata_of({"b": 1, "a": 2})] == ["a", "b"]
    with pytest.raises(ConfigError, match=r"20,0.. characters"):
        metadata_of({"a": "x" * 20_000})
    with pytest.raises(ConfigError, match="nested too deep"):
        metadata_of({"a": [[[[[[[[1]]]]]]]]})


def test_a_filter_is_applied_before_the_cut_of_every_run(memory: whyrank.Engine) -> None:
    for number in range(150):
        memory.add(f"the tea of day {number} was green", metadata={"status": "done"})
    wanted = memory.add("tea, to be bought", name="Tea list", metadata={"status": "open"})
    for recipe in ("default", "keyword", "vector", "rrf"):
        found = memory.search("which tea was green", recipe=recipe, where={"status": "open"}, limit=3)
        assert [hit.id for hit in found] == [wanted.id]
    assert [one.id for one in memory.list(where={"status": {"$ne": "done"}})] == [wanted.id]
    assert "not metadata" not in str(memory.why("which tea was green", wanted.id, where={"status": "done"}))


def test_a_filter_changes_no_score(memory: whyrank.Engine) -> None:
    for number in range(20):
        memory.add(f"tea {number} is {'green' if number % 3 else 'black'}", metadata={"n": number})
    whole = {hit.id: hit.score for hit in memory.search("green tea", limit=50)}
    some = {hit.id: hit.score for hit in memory.search("green tea", limit=50, where={"n": {"$lt": 50}})}
    assert some == whole


def test_why_names_the_metadata_that_keep_a_memory_out(memory: whyrank.Engine) -> None:
    tea = memory.add("green tea", metadata={"status": "open"})
    told = memory.why("tea", tea.id, where={"status": "shut"})
    assert 'status = "shut"' in str(told)


def test_metadata_and_keys_are_updated_with_a_history(memory: whyrank.Engine) -> None:
    fact = memory.add("Robin drinks tea", metadata={"a": 1}, subject="Robin", attribute="drink")
    assert (fact.metadata, fact.subject, fact.attribute) == ({"a": 1}, "Robin", "drink")
    after = memory.update(fact.id, metadata={"a": 2}, attribute="")
    assert memory.get(fact.id) == after
    assert (after.metadata, after.attribute) == ({"a": 2}, "")
    [former] = memory.history(fact.id)
    assert former.was == {"metadata": {"a": 1}, "attribute": "drink"}
    assert memory.update(fact.id, metadata=None).metadata == {}
    assert not memory.list(where={"a": 2})


def test_an_export_brings_metadata_back(memory: whyrank.Engine, tmp_path: Path) -> None:
    fact = memory.add("Robin drinks tea", metadata={"a": {"b": [1, None]}}, subject="Robin", scope="team:a/user:1")
    out = io.StringIO()
    memory.export(out, every_scope=True)
    (tmp_path / "out.jsonl").write_text(out.getvalue(), encoding="utf-8")
    with whyrank.open(tmp_path / "other.db", workspace=tmp_path) as other:
        other.import_from("whyrank", tmp_path / "out.jsonl")
        assert other.get(fact.id, scope="team:a/user:1") == fact


def test_documents_carry_tags_and_metadata(memory: whyrank.Engine) -> None:
    memory.add_documents([Document("a", "green tea", tags=("drinks",), metadata={"n": 1}), Document("b", "black tea")])
    [found] = memory.search("tea", where={"n": 1}, tags="drinks")
    assert found.memory.metadata == {"n": 1}
    with pytest.raises(ConfigError, match="metadata"):
        memory.add_documents([Document("c", "tea", metadata={"n": object()})])


def test_a_branch_of_scopes_is_searched_by_a_pattern(memory: whyrank.Engine) -> None:
    for scope in ("team:a", "team:a/agent:b", "team:ab", "team:c/agent:b", "global"):
        memory.add(f"tea of {scope}", scope=scope)
    assert {str(hit.memory.scope) for hit in memory.search("tea", scope="team:a/*")} == {
        "global", "team:a", "team:a/agent:b",
    }  # fmt: skip
    assert {str(one.scope) for one in memory.list(scope=["team:a/agent:b/*", "team:ab"])} == {
        "global", "team:a/agent:b", "team:ab",
    }  # fmt: skip
    assert {str(hit.memory.scope) for hit in memory.search("tea", scope="team:a")} == {"global", "team:a"}
    theirs = memory.list(scope="team:c/agent:b")[-1]
    with pytest.raises(NotFound):
        memory.get(theirs.id, scope="team:c")
    assert memory.get(theirs.id, scope="team:c/*") == theirs
    with pytest.raises(ConfigError, match="stands for several scopes"):
        memory.add("tea", scope="team:a/*")


def test_values_of_a_scope_are_escaped() -> None:
    scope = Scope.of(("team", "a/user:x"), ("user", "50%"))
    assert str(scope) == "team:a%2Fuser:x/user:50%25"
    assert scope.segments == (("team", "a%2Fuser:x"), ("user", "50%25"))
    assert Scope.parse("user:a/b").segments == (("user", "a/b"),)
