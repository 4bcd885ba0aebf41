"""The worst queries are told with the trails that made them so."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

import whyrank
from whyrank.evaluation.datasets import load_set
from whyrank.evaluation.harness import evaluate
from whyrank.evaluation.results import Story, rank_of, worst, worst_of

if TYPE_CHECKING:
    from pathlib import Path

DOCUMENTS = [
    {"id": "kettle", "text": "The kettle boils water for tea in the morning."},
    {"id": "tin", "text": "Behind the flour stands a tin of leaves."},
    {"id": "boat", "text": "The ferry leaves the harbour at nine."},
]
QUERIES = [
    {"id": "easy", "text": "ferry harbour"},
    {"id": "misled", "text": "tea in the morning"},
    {"id": "nowhere", "text": "ferry", "scope": "ann"},
]


@pytest.fixture
def told(tmp_path: Path) -> dict[str, Story]:
    folder = tmp_path / "set"
    folder.mkdir()
    for name, rows in (("corpus", DOCUMENTS), ("queries", QUERIES)):
        (folder / f"{name}.jsonl").write_text("\n".join(map(json.dumps, rows)))
    judged = "query\tdocument\tgain\neasy\tboat\t1\nmisled\ttin\t2\nnowhere\tmissing\t1\n"
    (folder / "qrels.tsv").write_text(judged)
    with whyrank.open(tmp_path / "memory.db", workspace=tmp_path) as engine:
        evaluation = evaluate(load_set(folder), engine, ["default"], lambda *_: None)
        return {story.id: story for story in worst(evaluation, engine)}


def test_what_is_wholly_right_is_not_told(told: dict[str, Story]) -> None:
    assert set(told) == {"misled", "nowhere"}


def test_the_first_and_the_expected_have_their_real_trails(told: dict[str, Story]) -> None:
    story = told["misled"]
    assert story.first is not None
    assert (story.first.document, story.first.rank, story.first.gain) == ("kettle", 1, 0)
    assert story.first.trail.startswith("= fusion: ")
    assert "keyword: " in story.first.trail
    assert (story.expected.document, story.expected.gain) == ("tin", 2)
    assert story.expected.rank in (2, 3)
    assert story.expected.text == "Behind the flour stands a tin of leaves."
    assert story.flip


def test_a_document_that_is_not_there_is_said_so(told: dict[str, Story]) -> None:
    expected = told["nowhere"].expected
    assert (expected.document, expected.rank) == ("missing", None)
    assert expected.trail == "no memory that may answer here comes from this document"


def test_of_equals_comes_first_what_ranking_could_have_saved() -> None:
    values = {"lost": 0.0, "saved": 0.0, "half": 0.5, "fine": 1.0}
    assert worst_of(values, {"lost": 0.0, "saved": 1.0, "half": 1.0, "fine": 1.0}) == ["saved", "lost", "half"]


def test_a_document_counts_once_in_its_best_place() -> None:
    assert rank_of("b", ["a", "a", "b"]) == 2
    assert rank_of("c", ["a"]) is None
