"""The numbers of a recipe that could be other numbers: what a counterfactual may turn, one at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from ..hits import Context, Hit
from ..types import Run
from .boosts import Boosts, TokenMatch
from .diversity import MMR
from .fusion import Fuse, Vote, family_of, share_out
from .normalisers import K_RANGE, ReciprocalRank
from .recipes import Recipe
from .settings import is_balanced, is_blend, with_boost_weight
from .stages import TIERS, Evidence, MinScore, NameFirst, OpenClawSelection, Recency
from .worth import Base, Importance

if TYPE_CHECKING:
    from .duels import Floats

MOST_BONUS = 2.0  # more than the whole reach of a fused score
MOST_POINTS = 10.0  # twice what any registry gives
_LAMBDA = "λ of diversity"
BOOST_WEIGHTS = (1.0, 30.0)  # as far as the slider goes


class Turn(NamedTuple):
    """Votes that a knob turns, at many values at once: what the recipe after a turn has, to the last bit.

    There is a row of weights for each value; of a k, or of what all votes together give, one for each value, or one
    for all of them if it is not turned.
    """

    votes: Sequence[Vote]
    weights: Callable[[Floats], Floats]
    constants: Callable[[ReciprocalRank, Floats], Floats]
    wholes: Callable[[Floats], Floats]


@dataclass(frozen=True)
class Knob:
    """One number of a recipe: what it is called, where it stands, how far it goes, and the recipe after a turn.

    A wide knob is turned by factors; a stepped one (a threshold) changes all or nothing. Of a knob that turns votes
    many values can be looked at without a recipe for each.
    """

    name: str
    value: float
    low: float
    high: float
    turned: Callable[[float], Recipe]
    key: str | None = None
    wide: bool = False
    stepped: bool = False
    turn: Turn | None = None


class Dial(NamedTuple):
    """A number of a stage that can be turned, and the step in a trail that shows the stage at work."""

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
    Dial(MMR, "lambda_", _LAMBDA, "mmr", 0.0, 1.0, "ranking.mmr_lambda"),
)


def knobs(recipe: Recipe, runs: Sequence[Run], context: Context, hits: Sequence[Hit]) -> list[Knob]:
    """Return every number of a recipe that has a say in the place of one of these hits."""
    votes = recipe.fusion.live(runs)
    fusion = [*_weights(recipe, votes), *_strength(recipe, votes), *_constants(recipe, votes)]
    return [*fusion, *_dials(recipe, context, hits)]


def _weights(recipe: Recipe, votes: Sequence[Vote]) -> Iterator[Knob]:
    """Yield the share of each vote, the others keeping their proportions; of two votes one says it all."""
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
            turned, turn = _weight_turned(recipe, votes, shares, i), _weights_turned(recipe, votes, shares, i)
            yield Knob(told, shares[i], 0.0, 1.0, turned, key, turn=turn)


def _strength(recipe: Recipe, votes: Sequence[Vote]) -> Iterator[Knob]:
    """Yield the boost weight of a blend."""
    if recipe.fusion.strength is not None and votes:
        low, high = (end(recipe.fusion.strength, bound) for end, bound in zip((min, max), BOOST_WEIGHTS, strict=True))
        key = "ranking.boost_weight" if is_blend(recipe) else None
        turn = Turn(votes, _own_weights(votes), _own_constant, lambda values: values)
        yield Knob("boost weight", recipe.fusion.strength, low, high, _strength_turned(recipe), key, turn=turn)


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


def _weights_turned(recipe: Recipe, votes: Sequence[Vote], shares: Sequence[float], turned: int) -> Turn:
    def weights(values: Floats) -> Floats:
        import numpy as np

        rest = (1 - values) / (1 - shares[turned])
        return np.array([values if i == turned else share * rest for i, share in enumerate(shares)]).T

    return Turn(votes, weights, _own_constant, _own_whole(recipe))


def _own_weights(votes: Sequence[Vote]) -> Callable[[Floats], Floats]:
    def weights(values: Floats) -> Floats:
        import numpy as np

        return np.array([[vote.weight or 0.0 for vote in votes]] * len(values))

    return weights


def _own_whole(recipe: Recipe) -> Callable[[Floats], Floats]:
    def wholes(values: Floats) -> Floats:
        import numpy as np

        return np.array([recipe.fusion.whole])

    return wholes


def _own_constant(normaliser: ReciprocalRank, values: Floats) -> Floats:
    import numpy as np

    return np.array([normaliser.k])


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
        turned, turn = _constant_turned(recipe, votes, same), _constants_turned(recipe, votes, same)
        yield Knob(name, k, low, high, turned, key, wide=True, turn=turn)


def _constant_turned(recipe: Recipe, votes: Sequence[Vote], same: ReciprocalRank) -> Callable[[float], Recipe]:
    def turn(value: float) -> Recipe:
        other = ReciprocalRank(value)
        turned = [Vote(vote.signal, vote.weight, other) if vote.normaliser == same else vote for vote in votes]
        return _with_votes(recipe, turned)

    return turn


def _constants_turned(recipe: Recipe, votes: Sequence[Vote], same: ReciprocalRank) -> Turn:
    def constants(normaliser: ReciprocalRank, values: Floats) -> Floats:
        return values if normaliser == same else _own_constant(normaliser, values)

    return Turn(votes, _own_weights(votes), constants, _own_whole(recipe))


def _with_votes(recipe: Recipe, votes: Sequence[Vote]) -> Recipe:
    # Made by name: a hundred of them are looked at, and `replace` takes thrice as long.
    before = recipe.fusion
    fusion = Fuse(tuple(votes), None, before.proposing, before.absent, before.strength)
    return Recipe(recipe.name, fusion, recipe.stages, recipe.plan)


def _dials(recipe: Recipe, context: Context, hits: Sequence[Hit]) -> Iterator[Knob]:
    """Yield the numbers of the stages that left a step in one of the trails, or that weighed one of the names."""
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


def turns_diversity(knob: Knob) -> bool:
    """Tell whether a knob changes nothing but how much relevance counts beside diversity."""
    return knob.name == _LAMBDA


def _stage_turned(recipe: Recipe, place: int, field: str) -> Callable[[float], Recipe]:
    def turn(value: float) -> Recipe:
        stage: Any = recipe.stages[place]
        stages = (*recipe.stages[:place], replace(stage, **{field: value}), *recipe.stages[place + 1 :])
        return Recipe(recipe.name, recipe.fusion, stages, recipe.plan)

    return turn
