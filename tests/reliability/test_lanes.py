"""Soak lanes go on where they were stopped, and publish a broken promise with the seed that broke it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.soak.lanes import Counts, Lane, Record, lanes, load, run, save, table

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

A_MOMENT = 0.0  # seconds: one round, as the time is looked at after each


def lane_of(play: Callable[[int, Path], Counts]) -> Lane:
    return Lane("made", "a promise", play, {"kills": 100})


def test_a_second_run_goes_on_with_the_next_seed_and_adds_to_the_counts(tmp_path: Path) -> None:
    seeds: list[int] = []

    def play(seed: int, folder: Path) -> Counts:
        seeds.append(seed)
        return {"kills": 10, "worst_wait_ms": 5 - seed}

    for _ in range(3):
        run(lane_of(play), A_MOMENT, tmp_path)
    assert seeds == [0, 1, 2]
    assert load(lane_of(play), tmp_path).counts == {"kills": 30, "worst_wait_ms": 5}  # 3 × 10; the largest of 5, 4, 3


def test_a_broken_promise_is_published_with_its_seed_and_its_files(tmp_path: Path) -> None:
    def play(seed: int, folder: Path) -> Counts:
        (folder / "memory.db").write_text("as it was", encoding="utf-8")
        assert seed != 1, "lost a fact"
        return {"kills": 1}

    for _ in range(3):
        record = run(lane_of(play), A_MOMENT, tmp_path)
    assert (record.rounds, record.seed) == (2, 3)  # rounds 0 and 2 were good, 3 is next
    published = json.loads((tmp_path / "made.json").read_text(encoding="utf-8"))
    [failure] = published["failures"]
    assert failure["seed"] == 1
    assert "lost a fact" in failure["error"]
    assert (tmp_path / "made-1" / "memory.db").read_text(encoding="utf-8") == "as it was"


def test_a_failed_round_can_be_played_again_without_being_counted(tmp_path: Path) -> None:
    def play(seed: int, folder: Path) -> Counts:
        raise AssertionError(f"round {seed}")

    with pytest.raises(AssertionError, match="round 7"):
        run(lane_of(play), A_MOMENT, tmp_path, seed=7)
    assert not (tmp_path / "made.json").exists()


def test_the_table_shows_counts_beside_goals() -> None:
    record = Record(2, 1.0, {"kills": 1_234, "worst_wait_ms": 12.5})
    assert "| made | 2 | kills 1,234, worst wait ms 12.5 | kills 100 | 0 |" in table(
        [(lane_of(lambda seed, folder: {}), record)]
    )


def test_every_lane_names_its_promise_and_what_its_proof_asks_for() -> None:
    for name, lane in lanes().items():
        assert name == lane.name
        assert lane.promise
        assert lane.goal


def test_counts_of_a_killed_soak_are_the_last_whole_ones(tmp_path: Path) -> None:
    made = lane_of(lambda seed, folder: {})
    save(made, Record(4, 2.0, {"kills": 4}), tmp_path)
    (tmp_path / "made.json.new").write_text('{"lane": "ma', encoding="utf-8")  # killed while it was written
    assert load(made, tmp_path).counts == {"kills": 4}
