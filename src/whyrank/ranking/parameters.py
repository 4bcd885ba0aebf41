"""Sliders over the settings of a recipe, and the steps of stages that no slider changes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ..types.results import Context, Hit, Ranking, memory_of
from ..types.trail import TIERS
from .boosts import Base, Boosts, Importance, TokenGate, TokenMatch
from .fusion import (
    RRF_K,
    THRESHOLDS,
    ReciprocalRank,
    family_of,
)
from .recipes import (
    ALPHA,
    BOOST_WEIGHT,
    BOOST_WEIGHTS,
    Adjustments,
    Recipe,
    counts_ranks,
    is_balanced,
    is_blend,
    vector_threshold,
)
from .stages import (
    ExactName,
    InScope,
    MinScore,
    NameFirst,
    NotExpired,
    OpenClawSelection,
    SameLanguage,
    Superseded,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ..types.memory import Memory
    from ..types.results import Run
    from ..types.trail import Trail
    from .stages import Stage


FINE = 0.01
BALANCE = "Vector vs Keyword Balance"
STRENGTH = "Retrieval Boost Strength"


@dataclass(frozen=True)
class Slider:
    """One adjustable setting: `value` is its position, `given` its value in the settings, None for unset.

    `idle` gives the reason if moving it changes nothing among these candidates; `needs` names the setting that must be
    above 0 for this one to have an effect.
    """

    setting: str
    label: str
    meaning: str
    low: float
    high: float
    step: float
    value: float
    given: float | None
    unit: str = ""
    idle: str = ""
    needs: str = ""

    @property
    def key(self) -> str:
        """Return the key of the setting."""
        return f"ranking.{self.setting}"


def sliders(recipe: Recipe, wish: Adjustments, runs: Sequence[Run], context: Context) -> list[Slider]:
    """Return the sliders a recipe honours; `recipe` has its settings laid over and its weights settled."""
    return [
        *_balance(recipe, wish, runs),
        *_strength_slider(recipe, wish, context),
        *_threshold_slider(recipe, wish, context),
        *_rank_constant(recipe, wish),
        *_recency(wish, context),
        *_diversity(wish, context),
        *_evidence(recipe, wish, context),
    ]


def _balance(recipe: Recipe, wish: Adjustments, runs: Sequence[Run]) -> Iterator[Slider]:
    blend = is_blend(recipe)
    if not (blend or is_balanced(recipe)):
        return
    setting, given = ("alpha", wish.alpha) if blend else ("vector_weight", wish.vector_weight)
    found = {family_of(run.name) for run in runs if run.candidates}
    silent = [name for name in ("vector", "keyword") if name not in found]
    idle = f"the {silent[0]} run found nothing" if silent and recipe.fusion.absent == "shared" else ""
    meaning = "0: keywords only, 1: vectors only"
    yield Slider(setting, BALANCE, meaning, 0.0, 1.0, FINE, _vector_share(recipe), given, idle=idle)


def _vector_share(recipe: Recipe) -> float:
    """Return the share of vectors in the vote of vectors and words."""
    weights = {"vector": 0.0, "keyword": 0.0}
    for vote in recipe.fusion.votes:
        if family_of(vote.signal) in weights:
            weights[family_of(vote.signal)] += vote.weight or 0.0
    whole = weights["vector"] + weights["keyword"]
    return weights["vector"] / whole if whole else ALPHA


def _strength_slider(recipe: Recipe, wish: Adjustments, context: Context) -> Iterator[Slider]:
    if is_blend(recipe):
        low, high = BOOST_WEIGHTS
        value = recipe.fusion.strength or BOOST_WEIGHT
        meaning = "how much vectors and keywords together add to the base score of a memory"
        yield Slider("boost_weight", STRENGTH, meaning, low, high, 0.5, value, wish.boost_weight)
    elif any(isinstance(stage, NameFirst) for stage in recipe.stages):
        meaning = "by what the bonus for parts of names and for names in a sentence is multiplied"
        partly = any(match.relation not in TIERS for match in context.names.values())
        idle = "" if partly else "no candidate's name is in the query"
        yield Slider("name_bonus", STRENGTH, meaning, 0.0, 10.0, 0.1, wish.name_bonus, wish.name_bonus, "×", idle)


def _threshold_slider(recipe: Recipe, wish: Adjustments, context: Context) -> Iterator[Slider]:
    value = vector_threshold(recipe)
    if value is not None:
        meaning = "cosines up to this add nothing; higher ones count from here"
        idle = "" if "vector" in context.signals else "no candidate has a cosine"
        label, given = "Vector Similarity Threshold", wish.vector_threshold
        yield Slider("vector_threshold", label, meaning, *THRESHOLDS, FINE, value, given, idle=idle)


def _rank_constant(recipe: Recipe, wish: Adjustments) -> Iterator[Slider]:
    if counts_ranks(recipe):
        votes = (*recipe.fusion.votes, *([recipe.fusion.others] if recipe.fusion.others else []))
        known = (vote.normaliser.k for vote in votes if isinstance(vote.normaliser, ReciprocalRank))
        value = next(known, RRF_K)
        meaning = "the larger, the less the first ranks count: (k + 1)/(k + rank)"
        yield Slider("k", "Rank Constant k", meaning, min(1.0, value), max(200.0, value), 1.0, value, wish.k)


def _recency(wish: Adjustments, context: Context) -> Iterator[Slider]:
    memories = map(memory_of, context.memories.values())
    ages = any(memory.date is not None and not memory.evergreen for memory in memories)
    idle = "" if ages else "no candidate has a date"
    weight, days = wish.recency_weight, wish.recency_half_life_days
    told, after = (
        "the most that age may lower a score; 0 switches it off",
        "after how many days half of that is reached",
    )
    yield Slider("recency_weight", "Recency", told, 0.0, 1.0, FINE, weight, weight, idle=idle)
    low, high = min(1.0, days), max(365.0, days)
    still = idle or ("" if weight else "Recency is at 0")
    setting, label = "recency_half_life_days", "Recency Half-Life"
    yield Slider(setting, label, after, low, high, 1.0, days, days, "days", still, needs="recency_weight")


def _diversity(wish: Adjustments, context: Context) -> Iterator[Slider]:
    meaning = "1: relevance only; lower values move a result down if it resembles one above it"
    idle = "" if len(context.memories) > 1 else "there is nothing to compare"
    value = 1.0 if wish.mmr_lambda is None else wish.mmr_lambda
    yield Slider("mmr_lambda", "Relevance vs Diversity λ", meaning, 0.0, 1.0, FINE, value, wish.mmr_lambda, idle=idle)


def _evidence(recipe: Recipe, wish: Adjustments, context: Context) -> Iterator[Slider]:
    cosine, coverage = (
        "a hit stays if its cosine reaches this, or its words pass",
        "a hit stays if its coverage reaches this",
    )
    no_vector = "" if "vector" in context.signals else "no candidate has a cosine"
    no_words = "" if "keyword" in context.signals else "no word was looked for"
    low = -1.0 if wish.min_vector is None else wish.min_vector
    least = wish.min_coverage or 0.0
    yield Slider("min_vector", "Minimum Cosine", cosine, -1.0, 1.0, FINE, low, wish.min_vector, idle=no_vector)
    yield Slider("min_coverage", "Minimum Coverage", coverage, 0.0, 1.0, FINE, least, wish.min_coverage, idle=no_words)
    for stage in recipe.stages:
        if isinstance(stage, OpenClawSelection | MinScore):
            value = stage.min_score if isinstance(stage, OpenClawSelection) else stage.at_least
            yield Slider(
                "min_score", "Minimum Score", "the minimum score of a hit", 0.0, 1.0, FINE, value, wish.min_score
            )


# The steps of these depend neither on a hit's score, nor on other hits, nor on any slider.
RECORDED = {
    Base: "base",
    Boosts: "boosts",
    ExactName: "exact-name",
    Importance: "importance",
    InScope: "scope",
    NotExpired: "expiry",
    SameLanguage: "language",
    Superseded: "superseded",
    TokenGate: "token-gate",
    TokenMatch: "token-match",
}


def steps_of(stage: Stage, memories: Sequence[Memory], context: Context) -> dict[int, Trail]:
    """Return the steps a stage gives each of these memories that it touches, by their places."""
    places = {memory.id: place for place, memory in enumerate(memories)}
    after = stage(Ranking(tuple(map(Hit, memories))), context)
    touched = ((places[hit.id], hit.trail) for hit in (*after.hits, *after.dropped) if hit.trail)
    return dict(sorted(touched))


def names_of(stage: NameFirst, memories: Sequence[Memory], context: Context) -> dict[int, Trail]:
    """Return the same for names, with the factors of the bonuses in their place."""
    return steps_of(replace(stage, partial_bonus=1.0, sentence_bonus=1.0), memories, context)
