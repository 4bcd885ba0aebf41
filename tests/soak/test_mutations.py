"""Twenty thousand mutations of a store: found or harmless. Goes on where the last run ended, for the time it is given.

`SOAK=1 SOAK_MINUTES=30 pytest -s tests/soak/test_mutations.py`; pytest's cache keeps the count.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.mutations import Outcome, answers, make_world, mutated

SEEDS = range(1_000, 21_000)  # the suite has those below
REPAIRED_EVERY = 4
STATE = "soak/mutations"


@pytest.mark.skipif(not os.environ.get("SOAK"), reason="`make soak` runs it")
def test_any_of_twenty_thousand_mutations_is_found_or_harmless(
    tmp_path: Path, pytestconfig: pytest.Config, capsys: pytest.CaptureFixture[str]
) -> None:
    cache = pytestconfig.cache
    assert cache is not None
    state = cache.get(STATE, {"next": SEEDS.start, "counts": {}})
    ends = time.monotonic() + 60 * float(os.environ.get("SOAK_MINUTES", "60"))
    world = make_world(tmp_path / "world")
    before = answers(world)
    counts, wrong, seed = Counter[str](state["counts"]), list[tuple[int, Outcome]](), int(state["next"])
    while seed < SEEDS.stop and time.monotonic() < ends:
        outcome = mutated(world, before, tmp_path / "mutated", seed, repairs=seed % REPAIRED_EVERY == 0)
        counts[f"{outcome.kind}: {outcome.state}"] += 1
        if outcome.wrong:
            wrong.append((seed, outcome))
        seed += 1
        cache.set(STATE, {"next": seed, "counts": counts})
    with capsys.disabled():
        print(f"\n{seed - SEEDS.start:,} of {len(SEEDS):,} mutations, {len(wrong)} wrong in this run")
        for name, count in sorted(counts.items()):
            print(f"  {name}: {count:,}")
    if seed == SEEDS.stop:
        cache.set(STATE, {"next": SEEDS.start, "counts": {}})
    assert wrong == []
