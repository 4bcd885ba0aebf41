"""What a model answers is checked line by line before any of it is believed."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from whyrank.ingest.extraction.prompts import MAX_ANSWER, MAX_FACTS, Fact, ParsedAnswer, read_answer

WINDOW = "The lighthouse server\nruns its backup nightly at 3:00. Keys rotate in June."
GOOD = {
    "text": "The lighthouse server is backed up every night at three",
    "category": "technical",
    "tags": ["backup"],
    "importance": 3,
    "evidence": "runs its backup nightly",
}


def line(**changes: object) -> str:
    return json.dumps({key: value for key, value in {**GOOD, **changes}.items() if value is not ...})


def only_reason(answer: str) -> str:
    [refused] = read_answer(answer, WINDOW).refused
    return refused.reason


def test_a_good_line_is_a_fact() -> None:
    expected = Fact(str(GOOD["text"]), "technical", ("backup",), 3, "runs its backup nightly")
    assert read_answer(line(), WINDOW) == ParsedAnswer((expected,))


def test_evidence_may_differ_in_case_and_white_space_alone() -> None:
    assert read_answer(line(evidence="THE  lighthouse SERVER runs its\tbackup"), WINDOW).facts
    assert "is not in the text" in only_reason(line(evidence="runs a backup nightly"))


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        (line(text="too short"), "fewer than 10"),
        (line(text="x" * 1_001), "more than 1000"),
        (line(text=5), "text must be a text"),
        (line(text=...), "text must be a text"),
        (line(text="a NUL \0 in a text"), "NUL"),
        (line(text="half of a pair \ud800"), "surrogate"),
        (line(tags="backup"), "tags must be a list"),
        (line(tags=["a"] * 11), "at most 10"),
        (line(tags=[["nested"]]), "a tag must be a text"),
        (line(tags=["x" * 61]), "more than 60"),
        (line(importance=6), "importance"),
        (line(importance=True), "importance"),
        (line(importance="high"), "importance"),
        (line(importance=2.5), "importance"),
        (line(evidence=...), "evidence must be a text"),
        (line(evidence="June."), "fewer than 10"),
        (line(scope="user:1"), "no field 'scope'"),
        (line(trust="owner"), "no field 'trust'"),
        ("{" + '"text": NaN}', "not a JSON object"),
        ("[1, 2", "not a JSON object"),
        (line()[:-5], "not a JSON object"),
        ('{"a":' * 30_000, "not a JSON object"),
        ("Sure! Here are your facts.", "not a JSON object"),
    ],
)
def test_what_is_wrong_is_refused_with_what_to_mend(bad: str, said: str) -> None:
    assert said in only_reason(bad)


def test_ten_characters_are_enough_and_nine_are_not() -> None:
    assert read_answer(line(text="0123456789"), WINDOW).facts
    assert read_answer(line(text=" 012345678 "), WINDOW).refused


@pytest.mark.parametrize("category", ["skill", "", 7, None, ["rule"], ...])
def test_a_category_that_is_none_becomes_technical(category: object) -> None:
    assert read_answer(line(category=category), WINDOW).facts[0].category == "technical"


def test_a_category_is_known_in_any_case() -> None:
    assert read_answer(line(category=" Rule "), WINDOW).facts[0].category == "rule"


def test_fields_that_may_be_left_out_may_be_left_out() -> None:
    fact = read_answer(line(category=..., tags=..., importance=...), WINDOW).facts[0]
    assert (fact.category, fact.tags, fact.importance) == ("technical", (), None)


@pytest.mark.parametrize(
    "form",
    [
        "{0}\n{1}",
        "{0}\n\n\n{1}\n",
        "```json\n{0}\n{1}\n```",
        "[{0},\n{1}]",
        "[\n  {0},\n  {1}\n]",
        '{{"facts": [{0}, {1}]}}',
        "{0} {1}",
        "<think>\nLet me see.\n</think>\n{0}\n{1}",
    ],
)
def test_facts_are_found_in_every_form_models_write_them(form: str) -> None:
    answer = read_answer(form.format(line(), line(text="Keys rotate in June", evidence="Keys rotate")), WINDOW)
    assert [fact.text for fact in answer.facts] == [GOOD["text"], "Keys rotate in June"]
    assert not answer.refused
    assert not answer.needs_repair


def test_an_object_over_several_lines_is_one() -> None:
    assert len(read_answer(json.dumps(GOOD, indent=2), WINDOW).facts) == 1


def test_a_list_that_was_cut_off_keeps_what_is_whole() -> None:
    answer = read_answer(f"[{line()},\n{line()[:30]}", WINDOW)
    assert (len(answer.facts), len(answer.refused)) == (1, 1)
    assert answer.needs_repair


@pytest.mark.parametrize("nothing", ["NONE", "none.", " `NONE` ", "[]", '{"facts": []}', "<think>hm</think>NONE"])
def test_a_model_may_say_that_there_is_nothing(nothing: str) -> None:
    answer = read_answer(nothing, WINDOW)
    assert (answer.is_nothing, answer.lines, answer.needs_repair) == (True, 0, False)


def test_an_empty_answer_says_nothing_at_all() -> None:
    answer = read_answer("", WINDOW)
    assert (answer.is_nothing, answer.lines, answer.needs_repair) == (False, 0, True)


def test_chatter_beside_facts_is_refused_and_not_worth_a_second_question() -> None:
    answer = read_answer(f"Here you go:\n{line()}", WINDOW)
    assert (len(answer.facts), len(answer.refused), answer.needs_repair) == (1, 1, False)


def test_ten_thousand_facts_are_twenty_facts_and_the_rest_is_counted() -> None:
    lines = [line(text=f"The lighthouse has {n} steps", evidence="The lighthouse") for n in range(10_000)]
    answer = read_answer("\n".join(lines), WINDOW)
    assert len(answer.facts) == MAX_FACTS == 20
    read = "\n".join(lines)[:MAX_ANSWER].count("\n") + 1
    assert answer.lines == read + 1  # and one line that says how much was not read
    assert "characters more" in answer.refused[-1].line
    assert not ParsedAnswer(answer.facts, answer.refused[:-2]).needs_repair  # a second question would not help


@given(
    st.one_of(
        st.text(),
        st.lists(
            st.one_of(
                st.text(),
                st.just(line()),
                st.just(line()[:-3]),
                st.recursive(
                    st.none() | st.booleans() | st.floats() | st.integers() | st.text(),
                    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
                ).map(lambda value: json.dumps(value)),
                st.fixed_dictionaries(
                    {},
                    optional={
                        "text": st.text() | st.just("a good and true text"),
                        "category": st.text() | st.integers(),
                        "tags": st.lists(st.text()) | st.text(),
                        "importance": st.integers() | st.floats(),
                        "evidence": st.text() | st.just("keys rotate in june"),
                        "scope": st.text(),
                    },
                ).map(json.dumps),
            )
        ).map("\n".join),
    )
)
def test_no_answer_raises_and_what_is_taken_keeps_the_rules(answer: str) -> None:
    read = read_answer(answer, WINDOW)
    assert read.lines == len(read.facts) + len(read.refused)
    for fact in read.facts:
        assert 10 <= len(fact.text) <= 1_000
        assert fact.importance in (None, 1, 2, 3, 4, 5)
        assert " ".join(fact.evidence.casefold().split()) in " ".join(WINDOW.casefold().split())
        fact.text.encode()
    assert all(refused.reason for refused in read.refused)
