"""Memories, their sources and scopes, and notices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from .columns import MemoryId

Kind = Literal["chunk", "fact"]
Trust = Literal["owner", "agent", "ingested", "untrusted"]
Order = Literal["place", "created", "date", "importance", "recalls"]

KINDS: tuple[Kind, ...] = ("chunk", "fact")
SCOPE_KINDS = ("global", "user", "agent", "session")
ORDERS: tuple[Order, ...] = ("place", "created", "date", "importance", "recalls")
USUAL_IMPORTANCE = 3  # of 1 to 5, where none was given
TRUSTS: tuple[Trust, ...] = ("owner", "agent", "ingested", "untrusted")
CATEGORIES = ("preference", "fact", "decision", "entity", "pattern", "rule", "technical", "other")


@dataclass(frozen=True, slots=True, order=True)
class Scope:
    """Owner of a memory: `global`, or one user, agent or session."""

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
    """Return the scopes visible to a caller with these: them, and the global one."""
    return frozenset(asked) | {GLOBAL}


class Notice(NamedTuple):
    """Message of an answer about itself: a degraded run, a setting not honoured."""

    code: str
    message: str


@dataclass(frozen=True, slots=True)
class Source:
    """Origin of a memory: a file and its lines, counted from 1."""

    path: str
    start_line: int = 0
    end_line: int = 0
    content_hash: str = ""

    def __str__(self) -> str:
        return f"{self.path}:{self.start_line}-{self.end_line}" if self.start_line else self.path


@dataclass(frozen=True, slots=True)
class Memory:
    """Unit of search: a chunk of a file, a turn of a log, or a fact.

    `decay` names a class of `lifetimes`; `expires_given` means that its expiry was given and not computed from that
    class, so that recalling it does not postpone it. `recalls` is the number of times it was of use, `recalled` the
    last time.
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
        """Return whether this is one turn of a conversation."""
        return bool(self.session)

    @property
    def group(self) -> str:
        """Name the thing it counts as one source with: its file for chunks, itself for turns and facts."""
        origin = self.origin
        return f"{origin[0]}/{origin[1]}" if isinstance(origin, tuple) else origin

    @property
    def origin(self) -> tuple[Scope, str] | MemoryId:
        """Return the source as a value that is cheap to make: scope and path of the file, or the memory's id."""
        if self.source and self.kind == "chunk" and not self.session:
            return self.scope, self.source.path
        return self.id

    @property
    def content_key(self) -> tuple[str, int, str, MemoryId]:
        """Return the tie-breaking key: place and content, never the order of insertion."""
        place = self.source or Source("")
        return place.path, place.start_line, place.content_hash, self.id


class Former(NamedTuple):
    """Earlier state of a memory: the former values of the changed fields; none if damaged."""

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


_HOUR = 3_600.0
_DAY = 24 * _HOUR

# Seconds from writing to expiry; None is for ever.
LIFETIMES: dict[str, float | None] = {
    "permanent": None,
    "durable": 90 * _DAY,
    "stable": 90 * _DAY,
    "normal": 14 * _DAY,
    "active": 14 * _DAY,
    "short": 2 * _DAY,
    "session": 24 * _HOUR,
    "ephemeral": 4 * _HOUR,
    "checkpoint": 4 * _HOUR,
}

# Recalled memories are kept longer; those meant for a session or a few hours are not, however often they are read.
REFRESHED = frozenset({"durable", "stable", "normal", "active"})

NEVER = 253_402_300_799.0  # the last second of the year 9999: a retry due then never happens


def expiry(decay: str, moment: float) -> float | None:
    """Return the expiry of a memory of a class written at a moment; None for never, or for no class."""
    lifetime = LIFETIMES.get(decay)
    return None if lifetime is None else moment + lifetime
