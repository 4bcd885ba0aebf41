"""What a memory is worth before anybody asks: its importance, and how much of it is forgotten by now."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

from ..errors import ConfigError
from ..hits import Context, Ranking
from ..trail import Step
from ..types import USUAL_IMPORTANCE, Memory
from ..wording import which
from .order import renumber
from .stages import SECONDS_PER_DAY

MOST_IMPORTANT = 5
LEAST_OF_THE_MOST_IMPORTANT = 1.0  # what is most important is never forgotten altogether


@dataclass(frozen=True)
class Base:
    """+ importance · exp(−λ · distance), λ = rate / importance²: what matters more is forgotten more slowly.

    The distance is in messages for the turns of a chat, in whole days for everything else; what does not age has none.
    """

    rate: float = 0.05
    reads_memories = reads_chats = True
    op: ClassVar[Literal["add"]] = "add"

    def __post_init__(self) -> None:
        if not math.isfinite(self.rate) or self.rate < 0:
            raise ConfigError(f"the rate of forgetting is {self.rate}", "give a number from 0 upwards; 0.05 is usual")

    def __call__(self, ranking: Ranking, context: Context) -> Ranking:
        """Add to each hit what it is worth by itself."""
        return renumber(ranking, self, context, self._step)

    def _step(self, known: tuple[int, float, str]) -> Step:
        importance, distance, unit = known
        kept, (worth,) = self._kept(importance, distance), self.numbers(known)
        why = f"importance {importance} × {kept:.3f} remembered, {distance:.0f} {unit}"
        return Step("base", self.op, worth, why if worth == importance * kept else f"{why}; at least 1")

    def known(self, memory: Memory, context: Context) -> tuple[int, float, str]:
        """Return the importance of a memory, how far back it is, and in what."""
        return _importance(memory) or USUAL_IMPORTANCE, *_distance(memory, context)

    def numbers(self, known: tuple[int, float, str]) -> tuple[float]:
        """Return what such a memory is worth."""
        importance, distance, _ = known
        worth = importance * self._kept(importance, distance)
        return (max(worth, LEAST_OF_THE_MOST_IMPORTANT) if importance == MOST_IMPORTANT else worth,)

    def _kept(self, importance: int, distance: float) -> float:
        return math.exp(-self.rate / importance**2 * distance)


def _importance(memory: Memory) -> int | None:
    """Return an importance that makes sense, or none."""
    given = memory.importance
    return given if given is not None and 1 <= given <= MOST_IMPORTANT else None


def _distance(memory: Memory, context: Context) -> tuple[float, str]:
    """Return how far back a memory is, and in what."""
    if memory.is_turn:
        last = context.chats.get((memory.scope, memory.session), memory.position)
        behind = max(0, last - memory.position)
        return float(behind), which(behind, "message ago", "messages ago")
    since = memory.created if memory.date is None else memory.date
    if memory.evergreen or not since:
        return 0.0, "days old"
    # Whole days, so that the same question has the same answer a second later, through another door.
    days = max(0.0, context.query.where.moment - since) // SECONDS_PER_DAY
    return days, which(int(days), "day old", "days old")


@dataclass(frozen=True)
class Importance:
    """× (least + each · importance): 0.85 to 1.25 for 1 to 5; what was given no importance stays as it is."""

    least: float = 0.75
    each: float = 0.1
    reads_memories = True
    op: ClassVar[Literal["scale"]] = "scale"

    def __post_init__(self) -> None:
        if not (math.isfinite(self.least) and math.isfinite(self.each)) or min(self.least, self.each) < 0:
            raise ConfigError(f"importance: {self.least} and {self.each}", "give numbers from 0 upwards")

    def __call__(self, ranking: Ranking, context: Context) -> Ranking:
        """Scale each hit by its importance."""
        return renumber(ranking, self, context, self._step)

    def _step(self, importance: int) -> Step:
        return Step("importance", self.op, *self.numbers(importance), f"importance {importance}")

    def known(self, memory: Memory, context: Context) -> int | None:
        """Return the importance a memory was given, if it makes sense."""
        return _importance(memory)

    def numbers(self, importance: int) -> tuple[float]:
        """Return the factor for an importance."""
        return (self.least + self.each * importance,)
