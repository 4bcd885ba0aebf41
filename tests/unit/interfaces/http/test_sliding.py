"""The routes behind the sliders: what they answer is what the library keeps, by the schema that is published."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

import whyrank
from whyrank.errors import ConfigError
from whyrank.interfaces import pool_shapes
from whyrank.interfaces.desk import Desk
from whyrank.interfaces.door import Door
from whyrank.interfaces.http import sliding
from whyrank.interfaces.http.examples import ANSWERS
from whyrank.interfaces.http.openapi import document
from whyrank.interfaces.http.routes import Operation, by_path
from whyrank.ranking.recipes import RECIPES

ASKED = {"query": "who drinks green tea?", "recipe": "rrf", "limit": 2}


@pytest.fixture
def door(tmp_path: Path) -> Iterator[Door]:
    desk = Desk(tmp_path / "memory.db", lambda store: whyrank.open(store, workspace=tmp_path, embedding="wordllama"))
    for text, scope in (("Ann drinks green tea", "global"), ("Bob drinks tea", "user:bob"), ("the pot", "global")):
        desk.writing().add(text, scope=scope)
    yield Door(desk)
    desk.close()


def operation(path: str) -> Operation:
    return by_path()[path]["POST"]


def fits(name: str, data: Any) -> bool:
    schema = {**document(multi_scope=True), "$ref": f"#/components/schemas/{name}"}
    Draft202012Validator(schema).validate(data)
    return True


def test_candidates_are_those_of_the_library(door: Door) -> None:
    told = sliding.candidates(door, operation("/v1/candidates").read(door, ASKED)).data
    own = pool_shapes.pool(door.desk.reading().pool("who drinks green tea?", recipe="rrf", limit=2))
    for data in (told, own):
        data["timings"] = {}
        assert [candidate.pop("age_days") for candidate in data["candidates"]] == pytest.approx([0, 0], abs=1e-3)
    assert told == own


def test_likeness_is_asked_for_the_same_way(door: Door) -> None:
    told = sliding.likeness(door, operation("/v1/likeness").read(door, ASKED)).data
    [first, second] = told["likeness"]
    assert (len(told["ids"]), first, len(second)) == (2, [], 1)
    assert 0 <= second[0] <= 1


def test_a_door_with_a_scope_sees_its_own(door: Door) -> None:
    bobs = Door(door.desk, ("user:bob",))
    ids = {one["id"] for one in sliding.candidates(bobs, ASKED).data["candidates"]}
    assert len(ids) == 3
    assert ids > {one["id"] for one in sliding.candidates(door, ASKED).data["candidates"]}


def test_trails_are_not_asked_for_because_they_are_made_by_ranking(door: Door) -> None:
    with pytest.raises(ConfigError, match="explain"):
        operation("/v1/candidates").read(door, {**ASKED, "explain": True})


@pytest.mark.parametrize("recipe", RECIPES)
def test_every_answer_is_as_the_document_says(door: Door, recipe: str) -> None:
    asked = {**ASKED, "recipe": recipe}
    assert fits("Candidates", sliding.candidates(door, asked).data)
    assert fits("Likeness", sliding.likeness(door, asked).data)


def test_the_examples_are_as_the_document_says() -> None:
    assert fits("Candidates", ANSWERS["Candidates"])
    assert fits("Likeness", ANSWERS["Likeness"])
    with pytest.raises(Exception, match="is not of type"):
        fits("Likeness", {**ANSWERS["Likeness"], "ids": 7})
