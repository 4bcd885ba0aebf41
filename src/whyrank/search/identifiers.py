"""Rare identifiers in a question, and the memories that hold them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from ..analysis.document import searchable_text
from ..analysis.entities import Code, codes_in, is_code
from ..protocols import Store
from ..types.columns import Column, MemoryId, column_of
from ..types.expressions import All, Expression, Holds, label_of
from ..types.names import NameMatch, Unheld
from ..types.query import Analysis, Run, Signal, Statistics, Where
from ..types.results import at_hand, memory_of
from .query_resolution import also_proposed

FEW_HOLDERS = 3  # so many may hold a code in any store, …
SHARE_OF_HOLDERS = 0.05  # … and this share of a large one
LOOKED_AT = 8  # memories whose texts are read to check whether they hold a code; a code in more identifies none of them
LEAST_SHARE = 0.5  # of a query that a code must be, so that the memories that hold it rank above all others
_MOST_COUNTED = 3  # codes of one memory that its place among the lifted counts


class Held(NamedTuple):
    """Code of a query: its text, its term, its share of the query, and the memories that hold it."""

    text: str
    term: str
    share: float
    alone: float  # the same, counted as one thing without its parts
    frequency: int  # of the term
    holders: tuple[MemoryId, ...]  # if they are few
    is_missing: bool  # no visible memory holds it, nor all of its parts
    total: int

    @property
    def is_rare(self) -> bool:
        """Return whether so few memories hold the code that they must be meant."""
        return 0 < max(self.frequency, len(self.holders)) <= max(FEW_HOLDERS, SHARE_OF_HOLDERS * self.total)

    @property
    def is_meant(self) -> bool:
        """Return whether the query is about the code, so that the memories that hold it are the answer."""
        return 0 < len(self.holders) <= FEW_HOLDERS and self.share >= LEAST_SHARE


def codes_asked(
    analysis: Analysis, statistics: Statistics, store: Store, where: Where, language: str
) -> tuple[Held, ...]:
    """Return the codes of a query with the visible memories that hold them."""
    codes = codes_in(analysis.text, language) if where.matching is None else ()
    if not codes:
        return ()
    frequency = store.statistics([code.term for code in codes], where.scopes).frequency
    whole = statistics.mass(analysis.terms)
    found = []
    for code in codes:
        own = statistics.mass(term for term in analysis.terms if term in code.tokens or label_of(term) in code.tokens)
        one = statistics.idf(label_of(code.term)) if own else 0.0
        share, alone = (own / whole, one / (whole - own + one)) if own else (0.0, 0.0)
        near = _who_may_hold(code, store, where)
        holders = _who_says(code, near, store, where)
        # Where more memories match than were read, one of the unread may hold the code.
        is_missing = code.stands_alone and not holders and len(near) <= (0 if code.is_told_whole else LOOKED_AT)
        found.append(
            Held(code.text, code.term, share, alone, frequency[code.term], holders, is_missing, statistics.total)
        )
    return tuple(found)


def _who_may_hold(code: Code, store: Store, where: Where) -> Sequence[MemoryId]:
    """Return some memories that hold a code or all parts of it."""
    runs = (store.keyword(terms, where, LOOKED_AT + 1, "and") for terms in code.ways if any(terms))
    return [*dict.fromkeys(identity for run in runs for identity in run.ids)]


def _who_says(code: Code, ids: Sequence[MemoryId], store: Store, where: Where) -> tuple[MemoryId, ...]:
    """Return the memories whose text holds a code; none if there are more than a few."""
    read = at_hand(store.held(ids, where.scopes))  # as far as it can be read, as in an answer
    said = tuple(one for one in ids if one in read and code.is_written_in(searchable_text(memory_of(read[one]))))
    return said if len(said) <= LOOKED_AT else ()


def otherwise_written(analysis: Analysis, statistics: Statistics, codes: Sequence[Held]) -> tuple[Analysis, Statistics]:
    """Replace the terms of codes with those of their split spelling (`E 47`), if no text joins them."""
    known = {label_of(code.term): code for code in codes if code.frequency and code.holders}
    apart = {term: known[term].term for term in analysis.terms if term in known and not statistics.frequency[term]}
    if not apart:
        return analysis, statistics
    frequency = {**statistics.frequency, **{known[term].term: known[term].frequency for term in apart}}
    terms = tuple(apart.get(term, term) for term in analysis.terms)
    return replace(analysis, terms=terms), replace(statistics, frequency=frequency)


def unheld(codes: Sequence[Held]) -> Unheld | None:
    """Return the codes that no memory holds, if there are any, and their share of the query."""
    missing = [code for code in codes if code.is_missing]
    return (
        Unheld(tuple(code.text for code in missing), min(1.0, sum(code.alone for code in missing))) if missing else None
    )


def with_holders(runs: Sequence[Run], codes: Sequence[Held]) -> tuple[Run, ...]:
    """Add the holders of rare codes to the name run: shorter texts with parts of one may fill other pools."""
    return also_proposed(runs, [identity for code in codes for identity in code.holders[:FEW_HOLDERS]])


def holders_of(codes: Sequence[Held], ids: Iterable[MemoryId]) -> Mapping[MemoryId, list[Held]]:
    """Return the rare codes that each of some memories holds."""
    known, held = {*ids}, dict[MemoryId, list[Held]]()
    for code in codes:
        for identity in code.holders if code.is_rare else ():
            if identity in known:
                held.setdefault(identity, []).append(code)
    return held


def with_code_matches(
    names: Mapping[MemoryId, NameMatch], held: Mapping[MemoryId, list[Held]]
) -> dict[MemoryId, NameMatch]:
    """Return the name matches, with code matches for memories that have no better name."""
    matches = dict(names)
    for identity, codes in held.items():
        few = [code for code in codes if code.is_meant]
        known = names.get(identity)
        if few and (known is None or known.relation not in _NAMED):
            said = ", ".join(code.text for code in few)
            matches[identity] = NameMatch("code", said, min(len(few), _MOST_COUNTED))
    return matches


_NAMED = frozenset({"equal", "accents", "same words", "one edit", "two edits"})


def with_codes(
    signals: Iterable[Signal],
    analysis: Analysis,
    statistics: Statistics,
    held: Mapping[MemoryId, list[Held]],
    store: Store,
    where: Where,
) -> list[Signal]:
    """Return signals in which words cover as much of a question as the rare codes are that a memory holds."""
    shares = {identity: min(1.0, sum(code.share for code in codes)) for identity, codes in held.items()}
    whole: Expression | None = None
    if where.matching is None and is_code(analysis.text) and _is_rare(analysis.terms, statistics):
        whole = All(tuple(Holds(term, term) for term in analysis.terms))
    if not shares and whole is None:
        return [*signals]
    return [_covered(signal, shares, whole, store, where) if signal.name == "keyword" else signal for signal in signals]


def _is_rare(terms: Iterable[str], statistics: Statistics) -> bool:
    held = min((statistics.frequency.get(term, 0) for term in terms), default=0)
    return 0 < held <= max(FEW_HOLDERS, SHARE_OF_HOLDERS * statistics.total)


def _covered(
    signal: Signal, shares: Mapping[MemoryId, float], whole: Expression | None, store: Store, where: Where
) -> Signal:
    ids = [*signal.values]
    holders = store.passing(ids, replace(where, matching=whole)) if whole is not None else ()
    known = zip(ids, column_of(signal.coverage, ids), strict=True)
    coverage = [1.0 if key in holders else max(covered or 0.0, shares.get(key, 0.0)) for key, covered in known]
    return replace(signal, coverage=Column(ids, coverage))
