"""Fusion of runs to one ranking: a weighted sum of normalised signals over the union of candidates.

Reciprocal rank fusion, convex combination and alpha blend are this one stage with different normalisers.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from itertools import chain
from operator import add
from typing import TYPE_CHECKING, Literal

from ..errors import ConfigError
from ..types.columns import Column, MemoryId, array_of, column_of
from ..types.query import Run, Signal
from ..types.results import Candidates, Context, Hits, Ranking
from ..types.trail import Later, Part, Step
from .normalizers import BatchMax, Columnar, Normaliser, PerSignal, Theoretical
from .ranking import in_order

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray


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
