"""What stages do to a whole pool that see each memory by itself: columns of numbers instead of a step for every hit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ..columns import MemoryId
from ..hits import Context, Hit, Ranking
from ..trail import Trail
from .boosts import Boosts, TokenMatch
from .ground import Ground
from .order import Change, Numbering, Stage
from .stages import WINDOW_LIFT, Evidence, InScope, NameFirst, NotExpired, Recency, Superseded
from .worth import Base, Importance

if TYPE_CHECKING:
    from .duels import Flags, Floats, Integers

# What these do to a hit depends neither on the others nor on the score it has been given so far.
BY_ITSELF = (
    Base, Boosts, Evidence, Importance, InScope, NameFirst, NotExpired, Recency, Superseded, TokenMatch,
)  # fmt: skip

Measured = tuple[float | None, float | None]


class Keys(NamedTuple):
    """What fusion and stages make of each place: its score, its tier, and whether it stands; a row for each setting."""

    scores: Floats
    tiers: Integers
    stands: Flags

    def row(self, place: int) -> Keys:
        """Return one of the rows before any stage: all stand alike, and where scores are one row, all share it."""
        scores = self.scores[place % len(self.scores), None]
        return Keys(scores, self.tiers[:1], self.stands[:1])


class _Effect(NamedTuple):
    """What one stage does to the places: factors and addends in turn, then how far it lifts, and whom it drops."""

    layers: Sequence[tuple[Change, Floats]] = ()
    lifted: Integers | None = None
    dropped: Flags | None = None


class Effects:
    """What stages do to the places of one pool; of several settings of a stage, only what they change is asked anew."""

    def __init__(self, ground: Ground, context: Context, evidence: Callable[[], Sequence[Measured]]) -> None:
        self._ground = ground
        self._context = context
        self._evidence = evidence  # the cosine and the coverage of each place
        self._measured: Sequence[Measured] | None = None
        self._effects: dict[Stage, _Effect] = {}

    def after(self, keys: Keys, stages: Sequence[Stage]) -> Keys:
        """Return the keys after these stages."""
        scores, tiers, stands = keys
        for stage in stages:
            effect = self._effects.get(stage)
            if effect is None:
                effect = self._effects[stage] = self._effect(stage)
            for op, numbers in effect.layers:
                scores = scores + numbers if op == "add" else scores * numbers
            if effect.lifted is not None:
                tiers = tiers + effect.lifted
            if effect.dropped is not None:
                # A hit that was lifted for its name stays, whatever the evidence.
                gone = effect.dropped & (tiers % WINDOW_LIFT == 0) if isinstance(stage, Evidence) else effect.dropped
                stands = stands & ~gone
        return Keys(scores, tiers, stands)

    def _effect(self, stage: Stage) -> _Effect:
        if isinstance(stage, NameFirst):
            return self._stepped(stage, [key for key in self._context.names if key in self._ground.places])
        if isinstance(stage, Numbering):
            known = self._ground.known(stage, self._context)
            return _Effect(_layers(stage.op, [() if fact is None else stage.numbers(fact) for fact in known]))
        if isinstance(stage, Evidence):
            return self._judged(stage.calibrated(self._context))
        return self._stepped(stage, self._ground.ids)

    def _judged(self, stage: Evidence) -> _Effect:
        import numpy as np

        if self._measured is None:
            self._measured = self._evidence()
        return _Effect(dropped=np.array([not stage.passes(*measured) for measured in self._measured], np.bool_))

    def _stepped(self, stage: Stage, ids: Sequence[MemoryId]) -> _Effect:
        """Let a stage see hits of which nothing else is known, and read off what it did."""
        import numpy as np

        if not ids:
            return _Effect()
        memories, places = self._context.memories, self._ground.places
        after = stage(Ranking(tuple(Hit(memories[identity]) for identity in ids)), self._context)
        trails: list[Trail] = [()] * len(places)
        for hit in after.hits:
            trails[places[hit.id]] = hit.trail
        lifted = [sum(int(step.value) for step in trail if step.op == "lift") for trail in trails]
        added = [[step.value for step in trail if step.op == "add"] for trail in trails]
        dropped = np.zeros(len(places), np.bool_)
        dropped[[places[key] for key in {*ids}.difference(hit.id for hit in after.hits)]] = True
        return _Effect(_layers("add", added), np.array(lifted, np.int64), dropped)


def _layers(op: Change, numbers: Sequence[Sequence[float]]) -> list[tuple[Change, Floats]]:
    """Return the numbers of the places, the first of each, the second of each, and so on."""
    import numpy as np

    neutral = 0.0 if op == "add" else 1.0
    turns = range(max(map(len, numbers), default=0))
    return [(op, np.array([own[turn] if turn < len(own) else neutral for own in numbers])) for turn in turns]
