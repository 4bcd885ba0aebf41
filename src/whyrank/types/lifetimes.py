"""Decay classes: how long a memory of each is kept."""

from __future__ import annotations

_HOUR = 3_600.0
_DAY = 24 * _HOUR

# Seconds from writing to expiry; None is for ever.
LIFETIMES: dict[str, float | None] = {
    "permanent": None,
    "durable": 90 * _DAY,
    "stable": 90 * _DAY,
    "normal": 14 * _DAY,
    "active": 14 * _DAY,
    "short": 2 * _DAY,
    "session": 24 * _HOUR,
    "ephemeral": 4 * _HOUR,
    "checkpoint": 4 * _HOUR,
}

# Recalled memories are kept longer; those meant for a session or a few hours are not, however often they are read.
REFRESHED = frozenset({"durable", "stable", "normal", "active"})

NEVER = 253_402_300_799.0  # the last second of the year 9999: a retry due then never happens


def expiry(decay: str, moment: float) -> float | None:
    """Return the expiry of a memory of a class written at a moment; None for never, or for no class."""
    lifetime = LIFETIMES.get(decay)
    return None if lifetime is None else moment + lifetime
