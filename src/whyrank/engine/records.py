"""Former states of memories as data, and notices on memories that damage has changed."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from ..formatting import counted, which
from ..protocols import UNREADABLE
from ..types.memory import Former, Notice

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

MOMENTS = ("created", "date", "valid_from", "valid_until", "expires", "superseded_at", "recalled")


def as_change(one: Former) -> dict[str, Any]:
    """Return one change: when it was, and what the changed fields were until then."""
    return {"changed": exact_moment(one.changed), "was": _dated(one.was)}


def _dated(was: Mapping[str, Any]) -> dict[str, Any]:
    return {name: exact_moment(value) if name in MOMENTS else value for name, value in was.items()}


def exact_moment(seconds: float | None) -> str | float | None:
    """Return a moment in ISO 8601 to the microsecond; one that no calendar holds as the number it is."""
    if seconds is None:
        return None
    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
    except (OverflowError, ValueError, OSError):
        return seconds


def shown_in_part(count: int) -> Notice:
    """Return the notice on the number of damaged memories in a list or an export."""
    they = f"{counted(count, 'memory', 'memories')} of these {which(count, 'was', 'were')} damaged"
    told = f"{they}, and {which(count, 'is', 'are')} here as far as {which(count, 'it', 'they')} can be read"
    return Notice(UNREADABLE, f"{told}; `whyrank doctor` names what is damaged, and `--repair` mends it")


def lost_past(history: Iterable[Former]) -> tuple[Notice, ...]:
    """Return a notice on the number of changes whose former values are lost."""
    lost = sum(not former.was for former in history)
    if not lost:
        return ()
    told = f"what stood there before {counted(lost, 'change')} was damaged and cannot be read"
    return (Notice(UNREADABLE, f"{told}; a backup made before may hold it (`whyrank doctor` counts what is lost)"),)
