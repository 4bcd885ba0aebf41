"""The JSON shapes of facts and their lives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..exporting import as_change
from ..facts import Added, Changed, Near
from ..lives import Forgotten, lost_past
from ..types import Former, Memory, Notice
from .shapes import FORMAT, memory, notices


def added(done: Added) -> dict[str, Any]:
    """Return what became of a fact that was added, and the fact."""
    return {
        **memory(done.memory),
        "outcome": done.outcome,
        "near": [near(one) for one in done.near],
        "notices": notices(done.notices),
    }


def near(one: Near) -> dict[str, Any]:
    """Return a fact that says almost the same."""
    return {"id": one.memory.id, "cosine": round(one.cosine, 6), "text": one.memory.text}


def shown(
    found: Memory, history: Sequence[Former], replaced: Sequence[Memory], told: Sequence[Notice] = ()
) -> dict[str, Any]:
    """Return one memory with its past and what it replaced, the latest first, and what is to be said of it."""
    return {
        **memory(found),
        "history": [as_change(one) for one in history],
        "replaced": [{"id": one.id, "text": one.text} for one in replaced],
        "notices": notices((*told, *lost_past(history))),
    }


def changed(done: Changed, history: Sequence[Former], replaced: Sequence[Memory]) -> dict[str, Any]:
    """Return a fact that was changed, with its past, and what is to be said of the change."""
    told = notices((*done.notices, *lost_past(history)))
    return {**shown(done.memory, history, replaced), "notices": told}


def forgotten(ids: Sequence[str], scope: str | None, done: Forgotten) -> dict[str, Any]:
    """Return what was forgotten."""
    return {
        "forgotten": list(ids),
        "scope": scope,
        "memories": done.memories,
        "remains": list(done.remains),
        "format": FORMAT,
    }
