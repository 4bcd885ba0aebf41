"""The routes behind the sliders: what they answer is what the library keeps, by the schema that is published."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from jsonschema import Draft202012Validator

import whyrank
from whyrank.errors import ConfigError
from whyrank.interfaces import serialize_candidates
from whyrank.interfaces.engine_pool import Access, PooledEngine
from whyrank.interfaces.http import handlers
from whyrank.interfaces.http.routes import Operation, by_path, document
from whyrank.interfaces.http.schemas import ANSWERS
from whyrank.ranking.recipes import RECIPES

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ASKED = {"query": "who drinks green tea?", "recipe": "rrf", "limit": 2}


@pytest.fixture
def access(tmp_path: Path) -> Iterator[Access]:
    pooled = PooledEngine(
        tmp_path / "memory.db", lambda store: whyrank.open(store, workspace=tmp_path, embedding="wordllama")
    )
    for text, scope in (("Ann drinks green tea", "global"), ("Bob drinks tea", "user:bob"), ("the pot", "global")):
        pooled.writing().add(text, scope=scope)
    yield Access(pooled)
    pooled.close()


def operation(path: str) -> Operation:
    return by_path()[path]["POST"]


def fits(name: str, data: Any) -> bool:
    schema = {**document(multi_scope=True), "$ref": f"#/components/schemas/{name}"}
    Draft202012Validator(schema).validate(data)
    return True


def test_candidates_are_those_of_the_library(access: Access) -> None:
    told = handlers.candidates(access, operation("/v1/candidates").read(access, ASKED)).data
    own = serialize_candidates.pool(access.pooled.reading().pool("who drinks green tea?", recipe="rrf", limit=2))
    for data in (told, own):
        data["timings"] = {}
        assert [candidate.pop("age_days") for candidate in data["candidates"]] == pytest.approx([0, 0], abs=1e-3)
    assert told == own


def test_likeness_is_asked_for_the_same_way(access: Access) -> None:
    told = handlers.likeness(access, operation("/v1/likeness").read(access, ASKED)).data
    [first, second] = told["likeness"]
    assert (len(told["ids"]), first, len(second)) == (2, [], 1)
    assert 0 <= second[0] <= 1


def test_a_door_with_a_scope_sees_its_own(access: Access) -> None:
    bobs = Access(access.pooled, ("user:bob",))
    ids = {one["id"] for one in handlers.candidates(bobs, ASKED).data["candidates"]}
    assert len(ids) == 3
    assert ids > {one["id"] for one in handlers.candidates(access, ASKED).data["candidates"]}


def test_trails_are_not_asked_for_because_they_are_made_by_ranking(access: Access) -> None:
    with pytest.raises(ConfigError, match="explain"):
        operation("/v1/candidates").read(access, {**ASKED, "explain": True})


@pytest.mark.parametrize("recipe", RECIPES)
def test_every_answer_is_as_the_document_says(access: Access, recipe: str) -> None:
    asked = {**ASKED, "recipe": recipe}
    assert fits("Candidates", handlers.candidates(access, asked).data)
    assert fits("Likeness", handlers.likeness(access, asked).data)


def test_the_examples_are_as_the_document_says() -> None:
    assert fits("Candidates", ANSWERS["Candidates"])
    assert fits("Likeness", ANSWERS["Likeness"])
    with pytest.raises(Exception, match="is not of type"):
        fits("Likeness", {**ANSWERS["Likeness"], "ids": 7})
