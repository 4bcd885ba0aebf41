"""Recipes: retrieval plan, fusion and stages as one printable value; adjustments by settings."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from difflib import get_close_matches
from functools import cached_property, reduce
from typing import TYPE_CHECKING

from ..errors import ConfigError
from ..types.memory import Notice
from ..types.query import LENGTHS, Plan
from .boosts import PRESETS, Base, EntityBoost, Importance, TokenGate
from .diversity import MMR
from .fusion import (
    Above,
    AboveFloor,
    AgainstMass,
    BatchMax,
    Binary,
    Clamped,
    Fuse,
    MinMax,
    ReciprocalRank,
    Saturating,
    Vote,
)
from .stages import (
    Dedup,
    Evidence,
    ExactName,
    GroupBySource,
    InScope,
    MinScore,
    NameFirst,
    NotExpired,
    OpenClawSelection,
    Recency,
    Rerank,
    SameLanguage,
    Stage,
    Superseded,
    Top,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..types.results import Context, Ranking, Run

GATHERED = ("memories", "likeness", "labels", "chats", "languages")  # a stage that reads one has an attribute `reads_…`
OPENCLAW_POOL = 24  # OpenClaw retrieves four times its six results from each run
ALPHA = 0.7  # OpenVault's balance of vectors against keywords, which have the other 0.3 …
BOOST_WEIGHT = 15.0  # … and how much they may add to the base, together
VECTOR_THRESHOLD = 0.5  # cosines up to here add nothing
SMALL_BATCH = 3  # below this many candidates the best of them is no measure


_USUAL_PLAN = Plan()


@dataclass(frozen=True)
class Recipe:
    """The whole ranking policy as one value; its repr is its configuration."""

    name: str
    fusion: Fuse
    stages: tuple[Stage, ...] = ()
    plan: Plan = _USUAL_PLAN

    def __post_init__(self) -> None:
        if sum(isinstance(stage, Rerank) for stage in self.stages) > 1:
            raise ConfigError(f"the recipe {self.name!r} has two Rerank stages", "leave one")

    def with_vector_weight(self, vector_weight: float) -> Recipe:
        """Return the recipe with every open weight filled in; cached, as every search needs it."""
        if vector_weight not in self._weighted:
            self._weighted[vector_weight] = replace(self, fusion=self.fusion.with_vector_weight(vector_weight))
        return self._weighted[vector_weight]

    @cached_property
    def reads(self) -> frozenset[str]:
        """Return the inputs that its stages read beyond those that every search gathers."""
        read = {what for what in GATHERED for stage in self.stages if getattr(stage, f"reads_{what}", False)}
        return frozenset({*read, *("opinions" for stage in self.stages if isinstance(stage, Rerank))})

    @cached_property
    def _weighted(self) -> dict[float, Recipe]:
        """Cache resolved recipes by the weight the embedder declared: one number per language."""
        return {}

    def with_stages(self, *stages: Stage) -> Recipe:
        """Return the recipe with further stages, each in place of one of its kind.

        They go before the grouping of files, which needs the final scores; diversity comes after it, among the shown
        hits.
        """
        if not stages:
            return self
        kinds = tuple(type(stage) for stage in stages)
        others = [stage for stage in self.stages if not isinstance(stage, kinds)]
        late = {GroupBySource: 1, MMR: 2}
        return replace(self, stages=tuple(sorted((*others, *stages), key=lambda stage: late.get(type(stage), 0))))


def rank(runs: Sequence[Run], recipe: Recipe, context: Context) -> Ranking:
    """Fuse the runs, apply each stage in order, then cut the page."""
    return Top(context.query.limit, context.query.offset)(rank_pool(runs, recipe, context), context)


def rank_pool(runs: Sequence[Run], recipe: Recipe, context: Context) -> Ranking:
    """Do the same without the cut."""
    return reduce(lambda ranking, stage: stage(ranking, context), recipe.stages, recipe.fusion(runs, context))


# Behind the store's own filters, a last check of the returned hits; none of these should ever drop one.
_GUARDS: tuple[Stage, ...] = (InScope(), Superseded(), NotExpired())


def guard(ranking: Ranking, context: Context) -> Ranking:
    """Check scope, replacement and expiry of the hits again, now that their memories are read."""
    where, memories = context.query.where, [hit.memory for hit in ranking.hits]
    if all(one.scope in where.scopes and not where.replaced(one) and not where.untimely(one) for one in memories):
        return ranking
    return reduce(lambda ranking, guard: guard(ranking, context), _GUARDS, ranking)


# Open weights are declared by the embedder: 0.35 for static models, less for languages it does not support.
_VECTOR = Vote("vector", None, AboveFloor())
_KEYWORD = Vote("keyword", None, AgainstMass())
# Of a memory in another language its weight is 0.9 of all; the two before it share the rest in their proportions.
_ADDED = Vote("vector:*", 9.0, AboveFloor())
_ANY_RUN = Vote("*", 1.0, MinMax())
_ANY_RUN_BY_RANK = Vote("*", 1.0, ReciprocalRank())


def _registry(name: str) -> Recipe:
    """Return a skill registry's recipe: exact names, then cosine and boosts; words only bring candidates."""
    return Recipe(
        name,
        Fuse((Vote("vector", 1.0, Clamped()), Vote("keyword", 0.0, Saturating())), others=_ANY_RUN),
        (ExactName(), PRESETS[name], TokenGate(), GroupBySource()),
    )


RECIPES: dict[str, Recipe] = {
    recipe.name: recipe
    for recipe in (
        Recipe(
            "default",
            Fuse((_VECTOR, _KEYWORD), others=_ANY_RUN, added=_ADDED),
            (NameFirst(), SameLanguage(), GroupBySource()),
        ),
        Recipe(
            "rrf",
            Fuse((), others=_ANY_RUN_BY_RANK),
            (GroupBySource(),),
            Plan(runs=("keyword", "vector")),
        ),
        Recipe(
            "keyword",
            Fuse((Vote("keyword", 1.0, AgainstMass()),), others=_ANY_RUN),
            (GroupBySource(),),
            Plan(runs=("keyword",)),
        ),
        Recipe(
            "vector",
            Fuse((Vote("vector", 1.0, Clamped()),), others=_ANY_RUN),
            (GroupBySource(),),
            Plan(runs=("vector",)),
        ),
        Recipe(
            "openclaw",
            Fuse((Vote("vector", 0.7, Clamped()), Vote("keyword", 0.3, Saturating())), others=_ANY_RUN),
            (OpenClawSelection(), GroupBySource()),
            Plan(runs=("keyword", "vector"), pool=OPENCLAW_POOL),
        ),
        Recipe(
            "openclaw-2026-02",
            Fuse((Vote("vector", 0.7, Clamped()), Vote("keyword", 0.3, Binary())), absent="zero"),
            (Dedup(), MinScore(0.35)),
            Plan(runs=("keyword", "vector"), join="and", pool=OPENCLAW_POOL),
        ),
        Recipe(
            "hybrid-mem",
            Fuse((), others=_ANY_RUN_BY_RANK),
            (InScope(), Superseded(), Dedup()),
            Plan(runs=("keyword", "vector")),
        ),
        _registry("clawhub"),
        _registry("clawhub-266"),
        Recipe(
            "openvault",
            Fuse(
                (
                    Vote("vector", ALPHA, Above(VECTOR_THRESHOLD)),
                    Vote("keyword", 0.3, BatchMax(least=SMALL_BATCH, cap=BOOST_WEIGHT)),
                ),
                others=_ANY_RUN,
                absent="kept",  # its cap: (1 − α)·W is all that words add, also to a memory without a vector
                strength=BOOST_WEIGHT,
            ),
            (Base(), GroupBySource()),
            Plan(runs=("keyword", "vector"), analysis="strict-length", entities=EntityBoost()),
        ),
    )
}


def recipe_named(name: str) -> Recipe:
    """Return a recipe that ships; an unknown name is an error with a suggestion."""
    if not isinstance(name, str):
        raise ConfigError(f"{name!r} is no recipe", f"give a Recipe, or the name of one: {', '.join(RECIPES)}")
    if name in RECIPES:
        return RECIPES[name]
    close = get_close_matches(name, RECIPES, n=1)
    meant = f"did you mean {close[0]!r}?" if close else f"the recipes are {', '.join(RECIPES)}"
    raise ConfigError(f"there is no recipe {name!r}", meant)


CALIBRATED = "calibrated"
AS_THE_RECIPE_SAYS = "recipe"
SCALED = "scaled"


@dataclass(frozen=True)
class Adjustments:
    """Adjustments of a recipe by user settings; None and 0 leave the recipe as it is."""

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
    vector_threshold: float | None = None


AS_IT_IS = Adjustments(max_per_file=None)  # leaves any recipe as it is


def adjusted(recipe: Recipe, wish: Adjustments) -> Recipe:
    """Return the recipe with the requested settings applied."""
    if wish.vector_weight is not None and is_balanced(recipe):
        recipe = replace(recipe, fusion=_balanced(recipe.fusion, wish.vector_weight))
    if wish.alpha is not None and is_blend(recipe):
        recipe = replace(recipe, fusion=_balanced(recipe.fusion, wish.alpha))
    if wish.boost_weight is not None and is_blend(recipe):
        recipe = replace(recipe, fusion=with_boost_weight(recipe.fusion, wish.boost_weight))
    if wish.k is not None:
        recipe = replace(recipe, fusion=with_normaliser(recipe.fusion, ReciprocalRank(wish.k)))
    if wish.vector_threshold is not None:
        recipe = replace(recipe, fusion=with_normaliser(recipe.fusion, Above(wish.vector_threshold)))
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
    """Return the recipe with the requested settings of its plan applied."""
    plan = recipe.plan
    if wish.entity_boost is not None:
        plan = replace(plan, entities=EntityBoost(wish.entity_boost) if wish.entity_boost else None)
    for lengths in LENGTHS:
        plan = replace(plan, analysis=lengths) if wish.analysis == lengths else plan
    return replace(recipe, plan=plan if wish.pool is None else replace(plan, pool=wish.pool))


def with_boost_weight(fusion: Fuse, weight: float) -> Fuse:
    """Return a blend whose votes together give at most this weight; in small batches it is the cap too."""
    votes = (
        replace(vote, normaliser=replace(vote.normaliser, cap=weight))
        if isinstance(vote.normaliser, BatchMax) and vote.normaliser.least
        else vote
        for vote in fusion.votes
    )
    return replace(fusion, strength=weight, votes=tuple(votes))


def with_normaliser(fusion: Fuse, normaliser: ReciprocalRank | Above) -> Fuse:
    """Return the fusion with a normaliser in place of those of its kind."""

    def given(vote: Vote) -> Vote:
        return replace(vote, normaliser=normaliser) if isinstance(vote.normaliser, type(normaliser)) else vote

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
    """Return a notice for each adjustment that the recipe has no place for."""
    unused = _unused(recipe, wish)
    return tuple(Notice("setting-unused", f"{key} has no effect in the recipe {recipe.name!r}") for key in unused)


def honoured(recipe: Recipe) -> tuple[str, ...]:
    """Name the settings that a recipe has a place for."""
    every = Adjustments(
        vector_weight=0.5, max_per_file=2, name_bonus=2.0, alpha=0.5, boost_weight=1.0, min_score=0.5, k=1.0,
        vector_threshold=0.5,
    )  # fmt: skip
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
    if wish.vector_threshold is not None and vector_threshold(recipe) is None:
        unused.append("ranking.vector_threshold")
    return unused


def vector_threshold(recipe: Recipe) -> float | None:
    """Return the cosine that a recipe counts vectors from, if it has one."""
    found = (vote.normaliser.threshold for vote in recipe.fusion.votes if isinstance(vote.normaliser, Above))
    return next(found, None)


def counts_ranks(recipe: Recipe) -> bool:
    """Return whether runs are fused by rank, so that k sets how fast the weight of a rank declines."""
    votes = (*recipe.fusion.votes, *([recipe.fusion.others] if recipe.fusion.others else []))
    return any(isinstance(vote.normaliser, ReciprocalRank) for vote in votes)


def is_balanced(recipe: Recipe) -> bool:
    """Return whether words and vectors share the vote, so that one weight sets both; in a blend: alpha."""
    return not is_blend(recipe) and _has_both(recipe)


def is_blend(recipe: Recipe) -> bool:
    """Return whether words and vectors share a boost weight that alpha divides."""
    return recipe.fusion.strength is not None and _has_both(recipe)


def _has_both(recipe: Recipe) -> bool:
    return {"vector", "keyword"} <= {vote.signal for vote in recipe.fusion.votes}


def _balanced(fusion: Fuse, vector_weight: float) -> Fuse:
    def weigh(vote: Vote) -> Vote:
        if vote.signal == "vector":
            return replace(vote, weight=vector_weight)
        return replace(vote, weight=1 - vector_weight) if vote.signal == "keyword" else vote

    return replace(fusion, votes=tuple(weigh(vote) for vote in fusion.votes))


BOOST_WEIGHTS = (1.0, 30.0)  # as far as the slider goes
