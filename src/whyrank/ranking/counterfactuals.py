"""Counterfactuals: the numbers of a recipe, and the nearest value of one that swaps two memories."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple

from ..types.results import Candidates, Context, Hit, Hits, Listed, Ranking, Run, Signal, array_of, column_of, memory_of
from ..types.trail import TIERS
from .boosts import Base, Boosts, Importance, TokenMatch
from .diversity import MMR
from .fusion import K_RANGE, THRESHOLDS, Above, Fuse, ReciprocalRank, Vote, candidate_ids, family_of, share_out
from .recipes import (
    BOOST_WEIGHTS,
    Recipe,
    is_balanced,
    is_blend,
    rank_pool,
    vector_threshold,
    with_boost_weight,
    with_normaliser,
)
from .stages import (
    Dedup,
    Evidence,
    GroupBySource,
    MinScore,
    NameFirst,
    OpenClawSelection,
    Recency,
    SameLanguage,
    same_texts,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ..types.memory import MemoryId


MOST_BONUS = 2.0  # more than the whole reach of a fused score
MOST_POINTS = 10.0  # twice the largest of the registries


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
    Dial(SameLanguage, "weight", "penalty for another language", "language", 0.0, 1.0),
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
    Dial(Importance, "each", "bonus per degree of importance", "importance", 0.0, 1.0),
    Dial(MMR, "lambda_", "λ of diversity", "mmr", 0.0, 1.0, "ranking.mmr_lambda"),
)


def knobs(recipe: Recipe, runs: Sequence[Run], context: Context, hits: Sequence[Hit]) -> list[Knob]:
    """Return every number of a recipe that affects the place of one of these hits."""
    # A signal has to have a value for one of these hits; an external run without a signal counts.
    votes = [
        vote
        for vote in recipe.fusion.ballot(runs).votes
        if (signal := context.signals.get(vote.signal)) is None or any(hit.id in signal.values for hit in hits)
    ]
    fusion = [*_weights(recipe, votes), *_strength(recipe, votes), *_threshold(recipe), *_constants(recipe, votes)]
    return [*fusion, *_dials(recipe, context, hits)]


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

        def turned(value: float) -> Recipe:
            return replace(recipe, fusion=with_boost_weight(recipe.fusion, value))

        yield Knob("boost weight", recipe.fusion.strength, low, high, turned, key)


def _threshold(recipe: Recipe) -> Iterator[Knob]:
    """Yield the cosine that vectors count from; a score bends where the threshold passes a cosine."""
    value = vector_threshold(recipe)
    if value is not None:
        low, high = THRESHOLDS

        def turned(value: float) -> Recipe:
            return replace(recipe, fusion=with_normaliser(recipe.fusion, Above(value)))

        key = "ranking.vector_threshold"
        yield Knob("vector threshold", value, low, max(high, value), turned, key, stepped=True)


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


NEARLY = 0.99  # this share of a change must not be enough
_NARROW = 0.996  # a bracket is narrow enough when its inner end is this share of the outer
_HALVINGS = 60
_NEARER = 8  # iterations of the search for a nearer value
DIGITS = 15  # behind the point; a float holds no more


Look = Callable[[float], bool]  # whether something happens at a value


def searched(knob: Knob, probes: Sequence[float], flips: Look) -> float | None:
    """Search outwards in both directions, the shorter first, to the first flip; bisect, return the nearer."""
    nearest: float | None = None
    ways = (knob.low - knob.value, -1.0), (knob.high - knob.value, 1.0)
    for _, direction in sorted(ways, key=lambda way: abs(way[0])):
        inner, has_flipped = knob.value, False
        for probe in sorted((p for p in probes if (p - knob.value) * direction > 0), key=lambda p: abs(p - knob.value)):
            if nearest is not None and abs(inner - knob.value) >= abs(nearest - knob.value):
                break  # all further probes are farther away than the value found in the other direction
            is_flip = flips(probe)
            value = _between(knob, inner, probe, flips) if is_flip and not has_flipped else None
            if value is not None:
                nearest = value if nearest is None else min(nearest, value, key=lambda found: abs(found - knob.value))
                break
            inner, has_flipped = probe, is_flip
    return nearest


def _between(knob: Knob, inner: float, outer: float, flips: Look) -> float | None:
    """Return a value between one that does not flip and one that does, where 99 % of it does not flip.

    Where 99 % of it flips as well, the places change more than once on the way: the search goes on with the nearer
    part.
    """
    start = knob.value
    for _ in range(_NEARER):
        within, beyond = _closed_in(start, inner, outer, flips)
        value = _tidy(knob, within, beyond)
        nearly = start + NEARLY * (value - start)
        if not flips(value):
            value, nearly = beyond, start + NEARLY * (beyond - start)
        if not flips(nearly):
            return value
        if within == start:
            return None  # the least change is enough, and less than that as well
        inner, outer = inner if abs(inner - start) < abs(nearly - start) else start, nearly
    return None


def _closed_in(start: float, inner: float, outer: float, flips: Look) -> tuple[float, float]:
    """Halve the bracket between a value that does not flip and one that does, until it is narrow."""
    for _ in range(_HALVINGS):
        if abs(inner - start) >= _NARROW * abs(outer - start):
            break
        middle = (inner + outer) / 2
        if flips(middle):
            outer = middle
        else:
            inner = middle
    return inner, outer


def _tidy(knob: Knob, inner: float, outer: float) -> float:
    """Return the number with the fewest digits that flips, and 99 % of which is no further than `inner`."""
    furthest = knob.value + (inner - knob.value) / NEARLY
    low, high = sorted((outer, furthest)) if abs(furthest - knob.value) > abs(outer - knob.value) else (outer, outer)
    low, high = max(low, knob.low), min(high, knob.high)
    for digits in range(DIGITS):
        short = round(outer, digits)
        for candidate in (short, short - 10.0**-digits, short + 10.0**-digits):
            rounded = round(candidate, digits)
            if low <= rounded <= high:
                return rounded
    return outer


def along(knob: Knob, steps: int) -> Iterator[float]:
    """Yield so many places on the way to either end, a wide knob's by factors."""
    for end in (knob.low, knob.high):
        for step in range(1, steps):
            share = step / steps
            if knob.wide:
                yield knob.value * math.exp(share * math.log(end / knob.value))
            else:
                yield knob.value + share * (end - knob.value)


LEVEL = 1e-9  # closer scores, and smaller changes, are level: rounding, and not evidence, would decide between them
_JUST = 1e-3  # distance of the probes before and behind a crossing, as a share of the change
_STEPS = 8  # values probed in each direction where the value has to be searched for
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
        """Return the size of the change relative to the number."""
        return abs(self.after - self.before) / (abs(self.before) or 1.0)

    @property
    def is_rounding(self) -> bool:
        """Return whether the change is so small that the two memories it swaps are level."""
        return self.size <= LEVEL

    def __str__(self) -> str:
        return f"{self.setting} {_shown(self.before, self.after)} → {_shown(self.after, self.after)}"


def _shown(value: float, beside: float) -> str:
    """Write a number with as many decimals as the one beside it needs, and at least two below ten."""
    decimals = len(f"{beside:.{DIGITS}f}".rstrip("0").partition(".")[2])
    return f"{value:.{max(decimals, 2 if abs(beside) < 10 else 0)}f}"


@dataclass(frozen=True, slots=True)
class DroppedTerm:
    """Term of the query without which two memories swap ranks, and the words of the query that mean it."""

    term: str
    words: tuple[str, ...] = ()

    def __str__(self) -> str:
        if not self.words:
            return f"without {self.term!r}, which the query means"
        return f"without {' and '.join(repr(word) for word in self.words)}"


@dataclass(frozen=True)
class Pool:
    """All candidates of a query as they were retrieved, and the recipe they are ranked by."""

    runs: tuple[Run, ...]
    context: Context
    recipe: Recipe

    def ranked(self, recipe: Recipe) -> Ranking:
        """Rank the whole pool by another recipe."""
        return rank_pool(self.runs, recipe, self.context)

    def ranked_as_far_as(self, wanted: Collection[MemoryId]) -> Ranking:
        """Rank the pool by its own recipe, but stop diversity once all of these memories are placed."""
        *before, last = self.recipe.stages or (None,)
        if not isinstance(last, MMR):
            return self.ranked(self.recipe)
        others = replace(self.recipe, stages=tuple(stage for stage in before if stage is not None))
        return last.as_far_as(self.ranked(others), self.context, wanted)

    def beside(self, pair: Collection[MemoryId]) -> list[MemoryId]:
        """Return two memories with those that may replace them: chunks of their files, and equal texts."""
        stages, listed, few = self.recipe.stages, self.listed, {*pair}
        if any(isinstance(stage, GroupBySource) for stage in stages):
            candidates = Candidates.of(self.context.memories)
            theirs = {candidates.origins[candidates.places[identity]] for identity in pair}
            few |= {candidates.ids[place] for place, origin in enumerate(candidates.origins) if origin in theirs}
        if any(isinstance(stage, Dedup) for stage in stages):
            few |= {identity for same in self._twins if not few.isdisjoint(same) for identity in same}
        return [identity for identity in listed if identity in few]

    @cached_property
    def listed(self) -> list[MemoryId]:
        """Return every candidate, once."""
        return candidate_ids(self.runs)

    @cached_property
    def _twins(self) -> list[list[MemoryId]]:
        """Return groups of candidates with the same text."""
        return same_texts([memory_of(self.context.memories[identity]) for identity in self.listed])

    def without(self, term: str, words: Signal) -> Pool:
        """Return the pool without a query term, with this keyword signal in place of the old one."""
        analysis = self.context.analysis
        asked = replace(
            analysis,
            terms=tuple(known for known in analysis.terms if known != term),
            dates=tuple(known for known in analysis.dates if known != term),
            boosts=tuple(boost for boost in analysis.boosts if boost.term != term),
        )
        context = replace(self.context, analysis=asked, signals={**self.context.signals, words.name: words})
        by_rank = any(vote.normaliser.by_rank for vote in self.recipe.fusion.ballot(self.runs).votes)
        runs = tuple(self._reranked(run, words, by_rank) if run.name == words.name else run for run in self.runs)
        return Pool(runs, context, self.recipe)

    def _reranked(self, run: Run, words: Signal, by_rank: bool) -> Run:
        """Return a run with other scores, reordered if ranks count; candidates with a score of 0 are removed."""
        said = self._said_of(run, words)
        kept = (said > 0.0).nonzero()[0]
        listed, scores = run.ids, said[kept]
        ids = [listed[place] for place in kept.tolist()]
        if by_rank:
            candidates = Candidates.of(self.context.memories)
            keys = [candidates.content_keys[candidates.places[identity]] for identity in ids]
            order = sorted(range(len(ids)), key=lambda place: (-scores[place], keys[place]))
            ids, scores = [ids[place] for place in order], scores[order]
        return Run(run.name, Listed(ids, scores.tolist()), run.notices)

    def _said_of(self, run: Run, signal: Signal) -> NDArray[np.float64]:
        """Return a signal's values for all candidates of a run; missing values count as zero."""
        import numpy as np

        exact = array_of(signal.values, self._memories)
        if exact is not None:
            return exact[self._places[run.name]]
        return np.array([value or 0.0 for value in column_of(signal.values, run.ids)], np.float64)

    @cached_property
    def _memories(self) -> list[MemoryId]:
        """Return the candidates in the order of the signals' columns."""
        return [*self.context.memories]

    @cached_property
    def _places(self) -> dict[str, NDArray[np.int64]]:
        """Return the positions of each run's candidates in that order."""
        import numpy as np

        places = {identity: place for place, identity in enumerate(self._memories)}
        return {run.name: np.array([*map(places.__getitem__, run.ids)], np.int64) for run in self.runs}


def changes(pool: Pool, ranking: Ranking, upper: MemoryId, lower: MemoryId) -> tuple[Change, ...]:
    """Return the changes of one number each that put the lower above the upper, the smallest first."""
    pair = [*seek(ranking, {upper, lower})]
    found = []
    for knob in knobs(pool.recipe, pool.runs, pool.context, pair):
        value = _nearest(knob, pool, upper, lower)
        if value is not None:
            found.append(Change(knob.name, knob.value, value, knob.key, knob.turned(value)))
    return tuple(sorted(found, key=lambda change: change.size))


def are_turned(pools: Sequence[Pool], upper: MemoryId, lower: MemoryId) -> list[bool]:
    """Return, for each of these pools, whether the lower memory is clearly above the upper."""
    rankings = [pool.ranked(pool.recipe) for pool in pools]
    return [is_above(found, lower, upper) and not are_level(found, lower, upper) for found in rankings]


def seek(ranking: Ranking, wanted: set[MemoryId]) -> Iterator[Hit]:
    """Yield these hits, kept or dropped, without making the others."""
    for hits in (Hits.of(ranking.hits), Hits.of(ranking.dropped)):
        yield from (hits[number] for number, identity in enumerate(hits.ids) if identity in wanted)


# -- order of two memories ---------------------------------------------------------------------------------------------


def is_above(ranking: Ranking, one: MemoryId, other: MemoryId) -> bool:
    """Return whether one memory is ranked, and the other below it or not at all."""
    first, second = standing(ranking, one), standing(ranking, other)
    return first is not None and (second is None or first < second)


def standing(ranking: Ranking, identity: MemoryId) -> tuple[int, int] | None:
    """Return the rank of a memory, or the place behind the chunk that represents its file; else None."""
    hits = Hits.of(ranking.hits)
    ids = hits.ids
    if identity in ids:
        return ids.index(identity), 0
    for first, others in hits.beside.items():
        behind = [hits.candidates.ids[place] for place in others]
        if identity in behind and first in ids:
            return ids.index(first), behind.index(identity) + 1
    return None


def are_level(ranking: Ranking, one: MemoryId, other: MemoryId) -> bool:
    """Return whether two ranked memories tie, so that only place and content decide between them."""
    first, second = standing(ranking, one), standing(ranking, other)
    if first is None or second is None:
        return False
    if first[0] == second[0]:
        a, b = (next(seek(ranking, {identity})) for identity in (one, other))
    else:
        a, b = ranking.hits[first[0]], ranking.hits[second[0]]
    return a.tier == b.tier and abs(a.score - b.score) <= LEVEL


# -- the nearest value -------------------------------------------------------------------------------------------------


def _nearest(knob: Knob, pool: Pool, upper: MemoryId, lower: MemoryId) -> float | None:
    """Return the nearest value that puts the lower above the upper."""
    probes = _probes(knob, pool, (upper, lower))

    @cache
    def flips(value: float) -> bool:
        return is_above(pool.ranked(knob.turned(value)), lower, upper)

    return searched(knob, [probe for probe in probes if probe != knob.value], flips)


def _probes(knob: Knob, pool: Pool, pair: tuple[MemoryId, MemoryId]) -> list[float]:
    """Return the values to try: around linear crossings, else along the whole range; the ends always."""
    crossings = None if knob.wide or knob.stepped else _crossings(knob, pool, pair)
    around = [
        knob.value + (crossing - knob.value) * (1 + share) for crossing in crossings or () for share in (-_JUST, _JUST)
    ]
    on_the_way = [] if crossings is not None and _is_linear(pool) else [*along(knob, _STEPS)]
    return [probe for probe in (*around, *on_the_way, knob.low, knob.high) if knob.low <= probe <= knob.high]


def _is_linear(pool: Pool) -> bool:
    """Return whether two memories change places only where their scores cross."""
    stages = pool.recipe.stages
    return not any(isinstance(stage, (MinScore, OpenClawSelection, Dedup, MMR)) for stage in stages) and not (
        pool.recipe.fusion.is_capped(pool.runs, pool.context)
    )


def _crossings(knob: Knob, pool: Pool, pair: tuple[MemoryId, MemoryId]) -> list[float] | None:
    """Return the values at which the scores of two memories in one tier cross; None if not linear."""
    reach = knob.high - knob.low
    # Away from the ends, where a vote may fall silent; and away from each other.
    places = [knob.low + reach * share for share in (0.2, 0.5, 0.8)]
    few = {*pool.beside(pair)}
    rankings = [pool.ranked(knob.turned(place)) for place in places]
    first, middle, last = ({hit.id: hit.key for hit in seek(ranking, few)} for ranking in rankings)
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
