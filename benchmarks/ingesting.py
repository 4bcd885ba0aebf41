"""What storing notes in bulk takes, and whose time it is: the embedder's, or ours.

Notes of about 200 words, as markdown files and as documents, with each embedder that is here; or, with --folder, the
files of a folder of your own, where a note is a chunk. Every run is a process of its own with a store of its own, after
a few words were stored elsewhere: model and code are loaded, and no other word is known. The same texts then go through
the embedder alone, in the batches it was asked in. Whatever else the process spent is ours. The embedded model is read
by code of our own; what its package takes for the same texts does not change when that does. Calibration is off: it
measures, once, and depends on no note. Medians of runs that take turns. Run by `make bench`.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from whyrank import config as settings
from whyrank.bench.corpus import Corpus
from whyrank.embedding.providers import embedder_named
from whyrank.engine import Engine
from whyrank.errors import MissingExtra, ProviderError
from whyrank.ports import Embedder, Thresholds, Vector
from whyrank.storage.sqlite.store import SqliteStore
from whyrank.types import Document

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

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


class Outcome(NamedTuple):
    """What one bulk took, what the embedder takes for its texts, as here and as it comes; and how many memories."""

    whole: Spent
    embedder: Spent
    package: Spent
    memories: int

    @property
    def ours(self) -> float:
        """Return the seconds of the processor that were not the embedder's."""
        return self.whole.cpu - self.embedder.cpu


class Heard:
    """An embedder that remembers which texts it was given together."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self.batches: list[Sequence[str]] = []

    @property
    def fingerprint(self) -> str:
        return self._embedder.fingerprint

    @property
    def thresholds(self) -> Thresholds:
        return self._embedder.thresholds

    def weight(self, language: str) -> float:
        return self._embedder.weight(language)

    def documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.batches.append(texts)
        return self._embedder.documents(texts)

    def query(self, text: str) -> Vector:
        return self._embedder.query(text)

    def again(self) -> None:
        for texts in self.batches:
            self._embedder.documents(texts)


def spent(work: Callable[[], object]) -> Spent:
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return Spent(time.perf_counter() - wall, time.process_time() - cpu)


def title(note: str) -> str:
    return " ".join(note.split(" ", 4)[:4]).capitalize()


def outcome(name: str, shape: Shape, notes: Notes) -> Outcome:
    """Store notes in bulk, then embed the same texts alone."""
    with tempfile.TemporaryDirectory(prefix="whyrank-bench-") as place:
        folder = Path(place)
        config = settings.load({"store": str(folder / "memory.db"), "calibration": "manual"}, workspace=folder)
        embedder = embedder_named(name, config.models, config["model.threads"])
        load(embedder, folder / "first")
        heard = Heard(embedder) if embedder is not None else None
        with Engine(SqliteStore(config.store), heard, config) as engine:
            whole = spent(bulk(engine, shape, folder / "notes", notes))
            memories = engine.status().memories
        embedded = spent(heard.again) if heard is not None else Spent(0.0, 0.0)
        package = by_its_package(heard.batches) if heard is not None and name == "wordllama" else embedded
        return Outcome(whole, embedded, package, memories)


def by_its_package(batches: Sequence[Sequence[str]]) -> Spent:
    """Embed texts with the embedded model as its package does."""
    import wordllama

    model = wordllama.WordLlama.load(cache_dir=Path(wordllama.__file__).parent, disable_download=True)
    model.embed(["a word", "another"])
    return spent(lambda: [model.embed([*texts], norm=True) for texts in batches])


def load(embedder: Embedder | None, folder: Path) -> None:
    """Store a note elsewhere: loading model and code depends on no note, and is not what is measured."""
    folder.mkdir()
    (folder / "first.md").write_text("---\ntitle: One\n---\n\n# One\n\n- a word — “one”\n", encoding="utf-8")
    config = settings.load({"store": str(folder / "memory.db"), "calibration": "manual"}, workspace=folder)
    with Engine(SqliteStore(config.store), embedder, config) as engine:
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
    whole, embedder, package = map(medians, list(zip(*outcomes, strict=True))[:3])
    ours, memories = statistics.median(one.ours for one in outcomes), outcomes[0].memories
    each = [1000 * s / memories for s in (whole.wall, whole.cpu, embedder.wall, embedder.cpu, package.cpu, ours)]
    figures = "".join(f"{ms:>10.3f}" for ms in each)
    shares = [
        f"{statistics.median(one.ours / other.cpu for one, other in pairs):.2f} : 1" if embedder.cpu else "all ours"
        for pairs in ([(one, one.embedder) for one in outcomes], [(one, one.package) for one in outcomes])
    ]
    print(f"{name:11}{shape:11}{memories:>7,}{figures}{whole.cpu / whole.wall:>8.2f}{shares[0]:>17}{shares[1]:>16}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--notes", type=int, default=NOTES)
    parser.add_argument("--slow-notes", type=int, default=SLOW_NOTES, help="how many with minilm")
    parser.add_argument("--words", type=int, default=200)
    parser.add_argument("--folder", type=Path, help="notes of your own, in place of those that are made up")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--embedders", default=",".join(EMBEDDERS))
    given = parser.parse_args()
    if given.folder and not any(path.is_file() for path in given.folder.rglob("*")):
        parser.error(f"{given.folder} holds no files")
    shapes: Sequence[Shape] = ("folder",) if given.folder else SHAPES
    cases = [*product(filter(is_here, given.embedders.split(",")), shapes)]
    outcomes: dict[tuple[str, Shape], list[Outcome]] = {case: [] for case in cases}
    for _, case in product(range(given.rounds), cases):
        notes = Notes(given.slow_notes if case[0] == "minilm" else given.notes, given.words, given.folder)
        with get_context("spawn").Pool(1) as child:
            outcomes[case].append(child.apply(outcome, (*case, notes)))
    heads = ("wall", "CPU", "emb. wall", "emb. CPU", "pkg. CPU", "ours CPU")
    print(
        f"{'ms a note':11}{'as':11}{'notes':>7}"
        + "".join(f"{head:>10}" for head in heads)
        + f"{'cores':>8}{'ours : embedder':>17}{'ours : package':>16}"
    )
    for case in cases:
        show(*case, outcomes[case])


if __name__ == "__main__":
    main()
