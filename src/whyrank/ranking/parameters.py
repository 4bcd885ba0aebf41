"""Parameters of recipes: settings, sliders, and the values a counterfactual may change."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from ..types.memory import Memory, Notice
from ..types.query import LENGTHS
from ..types.results import Context, Hit, Ranking, memory_of
from .boosts import Base, Boosts, EntityBoost, Importance, TokenGate, TokenMatch
from .diversity import MMR
from .fusion import Fuse, Vote, family_of, share_out
from .normalizers import K_RANGE, RRF_K, THRESHOLDS, Above, BatchMax, Normaliser, ReciprocalRank
from .recipes import ALPHA, BOOST_WEIGHT, Recipe
from .stages import (
    TIERS,
    Evidence,
    ExactName,
    GroupBySource,
    InScope,
    MinScore,
    NameFirst,
    NotExpired,
    OpenClawSelection,
    Recency,
    SameLanguage,
    Superseded,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from ..types.query import Run, Signal
    from ..types.trail import Trail
    from .ranking import Stage

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
    """Return the recipe with the wishes carried out."""
    if wish.vector_weight is not None and is_balanced(recipe):
        recipe = replace(recipe, fusion=_balanced(recipe.fusion, wish.vector_weight))
    if is_blend(recipe):
        recipe = replace(recipe, fusion=_blended(recipe.fusion, wish))
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
    """Return a blend whose votes together give at most this weight; in small batches it is the cap too."""
    votes = (replace(vote, normaliser=_capped(vote.normaliser, weight)) for vote in fusion.votes)
    return replace(fusion, strength=weight, votes=tuple(votes))


def _capped(normaliser: Normaliser, cap: float) -> Normaliser:
    if isinstance(normaliser, BatchMax) and normaliser.least:
        return replace(normaliser, cap=cap)
    return normaliser


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
    return tuple(Notice("setting-unused", f"{key} has no place in the recipe {recipe.name!r}") for key in unused)


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


MOST_BONUS = 2.0  # more than the whole reach of a fused score
MOST_POINTS = 10.0  # twice the largest of the registries
BOOST_WEIGHTS = (1.0, 30.0)  # as far as the slider goes


@dataclass(frozen=True)
class Knob:
    """One number of a recipe: its name, value and range, and the recipe for another value.

    A wide knob is changed by factors; a stepped one (a threshold) changes all or nothing.
    """

    name: str
    value: float
    low: float
    high: float
    turned: Callable[[float], Recipe]
    key: str | None = None
    wide: bool = False
    stepped: bool = False


class Dial(NamedTuple):
    """Adjustable number of a stage, and the trail step that shows the stage's effect."""

    kind: type[Any]
    field: str
    name: str
    step: str
    low: float
    high: float
    key: str | None = None
    wide: bool = False
    stepped: bool = False


DIALS = (
    Dial(NameFirst, "partial_bonus", "bonus for a part of a name", "name", 0.0, MOST_BONUS),
    Dial(NameFirst, "covered_weight", "weight of the covered share of a name", "name", 0.0, MOST_BONUS),
    Dial(NameFirst, "sentence_bonus", "bonus for a name in the question", "name", 0.0, MOST_BONUS),
    Dial(NameFirst, "min_sentence_share", "least share of a name in the question", "name", 0.0, 1.0, stepped=True),
    Dial(SameLanguage, "weight", "what another language takes", "language", 0.0, 1.0),
    Dial(Recency, "weight", "recency weight", "recency", 0.0, 1.0, "ranking.recency_weight"),
    Dial(Recency, "half_life_days", "half-life in days", "recency", 0.001, 1e6, "ranking.recency_half_life_days", True),
    Dial(Evidence, "min_vector", "least cosine", "evidence", -1.0, 1.0, "ranking.min_vector", stepped=True),
    Dial(Evidence, "min_coverage", "least coverage", "evidence", 0.0, 1.0, "ranking.min_coverage", stepped=True),
    Dial(MinScore, "at_least", "least score", "min-score", 0.0, 1.0, stepped=True),
    Dial(OpenClawSelection, "min_score", "least score", "openclaw-selection", 0.0, 1.0, stepped=True),
    Dial(Boosts, "slug_exact", "bonus for words of the slug", "boosts", 0.0, MOST_POINTS),
    Dial(Boosts, "slug_prefix", "bonus for beginnings of words of the slug", "boosts", 0.0, MOST_POINTS),
    Dial(Boosts, "name_exact", "bonus for words of the name", "boosts", 0.0, MOST_POINTS),
    Dial(Boosts, "name_prefix", "bonus for beginnings of words of the name", "boosts", 0.0, MOST_POINTS),
    Dial(Boosts, "summary", "weight of the summary", "boosts", 0.0, MOST_POINTS),
    Dial(TokenMatch, "weight", "weight of matching words", "token-match", 0.0, MOST_POINTS),
    Dial(Base, "rate", "rate of forgetting", "base", 0.0, 1.0),
    Dial(Importance, "each", "what a degree of importance adds", "importance", 0.0, 1.0),
    Dial(MMR, "lambda_", "λ of diversity", "mmr", 0.0, 1.0, "ranking.mmr_lambda"),
)


def knobs(recipe: Recipe, runs: Sequence[Run], context: Context, hits: Sequence[Hit]) -> list[Knob]:
    """Return every number of a recipe that affects the place of one of these hits."""
    votes = [vote for vote in recipe.fusion.live(runs) if _speaks(context.signals.get(vote.signal), hits)]
    fusion = [*_weights(recipe, votes), *_strength(recipe, votes), *_threshold(recipe), *_constants(recipe, votes)]
    return [*fusion, *_dials(recipe, context, hits)]


def _speaks(signal: Signal | None, hits: Sequence[Hit]) -> bool:
    """Return whether a signal has a value for one of these hits; an external run without a signal counts."""
    return signal is None or any(hit.id in signal.values for hit in hits)


def _weights(recipe: Recipe, votes: Sequence[Vote]) -> Iterator[Knob]:
    """Yield a knob for the share of each vote, the others in proportion; of two votes, one is enough."""
    if len(votes) < 2:
        return
    shares = share_out([vote.weight or 0.0 for vote in votes])
    telling = range(len(votes))
    if len(votes) == 2:
        telling = range(1) if votes[0].signal == "vector" or votes[1].signal != "vector" else range(1, 2)
    for i in telling:
        if 0.0 < shares[i] < 1.0:
            name = votes[i].signal
            is_whole = not any(vote.signal != name and family_of(vote.signal) == name for vote in votes)
            told, key = f"{name} weight", None
            if name == "vector" and is_whole and is_balanced(recipe):
                key = "ranking.vector_weight"
            if name == "vector" and is_whole and is_blend(recipe):
                told, key = "alpha", "ranking.alpha"
            yield Knob(told, shares[i], 0.0, 1.0, _weight_turned(recipe, votes, shares, i), key)


def _strength(recipe: Recipe, votes: Sequence[Vote]) -> Iterator[Knob]:
    """Yield the boost weight of a blend."""
    if recipe.fusion.strength is not None and votes:
        low, high = (end(recipe.fusion.strength, bound) for end, bound in zip((min, max), BOOST_WEIGHTS, strict=True))
        key = "ranking.boost_weight" if is_blend(recipe) else None
        yield Knob("boost weight", recipe.fusion.strength, low, high, _strength_turned(recipe), key)


def _threshold(recipe: Recipe) -> Iterator[Knob]:
    """Yield the cosine that vectors count from; a score bends where the threshold passes a cosine."""
    value = vector_threshold(recipe)
    if value is not None:
        low, high = THRESHOLDS
        key = "ranking.vector_threshold"
        yield Knob("vector threshold", value, low, max(high, value), _threshold_turned(recipe), key, stepped=True)


def _threshold_turned(recipe: Recipe) -> Callable[[float], Recipe]:
    return lambda value: replace(recipe, fusion=with_normaliser(recipe.fusion, Above(value)))


def _strength_turned(recipe: Recipe) -> Callable[[float], Recipe]:
    return lambda value: replace(recipe, fusion=with_boost_weight(recipe.fusion, value))


def _weight_turned(
    recipe: Recipe, votes: Sequence[Vote], shares: Sequence[float], turned: int
) -> Callable[[float], Recipe]:
    def turn(value: float) -> Recipe:
        rest = (1 - value) / (1 - shares[turned])
        weights = [value if i == turned else share * rest for i, share in enumerate(shares)]
        weighed = [Vote(vote.signal, weight, vote.normaliser) for vote, weight in zip(votes, weights, strict=True)]
        return _with_votes(recipe, weighed)

    return turn


def _constants(recipe: Recipe, votes: Sequence[Vote]) -> Iterator[Knob]:
    """Yield k of reciprocal rank fusion; votes that share a k keep sharing it."""
    values = dict.fromkeys(vote.normaliser.k for vote in votes if isinstance(vote.normaliser, ReciprocalRank))
    for k in values:
        same = ReciprocalRank(k)
        name = (
            "k"
            if len(values) == 1
            else f"k of {' and '.join(vote.signal for vote in votes if vote.normaliser == same)}"
        )
        low, high, key = min(k, K_RANGE[0]), max(k, K_RANGE[1]), "ranking.k" if len(values) == 1 else None
        yield Knob(name, k, low, high, _constant_turned(recipe, votes, same), key, wide=True)


def _constant_turned(recipe: Recipe, votes: Sequence[Vote], same: ReciprocalRank) -> Callable[[float], Recipe]:
    def turn(value: float) -> Recipe:
        other = ReciprocalRank(value)
        turned = [Vote(vote.signal, vote.weight, other) if vote.normaliser == same else vote for vote in votes]
        return _with_votes(recipe, turned)

    return turn


def _with_votes(recipe: Recipe, votes: Sequence[Vote]) -> Recipe:
    # Constructed by name: a hundred of them are compared, and `replace` takes thrice as long.
    before = recipe.fusion
    fusion = Fuse(tuple(votes), None, before.proposing, before.absent, before.strength)
    return Recipe(recipe.name, fusion, recipe.stages, recipe.plan)


def _dials(recipe: Recipe, context: Context, hits: Sequence[Hit]) -> Iterator[Knob]:
    """Yield the numbers of the stages that left a step in a trail, or that weighed one of the names."""
    steps = {step.stage for hit in hits for step in hit.trail}
    matches = (context.names.get(hit.id) for hit in hits)
    if any(match is not None and match.relation not in TIERS for match in matches):
        steps.add("name")
    for place, stage in enumerate(recipe.stages):
        for dial in DIALS:
            value = getattr(stage, dial.field, None) if isinstance(stage, dial.kind) else None
            if value is None or dial.step not in steps:
                continue
            low, high = min(dial.low, value), max(dial.high, value)
            turned = _stage_turned(recipe, place, dial.field)
            yield Knob(dial.name, value, low, high, turned, dial.key, dial.wide, dial.stepped)


def _stage_turned(recipe: Recipe, place: int, field: str) -> Callable[[float], Recipe]:
    def turn(value: float) -> Recipe:
        stage: Any = recipe.stages[place]
        stages = (*recipe.stages[:place], replace(stage, **{field: value}), *recipe.stages[place + 1 :])
        return Recipe(recipe.name, recipe.fusion, stages, recipe.plan)

    return turn


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
    idle = f"the {silent[0]} run found nothing to weigh" if silent and recipe.fusion.absent == "shared" else ""
    meaning = "0: words alone, 1: vectors alone"
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
        meaning = "how much vectors and words together add to what a memory is worth by itself"
        yield Slider("boost_weight", STRENGTH, meaning, low, high, 0.5, value, wish.boost_weight)
    elif any(isinstance(stage, NameFirst) for stage in recipe.stages):
        meaning = "by what the bonus for parts of names and for names in a sentence is multiplied"
        partly = any(match.relation not in TIERS for match in context.names.values())
        idle = "" if partly else "no candidate is called by a part of the question"
        yield Slider("name_bonus", STRENGTH, meaning, 0.0, 10.0, 0.1, wish.name_bonus, wish.name_bonus, "×", idle)


def _threshold_slider(recipe: Recipe, wish: Adjustments, context: Context) -> Iterator[Slider]:
    value = vector_threshold(recipe)
    if value is not None:
        meaning = "cosines up to this add nothing; what is above counts from here"
        idle = "" if "vector" in context.signals else "no candidate has a cosine"
        label, given = "Vector Similarity Threshold", wish.vector_threshold
        yield Slider("vector_threshold", label, meaning, *THRESHOLDS, FINE, value, given, idle=idle)


def _rank_constant(recipe: Recipe, wish: Adjustments) -> Iterator[Slider]:
    if counts_ranks(recipe):
        votes = (*recipe.fusion.votes, *([recipe.fusion.others] if recipe.fusion.others else []))
        known = (vote.normaliser.k for vote in votes if isinstance(vote.normaliser, ReciprocalRank))
        value = next(known, RRF_K)
        meaning = "the larger, the less a first place counts: (k + 1)/(k + rank)"
        yield Slider("k", "Rank Constant k", meaning, min(1.0, value), max(200.0, value), 1.0, value, wish.k)


def _recency(wish: Adjustments, context: Context) -> Iterator[Slider]:
    memories = map(memory_of, context.memories.values())
    ages = any(memory.date is not None and not memory.evergreen for memory in memories)
    idle = "" if ages else "no candidate has a date it ages by"
    weight, days = wish.recency_weight, wish.recency_half_life_days
    told, after = (
        "the most that age may take off a score; 0 switches it off",
        "after how many days half of that is taken",
    )
    yield Slider("recency_weight", "Recency", told, 0.0, 1.0, FINE, weight, weight, idle=idle)
    low, high = min(1.0, days), max(365.0, days)
    still = idle or ("" if weight else "Recency is at 0")
    setting, label = "recency_half_life_days", "Recency Half-Life"
    yield Slider(setting, label, after, low, high, 1.0, days, days, "days", still, needs="recency_weight")


def _diversity(wish: Adjustments, context: Context) -> Iterator[Slider]:
    meaning = "1: relevance alone; below, what is like a result above steps back"
    idle = "" if len(context.memories) > 1 else "there is nothing to compare"
    value = 1.0 if wish.mmr_lambda is None else wish.mmr_lambda
    yield Slider("mmr_lambda", "Relevance vs Diversity λ", meaning, 0.0, 1.0, FINE, value, wish.mmr_lambda, idle=idle)


def _evidence(recipe: Recipe, wish: Adjustments, context: Context) -> Iterator[Slider]:
    cosine, coverage = (
        "a hit stays if its cosine reaches this, or its words pass",
        "a hit stays if it has so much of the words",
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
                "min_score", "Minimum Score", "the least score a hit needs", 0.0, 1.0, FINE, value, wish.min_score
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
