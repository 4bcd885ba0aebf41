"""What may be a correction is not taken for the same."""

from __future__ import annotations

import pytest

from whyrank.analysis.document import may_be_one


@pytest.mark.parametrize(
    ("text", "other"),
    [
        ("The door code is 1234", "The door code is 4321"),
        ("Robin is allergic to peanuts", "Robin is not allergic to peanuts"),
        ("Robin can eat peanuts", "Robin can\u2019t eat peanuts"),
        ("Der Tee ist kalt", "Der Tee ist nicht kalt"),
        ("Чай горячий", "Чай не горячий"),
        ("Alice pays Bob", "Bob pays Alice"),
    ],
)
def test_numbers_negations_and_who_does_what_to_whom_speak_against_it(text: str, other: str) -> None:
    assert not may_be_one(text, other)
    assert not may_be_one(other, text)


@pytest.mark.parametrize(
    ("text", "other"),
    [
        ("Suzy drinks green tea", "Suzy drinks much green tea"),
        ("The demo runs on port 8080", "our demo runs on the port 8080"),
        ("The demo runs on port 8080", "The demo runs on port 8080"),
    ],
)
def test_other_words_around_it_do_not(text: str, other: str) -> None:
    assert may_be_one(text, other)
