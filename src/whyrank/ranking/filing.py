"""Files that have several places in a pool: who of them is shown, and who stands behind whom, under many settings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from .effects import Keys
from .ground import Ground

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from .duels import Flags, Floats, Integers


class Standing(NamedTuple):
    """For each row which place stands for a memory (−1: none does), and how far behind it the memory stands."""

    of: Integers
    behind: Integers


def grouped(keys: Keys, ground: Ground, most: int | None, pair: Sequence[int | None]) -> tuple[Flags, list[Standing]]:
    """Return who is shown in each row, so many of a file at most, and where two places stand."""
    files = ground.files
    if most is None or not files.has_several:
        return keys.stands, [_by_itself(keys, place) for place in pair]
    import numpy as np

    scores = np.where(keys.stands, keys.scores, -np.inf)
    best = np.maximum.reduceat(scores, files.starts, axis=1)
    shown = keys.stands & (scores == best.repeat(files.sizes, axis=1))
    standings = [_in_its_file(keys, scores, ground, place) for place in pair]
    is_one_each = np.count_nonzero(shown, axis=1) == np.count_nonzero(best > -np.inf, axis=1)
    is_enough = is_one_each & (most == 1) & ~keys.tiers.any(axis=1)
    for row in np.flatnonzero(~is_enough).tolist():
        _group_one_by_one(row, keys, ground, most, pair, shown, standings)
    return shown, standings


def _in_its_file(keys: Keys, scores: Floats, ground: Ground, place: int | None) -> Standing:
    """Return where a place stands behind the best of its file, where nothing but scores tells who that is."""
    import numpy as np

    if place is None:
        return _by_itself(keys, place)
    around = ground.files.around(place)
    own = scores[:, around]
    of = np.where(keys.stands[:, place], own.argmax(axis=1) + around.start, -1)
    return Standing(of, np.count_nonzero(own > scores[:, place, None], axis=1))


def _by_itself(keys: Keys, place: int | None) -> Standing:
    """Return where a place stands for which no other can stand."""
    import numpy as np

    nowhere = np.full(len(keys.stands), -1)
    of = nowhere if place is None else np.where(keys.stands[:, place], place, -1)
    return Standing(of, np.zeros(len(of), np.int64))


def _group_one_by_one(
    row: int,
    keys: Keys,
    ground: Ground,
    most: int,
    pair: Sequence[int | None],
    shown: Flags,
    standings: Sequence[Standing],
) -> None:
    """Write into a row who is shown there, where files have equals, several shown, or names that lift a chunk."""
    hidden = _hidden(keys.scores[row], keys.tiers[row], keys.stands[row], ground, most)
    shown[row] = keys.stands[row]
    shown[row, [*hidden]] = False
    for place, (of, behind) in zip(pair, standings, strict=True):
        if place is not None and keys.stands[row, place]:
            of[row], behind[row] = hidden.get(place, (place, 0))


def _hidden(scores: Floats, tiers: Integers, stands: Flags, ground: Ground, most: int) -> dict[int, tuple[int, int]]:
    """Return the places behind the best of their file, the best of it, and how far behind those shown they are."""
    import numpy as np

    places = np.flatnonzero(stands)
    files = ground.files.numbers[places]
    keys = (-scores[places], -tiers[places], files)
    order = np.lexsort(keys)
    if _has_equals([key[order] for key in keys]):
        order = np.lexsort((np.array(ground.tie_breaks)[places], *keys))
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
