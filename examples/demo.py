"""The main job in one minute: index an agent's memory, ask it what it knows and what not, explain a rank, measure.

Run by `make demo`. It works in a copy of the example memory; each step is a command you can type yourself.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

MEMORY = Path(__file__).parent / "memory"
QUESTION = "what to do when a task seems impossible"
UNANSWERABLE = "how do I bake sourdough bread?"
PROTOCOLS = Path(__file__).parent / "protocols"
LIMIT = 6  # results that a search shows unless told otherwise


def whyrank(workspace: Path, *words: str) -> None:
    """Run one whyrank command and show it as it would be typed."""
    print("$ whyrank " + " ".join(f'"{word}"' if " " in word else word for word in words))
    done = run(workspace, *words)
    print(done.stdout + done.stderr)


def run(workspace: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run one whyrank command, and end with what it says if it fails."""
    command = [sys.executable, "-m", "whyrank", *words]
    done = subprocess.run(command, cwd=workspace, capture_output=True, text=True, encoding="utf-8", check=False)
    if done.returncode:
        sys.exit(done.stderr)
    return done


def hit_rate(workspace: Path) -> str:
    """Measure how often the note that answers a question is among the results shown."""
    print("$ whyrank eval examples/protocols --json")
    [measured] = json.loads(run(workspace, "eval", str(PROTOCOLS.resolve()), "--json").stdout)["sets"]
    ranks = [query["ranks"] for query in measured["per_query"]]
    found = {
        line: sum(rank[line] is not None and rank[line] <= LIMIT for rank in ranks)
        for line in ("default", "keyword", "vector")
    }
    hit, keyword, vector = (f"{count / len(ranks):.2f}" for count in found.values())
    return (
        f"examples/protocols: the right note is among the first six for {found['default']} of {len(ranks)} questions "
        f"(hit@{LIMIT} {hit}; keywords alone {keyword}, vectors alone {vector})"
    )


def title(text: str) -> None:
    """Print a heading."""
    print(f"── {text} " + "─" * max(0, 78 - len(text)))


def main() -> None:
    """Show the main job."""
    with tempfile.TemporaryDirectory(prefix="whyrank-demo-") as place:
        workspace = Path(place)
        shutil.copytree(MEMORY, workspace / "memory")
        title("Index a folder of notes, skills and logs")
        whyrank(workspace, "ingest", "memory")
        title("A question in natural language")
        whyrank(workspace, "search", "how do I restore a file I deleted by accident?", "--limit", "2")
        title("An exact name comes first")
        whyrank(workspace, "search", "Remind Me", "--limit", "2")
        title("Asked in other words than the title of the note")
        whyrank(workspace, "search", "travelling by rail", "--limit", "1")
        title("A question these notes cannot answer: the verdict says so …")
        whyrank(workspace, "search", UNANSWERABLE, "--limit", "1")
        title("… and with --strict nothing is shown that an agent might take for an answer")
        whyrank(workspace, "search", UNANSWERABLE, "--strict")
        title("Why is the first of these the first? The explanation is the computation")
        whyrank(workspace, "search", QUESTION, "--limit", "2")
        whyrank(workspace, "why", QUESTION, "memory/protocols/tenacity.md")
        title("Why is the Room Modes skill not among them?")
        whyrank(workspace, "why", QUESTION, "memory/skills/room-modes/SKILL.md")
        title("How often is the right note found? 60 questions over 45 notes, of five kinds")
        print(hit_rate(workspace))


if __name__ == "__main__":
    main()
