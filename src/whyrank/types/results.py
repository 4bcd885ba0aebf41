"""Hits, rankings, the context of a stage, and results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, overload

from .columns import MemoryId
from .memory import Memory, Notice, Scope
from .names import NameMatch, Unheld
from .query import Analysis, Query, Signal, Statistics, Verdict, Where
from .trail import Key, Step, Trail, apply, render

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


ContentKey = tuple[str, int, str, MemoryId]


class Unread(Protocol):
    """Memory as its store holds it, created lazily: most candidates are never read."""

    @property
    def id(self) -> MemoryId:
        """Return the memory's id."""

    @property
    def origin(self) -> object:
        """Return the source it counts for, as a value that can be compared."""

    def read(self) -> Memory:
        """Return the memory."""


class Awaited:
    """Lazily created memory: it equals the memory it creates, and a copy of it is that memory."""

    __slots__ = ()

    def read(self) -> Memory:
        """Return the memory."""
        raise NotImplementedError

    def __eq__(self, other: object) -> bool:
        return self.read() == (other.read() if isinstance(other, Awaited) else other)

    def __hash__(self) -> int:
        return hash(self.read())

    def __reduce__(self) -> tuple[Callable[[Held], Memory], tuple[Memory]]:
        return memory_of, (self.read(),)


class Fetched(Awaited):
    """Memory with a fetched row, so that it does not change; its fields are read from the row."""

    __slots__ = ("_altered", "_made", "_row", "id", "is_mended", "is_timeless", "opening")

    def __init__(self, row: tuple[Any, ...], is_timeless: bool = True, is_mended: bool = False) -> None:
        self.id: MemoryId = row[0]
        self._row = row
        self.is_timeless = is_timeless  # nothing limits when it is true, and nothing has replaced it
        self.is_mended = is_mended  # some of it could not be read and is blank
        self._made: Memory | None = None
        self._altered: bool | None = None
        self.opening: str | None = None  # how its text begins, once it has been read

    @property
    def scope(self) -> str:
        """Return the scope of the memory as text."""
        raise NotImplementedError

    @property
    def text(self) -> str:
        """Return the text of the memory."""
        raise NotImplementedError

    @property
    def content_key(self) -> ContentKey:
        """Return the tie-breaking key."""
        raise NotImplementedError

    def make(self) -> Memory:
        """Make the memory of its row."""
        raise NotImplementedError

    def differs_from_stored(self) -> bool:
        """Return whether its text, or a field, differs from the stored checksums."""
        raise NotImplementedError

    @property
    def is_altered(self) -> bool:
        """Return the same, cached: only shown memories are checked."""
        if self._altered is None:
            self._altered = self.differs_from_stored()
        return self._altered

    @property
    def origin(self) -> object:
        """Return the source it counts for."""
        return self.read().origin

    def read(self) -> Memory:
        """Return the memory."""
        if self._made is None:
            self._made = self.make()
        return self._made

    def __repr__(self) -> str:
        return repr(self.read())


Held = Memory | Unread
FORGOTTEN = "(forgotten since the search)"  # the text of a memory that can no longer be read: its rank is still known


def forgotten(identity: MemoryId, scope: Scope) -> Memory:
    """Return a placeholder for a memory forgotten before it was read, so that its hit can be shown."""
    return Memory(identity, FORGOTTEN, scope=scope)


UNREADABLE = "(not read before its store was closed)"  # the same for a copy made too late


def unreadable(identity: MemoryId, scope: Scope) -> Memory:
    """Return a placeholder for a memory in a copy made after its store became unavailable."""
    return Memory(identity, UNREADABLE, scope=scope)


class Hit(NamedTuple):
    """A memory on its way through ranking, with its key and its trail."""

    held: Held
    tier: int = 0
    score: float = 0.0
    trail: Trail = ()
    beside: tuple[Held, ...] = ()
    confidence: float | None = None

    @property
    def id(self) -> MemoryId:
        """Return the memory's id."""
        return self.held.id

    @property
    def memory(self) -> Memory:
        """Return the memory; if not shown it is read now, or a placeholder if forgotten since the search."""
        return memory_of(self.held)

    @property
    def also(self) -> tuple[Memory, ...]:
        """Return other chunks of the same file that answer the query."""
        return tuple(memory_of(held) for held in self.beside)

    @property
    def key(self) -> Key:
        """Return the sort key of the hit, before ties are broken."""
        return self.tier, self.score

    def after(self, step: Step) -> Hit:
        """Apply a step: the only way a key ever changes."""
        tier, score = apply((self.tier, self.score), step)
        return Hit(self.held, tier, score, (*self.trail, step), self.beside, self.confidence)

    def with_also(self, *others: Held) -> Hit:
        """Return the hit with other chunks of the same file under it."""
        return self._replace(beside=(*self.beside, *others))

    def explain(self) -> str:
        """Return the computation of this hit's score as text; the figures are the computation itself."""
        return render(self.trail)


class HeldMemories(Mapping[MemoryId, Held]):
    """Memories as their store holds them, in the order of the requested ids; each created lazily."""

    def __init__(self, ids: Sequence[MemoryId], origins: Sequence[object], make: Callable[[int], Held]) -> None:
        self.ids = ids
        self.origins = origins
        self._make = make
        self._places: dict[MemoryId, int] | None = None

    def __getitem__(self, identity: MemoryId) -> Held:
        return self._make(self.places[identity])

    @property
    def places(self) -> Mapping[MemoryId, int]:
        """Return the position of each memory in the order."""
        if self._places is None:
            self._places = {known: place for place, known in enumerate(self.ids)}
        return self._places

    def fetched(self, ids: Sequence[MemoryId]) -> Mapping[MemoryId, Held]:
        """Return some of them, fetched, so that later changes of the store do not affect them."""
        return {identity: memory_of(self[identity]) for identity in ids}

    def fetched_at(self, places: Sequence[int]) -> Sequence[Held]:
        """Return those at some places of the order, fetched."""
        return [memory_of(self._make(place)) for place in places]

    def at(self, places: Sequence[int]) -> list[Held]:
        """Return those at some places of the order."""
        return [*map(self._make, places)]

    def at_hand(self) -> HeldMemories:
        """Return all of them fetched in one batch, for callers that read every one."""
        return HeldMemories(self.ids, self.origins, self.fetched_at(range(len(self.ids))).__getitem__)

    def content_keys(self, ids: Sequence[MemoryId]) -> Sequence[ContentKey]:
        """Return the tie-breaking keys of some of them."""
        return [*map(_content_key, self.at([*map(self.places.__getitem__, ids)]))]

    def __iter__(self) -> Iterator[MemoryId]:
        return iter(self.ids)

    def __len__(self) -> int:
        return len(self.ids)

    def __reduce__(self) -> tuple[type[dict[MemoryId, Held]], tuple[dict[MemoryId, Held]]]:
        return dict, (dict(self.fetched(self.ids)),)  # a copy has no reference to the store


def origins_of(memories: Mapping[MemoryId, Held], ids: Sequence[MemoryId]) -> Sequence[object]:
    """Return the source each of these memories counts for."""
    if isinstance(memories, HeldMemories):
        return memories.origins if memories.ids == ids else [memories.origins[memories.places[key]] for key in ids]
    return [memories[identity].origin for identity in ids]


def content_keys_of(memories: Mapping[MemoryId, Held], ids: Sequence[MemoryId]) -> Sequence[ContentKey]:
    """Return the tie-breaking keys of these memories."""
    if isinstance(memories, HeldMemories):
        return memories.content_keys(ids)
    return [_content_key(memories[identity]) for identity in ids]


def _content_key(held: Held) -> ContentKey:
    return held.content_key if isinstance(held, (Memory, Fetched)) else held.read().content_key


def at_hand(memories: Mapping[MemoryId, Held]) -> Mapping[MemoryId, Held]:
    """Return all memories fetched in one batch, for callers that read every one."""
    if isinstance(memories, HeldMemories):
        return memories.at_hand()
    return {identity: memory_of(held) for identity, held in memories.items()}


def memory_of(held: Held) -> Memory:
    """Return a memory, reading it if necessary."""
    return held if isinstance(held, Memory) else held.read()


def text_of(held: Held) -> str:
    """Return the text of a memory, without creating it if its row is fetched."""
    return held.text if isinstance(held, (Memory, Fetched)) else held.read().text


def are_open(memories: Iterable[Held], where: Where) -> bool:
    """Return whether all memories, created or not, are visible to the caller, valid, and not replaced."""
    scopes = {str(scope) for scope in where.scopes} if where.as_of is None else set()
    return all(
        (isinstance(held, Fetched) and held.is_timeless and held.scope in scopes) or where.is_open_to(memory_of(held))
        for held in memories
    )


@dataclass(frozen=True, slots=True)
class Ranking:
    """Ordered hits, and those dropped with the reason at the end of their trail."""

    hits: Sequence[Hit] = ()
    dropped: Sequence[Hit] = ()
    notices: tuple[Notice, ...] = ()

    def __iter__(self) -> Iterator[Hit]:
        return iter(self.hits)


@dataclass(frozen=True)
class Labels:
    """The folded words of a memory's name, slug and summary, as the words of a query are made.

    `body` holds those of the text, of a memory without a summary and where a stage reads them.
    """

    name: tuple[str, ...] = ()
    slug: tuple[str, ...] = ()
    summary: tuple[str, ...] = ()
    body: tuple[str, ...] = ()

    @cached_property
    def spelled(self) -> str:
        """Return all but the body with a space before each, so that a word that begins one is found at once."""
        return " ".join(("", *self.name, *self.slug, *self.summary))


class Alike(Protocol):
    """Pairwise similarities of some memories, from 0 to 1."""

    def __getitem__(self, place: int, /) -> NDArray[np.float64]:
        """Return the similarities of all of them to one, by its place."""

    def square(self) -> NDArray[np.float64]:
        """Return the rows of all."""


class Likeness(Protocol):
    """Source of pairwise similarities of memories."""

    def between(self, ids: Sequence[MemoryId]) -> Alike:
        """Return the pairwise similarities of these memories."""


@dataclass(frozen=True, slots=True)
class Context:
    """Input of the stages, gathered before ranking starts.

    Likeness is gathered only for recipes with a stage that compares memories, opinions (a reranker's scores of the
    memories it has read) only for those with a reranker, labels and the lengths of chats (the last position of each
    session) only for those with a stage that reads them. `languages` are those of candidates that show another language
    than the query does.
    """

    query: Query
    analysis: Analysis
    memories: Mapping[MemoryId, Held]
    signals: Mapping[str, Signal] = field(default_factory=dict)
    names: Mapping[MemoryId, NameMatch] = field(default_factory=dict)
    statistics: Statistics | None = None
    likeness: Likeness | None = None
    opinions: Mapping[MemoryId, float] = field(default_factory=dict)
    labels: Mapping[MemoryId, Labels] = field(default_factory=dict)
    chats: Mapping[tuple[Scope, str], int] = field(default_factory=dict)
    least: Mapping[str, float] = field(default_factory=dict)  # calibrated: below it a signal alone is no evidence
    unheld: Unheld | None = None  # codes of the query that no memory holds
    languages: Mapping[MemoryId, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Results(Sequence[Hit]):
    """Answer to one query: hits, dropped hits, verdict and notices."""

    query: str
    hits: tuple[Hit, ...]
    verdict: Verdict
    recipe: str
    analysis: Analysis
    dropped: Sequence[Hit] = ()
    notices: tuple[Notice, ...] = ()
    timings: Mapping[str, float] = field(default_factory=dict)
    evidence: float = 0.0  # the best cosine and the best coverage, added up: the basis of the verdict

    @overload
    def __getitem__(self, index: int) -> Hit: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Hit, ...]: ...
    def __getitem__(self, index: int | slice) -> Hit | tuple[Hit, ...]:
        return self.hits[index]

    def __len__(self) -> int:
        return len(self.hits)
