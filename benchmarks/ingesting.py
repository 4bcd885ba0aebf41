"""What storing notes in bulk takes, and whose time it is: the embedder's, or ours.

Notes of about 200 words, as markdown files and as documents, with each embedder that is here; or, with --folder, the
files of a folder of your own, where a note is a chunk. Every run is a process of its own, set up as that of `whyrank
ingest`, with a store of its own, after a few words were stored elsewhere: model and code are loaded, and no other word
is known. In one process notes are stored with their embedder. In another each side works alone: ours is what storing
the same notes takes where vectors cost nothing (all get the same, which storing does not look at), the embedder's what
the same texts take, in the batches it was asked in. Together both take longer, each waits for memory and for the lock
of the interpreter that the other has: what the first process spent besides the embedder's time alone is told as well,
as left. The embedded model is read by code of our own; what its package takes for the same texts does not change when
that does. Calibration is off: it measures, once, and depends on no note. Medians of runs that take turns. Run by `make
bench`.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from functools import partial
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from whyrank.__main__ import travel_light
from whyrank.config import load as settings
from whyrank.engine.engine import Engine
from whyrank.errors import MissingExtra, ProviderError
from whyrank.providers.registry import embedder_named
from whyrank.storage.store import SqliteStore
from whyrank.types.memory import Document

from .speed.corpus import Corpus

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from whyrank.protocols import Embedder, Thresholds, Vector

EMBEDDERS = ("none", "wordllama", "minilm")
NOTES, SLOW_NOTES = 4_096, 256  # a transformer takes a second for every fifty
ROUNDS = 3
SEED = 7

Shape = Literal["files", "documents", "folder"]
SHAPES: tuple[Shape, ...] = ("files", "documents")


class Notes(NamedTuple):
    """Which notes are stored: so many of so many words, or those of a folder."""

    number: int
    words: int
    folder: Path | None = None


class Spent(NamedTuple):
    """Seconds by the clock on the wall and by that of the processor."""

    wall: float
    cpu: float


NOTHING = Spent(0.0, 0.0)


class Outcome(NamedTuple):
    """What one bulk took; alone, what is ours of it, and what the embedder takes, as here and as its package comes."""

    whole: Spent
    ours: Spent
    embedder: Spent
    package: Spent
    memories: int

    @property
    def left(self) -> float:
        """Return the seconds of the processor that the whole took besides those of the embedder alone."""
        return self.whole.cpu - self.embedder.cpu


class Idle:
    """An embedder that gives vectors at no cost, and remembers which texts it was asked for together."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._vector = embedder.query("a word")
        self.batches: list[Sequence[str]] = []

    @property
    def fingerprint(self) -> str:
        return self._embedder.fingerprint

    @property
    def thresholds(self) -> Thresholds:
        return self._embedder.thresholds

    @property
    def floor(self) -> float | None:
        return self._embedder.floor

    @property
    def languages(self) -> tuple[str, ...]:
        return self._embedder.languages

    def weight(self, language: str) -> float:
        return self._embedder.weight(language)

    def documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.batches.append(texts)
        return np.tile(self._vector, (len(texts), 1))

    def query(self, text: str) -> Vector:
        return self._vector

    def at_last(self) -> None:
        """Embed all texts that were asked for."""
        for texts in self.batches:
            self._embedder.documents(texts)


def spent(work: Callable[[], object]) -> Spent:
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return Spent(time.perf_counter() - wall, time.process_time() - cpu)


def title(note: str) -> str:
    return " ".join(note.split(" ", 4)[:4]).capitalize()


def together(name: str, shape: Shape, notes: Notes) -> tuple[Spent, int]:
    """Store notes in bulk; return what that took, and how many memories they are."""
    with tempfile.TemporaryDirectory(prefix="whyrank-bench-") as place:
        embedder = loaded(name, Path(place))
        return stored(embedder, shape, Path(place), notes)


def apart(name: str, shape: Shape, notes: Notes) -> tuple[Spent, Spent, Spent]:
    """Store notes in bulk at no cost for vectors, then embed the same texts, here and by the package."""
    with tempfile.TemporaryDirectory(prefix="whyrank-bench-") as place:
        embedder = loaded(name, Path(place))
        assert embedder is not None
        idle = Idle(embedder)
        ours, _ = stored(idle, shape, Path(place), notes)
        embedded = spent(idle.at_last)
        return ours, embedded, by_its_package(idle.batches) if name == "wordllama" else embedded


def outcome(name: str, shape: Shape, notes: Notes) -> Outcome:
    """Store notes in a process of their own, and again in another where each side works alone."""
    with get_context("spawn").Pool(1) as child:
        whole, memories = child.apply(together, (name, shape, notes))
    if name == "none":
        return Outcome(whole, whole, NOTHING, NOTHING, memories)
    with get_context("spawn").Pool(1) as child:
        return Outcome(whole, *child.apply(apart, (name, shape, notes)), memories)


def loaded(name: str, folder: Path) -> Embedder | None:
    travel_light(["ingest"])
    config = settings.load({}, workspace=folder)
    embedder = embedder_named(name, config.models, config["model.threads"])
    load(embedder, folder / "first")
    return embedder


def stored(embedder: Embedder | None, shape: Shape, folder: Path, notes: Notes) -> tuple[Spent, int]:
    config = settings.load({"store": str(folder / "memory.db"), "calibration": "manual"}, workspace=folder)
    with Engine(SqliteStore(config.store_file), embedder, config) as engine:
        whole = spent(bulk(engine, shape, folder / "notes", notes))
        return whole, engine.status().memories


def by_its_package(batches: Sequence[Sequence[str]]) -> Spent:
    """Embed texts with the embedded model as its package does."""
    import wordllama

    model = wordllama.WordLlama.load(cache_dir=Path(wordllama.__file__).parent, disable_download=True)
    model.embed(["a word", "another"])
    return spent(lambda: [model.embed([*texts], norm=True) for texts in batches])


def load(embedder: Embedder | None, folder: Path) -> None:
    """Store a note elsewhere: loading model and code depends on no note, and is not what is measured."""
    folder.mkdir()
    first = "---\ntitle: One\n---\n\n# One\n\n- a word — “one”, naïve Σ, of 2026-05-03 and the 3rd of May\n"
    (folder / "first.md").write_text(first, encoding="utf-8")
    config = settings.load({"store": str(folder / "memory.db"), "calibration": "manual"}, workspace=folder)
    with Engine(SqliteStore(config.store_file), embedder, config) as engine:
        engine.ingest(folder / "first.md")
        engine.add_documents([Document("second", "a word"), Document("third", "another")])


def bulk(engine: Engine, shape: Shape, folder: Path, notes: Notes) -> Callable[[], object]:
    """Prepare notes and return what stores them."""
    if notes.folder is not None:
        return partial(engine.ingest, notes.folder)
    texts = next(Corpus(notes.number, notes.words, SEED).batches())[0]
    if shape == "documents":
        documents = [Document(f"{n}", text, title=title(text)) for n, text in enumerate(texts)]
        return lambda: engine.add_documents(documents)
    folder.mkdir()
    for number, text in enumerate(texts):
        (folder / f"note-{number:06d}.md").write_text(f"# {title(text)}\n\n{text}\n", encoding="utf-8")
    return lambda: engine.ingest(folder)


def is_here(name: str) -> bool:
    config = settings.load({})
    try:
        embedder_named(name, config.models, config["model.threads"])
    except (ProviderError, MissingExtra) as error:
        print(f"without {name}: {error}")
        return False
    return True


def medians(spent: Sequence[Spent]) -> Spent:
    return Spent(*(statistics.median(each) for each in zip(*spent, strict=True)))


def show(name: str, shape: Shape, outcomes: Sequence[Outcome]) -> None:
    """Print the medians of some runs; how ours compares with the embedder is told run by run."""
    whole, ours, embedder, package = map(medians, list(zip(*outcomes, strict=True))[:4])
    left, memories = statistics.median(one.left for one in outcomes), outcomes[0].memories
    seconds = (whole.wall, whole.cpu, ours.cpu, embedder.cpu, package.cpu, left)
    figures = "".join(f"{1000 * s / memories:>10.3f}" for s in seconds)
    pairs = (
        [(one.ours.cpu, one.embedder.cpu) for one in outcomes],
        [(one.ours.cpu, one.package.cpu) for one in outcomes],
        [(one.left, one.embedder.cpu) for one in outcomes],
    )
    shares = (f"{statistics.median(a / b for a, b in each):.2f} : 1" if embedder.cpu else "all ours" for each in pairs)
    print(
        f"{name:11}{shape:11}{memories:>7,}{figures}{whole.cpu / whole.wall:>8.2f}"
        + "".join(f"{share:>17}" for share in shares)
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--notes", type=int, default=NOTES)
    parser.add_argument("--slow-notes", type=int, default=SLOW_NOTES, help="how many with minilm")
    parser.add_argument("--words", type=int, default=200)
    parser.add_argument("--folder", type=Path, help="notes of your own, in place of those that are made up")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--embedders", default=",".join(EMBEDDERS))
    given = parser.parse_args()
    travel_light(["ingest"])  # which processes to come inherit, as far as it is told before they load anything
    if given.folder and not any(path.is_file() for path in given.folder.rglob("*")):
        parser.error(f"{given.folder} holds no files")
    shapes: Sequence[Shape] = ("folder",) if given.folder else SHAPES
    cases = [*product(filter(is_here, given.embedders.split(",")), shapes)]
    outcomes: dict[tuple[str, Shape], list[Outcome]] = {case: [] for case in cases}
    for _, case in product(range(given.rounds), cases):
        notes = Notes(given.slow_notes if case[0] == "minilm" else given.notes, given.words, given.folder)
        outcomes[case].append(outcome(case[0], case[1], notes))
    heads = ("wall", "CPU", "ours", "embedder", "package", "left")
    print(
        f"{'ms a note':11}{'as':11}{'notes':>7}"
        + "".join(f"{head:>10}" for head in heads)
        + f"{'cores':>8}{'ours : embedder':>17}{'ours : package':>17}{'left : embedder':>17}"
    )
    for case in cases:
        show(*case, outcomes[case])


if __name__ == "__main__":
    main()
