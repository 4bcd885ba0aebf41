"""Memories, their sources, scopes and vectors, entries ready to be stored, and notices."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    import numpy as np
    from numpy.typing import NDArray

    from .trail import Name


MemoryId = str
Kind = Literal["chunk", "fact"]
Trust = Literal["owner", "agent", "ingested", "untrusted"]
Order = Literal["place", "created", "date", "importance", "recalls"]

KINDS: tuple[Kind, ...] = ("chunk", "fact")
ORDERS: tuple[Order, ...] = ("place", "created", "date", "importance", "recalls")
USUAL_IMPORTANCE = 3  # of 1 to 5, where none was given
TRUSTS: tuple[Trust, ...] = ("owner", "agent", "ingested", "untrusted")
CATEGORIES = ("preference", "fact", "decision", "entity", "pattern", "rule", "technical", "other")


_KIND = re.compile(r"[a-z][a-z0-9_-]*")  # of a scope
_NEXT_SEGMENT = re.compile(rf"/(?={_KIND.pattern}:\S)")


@dataclass(frozen=True, slots=True, order=True)
class Scope:
    """Owner of a memory: `global`, or `kind:value` (`user:42`), or a path of them (`team:a/agent:b`).

    A path is kept as the kind of its first segment and the rest. `Scope.of` escapes what would begin a segment.
    """

    kind: str
    name: str = ""

    def __post_init__(self) -> None:
        is_named = bool(self.name) and self.name == self.name.strip() and _KIND.fullmatch(self.kind) is not None
        if is_named == (self.kind == "global") or (self.name and not is_named):
            raise ValueError(f"{self} is not a scope; write global, user:NAME, or a path such as team:NAME/agent:NAME")

    @classmethod
    def parse(cls, text: str) -> Scope:
        """Read `global`, `user:42` or `team:a/agent:b`; raise ValueError for anything else."""
        kind, _, name = text.strip().partition(":")
        return cls(kind, name.strip())

    @classmethod
    def of(cls, *segments: tuple[str, str]) -> Scope:
        """Return the scope with these kinds and values; `%` and `/` in values are escaped as `%25` and `%2F`."""
        written = [f"{kind}:{value.replace('%', '%25').replace('/', '%2F')}" for kind, value in segments]
        return cls.parse("/".join(written))

    @property
    def segments(self) -> tuple[tuple[str, str], ...]:
        """Return the kind and the value, as written, of each segment of the path."""
        parts = (segment.partition(":") for segment in _NEXT_SEGMENT.split(str(self)))
        return tuple((kind, value) for kind, _, value in parts)

    def is_within(self, other: Scope) -> bool:
        """Return whether this is the other scope, or one below it; whole segments are compared."""
        above = other.segments
        return self.segments[: len(above)] == above

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
    last time. `metadata` is a JSON object; `subject` and `attribute` are the key of a fact (Robin's drink).
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
    metadata: Mapping[str, Any] = field(default_factory=dict, hash=False)
    subject: str = ""
    attribute: str = ""

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


def texts_in(value: object) -> Iterator[str]:
    """Yield the texts inside a JSON value, names of fields included, in their order."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for one in value:
            yield from texts_in(one)
    elif isinstance(value, dict):
        for name, one in value.items():
            yield name
            yield from texts_in(one)


UNKNOWN_READER = 0  # earlier than all that are known


@dataclass(frozen=True, slots=True)
class Entry:
    """Memory ready to be stored: analysed, named and fingerprinted outside any transaction.

    `embed_text` is `embedded_text` of the memory. `letters` is true for a language whose words are also matched by the
    letters inside them; `marks` are its date words, speaker and language; `language` is that of texts that do not show
    theirs; `reader` is the version of the analyzer that tokenized its text.
    """

    memory: Memory
    tokens: tuple[str, ...]
    names: tuple[Name, ...]
    embed_text: str
    embed_hash: str
    letters: bool = False
    marks: tuple[str, ...] = ()
    language: str = ""
    reader: int = UNKNOWN_READER


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
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict, hash=False)


_HOUR = 3_600.0
SECONDS_PER_DAY = 86_400.0

# Seconds from writing to expiry; None is for ever.
LIFETIMES: dict[str, float | None] = {
    "permanent": None,
    "durable": 90 * SECONDS_PER_DAY,
    "stable": 90 * SECONDS_PER_DAY,
    "normal": 14 * SECONDS_PER_DAY,
    "active": 14 * SECONDS_PER_DAY,
    "short": 2 * SECONDS_PER_DAY,
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


_TOLERANCE = 1e-4  # of a length that is one but for rounding; such rows stay as they are, to the bit
_SURELY = _TOLERANCE / 2  # in float32, which is off by a hundredth of that


def lone_row(rows: object, dimension: int | None) -> NDArray[np.float32] | None:
    """Return the one row of a table, if it is a vector of this dimension and beyond doubt at unit length."""
    if getattr(rows, "shape", None) == (1, dimension):
        row: NDArray[np.float32] = rows[0]  # type: ignore[index]
        return row if _is_unit(row) else None
    return None


def _is_unit(row: NDArray[np.float32]) -> bool:
    return row.dtype.char == "f" and abs(float(row.dot(row)) - 1.0) <= _SURELY


def unit_row(row: object, dimension: int | None) -> NDArray[np.float32]:
    """Return one vector at unit length; zeros stay zeros. Any other shape is a ValueError."""
    import numpy as np

    given = np.asarray(row)
    if given.shape == (dimension,) and _is_unit(given):  # as those of most questions are
        return given
    unit: NDArray[np.float32] = unit_rows(given[np.newaxis], 1, dimension)[0]
    return unit


def unit_rows(rows: object, count: int, dimension: int | None) -> NDArray[np.float32]:
    """Return `count` vectors at unit length; a row of zeros stays one. Any other shape is a ValueError."""
    import numpy as np

    found = np.asarray(rows, np.float32)
    if count == 1 and lone_row(found, dimension) is not None:
        return found
    if found.ndim != 2 or len(found) != count or (dimension is not None and found.shape[1] != dimension):
        wanted = "any number" if dimension is None else dimension
        raise ValueError(f"the embedder returned an array of {found.shape}, not of ({count}, {wanted})")
    wide = found.astype(np.float64)
    lengths = np.sqrt(np.add.reduce(wide * wide, axis=1))  # in float64 no square of a finite float32 is infinite
    if not np.isfinite(lengths).all():
        raise ValueError("the embedder returned values that are not numbers")
    odd = (np.abs(lengths - 1.0) > _TOLERANCE) & (lengths > 0.0)
    if odd.any():
        found = found.copy()
        found[odd] = (wide[odd] / lengths[odd, np.newaxis]).astype(np.float32)
    return found


def squares_of(rows: NDArray[np.float32]) -> list[float]:
    """Return the squares of the lengths of vectors: one that has no direction has none."""
    import numpy as np

    squares: list[float] = np.vecdot(rows, rows).tolist()
    return squares


def scale_rows(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Scale every row to unit length; a zero row stays zero."""
    import numpy as np

    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    scaled: NDArray[np.float32] = (vectors / np.where(lengths > 0, lengths, 1.0)).astype(np.float32)
    return scaled
