"""Which lists of a question are left for later, when it is known which places can still be among the best."""

from __future__ import annotations

from collections.abc import Sequence

LONG_FROM = 20_000  # memories; below, reading everything is as fast
LONG_SHARE = 1 / 32  # a term that more memories hold than this tells little, and its list is long
# Long lists wait if together they tell at most this share of what the most telling of the others does, which must be
# held by enough memories to fill a run: measured, the last of the best then mostly lies above all they can add.
LATER_SHARE = 0.6
ENOUGH = 128  # memories


def for_later(memories: int, held: Sequence[int], telling: Sequence[float]) -> list[int]:
    """Return the numbers of the terms whose lists shall wait, by how many memories hold each and how much it tells.

    This decides how fast an answer is and never which: what can still win is looked up in them, be it everything.
    """
    longest = memories * LONG_SHARE
    long = {term for term, count in enumerate(held) if count > longest} if memories >= LONG_FROM else set()
    if not long:
        return []
    later = sorted(long, key=telling.__getitem__)
    best = max((telling[i] for i, count in enumerate(held) if i not in long and count >= ENOUGH), default=0.0)
    while later and sum(telling[i] for i in later) > LATER_SHARE * best:
        best = max(best, telling[later.pop()])
    return sorted(later)
