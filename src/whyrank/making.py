"""Memories made fast: a search makes dozens, and whoever stores a fact waits for one.

A frozen value of thirty fields sets each by way of its class, which looks it up by name. One that is not frozen, of the
same fields, is filled in a quarter of the time, and then becomes a memory: nobody has seen it before.
"""

from __future__ import annotations

from dataclasses import MISSING, field, fields, make_dataclass
from typing import Any

from .types import Memory

# Takes what `Memory` takes, and is one when it is `finished`.
Draft: Any = make_dataclass(
    "Draft",
    [(one.name, Any, field(default=one.default) if one.default is not MISSING else field()) for one in fields(Memory)],
    slots=True,
)


def finished(draft: Any) -> Memory:
    """Return the memory a draft has become, which is frozen from now on."""
    draft.__class__ = Memory
    memory: Memory = draft
    return memory
