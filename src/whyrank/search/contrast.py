"""Contrastive explanation of two memories: the smallest change that swaps their ranks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from ..analysis.entities import is_speaker_mark
from ..analysis.tokenizer import words_meaning
from ..errors import ConfigError
from ..formatting import on_one_line
from ..protocols import Store
from ..ranking.counterfactuals import (
    Change,
    DroppedTerm,
    Pool,
    are_level,
    are_turned,
    changes,
    is_above,
    seek,
    standing,
)
from ..ranking.recipes import Recipe
from ..types.columns import MemoryId
from ..types.memory import Memory, Notice
from ..types.query import Query
from ..types.results import Hit, Ranking
from .explain import asked_about, why
from .retrieval import Retrieved, Stopwatch
from .searcher import Searcher, within_limits

MOST_TERMS = 6  # the pool is scored anew for each, in a millisecond or two

Outcome = Literal["flips", "nothing flips it", "another tier", "level", "not a candidate", "dropped"]


@dataclass(frozen=True, slots=True)
class Contrast:
    """Explanation of the order of two memories: which is above, and the smallest changes that swap them.

    `first` is the one above, None if neither is ranked. Every change is one setting alone, with the same pool.
    """

    query: str
    memory: Memory
    over: Memory
    outcome: Outcome
    summary: str
    first: MemoryId | None = None
    changes: tuple[Change | DroppedTerm, ...] = ()
    details: tuple[str, ...] = ()
    notices: tuple[Notice, ...] = ()

    def __str__(self) -> str:
        lines = [*self.details, self.summary]
        lines += [f"  {_line(change)}" for change in self.changes]
        return "\n".join(map(on_one_line, lines))


def _line(change: Change | DroppedTerm) -> str:
    key = change.key if isinstance(change, Change) else None
    return f"{change}  ({key})" if key else str(change)


def contrast(searcher: Searcher, query: Query, recipe: Recipe, one: str, other: str) -> Contrast:
    """Explain why one memory (by id, or a file by path) ranks above another, and what would swap them."""
    query, _ = within_limits(query)
    with searcher.store.reading():
        asked = [asked_about(searcher.store, query, identity) for identity in (one, other)]
        retrieved = searcher.retrieved(query, recipe, Stopwatch())
        pool = Pool(retrieved.runs, retrieved.context, retrieved.recipe)
        ranking = pool.ranked_as_far_as({memory.id for memories in asked for memory in memories})
        pair = [_stands_for(memories, ranking, retrieved) for memories in asked]
        missing = [name for name, memory in zip((one, other), pair, strict=True) if memory is None]
        memory, over = (found or memories[0] for found, memories in zip(pair, asked, strict=True))
        if memory.id == over.id:
            raise ConfigError(f"{one!r} and {other!r} are the same memory", "name two")
        if missing:
            answer = _never_met(searcher, query, recipe, memory, over, missing)
        else:
            answer = _compared(_Case(query, memory, over, pool, ranking), searcher.store, retrieved)
        return replace(answer, notices=retrieved.notices)


def _stands_for(memories: Sequence[Memory], ranking: Ranking, retrieved: Retrieved) -> Memory | None:
    """Return the best ranked of these memories, or else any that was a candidate."""
    candidates = [memory for memory in memories if memory.id in retrieved.context.memories]
    behind = len(retrieved.context.memories)
    return min(candidates, key=lambda memory: standing(ranking, memory.id) or (behind, 0), default=None)


def _never_met(
    searcher: Searcher, query: Query, recipe: Recipe, memory: Memory, over: Memory, missing: Sequence[str]
) -> Contrast:
    """Explain where the missing memories were lost: no number of the recipe makes them candidates."""
    details = []
    for name in missing:
        lost = why(searcher, query, recipe, name)
        details += [f"{name}: {lost.summary}", *(f"  {detail}" for detail in lost.details)]
    whom = " and ".join(missing)
    summary = f"{whom} {'is no candidate' if len(missing) == 1 else 'are no candidates'}, so nothing here compares them"
    return Contrast(query.text, memory, over, "not a candidate", summary, details=tuple(details))


@dataclass(frozen=True)
class _Case:
    """Two candidates of one pool, as they are ranked."""

    query: Query
    memory: Memory
    over: Memory
    pool: Pool
    ranking: Ranking

    def said(
        self, outcome: Outcome, summary: str, found: Sequence[Change | DroppedTerm] = (), remarks: Sequence[str] = ()
    ) -> Contrast:
        hits = {hit.id: hit for hit in seek(self.ranking, {self.memory.id, self.over.id})}
        places = [_place(self.ranking, hits[memory.id]) for memory in (self.memory, self.over)]
        return Contrast(
            self.query.text, self.memory, self.over, outcome, summary, self.first, tuple(found), (*places, *remarks)
        )

    @property
    def first(self) -> MemoryId | None:
        one, other = self.memory.id, self.over.id
        if is_above(self.ranking, one, other):
            return one
        return other if is_above(self.ranking, other, one) else None


def _compared(case: _Case, store: Store, retrieved: Retrieved) -> Contrast:
    one, other, upper = case.memory.id, case.over.id, case.first
    if upper is None:
        return case.said("dropped", "neither is a result, so there is no order between them")
    lower = other if upper == one else one
    is_level = are_level(case.ranking, one, other)
    turned = () if is_level else changes(case.pool, case.ranking, upper, lower)
    # Diversity puts the second of two level memories far behind the first: their scores no longer show that they tied.
    if is_level or any(change.is_rounding for change in turned):
        return case.said("level", "they are level: place and content break the tie, and the least change decides it")
    found: list[Change | DroppedTerm] = [*turned]
    words = _words(case, upper, lower)
    found += _terms(case.pool, words[:MOST_TERMS], store, retrieved, upper, lower)
    untried = len(words) - MOST_TERMS
    remarks = [f"of {len(words)} words the {MOST_TERMS} that matter most were tried without"] if untried > 0 else []
    if case.pool.context.opinions:
        remarks.append("the reranker was not asked again: what it has read stays what it was")
    if found:
        summary = f"{upper} is above {lower}; each of these alone would put {lower} above:"
        return case.said("flips", summary, found, remarks)
    return case.said(*_unmoved(case, upper, lower), remarks=remarks)


def _unmoved(case: _Case, upper: MemoryId, lower: MemoryId) -> tuple[Outcome, str]:
    hits = {hit.id: hit for hit in seek(case.ranking, {upper, lower})}
    above, below = hits[upper], hits[lower]
    if above.tier > below.tier and standing(case.ranking, lower) is not None:
        lifted = "; ".join(f"{step.stage}: {step.why}" for step in above.trail if step.op == "lift")
        tiers = f"tier {above.tier} against {below.tier}"
        return "another tier", f"{upper} is in another tier ({tiers}; {lifted}), and no number outweighs a tier"
    return (
        "nothing flips it",
        f"{upper} is above {lower}, and no single number or word turns that round",
    )


def _words(case: _Case, upper: MemoryId, lower: MemoryId) -> list[str]:
    """Return the words that could be left out, those of the two first; the last word of a question stays."""
    asked = [term for term in case.pool.context.analysis.asked if not is_speaker_mark(term)]
    signal = case.pool.context.signals.get("keyword")
    if len(asked) < 2 or signal is None:
        return []
    named = {found.term for key in (upper, lower) for found in signal.terms_of(key)}
    theirs = {word for term in named for word in (term, *term.split(" "))}
    return sorted(asked, key=lambda term: term not in theirs)


def _terms(
    pool: Pool, words: Sequence[str], store: Store, retrieved: Retrieved, upper: MemoryId, lower: MemoryId
) -> Iterator[DroppedTerm]:
    """Yield the words without which the lower is above: the pool scored anew, parts and maxima alike."""
    context = pool.context
    where = context.query.where
    left_out: list[tuple[str, Pool]] = []
    for word in words:
        others = [term for term in context.analysis.asked if term != word]
        signals = store.score(context.memories, others, None, retrieved.space, where, context.analysis.repeats)
        left_out += [(word, pool.without(word, signal)) for signal in signals]
    turned = are_turned([without for _, without in left_out], upper, lower)
    for (word, _), is_turned in zip(left_out, turned, strict=True):
        if is_turned:
            yield DroppedTerm(word, words_meaning(word, context.analysis.text, context.analysis.language))


def _place(ranking: Ranking, hit: Hit) -> str:
    source = hit.memory.source
    name = f"{hit.id}  {source if source and source.path else repr(hit.memory.text[:60])}"
    found = standing(ranking, hit.id)
    key = f"score {hit.score:.4f}" + (f" in tier {hit.tier}" if hit.tier else "")
    if found is None:
        return f"{name}: dropped by {hit.trail[-1].stage}: {hit.trail[-1].why}"
    place, behind = found
    return f"{name}: place {place + 1}, {key}" + (f", behind {ranking.hits[place].id} of its file" if behind else "")
