"""The JSON of embedding spaces: which there are, what waits for a vector, and what two models answer alike."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ..spaces import Backlog, SpaceState
from .shapes import moment, pin

if TYPE_CHECKING:
    from ..evaluation.agreement import Agreement


def spaces(states: Iterable[SpaceState]) -> list[dict[str, Any]]:
    """Return the spaces of a store."""
    return [
        {
            "space": state.name,
            "model": state.provider or None,
            "role": state.role,
            "vectors": state.vectors,
            "waiting": state.waiting,
            "error": state.error or None,
        }
        for state in states
    ]


def backlog(behind: Backlog) -> dict[str, Any]:
    """Return what waits for a vector, and why."""
    return {
        "waiting": behind.waiting,
        "refused": behind.refused,
        "attempts": behind.attempts,
        "error": behind.error or None,
        "next_try": moment(behind.next_try),
        "nowhere": behind.nowhere,
    }


def agreement(found: Agreement | None) -> dict[str, Any] | None:
    """Return how two models answer the same questions."""
    if found is None:
        return None
    return {
        "questions": found.questions,
        "overlap": round(found.overlap, 4),
        "pins": len(found.after.checked) if found.after is not None else 0,
        "lost": [{**pin(one.pin), "rank": one.rank, "why": one.why} for one in found.lost],
    }
