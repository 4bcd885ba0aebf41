"""Which memories may answer, looked up in the entries themselves."""

from __future__ import annotations

from collections.abc import Sequence

from ..analysis.datewords import is_mark
from ..analysis.sayings import FIELDS, is_said
from ..expressions import Holds, Leaf, Says, valued
from ..ports import Entry
from ..storage import lexical
from ..storage.pools import Scored
from ..types import Memory, Where


def passes(entry: Entry, where: Where) -> bool:
    """Tell whether a memory may answer, by its times, its fields and its words."""
    return where.allows(entry.memory) and (
        where.matching is None or valued(where.matching, lambda leaf: _is_true(leaf, entry), lambda value: not value)
    )


def _is_true(leaf: Leaf, entry: Entry) -> bool:
    match leaf:
        case Holds():
            return lexical.occurrences(lexical.padded(entry.tokens), leaf.term) > 0
        case Says():
            return is_said(leaf, FIELDS[leaf.field](entry.memory))
        case _:
            raise ValueError(f"{leaf} must be settled before a store is asked")


def with_tie(score: float, memory: Memory) -> Scored:
    """Return a memory's score with what breaks its ties."""
    return Scored(score, memory.content_key, memory.group)


def words_in(terms: Sequence[str]) -> list[str]:
    """Return the words among terms: no marks of dates or speakers."""
    return [term for term in terms if not is_mark(term)]
