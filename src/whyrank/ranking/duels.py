"""Which of two diversity places first, under many settings at once: a row of a matrix for each.

Numpy takes hardly longer over sixteen rows than over one. A row goes as soon as it is decided.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Integers = NDArray[np.int64]
    Flags = NDArray[np.bool_]


_FEW = 3  # so many rows are quicker one after the other


class Company(Protocol):
    """Who is like whom in a pool, and what breaks ties between them."""

    def alike_one(self, place: int) -> Floats:
        """Return how like a place all are."""

    def alike(self, places: Integers) -> Floats:
        """Return how like each of these places all are, a row for each."""

    def most_alike(self, place: int) -> float:
        """Return how like a place the other one most like it is."""

    @property
    def tie_breaks(self) -> Sequence[int]:
        """Return where each place stands in the order that breaks ties."""


class Duels:
    """Two places of a pool, a pair for each row, both shown and in one tier: MMR places until it is known who is first.

    What stands in higher tiers is placed before them, and has its say in what they gain.
    """

    def __init__(
        self,
        company: Company,
        lambdas: Floats,
        tiers: Integers,
        worth: Floats,
        one: Integers,
        other: Integers,
    ) -> None:
        import numpy as np

        self._company = company
        self._won: Flags = np.zeros(len(worth), np.bool_)
        self._left: Integers = np.arange(len(worth))  # the rows that are not decided
        self._others = (1 - lambdas)[:, None]
        self._worth = worth
        self._one, self._other = one, other
        self._is_placed: Flags = np.zeros(len(worth), np.bool_)
        self._least, self._least_other = (
            worth[self._left, places] - self._others[:, 0] * [company.most_alike(place) for place in places.tolist()]
            for places in (one, other)
        )
        self._gains = self._before_the_first(tiers)

    def are_won(self, by: float) -> Flags:
        """Tell in which rows the one is placed before the other, its gain above the other's by more than this.

        Gains only fall, and not below what being most like somebody leaves: often that tells before either is placed.
        """
        while len(self._left) > _FEW:
            ahead = self._least - self._gained(self._other) > by
            self._end(ahead | (~self._is_placed & (self._gained(self._one) < self._least_other)), ahead)
            if len(self._left):
                self._place_the_next(by)
        for row, number in enumerate(self._left.tolist()):
            self._won[number] = self._is_won(row, by)
        return self._won

    def _is_won(self, row: int, by: float) -> bool:
        """Do the same for one row alone, to its end."""
        import numpy as np

        company, gains, worth, others = self._company, self._gains[row], self._worth[row], float(self._others[row, 0])
        one, other, is_placed = int(self._one[row]), int(self._other[row]), bool(self._is_placed[row])
        least, least_other, reduced = float(self._least[row]), float(self._least_other[row]), np.empty(len(worth))
        while least - gains[other] <= by:
            if not is_placed and gains[one] < least_other:
                return False
            best = _best(gains, company)
            if best == other:
                return bool(is_placed and least - gains[best] > by)
            if best == one:
                is_placed, least = True, float(gains[best])
                if not by:
                    return True
            np.subtract(worth, np.multiply(company.alike_one(best), others, out=reduced), out=reduced)
            gains[best] = -np.inf
            np.minimum(gains, reduced, out=gains)
        return True

    def _place_the_next(self, by: float) -> None:
        import numpy as np

        best = self._best()
        gain = self._gained(best)
        is_one, is_other = best == self._one, best == self._other
        won = is_one if not by else is_other & self._is_placed & (self._least - gain > by)
        self._least = np.where(is_one, gain, self._least)
        self._is_placed |= is_one
        going = self._end(is_other | won, won)
        self._gains[np.arange(len(self._left)), best[going]] = -np.inf
        reduced = self._worth - self._others * self._company.alike(best[going])
        np.minimum(self._gains, reduced, out=self._gains)

    def _end(self, decided: Flags, won: Flags) -> Flags | slice:
        """Let rows go that are decided; return which stay."""
        if not decided.any():
            return slice(None)
        going: Flags = ~decided
        self._won[self._left[won]] = True
        self._left, self._one, self._other = self._left[going], self._one[going], self._other[going]
        self._others, self._worth, self._gains = self._others[going], self._worth[going], self._gains[going]
        self._least, self._least_other = self._least[going], self._least_other[going]
        self._is_placed = self._is_placed[going]
        return going

    def _gained(self, places: Integers) -> Floats:
        return self._gains[range(len(places)), places]

    def _best(self) -> Integers:
        """Return who is placed next in each row, of equals the first by content."""
        import numpy as np

        gains = self._gains
        best: Integers = gains.argmax(axis=1)
        last = gains.shape[1] - 1 - gains[:, ::-1].argmax(axis=1)
        for row in np.flatnonzero(best != last).tolist():
            best[row] = _best(gains[row], self._company)
        return best

    def _before_the_first(self, tiers: Integers) -> Floats:
        """Return what each of the tier would gain as its first; those of other tiers do not take part."""
        import numpy as np

        tier = tiers[self._left, self._one][:, None]
        if (tiers == tier).all():
            return self._worth.copy()
        gains = self._worth.copy()
        for row, above in enumerate((tiers > tier) & (self._worth > -np.inf)):
            if above.any():
                most: Floats = self._company.alike(np.flatnonzero(above)).max(axis=0)
                gains[row] -= self._others[row] * most
        return np.where(tiers == tier, gains, -np.inf)


def _best(gains: Floats, company: Company) -> int:
    """Return who gains most, of equals the first by content."""
    import numpy as np

    best = int(gains.argmax())
    if best == len(gains) - 1 - int(gains[::-1].argmax()):
        return best
    equals: list[int] = np.flatnonzero(gains == gains[best]).tolist()
    return min(equals, key=company.tie_breaks.__getitem__)
