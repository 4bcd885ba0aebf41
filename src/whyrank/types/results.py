"""Candidates as columns, runs, signals, hits, rankings, the context of a stage, results."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, reduce
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, Protocol, overload

from ..errors import StoreError
from .memory import Memory, MemoryId, Notice, Scope
from .trail import Key, Lazy, Step, Trail, apply, render

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from .query import Analysis, Query, Statistics, Verdict
    from .trail import NameMatch, TermValue, Unheld


class Candidate(NamedTuple):
    """A memory proposed by one retriever; a higher score is always better."""

    id: MemoryId
    score: float


@dataclass(eq=False, repr=False)
class Listed(Lazy[Candidate]):
    """Candidates as two columns."""

    ids: Sequence[MemoryId]
    scores: Sequence[float]

    def item(self, number: int) -> Candidate:
        """Make one candidate."""
        return Candidate(self.ids[number], self.scores[number])

    def __iter__(self) -> Iterator[Candidate]:
        return map(Candidate, self.ids, self.scores)

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(eq=False, repr=False)
class Column(Mapping[MemoryId, float]):
    """One number per memory, in the order of the requested ids; None for those without one.

    If all have one, a store may supply the same numbers as an array.
    """

    ids: Sequence[MemoryId]
    numbers: Sequence[float | None]
    array: NDArray[np.float64] | None = None

    @cached_property
    def by_id(self) -> dict[MemoryId, float]:
        """Return the numbers there are, by memory."""
        if None not in self.numbers:
            return dict(zip(self.ids, self.numbers, strict=True))  # type: ignore[arg-type]
        pairs = zip(self.ids, self.numbers, strict=True)
        return {identity: number for identity, number in pairs if number is not None}

    def __getitem__(self, identity: MemoryId) -> float:
        return self.by_id[identity]

    def __iter__(self) -> Iterator[MemoryId]:
        return iter(self.by_id)

    def __len__(self) -> int:
        return len(self.by_id)


def with_gaps(ids: Sequence[MemoryId], numbers: NDArray[np.float64]) -> Column:
    """Return a column of the numbers of an array; NaN becomes None."""
    listed: list[float] = numbers.tolist()
    if (numbers == numbers).all():
        return Column(ids, listed, numbers)
    return Column(ids, [None if number != number else number for number in listed])


def array_of(values: Mapping[MemoryId, float], ids: Sequence[MemoryId]) -> NDArray[np.float64] | None:
    """Return the numbers of these memories, in this order, as an array; None if a store gave none or one lacks its."""
    if not isinstance(values, Column) or values.array is None or values.ids == ids:
        return values.array if isinstance(values, Column) else None
    import numpy as np

    some = column_of(values, ids)
    return None if None in some else np.array(some, np.float64)


def column_of(values: Mapping[MemoryId, float], ids: Sequence[MemoryId]) -> Sequence[float | None]:
    """Return the numbers of these memories, in this order."""
    if isinstance(values, Column):
        return values.numbers if values.ids == ids else [*map(values.by_id.get, ids)]
    return [*map(values.get, ids)]


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
    vectors), `mass` the idf of all query terms (of words), `memories` the count of visible ones; None where they are
    unknown, the last also where scores are of words alone and so reach less of the mass.
    """

    name: str
    values: Mapping[MemoryId, float]
    coverage: Mapping[MemoryId, float] = field(default_factory=dict)
    terms: Mapping[MemoryId, Sequence[TermValue]] = field(default_factory=dict)
    floor: float | None = None
    mass: float | None = None
    memories: int | None = None

    def terms_of(self, identity: MemoryId) -> Sequence[TermValue]:
        """Return the contribution of each term to a candidate's value; none where the value is 0."""
        return self.terms.get(identity, ()) if self.values.get(identity) else ()


ContentKey = tuple[str, int, str, MemoryId]


class Stored:
    """Candidate of a ranking: source and place among ties; `read` fetches the memory on access.

    It equals the memory it reads, and a copy of it is that memory, so that no copy holds its store.
    """

    __slots__ = ("_read", "content_key", "id", "origin", "scope")

    def __init__(
        self,
        identity: MemoryId,
        scope: Scope,
        origin: object,
        content_key: ContentKey,
        read: Callable[[MemoryId], Memory | None],
    ) -> None:
        self.id = identity
        self.scope = scope
        self.origin = origin
        self.content_key = content_key
        self._read = read

    def read(self) -> Memory:
        """Return the memory, or a placeholder if it was deleted since it was found."""
        return self._read(self.id) or forgotten(self.id, self.scope)

    def __eq__(self, other: object) -> bool:
        return self.read() == (other.read() if isinstance(other, Stored) else other)

    def __hash__(self) -> int:
        return hash(self.read())

    def __reduce__(self) -> tuple[Callable[[Held], Memory], tuple[Memory]]:
        try:
            return memory_of, (self.read(),)
        except StoreError:
            return memory_of, (Memory(self.id, UNREADABLE, scope=self.scope),)


Held = Memory | Stored
FORGOTTEN = "(forgotten since the search)"  # the text of a memory that can no longer be read: its rank is still known
UNREADABLE = "(not read before its store was closed)"  # the same for a copy made too late


def forgotten(identity: MemoryId, scope: Scope) -> Memory:
    """Return a placeholder for a memory forgotten before it was read, so that its hit can be shown."""
    return Memory(identity, FORGOTTEN, scope=scope)


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
        return self.held if isinstance(self.held, Memory) else self.held.read()

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

    def explain(self) -> str:
        """Return the computation of this hit's score as text; the figures are the computation itself."""
        return render(self.trail)


@dataclass(eq=False, repr=False)
class Candidates(Mapping[MemoryId, Held]):
    """All candidates of a query as columns: ids, sources and content keys; `at` makes the candidate at a place."""

    ids: Sequence[MemoryId]
    origins: Sequence[object]
    content_keys: Sequence[ContentKey]
    at: Callable[[int], Held]

    @classmethod
    def of(cls, memories: Mapping[MemoryId, Held]) -> Candidates:
        """Return the candidates of a mapping: itself, if it is one."""
        if isinstance(memories, cls):
            return memories
        held = [*memories.values()]
        return cls([*memories], [one.origin for one in held], [one.content_key for one in held], held.__getitem__)

    @classmethod
    def unread(
        cls,
        ids: Sequence[MemoryId],
        scopes: Sequence[Scope],
        origins: Sequence[object],
        content_keys: Sequence[ContentKey],
        read: Callable[[MemoryId], Memory | None],
    ) -> Candidates:
        """Return candidates of a store, whose memories are read late."""
        return cls(
            ids,
            origins,
            content_keys,
            lambda place: Stored(ids[place], scopes[place], origins[place], content_keys[place], read),
        )

    @cached_property
    def places(self) -> Mapping[MemoryId, int]:
        """Return the place of each candidate in the columns."""
        return {known: place for place, known in enumerate(self.ids)}

    def __getitem__(self, identity: MemoryId) -> Held:
        return self.at(self.places[identity])

    def __iter__(self) -> Iterator[MemoryId]:
        return iter(self.ids)

    def __len__(self) -> int:
        return len(self.ids)

    def __reduce__(self) -> tuple[type[dict[MemoryId, Held]], tuple[dict[MemoryId, Held]]]:
        return dict, (dict(self),)  # a copy has no reference to the store


class Hits(Lazy[Hit]):
    """Hits as columns; a hit, with its trail, is made when it is read."""

    def __init__(
        self,
        candidates: Candidates,
        places: Sequence[int],
        tiers: Sequence[int],
        scores: Sequence[float],
        trail: Callable[[int], Trail],
        beside: Mapping[MemoryId, Sequence[int]] = MappingProxyType({}),
        stages: Sequence[str] = (),
        numbers: Sequence[int] | None = None,
    ) -> None:
        self.candidates = candidates
        self.places = places  # in the columns of the candidates
        self.tiers = tiers
        self.scores = scores
        self.beside = beside  # places in the same columns, by the id of the hit that stands for them
        self.stages = stages  # that dropped them, of dropped hits
        self._trail = trail
        self._numbers = range(len(places)) if numbers is None else numbers  # of the hits, as their trails know them

    @classmethod
    def of(cls, hits: Sequence[Hit]) -> Hits:
        """Return hits as columns."""
        if isinstance(hits, cls):
            return hits
        held, beside = [hit.held for hit in hits], dict[MemoryId, Sequence[int]]()
        for hit in hits:
            if hit.beside:
                beside[hit.id] = range(len(held), len(held) + len(hit.beside))
                held += hit.beside
        ids, origins, keys = [one.id for one in held], [one.origin for one in held], [one.content_key for one in held]
        return cls(
            Candidates(ids, origins, keys, held.__getitem__),  # no mapping: damaged rows may share an id
            range(len(hits)),
            [hit.tier for hit in hits],
            [hit.score for hit in hits],
            lambda number: hits[number].trail,
            beside,
            [hit.trail[-1].stage if hit.trail else "" for hit in hits],
        )

    @property
    def ids(self) -> list[MemoryId]:
        """Return the ids of the hits."""
        return [self.candidates.ids[place] for place in self.places]

    def pick(self, numbers: Sequence[int], beside: Mapping[MemoryId, Sequence[int]] | None = None) -> Hits:
        """Return some of the hits, in this order, and with others beside them if these are given."""
        return Hits(
            self.candidates,
            [self.places[number] for number in numbers],
            [self.tiers[number] for number in numbers],
            [self.scores[number] for number in numbers],
            self._trail,
            self.beside if beside is None else beside,
            [self.stages[number] for number in numbers] if self.stages else (),
            [self._numbers[number] for number in numbers],
        )

    def trail(self, number: int) -> Trail:
        """Return the trail of one hit."""
        return self._trail(self._numbers[number])

    def joined(self, others: Sequence[Hit]) -> Sequence[Hit]:
        """Return these hits followed by others."""
        if not len(others) or not len(self):
            return others if len(others) else self
        more = Hits.of(others)
        if more.candidates is not self.candidates:
            return (*self, *others)
        first, ours, theirs = len(self), self.trail, more.trail
        return Hits(
            self.candidates,
            [*self.places, *more.places],
            [*self.tiers, *more.tiers],
            [*self.scores, *more.scores],
            lambda number: ours(number) if number < first else theirs(number - first),
            {**self.beside, **more.beside},
            [*self.stages, *more.stages],
        )

    def item(self, number: int) -> Hit:
        """Make one hit."""
        held = self.candidates.at(self.places[number])
        beside = tuple([self.candidates.at(place) for place in self.beside.get(held.id, ())])
        return Hit(held, self.tiers[number], self.scores[number], self._trail(self._numbers[number]), beside)

    def __len__(self) -> int:
        return len(self.places)


def memory_of(held: Held) -> Memory:
    """Return a memory, reading it if necessary."""
    return held if isinstance(held, Memory) else held.read()


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


def in_order(hits: Sequence[Hit]) -> Hits:
    """Order hits by tier and score, best first; ties by content, then by id, never by insertion."""
    columns = Hits.of(hits)
    tiers, scores = columns.tiers, columns.scores
    keys: Sequence[float | Key] = scores if len({*tiers}) < 2 else [*zip(tiers, scores, strict=True)]
    order = sorted(range(len(keys)), key=keys.__getitem__, reverse=True)
    if len({*keys}) < len(keys):
        content_keys, places = columns.candidates.content_keys, columns.places
        ties = [(-tiers[number], -scores[number], content_keys[place]) for number, place in enumerate(places)]
        order.sort(key=ties.__getitem__)
    return columns.pick(order)


def rescore(ranking: Ranking, steps_for: Callable[[MemoryId], Sequence[Step]]) -> Ranking:
    """Give each hit any number of steps and re-sort; without steps the ranking is unchanged."""
    hits = Hits.of(ranking.hits)
    steps = [steps_for(identity) for identity in hits.ids]
    if not any(steps):
        return ranking
    given = zip(hits.tiers, hits.scores, strict=True)
    keys = [reduce(apply, own, key) for key, own in zip(given, steps, strict=True)]
    tiers, scores = [tier for tier, _ in keys], [score for _, score in keys]
    before, numbers = hits._trail, hits._numbers
    stepped = Hits(
        hits.candidates,
        hits.places,
        tiers,
        scores,
        lambda number: (*before(numbers[number]), *steps[number]),
        hits.beside,
    )
    return Ranking(in_order(stepped), ranking.dropped, ranking.notices)


def keep(ranking: Ranking, stage: str, reason: Callable[[Hit], str | None]) -> Ranking:
    """Drop the hits for which `reason` returns one, and record it in their trails."""
    whys = {number: why for number, hit in enumerate(ranking.hits) if (why := reason(hit)) is not None}
    return drop(ranking, stage, whys.__getitem__, [*whys]) if whys else ranking


def drop(ranking: Ranking, stage: str, why: Callable[[int], str], numbers: Sequence[int]) -> Ranking:
    """Drop hits by their numbers, each for its reason."""
    hits, before, gone = Hits.of(ranking.hits), Hits.of(ranking.dropped), {*numbers}
    kept = hits.pick([number for number in range(len(hits)) if number not in gone])

    def trail(place: int) -> Trail:
        return (*hits.trail(numbers[place]), Step(stage, "drop", why=why(numbers[place])))

    lost = hits.pick(numbers)
    dropped = Hits(lost.candidates, lost.places, lost.tiers, lost.scores, trail, lost.beside, [stage] * len(numbers))
    return Ranking(hits=kept, dropped=before.joined(dropped), notices=ranking.notices)


def split_dropped(dropped: Sequence[Hit], stages: frozenset[str]) -> Hits:
    """Return the hits that some stages dropped."""
    columns = Hits.of(dropped)
    if stages.issuperset(columns.stages):
        return columns
    return columns.pick([number for number, stage in enumerate(columns.stages) if stage in stages])
