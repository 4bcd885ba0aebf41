"""What an expanded question asks besides: further runs, each with a signal and a vote of its own.

A made-up answer is looked for in place of the question by the vector run (`vector:hyde`). Other wordings add runs of
words and vectors (`keyword:2`, `vector:2`, …). The weight of words and that of vectors stay what they are: the question
has half of each, its other wordings share the other half. Confidence is read off the question's own evidence, whatever
a language model thinks of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from ..analysis.query import analyse
from ..analysis.strict import long_terms
from ..hits import Context
from ..ports import Embedder, Store, Vector
from ..ranking.fusion import family_of
from ..ranking.recipes import Plan
from ..types import Analysis, Notice, Query, Run, Signal
from ..unitvectors import unit_rows

MOST_FURTHER_RUNS = 4
QUESTIONS_SHARE = 0.5  # what the question keeps of its vote when others speak for it as well
_HYDE = "hyde"


class Probe(NamedTuple):
    """One text that is looked for besides the question, or in its place, and the kinds of runs that do."""

    label: str
    text: str
    families: tuple[str, ...]
    analysis: Analysis
    vector: Vector | None

    @property
    def runs(self) -> tuple[str, ...]:
        """Name its runs."""
        return tuple(f"{family}:{self.label}" for family in self.families)

    def in_long_words(self, language: str) -> Probe:
        """Return the same without the words that are too short to be asked for."""
        terms = long_terms(self.analysis.terms, self.analysis.text, language)
        return self._replace(analysis=replace(self.analysis, terms=terms))


def probes_for(
    query: Query, plan: Plan, embedder: Embedder | None, vector: Vector | None, language: str, notices: list[Notice]
) -> tuple[Probe, ...]:
    """Return what is looked for besides; where an embedder fails, words alone, or nothing, with a notice."""
    if query.expansion is None:
        return ()
    texts, mode = query.expansion.texts, query.expansion.mode
    families = tuple(name for name in plan.runs if name == "vector" or (name == "keyword" and mode == "variants"))
    if vector is None:  # there is none, or it has just failed
        families = tuple(name for name in families if name != "vector")
    if not families:
        notices.append(_off("there is nothing it could look for with"))
        return ()
    chosen = sorted(texts[: 1 if mode == _HYDE else MOST_FURTHER_RUNS // len(families)])
    labels = [_HYDE] if mode == _HYDE else [str(number) for number in range(2, len(chosen) + 2)]
    vectors = None
    if vector is not None and "vector" in families:
        vectors = _vectors(chosen, mode == _HYDE, embedder, len(vector), notices)
    if vectors is None:
        families = tuple(name for name in families if name != "vector")
    moment = query.where.moment
    return tuple(
        Probe(label, text, families, analyse(text, language, moment), vectors[place] if vectors else None)
        for place, (label, text) in enumerate(zip(labels, chosen, strict=True))
        if families
    )


def _vectors(
    texts: Sequence[str], are_answers: bool, embedder: Embedder | None, dimension: int, notices: list[Notice]
) -> list[Vector] | None:
    """Embed made-up answers as the texts they imitate, and other wordings as the questions they are."""
    assert embedder is not None
    try:
        given = embedder.documents(texts) if are_answers else [embedder.query(text) for text in texts]
        found = list(unit_rows(given, len(texts), dimension))
    except Exception as error:  # whatever a provider throws, the question itself must be answered
        notices.append(_off(f"the embedder failed: {error}"))
        return None
    if not all(vector.any() for vector in found):
        notices.append(_off("the embedder knows no part of it"))
        return None
    return found


def _off(reason: str) -> Notice:
    return Notice("expansion-off", f"what the language model made of the question was left aside: {reason}")


def replaces_the_question(probes: Sequence[Probe]) -> bool:
    """Tell whether a made-up answer is looked for in place of the question."""
    return any(probe.label == _HYDE for probe in probes)


def further_runs(probes: Sequence[Probe], query: Query, plan: Plan, store: Store, space: str) -> tuple[Run, ...]:
    """Ask for the candidates of every further run."""
    return tuple(_run(name, probe, query, plan, store, space) for probe in probes for name in probe.runs)


def _run(name: str, probe: Probe, query: Query, plan: Plan, store: Store, space: str) -> Run:
    found = listed(name, probe, query, plan, store, space, plan.pool)
    return Run(name, found.candidates, found.notices)


def listed(name: str, probe: Probe, query: Query, plan: Plan, store: Store, space: str, limit: int | None) -> Run:
    """Return what a further run lists, up to so many sources; None for all."""
    if family_of(name) == "vector" and probe.vector is not None:
        return store.nearest(probe.vector, space, query.where, limit)
    return store.keyword(probe.analysis.asked, query.where, limit, plan.join)


def further_signals(probes: Sequence[Probe], context: Context, store: Store, space: str) -> dict[str, Signal]:
    """Score every candidate by every further signal, whichever run brought it."""
    signals = {}
    for probe in probes:
        terms = probe.analysis.asked if "keyword" in probe.families else ()
        for signal in store.score(context.memories, terms, probe.vector, space, context.query.where):
            name = f"{signal.name}:{probe.label}"
            signals[name] = Signal(name, signal.values, signal.coverage, signal.terms)
    return signals


def shares_of(runs: Sequence[Run], probes: Sequence[Probe]) -> dict[str, dict[str, float]]:
    """Return how the vote of each kind is shared among its runs that found something."""
    found = {run.name for run in runs if run.candidates}
    shares = {}
    for family in ("vector", "keyword"):
        further = [name for probe in probes for name in probe.runs if family_of(name) == family and name in found]
        own = QUESTIONS_SHARE if family in found else 0.0
        if further:
            rest = dict.fromkeys(further, (1 - own) / len(further))
            shares[family] = {family: own, **rest} if own else rest
    return shares
