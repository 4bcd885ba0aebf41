"""Memories and files as they are typed: an id, a path from the folder one is in, or one as it is stored."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import overload

from ...analysis.text import is_clean
from ...arguments import MAX_PATTERN_CHARACTERS
from ...engine import Engine
from ...errors import NotFound
from ...places import literally, stored_name

_LINES = re.compile(r":\d+-\d+$")  # behind a path, as results show it


@overload
def name_of(engine: Engine, typed: str, scope: Sequence[str] | None) -> str: ...
@overload
def name_of(engine: Engine, typed: None, scope: Sequence[str] | None) -> None: ...
def name_of(engine: Engine, typed: str | None, scope: Sequence[str] | None) -> str | None:
    """Return the name under which the store knows what was typed; what it does not know stays as it was typed."""
    if not typed or not is_clean(typed) or _is_id(engine, typed, scope):
        return typed
    from_here = stored_name(engine.config.notes, typed)
    return next((name for name in (from_here, typed) if _is_file(engine, name, scope)), typed)


def _is_id(engine: Engine, typed: str, scope: Sequence[str] | None) -> bool:
    try:
        engine.get(typed, scope=scope)
    except NotFound:
        return False
    return True


def _is_file(engine: Engine, name: str, scope: Sequence[str] | None) -> bool:
    """Tell whether memories come from a file of this name, with lines behind it or without."""
    patterns = {literally(name), literally(_LINES.sub("", name))}
    return any(
        engine.list(limit=1, path=pattern, scope=scope, include_superseded=True)
        for pattern in patterns
        if len(pattern) <= MAX_PATTERN_CHARACTERS
    )
