"""Queries, their analysis and filters, expressions of the advanced syntax, combined terms.

A term is a token, a phrase (tokens with a space between them), or several of these under one label, counted as one:
`deploy*|deploy|deployment`. Some of them may be the label in another spelling: `cafe|cafe|~café`. No token holds a
space, a `|` or a `~`.
"""

from __future__ import annotations

import json
import math
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from functools import reduce
from operator import and_, or_
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar

from ..errors import ConfigError
from .memory import GLOBAL, USUAL_IMPORTANCE, Memory, Notice, Scope

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .trail import NameProbe, TermBoost

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
    def end(self) -> float:
        """Return the moment, by `time.monotonic()`, at which the time is over."""
        return self.start + self.timeout_ms / 1_000

    @property
    def remaining_s(self) -> float:
        """Return the remaining seconds."""
        return max(0.0, self.end - time.monotonic())

    @property
    def abort_at(self) -> float:
        """Return the moment, by `time.monotonic()`, at which statements are aborted."""
        return self.start + GRACE * self.timeout_ms / 1_000


@dataclass
class Stopwatch:
    """Milliseconds by stage of a search."""

    milliseconds: dict[str, float] = field(default_factory=dict)
    last: float = field(default_factory=time.perf_counter)

    def lap(self, stage: str) -> None:
        """Add the time since the last lap to a stage, and to the total."""
        now = time.perf_counter()
        spent, self.last = (now - self.last) * 1000, now
        for name in (stage, "total"):
            self.milliseconds[name] = self.milliseconds.get(name, 0.0) + spent


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
        return sum(inverse_frequency(self.total, self.frequency.get(term, 0)) for term in terms)


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


_BETWEEN = "|"
_OTHERWISE = "~"
OTHERWISE_COUNTS = 0.5  # of the weight of a word in the spelling of the query, where any text has it so
_SPELLINGS_NAMED = 3  # of a term's spellings; `cafe*` may have a thousand, and a trail is read by people
T = TypeVar("T")


def several(label: str, terms: Iterable[str]) -> str:
    """Return a term that combines others; a combination of none matches no text."""
    return label + _BETWEEN + _BETWEEN.join(terms)


def is_several(term: str) -> bool:
    """Return whether a term combines others."""
    return _BETWEEN in term


def meant(term: str) -> list[str]:
    """Return the tokens and phrases of a term: itself, or those under its label."""
    return [one.removeprefix(_OTHERWISE) for one in term.split(_BETWEEN)[1:] if one] if _BETWEEN in term else [term]


def spelled(asked: str, others: Iterable[str], is_known: bool) -> str:
    """Return a term that combines this one with its other spellings, or these alone."""
    return several(label_of(asked), [*(meant(asked) if is_known else ()), *(_OTHERWISE + other for other in others)])


def spellings(term: str) -> tuple[list[str], list[str]]:
    """Return the tokens and phrases of a term: in the spelling of the query, and in other spellings."""
    if _OTHERWISE not in term:
        return meant(term), []
    parts = [one for one in term.split(_BETWEEN)[1:] if one]
    others = [one.removeprefix(_OTHERWISE) for one in parts if one.startswith(_OTHERWISE)]
    return [one for one in parts if not one.startswith(_OTHERWISE)], others


def as_asked(term: str) -> str | None:
    """Return the same without its other spellings; None if it has none, or nothing else."""
    asked, others = spellings(term)
    if not (asked and others):
        return None
    return asked[0] if len(asked) == 1 else several(label_of(term), asked)


def as_word(term: str) -> str:
    """Return the one word that a term is, in whatever spellings; nothing if it is a phrase, or several."""
    if _BETWEEN not in term:
        return "" if " " in term else term
    asked, others = spellings(term)
    words = asked or others
    return words[0] if others and len(asked) < 2 and " " not in words[0] else ""


def label_of(term: str) -> str:
    """Return the label of a term, its name in a trail."""
    return term.partition(_BETWEEN)[0]


def label_as(term: str, is_asked: bool) -> str:
    """Return a term's name in a trail: its label, or the label with the other spellings that were found."""
    others = [] if is_asked else spellings(term)[1]
    if not others:
        return label_of(term)
    more = f" and {len(others) - _SPELLINGS_NAMED} more" if len(others) > _SPELLINGS_NAMED else ""
    return f"{label_of(term)} as {'/'.join(others[:_SPELLINGS_NAMED])}{more}"


@dataclass(frozen=True, slots=True)
class Holds:
    """Leaf: the text holds a word or a phrase; with the text of the query and the index term."""

    asked: str
    term: str

    def __str__(self) -> str:
        return self.asked


@dataclass(frozen=True, slots=True)
class Begins:
    """Leaf: the text holds a word with this prefix; only a store can expand it to terms.

    `spellings` are the prefix as texts and as stems write it (`häus`, `haus`), `stems` those of words that begin so
    although their stems do not (`operat*`: `oper`).
    """

    asked: str
    spellings: tuple[str, ...]
    stems: tuple[str, ...] = ()

    @property
    def beginning(self) -> str:
        """Return the prefix as the query writes it."""
        return self.spellings[0]

    def __str__(self) -> str:
        return self.asked


@dataclass(frozen=True, slots=True)
class Says:
    """Leaf: a field of the memory has this value; with `begins`, a value with this prefix."""

    asked: str
    field: str
    value: str
    begins: bool = False

    def __str__(self) -> str:
        return self.asked


Operator = Literal["$eq", "$gt", "$gte", "$lt", "$lte", "$in"]
_SIGNS: dict[Operator, str] = {"$eq": "=", "$gt": ">", "$gte": ">=", "$lt": "<", "$lte": "<=", "$in": "in"}


@dataclass(frozen=True, slots=True)
class Compares:
    """Leaf: a field of the memory's metadata compares so to a value; a missing field compares to nothing.

    The value is JSON text, so that `1`, `true` and `"1"` differ. Numbers have an order, and so have texts.
    """

    field: str
    operator: Operator
    value: str

    def is_true(self, metadata: Mapping[str, Any]) -> bool:
        """Compare the field of one memory."""
        return self.field in metadata and self.holds(metadata[self.field], json.loads(self.value))

    def holds(self, stored: Any, value: Any) -> bool:
        """Compare a stored value; `value` is that of the leaf, as it is read from JSON."""
        match self.operator:
            case "$eq":
                return _equals(stored, value)
            case "$in":
                return any(_equals(stored, one) for one in value)
            case "$gt":
                return _is_ordered(stored, value) and bool(stored > value)
            case "$gte":
                return _is_ordered(stored, value) and bool(stored >= value)
            case "$lt":
                return _is_ordered(stored, value) and bool(stored < value)
            case _:
                return _is_ordered(stored, value) and bool(stored <= value)

    def __str__(self) -> str:
        return f"{self.field} {_SIGNS[self.operator]} {self.value}"


def _equals(one: object, other: object) -> bool:
    """Return whether two JSON values are equal: 1 equals 1.0, and is neither true nor "1"."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_equals, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_equals(value, other[key]) for key, value in one.items())
    return one == other


def _is_ordered(one: object, other: object) -> bool:
    both = (one, other)
    are_numbers = all(isinstance(value, int | float) and not isinstance(value, bool) for value in both)
    return are_numbers or all(isinstance(value, str) for value in both)


@dataclass(frozen=True, slots=True)
class All:
    """Every part is true."""

    parts: tuple[Expression, ...]

    def __str__(self) -> str:
        return " AND ".join(f"({part})" if isinstance(part, Either) else str(part) for part in self.parts)


@dataclass(frozen=True, slots=True)
class Either:
    """At least one part is true."""

    parts: tuple[Expression, ...]

    def __str__(self) -> str:
        return " OR ".join(map(str, self.parts))


@dataclass(frozen=True, slots=True)
class Not:
    """The part is not true."""

    part: Expression

    def __str__(self) -> str:
        return f"NOT ({self.part})" if isinstance(self.part, All | Either) else f"NOT {self.part}"


Leaf = Holds | Begins | Says | Compares
Expression = Leaf | All | Either | Not


def valued(expression: Expression, leaf: Callable[[Leaf], T], negated: Callable[[T], T]) -> T:
    """Return the value of an expression from those of its leaves, which `&` and `|` put together."""
    match expression:
        case All(parts):
            return reduce(and_, (valued(part, leaf, negated) for part in parts))
        case Either(parts):
            return reduce(or_, (valued(part, leaf, negated) for part in parts))
        case Not(part):
            return negated(valued(part, leaf, negated))
        case _:
            return leaf(expression)


def rewritten(expression: Expression, leaf: Callable[[Leaf], Expression]) -> Expression:
    """Return the expression with every leaf put in the place of another."""
    match expression:
        case All(parts):
            return All(tuple(rewritten(part, leaf) for part in parts))
        case Either(parts):
            return Either(tuple(rewritten(part, leaf) for part in parts))
        case Not(part):
            return Not(rewritten(part, leaf))
        case _:
            return leaf(expression)


def leaves(expression: Expression) -> Iterator[Leaf]:
    """Yield every leaf."""
    match expression:
        case All(parts) | Either(parts):
            for part in parts:
                yield from leaves(part)
        case Not(part):
            yield from leaves(part)
        case _:
            yield expression


def wanted(expression: Expression, positive: bool = True) -> Iterator[Leaf]:
    """Yield the positive leaves: those under an even number of NOTs."""
    match expression:
        case All(parts) | Either(parts):
            for part in parts:
                yield from wanted(part, positive)
        case Not(part):
            yield from wanted(part, not positive)
        case _ if positive:
            yield expression


def refusal(expression: Expression, is_true: Callable[[Leaf], bool]) -> str | None:
    """Return the reason why an expression excludes a memory; None if it does not."""
    if valued(expression, is_true, lambda value: not value):
        return None
    return _said(expression, is_true)


def _said(expression: Expression, is_true: Callable[[Leaf], bool]) -> str:
    """Return the reason why an expression that is not true is not."""
    match expression:
        case All(parts):
            failing = (part for part in parts if refusal(part, is_true) is not None)
            return _said(next(failing), is_true)
        case Either(parts):
            return f"it contains neither of {', '.join(map(str, parts))}"
        case Not(part):
            return f"it is {part}" if isinstance(part, Says | Compares) else f"it contains {part}"
        case Says() | Compares():
            return f"it is not {expression}"
        case _:
            return f"it does not contain {expression}"


def literally(path: str) -> str:
    """Write a path as a pattern that matches it alone."""
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in path)


@dataclass(frozen=True, slots=True)
class Where:
    """Filter of the memories that may answer; applied inside every run, before its cut.

    `matching` filters by their texts and fields, `language` by their language: only a store has the words of a text, so
    `allows` leaves both out. The leaves of `metadata` are all `Compares`.
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
    metadata: Expression | None = None

    @property
    def expression(self) -> Expression | None:
        """Return what text, fields and metadata must satisfy together; None if nothing is asked of them."""
        if self.matching is None or self.metadata is None:
            return self.matching or self.metadata
        return All((self.matching, self.metadata))

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
            return "older than the filter"
        if self.before is not None and (memory.date is None or memory.date >= self.before):
            return "newer than the filter"
        return self._unlike(memory)

    def _unlike(self, memory: Memory) -> str | None:
        if self.category is not None and memory.category != self.category:
            return f"of category {memory.category}"
        if self.decay is not None and memory.decay != self.decay:
            return f"of decay class {memory.decay}" if memory.decay else "without a decay class"
        if self.min_importance is not None and (memory.importance or USUAL_IMPORTANCE) < self.min_importance:
            return "less important than the filter"
        if self.only_superseded and memory.superseded_by is None:
            return "not replaced"
        if self.only_expired and not _is_past(memory, self.moment):
            return "not expired"
        return None if self.metadata is None else refusal(self.metadata, lambda leaf: says(leaf, memory))


def says(leaf: Leaf, memory: Memory) -> bool:
    """Return whether the metadata of a memory satisfy a leaf of a metadata filter."""
    if not isinstance(leaf, Compares):
        raise TypeError(f"{leaf} asks for no metadata")
    return leaf.is_true(memory.metadata)


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
