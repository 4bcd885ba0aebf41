"""Kill a purge between any two steps: whoever opens the store next finishes it, and no byte of a canary is left.

A few rounds run in the suite; `make soak` purges a thousand canaries.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path

from tests import canaries

ROUNDS = 200 if os.environ.get("SOAK") else 4
CALLS = 3_000  # into C that five purges make, about; so a few of them are not killed at all

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
    sys.setprofile(count_down)
    for ids in json.loads(sys.argv[3]):
        engine.forget(*ids, scope=canaries.SCOPE, purge=True)
    sys.setprofile(None)
"""


def test_a_killed_purge_is_finished_by_whoever_opens_the_store_next(tmp_path: Path) -> None:
    chance, path = random.Random(25), tmp_path / "memory.db"
    all_planted, killed, unfinished = list[canaries.Canary](), 0, 0
    for _ in range(ROUNDS):
        with canaries.opened(tmp_path) as engine:
            for number in range(40):
                engine.add(canaries.note(chance, number), scope=canaries.SCOPE)
            planted = [canaries.plant(engine, tmp_path, chance, route) for route in canaries.ROUTES]
        ids = json.dumps([canary.ids for canary in planted])
        command = [sys.executable, "-c", PURGE, str(tmp_path), str(chance.randrange(CALLS)), ids]
        killed += subprocess.run(command, check=False).returncode == -9
        with canaries.opened(tmp_path) as engine:
            there = {one.id for one in engine.list(scope=canaries.SCOPE, limit=10_000, include_superseded=True)}
            gone = [canary for canary in planted if not there & {*canary.ids}]
            assert canaries.found_in(path, gone) == []
            for canary in planted:
                if canary not in gone:
                    unfinished += 1
                    engine.forget(*(there & {*canary.ids}), scope=canaries.SCOPE, purge=True)
            assert canaries.found_in(path, planted) == []
        all_planted += planted
    assert canaries.found_in(path, all_planted) == []
    assert killed
    assert unfinished, "no kill landed in the middle of a purge"
