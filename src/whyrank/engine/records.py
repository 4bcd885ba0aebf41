"""Values that the engine returns, former states of memories as data, and notices on damaged memories."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from ..formatting import counted, which
from ..protocols import UNREADABLE
from ..types.memory import Former, Memory, Notice

if TYPE_CHECKING:
    from ..evaluation.compare import Agreement

Outcome = Literal["stored", "known", "replacing", "revived", "merged"]


class Near(NamedTuple):
    """A near-duplicate fact and its cosine to the other."""

    memory: Memory
    cosine: float


@dataclass(frozen=True, slots=True)
class Added:
    """Outcome of adding a fact.

    `stored`: it is new. `known`: it was there, and nothing was written. `replacing`: it was there, and replaces another
    now. `revived`: it was there, superseded, expired or outside its validity, and lives again. `merged`: a
    near-duplicate was there, and took over the fields of this one.
    """

    memory: Memory
    outcome: Outcome
    near: tuple[Near, ...] = ()
    notices: tuple[Notice, ...] = ()


@dataclass(frozen=True, slots=True)
class Changed:
    """A fact after a change, with notices on the change."""

    memory: Memory
    notices: tuple[Notice, ...] = ()


class Forgotten(NamedTuple):
    """Number of forgotten memories, and after a purge the places that may still hold traces of them."""

    memories: int
    remains: tuple[str, ...] = ()


class SpaceState(NamedTuple):
    """State of one space: its role, number of vectors, number of memories waiting, last error."""

    name: str
    provider: str
    role: str
    vectors: int
    waiting: int
    error: str = ""


class Backlog(NamedTuple):
    """Counts of memories waiting for a vector in the active space, and of those that never get one."""

    waiting: int = 0
    refused: int = 0
    attempts: int = 0
    error: str = ""
    next_try: float | None = None
    nowhere: int = 0


class ModelChange(NamedTuple):
    """Outcome of a change of model."""

    space: str
    provider: str
    before: str
    switched: bool
    embedded: int
    without_vector: int
    agreement: Agreement | None = None


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
    return Notice(UNREADABLE, f"{told}; `whyrank doctor` lists what is damaged, and `--repair` fixes it")


def lost_past(history: Iterable[Former]) -> tuple[Notice, ...]:
    """Return a notice on the number of changes whose former values are lost."""
    lost = sum(not former.was for former in history)
    if not lost:
        return ()
    told = f"what it was before {counted(lost, 'change')} was damaged and cannot be read"
    return (Notice(UNREADABLE, f"{told}; a backup made before may hold it (`whyrank doctor` counts what is lost)"),)
