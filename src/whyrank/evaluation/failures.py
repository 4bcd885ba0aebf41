"""The worst queries of a set, with the trails of the first hit and of the right one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from ..analysis.snippets import snippet
from ..errors import NotFound
from ..types.memory import Scope
from ..types.results import Hit, Results
from .datasets import Question
from .harness import CEILING, DEPTH, EvaluatedEngine, Evaluation
from .measures import MAIN, Judgements

WORST = 10  # queries shown per set: as many as a reader reads


class Explaining(EvaluatedEngine, Protocol):
    """Engine protocol for explaining failures: search and `why`."""

    def why(self, query: str, identity: str, *, recipe: str, scope: Scope, over: Any = None) -> object:
        """Explain the rank of a memory, or find the change that puts it over another."""


class FailureDocument(NamedTuple):
    """One document of a story: its rank, its text, and its trail."""

    document: str
    gain: int
    rank: int | None
    title: str
    text: str
    trail: str


class Story(NamedTuple):
    """One failed query: the first hit, the best expected document, and the change that would swap them."""

    id: str
    first: FailureDocument | None
    expected: FailureDocument
    flip: str


def worst(evaluation: Evaluation, engine: Explaining, count: int = WORST) -> list[Story]:
    """Run the worst queries of the first recipe again, and record a story for each."""
    recipe = evaluation.recipes[0]
    asked = {question.id: question for question in evaluation.questions}
    return [
        _story(asked[identity], evaluation.judgements[identity], engine, recipe)
        for identity in worst_of(
            {one: scores[MAIN] for one, scores in evaluation.lines[recipe].scores.items()},
            {one: scores[MAIN] for one, scores in evaluation.lines[CEILING].scores.items()},
        )[:count]
    ]


def worst_of(values: Mapping[str, float], attainable: Mapping[str, float]) -> list[str]:
    """Sort the imperfect queries, worst first; ties by the best value a ranking could have attained."""
    short = [identity for identity, value in values.items() if value < 1.0]
    return sorted(short, key=lambda identity: (values[identity], -attainable[identity]))


def _story(question: Question, judged: Judgements, engine: Explaining, recipe: str) -> Story:
    results = engine.search(question.text, limit=DEPTH, recipe=recipe, scope=question.scope)
    wanted = _best_expected(results, judged)
    first = _told(results, results.hits[0], judged) if results.hits else None
    if wanted is None:
        return Story(question.id, first, _absent(question, judged, engine, recipe), "")
    flip = ""
    if results.hits and wanted.id != results.hits[0].id:
        over = results.hits[0].id
        flip = str(engine.why(question.text, wanted.id, over=over, recipe=recipe, scope=question.scope))
    return Story(question.id, first, _told(results, wanted, judged), flip)


def _best_expected(results: Results, judged: Judgements) -> Hit | None:
    """Return the first expected hit, or the best dropped one."""
    shown = (hit for hit in results.hits if judged.get(_document(hit), 0) > 0)
    dropped = [hit for hit in results.dropped if judged.get(_document(hit), 0) > 0]
    return next(shown, None) or max(dropped, key=lambda hit: (hit.tier, hit.score), default=None)


def _told(results: Results, hit: Hit, judged: Judgements) -> FailureDocument:
    document = _document(hit)
    return FailureDocument(
        document,
        judged.get(document, 0),
        rank_of(document, [_document(one) for one in results.hits]),
        hit.memory.title,
        snippet(hit.memory.text, results.analysis.terms).text,
        hit.explain(),
    )


def _absent(question: Question, judged: Judgements, engine: Explaining, recipe: str) -> FailureDocument:
    """Return the entry of an expected document that was not even a candidate."""
    document, gain = max(judged.items(), key=lambda item: item[1])
    try:
        said = str(engine.why(question.text, document, recipe=recipe, scope=question.scope))
    except NotFound:
        said = "no memory that may answer here comes from this document"
    return FailureDocument(document, gain, None, "", "", said)


def _document(hit: Hit) -> str:
    return hit.memory.source.path if hit.memory.source else ""


def rank_of(document: str, ranked: Sequence[str]) -> int | None:
    """Return the rank of a document in a ranked list, counted by the best chunk of each document."""
    distinct = list(dict.fromkeys(ranked))
    return distinct.index(document) + 1 if document in distinct else None
