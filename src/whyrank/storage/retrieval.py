"""Retrieval: the runs of a plan, then every signal for all candidates, in one snapshot."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, TypeVar

from ..analysis.names import is_code, match_in_any_spelling, names_of
from ..analysis.tokenizer import tokens_of
from ..errors import StoreTimeout
from ..formatting import counted, which
from ..protocols import LACKING, Request, Retrieval
from ..types.memory import Notice
from ..types.results import Candidates, Column, Context, Run, Signal, column_of, memory_of
from .query_resolution import holders_of, unheld, with_accented_names, with_code_matches, with_codes, with_holders

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from ..protocols import Probe, Reader, Vector
    from ..types.memory import MemoryId
    from ..types.trail import NameMatch

_HYDE = "hyde"  # the made-up answer whose vector is searched in place of the query's
_NAMED = frozenset({"equal", "accents", "same words", "in a sentence"})
Made = TypeVar("Made")


def retrieve(store: Reader, request: Request) -> Retrieval:
    """Make every run, score the union of candidates by every signal, and gather input of the stages."""
    resolution, plan = request.resolution, request.plan
    where, analysis, pool = resolution.query.where, resolution.analysis, plan.pool
    late, notices = list[str](), list[Notice]()
    # A made-up answer is searched in place of the query.
    vector = None if any(probe.label == _HYDE for probe in request.probes) else request.vector
    planned: dict[str, Callable[[], Run]] = {}
    if "keyword" in plan.runs:
        planned["keyword"] = partial(store.keyword, analysis.asked, where, pool, plan.join, analysis.repeats)
    if "vector" in plan.runs and vector is not None:
        planned["vector"] = partial(store.nearest, vector, request.space, where, pool)
    if "name" in plan.runs and analysis.probe.key:
        planned["name"] = partial(store.named, analysis.probe, where, pool)
    runs: tuple[Run, ...] = ()
    for name, take in planned.items():  # the first run is executed even if there is no time left
        run = take() if resolution.query.deadline is None else _in_time(store, request, name, take, late, not runs)
        runs += () if run is None else (run,)
        request.watch.lap(name)
    probes = tuple(request.probes)
    is_spelled_otherwise = resolution.is_respelled or not analysis.probe.key.isascii()
    if is_spelled_otherwise or resolution.codes or probes or request.added is not None:
        runs, probes = _with_further_runs(store, request, runs, late)
    listed = dict.fromkeys(chain.from_iterable([run.ids for run in runs]))
    memories = store.held(listed, where.scopes)
    held = {*memories.ids}
    proposed = [identity for run in runs if run.name == "name" for identity in run.ids if identity in held]
    names = _match_names(store, request, proposed) if proposed else {}
    context = _score_candidates(store, request, names, memories, probes)
    if len(memories) < len(listed):
        runs = tuple(_inside(run, context, notices) for run in runs)
    notices += _run_notices(runs, context, request)
    vectors: Mapping[MemoryId, Vector] = {}
    if request.reads:
        context, vectors = _with_inputs(store, request, context, memories.ids)
    request.watch.lap("scoring")
    return Retrieval(runs, context, probes, tuple(notices), tuple(late), vectors)


def _with_further_runs(
    store: Reader, request: Request, runs: tuple[Run, ...], late: list[str]
) -> tuple[tuple[Run, ...], tuple[Probe, ...]]:
    """Add names in other spellings, holders of codes, and the runs of the expansion and the additional model."""
    resolution, plan = request.resolution, request.plan
    where, analysis, pool = resolution.query.where, resolution.analysis, plan.pool
    if resolution.is_respelled or not analysis.probe.key.isascii():
        runs = with_accented_names(runs, analysis, store, where)
    if resolution.codes:
        runs = with_holders(runs, resolution.codes)
    probes = tuple(request.probes)
    if probes:
        further = [(probe, name) for probe in probes for name in probe.runs]

        def expanded() -> list[Run]:
            return [probe.run(store, name, request.space, where, plan.join, pool) for probe, name in further]

        found = _in_time(store, request, "expansion", expanded, late)
        probes = probes if found else ()
        runs += tuple(found or ())
        request.watch.lap("expansion")
    added = request.added
    if added is not None:
        beside = _in_time(store, request, added.name, lambda: added.run(store, where, pool), late)
        runs += () if beside is None else (beside,)
        request.watch.lap(added.name)
    return runs, probes


def _in_time(
    store: Reader, request: Request, name: str, take: Callable[[], Made], late: list[str], is_first: bool = False
) -> Made | None:
    """Call the store if there is time left; else return None and append the name to `late`."""
    deadline = request.resolution.query.deadline
    if deadline is None:
        return take()
    if is_first:
        with store.aborting(deadline.abort_at):
            return take()
    if not deadline.has_passed:
        try:
            with store.aborting(deadline.abort_at):
                return take()
        except StoreTimeout:
            pass  # reported by the name in `late`
    late.append(name)
    return None


def _score_candidates(
    store: Reader,
    request: Request,
    names: Mapping[MemoryId, NameMatch],
    memories: Candidates,
    probes: tuple[Probe, ...],
) -> Context:
    """Score every candidate by every signal, listed by its run or not."""
    resolution, space = request.resolution, request.space
    query, analysis, codes, statistics = resolution.query, resolution.analysis, resolution.codes, resolution.statistics
    where = query.where
    scored = store.score(memories.ids, analysis.asked, request.vector, space, where, analysis.repeats)
    mass = statistics.mass(analysis.terms)
    scored = [replace(signal, mass=mass) if signal.name == "keyword" else signal for signal in scored]
    held = holders_of(codes, memories) if codes else {}
    if held or is_code(analysis.text):
        scored = with_codes(scored, analysis, statistics, held, store, where)
    signals = {signal.name: signal for signal in scored}
    for probe in probes:
        terms = probe.analysis.asked if "keyword" in probe.families else ()
        mass = store.statistics(probe.analysis.terms, where.scopes).mass(probe.analysis.terms) if terms else 0.0
        for signal in store.score(memories, terms, probe.vector, space, where):
            name = f"{signal.name}:{probe.label}"
            signals[name] = replace(signal, name=name, mass=mass if signal.name == "keyword" else None)
    if request.added is not None and (beside := _beside(store, request, memories)) is not None:
        signals[beside.name] = beside
    known = [match.name for match in names.values() if match.relation in _NAMED]
    if known:
        analysis = replace(analysis, entities=tuple(dict.fromkeys((*analysis.entities, *sorted(known)))))
    return Context(
        query=query,
        analysis=analysis,
        memories=memories,
        signals=signals,
        names=with_code_matches(names, held) if held else names,
        statistics=statistics,
        unheld=unheld(codes) if codes else None,
    )


def _beside(store: Reader, request: Request, memories: Candidates) -> Signal | None:
    """Score those candidates that are in another language by the additional model; None if none is."""
    added, where = request.added, request.resolution.query.where
    assert added is not None
    others = store.in_other_languages(memories, added.language, where.scopes)
    known = {*added.marks.values()}
    ids = [identity for identity, language in others.items() if language in known]
    for signal in store.score(ids, (), added.vector, added.embedder.fingerprint, where) if ids else ():
        return replace(signal, name=added.name, floor=None)
    return None


def _match_names(store: Reader, request: Request, proposed: Sequence[MemoryId]) -> dict[MemoryId, NameMatch]:
    """Match the names of the candidates that the name run proposes with the query."""
    probe, scopes = request.resolution.analysis.probe, request.resolution.query.where.scopes
    read = store.fetch(proposed, scopes).memories
    matches: dict[MemoryId, NameMatch] = {}
    for identity in proposed:
        match = match_in_any_spelling(probe, names_of(read[identity])) if identity in read else None
        if match is not None:
            # Words that only the name spells so are searched in its spelling.
            said = match.words if match.name.isascii() else (*match.words, match.name)
            matches[identity] = match._replace(words=tokens_of(" ".join(said), request.language)) if said else match
    return matches


def _with_inputs(
    store: Reader, request: Request, context: Context, ids: Sequence[MemoryId]
) -> tuple[Context, Mapping[MemoryId, Vector]]:
    """Gather what only some recipes' stages read: memories, vectors to compare, languages, ends of chats."""
    reads, scopes = request.reads, context.query.where.scopes
    vectors: Mapping[MemoryId, Vector] = {}
    if "likeness" in reads and request.space:
        vectors = store.vectors(sorted(ids), request.space, scopes)
    if "memories" in reads or ("likeness" in reads and len(vectors) < len(context.memories)):
        read = store.fetch(ids, scopes).memories
        context = replace(context, memories=Candidates.of({**context.memories, **read}))
    spoken = context.analysis.shown_language
    if "languages" in reads and spoken and (others := store.in_other_languages(ids, spoken, scopes)):
        context = replace(context, languages=others)
    if "chats" in reads:
        turns = map(memory_of, context.memories.values())
        sessions = {(memory.scope, memory.session) for memory in turns if memory.session}
        context = replace(context, chats=store.last_positions(sessions)) if sessions else context
    return context, vectors


def _inside(run: Run, context: Context, notices: list[Notice]) -> Run:
    """Remove candidates outside the caller's scopes, a defect of the store; report it without content."""
    inside = tuple(candidate for candidate in run.candidates if candidate.id in context.memories)
    foreign = len(run.candidates) - len(inside)
    if not foreign:
        return run
    removed = f"removed {counted(foreign, 'candidate')} from outside the scope; please report this"
    notices.append(Notice("scope-defect", removed))
    return Run(run.name, inside, run.notices)


def _run_notices(runs: tuple[Run, ...], context: Context, request: Request) -> Iterator[Notice]:
    """Yield the notices of the runs, and what an answer lacks without words or vectors."""
    # Notices about the whole index are repeated by every run.
    yield from dict.fromkeys(notice for run in runs for notice in run.notices)
    analysis = context.analysis
    if "keyword" in request.plan.runs and not analysis.terms:
        yield Notice("no-terms", "the query has no word to search for, so there was no keyword run")
    if request.vector is None:
        return
    signal, missing = context.signals.get("vector"), 0
    values = signal.values if signal else {}
    is_whole = isinstance(values, Column) and values.array is not None and len(values.ids) == len(context.memories)
    if not is_whole:  # an array has no gaps
        missing = column_of(values, list(context.memories)).count(None)
    if (
        not context.memories
        and request.resolution.statistics.total
        and not request.resolution.dimensions.get(request.space)
    ):
        yield Notice("no-vectors", f"no memory has a vector of {request.space} yet; `whyrank embed` creates them")
    if missing and missing == len(context.memories):
        yield Notice("no-vectors", f"no candidate has a vector of {request.space} yet; `whyrank embed` creates them")
    elif missing and all(notice.code != LACKING for run in runs for notice in run.notices):
        lacking = f"{missing} of {len(context.memories)} candidates {which(missing, 'has', 'have')} no vector yet"
        yield Notice(LACKING, f"{lacking}; these are scored by keywords only")
