"""Where a value stands on an axis, and which values are written beside it."""

from __future__ import annotations

import math
from typing import NamedTuple

_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)  # times a power of ten: steps people count in
_WANTED_TICKS = 5


class Axis(NamedTuple):
    """An axis: what it measures, and from where to where."""

    label: str
    low: float
    high: float
    is_log: bool = False
    is_share: bool = False  # written in per cent

    def place(self, value: float) -> float:
        """Return where a value stands, 0 at the low end and 1 at the high one; what is outside stays at the edge."""
        low, high, at = (_log(v) if self.is_log else v for v in (self.low, self.high, value))
        return min(1.0, max(0.0, (at - low) / ((high - low) or 1.0)))

    def ticks(self) -> list[float]:
        """Return a few round values of the axis."""
        return _decades(self.low, self.high) if self.is_log else _round_steps(self.low, self.high)

    def written(self, value: float) -> str:
        """Write a value as this axis has it."""
        return f"{value:.0%}" if self.is_share else short(value)


def short(value: float) -> str:
    """Write a number with three figures that count, thousands apart."""
    if value == 0 or abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def reaching(label: str, values: list[float], *, is_log: bool = False) -> Axis:
    """Return an axis that holds all values with a little room; a linear one begins at zero or below."""
    known = [value for value in values if math.isfinite(value) and (value > 0 or not is_log)]
    if not known:
        return Axis(label, 0.1 if is_log else 0.0, 1.0, is_log)
    if is_log:
        return Axis(label, min(known) / 1.3, max(known) * 1.3, is_log=True)
    low, high = min(0.0, *known), max(0.0, *known)
    return Axis(label, low, high if high > low else low + 1.0)


def _log(value: float) -> float:
    return math.log10(max(value, 1e-12))


def _round_steps(low: float, high: float) -> list[float]:
    rough = (high - low) / _WANTED_TICKS
    if rough <= 0:
        return [low]
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(times * power for times in _STEPS if times * power >= rough - 1e-12 * power)
    first = math.ceil(low / step - 1e-9)
    return [round(number * step, 12) for number in range(first, math.floor(high / step + 1e-9) + 1)]


def _decades(low: float, high: float) -> list[float]:
    """Return 1, 10, 100 …; with 2 and 5 between where that leaves too few."""
    powers = range(math.floor(_log(low)), math.ceil(_log(high)) + 1)
    for times in ((1.0,), (1.0, 3.0), (1.0, 2.0, 5.0)):
        found = [t * 10.0**power for power in powers for t in times if low <= t * 10.0**power <= high]
        if len(found) >= 3:
            break
    return found
