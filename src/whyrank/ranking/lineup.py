"""Sequences of hits that are made when somebody looks at them: of two hundred candidates most are never shown."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain
from typing import overload

from ..columns import Lazily, MemoryId, column_of
from ..hits import Held, HeldMemories, Hit
from ..trail import Key, Step


class Hits(Lazily[Hit]):
    """Hits made one by one; slices are made no sooner."""

    def ids(self) -> list[MemoryId]:
        """Return the ids without making a hit."""
        raise NotImplementedError

    def hit(self, index: int) -> Hit:
        """Make one hit."""
        raise NotImplementedError

    def tiers(self) -> Sequence[int]:
        """Return the tiers, where that can be without making a hit."""
        return [hit.tier for hit in self]

    def scores(self) -> Sequence[float]:
        """Return the scores, where that can be without making a hit."""
        return [hit.score for hit in self]

    def held(self) -> list[Held]:
        """Return the memories, where that can be without making a hit."""
        return [hit.held for hit in self]

    def origins(self) -> list[object]:
        """Return what each hit's source is, where that can be without making a hit."""
        return [held.origin for held in self.held()]

    def behind(self) -> dict[MemoryId, tuple[int, int]]:
        """Return what stands beside a hit: the place of the hit, and how far behind it."""
        return _behind([[held.id for held in hit.beside] for hit in self])

    def chosen(self, indices: Sequence[int]) -> Hits:
        """Return some of them, in this order."""
        return Chosen(self, indices)

    def column(self, values: Mapping[MemoryId, float]) -> Sequence[float | None]:
        """Return what a signal says of each, without making a hit."""
        return column_of(values, self.ids())

    @property
    def top_tier(self) -> int:
        """Return the highest tier among them."""
        return max(self.tiers(), default=0)

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
        return self._own_ids

    @cached_property
    def _own_ids(self) -> list[MemoryId]:
        return [self._ids[place] for place in self._places]

    def held(self) -> list[Held]:
        """Return the memories without making a hit."""
        if isinstance(self._memories, HeldMemories) and self._memories.ids == self._ids:
            return self._memories.at(self._places)
        return [self._memories[self._ids[place]] for place in self._places]

    def tiers(self) -> list[int]:
        """Return no tier for any: fusion lifts nothing."""
        return [0] * len(self._places)

    def scores(self) -> list[float]:
        """Return the scores without making a hit."""
        return [self._scores[place] for place in self._places]

    def behind(self) -> dict[MemoryId, tuple[int, int]]:
        """Return nothing: fusion puts nothing beside a hit."""
        return {}

    def column(self, values: Mapping[MemoryId, float]) -> Sequence[float | None]:
        """Return what a signal says of each; signals speak of candidates in the order of the board."""
        said = column_of(values, self._ids)
        return [said[place] for place in self._places]

    def origins(self) -> list[object]:
        """Return what each hit's source is."""
        return [self._origins[place] for place in self._places]

    def has_distinct_origins(self) -> bool:
        """Tell at once whether no candidate at all shares its source with another."""
        return len(set(self._origins)) == len(self._origins)

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
        if isinstance(indices, range) and indices.step == 1:  # a page
            places = self._places[indices.start : indices.stop]
        else:
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


class Chosen(Hits):
    """Some of other hits, in an order of their own."""

    def __init__(self, hits: Sequence[Hit], indices: Sequence[int]) -> None:
        self._hits = hits
        self._indices = indices

    def ids(self) -> list[MemoryId]:
        """Return the ids without making a hit."""
        return self._own_ids

    @cached_property
    def _own_ids(self) -> list[MemoryId]:
        ids = ids_of(self._hits)
        return [ids[index] for index in self._indices]

    def tiers(self) -> list[int]:
        """Return the tiers."""
        tiers = tiers_of(self._hits)
        return [tiers[index] for index in self._indices]

    def scores(self) -> list[float]:
        """Return the scores."""
        scores = scores_of(self._hits)
        return [scores[index] for index in self._indices]

    def held(self) -> list[Held]:
        """Return the memories."""
        held = held_by(self._hits)
        return [held[index] for index in self._indices]

    def origins(self) -> list[object]:
        """Return what the source of each is."""
        origins = origins_of(self._hits)
        return [origins[index] for index in self._indices]

    def behind(self) -> dict[MemoryId, tuple[int, int]]:
        """Return what stands beside those chosen."""
        places = {index: place for place, index in enumerate(self._indices)}
        found = behind_of(self._hits).items()
        return {identity: (places[index], far) for identity, (index, far) in found if index in places}

    def hit(self, index: int) -> Hit:
        """Make one hit."""
        return self._hits[self._indices[index]]

    def __len__(self) -> int:
        return len(self._indices)


class Grouped(Chosen):
    """The hits that are shown of some, each with the memories that stand beside it from now on."""

    def __init__(self, hits: Sequence[Hit], shown: Sequence[int], beside: Mapping[int, Sequence[int]]) -> None:
        super().__init__(hits, shown)
        self._beside = beside  # by the place among those shown

    def behind(self) -> dict[MemoryId, tuple[int, int]]:
        """Return what stands beside a hit: the place of the hit, and how far behind it."""
        before, ids = super().behind(), ids_of(self._hits)
        held: list[list[MemoryId]] = [[] for _ in self._indices]
        for identity, (place, _) in before.items():  # in order: those of one hit follow each other
            held[place].append(identity)
        for place, others in self._beside.items():
            held[place] += [ids[index] for index in others]
        return _behind(held)

    def hit(self, index: int) -> Hit:
        """Make one hit."""
        found, others = super().hit(index), self._beside.get(index)
        return found.with_also(*(self._hits[other].held for other in others)) if others else found


class Rescored(Chosen):
    """Hits in the order of new keys, each made with the step that gave it its key, or as it was without one."""

    def __init__(
        self, hits: Sequence[Hit], indices: Sequence[int], keys: Sequence[Key], step: Callable[[int], Step | None]
    ) -> None:
        super().__init__(hits, indices)
        self._keys = keys  # as the steps, by the place among the hits before them
        self._step = step

    def tiers(self) -> list[int]:
        """Return the new tiers without making a hit."""
        return [self._keys[index][0] for index in self._indices]

    def scores(self) -> list[float]:
        """Return the new scores without making a hit."""
        return [self._keys[index][1] for index in self._indices]

    def hit(self, index: int) -> Hit:
        """Make one hit."""
        found, step = super().hit(index), self._step(self._indices[index])
        return found if step is None else found.after(step)


class Stepped(Hits):
    """Hits after one more step each, of a kind that leaves the tier as it is."""

    def __init__(self, hits: Sequence[Hit], stage: str, step: Callable[[int], Step]) -> None:
        self._hits = hits
        self.stage = stage
        self._step = step

    def ids(self) -> list[MemoryId]:
        """Return the ids without making a hit."""
        return ids_of(self._hits)

    def tiers(self) -> Sequence[int]:
        """Return the tiers without making a hit."""
        return tiers_of(self._hits)

    def held(self) -> list[Held]:
        """Return the memories without making a hit."""
        return held_by(self._hits)

    def origins(self) -> list[object]:
        """Return what each hit's source is, without making a hit."""
        return origins_of(self._hits)

    def behind(self) -> dict[MemoryId, tuple[int, int]]:
        """Return what stands beside a hit: a step puts nothing there."""
        return behind_of(self._hits)

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


def tiers_of(hits: Sequence[Hit]) -> Sequence[int]:
    """Return the tiers of hits, made or not."""
    return hits.tiers() if isinstance(hits, Hits) else [hit.tier for hit in hits]


def scores_of(hits: Sequence[Hit]) -> Sequence[float]:
    """Return the scores of hits, made or not."""
    return hits.scores() if isinstance(hits, Hits) else [hit.score for hit in hits]


def origins_of(hits: Sequence[Hit]) -> list[object]:
    """Return what the source of each of some hits is, made or not."""
    return hits.origins() if isinstance(hits, Hits) else [hit.held.origin for hit in hits]


def behind_of(hits: Sequence[Hit]) -> dict[MemoryId, tuple[int, int]]:
    """Return what stands beside hits, made or not: the place of the hit, and how far behind it."""
    return hits.behind() if isinstance(hits, Hits) else _behind([[held.id for held in hit.beside] for hit in hits])


def _behind(held: Sequence[Sequence[MemoryId]]) -> dict[MemoryId, tuple[int, int]]:
    return {identity: (place, behind) for place, others in enumerate(held) for behind, identity in enumerate(others, 1)}


def chosen(hits: Sequence[Hit], indices: Sequence[int]) -> Sequence[Hit]:
    """Return some hits in this order, made no sooner than somebody looks at them."""
    return hits.chosen(indices) if isinstance(hits, Hits) else tuple(hits[index] for index in indices)


def said_of(hits: Sequence[Hit], values: Mapping[MemoryId, float]) -> Sequence[float | None]:
    """Return what a signal says of each of some hits, made or not."""
    return hits.column(values) if isinstance(hits, Hits) else column_of(values, [hit.id for hit in hits])


def held_by(hits: Sequence[Hit]) -> list[Held]:
    """Return the memories of hits, made or not."""
    return hits.held() if isinstance(hits, Hits) else [hit.held for hit in hits]


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
