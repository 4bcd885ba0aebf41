"""Recipes changed by settings: weights, evidence, recency, grouping and diversity, each one setting away."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..types import Notice
from .diversity import MMR
from .fusion import Fuse, Vote
from .order import Stage
from .recipes import Recipe
from .stages import Evidence, GroupBySource, NameFirst, Recency

CALIBRATED = "calibrated"


@dataclass(frozen=True)
class Adjustments:
    """What a user may change of a recipe by settings; None and 0 leave the recipe as it is."""

    vector_weight: float | None = None
    recency_weight: float = 0.0
    recency_half_life_days: float = 30.0
    min_vector: float | None = None
    min_coverage: float | None = None
    max_per_file: int = 1
    mmr_lambda: float | None = None
    name_bonus: float = 1.0
    evidence: str = "any"


def adjusted(recipe: Recipe, wish: Adjustments) -> Recipe:
    """Return the recipe with the wishes carried out."""
    if wish.vector_weight is not None and is_balanced(recipe):
        recipe = replace(recipe, fusion=_balanced(recipe.fusion, wish.vector_weight))
    if wish.recency_weight:
        recipe = recipe.with_stages(Recency(wish.recency_half_life_days, wish.recency_weight))
    if wish.min_vector is not None or wish.min_coverage is not None or wish.evidence == CALIBRATED:
        recipe = recipe.with_stages(Evidence(wish.min_vector, wish.min_coverage))
    if wish.mmr_lambda is not None:
        recipe = recipe.with_stages(MMR(wish.mmr_lambda))
    return replace(recipe, stages=tuple(_changed(stage, wish) for stage in recipe.stages))


def _changed(stage: Stage, wish: Adjustments) -> Stage:
    if isinstance(stage, GroupBySource):
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
    unused = []
    if wish.vector_weight is not None and not is_balanced(recipe):
        unused.append("ranking.vector_weight")
    if wish.max_per_file != 1 and not any(isinstance(stage, GroupBySource) for stage in recipe.stages):
        unused.append("ranking.max_per_file")
    if wish.name_bonus != 1 and "name_bonus" not in tunable(recipe):
        unused.append("ranking.name_bonus")
    return tuple(Notice("setting-unused", f"{key} has no place in the recipe {recipe.name!r}") for key in unused)


def is_balanced(recipe: Recipe) -> bool:
    """Tell whether words and vectors share the vote, so that one weight says it all."""
    return {"vector", "keyword"} <= {vote.signal for vote in recipe.fusion.votes}


def _balanced(fusion: Fuse, vector_weight: float) -> Fuse:
    def weigh(vote: Vote) -> Vote:
        if vote.signal == "vector":
            return replace(vote, weight=vector_weight)
        return replace(vote, weight=1 - vector_weight) if vote.signal == "keyword" else vote

    return replace(fusion, votes=tuple(weigh(vote) for vote in fusion.votes))
