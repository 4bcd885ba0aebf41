"""Recipes: retrieval plan, fusion and stages, as one printable value; and the built-in recipes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cached_property, reduce
from typing import TYPE_CHECKING

from ..errors import ConfigError
from ..types.query import Plan
from ..types.results import Context, Ranking
from .boosts import PRESETS, Base, EntityBoost, TokenGate
from .diversity import MMR
from .fusion import Fuse, Vote
from .normalizers import Above, AboveFloor, AgainstMass, BatchMax, Binary, Clamped, MinMax, ReciprocalRank, Saturating
from .ranking import Stage
from .stages import (
    Dedup,
    ExactName,
    GroupBySource,
    InScope,
    MinScore,
    NameFirst,
    NotExpired,
    OpenClawSelection,
    Rerank,
    SameLanguage,
    Superseded,
    Top,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..types.query import Run

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

    def settled(self, vector_weight: float) -> Recipe:
        """Return the recipe with every open weight filled in; cached, as every search needs it."""
        if vector_weight not in self._settled:
            self._settled[vector_weight] = replace(self, fusion=self.fusion.settled(vector_weight))
        return self._settled[vector_weight]

    @cached_property
    def reads(self) -> frozenset[str]:
        """Return the inputs that its stages read beyond those that every search gathers."""
        read = {what for what in GATHERED for stage in self.stages if getattr(stage, f"reads_{what}", False)}
        return frozenset({*read, *("opinions" for stage in self.stages if isinstance(stage, Rerank))})

    @cached_property
    def _settled(self) -> dict[float, Recipe]:
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
        late = (GroupBySource, MMR)
        first = (stage for stage in (*others, *stages) if not isinstance(stage, late))
        last = sorted((stage for stage in (*others, *stages) if isinstance(stage, late)), key=_is_diversity)
        return replace(self, stages=(*first, *last))


def _is_diversity(stage: Stage) -> bool:
    return isinstance(stage, MMR)


def rank(runs: Sequence[Run], recipe: Recipe, context: Context) -> Ranking:
    """Fuse the runs, apply each stage in order, then cut the page."""
    return Top(context.query.limit, context.query.offset)(rank_pool(runs, recipe, context), context)


def rank_pool(runs: Sequence[Run], recipe: Recipe, context: Context) -> Ranking:
    """Do the same without the cut."""
    return reduce(lambda ranking, stage: stage(ranking, context), recipe.stages, recipe.fusion(runs, context))


# Behind the store's own filters, a last check of the returned hits; none of these should ever drop one.
_GUARDS: tuple[Stage, ...] = (InScope(), Superseded(), NotExpired())


def guarded(ranking: Ranking, context: Context) -> Ranking:
    """Check scope, replacement and expiry of the hits again, now that their memories are read."""
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
