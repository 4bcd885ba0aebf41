"""Several runs into one ranking: a weighted sum of normalised signals over the union of all candidates.

Reciprocal rank fusion, convex combination and alpha blend are this one stage with different normalisers.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from ..errors import ConfigError
from ..trail import Part, Step, total
from ..types import Context, Hit, MemoryId, Ranking, Run, Signal
from .normalisers import Normaliser
from .order import in_order


@dataclass(frozen=True)
class Vote:
    """How much one signal counts and how its scores are brought into 0..1.

    A weight of None is settled before ranking: the vector vote takes what the embedder declares,
    the others share the rest.
    """

    signal: str
    weight: float | None
    normaliser: Normaliser

    def __post_init__(self) -> None:
        if self.weight is not None and not 0 <= self.weight < float("inf"):
            raise ConfigError(f"the weight of {self.signal} is {self.weight}", "give a number from 0 upwards")


@dataclass(frozen=True)
class Fuse:
    """The fusion stage.

    `others` votes for runs that no vote names; `proposing` runs bring candidates and have no vote. `absent` says
    what a signal does that a hit does not have: its weight is shared out, or (only to show what goes wrong) it
    counts as zero.
    """

    votes: tuple[Vote, ...]
    others: Vote | None = None
    proposing: frozenset[str] = frozenset({"name"})
    absent: Literal["shared", "zero"] = "shared"

    def settled(self, vector_weight: float) -> Fuse:
        """Return the fusion with every open weight filled in."""
        open_votes = [vote for vote in self.votes if vote.weight is None and vote.signal != "vector"]
        rest = (1 - vector_weight) / len(open_votes) if open_votes else 0.0

        def settle(vote: Vote) -> Vote:
            if vote.weight is not None:
                return vote
            return replace(vote, weight=vector_weight if vote.signal == "vector" else rest)

        return replace(self, votes=tuple(settle(vote) for vote in self.votes))

    def __call__(self, runs: Sequence[Run], context: Context) -> Ranking:
        """Score every candidate of every run by every signal that found something."""
        ids = sorted({candidate.id for run in runs for candidate in run.candidates})
        columns = [self._column(vote, runs, context, ids) for vote in self._live(runs)]
        shared = _share_out([column.vote.weight or 0.0 for column in columns])
        hits = [self._hit(context, identity, i, columns, shared) for i, identity in enumerate(ids)]
        return Ranking(in_order(hits))

    def _live(self, runs: Sequence[Run]) -> list[Vote]:
        """Return the votes of the runs that found something; a run that found nothing changes nothing."""
        if self.absent == "zero":
            return list(self.votes)
        found = [run.name for run in runs if run.candidates and run.name not in self.proposing]
        votes = list(self.votes)
        if self.others is not None:
            named = {vote.signal for vote in self.votes}
            votes += [replace(self.others, signal=name) for name in found if name not in named]
        answered = [vote for vote in votes if vote.signal in found]
        # Where all that was given weight is silent, words that were given none may speak; vectors stay shut off.
        silent = [replace(vote, weight=1.0) for vote in answered if vote.signal != "vector"]
        return [vote for vote in answered if vote.weight] or silent

    def _column(self, vote: Vote, runs: Sequence[Run], context: Context, ids: Sequence[MemoryId]) -> _Column:
        run = next((run for run in runs if run.name == vote.signal), Run(vote.signal))
        if self.absent == "zero":
            signal = as_signal(run, ids, unlisted=0.0)
        else:
            # By rank, what a foreign run did not list has no score at all; by score, it has at most the lowest listed.
            others = () if vote.normaliser.by_rank else ids
            signal = context.signals.get(vote.signal) or as_signal(run, others)
        return _normalised(vote, signal, run.ranks(), ids)

    def _hit(
        self, context: Context, identity: MemoryId, place: int, columns: Sequence[_Column], shared: Sequence[float]
    ) -> Hit:
        """Add up what each signal gives one candidate; a signal it does not have leaves its weight to the others."""
        weights = list(shared)
        if self.absent == "shared":
            has = [column.normalised[place] is not None for column in columns]
            if not all(has):
                weights = _share_out([weight if present else 0.0 for weight, present in zip(shared, has, strict=True)])
        parts = tuple(
            column.part(identity, place, weight)
            for column, weight in zip(columns, weights, strict=True)
            if column.normalised[place] is not None
        )
        parts += _unweighed(context, identity, {part.signal for part in parts})
        return Hit(context.memories[identity]).after(Step("fusion", "set", total(parts), parts=parts))


@dataclass(frozen=True)
class _Column:
    """One signal over all candidates, normalised; None where a candidate has no such evidence."""

    vote: Vote
    signal: Signal
    ranks: Mapping[MemoryId, int]
    normalised: Sequence[float | None]
    best: float | None

    def part(self, identity: MemoryId, place: int, weight: float) -> Part:
        value = self.normalised[place] or 0.0
        raw = self.signal.values.get(identity)
        terms = self.signal.terms.get(identity, ())
        rank = self.ranks.get(identity)
        return Part(
            self.vote.signal,
            weight * value,
            weight,
            value,
            raw,
            rank,
            self.signal.coverage.get(identity),
            terms,
            self.best,
        )


def _unweighed(context: Context, identity: MemoryId, weighed: Collection[str]) -> tuple[Part, ...]:
    """Return what signals without a vote know of a candidate: it adds nothing, and is evidence all the same."""
    return tuple(
        Part(name, 0.0, 0.0, 0.0, signal.values[identity], coverage=signal.coverage.get(identity))
        for name, signal in context.signals.items()
        if name not in weighed and identity in signal.values
    )


def _normalised(vote: Vote, signal: Signal, ranks: Mapping[MemoryId, int], ids: Sequence[MemoryId]) -> _Column:
    # By rank, "not listed" is the definition of nothing; by score, only what has a score takes part.
    placed = [i for i, identity in enumerate(ids) if vote.normaliser.by_rank or identity in signal.values]
    scores = [signal.values.get(ids[i], 0.0) for i in placed]
    normalised: list[float | None] = [None] * len(ids)
    for i, value in zip(placed, vote.normaliser(scores, [ranks.get(ids[i]) for i in placed]), strict=True):
        normalised[i] = value
    best = None if vote.normaliser.by_rank else max(scores, default=None)
    return _Column(vote, signal, ranks, normalised, best)


def as_signal(run: Run, ids: Sequence[MemoryId], unlisted: float | None = None) -> Signal:
    """Make a signal of a run that cannot score other candidates: they count at its lowest listed score."""
    listed = {candidate.id: candidate.score for candidate in run.candidates}
    other = min(listed.values(), default=0.0) if unlisted is None else unlisted
    return Signal(run.name, {**dict.fromkeys(ids, other), **listed})


def _share_out(weights: Sequence[float]) -> list[float]:
    whole = sum(weights)
    return [weight / whole for weight in weights] if whole else [0.0 for _ in weights]
