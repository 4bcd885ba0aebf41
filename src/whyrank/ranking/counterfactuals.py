"""What would have to be different for two memories to change places: the nearest such value of one number at a time.

Turning a weight, k or a bonus is looked at in numbers alone, many values at once, and for the few memories concerned
where the others have no say; where the scores are straight lines, the lines cross where the places change, else the
value is searched for. Stages that nothing is known of rank the whole pool at every look.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING, Protocol

from ..columns import Listed, MemoryId, array_of, column_of
from ..hits import Context, Hit, Ranking, origins_of
from ..trail import Key
from ..types import Run, Signal
from .diversity import MMR
from .fusion import by_content, listed_by, placed_by
from .ground import Ground
from .knobs import Knob, knobs, turns_diversity
from .lineup import behind_of, ids_of
from .looks import Looks, are_above, can_see, ends_in_diversity
from .nearest import DIGITS, Look, OneByOne, Together, along, searched
from .recipes import Recipe, rank_pool
from .stages import Dedup, GroupBySource, MinScore, OpenClawSelection
from .texts import same_texts

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

LEVEL = 1e-9  # closer scores, and smaller changes, are level: rounding, and not evidence, would decide between them
_JUST = 1e-3  # how far before and behind a crossing is looked, as a share of the change
_STEPS = 24  # places looked at in each direction where a number has to be searched for …
_STEPS_OF_THE_DIVERSE = 8  # … where every look places the pool anew …
_STEPS_OF_LAMBDA = 64, 8, 24  # … for λ, where a look is cheap and places change back and forth; the next if none …
_STEPS_OF_THE_WHOLE = 8  # … and where it ranks the whole pool
_STRAIGHT = 1e-9


@dataclass(frozen=True, slots=True)
class Change:
    """One number of the recipe, and the nearest other value at which two memories change places."""

    setting: str
    before: float
    after: float
    key: str | None = None
    recipe: Recipe | None = field(default=None, repr=False, compare=False)

    @property
    def size(self) -> float:
        """Return how large the change is, as a share of the number."""
        return abs(self.after - self.before) / (abs(self.before) or 1.0)

    @property
    def is_rounding(self) -> bool:
        """Tell whether it is so small that two whom it turns round are level, whatever their scores."""
        return self.size <= LEVEL

    def __str__(self) -> str:
        return f"{self.setting} {_shown(self.before, self.after)} → {_shown(self.after, self.after)}"


def _shown(value: float, beside: float) -> str:
    """Write a number with as many decimals as the one beside it needs, and at least two below ten."""
    decimals = len(f"{beside:.{DIGITS}f}".rstrip("0").partition(".")[2])
    return f"{value:.{max(decimals, 2 if abs(beside) < 10 else 0)}f}"


@dataclass(frozen=True, slots=True)
class DroppedTerm:
    """A term of the question without which two memories change places, and the words of the question that mean it."""

    term: str
    words: tuple[str, ...] = ()

    def __str__(self) -> str:
        if not self.words:
            return f"without {self.term!r}, which the question means"
        return f"without {' and '.join(repr(word) for word in self.words)}"


@dataclass(frozen=True)
class Pool:
    """All candidates of a query as they were retrieved, and the recipe they are ranked by."""

    runs: tuple[Run, ...]
    context: Context
    recipe: Recipe
    whole: Pool | None = field(default=None, repr=False, compare=False)  # that lists all of this one, and maybe more

    def ranked(self, recipe: Recipe) -> Ranking:
        """Rank the whole pool by another recipe."""
        return rank_pool(self.runs, recipe, self.context)

    def ranked_as_far_as(self, wanted: Collection[MemoryId]) -> Ranking:
        """Rank the pool by its own recipe, but let diversity place no more than it takes for all of these to stand."""
        *before, last = self.recipe.stages or (None,)
        if not isinstance(last, MMR):
            return self.ranked(self.recipe)
        others = replace(self.recipe, stages=tuple(stage for stage in before if stage is not None))
        return last.as_far_as(self.ranked(others), self.context, wanted)

    @cached_property
    def ground(self) -> Ground:
        """Return what does not change however the pool is ranked."""
        return self.whole.ground if self.whole else Ground(self.listed, self.context)

    def ground_of(self, pair: Collection[MemoryId]) -> Ground:
        """Return as much of it as has a say in how two memories stand."""
        if self.whole:
            return self.whole.ground_of(pair)
        if any(isinstance(stage, (MMR, OpenClawSelection)) for stage in self.recipe.stages):
            return self.ground
        return Ground(self.beside(pair), self.context)

    def beside(self, pair: Collection[MemoryId]) -> list[MemoryId]:
        """Return two memories with those that may stand in their stead: chunks of their files, and equal texts."""
        stages, listed, few = self.recipe.stages, self.listed, {*pair}
        if any(isinstance(stage, GroupBySource) for stage in stages):
            theirs = {*origins_of(self.context.memories, [*pair])}
            few |= {identity for identity, origin in zip(listed, self._origins, strict=True) if origin in theirs}
        if any(isinstance(stage, Dedup) for stage in stages):
            few |= {identity for same in self._twins if not few.isdisjoint(same) for identity in same}
        return [identity for identity in listed if identity in few]

    @cached_property
    def listed(self) -> list[MemoryId]:
        """Return every candidate, once."""
        return listed_by(self.runs)

    @cached_property
    def _origins(self) -> Sequence[object]:
        """Return the source of each candidate."""
        return origins_of(self.context.memories, self.listed)

    @cached_property
    def _twins(self) -> list[list[MemoryId]]:
        """Return the candidates whose text another one has as well, those of one text together."""
        return same_texts([self.context.memories[identity] for identity in self.listed])

    def without(self, term: str, words: Signal) -> Pool:
        """Return the pool as it is when a word is not asked for, and the words say this instead of what they said."""
        analysis = self.context.analysis
        asked = replace(
            analysis,
            terms=tuple(known for known in analysis.terms if known != term),
            dates=tuple(known for known in analysis.dates if known != term),
            boosts=tuple(boost for boost in analysis.boosts if boost.term != term),
        )
        context = replace(self.context, analysis=asked, signals={**self.context.signals, words.name: words})
        by_rank = any(vote.normaliser.by_rank for vote in self.recipe.fusion.live(self.runs))
        runs = tuple(self._reranked(run, words, by_rank) if run.name == words.name else run for run in self.runs)
        return Pool(runs, context, self.recipe, self)

    def _reranked(self, run: Run, words: Signal, by_rank: bool) -> Run:
        """Return a run with other scores, where the rank counts in their order; what scores nothing is gone."""
        said = self._said_of(run, words)
        kept = (said > 0.0).nonzero()[0]
        listed, scores = run.ids, said[kept]
        ids = [listed[place] for place in kept.tolist()]
        if by_rank:
            order, has_ties = placed_by(scores)
            if has_ties:
                order = by_content(order, scores.tolist(), ids, self.context.memories)
            ids, scores = [ids[place] for place in order], scores[order]
        return Run(run.name, Listed(ids, scores.tolist()), run.notices)

    def _said_of(self, run: Run, signal: Signal) -> NDArray[np.float64]:
        """Return what a signal says of all that a run lists; nothing counts as zero."""
        import numpy as np

        exact = array_of(signal.values, self._memories)
        if exact is not None:
            return exact[self._places[run.name]]
        return np.array([value or 0.0 for value in column_of(signal.values, run.ids)], np.float64)

    @cached_property
    def _memories(self) -> list[MemoryId]:
        """Return the candidates in the order that signals speak of them."""
        return [*self.context.memories]

    @cached_property
    def _places(self) -> dict[str, NDArray[np.int64]]:
        """Return where in that order stands what each run lists."""
        import numpy as np

        places = {identity: place for place, identity in enumerate(self._memories)}
        return {run.name: np.array([*map(places.__getitem__, run.ids)], np.int64) for run in self.runs}


def changes(pool: Pool, ranking: Ranking, upper: MemoryId, lower: MemoryId) -> tuple[Change, ...]:
    """Return what would put the lower above the upper, one number at a time, the smallest change first."""
    pair = [*seek(ranking, {upper, lower})]
    sight: _Sight = _Few(pool, upper, lower) if can_see(pool.recipe) else _Whole(pool, upper, lower)
    found = []
    for knob in knobs(pool.recipe, pool.runs, pool.context, pair):
        value = _nearest(knob, sight)
        if value is not None:
            found.append(Change(knob.name, knob.value, value, knob.key, knob.turned(value)))
    return tuple(sorted(found, key=lambda change: change.size))


def are_turned(pools: Sequence[Pool], upper: MemoryId, lower: MemoryId) -> list[bool]:
    """Tell in which of these pools, each a part of one, the lower is clearly above the upper.

    As few of the others are looked at as that takes.
    """
    if pools and can_see(pools[0].recipe):
        ground = pools[0].ground_of((upper, lower))
        looks = [(Looks(pool.runs, pool.context, ground), pool.recipe) for pool in pools]
        return are_above(looks, lower, upper, by=LEVEL)
    rankings = [pool.ranked(pool.recipe) for pool in pools]
    return [is_above(found, lower, upper) and not are_level(found, lower, upper) for found in rankings]


def seek(ranking: Ranking, wanted: set[MemoryId]) -> Iterator[Hit]:
    """Yield these hits, kept or dropped, without making the others."""
    for hits in (ranking.hits, ranking.dropped):
        yield from (hits[place] for place, key in enumerate(ids_of(hits)) if key in wanted)


# -- who is above whom -------------------------------------------------------------------------------------------------


def is_above(ranking: Ranking, one: MemoryId, other: MemoryId) -> bool:
    """Tell whether one memory stands and the other stands below it or does not stand at all."""
    first, second = standing(ranking, one), standing(ranking, other)
    return first is not None and (second is None or first < second)


def standing(ranking: Ranking, identity: MemoryId) -> tuple[int, int] | None:
    """Return where a memory stands: its place, or right behind the chunk that stands for its file; None if nowhere."""
    ids = ids_of(ranking.hits)
    return (ids.index(identity), 0) if identity in ids else behind_of(ranking.hits).get(identity)


def are_level(ranking: Ranking, one: MemoryId, other: MemoryId) -> bool:
    """Tell whether nothing but place and content decides between two memories that stand."""
    first, second = standing(ranking, one), standing(ranking, other)
    if first is None or second is None:
        return False
    if first[0] == second[0]:
        a, b = (next(seek(ranking, {identity})) for identity in (one, other))
    else:
        a, b = ranking.hits[first[0]], ranking.hits[second[0]]
    return a.tier == b.tier and abs(a.score - b.score) <= LEVEL


# -- two ways to see ---------------------------------------------------------------------------------------------------


class _Sight(Protocol):
    """Sees two memories under other recipes."""

    @property
    def steps(self) -> int:
        """Return at how many places to look in each direction where a number has to be searched for."""

    @property
    def is_smooth(self) -> bool:
        """Tell whether two change places nowhere but where scores cross."""

    @property
    def is_diverse(self) -> bool:
        """Tell whether diversity has the last word, so that they may do so where no scores cross."""

    def flips(self, knob: Knob) -> Look:
        """Return what tells whether the lower is above the upper after a turn."""

    def keys(self, knob: Knob, values: Sequence[float]) -> list[dict[MemoryId, Key]]:
        """Return for each value of a knob the keys of those that have a say."""


class _Few:
    """Sees numbers alone, many recipes at once, and of the pool no more than has a say."""

    def __init__(self, pool: Pool, upper: MemoryId, lower: MemoryId) -> None:
        self._pool, self._upper, self._lower = pool, upper, lower
        self._looks = Looks(pool.runs, pool.context, pool.ground_of((upper, lower)))
        self.is_diverse = ends_in_diversity(pool.recipe)
        self.steps = _STEPS_OF_THE_DIVERSE if self.is_diverse else _STEPS
        self.is_smooth = not any(
            isinstance(stage, (MinScore, OpenClawSelection, Dedup)) for stage in pool.recipe.stages
        ) and not pool.recipe.fusion.is_capped(pool.runs, pool.context)

    def flips(self, knob: Knob) -> Look:
        recipe, pair = self._pool.recipe, (self._lower, self._upper)
        if self.is_diverse and turns_diversity(knob):
            return Together(lambda values: self._looks.are_above_by(values, recipe, *pair))
        return Together(lambda values: self._looks.are_above_at(values, knob, recipe, *pair))

    def keys(self, knob: Knob, values: Sequence[float]) -> list[dict[MemoryId, Key]]:
        few = self._pool.beside((self._upper, self._lower))
        places = [self._looks.ground.places[identity] for identity in few]
        seen = self._looks.keys_at(values, knob, self._pool.recipe).among(places)
        rows = zip(seen.tiers.tolist(), seen.scores.tolist(), strict=True)
        return [dict(zip(few, zip(tiers, scores, strict=True), strict=True)) for tiers, scores in rows]


@dataclass(frozen=True)
class _Whole:
    """Ranks the whole pool at every look."""

    pool: Pool
    upper: MemoryId
    lower: MemoryId
    steps: int = _STEPS_OF_THE_WHOLE
    is_smooth: bool = False
    is_diverse: bool = False

    def flips(self, knob: Knob) -> Look:
        return OneByOne(lambda value: is_above(self.pool.ranked(knob.turned(value)), self.lower, self.upper))

    def keys(self, knob: Knob, values: Sequence[float]) -> list[dict[MemoryId, Key]]:
        pair, rankings = {self.upper, self.lower}, (self.pool.ranked(knob.turned(value)) for value in values)
        return [{hit.id: hit.key for hit in seek(ranking, pair)} for ranking in rankings]


# -- the nearest value -------------------------------------------------------------------------------------------------


def _nearest(knob: Knob, sight: _Sight) -> float | None:
    """Return the nearest value that puts the lower above the upper."""
    flips = sight.flips(knob)
    for steps in _STEPS_OF_LAMBDA if sight.is_diverse and turns_diversity(knob) else (sight.steps,):
        probes = [probe for probe in _probes(knob, sight, steps) if probe != knob.value]
        # Without any relevance it takes long to tell who is first, so that waits until it is asked for.
        flips.ahead(probe for probe in probes if probe != knob.low or not turns_diversity(knob))
        found = searched(knob, probes, flips)
        if found is not None:
            return found
    return None


def _probes(knob: Knob, sight: _Sight, steps: int) -> list[float]:
    """Return where to look: around the crossings of straight lines, else along the whole way; at the ends always."""
    crossings = None if knob.wide or knob.stepped or sight.is_diverse else _crossings(knob, sight)
    around = [
        knob.value + (crossing - knob.value) * (1 + share) for crossing in crossings or () for share in (-_JUST, _JUST)
    ]
    on_the_way = [] if crossings is not None and sight.is_smooth else [*along(knob, steps)]
    return [probe for probe in (*around, *on_the_way, knob.low, knob.high) if knob.low <= probe <= knob.high]


def _crossings(knob: Knob, sight: _Sight) -> list[float] | None:
    """Return where the scores of two memories in one tier cross, or None where they are no straight lines."""
    reach = knob.high - knob.low
    # Away from the ends, where a vote may fall silent; and away from each other.
    places = [knob.low + reach * share for share in (0.2, 0.5, 0.8)]
    first, middle, last = sight.keys(knob, places)
    lines: dict[MemoryId, tuple[int, float, float]] = {}
    for identity in first.keys() & middle.keys() & last.keys():
        (tier, start), (_, between), (_, end) = first[identity], middle[identity], last[identity]
        if abs((start + end) / 2 - between) > _STRAIGHT:
            return None
        slope = (end - start) / (places[2] - places[0])
        lines[identity] = tier, start - slope * places[0], slope
    crossings = []
    for (tier, height, slope), (other_tier, other_height, other_slope) in combinations(lines.values(), 2):
        if tier == other_tier and slope != other_slope:
            crossings.append((other_height - height) / (slope - other_slope))
    return crossings
