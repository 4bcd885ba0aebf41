"""Mutated files by number: none raises, takes long, or lets anything outside of the root be read.

The same number is the same file everywhere.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from typing import TYPE_CHECKING

from tests.unit.ingest.shapes import shapes
from whyrank.ingest.documents import ChunkSize
from whyrank.ingest.pipeline import Ingestor, Settings
from whyrank.testing.memory_store import MemoryStore
from whyrank.types.memory import GLOBAL
from whyrank.types.query import Where

from .lanes import Lane

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

FILES = 500  # of a round
LARGEST = 8_000  # characters of one shape, before mutation
MOST_S = 5.0  # of processor time for one file; the slowest takes 0.5
SECRET = "combination4711"
LATER = 1e11  # behind all dates that are now

SHAPES = shapes()
# What readers look for, put in where it was not meant.
PARTS = (
    b"---\n", b"\n---\n", b"...\n", b"```\n", b"~~~", b"`", b"<!-- whyrank: tags=a -->", b"<!--", b"-->", b"whyrank:",
    b"title: ", b"date: 2031-02-03\n", b"tags: [", b"&a ", b"*a", b"<<: *a\n", b"- ", b"> ", b"# ", b"\n=\n",
    b"|a|b|\n", b"|-|-|\n", b"[a]: b\n",
    b"\r", b"\r\n", b"\t", b"\x00", b"\xff\xfe", b"\xfe\xff", b"\xef\xbb\xbf", b"\xed\xa0\x80",
    b"\xf0\x9f", b"\xe2\x80\xa8", b"\xcc\x81", b'{"text": "', b'"}\n', b"\\", b'"', b"'", b"[", b"]", b"{", b"}", b":",
    b"59:59", b"1" * 400, b" " * 300, b"\n" * 50, b"(" * 100,
)  # fmt: skip
SUFFIXES = (".md", ".txt", ".jsonl")


def cut(data: bytes, chance: random.Random) -> bytes:
    start, end = sorted(chance.randrange(len(data) + 1) for _ in range(2))
    return data[:start] + data[end:]


def doubled(data: bytes, chance: random.Random) -> bytes:
    start = chance.randrange(len(data) + 1)
    part = data[start : start + chance.randrange(1, 200)]
    return data[:start] + part * chance.randrange(2, 20) + data[start:]


def flipped(data: bytes, chance: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(chance.randrange(1, 20)):
        changed[chance.randrange(len(changed))] ^= 1 << chance.randrange(8)
    return bytes(changed)


def added(data: bytes, chance: random.Random) -> bytes:
    for _ in range(chance.randrange(1, 8)):
        place = chance.randrange(len(data) + 1)
        data = data[:place] + chance.choice(PARTS) + data[place:]
    return data


def begun_anew(data: bytes, chance: random.Random) -> bytes:
    return chance.choice(PARTS) + data


MUTATIONS: tuple[Callable[[bytes, random.Random], bytes], ...] = (cut, doubled, flipped, added, begun_anew)


def mutated(number: int) -> tuple[str, bytes]:
    """Return the name and the bytes of a file: two shapes, one behind the other or one alone, and some mutations."""
    chance = random.Random(number)
    count = chance.choice((1, 1, 2))
    texts = [chance.choice([*SHAPES.values()])[1](chance.randrange(20, LARGEST)) for _ in range(count)]
    encoding = chance.choice(("utf-8",) * 8 + ("utf-16", "utf-16-be"))
    data = "\n".join(texts).encode(encoding, errors="replace")
    for mutation in chance.choices(MUTATIONS, k=chance.randrange(1, 4)):
        data = mutation(data or b"\n", chance)
    name = "SKILL.md" if not number % 17 else f"{number}{chance.choice(SUFFIXES)}"
    return f"{number}/{name}", data


def ingest_batch(folder: Path, numbers: range) -> Counter[str]:
    """Ingest mutated files one by one beside links out of their root, and count what became of them."""
    root, counts = folder / "root", Counter[str]()
    (folder / "outside").mkdir()
    (folder / "outside" / "secret.md").write_text(SECRET)
    for number in numbers:
        name, data = mutated(number)
        file = root / name
        file.parent.mkdir(parents=True)
        file.write_bytes(data)
        (file.parent / "link.md").symlink_to(folder / "outside" / "secret.md")
        (file.parent / "folder").symlink_to(folder / "outside")
        store = MemoryStore()
        subject = Ingestor(store, None, Settings(root, "en", ChunkSize(), 1_000_000))
        before = time.process_time()
        try:
            report = subject.ingest([file.parent], GLOBAL)
        except Exception as error:
            error.add_note(f"mutated file {number}")
            raise
        assert time.process_time() - before < MOST_S, f"file {number} of {len(data):,} bytes took too long"
        assert not report.failed, f"file {number}: {report.failed}"
        stored = store.each(Where(scopes=frozenset({GLOBAL}), now=LATER))
        assert not any(SECRET in memory.text for memory in stored), f"file {number} let a link be followed"
        counts["files"] += 1
        counts["bytes"] += len(data)
        counts["chunks"] += report.chunks
        counts["remarks"] += len(report.remarks)
        counts["passed_over"] += len(report.skipped) - 2  # but the links
    return counts


LANE = Lane(
    "files",
    "no file raises, takes long, or lets anything outside of the root be read",
    lambda seed, folder: ingest_batch(folder, range(seed * FILES, (seed + 1) * FILES)),
    {"files": 100_000},
    seconds=1_800.0,
)
