"""How long the command takes to be there, against a bare Python: medians of alternating runs, as ratios.

Run by `make bench`.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROUNDS = 15
EXAMPLES = Path(__file__).parent.parent / "examples" / "memory"


def milliseconds(command: list[str]) -> float:
    start = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True)
    return (time.perf_counter() - start) * 1000


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="whyrank-bench-") as place:
        store = str(Path(place) / "memory.db")
        whyrank = [sys.executable, "-m", "whyrank"]
        subprocess.run([*whyrank, "ingest", str(EXAMPLES), "--store", store], check=True, capture_output=True)
        commands = {
            "python -c pass": [sys.executable, "-c", "pass"],
            "import whyrank": [sys.executable, "-c", "import whyrank"],
            "whyrank --help": [*whyrank, "--help"],
            "whyrank search, no embedder": [*whyrank, "search", "stage fan", "--store", store, "--embedding", "none"],
            "whyrank search": [*whyrank, "search", "stage fan", "--store", store],
        }
        times: dict[str, list[float]] = {name: [] for name in commands}
        for _ in range(ROUNDS):
            for name, command in commands.items():
                times[name].append(milliseconds(command))
    bare = statistics.median(times["python -c pass"])
    print(f"{'whole process, from cold':30}{'median ms':>11}{'× bare Python':>15}")
    for name, spent in times.items():
        median = statistics.median(spent)
        print(f"{name:30}{median:>11.0f}{median / bare:>15.1f}")


if __name__ == "__main__":
    main()
