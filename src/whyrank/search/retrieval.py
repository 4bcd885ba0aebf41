"""Gather the input of a ranking: embeddings, candidates with signals, reranker scores."""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING

from ..analysis.document import embedded_text
from ..analysis.names import name_words
from ..analysis.query import analyse, asked_for, long_terms
from ..analysis.tokenizer import LANGUAGES, LATIN_LANGUAGES, marks_but_of, tokens_of
from ..errors import ProviderTimeout
from ..formatting import counted
from ..protocols import AddedSpace, Embedder, Fetched, Probe, Question, Request, Store, Vector
from ..ranking.boosts import TokenGate
from ..ranking.diversity import Similarity
from ..ranking.fusion import family_of
from ..ranking.recipes import rank_pool
from ..ranking.stages import Rerank
from ..types.memory import Notice, unit_row
from ..types.query import Analysis, Deadline, Query, Stopwatch, call_within
from ..types.results import Context, Labels, Run, memory_of
from .confidence import calibration_for, note_names
from .expansion import probes_for, shares_of, texts_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..protocols import Resolution
    from ..ranking.recipes import Recipe
    from ..types.memory import MemoryId
    from .confidence import Calibration

_READ_HERE = frozenset({"likeness", "labels", "opinions"})  # inputs of stages that no store gives
_LABELS_KEPT = 4_096  # the chunks of a file share theirs, and many questions find the same files


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
    added_calibration: Calibration | None = None  # in the space of the additional model
    readers: Mapping[int, int] = field(default_factory=dict)  # visible memories by the version of their analyzer
    read: Fetched = field(default_factory=lambda: Fetched({}))  # the memories that are shown
    added: AddedSpace | None = None  # beside that space, where the store holds other languages than the question's

    @property
    def total(self) -> int:
        """Return the number of memories visible to the caller."""
        return self.context.statistics.total if self.context.statistics else 0


def parse(query: Query, language: str) -> Question:
    """Analyse a query; only the advanced syntax can be written wrongly."""
    moment = query.where.moment
    if query.syntax == "plain":
        return Question(query, analyse(query.text, language, moment))
    asked = asked_for(query.text, language, moment)
    return Question(query, asked.analysis, asked.expression)


def retrieve(
    query: Query,
    recipe: Recipe,
    store: Store,
    embedder: Embedder | None,
    language: str,
    watch: Stopwatch,
    added: Embedder | None = None,
    further_reads: frozenset[str] = frozenset(),
) -> Retrieved:
    """Resolve and embed a query, retrieve its candidates, and gather the input of the stages.

    `added` is the additional model, which searches memories in another language than the query.
    """
    plan, scopes, deadline = recipe.plan, query.where.scopes, query.deadline
    question = parse(query, language)
    texts = texts_of(query, plan) if query.expansion is not None else ()
    further = [analyse(text, language, query.where.moment) for text in texts]
    if plan.analysis == "strict-length":
        question = question._replace(analysis=_in_long_words(question.analysis, language))
        further = [_in_long_words(one, language) for one in further]
    watch.lap("analysis")
    space = embedder.fingerprint if embedder else ""
    added = added if recipe.fusion.added is not None else None
    spaces = [one.fingerprint for one in (embedder, added) if one is not None] or [space]
    names = [name for one in spaces for name in note_names(one, scopes)]
    resolution = store.resolve(question, plan, language, further, spaces, names)
    watch.lap("terms")
    late, notices = list[str](), list[Notice]()
    vector = _query_vector(question.analysis, recipe, embedder, resolution, notices, late)
    probes: tuple[Probe, ...] = ()
    if query.expansion is not None:
        probes = _probes(resolution, texts, recipe, embedder, vector, notices, late)
    beside = _added_space(question.analysis, added, resolution, notices, late) if added is not None else None
    watch.lap("embedding")
    reads = recipe.reads | further_reads
    found = store.retrieve(Request(resolution, plan, language, vector, space, probes, beside, reads, watch))
    notices = [*found.context.analysis.notices, *notices, *resolution.notices, *found.notices]
    late += found.late
    if deadline is not None and late:
        notices.append(timeout_notice(deadline, late))
    decided = recipe.settled(embedder.weight(resolution.analysis.language) if embedder else 0.0)
    if found.probes:
        decided = replace(decided, fusion=decided.fusion.split(shares_of(found.runs, found.probes)))
    total = resolution.statistics.total
    note = resolution.notes.get
    calibration = calibration_for(note, space, scopes, total)
    added_calibration = calibration_for(note, beside.embedder.fingerprint, scopes, total) if beside else None
    retrieved = Retrieved(
        runs=found.runs,
        context=found.context,
        recipe=decided,
        vector=vector,
        space=space,
        notices=tuple(notices),
        probes=found.probes,
        calibration=calibration,
        added_calibration=added_calibration,
        readers=resolution.readers,
        added=beside,
    )
    retrieved = replace(retrieved, context=_with_floors(retrieved, embedder))
    return _with_stage_inputs(retrieved, found.vectors, reads, store, language) if reads & _READ_HERE else retrieved


def timeout_notice(deadline: Deadline, late: Sequence[str]) -> Notice:
    """Return the notice that a search timed out, with the parts its answer lacks."""
    lacking = f"without {', '.join(dict.fromkeys(late))}" if late else "with nothing"
    over = f"the search took longer than timeout_ms = {deadline.timeout_ms} and was answered {lacking}"
    return Notice("timeout", f"{over}; give a larger timeout_ms for the whole answer")


def _in_long_words(analysis: Analysis, language: str) -> Analysis:
    """Return an analysis without the words that are too short to be searched."""
    return replace(analysis, terms=long_terms(analysis.terms, analysis.text, language))


def _query_vector(
    analysis: Analysis,
    recipe: Recipe,
    embedder: Embedder | None,
    resolution: Resolution,
    notices: list[Notice],
    late: list[str],
) -> Vector | None:
    """Embed the query if the recipe has a vector run; if the embedder fails, the other runs continue."""
    if embedder is None and "vector" in recipe.plan.runs and "keyword" not in recipe.plan.runs:
        notices.append(Notice("vector-off", "this recipe only uses vectors, and there is no embedder"))
    if embedder is None or "vector" not in recipe.plan.runs or not analysis.text.strip():
        return None
    try:
        vector = _embedded(analysis.text, embedder, resolution)
    except Exception as error:  # whatever a provider throws or gives, the other runs must answer
        deadline = resolution.query.deadline
        if isinstance(error, TimeoutError | ProviderTimeout) and deadline is not None and deadline.has_passed:
            late.append("vector")
        else:
            notices.append(
                Notice("vector-off", f"the embedder failed, so only keywords and names were searched: {error}")
            )
        return None
    if not vector.dot(vector):  # it has unit length, or none
        notices.append(
            Notice(
                "vector-off",
                "the embedder knows none of the tokens of the query, so only keywords and names were searched",
            )
        )
        return None
    return vector


def _embedded(text: str, embedder: Embedder, resolution: Resolution) -> Vector:
    """Embed a question, in the time that is left."""
    deadline = resolution.query.deadline
    if deadline is None:
        given = embedder.query(text)
    else:
        given = call_within(deadline.remaining_s, lambda: embedder.query(text), "timeout_ms")
    vector: Vector = unit_row(given, resolution.dimensions[embedder.fingerprint])
    return vector


def _probes(
    resolution: Resolution,
    texts: Sequence[str],
    recipe: Recipe,
    embedder: Embedder | None,
    vector: Vector | None,
    notices: list[Notice],
    late: list[str],
) -> tuple[Probe, ...]:
    """Prepare the texts searched beside the query, if there is time left for them."""
    deadline = resolution.query.deadline
    if deadline is None:
        return probes_for(resolution, texts, recipe.plan, embedder, vector, notices)
    said: list[Notice] = []  # a thread that is left behind must not add to those of the answer
    try:
        probes = call_within(
            deadline.remaining_s,
            lambda: probes_for(resolution, texts, recipe.plan, embedder, vector, said),
            "timeout_ms",
        )
    except TimeoutError:
        late.append("expansion")
        return ()
    notices += said
    return probes


def _added_space(
    analysis: Analysis,
    embedder: Embedder,
    resolution: Resolution,
    notices: list[Notice],
    late: list[str],
) -> AddedSpace | None:
    """Embed the query by the additional model, if the store holds another language that it supports."""
    if not analysis.text.strip():
        return None
    there = resolution.languages
    language = language_asked(analysis, there)
    marks = other_marks(embedder, language, there)
    if not marks:
        return None
    try:
        vector = _embedded(analysis.text, embedder, resolution)
    except Exception as error:  # as above
        deadline = resolution.query.deadline
        if isinstance(error, TimeoutError | ProviderTimeout) and deadline is not None and deadline.has_passed:
            late.append("other languages")
        else:
            told = f"the additional model failed, so memories in other languages may be missed: {error}"
            notices.append(Notice("added-off", told))
        return None
    return AddedSpace(embedder, language, marks, vector) if vector.dot(vector) else None


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


def _with_floors(retrieved: Retrieved, embedder: Embedder | None) -> Context:
    """Set the floor of every vector signal, and the calibrated minimum of each signal alone."""
    context, added, calibration = retrieved.context, retrieved.added, retrieved.calibration
    signals = dict(context.signals)
    for name, signal in context.signals.items():
        if added is not None and name == added.name:
            floor = floor_of(added.embedder, retrieved.added_calibration)
        elif embedder is not None and family_of(name) == "vector":
            floor = floor_of(embedder, calibration)
        else:
            continue
        signals[name] = replace(signal, floor=floor)
    least = calibration.least if calibration is not None else {}
    return replace(context, signals=signals, least=least)


def floor_of(embedder: Embedder, calibration: Calibration | None) -> float:
    """Return the cosine of unrelated texts: the one the model declares, else the calibrated one, else 0."""
    measured = calibration.floor if calibration is not None else None
    return embedder.floor if embedder.floor is not None else measured or 0.0


def _with_stage_inputs(
    retrieved: Retrieved, vectors: Mapping[MemoryId, Vector], reads: frozenset[str], store: Store, language: str
) -> Retrieved:
    """Add what the stages read of texts and vectors, and the scores of a reranker."""
    context = retrieved.context
    if "likeness" in reads:
        texts: Mapping[MemoryId, frozenset[str]] = {}
        if len(vectors) < len(context.memories):
            memories = ((key, memory_of(held)) for key, held in context.memories.items())
            texts = {key: frozenset(tokens_of(memory.text, language)) for key, memory in memories}
        context = replace(context, likeness=Similarity(vectors, texts))
    if "labels" in reads:
        is_gated = any(isinstance(stage, TokenGate) and stage.asked(context) for stage in retrieved.recipe.stages)
        context = replace(context, labels=_labels_of(context, with_bodies=is_gated))
    retrieved = replace(retrieved, context=context)
    for place, stage in enumerate(retrieved.recipe.stages):
        if isinstance(stage, Rerank):
            return _with_opinions(retrieved, store, stage, place)
    return retrieved


def _labels_of(context: Context, *, with_bodies: bool) -> dict[MemoryId, Labels]:
    """Return the words of names, slugs and summaries; with bodies, of texts without a summary too."""
    labels = {}
    for key, held in context.memories.items():
        memory = memory_of(held)
        labels[key] = _labels(memory.name, memory.slug, memory.summary)
        if with_bodies and not memory.summary:
            labels[key] = replace(labels[key], body=name_words(memory.text))
    return labels


@lru_cache(maxsize=_LABELS_KEPT)
def _labels(name: str, slug: str, summary: str) -> Labels:
    return Labels(*(name_words(label) if label else () for label in (name, slug, summary)))


def _with_opinions(retrieved: Retrieved, store: Store, stage: Rerank, place: int) -> Retrieved:
    """Rank as far as the reranker's stage, and let it read the head of that."""
    if stage.reranker is None:
        return _without(retrieved, "there is no reranker", "pass one to whyrank.open or to the stage")
    before = replace(retrieved.recipe, stages=retrieved.recipe.stages[:place])
    window = rank_pool(retrieved.runs, before, retrieved.context).hits[: stage.top]
    if not window:
        return retrieved
    deadline, limit_ms = retrieved.context.query.deadline, stage.deadline_ms
    if deadline is not None:
        limit_ms = min(limit_ms, round(1_000 * deadline.remaining_s))
    read = store.fetch([hit.id for hit in window], retrieved.context.query.where.scopes).memories
    texts = [embedded_text(read.get(hit.id) or hit.memory) for hit in window]
    scores = _answered(stage, retrieved.context.analysis.text, texts, limit_ms)
    if isinstance(scores, str):
        return _without(retrieved, scores, "the order of the previous stages is kept")
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
        return "it returned scores that are not numbers"
    if len(scores) != wanted:
        return f"it returned {counted(len(scores), 'score')} for {counted(wanted, 'text')}"
    return scores if all(map(math.isfinite, scores)) else "it returned scores that are not finite"
