"""Search: retrieve, rank, judge. Every door comes through here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ..columns import MemoryId
from ..errors import StoreTimeout
from ..hits import Awaited, Context, Fetched, Held, HeldMemories, Hit, Ranking, Results
from ..ports import ALTERED, UNREADABLE, Embedder, Store
from ..ranking.lineup import Lineup, held_by
from ..ranking.order import keep
from ..ranking.recipes import Recipe, guarded, rank
from ..types import Notice, Query, Where
from ..wording import counted, which
from .asking import understood
from .budget import within_budget
from .calibration import Calibration, calibration_for, notices_about
from .confidence import judged
from .gathering import gathered
from .paging import page_notices
from .retrieval import Retrieved, Stopwatch, retrieve, timeout_notice

EMPTY = Notice("nothing-stored", "there is no memory in this scope yet; `whyrank ingest PATH` adds files")
MENDS = "`whyrank doctor` names what is damaged, and `--repair` mends what can be mended"
MAX_LIMIT = 1_000  # more is browsing, not searching


@dataclass(frozen=True)
class Searcher:
    """One store and one embedder, asked through recipes."""

    store: Store
    embedder: Embedder | None
    language: str

    def search(self, query: Query, recipe: Recipe) -> Results:
        """Answer a query; never raises for its text, unless it is written wrongly in the advanced syntax."""
        try:
            return self.found(query, recipe)[1]
        except StoreTimeout:
            if query.deadline is None:
                raise
            # Nothing was found in time; that is no verdict on the memories.
            analysis, notice = understood(query, self.language).analysis, timeout_notice(query.deadline, ())
            return Results(query.text, (), "weak", recipe.name, analysis, notices=(*analysis.notices, notice))

    def found(self, query: Query, recipe: Recipe) -> tuple[Retrieved, Results]:
        """Answer a query, and keep what was retrieved for those who rank it again."""
        watch = Stopwatch()
        # One snapshot for all of it: what is found can still be read.
        with self.store.reading(), watch.timing("total"):
            query, notices = within_limits(query)
            retrieved, ranking = self.ranked(query, recipe, watch)
            notices += tuple(page_notices(retrieved, ranking))
            ranking = within_budget(ranking, query.max_tokens)
            calibration = retrieved.calibration
            judgement = judged(ranking, self.embedder, retrieved.context, calibration)
            ranking, verdict = judgement.ranking, judgement.verdict
            if query.strict and verdict == "nothing":
                ranking = keep(ranking, "strict", lambda hit: "nothing relevant was found")
        said = [*notices, *retrieved.notices, *ranking.notices, *_damage(ranking)]
        if ranking.hits or ranking.dropped:
            said += notices_about(calibration, retrieved.total)
        elif not self.store.statistics((), query.where.scopes).total:
            said.append(EMPTY)
        elif not self.store.browse(retrieved.context.query.where, 1):
            said.append(_nothing_passes(query.where))
        return retrieved, Results(
            query=query.text,
            hits=tuple(ranking.hits),
            verdict=verdict,
            recipe=recipe.name,
            analysis=retrieved.context.analysis,
            dropped=ranking.dropped,
            notices=tuple(said),
            timings=watch.milliseconds,
            evidence=judgement.evidence,
        )

    def calibration(self, retrieved: Retrieved) -> Calibration | None:
        """Return what was measured over the memories this caller may see, in this space."""
        space = self.embedder.fingerprint if self.embedder else ""
        return calibration_for(self.store, space, retrieved.context.query.where.scopes, retrieved.total)

    def ranked(self, query: Query, recipe: Recipe, watch: Stopwatch) -> tuple[Retrieved, Ranking]:
        """Retrieve and rank, and keep what was retrieved for those who ask why."""
        retrieved = self.retrieved(query, recipe, watch)
        with watch.timing("ranking"):
            ranking = rank(retrieved.runs, retrieved.recipe, retrieved.context)
        with watch.timing("reading"):
            ranking = guarded(self._read(ranking, retrieved.context), retrieved.context)
        return retrieved, ranking

    def retrieved(self, query: Query, recipe: Recipe, watch: Stopwatch) -> Retrieved:
        """Retrieve, and gather what the stages of the recipe ask for besides."""
        retrieved = retrieve(query, recipe, self.store, self.embedder, self.language, watch)
        calibration = self.calibration(retrieved)
        if calibration is not None:
            context = replace(retrieved.context, least=calibration.least)
            retrieved = replace(retrieved, context=context, calibration=calibration)
        return gathered(retrieved, self.store, self.language)

    def _read(self, ranking: Ranking, context: Context) -> Ranking:
        """Read what is shown, all at once; what is not shown is read when somebody looks at it."""
        hits = ranking.hits
        if isinstance(hits, Lineup):  # straight from fusion: none has others beside it
            read = hits.fetched(lambda ids: self._fetched(ids, context))
            return Ranking(read, ranking.dropped, ranking.notices)
        memories = self._fetched([held.id for hit in hits for held in (hit.held, *hit.beside)], context)
        return Ranking(tuple(_with_memories(hit, memories) for hit in hits), ranking.dropped, ranking.notices)

    def _fetched(self, ids: Sequence[MemoryId], context: Context) -> Mapping[MemoryId, Held]:
        held = context.memories
        return held.fetched(ids) if isinstance(held, HeldMemories) else self.store.get(ids, context.query.where.scopes)


def _damage(ranking: Ranking) -> Iterator[Notice]:
    """Say of how many hits something could not be read."""
    held = held_by(ranking.hits)
    damaged = sum(isinstance(one, Fetched) and one.is_mended for one in held)
    if damaged:
        memories = (
            f"{counted(damaged, 'memory', 'memories')} that {which(damaged, 'answers was', 'answer were')} damaged"
        )
        told = f"{memories}, and shown as far as {which(damaged, 'it', 'they')} can be read"
        yield Notice(UNREADABLE, f"{told}; `whyrank doctor` names what is damaged, and `--repair` mends it")
    yield from altered_notices(held)
    # All was read in one moment of the store: what is not there now was not forgotten, its row is lost.
    lost = sum(isinstance(one, Awaited) and not isinstance(one, Fetched) for one in held)
    if lost:
        memories = f"{counted(lost, 'memory', 'memories')} that {which(lost, 'answers', 'answer')}"
        yield Notice(UNREADABLE, f"{memories} cannot be read from the file, which was damaged; {MENDS}")


def altered_notices(shown: Iterable[Held]) -> Iterator[Notice]:
    """Say of how many memories that are shown the text, or a field, is not the one that was stored."""
    altered = sum(isinstance(one, Fetched) and one.is_altered for one in shown)
    if altered:
        memories = f"{counted(altered, 'memory', 'memories')} shown here {which(altered, 'is', 'are')}"
        yield Notice(ALTERED, f"{memories} not as {which(altered, 'it was', 'they were')} stored; {MENDS}")


def _with_memories(hit: Hit, memories: Mapping[MemoryId, Held]) -> Hit:
    beside = tuple(memories.get(held.id, held) for held in hit.beside)
    return Hit(memories.get(hit.id, hit.held), hit.tier, hit.score, hit.trail, beside, hit.confidence)


def within_limits(query: Query) -> tuple[Query, tuple[Notice, ...]]:
    """Cut a limit that is out of all proportion, and say so."""
    if query.limit <= MAX_LIMIT:
        return query, ()
    notice = Notice("limit-cut", f"limit {query.limit} was cut to {MAX_LIMIT}")
    return replace(query, limit=MAX_LIMIT), (notice,)


def _nothing_passes(where: Where) -> Notice:
    """Say that the filters leave nothing, and what those count by that were given."""
    known = {
        "paths are those `whyrank list` shows": where.path is not None,
        "the time asked about counts by when a memory was stored": where.as_of is not None,
        "since and before count by the date of a memory": where.since is not None or where.before is not None,
    }
    advice = [said for said, is_given in known.items() if is_given]
    return Notice("nothing-passes", "; ".join(["no memory passes the filters", *advice]))
