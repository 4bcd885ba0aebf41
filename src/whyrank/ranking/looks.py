"""Who of two memories is above the other: the sums of a pool under many settings, without making a hit of a candidate.

Places need numbers alone: what is fused, what the stages make of it, and, where diversity has the last word, how like
each other the memories are. Many settings are looked at together, a row of a matrix for each.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from ..columns import MemoryId
from ..hits import Context
from ..types import Run
from .diversity import MMR
from .duels import Duels
from .effects import Effects, is_seen
from .filing import Keys, Standing, shown, standing
from .fused import Fused
from .fusion import listed_by
from .ground import Ground
from .knobs import Knob
from .likeness import Compiled
from .order import Stage
from .recipes import Recipe
from .stages import GroupBySource

if TYPE_CHECKING:
    from .duels import Flags, Floats, Integers

Pair = tuple[MemoryId, MemoryId]

_WON = 2  # what the kernel says of a setting


def can_see(recipe: Recipe) -> bool:
    """Tell whether all stages are known, files are grouped after them, and nothing but diversity comes later."""
    stages = [*recipe.stages]
    for late in (MMR, GroupBySource):
        if stages and isinstance(stages[-1], late):
            stages.pop()
    return all(map(is_seen, stages))


def ends_in_diversity(recipe: Recipe) -> bool:
    """Tell whether diversity has the last word."""
    return bool(recipe.stages) and isinstance(recipe.stages[-1], MMR)


def lambda_of(recipe: Recipe) -> float:
    """Return how much relevance counts beside diversity; without diversity it is all that counts."""
    last = recipe.stages[-1] if recipe.stages else None
    return last.lambda_ if isinstance(last, MMR) else 1.0


def are_above(looks: Sequence[tuple[Looks, Recipe]], one: MemoryId, other: MemoryId, by: float = 0.0) -> list[bool]:
    """Tell for each look if the one stands and the other stands below it, by more than that score, or not at all.

    All looks are at pools on one ground, through recipes that differ in numbers alone.
    """
    import numpy as np

    seen = [look.rows([recipe]) for look, recipe in looks]
    keys = Keys(*map(np.concatenate, zip(*seen, strict=True)))
    recipes = [recipe for _, recipe in looks]
    return told(keys, looks[0][0].ground, recipes[0], [*map(lambda_of, recipes)], (one, other), by)


def told(
    keys: Keys, ground: Ground, recipe: Recipe, lambdas: Sequence[float], pair: Pair, by: float = 0.0
) -> list[bool]:
    """Tell for each λ if the first of a pair is above, each with keys of its own; what all share is one row."""
    compiled = ground.compiled if ends_in_diversity(recipe) else None
    if compiled is None:
        return _Field.of(keys.to(len(lambdas)), ground, recipe, pair).told(ground, lambdas, by)
    return _contested(keys, ground, compiled, _most(recipe), lambdas, pair, by)


def _contested(
    keys: Keys, ground: Ground, compiled: Compiled, most: int | None, lambdas: Sequence[float], pair: Pair, by: float
) -> list[bool]:
    """Do so in the kernel, which asks for turns where some are equal."""
    import numpy as np

    kernel, compared, members = compiled
    places = np.array([ground.places.get(identity, -1) for identity in pair])
    every, states = np.array(lambdas, np.float64), np.zeros(len(lambdas), np.uint8)
    while not kernel.contests(
        compared, members, ground.turns, ground.files.starts, *keys, every, places, states, most or 0, by
    ):
        ground.tell_turns()
    won: list[bool] = (states == _WON).tolist()
    return won


def _most(recipe: Recipe) -> int | None:
    """Return how many of a file are shown, if that is limited."""
    return next((stage.max_per_file for stage in recipe.stages if isinstance(stage, GroupBySource)), None)


class _Field(NamedTuple):
    """What two memories have under each setting: the places that stand for them, and how far behind these they are."""

    keys: Keys
    first: Standing
    second: Standing
    own: tuple[int, int] | None  # their own places, if both have one
    worth: tuple[Flags, Floats] | None  # who is shown, and how relevant they are, where diversity chooses among them

    @classmethod
    def of(cls, keys: Keys, ground: Ground, recipe: Recipe, pair: Pair) -> _Field:
        """Group files, and see how two memories stand."""
        most = _most(recipe)
        one, other = (ground.places.get(identity) for identity in pair)
        first, second = (standing(keys, ground, most, place) for place in (one, other))
        own = None if one is None or other is None else (one, other)
        if not ends_in_diversity(recipe):
            return cls(keys, first, second, own, None)
        visible = shown(keys, ground, most)
        return cls(keys, first, second, own, (visible, _relevance(keys.scores, visible)))

    def told(self, ground: Ground, lambdas: Sequence[float], by: float) -> list[bool]:
        """Tell for each row if the first is above."""
        import numpy as np

        first, second = self.first, self.second
        rows = np.arange(len(first.of))
        is_met, is_apart = (first.of >= 0) & (second.of >= 0), first.of != second.of
        tier, tier_second = self.keys.tiers[rows, first.of], self.keys.tiers[rows, second.of]
        is_ahead = np.where(is_apart, tier > tier_second, (first.behind < second.behind) & ~self._are_level(by))
        above = np.where(is_met, is_ahead, first.of >= 0)
        level = np.flatnonzero(is_met & is_apart & (tier == tier_second))
        if self.worth is None:
            above[level] = self._are_better(level, ground, by)
        elif len(level):
            above[level] = self._are_placed_first(level, np.array(lambdas)[level], ground, by)
        told: list[bool] = above.tolist()
        return told

    def _are_level(self, by: float) -> Flags | bool:
        """Tell where nothing but content decides between two of one file."""
        if not by or self.own is None or self.worth is not None:
            return False
        scores, tiers = ([*column[:, self.own].T] for column in (self.keys.scores, self.keys.tiers))
        level: Flags = (tiers[0] == tiers[1]) & (abs(scores[0] - scores[1]) <= by)
        return level

    def _are_better(self, rows: Integers, ground: Ground, by: float) -> Flags:
        """Tell in which of some rows the score of the first is above, of equals by content."""
        import numpy as np

        first, second = self.first.of[rows], self.second.of[rows]
        ahead = self.keys.scores[rows, first] - self.keys.scores[rows, second]
        better: Flags = ahead > by
        if not by and (ahead == 0).any():
            turns = np.array(ground.tie_breaks)
            better |= (ahead == 0) & (turns[first] < turns[second])
        return better

    def _are_placed_first(self, rows: Integers, lambdas: Floats, ground: Ground, by: float) -> Flags:
        """Tell in which of some rows diversity places the first before the second."""
        import numpy as np

        if self.worth is None:
            raise TypeError("no diversity chooses here")
        visible, relevance = self.worth
        worth = np.where(visible[rows], lambdas[:, None] * relevance[rows], -np.inf)
        one, other = self.first.of[rows], self.second.of[rows]
        return Duels(ground, lambdas, self.keys.tiers[rows], worth, one, other).are_won(by)


def _relevance(scores: Floats, shown: Flags) -> Floats:
    """Scale the scores of each row from the worst to the best of those shown, as diversity does."""
    import numpy as np

    low = np.where(shown, scores, np.inf).min(axis=1)[:, None]
    high = np.where(shown, scores, -np.inf).max(axis=1)[:, None]
    half = high / 2 - low / 2
    shares = np.minimum(np.maximum((scores / 2 - low / 2) / np.where(half > 0, half, 1.0), 0.0), 1.0)
    return np.where(half > 0, shares, 1.0)


def _before_grouping(recipe: Recipe) -> tuple[Stage, ...]:
    return tuple(stage for stage in recipe.stages if not isinstance(stage, (GroupBySource, MMR)))


class Looks:
    """Looks at one pool through recipes that differ in a number."""

    def __init__(self, runs: Sequence[Run], context: Context, ground: Ground | None = None) -> None:
        self.ground = ground or Ground(listed_by(runs), context)
        self._fused = Fused(runs, context, self.ground)
        self._effects = Effects(self.ground, context, self._fused)
        self._seen: tuple[Recipe, Keys] | None = None

    def are_above(self, recipes: Sequence[Recipe], one: MemoryId, other: MemoryId, by: float = 0.0) -> list[bool]:
        """Tell for each recipe if the one stands and the other stands below it, by more than that, or not at all."""
        lambdas = [*map(lambda_of, recipes)]
        return told(self.rows(recipes), self.ground, recipes[0], lambdas, (one, other), by)

    def are_above_by(self, lambdas: Sequence[float], recipe: Recipe, one: MemoryId, other: MemoryId) -> list[bool]:
        """Tell the same of one recipe for each λ of its diversity: nothing before that is seen twice."""
        if self._seen is None or self._seen[0] is not recipe:
            self._seen = recipe, self.rows([recipe])
        return told(self._seen[1], self.ground, recipe, lambdas, (one, other))

    def are_above_at(
        self, values: Sequence[float], knob: Knob, recipe: Recipe, one: MemoryId, other: MemoryId
    ) -> list[bool]:
        """Tell the same of one recipe for each value of a knob."""
        keys, is_loud = self._turned(values, knob, recipe)
        silent = [value for value, is_counted in zip(values, is_loud, strict=True) if not is_counted]
        others = iter(self.are_above([*map(knob.turned, silent)], one, other) if silent else ())
        lambdas = [lambda_of(recipe)] * (len(values) - len(silent))
        found = iter(told(keys, self.ground, recipe, lambdas, (one, other)) if lambdas else ())
        return [next(found) if is_counted else next(others) for is_counted in is_loud]

    def keys_at(self, values: Sequence[float], knob: Knob, recipe: Recipe) -> Keys:
        """Return what a recipe makes of every place before it groups files: a row for each value of a knob."""
        keys, is_loud = self._turned(values, knob, recipe)
        return (keys if all(is_loud) else self.rows([*map(knob.turned, values)])).to(len(values))

    def _turned(self, values: Sequence[float], knob: Knob, recipe: Recipe) -> tuple[Keys, list[bool]]:
        """Return the rows of the values at which no vote falls silent, and which these are: no recipe is made."""
        import numpy as np

        stands = self._fused.stands[None]
        if knob.turn is None or not self._fused.can_turn(knob.turn):
            return self._unchanged(np.empty((0, stands.shape[1]))), [False] * len(values)
        every = np.array(values, np.float64)
        weights = knob.turn.weights(every)
        is_loud = np.asarray(weights.all(axis=1))
        scores = self._fused.turned(recipe.fusion, knob.turn, weights[is_loud], every[is_loud])
        keys = self._effects.after(self._unchanged(scores), _before_grouping(recipe), [recipe.fusion])
        return keys, is_loud.tolist()

    def _unchanged(self, scores: Floats) -> Keys:
        """Return the keys of scores that no stage has seen."""
        import numpy as np

        stands = self._fused.stands[None]
        return Keys(scores, np.zeros(stands.shape, np.int64), stands)

    def rows(self, recipes: Sequence[Recipe]) -> Keys:
        """Return the same, but one row for all recipes of whatever they leave as it is.

        Most numbers change either fusion or one stage.
        """
        fusions = [recipe.fusion for recipe in recipes]
        if all(fusion is fusions[0] for fusion in fusions):
            fusions = fusions[:1]
        fused = self._unchanged(self._fused.scores(fusions))
        before = [_before_grouping(recipe) for recipe in recipes]
        if before.count(before[0]) == len(before):
            return self._effects.after(fused, before[0], fusions)
        return self._effects.after_each(fused, before, fusions)
