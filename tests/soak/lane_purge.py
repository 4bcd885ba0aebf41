"""Kill a purge between any two steps: whoever opens the store next finishes it, and no byte of a canary is left."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
from collections import Counter
from typing import TYPE_CHECKING

from tests import canaries

from .lanes import Counts, Lane

if TYPE_CHECKING:
    from pathlib import Path

PURGES = 10  # of a round, of five canaries each
CALLS = 6_000  # into C that five purges make at most; so a few of them are not killed at all

PURGE = """
import json, os, signal, sys
from pathlib import Path
from tests import canaries

left = int(sys.argv[2])

def count_down(frame, event, called):
    global left
    left -= event == "c_call"
    if left < 0:
        os.kill(os.getpid(), signal.SIGKILL)

with canaries.opened(Path(sys.argv[1])) as engine:
    first = engine.add("what the first purge imports is imported now", scope=canaries.SCOPE)
    engine.forget(first.id, scope=canaries.SCOPE, purge=True)
    sys.setprofile(count_down)
    for ids in json.loads(sys.argv[3]):
        engine.forget(*ids, scope=canaries.SCOPE, purge=True)
        print("done", flush=True)
    sys.setprofile(None)
"""


def kill_purges(folder: Path, seed: int, purges: int) -> Counts:
    """Kill one purge after the other in a store that grows."""
    chance, path = random.Random(seed), folder / "memory.db"
    all_planted, counted = list[canaries.Canary](), Counter[str]()
    for _ in range(purges):
        with canaries.opened(folder) as engine:
            for number in range(40):
                engine.add(canaries.note(chance, number), scope=canaries.SCOPE)
            planted = [canaries.plant(engine, folder, chance, route) for route in canaries.ROUTES]
        ids = json.dumps([canary.ids for canary in planted])
        command = [sys.executable, "-c", PURGE, str(folder), str(chance.randrange(CALLS)), ids]
        ended = subprocess.run(command, stdout=subprocess.PIPE, check=False)
        assert ended.returncode in (0, -signal.SIGKILL)
        counted["kills"] += ended.returncode != 0
        acknowledged = len(ended.stdout.splitlines())
        with canaries.opened(folder) as engine:
            there = {one.id for one in engine.list(scope=canaries.SCOPE, limit=10_000, include_superseded=True)}
            gone = [canary for canary in planted if not there & {*canary.ids}]
            assert gone[:acknowledged] == planted[:acknowledged]
            assert canaries.found_in(path, gone) == []
            counted["acknowledged"] += acknowledged
            counted["finished_by_the_next"] += len(gone) - acknowledged
            for canary in planted:
                if canary not in gone:
                    counted["unfinished"] += 1
                    engine.forget(*(there & {*canary.ids}), scope=canaries.SCOPE, purge=True)
            assert canaries.found_in(path, planted) == []
        all_planted += planted
        counted["canaries"] += len(planted)
    assert canaries.found_in(path, all_planted) == []
    return counted


LANE = Lane(
    "purge",
    "a purge leaves no byte in database, log or index, wherever it is killed",
    lambda seed, folder: kill_purges(folder, seed, PURGES),
    {"canaries": 1_000},
    seconds=900.0,
)
