"""Ask the questions of one language of the notes of another: crossed xquad, with a model added beside the first.

    python -m benchmarks.crossed DATA [--embedding wordllama] [--add multilingual] [--out out/crossed]

`DATA` holds `xquad-de`, `xquad-ru` and `xquad-zh`: the same paragraphs and questions, whose ids differ in the language
alone. Every crossed set is written into the folder and measured by one `whyrank eval`.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
from itertools import permutations
from pathlib import Path
from statistics import mean

LANGUAGES = ("de", "ru", "zh")


def main() -> None:
    """Write and measure the crossed sets, print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--embedding", default="wordllama")
    parser.add_argument("--add", default="multilingual")
    parser.add_argument("--out", type=Path, default=Path("out/crossed"))
    asked = parser.parse_args()
    with_added = []
    print(f"| question → notes | {asked.embedding} | with {asked.add} added |\n|---|---|---|")
    for question, notes in permutations(LANGUAGES, 2):
        crossed = _cross(asked.data, question, notes, asked.out)
        alone, added = (_ndcg(crossed, asked.embedding, more) for more in ([], ["--add", asked.add]))
        with_added.append(added)
        print(f"| {question} → {notes} | {alone:.3f} | {added:.3f} |", flush=True)
    print(f"mean {mean(with_added):.3f}, least {min(with_added):.3f}")


def _cross(data: Path, question: str, notes: str, out: Path) -> Path:
    """Write the set of one language's questions and another's notes."""
    asked, answering = data / f"xquad-{question}", data / f"xquad-{notes}"
    crossed = out / f"{question}-{notes}"
    crossed.mkdir(parents=True, exist_ok=True)
    shutil.copy(answering / "corpus.jsonl", crossed)
    shutil.copy(asked / "queries.jsonl", crossed)
    header, *lines = (asked / "qrels.tsv").read_text(encoding="utf-8").splitlines()
    rows = (line.split("\t") for line in lines)
    judged = (f"{query}\t{document.replace(f'xq{question}', f'xq{notes}')}\t{grade}" for query, document, grade in rows)
    (crossed / "qrels.tsv").write_text("\n".join([header, *judged, ""]), encoding="utf-8")
    return crossed


def _ndcg(dataset: Path, embedding: str, more: list[str]) -> float:
    command = [sys.executable, "-m", "whyrank", "eval", str(dataset), "--embedding", embedding, "--json", *more]
    done = subprocess.run(command, capture_output=True, check=True, text=True)
    measured: float = json.loads(done.stdout)["sets"][0]["lines"]["default"]["measures"]["ndcg@10"]
    return measured


if __name__ == "__main__":
    main()
