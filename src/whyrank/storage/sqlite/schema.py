"""Migration of a file to the newest schema: each migration once, in one transaction, after a backup."""

from __future__ import annotations

import json
import re
import zlib
from bisect import bisect_right
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ...analysis.normalize import text_key
from ...errors import SchemaTooNew, StoreDamaged, StoreError
from ...formatting import on_one_line
from ...types.memory import UNKNOWN_READER
from .copies import back_up, free_name, sweep
from .database import (
    SAVE,
    ChecksumError,
    Connection,
    Database,
    SqlError,
    add_checksum,
    check_body,
    connect,
    forgive,
    lenient,
    place_mask,
    rows_at,
    run_script,
    translated,
    untouched_address,
)
from .postings.format import Segment, masked, write_directory
from .vectors.checksums import bind_vectors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path


class Migration(NamedTuple):
    """One step of the schema."""

    version: int
    statements: str
    then: Callable[[Connection], None] = lambda connection: None  # for changes that SQL alone cannot express


def _key_facts_by_text(connection: Connection) -> None:
    facts = connection.execute("SELECT row, text FROM memories WHERE kind = 'fact'").fetchall()
    connection.executemany(
        "UPDATE memories SET text_key = ? WHERE row = ?", ((text_key(text), row) for row, text in facts)
    )


def number_pages(connection: Connection) -> None:
    """Number the pages of postings: rows of some kilobytes are found three times as fast by rowid."""
    if not _has_table(connection, "posting_pages"):
        return
    run_script(
        connection,
        """
        ALTER TABLE posting_pages RENAME TO posting_pages_before;
        CREATE TABLE posting_pages (
            number INTEGER PRIMARY KEY,
            segment INTEGER NOT NULL,
            field INTEGER NOT NULL,
            first_key INTEGER NOT NULL,
            page BLOB NOT NULL
        );
        CREATE UNIQUE INDEX posting_pages_by_key ON posting_pages (segment, field, first_key);
        INSERT INTO posting_pages (segment, field, first_key, page)
            SELECT segment, field, first_key, page FROM posting_pages_before ORDER BY segment, field, first_key;
        DROP TABLE posting_pages_before;
        """,
    )


def give_tokens_rows(connection: Connection) -> None:
    """Move tokens to rows of their own: keys over a kilobyte leave most of a page empty."""
    if not _has_table(connection, "posting_tokens"):
        return
    run_script(
        connection,
        """
        ALTER TABLE posting_tokens RENAME TO posting_tokens_before;
        CREATE TABLE posting_tokens (
            scope TEXT NOT NULL,
            number INTEGER NOT NULL,
            letters INTEGER NOT NULL,
            dates TEXT NOT NULL,
            tokens BLOB NOT NULL,
            PRIMARY KEY (scope, number)
        );
        INSERT OR IGNORE INTO posting_tokens
            SELECT scope, number, letters, dates, tokens FROM posting_tokens_before ORDER BY scope, number;
        DROP TABLE posting_tokens_before;
        """,
    )


def _has_table(connection: Connection, name: str) -> bool:
    return connection.execute("SELECT 1 FROM sqlite_schema WHERE name = ?", (name,)).fetchone() is not None


def _add_directories(connection: Connection) -> None:
    if _has_table(connection, "posting_segments"):
        connection.execute("ALTER TABLE posting_segments ADD COLUMN directory BLOB")


def key_segments_by_scope(connection: Connection) -> None:
    """Key segments and their pages by scope; pages of no segment go to a scope without a name, for the check."""
    if not _has_table(connection, "posting_segments"):
        return
    run_script(
        connection,
        """
        ALTER TABLE posting_scopes ADD COLUMN segments INTEGER NOT NULL DEFAULT 0;
        UPDATE posting_scopes SET segments =
            coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'posting_segments'), 0);

        DROP INDEX IF EXISTS posting_segments_by_scope;
        ALTER TABLE posting_segments RENAME TO posting_segments_before;
        CREATE TABLE posting_segments (
            segment INTEGER NOT NULL,
            scope TEXT NOT NULL,
            first INTEGER NOT NULL,
            last INTEGER NOT NULL,
            memories INTEGER NOT NULL,
            state INTEGER NOT NULL,
            field INTEGER NOT NULL DEFAULT 0,
            next_key INTEGER NOT NULL DEFAULT 0,
            directory BLOB,
            PRIMARY KEY (scope, segment)
        );
        INSERT OR IGNORE INTO posting_segments
            SELECT segment, scope, first, last, memories, state, field, next_key, directory
            FROM posting_segments_before ORDER BY scope, segment;
        CREATE INDEX posting_segments_by_scope ON posting_segments (scope, state, first);

        DROP INDEX IF EXISTS posting_pages_by_key;
        ALTER TABLE posting_pages RENAME TO posting_pages_before;
        CREATE TABLE posting_pages (
            scope TEXT NOT NULL,
            segment INTEGER NOT NULL,
            field INTEGER NOT NULL,
            first_key INTEGER NOT NULL,
            page BLOB NOT NULL
        );
        CREATE UNIQUE INDEX posting_pages_by_key ON posting_pages (scope, segment, field, first_key);
        INSERT OR IGNORE INTO posting_pages
            SELECT coalesce(s.scope, ''), p.segment, p.field, p.first_key, p.page
            FROM posting_pages_before AS p LEFT JOIN posting_segments_before AS s ON s.segment = p.segment
            ORDER BY p.number;
        DROP TABLE posting_segments_before;
        DROP TABLE posting_pages_before;
        """,
    )
    list_pages(connection)


def list_pages(connection: Connection) -> None:
    """Write the list of pages of every segment that lacks one, by which a lost page is detected.

    A page without a segment may be one of theirs: then they get a list that is not believed, and are built anew.
    """
    if connection.execute("SELECT 1 FROM posting_pages WHERE scope = ''").fetchone() is not None:
        connection.execute("UPDATE posting_segments SET directory = x'00' WHERE directory IS NULL")
    columns = "scope, segment, first, last, memories FROM posting_segments WHERE directory IS NULL"
    for found in connection.execute(f"SELECT {columns}").fetchall():
        segment = Segment(*found)
        if segment.is_possible and isinstance(segment.scope, str):
            write_directory(connection, segment)


def _brought_to_3(connection: Connection) -> None:
    _key_facts_by_text(connection)
    number_pages(connection)


_EARLIER_RECORD = 93  # bytes, of which the first eight are a number over all scopes
_ROW_BYTES = 8
_MOVED_AT_ONCE = 1_000


def _key_file_by_scope(connection: Connection) -> None:
    key_by_scope(connection, has_tokens=_has_table(connection, "posting_tokens"))
    key_segments_by_scope(connection)


def key_by_scope(connection: Connection, *, has_tokens: bool = True) -> None:
    """Key records, tokens, vectors and analyzer versions by scope and number, where they had a number over all scopes.

    What fails its checksum goes on failing it.
    """
    for scope, first, blob in connection.execute("SELECT scope, first, records FROM records").fetchall():
        try:
            body = np.frombuffer(check_body(blob, scope, first), np.uint8).reshape(-1, _EARLIER_RECORD)
        except (ChecksumError, ValueError):
            continue
        connection.execute(
            "UPDATE records SET records = ? WHERE scope = ? AND first = ?",
            (add_checksum(body[:, _ROW_BYTES:].tobytes(), scope, first), scope, first),
        )
    memories = connection.execute(
        "SELECT scope, number, row FROM memories WHERE typeof(scope) = 'text' AND typeof(number) = 'integer' "
        "ORDER BY row"
    ).fetchall()
    if has_tokens:
        _bind_tokens(connection, memories)
    _divide_readers(connection, memories)
    bind_vectors(connection)


def _bind_tokens(connection: Connection, memories: Sequence[tuple[str, int, int]]) -> None:
    """Bind the checksums of tokens, which held their rows or nothing, to scope and number."""
    for begin in range(0, len(memories), _MOVED_AT_ONCE):
        part = {(scope, number): row for scope, number, row in memories[begin : begin + _MOVED_AT_ONCE]}
        stored = rows_at(connection, "SELECT tokens, scope, number FROM posting_tokens", part)
        connection.executemany(
            "UPDATE posting_tokens SET tokens = ? WHERE scope = ? AND number = ?",
            [(_bound(blob, part[scope, number], scope, number), scope, number) for blob, scope, number in stored],
        )


def _bound(blob: object, row: int, scope: str, number: int) -> object:
    if not isinstance(blob, bytes):
        return blob
    try:
        zlib.decompress(blob)
    except zlib.error:
        return masked(blob, zlib.crc32(row.to_bytes(_ROW_BYTES, "big", signed=True)) ^ place_mask(scope, number))
    return masked(blob, place_mask(scope, number))


def _divide_readers(connection: Connection, memories: Sequence[tuple[str, int, int]]) -> None:
    """Give each scope its ranges of analyzer versions, which were ranges of rows."""
    known = connection.execute("SELECT value FROM meta WHERE key = 'readers'").fetchone()
    try:
        starts, readers = zip(*json.loads(known[0] if known else "[]"), strict=True)
        ranges: dict[str, list[tuple[int, int]]] = {}
        for scope, number, row in memories:  # in the order of their numbers in each scope
            place, own = bisect_right(starts, row) - 1, ranges.setdefault(scope, [])
            reader = readers[place] if place >= 0 else UNKNOWN_READER
            if not own or own[-1][1] != reader:
                own.append((number if own else 0, reader))
    except (ValueError, TypeError):
        ranges = {}  # unknown versions
    connection.executemany(
        "UPDATE scopes SET readers = ? WHERE scope = ?", [(json.dumps(own), scope) for scope, own in ranges.items()]
    )
    connection.execute("DELETE FROM meta WHERE key = 'readers'")


_CHECKED_BY_6 = (
    "id", "scope", "kind", "text", "name", "title", "slug", "owner", "aliases", "summary", "headings", "path",
    "start_line", "end_line", "content_hash", "category", "tags", "entities", "importance", "created", "date",
    "evergreen", "valid_from", "valid_until", "expires", "supersedes", "superseded_by", "superseded_at", "trust",
    "session", "speaker", "position", "decay", "expires_given",
)  # fmt: skip
MIGRATIONS: tuple[Migration, ...] = (
    Migration(
        2,
        """
        CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
        INSERT INTO meta VALUES ('generation', '0');

        CREATE TABLE scopes (
            scope TEXT PRIMARY KEY,
            numbers INTEGER NOT NULL,
            changed INTEGER NOT NULL,
            epoch INTEGER NOT NULL
        ) WITHOUT ROWID;
        CREATE TABLE records (
            scope TEXT NOT NULL,
            first INTEGER NOT NULL,
            changed INTEGER NOT NULL,
            records BLOB NOT NULL,
            PRIMARY KEY (scope, first)
        ) WITHOUT ROWID;
        CREATE INDEX records_by_change ON records (scope, changed);

        CREATE TABLE memories (
            row INTEGER PRIMARY KEY AUTOINCREMENT,
            id TEXT NOT NULL UNIQUE,
            scope TEXT NOT NULL,
            number INTEGER NOT NULL,
            kind TEXT NOT NULL,
            text TEXT NOT NULL,
            name TEXT NOT NULL,
            title TEXT NOT NULL,
            slug TEXT NOT NULL,
            owner TEXT NOT NULL,
            aliases TEXT NOT NULL,
            summary TEXT NOT NULL,
            headings TEXT NOT NULL,
            path TEXT NOT NULL,
            start_line INTEGER NOT NULL,
            end_line INTEGER NOT NULL,
            content_hash TEXT NOT NULL,
            category TEXT NOT NULL,
            tags TEXT NOT NULL,
            entities TEXT NOT NULL,
            importance INTEGER,
            created REAL NOT NULL,
            date REAL,
            evergreen INTEGER NOT NULL,
            valid_from REAL,
            valid_until REAL,
            expires REAL,
            supersedes TEXT,
            superseded_by TEXT,
            superseded_at REAL,
            trust TEXT NOT NULL,
            session TEXT NOT NULL,
            speaker TEXT NOT NULL,
            position INTEGER NOT NULL,
            letters INTEGER NOT NULL,
            dates TEXT NOT NULL,
            grouping TEXT NOT NULL,
            length INTEGER NOT NULL,
            embed_text TEXT NOT NULL,
            embed_hash TEXT NOT NULL
        );
        CREATE UNIQUE INDEX memories_by_number ON memories (scope, number);
        CREATE INDEX memories_by_path ON memories (scope, path);
        CREATE INDEX memories_by_embedding ON memories (embed_hash);
        CREATE INDEX memories_by_predecessor ON memories (supersedes) WHERE supersedes IS NOT NULL;
        CREATE INDEX memories_by_successor ON memories (superseded_by) WHERE superseded_by IS NOT NULL;
        CREATE INDEX memories_superseded ON memories (scope, number) WHERE superseded_by IS NOT NULL;
        CREATE INDEX memories_timed ON memories (scope, number)
            WHERE expires IS NOT NULL OR valid_from IS NOT NULL OR valid_until IS NOT NULL;

        CREATE TABLE files (
            scope TEXT NOT NULL,
            path TEXT NOT NULL,
            size INTEGER NOT NULL,
            mtime_ns INTEGER NOT NULL,
            content_hash TEXT NOT NULL,
            PRIMARY KEY (scope, path)
        ) WITHOUT ROWID;

        CREATE TABLE names (
            entry INTEGER PRIMARY KEY AUTOINCREMENT,
            memory INTEGER NOT NULL REFERENCES memories (row) ON DELETE CASCADE,
            scope TEXT NOT NULL,
            text TEXT NOT NULL,
            key TEXT NOT NULL,
            words TEXT NOT NULL,
            sorted_words TEXT NOT NULL,
            specificity INTEGER NOT NULL
        );
        CREATE INDEX names_by_memory ON names (memory);
        CREATE INDEX names_by_key ON names (scope, key, memory);
        CREATE INDEX names_by_words ON names (scope, sorted_words, memory);
        CREATE INDEX names_by_entry ON names (scope, entry);

        CREATE TABLE name_words (
            scope TEXT NOT NULL,
            word TEXT NOT NULL,
            memory INTEGER NOT NULL REFERENCES memories (row) ON DELETE CASCADE,
            PRIMARY KEY (scope, word, memory)
        ) WITHOUT ROWID;
        CREATE INDEX name_words_by_memory ON name_words (memory);

        CREATE TABLE vectors (
            entry INTEGER PRIMARY KEY AUTOINCREMENT,
            space TEXT NOT NULL,
            hash TEXT NOT NULL,
            checksum INTEGER NOT NULL,
            vector BLOB NOT NULL,
            UNIQUE (hash, space)
        );
        CREATE TABLE sign_blocks (
            space TEXT NOT NULL,
            scope TEXT NOT NULL,
            first INTEGER NOT NULL,
            entries BLOB NOT NULL,
            signs BLOB NOT NULL,
            PRIMARY KEY (space, scope, first)
        ) WITHOUT ROWID;
        """,
    ),
    Migration(
        3,
        """
        ALTER TABLE memories ADD COLUMN decay TEXT NOT NULL DEFAULT '';
        ALTER TABLE memories ADD COLUMN recalls INTEGER NOT NULL DEFAULT 0;
        ALTER TABLE memories ADD COLUMN recalled REAL;
        ALTER TABLE memories ADD COLUMN expires_given INTEGER NOT NULL DEFAULT 0;
        ALTER TABLE memories ADD COLUMN text_key TEXT NOT NULL DEFAULT '';
        CREATE INDEX memories_by_text ON memories (scope, text_key) WHERE text_key <> '';

        CREATE TABLE history (
            entry INTEGER PRIMARY KEY AUTOINCREMENT,
            memory TEXT NOT NULL,
            changed REAL NOT NULL,
            was TEXT NOT NULL
        );
        CREATE INDEX history_by_memory ON history (memory);

        CREATE TABLE write_keys (
            scope TEXT NOT NULL,
            key TEXT NOT NULL,
            memory TEXT NOT NULL,
            content TEXT NOT NULL,
            PRIMARY KEY (scope, key)
        ) WITHOUT ROWID;
        CREATE INDEX write_keys_by_memory ON write_keys (memory);

        CREATE TABLE embedding_failures (
            space TEXT NOT NULL,
            hash TEXT NOT NULL,
            attempts INTEGER NOT NULL,
            error TEXT NOT NULL,
            failed REAL NOT NULL,
            next_try REAL NOT NULL,
            PRIMARY KEY (space, hash)
        ) WITHOUT ROWID;
        """,
        _brought_to_3,
    ),
    Migration(
        4,
        """
        CREATE TABLE arrivals (
            entry INTEGER PRIMARY KEY,
            id TEXT NOT NULL UNIQUE,
            scope TEXT NOT NULL,
            text_key TEXT NOT NULL,
            text TEXT NOT NULL,
            content_hash TEXT NOT NULL,
            created REAL NOT NULL,
            date REAL,
            rest TEXT NOT NULL,
            language TEXT NOT NULL,
            space TEXT NOT NULL,
            vector BLOB,
            UNIQUE (scope, text_key)
        );
        """,
    ),
    # Every index of a table is written for each of its rows: only indexes that some query uses are kept.
    Migration(
        5,
        """
        DROP INDEX IF EXISTS names_by_memory;
        DROP INDEX IF EXISTS names_by_key;
        DROP INDEX IF EXISTS names_by_words;
        DROP INDEX IF EXISTS names_by_entry;
        ALTER TABLE names RENAME TO names_before;
        CREATE TABLE names (
            memory INTEGER NOT NULL REFERENCES memories (row) ON DELETE CASCADE,
            place INTEGER NOT NULL,
            scope TEXT NOT NULL,
            text TEXT NOT NULL,
            key TEXT NOT NULL,
            words TEXT NOT NULL,
            sorted_words TEXT NOT NULL,
            specificity INTEGER NOT NULL,
            PRIMARY KEY (memory, place)
        ) WITHOUT ROWID;
        INSERT OR IGNORE INTO names
            SELECT memory, row_number() OVER (PARTITION BY memory ORDER BY entry) - 1,
                scope, text, key, words, sorted_words, specificity
            FROM names_before WHERE memory IN (SELECT row FROM memories);
        DROP TABLE names_before;
        CREATE INDEX names_by_key ON names (scope, key);
        CREATE INDEX names_by_words ON names (scope, sorted_words);

        DROP INDEX IF EXISTS name_words_by_memory;
        ALTER TABLE name_words RENAME TO name_words_before;
        CREATE TABLE name_words (
            scope TEXT NOT NULL,
            word TEXT NOT NULL,
            memory INTEGER NOT NULL,
            PRIMARY KEY (scope, word, memory)
        ) WITHOUT ROWID;
        INSERT OR IGNORE INTO name_words
            SELECT scope, word, memory FROM name_words_before WHERE memory IN (SELECT row FROM memories);
        DROP TABLE name_words_before;
        """,
        give_tokens_rows,
    ),
    # Losses are detected: a scope counts its names, a segment lists its pages, a memory has a checksum. All are NULL
    # where they were never counted; a change of a memory clears its checksum, and the next write computes it again.
    Migration(
        6,
        f"""
        ALTER TABLE memories ADD COLUMN checksum INTEGER;
        CREATE INDEX memories_unchecked ON memories (row) WHERE checksum IS NULL;
        CREATE TRIGGER memories_changed AFTER UPDATE OF {", ".join(_CHECKED_BY_6)} ON memories
            WHEN new.checksum IS old.checksum
            BEGIN UPDATE memories SET checksum = NULL WHERE row = new.row; END;
        ALTER TABLE scopes ADD COLUMN names INTEGER;
        ALTER TABLE scopes ADD COLUMN name_words INTEGER;
        UPDATE scopes SET names = (SELECT count(*) FROM names AS n WHERE n.scope = scopes.scope),
            name_words = (SELECT count(*) FROM name_words AS n WHERE n.scope = scopes.scope);
        INSERT OR REPLACE INTO meta
            SELECT 'rows of history', CAST(count(*) AS TEXT) FROM history
            UNION ALL SELECT 'rows of write_keys', CAST(count(*) AS TEXT) FROM write_keys
            UNION ALL SELECT 'rows of meta', CAST(count(*) AS TEXT) FROM meta WHERE key >= 'note:' AND key < 'note;';
        """,
        _add_directories,
    ),
    # Metadata, and the key of a fact. A checksum covers them where they hold something, so that stored ones stay valid.
    Migration(
        7,
        f"""
        ALTER TABLE memories ADD COLUMN metadata TEXT NOT NULL DEFAULT '{{}}';
        ALTER TABLE memories ADD COLUMN subject TEXT NOT NULL DEFAULT '';
        ALTER TABLE memories ADD COLUMN attribute TEXT NOT NULL DEFAULT '';
        DROP TRIGGER IF EXISTS memories_changed;
        CREATE TRIGGER memories_changed
            AFTER UPDATE OF {", ".join(_CHECKED_BY_6)}, metadata, subject, attribute ON memories
            WHEN new.checksum IS old.checksum
            BEGIN UPDATE memories SET checksum = NULL WHERE row = new.row; END;
        """,
    ),
    # The key of a memory is its scope and its number there; `row` remains for FTS5, and for files that are damaged. A
    # vector belongs to a memory: scopes that have the same text do not share it. A segment belongs to its scope.
    Migration(
        8,
        """
        ALTER TABLE scopes ADD COLUMN readers TEXT;
        ALTER TABLE history ADD COLUMN scope TEXT NOT NULL DEFAULT '';
        UPDATE history SET scope = coalesce((SELECT m.scope FROM memories AS m WHERE m.id = history.memory), '');
        DROP INDEX IF EXISTS memories_unchecked;
        CREATE INDEX memories_unchecked ON memories (scope, number) WHERE checksum IS NULL;

        ALTER TABLE names RENAME TO names_before;
        CREATE TABLE names (
            scope TEXT NOT NULL,
            number INTEGER NOT NULL,
            place INTEGER NOT NULL,
            text TEXT NOT NULL,
            key TEXT NOT NULL,
            words TEXT NOT NULL,
            sorted_words TEXT NOT NULL,
            specificity INTEGER NOT NULL,
            PRIMARY KEY (scope, number, place)
        ) WITHOUT ROWID;
        INSERT OR IGNORE INTO names
            SELECT m.scope, m.number, n.place, n.text, n.key, n.words, n.sorted_words, n.specificity
            FROM memories AS m JOIN names_before AS n ON n.memory = m.row WHERE typeof(m.number) = 'integer';
        UPDATE scopes SET names = names - (SELECT count(*) FROM names_before AS n
            WHERE n.scope = scopes.scope AND n.memory NOT IN (SELECT row FROM memories));
        DROP TABLE names_before;
        CREATE INDEX names_by_key ON names (scope, key);
        CREATE INDEX names_by_words ON names (scope, sorted_words);

        ALTER TABLE name_words RENAME TO name_words_before;
        CREATE TABLE name_words (
            scope TEXT NOT NULL,
            word TEXT NOT NULL,
            number INTEGER NOT NULL,
            PRIMARY KEY (scope, word, number)
        ) WITHOUT ROWID;
        INSERT OR IGNORE INTO name_words SELECT m.scope, n.word, m.number
            FROM name_words_before AS n JOIN memories AS m ON m.row = n.memory WHERE typeof(m.number) = 'integer';
        UPDATE scopes SET name_words = name_words - (SELECT count(*) FROM name_words_before AS n
            WHERE n.scope = scopes.scope AND n.memory NOT IN (SELECT row FROM memories));
        DROP TABLE name_words_before;

        UPDATE meta SET value = coalesce((SELECT json_group_object(scope, last) FROM (SELECT scope, max(number) AS last
            FROM memories WHERE row <= CAST(meta.value AS INTEGER) GROUP BY scope)), '{}') WHERE key = 'keyword-moved';
        DELETE FROM meta WHERE key = 'restored';

        ALTER TABLE vectors RENAME TO vectors_before;
        CREATE TABLE vectors (
            entry INTEGER PRIMARY KEY AUTOINCREMENT,
            space TEXT NOT NULL,
            hash TEXT NOT NULL,
            checksum INTEGER NOT NULL,
            vector BLOB NOT NULL,
            scope TEXT NOT NULL,
            number INTEGER NOT NULL
        );
        INSERT INTO vectors (space, hash, checksum, vector, scope, number)
            SELECT v.space, v.hash, v.checksum, v.vector, m.scope, m.number
            FROM memories AS m JOIN vectors_before AS v ON v.hash = m.embed_hash
            WHERE typeof(m.scope) = 'text' AND typeof(m.number) = 'integer' ORDER BY m.scope, v.space, m.number;
        DROP TABLE vectors_before;
        CREATE UNIQUE INDEX vectors_by_number ON vectors (scope, space, number);

        DROP TABLE sign_blocks;
        CREATE TABLE sign_blocks (
            scope TEXT NOT NULL,
            space TEXT NOT NULL,
            first INTEGER NOT NULL,
            present BLOB NOT NULL,
            signs BLOB NOT NULL,
            PRIMARY KEY (scope, space, first)
        ) WITHOUT ROWID;
        INSERT OR REPLACE INTO meta VALUES ('signs due', '1');
        """,
        _key_file_by_scope,
    ),
)


APPLICATION_ID = 0x57687952  # "WhyR": distinguishes our files from other SQLite databases
PUT_RIGHT = "`whyrank doctor --repair` repairs this"
_PLAUSIBLE = 1_000  # of schema numbers: a higher one was damaged
_CREATED = re.compile(r"CREATE TABLE (\w+)")
# Evidence of a migration in the statement that made a table, the newest first.
_MARKS = (
    (8, "sign_blocks", "present"),
    (7, "memories", "metadata"),
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
        log.warning("%s was migrated from schema %d to %d; the old file is kept in %s", path, version, newest, kept)


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
            return "is not marked as a whyrank store, but has the tables of one"
        return f"is marked as schema {self.version}, but has the tables of schema {self.shown}"


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
