"""How much of two models' answers is the same."""

from __future__ import annotations

import pytest

from whyrank.evaluation.compare import Agreement, overlap, question_of
from whyrank.evaluation.pins import Checked, Pin, PinCheck
from whyrank.types.memory import Memory


@pytest.mark.parametrize(
    ("first", "second", "share"),
    [("abcd", "abcd", 1.0), ("abcd", "cdef", 2 / 4), ("ab", "abcd", 2 / 4), ("ab", "cd", 0.0), ("", "", 1.0)],
)
def test_the_overlap_is_the_share_of_the_longer_list(first: str, second: str, share: float) -> None:
    assert overlap(first, second) == share


def test_a_question_is_the_beginning_of_the_first_sentence() -> None:
    text = "# The **boat**\n\nis tied to the second ring of the old wooden jetty behind the mill. It leaks."
    assert question_of(Memory("m", text)) == "The boat is tied to the second ring of the old wooden"
    assert question_of(Memory("m", "Short. And more.")) == "Short."
    assert question_of(Memory("m", "#")) == ""


def checkup(**statuses: str) -> PinCheck:
    return PinCheck(
        tuple(
            Checked(Pin(query, (), 5, f"m_{query}"), status, None, None, "")  # type: ignore[arg-type]
            for query, status in statuses.items()
        )
    )


def test_only_what_the_model_before_keeps_can_be_lost() -> None:
    before, after = checkup(a="kept", b="moved", c="lost", d="kept"), checkup(a="lost", b="lost", c="lost", d="kept")
    found = Agreement(100, 0.5, before, after)
    assert [one.pin.query for one in found.lost] == ["a", "b"]
    assert str(found) == ("50% of the first 10 results are the same over 100 questions; pins lost: 2 of 4")
