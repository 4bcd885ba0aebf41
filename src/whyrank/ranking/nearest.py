"""The nearest value of one number at which something happens, found by walking outwards and closing in."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

from .knobs import Knob

NEARLY = 0.99  # this share of a change must not be enough
_NARROW = 0.996  # a bracket is narrow enough when its inner end is this share of the outer
_HALVINGS = 60
DIGITS = 15  # behind the point; a float holds no more


def searched(knob: Knob, probes: Sequence[float], flips: Callable[[float], bool]) -> float | None:
    """Walk outwards in both directions to the first flip, close in on it, and take the nearer of the two."""
    nearest: float | None = None
    for direction in (-1.0, 1.0):
        inner = knob.value
        for probe in sorted((p for p in probes if (p - knob.value) * direction > 0), key=lambda p: abs(p - knob.value)):
            if nearest is not None and abs(inner - knob.value) >= abs(nearest - knob.value):
                break  # whatever comes is further away than what the other direction has
            if flips(probe):
                value = _tidy(knob, *_closed_in(knob.value, inner, probe, flips))
                nearest = value if nearest is None else min(nearest, value, key=lambda found: abs(found - knob.value))
                break
            inner = probe
    return nearest


def _closed_in(start: float, inner: float, outer: float, flips: Callable[[float], bool]) -> tuple[float, float]:
    """Halve the bracket between a value that does not flip and one that does, until it is narrow."""
    for _ in range(_HALVINGS):
        if abs(inner - start) >= _NARROW * abs(outer - start):
            break
        middle = (inner + outer) / 2
        if flips(middle):
            outer = middle
        else:
            inner = middle
    return inner, outer


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
