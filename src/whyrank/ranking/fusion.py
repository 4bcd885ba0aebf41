"""Fusion of runs: a weighted sum of normalised signals over all candidates; normalisers.

Reciprocal rank fusion, convex combination and alpha blend are this one stage with different normalisers,
which bring the scores of a signal into 0..1, all of them monotonic.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from itertools import chain
from operator import add
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

from ..errors import ConfigError, check_finite
from ..types.results import Candidates, Context, Hits, Ranking, Run, Signal, array_of, column_of, in_order
from ..types.trail import Later, Part, Step

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

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
    """Normaliser of arrays, which may take numbers of the signal itself."""

    def over(self, scores: NDArray[np.float64], best: float, signal: Signal | None = None) -> NDArray[np.float64]:
        """Normalise an array of scores that is not empty and whose best is known."""
        raise NotImplementedError

    def __call__(self, scores: Sequence[float], ranks: Sequence[int | None]) -> list[float]:
        """Normalise a list of scores, as of a signal that has no numbers of its own."""
        import numpy as np

        with np.errstate(over="ignore", invalid="ignore"):  # what overflows is clamped
            return self.over(np.array(scores), max(scores)).tolist() if scores else []


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

    def over(self, scores: NDArray[np.float64], best: float, signal: Signal | None = None) -> NDArray[np.float64]:
        """Return shares of the best score of the batch, or of the cap."""
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


class Linear(Columnar):
    """max(0, score − minimum)/max(best − minimum, least), the minimum being the score of no evidence.

    Bruch et al. 2023; `least` keeps a weak best score from getting the whole vote.
    """

    def bounds(self, signal: Signal | None) -> tuple[float, float]:
        """Return the minimum and the least divisor for a signal."""
        raise NotImplementedError

    def over(self, scores: NDArray[np.float64], best: float, signal: Signal | None = None) -> NDArray[np.float64]:
        """Return places between the minimum and the best score of the batch."""
        minimum, least = self.bounds(signal)
        reach = max(best - minimum, least)
        return _units((scores - minimum) / reach) if reach > 0 else abs(scores) * 0.0


@dataclass(frozen=True)
class Theoretical(Linear):
    """A minimum and a least divisor that are the same for every signal."""

    minimum: float = 0.0
    least: float = 0.0

    def __post_init__(self) -> None:
        check_finite(self)

    def bounds(self, signal: Signal | None) -> tuple[float, float]:
        """Return the two numbers."""
        return self.minimum, self.least


@dataclass(frozen=True)
class AboveFloor(Linear):
    """max(0, cos − c0)/max(best − c0, least · (1 − c0)), c0 being the model's cosine of unrelated texts."""

    least: float = 0.1

    def __post_init__(self) -> None:
        check_finite(self)

    def bounds(self, signal: Signal | None) -> tuple[float, float]:
        """Return the floor of a signal and a share of what is above; a foreign one has neither."""
        floor = None if signal is None else signal.floor
        return (0.0, 0.0) if floor is None else (floor, self.least * (1 - floor))


@dataclass(frozen=True)
class AgainstMass(Linear):
    """score/max(best, f · min(share · mass, most)), the mass being the idf of all query terms, in nats.

    f is ln(few)/ln(memories), from 1 to `strictness`: among few memories incidental words are as rare as telling ones.
    """

    share: float = 0.5
    most: float = 10.0
    few: int = 200
    strictness: float = 1.3

    def __post_init__(self) -> None:
        check_finite(self)
        if self.few < 1 or self.strictness < 1:
            raise ConfigError(f"few is {self.few} and strictness {self.strictness}", "give numbers from 1 on")

    def bounds(self, signal: Signal | None) -> tuple[float, float]:
        """Return 0 and a share of the mass of a signal, more of it among few memories; a foreign one has none."""
        if signal is None or signal.mass is None:
            return 0.0, 0.0
        factor = 1.0 if signal.memories is None else math.log(self.few) / math.log(max(signal.memories, 2))
        return 0.0, min(max(factor, 1.0), self.strictness) * min(self.share * signal.mass, self.most)


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

    def over(self, scores: NDArray[np.float64], best: float, signal: Signal | None = None) -> NDArray[np.float64]:
        """Return the distance of each score above the threshold, as a share of the possible."""
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

    def over(self, scores: NDArray[np.float64], best: float, signal: Signal | None = None) -> NDArray[np.float64]:
        """Return the scores, cut at 0 and 1."""
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
    """Clamp an array to 0..1; a negative zero becomes positive, and what is no number 0."""
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

    def with_vector_weight(self, vector_weight: float) -> Fuse:
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
        ids, ballot = candidate_ids(runs), self.ballot(runs)
        columns = [self.column(vote, runs, context, ids) for vote in ballot.votes]
        board = Board(ids, columns, ballot, self.absent, context.signals)
        scores = board.scores()
        why = "; ".join(map(str, context.analysis.boosts))
        candidates = Candidates.of(context.memories)
        places = range(len(ids)) if candidates.ids == ids else [candidates.places[identity] for identity in ids]

        def trail(number: int) -> tuple[Step, ...]:
            return (Step("fusion", "set", scores[number], why, Later(board.parts, number)),)

        return Ranking(in_order(Hits(candidates, places, [0] * len(ids), scores, trail)))

    def ballot(self, runs: Sequence[Run]) -> Ballot:
        """Return the votes of the runs that found something; a run that found nothing changes nothing."""
        found = tuple([run.name for run in runs if run.candidates and run.name not in self.proposing])
        if found not in self._ballots:
            votes = self.votes if self.absent == "zero" else self._answering(found)
            whole = self._budget(votes)
            self._ballots[found] = Ballot(votes, share_out([vote.weight or 0.0 for vote in votes], whole), whole)
        return self._ballots[found]

    @cached_property
    def _ballots(self) -> dict[tuple[str, ...], Ballot]:
        """Cache ballots by the runs that found something: in most searches the same."""
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

    def _budget(self, live: Sequence[Vote]) -> float:
        """Return the total weight of the live votes: all of it, unless absent signals keep theirs."""
        if self.absent != "kept":
            return self.whole
        named = {vote.signal for vote in self.votes}
        silent_too = [*self.votes, *(vote for vote in live if vote.signal not in named)]
        spoken, every = (reduce(add, [vote.weight or 0.0 for vote in votes], 0.0) for votes in (live, silent_too))
        return self.whole * (spoken / every) if every else self.whole

    def is_capped(self, runs: Sequence[Run], context: Context) -> bool:
        """Return whether a batch is so small that its normaliser divides by the cap, not by the best score."""
        candidates = candidate_ids(runs)
        for vote in self.votes:
            if isinstance(vote.normaliser, BatchMax) and vote.normaliser.least:
                signal = context.signals.get(vote.signal)
                values: Sequence[object] = candidates if signal is None else column_of(signal.values, candidates)
                if sum(value is not None for value in values) < vote.normaliser.least:
                    return True
        return False

    def column(self, vote: Vote, runs: Sequence[Run], context: Context, ids: Sequence[MemoryId]) -> SignalColumn:
        """Return the values of one signal for these candidates, normalised."""
        import numpy as np

        normaliser = vote.normaliser
        run = next((run for run in runs if run.name == vote.signal), None) or Run(vote.signal)
        if self.absent == "zero":
            signal = _of_listed(run, ids, context.signals.get(vote.signal))
        else:
            # A candidate that an external run did not list has no score there: none is made up.
            signal = context.signals.get(vote.signal) or as_signal(run)
        if normaliser.by_rank:  # "not listed" is the definition of nothing
            raw = [score or 0.0 for score in column_of(signal.values, ids)]
            placed = np.array(normaliser(raw, [*map(run.ranks().get, ids)]), np.float64)
            return SignalColumn(vote.signal, placed, signal, ids, run)
        scores = array_of(signal.values, ids)
        if scores is None:
            scores = np.array(column_of(signal.values, ids), np.float64)  # NaN for None
        has = scores == scores
        has_gaps = not has.all()
        known = scores[has] if has_gaps else scores  # only candidates with a score take part
        if not len(known):
            return SignalColumn(vote.signal, scores, signal, ids, run, has_gaps)
        best = float(known.max())
        if isinstance(normaliser, Columnar):
            with np.errstate(over="ignore", invalid="ignore"):  # what overflows is clamped
                placed = normaliser.over(known, best, signal)
        else:
            placed = np.array(normaliser(known.tolist(), [None] * len(known)), np.float64)
        if has_gaps:
            scores[has] = placed
            placed = scores
        bounds = normaliser.bounds(signal) if isinstance(normaliser, Linear) else None
        return SignalColumn(vote.signal, placed, signal, ids, run, has_gaps, best, bounds)


class Ballot(NamedTuple):
    """Votes that count in one ranking, the share of each for candidates with every signal, and the sum of these."""

    votes: Sequence[Vote]
    shares: Sequence[float]
    whole: float


@dataclass(eq=False)
class Board:
    """Matrix of signals by candidates: a column per vote, a row holds the parts of one hit."""

    ids: Sequence[MemoryId]
    columns: Sequence[SignalColumn]
    ballot: Ballot
    absent: Absent
    signals: Mapping[str, Signal]

    def scores(self) -> list[float]:
        """Sum the weighted columns per candidate from left to right."""
        import numpy as np

        score = np.zeros(len(self.ids))
        weighted = [*zip(self.columns, self.ballot.shares, strict=True)]
        if not any(column.has_gaps for column in self.columns):
            return reduce(add, [column.values * weight for column, weight in weighted], score).tolist()
        for place in range(len(self.ids)):
            for column, weight in zip(self.columns, self._weights(place), strict=True):
                score[place] += weight * (column.value(place) or 0.0)
        return score.tolist()

    def parts(self, place: int) -> tuple[Part, ...]:
        """Return the addends of that sum, and the parts of signals without a vote: no addends, but evidence."""
        weights = self._weights(place)
        voting = [column.part(place, weight) for column, weight in zip(self.columns, weights, strict=True)]
        return tuple(part for part in (*voting, *self._silent_parts(self.ids[place])) if part is not None)

    def _silent_parts(self, identity: MemoryId) -> Iterator[Part]:
        named = {column.name for column in self.columns}
        for name, signal in self.signals.items():
            raw = signal.values.get(identity)
            if name not in named and raw is not None:
                coverage, terms = signal.coverage.get(identity), signal.terms_of(identity)
                yield Part(name, 0.0, 0.0, 0.0, raw, None, coverage, terms)

    def _weights(self, place: int) -> Sequence[float]:
        """Return the weights for one candidate; a signal it does not have leaves its weight to the others."""
        has = [column.value(place) is not None for column in self.columns]
        if self.absent != "shared" or all(has):
            return self.ballot.shares
        own = [weight if present else 0.0 for weight, present in zip(self.ballot.shares, has, strict=True)]
        return share_out(own, self.ballot.whole)


@dataclass(eq=False)
class SignalColumn:
    """Values of one signal for the candidates, from 0 to 1, NaN where it has none; parts are made when read."""

    name: str
    values: NDArray[np.float64]
    signal: Signal
    ids: Sequence[MemoryId]
    run: Run
    has_gaps: bool = False
    best: float | None = None
    bounds: tuple[float, float] | None = None  # of a linear normaliser

    @cached_property
    def ranks(self) -> Mapping[MemoryId, int]:
        """Return the ranks of the run's candidates."""
        return self.run.ranks()

    def value(self, place: int) -> float | None:
        """Return the value of one candidate, if it has one."""
        value = float(self.values[place])
        return value if value == value else None

    def part(self, place: int, weight: float) -> Part | None:
        """Return the signal's contribution to one candidate; None if it has no value for it."""
        value, identity, signal = self.value(place), self.ids[place], self.signal
        if value is None:
            return None
        minimum, reference = None, None
        if self.best is not None and self.bounds is not None:
            minimum, least = self.bounds
            reference = max(self.best - minimum, least)
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
            minimum,
            reference,
        )


def family_of(signal: str) -> str:
    """Return the kind of a run: `vector:2` searches another wording, `vector` the query itself."""
    return signal.partition(":")[0]


def _split(vote: Vote, shares: Mapping[str, float]) -> list[Vote]:
    return [replace(vote, signal=name, weight=(vote.weight or 0.0) * share) for name, share in shares.items()]


def candidate_ids(runs: Sequence[Run]) -> list[MemoryId]:
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
