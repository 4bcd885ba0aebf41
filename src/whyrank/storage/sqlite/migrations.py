"""Database schema as numbered migrations."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ...analysis.normalize import text_key
from .connection import Connection, run_script
from .postings.directory import Segment, write_directory


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
    """Give pages of postings numbers: rows of some kilobytes are found three times as fast by one of their own."""
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
    """Give tokens rows of their own: a key that holds more than a kilobyte leaves most of a page empty behind it."""
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


def list_pages(connection: Connection) -> None:
    """Write the list of pages of every segment, by which a lost page is detected."""
    if not _has_table(connection, "posting_segments"):
        return
    connection.execute("ALTER TABLE posting_segments ADD COLUMN directory BLOB")
    columns = "segment, first, last, memories, scope FROM posting_segments"
    for *numbers, scope in connection.execute(f"SELECT {columns}").fetchall():
        segment = Segment(*numbers)
        if segment.is_possible and isinstance(scope, str):
            write_directory(connection, scope, segment)


def _brought_to_3(connection: Connection) -> None:
    _key_facts_by_text(connection)
    number_pages(connection)


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
        list_pages,
    ),
)
