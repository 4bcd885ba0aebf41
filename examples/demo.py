"""The main job in one minute: index an agent's memory, ask three questions, explain a rank and an absence.

Run by `make demo`; each step is a command you can type yourself.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

MEMORY = Path(__file__).parent / "memory"


def whyrank(store: Path, *words: str, quiet: bool = False) -> str:
    """Run one whyrank command and show it as it would be typed."""
    if not quiet:
        print("$ whyrank " + " ".join(f'"{word}"' if " " in word else word for word in words))
    command = [sys.executable, "-m", "whyrank", *words, "--store", str(store)]
    done = subprocess.run(command, cwd=MEMORY.parent, capture_output=True, text=True, encoding="utf-8", check=False)
    if done.returncode:
        sys.exit(done.stderr)
    if not quiet:
        print(done.stdout)
    return done.stdout


def title(text: str) -> None:
    """Print a heading."""
    print(f"── {text} " + "─" * max(0, 78 - len(text)))


def main() -> None:
    """Show the main job."""
    with tempfile.TemporaryDirectory(prefix="whyrank-demo-") as place:
        store = Path(place) / "memory.db"
        title("Index a folder of notes, skills and logs")
        whyrank(store, "ingest", "memory")
        title("A question in natural language")
        whyrank(store, "search", "who do I call if the stage fan is too loud?", "--limit", "2")
        title("An exact name comes first")
        whyrank(store, "search", "Remind Me", "--limit", "2")
        title("A question that shares no word with its answer")
        whyrank(store, "search", "railway journeys", "--limit", "2")
        title("Why is that the first? The explanation is the computation")
        question = "what to do when a task seems impossible"
        whyrank(store, "search", question, "--limit", "1", "--explain", quiet=True)
        found = json.loads(whyrank(store, "search", question, "--limit", "1", "--json", quiet=True))
        whyrank(store, "why", question, found["hits"][0]["id"])
        title("Why is the Room Modes skill not among them?")
        missing = json.loads(whyrank(store, "search", "Room Modes", "--limit", "1", "--json", quiet=True))
        whyrank(store, "why", question, missing["hits"][0]["id"])


if __name__ == "__main__":
    main()
