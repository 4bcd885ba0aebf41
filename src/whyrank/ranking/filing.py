"""Files that have several places in a pool: who of them is shown, and who stands behind whom, under many settings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from .ground import Ground, Groups

if TYPE_CHECKING:
    from .duels import Flags, Floats, Integers


class Keys(NamedTuple):
    """What fusion and stages make of each place: its score, its tier, and whether it stands; a row for each setting."""

    scores: Floats
    tiers: Integers
    stands: Flags

    def row(self, place: int) -> Keys:
        """Return one of the rows, or the one that all share."""
        scores, tiers, stands = self
        own = scores[place % len(scores), None], tiers[place % len(tiers), None], stands[place % len(stands), None]
        return Keys(*own)

    def to(self, rows: int) -> Keys:
        """Return so many rows, where all may share one."""
        import numpy as np

        shape = rows, self.scores.shape[1]
        scores, tiers, stands = self
        return Keys(np.broadcast_to(scores, shape), np.broadcast_to(tiers, shape), np.broadcast_to(stands, shape))

    def among(self, places: Integers | Sequence[int] | slice) -> Keys:
        """Return the keys of some places."""
        return Keys(self.scores[:, places], self.tiers[:, places], self.stands[:, places])


class Standing(NamedTuple):
    """For each row which place stands for a memory (−1: none does), and how far behind it the memory stands."""

    of: Integers
    behind: Integers


def firsts(keys: Keys, groups: Groups, turns: Callable[[], Integers]) -> Flags:
    """Tell who is the first of each group in each row: by tier, by score, and of equals the one whose turn it is."""
    import numpy as np

    scores, tiers, stands = keys
    if tiers.any():
        own = np.where(stands, tiers, -1)
        stands = stands & (own == np.maximum.reduceat(own, groups.starts, axis=1).repeat(groups.sizes, axis=1))
    own_scores = np.where(stands, scores, -np.inf)
    best = np.maximum.reduceat(own_scores, groups.starts, axis=1)
    first: Flags = stands & (own_scores == best.repeat(groups.sizes, axis=1))
    if np.count_nonzero(first) > np.count_nonzero(best > -np.inf):
        waiting = np.where(first, turns(), len(groups.numbers))
        first &= waiting == np.minimum.reduceat(waiting, groups.starts, axis=1).repeat(groups.sizes, axis=1)
    return first


def shown(keys: Keys, ground: Ground, most: int | None) -> Flags:
    """Tell who is shown in each row, so many of a file at most."""
    import numpy as np

    files = ground.files
    if most is None or not files.has_several:
        return keys.stands
    left, found = keys, np.zeros(keys.stands.shape, np.bool_)
    for _ in range(min(most, int(files.sizes.max()))):
        first = firsts(left, files, lambda: np.array(ground.tie_breaks))
        found |= first
        left = left._replace(stands=left.stands & ~first)
    return found


def standing(keys: Keys, ground: Ground, most: int | None, place: int | None) -> Standing:
    """Return where a place stands in each row: for itself, or behind the best of its file."""
    import numpy as np

    rows = len(keys.stands)
    if place is None:
        return Standing(np.full(rows, -1), np.zeros(rows, np.int64))
    around = ground.files.around(place)
    if most is None or around.stop - around.start == 1:
        return Standing(np.where(keys.stands[:, place], place, -1), np.zeros(rows, np.int64))
    own = keys.among(around)
    ahead = _ahead(own, ground, around)
    before = np.count_nonzero(ahead[:, place - around.start], axis=1)
    # Nobody is ahead of the best; those that do not stand are behind everybody.
    best = np.where(own.stands, np.count_nonzero(ahead, axis=2), len(ground.ids)).argmin(axis=1) + around.start
    of = np.where(before < most, place, best)
    return Standing(np.where(keys.stands[:, place], of, -1), np.maximum(before + 1 - most, 0))


def _ahead(keys: Keys, ground: Ground, around: slice) -> Flags:
    """Tell of each of a few places, row by row, which of the others are ahead of it."""
    import numpy as np

    scores, tiers = keys.scores[:, :, None] - keys.scores[:, None], keys.tiers[:, :, None] - keys.tiers[:, None]
    ahead: Flags = (tiers < 0) | ((tiers == 0) & (scores < 0))
    level = (tiers == 0) & (scores == 0)
    if np.count_nonzero(level) > level.shape[0] * level.shape[1]:  # each is level with itself
        turns = np.array(ground.tie_breaks[around])
        ahead |= level & (turns[:, None] > turns)
    return ahead & keys.stands[:, None]
