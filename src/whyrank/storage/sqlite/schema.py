"""Migration of a file to the newest schema: each migration once, in one transaction, after a backup."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import NamedTuple

from ...errors import SchemaTooNew, StoreDamaged, StoreError
from ...formatting import on_one_line
from .connection import SAVE, Connection, SqlError, connect, forgive, lenient, run_script, translated, untouched_address
from .copies import back_up, free_name, sweep
from .database import Database
from .migrations import MIGRATIONS, Migration

APPLICATION_ID = 0x57687952  # "WhyR": distinguishes our files from other SQLite databases
PUT_RIGHT = "`whyrank doctor --repair` puts that right"
_PLAUSIBLE = 1_000  # of schema numbers: a higher one was damaged
_CREATED = re.compile(r"CREATE TABLE (\w+)")
# Evidence of a migration in the statement that made a table, the newest first.
_MARKS = (
    (6, "scopes", "name_words"),
    (5, "names", "place"),
    (4, "arrivals", ""),
    (3, "history", ""),
    (2, "memories", ""),
)


def prepare(database: Database, migrations: Sequence[Migration] = MIGRATIONS, *, keep: bool = True) -> None:
    """Migrate a file to the newest schema; refuse a newer or foreign file without touching it.

    The file as it was is kept beside it, unless it is a copy itself.
    """
    found, newest = version_of(database, migrations), migrations[-1].version
    if found == newest:
        return
    with _kept_if_done(database, newest) as copy, database.writing() as connection:
        # Another process may have migrated between our check and our lock.
        current = connection.execute("PRAGMA user_version").fetchone()[0]
        if keep and 0 < current < newest:
            copy(current)
        for migration in migrations:
            if migration.version > current:
                run_script(connection, migration.statements)
                migration.then(connection)
        connection.execute(f"PRAGMA application_id={APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version={newest}")


@contextmanager
def _kept_if_done(database: Database, newest: int) -> Iterator[Callable[[int], None]]:
    """Yield a function that copies the file; the copy is kept and logged if the block succeeds."""
    copies: list[tuple[Path, int]] = []

    def copy(version: int) -> None:
        sweep(database.path.with_name(f"{database.path.name}.schema"))  # no other upgrade runs: we have the lock
        place = free_name(database.path, f"schema{version}")
        back_up(database.reader(), place)
        copies.append((place, version))

    try:
        yield copy
    except BaseException:
        for place, _ in copies:
            place.unlink(missing_ok=True)  # the upgrade failed, so the copy has no use
        raise
    for place, version in copies:
        import logging  # imported late: seldom needed

        path, kept = on_one_line(str(database.path)), on_one_line(str(place))
        log = logging.getLogger(__name__)
        log.warning("%s was brought from schema %d to %d; as it was it is kept in %s", path, version, newest, kept)


def version_of(database: Database, migrations: Sequence[Migration] = MIGRATIONS) -> int:
    """Return the schema of a file; refuse a newer, too old, damaged or foreign file without touching it.

    For a database that forgives damage it is the schema of its tables, whatever number the header has.
    """
    found, newest = _look(database), migrations[-1].version
    if not found.tables and not found.version and found.is_readable:
        return 0
    if found.application != APPLICATION_ID and not (found.is_known or not found.is_readable):
        raise StoreDamaged(
            f"{database.path} is a SQLite database, but not a whyrank store", "name another file with --store"
        )
    if newest < found.version <= _PLAUSIBLE:
        raise SchemaTooNew(
            f"{database.path} has schema {found.version}; this whyrank knows up to {newest}",
            "upgrade whyrank to open it",
        )
    if 0 < found.version < migrations[0].version and not found.shown:
        raise StoreError(
            f"{database.path} has schema {found.version}, from before the first release of whyrank",
            "move it away and ingest its files again",
        )
    if database.forgiving:
        return found.version if found.is_true else found.shown or newest
    if not found.is_true:
        raise StoreDamaged(f"{database.path} {found.told}", PUT_RIGHT)
    missing = sorted(_tables_of(found.version, migrations) - found.tables.keys())
    if missing:
        raise StoreDamaged(f"{database.path} has lost tables: {', '.join(missing)}", SAVE)
    return found.version


def misstated(database: Database) -> str:
    """Return the error in a file's header, in the words of a finding; empty if there is none."""
    found = _look(database)
    return "" if found.is_true or not found.shown else f"the file {found.told}"


def restate(database: Database) -> None:
    """Set a file's header to the schema of its tables, and to our application id."""
    version = _look(database).shown
    with database.alone() as connection:
        connection.execute(f"PRAGMA application_id={APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version={version}")


def check_file(path: Path) -> None:
    """Refuse a file that is no store, or a newer one, without touching it."""
    version_of(Database(path))


class _Look(NamedTuple):
    """Header and schema of a file: version, application id, and the statements that made its tables."""

    version: int
    application: int
    tables: Mapping[str, str]
    is_readable: bool

    @property
    def shown(self) -> int:
        """Return the newest schema that the tables give evidence of; 0 for none."""
        marked = (version for version, table, mark in _MARKS if table in self.tables and mark in self.tables[table])
        return next(marked, 0)

    @property
    def is_known(self) -> bool:
        """Return whether the file has all tables of the schema they give evidence of."""
        return bool(self.shown) and _tables_of(self.shown, MIGRATIONS) <= self.tables.keys()

    @property
    def is_true(self) -> bool:
        """Check the header against the tables; a file without some may be of a later schema than they show."""
        if not self.is_readable:
            return True
        is_possible = max(self.shown, MIGRATIONS[0].version) <= self.version <= _PLAUSIBLE
        is_earlier = self.shown < self.version <= MIGRATIONS[-1].version and self.is_known
        return self.application == APPLICATION_ID and is_possible and not is_earlier

    @property
    def told(self) -> str:
        """Return the error of the header."""
        if self.application != APPLICATION_ID:
            return "does not say that it is a whyrank store, and has the tables of one"
        return f"says that it has schema {self.version}, and has the tables of schema {self.shown}"


@cache
def _tables_of(version: int, migrations: Sequence[Migration]) -> frozenset[str]:
    """Return the tables that the migrations up to a version have made."""
    return frozenset(
        table
        for migration in migrations
        if migration.version <= version
        for table in _CREATED.findall(migration.statements)
    )


def _look(database: Database) -> _Look:
    """Read header and schema without ever writing, not even on closing: the file may be foreign."""
    if not database.path.exists():
        return _Look(0, 0, {}, is_readable=True)
    with translated(database.path):
        connection = connect(untouched_address(database.path), uri=True)
        try:
            if database.forgiving:
                forgive(connection)
            version: int = connection.execute("PRAGMA user_version").fetchone()[0]
            application: int = connection.execute("PRAGMA application_id").fetchone()[0]
            tables = _tables(connection, database.forgiving)
        finally:
            connection.close()
    return _Look(version, application, tables or {}, is_readable=tables is not None)


def _tables(connection: Connection, forgiving: bool) -> dict[str, str] | None:
    """Return the statements of a file that made its tables; None if they cannot be read."""
    try:
        lenient(connection)
        made = connection.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'table'").fetchall()
    except SqlError:
        if not forgiving:
            raise
        return None
    return {name: sql for name, sql in made if isinstance(name, str) and isinstance(sql, str)}
