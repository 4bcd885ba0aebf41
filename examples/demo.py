"""The main job in one minute: index an agent's memory, ask it what it knows and what not, explain a rank.

Run by `make demo`. It works in a copy of the example memory; each step is a command you can type yourself.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

MEMORY = Path(__file__).parent / "memory"
QUESTION = "what to do when a task seems impossible"
UNANSWERABLE = "how do I bake sourdough bread?"


def whyrank(workspace: Path, *words: str) -> None:
    """Run one whyrank command and show it as it would be typed."""
    print("$ whyrank " + " ".join(f'"{word}"' if " " in word else word for word in words))
    command = [sys.executable, "-m", "whyrank", *words]
    done = subprocess.run(command, cwd=workspace, capture_output=True, text=True, encoding="utf-8", check=False)
    if done.returncode:
        sys.exit(done.stderr)
    print(done.stdout + done.stderr)


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


if __name__ == "__main__":
    main()
