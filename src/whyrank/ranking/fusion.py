"""Fusion of runs: a weighted sum of normalised signals over all candidates; normalisers.

Reciprocal rank fusion, convex combination and alpha blend are this one stage with different normalisers,
which bring the scores of a signal into 0..1, all of them monotonic.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from itertools import chain
from operator import add
from typing import TYPE_CHECKING, Literal, Protocol

from ..errors import ConfigError, check_finite
from ..types.results import Candidates, Column, Context, Hits, Ranking, Run, Signal, array_of, column_of, in_order
from ..types.trail import Later, Part, Step

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from ..types.memory import MemoryId


RRF_K = 60.0  # Cormack, Clarke and Büttcher 2009
K_RANGE = (0.01, 10_000.0)  # from "only the first counts" to "every rank counts the same"
THRESHOLDS = (0.0, 0.99)  # of cosines; at 1 nothing would be above
TINY = 1e-9
DEVIATIONS = 3.0  # Mazzeschi 2023: mean ± 3σ replace the bounds of an unknown distribution


class Normaliser(Protocol):
    """Normaliser of raw scores (and ranks, counted from 1, of listed candidates) to values from 0 to 1."""

    @property
    def by_rank(self) -> bool:
        """Return whether it reads ranks, so that a candidate the run did not list gets nothing."""

    def __call__(self, scores: Sequence[float], ranks: Sequence[int | None]) -> list[float]:
        """Return one value for each score, in the same order."""


class _ByScore:
    by_rank = False


class Columnar(_ByScore):
    """A normaliser that takes scores in an array, too."""

    def over(self, scores: NDArray[np.float64], best: float) -> NDArray[np.float64]:
        """Normalise an array of scores that is not empty and whose best is known."""
        raise NotImplementedError


@dataclass(frozen=True)
class ReciprocalRank:
    """(k + 1)/(k + rank): reciprocal rank fusion, scaled so that rank 1 is 1."""

    k: float = RRF_K
    by_rank = True

    def __post_init__(self) -> None:
        if not math.isfinite(self.k) or self.k <= 0:
            raise ConfigError(f"k is {self.k}", "give a positive number; 60 is usual")

    def __call__(self, scores: Sequence[float], ranks: Sequence[int | None]) -> list[float]:
        """Return a value that falls with the rank; 0 for unlisted candidates."""
        return [0.0 if rank is None else (self.k + 1) / (self.k + rank) for rank in ranks]


@dataclass(frozen=True)
class BatchMax(Columnar):
    """score / max(batch); min(1, score / `cap`) in a batch under `least`, whose best is unreliable."""

    least: int = 0
    cap: float = 1.0

    def __post_init__(self) -> None:
        if not 0 < self.cap < math.inf:
            raise ConfigError(f"the cap of a small batch is {self.cap}", "give a positive number")

    def __call__(self, scores: Sequence[float], ranks: Sequence[int | None]) -> list[float]:
        """Return shares of the best score of the batch, or of the cap."""
        if len(scores) < self.least:
            return [_unit(score / self.cap) for score in scores]
        top = max((*scores, TINY))
        return [_unit(score / top) for score in scores]

    def over(self, scores: NDArray[np.float64], best: float) -> NDArray[np.float64]:
        """Return the same numbers for scores in an array."""
        return _units(scores / (self.cap if len(scores) < self.least else max(best, TINY)))


@dataclass(frozen=True)
class MinMax(_ByScore):
    """(score − min)/(max − min) over the batch; 1 where all are equal."""

    def __call__(self, scores: Sequence[float], ranks: Sequence[int | None]) -> list[float]:
        """Return places between the worst and the best score of the batch."""
        low, high = min(scores, default=0.0), max(scores, default=0.0)
        half = high / 2 - low / 2  # half the reach, which cannot overflow, and is nothing between the smallest numbers
        if half <= 0:
            return [1.0] * len(scores)
        start = low / 2
        return [value if 0.0 <= (value := (score / 2 - start) / half) <= 1.0 else _unit(value) for score in scores]


@dataclass(frozen=True)
class Theoretical(Columnar):
    """max(0, score − minimum)/max(best − minimum, least), the minimum being the score of no evidence.

    Bruch et al. 2023; `least` keeps a weak best score from getting the whole vote.
    """

    minimum: float = 0.0
    least: float = 0.0

    def __post_init__(self) -> None:
        check_finite(self)

    def reference(self, best: float) -> float:
        """Return the divisor of a score above the minimum."""
        return max(best - self.minimum, self.least)

    def __call__(self, scores: Sequence[float], ranks: Sequence[int | None]) -> list[float]:
        """Return places between the minimum and the best score of the batch."""
        reach = self.reference(max(scores, default=self.minimum))
        if reach <= 0:
            return [0.0] * len(scores)
        low = self.minimum
        return [value if 0.0 <= (value := (score - low) / reach) <= 1.0 else _unit(value) for score in scores]

    def over(self, scores: NDArray[np.float64], best: float) -> NDArray[np.float64]:
        """Return the same numbers for scores in an array."""
        reach = self.reference(best)
        if reach <= 0:
            return abs(scores) * 0.0
        placed: NDArray[np.float64] = ((scores - self.minimum) / reach).clip(0.0, 1.0)
        return placed


class PerSignal(_ByScore):
    """A normaliser that every signal gives numbers of its own."""

    def settled(self, signal: Signal) -> Theoretical:
        """Return the normaliser with the numbers of a signal."""
        raise NotImplementedError

    def __call__(self, scores: Sequence[float], ranks: Sequence[int | None]) -> list[float]:
        """Return shares of the best score, as of a signal that has no numbers."""
        return Theoretical()(scores, ranks)


@dataclass(frozen=True)
class AboveFloor(PerSignal):
    """max(0, cos − c0)/max(best − c0, least · (1 − c0)), c0 being the model's cosine of unrelated texts."""

    least: float = 0.1

    def __post_init__(self) -> None:
        check_finite(self)

    def settled(self, signal: Signal) -> Theoretical:
        """Return the normaliser with the floor of a signal; a foreign one has neither a floor nor a least."""
        if signal.floor is None:
            return Theoretical()
        return Theoretical(signal.floor, self.least * (1 - signal.floor))


@dataclass(frozen=True)
class AgainstMass(PerSignal):
    """score/max(best, min(share · mass, most)), the mass being the idf of all query terms, in nats."""

    share: float = 0.5
    most: float = 10.0

    def __post_init__(self) -> None:
        check_finite(self)

    def settled(self, signal: Signal) -> Theoretical:
        """Return the normaliser with the mass of a signal; a foreign one has none, and no least."""
        return Theoretical(least=0.0 if signal.mass is None else min(self.share * signal.mass, self.most))


@dataclass(frozen=True)
class Sigmoid(_ByScore):
    """1/(1 + exp(midpoint − |score|)): the score may be FTS5's own bm25(), which is negative."""

    midpoint: float = 2.0

    def __post_init__(self) -> None:
        check_finite(self)

    def __call__(self, scores: Sequence[float], ranks: Sequence[int | None]) -> list[float]:
        """Return values on the logistic curve; a score that is not a number counts as none."""
        return [self._one(score) for score in scores]

    def _one(self, score: float) -> float:
        if not math.isfinite(score):
            return 0.0
        # Beyond ±700 exp() overflows and the curve is flat anyway.
        return 1 / (1 + math.exp(max(-700.0, min(700.0, self.midpoint - abs(score)))))


@dataclass(frozen=True)
class Saturating(_ByScore):
    """r/(1 + r): grows with the score and never reaches 1."""

    def __call__(self, scores: Sequence[float], ranks: Sequence[int | None]) -> list[float]:
        """Return saturating values; below zero counts as zero."""
        return [max(score, 0.0) / (1 + max(score, 0.0)) for score in scores]


@dataclass(frozen=True)
class Above(Columnar):
    """(score − t)/(1 − t) above the threshold t, 0 below."""

    threshold: float = 0.5

    def __post_init__(self) -> None:
        if not 0 <= self.threshold < 1:
            raise ConfigError(f"threshold is {self.threshold}", "give a number from 0 to below 1")

    def __call__(self, scores: Sequence[float], ranks: Sequence[int | None]) -> list[float]:
        """Return the distance of each score above the threshold, as a share of the possible."""
        return [_unit((score - self.threshold) / (1 - self.threshold)) for score in scores]

    def over(self, scores: NDArray[np.float64], best: float) -> NDArray[np.float64]:
        """Return the same numbers for scores in an array."""
        return _units((scores - self.threshold) / (1 - self.threshold))


@dataclass(frozen=True)
class Atan(_ByScore):
    """2/π · atan(score / scale): bounded independently of the other candidates (Bruch et al. 2023)."""

    scale: float = 1.0

    def __post_init__(self) -> None:
        if not math.isfinite(self.scale) or self.scale <= 0:
            raise ConfigError(f"scale is {self.scale}", "give a positive number")

    def __call__(self, scores: Sequence[float], ranks: Sequence[int | None]) -> list[float]:
        """Return values on the arc-tangent curve; below zero counts as zero."""
        return [2 / math.pi * math.atan(max(score, 0.0) / self.scale) for score in scores]


@dataclass(frozen=True)
class DistributionBased(_ByScore):
    """The place between mean − 3σ and mean + 3σ of the batch."""

    def __call__(self, scores: Sequence[float], ranks: Sequence[int | None]) -> list[float]:
        """Return places in the batch's own distribution; 0.5 where all are equal."""
        if not scores:
            return []
        largest = max(abs(score) for score in scores) or 1.0  # in shares of it nothing overflows
        shares = [score / largest for score in scores]
        mean = math.fsum(shares) / len(shares)
        reach = DEVIATIONS * math.sqrt(math.fsum((share - mean) ** 2 for share in shares) / len(shares))
        if reach <= TINY:
            return [0.5] * len(shares)
        return [_unit((share - mean + reach) / (2 * reach)) for share in shares]


@dataclass(frozen=True)
class Clamped(Columnar):
    """The score itself, held between 0 and 1: for signals that are cosines already."""

    def __call__(self, scores: Sequence[float], ranks: Sequence[int | None]) -> list[float]:
        """Return the scores, cut at 0 and 1."""
        return [_unit(score) for score in scores]

    def over(self, scores: NDArray[np.float64], best: float) -> NDArray[np.float64]:
        """Return the same numbers for scores in an array."""
        return _units(scores)


@dataclass(frozen=True)
class Binary:
    """1 for every listed candidate: the effect of clamping FTS5's negative BM25 rank at zero (failure 1)."""

    by_rank = True

    def __call__(self, scores: Sequence[float], ranks: Sequence[int | None]) -> list[float]:
        """Return 1 for listed candidates and 0 for the others."""
        return [0.0 if rank is None else 1.0 for rank in ranks]


def _unit(value: float) -> float:
    return min(1.0, max(0.0, value))


def _units(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Clamp an array to 0..1; a negative zero becomes positive, as in the scalar version."""
    import numpy as np

    return np.minimum(np.where(values > 0.0, values, 0.0), 1.0)


Absent = Literal["shared", "kept", "zero"]


@dataclass(frozen=True)
class Vote:
    """Weight of one signal, and the normaliser that maps its scores to 0..1.

    A weight of None is resolved before ranking: the vector vote takes the weight that the embedder declares, the others
    share the rest.
    """

    signal: str
    weight: float | None
    normaliser: Normaliser

    def __post_init__(self) -> None:
        if self.weight is not None and not 0 <= self.weight < float("inf"):
            raise ConfigError(f"the weight of {self.signal} is {self.weight}", "give a number from 0 upwards")


@dataclass(frozen=True)
class Fuse:
    """Fusion stage.

    `others` votes for runs that no vote names; `added` for the run of an additional model, which scores only memories
    in another language than the query (its weight is added to those of all other votes, which add up to 1). `proposing`
    runs bring candidates and have no vote. `absent` defines the effect of a signal that a hit does not have: its weight
    is shared out, or kept, so that no other signal gives more than its own share, or (only to show what goes wrong) it
    counts as zero. All votes together give at most `strength`; where it is given, the recipe is a blend of the two
    sliders "balance" (alpha, the vector's share) and "strength" (the boost weight), beside the bonuses of stages.
    """

    votes: tuple[Vote, ...]
    others: Vote | None = None
    proposing: frozenset[str] = frozenset({"name"})
    absent: Absent = "shared"
    strength: float | None = None
    added: Vote | None = None

    def __post_init__(self) -> None:
        if self.strength is not None and not 0 < self.strength < float("inf"):
            raise ConfigError(f"the boost weight is {self.strength}", "give a positive number; 15 is usual")

    @property
    def whole(self) -> float:
        """Return the total weight of all votes."""
        return 1.0 if self.strength is None else self.strength

    def budget(self, live: Sequence[Vote]) -> float:
        """Return the total weight of the live votes: all of it, unless absent signals keep theirs."""
        if self.absent != "kept":
            return self.whole
        named = {vote.signal for vote in self.votes}
        silent_too = [*self.votes, *(vote for vote in live if vote.signal not in named)]
        spoken, every = (reduce(add, [vote.weight or 0.0 for vote in votes], 0.0) for votes in (live, silent_too))
        return self.whole * (spoken / every) if every else self.whole

    def settled(self, vector_weight: float) -> Fuse:
        """Return the fusion with every open weight filled in."""
        open_votes = [vote for vote in self.votes if vote.weight is None and vote.signal != "vector"]
        rest = (1 - vector_weight) / len(open_votes) if open_votes else 0.0

        def settle(vote: Vote) -> Vote:
            if vote.weight is not None:
                return vote
            return replace(vote, weight=vector_weight if vote.signal == "vector" else rest)

        return replace(self, votes=tuple(settle(vote) for vote in self.votes))

    def split(self, shares: Mapping[str, Mapping[str, float]]) -> Fuse:
        """Return the fusion with a signal's vote shared among several runs of its kind, the total unchanged."""
        if not shares:
            return self
        named = {vote.signal: vote for vote in self.votes}
        kept = [[vote] if vote.signal not in shares else _split(vote, shares[vote.signal]) for vote in self.votes]
        if self.others is not None:
            kept += [_split(self.others, split) for signal, split in shares.items() if signal not in named]
        return replace(self, votes=tuple(chain.from_iterable(kept)))

    def __call__(self, runs: Sequence[Run], context: Context) -> Ranking:
        """Score every candidate of every run by every signal that found something."""
        ids = listed_by(runs)
        live = self.live(runs)
        columns = [self.column(vote, runs, context, ids) for vote in live]
        silent = self._silent(context, {column.name for column in columns}, ids)
        board = Board(columns, self.absent, silent, self.budget(live))
        summed = board.summed()
        scores = board.scores(len(ids)) if summed is None else summed.tolist()
        why = "; ".join(map(str, context.analysis.boosts))
        candidates = Candidates.of(context.memories)
        places = range(len(ids)) if candidates.ids == ids else [candidates.places[identity] for identity in ids]

        def trail(number: int) -> tuple[Step, ...]:
            return (Step("fusion", "set", scores[number], why, Later(board.parts, number)),)

        return Ranking(in_order(Hits(candidates, places, [0] * len(ids), scores, trail)))

    def live(self, runs: Sequence[Run]) -> Sequence[Vote]:
        """Return the votes of the runs that found something; a run that found nothing changes nothing."""
        if self.absent == "zero":
            return self.votes
        found = tuple([run.name for run in runs if run.candidates and run.name not in self.proposing])
        if found not in self._answered:
            self._answered[found] = self._answering(found)
        return self._answered[found]

    @cached_property
    def _answered(self) -> dict[tuple[str, ...], Sequence[Vote]]:
        """Cache votes by the runs that found something: in most searches the same."""
        return {}

    def _answering(self, found: Sequence[str]) -> Sequence[Vote]:
        votes = list(self.votes)
        named = {vote.signal for vote in self.votes}
        for name in found:
            further = self.added if family_of(name) == "vector" and self.added is not None else self.others
            if name not in named and further is not None:
                votes.append(replace(further, signal=name))
        answered = [vote for vote in votes if vote.signal in found]
        weighed = [vote for vote in answered if vote.weight]
        # Where no weighted signal has candidates, keyword votes of weight 0 may count; vectors stay off.
        return weighed or [
            replace(vote, weight=1.0)
            for vote in answered
            if family_of(vote.signal) != "vector" and self.absent != "kept"
        ]

    def is_capped(self, runs: Sequence[Run], context: Context) -> bool:
        """Return whether a batch is so small that its normaliser divides by the cap, not by the best score."""
        candidates = listed_by(runs)
        for vote in self.votes:
            if isinstance(vote.normaliser, BatchMax) and vote.normaliser.least:
                signal = context.signals.get(vote.signal)
                values: Sequence[object] = candidates if signal is None else column_of(signal.values, candidates)
                if sum(value is not None for value in values) < vote.normaliser.least:
                    return True
        return False

    def column(self, vote: Vote, runs: Sequence[Run], context: Context, ids: Sequence[MemoryId]) -> SignalColumn:
        """Return the values of one signal for these candidates."""
        run = next((run for run in runs if run.name == vote.signal), None) or Run(vote.signal)
        if self.absent == "zero":
            signal = _of_listed(run, ids, context.signals.get(vote.signal))
        else:
            # A candidate that an external run did not list has no score there: none is made up.
            signal = context.signals.get(vote.signal) or as_signal(run)
        return _normalised(vote, signal, run, ids)

    def _silent(self, context: Context, weighed: Collection[str], ids: Sequence[MemoryId]) -> list[SignalColumn]:
        """Return the columns of signals without a vote: they add nothing to the score, but are evidence."""
        return [
            SignalColumn(
                name, 0.0, [None if value is None else 0.0 for value in column_of(signal.values, ids)], signal, ids
            )
            for name, signal in context.signals.items()
            if name not in weighed
        ]


class Board:
    """Matrix of signals by candidates: a column per signal, a row holds the parts of one hit."""

    def __init__(
        self,
        columns: Sequence[SignalColumn],
        absent: Absent = "shared",
        silent: Sequence[SignalColumn] = (),
        whole: float = 1.0,
    ) -> None:
        self.columns = columns
        self.absent = absent
        self.silent = silent
        self.whole = whole
        self.shared = share_out([column.weight for column in columns], whole)  # of those that have every signal

    def summed(self) -> NDArray[np.float64] | None:
        """Sum the weighted columns per candidate from left to right, if all are available as arrays."""
        arrays = [column.array for column in self.columns if column.array is not None]
        if not arrays or len(arrays) < len(self.columns):
            return None
        return reduce(add, [array * weight for array, weight in zip(arrays, self.shared, strict=True)])

    def scores(self, count: int) -> list[float]:
        """Sum the weighted columns per candidate, if some are not available as arrays."""
        if self.absent == "shared" and any(None in column.normalised for column in self.columns):
            return [self._score(place) for place in range(count)]
        scores = [0.0] * count
        for column, weight in zip(self.columns, self.shared, strict=True):
            scores = [
                score + (weight * value if value else 0.0)
                for score, value in zip(scores, column.normalised, strict=True)
            ]
        return scores

    def _score(self, place: int) -> float:
        score = 0.0
        for column, weight in zip(self.columns, self._weights(place), strict=True):
            score += weight * (column.normalised[place] or 0.0)
        return score

    def parts(self, place: int) -> tuple[Part, ...]:
        """Return the addends of that sum, and the parts of signals without a vote."""
        voting = zip(self.columns, self._weights(place), strict=True)
        silent = ((column, 0.0) for column in self.silent)
        parts = (column.part(place, weight) for column, weight in (*voting, *silent))
        return tuple(part for part in parts if part is not None)

    def _weights(self, place: int) -> Sequence[float]:
        """Return the weights for one candidate; a signal it does not have leaves its weight to the others."""
        has = [column.normalised[place] is not None for column in self.columns]
        if self.absent != "shared" or all(has):
            return self.shared
        own = [weight if present else 0.0 for weight, present in zip(self.shared, has, strict=True)]
        return share_out(own, self.whole)


@dataclass(frozen=True)
class SignalColumn:
    """Values of one signal for the candidates: normalised eagerly, parts computed lazily."""

    name: str
    weight: float
    given: Sequence[float | None]
    signal: Signal
    ids: Sequence[MemoryId]
    run: Run | None = None
    best: float | None = None
    scale: Theoretical | None = None
    array: NDArray[np.float64] | None = field(default=None, compare=False)  # if available, replaces `given`

    @cached_property
    def normalised(self) -> Sequence[float | None]:
        """Return the signal's value for each candidate, from 0 to 1; None where it has none."""
        return self.given if self.array is None else self.array.tolist()

    @cached_property
    def ranks(self) -> Mapping[MemoryId, int]:
        """Return the ranks of the run's candidates."""
        return self.run.ranks() if self.run else {}

    def part(self, place: int, weight: float) -> Part | None:
        """Return the signal's contribution to one candidate; None if it has no value for it."""
        value, identity, signal = self.normalised[place], self.ids[place], self.signal
        if value is None:
            return None
        return Part(
            self.name,
            weight * value,
            weight,
            value,
            signal.values.get(identity),
            self.ranks.get(identity),
            signal.coverage.get(identity),
            signal.terms_of(identity),
            self.best,
            *self.line,
        )

    @cached_property
    def line(self) -> tuple[float | None, float | None]:
        """Return the minimum and the divisor of the scores, where the normaliser is linear; else None."""
        if self.scale is None or self.best is None:
            return None, None
        return self.scale.minimum, self.scale.reference(self.best)


def _normalised(vote: Vote, signal: Signal, run: Run, ids: Sequence[MemoryId]) -> SignalColumn:
    own = vote.normaliser
    normaliser = own.settled(signal) if isinstance(own, PerSignal) else own
    scale = normaliser if isinstance(normaliser, Theoretical) else None
    if isinstance(normaliser, Columnar) and ids and (exact := _exact(signal.values, ids)) is not None:
        best = float(exact.max())
        placed = normaliser.over(exact, best)
        return SignalColumn(vote.signal, vote.weight or 0.0, (), signal, ids, run, best, scale, placed)
    raw = column_of(signal.values, ids)
    if normaliser.by_rank:  # "not listed" is the definition of nothing
        ranks = run.ranks()
        values = normaliser([score or 0.0 for score in raw], [*map(ranks.get, ids)])
        return SignalColumn(vote.signal, vote.weight or 0.0, values, signal, ids, run)
    scores = [score for score in raw if score is not None]  # only candidates with a score take part
    known = iter(normaliser(scores, [None] * len(scores)))
    normalised = [*known] if len(scores) == len(raw) else [None if score is None else next(known) for score in raw]
    return SignalColumn(vote.signal, vote.weight or 0.0, normalised, signal, ids, run, max(scores, default=None), scale)


def _exact(values: Mapping[MemoryId, float], ids: Sequence[MemoryId]) -> NDArray[np.float64] | None:
    """Return the scores of these candidates as an array, if the store gave an array that covers them."""
    exact = array_of(values, ids)
    if exact is None and isinstance(values, Column) and values.array is not None:
        import numpy as np

        some = column_of(values, ids)
        return None if None in some else np.array(some, np.float64)
    return exact


def family_of(signal: str) -> str:
    """Return the kind of a run: `vector:2` searches another wording, `vector` the query itself."""
    return signal.partition(":")[0]


def _split(vote: Vote, shares: Mapping[str, float]) -> list[Vote]:
    return [replace(vote, signal=name, weight=(vote.weight or 0.0) * share) for name, share in shares.items()]


def listed_by(runs: Sequence[Run]) -> list[MemoryId]:
    """Return every candidate of any run, once."""
    return [*dict.fromkeys(chain.from_iterable(run.ids for run in runs))]


def as_signal(run: Run, unlisted: Sequence[MemoryId] = ()) -> Signal:
    """Make a signal of a run that cannot score other candidates; those named besides count 0."""
    listed = {candidate.id: candidate.score for candidate in run.candidates}
    return Signal(run.name, {**dict.fromkeys(unlisted, 0.0), **listed})


def _of_listed(run: Run, ids: Sequence[MemoryId], scored: Signal | None) -> Signal:
    """Return a run's candidates as a signal, with the sums of their terms if known; the others have 0."""
    listed = as_signal(run, ids)
    if scored is None:
        return listed
    scores = {candidate.id: scored.values.get(candidate.id, candidate.score) for candidate in run.candidates}
    return Signal(run.name, {**listed.values, **scores}, terms=scored.terms)


def share_out(weights: Sequence[float], whole: float = 1.0) -> list[float]:
    """Return the share of each weight in the whole; summed left to right, as browsers and old Pythons do."""
    summed = reduce(add, weights, 0.0)
    return [weight / summed * whole for weight in weights] if summed else [0.0 for _ in weights]
