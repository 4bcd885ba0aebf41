"""Search: retrieve the candidates and all that ranking reads of them, rank, judge, page."""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

from ..analysis.document import embedded_text
from ..analysis.names import name_words
from ..analysis.normalize import estimated_tokens
from ..analysis.query import analyse, asked_for, long_terms
from ..analysis.tokenizer import LANGUAGES, LATIN_LANGUAGES, marks_but_of, tokens_of
from ..errors import ProviderTimeout, StoreTimeout
from ..formatting import counted, which
from ..protocols import (
    ALTERED,
    UNREADABLE,
    AddedSpace,
    Embedder,
    Fetched,
    Probe,
    Question,
    Request,
    Store,
    Thresholds,
    Vector,
)
from ..ranking.boosts import TokenGate
from ..ranking.diversity import Similarity
from ..ranking.fusion import family_of
from ..ranking.recipes import Recipe, guard, rank_pool
from ..ranking.stages import Rerank, Top
from ..types.memory import Notice, unit_row
from ..types.query import Analysis, Deadline, Query, Stopwatch, call_within
from ..types.results import Candidates, Context, Hit, Labels, Ranking, Results, Run, keep, memory_of, split_dropped
from .confidence import SURE, Beside, Judgement, calibration_for, judge, note_names, notices_about
from .expansion import probes_for, shares_of, texts_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from ..protocols import Resolution
    from ..types.memory import MemoryId
    from ..types.query import Where
    from .confidence import Calibration

_READ_HERE = frozenset({"likeness", "labels", "opinions"})  # inputs of stages that no store gives
_LABELS_KEPT = 4_096  # the chunks of a file share theirs, and many questions find the same files
_CUT = frozenset({"top"})  # the stage that cuts the page out of all that was ranked
EMPTY = Notice("nothing-stored", "there is no memory in this scope yet; `whyrank ingest PATH` adds files")
MENDS = "`whyrank doctor` lists what is damaged, and `--repair` fixes what it can"
MAX_LIMIT = 1_000  # more is browsing, not searching
# Of the thresholds of cosine + coverage; between two languages there are hardly words to cover.
_COSINES_SHARE = 0.7


@dataclass(frozen=True)
class Retrieved:
    """Input of ranking: the runs, the context, and the recipe with its open weights resolved."""

    runs: tuple[Run, ...]
    context: Context
    recipe: Recipe
    vector: Vector | None
    space: str
    notices: tuple[Notice, ...]
    total: int  # memories that are visible to the caller
    probes: tuple[Probe, ...] = ()
    calibration: Calibration | None = None  # of the visible scopes, in this space
    added_calibration: Calibration | None = None  # in the space of the additional model
    added: AddedSpace | None = None  # beside that space, where the store holds other languages than the question's


@dataclass(frozen=True)
class Searcher:
    """Search over one store with one embedder, and an additional one for other languages, by recipes."""

    store: Store
    embedder: Embedder | None
    language: str
    added: Embedder | None = None

    def search(self, query: Query, recipe: Recipe) -> Results:
        """Answer a query; never raises for its text, unless it is written wrongly in the advanced syntax."""
        watch = Stopwatch()
        query, notices = within_limits(query) if query.limit > MAX_LIMIT else (query, ())
        try:
            with self.store.reading():  # one snapshot for all of it: a found memory can still be read
                return self.answer(self.retrieve(query, recipe, watch), watch, notices)
        except StoreTimeout:
            if query.deadline is None:
                raise
            return nothing_in_time(query, recipe, self.language, query.deadline)

    def retrieve(
        self, query: Query, recipe: Recipe, watch: Stopwatch, further_reads: frozenset[str] = frozenset()
    ) -> Retrieved:
        """Resolve and embed a query, retrieve all candidates of the recipe's plan, and what its stages read.

        The additional model searches memories in another language than the query.
        """
        store, embedder, language, plan = self.store, self.embedder, self.language, recipe.plan
        question, scopes = parse(query, language), query.where.scopes
        texts = texts_of(query, plan) if query.expansion is not None else ()
        further = [analyse(text, language, query.where.moment) for text in texts]
        if plan.analysis == "strict-length":
            question = question._replace(analysis=_in_long_words(question.analysis, language))
            further = [_in_long_words(one, language) for one in further]
        watch.lap("analysis")
        space = embedder.fingerprint if embedder else ""
        added = self.added if recipe.fusion.added is not None else None
        spaces = [one.fingerprint for one in (embedder, added) if one is not None] or [space]
        names = [name for one in spaces for name in note_names(one, scopes)]
        resolution = store.resolve(question, plan, language, further, spaces, names)
        total = resolution.statistics.total
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
        if query.deadline is not None and (late or found.late):
            notices.append(timeout_notice(query.deadline, [*late, *found.late]))
        decided = recipe.with_vector_weight(embedder.weight(resolution.analysis.language) if embedder else 0.0)
        if found.probes:
            decided = replace(decided, fusion=decided.fusion.split(shares_of(found.runs, found.probes)))
        measured = calibration_for(resolution.notes.get, space, scopes, total)
        other = calibration_for(resolution.notes.get, spaces[-1], scopes, total) if beside is not None else None
        context = _with_floors(found.context, embedder, measured, beside, other)
        retrieved = Retrieved(
            found.runs, context, decided, vector, space, tuple(notices), total, found.probes, measured, other, beside
        )
        return _with_stage_inputs(retrieved, found.vectors, reads, store, language) if reads & _READ_HERE else retrieved

    def answer(self, retrieved: Retrieved, watch: Stopwatch, notices: tuple[Notice, ...] = ()) -> Results:
        """Rank what was retrieved, cut the page, judge it, and say what the answer lacks."""
        query = retrieved.context.query
        if query.min_confidence is None:
            ranking, read = self.rank(retrieved, watch)
        else:
            ranking, read = self._rank_surely(retrieved, query.min_confidence, watch)
        if len(ranking.hits) < query.limit or not query.limit:
            notices += tuple(page_notices(retrieved, ranking))
        if query.max_tokens is not None:
            ranking = within_budget(ranking, query.max_tokens)
        judgement = self.judge(ranking, retrieved)
        ranking, verdict = judgement.ranking, judgement.verdict
        if query.strict and verdict != "found":
            ranking = keep(ranking, "strict", lambda hit: f"the verdict is {verdict}")
        notices += (*retrieved.notices, *ranking.notices)
        shown = {hit.id for hit in ranking.hits}
        if read.mended or read.altered or not shown <= read.memories.keys():
            notices += tuple(_damage(read, shown))
        if ranking.hits or ranking.dropped:
            notices += notices_about(retrieved.calibration, retrieved.total)
        elif not retrieved.total:
            notices += (EMPTY,)
        elif not self.store.browse(query.where, 1):
            notices += (_nothing_passes(query.where),)
        watch.lap("confidence")
        return Results(
            query=query.text,
            hits=tuple(ranking.hits),
            verdict=verdict,
            recipe=retrieved.recipe.name,
            analysis=retrieved.context.analysis,
            dropped=ranking.dropped,
            notices=notices,
            timings=watch.milliseconds,
            evidence=judgement.evidence,
        )

    def rank(self, retrieved: Retrieved, watch: Stopwatch, page: Top | None = None) -> tuple[Ranking, Fetched]:
        """Rank what was retrieved, cut the page, and read its memories."""
        context = retrieved.context
        page = page or Top(context.query.limit, context.query.offset)
        ranking = page(rank_pool(retrieved.runs, retrieved.recipe, context), context)
        watch.lap("ranking")
        hits = tuple(ranking.hits)
        wanted = [held.id for hit in hits for held in (hit.held, *hit.beside)]
        read = self.store.fetch(wanted, context.query.where.scopes)
        known = read.memories
        shown = tuple(
            hit._replace(
                held=known.get(hit.held.id, hit.held), beside=tuple(known.get(held.id, held) for held in hit.beside)
            )
            for hit in hits
        )
        ranking = guard(replace(ranking, hits=shown), context)
        watch.lap("reading")
        return ranking, read

    def _rank_surely(self, retrieved: Retrieved, least: float, watch: Stopwatch) -> tuple[Ranking, Fetched]:
        """Rank as many as may be shown, and cut the page among the hits that are at least so confident."""
        context, query = retrieved.context, retrieved.context.query
        ranking, read = self.rank(retrieved, watch, Top(MAX_LIMIT))
        sure = {hit.id: hit.confidence or 0.0 for hit in self.judge(ranking, retrieved).ranking.hits}

        def reason(hit: Hit) -> str | None:
            return None if sure[hit.id] >= least else f"{sure[hit.id]:.0%} confidence, below {least:.0%}"

        return Top(query.limit, query.offset)(keep(ranking, SURE, reason), context), read

    def judge(self, ranking: Ranking, retrieved: Retrieved) -> Judgement:
        """Give every hit its confidence, and the answer its verdict."""
        beside = None if retrieved.added is None else _beside(retrieved, retrieved.added)
        return judge(ranking, self.embedder, retrieved.context, retrieved.calibration, beside)


def parse(query: Query, language: str) -> Question:
    """Analyse a query; only the advanced syntax can be written wrongly."""
    moment = query.where.moment
    if query.syntax == "plain":
        return Question(query, analyse(query.text, language, moment))
    asked = asked_for(query.text, language, moment)
    return Question(query, asked.analysis, asked.expression)


def timeout_notice(deadline: Deadline, late: Sequence[str]) -> Notice:
    """Return the notice that a search timed out, with the parts its answer lacks."""
    lacking = f"without {', '.join(dict.fromkeys(late))}" if late else "with nothing"
    over = f"the search took longer than timeout_ms = {deadline.timeout_ms} and was answered {lacking}"
    return Notice("timeout", f"{over}; give a larger timeout_ms for the whole answer")


def nothing_in_time(query: Query, recipe: Recipe, language: str, deadline: Deadline) -> Results:
    """Return an answer without results, which is no verdict on the memories: the time was over before."""
    analysis, notice = parse(query, language).analysis, timeout_notice(deadline, ())
    return Results(query.text, (), "weak", recipe.name, analysis, notices=(*analysis.notices, notice))


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
    failed = Notice("vector-off", "the embedder failed, so only keywords and names were searched")
    vector = _embed(analysis.text, embedder, resolution, "vector", failed, notices, late)
    if vector is None or vector.dot(vector):  # it has unit length, or none
        return vector
    notices.append(
        Notice(
            "vector-off", "the embedder knows none of the tokens of the query, so only keywords and names were searched"
        )
    )
    return None


def _embed(
    text: str,
    embedder: Embedder,
    resolution: Resolution,
    run: str,
    failed: Notice,
    notices: list[Notice],
    late: list[str],
) -> Vector | None:
    """Embed a question in the time that is left; if that fails, the other runs go on."""
    deadline = resolution.query.deadline
    try:
        if deadline is None:
            given = embedder.query(text)
        else:
            given = call_within(deadline.remaining_s, lambda: embedder.query(text), "timeout_ms")
        return unit_row(given, resolution.dimensions[embedder.fingerprint])
    except Exception as error:  # whatever a provider throws or gives, the other runs must answer
        if isinstance(error, TimeoutError | ProviderTimeout) and deadline is not None and deadline.has_passed:
            late.append(run)
        else:
            notices.append(Notice(failed.code, f"{failed.message}: {error}"))
        return None


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
    failed = Notice("added-off", "the additional model failed, so memories in other languages may be missed")
    vector = _embed(analysis.text, embedder, resolution, "other languages", failed, notices, late)
    return None if vector is None or not vector.dot(vector) else AddedSpace(embedder, language, marks, vector)


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


def _with_floors(
    context: Context,
    embedder: Embedder | None,
    measured: Calibration | None,
    added: AddedSpace | None,
    measured_of_added: Calibration | None,
) -> Context:
    """Set the floor of every vector signal, and the calibrated minimum of each signal alone.

    The floor is the cosine of unrelated texts: the one the model declares, else the calibrated one, else 0.
    """
    signals = dict(context.signals)
    for name, signal in context.signals.items():
        if added is not None and name == added.name:
            model, known = added.embedder, measured_of_added
        elif embedder is not None and family_of(name) == "vector":
            model, known = embedder, measured
        else:
            continue
        calibrated = 0.0 if known is None else known.floor or 0.0
        signals[name] = replace(signal, floor=calibrated if model.floor is None else model.floor)
    bars = {} if measured is None else {"vector": measured.cosine, "keyword": measured.coverage}
    return replace(context, signals=signals, least={name: bar.weak for name, bar in bars.items() if bar is not None})


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
        return _without_reranking(retrieved, "there is no reranker", "pass one to whyrank.open or to the stage")
    before = replace(retrieved.recipe, stages=retrieved.recipe.stages[:place])
    window = rank_pool(retrieved.runs, before, retrieved.context).hits[: stage.top]
    if not window:
        return retrieved
    deadline, limit_ms = retrieved.context.query.deadline, stage.deadline_ms
    if deadline is not None:
        limit_ms = min(limit_ms, round(1_000 * deadline.remaining_s))
    read = store.fetch([hit.id for hit in window], retrieved.context.query.where.scopes).memories
    texts = [embedded_text(read.get(hit.id) or hit.memory) for hit in window]
    scores = _ask_reranker(stage, retrieved.context.analysis.text, texts, limit_ms)
    if isinstance(scores, str):
        return _without_reranking(retrieved, scores, "the order of the previous stages is kept")
    opinions = {hit.id: score for hit, score in zip(window, scores, strict=True)}
    return replace(retrieved, context=replace(retrieved.context, opinions=opinions))


def _without_reranking(retrieved: Retrieved, failure: str, instead: str) -> Retrieved:
    notice = Notice("rerank-off", f"the results were not reranked: {failure}; {instead}")
    return replace(retrieved, notices=(*retrieved.notices, notice))


def _ask_reranker(stage: Rerank, question: str, texts: Sequence[str], limit_ms: float) -> list[float] | str:
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
    return _check_scores(said[0], len(texts))


def _check_scores(said: Sequence[float] | Exception, wanted: int) -> list[float] | str:
    if isinstance(said, Exception):
        return f"it failed ({type(said).__name__}: {said})"
    try:
        scores = [float(score) for score in said]
    except (TypeError, ValueError):
        return "it returned scores that are not numbers"
    if len(scores) != wanted:
        return f"it returned {counted(len(scores), 'score')} for {counted(wanted, 'text')}"
    return scores if all(map(math.isfinite, scores)) else "it returned scores that are not finite"


def page_notices(retrieved: Retrieved, ranking: Ranking) -> Iterator[Notice]:
    """Yield the notice why a page is empty or short: limit 0, end of the results, or end of the pool."""
    query = retrieved.context.query
    if query.limit == 0:
        yield Notice("limit-zero", "the limit is 0; give 1 or more to see results")
        return
    ranked = len(ranking.hits) + len(split_dropped(ranking.dropped, _CUT))
    if not ranked or query.offset + query.limit <= ranked:
        return
    is_cut = _is_pool_full(retrieved)
    if query.offset >= ranked or is_cut:
        yield Notice("past-the-end", _ending(query.offset, ranked) + (_cut_at(retrieved) if is_cut else ""))


def _ending(offset: int, ranked: int) -> str:
    last = f"there {which(ranked, 'is', 'are')} {counted(ranked, 'result')}"
    asked = f", and the requested page begins at {offset + 1}" if offset >= ranked else ""
    return f"{last} for this question{asked}"


def _cut_at(retrieved: Retrieved) -> str:
    pool = retrieved.recipe.plan.pool
    return f"; each run returns at most {counted(pool, 'source')}: narrow the query to see others"


def _is_pool_full(retrieved: Retrieved) -> bool:
    """Return whether a run reached its limit of sources, so that there may be more candidates."""
    candidates, pool = Candidates.of(retrieved.context.memories), retrieved.recipe.plan.pool
    return any(
        len(run.ids) >= pool and len({candidates.origins[candidates.places[one]] for one in run.ids}) >= pool
        for run in retrieved.runs
    )


def within_budget(ranking: Ranking, max_tokens: int) -> Ranking:
    """Drop the hits from the first one on that exceeds the token budget, with a notice."""
    left = max_tokens

    def reason(hit: Hit) -> str | None:
        nonlocal left
        needed = estimated_tokens(hit.memory.text)
        left = left - needed if left >= needed else -1
        return None if left >= 0 else f"about {counted(needed, 'token')}, and the budget of {max_tokens} is used up"

    kept = keep(ranking, "budget", reason)
    missing = len(ranking.hits) - len(kept.hits)
    if not missing:
        return kept
    notice = Notice(
        "budget",
        f"{counted(missing, 'more result does', 'more results do')} not fit into {counted(max_tokens, 'token')}",
    )
    return replace(kept, notices=(*kept.notices, notice))


def _beside(retrieved: Retrieved, added: AddedSpace) -> Beside | None:
    """Return the additional model's cosines, with thresholds calibrated or scaled by its share of the sum."""
    signal, measured = retrieved.context.signals.get(added.name), retrieved.added_calibration
    if signal is None:
        return None
    if measured is not None and measured.cosine is not None:
        return Beside(added.name, signal.values, Thresholds(measured.cosine.weak, measured.cosine.found))
    floor = signal.floor or 0.0
    weak, found = (floor + _COSINES_SHARE * (threshold - floor) for threshold in added.embedder.thresholds)
    return Beside(added.name, signal.values, Thresholds(weak, found))


def _damage(read: Fetched, shown: AbstractSet[MemoryId]) -> Iterator[Notice]:
    """Yield notices that count the hits that could not be read in full."""
    damaged = len(read.mended & shown)
    if damaged:
        memories = (
            f"{counted(damaged, 'memory', 'memories')} that {which(damaged, 'answers was', 'answer were')} damaged"
        )
        told = f"{memories}, and shown as far as {which(damaged, 'it', 'they')} can be read"
        yield Notice(UNREADABLE, f"{told}; `whyrank doctor` lists what is damaged, and `--repair` fixes it")
    yield from altered_notices(len(read.altered & shown))
    # All was read in one snapshot: a memory missing now was not forgotten, its row is lost.
    lost = len(shown - read.memories.keys())
    if lost:
        memories = f"{counted(lost, 'memory', 'memories')} that {which(lost, 'answers', 'answer')}"
        yield Notice(UNREADABLE, f"{memories} cannot be read from the file, which was damaged; {MENDS}")


def altered_notices(altered: int) -> Iterator[Notice]:
    """Yield a notice that counts the shown memories whose text, or a field, is not the one stored."""
    if altered:
        memories = f"{counted(altered, 'memory', 'memories')} shown here {which(altered, 'is', 'are')}"
        yield Notice(ALTERED, f"{memories} not as {which(altered, 'it was', 'they were')} stored; {MENDS}")


def within_limits(query: Query) -> tuple[Query, tuple[Notice, ...]]:
    """Cut a limit above the maximum, with a notice."""
    if query.limit <= MAX_LIMIT:
        return query, ()
    notice = Notice("limit-cut", f"limit {query.limit} was cut to {MAX_LIMIT}")
    return replace(query, limit=MAX_LIMIT), (notice,)


def _nothing_passes(where: Where) -> Notice:
    """Return the notice that no memory passes the filters, with the meaning of those given."""
    known = {
        "paths are as `whyrank list` shows them": where.path is not None,
        "as_of compares with the time when a memory was stored": where.as_of is not None,
        "the language of a memory is detected from its words, or is the one in the settings": where.language
        is not None,
        "since and before compare with the date of a memory": where.since is not None or where.before is not None,
    }
    advice = [said for said, is_given in known.items() if is_given]
    return Notice("nothing-passes", "; ".join(["no memory passes the filters", *advice]))
