"""What `whyrank export` writes, known when it is met among files: read as a log, what was replaced would live again."""

from __future__ import annotations

import json

# No other line has all of these: they are about the life of a memory.
_OF_AN_EXPORT = frozenset({"id", "kind", "text", "scope", "superseded_by", "expires_given", "content_hash", "history"})
REASON = "an export of whyrank; it is no log of turns, and `whyrank import whyrank FILE` takes it in as it was"


def is_export(text: str) -> bool:
    """Tell by its first line whether a text is an export."""
    first = text.lstrip().partition("\n")[0]
    if not all(f'"{name}"' in first for name in _OF_AN_EXPORT):
        return False
    try:
        record = json.loads(first)
    except (ValueError, RecursionError):
        return False
    return isinstance(record, dict) and record.keys() >= _OF_AN_EXPORT
