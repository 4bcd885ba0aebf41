"""A file of twice the size takes at most two and a half times as long to read, whatever its shape."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable

import pytest

from tests.unit.ingest.shapes import Write, shapes
from whyrank.analysis.document import entries_for
from whyrank.ingest.documents import ChunkSize, memories_in
from whyrank.types.memory import GLOBAL

PERIOD = 840  # characters; a shape that repeats 1 to 8 characters ends at the same one of them
SIZE = 16 * PERIOD  # four times as many fit into the 65,536 that front matter may have
MOST = 2.5
FLOOR_S = 0.016  # below this it is the clock that is measured
SLOW_S = 0.04  # from this on, less of a file tells as much
TRIES = 40  # the best of each size counts, so a busy machine takes more of them, and a slow reader fails in all
PATIENT_FROM = 4  # tries without a pause
PAUSE_S = 0.1

SHAPES = shapes()

Read = Callable[[str, str], object]


def ingested(text: str, path: str) -> object:
    """Read a file as ingest does, up to what a store is given."""
    return entries_for(memories_in(text, path, GLOBAL, 0.0, ChunkSize()).memories, "en")


def seconds(read: Read, path: str, texts: list[str]) -> float:
    """Return the processor time of this process alone: others may be busy."""
    gc.disable()
    try:
        before = time.process_time()
        for text in texts:
            read(text, path)
        return max(FLOOR_S, time.process_time() - before)
    finally:
        gc.enable()


def growth(read: Read, path: str, write: Write) -> float:
    """Return by how much the time grows at most where the size doubles, from the best of some tries of each size.

    Four small files, two of twice and one of four times their size take equally long to a linear reader,
    so that a busy machine disturbs all three alike.
    """
    best = [float("inf")] * 3
    worst = float("inf")
    is_slow = seconds(read, path, [write(SIZE)]) > SLOW_S
    size = SIZE // 2 if is_slow else SIZE
    for number in range(TRIES):
        if worst <= MOST:
            break
        if number >= PATIENT_FROM:
            time.sleep(PAUSE_S)
        # No text comes twice: what was read before may be remembered.
        groups = [
            [write(size * 4 // count + 13 * (number + 1) + PERIOD * copy) for copy in range(count)]
            for count in (4, 2, 1)
        ]
        costs = [seconds(read, path, texts) / sum(map(len, texts)) for texts in groups]
        best = [min(known, cost) for known, cost in zip(best, costs, strict=True)]
        worst = 2 * max(best[1] / best[0], best[2] / best[1])
    return worst


@pytest.fixture(scope="module", autouse=True)
def _loaded() -> None:
    """Load what is loaded when it is first needed."""
    for path, write in SHAPES.values():
        ingested(write(200), path)


def test_there_are_a_hundred_shapes() -> None:
    assert len(SHAPES) >= 100


@pytest.mark.parametrize("name", SHAPES)
def test_twice_the_file_takes_about_twice_the_time(name: str) -> None:
    path, write = SHAPES[name]
    assert growth(ingested, path, write) <= MOST


def test_a_reader_that_looks_at_everything_for_everything_is_refused() -> None:
    def quadratic(text: str, path: str) -> object:
        return [text.count(letter) for letter in text[::24]]

    # Twice the letters, each looked for in twice the text: four times the time.
    assert growth(quadratic, "a.md", lambda size: "a" * size) > MOST


def test_the_example_of_the_bomb_is_read_at_once() -> None:
    levels = ["a0: &a0 {x: 1}"]
    levels += [f"a{level}: &a{level} {{<<: [{', '.join([f'*a{level - 1}'] * 9)}]}}" for level in range(1, 10)]
    text = "---\n" + "\n".join(levels) + "\ntitle: Boats\n---\nThe boats are red."
    assert len(text) < 700
    read = memories_in(text, "a.md", GLOBAL, 0.0, ChunkSize())
    # 1 + 9 + 81 + 729 are below the limit of 1,000, 9^4 more are not: the fifth line behind the fence.
    assert "merge keys add more than 1,000 entries in line 6; its fields were read one by one" in read.remarks[0]
    assert {memory.title for memory in read.memories} == {"Boats"}
