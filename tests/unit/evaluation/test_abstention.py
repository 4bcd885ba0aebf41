"""Abstention: the curve by hand, and the sides made of sets, scopes and names."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

import whyrank
from whyrank.errors import ConfigError
from whyrank.evaluation.abstention import (
    ALL_OTHER_SETS,
    NAMES_SWAPPED,
    OTHER_SCOPES,
    Point,
    Side,
    abstention,
    as_data,
    renaming_between,
    speakers_of,
    unanswerable_questions,
)
from whyrank.evaluation.datasets import EvaluationSet, Question
from whyrank.evaluation.harness import Judged
from whyrank.types.memory import GLOBAL, Document, Scope

if TYPE_CHECKING:
    from pathlib import Path

ANN, BOB = Scope("user", "ann"), Scope("user", "bob")


def asked(*evidence: float) -> list[Judged]:
    return [Judged(value, "nothing" if value < 0.3 else "found" if value >= 0.6 else "weak") for value in evidence]


SIDE = Side("foreign", asked(0.2, 0.5, 0.6, 0.9), asked(0.1, 0.2, 0.5, 0.4))


def test_a_threshold_keeps_and_rejects() -> None:
    point = SIDE.at(0.5)
    assert (point.kept, point.rejected) == (3 / 4, 3 / 4)
    assert point.coverage == (3 / 4 + 1 / 4) / 2
    assert point.risk == (1 / 4) / (3 / 4 + 1 / 4)


def test_the_highest_threshold_that_keeps_a_share_is_an_answerable_questions_evidence() -> None:
    assert SIDE.at_kept(1.0) == Point(0.2, 1.0, 1 / 4)
    assert SIDE.at_kept(0.75) == Point(0.5, 3 / 4, 3 / 4)
    assert SIDE.at_kept(0.95).threshold == 0.2  # four questions: one less would be 75 %


def test_nothing_answered_is_no_risk() -> None:
    assert Point(9.0, 0.0, 1.0).risk == 0.0


def test_auc_counts_pairs_and_half_of_the_ties() -> None:
    # Of 16 pairs: 0.2 beats 0.1 and ties with 0.2; 0.5 beats three and ties with one; 0.6 and 0.9 beat all four.
    assert SIDE.auc == (1.5 + 3.5 + 4 + 4) / 16


def test_the_curve_rises_from_keeping_everything() -> None:
    curve = SIDE.curve()
    assert [point.threshold for point in curve] == [0.1, 0.2, 0.4, 0.5, 0.6, 0.9]
    assert (curve[0].kept, curve[0].rejected) == (1.0, 0.0)
    assert all(a.kept >= b.kept and a.rejected <= b.rejected for a, b in pairwise(curve))


def test_the_verdict_has_a_point_of_its_own() -> None:
    own, other = SIDE.verdicts
    assert (own.kept, own.found) == (3 / 4, 2 / 4)
    assert (other.kept, other.found) == (2 / 4, 0.0)


def conversation(scope: Scope, *names: str) -> list[Document]:
    return [Document(f"{scope}/{i}", f"words {i}", scope=scope, speaker=names[i % len(names)]) for i in range(12)]


def a_set(name: str, documents: list[Document], questions: list[Question]) -> EvaluationSet:
    judged = {question.id: {documents[0].id: 1} for question in questions}
    return EvaluationSet(name, "en", tuple(documents), None, tuple(questions), judged)


TALK = a_set(
    "talk",
    [*conversation(ANN, "Ann", "Carl"), *conversation(BOB, "Bob", "Dora")],
    [
        Question("1", "What did Ann tell Carl?", "", ANN),
        Question("2", "Where is Bob's boat?", "", BOB),
        Question("3", "Who sings?", "", BOB),
    ],
)


def test_the_questions_of_other_scopes_cannot_be_answered_with_or_without_swapped_names() -> None:
    groups = unanswerable_questions(TALK, [])
    strange = {(question.text, question.scope) for question in groups[OTHER_SCOPES]}
    assert strange == {("What did Ann tell Carl?", BOB), ("Where is Bob's boat?", ANN), ("Who sings?", ANN)}
    swapped = {(question.text, question.scope) for question in groups[NAMES_SWAPPED]}
    assert swapped == {("What did Bob tell Dora?", BOB), ("Where is Ann's boat?", ANN)}


def test_another_sets_questions_are_dealt_out_over_the_scopes() -> None:
    other = a_set("other", [Document("x", "x")], [Question(str(i), f"why {i}?", "", GLOBAL) for i in range(4)])
    found = unanswerable_questions(TALK, [other])["questions of other"]
    assert sorted(str(question.scope) for question in found) == ["user:ann"] * 2 + ["user:bob"] * 2


def test_speakers_are_read_off_the_lines_of_a_session() -> None:
    text = "Ann: hello\nBob: hi\n" * 6 + "Note: once\nAnn: bye"
    assert speakers_of([Document("s", text, scope=ANN)]) == {ANN: ["Ann", "Bob"]}


def test_names_are_swapped_all_at_once_and_whole() -> None:
    swap = renaming_between(["Ann", "Bob"], ["Bob", "Ann"])
    assert swap("Did Ann call Bob, or Bob's Annabel?") == "Did Bob call Ann, or Ann's Annabel?"
    assert renaming_between([], ["Bob"])("Ann") == "Ann"


def test_a_set_of_one_scope_needs_another(tmp_path: Path) -> None:
    alone = a_set("alone", [Document("x", "x")], [Question("1", "why?", "", GLOBAL)])
    with (
        whyrank.open(tmp_path / "memory.db", workspace=tmp_path, embedding="none") as engine,
        pytest.raises(ConfigError, match="one scope only"),
    ):
        abstention(alone, [], engine, "default", lambda *_: None)


def test_an_easy_set_is_told_from_foreign_questions(tmp_path: Path) -> None:
    texts = [f"The parcel {i} waits beside the copper gate of warehouse {i * 3}." for i in range(30)]
    mine = a_set(
        "mine",
        [Document(str(i), text) for i, text in enumerate(texts)],
        [Question(str(i), f"which warehouse holds parcel {i} beside the copper gate?", "", GLOBAL) for i in range(9)],
    )
    other = a_set("other", [Document("x", "x")], [Question("f", "do penguins have knees?", "", GLOBAL)] * 3)
    third = a_set("third", [Document("x", "x")], [Question("g", "who invented the zipper?", "", GLOBAL)] * 2)
    with whyrank.open(tmp_path / "memory.db", workspace=tmp_path) as engine:
        measured = abstention(mine, [other, third], engine, "default", lambda *_: None)
    side, _, together = measured.sides
    assert (together.name, len(together.unanswerable)) == (ALL_OTHER_SETS, 3 + 2)
    assert (side.auc, side.at_kept(0.95).rejected, measured.uncalibrated) == (1.0, 1.0, ())
    own, foreign = side.verdicts
    assert (own.kept, foreign.kept) == (1.0, 0.0)
    assert as_data(measured)["set"] == "mine"
