"""A file of twice the size takes at most two and a half times as long to read, whatever its shape."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable

import pytest

from tests.unit.ingest.shapes import Write, shapes
from whyrank.analysis.pieces import reading_of
from whyrank.ingest.blocks import blocks_by_lines
from whyrank.ingest.chunks import ChunkSize, packed
from whyrank.ingest.entries import entries_for
from whyrank.ingest.files import memories_in
from whyrank.ingest.markdown import parse_markdown
from whyrank.types import GLOBAL

SIZES = (14_000, 28_000, 56_000)  # characters; the largest fits into the 65,536 that front matter may have
MOST = 2.5
FLOOR_S = 0.004  # below this it is the clock that is measured
SLOW_S = 0.04  # from this on, less of a file tells as much
TRIES = 16  # the best of each size counts, so a busy machine takes more of them, and a slow reader fails in all
PATIENT_FROM = 4  # tries without a pause
PAUSE_S = 0.1

SHAPES = shapes()
MARKDOWN = [name for name, (path, _) in SHAPES.items() if path.endswith(".md") and not name.startswith("front")]

Read = Callable[[str, str], object]


def ingested(text: str, path: str) -> object:
    """Read a file as ingest does, up to what a store is given."""
    return entries_for(memories_in(text, path, GLOBAL, 0.0, ChunkSize()).memories, "en")


def ingested_without_kernel(text: str, path: str) -> object:
    """Do in Python what the compiled kernel does of it."""
    document = parse_markdown(text)
    blocks_by_lines(document.lines, document.front.body_start, None)
    return [reading_of(chunk.text, "en", None) for chunk in packed(document, ChunkSize(), None)]


def seconds(read: Read, path: str, text: str) -> float:
    """Return the processor time of this process alone: others may be busy."""
    gc.disable()
    try:
        before = time.process_time()
        read(text, path)
        return max(FLOOR_S, time.process_time() - before)
    finally:
        gc.enable()


def growth(read: Read, path: str, write: Write) -> float:
    """Return by how much the time grows at most where the size doubles: the best of some tries of each size."""
    best = [float("inf")] * len(SIZES)
    worst = float("inf")
    is_slow = seconds(read, path, write(SIZES[0])) > SLOW_S
    sizes = [size // 2 for size in SIZES] if is_slow else SIZES
    for number in range(TRIES):
        if worst <= MOST:
            break
        if number >= PATIENT_FROM:
            time.sleep(PAUSE_S)
        # No text comes twice: what was read before may be remembered.
        texts = [write(size + 13 * (number + 1)) for size in sizes]
        best = [min(known, seconds(read, path, text)) for known, text in zip(best, texts, strict=True)]
        worst = max(best[1] / best[0], best[2] / best[1])
    return worst


@pytest.fixture(scope="module", autouse=True)
def _loaded() -> None:
    """Load what is loaded when it is first needed."""
    for path, write in SHAPES.values():
        ingested(write(200), path)
    for name in MARKDOWN:
        ingested_without_kernel(SHAPES[name][1](200), SHAPES[name][0])


def test_there_are_a_hundred_shapes() -> None:
    assert len(SHAPES) >= 100


@pytest.mark.parametrize("name", SHAPES)
def test_twice_the_file_takes_about_twice_the_time(name: str) -> None:
    path, write = SHAPES[name]
    assert growth(ingested, path, write) <= MOST


@pytest.mark.parametrize("name", MARKDOWN)
def test_twice_the_file_takes_about_twice_the_time_without_the_kernel(name: str) -> None:
    path, write = SHAPES[name]
    assert growth(ingested_without_kernel, path, write) <= MOST


def test_a_reader_that_looks_at_everything_for_everything_is_refused() -> None:
    def quadratic(text: str, path: str) -> object:
        return [text.count(letter) for letter in text[::160]]

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
