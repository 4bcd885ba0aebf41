"""Entities in a query weigh more, the more so the rarer they are: repeats of query terms, as part of a plan."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ..errors import ConfigError
from ..matches import TermBoost
from ..types import Statistics, inverse_frequency


@dataclass(frozen=True)
class EntityBoost:
    """Repeat the terms of an entity up to ceil(entity weight × weight) times, in proportion to their rarity.

    ratio = idf / ln(N + 1), between 0 and 1; repeats = max(1, round(base × ratio)). A name that nearly every memory
    holds tells nothing, and counts once.
    """

    weight: float = 5.0

    def __post_init__(self) -> None:
        if not math.isfinite(self.weight) or self.weight < 0:
            raise ConfigError(f"the entity boost is {self.weight}", "give a number from 0 upwards; 5 is usual")

    def boost(self, entity: str, entity_weight: float, term: str, statistics: Statistics) -> TermBoost:
        """Return how often a term of an entity counts among these memories."""
        total, held = statistics.total, statistics.frequency.get(term, 0)
        base = math.ceil(entity_weight * self.weight)
        most = math.log(total + 1)  # about the idf of a term that nobody holds
        ratio = min(1.0, max(0.0, inverse_frequency(total, held) / most)) if most else 0.0
        return TermBoost(entity, term, base, held, total, ratio, max(1, round(base * ratio)))
