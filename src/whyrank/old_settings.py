"""Settings that other programs and former versions called otherwise: what each says in today's words."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from .types import Notice

# HyDE was given more time than an expansion is, and those who migrate keep it.
HYDE_TIMEOUT_MS = 25_000


class Retired(NamedTuple):
    """Old keys that are read together, the keys users should write instead, and what they say there.

    `become` is given those of the old keys that were set, and returns values for new keys, read like any other value.
    """

    keys: tuple[str, ...]
    instead: tuple[str, ...]
    become: Callable[[Mapping[str, Any]], Mapping[str, Any]]


def _expansion(old: Mapping[str, Any]) -> dict[str, Any]:
    new: dict[str, Any] = {"query_expansion.mode": "hyde", "query_expansion.timeout_ms": HYDE_TIMEOUT_MS}
    if "search.hydeEnabled" in old:
        new["query_expansion.enabled"] = old["search.hydeEnabled"]
    if "search.hydeModel" in old:
        new["query_expansion.model"] = old["search.hydeModel"]
    return new


RETIRED: tuple[Retired, ...] = (
    Retired(
        ("search.hydeEnabled", "search.hydeModel"),
        ("query_expansion.enabled", "query_expansion.model"),
        _expansion,
    ),
)


class Renewed(NamedTuple):
    """What old keys say in today's settings, and the notices that name both."""

    values: Mapping[str, Any]
    notices: tuple[Notice, ...]


def is_retired(key: str) -> bool:
    """Tell whether a key is one that was used once."""
    return any(key in row.keys for row in RETIRED)


def renewed(old: Mapping[str, Any], origin: str) -> Renewed:
    """Say in today's settings what old keys of one source say; one notice for each row of the table."""
    values: dict[str, Any] = {}
    notices = []
    for row in RETIRED:
        given = {key: old[key] for key in row.keys if key in old}
        if given:
            values |= row.become(given)
            notices.append(_notice(tuple(given), row.instead, origin))
    return Renewed(values, tuple(notices))


def _notice(old: tuple[str, ...], instead: tuple[str, ...], origin: str) -> Notice:
    are = "are old names" if len(old) > 1 else "is an old name"
    message = f"{' and '.join(old)} ({origin}) {are}; write {' and '.join(instead)}, which wins where both stand"
    return Notice("setting-old", message)
