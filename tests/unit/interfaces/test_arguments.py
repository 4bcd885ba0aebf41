"""Arguments are taken as callers write them; what nobody knows is named, what makes no sense refused with a reason."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from whyrank.errors import ConfigError
from whyrank.interfaces.arguments import MOMENT, TEXT, TEXTS, WHOLE, YES_OR_NO, Argument, one_of, schema_of, understood

ARGUMENTS = (
    Argument("query", TEXT, "what is asked", ("q", "question"), required=True),
    Argument("limit", WHOLE, "how many", ("k", "top_k")),
    Argument("max_tokens", WHOLE, "budget"),
    Argument("tags", TEXTS, "tags", ("tag",)),
    Argument("strict", YES_OR_NO, "strict"),
    Argument("kind", one_of("chunk", "fact"), "kind"),
    Argument("since", MOMENT, "date"),
)


def values(**arguments: Any) -> dict[str, Any]:
    return understood("tool", ARGUMENTS, {"query": "tea", **arguments}).values


def notices(**arguments: Any) -> list[tuple[str, str]]:
    return [(code, message) for code, message in understood("tool", ARGUMENTS, arguments).notices]


@pytest.mark.parametrize("name", ["query", "q", "question", "Query", "QUESTION"])
def test_an_argument_has_several_names(name: str) -> None:
    assert understood("tool", ARGUMENTS, {name: "tea"}) == ({"query": "tea"}, ())


@pytest.mark.parametrize("name", ["max_tokens", "maxTokens", "max-tokens", "MaxTokens"])
def test_words_of_a_name_may_be_put_together_in_any_way(name: str) -> None:
    assert values(**{name: 5}) == {"query": "tea", "max_tokens": 5}


@pytest.mark.parametrize("number", [7, "7", " 7 ", 7.0, "7.0", "7e0"])
def test_numbers_may_be_texts(number: object) -> None:
    assert values(top_k=number)["limit"] == 7


@pytest.mark.parametrize("number", [7.5, "seven", True, [7], {}, "nan", "1e999", float("inf")])
def test_what_is_no_whole_number_is_refused_by_name(number: object) -> None:
    with pytest.raises(ConfigError, match=r"limit is .*: give a whole number"):
        values(k=number)


@pytest.mark.parametrize("tags", ["a,b", "a, b", ["a", "b"], '["a", "b"]', ("a", " b "), ["a", "", "b"]])
def test_lists_may_be_texts(tags: object) -> None:
    assert values(tags=tags)["tags"] == ["a", "b"]


def test_a_single_number_or_a_broken_list_is_a_list_too() -> None:
    assert values(tags=5)["tags"] == ["5"]
    assert values(tags="[a")["tags"] == ["[a"]


@pytest.mark.parametrize(("word", "meant"), [(True, True), ("yes", True), ("False", False), (0, False), ("on", True)])
def test_yes_and_no_have_many_words(word: object, meant: bool) -> None:
    assert values(strict=word)["strict"] is meant


def test_what_is_empty_was_not_given() -> None:
    assert values(limit=None, tags="", kind="") == {"query": "tea"}
    assert understood("tool", ARGUMENTS, {"query": ""}).values == {"query": ""}


def test_what_is_missing_is_named_with_its_meaning() -> None:
    with pytest.raises(ConfigError) as refused:
        understood("tool", ARGUMENTS, {"limit": 3, "query": None})
    assert (refused.value.message, refused.value.hint) == ("tool needs query", "query: what is asked")


def test_unknown_arguments_are_named_and_do_no_harm() -> None:
    [(code, message)] = notices(query="tea", colour="green", mood=3)
    assert code == "argument-unknown"
    assert "'colour', 'mood'" in message
    assert "query, limit, max_tokens" in message


def test_thousands_of_unknown_arguments_are_not_all_repeated() -> None:
    [(_, message)] = notices(query="tea", **{f"x{i}": i for i in range(5_000)})
    assert "and 4995 more" in message
    assert len(message) < 300


def test_of_two_names_for_one_argument_its_own_wins_and_the_other_is_named() -> None:
    read = understood("tool", ARGUMENTS, {"q": "coffee", "query": "tea"})
    assert read.values == {"query": "tea"}
    assert [notice.code for notice in read.notices] == ["argument-twice"]
    assert understood("tool", ARGUMENTS, {"q": "tea", "query": "tea"}).notices == ()


def test_what_is_not_the_callers_to_choose_is_ignored_with_the_reason() -> None:
    read = understood("tool", ARGUMENTS, {"query": "tea", "scope": "user:7"}, {"scope": "it is fixed"})
    assert read.values == {"query": "tea"}
    assert read.notices == (("argument-fixed", "scope was ignored: it is fixed"),)


def test_the_schema_teaches_one_name_for_each() -> None:
    schema = schema_of(ARGUMENTS)
    assert list(schema["properties"]) == [argument.name for argument in ARGUMENTS]
    assert schema["required"] == ["query"]
    assert schema["properties"]["kind"] == {"type": "string", "enum": ["chunk", "fact"], "description": "kind"}


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@given(st.dictionaries(st.sampled_from([one.name for one in ARGUMENTS]) | st.text(max_size=8), _JSON, max_size=6))
def test_anything_is_understood_or_refused_in_our_words(arguments: dict[str, Any]) -> None:
    try:
        read = understood("tool", ARGUMENTS, arguments)
    except ConfigError:
        return
    assert isinstance(read.values["query"], str)
    assert isinstance(read.values.get("limit", 0), int)
    assert all(isinstance(tag, str) and tag for tag in read.values.get("tags", []))
