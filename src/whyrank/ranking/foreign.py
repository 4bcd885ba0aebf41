"""Fuse and explain any engine's result lists, without a store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ..errors import ConfigError
from ..hits import Context, Ranking
from ..matches import NameProbe
from ..types import Analysis, Memory, Notice, Query, Run
from ..wording import counted
from .boosts import Boosts, TokenMatch
from .diversity import MMR
from .fusion import Vote, listed_by
from .recipes import Recipe, rank
from .reranking import Rerank
from .stages import Dedup, GroupBySource, NameFirst, Recency, Superseded
from .worth import Base, Importance

# What these stages read is in memories, and foreign lists bring only ids.
_NEED_MEMORIES = (
    Base, Boosts, Dedup, GroupBySource, Importance, MMR, NameFirst, Recency, Rerank, Superseded, TokenMatch,
)  # fmt: skip


def rank_foreign(
    runs: Sequence[Run], recipe: Recipe, weights: Mapping[str, float] | None = None, limit: int = 10
) -> Ranking:
    """Rank the union of the runs' candidates; stages that need a memory's text are skipped with a notice."""
    names = [run.name for run in runs]
    if len(set(names)) != len(names):
        raise ConfigError(f"two runs have the same name: {', '.join(names)}", "give each run a name of its own")
    fitting = _for_runs(recipe, names, weights or {})
    skipped = [stage for stage in fitting.stages if isinstance(stage, _NEED_MEMORIES)]
    fitting = replace(fitting, stages=tuple(stage for stage in fitting.stages if stage not in skipped))
    ids = listed_by(runs)
    context = Context(Query("", limit=limit), _NOTHING_ASKED, {identity: Memory(identity, "") for identity in ids})
    ranking = rank(runs, fitting, context)
    return replace(ranking, notices=(*ranking.notices, *_notices(runs, fitting, skipped)))


_NOTHING_ASKED = Analysis("", "", "keywords", (), NameProbe("", ()))


def _for_runs(recipe: Recipe, names: Sequence[str], weights: Mapping[str, float]) -> Recipe:
    """Give every run a vote: the recipe's own where it names the run, its vote for others where it does not."""
    unknown = sorted(set(weights) - set(names))
    if unknown:
        raise ConfigError(f"a weight is given for {unknown[0]!r}, which is no run", f"the runs are {', '.join(names)}")
    fusion = recipe.fusion
    own = {vote.signal: vote for vote in fusion.votes}
    votes = []
    for name in names:
        vote = own.get(name) or (replace(fusion.others, signal=name) if fusion.others else None)
        if vote is None:
            raise ConfigError(
                f"the recipe {recipe.name!r} has no vote for a run called {name!r}", "use the recipe 'rrf'"
            )
        votes.append(_weighted(vote, weights))
    return replace(recipe, fusion=replace(fusion, votes=tuple(votes), proposing=frozenset()))


def _weighted(vote: Vote, weights: Mapping[str, float]) -> Vote:
    weight = weights.get(vote.signal, vote.weight if vote.weight is not None else 1.0)
    return replace(vote, weight=weight)


def _notices(runs: Sequence[Run], recipe: Recipe, skipped: Sequence[object]) -> list[Notice]:
    notices = [
        Notice("stage-skipped", f"{type(stage).__name__} needs the memories' text, which these lists do not bring")
        for stage in skipped
    ]
    by_score = {vote.signal for vote in recipe.fusion.votes if not vote.normaliser.by_rank}
    union = listed_by(runs)
    for run in runs:
        unlisted = len(union) - len(run.candidates)
        if run.name in by_score and run.candidates and unlisted:
            left = counted(unlisted, "candidate")
            message = f"{run.name} did not score {left}; what it leaves out counts at its lowest listed score"
            notices.append(Notice("run-incomplete", message))
    return notices
