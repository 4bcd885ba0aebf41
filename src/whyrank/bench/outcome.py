"""What a contest found, as values, and as the plain data that `--json` prints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from .clock import Ratio, Spans, quantile, ratio
from .contestant import OURS

FORMAT = 1


class Skipped(NamedTuple):
    """A contestant that did not run, and why."""

    name: str
    reason: str


@dataclass(frozen=True)
class Entrant:
    """A contestant that was built: its versions, what building took, and how it is from cold."""

    name: str
    versions: Mapping[str, str]
    build: Mapping[str, float | None]
    cold: Mapping[str, float | None]


@dataclass(frozen=True)
class Line:
    """What one contestant took in one category, turn by turn, and what its answers were worth.

    `recall` is the share of the exact ten nearest among its first ten, `found` that of questions whose note is there.
    """

    name: str
    spans: Spans
    recall: float | None = None
    found: float | None = None

    def p(self, share: float, clock: str = "cpu") -> float:
        """Return the milliseconds a share of the turns stayed below."""
        return quantile([getattr(span, clock) for span in self.spans.values()], share)


@dataclass(frozen=True)
class Category:
    """One kind of work that contestants took turns at."""

    name: str
    lines: Sequence[Line]
    baseline: str = OURS

    def line(self, name: str) -> Line | None:
        """Return one contestant's line."""
        return next((line for line in self.lines if line.name == name), None)

    def as_data(self) -> dict[str, Any]:
        """Return the category as plain data, with each contestant's ratio to the baseline."""
        return {
            "name": self.name,
            "baseline": self.baseline,
            "lines": [_line_as_data(line, self.ratio(line)) for line in self.lines],
        }

    def ratio(self, line: Line) -> Ratio | None:
        """Return how many times what the baseline took a line took."""
        base = self.line(self.baseline)
        return ratio(line.spans, base.spans) if base else None


@dataclass(frozen=True)
class Round:
    """All that was measured at one size."""

    notes: int
    entrants: Sequence[Entrant]
    categories: Sequence[Category]
    filtered: Sequence[Category] = ()
    ranking_share: float | None = None
    skipped: Sequence[Skipped] = ()

    def category(self, name: str) -> Category | None:
        """Return one category."""
        return next((category for category in self.categories if category.name == name), None)

    def as_data(self) -> dict[str, Any]:
        """Return the round as plain data."""
        return {
            "notes": self.notes,
            "contestants": [
                {
                    "name": entrant.name,
                    "versions": dict(entrant.versions),
                    "build": dict(entrant.build),
                    "cold": dict(entrant.cold),
                }
                for entrant in self.entrants
            ],
            "categories": [category.as_data() for category in self.categories],
            "filtered": [category.as_data() for category in self.filtered],
            "ranking_share": self.ranking_share,
            "skipped": [skip._asdict() for skip in self.skipped],
        }


@dataclass(frozen=True)
class Scoped:
    """Searches in one scope of many in a file, against the same searches in a store of that scope alone."""

    scopes: int
    memories: int
    category: Category

    def as_data(self) -> dict[str, Any]:
        """Return it as plain data; the ratio is that of the shared file to the store of its own."""
        return {"scopes": self.scopes, "memories": self.memories, **self.category.as_data()}


@dataclass(frozen=True)
class Outcome:
    """One whole contest."""

    date: str
    machine: Mapping[str, Any]
    settings: Mapping[str, Any]
    rounds: Sequence[Round] = field(default=())
    scopes: Scoped | None = None

    def as_data(self) -> dict[str, Any]:
        """Return the whole as plain data."""
        return {
            "date": self.date,
            "machine": dict(self.machine),
            "settings": dict(self.settings),
            "sizes": [round.as_data() for round in self.rounds],
            "scopes": self.scopes.as_data() if self.scopes else None,
            "format": FORMAT,
        }


def _line_as_data(line: Line, compared: Ratio | None) -> dict[str, Any]:
    return {
        "name": line.name,
        "turns": len(line.spans),
        "cpu_ms": {"p50": line.p(0.5), "p95": line.p(0.95)},
        "wall_ms": {"p50": line.p(0.5, "wall"), "p95": line.p(0.95, "wall")},
        "ratio": compared._asdict() if compared else None,
        "recall_at_10": line.recall,
        "found_at_10": line.found,
    }
