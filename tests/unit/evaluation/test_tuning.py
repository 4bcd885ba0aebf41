"""Choosing among settings: what is found, and what is refused."""

from __future__ import annotations

import random
from xml.etree import ElementTree

import pytest

from whyrank.evaluation.report.html import draw_curves
from whyrank.evaluation.tuning import FOLDS, MIN_QUERIES, Choice, Fit, Pseudo, Trial, _dealt, gain, grid, tune
from whyrank.types.memory import GLOBAL

PRESENT = Choice(0.9)
WEIGHTS = [PRESENT, Choice(None), Choice(0.4)]
SURE = 0.3


def trial(number: int, gains: tuple[float, ...], kind: str = "paraphrase") -> Trial:
    return Trial(Pseudo(kind, f"question {number}", (GLOBAL, f"{number}.md")), gains)


def spread(number: int) -> float:
    """A gain of the present setting that differs from question to question: 0.2, 0.25, … 0.65."""
    return 0.2 + 0.05 * (number % 10)


def trials(*better: float, kind: str = "paraphrase", count: int = 120, every: int = 1) -> list[Trial]:
    """Trials in which each further choice is better by so much, on every n-th question."""
    return [
        trial(n, (spread(n), *(spread(n) + (more if n % every == 0 else 0.0) for more in better)), kind)
        for n in range(count)
    ]


def only(found: list[Trial], choices: list[Choice]) -> Fit:
    [fit] = tune(found, choices, 1).fits
    return fit


def test_a_planted_better_weight_is_found_with_its_gain() -> None:
    found = tune(trials(0.02, 0.1), WEIGHTS, 1)
    assert (found.decision, found.changes) == ("change", {"ranking.vector_weight": 0.4})
    [fit] = found.fits
    assert fit.folds == (Choice(0.4),) * FOLDS
    # Every question gains 0.1, in every fold.
    assert fit.gain == pytest.approx(0.1)
    assert fit.witnesses is not None
    assert (fit.witnesses.compared.better, fit.witnesses.compared.worse) == (120, 0)


def test_noise_is_refused() -> None:
    for seed in range(6):
        chance = random.Random(seed)
        noise = [trial(n, tuple(chance.choice((0.0, 0.5, 1.0)) for _ in range(9))) for n in range(200)]
        found = tune(noise, [PRESENT, *(Choice(w / 10) for w in range(1, 9))], seed)
        assert found.decision == "keep", seed
        assert found.changes == {}


def test_a_gain_too_small_to_matter_is_refused() -> None:
    # 0.04 on every fifth question is sure, and 0.008 in the mean.
    fit = only(trials(0.0, 0.04, every=5), WEIGHTS)
    assert fit.decision == "keep"
    assert "too small to matter: +0.0080" in fit.reason


def test_a_gain_that_one_kind_of_question_pays_for_is_refused() -> None:
    found = trials(0.0, 0.1) + trials(0.0, -0.1, kind="terms")
    fit = only(found, WEIGHTS)
    assert fit.decision == "keep"
    assert fit.reason.endswith("questions of kind terms")


def test_terms_cannot_speak_for_a_weight() -> None:
    fit = only(trials(0.0, 0.0) + trials(0.0, SURE, kind="terms"), WEIGHTS)
    assert (fit.decision, fit.best) == ("keep", PRESENT)


def test_names_speak_for_the_name_bonus_alone() -> None:
    choices = [Choice(), Choice(0.4), Choice(None, 2.0)]
    found = tune(trials(0.0, 0.0) + trials(SURE, SURE, kind="name"), choices, 1)
    assert [(fit.setting, fit.decision) for fit in found.fits] == [("vector_weight", "keep"), ("name_bonus", "change")]
    assert found.changes == {"ranking.name_bonus": 2.0}


def test_at_most_one_setting_is_changed_the_weight_before_a_bonus_that_may_cover_up_for_it() -> None:
    choices = [Choice(), Choice(0.4), Choice(None, 2.0)]
    found = tune(trials(0.1, 0.0) + trials(0.0, 0.2, kind="name"), choices, 1)
    assert [fit.decision for fit in found.fits] == ["change", "change"]
    assert found.changes == {"ranking.vector_weight": 0.4}


def test_what_ships_is_preferred_to_a_new_value_that_is_no_better() -> None:
    # 0.4 gains 0.1 on one question and loses 0.05 on another: in the mean less than a standard error.
    found = [trial(n, (0.2, 0.5, 0.5 + 0.1 * (n == 0) - 0.05 * (n == 1))) for n in range(120)]
    assert tune(found, WEIGHTS, 1).changes == {"ranking.vector_weight": None}


def test_too_few_questions_or_sources_give_a_clear_answer() -> None:
    few = tune(trials(0.0, SURE, count=MIN_QUERIES - 1), WEIGHTS, 1)
    assert (few.decision, few.changes) == ("too few", {})
    assert f"give {MIN_QUERIES - 1} questions" in few.reason
    one_source = [found._replace(question=Pseudo("title", "?", (GLOBAL, "a.md"))) for found in trials(0.0, SURE)]
    assert "answers in 1 source;" in tune(one_source, WEIGHTS, 1).reason


def test_no_trials_and_nothing_to_fit_are_answers_too() -> None:
    assert tune([], WEIGHTS, 1).decision == "too few"
    assert tune([], [PRESENT], 1).reason == "the recipe has no setting to fit"


def test_questions_with_the_same_answer_stay_in_one_fold() -> None:
    found = [trial(n // 3, (0.0,)) for n in range(300)]
    folds = _dealt(found, 1)
    assert sorted(len(fold) for fold in folds) == [60] * FOLDS
    answers = [{one.question.answer for one in fold} for fold in folds]
    assert sum(map(len, answers)) == len(set.union(*answers)) == 100


def test_the_judges_did_not_choose() -> None:
    # Every source likes one weight of its own: what others chose helps none of them, though a choice by all would.
    own = [trial(n, (0.5, *(1.0 if n % 5 == place else 0.4 for place in range(5)))) for n in range(150)]
    fit = only(own, [PRESENT, *(Choice(w / 10) for w in range(1, 6))])
    assert fit.decision == "keep"


def test_the_grid_changes_one_setting_at_a_time_and_holds_what_ships() -> None:
    tried = grid(PRESENT, frozenset({"vector_weight", "name_bonus"}))
    assert tried[0] == PRESENT
    assert Choice(None) in tried
    assert all(choice.vector_weight == 0.9 or choice.name_bonus == 1.0 for choice in tried)
    assert grid(PRESENT, frozenset()) == [PRESENT]


def test_gain_is_ndcg_of_one_answer() -> None:
    found = [(GLOBAL, "a.md"), (GLOBAL, "b.md"), (GLOBAL, "c.md")]
    assert gain(found, (GLOBAL, "a.md")) == 1.0
    assert gain(found, (GLOBAL, "c.md")) == 0.5  # 1 / log2(3 + 1)
    assert gain(found, (GLOBAL, "d.md")) == 0.0


def test_leads_are_differences_to_the_present_setting_and_means_are_not() -> None:
    found = tune(trials(0.0, 0.1), WEIGHTS, 1)
    assert [lead for lead, _, _ in found.leads({"paraphrase"}).values()] == pytest.approx([0.0, 0.0, 0.1])
    # 0.2 + 0.05 × the mean of 0 to 9, which is 4.5.
    assert [mean for mean, _, _ in found.means().values()] == pytest.approx([0.425, 0.425, 0.525])
    assert found.leads({"terms"}) == {}


def test_the_picture_is_an_svg_with_a_line_for_each_kind() -> None:
    found = tune(trials(0.0, 0.1) + trials(0.0, 0.0, kind="terms"), WEIGHTS, 1)
    root = ElementTree.fromstring(draw_curves(found))
    lines = root.findall("{http://www.w3.org/2000/svg}polyline")
    assert len(lines) == 3  # all, paraphrase, terms
    texts = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert {"paraphrase", "terms", "0.4", "0.9", "ranking.vector_weight"} <= set(texts)


def test_a_picture_of_nothing_is_still_an_svg() -> None:
    assert ElementTree.fromstring(draw_curves(tune([], WEIGHTS, 1))).tag.endswith("svg")
    assert ElementTree.fromstring(draw_curves(tune([], [PRESENT], 1))).tag.endswith("svg")
