"""Check and repair of a store in PostgreSQL: its memories, its index, and how the server keeps them."""

from __future__ import annotations

from collections import Counter, defaultdict
from contextlib import closing
from typing import TYPE_CHECKING, Any

from ...formatting import counted
from ..sqlite.check import IN_PLACE, Compared, Finding, Tick, check_derived, wrong_memories
from ..sqlite.database import raise_generation
from ..sqlite.metadata import miscounted
from ..sqlite.recovery import CHECKED_COLUMNS, NUMBER_CHECKED, SCOPE_CHECKED, check_row, has_sound_embedding
from ..sqlite.vectors.table import write_all_signs
from .database import STANDBYS
from .dialect import translate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from psycopg import ServerCursor

    from .connection import Connection
    from .database import PostgresDatabase

_ROWS_AT_ONCE = 1_000  # that are fetched together
_REINDEXED = frozenset({"words", "names", "embedded"})  # made anew by reading every memory again
_BLOATED_SHARE, _BLOATED_ROWS = 0.5, 10_000  # dead rows for a living one, and at least so many
_VACUUM = "`whyrank doctor --repair` runs VACUUM; leave autovacuum on, and look for transactions that stay open"
_FROM_BACKUP = "run `whyrank doctor --repair` and ingest their files again, or restore a backup of the server"
_MADE_AGAIN = "`whyrank doctor --deep --repair` makes all derived data again from the texts"
_HINTS = {
    "texts": "`whyrank doctor --repair` restores them",
    "altered": "`whyrank show ID` shows what is left; correct it with `whyrank update ID --text TEXT`",
}
_ROWS_CHECKED = f"SELECT {', '.join(CHECKED_COLUMNS)} FROM memories"
_RESTORED = "UPDATE memories SET text = ? WHERE scope = ? AND number = ?"
_FORGOTTEN = (
    "DELETE FROM files AS f WHERE EXISTS "
    "(SELECT 1 FROM memories AS m WHERE m.scope = ? AND m.number = ? AND m.scope = f.scope AND m.path = f.path)"
)
_STALE = "UPDATE scopes SET readers = NULL, changed = ?"
_RECOUNTED = (
    "UPDATE scopes AS s SET numbers = m.last + 1 FROM (SELECT scope, max(number) AS last FROM memories "
    "GROUP BY scope) AS m WHERE m.scope = s.scope AND s.numbers <= m.last"
)
_WITHOUT_NAMES = (
    "DELETE FROM names", "DELETE FROM name_words", "UPDATE scopes SET names = 0, name_words = 0",
)  # fmt: skip
_SETTINGS = (
    "SELECT name, setting FROM pg_settings WHERE name IN ('fsync', 'full_page_writes', 'synchronous_commit', "
    "'synchronous_standby_names', 'autovacuum', 'data_checksums')"
)
_TABLES = (
    "SELECT s.relname, s.n_live_tup, s.n_dead_tup, coalesce('autovacuum_enabled=false' = ANY (c.reloptions), false) "
    "FROM pg_stat_user_tables AS s JOIN pg_class AS c ON c.oid = s.relid WHERE s.schemaname = %s ORDER BY s.relname"
)


class Streamed:
    """A connection that brings the rows of whole tables a thousand at a time."""

    def __init__(self, connection: Connection) -> None:
        self.text_factory: object = str
        self._raw = connection.raw
        self._cursors: list[ServerCursor[Any]] = []

    def execute(self, statement: str, parameters: Any = ()) -> Any:
        """Run one statement that reads."""
        asked = translate(statement)
        if parameters:
            return self._raw.execute(asked.text, asked.bind(parameters))
        cursor = self._raw.cursor(f"check_{len(self._cursors)}")
        self._cursors.append(cursor)
        cursor.itersize = _ROWS_AT_ONCE
        return cursor.execute(asked.text, {})

    def foresee(self, asked: object) -> None:
        """Do nothing: each statement is sent when its rows are read."""

    def close(self) -> None:
        """Close all cursors."""
        for cursor in self._cursors:
            cursor.close()


def check_server(database: PostgresDatabase, tick: Tick) -> list[Finding]:
    """Return the findings on the memories and the index, in one snapshot, and on the settings of the server."""
    with database.reading() as (connection, *_), closing(Streamed(connection)) as streamed:
        index: Any = streamed
        return [
            *_check_memories(streamed, tick),
            *_check_counts(streamed),
            *check_derived(index, Counter(), tick),
            *_check_settings(connection),
            *_check_replicas(database),
            *_check_tables(connection, database.address.schema),
        ]


def compare_server(
    database: PostgresDatabase, tick: Tick, compare: Callable[[Any, Tick], tuple[list[Finding], Compared]]
) -> tuple[list[Finding], Compared]:
    """Derive everything again in one snapshot, as from a file; return the differences, and the amount compared."""
    with database.reading() as (connection, *_), closing(Streamed(connection)) as streamed:
        found, compared = compare(streamed, tick)
    return [one._replace(hint=_MADE_AGAIN) if one.derived else one for one in found], compared


def repair_differing(database: PostgresDatabase, found: Sequence[Finding]) -> None:
    """Prepare all derived rows to be made again, where a deep check has found some that differ from the texts."""
    if any(finding.derived for finding in found):
        database.attempt(lambda: _mark_stale(database, lacks_names=True, lacks_signs=True))


def repair_server(
    database: PostgresDatabase, found: Sequence[Finding], in_place: Callable[[PostgresDatabase], None]
) -> None:
    """Repair derived rows `in_place`, as those of a file; where words or names are damaged, mark all as stale."""
    codes = {finding.code for finding in found}
    altered = [name for finding in found for name in finding.names]
    if altered or "scopes" in codes:
        database.attempt(lambda: _restore(database, altered))
    if codes & IN_PLACE:
        database.attempt(lambda: in_place(database))
    if codes & _REINDEXED:
        database.attempt(lambda: _mark_stale(database, lacks_names="names" in codes))
    if any(finding.code == "server" and finding.hint == _VACUUM for finding in found):
        with database.connection() as connection:
            connection.raw.execute("VACUUM (ANALYZE)")


def _restore(database: PostgresDatabase, altered: Sequence[str]) -> None:
    """Restore altered texts from the texts that were embedded, and the counts of scopes from their memories.

    The file of a memory that cannot be restored is forgotten, so that the next ingest takes it for a new one.
    """
    with database.writing() as connection:
        for name in altered:
            found = connection.execute(f"{_ROWS_CHECKED} WHERE id = ?", (name,)).fetchone()
            if found is None:  # its damaged id was shown as another
                continue
            key = found[SCOPE_CHECKED], found[NUMBER_CHECKED]
            one = check_row(key[1], found)
            if one.wrong == "texts" and one.memory is not None:
                connection.execute(_RESTORED, (one.memory.text, *key))
            elif one.wrong:
                connection.execute(_FORGOTTEN, key)
        connection.execute(_RECOUNTED)
        raise_generation(connection)


def _mark_stale(database: PostgresDatabase, lacks_names: bool, lacks_signs: bool = False) -> None:
    """Mark all memories as stale, so that the reindexing which follows writes their words, names and records."""
    with database.writing() as connection:
        if lacks_signs:
            write_all_signs(connection)
        for statement in _WITHOUT_NAMES if lacks_names else ():
            connection.execute(statement)  # they come back with the memories
        connection.execute(_STALE, (raise_generation(connection),))


# -- memories ----------------------------------------------------------------------------------------------------------


def _check_memories(connection: Streamed, tick: Tick) -> Iterator[Finding]:
    """Check every memory against its hash and its checksum."""
    [[total]] = connection.execute("SELECT count(*) FROM memories")
    wrong: dict[str, list[str]] = defaultdict(list)
    stale = 0
    rows = connection.execute(f"{_ROWS_CHECKED} ORDER BY scope, number")
    for place, row in enumerate(rows):
        if place % _ROWS_AT_ONCE == 0:
            tick(place, total, "memories")
        one = check_row(row[NUMBER_CHECKED], row)
        if one.wrong:
            wrong[one.wrong].append(one.id)
        else:
            stale += not has_sound_embedding(row, is_read_today=False)
    for finding in wrong_memories({code: tuple(names) for code, names in wrong.items()}):
        is_known = finding.code in ("texts", "altered")
        yield finding._replace(hint=_HINTS.get(finding.code, _FROM_BACKUP), derived=finding.derived and is_known)
    if stale:
        texts = f"the embedded text of {counted(stale, 'memory', 'memories')}"
        yield Finding("embedded", f"{texts} differs from the text that was embedded", _HINTS["texts"])


def _check_counts(connection: Any) -> Iterator[Finding]:
    for table, gone in miscounted(connection).items():
        if gone:
            told = f"{counted(gone, 'row is', 'rows are')} missing from {table}"
            yield Finding("books", told, "restore them from a backup", derived=False)


# -- the server --------------------------------------------------------------------------------------------------------


def _check_settings(connection: Connection) -> Iterator[Finding]:
    settings = dict(connection.raw.execute(_SETTINGS).fetchall())
    [standbys] = connection.raw.execute(STANDBYS).fetchone() or (0,)
    if standbys and not settings["synchronous_standby_names"]:
        yield _warning(
            f"{counted(standbys, 'standby receives', 'standbys receive')} the changes later than they are "
            "acknowledged: acknowledged facts can be lost in a fail-over",
            "set synchronous_standby_names",
        )
    if settings["fsync"] == "off" or settings["full_page_writes"] == "off":
        yield _warning("fsync or full_page_writes is off: a power failure can destroy the database", "turn it on")
    if settings["synchronous_commit"] == "off":
        yield _warning(
            "synchronous_commit is off: acknowledged facts can be lost in a crash", "turn it on for this role"
        )
    if settings["data_checksums"] == "off":
        yield _warning(
            "data checksums are off: damage of the disk is found by `whyrank doctor` alone",
            "run `pg_checksums --enable` while the server is stopped",
        )
    if settings["autovacuum"] == "off":
        yield _warning("autovacuum is off: tables grow without end", "turn it on")


def _check_replicas(database: PostgresDatabase) -> Iterator[Finding]:
    """Yield a warning for each replica of the address that answers no search at present."""
    for one in database.replicas.describe() if database.replicas is not None else ():
        if one["state"] not in ("streaming", "primary"):
            yield _warning(f"the replica {one['host']} answers no searches ({one['state']})", one["reason"])


def _check_tables(connection: Connection, schema: str) -> Iterator[Finding]:
    for table, living, dead, is_disabled in connection.raw.execute(_TABLES, (schema,)):
        if is_disabled:
            hint = f"ALTER TABLE {schema}.{table} RESET (autovacuum_enabled)"
            yield _warning(f"autovacuum is off for the table {table}, which grows without end", hint)
        if dead > _BLOATED_ROWS and dead > _BLOATED_SHARE * living:
            yield _warning(f"the table {table} has {dead:,} dead rows beside {living:,} living ones", _VACUUM)


def _warning(told: str, hint: str) -> Finding:
    return Finding("server", told, hint, derived=False)
