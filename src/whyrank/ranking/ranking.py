"""The total order of hits, and the helpers of stages."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

from ..types.columns import MemoryId
from ..types.results import Context, Hit, Hits, Ranking, memory_of
from ..types.trail import Step, apply

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..types.memory import Memory


class Stage(Protocol):
    """A small frozen value that turns a ranking into a ranking."""

    def __call__(self, ranking: Ranking, context: Context, /) -> Ranking:
        """Return the ranking after this stage."""


Change = Literal["add", "scale"]


@runtime_checkable
class Numbering(Protocol):
    """Stage that adds or multiplies numbers computed from a memory's input and the stage's parameters."""

    @property
    def op(self) -> Change:
        """Return whether it adds or multiplies."""

    def known(self, memory: Memory, context: Context, /) -> Any:
        """Return the input from a memory, independent of the stage's parameters; None to leave it unchanged."""

    def numbers(self, known: Any, /) -> Sequence[float]:
        """Return the addends, or the factors, of a memory's score, one after the other."""


def in_order(hits: Sequence[Hit]) -> Hits:
    """Order hits by tier and score, best first; ties by content, then by id, never by insertion."""
    columns = Hits.of(hits)
    keys = [*zip(columns.tiers, columns.scores, strict=True)]
    order = sorted(range(len(keys)), key=keys.__getitem__, reverse=True)
    if len({*keys}) < len(keys):
        content_keys, places = columns.candidates.content_keys, columns.places
        order.sort(key=lambda number: (-keys[number][0], -keys[number][1], content_keys[places[number]]))
    return columns.pick(order)


def rescore(ranking: Ranking, steps_for: Callable[[MemoryId], Sequence[Step]]) -> Ranking:
    """Give each hit any number of steps, and order the hits anew; without a step the ranking stays as it is."""
    hits = Hits.of(ranking.hits)
    steps = [steps_for(identity) for identity in hits.ids]
    if not any(steps):
        return ranking
    before = zip(hits.tiers, hits.scores, strict=True)
    keys = [reduce(apply, own, key) for key, own in zip(before, steps, strict=True)]
    tiers, scores = [tier for tier, _ in keys], [score for _, score in keys]
    stepped = Hits(
        hits.candidates, hits.places, tiers, scores, lambda number: (*hits.trail(number), *steps[number]), hits.beside
    )
    return replace(ranking, hits=in_order(stepped))


def renumber(ranking: Ranking, stage: Numbering, context: Context, told: Callable[[Any], Step]) -> Ranking:
    """Let a stage that has one number for a memory change the scores by it, and order the hits anew."""

    def steps_for(identity: MemoryId) -> Sequence[Step]:
        known = stage.known(memory_of(context.memories[identity]), context)
        return () if known is None else (told(known),)

    return rescore(ranking, steps_for)


def keep(ranking: Ranking, stage: str, reason: Callable[[Hit], str | None]) -> Ranking:
    """Drop the hits for which `reason` returns one, and record it in their trails."""
    whys = {number: why for number, hit in enumerate(ranking.hits) if (why := reason(hit)) is not None}
    return drop(ranking, stage, whys.__getitem__, [*whys]) if whys else ranking


def drop(ranking: Ranking, stage: str, why: Callable[[int], str], numbers: Sequence[int]) -> Ranking:
    """Drop hits by their numbers, each for its reason."""
    hits, gone = Hits.of(ranking.hits), {*numbers}
    kept = hits.pick([number for number in range(len(hits)) if number not in gone])
    dropped = hits.pick(numbers).dropped(stage, lambda place: why(numbers[place]))
    before = Hits.of(ranking.dropped)
    return replace(ranking, hits=kept, dropped=before.joined(dropped))


def split_dropped(dropped: Sequence[Hit], stages: frozenset[str]) -> Hits:
    """Return the hits that some stages dropped."""
    columns = Hits.of(dropped)
    return columns.pick([number for number, stage in enumerate(columns.stages) if stage in stages])
