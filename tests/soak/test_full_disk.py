"""A full disk, which is a real one of a few megabytes: writes fail clearly, reads go on, and space can be freed."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

MEGABYTES = 8
ALONE = ["unshare", "--map-root-user", "--mount"]  # a mount that nobody else sees, and that ends with the process

STEPS = f"""
import errno, os, random, subprocess, sys
from pathlib import Path

folder = Path(sys.argv[1])
subprocess.run(["mount", "-t", "tmpfs", "-o", "size={MEGABYTES}m", "tmpfs", str(folder)], check=True)

import whyrank
from tests import canaries
from whyrank.errors import StoreFull

chance, path, ballast = random.Random(7), folder / "memory.db", folder / "memory.db.ballast"
options = dict(workspace=folder, embedding="none", calibration="manual")

def fill():
    file = os.open(folder / "filler", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for size in (65_536, 4_096, 1):
        try:
            while os.write(file, bytes(size)):
                pass
        except OSError as error:
            assert error.errno == errno.ENOSPC
    os.close(file)

def add_until_full(engine, kept):
    for number in range(100_000):
        text = canaries.note(chance, number)
        try:
            kept[engine.add(text).id] = text
        except StoreFull as error:
            assert "free space" in error.hint
            return
    raise AssertionError("the disk was never full")

kept = {{}}
with whyrank.open(path, **options) as engine:
    for number in range(1_200):
        text = canaries.note(chance, number)
        kept[engine.add(text).id] = text
assert path.stat().st_size >= 1024 * 1024, path.stat()
with whyrank.open(path, **options) as engine:
    assert engine.status().ballast_bytes == ballast.stat().st_size > 0
    assert ballast.stat().st_blocks * 512 >= ballast.stat().st_size
    assert ballast.stat().st_mode & 0o777 == 0o600
    fill()
    add_until_full(engine, kept)
    ids = list(kept)
    assert engine.search(kept[ids[3]])[0].id == ids[3]  # reading goes on
    assert engine.status().free_bytes < 300_000
    engine.forget(ids[0])
    assert not ballast.exists()
    del kept[ids[0]]
    assert engine.forget(ids[1], purge=True).remains == ()
    assert kept.pop(ids[1]).split()[0].encode() not in path.read_bytes()
    new = engine.add("tea at noon")  # there is room again
    kept[new.id] = "tea at noon"
fill()
with whyrank.open(path, **options) as engine:  # opens, and reads, on a full disk
    assert engine.status().memories == len(kept)
    assert {{one.id: one.text for one in engine.list(limit=10_000)}} == kept
    add_until_full(engine, kept)
(folder / "filler").unlink()
with whyrank.open(path, **options) as engine:
    assert engine.add("milk").text == "milk"
    assert ballast.exists()  # made again
    for identity, text in kept.items():
        assert engine.get(identity).text == text
low = whyrank.doctor(path, **options)
assert low.is_sound
assert [finding.code for finding in low.findings] == ["disk"]
assert "free on the disk" in low.findings[0].message
assert not low.is_whole
"""


def test_on_a_full_disk_writes_fail_reads_go_on_and_deletes_go_through(tmp_path: Path) -> None:
    if subprocess.run([*ALONE, "true"], check=False, capture_output=True).returncode:
        pytest.skip("mounting a small disk is not allowed here")
    done = subprocess.run(
        [*ALONE, sys.executable, "-c", STEPS, str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
