"""Queries, filters, runs, signals and statistics."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, Protocol, TypeVar

from ..errors import ConfigError
from .columns import Candidate, Listed, MemoryId
from .memory import GLOBAL, USUAL_IMPORTANCE, Memory, Notice, Scope

if TYPE_CHECKING:
    from .expressions import Expression
    from .trail import NameProbe, TermBoost, TermValue

SERVER_TIMEOUT_MS = 10_000  # of a search over HTTP or MCP, if nothing else is set: clients give up at 30 s or so
GRACE = 2  # times the limit: then a statement that is still running is aborted
MAX_TIMEOUT_MS = 3_600_000

Made = TypeVar("Made")


@dataclass(frozen=True)
class Deadline:
    """End of the time that a search may take, counted from its start."""

    timeout_ms: int
    start: float = field(default_factory=time.monotonic)

    @property
    def has_passed(self) -> bool:
        """Return whether the deadline has passed."""
        return self.remaining_s <= 0

    @property
    def remaining_s(self) -> float:
        """Return the remaining seconds."""
        return max(0.0, self.start + self.timeout_ms / 1_000 - time.monotonic())

    @property
    def abort_at(self) -> float:
        """Return the moment, by `time.monotonic()`, at which statements are aborted."""
        return self.start + GRACE * self.timeout_ms / 1_000


class Stopwatch:
    """Milliseconds by stage of a search."""

    def __init__(self) -> None:
        self.milliseconds: dict[str, float] = {}
        self._start = self._last = time.perf_counter()

    def lap(self, stage: str) -> None:
        """Add the time since the last lap to a stage, and set the total."""
        now = time.perf_counter()
        self.milliseconds[stage] = self.milliseconds.get(stage, 0.0) + (now - self._last) * 1000
        self.milliseconds["total"] = (now - self._start) * 1000
        self._last = now


def call_within(seconds: float | None, work: Callable[[], Made], setting: str) -> Made:
    """Call a function in a thread that is abandoned on timeout: a provider may respect no limit."""
    said: list[Made] = []
    failed: list[Exception] = []

    def attempt() -> None:
        try:
            said.append(work())
        except Exception as error:  # passed to the thread that waits
            failed.append(error)

    working = threading.Thread(target=attempt, name="whyrank-within", daemon=True)
    working.start()
    working.join(seconds)
    if failed:
        raise failed[0]
    if not said:
        raise TimeoutError(f"it took longer than {seconds or 0:g} seconds ({setting})")
    return said[0]


QueryKind = Literal["name", "question", "keywords"]
Join = Literal["or", "and"]
Syntax = Literal["plain", "advanced"]
Verdict = Literal["found", "weak", "nothing"]
ExpansionMode = Literal["hyde", "variants"]
SYNTAXES: tuple[Syntax, ...] = ("plain", "advanced")
Repeats = Mapping[str, int]
ONCE: Repeats = MappingProxyType({})  # every term counts once


@dataclass(frozen=True, slots=True)
class Run:
    """The ranked list one retriever returned, best first."""

    name: str
    candidates: Sequence[Candidate] = ()
    notices: tuple[Notice, ...] = ()

    @classmethod
    def of(cls, name: str, pairs: Iterable[tuple[str, float]], *, lower_is_better: bool = False) -> Run:
        """Make a run from any engine's (id, score) pairs; ties are ordered by id, bad numbers refused."""
        sign = -1.0 if lower_is_better else 1.0
        best: dict[str, float] = {}
        for identity, score in pairs:
            if not math.isfinite(score):
                raise ValueError(f"run {name!r}: the score of {identity!r} is {score}, not a finite number")
            best[identity] = max(best.get(identity, -math.inf), sign * score)
        ordered = sorted(best.items(), key=lambda pair: (-pair[1], pair[0]))
        return cls(name, tuple(Candidate(identity, score) for identity, score in ordered))

    @property
    def ids(self) -> Sequence[MemoryId]:
        """Return the ids of the candidates, best first."""
        listed = self.candidates
        return listed.ids if isinstance(listed, Listed) else [candidate.id for candidate in listed]

    def ranks(self) -> dict[MemoryId, int]:
        """Return each candidate's rank, counted from 1."""
        return dict(zip(self.ids, range(1, len(self.candidates) + 1), strict=True))


@dataclass(frozen=True, slots=True)
class Signal:
    """Values of one kind of evidence for candidates, listed or not; coverage is a share of the possible.

    The terms of a candidate add up to its value, from left to right. `floor` is the value of unrelated texts (of
    vectors), `mass` the idf of all query terms (of words); None where it is unknown.
    """

    name: str
    values: Mapping[MemoryId, float]
    coverage: Mapping[MemoryId, float] = field(default_factory=dict)
    terms: Mapping[MemoryId, Sequence[TermValue]] = field(default_factory=dict)
    floor: float | None = None
    mass: float | None = None

    def terms_of(self, identity: MemoryId) -> Sequence[TermValue]:
        """Return the contribution of each term to a candidate's value; none where the value is 0."""
        return self.terms.get(identity, ()) if self.values.get(identity) else ()


def inverse_frequency(total: int, held: int) -> float:
    """Return ln(1 + (N − df + 0.5)/(df + 0.5)), which is never negative (Lucene's form)."""
    return math.log(1 + (total - held + 0.5) / (held + 0.5))


@dataclass(frozen=True, slots=True)
class Statistics:
    """Term statistics of the visible scopes: how many memories, how long, and how many hold each term."""

    total: int
    average_length: float
    frequency: Mapping[str, int]

    def idf(self, term: str) -> float:
        """Return the inverse document frequency of a term."""
        return inverse_frequency(self.total, self.frequency.get(term, 0))

    def mass(self, terms: Iterable[str]) -> float:
        """Return the idf of all these terms together: the most a memory can score."""
        return sum(self.idf(term) for term in terms)


@dataclass(frozen=True, slots=True)
class Analysis:
    """Analysis of a query's text; `shown_language` is its language if its words show it."""

    text: str
    language: str
    kind: QueryKind
    terms: tuple[str, ...]
    probe: NameProbe
    entities: tuple[str, ...] = ()
    notices: tuple[Notice, ...] = ()
    dates: tuple[str, ...] = ()
    speakers: tuple[str, ...] = ()
    boosts: tuple[TermBoost, ...] = ()
    shown_language: str = ""

    @property
    def repeats(self) -> Repeats:
        """Return the repeats of each term that counts more than once."""
        return {boost.term: boost.repeats for boost in self.boosts if boost.repeats > 1} if self.boosts else ONCE

    @property
    def asked(self) -> tuple[str, ...]:
        """Return all terms to search: the words, the date words, and the marks of possible speakers."""
        return (*self.terms, *self.dates, *self.speakers)


def literally(path: str) -> str:
    """Write a path as a pattern that matches it alone."""
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in path)


@dataclass(frozen=True, slots=True)
class Where:
    """Filter of the memories that may answer; applied inside every run, before its cut.

    `matching` filters by their texts and fields, `language` by their language: only a store has the words of a text, so
    `allows` leaves both out.
    """

    scopes: frozenset[Scope] = frozenset({GLOBAL})
    kinds: frozenset[str] = frozenset()
    tags: frozenset[str] = frozenset()
    path: str | None = None
    since: float | None = None
    before: float | None = None
    as_of: float | None = None
    include_superseded: bool = False
    now: float = 0.0
    category: str | None = None
    decay: str | None = None
    min_importance: int | None = None
    include_expired: bool = False
    only_superseded: bool = False
    only_expired: bool = False
    language: str | None = None
    matching: Expression | None = None

    def allows(self, memory: Memory) -> bool:
        """Return whether a memory may answer; the stores implement the same filter in their query language."""
        return self.refusal(memory) is None

    def refusal(self, memory: Memory) -> str | None:
        """Name the filter that keeps a memory out, if one does."""
        if memory.scope not in self.scopes:
            return "outside the caller's scope"
        return self.untimely(memory) or self.replaced(memory) or self._filtered(memory)

    @property
    def moment(self) -> float:
        """Return the time the answer is about: now, or `as_of`."""
        return self.now if self.as_of is None else self.as_of

    def untimely(self, memory: Memory) -> str | None:
        """Return the reason why a memory is not valid at the moment, or None."""
        moment = self.moment
        # A memory with a start of validity, or whose validity had ended when it was stored, was valid before that.
        if self.as_of is not None and memory.created > self.as_of and not _held_before(memory):
            return "not stored yet at that time"
        if self.include_expired or self.only_expired:
            return None
        if memory.expires is not None and memory.expires <= moment:
            return "expired"
        if memory.valid_from is not None and memory.valid_from > moment:
            return "not valid yet"
        if memory.valid_until is not None and memory.valid_until <= moment:
            return "no longer valid"
        return None

    def replaced(self, memory: Memory) -> str | None:
        """Return the replacement of a memory, if it existed by `as_of` and replaced memories are excluded."""
        if self.include_superseded or self.only_superseded or memory.superseded_by is None:
            return None
        later = self.as_of is not None and (memory.superseded_at or 0.0) > self.as_of
        return None if later else f"replaced by {memory.superseded_by}{_on_day(memory.superseded_at)}"

    def _filtered(self, memory: Memory) -> str | None:
        if self.kinds and memory.kind not in self.kinds:
            return f"of kind {memory.kind}"
        if not self.tags <= set(memory.tags):
            return f"without the tag {min(self.tags - set(memory.tags))}"
        if self.path is not None and not (memory.source and fnmatchcase(memory.source.path, self.path)):
            return f"not under {self.path}"
        if self.since is not None and (memory.date is None or memory.date < self.since):
            return "older than asked for"
        if self.before is not None and (memory.date is None or memory.date >= self.before):
            return "newer than asked for"
        return self._unlike(memory)

    def _unlike(self, memory: Memory) -> str | None:
        if self.category is not None and memory.category != self.category:
            return f"of category {memory.category}"
        if self.decay is not None and memory.decay != self.decay:
            return f"of decay class {memory.decay}" if memory.decay else "of no decay class"
        if self.min_importance is not None and (memory.importance or USUAL_IMPORTANCE) < self.min_importance:
            return "less important than asked for"
        if self.only_superseded and memory.superseded_by is None:
            return "not replaced"
        if self.only_expired and not _is_past(memory, self.moment):
            return "not expired"
        return None


def _held_before(memory: Memory) -> bool:
    return memory.valid_from is not None or _is_by(memory.valid_until, memory.created)


def _is_past(memory: Memory, moment: float) -> bool:
    return _is_by(memory.expires, moment) or _is_by(memory.valid_until, moment)


def _is_by(end: float | None, moment: float) -> bool:
    return end is not None and end <= moment


def _on_day(seconds: float | None) -> str:
    """Return the day of a moment as text; empty if it is unknown or out of the calendar's range."""
    try:
        return "" if seconds is None else f" on {datetime.fromtimestamp(seconds, UTC):%Y-%m-%d}"
    except (OverflowError, ValueError, OSError):
        return ""


@dataclass(frozen=True, slots=True)
class Expansion:
    """Expansion of a query by a language model: a made-up answer (`hyde`) or other wordings (`variants`)."""

    mode: ExpansionMode
    texts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Query:
    """One question as the caller put it; `now` is a value, so that ranking needs no clock."""

    text: str
    where: Where = field(default_factory=Where)
    limit: int = 6
    offset: int = 0
    strict: bool = False
    max_tokens: int | None = None
    min_confidence: float | None = None
    expansion: Expansion | None = None
    syntax: Syntax = "plain"
    deadline: Deadline | None = field(default=None, compare=False)  # None: it may take as long as it takes


RunName = Literal["keyword", "vector", "name"]
Lengths = Literal["standard", "strict-length"]
LENGTHS: tuple[Lengths, ...] = ("standard", "strict-length")


class TermBooster(Protocol):
    """Policy that weights the terms of entities."""

    def boost(self, entity: str, entity_weight: float, term: str, statistics: Statistics) -> TermBoost:
        """Return the boost of a term of an entity."""


@dataclass(frozen=True)
class Plan:
    """Retrieval plan: the runs, the operator that joins the query's terms, and the sources per run.

    `analysis` selects the words that are searched, `entities` the boost of those that name an entity.
    """

    runs: tuple[RunName, ...] = ("keyword", "vector", "name")
    join: Join = "or"
    pool: int = 100
    analysis: Lengths = "standard"
    entities: TermBooster | None = None

    def __post_init__(self) -> None:
        if self.pool < 1:
            raise ConfigError(f"the pool is {self.pool}", "give 1 or more")
