"""Canaries: memories with words and vectors that nothing else holds, to see whether a purge leaves any of it behind."""

from __future__ import annotations

import hashlib
import zlib
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from whyrank.config import load as config
from whyrank.engine.engine import Engine
from whyrank.storage.sqlite.database import Connection, connect
from whyrank.storage.sqlite.postings import terms
from whyrank.storage.sqlite.postings.format import key_of, read
from whyrank.storage.store import SqliteStore
from whyrank.testing.fakes import WordDirections

if TYPE_CHECKING:
    import random
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

SCOPE = "user:1"
ROUTES = ("add", "add with key", "update", "supersede", "ingest")
_LETTERS = "abcdefghijklmnopqrstuvwxyz"


class UniqueVectors(WordDirections):
    """Gives every text a vector of its own, so that its bytes are found nowhere else."""

    def documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        seeds = (int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little") for text in texts)
        rows = np.array([np.random.default_rng(seed).standard_normal(64) for seed in seeds])
        return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float32)


class Canary(NamedTuple):
    """Memories to be purged, the words only they hold, and the bytes of their vectors."""

    ids: tuple[str, ...]
    words: tuple[str, ...]
    vectors: tuple[bytes, ...]

    @property
    def traces(self) -> list[bytes]:
        """Return what no file may hold; of words their ends, as an index may keep what words share apart."""
        # A vector may be cut by the end of a page, its beginning and its end not both.
        vectors = (part for blob in self.vectors for part in (blob[8:24], blob[-24:-8]))
        return [*(word[3:].encode() for word in self.words), *vectors]


def opened(folder: Path, keyword: str = "postings") -> Engine:
    """Open a store whose vectors are unique."""
    given = {"keyword": keyword, "calibration": "manual"}
    return Engine(SqliteStore(folder / "memory.db", keyword), UniqueVectors(64), config.load(given, workspace=folder))


def some_word(chance: random.Random) -> str:
    """Return a word that nobody else says."""
    return "".join(chance.choices(_LETTERS, k=14))


def note(chance: random.Random, number: int) -> str:
    """Return a text without a canary; its words begin with anything, so that indexes are split everywhere."""
    common = " ".join(chance.choices(("parcel", "gate", "quay", "crate", "lemon", "thursday"), k=4))
    return f"{some_word(chance)} {common} {number} {some_word(chance)}"


def plant(engine: Engine, folder: Path, chance: random.Random, route: str) -> Canary:
    """Store a canary on one of the routes."""
    words = [some_word(chance) for _ in range(6)]
    text = f"{words[0]} keeps {words[1]} beside the {words[2]}"
    if route == "ingest":
        file = folder / f"notes{chance.randrange(10**9)}" / "plan.md"
        file.parent.mkdir()
        file.write_text(f"# Plan\n\n{text} {words[3]}\n", encoding="utf-8")
        engine.ingest(file.parent, scope=SCOPE)
        ids = [one.id for one in engine.list(scope=SCOPE, limit=100_000) if words[3] in one.text]
    else:
        key = words[5] if route == "add with key" else None
        ids = [engine.add(text, scope=SCOPE, key=key, name=words[3], tags=[words[4]], entities=[words[3]]).id]
    vectors = _vectors(engine, folder, ids)
    if route == "update":
        engine.update(ids[0], scope=SCOPE, text=f"{text} no more, but {words[5]}")
    elif route == "supersede":
        ids.append(engine.add(f"{words[5]} replaces {words[0]}", scope=SCOPE, supersedes=ids[0]).id)
    return Canary(tuple(ids), tuple(words), tuple({*vectors, *_vectors(engine, folder, ids)}))


def _vectors(engine: Engine, folder: Path, ids: Iterable[str]) -> list[bytes]:
    engine.status()  # who reads has what waits indexed first
    asked = "SELECT vector FROM vectors WHERE hash = (SELECT embed_hash FROM memories WHERE id = ?)"
    connection = connect(str(folder / "memory.db"))
    found = [blob for identity in ids for (blob,) in connection.execute(asked, (identity,))]
    connection.close()
    assert found
    return found


def found_in(file: Path, canaries: Iterable[Canary]) -> list[bytes]:
    """Return what of canaries a store still holds: as bytes of its files, in compressed words, in hashes of terms."""
    sought = [*canaries]
    raw = b"".join(part.read_bytes() for part in sorted(file.parent.glob(f"{file.name}*")))
    left = [trace for canary in sought for trace in canary.traces if trace in raw]
    words = {word for canary in sought for word in canary.words}
    return left + sorted(word.encode() for word in words & {*_listed_words(file, words)})


def stale_signs(file: Path) -> int:
    """Count the signs that are kept of vectors that are gone."""
    connection = connect(str(file))
    known = {*connection.execute("SELECT scope, space, number FROM vectors")}
    blocks = connection.execute("SELECT scope, space, first, present FROM sign_blocks").fetchall()
    connection.close()
    assert blocks
    return sum(
        (scope, space, first + place) not in known
        for scope, space, first, blob in blocks
        for place in np.flatnonzero(np.unpackbits(np.frombuffer(blob[4:], np.uint8), bitorder="little")).tolist()
    )


def _listed_words(file: Path, sought: Iterable[str]) -> Iterator[str]:
    """Yield the words that the keyword index lists, and those sought that it has postings for."""
    connection: Connection = connect(str(file))
    by_key = {key_of(word): word for word in sought}
    if connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'posting_pages'").fetchone():
        for field, blob in connection.execute("SELECT field, page FROM posting_pages"):
            if field == terms.FIELD:
                yield from zlib.decompress(blob[4:]).decode().split()
            else:
                yield from (by_key[key] for key in read(blob).keys.tolist() if key in by_key)
    connection.close()
