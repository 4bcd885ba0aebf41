"""What stages do to a pool before files are grouped: columns of numbers instead of a step for every hit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol, cast

from ..columns import MemoryId
from ..hits import Context, Hit, Ranking
from ..trail import Trail
from .boosts import Boosts, TokenMatch
from .filing import Keys, firsts
from .fusion import Fuse
from .ground import Ground
from .order import Change, Numbering, Stage
from .stages import (
    WINDOW_LIFT,
    Dedup,
    Evidence,
    InScope,
    MinScore,
    NameFirst,
    NotExpired,
    OpenClawSelection,
    Recency,
    Superseded,
)
from .worth import Base, Importance

if TYPE_CHECKING:
    from .duels import Flags, Floats, Integers

_GUARDS = (InScope, NotExpired, Superseded)
# What these do to a hit depends neither on the others nor on the score it has been given so far.
_NUMBERING = (Base, Boosts, Importance, Recency, TokenMatch)
_BY_ITSELF = (Evidence, NameFirst, *_GUARDS, *_NUMBERING)

Measured = tuple[float | None, float | None]


class Ranked(Protocol):
    """What stages ask of the fusions that come before them."""

    def ranked(self, fusions: Sequence[Fuse], signal: str) -> Flags:
        """Tell which places have a rank in a run whose vote counts: a row for each fusion."""

    def evidence(self, fusion: Fuse) -> Sequence[Measured]:
        """Return the cosine and the coverage of each place, where it has them."""


class _Effect(NamedTuple):
    """What one stage does to the places: factors and addends in turn, then how far it lifts, and whom it drops."""

    layers: Sequence[tuple[Change, Floats]] = ()
    lifted: Integers | None = None
    dropped: Flags | None = None


def is_seen(stage: Stage) -> bool:
    """Tell whether it is known what a stage does to places."""
    if isinstance(stage, Dedup):
        return stage.near is None
    return isinstance(stage, (*_BY_ITSELF, MinScore, OpenClawSelection))


class Effects:
    """What stages do to the places of one pool; of several settings of a stage, only what they change is asked anew."""

    def __init__(self, ground: Ground, context: Context, fused: Ranked) -> None:
        self._ground = ground
        self._context = context
        self._fused = fused
        self._measured: Sequence[Measured] | None = None
        self._effects: dict[Stage, _Effect] = {}

    def after(self, keys: Keys, stages: Sequence[Stage], fusions: Sequence[Fuse]) -> Keys:
        """Return the keys after these stages; the fusions are those of the rows, or the one of all of them."""
        for stage in stages:
            if isinstance(stage, MinScore):
                keys = keys._replace(stands=keys.stands & (keys.scores >= stage.at_least))
            elif isinstance(stage, OpenClawSelection):
                keys = self._selected(keys, stage, fusions)
            elif isinstance(stage, Dedup):
                keys = self._once_each(keys, fusions)
            else:
                keys = self._by_itself(keys, stage, fusions[0])
        return keys

    def after_each(self, keys: Keys, stages: Sequence[Sequence[Stage]], fusions: Sequence[Fuse]) -> Keys:
        """Do so where each row has stages of its own, which differ from the others' in numbers alone."""
        for turn in zip(*stages, strict=True):
            if turn.count(turn[0]) == len(turn):
                keys = self.after(keys, turn[:1], fusions)
            elif isinstance(turn[0], _NUMBERING):
                keys = self._numbered_each(keys, cast(Sequence[Numbering], turn))
            else:
                keys = self._one_by_one(keys, turn, fusions)
        return keys

    def _one_by_one(self, keys: Keys, stages: Sequence[Stage], fusions: Sequence[Fuse]) -> Keys:
        import numpy as np

        rows = [self.after(keys.row(row), [stage], [fusions[row % len(fusions)]]) for row, stage in enumerate(stages)]
        return Keys(*(np.concatenate(column) for column in zip(*rows, strict=True)))

    def _numbered_each(self, keys: Keys, stages: Sequence[Numbering]) -> Keys:
        """Let each row be changed by the numbers that its stage makes of what is known of the places."""
        import numpy as np

        facts, which = self._ground.known(stages[0], self._context)
        numbers = [[() if fact is None else stage.numbers(fact) for fact in facts] for stage in stages]
        turns = max(len(own) for row in numbers for own in row)
        layers = [_layers(stages[0].op, row, turns) for row in numbers]
        scores = keys.scores
        for turn in range(turns):
            factors = np.array([own[turn][1] for own in layers]).take(which, axis=1)
            scores = scores + factors if stages[0].op == "add" else scores * factors
        return keys._replace(scores=scores)

    def _selected(self, keys: Keys, stage: OpenClawSelection, fusions: Sequence[Fuse]) -> Keys:
        passes = keys.stands & (keys.scores >= stage.min_score)
        has_words, has_vector = (self._fused.ranked(fusions, signal) for signal in ("keyword", "vector"))
        none_passes = ~passes.any(axis=1, keepdims=True)
        return keys._replace(stands=passes | (keys.stands & has_words & (none_passes | ~has_vector)))

    def _once_each(self, keys: Keys, fusions: Sequence[Fuse]) -> Keys:
        """Let one stand for all that have its text."""
        import numpy as np

        twins = self._ground.twins
        if not len(twins.places):
            return keys

        def turns() -> Integers:
            listed = self._fused.ranked(fusions, "keyword")[:, twins.places]
            return np.array([twins.turns(row) for row in listed])

        shape = max(len(keys.scores), len(keys.stands)), keys.stands.shape[1]
        stands = np.broadcast_to(keys.stands, shape).copy()
        own = Keys(np.broadcast_to(keys.scores, shape), np.broadcast_to(keys.tiers, shape), stands).among(twins.places)
        stands[:, twins.places] = firsts(own, twins.groups, turns)
        return keys._replace(stands=stands)

    def _by_itself(self, keys: Keys, stage: Stage, fusion: Fuse) -> Keys:
        scores, tiers, stands = keys
        effect = self._effects.get(stage)
        if effect is None:
            effect = self._effects[stage] = self._effect(stage, fusion)
        for op, numbers in effect.layers:
            scores = scores + numbers if op == "add" else scores * numbers
        if effect.lifted is not None:
            tiers = tiers + effect.lifted
        if effect.dropped is not None:
            # A hit that was lifted for its name stays, whatever the evidence.
            gone = effect.dropped & (tiers % WINDOW_LIFT == 0) if isinstance(stage, Evidence) else effect.dropped
            stands = stands & ~gone
        return Keys(scores, tiers, stands)

    def _effect(self, stage: Stage, fusion: Fuse) -> _Effect:
        if isinstance(stage, NameFirst):
            return self._stepped(stage, [key for key in self._context.names if key in self._ground.places])
        if isinstance(stage, _NUMBERING):
            return self._numbered(cast(Numbering, stage))
        if isinstance(stage, Evidence):
            return self._judged(stage.calibrated(self._context), fusion)
        if stage not in self._ground.guarded:
            self._ground.guarded[stage] = _Effect() if self._ground.is_open else self._stepped(stage, self._ground.ids)
        effect: _Effect = self._ground.guarded[stage]
        return effect

    def _numbered(self, stage: Numbering) -> _Effect:
        facts, which = self._ground.known(stage, self._context)
        numbers = [() if fact is None else stage.numbers(fact) for fact in facts]
        layers = _layers(stage.op, numbers, max(map(len, numbers), default=0))
        return _Effect([(op, numbers[which]) for op, numbers in layers])

    def _judged(self, stage: Evidence, fusion: Fuse) -> _Effect:
        import numpy as np

        if self._measured is None:
            self._measured = self._fused.evidence(fusion)
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
        layers = _layers("add", added, max(map(len, added), default=0))
        return _Effect(layers, np.array(lifted, np.int64), dropped)


def _layers(op: Change, numbers: Sequence[Sequence[float]], count: int) -> list[tuple[Change, Floats]]:
    """Return the numbers of the places, the first of each, the second of each, and so on, so many of each."""
    import numpy as np

    neutral = 0.0 if op == "add" else 1.0
    return [(op, np.array([own[turn] if turn < len(own) else neutral for own in numbers])) for turn in range(count)]
