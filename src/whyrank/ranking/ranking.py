"""The total order of hits, and the helpers of stages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, reduce
from itertools import chain, pairwise
from typing import Any, Literal, Protocol, overload, runtime_checkable

from ..types.columns import Lazily, MemoryId, column_of
from ..types.memory import Memory
from ..types.results import Context, Held, HeldMemories, Hit, Ranking, memory_of
from ..types.trail import Key, Step, apply


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
        """Return the source of each hit, if possible without creating a hit."""
        return [held.origin for held in self.held()]

    def behind(self) -> dict[MemoryId, tuple[int, int]]:
        """Return the memories grouped under the hits: the place of the hit, and the distance behind it."""
        return _behind([[held.id for held in hit.beside] for hit in self])

    def chosen(self, indices: Sequence[int]) -> Hits:
        """Return some of them, in this order."""
        return HitSelection(self, indices)

    def column(self, values: Mapping[MemoryId, float]) -> Sequence[float | None]:
        """Return the signal's value for each hit, without creating a hit."""
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
        return tuple, (tuple(self),)  # a copy is the hits, without a reference to the store


class Lineup(Hits):
    """Candidates in order, straight from fusion: places of a board that creates the hit of each."""

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
        """Return the signal's value for each hit; signal columns are in the order of the board."""
        said = column_of(values, self._ids)
        return [said[place] for place in self._places]

    def origins(self) -> list[object]:
        """Return the source of each hit."""
        return [self._origins[place] for place in self._places]

    def has_distinct_origins(self) -> bool:
        """Return whether all candidates have different sources, in one comparison."""
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
        """Return the same with fetched memories: as their store holds them, else as `get` returns them."""
        held, ids = self._memories, self.ids()
        if isinstance(held, HeldMemories) and held.ids == self._ids:
            read: Mapping[MemoryId, Held] = dict(zip(ids, held.fetched_at(self._places), strict=True))
        else:
            read = get(ids)
            read = read if len(read) >= len(self) else {**held, **read}
        return Lineup(self._places, self._ids, self._scores, self._origins, read, self._make)


class HitSelection(Hits):
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
        """Return the source of each chosen hit."""
        origins = origins_of(self._hits)
        return [origins[index] for index in self._indices]

    def behind(self) -> dict[MemoryId, tuple[int, int]]:
        """Return the memories grouped under the chosen hits."""
        places = {index: place for place, index in enumerate(self._indices)}
        found = behind_of(self._hits).items()
        return {identity: (places[index], far) for identity, (index, far) in found if index in places}

    def hit(self, index: int) -> Hit:
        """Make one hit."""
        return self._hits[self._indices[index]]

    def __len__(self) -> int:
        return len(self._indices)


class Grouped(HitSelection):
    """Shown hits of a grouping, each with the memories newly grouped under it."""

    def __init__(self, hits: Sequence[Hit], shown: Sequence[int], beside: Mapping[int, Sequence[int]]) -> None:
        super().__init__(hits, shown)
        self._beside = beside  # by the place among those shown

    def behind(self) -> dict[MemoryId, tuple[int, int]]:
        """Return the memories grouped under the hits: the place of the hit, and the distance behind it."""
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


class Rescored(HitSelection):
    """Hits in the order of new keys, each created with the step that gave it its key, if there is one."""

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
        """Return the source of each hit, without creating a hit."""
        return origins_of(self._hits)

    def behind(self) -> dict[MemoryId, tuple[int, int]]:
        """Return the memories grouped under the hits; a step adds none."""
        return behind_of(self._hits)

    def column(self, values: Mapping[MemoryId, float]) -> Sequence[float | None]:
        """Return the signal's value for each hit, without creating a hit."""
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
    """Return the source of each of some hits, created or not."""
    return hits.origins() if isinstance(hits, Hits) else [hit.held.origin for hit in hits]


def behind_of(hits: Sequence[Hit]) -> dict[MemoryId, tuple[int, int]]:
    """Return the memories grouped under hits, created or not: place of the hit, distance behind it."""
    return hits.behind() if isinstance(hits, Hits) else _behind([[held.id for held in hit.beside] for hit in hits])


def _behind(held: Sequence[Sequence[MemoryId]]) -> dict[MemoryId, tuple[int, int]]:
    return {identity: (place, behind) for place, others in enumerate(held) for behind, identity in enumerate(others, 1)}


def chosen(hits: Sequence[Hit], indices: Sequence[int]) -> Sequence[Hit]:
    """Return some hits in this order, created lazily."""
    return hits.chosen(indices) if isinstance(hits, Hits) else tuple(hits[index] for index in indices)


def said_of(hits: Sequence[Hit], values: Mapping[MemoryId, float]) -> Sequence[float | None]:
    """Return the signal's value for each of some hits, created or not."""
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


class Stage(Protocol):
    """A small frozen value that turns a ranking into a ranking."""

    def __call__(self, ranking: Ranking, context: Context, /) -> Ranking:
        """Return the ranking after this stage."""


Change = Literal["add", "scale"]


@runtime_checkable
class Numbering(Protocol):
    """Stage that adds or multiplies numbers computed from a memory's input and the stage's parameters."""

    @property
    def op(self) -> Change:
        """Return whether it adds or multiplies."""

    def known(self, memory: Memory, context: Context, /) -> Any:
        """Return the input from a memory, independent of the stage's parameters; None to leave it unchanged."""

    def numbers(self, known: Any, /) -> Sequence[float]:
        """Return the addends, or the factors, of a memory's score, one after the other."""


def in_order(hits: Iterable[Hit]) -> tuple[Hit, ...]:
    """Order hits by tier and score, best first; ties by content, then by id, never by insertion."""
    ordered = sorted(hits, key=lambda hit: (-hit.tier, -hit.score))
    if any(one.score == other.score and one.tier == other.tier for one, other in pairwise(ordered)):
        ordered.sort(key=lambda hit: (-hit.tier, -hit.score, hit.memory.content_key))
    return tuple(ordered)


def rescore(ranking: Ranking, step_for: Callable[[MemoryId], Step | None]) -> Ranking:
    """Give each hit a step, or none, and order the hits anew."""
    steps = [step_for(identity) for identity in ids_of(ranking.hits)]
    keys = [apply(key, step) if step else key for key, step in zip(_keys_of(ranking.hits), steps, strict=True)]
    return _reordered(ranking, keys, steps.__getitem__)


def renumber(ranking: Ranking, stage: Numbering, context: Context, told: Callable[[Any], Step]) -> Ranking:
    """Let a stage that has one number for a memory change the scores by it, and order the hits anew."""
    known = [stage.known(memory_of(held), context) for held in held_by(ranking.hits)]
    # Of many memories the same is known, and the same number comes of it.
    numbers = {one: stage.numbers(one) for one in dict.fromkeys(known) if one is not None}
    pairs = zip(_keys_of(ranking.hits), known, strict=True)
    keys = [key if one is None else (key[0], _changed(key[1], stage.op, *numbers[one])) for key, one in pairs]
    return _reordered(ranking, keys, lambda place: None if known[place] is None else told(known[place]))


def _keys_of(hits: Sequence[Hit]) -> Iterable[Key]:
    return zip(tiers_of(hits), scores_of(hits), strict=True)


def _changed(score: float, op: Change, number: float) -> float:
    """Return a score as the step will leave it."""
    return score + number if op == "add" else score * number


def _reordered(ranking: Ranking, keys: Sequence[Key], step: Callable[[int], Step | None]) -> Ranking:
    """Order hits by the keys their steps give them; hits are created lazily."""
    order = sorted(range(len(keys)), key=keys.__getitem__, reverse=True)
    if len({*keys}) < len(keys):
        held = held_by(ranking.hits)
        order.sort(key=lambda place: (-keys[place][0], -keys[place][1], memory_of(held[place]).content_key))
    return Ranking(Rescored(ranking.hits, order, keys, step), ranking.dropped, ranking.notices)


def resteps(ranking: Ranking, steps_for: Callable[[MemoryId], Sequence[Step]]) -> Ranking:
    """Add any number of steps to each hit, and reorder the hits; without steps no hit is created."""
    steps = [*map(steps_for, ids_of(ranking.hits))]
    if not any(steps):
        return ranking
    hits = [reduce(Hit.after, own, hit) for hit, own in zip(ranking.hits, steps, strict=True)]
    return Ranking(in_order(hits), ranking.dropped, ranking.notices)


def keep(ranking: Ranking, stage: str, reason: Callable[[Hit], str | None]) -> Ranking:
    """Drop the hits for which `reason` returns one, and record it in their trails."""
    kept: list[Hit] = []
    gone: list[Hit] = []
    for hit in ranking.hits:
        why = reason(hit)
        if why is None:
            kept.append(hit)
        else:
            gone.append(hit.after(Step(stage, "drop", why=why)))
    return Ranking(tuple(kept), Joined(ranking.dropped, gone), ranking.notices)


def keep_memories(ranking: Ranking, stage: str, reason: Callable[[Memory], str | None]) -> Ranking:
    """Do the same for reasons that lie in the memories alone; where none has one, no hit is made."""
    if all(reason(memory_of(held)) is None for held in held_by(ranking.hits)):
        return ranking
    return keep(ranking, stage, lambda hit: reason(hit.memory))
