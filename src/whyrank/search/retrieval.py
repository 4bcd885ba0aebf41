"""Retrieval: from a query to runs and a context, all input and output that ranking needs to be pure."""

from __future__ import annotations

import math
import threading
import time
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from ..analysis.document import embedded_text
from ..analysis.names import MAX_WINDOW_WORDS, match_in_any_spelling, may_hold_umlauts, name_words, names_of
from ..analysis.query import terms_of
from ..analysis.tokenizer import (
    LANGUAGES,
    LATIN_LANGUAGES,
    foreign_stems,
    german_stems,
    marks_but_of,
    parts_of_wholes,
    tokens_of,
)
from ..errors import ProviderTimeout, StoreTimeout
from ..formatting import counted, which
from ..protocols import LACKING, Embedder, Fetched, Store, Vector
from ..ranking.boosts import TokenGate
from ..ranking.diversity import Similarity
from ..ranking.fusion import listed_by
from ..ranking.recipes import rank_pool
from ..ranking.stages import Rerank
from ..types.memory import MemoryId, Notice, unit_row
from ..types.query import (
    All,
    Analysis,
    Deadline,
    Either,
    Holds,
    Query,
    Statistics,
    Where,
    call_within,
    is_several,
    label_of,
)
from ..types.results import Candidates, Column, Context, Held, Labels, Run, Signal, column_of, memory_of
from .expansion import Probe, further_runs, further_signals, probes_for, replaces_the_question, shares_of
from .query_resolution import Held as HeldCode
from .query_resolution import (
    codes_asked,
    corrected,
    holders_of,
    in_other_spellings,
    otherwise_written,
    settled,
    understood,
    unheld,
    with_accented_names,
    with_boosts,
    with_code_matches,
    with_codes,
    with_holders,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from ..protocols import Store
    from ..ranking.recipes import Recipe
    from ..types.memory import MemoryId
    from ..types.results import Held
    from ..types.trail import NameMatch, NameProbe
    from .confidence import Calibration

ADDED_LACKING = "added-vectors-missing"


class AddedSpace(NamedTuple):
    """Query vector in the space of an additional model, with the language marks of the memories to search."""

    embedder: Embedder
    language: str
    marks: Mapping[str, str]
    vector: Vector

    @property
    def name(self) -> str:
        """Name its run and its signal."""
        return f"vector:{self.embedder.fingerprint.partition('/')[0]}"

    def run(self, store: Store, where: Where, limit: int | None) -> Run:
        """Return the nearest memories in another language, up to `limit` distinct sources; None for all."""
        spoken = Either(tuple(Holds(language, mark) for mark, language in self.marks.items()))
        within = replace(where, matching=spoken if where.matching is None else All((where.matching, spoken)))
        found = store.nearest(self.vector, self.embedder.fingerprint, within, limit)
        return Run(self.name, found.candidates, tuple(map(self._told, found.notices)))

    def _told(self, notice: Notice) -> Notice:
        if notice.code != LACKING:
            return notice
        lacking = f"some memories in another language have no {self.name} yet, so it does not vote for them"
        return Notice(ADDED_LACKING, f"{lacking}; `whyrank embed` makes what is missing")

    def signal(self, store: Store, memories: Mapping[MemoryId, Held], where: Where) -> Signal | None:
        """Score those candidates that are in another language, listed by its run or not; None if none is."""
        others = store.in_other_languages(memories, self.language, where.scopes)
        known = {*self.marks.values()}
        ids = [identity for identity, language in others.items() if language in known]
        for signal in store.score(ids, (), self.vector, self.embedder.fingerprint, where) if ids else ():
            return replace(signal, name=self.name, floor=None)
        return None


def language_asked(analysis: Analysis, there: Mapping[str, int]) -> str:
    """Return the language a query shows, else that of most memories, so that single words stay within it."""
    latin = [(count, language) for language, count in there.items() if language in LATIN_LANGUAGES]
    return analysis.shown_language or max(latin, default=(0, analysis.language))[1]


def other_marks(embedder: Embedder, language: str, there: Mapping[str, int]) -> dict[str, str]:
    """Return the marks of the other languages in the store, if the model supports them and the query's."""
    known = {*(embedder.languages or LANGUAGES)}
    if language not in known:
        return {}
    return {mark: other for mark, other in marks_but_of(language).items() if other in there and other in known}


_LABELS_KEPT = 4_096  # the chunks of a file share theirs, and many questions find the same files


def gathered(retrieved: Retrieved, store: Store, language: str) -> Retrieved:
    """Add the further input that the recipe's stages read; most recipes read none."""
    reads = retrieved.recipe.reads
    if not reads:
        return retrieved
    if "memories" in reads:
        retrieved = replace(retrieved, context=with_memories(retrieved.context, store))
    if "likeness" in reads:
        retrieved = replace(retrieved, context=with_likeness(retrieved, store, language))
    if "labels" in reads:
        retrieved = replace(retrieved, context=_with_labels(retrieved.context))
    if any(isinstance(stage, TokenGate) and stage.asked(retrieved.context) for stage in retrieved.recipe.stages):
        retrieved = replace(retrieved, context=_with_bodies(retrieved.context))
    if "languages" in reads:
        retrieved = replace(retrieved, context=_with_languages(retrieved.context, store))
    if "chats" in reads:
        retrieved = replace(retrieved, context=_with_chats(retrieved.context, store))
    for place, stage in enumerate(retrieved.recipe.stages):
        if isinstance(stage, Rerank):
            return _with_opinions(retrieved, stage, place)
    return retrieved


def with_likeness(retrieved: Retrieved, store: Store, language: str) -> Context:
    """Gather vectors, and words as well where a candidate has no vector."""
    context = retrieved.context
    ids, scopes = sorted(context.memories), context.query.where.scopes
    vectors = store.vectors(ids, retrieved.space, scopes) if retrieved.space else {}
    tokens: dict[MemoryId, frozenset[str]] = {}
    if len(vectors) < len(ids):
        tokens = {key: frozenset(tokens_of(memory.text, language)) for key, memory in store.get(ids, scopes).items()}
    return replace(context, likeness=Similarity(vectors, tokens))


def with_memories(context: Context, store: Store) -> Context:
    """Read all candidates in one batch, for stages that read every memory."""
    wanted = [*context.memories]
    memories = store.fetch(wanted, context.query.where.scopes).memories
    return replace(context, memories=Candidates.of({**context.memories, **memories}))


def _with_labels(context: Context) -> Context:
    """Gather the words of names, slugs and summaries."""
    memories = ((key, memory_of(held)) for key, held in context.memories.items())
    labels = {key: _labels(memory.name, memory.slug, memory.summary) for key, memory in memories}
    return replace(context, labels=labels)


def _with_bodies(context: Context) -> Context:
    """Gather the words of texts that have no summary."""
    labels = dict(context.labels)
    for key, held in context.memories.items():
        memory = memory_of(held)
        if not memory.summary:
            labels[key] = replace(labels[key], body=name_words(memory.text))
    return replace(context, labels=labels)


@lru_cache(maxsize=_LABELS_KEPT)
def _labels(name: str, slug: str, summary: str) -> Labels:
    return Labels(*(name_words(label) if label else () for label in (name, slug, summary)))


def _with_chats(context: Context, store: Store) -> Context:
    """Gather how long the conversations are that turns among the candidates belong to."""
    memories = map(memory_of, context.memories.values())
    sessions = {(memory.scope, memory.session) for memory in memories if memory.session}
    return replace(context, chats=store.last_positions(sessions)) if sessions else context


def _with_languages(context: Context, store: Store) -> Context:
    """Gather which candidates show another language than the question, if that shows one."""
    spoken, scopes = context.analysis.shown_language, context.query.where.scopes
    others = store.in_other_languages(context.memories, spoken, scopes) if spoken else {}
    return replace(context, languages=others) if others else context


def _with_opinions(retrieved: Retrieved, stage: Rerank, place: int) -> Retrieved:
    """Rank as far as the reranker's stage, and let it read the head of that."""
    if stage.reranker is None:
        return _without(retrieved, "there is no reranker", "hand one to whyrank.open or to the stage")
    before = replace(retrieved.recipe, stages=retrieved.recipe.stages[:place])
    window = rank_pool(retrieved.runs, before, retrieved.context).hits[: stage.top]
    if not window:
        return retrieved
    deadline, limit_ms = retrieved.context.query.deadline, stage.deadline_ms
    if deadline is not None:
        limit_ms = min(limit_ms, round(1_000 * deadline.remaining_s))
    texts = [embedded_text(hit.memory) for hit in window]
    scores = _answered(stage, retrieved.context.analysis.text, texts, limit_ms)
    if isinstance(scores, str):
        return _without(retrieved, scores, "the order is that of the stages before it")
    opinions = {hit.id: score for hit, score in zip(window, scores, strict=True)}
    return replace(retrieved, context=replace(retrieved.context, opinions=opinions))


def _without(retrieved: Retrieved, failure: str, instead: str) -> Retrieved:
    notice = Notice("rerank-off", f"the results were not reranked: {failure}; {instead}")
    return replace(retrieved, notices=(*retrieved.notices, notice))


def _answered(stage: Rerank, question: str, texts: Sequence[str], limit_ms: float) -> list[float] | str:
    """Return the reranker's scores, or the reason why there are none."""
    said: list[Sequence[float] | Exception] = []

    def ask() -> None:
        assert stage.reranker is not None
        try:
            said.append(stage.reranker.scores(question, texts))
        except Exception as error:  # whatever a provider throws, the order before it must be given out
            said.append(error)

    # A thread of its own can be left behind when it is late; as a daemon it does not keep the process from leaving.
    asking = threading.Thread(target=ask, name="whyrank-rerank", daemon=True)
    asking.start()
    asking.join(limit_ms / 1000)
    if not said:
        return f"it took longer than {limit_ms:g} ms"
    return _checked(said[0], len(texts))


def _checked(said: Sequence[float] | Exception, wanted: int) -> list[float] | str:
    if isinstance(said, Exception):
        return f"it failed ({type(said).__name__}: {said})"
    try:
        scores = [float(score) for score in said]
    except (TypeError, ValueError):
        return "it gave scores that are no numbers"
    if len(scores) != wanted:
        return f"it gave {counted(len(scores), 'score')} for {counted(wanted, 'text')}"
    return scores if all(map(math.isfinite, scores)) else "it gave scores that are no finite numbers"


_NAMED = frozenset({"equal", "accents", "same words", "in a sentence"})
Made = TypeVar("Made")
MAX_TYPO_LETTERS = 64  # no name is longer, and a long key is slow to compare


@dataclass
class Stopwatch:
    """Milliseconds by stage."""

    milliseconds: dict[str, float] = field(default_factory=dict)

    def timing(self, stage: str) -> _Timing:
        """Add the time the block takes to a stage."""
        return _Timing(self.milliseconds, stage)


class _Timing:
    """Timer of one block; every search has a dozen of them."""

    __slots__ = ("_milliseconds", "_stage", "_start")

    def __init__(self, milliseconds: dict[str, float], stage: str) -> None:
        self._milliseconds = milliseconds
        self._stage = stage

    def __enter__(self) -> None:
        self._start = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        spent = (time.perf_counter() - self._start) * 1000
        self._milliseconds[self._stage] = self._milliseconds.get(self._stage, 0.0) + spent


@dataclass(frozen=True)
class Retrieved:
    """Input of ranking: the runs, the context, and the recipe with its open weights resolved."""

    runs: tuple[Run, ...]
    context: Context
    recipe: Recipe
    vector: Vector | None
    space: str
    notices: tuple[Notice, ...]
    probes: tuple[Probe, ...] = ()
    calibration: Calibration | None = None  # of the visible scopes, in this space
    read: Fetched = field(default_factory=lambda: Fetched({}))  # the memories that are shown
    added: AddedSpace | None = None  # beside that space, where the store holds other languages than the question's

    @property
    def total(self) -> int:
        """Return the number of memories visible to the caller."""
        return self.context.statistics.total if self.context.statistics else 0


def retrieve(
    query: Query,
    recipe: Recipe,
    store: Store,
    embedder: Embedder | None,
    language: str,
    watch: Stopwatch,
    added: Embedder | None = None,
) -> Retrieved:
    """Retrieve the candidates of every run of the recipe, then score the union by every signal.

    `added` is the additional model, which searches memories in another language than the query.
    """
    with watch.timing("analysis"):
        question = understood(query, language)
        if recipe.plan.analysis == "strict-length":
            question = question.in_long_words(language)
    notices: list[Notice] = []
    deadline, late = query.deadline, list[str]()  # names of the parts skipped at the deadline
    with watch.timing("embedding"):
        vector = _query_vector(question.analysis, recipe, embedder, store, notices, deadline, late)
        probes = _probes(query, recipe, embedder, vector, language, notices, late)
        if recipe.plan.analysis == "strict-length":
            probes = tuple(further.in_long_words(language) for further in probes)
        beside = _added_space(question.analysis, recipe, added, store, query, notices, late)
    space = embedder.fingerprint if embedder else ""
    with store.reading():
        with watch.timing("terms"), _aborting(store, deadline):
            question = settled(question, store, language)
            query, analysis = question.query, question.analysis
            probe = _with_typos(analysis.probe, analysis.terms, store, query, language)
            terms, statistics, corrections = _known_terms(analysis, store, query, language)
            notices += corrections
            if probe is not analysis.probe or terms is not analysis.terms:
                analysis = replace(analysis, probe=probe, terms=terms)
            codes = codes_asked(analysis, statistics, store, query.where, language)
            if codes:
                analysis, statistics = otherwise_written(analysis, statistics, codes)
            probes = tuple(_in_known_terms(further, store, query, language) for further in probes)
            if recipe.plan.entities is not None:
                analysis = with_boosts(analysis, recipe.plan.entities, statistics, store, query, language)
        vector_of_question = None if replaces_the_question(probes) else vector
        runs = _runs(query, analysis, recipe, store, vector_of_question, space, watch, late)
        if analysis.terms is not question.analysis.terms or not analysis.probe.key.isascii():
            runs = with_accented_names(runs, analysis, store, query.where)
        if codes:
            runs = with_holders(runs, codes)
        if probes:
            with watch.timing("expansion"):
                further_found = _in_time(
                    "expansion", lambda: further_runs(probes, query, recipe.plan, store, space), store, deadline, late
                )
                probes = probes if further_found else ()
                runs += further_found or ()
        if beside is not None:
            ask = partial(beside.run, store, query.where, recipe.plan.pool)
            with watch.timing(beside.name):
                found_beside = _in_time(beside.name, ask, store, deadline, late)
            runs += () if found_beside is None else (found_beside,)
        with watch.timing("scoring"):
            listed = listed_by(runs)
            memories = store.held(listed, query.where.scopes)
            context = _context(query, analysis, statistics, codes, runs, memories, store, vector, space, language)
            if probes:
                further = further_signals(probes, context, store, space)
                context = replace(context, signals={**context.signals, **further})
            if beside is not None and (said := beside.signal(store, memories, query.where)) is not None:
                context = replace(context, signals={**context.signals, said.name: said})
        if len(memories) < len(listed):
            runs = tuple(_inside(run, context, notices) for run in runs)
        notices = [*analysis.notices, *notices, *_run_notices(runs, context, recipe, vector, space)]
        if deadline is not None and late:
            notices.append(timeout_notice(deadline, late))
    decided = recipe.settled(embedder.weight(analysis.language) if embedder else 0.0)
    if probes:
        decided = replace(decided, fusion=decided.fusion.split(shares_of(runs, probes)))
    return Retrieved(runs, context, decided, vector, space, tuple(notices), probes, added=beside)


def timeout_notice(deadline: Deadline, late: Sequence[str]) -> Notice:
    """Return the notice that a search timed out, with the parts its answer lacks."""
    lacking = f"without {', '.join(dict.fromkeys(late))}" if late else "with nothing"
    over = f"the search took longer than timeout_ms = {deadline.timeout_ms} and was answered {lacking}"
    return Notice("timeout", f"{over}; give a larger timeout_ms for the whole answer")


def _aborting(store: Store, deadline: Deadline | None) -> AbstractContextManager[None]:
    return nullcontext() if deadline is None else store.aborting(deadline.abort_at)


def _in_time(
    name: str, ask: Callable[[], Made], store: Store, deadline: Deadline | None, late: list[str]
) -> Made | None:
    """Call the store if there is time left; else return None and append the name to `late`."""
    if deadline is None:
        return ask()
    if not deadline.has_passed:
        try:
            with store.aborting(deadline.abort_at):
                return ask()
        except StoreTimeout:
            pass  # reported by the name in `late`
    late.append(name)
    return None


def _probes(
    query: Query,
    recipe: Recipe,
    embedder: Embedder | None,
    vector: Vector | None,
    language: str,
    notices: list[Notice],
    late: list[str],
) -> tuple[Probe, ...]:
    """Prepare the texts searched beside the query, if there is time left for them."""
    plan, deadline = recipe.plan, query.deadline
    if deadline is None or query.expansion is None:
        return probes_for(query, plan, embedder, vector, language, notices)
    said: list[Notice] = []  # a thread that is left behind must not add to those of the answer
    try:
        probes = call_within(
            deadline.remaining_s, lambda: probes_for(query, plan, embedder, vector, language, said), "timeout_ms"
        )
    except TimeoutError:
        late.append("expansion")
        return ()
    notices += said
    return probes


def _in_known_terms(probe: Probe, store: Store, query: Query, language: str) -> Probe:
    terms, *_ = _known_terms(probe.analysis, store, query, language)
    return probe._replace(analysis=replace(probe.analysis, terms=terms))


def _query_vector(
    analysis: Analysis,
    recipe: Recipe,
    embedder: Embedder | None,
    store: Store,
    notices: list[Notice],
    deadline: Deadline | None,
    late: list[str],
) -> Vector | None:
    """Embed the query if the recipe has a vector run; if the embedder fails, the other runs go on."""
    if embedder is None and "vector" in recipe.plan.runs and "keyword" not in recipe.plan.runs:
        notices.append(Notice("vector-off", "this recipe asks vectors alone, and there is no embedder"))
    if embedder is None or "vector" not in recipe.plan.runs or not analysis.text.strip():
        return None
    try:
        vector = _embedded(analysis.text, embedder, store, deadline)
    except Exception as error:  # whatever a provider throws or gives, the other runs must answer
        if isinstance(error, TimeoutError | ProviderTimeout) and deadline is not None and deadline.has_passed:
            late.append("vector")
        else:
            notices.append(Notice("vector-off", f"the embedder failed, so words and names answer alone: {error}"))
        return None
    if not vector.dot(vector):  # it has unit length, or none
        notices.append(
            Notice("vector-off", "the embedder knows no part of the question, so words and names answer alone")
        )
        return None
    return vector


def _embedded(text: str, embedder: Embedder, store: Store, deadline: Deadline | None) -> Vector:
    """Embed a question, in the time that is left."""
    if deadline is None:
        given = embedder.query(text)
    else:
        given = call_within(deadline.remaining_s, lambda: embedder.query(text), "timeout_ms")
    vector: Vector = unit_row(given, store.dimensions(embedder.fingerprint))
    return vector


def _added_space(
    analysis: Analysis,
    recipe: Recipe,
    embedder: Embedder | None,
    store: Store,
    query: Query,
    notices: list[Notice],
    late: list[str],
) -> AddedSpace | None:
    """Embed the query by the additional model, if the store holds another language that it supports."""
    if embedder is None or recipe.fusion.added is None or not analysis.text.strip():
        return None
    there = store.languages(query.where.scopes)
    language = language_asked(analysis, there)
    marks = other_marks(embedder, language, there)
    if not marks:
        return None
    try:
        vector = _embedded(analysis.text, embedder, store, query.deadline)
    except Exception as error:  # as above
        deadline = query.deadline
        if isinstance(error, TimeoutError | ProviderTimeout) and deadline is not None and deadline.has_passed:
            late.append("other languages")
        else:
            told = f"the model that was added failed, so what is in another language may be missed: {error}"
            notices.append(Notice("added-off", told))
        return None
    return AddedSpace(embedder, language, marks, vector) if vector.dot(vector) else None


def _with_typos(probe: NameProbe, terms: Sequence[str], store: Store, query: Query, language: str) -> NameProbe:
    """Allow misspelt names only where the query holds an unknown word: "test" must not find "Text"."""
    if not 0 < len(probe.key) <= MAX_TYPO_LETTERS or len(probe.words) > MAX_WINDOW_WORDS:
        return probe
    spoken = [token for term in terms for token in ([term] if is_several(term) else term.split(" "))]
    joined = terms_of(probe.key, language)
    known = store.statistics({*spoken, *joined}, query.where.scopes).frequency
    is_known = any(known[term] for term in joined) or all(known[term] for term in spoken)
    return probe if probe.typos != is_known else replace(probe, typos=not is_known)


def _known_terms(
    analysis: Analysis, store: Store, query: Query, language: str
) -> tuple[tuple[str, ...], Statistics, tuple[Notice, ...]]:
    """Resolve terms to those of the index: stems of other languages, other spellings, corrections.

    A query of one German word does not show its language; the memories do. A word that is in no memory in any form may
    be mistyped.
    """
    scopes = query.where.scopes
    statistics = store.statistics(analysis.terms, scopes)
    analysis = _wholes_first(analysis, statistics, language)
    foreign: dict[str, Sequence[str]] = {}
    if not all(statistics.frequency.values()):
        foreign, statistics = _as_others_stem(analysis, statistics, store, query, language)
    others: dict[str, str] = {}
    notices: tuple[Notice, ...] = ()
    if query.where.matching is None:  # else its leaves are settled
        words = {word for term in analysis.terms for word in label_of(term).split(" ")}
        stems = german_stems(analysis.text, analysis.language, language, words)
        for term, stemmed in foreign.items():
            stems[term] = (*stems.get(term, ()), *stemmed)
        others = in_other_spellings(analysis.terms, statistics.frequency, store, scopes, stems)
        known = {term for term in analysis.terms if statistics.frequency[term] or term in others or term in foreign}
        if len(known) < len(analysis.terms):
            unknown = [term for term in analysis.terms if term not in known and " " not in term]
            corrections, notices = corrected(unknown, analysis, store, scopes, language)
            others |= corrections
    if not others and not foreign:
        return analysis.terms, statistics, notices
    terms = tuple(dict.fromkeys(others.get(term) or foreign.get(term, [term])[0] for term in analysis.terms))
    frequency = {**statistics.frequency, **store.statistics(others.values(), scopes).frequency}
    return terms, replace(statistics, frequency={term: frequency[term] for term in terms}), notices


def _wholes_first(analysis: Analysis, statistics: Statistics, language: str) -> Analysis:
    """Drop the parts of a word with inner capitals if the whole is indexed: `WhatsApp` is no `app`."""
    wholes = parts_of_wholes(analysis.text, language)
    known = {part for part, whole in wholes.items() if all(map(statistics.frequency.get, whole))}
    return replace(analysis, terms=tuple(term for term in analysis.terms if term not in known)) if known else analysis


def _as_others_stem(
    analysis: Analysis, statistics: Statistics, store: Store, query: Query, language: str
) -> tuple[dict[str, Sequence[str]], Statistics]:
    """Stem words unknown in the query's language as another language does, if that stem is indexed.

    Of several indexed stems the most frequent is taken, or all where two letters may be an umlaut: `mueller` is not
    `muelle`, however frequent that is.
    """
    frequency = statistics.frequency
    variants = foreign_stems(analysis.text, language, {term for term in analysis.terms if not frequency[term]})
    unknown = [term for term in analysis.terms if variants.get(term)]
    others = [variant for term in unknown for variant in variants[term]]
    known = {**frequency, **store.statistics(others, query.where.scopes).frequency}
    living = {term: sorted(filter(known.get, variants[term]), key=lambda one: -known[one]) for term in unknown}
    better: dict[str, Sequence[str]] = {
        term: found if may_hold_umlauts(term) else found[:1] for term, found in living.items() if found
    }
    return better, replace(statistics, frequency=known)


def _runs(
    query: Query,
    analysis: Analysis,
    recipe: Recipe,
    store: Store,
    vector: Vector | None,
    space: str,
    watch: Stopwatch,
    late: list[str],
) -> tuple[Run, ...]:
    """Retrieve the candidates of every run; the first run is executed even if there is no time left."""
    plan, where = recipe.plan, query.where
    asked: dict[str, Callable[[], Run]] = {}
    if "keyword" in plan.runs:
        asked["keyword"] = lambda: store.keyword(analysis.asked, where, plan.pool, plan.join, analysis.repeats)
    if "vector" in plan.runs and vector is not None:
        asked["vector"] = lambda: store.nearest(vector, space, where, plan.pool)
    if "name" in plan.runs and analysis.probe.key:
        asked["name"] = lambda: store.named(analysis.probe, where, plan.pool)
    runs: list[Run] = []
    for place, (name, ask) in enumerate(asked.items()):
        with watch.timing(name):
            if not place:
                with _aborting(store, query.deadline):
                    runs.append(ask())
            elif (run := _in_time(name, ask, store, query.deadline, late)) is not None:
                runs.append(run)
    return tuple(runs)


def _context(
    query: Query,
    analysis: Analysis,
    statistics: Statistics,
    codes: tuple[HeldCode, ...],
    runs: tuple[Run, ...],
    memories: Mapping[MemoryId, Held],
    store: Store,
    vector: Vector | None,
    space: str,
    language: str,
) -> Context:
    scored = store.score(memories, analysis.asked, vector, space, query.where, analysis.repeats)
    held = holders_of(codes, memories) if codes else {}
    mass = statistics.mass(analysis.terms)
    scored = [replace(signal, mass=mass) if signal.name == "keyword" else signal for signal in scored]
    signals = with_codes(scored, analysis, statistics, held, store, query.where)
    names = _name_matches(analysis, runs, memories, language)
    known = [match.name for match in names.values() if match.relation in _NAMED]
    if known:
        analysis = replace(analysis, entities=tuple(dict.fromkeys((*analysis.entities, *sorted(known)))))
    return Context(
        query=query,
        analysis=analysis,
        memories=memories,
        signals={signal.name: signal for signal in signals},
        names=with_code_matches(names, held) if held else names,
        statistics=statistics,
        unheld=unheld(codes),
    )


def _inside(run: Run, context: Context, notices: list[Notice]) -> Run:
    """Remove candidates outside the caller's scopes, a defect of the store; report it without content."""
    inside = tuple(candidate for candidate in run.candidates if candidate.id in context.memories)
    foreign = len(run.candidates) - len(inside)
    if not foreign:
        return run
    removed = f"removed {counted(foreign, 'candidate')} from outside the scope; please report this"
    notices.append(Notice("scope-defect", removed))
    return Run(run.name, inside, run.notices)


def _name_matches(
    analysis: Analysis, runs: tuple[Run, ...], memories: Mapping[MemoryId, Held], language: str
) -> dict[MemoryId, NameMatch]:
    proposed = (identity for run in runs if run.name == "name" for identity in run.ids)
    matches: dict[MemoryId, NameMatch] = {}
    for identity in proposed:
        if identity not in memories:
            continue
        match = match_in_any_spelling(analysis.probe, names_of(memory_of(memories[identity])))
        if match is not None:
            # Words that only the name spells so are searched in its spelling.
            said = match.words if match.name.isascii() else (*match.words, match.name)
            matches[identity] = match._replace(words=tokens_of(" ".join(said), language))
    return matches


def _run_notices(
    runs: tuple[Run, ...], context: Context, recipe: Recipe, vector: Vector | None, space: str
) -> Iterator[Notice]:
    # Notices about the whole index are repeated by every run.
    yield from dict.fromkeys(notice for run in runs for notice in run.notices)
    analysis = context.analysis
    if "keyword" in recipe.plan.runs and not analysis.terms:
        yield Notice("no-terms", "the query holds no word to look for, so there was no keyword run")
    if vector is None:
        return
    missing = _without_vector(context.signals.get("vector"), context)
    if missing and missing == len(context.memories):
        yield Notice("no-vectors", f"no candidate has a vector of {space} yet; `whyrank ingest` makes them")
    elif missing and all(notice.code != LACKING for run in runs for notice in run.notices):
        lacking = f"{missing} of {len(context.memories)} candidates {which(missing, 'has', 'have')} no vector yet"
        message = f"{lacking}; words alone speak for what has none"
        yield Notice(LACKING, message)


def _without_vector(signal: Signal | None, context: Context) -> int:
    values = signal.values if signal else {}
    if isinstance(values, Column) and values.array is not None and len(values.ids) == len(context.memories):
        return 0  # an array has no gaps
    return column_of(values, list(context.memories)).count(None)
