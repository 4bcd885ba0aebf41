"""The nouns of whyrank: frozen, slotted, free of input and output."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from types import MappingProxyType
from typing import Literal, NamedTuple

from .columns import Candidate, Listed, MemoryId
from .deadline import Deadline
from .expressions import Expression
from .matches import NameProbe, TermBoost
from .trail import TermValue

Kind = Literal["chunk", "fact"]
QueryKind = Literal["name", "question", "keywords"]
Join = Literal["or", "and"]
Syntax = Literal["plain", "advanced"]
Verdict = Literal["found", "weak", "nothing"]
ExpansionMode = Literal["hyde", "variants"]
Trust = Literal["owner", "agent", "ingested", "untrusted"]
Order = Literal["place", "created", "date", "importance", "recalls"]

KINDS: tuple[Kind, ...] = ("chunk", "fact")
SYNTAXES: tuple[Syntax, ...] = ("plain", "advanced")
SCOPE_KINDS = ("global", "user", "agent", "session")
ORDERS: tuple[Order, ...] = ("place", "created", "date", "importance", "recalls")
USUAL_IMPORTANCE = 3  # of 1 to 5, where none was given
TRUSTS: tuple[Trust, ...] = ("owner", "agent", "ingested", "untrusted")
Repeats = Mapping[str, int]
ONCE: Repeats = MappingProxyType({})  # every term counts once
CATEGORIES = ("preference", "fact", "decision", "entity", "pattern", "rule", "technical", "other")


@dataclass(frozen=True, slots=True, order=True)
class Scope:
    """Whose memory it is: `global`, or one user, agent or session."""

    kind: str
    name: str = ""

    def __post_init__(self) -> None:
        if self.kind not in SCOPE_KINDS or (self.kind == "global") == bool(self.name) or self.name != self.name.strip():
            raise ValueError(f"{self} is no scope; write global, user:NAME, agent:NAME or session:NAME")

    @classmethod
    def parse(cls, text: str) -> Scope:
        """Read `global` or `user:42`; raise ValueError for anything else."""
        kind, _, name = text.strip().partition(":")
        return cls(kind, name.strip())

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}" if self.name else self.kind


GLOBAL = Scope("global")


def visible(asked: Iterable[Scope]) -> frozenset[Scope]:
    """Return what a caller with these scopes may see: them, and what is global."""
    return frozenset(asked) | {GLOBAL}


class Notice(NamedTuple):
    """Something the answer must say about itself: a degraded run, a setting not honoured."""

    code: str
    message: str


@dataclass(frozen=True, slots=True)
class Source:
    """Where a memory was read: a file and its lines, counted from 1."""

    path: str
    start_line: int = 0
    end_line: int = 0
    content_hash: str = ""

    def __str__(self) -> str:
        return f"{self.path}:{self.start_line}-{self.end_line}" if self.start_line else self.path


@dataclass(frozen=True, slots=True)
class Memory:
    """One searchable thing: a chunk of a file, a turn of a log, or a fact.

    `decay` names a class of `lifetimes`; `expires_given` says that its expiry was given and not computed from that
    class, so that recalling it does not put it off. `recalls` and `recalled` are how often and when last it was of use.
    """

    id: MemoryId
    text: str
    kind: Kind = "fact"
    name: str = ""
    title: str = ""
    slug: str = ""
    owner: str = ""
    aliases: tuple[str, ...] = ()
    summary: str = ""
    headings: tuple[str, ...] = ()
    source: Source | None = None
    scope: Scope = GLOBAL
    category: str = "other"
    tags: tuple[str, ...] = ()
    entities: tuple[str, ...] = ()
    importance: int | None = None
    created: float = 0.0
    date: float | None = None
    evergreen: bool = False
    valid_from: float | None = None
    valid_until: float | None = None
    expires: float | None = None
    supersedes: MemoryId | None = None
    superseded_by: MemoryId | None = None
    superseded_at: float | None = None
    trust: Trust = "owner"
    session: str = ""
    speaker: str = ""
    position: int = 0
    decay: str = ""
    recalls: int = 0
    recalled: float | None = None
    expires_given: bool = False

    @property
    def is_turn(self) -> bool:
        """Tell whether this is one turn of a conversation."""
        return bool(self.session)

    @property
    def group(self) -> str:
        """Name the thing it counts as one source with: its file for chunks, itself for turns and facts."""
        origin = self.origin
        return f"{origin[0]}/{origin[1]}" if isinstance(origin, tuple) else origin

    @property
    def origin(self) -> tuple[Scope, str] | MemoryId:
        """Return the same as a value that costs nothing to make: scope and path of the file, or the memory's id."""
        if self.source and self.kind == "chunk" and not self.session:
            return self.scope, self.source.path
        return self.id

    @property
    def content_key(self) -> tuple[str, int, str, MemoryId]:
        """Return what breaks a tie: place and content, never the order of insertion."""
        place = self.source or Source("")
        return place.path, place.start_line, place.content_hash, self.id


class Former(NamedTuple):
    """What a memory was before a change: the fields that were changed, as they stood until then; none if damaged."""

    memory: MemoryId
    changed: float | None
    was: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Document:
    """A text that comes without a file: from a corpus, an export, another system."""

    id: str
    text: str
    title: str = ""
    scope: Scope = GLOBAL
    slug: str = ""
    owner: str = ""
    date: str = ""
    session: str = ""
    speaker: str = ""


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
        """Return what it lists, best first."""
        listed = self.candidates
        return listed.ids if isinstance(listed, Listed) else [candidate.id for candidate in listed]

    def ranks(self) -> dict[MemoryId, int]:
        """Return each candidate's rank, counted from 1."""
        return dict(zip(self.ids, range(1, len(self.candidates) + 1), strict=True))


@dataclass(frozen=True, slots=True)
class Signal:
    """What one kind of evidence says about the candidates, listed or not; coverage is a share of the possible.

    The terms of a candidate add up to its value, from left to right.
    """

    name: str
    values: Mapping[MemoryId, float]
    coverage: Mapping[MemoryId, float] = field(default_factory=dict)
    terms: Mapping[MemoryId, Sequence[TermValue]] = field(default_factory=dict)

    def terms_of(self, identity: MemoryId) -> Sequence[TermValue]:
        """Return what each term adds to the value of a candidate; nothing where the value is 0."""
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
        """Return how much a term tells."""
        return inverse_frequency(self.total, self.frequency.get(term, 0))

    def mass(self, terms: Iterable[str]) -> float:
        """Return the idf of all these terms together: the most a memory can score."""
        return sum(self.idf(term) for term in terms)


@dataclass(frozen=True, slots=True)
class Analysis:
    """What the text of a query was understood to ask."""

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

    @property
    def repeats(self) -> Repeats:
        """Return how often each term counts that counts more than once."""
        return {boost.term: boost.repeats for boost in self.boosts if boost.repeats > 1} if self.boosts else ONCE

    @property
    def asked(self) -> tuple[str, ...]:
        """Return all that is looked for: the terms, the date words, and the marks of who may have said it."""
        return (*self.terms, *self.dates, *self.speakers)


@dataclass(frozen=True, slots=True)
class Where:
    """Which memories may answer at all; applied inside every run, before its cut.

    `matching` asks what their texts and fields say: only a store knows the words of a text, so `allows` leaves it out.
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
    matching: Expression | None = None

    def allows(self, memory: Memory) -> bool:
        """Tell whether a memory may answer; the stores' own filters say the same in their language."""
        return self.refusal(memory) is None

    def refusal(self, memory: Memory) -> str | None:
        """Name the filter that keeps a memory out, if one does."""
        if memory.scope not in self.scopes:
            return "outside the caller's scope"
        return self.untimely(memory) or self.replaced(memory) or self._filtered(memory)

    def is_open_to(self, memory: Memory) -> bool:
        """Tell whether a memory is the caller's to see, in its time, and not replaced."""
        return memory.scope in self.scopes and not self.untimely(memory) and not self.replaced(memory)

    @property
    def moment(self) -> float:
        """Return the time the answer is about: now, or the time asked for."""
        return self.now if self.as_of is None else self.as_of

    def untimely(self, memory: Memory) -> str | None:
        """Say why a memory is out of its time, if it is."""
        moment = self.moment
        # What says from when on it holds, or was over when it was written down, held before that.
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
        """Say what replaced a memory, if something did by the time asked for and it was not asked for."""
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
    """Say on which day something was, if that is known and any calendar has it."""
    try:
        return "" if seconds is None else f" on {datetime.fromtimestamp(seconds, UTC):%Y-%m-%d}"
    except (OverflowError, ValueError, OSError):
        return ""


@dataclass(frozen=True, slots=True)
class Expansion:
    """What a language model made of a question: one made-up answer (`hyde`), or other wordings (`variants`)."""

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
    expansion: Expansion | None = None
    syntax: Syntax = "plain"
    deadline: Deadline | None = field(default=None, compare=False)  # None: it may take as long as it takes
