"""The nearest value of one number at which something happens, found by walking outwards and closing in."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Protocol

from .knobs import Knob

NEARLY = 0.99  # this share of a change must not be enough
_NARROW = 0.996  # a bracket is narrow enough when its inner end is this share of the outer
_HALVINGS = 60
_NEARER = 8  # times that something nearer is looked for
_AHEAD = 3  # halvings that are looked at together: seven values, of which three will be asked for
_AHEAD_OF_THE_START = 15  # the same of those that are nearer and nearer to the start
DIGITS = 15  # behind the point; a float holds no more


class Look(Protocol):
    """Tells whether something happens at a value; it may be told ahead which values will be asked for."""

    def __call__(self, value: float, /) -> bool:
        """Tell whether it happens there."""

    def ahead(self, values: Iterable[float], /) -> None:
        """Look at these values at once, as they will be asked for, or at some of them."""


class OneByOne:
    """Looks at no value before it is asked for."""

    def __init__(self, happens: Callable[[float], bool]) -> None:
        self._happens = happens

    def __call__(self, value: float) -> bool:
        """Tell whether it happens at a value."""
        return self._happens(value)

    def ahead(self, values: Iterable[float]) -> None:
        """Do nothing."""


class Together:
    """Looks at many values at once and remembers them, where one look at many costs little more than one at one."""

    def __init__(self, happens: Callable[[Sequence[float]], Sequence[bool]]) -> None:
        self._happens = happens
        self._seen: dict[float, bool] = {}

    def __call__(self, value: float) -> bool:
        """Tell whether it happens at a value."""
        if value not in self._seen:
            self.ahead((value,))
        return self._seen[value]

    def ahead(self, values: Iterable[float]) -> None:
        """Look at those of these values that were not seen yet."""
        new = [value for value in dict.fromkeys(values) if value not in self._seen]
        if new:
            self._seen.update(zip(new, self._happens(new), strict=True))


def searched(knob: Knob, probes: Sequence[float], flips: Look) -> float | None:
    """Walk outwards in both directions, the shorter first, to the first flip, close in on it, and take the nearer."""
    nearest: float | None = None
    ways = (knob.low - knob.value, -1.0), (knob.high - knob.value, 1.0)
    for _, direction in sorted(ways, key=lambda way: abs(way[0])):
        inner, has_flipped = knob.value, False
        for probe in sorted((p for p in probes if (p - knob.value) * direction > 0), key=lambda p: abs(p - knob.value)):
            if nearest is not None and abs(inner - knob.value) >= abs(nearest - knob.value):
                break  # whatever comes is further away than what the other direction has
            is_flip = flips(probe)
            value = _between(knob, inner, probe, flips) if is_flip and not has_flipped else None
            if value is not None:
                nearest = value if nearest is None else min(nearest, value, key=lambda found: abs(found - knob.value))
                break
            inner, has_flipped = probe, is_flip
    return nearest


def _between(knob: Knob, inner: float, outer: float, flips: Look) -> float | None:
    """Return a value between one that does not flip and one that does, that flips while 99 % of it does not.

    Where 99 % of it flips as well, the places change more than once on the way: what lies nearer is looked at.
    """
    start = knob.value
    for _ in range(_NEARER):
        within, beyond = _closed_in(start, inner, outer, flips)
        value = _tidy(knob, within, beyond)
        nearly = start + NEARLY * (value - start)
        flips.ahead((value, nearly))
        if not flips(value):
            value, nearly = beyond, start + NEARLY * (beyond - start)
        if not flips(nearly):
            return value
        if within == start:
            return None  # the least change is enough, and less than that as well
        inner, outer = inner if abs(inner - start) < abs(nearly - start) else start, nearly
    return None


def _closed_in(start: float, inner: float, outer: float, flips: Look) -> tuple[float, float]:
    """Halve the bracket between a value that does not flip and one that does, until it is narrow."""
    for halving in range(_HALVINGS):
        if _is_narrow(start, inner, outer):
            break
        if halving % (_AHEAD_OF_THE_START if inner == start else _AHEAD) == 0:
            flips.ahead(_halves(start, outer) if inner == start else _middles(start, inner, outer, _AHEAD))
        middle = (inner + outer) / 2
        if flips(middle):
            outer = middle
        else:
            inner = middle
    return inner, outer


def _halves(start: float, outer: float) -> Iterator[float]:
    """Yield the values that halvings come to where every one flips: what flips at once does so on all the way."""
    for _ in range(_AHEAD_OF_THE_START):
        outer = (start + outer) / 2
        yield outer


def _is_narrow(start: float, inner: float, outer: float) -> bool:
    return abs(inner - start) >= _NARROW * abs(outer - start)


def _middles(start: float, inner: float, outer: float, depth: int) -> Iterator[float]:
    """Yield every value that so many halvings may come to, whatever they find."""
    if depth and not _is_narrow(start, inner, outer):
        middle = (inner + outer) / 2
        yield middle
        yield from _middles(start, inner, middle, depth - 1)
        yield from _middles(start, middle, outer, depth - 1)


def _tidy(knob: Knob, inner: float, outer: float) -> float:
    """Return the number with the fewest digits that flips, and 99 % of which is still no further than `inner`."""
    furthest = knob.value + (inner - knob.value) / NEARLY
    low, high = sorted((outer, furthest)) if abs(furthest - knob.value) > abs(outer - knob.value) else (outer, outer)
    low, high = max(low, knob.low), min(high, knob.high)
    for digits in range(DIGITS):
        short = round(outer, digits)
        for candidate in (short, short - 10.0**-digits, short + 10.0**-digits):
            rounded = round(candidate, digits)
            if low <= rounded <= high:
                return rounded
    return outer


def along(knob: Knob, steps: int) -> Iterator[float]:
    """Yield so many places on the way to either end, a wide knob's by factors."""
    for end in (knob.low, knob.high):
        for step in range(1, steps):
            share = step / steps
            if knob.wide:
                yield knob.value * math.exp(share * math.log(end / knob.value))
            else:
                yield knob.value + share * (end - knob.value)
