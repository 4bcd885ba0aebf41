"""The one total order, and the helpers that carry the stages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from itertools import pairwise
from typing import Any, Literal, Protocol, runtime_checkable

from ..columns import MemoryId
from ..hits import Context, Hit, Ranking, memory_of
from ..trail import Key, Step, apply
from ..types import Memory
from .lineup import Joined, Rescored, held_by, ids_of, scores_of, tiers_of


class Stage(Protocol):
    """A small frozen value that turns a ranking into a ranking."""

    def __call__(self, ranking: Ranking, context: Context, /) -> Ranking:
        """Return the ranking after this stage."""


Change = Literal["add", "scale"]


@runtime_checkable
class Numbering(Protocol):
    """A stage that adds or multiplies: numbers made of what is known of a memory and of the numbers of the stage."""

    @property
    def op(self) -> Change:
        """Tell whether it adds or multiplies."""

    def known(self, memory: Memory, context: Context, /) -> Any:
        """Return what is known of a memory, whatever the numbers of the stage; None if the stage leaves it as it is."""

    def numbers(self, known: Any, /) -> Sequence[float]:
        """Return what is added to the score of such a memory, or what it is multiplied by, one after the other."""


def in_order(hits: Iterable[Hit]) -> tuple[Hit, ...]:
    """Order hits by tier and score, best first; ties by content, then by id, never by insertion."""
    ordered = sorted(hits, key=lambda hit: (-hit.tier, -hit.score))
    if any(one.score == other.score and one.tier == other.tier for one, other in pairwise(ordered)):
        ordered.sort(key=lambda hit: (-hit.tier, -hit.score, hit.memory.content_key))
    return tuple(ordered)


def rescore(ranking: Ranking, step_for: Callable[[MemoryId], Step | None]) -> Ranking:
    """Give each hit a step, or none, and order the hits anew."""
    steps = [step_for(identity) for identity in ids_of(ranking.hits)]
    keys = [apply(key, step) if step else key for key, step in zip(_keys_of(ranking.hits), steps, strict=True)]
    return _reordered(ranking, keys, steps.__getitem__)


def renumber(ranking: Ranking, stage: Numbering, context: Context, told: Callable[[Any], Step]) -> Ranking:
    """Let a stage that has one number for a memory change the scores by it, and order the hits anew."""
    known = [stage.known(memory_of(held), context) for held in held_by(ranking.hits)]
    # Of many memories the same is known, and the same number comes of it.
    numbers = {one: stage.numbers(one) for one in dict.fromkeys(known) if one is not None}
    pairs = zip(_keys_of(ranking.hits), known, strict=True)
    keys = [key if one is None else (key[0], _changed(key[1], stage.op, *numbers[one])) for key, one in pairs]
    return _reordered(ranking, keys, lambda place: None if known[place] is None else told(known[place]))


def _keys_of(hits: Sequence[Hit]) -> Iterable[Key]:
    return zip(tiers_of(hits), scores_of(hits), strict=True)


def _changed(score: float, op: Change, number: float) -> float:
    """Return a score as the step will leave it."""
    return score + number if op == "add" else score * number


def _reordered(ranking: Ranking, keys: Sequence[Key], step: Callable[[int], Step | None]) -> Ranking:
    """Order hits by the keys their steps give them; a hit is made when somebody looks at it."""
    order = sorted(range(len(keys)), key=keys.__getitem__, reverse=True)
    if len({*keys}) < len(keys):
        held = held_by(ranking.hits)
        order.sort(key=lambda place: (-keys[place][0], -keys[place][1], memory_of(held[place]).content_key))
    return Ranking(Rescored(ranking.hits, order, keys, step), ranking.dropped, ranking.notices)


def resteps(ranking: Ranking, steps_for: Callable[[MemoryId], Sequence[Step]]) -> Ranking:
    """Give each hit any number of steps that lie in its memory, and order the hits anew; without steps none is made."""
    steps = [*map(steps_for, ids_of(ranking.hits))]
    if not any(steps):
        return ranking
    hits = [reduce(Hit.after, own, hit) for hit, own in zip(ranking.hits, steps, strict=True)]
    return Ranking(in_order(hits), ranking.dropped, ranking.notices)


def keep(ranking: Ranking, stage: str, reason: Callable[[Hit], str | None]) -> Ranking:
    """Drop the hits that have a reason to go, and remember the reason."""
    kept: list[Hit] = []
    gone: list[Hit] = []
    for hit in ranking.hits:
        why = reason(hit)
        if why is None:
            kept.append(hit)
        else:
            gone.append(hit.after(Step(stage, "drop", why=why)))
    return Ranking(tuple(kept), Joined(ranking.dropped, gone), ranking.notices)


def keep_memories(ranking: Ranking, stage: str, reason: Callable[[Memory], str | None]) -> Ranking:
    """Do the same for reasons that lie in the memories alone; where none has one, no hit is made."""
    if all(reason(memory_of(held)) is None for held in held_by(ranking.hits)):
        return ranking
    return keep(ranking, stage, lambda hit: reason(hit.memory))
