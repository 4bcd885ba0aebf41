"""Win and loss, counted by hand; what cannot be compared is said."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.unit.evaluation.results import query, results
from whyrank.evaluation.compare import against, as_data, within

OLD = results({"q1": {"default": 0.5}, "q2": {"default": 1.0}, "q3": {"default": 0.25}, "q4": {"default": 0.0}})
NEW = results({"q1": {"default": 1.0}, "q2": {"default": 0.5}, "q3": {"default": 0.75}, "q4": {"default": 0.0}})


def test_wins_losses_and_ties_add_up_to_the_queries() -> None:
    [duel] = against(NEW, OLD).duels
    found = duel.comparison()
    # q1 +0.5, q2 −0.5, q3 +0.5, q4 0: two better, one worse, one same; (0.5 − 0.5 + 0.5 + 0) / 4 = 0.125
    assert (found.better, found.worse, found.same) == (2, 1, 1)
    assert found.difference == 0.125
    assert duel.means == ((0.5 + 1.0 + 0.25 + 0.0) / 4, (1.0 + 0.5 + 0.75 + 0.0) / 4)
    won, lost = duel.moved()
    assert [pair.query.id for pair in won] == ["q1", "q3"]
    assert [pair.query.id for pair in lost] == ["q2"]


def test_three_moves_of_the_same_size_prove_nothing() -> None:
    [duel] = against(NEW, OLD).duels
    # Of the eight ways to sign three halves every one is at least half away from zero: p is 1.
    assert duel.comparison().p == pytest.approx(1.0)


def test_the_same_results_are_no_difference() -> None:
    [duel] = against(OLD, OLD).duels
    assert duel.comparison() == (0.0, 0, 0, 4, 1.0)


def test_queries_of_one_side_are_left_out_and_counted() -> None:
    new = results({"q2": {"default": 1.0}, "q9": {"default": 1.0}})
    [duel] = against(new, OLD).duels
    assert [pair.query.id for pair in duel.pairs] == ["q2"]
    assert duel.left_out == ("1 query only in these results (q9)", "3 queries only in the other results (q1, q3, q4)")


@pytest.mark.parametrize(
    "changed", [{"text": "another"}, {"scope": "user:ann"}, {"expected": {"d1": 1, "d2": 1}}, {"expected": {"d1": 2}}]
)
def test_a_query_that_asks_something_else_is_not_compared(changed: dict[str, object]) -> None:
    [one] = NEW.sets
    values = {"default": 1.0, "ceiling": 1.0}
    new = replace(NEW, sets=(replace(one, queries=(query("q1", values, **changed), *one.queries[1:])),))
    [duel] = against(new, OLD).duels
    assert "q1" not in [pair.query.id for pair in duel.pairs]
    assert duel.left_out == ("1 query with another text, scope or judgement (q1)",)


def test_sets_of_one_side_are_named() -> None:
    new = replace(NEW, sets=(*NEW.sets, replace(NEW.sets[0], name="fresh")))
    old = replace(OLD, sets=(replace(OLD.sets[0], name="gone"),))
    compared = against(new, old)
    assert compared.duels == ()
    assert compared.left_out == (
        "set small: only in these results",
        "set fresh: only in these results",
        "set gone: only in the other results",
    )


def test_sets_of_one_name_are_compared_in_their_order() -> None:
    both = replace(NEW, sets=(NEW.sets[0], replace(OLD.sets[0])))
    compared = against(both, both)
    assert [duel.set_name for duel in compared.duels] == ["small", "small (2)"]
    assert all(duel.comparison().same == 4 for duel in compared.duels)


def test_other_documents_settings_and_recipes_are_said_beside_the_figures() -> None:
    new = results({"q1": {"rrf": 1.0}}, recipes=("rrf",), digest="other")
    new = replace(new, settings={"embedding": "minilm", "ranking.pool": "50"})
    [duel] = against(new, OLD).duels
    assert duel.remarks == (
        "recipe rrf is compared with default, which the other results have",
        "the documents of the set differ, so the task is not the same",
        "embedding was none and is minilm",
        "ranking.pool was unset and is 50",
    )
    assert (duel.pairs[0].before, duel.pairs[0].after) == (0.5, 1.0)


def test_a_recipe_is_compared_with_the_first_of_the_same_run() -> None:
    both = results({"q1": {"default": 0.5, "rrf": 1.0}, "q2": {"default": 1.0, "rrf": 0.0}}, recipes=("default", "rrf"))
    [duel] = within(both.sets[0])
    assert (duel.before, duel.after) == ("default", "rrf")
    assert [pair.difference for pair in duel.pairs] == [0.5, -1.0]


def test_kinds_are_compared_apart() -> None:
    [one] = NEW.sets
    kinds = tuple(replace(each, kind="name" if each.id == "q1" else "question") for each in one.queries)
    [duel] = against(replace(NEW, sets=(replace(one, queries=kinds),)), OLD).duels
    assert {kind: len(part.pairs) for kind, part in duel.kinds().items()} == {"name": 1, "question": 3}
    assert duel.kinds()["name"].comparison().difference == 0.5


def test_as_data_names_who_won_and_what_was_left_out() -> None:
    data = as_data(against(NEW, replace(OLD, whyrank="0.9")))
    assert data["whyrank"] == "0.9"
    [one] = data["sets"]
    assert (one["before"], one["after"], one["won"], one["lost"]) == (0.4375, 0.5625, ["q1", "q3"], ["q2"])
    assert data["not_compared"] == []
