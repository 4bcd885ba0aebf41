"""Search: retrieve, rank, judge, page."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ..analysis.normalize import estimated_tokens
from ..errors import StoreTimeout
from ..formatting import counted, which
from ..protocols import ALTERED, UNREADABLE, AddedSpace, Embedder, Store, Thresholds
from ..ranking.recipes import Recipe, guarded, rank
from ..ranking.stages import Top
from ..types.memory import Notice
from ..types.query import Stopwatch
from ..types.results import Candidates, Hit, Ranking, Results, keep, split_dropped
from .confidence import SURE, Beside, Judgement, judged, notices_about
from .retrieval import Retrieved, floor_of, parse, retrieve, timeout_notice

if TYPE_CHECKING:
    from collections.abc import Iterator
    from collections.abc import Set as AbstractSet

    from ..protocols import Fetched
    from ..types.memory import MemoryId
    from ..types.query import Query, Where

_CUT = frozenset({"top"})  # the stage that cuts the page out of all that was ranked


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


EMPTY = Notice("nothing-stored", "there is no memory in this scope yet; `whyrank ingest PATH` adds files")
MENDS = "`whyrank doctor` lists what is damaged, and `--repair` fixes what it can"
MAX_LIMIT = 1_000  # more is browsing, not searching
# Of the thresholds of cosine + coverage; between two languages there are hardly words to cover.
_COSINES_SHARE = 0.7


@dataclass(frozen=True)
class Searcher:
    """Search over one store with one embedder, and an additional one for other languages, by recipes."""

    store: Store
    embedder: Embedder | None
    language: str
    added: Embedder | None = None

    def search(self, query: Query, recipe: Recipe) -> Results:
        """Answer a query; never raises for its text, unless it is written wrongly in the advanced syntax."""
        try:
            return self.found(query, recipe)[1]
        except StoreTimeout:
            if query.deadline is None:
                raise
            # Nothing was found in time; that is no verdict on the memories.
            analysis, notice = parse(query, self.language).analysis, timeout_notice(query.deadline, ())
            return Results(query.text, (), "weak", recipe.name, analysis, notices=(*analysis.notices, notice))

    def found(
        self, query: Query, recipe: Recipe, further_reads: frozenset[str] = frozenset()
    ) -> tuple[Retrieved, Results]:
        """Answer a query, and return the retrieved data too, for callers that rank it again."""
        watch = Stopwatch()
        # One snapshot for all of it: a found memory can still be read.
        with self.store.reading():
            query, said = within_limits(query) if query.limit > MAX_LIMIT else (query, ())
            if query.min_confidence is None:
                retrieved, ranking = self.ranked(query, recipe, watch, further_reads)
            else:
                retrieved, ranking = self._ranked_surely(query, query.min_confidence, recipe, watch, further_reads)
            if len(ranking.hits) < query.limit or not query.limit:
                said += tuple(page_notices(retrieved, ranking))
            if query.max_tokens is not None:
                ranking = within_budget(ranking, query.max_tokens)
            judgement = self.judged(ranking, retrieved)
            ranking, verdict = judgement.ranking, judgement.verdict
            if query.strict and verdict != "found":
                ranking = keep(ranking, "strict", lambda hit: f"the verdict is {verdict}")
            said += (*retrieved.notices, *ranking.notices)
            read, shown = retrieved.read, {hit.id for hit in ranking.hits}
            if read.mended or read.altered or not shown <= read.memories.keys():
                said += tuple(_damage(read, shown))
            if ranking.hits or ranking.dropped:
                said += notices_about(retrieved.calibration, retrieved.total)
            elif not retrieved.total:
                said += (EMPTY,)
            elif not self.store.browse(retrieved.context.query.where, 1):
                said += (_nothing_passes(query.where),)
        watch.lap("confidence")
        return retrieved, Results(
            query=query.text,
            hits=tuple(ranking.hits),
            verdict=verdict,
            recipe=recipe.name,
            analysis=retrieved.context.analysis,
            dropped=ranking.dropped,
            notices=said,
            timings=watch.milliseconds,
            evidence=judgement.evidence,
        )

    def ranked(
        self, query: Query, recipe: Recipe, watch: Stopwatch, further_reads: frozenset[str] = frozenset()
    ) -> tuple[Retrieved, Ranking]:
        """Retrieve and rank, read what is shown, and return the retrieved data too, for explanations."""
        store, embedder, added = self.store, self.embedder, self.added
        retrieved = retrieve(query, recipe, store, embedder, self.language, watch, added, further_reads)
        ranking = rank(retrieved.runs, retrieved.recipe, retrieved.context)
        watch.lap("ranking")
        wanted = [held.id for hit in ranking.hits for held in (hit.held, *hit.beside)]
        read = store.fetch(wanted, retrieved.context.query.where.scopes)
        known = read.memories
        shown = tuple(
            hit._replace(
                held=known.get(hit.held.id, hit.held), beside=tuple(known.get(held.id, held) for held in hit.beside)
            )
            for hit in ranking.hits
        )
        ranking = guarded(replace(ranking, hits=shown), retrieved.context)
        watch.lap("reading")
        return replace(retrieved, read=read), ranking

    def _ranked_surely(
        self, query: Query, least: float, recipe: Recipe, watch: Stopwatch, further_reads: frozenset[str]
    ) -> tuple[Retrieved, Ranking]:
        """Rank as many as may be shown, and cut the page among the hits that are at least so confident."""
        retrieved, ranking = self.ranked(replace(query, limit=MAX_LIMIT, offset=0), recipe, watch, further_reads)
        judgement = self.judged(ranking, retrieved)
        sure = {hit.id: hit.confidence or 0.0 for hit in judgement.ranking.hits}

        def reason(hit: Hit) -> str | None:
            return None if sure[hit.id] >= least else f"{sure[hit.id]:.0%} confidence, below {least:.0%}"

        page = replace(retrieved.context.query, limit=query.limit, offset=query.offset)
        retrieved = replace(retrieved, context=replace(retrieved.context, query=page))
        return retrieved, Top(query.limit, query.offset)(keep(ranking, SURE, reason), retrieved.context)

    def retrieved(self, query: Query, recipe: Recipe, watch: Stopwatch) -> Retrieved:
        """Retrieve the candidates of a query, with all input of the recipe's stages."""
        return retrieve(query, recipe, self.store, self.embedder, self.language, watch, self.added)

    def judged(self, ranking: Ranking, retrieved: Retrieved) -> Judgement:
        """Give every hit its confidence, and the answer its verdict."""
        beside = None if retrieved.added is None else _beside(retrieved, retrieved.added)
        return judged(ranking, self.embedder, retrieved.context, retrieved.calibration, beside)


def _beside(retrieved: Retrieved, added: AddedSpace) -> Beside | None:
    """Return the additional model's cosines, with thresholds calibrated or scaled by its share of the sum."""
    signal, measured = retrieved.context.signals.get(added.name), retrieved.added_calibration
    if signal is None:
        return None
    if measured is not None and measured.cosine is not None:
        return Beside(added.name, signal.values, measured.cosine.thresholds)
    floor = floor_of(added.embedder, measured)
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
