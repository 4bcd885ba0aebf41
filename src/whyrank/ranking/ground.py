"""What does not change however a pool is ranked: its places, what breaks ties, files, equal texts, who is like whom."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ..columns import MemoryId
from ..hits import Alike, Context, Held, HeldMemories, are_open, content_keys_of, memory_of, origins_of
from .likeness import Compiled, Some, likeness_between
from .order import Numbering
from .texts import same_texts

if TYPE_CHECKING:
    from .duels import Flags, Floats, Integers


class Ground:
    """The places of a pool, or of those of it that are concerned; those of one file beside each other."""

    def __init__(self, ids: Sequence[MemoryId], context: Context) -> None:
        import numpy as np

        files: dict[object, list[MemoryId]] = {}
        for identity, origin in zip(ids, origins_of(context.memories, ids), strict=True):
            files.setdefault(origin, []).append(identity)
        self.ids = [identity for file in files.values() for identity in file]
        self.places = {identity: place for place, identity in enumerate(self.ids)}
        self.files = Groups([len(file) for file in files.values()])
        self._context = context
        self.turns: Integers = np.empty(0, np.int64)  # in which order equals are placed, once that was asked for
        self._among: tuple[Sequence[MemoryId], Integers] | None = None  # of those asked for last
        self._most_alike: dict[int, float] = {}
        self._alike: dict[int, Floats] = {}
        self._known: dict[type[object], tuple[Sequence[Any], Integers]] = {}
        self.columns: dict[Any, Any] = {}  # what signals say, kept here for all pools on this ground
        self.guarded: dict[Any, Any] = {}  # whom guards drop, who know nothing of the question

    def among(self, ids: Sequence[MemoryId]) -> Integers:
        """Return where each place stands among these memories; −1 where it does not."""
        import numpy as np

        known = self._among
        if known is None or known[0] != ids:
            listed = {identity: number for number, identity in enumerate(ids) if identity in self.places}
            known = self._among = ids, np.array([listed.get(identity, -1) for identity in self.ids], np.int64)
        return known[1]

    @cached_property
    def _held(self) -> Sequence[Held]:
        memories = self._context.memories
        if isinstance(memories, HeldMemories):
            return memories.at([*map(memories.places.__getitem__, self.ids)])
        return [*map(memories.__getitem__, self.ids)]

    @cached_property
    def _likeness(self) -> Alike:
        return likeness_between(self.ids, self._context)

    @cached_property
    def compiled(self) -> Compiled | None:
        """Return by what the kernel places those of the pool, if it can."""
        return self._likeness.compiled if isinstance(self._likeness, Some) else None

    def tell_turns(self) -> None:
        """Have it known in which order equals are placed."""
        import numpy as np

        self.turns = np.array(self.tie_breaks, np.int64)

    def alike_one(self, place: int) -> Floats:
        """Return how like a place all are."""
        row = self._alike.get(place)
        if row is None:
            row = self._alike[place] = self._likeness[place]
        return row

    def alike(self, places: Integers) -> Floats:
        """Return how like each of these places all are, a row for each."""
        import numpy as np

        rows = np.array([self.alike_one(place) for place in places.tolist()])
        return rows.reshape(len(places), len(self.ids))

    def most_alike(self, place: int) -> float:
        """Return how like a memory the other one most like it is."""
        if place not in self._most_alike:
            row = self.alike_one(place)
            self._most_alike[place] = float(max(row[:place].max(initial=0.0), row[place + 1 :].max(initial=0.0)))
        return self._most_alike[place]

    def known(self, stage: Numbering, context: Context) -> tuple[Sequence[Any], Integers]:
        """Return what a stage makes its numbers of, each once, and which of these each place has.

        What is asked changes none of it.
        """
        import numpy as np

        if type(stage) not in self._known:
            facts: dict[Any, int] = {}
            known = (stage.known(memory_of(held), context) for held in self._held)
            numbers = [facts.setdefault(fact, len(facts)) for fact in known]
            self._known[type(stage)] = [*facts], np.array(numbers, np.int64)
        return self._known[type(stage)]

    @cached_property
    def twins(self) -> Twins:
        """Return the places whose text another place has as well."""
        held = self._held
        groups = [[self.places[identity] for identity in group] for group in same_texts(held)]
        dates = [memory_of(held[place]).date or 0.0 for group in groups for place in group]
        return Twins(groups, dates, self.tie_breaks if groups else ())

    @cached_property
    def is_open(self) -> bool:
        """Tell whether no guard has anything against any of them."""
        return are_open(self._held, self._context.query.where)

    @cached_property
    def tie_breaks(self) -> list[int]:
        """Return where each place stands in the order of content, which breaks ties."""
        keys = content_keys_of(self._context.memories, self.ids)
        ranks = [0] * len(keys)
        for rank, place in enumerate(sorted(range(len(keys)), key=keys.__getitem__)):
            ranks[place] = rank
        return ranks


class Twins:
    """Places that share their text, those of one text beside each other, and which of equals stands for the others."""

    def __init__(self, groups: Sequence[Sequence[int]], dates: Sequence[float], tie_breaks: Sequence[int]) -> None:
        import numpy as np

        self.groups = Groups([len(group) for group in groups])
        self.places = np.array([place for group in groups for place in group], np.int64)
        self._dates = np.array(dates)
        self._tie_breaks = np.array(tie_breaks, np.int64)[self.places] if groups else self.places

    def turns(self, listed: Flags) -> Integers:
        """Return for each when its turn comes among its equals: the newer, then what words list, then by content."""
        import numpy as np

        turns = np.empty(len(self.places), np.int64)
        turns[np.lexsort((self._tie_breaks, ~listed, -self._dates))] = np.arange(len(turns))
        return turns


class Groups:
    """Places in groups, those of each beside each other: how many they are, and from where to where."""

    def __init__(self, sizes: Sequence[int]) -> None:
        import numpy as np

        self.sizes = np.array(sizes, np.int64)
        self.starts = self.sizes.cumsum() - self.sizes
        self.numbers = np.arange(len(sizes)).repeat(self.sizes)  # of the group of each place
        self.has_several = len(self.numbers) > len(sizes)

    def around(self, place: int) -> slice:
        """Return the places of the group of this one."""
        number = self.numbers[place]
        start = int(self.starts[number])
        return slice(start, start + int(self.sizes[number]))
