"""A store in PostgreSQL as its operator sees it: doctor, status, health and metrics."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import pytest

from .. import postgres, processes
from .rest import serving

if TYPE_CHECKING:
    from .conftest import Run

FSYNC = "server: fsync or full_page_writes is off: a power failure can destroy the database (turn it on)\n"


@pytest.fixture
def store(call: Run) -> str:
    """Make a store on a server, with the notes and a fact that replaces another."""
    address = postgres.new_store()
    assert call("ingest", "notes", "--store", address).status == 0
    old = call("add", "Suzy Winter drinks green tea", "--store", address, "--json").data["memories"][0]["id"]
    assert call("add", "Suzy Winter drinks coffee", "--supersedes", old, "--store", address).status == 0
    return address


def change(address: str, statement: str) -> None:
    """Change the tables of a store outside of whyrank."""
    postgres.ask(address, statement.replace("SCHEMA", address.rpartition("=")[2]))


@pytest.mark.parametrize("verb", [["search", "tea"], ["list"], ["status"]])
def test_a_mistyped_schema_is_no_store_for_who_reads(call: Run, verb: list[str]) -> None:
    address = postgres.new_store()
    done = call(*verb, "--store", address)
    assert (done.status, "there is no store at" in done.err) == (8, True)
    schema = address.rpartition("=")[2]
    assert postgres.ask(address, f"SELECT to_regnamespace('{schema}')") == [(None,)]  # nothing was made


@pytest.mark.parametrize(("parameter", "named"), [("schema=a-b", "'a-b'"), ("shema=notes", "'shema'")])
def test_a_server_does_not_start_on_an_address_that_can_be_no_store(call: Run, parameter: str, named: str) -> None:
    done = call("serve", "--port", "0", "--store", f"postgresql://u@127.0.0.1:1/db?{parameter}")
    assert (done.status, named in done.err) == (2, True)


def test_the_doctor_of_a_sound_store_on_a_server_finds_nothing_wrong(call: Run, store: str) -> None:
    done = call("doctor", "--store", store)
    assert (done.status, done.out) == (0, f"tables: in order\n{FSYNC}words: in order\nvectors: in order\n")
    told = call("doctor", "--store", store, "--json").data
    assert told["tables"]["sound"]
    assert "file" not in told
    assert [one["code"] for one in told["tables"]["findings"]] == ["server"]


@pytest.mark.parametrize(
    ("statement", "code"),
    [
        ("UPDATE SCHEMA.posting_tokens SET tokens = 'x' WHERE number = 1", "words"),
        ("DELETE FROM SCHEMA.posting_tokens WHERE number = 1", "words"),
        ("UPDATE SCHEMA.records SET records = 'x'", "records"),
        ("UPDATE SCHEMA.vectors SET vector = 'x' WHERE entry = 1", "vectors"),
        ("UPDATE SCHEMA.names SET key = 'x'", "names"),
        ("DELETE FROM SCHEMA.names", "names"),
        ("UPDATE SCHEMA.scopes SET numbers = 1", "scopes"),
        ("UPDATE SCHEMA.memories SET text = 'altered' WHERE kind = 'fact'", "texts"),
    ],
)
def test_the_doctor_finds_and_repairs_damage_of_tables(call: Run, store: str, statement: str, code: str) -> None:
    change(store, statement)
    found = call("doctor", "--store", store)
    assert found.status == 6
    assert found.out.startswith(f"tables: damaged\n  {code}: ")
    repaired = call("doctor", "--repair", "--store", store)
    assert (repaired.status, repaired.out.splitlines()[0]) == (0, "tables: repaired"), repaired.out
    assert call("doctor", "--store", store).out.startswith("tables: in order\n")
    assert "Suzy Winter drinks coffee" in call("search", "what does Suzy drink?", "--store", store).out


def test_an_altered_chunk_comes_back_with_its_file_after_a_repair(call: Run, store: str) -> None:
    change(store, "UPDATE SCHEMA.memories SET text = 'altered' WHERE kind = 'chunk'")
    assert call("doctor", "--repair", "--store", store).status == 6  # their texts are in the files alone
    assert call("ingest", "notes", "--store", store).status == 0
    assert call("doctor", "--store", store).out.startswith("tables: in order\n")
    assert "behind the flour" in call("search", "where is the tin?", "--store", store).out


def test_the_doctor_names_memories_that_cannot_be_restored(call: Run, store: str) -> None:
    change(store, "UPDATE SCHEMA.memories SET text = 'x', embed_text = 'y' WHERE kind = 'fact'")
    done = call("doctor", "--repair", "--store", store)
    assert done.status == 6
    assert "  altered: 2 memories can be read, but differ from what was stored: m_" in done.out


def test_the_doctor_warns_of_standbys_that_lag_behind(call: Run, store: str, tmp_path: Path) -> None:
    server = postgres.server()
    follow = ["-h", "127.0.0.1", "-p", str(server.port), "-U", postgres.USER, "-D", str(tmp_path), "--no-sync"]
    with processes.started([server.programs / "pg_receivewal", *follow], stderr=subprocess.DEVNULL):
        deadline = time.monotonic() + processes.SECONDS
        while not postgres.ask(store, "SELECT 1 FROM pg_stat_replication") and time.monotonic() < deadline:
            time.sleep(0.05)
        done = call("doctor", "--store", store)
        assert done.status == 0
        assert "acknowledged facts can be lost in a fail-over (set synchronous_standby_names)" in done.out
        assert "standbys 1" in call("status", "--store", store).out


def test_the_doctor_warns_of_dead_rows_and_vacuums_them(call: Run, store: str) -> None:
    change(store, "ALTER TABLE SCHEMA.files SET (autovacuum_enabled = false)")
    change(store, "INSERT INTO SCHEMA.files SELECT 'x', n::text, 1, 1, '' FROM generate_series(1, 20000) AS n")
    change(store, "DELETE FROM SCHEMA.files WHERE scope = 'x'")
    deadline = time.monotonic() + processes.SECONDS
    while "the table files has 20,000 dead rows" not in (found := call("doctor", "--store", store).out):
        assert time.monotonic() < deadline, found
    assert "autovacuum is off for the table files" in found
    call("doctor", "--repair", "--store", store)
    while "dead rows" in (found := call("doctor", "--store", store).out):  # until the server has counted them again
        assert time.monotonic() < deadline, found
        call("doctor", "--repair", "--store", store)


def test_a_purge_vacuums_every_table_with_its_indexes_and_says_what_it_cannot_reach(call: Run, store: str) -> None:
    schema = store.rpartition("=")[2]
    rows = "SELECT 'global', n::text, 'm', repeat('c', 100) FROM generate_series(1, 6000) AS n"
    change(store, "CREATE EXTENSION IF NOT EXISTS pageinspect")
    change(store, f"INSERT INTO SCHEMA.write_keys {rows}")
    kept = call("add", "Suzy Winter owns a boat", "--key", "to-be-purged", "--store", store, "--json").data["memories"]
    index = f"{schema}.write_keys_pkey"
    entries = (
        f"SELECT count(*) FROM generate_series(1, pg_relation_size('{index}') / 8192 - 1) AS page, "
        f"bt_page_items('{index}', page::integer) WHERE data LIKE '%{b'to-be-purged'.hex(' ')}%'"
    )
    assert postgres.ask(store, entries) == [(1,)]
    done = call("forget", kept[0]["id"], "--purge", "--yes", "--store", store)
    assert "a transaction which is still open elsewhere" in done.err
    assert postgres.ask(store, entries) == [(0,)]
    left = f"SELECT relname FROM pg_stat_user_tables WHERE schemaname = '{schema}' AND last_vacuum IS NULL"
    assert postgres.ask(store, left) == []


def test_status_shows_the_server_and_its_connections(call: Run, store: str) -> None:
    told = call("status", "--store", store, "--json").data["server"]
    assert told["role"] == "primary"
    assert told["max_connections"] == 100
    assert (told["pool_size"], told["pool_waiting"], told["retries"]) == (10, 0, 0)
    assert "server: role primary, connections " in call("status", "--store", store).out


def test_pins_of_one_schema_are_not_those_of_another(call: Run, store: str) -> None:
    other = postgres.new_store()
    assert call("ingest", "notes", "--store", other).status == 0
    assert call("pin", "green tea", "notes/tea.md", "--store", store).status == 0
    assert len(call("pin", "--list", "--store", store, "--json").data["pins"]) == 1
    assert call("pin", "--list", "--store", other, "--json").data["pins"] == []


def test_a_change_of_model_in_the_background_has_the_whole_address_in_its_environment(call: Run, run: Run) -> None:
    address = postgres.new_store().replace("@", ":geheim@", 1)
    assert call("ingest", "notes", "--store", address, "--embedding", "none").status == 0
    done = run("model", "use", "wordllama", "--background", "--store", address, "--json")
    process = Path(f"/proc/{done.data['process']}")
    assert f"WHYRANK_STORE={address}".encode() in (process / "environ").read_bytes().split(b"\0")
    assert b"postgresql" not in (process / "cmdline").read_bytes()
    until = time.monotonic() + processes.SECONDS
    while process.exists() and (process / "cmdline").read_bytes() and time.monotonic() < until:
        time.sleep(0.1)
    assert call("status", "--store", address, "--json").data["spaces"]


def test_metrics_and_health_tell_of_the_server(workspace: Path, store: str) -> None:
    with serving(workspace, "--store", f"{store}&pool_size=3") as server:
        lines = dict(line.rsplit(" ", 1) for line in server.client.get("/metrics").text.splitlines() if line[0] != "#")
        assert float(lines["whyrank_postgres_pool_size"]) == 3
        assert float(lines["whyrank_postgres_pool_waiting"]) == 0
        assert float(lines["whyrank_postgres_retries"]) == 0
        assert server.client.get("/health").json()["status"] == "ok"


def test_a_server_that_is_gone_is_told_by_health_and_by_every_route(workspace: Path) -> None:
    database = postgres.make_server()
    try:
        with serving(workspace, "--store", database.address) as server:
            fact, key = {"text": "Suzy drinks green tea"}, {"Idempotency-Key": "first"}
            before = server.client.post("/v1/memories", json=fact, headers=key)
            database.stop("immediate")
            found = server.client.post("/v1/search", json={"query": "green tea"})
            assert (found.status_code, found.json()["error"]["code"]) == (503, "store-unavailable")
            assert "start the server" in found.json()["error"]["hint"]
            assert httpx.get(f"{server.url}/health").status_code == 503
            database.start()
            assert server.client.post("/v1/search", json={"query": "green tea"}).json()["hits"]
            again = server.client.post("/v1/memories", json=fact, headers=key)
            assert before.json()["id"] == again.json()["id"]
            assert json.loads(server.client.get("/v1/status").text)["memories"] == 1
    finally:
        postgres.remove(database)
