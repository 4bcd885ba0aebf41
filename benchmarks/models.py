"""Measure embedding models on evaluation sets, as a user would, and print the tables of docs/models.md.

    python -m benchmarks.models DATA [--sets agent-memory,scifact] [--models wordllama,granite] [--out out/models]

Every pair of a set and a model is one `whyrank eval SET --embedding MODEL --json`, kept in the folder: what is there is
not measured again. What stands behind `--` is handed to `whyrank eval`, for instance `-- --small 45`; give such runs a
folder of their own.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

from whyrank.config.load import load
from whyrank.providers.registry import embedder_named

SETS = ("agent-memory", "skills-registry", "cranfield", "scifact", "locomo-sessions")
MODELS = ("wordllama", "minilm", "granite", "bge-small")
_QUESTIONS = 40
_ROUNDS = 20  # the cheapest of so many: a busy machine makes any one of them dear


def main() -> None:
    """Measure what is missing, print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--out", type=Path, default=Path("out/models"))
    arguments, handed = _split(sys.argv[1:])
    asked = parser.parse_args(arguments)
    sets, models = asked.sets.split(","), asked.models.split(",")
    asked.out.mkdir(parents=True, exist_ok=True)
    print("| set | " + " | ".join(f"`{model}`" for model in models) + " |")
    print("|---" * (1 + len(models)) + "|")
    for one in sets:
        figures = [_measured(asked.data / one, model, asked.out, handed) for model in models]
        print(f"| {one} | " + " | ".join(figures) + " |", flush=True)
    print()
    questions = [json.loads(line)["text"] for line in (asked.data / sets[0] / "queries.jsonl").open(encoding="utf-8")]
    for model in models:
        print(f"{model}: {_milliseconds(model, questions[:_QUESTIONS]):.1f} ms of CPU a question, in the model alone")


def _split(arguments: list[str]) -> tuple[list[str], list[str]]:
    place = arguments.index("--") if "--" in arguments else len(arguments)
    return arguments[:place], arguments[place + 1 :]


def _measured(dataset: Path, model: str, out: Path, handed: list[str]) -> str:
    """Return nDCG@10 and recall@10 of the default recipe, and nDCG@10 of the vectors alone."""
    kept = out / f"{dataset.name}-{model.replace('/', '-').replace(':', '-')}.json"
    if not kept.is_file():
        command = [sys.executable, "-m", "whyrank", "eval", str(dataset), "--embedding", model, "--json", *handed]
        done = subprocess.run(command, capture_output=True, check=True, text=True)
        kept.write_text(done.stdout, encoding="utf-8")
    lines = json.loads(kept.read_text(encoding="utf-8"))["sets"][0]["lines"]
    whole, vector = (lines[name]["measures"] for name in ("default", "vector"))
    return f"{whole['ndcg@10']:.3f}, {whole['recall@10']:.3f} ({vector['ndcg@10']:.3f})"


def _milliseconds(model: str, questions: list[str]) -> float:
    embedder = embedder_named(model, load().models)
    assert embedder is not None
    embedder.query("the model is loaded now")

    def cheapest(question: str) -> float:
        spent = []
        for _ in range(_ROUNDS):
            begun = time.process_time()
            embedder.query(question)
            spent.append(time.process_time() - begun)
        return min(spent)

    return 1_000 * median(map(cheapest, questions))


if __name__ == "__main__":
    main()
