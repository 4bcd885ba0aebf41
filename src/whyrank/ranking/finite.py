"""Numbers a recipe is made of: what is not finite orders nothing, and is refused before anything is ranked."""

from __future__ import annotations

import math
from dataclasses import fields
from typing import TYPE_CHECKING

from ..errors import ConfigError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


def check_finite(part: DataclassInstance) -> None:
    """Refuse a part of a recipe that holds an infinity or what is no number."""
    for field in fields(part):
        value = getattr(part, field.name)
        if isinstance(value, float) and not math.isfinite(value):
            raise ConfigError(f"{field.name} of {type(part).__name__} is {value}", "give a finite number")
