"""The example memory answers questions of every kind, and every trail in it replays."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import whyrank
from whyrank.ranking.recipes import RECIPES

if TYPE_CHECKING:
    from collections.abc import Iterator

EXAMPLES = Path(__file__).parent.parent.parent / "examples"
QUESTIONS = [json.loads(line) for line in (EXAMPLES / "questions.jsonl").read_text(encoding="utf-8").splitlines()]
WITHIN = 10

# Questions as people ask them: in the note's own terms, in everyday words, in other words, vaguely, by image.
EIGHT = [
    ("what to do when a task seems impossible", "protocols/tenacity.md"),
    ("falsification-first reasoning", "protocols/falsification-first.md"),
    ("should I answer in the group chat or stay quiet?", "protocols/group-chats.md"),
    ("which bot gets this message?", "protocols/message-routing.md"),
    ("who must approve an e-mail before it is sent?", "protocols/email-review.md"),
    ("what does Suzy value and how does she like to work?", "USER.md"),
    ("wake somebody up when things burn", "protocols/escalation.md"),
    ("how do I get a deleted file back?", "protocols/backups.md"),
]


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[whyrank.Engine]:
    place = tmp_path_factory.mktemp("examples")
    with whyrank.open(place / "memory.db", workspace=place) as opened:
        report = opened.ingest(EXAMPLES / "memory", base=EXAMPLES / "memory")
        assert report.files == {"new": sum(1 for path in (EXAMPLES / "memory").rglob("*.*") if path.is_file())}
        assert not report.skipped
        yield opened


def paths(results: whyrank.Results) -> list[str]:
    return [hit.memory.source.path for hit in results if hit.memory.source]


@pytest.mark.parametrize(("question", "target"), EIGHT)
def test_eight_questions_are_answered(engine: whyrank.Engine, question: str, target: str) -> None:
    assert target in paths(engine.search(question, limit=6))


def test_most_of_forty_questions_are_answered_within_ten(engine: whyrank.Engine) -> None:
    missed = [q["text"] for q in QUESTIONS if q["target"] not in paths(engine.search(q["text"], limit=WITHIN))]
    assert len(missed) <= 0.15 * len(QUESTIONS), missed


@pytest.mark.parametrize("question", [q for q in QUESTIONS if q["kind"] == "name"], ids=lambda q: q["text"])
def test_a_name_is_first(engine: whyrank.Engine, question: dict[str, str]) -> None:
    assert paths(engine.search(question["text"]))[0] == question["target"]


def test_the_default_recipe_beats_the_broken_one(engine: whyrank.Engine) -> None:
    def found(recipe: str) -> int:
        return sum(q["target"] in paths(engine.search(q["text"], limit=WITHIN, recipe=recipe)) for q in QUESTIONS)

    assert found("default") >= found("openclaw-2026-02") + 10


@pytest.mark.parametrize("recipe", list(RECIPES))
def test_every_hit_replays_to_its_key(engine: whyrank.Engine, recipe: str) -> None:
    for question in QUESTIONS:
        results = engine.search(question["text"], limit=50, recipe=recipe)
        for hit in (*results.hits, *results.dropped):
            assert whyrank.replay(hit.trail) == hit.key
            assert hit.explain().splitlines()[-1].startswith(f"score {hit.score:.4f}")


def test_lines_of_a_hit_point_at_its_text(engine: whyrank.Engine) -> None:
    for memory in engine.list(limit=1_000):
        source = memory.source
        assert source is not None
        if memory.is_turn:
            continue
        lines = (EXAMPLES / "memory" / source.path).read_text(encoding="utf-8").split("\n")
        assert memory.text in "\n".join(lines[source.start_line - 1 : source.end_line])


def test_why_explains_what_is_missing(engine: whyrank.Engine) -> None:
    skill = engine.search("Room Modes", limit=1)[0]
    answer = engine.why("what to do when a task seems impossible", skill.id)
    assert answer.outcome == "dropped"
    assert "rank" in answer.summary
    assert answer.hit is not None
    assert whyrank.replay(answer.hit.trail) == answer.hit.key
