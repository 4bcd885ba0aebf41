"""What would have to be different for two memories to change places: the nearest such value of one number at a time.

Turning a weight, k or a bonus refolds the trails of the few memories concerned, with the numbers of the pool as they
are; where the scores are straight lines, the lines cross where the places change, else the value is searched for.
Whatever is found is held against the ranking of the whole pool before it is told.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, reduce
from itertools import combinations

from ..columns import Listed, MemoryId, by_id
from ..hits import Context, Hit, Ranking, memory_of, origins_of
from ..trail import Key, Part, Step, total
from ..types import Run, Signal
from .boosts import Boosts, TokenMatch
from .diverse import Diverse, are_above, ends_in_diversity, lambda_of
from .diversity import MMR
from .fusion import Fuse, Vote, share_out
from .ground import Ground
from .knobs import Knob, knobs
from .lineup import behind_of, ids_of
from .nearest import DIGITS, NEARLY, Look, OneByOne, Together, along, searched
from .order import in_order
from .recipes import Recipe, rank_pool
from .stages import Evidence, GroupBySource, InScope, MinScore, NameFirst, NotExpired, Recency, Superseded
from .worth import Base, Importance

LEVEL = 1e-9  # scores closer than this are level: rounding, and not evidence, would decide between them
_JUST = 1e-3  # how far before and behind a crossing is looked, as a share of the change
_STEPS = 24  # places looked at in each direction where a number has to be searched for …
_STEPS_OF_THE_WHOLE = 8  # … and where each look ranks the whole pool
_STRAIGHT = 1e-9

# What these do to a hit does not depend on the others, but for files, whose other chunks are looked at as well.
_ONE_BY_ONE = (
    Base, Boosts, Evidence, GroupBySource, Importance, InScope, MinScore, NameFirst, NotExpired, Recency, Superseded,
    TokenMatch,
)  # fmt: skip

Judge = Callable[[Recipe], Ranking]
Nearest = Callable[[Knob], float | None]


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
        return self.whole.ground if self.whole else Ground(self.runs, self.context)

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
        runs = tuple(_reranked(run, words, context, by_rank) if run.name == words.name else run for run in self.runs)
        return Pool(runs, context, self.recipe, self)


def _reranked(run: Run, signal: Signal, context: Context, by_rank: bool) -> Run:
    """Return what a run listed with other scores, where the rank counts in their order; what scores nothing is gone.

    Memories are read to break ties.
    """
    values = by_id(signal.values)
    listed = [key for key in run.ids if values.get(key, 0.0) > 0.0]
    if by_rank:
        tied = Counter(values[key] for key in listed)

        def place(key: MemoryId) -> tuple[object, ...]:
            value = values[key]
            return -value, memory_of(context.memories[key]).content_key if tied[value] > 1 else ()

        listed.sort(key=place)
    return Run(run.name, Listed(listed, [values[key] for key in listed]), run.notices)


def changes(pool: Pool, ranking: Ranking, upper: MemoryId, lower: MemoryId) -> tuple[Change, ...]:
    """Return what would put the lower above the upper, one number at a time, the smallest change first."""
    pair = [*seek(ranking, {upper, lower})]
    nearest = _by_places(pool, upper, lower) if ends_in_diversity(pool.recipe) else _by_scores(pool, upper, lower)
    found = []
    for knob in knobs(pool.recipe, pool.runs, pool.context, pair):
        value = nearest(knob)
        if value is not None:
            found.append(Change(knob.name, knob.value, value, knob.key, knob.turned(value)))
    return tuple(sorted(found, key=lambda change: change.size))


def are_turned(pools: Sequence[Pool], upper: MemoryId, lower: MemoryId) -> list[bool]:
    """Tell in which of these pools, each a part of one, the lower is clearly above the upper.

    As few of the others are looked at as that takes.
    """
    if pools and ends_in_diversity(pools[0].recipe):
        looks = [(Diverse(pool.runs, pool.context, pool.ground), pool.recipe) for pool in pools]
        return are_above(looks, lower, upper, by=LEVEL)
    rankings = [_judges(pool, upper, lower).quick(pool.recipe) for pool in pools]
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


@dataclass(frozen=True)
class _Judges:
    """The quick look at the few memories concerned, and the whole pool, which has the last word."""

    quick: Judge
    whole: Judge
    few: frozenset[MemoryId]
    is_smooth: bool

    @property
    def steps(self) -> int:
        return _STEPS_OF_THE_WHOLE if self.quick is self.whole else _STEPS


def _judges(pool: Pool, upper: MemoryId, lower: MemoryId) -> _Judges:
    stages = pool.recipe.stages
    whole: Judge = pool.ranked
    pair = frozenset({upper, lower})
    if not all(isinstance(stage, _ONE_BY_ONE) for stage in stages) or pool.recipe.fusion.is_capped(
        pool.runs, pool.context
    ):
        return _Judges(whole, whole, pair, is_smooth=False)
    fused = pool.recipe.fusion(pool.runs, pool.context)
    memories = pool.context.memories
    few: Iterable[MemoryId] = pair
    if any(isinstance(stage, GroupBySource) for stage in stages):
        ids, theirs = [*memories], {memories[identity].origin for identity in pair}
        few = [key for key, origin in zip(ids, origins_of(memories, ids), strict=True) if origin in theirs]
    refold = _Refold(pool, tuple(seek(fused, set(few))))
    is_smooth = not any(isinstance(stage, MinScore) for stage in stages)
    return _Judges(refold, whole, frozenset(hit.id for hit in refold.hits), is_smooth)


@dataclass(frozen=True)
class _Refold:
    """Folds the trails of a few hits anew: the parts of the pool under other weights, then the stages themselves."""

    pool: Pool
    hits: tuple[Hit, ...]

    def __call__(self, recipe: Recipe) -> Ranking:
        hits: Iterable[Hit] = self.hits
        if recipe.fusion != self.pool.recipe.fusion:
            votes = recipe.fusion.live(self.pool.runs)
            hits = [_refused(hit, recipe.fusion, votes) for hit in hits]
        return reduce(lambda ranking, stage: stage(ranking, self.pool.context), recipe.stages, Ranking(in_order(hits)))


def _refused(hit: Hit, fusion: Fuse, votes: Sequence[Vote]) -> Hit:
    """Return a fused hit as other votes would have fused it."""
    known = {part.signal: part for part in hit.trail[0].parts}
    weights = share_out([vote.weight or 0.0 for vote in votes], fusion.whole)
    if fusion.absent == "shared" and any(vote.signal not in known for vote in votes):
        own = [w if vote.signal in known else 0.0 for vote, w in zip(votes, weights, strict=True)]
        weights = share_out(own, fusion.whole)
    voting = {vote.signal for vote in votes}
    parts = [
        _revalued(known[vote.signal], vote, weight)
        for vote, weight in zip(votes, weights, strict=True)
        if vote.signal in known
    ]
    parts += [
        part._replace(value=0.0, weight=0.0, normalised=0.0) for part in known.values() if part.signal not in voting
    ]
    score = total(parts)
    return Hit(hit.held, 0, score, (Step("fusion", "set", score, "", tuple(parts)),))


def _revalued(part: Part, vote: Vote, weight: float) -> Part:
    value = vote.normaliser([part.raw or 0.0], [part.rank])[0] if vote.normaliser.by_rank else part.normalised
    return part._replace(value=weight * value, weight=weight, normalised=value)


# -- the nearest value -------------------------------------------------------------------------------------------------


def _by_places(pool: Pool, upper: MemoryId, lower: MemoryId) -> Nearest:
    """Return how to find the nearest value that puts the lower above the upper where diversity has the last word."""
    diverse = Diverse(pool.runs, pool.context, pool.ground)

    def nearest(knob: Knob) -> float | None:
        turned = cache(knob.turned)
        flips = Together(lambda values: diverse.are_above([*map(turned, values)], lower, upper))
        probes = [probe for probe in (*along(knob, _STEPS_OF_THE_WHOLE), knob.low, knob.high) if probe != knob.value]
        # Without any relevance it takes long to tell who is first, so that waits until it is asked for.
        flips.ahead(probe for probe in probes if lambda_of(turned(probe)))
        value = searched(knob, probes, flips)
        if value is None:
            return None
        nearly = knob.value + NEARLY * (value - knob.value)
        flips.ahead((value, nearly))
        return value if flips(value) and not flips(nearly) else None

    return nearest


def _by_scores(pool: Pool, upper: MemoryId, lower: MemoryId) -> Nearest:
    """Return how to find it elsewhere."""
    judges = _judges(pool, upper, lower)
    return lambda knob: _nearest(knob, judges, upper, lower)


def _nearest(knob: Knob, judges: _Judges, upper: MemoryId, lower: MemoryId) -> float | None:
    """Return the nearest value that puts the lower above the upper, the whole pool being the witness."""

    def flips(judge: Judge) -> Look:
        return OneByOne(lambda value: is_above(judge(knob.turned(value)), lower, upper))

    looks = [(judges.quick, judges)]
    if judges.quick is not judges.whole:
        looks.append((judges.whole, _Judges(judges.whole, judges.whole, judges.few, is_smooth=False)))
    holds = flips(judges.whole)
    for judge, seen in looks:
        value = searched(knob, _probes(knob, seen), flips(judge))
        if value is None:
            return None
        if holds(value) and not holds(knob.value + NEARLY * (value - knob.value)):
            return value
    return None


def _probes(knob: Knob, judges: _Judges) -> list[float]:
    """Return where to look: around the crossings of straight lines, else along the whole way; at the ends always."""
    crossings = None if knob.wide or knob.stepped else _crossings(knob, judges)
    around = [
        knob.value + (crossing - knob.value) * (1 + share) for crossing in crossings or () for share in (-_JUST, _JUST)
    ]
    on_the_way = [] if crossings is not None and judges.is_smooth else [*along(knob, judges.steps)]
    return [probe for probe in (*around, *on_the_way, knob.low, knob.high) if knob.low <= probe <= knob.high]


def _crossings(knob: Knob, judges: _Judges) -> list[float] | None:
    """Return where the scores of two memories in one tier cross, or None where they are no straight lines."""
    reach = knob.high - knob.low
    # Away from the ends, where a vote may fall silent; and away from each other.
    places = [knob.low + reach * share for share in (0.2, 0.5, 0.8)]
    first, middle, last = (_keys(judges.quick(knob.turned(place)), judges.few) for place in places)
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


def _keys(ranking: Ranking, wanted: Iterable[MemoryId]) -> dict[MemoryId, Key]:
    return {hit.id: hit.key for hit in seek(ranking, set(wanted))}
