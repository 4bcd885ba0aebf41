"""JSON of a query's candidates: everything a browser needs to rank them again as `ranking/` does.

Candidates are in the order that breaks ties, so a position is all a tie needs. Numbers that are added or compared are
unrounded; those that are only displayed are rounded.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from ..analysis.snippets import Snippet, snippet
from ..errors import BadQuery, ConfigError
from ..ranking import fusion as normalisers
from ..ranking.boosts import Importance
from ..ranking.diversity import MMR
from ..ranking.fusion import Fuse, Vote, candidate_ids
from ..ranking.parameters import RECORDED, Slider, names_of, sliders, steps_of
from ..ranking.recipes import SCALED
from ..ranking.stages import (
    Dedup,
    Evidence,
    GroupBySource,
    MinScore,
    NameFirst,
    OpenClawSelection,
    Recency,
    Rerank,
    text_key,
)
from ..types.memory import SECONDS_PER_DAY
from ..types.results import column_of
from ..types.trail import TermKey, Trail
from .errors import FORMAT
from .serialize import fields, location, moment, notices

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..ranking.fusion import Normaliser
    from ..ranking.stages import Stage
    from ..search.explain import Pooled
    from ..types.memory import Memory
    from ..types.results import Context, Signal

MOST_SENT = 5_000  # candidates; about four megabytes
MOST_COMPARED = 1_000  # candidates; half a million similarities are about ten megabytes
SHOWN_DIGITS = 3  # of a confidence, which is displayed and never added up
# Settings of ranking, as opposed to those of the retrieval plan: candidates are retrieved already.
_RANKING = (
    "vector_weight", "alpha", "boost_weight", "vector_threshold", "k", "name_bonus", "recency_weight",
    "recency_half_life_days", "mmr_lambda", "min_vector", "min_coverage", "evidence", "min_score", "max_per_file",
    "importance",
)  # fmt: skip


def pool(found: Pooled) -> dict[str, Any]:
    """Return the candidates of a query with all inputs of their ranking."""
    _check_count(found, MOST_SENT, "to rank in a browser")
    results, context, recipe = found.results, found.pool.context, found.pool.recipe
    return {
        **fields(results, "query verdict evidence"),
        "notices": notices(results.notices),
        "recipe": recipe.name,
        "limit": context.query.limit,
        "offset": context.query.offset,
        "settings": {name: getattr(found.wish, name) for name in _RANKING},
        "knobs": [_knob(slider) for slider in sliders(recipe, found.wish, found.pool.runs, context)],
        "runs": [run.name for run in found.pool.runs if run.candidates],
        "fusion": _fusion(found),
        "stages": [_stage(stage, found) for stage in found.base.stages],
        "importance": _stage(Importance(), found) if found.wish.importance == SCALED else None,
        "last": [_stage(stage, found) for stage in found.last],
        "least": dict(context.least),
        "weighing": fields(found.weighing, "coverage_counts rest least"),
        "signals": _signals(found),
        "candidates": _candidates(found),
        "timings": {stage: round(spent, 3) for stage, spent in results.timings.items()},
        "format": FORMAT,
    }


def likeness(found: Pooled) -> dict[str, Any]:
    """Return the similarity of each candidate to each one before it."""
    _check_count(found, MOST_COMPARED, "to compare with each other")
    return {"ids": [memory.id for memory in found.memories], "likeness": found.likeness, "format": FORMAT}


def _check_count(found: Pooled, most: int, what: str) -> None:
    if len(found.memories) > most:
        hint = f"set ranking.pool lower; up to {most:,} candidates can be"
        raise BadQuery(f"{len(found.memories):,} candidates are too many {what}", hint)


def _knob(slider: Slider) -> dict[str, Any]:
    return {"key": slider.key, **asdict(slider), "idle": slider.idle or None, "needs": slider.needs or None}


def _fusion(found: Pooled) -> dict[str, Any]:
    """Return the fusion of the recipe, with the values of its open weights and the shares of its votes."""
    fusion = found.base.fusion
    return {
        "votes": [_vote(vote) for vote in fusion.votes],
        "others": _vote(fusion.others) if fusion.others else None,
        "added": _vote(fusion.added) if fusion.added else None,
        "proposing": sorted(fusion.proposing),
        **fields(fusion, "absent strength"),
        "declared": found.declared,
        "shares": {signal: dict(shares) for signal, shares in found.shares.items()},
        "why": "; ".join(map(str, found.pool.context.analysis.boosts)),
    }


def _vote(vote: Vote) -> dict[str, Any]:
    return {"signal": vote.signal, "weight": vote.weight, "normaliser": _normaliser(vote.normaliser)}


_NORMALISERS: dict[type[Any], str] = {
    normalisers.Above: "above",
    normalisers.AboveFloor: "above-floor",
    normalisers.AgainstMass: "against-mass",
    normalisers.Atan: "atan",
    normalisers.BatchMax: "batch-max",
    normalisers.Binary: "binary",
    normalisers.Clamped: "clamped",
    normalisers.DistributionBased: "distribution",
    normalisers.MinMax: "min-max",
    normalisers.ReciprocalRank: "reciprocal-rank",
    normalisers.Saturating: "saturating",
    normalisers.Sigmoid: "sigmoid",
    normalisers.Theoretical: "theoretical",
}


def _normaliser(normaliser: Normaliser) -> dict[str, Any]:
    kind = _NORMALISERS.get(type(normaliser))
    if kind is None:
        raise _unknown(normaliser)
    return {"kind": kind, **vars(normaliser)}


def _unknown(what: object) -> ConfigError:
    return ConfigError(
        f"a browser cannot rank by {what!r}", "use the stages that ship with whyrank, or rank with the library"
    )


# Stages that are defined by their fields alone.
_PLAIN: dict[type[Any], str] = {
    Evidence: "evidence",
    GroupBySource: "group",
    MinScore: "min-score",
    MMR: "mmr",
    OpenClawSelection: "openclaw-selection",
    Recency: "recency",
}


def _stage(stage: Stage, found: Pooled) -> dict[str, Any]:
    """Return a stage by its fields and inputs, or by the steps it took."""
    memories, context = found.memories, found.pool.context
    kind = type(stage)
    if kind in _PLAIN:
        return {"kind": _PLAIN[kind], **vars(stage)}
    if kind in RECORDED:
        return {"kind": RECORDED[kind], **_steps(steps_of(stage, memories, context))}
    match stage:
        case NameFirst():
            return {"kind": "name", **vars(stage), "steps": _names(stage, found)}
        case Dedup():
            return {"kind": "dedup", "near": stage.near, **_texts(memories)}
        case Rerank():
            opinions = {place: context.opinions.get(memory.id) for place, memory in enumerate(memories)}
            told = {str(place): opinion for place, opinion in opinions.items() if opinion is not None}
            return {"kind": "rerank", "by": repr(stage.reranker), "opinions": told}
    raise _unknown(stage)


def _steps(taken: Mapping[int, Trail]) -> dict[str, Any]:
    """Return steps by position, each with the index of its reason: many share one."""
    whys: dict[str, int] = {}
    steps = {
        str(place): [[step.op, step.value, whys.setdefault(step.why, len(whys))] for step in trail]
        for place, trail in taken.items()
    }
    return {"whys": list(whys), "steps": steps}


def _names(stage: NameFirst, found: Pooled) -> dict[str, list[Any]]:
    """Return the tier each name match is lifted by, or the bonus it gains and the share of it."""
    told: dict[str, list[Any]] = {}
    for place, (step,) in names_of(stage, found.memories, found.pool.context).items():
        relation = found.pool.context.names[found.memories[place].id].relation
        bonus = "sentence_bonus" if relation == "in a sentence" else "partial_bonus"
        told[str(place)] = ["lift" if step.op == "lift" else bonus, step.value, step.why]
    return told


def _texts(memories: Sequence[Memory]) -> dict[str, Any]:
    """Return the groups of identical texts, and the dates that choose between their members."""
    first: dict[str, int] = {}
    same = [first.setdefault(text_key(memory.text), place) for place, memory in enumerate(memories)]
    return {"same": same, "dates": [memory.date or 0.0 for memory in memories]}


def _signals(found: Pooled) -> list[dict[str, Any]]:
    """Return the signals as fusion reads them: voting ones, and those that are evidence alone."""
    fusion, context, runs = found.pool.recipe.fusion, found.pool.context, found.pool.runs
    ids = candidate_ids(runs)
    voting = {vote.signal: vote for vote in _voting(fusion, found)}
    read = {name: fusion.column(vote, runs, context, ids).signal for name, vote in voting.items()}
    names = [*context.signals, *(name for name in read if name not in context.signals)]
    return [_signal(name, read.get(name) or context.signals[name], found, context) for name in names]


def _voting(fusion: Fuse, found: Pooled) -> Sequence[Vote]:
    """Return every vote that could count under some setting, whatever its present weight."""
    runs = found.pool.runs
    weighed = [Vote(vote.signal, 1.0, vote.normaliser) for vote in fusion.votes]
    return Fuse(tuple(weighed), fusion.others, fusion.proposing, fusion.absent, added=fusion.added).ballot(runs).votes


def _signal(name: str, signal: Signal, found: Pooled, context: Context) -> dict[str, Any]:
    ids = [memory.id for memory in found.memories]
    ranks = next((run.ranks() for run in found.pool.runs if run.name == name), {})
    return {
        "name": name,
        "raw": column_of(signal.values, ids),
        "rank": [ranks.get(identity) for identity in ids],
        "coverage": column_of(signal.coverage, ids) if signal.coverage else None,
        "floor": signal.floor,
        "mass": signal.mass,
        "memories": signal.memories,
        "terms": _terms(signal, ids),
        "is_evidence": name in context.signals,
    }


def _terms(signal: Signal, ids: Sequence[str]) -> dict[str, Any]:
    """Return each term key once, and per memory its contributions as key, value, key, value, …"""
    keys: dict[TermKey, int] = {}
    added: list[list[float]] = []
    for identity in ids:
        added.append([])
        for *key, value in signal.terms_of(identity):
            added[-1] += keys.setdefault(TermKey(*key), len(keys)), value
    return {"keys": [key._asdict() for key in keys], "added": added if keys else []}


def _candidates(found: Pooled) -> list[dict[str, Any]]:
    terms, files = found.results.analysis.terms, dict[object, int]()
    moment_asked = found.pool.context.query.where.moment
    return [
        {
            **_shown(memory, terms),
            "confidence": None if confidence is None else round(confidence, SHOWN_DIGITS),
            "origin": files.setdefault(memory.origin, len(files)),
            "age_days": _age(memory, moment_asked),
        }
        for memory in found.memories
        for confidence in [found.confidences.get(memory.id)]
    ]


def _age(memory: Memory, now: float) -> float | None:
    """Return the age of a memory in days, as Recency computes it; None if it does not age."""
    if memory.evergreen or memory.date is None:
        return None
    return max(0.0, now - memory.date) / SECONDS_PER_DAY


def _shown(memory: Memory, terms: tuple[str, ...]) -> dict[str, Any]:
    return {
        "id": memory.id,
        "title": memory.title or memory.name,
        "headings": list(memory.headings),
        **location(memory),
        "kind": memory.kind,
        "scope": str(memory.scope),
        "tags": list(memory.tags),
        "date": moment(memory.date),
        "trust": memory.trust,
        "snippet": pieces(snippet(memory.text, terms)),
    }


def pieces(shown: Snippet) -> list[str]:
    """Return a snippet split at its marks: text, match, text, match, …; even positions are unmarked."""
    cut: list[str] = []
    position = 0
    for start, end in shown.spans:
        cut += [shown.text[position:start], shown.text[start:end]]
        position = end
    return [*cut, shown.text[position:]]
