"""Which sliders a recipe honours, where they stand, and when moving them is of no use."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from whyrank.analysis.query import analyse
from whyrank.config.settings import SETTINGS
from whyrank.ranking.parameters import Slider, sliders
from whyrank.ranking.recipes import RECIPES, Adjustments, adjusted, unhonoured
from whyrank.types.memory import Memory
from whyrank.types.query import Query
from whyrank.types.results import Candidate, Context, Run, Signal
from whyrank.types.trail import NameMatch

BOTH = (Run("keyword", (Candidate("a", 2.0),)), Run("vector", (Candidate("a", 0.5),)))
SIGNALS = {"keyword": Signal("keyword", {"a": 2.0}), "vector": Signal("vector", {"a": 0.5})}
NONE = Adjustments()
DATED = {"a": Memory("a", "tea", date=1.0), "b": Memory("b", "oil")}


def found(recipe: str, wish: Adjustments = NONE, runs: tuple[Run, ...] = BOTH, **given: Any) -> dict[str, Slider]:
    context = Context(Query("tea"), analyse("tea"), **{"memories": DATED, "signals": SIGNALS, **given})
    chosen = adjusted(RECIPES[recipe], wish)
    settled = replace(chosen, fusion=chosen.fusion.with_vector_weight(0.6))
    return {slider.setting: slider for slider in sliders(settled, wish, runs, context)}


@pytest.mark.parametrize(
    ("recipe", "own"),
    [
        ("default", {"vector_weight", "name_bonus"}),
        ("rrf", {"k"}),
        ("hybrid-mem", {"k"}),
        ("keyword", set()),
        ("openvault", {"alpha", "boost_weight", "vector_threshold"}),
        ("openclaw", {"vector_weight", "min_score"}),
        ("openclaw-2026-02", {"vector_weight", "min_score"}),
        ("clawhub", {"vector_weight"}),
    ],
)
def test_a_recipe_has_the_sliders_it_honours(recipe: str, own: set[str]) -> None:
    everywhere = {"recency_weight", "recency_half_life_days", "mmr_lambda", "min_vector", "min_coverage"}
    assert found(recipe).keys() == own | everywhere


def test_every_slider_moves_a_setting_within_what_it_can_be() -> None:
    for name, recipe in RECIPES.items():
        for slider in found(name).values():
            read = SETTINGS[slider.key].read
            assert slider.low <= slider.value <= slider.high
            assert (read(slider.low), read(slider.high)) == (slider.low, slider.high)
            changed: dict[str, Any] = {slider.setting: slider.high}
            assert unhonoured(recipe, replace(NONE, **changed)) == ()


def test_a_slider_stands_where_the_ranking_does() -> None:
    assert found("default")["vector_weight"].value == 0.6
    assert found("default")["vector_weight"].given is None
    assert found("openvault", Adjustments(alpha=0.2))["alpha"].value == pytest.approx(0.2)
    assert found("openvault")["boost_weight"].value == 15.0
    assert found("rrf")["k"].value == 60.0
    assert (found("rrf", Adjustments(k=500.0))["k"].value, found("rrf", Adjustments(k=500.0))["k"].high) == (
        500.0,
        500.0,
    )
    assert found("openclaw")["min_score"].value == 0.35
    assert found("default", Adjustments(mmr_lambda=0.7))["mmr_lambda"].given == 0.7


def test_a_slider_that_changes_nothing_says_why() -> None:
    assert found("default")["vector_weight"].idle == ""
    assert found("default", runs=BOTH[:1])["vector_weight"].idle == "the vector run found nothing"
    assert found("default")["name_bonus"].idle == "no candidate's name is in the query"
    assert found("default", names={"a": NameMatch("all words", "tea")})["name_bonus"].idle == ""
    assert found("default", memories={"b": DATED["b"]})["recency_weight"].idle == "no candidate has a date"
    assert found("default", signals={})["min_vector"].idle == "no candidate has a cosine"


def test_the_half_life_does_nothing_without_recency() -> None:
    half_life = found("default")["recency_half_life_days"]
    assert (half_life.idle, half_life.needs) == ("Recency is at 0", "recency_weight")
    assert found("default", Adjustments(recency_weight=0.2))["recency_half_life_days"].idle == ""
    undated = found("default", memories={"b": DATED["b"]})["recency_half_life_days"]
    assert undated.idle == "no candidate has a date"
