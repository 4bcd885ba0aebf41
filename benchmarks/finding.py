"""How well engines find, on the same sets with the same vectors, each called as its documentation says.

    python -m benchmarks.finding --engines lancedb,chroma --out docs/comparison/finding.json SET…

Every document is one note (its title in front), WordLlama gives the vectors, ten results are asked for. whyrank is
measured as `whyrank eval` does it. Engines that are in the file already and are not named stay as they are, so that
engines that cannot be installed together are measured one after the other. Only figures are kept, no text.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from datetime import UTC, datetime
from importlib import import_module, metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import whyrank
from whyrank.evaluation.datasets import EvaluationSet, load_set
from whyrank.evaluation.harness import evaluate
from whyrank.evaluation.measures import MAIN, mean, score
from whyrank.providers.wordllama import WordLlama
from whyrank_conformance.adapter import Adapter, Note, Question, Setup

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

DEPTH = 10
DIMENSION = 256
NOTES_PER_CALL = 500
OURS = "whyrank"
LINES = {"default": OURS, "keyword": "whyrank, words alone", "vector": "whyrank, vectors alone"}
ENGINES = {
    "fts5+numpy": "usual:After",
    "lancedb": "lance:LanceDb",
    "chroma": "chroma:Chroma",
    "qdrant-edge": "qdrant:QdrantEdge",
    "txtai": "txtai:Txtai",
    "milvus-lite": "milvus:MilvusLite",
    "langchain-ensemble": "langchain:Ensemble",
    "llamaindex-fusion": "llamaindex:Fusion",
    "haystack-joiner": "haystack:Joiner",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="+")
    parser.add_argument("--engines", default=OURS)
    parser.add_argument("--out", required=True, type=Path)
    asked = parser.parse_args()
    data: dict[str, Any] = (
        json.loads(asked.out.read_text("utf-8")) if asked.out.exists() else {"engines": {}, "format": 1}
    )
    for folder in asked.sets:
        dataset = load_set(Path(folder))
        for name in asked.engines.split(","):
            for line, found in measured(name, dataset).items():
                kept = data["engines"].setdefault(line, {"sets": {}})
                kept |= {"versions": found.pop("versions"), "call": found.pop("call")}
                kept["sets"][dataset.name] = found
                print(f"{dataset.name:18}{line:26}{found['measures'][MAIN]:.4f}", file=sys.stderr)
            asked.out.write_text(json.dumps(data, ensure_ascii=False, separators=(",", ":")) + "\n", "utf-8")


def measured(name: str, dataset: EvaluationSet) -> dict[str, dict[str, Any]]:
    """Return the figures of an engine, by line: whyrank has its halves beside it."""
    return ours(dataset) if name == OURS else {name: theirs(name, dataset)}


def ours(dataset: EvaluationSet) -> dict[str, dict[str, Any]]:
    with (
        tempfile.TemporaryDirectory(prefix="whyrank-finding-") as place,
        whyrank.open(Path(place) / "memory.db", workspace=place, calibration="manual") as engine,
    ):
        evaluation = evaluate(dataset, engine, ["default"], lambda *_: None)
    told = {"versions": {OURS: whyrank.__version__}, "call": "memory.search(q, limit=n)"}
    return {shown: {**told, **figures(dataset, evaluation.lines[line].ranked)} for line, shown in LINES.items()}


def theirs(name: str, dataset: EvaluationSet) -> dict[str, Any]:
    module, kind = ENGINES[name].split(":")
    adapter: Adapter = getattr(import_module(f"whyrank_conformance.adapters.{module}"), kind)()
    embedder = WordLlama()
    notes = [Note(one.id, f"{one.title}\n{one.text}" if one.title else one.text) for one in dataset.documents]
    ranked: dict[str, list[str]] = {}
    failed = 0
    with tempfile.TemporaryDirectory(prefix="whyrank-finding-") as place:
        adapter.open(Setup(Path(place), lambda texts: embedder.documents(texts), DIMENSION))
        for start in range(0, len(notes), NOTES_PER_CALL):
            adapter.add(notes[start : start + NOTES_PER_CALL])
        for question in dataset.questions:
            try:
                ranked[question.id] = list(adapter.search(Question(question.text, limit=DEPTH)).ids)
            except Exception as error:  # whatever another engine raises: its user gets no answer, and it is counted
                print(f"{name}: {question.id}: {error}", file=sys.stderr)
                ranked[question.id], failed = [], failed + 1
        adapter.close()
    versions = {package: metadata.version(package) for package in adapter.packages}
    return {"versions": versions, "call": adapter.call, "failed": failed, **figures(dataset, ranked)}


def figures(dataset: EvaluationSet, ranked: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    scores = [score(ranked[one.id][:DEPTH], dataset.judgements[one.id]) for one in dataset.questions]
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "queries": len(scores),
        "documents": len(dataset.documents),
        "measures": {name: round(value, 4) for name, value in mean(scores).items()},
        "per_query": [round(one[MAIN], 4) for one in scores],
    }


if __name__ == "__main__":
    main()
