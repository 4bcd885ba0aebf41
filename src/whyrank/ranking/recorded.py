"""What stages do that no slider moves: recorded once, so that others need not know how they come to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..hits import Context, Hit, Ranking
from ..trail import Trail
from ..types import Memory
from .boosts import Boosts, TokenMatch
from .order import Stage
from .stages import InScope, NameFirst, NotExpired, Superseded
from .worth import Base, Importance

# What these do to a hit depends neither on its score, nor on the others, nor on anything that slides.
RECORDED = {
    Base: "base",
    Boosts: "boosts",
    Importance: "importance",
    InScope: "scope",
    NotExpired: "expiry",
    Superseded: "superseded",
    TokenMatch: "token-match",
}


def steps_of(stage: Stage, memories: Sequence[Memory], context: Context) -> dict[int, Trail]:
    """Return the steps a stage gives each of these memories that it touches, by their places."""
    places = {memory.id: place for place, memory in enumerate(memories)}
    after = stage(Ranking(tuple(map(Hit, memories))), context)
    touched = ((places[hit.id], hit.trail) for hit in (*after.hits, *after.dropped) if hit.trail)
    return dict(sorted(touched))


def names_of(stage: NameFirst, memories: Sequence[Memory], context: Context) -> dict[int, Trail]:
    """Return the same for names, with what the bonuses are multiplied by in their place."""
    return steps_of(replace(stage, partial_bonus=1.0, sentence_bonus=1.0), memories, context)
