"""Bringing a file to the newest schema: each migration once, in one transaction, after a backup of what was there."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from ...errors import SchemaTooNew, StoreDamaged, StoreError
from ...wording import on_one_line
from .connection import Connection, SqlError, connect, forgive, run_script, translated, untouched_address
from .copying import back_up, free_name, sweep
from .database import Database
from .migrations import MIGRATIONS, Migration

APPLICATION_ID = 0x57687952  # "WhyR": tells our files from other people's databases


def prepare(database: Database, migrations: Sequence[Migration] = MIGRATIONS, *, keep: bool = True) -> None:
    """Bring a file to the newest schema; refuse what is newer, or not ours, without touching it.

    The file as it was is kept beside it, unless it is a copy itself.
    """
    found, newest = version_of(database, migrations), migrations[-1].version
    if found == newest:
        return
    with _kept_if_done(database, newest) as copy, database.writing() as connection:
        # Another process may have migrated between our look and our lock.
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
    """Give what lays a copy of a file beside it; it is kept, and told of, if all that follows is done."""
    copies: list[tuple[Path, int]] = []

    def copy(version: int) -> None:
        sweep(database.path.with_name(f"{database.path.name}.schema"))  # nobody else upgrades: we have the lock
        place = free_name(database.path, f"schema{version}")
        back_up(database.reader(), place)
        copies.append((place, version))

    try:
        yield copy
    except BaseException:
        for place, _ in copies:
            place.unlink(missing_ok=True)  # of what was not done it would only lie about
        raise
    for place, version in copies:
        import logging  # seldom is there anything to say

        path, kept = on_one_line(str(database.path)), on_one_line(str(place))
        log = logging.getLogger(__name__)
        log.warning("%s was brought from schema %d to %d; as it was it is kept in %s", path, version, newest, kept)


def version_of(database: Database, migrations: Sequence[Migration] = MIGRATIONS) -> int:
    """Return the schema of a file; one that is newer, too old, or not ours is refused without touching it."""
    found = _version(database)
    newest = migrations[-1].version
    if found > newest:
        raise SchemaTooNew(
            f"{database.path} has schema {found}; this whyrank knows up to {newest}", "upgrade whyrank to open it"
        )
    if 0 < found < migrations[0].version:
        raise StoreError(
            f"{database.path} has schema {found}, from before the first release of whyrank",
            "move it away and ingest its files again",
        )
    return found


def check_file(path: Path) -> None:
    """Refuse a file that is no store, or a newer one, without touching it."""
    version_of(Database(path))


def _version(database: Database) -> int:
    """Look at a file through a connection that cannot write, not even on closing: it may be somebody else's."""
    if not database.path.exists():
        return 0
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
    if application != APPLICATION_ID and (tables or version):
        raise StoreDamaged(
            f"{database.path} is a SQLite database, but not a whyrank store", "name another file with --store"
        )
    return version


def _tables(connection: Connection, forgiving: bool) -> int:
    """Count what a file says it holds; one that cannot say it any more holds something."""
    try:
        return int(connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0])
    except SqlError:
        if not forgiving:
            raise
        return 1
