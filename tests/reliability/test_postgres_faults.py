"""Faults of a PostgreSQL server: each is a typed error that says what to do, and nothing acknowledged is lost."""

from __future__ import annotations

import re
import select
import shutil
import subprocess
import time
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest

from whyrank.errors import (
    ConfigError,
    SchemaTooNew,
    StoreDamaged,
    StoreError,
    StoreFull,
    StoreLocked,
    StoreTimeout,
    StoreUnavailable,
    WhyrankError,
)
from whyrank.interfaces.errors import failure_of
from whyrank.storage.postgres.backend import PostgresBackend
from whyrank.storage.postgres.pool import Address
from whyrank.storage.sqlite.database import set_meta, undoable
from whyrank.storage.store import PostgresStore

from .. import postgres, tcp_proxy
from . import writers

if TYPE_CHECKING:
    from collections.abc import Iterator

    from whyrank.engine.engine import Engine

    from ..tcp_proxy import Cut

PASSWORD = "s3cret-word"
WRITERS, FACTS = 8, 200
SECONDS = 30.0  # for what takes a moment


@contextmanager
def own_server(*settings: str) -> Iterator[postgres.Server]:
    """Start a server that a test may stop."""
    made = postgres.make_server(settings=settings)
    try:
        yield made
    finally:
        postgres.remove(made)


def ask(statement: str) -> list[tuple[object, ...]]:
    return postgres.ask(postgres.server().address, statement)


def schema_of(address: str) -> str:
    return address.rpartition("=")[2]


def refusal(address: str) -> WhyrankError:
    """Return the error of opening a store, which has a hint and no password."""
    with pytest.raises(WhyrankError) as raised:
        PostgresStore(address).close()
    assert raised.value.hint
    assert PASSWORD not in str(raised.value)
    return raised.value


# -- at the start -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("user", "database", "port", "said", "hint"),
    [
        ("whyrank", "postgres", 1, "Connection refused", "start the server"),
        ("whyrank", "nowhere", 0, 'database "nowhere" does not exist', "createdb"),
        ("nobody_here", "postgres", 0, 'role "nobody_here" does not exist', "check the user"),
        (f"guarded:{PASSWORD}", "postgres", 0, "password authentication failed", "check user and password"),
        ("crowded", "postgres", 0, "too many connections", "max_connections"),
    ],
)
def test_a_server_that_lets_nobody_in_is_an_error_with_its_reason(
    user: str, database: str, port: int, said: str, hint: str, guarded: None
) -> None:
    address = postgres.server().address_of(user, database)
    error = refusal(address.replace(str(postgres.server().port), str(port)) if port else address)
    assert isinstance(error, StoreUnavailable)
    assert (failure_of(error).exit_status, failure_of(error).http_status) == (19, 503)
    assert said in error.message
    assert hint in error.hint


@pytest.fixture(scope="module")
def guarded() -> Iterator[None]:
    """Make a role that needs another password, and one that may have no connection."""
    rules = postgres.server().folder / "data" / "pg_hba.conf"
    before = rules.read_text(encoding="utf-8")
    ask("CREATE ROLE guarded LOGIN PASSWORD 'another'")
    ask("CREATE ROLE crowded LOGIN CONNECTION LIMIT 0")
    rules.write_text(f"host all guarded 127.0.0.1/32 scram-sha-256\n{before}", encoding="utf-8")
    postgres.server().run("pg_ctl", "reload")
    yield
    rules.write_text(before, encoding="utf-8")


def test_a_wrong_address_does_not_show_its_password() -> None:
    for wrong in (f"postgresql://ann:{PASSWORD}%@host/db", f"postgresql://ann:{PASSWORD}?@host/db?x=1",
                  f"postgresql://ann:{PASSWORD}/@host/db?schema=1x", f"postgresql://ann:{PASSWORD}@host/db?nonsense=1",
                  f"postgresql://ann:{PASSWORD} x@host/db", f"postgresql://host/db?password={PASSWORD}%"):  # fmt: skip
        assert isinstance(refusal(wrong), ConfigError)


def test_an_unknown_host_says_which_part_of_the_address_to_check() -> None:
    error = refusal(f"postgresql://ann:{PASSWORD}@no-such-host.invalid/db")
    assert isinstance(error, StoreUnavailable)
    assert error.hint == "check the host in the address"


def test_a_schema_of_a_newer_whyrank_is_left_untouched() -> None:
    address = postgres.new_store()
    PostgresStore(address).close()
    ask(f"UPDATE {schema_of(address)}.meta SET value = '99' WHERE key = 'schema'")
    before = ask(f"SELECT * FROM {schema_of(address)}.meta ORDER BY key")
    error = refusal(address)
    assert isinstance(error, SchemaTooNew)
    assert "schema 99" in error.message
    assert ask(f"SELECT * FROM {schema_of(address)}.meta ORDER BY key") == before


@pytest.mark.parametrize("table", ["orders (number int)", "files (number int)", "meta (number int)"])
def test_a_schema_with_tables_of_another_program_is_left_untouched(table: str) -> None:
    address = postgres.new_store()
    ask(f"CREATE SCHEMA {schema_of(address)}")
    ask(f"CREATE TABLE {schema_of(address)}.{table}")
    error = refusal(address)
    assert isinstance(error, StoreDamaged)
    assert "another program" in error.message
    assert "schema=NAME" in error.hint
    [(count,)] = ask(f"SELECT count(*) FROM pg_tables WHERE schemaname = '{schema_of(address)}'")
    assert count == 1


def test_a_role_that_may_not_create_the_schema_is_told_what_its_owner_has_to_run() -> None:
    ask("CREATE ROLE guest LOGIN")
    address = postgres.new_store(user="guest")
    error = refusal(address)
    assert failure_of(error).exit_status == 8
    statement = f"CREATE SCHEMA {schema_of(address)} AUTHORIZATION guest"
    assert statement in error.hint
    ask(statement)
    PostgresStore(address).close()  # what the hint says is enough


def test_a_role_that_may_only_read_searches_and_is_refused_as_a_writer() -> None:
    address = postgres.new_store()
    with closing(writers.opened(address)) as engine:
        engine.add("Suzy drinks green tea", scope="global")
    schema = schema_of(address)
    for statement in ("CREATE ROLE reader LOGIN", f"GRANT USAGE ON SCHEMA {schema} TO reader",
                      f"GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO reader",
                      f"GRANT SELECT ON ALL SEQUENCES IN SCHEMA {schema} TO reader"):  # fmt: skip
        ask(statement)
    with closing(writers.opened(address.replace("whyrank@", "reader@"))) as engine:
        assert [hit.memory.text for hit in engine.search("green tea").hits] == ["Suzy drinks green tea"]
        with pytest.raises(StoreError, match="refuses this role: permission denied"):
            engine.add("Suzy drinks coffee")


def test_a_read_only_server_is_searched_and_refuses_writes_with_a_hint() -> None:
    address = postgres.new_store()
    with closing(writers.opened(address)) as engine:
        engine.add("Suzy drinks green tea")
    read_only = address.replace("?", "?options=-c%20default_transaction_read_only%3Don&")
    with closing(writers.opened(read_only)) as engine:
        assert engine.search("green tea").hits
        with pytest.raises(StoreError, match="is read-only") as raised:
            engine.add("Suzy drinks coffee")
    assert "primary" in raised.value.hint


# -- in the middle ----------------------------------------------------------------------------------------------------


def test_a_statement_that_takes_too_long_leaves_the_rest_of_a_snapshot_readable() -> None:
    store = PostgresStore(postgres.new_store())
    with closing(store), store.reading():
        with pytest.raises(StoreTimeout, match="statement timeout"), store.aborting(time.monotonic() + 0.05):
            store._read("SELECT pg_sleep(5)")
        assert store.status("").memories == 0


@pytest.mark.parametrize("is_seen", ["at the next statement", "at the end of the block"])
def test_a_statement_that_fails_in_a_block_takes_back_the_block_alone(is_seen: str) -> None:
    backend = PostgresBackend(postgres.new_store())
    backend.prepare("postings")
    with closing(backend):
        with backend.writing() as connection:
            set_meta(connection, "before", "1")
            with suppress(psycopg.errors.DivisionByZero), undoable(connection):
                set_meta(connection, "inside", "1")
                connection.execute("SELECT 1/0")
                if is_seen == "at the next statement":
                    assert select.select([connection.raw.fileno()], [], [], SECONDS)[0]  # the error has arrived
                    connection.execute("SELECT 1")
            set_meta(connection, "after", "1")
        with backend.reading() as (connection, *_):
            known = connection.execute("SELECT key FROM meta WHERE key IN ('before', 'inside', 'after')").fetchall()
    assert sorted(known) == [("after",), ("before",)]


def test_a_writer_that_waits_too_long_for_another_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("whyrank.storage.postgres.pool.WAIT_SECONDS", 0.2)
    address = postgres.new_store()
    schema = schema_of(address)
    with closing(PostgresStore(address)) as store, postgres.connected(address) as other:
        other.execute(f"SET search_path = {schema}; BEGIN; SELECT pg_advisory_xact_lock(hashtext(current_schema()))")
        with pytest.raises(StoreLocked, match="busy"):
            store.put_note("a", "b")


def test_a_search_is_made_again_when_the_server_has_restarted() -> None:
    with own_server() as server, closing(writers.opened(f"{server.address}?schema=s")) as engine:
        engine.add("Suzy drinks green tea")
        server.stop("immediate")
        began = time.monotonic()
        with pytest.raises(StoreUnavailable, match="cannot be reached") as raised:
            engine.search("green tea")
        assert time.monotonic() - began < 5.0
        assert raised.value.hint == "start the server, or check the address"
        server.start()
        assert engine.search("green tea").hits
        assert engine.add("Suzy drinks coffee").id


def test_a_search_that_loses_its_connection_is_made_again() -> None:
    address = postgres.new_store()
    with closing(writers.opened(address)) as engine:
        for number in range(70):  # more than are kept beside the pages
            engine.add(f"Suzy drinks green tea number {number}")
    with tcp_proxy.proxy(postgres.server().port) as between:
        through = address.replace(f":{postgres.server().port}/", f":{between.port}/")
        with closing(writers.opened(through)) as engine:
            between.fatal = b"posting_pages"
            assert engine.search("green tea").hits
            assert between.lost == 1


@pytest.mark.parametrize("cut", ["before", "after"])
def test_a_commit_whose_answer_is_lost_is_settled_and_happens_once(cut: Cut) -> None:
    address = postgres.new_store()
    with tcp_proxy.proxy(postgres.server().port) as between:
        through = address.replace(f":{postgres.server().port}/", f":{between.port}/")
        with closing(writers.opened(through)) as engine:
            between.cut, between.fatal = cut, b"COMMIT\0"
            kept = engine.add("Suzy drinks green tea", key="first")
            between.fatal = b"COMMIT\0"
            changed = engine.update(kept.id, text="Suzy drinks white tea")
            between.fatal = b"COMMIT\0"
            engine.forget(engine.add("Suzy drinks coffee").id)
            assert between.lost == 3
            assert [one.text for one in engine.list()] == ["Suzy drinks white tea"]
            assert len(engine.history(changed.id)) == 1


def fill(engine: Engine, stored: list[str]) -> None:
    """Store long facts until that fails."""
    for number in range(1_000):
        text = " ".join(f"word{number * 50 + place}" for place in range(2_000))
        stored.append(engine.add(f"fact {number} {text}").id)


def test_a_disk_that_is_full_loses_nothing_that_was_stored() -> None:
    place = postgres.server().folder / "small"
    place.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=12m", "tmpfs", str(place)], capture_output=True)
    if mounted.returncode:
        pytest.skip("no file system may be mounted here")
    try:
        shutil.chown(place, "nobody", "nogroup")
        ask(f"CREATE TABLESPACE small LOCATION '{place}'")
        ask("CREATE DATABASE small TABLESPACE small")
    except BaseException:
        subprocess.run(["umount", str(place)], check=True)
        raise
    try:
        with closing(writers.opened(postgres.server().address_of("whyrank", "small"))) as engine:
            stored = list[str]()
            with pytest.raises(StoreFull, match="no room left") as raised:
                fill(engine, stored)
            assert failure_of(raised.value).http_status == 507
            assert "what was stored is kept" in raised.value.hint
            assert {one.id for one in engine.list(limit=1_000)} == set(stored)
            assert engine.search("fact 1").hits
    finally:
        ask("DROP DATABASE small WITH (FORCE)")
        ask("DROP TABLESPACE small")
        subprocess.run(["umount", str(place)], check=True)


# -- restarts and fail-over -------------------------------------------------------------------------------------------


def test_writers_lose_and_double_nothing_through_a_crash_of_the_server() -> None:
    with own_server() as server:
        address = f"{server.address}?schema=s"
        writers.opened(address).close()
        with writers.writing(address, WRITERS, FACTS) as started:
            while writers.stored(address) < WRITERS * FACTS // 4:
                time.sleep(0.1)
            server.stop("immediate")
            server.start()
            told = writers.results(started)
        ids = [identity for one in told for identity in one.ids]
        assert len(set(ids)) == WRITERS * FACTS
        assert postgres.ask(address, "SELECT count(*), count(DISTINCT text) FROM s.memories") == [(1_600, 1_600)]
        assert max(one.longest for one in told) < 30.0


def test_a_promoted_replica_has_all_that_was_acknowledged() -> None:
    with own_server("synchronous_standby_names=replica") as primary:
        postgres.ask(f"{primary.address}?options=-csynchronous_commit%3Dlocal", "CHECKPOINT")
        replica = postgres.make_replica(primary)
        try:
            hosts = f"127.0.0.1:{primary.port},127.0.0.1:{replica.port}"
            address = f"postgresql://whyrank@{hosts}/postgres?target_session_attrs=read-write&schema=s"
            writers.opened(address).close()
            with writers.writing(address, 4, 50) as started:
                while writers.stored(address) < 50:
                    time.sleep(0.1)
                primary.stop("immediate")
                replica.run("pg_ctl", "-w", "promote")
                postgres.ask(replica.address, "ALTER SYSTEM SET synchronous_standby_names = ''")
                told = writers.results(started)
            ids = {identity for one in told for identity in one.ids}
            assert {one for (one,) in postgres.ask(replica.address, "SELECT id FROM s.memories")} == ids
            assert len(ids) == 200
        finally:
            postgres.remove(replica)


# -- TLS --------------------------------------------------------------------------------------------------------------


def test_the_certificate_of_a_server_is_verified(tmp_path: Path) -> None:
    context = tcp_proxy.certified(tmp_path)
    address = postgres.new_store()
    with tcp_proxy.proxy(postgres.server().port, context) as between:
        secured = address.replace(f":{postgres.server().port}/", f":{between.port}/")
        secured += f"&sslnegotiation=direct&sslmode=verify-full&sslrootcert={tmp_path}/"
        with closing(writers.opened(f"{secured}authority.pem")) as engine:
            engine.add("Suzy drinks green tea")
            assert engine.search("green tea").hits
        tcp_proxy.certified(tmp_path / "other")
        error = refusal(f"{secured}other/authority.pem")
    assert isinstance(error, StoreUnavailable)
    assert "certificate" in error.message
    assert "sslrootcert" in error.hint


def test_a_server_without_tls_is_refused_where_tls_is_required() -> None:
    error = refusal(f"{postgres.new_store()}&sslmode=require")
    assert "does not support SSL" in error.message
    assert "sslmode" in error.hint


# -- addresses --------------------------------------------------------------------------------------------------------


def test_an_address_with_several_hosts_is_read_whole() -> None:
    address = Address.parse(f"postgresql://ann:{PASSWORD}@one:5432,two:5433/db?schema=notes&pool_size=3")
    assert str(address) == "postgresql://ann@one:5432,two:5433/db?schema=notes"
    given = address.parameters()
    assert (given["host"], given["port"], given["target_session_attrs"]) == ("one,two", "5432,5433", "read-write")
    assert (address.schema, address.pool_size) == ("notes", 3)


def test_parameters_of_an_address_stand_above_our_own() -> None:
    given = Address.parse("postgresql://one,two/db?connect_timeout=3&target_session_attrs=any&options=-c%20a%3Db")
    assert given.parameters()["connect_timeout"] == "3"
    assert given.parameters()["target_session_attrs"] == "any"
    assert given.parameters()["options"] == "-c a=b"


@pytest.mark.parametrize("wrong", ["schema=", "schema=1x", "schema=pg_x", "schema=a-b", "pool_size=0", "pool_size=x"])
def test_parameters_of_our_own_are_checked(wrong: str) -> None:
    with pytest.raises(ConfigError):
        Address.parse(f"postgresql://host/db?{wrong}")


# -- backups ----------------------------------------------------------------------------------------------------------


def test_the_commands_of_the_page_bring_back_a_moment_of_the_past() -> None:
    page = (Path(__file__).parents[2] / "docs/how-to/postgresql.md").read_text(encoding="utf-8")
    section = page.partition("## Back up and restore")[2].partition("\n## ")[0]
    [settings] = re.findall(r"```ini\n(.*?)```", section, flags=re.S)
    backup, restore, *_ = re.findall(r"```bash\n(.*?)```", section, flags=re.S)
    with own_server() as server:

        def placed(commands: str) -> str:
            there = commands.replace("/var/lib/postgresql/data", str(server.folder / "data"))
            return there.replace("/backup", str(server.folder / "backup"))

        def run(commands: str) -> None:
            path = f"{server.programs}:/usr/bin:/bin"
            place = {"PGHOST": "127.0.0.1", "PGPORT": str(server.port), "PGUSER": postgres.USER, "PATH": path}
            done = subprocess.run(["sh", "-ec", placed(commands)], env=place, cwd=server.folder, capture_output=True,
                                  text=True, **server.account)  # fmt: skip
            assert done.returncode == 0, done.stderr

        run("mkdir -p /backup/wal")
        with (server.folder / "data" / "postgresql.conf").open("a", encoding="utf-8") as file:
            file.write(placed(settings))
        server.stop()
        server.start()
        address = f"{server.address}?schema=s"
        with closing(writers.opened(address)) as engine:
            kept = engine.add("Suzy drinks green tea")
            run(backup)
            also = engine.add("Suzy drinks coffee")  # in the log alone
            [(moment,)] = postgres.ask(address, "SELECT clock_timestamp()::text")
            time.sleep(0.1)
            engine.forget(kept.id, also.id)
        postgres.ask(address, "SELECT pg_switch_wal()")
        server.stop()
        run(restore.replace("2026-11-20 09:30:00+00", str(moment)))
        server.start()
        until = time.monotonic() + SECONDS
        while postgres.ask(address, "SELECT pg_is_in_recovery()") != [(False,)]:
            assert time.monotonic() < until
            time.sleep(0.1)
        with closing(writers.opened(address)) as engine:
            assert {one.id for one in engine.list()} == {kept.id, also.id}
            assert engine.add("Suzy drinks water").id
