"""A copy answers as its source, whatever database each is in, and whatever happens to the copy on its way."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from contextlib import ExitStack, closing
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from whyrank.analysis.document import entries_for
from whyrank.config.load import load
from whyrank.engine.copy import UNFINISHED, copy_store
from whyrank.engine.engine import Engine
from whyrank.errors import Conflict, SpaceMismatch, StoreDamaged, StoreError
from whyrank.interfaces.cli.main import main
from whyrank.protocols import Changes
from whyrank.storage.store import IndexedStore, PostgresStore, SqliteStore
from whyrank.testing.fakes import WordDirections
from whyrank.types.memory import Memory, Scope

from .. import postgres, processes
from ..damage import told
from . import walls
from .test_two_databases import differences, plain

if TYPE_CHECKING:
    from collections.abc import Callable

WRITES = 60
FACTS, PART = 240, 20  # of a store whose copy is killed, and of each transaction
KILLS = 2  # of each copy
DIRECTIONS = [("file", "server"), ("server", "file"), ("file", "file"), ("server", "server")]


@pytest.fixture
def places(tmp_path: Path) -> Callable[[str], str]:
    """Give addresses of stores that do not exist yet, by the kind of database."""
    numbers = iter(range(100))
    return lambda kind: postgres.new_store() if kind == "server" else str(tmp_path / f"{next(numbers)}.db")


def opened(place: str) -> IndexedStore:
    return PostgresStore(place) if place.startswith("postgresql:") else SqliteStore(Path(place))


def engine_of(place: str, folder: Path, clock: Callable[[], float] = lambda: float(walls.NOW)) -> Engine:
    config = load({"calibration": "manual", "dedup.near": "report"}, workspace=folder, environment={})
    return Engine(opened(place), WordDirections(), config, clock=clock)


def exported(place: str, folder: Path) -> list[str]:
    """Return all that an export holds: memories, history, keys, files."""
    with closing(engine_of(place, folder)) as engine:
        lines = StringIO()
        engine.export(lines, every_scope=True)
        return lines.getvalue().splitlines()


def vectors_in(place: str) -> dict[tuple[str, str, str], bytes]:
    with closing(opened(place)) as store:
        return {key: blob for part in store.parts(store.scopes(), 100) for key, blob in part.vectors.items()}


def lived(place: str, folder: Path, seed: int) -> tuple[float, list[str], list[str]]:
    """Live a life of random writes; return the time then, the ids and the texts."""
    chance, texts, now = random.Random(seed), list[str](), [float(walls.NOW)]
    with closing(engine_of(place, folder, lambda: now[0])) as engine:
        for number in range(WRITES):
            scope = chance.choice(walls.SCOPES)
            ids = [one.id for one in engine.list(limit=1_000, scope=scope, include_superseded=True)]
            verbs = walls.ADDED if number < walls.FIRST else (*walls.ADDED, *walls.BY_ID, *walls.BY_ID)
            walls.told(engine, walls.drawn(chance, scope, [*ids, "m_nobody"], texts, verbs))
            now[0] += chance.choice((0.0, 60.0, float(walls.DAY)))
        return now[0], [one.id for one in engine.list(limit=1_000, scope=list(walls.SCOPES))], texts


def filled(place: str, count: int = FACTS, dimensions: int = 8, scopes: int = 4) -> None:
    """Store facts with vectors, without an engine."""
    chance, numbers = random.Random(count), np.random.default_rng(count)
    texts = [f"{number} {' '.join(chance.choices(walls.WORDS, k=6))}" for number in range(count)]
    facts = [
        Memory(f"m_{n}", text, "fact", scope=Scope.parse(f"user:{n % scopes}"), created=walls.NOW + n)
        for n, text in enumerate(texts)
    ]
    entries = entries_for(facts, "en")
    rows = numbers.standard_normal((count, dimensions)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    with closing(opened(place)) as store:
        store.write(
            Changes(put=entries, space="made", vectors={e.embed_hash: v for e, v in zip(entries, rows, strict=True)})
        )


@pytest.mark.parametrize(("source", "destination"), DIRECTIONS)
def test_a_copy_answers_as_its_source(
    tmp_path: Path, places: Callable[[str], str], source: str, destination: str
) -> None:
    here, there = places(source), places(destination)
    seed = DIRECTIONS.index((source, destination))
    now, ids, texts = lived(here, tmp_path, seed)
    done = copy_store(here, there, workspace=tmp_path)
    assert exported(here, tmp_path) == exported(there, tmp_path)
    assert vectors_in(here) == vectors_in(there)
    assert done.memories == len(exported(here, tmp_path)) >= 10
    assert done.history > 0
    assert done.keys > 0
    with ExitStack() as stack:
        engines = [stack.enter_context(closing(engine_of(place, tmp_path, lambda: now))) for place in (here, there)]
        chance, asked = random.Random(seed), walls.ASKED[seed]
        for question in walls.questions(chance, asked, ids, texts):
            mine, its = (plain(walls.told(engine, question)) for engine in engines)
            if question.verb != "status":  # it shows the size of the file
                assert differences(mine, its) == [], question


def test_a_large_store_answers_alike_in_its_copy(tmp_path: Path, places: Callable[[str], str]) -> None:
    here, there, chance = places("file"), places("server"), random.Random(7)
    documents = [walls._document(chance, f"d{place}.md", "user:ann") for place in range(300)]
    with closing(engine_of(here, tmp_path)) as engine:
        for start in range(0, 300, 150):
            engine.add_documents(documents[start : start + 150])
        engine.forget(*(one.id for one in engine.list(limit=40, scope="user:ann")), scope="user:ann")
    copy_store(here, there, workspace=tmp_path, per_transaction=110)
    with ExitStack() as stack:
        engines = [stack.enter_context(closing(engine_of(place, tmp_path))) for place in (here, there)]
        for text in ("what is E47?", '"blue boat"', "remnd me on the boat"):
            for recipe in ("default", "rrf"):
                options = {"scope": ["user:ann"], "recipe": recipe, "limit": 10}
                mine, its = (plain(walls.told(one, walls.Deed("", "search", (text,), options))) for one in engines)
                assert differences(mine, its) == []


def test_a_finished_copy_is_not_changed_by_another_run(tmp_path: Path, places: Callable[[str], str]) -> None:
    here, there = places("file"), places("server")
    lived(here, tmp_path, 5)
    first = copy_store(here, there, workspace=tmp_path)
    with closing(opened(there)) as store, store.view() as view:
        before = view.generation
    again = copy_store(here, there, workspace=tmp_path)
    with closing(opened(there)) as store, store.view() as view:
        assert view.generation == before
    assert first.has_changed
    assert not again.has_changed
    assert again.unchanged == first.memories


_COPY = """
import sys
from whyrank.engine.copy import copy_store

def tell(done, total, label):
    print(done, flush=True)

copy_store(sys.argv[1], sys.argv[2], progress=tell, per_transaction=int(sys.argv[3]))
"""


@pytest.mark.parametrize(("source", "destination"), DIRECTIONS[:2])
def test_a_copy_that_is_killed_goes_on_to_the_same_store(
    tmp_path: Path, places: Callable[[str], str], source: str, destination: str
) -> None:
    here, there, chance = places(source), places(destination), random.Random(1)
    filled(here)
    held = 0
    for number in range(KILLS):
        command = [sys.executable, "-c", _COPY, here, there, str(PART)]
        with processes.started(command, stdout=subprocess.PIPE, cwd=tmp_path) as copying:
            assert copying.stdout is not None
            while int(copying.stdout.readline()) < (number + 1) * FACTS // (KILLS + 1):
                pass
            time.sleep(chance.random() / 100)  # in the middle of a transaction
            copying.send_signal(signal.SIGKILL)
        with closing(opened(there)) as store:
            assert held <= len(store.ids()) < FACTS
            held = len(store.ids())
            assert store.note(UNFINISHED) is not None
    assert held
    done = copy_store(here, there, workspace=tmp_path)
    assert (done.memories, done.unchanged) == (FACTS - held, held)
    assert exported(here, tmp_path) == exported(there, tmp_path)
    assert vectors_in(here) == vectors_in(there)


def test_changes_of_the_source_between_two_runs_reach_an_unfinished_copy(
    tmp_path: Path, places: Callable[[str], str]
) -> None:
    here, there = places("file"), places("server")
    filled(here, 60)

    class Interrupted(Exception):
        pass

    def interrupt(done: int, total: int, label: str) -> None:
        raise Interrupted

    with pytest.raises(Interrupted):
        copy_store(here, there, workspace=tmp_path, progress=interrupt, per_transaction=20)
    with closing(engine_of(here, tmp_path)) as engine:
        engine.update("m_0", text="now it is another text", scope="user:0")
        engine.mark_used("m_4", scope="user:0")
    done = copy_store(here, there, workspace=tmp_path)
    assert done.replaced == 2
    assert exported(here, tmp_path) == exported(there, tmp_path)


@pytest.mark.parametrize(("source", "destination"), DIRECTIONS[:2])
def test_changes_of_the_source_during_the_copy_are_copied_too(
    tmp_path: Path, places: Callable[[str], str], source: str, destination: str
) -> None:
    here, there = places(source), places(destination)
    filled(here, 60)
    with closing(engine_of(here, tmp_path)) as engine:
        writes: list[Callable[[], object]] = [
            lambda: engine.update("m_0", text="now it is another text", scope="user:0"),
            lambda: engine.forget("m_4", scope="user:0"),
            lambda: engine.add("a fact of the last minute", scope="user:0", supersedes="m_8"),
        ]

        def write(done: int, total: int, label: str) -> None:
            if writes:
                writes.pop()()

        done = copy_store(here, there, workspace=tmp_path, progress=write, per_transaction=20)
    assert [notice.code for notice in done.notices] == ["source-changed"]
    assert done.removed == 1
    assert exported(here, tmp_path) == exported(there, tmp_path)


def test_a_destination_with_other_memories_is_refused_and_stays_as_it_is(
    tmp_path: Path, places: Callable[[str], str]
) -> None:
    here, there = places("file"), places("server")
    filled(here, 10)
    with closing(engine_of(there, tmp_path)) as engine:
        foreign = engine.add("somebody else's memory").id
    before = exported(there, tmp_path)
    with pytest.raises(Conflict, match=foreign) as refused:
        copy_store(here, there, workspace=tmp_path)
    assert "--merge" in refused.value.hint
    assert exported(there, tmp_path) == before


@pytest.mark.parametrize("destination", ["file", "server"])
def test_a_store_that_is_no_copy_is_refused_though_the_source_holds_all_its_memories(
    tmp_path: Path, places: Callable[[str], str], destination: str
) -> None:
    here, there = places("file"), places(destination)
    for place in (here, there):
        with closing(engine_of(place, tmp_path)) as engine:
            engine.add("it is in both", scope="user:0")
    with closing(engine_of(here, tmp_path)) as engine:
        engine.add("it is in the source alone", scope="user:0")
    before = exported(there, tmp_path)
    with pytest.raises(Conflict, match="holds 1 memory, and is no copy of") as refused:
        copy_store(here, there, workspace=tmp_path)
    assert "--merge" in refused.value.hint
    assert exported(there, tmp_path) == before
    assert copy_store(here, there, merge=True, workspace=tmp_path).memories == 1


def test_what_is_new_in_the_source_is_added_to_a_finished_copy(tmp_path: Path, places: Callable[[str], str]) -> None:
    here, there, further = places("file"), places("server"), places("file")
    filled(here, 10)
    copy_store(here, there, workspace=tmp_path)
    with closing(engine_of(here, tmp_path)) as engine:
        engine.add("it is new", scope="user:0")
    assert copy_store(here, there, workspace=tmp_path).memories == 1
    copy_store(there, further, workspace=tmp_path)  # a copy of the copy is not one of the first source
    with pytest.raises(Conflict, match="is no copy of"):
        copy_store(here, further, workspace=tmp_path)


def test_a_copy_that_fails_leaves_no_empty_file_and_removes_none_that_was_there(tmp_path: Path) -> None:
    here, there = tmp_path / "here.db", tmp_path / "there.db"
    filled(str(here), 4)
    there.with_name("there.db.bak").touch()
    scope = "user:nobody"
    with pytest.raises(StoreError, match="holds no memory of user:nobody"):
        copy_store(here, there, scope=scope, workspace=tmp_path)
    assert sorted(one.name for one in tmp_path.glob("there*")) == ["there.db.bak"]
    SqliteStore(there).close()
    with pytest.raises(StoreError, match="holds no memory of user:nobody"):
        copy_store(here, there, scope=scope, workspace=tmp_path)
    assert there.exists()


@pytest.mark.parametrize("destination", ["file", "server"])
def test_a_merge_reports_memories_with_other_content_and_keeps_them(
    tmp_path: Path, places: Callable[[str], str], destination: str
) -> None:
    here, there = places("file"), places(destination)
    filled(here, 10)
    filled(there, 4)  # four of the same ids; their texts are drawn by the count, so they differ
    with closing(engine_of(here, tmp_path)) as engine:
        own = engine.add("it is in both", scope="user:0").id
    with closing(engine_of(there, tmp_path)) as engine:
        engine.add("it is in both", scope="user:0")
        foreign = engine.add("only there").id
        kept = {f"m_{n}": engine.get(f"m_{n}", scope=f"user:{n}").text for n in range(4)}
    done = copy_store(here, there, workspace=tmp_path, merge=True)
    assert [one.id for one in done.unlike] == ["m_0", "m_1", "m_2", "m_3"]
    assert (done.memories, done.unchanged) == (6, 1)
    with closing(opened(there)) as store:
        assert {*store.ids()} == {*(f"m_{n}" for n in range(10)), own, foreign}
        seen = store.get([*kept], store.scopes())
    assert {identity: one.text for identity, one in seen.items()} == kept


PLANTED = {
    "history rows": "history", "keys": "write_keys", "files": "files", "vectors of": "vectors",
}  # fmt: skip


@pytest.mark.parametrize("kind", PLANTED)
def test_a_difference_in_the_copy_is_an_error_that_names_it_and_the_next_run_mends_it(
    tmp_path: Path, places: Callable[[str], str], kind: str
) -> None:
    here, there = places("file"), places("server")
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "tea.md").write_text("# Tea\n\nSuzy prefers it green.", encoding="utf-8")
    with closing(engine_of(here, tmp_path)) as engine:
        engine.ingest(tmp_path / "notes")
        fact = engine.add("the kettle is blue", key="one").id
        engine.update(fact, text="the kettle is green")
    opened(there).close()
    schema = there.rpartition("=")[2]
    lose = f"CREATE FUNCTION {schema}.lose() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'"
    postgres.ask(there, lose)
    table = f"{schema}.{PLANTED[kind]}"
    postgres.ask(there, f"CREATE TRIGGER loss BEFORE INSERT ON {table} FOR EACH ROW EXECUTE FUNCTION {schema}.lose()")
    with pytest.raises(StoreError, match=rf"global: \d {kind}.* in the source, 0 in the copy"):
        copy_store(here, there, workspace=tmp_path)
    postgres.ask(there, f"DROP TRIGGER loss ON {table}")
    copy_store(here, there, workspace=tmp_path)
    assert exported(here, tmp_path) == exported(there, tmp_path)
    assert vectors_in(here) == vectors_in(there)


def test_a_memory_that_is_altered_on_its_way_is_noticed(tmp_path: Path, places: Callable[[str], str]) -> None:
    here, there = places("file"), places("file")
    filled(here, 10)
    SqliteStore(Path(there)).close()
    told(
        Path(there),
        "CREATE TRIGGER alter_title AFTER INSERT ON memories WHEN new.id = 'm_3' "
        "BEGIN UPDATE memories SET title = 'Other' WHERE row = new.row; END",
    )
    with pytest.raises(StoreError, match="user:3: the memories differ in content"):
        copy_store(here, there, workspace=tmp_path)


def test_only_the_scopes_asked_for_are_copied(tmp_path: Path, places: Callable[[str], str]) -> None:
    here, there = places("server"), places("file")
    lived(here, tmp_path, 2)
    wanted = [line for line in exported(here, tmp_path) if json.loads(line)["scope"] == "user:ann"]
    done = copy_store(here, there, scope="user:ann", workspace=tmp_path)
    assert exported(there, tmp_path) == wanted
    assert (done.memories, done.scopes) == (len(wanted), 1)
    rest = copy_store(here, there, workspace=tmp_path)
    assert rest.unchanged == len(wanted)
    assert exported(here, tmp_path) == exported(there, tmp_path)


def test_the_vectors_of_every_space_are_copied_and_damaged_ones_are_reported(
    tmp_path: Path, places: Callable[[str], str]
) -> None:
    here, there = places("file"), places("server")
    filled(here, 10)
    with closing(SqliteStore(Path(here))) as store:
        hashes = [one.hash for part in store.parts(store.scopes(), 10) for one in part.memories]
        store.write(Changes(space="second", vectors=dict.fromkeys(hashes[:4], np.full(4, 0.5, np.float32))))
    told(Path(here), "UPDATE vectors SET vector = zeroblob(16) WHERE space = 'second' AND hash = ?", hashes[0])
    done = copy_store(here, there, workspace=tmp_path)
    assert done.vectors == {"made": 10, "second": 3}
    assert [notice.code for notice in done.notices] == ["vectors-damaged"]
    assert vectors_in(there) == vectors_in(here)


def test_a_store_with_a_damaged_memory_is_refused_with_its_id(tmp_path: Path, places: Callable[[str], str]) -> None:
    here, there = places("file"), places("file")
    with closing(engine_of(here, tmp_path)) as engine:
        fact = engine.add("the kettle is blue")
    told(Path(here), "UPDATE memories SET text = 'the kettle is red'")
    with pytest.raises(StoreDamaged, match=fact.id):
        copy_store(here, there, workspace=tmp_path)


def test_spaces_of_different_dimensions_are_refused(tmp_path: Path, places: Callable[[str], str]) -> None:
    here, there = places("file"), places("server")
    filled(here, 10)
    filled(there, 4, dimensions=5)
    with pytest.raises(SpaceMismatch, match="8 dimensions in the source, 5 in the destination"):
        copy_store(here, there, merge=True, workspace=tmp_path)


def test_a_store_is_not_copied_onto_itself_nor_from_nowhere(tmp_path: Path, places: Callable[[str], str]) -> None:
    here, server = places("file"), postgres.new_store()
    filled(here, 4)
    link = tmp_path / "link.db"
    link.symlink_to(here)
    opened(server).close()
    for one, other in ((here, here), (here, str(link)), (server, server)):
        with pytest.raises(Conflict, match="are the same store"):
            copy_store(one, other, workspace=tmp_path)
    missing = postgres.new_store()
    with pytest.raises(StoreError, match="there is no store at"):
        copy_store(missing, here, workspace=tmp_path)
    schema = missing.rpartition("=")[2]
    assert postgres.ask(missing, f"SELECT 1 FROM pg_namespace WHERE nspname = '{schema}'") == []


def test_the_command_reports_the_copy_and_what_was_left_out(
    tmp_path: Path, places: Callable[[str], str], capsys: pytest.CaptureFixture[str]
) -> None:
    here, there = places("file"), places("server")
    filled(here, 10)
    common = [here, there, "--workspace", str(tmp_path)]

    def run(*options: str) -> tuple[int, dict[str, Any]]:
        status = main(["copy", *common, *options, "--json"])
        return status, json.loads(capsys.readouterr().out)

    status, first = run()
    assert (status, first["memories"], first["vectors"], first["scopes"]) == (0, 10, {"made": 10}, 4)
    with closing(opened(there)) as store:
        other = replace(store.get(["m_0"], store.scopes())["m_0"], text="changed there")
        store.write(Changes(put=entries_for([other], "en")))
    status, second = run("--merge")
    assert status == 14
    assert [one["id"] for one in second["unlike"]] == ["m_0"]
    assert second["unchanged"] == 9
    assert main(["copy", *common, "--merge"]) == 14
    assert "not copied m_0" in capsys.readouterr().err


@pytest.mark.parametrize(("source", "destination"), DIRECTIONS[:2])
def test_an_export_is_imported_into_the_other_database(
    tmp_path: Path, places: Callable[[str], str], source: str, destination: str
) -> None:
    here, there = places(source), places(destination)
    lived(here, tmp_path, 3)
    lines = exported(here, tmp_path)
    (tmp_path / "all.jsonl").write_text("\n".join(lines), encoding="utf-8")
    with closing(engine_of(there, tmp_path)) as engine:
        done = engine.import_from("whyrank", tmp_path / "all.jsonl")
    assert (done.new, done.skipped, done.bad) == (len(lines), (), ())
    assert exported(there, tmp_path) == lines
