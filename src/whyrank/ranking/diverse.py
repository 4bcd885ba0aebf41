"""Which of two memories diversity places first: the sums of the whole pool, without making a hit of every candidate.

A recipe that ends in MMR compares everything with everything, so no few memories tell how two of them stand. But the
picks need numbers alone: what is fused, what the stages before make of it, and how like each other the memories are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from typing import TYPE_CHECKING

from ..columns import MemoryId
from ..hits import Alike, Context, Hit, Ranking, content_keys_of, origins_of
from ..trail import Trail, apply
from ..types import Run
from .diversity import MMR, relevance_of
from .fusion import Board, Fuse, SignalColumn, Vote, listed_by, share_out
from .likeness import likeness_between
from .lineup import ids_of
from .normalisers import Normaliser
from .order import Stage
from .recipes import Recipe
from .stages import Evidence, GroupBySource, InScope, NameFirst, NotExpired, Recency, Superseded

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from .diversity import Floats

# What these do to a hit depends neither on the others nor on the score it has been given so far.
_BY_ITSELF = (Evidence, InScope, NameFirst, NotExpired, Recency, Superseded)


def ends_in_diversity(recipe: Recipe) -> bool:
    """Tell whether diversity has the last word, after stages that see each memory by itself and a grouping at most."""
    *others, last = recipe.stages or (None,)
    if others and isinstance(others[-1], GroupBySource):
        others.pop()
    return isinstance(last, MMR) and all(isinstance(stage, _BY_ITSELF) for stage in others)


class Ground:
    """What does not change however a pool is ranked: its places, what breaks ties, its files, and who is like whom."""

    def __init__(self, runs: Sequence[Run], context: Context) -> None:
        self.ids = sorted(listed_by(runs))  # as they are compared
        self.places = {identity: place for place, identity in enumerate(self.ids)}
        self._context = context
        self._most_alike: dict[int, float] = {}

    @cached_property
    def likeness(self) -> Alike:
        """Return how like each other the memories are."""
        return likeness_between(self.ids, self._context)

    def most_alike(self, place: int) -> float:
        """Return how like a memory the one most like it is."""
        if place not in self._most_alike:
            row = self.likeness[place]
            self._most_alike[place] = float(max(row[:place].max(initial=0.0), row[place + 1 :].max(initial=0.0)))
        return self._most_alike[place]

    @cached_property
    def tie_breaks(self) -> list[int]:
        """Return where each place stands in the order of content, which breaks ties."""
        keys = content_keys_of(self._context.memories, self.ids)
        ranks = [0] * len(keys)
        for rank, place in enumerate(sorted(range(len(keys)), key=keys.__getitem__)):
            ranks[place] = rank
        return ranks

    @cached_property
    def files(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the places of the files that have several, file by file, and the number of the file of each."""
        import numpy as np

        origins = origins_of(self._context.memories, self.ids)
        held = Counter(origins)
        numbers = {origin: number for number, origin in enumerate(held) if held[origin] > 1}
        pairs = sorted((numbers[origin], place) for place, origin in enumerate(origins) if origin in numbers)
        both = np.array(pairs, np.int64).reshape(-1, 2)
        return both[:, 1].copy(), both[:, 0].copy()


@dataclass(frozen=True)
class _Field:
    """What diversity chooses from: the places that are shown, with their keys, and who stands behind which of them."""

    shown: NDArray[np.bool_]
    tiers: NDArray[np.int64]
    relevance: Floats
    hidden: Mapping[int, tuple[int, int]]  # the place of the chunk that stands for its file, and how far behind it

    def standing(self, place: int | None) -> tuple[int, int] | None:
        """Return which of those shown a place is or stands behind, and how far; None if it does not stand."""
        if place is None:
            return None
        return (place, 0) if self.shown[place] else self.hidden.get(place)


class Diverse:
    """Looks at one pool through recipes that end in diversity and differ in a number.

    The runs may list less than the ground holds: what they do not list does not stand.
    """

    def __init__(self, runs: Sequence[Run], context: Context, ground: Ground | None = None) -> None:
        self._runs = runs
        self._context = context
        self._ground = ground or Ground(runs, context)
        self._ids = listed_by(runs)
        self._columns: dict[tuple[str, Normaliser], tuple[SignalColumn, Floats | None]] = {}
        self._seen: tuple[Fuse, Sequence[Stage], _Field] | None = None
        self._touched: dict[int, Hit] | None = None
        self._stepped: tuple[Sequence[Stage], dict[int, Trail | None]] | None = None

    def is_above(self, recipe: Recipe, one: MemoryId, other: MemoryId, by: float = 0.0) -> bool:
        """Tell whether one memory stands and the other stands below it, by more than that score, or not at all."""
        *before, diversity = recipe.stages
        field = self._field(recipe.fusion, before)
        first, second = (field.standing(self._ground.places.get(identity)) for identity in (one, other))
        if first is None or second is None or first[0] == second[0]:
            return first is not None and (second is None or first < second)
        if not isinstance(diversity, MMR):
            raise TypeError(f"{diversity!r} is no diversity")
        return self._is_first(diversity, field, first[0], second[0], by)

    def _is_first(self, diversity: MMR, field: _Field, one: int, other: int, by: float) -> bool:
        """Tell whether diversity places one of two that are shown before the other, and clearly so.

        Gains only fall, and not below what being most like somebody leaves: often that tells before either is placed.
        """
        import numpy as np

        ground, tier = self._ground, field.tiers[one]
        if tier != field.tiers[other]:
            return bool(tier > field.tiers[other])
        worth = np.where(field.shown, diversity.lambda_ * field.relevance, -np.inf)
        least, least_other = (
            float(worth[place]) - (1 - diversity.lambda_) * ground.most_alike(place) for place in (one, other)
        )
        is_placed, gains = False, worth
        picks = diversity.placed(field.tiers, worth, ground.likeness, lambda place: ground.tie_breaks[place])
        while least - gains[other] <= by:
            if not is_placed and gains[one] < least_other:
                return False
            place, gain, now = next(picks)
            gains = now if field.tiers[place] == tier else worth  # above their tier nobody asks what they gain
            if place == other:
                return is_placed and least - gain > by
            if place == one:
                is_placed, least = True, gain
                if not by:
                    return True
        return True

    def _field(self, fusion: Fuse, stages: Sequence[Stage]) -> _Field:
        """Return what the stages before leave; most numbers change only one of fusion, stages and diversity."""
        if self._seen is None or self._seen[0] != fusion or self._seen[1] != stages:
            self._seen = fusion, stages, self._made(fusion, stages)
        return self._seen[2]

    def _made(self, fusion: Fuse, stages: Sequence[Stage]) -> _Field:
        """Give every place its key, by the sums of fusion and the steps of the stages, and choose who is shown."""
        import numpy as np

        count = len(self._ground.ids)
        scores, tiers, shown = np.zeros(count), np.zeros(count, np.int64), np.zeros(count, np.bool_)
        scores[self._listed], shown[self._listed] = self._sums(fusion), True
        for place, steps in self._steps(fusion, stages).items():
            if steps is None:
                shown[place] = False
            elif steps:
                tiers[place], scores[place] = reduce(apply, steps, (0, float(scores[place])))
        hidden: dict[int, tuple[int, int]] = {}
        if stages and isinstance(stages[-1], GroupBySource) and len(self._ground.files[0]):
            hidden = self._hidden(tiers, scores, shown, stages[-1].max_per_file)
            shown[[*hidden]] = False
        relevance = np.zeros(count)
        if shown.any():
            relevance[shown] = relevance_of(tiers[shown], scores[shown])
        return _Field(shown, tiers, relevance, hidden)

    @cached_property
    def _listed(self) -> NDArray[np.int64] | slice:
        """Return the places of what the runs list, in their order."""
        import numpy as np

        places = self._ground.places
        whole = self._ids == self._ground.ids
        return slice(None) if whole else np.array([places[identity] for identity in self._ids], np.int64)

    def _sums(self, fusion: Fuse) -> Floats:
        """Add up from left to right what each signal gives each place, as fusion does."""
        import numpy as np

        votes = fusion.live(self._runs)
        columns = [self._column(fusion, vote) for vote in votes]
        numbers = [values for _, values in columns if values is not None]
        if len(numbers) < len(columns):  # what is unknown of a place leaves its weight to the others
            weighed = [replace(column, weight=v.weight or 0.0) for (column, _), v in zip(columns, votes, strict=True)]
            return np.array(Board(weighed, fusion.absent, whole=fusion.whole).scores(len(self._ids)), np.float64)
        scores = np.zeros(len(self._ids))
        weights = share_out([vote.weight or 0.0 for vote in votes], fusion.whole)
        for values, weight in zip(numbers, weights, strict=True):
            scores += weight * values
        return scores

    def _column(self, fusion: Fuse, vote: Vote) -> tuple[SignalColumn, Floats | None]:
        """Return what a signal says of the places, and the same as numbers if it knows all of them."""
        import numpy as np

        known = self._columns.get((vote.signal, vote.normaliser))
        if known is None:
            column = fusion.column(vote, self._runs, self._context, self._ids)
            numbers = None if None in column.normalised else np.array(column.normalised, np.float64)
            known = self._columns[vote.signal, vote.normaliser] = column, numbers
        return known

    def _steps(self, fusion: Fuse, stages: Sequence[Stage]) -> dict[int, Trail | None]:
        """Return what the stages do to each place they touch; None where they drop it."""
        alone = [stage for stage in stages if not isinstance(stage, GroupBySource)]
        if self._stepped is None or self._stepped[0] != alone:
            if self._touched is None:
                self._touched = self._hits(fusion, by_name=all(isinstance(stage, NameFirst) for stage in alone))
            ranking = Ranking(tuple(self._touched.values()))
            after = reduce(lambda ranking, stage: stage(ranking, self._context), alone, ranking)
            places = self._ground.places
            steps: dict[int, Trail | None] = {places[hit.id]: hit.trail[1:] for hit in after.hits}
            self._stepped = alone, steps | {places[key]: None for key in ids_of(after.dropped)}
        return self._stepped[1]

    def _hits(self, fusion: Fuse, by_name: bool) -> dict[int, Hit]:
        """Return the fused hits that the stages look at: all, or only those whose names matter."""
        names = self._context.names
        places = {key: self._ground.places[key] for key in self._ids if not by_name or key in names}
        if not places:
            return {}
        hits = fusion(self._runs, self._context).hits
        return {places[key]: hits[rank] for rank, key in enumerate(ids_of(hits)) if key in places}

    def _hidden(
        self, tiers: NDArray[np.int64], scores: Floats, stands: NDArray[np.bool_], most: int
    ) -> dict[int, tuple[int, int]]:
        """Return the places behind the best of their file, the best of it, and how far behind those shown they are."""
        import numpy as np

        places, files = self._ground.files
        if not stands.all():
            places, files = places[stands[places]], files[stands[places]]
        keys = (-scores[places], -tiers[places], files)
        order = np.lexsort(keys)
        if _has_equals([key[order] for key in keys]):
            order = np.lexsort((np.array(self._ground.tie_breaks)[places], *keys))
        ordered = places[order]
        starts = files.searchsorted(files)  # files rise, so this is where the one of each begins
        behind = np.arange(1 - most, len(files) + 1 - most) - starts
        late = behind > 0
        best = ordered[starts[late]].tolist()
        return dict(zip(ordered[late].tolist(), zip(best, behind[late].tolist(), strict=True), strict=True))


def _has_equals(keys: Sequence[NDArray[np.generic]]) -> bool:
    """Tell whether two neighbours have every key in common."""
    import numpy as np

    return bool(np.logical_and.reduce([key[1:] == key[:-1] for key in keys]).any())
