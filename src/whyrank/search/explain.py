"""Explanation of a memory's rank or absence, and resolution of mistyped names."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import PurePosixPath
from typing import Literal

from ..analysis.names import match_name, names_of
from ..errors import NotFound
from ..formatting import on_one_line
from ..protocols import Store
from ..ranking.fusion import family_of
from ..ranking.recipes import Recipe
from ..ranking.stages import name_tier
from ..types.columns import MemoryId
from ..types.memory import Memory
from ..types.query import Query, Run, Where, literally
from ..types.results import Hit, Ranking
from .expansion import listed, replaces_the_question
from .query_resolution import mismatch
from .retrieval import Retrieved, Stopwatch
from .searcher import Searcher, within_limits

_CHUNKS_LOOKED_AT = 10_000
OF_A_SCOPE = "if it belongs to a scope, name that with --scope"  # in every hint about a memory that is not found
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
    retrieved, ranking = searcher.ranked(query, recipe, Stopwatch())
    ranking = searcher.judged(ranking, retrieved).ranking
    ids = {memory.id for memory in asked}
    candidates = [hit for hit in (*ranking.hits, *ranking.dropped) if hit.id in ids]
    if not candidates:
        settled = retrieved.context.query
        able = [memory for memory, refusal in zip(asked, refusals, strict=True) if refusal is None]
        amiss = [mismatch(searcher.store, settled, memory) for memory in able]
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
            f"`whyrank list` shows the ids and paths you can ask about; {OF_A_SCOPE}",
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
    return Why(query.text, hit.memory, "dropped", f"it was a candidate, and is not shown: {step.why}", hit=hit)


def _distance(hit: Hit, ranking: Ranking) -> tuple[str, ...]:
    if not ranking.hits:
        return ()
    last = ranking.hits[-1]
    if last.tier > hit.tier:
        why = "its name matches" if name_tier(last.tier) > name_tier(hit.tier) else "a reranker has read it"
        return (f"the last result, {last.id}, is in a higher tier ({last.tier} against {hit.tier}): {why}",)
    return (f"the last result, {last.id}, has {last.score:.4f}; this has {hit.score:.4f}",)


def _never_a_candidate(store: Store, query: Query, memory: Memory, retrieved: Retrieved, has_embedder: bool) -> Why:
    details = []
    with store.reading():
        for name in _asked(retrieved):
            pool = next((run for run in retrieved.runs if run.name == name), Run(name))
            details.append(f"{name}: {_lost_in(store, query, memory, pool, retrieved, has_embedder)}")
    empty = "" if query.text.strip() else "the query is empty: "
    return Why(query.text, memory, "not a candidate", f"{empty}no run proposed it", tuple(details))


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
            f"{match.name!r} is like the query, but better names fill the pool" if match else "no name like the query"
        )
    probe = next((probe for probe in retrieved.probes if pool.name in probe.runs), None)
    if probe is not None:
        whole = listed(pool.name, probe, query, plan, store, retrieved.space, None)
        measure = "cosine" if family_of(pool.name) == "vector" else "word score"
        return _place_in(whole, pool, memory.id, measure, plan.pool)
    if retrieved.added is not None and pool.name == retrieved.added.name:
        whole = retrieved.added.run(store, query.where, None)
        if not store.in_other_languages([memory.id], retrieved.added.language, query.where.scopes):
            return "it is in the language of the question, or shows none"
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


def _place_in(whole: Run, pool: Run, identity: MemoryId, measure: str, size: int) -> str:
    rank = whole.ranks().get(identity)
    if rank is None:
        return "no shared term" if family_of(pool.name) == "keyword" else "it has no vector yet"
    score = whole.candidates[rank - 1].score
    needed = pool.candidates[-1].score if pool.candidates else 0.0
    if score == needed:
        return f"rank {rank}, tied at {measure} {score:.4f} with the last of the pool; place and content break ties"
    if score > needed:
        return f"rank {rank}, {measure} {score:.4f}, but better chunks of its file took the places of that file"
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
