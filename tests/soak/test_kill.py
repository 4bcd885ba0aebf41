"""Kill the ingest at any moment: every file is wholly old or wholly new, and what was acknowledged is kept.

A few rounds run in the suite; `make soak` runs hundreds.
"""

from __future__ import annotations

import os
import random
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import whyrank

ROUNDS = 200 if os.environ.get("SOAK") else 6
FILES = 300  # several transactions, so that a kill can land between them
SECTIONS = 4

INGEST = """
import sys, whyrank
with whyrank.open(sys.argv[1], workspace=sys.argv[2], embedding="none") as engine:
    engine.ingest(sys.argv[2] + "/notes", progress=lambda done, total, label: print(done, flush=True))
"""
ADD = """
import sys, whyrank
with whyrank.open(sys.argv[1], workspace=sys.argv[2], embedding="none") as engine:
    for i in range(1_000_000):
        memory = engine.add(f"fact {sys.argv[3]} number {i}")
        print(memory.id, flush=True)
"""


def write_notes(folder: Path, version: int) -> None:
    (folder / "notes").mkdir(exist_ok=True)
    for number in range(FILES):
        words = " ".join(f"word{number}x{version}" for _ in range(120))
        sections = "\n\n".join(f"# Part {part} of version{version}\n\n{words}" for part in range(SECTIONS))
        (folder / "notes" / f"n{number}.md").write_text(sections, encoding="utf-8")


def test_a_killed_ingest_leaves_every_file_wholly_old_or_wholly_new(tmp_path: Path) -> None:
    chance = random.Random(7)
    store = tmp_path / "memory.db"
    mixed = 0
    for version in range(ROUNDS):
        write_notes(tmp_path, version)
        command = [sys.executable, "-c", INGEST, str(store), str(tmp_path)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE)
        assert process.stdout is not None
        for _ in range(chance.randrange(1, FILES)):
            process.stdout.readline()
        time.sleep(chance.uniform(0.0, 0.05))
        process.kill()
        process.wait()
        process.stdout.close()
        with whyrank.open(store, workspace=tmp_path, embedding="none") as engine:
            versions: dict[str, set[str]] = {}
            chunks: dict[str, int] = {}
            for memory in engine.list(limit=10_000):
                assert memory.source is not None
                path = memory.source.path
                versions.setdefault(path, set()).update(w for w in memory.text.split() if w.startswith("version"))
                chunks[path] = chunks.get(path, 0) + 1
            assert all(len(found) == 1 for found in versions.values())
            assert all(count == SECTIONS for count in chunks.values())
            mixed += len(set().union(*versions.values())) > 1 or 0 < len(versions) < FILES
    assert mixed, "no kill landed in the middle of an ingest"
    with whyrank.open(store, workspace=tmp_path, embedding="none") as engine:
        engine.ingest(tmp_path / "notes")
        assert engine.status().files == FILES
        first = engine.search(f"word3x{ROUNDS - 1}")[0].memory.source
        assert first is not None
        assert first.path == "notes/n3.md"


def test_every_acknowledged_fact_survives_a_kill_and_is_found(tmp_path: Path) -> None:
    chance = random.Random(11)
    store = tmp_path / "memory.db"
    acknowledged: list[str] = []
    waiting = 0
    for turn in range(ROUNDS):
        command = [sys.executable, "-c", ADD, str(store), str(tmp_path), str(turn)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        acknowledged.append(process.stdout.readline().strip())
        time.sleep(chance.uniform(0.0, 0.2))
        process.kill()
        # A line cut short by the kill was never read whole, so it was never acknowledged.
        acknowledged += [
            line.strip() for line in process.stdout.read().splitlines(keepends=True) if line.endswith("\n")
        ]
        process.wait()
        process.stdout.close()
        with closing(sqlite3.connect(store)) as connection:
            waiting += connection.execute("SELECT count(*) FROM arrivals").fetchone()[0]
    assert waiting, "no kill landed between storing a fact and indexing it"
    with whyrank.open(store, workspace=tmp_path, embedding="none") as engine:
        for identity in acknowledged:
            memory = engine.get(identity)
            assert identity in {hit.id for hit in engine.search(memory.text, limit=3)}
