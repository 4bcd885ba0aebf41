"""What a contest found: as values, as the plain data of `results.json`, and read from there again."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from whyrank.errors import BadDataset
from whyrank.evaluation.results import Node, check_format, read_json

from .measurement import Ratio, Spans, quantile, ratio
from .peers import OURS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

FORMAT = 1
WRITTEN_BY = "python -m benchmarks --out FOLDER"
_MACHINE = ("cpu", "system", "python", "numpy", "sqlite", "whyrank")
_SETTINGS = ("queries", "words", "seed", "limit")


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


# -- as it is kept ---------------------------------------------------------------------------------------------


class Spread(NamedTuple):
    """Milliseconds of many turns: the median, and what 95 of 100 stayed below."""

    p50: float
    p95: float


@dataclass(frozen=True)
class KeptLine:
    """What one contestant took in one category, and what its answers were worth."""

    name: str
    turns: int
    cpu: Spread
    wall: Spread
    ratio: Ratio | None
    recall: float | None
    found: float | None


@dataclass(frozen=True)
class KeptCategory:
    """One kind of work that contestants took turns at."""

    name: str
    baseline: str
    lines: tuple[KeptLine, ...]

    def line(self, name: str) -> KeptLine | None:
        """Return one contestant's line."""
        return next((line for line in self.lines if line.name == name), None)


@dataclass(frozen=True)
class KeptRound:
    """All that was measured at one size."""

    notes: int
    entrants: tuple[Entrant, ...]
    categories: tuple[KeptCategory, ...]
    filtered: tuple[KeptCategory, ...]
    ranking_share: float | None
    skipped: tuple[Skipped, ...]

    def category(self, name: str) -> KeptCategory | None:
        """Return one category."""
        return next((category for category in self.categories if category.name == name), None)

    def entrant(self, name: str) -> Entrant | None:
        """Return one contestant."""
        return next((entrant for entrant in self.entrants if entrant.name == name), None)


@dataclass(frozen=True)
class KeptScopes:
    """Searches in one scope of many, against a store of that scope alone."""

    scopes: int
    memories: int
    category: KeptCategory


@dataclass(frozen=True)
class KeptContest:
    """One whole contest."""

    date: str
    machine: Mapping[str, Any]
    settings: Mapping[str, Any]
    rounds: Sequence[KeptRound]
    scopes: KeptScopes | None

    def round_of(self, notes: int) -> KeptRound | None:
        """Return what was measured at one size."""
        return next((one for one in self.rounds if one.notes == notes), None)


def read_data(file: Path) -> dict[str, Any]:
    """Read a kept contest as plain data that `kept_from` accepts, or say what is wrong with it."""
    data = read_json(file, WRITTEN_BY)
    try:
        kept_from(data)
    except BadDataset as error:
        raise BadDataset(f"{file}: {error.message}", error.hint) from error
    return data


def read(file: Path) -> KeptContest:
    """Read a kept contest, or say what is wrong with it."""
    return kept_from(read_data(file))


def is_kept(data: object) -> bool:
    """Tell whether plain data looks like a contest."""
    return isinstance(data, dict) and {"sizes", "machine"} <= data.keys()


def kept_from(data: dict[str, Any]) -> KeptContest:
    """Read plain data as a contest."""
    node = Node(data, "")
    if not is_kept(data):
        raise BadDataset("these are not the results of a contest", f"`{WRITTEN_BY}` keeps them")
    check_format(node, FORMAT)
    machine, settings = node.below("machine"), node.below("settings")
    told = {key: machine.get(key, str) for key in _MACHINE}
    has_scopes = node.maybe("scopes", dict) is not None
    return KeptContest(
        node.get("date", str),
        {**told, "cores": machine.get("cores", int), "one_thread": bool(data["machine"].get("one_thread"))},
        {key: settings.get(key, int) for key in _SETTINGS},
        tuple(map(_round, node.each("sizes"))),
        _scopes(node.below("scopes")) if has_scopes else None,
    )


def _round(node: Node) -> KeptRound:
    return KeptRound(
        node.get("notes", int),
        tuple(map(_entrant, node.each("contestants"))),
        tuple(map(_category, node.each("categories"))),
        tuple(map(_category, node.each("filtered"))),
        node.maybe("ranking_share", float),
        tuple(Skipped(one.get("name", str), one.get("reason", str)) for one in node.each("skipped")),
    )


def _entrant(node: Node) -> Entrant:
    versions, build, cold = (node.below(key) for key in ("versions", "build", "cold"))
    return Entrant(
        node.get("name", str),
        {name: versions.get(name, str) for name in versions.names()},
        {name: build.maybe(name, float) for name in build.names()},
        {name: cold.maybe(name, float) for name in cold.names()},
    )


def _category(node: Node) -> KeptCategory:
    return KeptCategory(node.get("name", str), node.get("baseline", str), tuple(map(_line, node.each("lines"))))


def _line(node: Node) -> KeptLine:
    cpu, wall = (node.below(key) for key in ("cpu_ms", "wall_ms"))
    ratio = node.below("ratio") if node.maybe("ratio", dict) is not None else None
    return KeptLine(
        node.get("name", str),
        node.get("turns", int),
        Spread(cpu.get("p50", float), cpu.get("p95", float)),
        Spread(wall.get("p50", float), wall.get("p95", float)),
        Ratio(ratio.get("cpu", float), ratio.get("wall", float)) if ratio else None,
        node.maybe("recall_at_10", float),
        node.maybe("found_at_10", float),
    )


def _scopes(node: Node) -> KeptScopes:
    return KeptScopes(node.get("scopes", int), node.get("memories", int), _category(node))
