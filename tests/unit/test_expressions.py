"""Expressions: their value, their positive parts, and what they say when they are not true."""

from __future__ import annotations

import pytest

from whyrank.types.query import (
    All,
    Either,
    Expression,
    Holds,
    Leaf,
    Not,
    Says,
    is_several,
    label_as,
    label_of,
    meant,
    refusal,
    several,
    spelled,
    valued,
    wanted,
)

TEA, MILK, OIL = (Holds(word, word) for word in ("tea", "milk", "oil"))
WORK = Says("tag:work", "tag", "work")


def true_of(*held: Leaf) -> list[bool]:
    def value(expression: Expression) -> bool:
        return valued(expression, lambda leaf: leaf in held, lambda one: not one)

    return [value(All((TEA, Not(MILK)))), value(Either((TEA, OIL))), value(Not(Either((TEA, MILK))))]


def test_an_expression_has_the_value_of_its_leaves() -> None:
    assert true_of(TEA) == [True, True, False]
    assert true_of(TEA, MILK) == [False, True, False]
    assert true_of(OIL) == [False, True, True]


def test_only_what_stands_under_an_even_number_of_nots_speaks_for_a_memory() -> None:
    expression = All((TEA, Not(Either((MILK, Not(OIL))))))
    assert list(wanted(expression)) == [TEA, OIL]


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        (TEA, "it does not contain tea"),
        (All((MILK, TEA)), "it does not contain tea"),
        (Not(MILK), "it contains milk"),
        (Either((TEA, OIL)), "it contains neither of tea, oil"),
        (WORK, "it is not tag:work"),
        (All((MILK, Not(Either((MILK, OIL))))), "it contains milk OR oil"),
        (All((MILK, Not(TEA))), None),
    ],
)
def test_what_keeps_a_memory_out_is_named(expression: Expression, said: str | None) -> None:
    assert refusal(expression, lambda leaf: leaf == MILK) == said


def test_a_term_may_stand_for_several_and_for_none() -> None:
    term = several("deploy*", ["deploy", "deployment"])
    assert (label_of(term), meant(term), is_several(term)) == ("deploy*", ["deploy", "deployment"], True)
    assert (meant(several("x*", [])), is_several(several("x*", []))) == ([], True)
    assert (label_of("tea"), meant("tea"), is_several("tea")) == ("tea", ["tea"], False)


@pytest.mark.parametrize(
    ("others", "label"),
    [
        (["café"], "cafe as café"),
        (["cafè", "café", "cafê"], "cafe as cafè/café/cafê"),
        (["cafè", "café", "cafê", "cafë", "cäfe"], "cafe as cafè/café/cafê and 2 more"),
    ],
)
def test_a_trail_names_a_few_other_spellings_and_counts_the_rest(others: list[str], label: str) -> None:
    term = spelled("cafe", others, is_known=True)
    assert label_as(term, is_asked=False) == label
    assert label_as(term, is_asked=True) == "cafe"
