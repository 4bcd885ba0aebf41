"""Sequences of hits that are made when somebody looks at them: of two hundred candidates most are never shown."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import overload

from ..columns import Lazily, MemoryId, column_of
from ..hits import Held, HeldMemories, Hit
from ..trail import Step


class Hits(Lazily[Hit]):
    """Hits made one by one; slices are made no sooner."""

    def ids(self) -> list[MemoryId]:
        """Return the ids without making a hit."""
        raise NotImplementedError

    def hit(self, index: int) -> Hit:
        """Make one hit."""
        raise NotImplementedError

    def column(self, values: Mapping[MemoryId, float]) -> Sequence[float | None]:
        """Return what a signal says of each, without making a hit."""
        return column_of(values, self.ids())

    @property
    def top_tier(self) -> int:
        """Return the highest tier among them."""
        return max((hit.tier for hit in self), default=0)

    def __iter__(self) -> Iterator[Hit]:
        return (self.hit(index) for index in range(len(self)))

    @overload
    def __getitem__(self, index: int) -> Hit: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Hit]: ...
    def __getitem__(self, index: int | slice) -> Hit | Sequence[Hit]:
        if isinstance(index, slice):
            return tuple(self.hit(place) for place in range(len(self))[index])
        return self.hit(range(len(self))[index])

    def __reduce__(self) -> tuple[type[tuple[Hit, ...]], tuple[tuple[Hit, ...]]]:
        return tuple, (tuple(self),)  # a copy is the hits, and knows nothing of the store


class Lineup(Hits):
    """Candidates in order, straight from fusion: places of a board that knows the hit of each."""

    def __init__(
        self,
        places: Sequence[int],
        ids: Sequence[MemoryId],
        scores: Sequence[float],
        origins: Sequence[object],
        memories: Mapping[MemoryId, Held],
        make: Callable[[int, Held], Hit],
    ) -> None:
        self._places = places
        self._ids = ids
        self._scores = scores
        self._origins = origins
        self._memories = memories
        self._make = make

    def ids(self) -> list[MemoryId]:
        """Return the ids without making a hit."""
        return [self._ids[place] for place in self._places]

    def held(self) -> list[Held]:
        """Return the memories without making a hit."""
        return [self._memories[self._ids[place]] for place in self._places]

    def scores(self) -> list[float]:
        """Return the scores without making a hit."""
        return [self._scores[place] for place in self._places]

    def column(self, values: Mapping[MemoryId, float]) -> Sequence[float | None]:
        """Return what a signal says of each; signals speak of candidates in the order of the board."""
        said = column_of(values, self._ids)
        return [said[place] for place in self._places]

    def origins(self) -> list[object]:
        """Return what each hit's source is."""
        return [self._origins[place] for place in self._places]

    def hit(self, index: int) -> Hit:
        """Make one hit."""
        place = self._places[index]
        return self._make(place, self._memories[self._ids[place]])

    @property
    def top_tier(self) -> int:
        """Return the highest tier among them: fusion lifts nothing."""
        return 0

    def __len__(self) -> int:
        return len(self._places)

    def chosen(self, indices: Sequence[int]) -> Lineup:
        """Return some of them, in this order."""
        places = [self._places[index] for index in indices]
        return Lineup(places, self._ids, self._scores, self._origins, self._memories, self._make)

    def fetched(self, get: Callable[[Sequence[MemoryId]], Mapping[MemoryId, Held]]) -> Lineup:
        """Return the same with memories at hand: read as their store holds them, else as `get` returns them."""
        held, ids = self._memories, self.ids()
        if isinstance(held, HeldMemories) and held.ids == self._ids:
            read: Mapping[MemoryId, Held] = dict(zip(ids, held.fetched_at(self._places), strict=True))
        else:
            read = get(ids)
            read = read if len(read) >= len(self) else {**held, **read}
        return Lineup(self._places, self._ids, self._scores, self._origins, read, self._make)


class Stepped(Hits):
    """Hits after one more step each."""

    def __init__(self, hits: Sequence[Hit], stage: str, step: Callable[[int], Step]) -> None:
        self._hits = hits
        self.stage = stage
        self._step = step

    def ids(self) -> list[MemoryId]:
        """Return the ids without making a hit."""
        return ids_of(self._hits)

    def column(self, values: Mapping[MemoryId, float]) -> Sequence[float | None]:
        """Return what a signal says of each, without making a hit."""
        return said_of(self._hits, values)

    @property
    def top_tier(self) -> int:
        """Return the highest tier among them."""
        return top_tier(self._hits)

    def hit(self, index: int) -> Hit:
        """Make one hit."""
        return self._hits[index].after(self._step(index))

    def __len__(self) -> int:
        return len(self._hits)


class Joined(Hits):
    """Several sequences of hits, one after the other."""

    def __init__(self, *parts: Sequence[Hit]) -> None:
        nested = (part.parts if isinstance(part, Joined) else (part,) for part in parts)
        self.parts: tuple[Sequence[Hit], ...] = tuple(part for part in chain.from_iterable(nested) if len(part))

    def ids(self) -> list[MemoryId]:
        """Return the ids without making a hit."""
        return [identity for part in self.parts for identity in ids_of(part)]

    def hit(self, index: int) -> Hit:
        """Make one hit."""
        for part in self.parts:
            if index < len(part):
                return part[index]
            index -= len(part)
        raise IndexError(index)

    def __len__(self) -> int:
        return sum(map(len, self.parts))


def ids_of(hits: Sequence[Hit]) -> list[MemoryId]:
    """Return the ids of hits, made or not."""
    return hits.ids() if isinstance(hits, Hits) else [hit.id for hit in hits]


def said_of(hits: Sequence[Hit], values: Mapping[MemoryId, float]) -> Sequence[float | None]:
    """Return what a signal says of each of some hits, made or not."""
    return hits.column(values) if isinstance(hits, Hits) else column_of(values, [hit.id for hit in hits])


def held_by(hits: Sequence[Hit]) -> list[Held]:
    """Return the memories of hits, made or not."""
    return hits.held() if isinstance(hits, Lineup) else [hit.held for hit in hits]


def top_tier(hits: Sequence[Hit]) -> int:
    """Return the highest tier among hits, made or not."""
    return hits.top_tier if isinstance(hits, Hits) else max((hit.tier for hit in hits), default=0)


def dropped_by(dropped: Sequence[Hit], stages: frozenset[str]) -> list[Sequence[Hit]]:
    """Return those dropped by some stages, made or not."""
    parts = dropped.parts if isinstance(dropped, Joined) else (dropped,)
    found: list[Sequence[Hit]] = []
    for part in parts:
        if isinstance(part, Stepped):
            found += [part] if part.stage in stages else []
        else:
            found.append([hit for hit in part if hit.trail[-1].stage in stages])
    return found
