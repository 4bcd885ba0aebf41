"""A question that is nothing but a code: who holds a rare one answers it, however much else the text says.

How much of a question a text covers falls with its length and rises with repetition, as is right for words that chance
may bring along. `E47` does not stand in a text by chance, and no text says it twice to be believed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ..analysis.entities import is_code
from ..columns import Column, column_of
from ..expressions import All, Holds
from ..ports import Store
from ..types import Analysis, Signal, Statistics, Where

FEW_HOLDERS = 3  # so many may hold a code in any store, …
SHARE_OF_HOLDERS = 0.05  # … and this share of a large one


def with_codes(
    signals: Iterable[Signal], analysis: Analysis, statistics: Statistics, store: Store, where: Where
) -> list[Signal]:
    """Return signals in which the words cover a question whole where it is a rare code that the memory holds."""
    signals = list(signals)
    if where.matching is not None or not is_code(analysis.text) or not _is_rare(analysis.terms, statistics):
        return signals
    holding = replace(where, matching=All(tuple(Holds(term, term) for term in analysis.terms)))
    return [_covered(signal, store, holding) if signal.name == "keyword" else signal for signal in signals]


def _is_rare(terms: Iterable[str], statistics: Statistics) -> bool:
    held = min((statistics.frequency.get(term, 0) for term in terms), default=0)
    return 0 < held <= max(FEW_HOLDERS, SHARE_OF_HOLDERS * statistics.total)


def _covered(signal: Signal, store: Store, holding: Where) -> Signal:
    ids = [*signal.values]
    holders = store.passing(ids, holding)
    coverage = [
        1.0 if key in holders else covered for key, covered in zip(ids, column_of(signal.coverage, ids), strict=True)
    ]
    return replace(signal, coverage=Column(ids, coverage))
