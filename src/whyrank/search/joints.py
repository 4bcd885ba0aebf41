"""Phrases whose last words a text joins to further ones: `night shift` stands side by side in `night shift-worker`.

A text writes the whole of what it joins before the parts, so that `shiftworker` stands between `night` and `shift`.
Which wholes begin so, only the store knows; they are asked of what the caller may see.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..analysis.readings import MAX_READINGS, MOST_JOINED
from ..expressions import label_of, meant, several
from ..ports import Store
from ..types import Scope

_MOST_WHOLES = 16  # that begin with the same words, the most frequent


def with_further_joints(term: str, store: Store, scopes: frozenset[Scope]) -> str:
    """Return the term of a phrase that also stands where its last words are the first of a joined one."""
    known = meant(term)
    phrase = next((reading for reading in known if " " in reading), None)
    if phrase is None:
        return term
    further = [reading for reading in _further(phrase.split(" "), store, scopes) if reading not in known]
    return several(label_of(term), [*known, *further][:MAX_READINGS]) if further else term


def _further(words: list[str], store: Store, scopes: frozenset[Scope]) -> Iterator[str]:
    for start in range(max(1, len(words) - MOST_JOINED + 1), len(words)):
        joined = "".join(words[start:])
        found = {whole: count for whole, count in store.beginning(joined, scopes).items() if whole != joined}
        for whole in sorted(found, key=lambda one: (-found[one], one))[:_MOST_WHOLES]:
            yield " ".join([*words[:start], whole, *words[start:]])
