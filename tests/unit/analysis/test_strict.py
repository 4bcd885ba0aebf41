"""Words that are too short, before or after stemming, are not asked for."""

from __future__ import annotations

import pytest

from whyrank.analysis.query import analyse, long_terms


def asked(text: str) -> tuple[str, ...]:
    return long_terms(analyse(text).terms, text)


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("go ui tea", ("tea",)),  # two letters to begin with
        ("я боюсь темноты", ("темнот",)),  # "боюсь" stems to "бо"
        ("green tea", ("green", "tea")),
        ("read my_ui.py", ("read", "myui.py")),  # of an identifier the whole stays, its short parts go
        ("go", ("go",)),  # at least one word is asked for: where none is long enough, all are
        ("go to ui", ("go", "ui")),
        ("боюсь", ("боюс",)),
        ("東京 茶", ("東京", "茶")),  # bigrams are no words
    ],
)
def test_what_is_asked_under_the_stricter_rule(text: str, terms: tuple[str, ...]) -> None:
    assert asked(text) == terms


def test_the_usual_rule_keeps_them() -> None:
    assert {"go", "ui"} < set(analyse("go ui tea").terms)
    assert "боюс" in analyse("я боюсь темноты").terms


def test_a_phrase_stays_whole() -> None:
    assert asked('"go home" at ten') == ("go home", "ten")
