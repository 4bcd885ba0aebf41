"""The advanced syntax: what is understood, and what is refused at which place."""

from __future__ import annotations

import pytest

from whyrank.analysis.query import MAX_DEPTH, analyse, asked_for
from whyrank.errors import BadQuery
from whyrank.types.query import Begins, Holds, Says


def understood(text: str) -> str:
    return str(asked_for(text).expression)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("tea milk", "tea AND milk"),
        ("tea AND milk OR oil", "tea AND milk OR oil"),
        ("tea AND (milk OR oil)", "tea AND (milk OR oil)"),
        ("NOT tea milk", "NOT tea AND milk"),
        ("tea -milk", "tea AND NOT milk"),
        ("-(tea OR milk)", "NOT (tea OR milk)"),
        ("NOT NOT tea", "NOT NOT tea"),
        ('"green tea" oil', '"green tea" AND oil'),
        ("“green tea”", '"green tea"'),
        ("and or not tea", "tea"),  # operators have capitals; these are function words
        ("api-key", "api-key"),
        ("http://x.org/a", "http://x.org/a"),
        ("std::string 10:30", "std::string AND 10:30"),
        ("  ", "None"),
    ],
)
def test_what_is_typed_is_understood(text: str, expected: str) -> None:
    assert understood(text) == expected


def test_a_word_is_looked_for_by_its_stem_and_a_phrase_by_its_stems() -> None:
    assert asked_for("Operating").expression == Holds("Operating", "oper")
    assert asked_for('"the green teas"').expression == Holds('"the green teas"', "green tea")


def test_a_beginning_is_folded_and_completed_beyond_its_stem() -> None:
    assert asked_for("Operat*").expression == Begins("operat*", ("operat",), ("oper",))


@pytest.mark.parametrize("asked", ["night-sh*", "night_sh*", "nightSh*", "nightsh*"])
def test_a_beginning_is_joined_as_the_words_are(asked: str) -> None:
    expression = asked_for(asked).expression
    assert isinstance(expression, Begins)
    assert expression.spellings == ("nightsh",)


def test_a_symbol_counts_by_its_name_once_there_are_letters_enough() -> None:
    assert asked_for("β2*").expression == Begins("beta2*", ("beta2",))
    assert asked_for("TGF-β*").expression == Begins("tgfbeta*", ("tgfbeta",))


def test_words_are_read_in_the_language_of_the_whole_query() -> None:
    plain = analyse("die Häuser am Ufer").terms
    assert asked_for("die Häuser am Ufer").analysis.terms == plain == ("haus", "ufer")


def test_an_identifier_is_one_term_in_every_way_it_may_be_written() -> None:
    assert asked_for("night-shift").expression == Holds("night-shift", "nightshift|nightshift|night shift")
    assert asked_for('"a new night-shift"').analysis.terms == analyse('"a new night-shift"').terms


def test_a_joint_at_the_end_of_a_beginning_joins_nothing() -> None:
    assert asked_for("night-*").expression == asked_for("night*").expression


def test_fields_are_read_with_their_values() -> None:
    assert asked_for("tag:Work").expression == Says("tag:Work", "tag", "work")
    assert asked_for('title:"Tea Pots"').expression == Says('title:"Tea Pots"', "name", "tea pots")
    assert asked_for("path:Notes/*.md").expression == Says("path:Notes/*.md", "path", "Notes/*.md")
    assert asked_for("tag:wo*").expression == Says("tag:wo*", "tag", "wo", begins=True)


def test_positive_words_are_ranked_by_and_embedded_the_others_are_not() -> None:
    analysis = asked_for("tea AND deploy* AND heading:pots AND NOT milk AND tag:work").analysis
    assert analysis.text == "tea deploy pots"
    assert analysis.terms == ("tea", "pot")  # what deploy* stands for only a store knows


def test_function_words_are_passed_over_and_it_is_said() -> None:
    asked = asked_for("the AND tea")
    assert str(asked.expression) == "tea"
    assert [notice.code for notice in asked.analysis.notices] == ["word-ignored"]


@pytest.mark.parametrize(
    ("text", "place", "part"),
    [
        ("tea AND", 8, "a word is missing"),
        ("tea OR OR milk", 8, "a word is missing before OR"),
        ("AND tea", 1, "a word is missing before AND"),
        ("(tea", 1, "not closed"),
        ("tea )", 5, "no opening"),
        ("()", 2, "a word is missing before )"),
        ('tea "green', 5, "quotation mark"),
        ("foo:tea", 1, "no field 'foo'"),
        ("tea tag:", 5, "has no value"),
        ("tag:(a OR b)", 1, "has no value"),
        ("kind:song", 1, "no kind 'song'"),
        ("category:x", 1, "no category 'x'"),
        ("t*", 1, "matches too many"),
        ("π*", 1, "matches too many"),  # one letter, though its name has two
        ("tea π-*", 5, "matches too many"),
        ("*", 1, "matches too many"),
        ("de*ploy", 3, "inside a word"),
        ('"green tea"*', 12, "a phrase cannot"),
        ("x=y*", 1, "no word begins"),
        ("(" * (MAX_DEPTH + 1) + "tea" + ")" * (MAX_DEPTH + 1), MAX_DEPTH + 2, "too deep"),
        ("tea " * 65, 1, "65 words"),
        ("x" * 9_000, 1, "9000 characters"),
    ],
)
def test_what_cannot_be_read_is_refused_at_its_place(text: str, place: int, part: str) -> None:
    with pytest.raises(BadQuery) as refused:
        asked_for(text)
    assert part in refused.value.message
    assert f"at character {place}:" in refused.value.message
    assert refused.value.hint


def test_the_place_of_an_error_is_shown() -> None:
    with pytest.raises(BadQuery, match=r"at character 5: tea ▸\) milk"):
        asked_for("tea ) milk")
