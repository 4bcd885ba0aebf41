"""Fuse and explain result lists of other engines, without a store."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from ..errors import ConfigError
from ..formatting import counted, which
from ..types.memory import Memory, Notice
from ..types.query import Analysis, Query
from ..types.results import Context, Hit, Likeness, Ranking, Run, keep
from ..types.trail import NameProbe
from .boosts import Base, Boosts, Importance, TokenGate, TokenMatch
from .diversity import MMR
from .fusion import Vote, candidate_ids
from .recipes import Adjustments, Recipe, adjusted, rank, unhonoured
from .stages import Dedup, ExactName, NameFirst, Recency, Rerank, Stage, Superseded, text_key

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ..types.memory import MemoryId

_NEED_TEXTS = (Dedup, MMR)
# These read data of memories in a store; lists bring only ids, each a source of its own.
_NEED_MEMORIES = (
    Base, Boosts, ExactName, Importance, NameFirst, Recency, Rerank, Superseded, TokenGate, TokenMatch,
)  # fmt: skip


@dataclass(frozen=True)
class ExternalLists:
    """Result lists of other engines, with weights, texts and replacements given by the caller.

    `replaced` maps replaced ids or texts to their replacement ("" if it is unknown).
    """

    runs: Sequence[Run]
    weights: Mapping[str, float] = field(default_factory=dict)
    texts: Mapping[MemoryId, str] | None = None
    replaced: Mapping[str, str] = field(default_factory=dict)
    likeness: Likeness | None = None

    def __post_init__(self) -> None:
        names = [run.name for run in self.runs]
        if len(set(names)) != len(names):
            raise ConfigError(f"two runs have the same name: {', '.join(names)}", "give each run a name of its own")
        unknown = sorted(set(self.weights) - set(names))
        if unknown:
            known = f"the runs are {', '.join(names)}"
            raise ConfigError(f"a weight is given for {unknown[0]!r}, which is not a run", known)


def rank_foreign(listed: ExternalLists, recipe: Recipe, k: float | None = None, limit: int = 10) -> Ranking:
    """Rank the union of the runs' candidates; stages that lack input are skipped with a notice."""
    wish = Adjustments(k=k)
    fitting = _for_runs(recipe if k is None else adjusted(recipe, wish), listed)
    skipped = [stage for stage in fitting.stages if _is_skipped(stage, listed)]
    kept = [stage for stage in fitting.stages if stage not in skipped and not isinstance(stage, Superseded)]
    replaced = [_Replaced(listed.replaced)] if listed.replaced else []
    fitting = replace(fitting, stages=(*replaced, *kept))
    ids, texts = candidate_ids(listed.runs), listed.texts or {}
    memories = {identity: Memory(identity, texts.get(identity, "")) for identity in ids}
    context = Context(Query("", limit=limit), _NOTHING_ASKED, memories, likeness=listed.likeness)
    ranking = rank(listed.runs, fitting, context)
    notices = (*unhonoured(recipe, wish), *_unnamed(recipe, listed), *_skips(skipped), *_gaps(listed, fitting, ids))
    return replace(ranking, notices=(*ranking.notices, *notices))


_NOTHING_ASKED = Analysis("", "", "keywords", (), NameProbe("", ()))


@dataclass(frozen=True)
class _Replaced:
    """Filter of replaced candidates, by id or by text."""

    by: Mapping[str, str]

    def __call__(self, ranking: Ranking, context: Context) -> Ranking:
        texts = {text_key(what): by for what, by in self.by.items()}

        def reason(hit: Hit) -> str | None:
            text = hit.memory.text
            by = self.by.get(hit.id, texts.get(text_key(text)) if text else None)
            return None if by is None else f"replaced by {by}" if by else "replaced"

        return keep(ranking, "superseded", reason)


def _is_skipped(stage: Stage, listed: ExternalLists) -> bool:
    if isinstance(stage, Superseded):
        return not listed.replaced
    return isinstance(stage, _NEED_MEMORIES) or (isinstance(stage, _NEED_TEXTS) and listed.texts is None)


def _for_runs(recipe: Recipe, listed: ExternalLists) -> Recipe:
    """Give every run a vote: the recipe's own if it names the run, else its vote for the others.

    An id that a list does not hold has no score there: nothing is added for it, and no other list counts more.
    """
    fusion = recipe.fusion
    own = {vote.signal: vote for vote in fusion.votes}
    votes = [_vote_of(run.name, recipe, own, listed.weights) for run in listed.runs]
    if fusion.absent == "shared":
        found = {run.name for run in listed.runs if run.candidates}
        votes = [vote for vote in votes if vote.signal in found]
    else:
        named = {vote.signal for vote in votes}
        votes += [vote for vote in fusion.votes if vote.signal not in named]
    absent = fusion.absent if fusion.absent == "zero" else "kept"
    return replace(recipe, fusion=replace(fusion, votes=tuple(votes), proposing=frozenset(), absent=absent))


def _vote_of(name: str, recipe: Recipe, own: Mapping[str, Vote], weights: Mapping[str, float]) -> Vote:
    others = recipe.fusion.others
    vote = own.get(name) or (replace(others, signal=name) if others else None)
    if vote is None:
        raise ConfigError(f"the recipe {recipe.name!r} has no vote for a run called {name!r}", "use the recipe 'rrf'")
    return replace(vote, weight=weights.get(name, vote.weight if vote.weight is not None else 1.0))


def negative_scores(name: str, scores: Iterable[float]) -> list[Notice]:
    """Return a notice if all scores of a list are negative, as those of SQLite's bm25() are."""
    if max(scores, default=0.0) >= 0:
        return []
    hint = "if the lowest is the best, as of SQLite's bm25(), say lower_is_better (--lower-is-better)"
    return [Notice("scores-negative", f"all scores of {name} are negative, and the highest counts as the best; {hint}")]


def _unnamed(recipe: Recipe, listed: ExternalLists) -> list[Notice]:
    """Return a notice about runs that a recipe with weights by name does not name."""
    own = [vote.signal for vote in recipe.fusion.votes]
    unknown = [run.name for run in listed.runs if run.name not in own]
    if not own or not unknown:
        return []
    weighed = f"the recipe {recipe.name!r} has votes for {' and '.join(own)}"
    return [
        Notice(
            "votes-by-default",
            f"{weighed}; {' and '.join(unknown)} {which(len(unknown), 'has', 'have')} its vote for the others",
        )
    ]


def _skips(skipped: Sequence[Stage]) -> list[Notice]:
    return [Notice("stage-skipped", f"{type(stage).__name__} was skipped: {_lacks(stage)}") for stage in skipped]


def _lacks(stage: Stage) -> str:
    if isinstance(stage, Superseded):
        return "no replaced ids were given; pass them as `superseded`"
    if isinstance(stage, _NEED_TEXTS):
        return "it needs the texts of the candidates; pass them as `texts`"
    return "it needs data of a store, which lists do not have"


def _gaps(listed: ExternalLists, recipe: Recipe, ids: Sequence[MemoryId]) -> list[Notice]:
    """Return notices about lists and texts that omit candidates."""
    notices = []
    by_score = {vote.signal for vote in recipe.fusion.votes if not vote.normaliser.by_rank}
    for run in listed.runs:
        unlisted = len(ids) - len(run.candidates)
        if run.name in by_score and run.candidates and unlisted:
            left = counted(unlisted, "candidate")
            message = f"{run.name} did not score {left}, so it adds nothing to {which(unlisted, 'it', 'them')}"
            notices.append(Notice("run-incomplete", message))
    compares = any(isinstance(stage, _NEED_TEXTS) for stage in recipe.stages)
    without = sum(identity not in (listed.texts or {}) for identity in ids) if compares else 0
    if without:
        have = f"{counted(without, 'candidate')} {which(without, 'has', 'have')} no text"
        notices.append(
            Notice("texts-incomplete", f"{have}, and {which(without, 'is', 'are')} not compared with others")
        )
    return notices
