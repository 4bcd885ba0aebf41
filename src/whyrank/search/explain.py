"""Explanation of a memory's rank or absence, and resolution of mistyped names."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cached_property
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Literal

from ..analysis.names import is_speaker_mark, match_name, names_of
from ..analysis.query import MEMORY_FIELDS, is_said, words_meaning
from ..errors import ConfigError, NotFound
from ..formatting import on_one_line
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
from ..ranking.diversity import likeness_between
from ..ranking.fusion import family_of
from ..ranking.recipes import Adjustments, Recipe, adjusted, rank, rank_pool
from ..types.query import Leaf, Query, Says, Stopwatch, Where, literally, refusal
from ..types.results import Hits, Ranking, Results, Run, memory_of
from ..types.trail import name_tier
from .expansion import replaces_the_question, shares_of
from .searcher import within_limits

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ..protocols import Store
    from ..ranking.recipes import Recipe
    from ..ranking.stages import Stage
    from ..types.memory import Memory, MemoryId, Notice, Scope
    from ..types.query import Query
    from ..types.results import Hit
    from .confidence import Weighing
    from .searcher import Retrieved, Searcher

_CHUNKS_LOOKED_AT = 10_000
OF_A_SCOPE = "if it belongs to a scope, add --scope"  # in every hint about a memory that is not found
_LINES = re.compile(r"(?P<file>.+):\d+-\d+")
Outcome = Literal["found", "dropped", "filtered", "not a candidate"]


@dataclass(frozen=True, slots=True)
class Why:
    """The answer to "why is this memory here, or why is it not?"."""

    query: str
    memory: Memory
    outcome: Outcome
    summary: str
    details: tuple[str, ...] = ()
    rank: int | None = None
    hit: Hit | None = None

    def __str__(self) -> str:
        place = self.memory.source
        lines = [f"{self.memory.id}  {place if place and place.path else self.memory.text[:60]}", self.summary]
        lines += [f"  {detail}" for detail in self.details]
        if self.hit is not None:
            lines += [f"  {line}" for line in self.hit.explain().splitlines()]
        return "\n".join(map(on_one_line, lines))


def why(searcher: Searcher, query: Query, recipe: Recipe, identity: str) -> Why:
    """Explain the rank, or the absence, of a memory given by id, or of the best chunk of a file by path."""
    with searcher.store.reading():
        return _explained(searcher, within_limits(query)[0], recipe, identity)


def _explained(searcher: Searcher, query: Query, recipe: Recipe, identity: str) -> Why:
    asked = asked_about(searcher.store, query, identity)
    refusals = [query.where.refusal(memory) for memory in asked]
    if all(refusals):
        return Why(query.text, asked[0], "filtered", f"it cannot answer: {refusals[0]}")
    watch = Stopwatch()
    retrieved = searcher.retrieve(query, recipe, watch)
    ranking = searcher.judge(searcher.rank(retrieved, watch)[0], retrieved).ranking
    ids = {memory.id for memory in asked}
    candidates = [hit for hit in (*ranking.hits, *ranking.dropped) if hit.id in ids]
    if not candidates:
        settled = retrieved.context.query
        able = [memory for memory, refusal in zip(asked, refusals, strict=True) if refusal is None]
        amiss = [_mismatch(searcher.store, settled, memory) for memory in able]
        if all(amiss):
            return Why(query.text, able[0], "filtered", f"it cannot answer: {amiss[0]}")
        query, fit = settled, able[amiss.index(None)]
        return _never_a_candidate(searcher.store, query, fit, retrieved, searcher.embedder is not None)
    # A file is represented by the best of its chunks, not by one dropped in favour of another.
    found = max(candidates, key=lambda hit: (hit.trail[-1].stage != "group", hit.tier, hit.score))
    return _placed(query, found, ranking)


def asked_about(store: Store, query: Query, identity: str) -> list[Memory]:
    """Return the memory with this id, or the chunks of the file; nothing outside the caller's scopes."""
    if not identity:
        raise NotFound("no memory was named", "give an id or a path")
    by_id = store.get([identity], query.where.scopes).get(identity)
    if by_id is not None:
        return [by_id]
    chunks = _chunks_of(store, query, identity.removeprefix("./"))
    if not chunks:
        raise NotFound(
            f"there is no memory {identity!r}",
            f"`whyrank list` shows all ids and paths; {OF_A_SCOPE}",
        )
    return chunks


def _chunks_of(store: Store, query: Query, path: str) -> list[Memory]:
    """Return the chunks of a file, or the one of these lines where they are named as results show them."""
    chunks_alone = frozenset({"chunk"})  # facts that were extracted from it have its path, too
    any_life = Where(query.where.scopes, chunks_alone, include_superseded=True, include_expired=True)
    where = replace(any_life, path=literally(path), now=query.where.now)
    chunks = store.browse(where, _CHUNKS_LOOKED_AT)
    lines = _LINES.fullmatch(path)
    if chunks or lines is None:
        return chunks
    return [chunk for chunk in _chunks_of(store, query, lines["file"]) if str(chunk.source) == path]


def _placed(query: Query, hit: Hit, ranking: Ranking) -> Why:
    if hit in ranking.hits:
        rank = query.offset + ranking.hits.index(hit) + 1
        return Why(query.text, hit.memory, "found", f"it is result {rank}", rank=rank, hit=hit)
    step = hit.trail[-1]
    if step.stage == "top":
        return Why(query.text, hit.memory, "dropped", f"it is {step.why}", _distance(hit, ranking), hit=hit)
    return Why(query.text, hit.memory, "dropped", f"it was a candidate but is not shown: {step.why}", hit=hit)


def _distance(hit: Hit, ranking: Ranking) -> tuple[str, ...]:
    if not ranking.hits:
        return ()
    last = ranking.hits[-1]
    if last.tier > hit.tier:
        why = "its name matches" if name_tier(last.tier) > name_tier(hit.tier) else "a reranker scored it"
        return (f"the last result, {last.id}, is in a higher tier ({last.tier}, this one in {hit.tier}): {why}",)
    return (f"the last result, {last.id}, has {last.score:.4f}; this has {hit.score:.4f}",)


def _never_a_candidate(store: Store, query: Query, memory: Memory, retrieved: Retrieved, has_embedder: bool) -> Why:
    details = []
    with store.reading():
        for name in _asked(retrieved):
            pool = next((run for run in retrieved.runs if run.name == name), Run(name))
            details.append(f"{name}: {_lost_in(store, query, memory, pool, retrieved, has_embedder)}")
    empty = "" if query.text.strip() else "the query is empty: "
    return Why(query.text, memory, "not a candidate", f"{empty}no run found it", tuple(details))


def _asked(retrieved: Retrieved) -> list[str]:
    """Return the names of the runs: those of the plan, and those of a language model's expansion."""
    further = [name for probe in retrieved.probes for name in probe.runs]
    replaced = {"vector"} if replaces_the_question(retrieved.probes) else set()
    added = [] if retrieved.added is None else [retrieved.added.name]
    return [*(name for name in retrieved.recipe.plan.runs if name not in replaced), *further, *added]


def _lost_in(store: Store, query: Query, memory: Memory, pool: Run, retrieved: Retrieved, has_embedder: bool) -> str:
    """Explain how far one run was from proposing a memory."""
    plan, analysis = retrieved.recipe.plan, retrieved.context.analysis
    if pool.name == "name":
        match = match_name(analysis.probe, names_of(memory))
        return (
            f"{match.name!r} resembles the query, but better names fill the pool"
            if match
            else "no name resembles the query"
        )
    probe = next((probe for probe in retrieved.probes if pool.name in probe.runs), None)
    if probe is not None:
        whole = probe.run(store, pool.name, retrieved.space, query.where, plan.join, None)
        measure = "cosine" if family_of(pool.name) == "vector" else "word score"
        return _place_in(whole, pool, memory.id, measure, plan.pool)
    if retrieved.added is not None and pool.name == retrieved.added.name:
        whole = retrieved.added.run(store, query.where, None)
        if not store.in_other_languages([memory.id], retrieved.added.language, query.where.scopes):
            return "it is in the language of the query, or its language is unknown"
        return _place_in(whole, pool, memory.id, "cosine", plan.pool)
    if pool.name == "vector" and retrieved.vector is None:
        return "the query was not embedded" if has_embedder else "there is no embedder"
    if pool.name == "keyword":
        whole = store.keyword(analysis.asked, query.where, None, plan.join, analysis.repeats)
        measure = "word score"
    else:
        assert retrieved.vector is not None
        whole = store.nearest(retrieved.vector, retrieved.space, query.where, None)
        measure = "cosine"
    return _place_in(whole, pool, memory.id, measure, plan.pool)


def _mismatch(store: Store, query: Query, memory: Memory) -> str | None:
    """Return the reason why a resolved query excludes a memory, as far as only the store can decide it."""
    where = query.where
    if where.language is not None and not store.passing([memory.id], replace(where, matching=None)):
        return f"not in the language {where.language}"
    if where.matching is None:
        return None

    def is_true(leaf: Leaf) -> bool:
        if isinstance(leaf, Says):
            return is_said(leaf, MEMORY_FIELDS[leaf.field](memory))
        return bool(store.passing([memory.id], replace(where, matching=leaf)))

    return refusal(where.matching, is_true)


def _place_in(whole: Run, pool: Run, identity: MemoryId, measure: str, size: int) -> str:
    rank = whole.ranks().get(identity)
    if rank is None:
        return "no shared term" if family_of(pool.name) == "keyword" else "it has no vector yet"
    score = whole.candidates[rank - 1].score
    needed = pool.candidates[-1].score if pool.candidates else 0.0
    if score == needed:
        return f"rank {rank}, tied at {measure} {score:.4f} with the last of the pool; path and content break ties"
    if score > needed:
        return f"rank {rank}, {measure} {score:.4f}, but better chunks of the same file are in the pool"
    return f"rank {rank} of a pool of {size} sources; needs {measure} {needed:.4f}, has {score:.4f}"


_LOOKED_AT = 5_000  # memories: enough for most stores, and no mistake should cost more than a moment
_LIKE = 0.75  # of letters in common, below which a name is another name
_ID_LIKE = 0.8  # ids are letters at random: two of them have some in common by chance
_ID_PREFIX = "m_"
_SHORTEST_ID = 5  # letters of an id that was cut short, with its prefix


def meant(store: Store, where: Where, wanted: str) -> str | None:
    """Return the nearest visible path or id, if one is near: by its file name, else by its letters."""
    name = PurePosixPath(wanted).name
    if name and not wanted.startswith(_ID_PREFIX):
        for pattern in (literally(wanted), f"*/{literally(name)}"):
            if found := store.browse(_below(where, pattern), 1):
                return _paths(found)[0]
    held = store.browse(where, _LOOKED_AT)
    if wanted.startswith(_ID_PREFIX):
        return _id_like(wanted.rstrip("…."), [memory.id for memory in held])
    return _path_like(wanted, _paths(held))


def _below(where: Where, pattern: str) -> Where:
    return Where(where.scopes, path=pattern, include_superseded=True, now=where.now)


def _paths(memories: Sequence[Memory]) -> list[str]:
    sources = (memory.source for memory in memories)
    return list(dict.fromkeys(source.path for source in sources if source is not None and source.path))


def _id_like(wanted: str, ids: Sequence[str]) -> str | None:
    begun = [identity for identity in ids if len(wanted) >= _SHORTEST_ID and identity.startswith(wanted)]
    return next(iter(begun or get_close_matches(wanted, ids, n=1, cutoff=_ID_LIKE)), None)


def _path_like(wanted: str, paths: Sequence[str]) -> str | None:
    """Compare whole paths without regard to case, then the names of files alone."""
    folded = {path.casefold(): path for path in paths}
    near = get_close_matches(wanted.casefold(), folded, n=1, cutoff=_LIKE)
    if near:
        return folded[near[0]]
    names = {PurePosixPath(path).name: path for path in folded}
    alike = get_close_matches(PurePosixPath(wanted.casefold()).name, names, n=1, cutoff=_LIKE)
    return folded[names[alike[0]]] if alike else None


Shares = Mapping[str, Mapping[str, float]]


@dataclass(frozen=True)
class Pooled:
    """Candidates of one query, with the recipe, settings and embedder weight that rank them.

    `base` is the recipe as it ships, `wish` its adjustments by the settings, `last` the stages that come after those;
    `declared` is the weight of the embedder's vote, `shares` the division of votes among further runs; `weighing`
    defines the sum of evidence from which `confidences` are read.
    """

    results: Results
    pool: Pool
    base: Recipe
    wish: Adjustments
    last: tuple[Stage, ...]
    declared: float
    shares: Shares
    confidences: Mapping[MemoryId, float | None]
    weighing: Weighing

    @cached_property
    def memories(self) -> tuple[Memory, ...]:
        """Return the candidates in the order that breaks ties."""
        return tuple(sorted(map(memory_of, self.pool.context.memories.values()), key=lambda found: found.content_key))

    def recipe(self, **wishes: Any) -> Recipe:
        """Return the recipe with its settings, or with others in their place, every weight settled."""
        chosen = adjusted(self.base, replace(self.wish, **wishes)).with_stages(*self.last)
        return replace(chosen, fusion=chosen.fusion.with_vector_weight(self.declared).split(self.shares))

    def ranked(self, **wishes: Any) -> Ranking:
        """Rank all candidates, by other settings if some are given."""
        return self.pool.ranked(self.recipe(**wishes))

    @cached_property
    def likeness(self) -> list[list[float]]:
        """Return the similarity of each candidate to each one before it."""
        ids = [memory.id for memory in self.memories]
        alike = likeness_between(ids, self.pool.context).square()
        return [alike[place, :place].tolist() for place in range(len(ids))]


def pooled(
    searcher: Searcher, query: Query, base: Recipe, wish: Adjustments, last: tuple[Stage, ...], *, likeness: bool
) -> Pooled:
    """Search and keep all candidates; memories are read now, because the store may change later."""
    reads = frozenset({"memories", *(["likeness"] if likeness else [])})
    with searcher.store.reading():
        watch, (query, notices) = Stopwatch(), within_limits(query)
        retrieved = searcher.retrieve(query, adjusted(base, wish).with_stages(*last), watch, reads)
        results = searcher.answer(retrieved, watch, notices)
        confidences, weighing = _convictions(searcher, retrieved)
        return Pooled(
            results=results,
            pool=Pool(retrieved.runs, retrieved.context, retrieved.recipe),
            base=base,
            wish=wish,
            last=last,
            declared=searcher.embedder.weight(retrieved.context.analysis.language) if searcher.embedder else 0.0,
            shares=shares_of(retrieved.runs, retrieved.probes),
            confidences=confidences,
            weighing=weighing,
        )


def _convictions(searcher: Searcher, retrieved: Retrieved) -> tuple[dict[MemoryId, float | None], Weighing]:
    """Return the confidence of each candidate: hits as in the answer, dropped ones as if they were hits."""
    ranking = rank_pool(retrieved.runs, retrieved.recipe, retrieved.context)
    everything, answer = (
        searcher.judge(hits, retrieved) for hits in (Ranking((*ranking.hits, *ranking.dropped)), ranking)
    )
    sure = {hit.id: hit.confidence for one in (everything, answer) for hit in one.ranking.hits}
    return sure, answer.weighing


def origins_by_recipe(
    searcher: Searcher, query: Query, recipes: Sequence[Recipe]
) -> list[list[tuple[Scope, str] | MemoryId]]:
    """Return the sources each recipe finds, best first; they share one plan, so one retrieval is enough."""
    if len({recipe.plan for recipe in recipes}) != 1:
        raise ValueError("recipes with different plans retrieve different candidates")
    with searcher.store.reading():
        retrieved = searcher.retrieve(query, recipes[0], Stopwatch())
        language = retrieved.context.analysis.language
        weight = searcher.embedder.weight(language) if searcher.embedder else 0.0
        settled = (replace(recipe, fusion=recipe.fusion.with_vector_weight(weight)) for recipe in recipes)
        found = [Hits.of(rank(retrieved.runs, recipe, retrieved.context).hits).ids for recipe in settled]
        memories = searcher.store.get({identity for ids in found for identity in ids}, query.where.scopes)
    return [[memories[identity].origin for identity in ids if identity in memories] for ids in found]


MOST_TERMS = 6  # the pool is scored anew for each, in a millisecond or two

Comparison = Literal["flips", "nothing flips it", "another tier", "level", "not a candidate", "dropped"]


@dataclass(frozen=True, slots=True)
class Contrast:
    """Explanation of the order of two memories: which is above, and the smallest changes that swap them.

    `first` is the one above, None if neither is ranked. Every change is one setting alone, with the same pool.
    """

    query: str
    memory: Memory
    over: Memory
    outcome: Comparison
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
        retrieved = searcher.retrieve(query, recipe, Stopwatch())
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
    summary = f"{whom} {'is no candidate' if len(missing) == 1 else 'are no candidates'}, so they cannot be compared"
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
        self,
        outcome: Comparison,
        summary: str,
        found: Sequence[Change | DroppedTerm] = (),
        remarks: Sequence[str] = (),
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
        return case.said(
            "level", "their scores are equal: path and content break the tie, and the smallest change decides it"
        )
    found: list[Change | DroppedTerm] = [*turned]
    words = _words(case, upper, lower)
    found += _terms(case.pool, words[:MOST_TERMS], store, retrieved, upper, lower)
    untried = len(words) - MOST_TERMS
    remarks = (
        [f"of {len(words)} words only the {MOST_TERMS} most important were left out one at a time"]
        if untried > 0
        else []
    )
    if case.pool.context.opinions:
        remarks.append("the reranker was not run again: its scores stay as they are")
    if found:
        summary = f"{upper} is above {lower}; each of these alone would put {lower} above:"
        return case.said("flips", summary, found, remarks)
    return case.said(*_unmoved(case, upper, lower), remarks=remarks)


def _unmoved(case: _Case, upper: MemoryId, lower: MemoryId) -> tuple[Comparison, str]:
    hits = {hit.id: hit for hit in seek(case.ranking, {upper, lower})}
    above, below = hits[upper], hits[lower]
    if above.tier > below.tier and standing(case.ranking, lower) is not None:
        lifted = "; ".join(f"{step.stage}: {step.why}" for step in above.trail if step.op == "lift")
        tiers = f"tier {above.tier} against {below.tier}"
        return "another tier", f"{upper} is in another tier ({tiers}; {lifted}), and no setting outweighs a tier"
    return (
        "nothing flips it",
        f"{upper} is above {lower}, and no change of a single number or word swaps them",
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
    """Yield the words whose removal swaps the two: the pool is re-scored, parts and maxima alike."""
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
    return f"{name}: place {place + 1}, {key}" + (
        f", after {ranking.hits[place].id} of the same file" if behind else ""
    )
