"""Evaluation of recipes on a set, always with the single runs and the ceiling for comparison."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from ..errors import BadDataset
from ..types.trail import replay, total
from .datasets import EvaluationSet, Question, digest
from .measures import MAIN, MEASURES, Comparison, Interval, Judgements, Scores, bootstrap, compare, mean, score

if TYPE_CHECKING:
    from pathlib import Path

    from ..types.memory import Document
    from ..types.results import Results

DEPTH = 100  # results per query: what a run file holds
SINGLE_RUNS = ("keyword", "vector")
CEILING = "ceiling"

Tick = Callable[[int, int, str], None]


class EvaluatedEngine(Protocol):
    """Engine protocol for an evaluation: indexing and search."""

    def ingest(self, *paths: str | Path, base: str | Path | None = None) -> object:
        """Index files."""

    def add_documents(self, documents: Iterable[Document]) -> int:
        """Index documents."""

    def search(self, query: str, *, limit: int, recipe: str, scope: object) -> Results:
        """Answer a query."""


class Judged(NamedTuple):
    """Evidence of one result list (plus the tier of a name match), and its verdict."""

    evidence: float
    verdict: str


@dataclass
class Line:
    """One recipe over one set: ranked documents, measures and evidence of each query."""

    name: str
    ranked: dict[str, list[str]] = field(default_factory=dict)
    first: dict[str, int | None] = field(default_factory=dict)  # the rank of the first relevant document
    scores: dict[str, Scores] = field(default_factory=dict)
    spoken: dict[str, Judged] = field(default_factory=dict)

    def values(self, measure: str = MAIN) -> list[float]:
        """Return one measure for all queries, in their order."""
        return [scores[measure] for scores in self.scores.values()]

    def means(self) -> dict[str, float]:
        """Return every measure's mean."""
        return mean(self.scores.values())

    def interval(self) -> Interval:
        """Return the 95 % interval of the main measure."""
        return bootstrap(self.values())


@dataclass
class Evaluation:
    """All lines of one set, and the check that every trail replays to its key."""

    set_name: str
    questions: Sequence[Question]
    recipes: Sequence[str]
    judgements: Mapping[str, Judgements] = field(default_factory=dict)
    digest: str = ""
    lines: dict[str, Line] = field(default_factory=dict)
    trails: int = 0
    broken_trails: list[str] = field(default_factory=list)
    notices: dict[str, int] = field(default_factory=dict)

    def comparison(self, recipe: str) -> Comparison:
        """Compare a recipe with the first one, query by query."""
        return compare(self.lines[self.recipes[0]].values(), self.lines[recipe].values())

    def by_kind(self, line: str) -> dict[str, tuple[int, dict[str, float]]]:
        """Return the means of each kind of query, with its number of queries."""
        groups: dict[str, list[Scores]] = {}
        for question in self.questions:
            groups.setdefault(question.kind, []).append(self.lines[line].scores[question.id])
        return {kind: (len(rows), mean(rows)) for kind, rows in sorted(groups.items())} if len(groups) > 1 else {}


def evaluate(dataset: EvaluationSet, engine: EvaluatedEngine, recipes: Sequence[str], tick: Tick) -> Evaluation:
    """Index a set like user data, run every query with every recipe, and measure."""
    slips = unknown(dataset)
    fill(engine, dataset)
    evaluation = measure(dataset, engine, recipes, tick)
    evaluation.notices.update(slips)
    return evaluation


def measure(dataset: EvaluationSet, engine: EvaluatedEngine, recipes: Sequence[str], tick: Tick) -> Evaluation:
    """Run every query with every recipe on an engine that holds the set."""
    evaluation = Evaluation(dataset.name, dataset.questions, recipes, dataset.judgements, digest(dataset))
    names = lines_asked(recipes)
    brought: dict[str, set[str]] = {question.id: set() for question in dataset.questions}
    for step, name in enumerate(names):
        line = evaluation.lines[name] = Line(name)
        for number, question in enumerate(dataset.questions, 1):
            results = engine.search(question.text, limit=DEPTH, recipe=name, scope=question.scope)
            _record(line, question, documents_in(results), dataset.judgements[question.id])
            line.spoken[question.id] = spoken(results)
            _check_trails(evaluation, question, results)
            candidates = (*results.hits, *results.dropped)
            brought[question.id].update(hit.memory.source.path for hit in candidates if hit.memory.source)
            tick(step * len(dataset.questions) + number, len(names) * len(dataset.questions), f"{dataset.name} {name}")
    ceiling = evaluation.lines[CEILING] = Line(CEILING)
    for question in dataset.questions:
        judged = dataset.judgements[question.id]
        # The ideal order of all candidates, most relevant first: the upper bound of every line.
        ideal = sorted(brought[question.id], key=lambda document: (-judged.get(document, 0), document))[:DEPTH]
        _record(ceiling, question, ideal, judged)
    return evaluation


def lines_asked(recipes: Sequence[str]) -> list[str]:
    """Return the recipes to run: those wanted, and the single runs."""
    return list(dict.fromkeys((*recipes, *SINGLE_RUNS)))


# Inconsistencies between the files of a set, by the code they are counted under.
SLIPS = {
    "unknown-document": "of the documents that qrels.tsv judges are not in the set, and count as not found",
    "unknown-query": "of the queries that qrels.tsv judges are not in queries.jsonl",
    "unjudged-query": "of the queries have no relevant document in qrels.tsv, and were left out",
}


def unknown(dataset: EvaluationSet) -> dict[str, int]:
    """Count judgements of missing documents and queries; refuse a set if all documents are missing.

    A mistake in qrels.tsv must not pass for a bad search.
    """
    judged = {document for gains in dataset.judgements.values() for document, gain in gains.items() if gain > 0}
    known = {document.id for document in dataset.documents}
    if dataset.files is not None:
        known = {document for document in judged if (dataset.files / document).is_file()}
    if judged and judged.isdisjoint(known):
        raise BadDataset(
            f"{dataset.name}: none of the {len(judged):,} documents that qrels.tsv judges is in the set, "
            f"for instance {min(judged)!r}",
            "use the ids of corpus.jsonl, or the paths below files/",
        )
    found = {
        "unknown-document": len(judged - known),
        "unknown-query": len(dataset.judgements.keys() - {question.id for question in dataset.questions}),
        "unjudged-query": dataset.unjudged,
    }
    return {code: count for code, count in found.items() if count}


def fill(engine: EvaluatedEngine, dataset: EvaluationSet) -> None:
    """Index a set like user data."""
    if dataset.files is not None:
        engine.ingest(*(dataset.files / path for path in dataset.paths or ("",)), base=dataset.files)
    else:
        engine.add_documents(dataset.documents)


def spoken(results: Results) -> Judged:
    """Return evidence and verdict of results; a name that equals the query outweighs all evidence."""
    return Judged(results.evidence + (results.hits[0].tier if results.hits else 0), results.verdict)


def documents_in(results: Results) -> list[str]:
    """Return the documents of the results in order; a document's best chunk counts."""
    paths = (hit.memory.source.path for hit in results if hit.memory.source)
    return list(dict.fromkeys(paths))


def _record(line: Line, question: Question, ranked: list[str], judged: Judgements) -> None:
    line.ranked[question.id] = ranked
    places = (rank for rank, document in enumerate(ranked, 1) if judged.get(document, 0) > 0)
    line.first[question.id] = next(places, None)
    line.scores[question.id] = score(ranked, judged)


def _check_trails(evaluation: Evaluation, question: Question, results: Results) -> None:
    """Replay every trail: the explanation must be the computation."""
    for hit in (*results.hits, *results.dropped):
        evaluation.trails += 1
        sums = all(total(step.parts) == step.value for step in hit.trail if step.parts)
        if replay(hit.trail) != hit.key or not sums:
            evaluation.broken_trails.append(f"{question.id}: {hit.id}")
    for notice in results.notices:
        evaluation.notices[notice.code] = evaluation.notices.get(notice.code, 0) + 1


def write_run(file: Path, line: Line, tag: str) -> None:
    """Write a TREC run file; the score falls strictly with the rank."""
    with file.open("w", encoding="utf-8") as out:
        for question, ranked in line.ranked.items():
            for rank, document in enumerate(ranked, 1):
                out.write(f"{question} Q0 {document} {rank} {1 / rank:.6f} {tag}\n")


def as_data(evaluation: Evaluation) -> dict[str, Any]:
    """Return an evaluation as plain data."""
    return {
        "set": evaluation.set_name,
        "queries": len(evaluation.questions),
        "lines": {
            name: {
                "measures": line.means(),
                "interval": line.interval()._asdict(),
                "kinds": {kind: {"queries": n, **means} for kind, (n, means) in evaluation.by_kind(name).items()},
            }
            for name, line in evaluation.lines.items()
        },
        "comparisons": {
            recipe: {"against": evaluation.recipes[0], **evaluation.comparison(recipe)._asdict()}
            for recipe in evaluation.lines
            if recipe not in (evaluation.recipes[0], CEILING)
        },
        "trails": {"replayed": evaluation.trails, "broken": len(evaluation.broken_trails)},
        "notices": evaluation.notices,
        "measures": [measure.name for measure in MEASURES],
        "recipes": list(evaluation.recipes),
        "digest": evaluation.digest,
        "per_query": [_query_as_data(evaluation, question) for question in evaluation.questions],
    }


def _query_as_data(evaluation: Evaluation, question: Question) -> dict[str, object]:
    """Return one query as plain data: expected documents, ranks, and the measures of every line in order."""
    expected = {document: gain for document, gain in evaluation.judgements[question.id].items() if gain > 0}
    evidence, verdict = evaluation.lines[evaluation.recipes[0]].spoken[question.id]
    return {
        "id": question.id,
        "text": question.text,
        "kind": question.kind,
        "scope": str(question.scope),
        "expected": expected,
        "evidence": evidence,
        "verdict": verdict,
        "ranks": {name: line.first[question.id] for name, line in evaluation.lines.items()},
        "figures": {name: list(line.scores[question.id].values()) for name, line in evaluation.lines.items()},
    }
