"""Diversity: of results that say the same, the first counts and the rest step back."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple, Protocol

from ..columns import MemoryId
from ..errors import ConfigError
from ..hits import Alike, ContentKey, Context, Hit, Ranking, content_keys_of
from ..trail import Step
from .likeness import Compiled, Some, likeness_between
from .lineup import Hits, Stepped, behind_of, chosen, ids_of, scores_of, tiers_of
from .stages import WINDOW_LIFT

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Integers = NDArray[np.int64]


_AT_LEAST = 16  # are placed at once: more than most look at


class _Rows(Protocol):
    def __getitem__(self, place: int, /) -> Floats: ...


TieBreak = tuple[str, int, str, MemoryId] | int


@dataclass(frozen=True)
class MMR:
    """Maximal marginal relevance: λ · relevance − (1 − λ) · likeness to the most similar hit placed before it.

    Carbonell and Goldstein 1998. Relevance is the score, scaled from the worst to the best of the pool; the gain
    becomes the score. No gain is above the one before it, so the order stays score order. Tiers stay above tiers.
    """

    lambda_: float = 0.7
    reads_likeness = True

    def __post_init__(self) -> None:
        if not 0 <= self.lambda_ <= 1:
            raise ConfigError(f"lambda_ is {self.lambda_}", "give a number from 0 (diversity) to 1 (relevance)")

    def __call__(self, ranking: Ranking, context: Context) -> Ranking:
        """Give every hit its gain, over the whole pool, so that the limit changes nothing."""
        hits, ids = ranking.hits, ids_of(ranking.hits)
        if not ids:
            return ranking
        return Ranking(Placed(_Placing(self, hits, ids, context)), ranking.dropped, ranking.notices)

    def as_far_as(self, ranking: Ranking, context: Context, wanted: Collection[MemoryId]) -> Ranking:
        """Place hits until all that are wanted stand: what comes later moves none before it."""
        if not ranking.hits:
            return ranking
        placing = _Placing(self, ranking.hits, ids_of(ranking.hits), context)
        placed = placing.until(_standing_for(ranking.hits, wanted))
        return Ranking(placing.head(placed), ranking.dropped, ranking.notices)

    def placed(
        self,
        tiers: NDArray[np.int64],
        worth: Floats,
        likeness: _Rows,
        tie_break: Callable[[int], TieBreak],
    ) -> Iterator[Pick]:
        """Place the best, see how like it the others are, place the best of these, and so on as long as asked.

        A worth of minus infinity is never placed.
        """
        import numpy as np

        others = 1 - self.lambda_
        placed: list[int] = []
        so_far, row = worth, np.empty(len(worth))
        for tier in sorted({*tiers.tolist()}, reverse=True):
            if placed:
                so_far = worth - others * np.max([likeness[place] for place in placed], axis=0)
            gains = np.where(tiers == tier, so_far, -np.inf)
            backwards = gains[::-1]
            while True:
                best = int(gains.argmax())
                gain = float(gains[best])
                if gain == -np.inf:
                    break
                if best != len(gains) - 1 - int(backwards.argmax()):
                    best = min(np.flatnonzero(gains == gain).tolist(), key=tie_break)
                yield Pick(best, gain)
                placed.append(best)
                np.subtract(worth, np.multiply(likeness[best], others, out=row), out=row)
                gains[best] = -np.inf
                np.minimum(gains, row, out=gains)


def relevance_of(tiers: NDArray[np.int64], scores: Floats) -> Floats:
    """Scale scores from the worst to the best; those a reranker gave are on a scale of their own."""
    import numpy as np

    windows = tiers // WINDOW_LIFT
    if not windows.any():
        return _scaled(scores)
    scaled = np.ones(len(scores))
    for window in np.unique(windows):
        inside = windows == window
        scaled[inside] = _scaled(scores[inside])
    return scaled


def _scaled(scores: Floats) -> Floats:
    import numpy as np

    low, high = scores.min(), scores.max()
    half = high / 2 - low / 2  # half the reach, which cannot overflow, and is nothing between the smallest numbers
    if not half > 0:
        return np.ones(len(scores))
    shares: Floats = np.minimum(np.maximum((scores / 2 - low / 2) / half, 0.0), 1.0)
    return shares


def _standing_for(hits: Sequence[Hit], wanted: Collection[MemoryId]) -> set[int]:
    """Return the places of these memories, or of the chunk that stands for their file."""
    shown = {place for place, identity in enumerate(ids_of(hits)) if identity in wanted}
    return shown | {place for identity, (place, _) in behind_of(hits).items() if identity in wanted}


class Pick(NamedTuple):
    """Who is placed next, with what gain."""

    place: int
    gain: float


class _Placing:
    """Hits on their way to their places: as many are placed as somebody has asked for, which is rarely all of them."""

    def __init__(self, stage: MMR, hits: Sequence[Hit], ids: Sequence[MemoryId], context: Context) -> None:
        import numpy as np

        self.hits = hits
        self.tiers = np.array(tiers_of(hits), np.int64)
        self._stage = stage
        self.ids = ids
        self._memories = context.memories
        self._picks: list[Pick] = []
        self._alike = likeness_between(ids, context)
        self._relevance = relevance_of(self.tiers, np.array(scores_of(hits), np.float64))

    def to(self, count: int) -> list[Pick]:
        """Place as many as these, if there are so many, and return all that are placed.

        Whoever asks for more begins anew, so that threads that look at one answer do not disturb each other.
        """
        placed = self._picks
        if len(placed) < min(count, len(self.ids)):
            placed = self._picks = self._placed(max(count, _AT_LEAST, 2 * len(placed)), set())
        return placed

    def until(self, wanted: set[int]) -> list[Pick]:
        """Place hits as long as one that is wanted is still to come."""
        self._picks = self._placed(len(self.ids), wanted) if wanted else []
        return self._picks

    def _placed(self, most: int, wanted: set[int]) -> list[Pick]:
        """Place as many as these, or until all have their place that are wanted, if some are."""
        worth = self._stage.lambda_ * self._relevance
        compiled = self._alike.compiled if isinstance(self._alike, Some) else None
        if compiled is not None:
            return self._compiled(compiled, worth, most, wanted)
        placed: list[Pick] = []
        picks = self._stage.placed(self.tiers, worth, self._alike, lambda place: self._content_keys[place])
        for pick in islice(picks, most):
            placed.append(pick)
            if wanted and not (wanted := wanted - {pick.place}):
                break
        return placed

    def _compiled(self, compiled: Compiled, worth: Floats, most: int, wanted: set[int]) -> list[Pick]:
        """Do so in the kernel, which asks for turns where some are equal."""
        import numpy as np

        kernel, compared, members = compiled
        order, gains, is_wanted = np.empty(len(worth), np.int64), np.empty(len(worth)), np.zeros(len(worth), np.bool_)
        is_wanted[[*wanted]] = True
        turns, others = np.empty(0, np.int64), 1 - self._stage.lambda_
        while (
            count := kernel.placed(
                compared, members, turns, self.tiers, worth, is_wanted, order, gains, others, most
            )
        ) < 0:  # fmt: skip
            turns = self._turns()
        return [*map(Pick, order[:count].tolist(), gains[:count].tolist())]

    def _turns(self) -> Integers:
        import numpy as np

        keys = self._content_keys
        turns = np.empty(len(keys), np.int64)
        turns[sorted(range(len(keys)), key=keys.__getitem__)] = np.arange(len(keys))
        return turns

    @cached_property
    def _content_keys(self) -> Sequence[ContentKey]:
        """Return what breaks ties: read at once, because where some are equal many are."""
        return content_keys_of(self._memories, self.ids)

    def head(self, placed: Sequence[Pick]) -> Sequence[Hit]:
        """Return the hits that are placed.

        No gain is above the one before it, and of equals the first by content was placed first: this is the order.
        """
        return _Head(self, placed)

    def step(self, placed: Sequence[Pick], index: int) -> Step:
        """Say what the one at this place gained."""
        place, lambda_ = placed[index].place, self._stage.lambda_
        told = f"{lambda_:g} × relevance {self._relevance[place]:.4f}"
        if index:
            before = _among(self._alike, place, [pick.place for pick in placed[:index]])
            first = int(before.argmax())  # of several the first
            if before[first] > 0:
                told += f" − {1 - lambda_:g} × {before[first]:.4f}, most like {self.ids[placed[first].place]}"
        return Step("mmr", "set", placed[index].gain, told)


def _among(alike: Alike, place: int, others: list[int]) -> Floats:
    return alike.among(place, others) if isinstance(alike, Some) else alike[place][others]


class _Head(Stepped):
    """The hits that are placed: who they are is asked again and again, and looked up once."""

    def __init__(self, placing: _Placing, placed: Sequence[Pick]) -> None:
        places = [pick.place for pick in placed]
        super().__init__(chosen(placing.hits, places), "mmr", lambda index: placing.step(placed, index))
        self._ids = [placing.ids[place] for place in places]

    def ids(self) -> list[MemoryId]:
        """Return the ids without making a hit."""
        return self._ids

    def behind(self) -> dict[MemoryId, tuple[int, int]]:
        """Return what stands beside a hit: a step puts nothing there."""
        return self._beside

    @cached_property
    def _beside(self) -> dict[MemoryId, tuple[int, int]]:
        return super().behind()


class Placed(Hits):
    """Hits in the order of what they gain, each placed when somebody looks at it or at one behind it."""

    def __init__(self, placing: _Placing) -> None:
        self._placing = placing

    def ids(self) -> list[MemoryId]:
        """Return the ids without making a hit."""
        return ids_of(self._whole())

    def tiers(self) -> Sequence[int]:
        """Return the tiers, which stay above each other whoever is placed where."""
        return sorted(self._placing.tiers.tolist(), reverse=True)

    def behind(self) -> dict[MemoryId, tuple[int, int]]:
        """Return what stands beside a hit."""
        return behind_of(self._whole())

    def hit(self, index: int) -> Hit:
        """Make one hit."""
        placed = self._placing.to(index + 1)
        return self._placing.hits[placed[index].place].after(self._placing.step(placed, index))

    def _whole(self) -> Sequence[Hit]:
        return self._placing.head(self._placing.to(len(self)))

    def __len__(self) -> int:
        return len(self._placing.hits)
