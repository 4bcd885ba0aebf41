"""Diversity: of results that say the same, the first counts and the rest step back."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

from ..columns import MemoryId
from ..errors import ConfigError
from ..hits import Context, Hit, Ranking
from ..trail import Step
from .likeness import likeness_between
from .lineup import Stepped, behind_of, chosen, ids_of, scores_of, tiers_of
from .stages import WINDOW_LIFT

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]


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
        return self.as_far_as(ranking, context, None)

    def as_far_as(self, ranking: Ranking, context: Context, wanted: Collection[MemoryId] | None) -> Ranking:
        """Place hits until all that are wanted stand, or all there are: what comes later moves none before it."""
        import numpy as np

        hits, ids = ranking.hits, ids_of(ranking.hits)
        if not ids:
            return ranking
        alike = likeness_between(ids, context)
        rows = alike.square() if wanted is None else alike
        tiers = np.array(tiers_of(hits), np.int64)
        relevance = relevance_of(tiers, np.array(scores_of(hits), np.float64))
        picks = self.placed(tiers, self.lambda_ * relevance, rows, lambda place: hits[place].memory.content_key)
        placed = [*picks] if wanted is None else _until(picks, _standing_for(hits, wanted))
        places = [pick.place for pick in placed]
        nearest = _nearest(places, rows)

        def step(index: int) -> Step:
            (first, likeness), place = nearest[index], places[index]
            told = f"{self.lambda_:g} × relevance {relevance[place]:.4f}"
            if likeness > 0:
                told += f" − {1 - self.lambda_:g} × {likeness:.4f}, most like {ids[first]}"
            return Step("mmr", "set", gains[index], told)

        gains = [pick.gain for pick in placed]
        # No gain is above the one before it, and of equals the first by content was placed first: this is the order.
        return Ranking(Stepped(chosen(hits, places), "mmr", step), ranking.dropped, ranking.notices)

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
                yield Pick(best, gain, gains)
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


def _until(picks: Iterator[Pick], wanted: set[int]) -> list[Pick]:
    """Take picks as long as one that is wanted is still to come."""
    taken: list[Pick] = []
    while wanted:
        taken.append(next(picks))
        wanted = wanted - {taken[-1].place}
    return taken


def _nearest(placed: Sequence[int], likeness: _Rows) -> list[tuple[int, float]]:
    """Return for each place the most similar of those placed before it, of several the first, and how like it is."""
    import numpy as np

    if not placed:
        return []
    order = np.array(placed)
    rows = likeness[order] if isinstance(likeness, np.ndarray) else np.array([likeness[place] for place in placed])
    before = np.triu(rows[:, order], 1)
    first = before.argmax(axis=0)
    return [*zip(order[first].tolist(), before[first, np.arange(len(order))].tolist(), strict=True)]


class Pick(NamedTuple):
    """Who is placed next, with what gain, and what each would have gained in its stead."""

    place: int
    gain: float
    gains: Floats
