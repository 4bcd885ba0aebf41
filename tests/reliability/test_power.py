"""Acknowledged means kept and searchable after a power loss: 180 states a disk may be found in."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from .power import MODES, Call, Disk, cut, library

if TYPE_CHECKING:
    from pathlib import Path

STATES = 45  # of each of four recorded runs
needs_recorder = pytest.mark.skipif(library() is None, reason="needs Linux and cc, to record writes and syncs")


@needs_recorder
@pytest.mark.parametrize(("program", "seed"), [("facts", 0), ("facts", 1), ("files", 0), ("files", 1)])
def test_what_was_acknowledged_is_kept_and_found_after_a_power_loss(tmp_path: Path, program: str, seed: int) -> None:
    counted = cut(tmp_path, program, seed, STATES)
    assert counted == {"states": STATES, **dict.fromkeys(MODES, STATES // len(MODES))}


@needs_recorder
@pytest.mark.parametrize("program", ["facts", "files"])
def test_a_disk_that_lies_about_syncs_is_noticed(tmp_path: Path, program: str) -> None:
    with pytest.raises(AssertionError, match=r"after call \d+ of"):
        cut(tmp_path, program, 0, STATES, is_lying=True)


@needs_recorder
@pytest.mark.parametrize("program", ["facts", "files"])
def test_an_acknowledgement_before_the_write_is_noticed(tmp_path: Path, program: str) -> None:
    with pytest.raises(AssertionError, match="lost"):
        cut(tmp_path, program, 0, STATES, is_early=True)


def files_after(*calls: Call, mode: str = "lost") -> dict[str, bytes]:
    disk = Disk()
    for call in calls:
        disk.take(call)
    return disk.after_power_loss(mode, random.Random(1))


def test_of_what_was_not_synced_nothing_need_be_there() -> None:
    made, synced, named = Call("w", "a", 0, b"one"), Call("s", "a", 0, b""), Call("s", ".", 0, b"")
    assert files_after(made, synced, named, Call("w", "a", 3, b"two")) == {"a": b"one"}
    assert files_after(made, synced, named, Call("w", "a", 3, b"two"), mode="kept") == {"a": b"onetwo"}


def test_a_name_is_there_from_the_sync_of_its_folder_on() -> None:
    made, synced, named = Call("w", "a", 0, b"one"), Call("s", "a", 0, b""), Call("s", ".", 0, b"")
    assert files_after(made, synced) == {}
    assert files_after(made, synced, named, Call("u", "a", 0, b"")) == {"a": b"one"}  # its removal was not synced
    assert files_after(made, synced, named, Call("r", "a", 0, b"b"), named) == {"b": b"one"}


def test_a_torn_write_is_torn_where_sectors_end() -> None:
    disk = Disk()
    for call in (Call("w", "a", 0, bytes(1_536)), Call("s", "a", 0, b""), Call("s", ".", 0, b"")):
        disk.take(call)
    disk.take(Call("w", "a", 0, b"x" * 1_536))  # three sectors of 512 bytes
    found = {disk.after_power_loss("torn", random.Random(seed))["a"] for seed in range(200)}
    assert found <= {
        b"".join(bytes([sector]) * 512 for sector in (a, b, c)) for a in (0, 120) for b in (0, 120) for c in (0, 120)
    }
    assert len(found) == 8
