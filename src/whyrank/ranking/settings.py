"""Recipes changed by settings: weights, evidence, recency, grouping and diversity, each one setting away."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

from ..types import Notice
from .diversity import MMR
from .entities import EntityBoost
from .fusion import Fuse, Vote
from .normalisers import BatchMax, Normaliser, ReciprocalRank
from .order import Stage
from .recipes import LENGTHS, Recipe
from .stages import Evidence, GroupBySource, MinScore, NameFirst, OpenClawSelection, Recency
from .worth import Importance

CALIBRATED = "calibrated"
AS_THE_RECIPE_SAYS = "recipe"
SCALED = "scaled"


@dataclass(frozen=True)
class Adjustments:
    """What a user may change of a recipe by settings; None and 0 leave the recipe as it is."""

    vector_weight: float | None = None
    recency_weight: float = 0.0
    recency_half_life_days: float = 30.0
    min_vector: float | None = None
    min_coverage: float | None = None
    max_per_file: int | None = 1
    mmr_lambda: float | None = None
    name_bonus: float = 1.0
    evidence: str = "any"
    alpha: float | None = None
    boost_weight: float | None = None
    min_score: float | None = None
    importance: str = AS_THE_RECIPE_SAYS
    entity_boost: float | None = None
    analysis: str = AS_THE_RECIPE_SAYS
    pool: int | None = None
    k: float | None = None


AS_IT_IS = Adjustments(max_per_file=None)  # what leaves any recipe as it is


def adjusted(recipe: Recipe, wish: Adjustments) -> Recipe:
    """Return the recipe with the wishes carried out."""
    if wish.vector_weight is not None and is_balanced(recipe):
        recipe = replace(recipe, fusion=_balanced(recipe.fusion, wish.vector_weight))
    if is_blend(recipe):
        recipe = replace(recipe, fusion=_blended(recipe.fusion, wish))
    if wish.k is not None:
        recipe = replace(recipe, fusion=_with_k(recipe.fusion, wish.k))
    recipe = _planned(recipe, wish)
    if wish.importance == SCALED:
        recipe = recipe.with_stages(Importance())
    if wish.recency_weight:
        recipe = recipe.with_stages(Recency(wish.recency_half_life_days, wish.recency_weight))
    if wish.min_vector is not None or wish.min_coverage is not None or wish.evidence == CALIBRATED:
        recipe = recipe.with_stages(Evidence(wish.min_vector, wish.min_coverage))
    if wish.mmr_lambda is not None:
        recipe = recipe.with_stages(MMR(wish.mmr_lambda))
    return replace(recipe, stages=tuple(_changed(stage, wish) for stage in recipe.stages))


def _planned(recipe: Recipe, wish: Adjustments) -> Recipe:
    """Return the recipe with the wishes about its plan carried out."""
    plan = recipe.plan
    if wish.entity_boost is not None:
        plan = replace(plan, entities=EntityBoost(wish.entity_boost) if wish.entity_boost else None)
    for lengths in LENGTHS:
        plan = replace(plan, analysis=lengths) if wish.analysis == lengths else plan
    return replace(recipe, plan=plan if wish.pool is None else replace(plan, pool=wish.pool))


def _blended(fusion: Fuse, wish: Adjustments) -> Fuse:
    if wish.alpha is not None:
        fusion = _balanced(fusion, wish.alpha)
    return fusion if wish.boost_weight is None else with_boost_weight(fusion, wish.boost_weight)


def with_boost_weight(fusion: Fuse, weight: float) -> Fuse:
    """Return a blend whose votes together give at most this much; in small batches it is the cap as well."""
    votes = (replace(vote, normaliser=_capped(vote.normaliser, weight)) for vote in fusion.votes)
    return replace(fusion, strength=weight, votes=tuple(votes))


def _capped(normaliser: Normaliser, cap: float) -> Normaliser:
    if isinstance(normaliser, BatchMax) and normaliser.least:
        return replace(normaliser, cap=cap)
    return normaliser


def _with_k(fusion: Fuse, k: float) -> Fuse:
    def given(vote: Vote) -> Vote:
        return replace(vote, normaliser=ReciprocalRank(k)) if isinstance(vote.normaliser, ReciprocalRank) else vote

    others = None if fusion.others is None else given(fusion.others)
    return replace(fusion, votes=tuple(map(given, fusion.votes)), others=others)


def _changed(stage: Stage, wish: Adjustments) -> Stage:
    if wish.min_score is not None and isinstance(stage, OpenClawSelection):
        return OpenClawSelection(wish.min_score)
    if wish.min_score is not None and isinstance(stage, MinScore):
        return MinScore(wish.min_score)
    if wish.max_per_file is not None and isinstance(stage, GroupBySource):
        return GroupBySource(wish.max_per_file)
    if isinstance(stage, NameFirst) and wish.name_bonus != 1:
        return replace(
            stage,
            partial_bonus=stage.partial_bonus * wish.name_bonus,
            sentence_bonus=stage.sentence_bonus * wish.name_bonus,
        )
    return stage


def tunable(recipe: Recipe) -> frozenset[str]:
    """Name the settings of a recipe's fusion that can be fitted to a store."""
    has_names = any(isinstance(stage, NameFirst) for stage in recipe.stages)
    return frozenset({"vector_weight"} if is_balanced(recipe) else ()) | ({"name_bonus"} if has_names else set())


def unhonoured(recipe: Recipe, wish: Adjustments) -> tuple[Notice, ...]:
    """Say which wishes a recipe has no place for."""
    unused = _unused(recipe, wish)
    return tuple(Notice("setting-unused", f"{key} has no place in the recipe {recipe.name!r}") for key in unused)


def honoured(recipe: Recipe) -> tuple[str, ...]:
    """Name the settings that a recipe has a place for."""
    every = Adjustments(
        vector_weight=0.5, max_per_file=2, name_bonus=2.0, alpha=0.5, boost_weight=1.0, min_score=0.5, k=1.0
    )
    unused = _unused(recipe, every)
    keys = (f"ranking.{field.name}" for field in fields(Adjustments))
    return tuple(key for key in keys if key not in unused)


def _unused(recipe: Recipe, wish: Adjustments) -> list[str]:
    unused = []
    if not is_blend(recipe):
        asked = {"ranking.alpha": wish.alpha, "ranking.boost_weight": wish.boost_weight}
        unused += [key for key, value in asked.items() if value is not None]
    if wish.min_score is not None and not any(
        isinstance(stage, OpenClawSelection | MinScore) for stage in recipe.stages
    ):
        unused.append("ranking.min_score")
    if wish.vector_weight is not None and not is_balanced(recipe):
        unused.append("ranking.vector_weight")
    if wish.max_per_file not in (None, 1) and not any(isinstance(stage, GroupBySource) for stage in recipe.stages):
        unused.append("ranking.max_per_file")
    if wish.name_bonus != 1 and "name_bonus" not in tunable(recipe):
        unused.append("ranking.name_bonus")
    if wish.k is not None and not counts_ranks(recipe):
        unused.append("ranking.k")
    return unused


def counts_ranks(recipe: Recipe) -> bool:
    """Tell whether runs are fused by their ranks, so that k says how fast a rank loses its worth."""
    votes = (*recipe.fusion.votes, *([recipe.fusion.others] if recipe.fusion.others else []))
    return any(isinstance(vote.normaliser, ReciprocalRank) for vote in votes)


def is_balanced(recipe: Recipe) -> bool:
    """Tell whether words and vectors share the vote, so that one weight says it all; in a blend that is alpha."""
    return not is_blend(recipe) and _has_both(recipe)


def is_blend(recipe: Recipe) -> bool:
    """Tell whether words and vectors share a boost weight, so that alpha says how."""
    return recipe.fusion.strength is not None and _has_both(recipe)


def _has_both(recipe: Recipe) -> bool:
    return {"vector", "keyword"} <= {vote.signal for vote in recipe.fusion.votes}


def _balanced(fusion: Fuse, vector_weight: float) -> Fuse:
    def weigh(vote: Vote) -> Vote:
        if vote.signal == "vector":
            return replace(vote, weight=vector_weight)
        return replace(vote, weight=1 - vector_weight) if vote.signal == "keyword" else vote

    return replace(fusion, votes=tuple(weigh(vote) for vote in fusion.votes))
