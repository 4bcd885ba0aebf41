"""Recovery of rows from a damaged file: every row its pages still give, checked against its hashes."""

from __future__ import annotations

from contextlib import closing, suppress
from functools import cache
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple

from ...analysis.document import content_hash
from ...errors import StoreDamaged
from .database import Connection, Cursor, Row, SqlError, connect, run_script
from .doc_values import recorded
from .postings.format import TABLES
from .rows import AS_IT_SAYS, COLUMNS, HASH_LETTERS, code, row_checksum, text_embedded, to_memory, without_damage
from .schema import MIGRATIONS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ...types.memory import Memory

# Raised by reading a damaged file: column names that are no text are unknown to SQLite, and a record that claims to be
# larger than any requests more memory than there is.
UNREADABLE = (SqlError, UnicodeDecodeError, MemoryError)
_TYPES: dict[str, tuple[type, ...]] = {"TEXT": (str,), "INTEGER": (int,), "REAL": (float, int), "BLOB": (bytes,)}
_TRIED = 1_000_000  # rows that are searched by their numbers alone: some seconds
_BEYOND = 10_000  # range of rows searched after the last that was read, where the end is unknown
CHECKED_COLUMNS = [*COLUMNS, "embed_text", "embed_hash", "checksum", "number"]
_ID, _SCOPE, _PATH, _TEXT, _KIND, _HASH, _EMBEDDED, _EMBED_HASH, _CHECKSUM = map(
    CHECKED_COLUMNS.index,
    ("id", "scope", "path", "text", "kind", "content_hash", "embed_text", "embed_hash", "checksum"),
)
SCOPE_CHECKED, NUMBER_CHECKED = _SCOPE, CHECKED_COLUMNS.index("number")
# Without these, a row's identity, scope, text or succession is unknown.
_ESSENTIAL = [
    COLUMNS.index(name)
    for name in ("id", "scope", "kind", "text", "path", "content_hash", "supersedes", "superseded_by")
]
# Of columns that an earlier schema lacks.
_BLANKS = {
    "decay": "''", "recalls": "0", "expires_given": "0", "metadata": "'{}'", "subject": "''", "attribute": "''",
}  # fmt: skip


# -- memories --------------------------------------------------------------------------------------------------------


class CheckedRow(NamedTuple):
    """A checked row: its id as it can be shown, its memory if it is readable, and the code of its damage."""

    id: str
    scope: str
    path: str
    memory: Memory | None = None
    wrong: str = "unreadable"
    row: Row = ()


def memory_rows(connection: Connection) -> ReadableRows:
    """Return the rows of all memories that can be read."""
    columns = column_expressions(connection, "memories")
    read = [columns.get(column, _BLANKS.get(column, "NULL")) for column in CHECKED_COLUMNS]
    return ReadableRows(connection, "memories", read, numbered=True)


def check_row(number: int, row: Row) -> CheckedRow:
    """Check one of `memory_rows`: no damage, or "texts", "fields", "chunks", "altered" or "unreadable".

    An altered text is restored from the embedded text if that has its hash. A row without an id goes by its number.
    """
    found = CheckedRow(legible_id(row[_ID], f"row {number}"), _shown(row[_SCOPE]), _shown(row[_PATH]), row=row)
    if found.id != row[_ID]:
        return found
    whole = _without_odd_fields(row)
    if whole is not row:
        known = check_row(number, whole)
        return known if known.wrong else known._replace(wrong="fields", row=row)
    memory = _memory_in(row)
    if memory is None:
        is_text = not any(isinstance(value, bytes) for value in row[: len(COLUMNS)])
        restored = None if is_text else _restored(row)
        return found if restored is None else found._replace(memory=restored, wrong="texts")
    altered = found._replace(memory=memory, wrong="chunks" if memory.kind == "chunk" else "altered")
    if row[_CHECKSUM] is not None and row[_CHECKSUM] != row_checksum(row):
        return altered
    if _has_its_text(row):
        return altered._replace(wrong="")
    restored = _restored(row)
    return altered if restored is None else altered._replace(memory=restored, wrong="texts")


def _without_odd_fields(row: Row) -> Row:
    """Blank impossible values of a fact whose essential columns are whole; chunks have their file instead."""
    told = row[: len(COLUMNS)]
    whole = without_damage(told)
    is_known = told[_KIND] == "fact" and all(whole[place] is told[place] for place in _ESSENTIAL)
    return (*whole, *row[len(COLUMNS) :]) if whole is not told and is_known else row


def _memory_in(row: Row) -> Memory | None:
    columns = {column.name: column for column in table_columns("memories")}
    if not all(columns[name].fits(value) for name, value in zip(COLUMNS, row, strict=False)):
        return None
    try:
        return to_memory(row)
    except StoreDamaged:
        return None


def _has_its_text(row: Row) -> bool:
    """Check the content hash; without one of ours, or if it differs, the text that was embedded decides."""
    text, kept = row[_TEXT], row[_HASH]
    if not isinstance(kept, str) or len(kept) != HASH_LETTERS:
        return _embedded(row).endswith(text) or not has_sound_embedding(row)
    return content_hash(text) == kept or (has_sound_embedding(row) and _embedded(row).endswith(text))


def _restored(row: Row) -> Memory | None:
    """Return the memory with the suffix of its embedded text that has the content hash, if there is one."""
    embedded = row[_EMBEDDED]
    if not isinstance(embedded, str):
        return None
    starts = [0, *(place + 1 for place, letter in enumerate(embedded) if letter == "\n")]
    text = next((embedded[start:] for start in starts if content_hash(embedded[start:]) == row[_HASH]), None)
    return None if text is None else _memory_in((*row[:_TEXT], text, *row[_TEXT + 1 :]))


def has_sound_embedding(row: Row, is_read_today: bool = True) -> bool:
    """Check the hash of the embedded text; one by an earlier analyzer that was not stored passes."""
    if not is_read_today and row[_EMBEDDED] == AS_IT_SAYS:
        return True
    embedded = _embedded(row)
    return isinstance(embedded, str) and content_hash(embedded) == row[_EMBED_HASH]


def _embedded(row: Row) -> Any:
    return text_embedded(row[_EMBEDDED], row[: len(COLUMNS)])


def legible_id(stored: object, otherwise: str) -> str:
    """Return an id as stored if it is printable, or else the substitute."""
    return stored if isinstance(stored, str) and stored.isprintable() and stored.strip() else otherwise


def _shown(value: object) -> str:
    said = value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value if value is not None else "")
    return "".join(letter if letter.isprintable() else "\ufffd" for letter in said)


def missing_memories(connection: Connection, read: Mapping[int, str]) -> list[CheckedRow]:
    """Return the memories that only indexes and records list: their ids and source files.

    `read` holds the ids of the others by rowid.
    """
    ids = dict(select_readable(connection, "SELECT rowid, id FROM memories INDEXED BY sqlite_autoindex_memories_1"))
    by_path = "SELECT rowid, scope, path FROM memories INDEXED BY memories_by_path ORDER BY scope, path"
    places = {row: (scope, path) for row, scope, path in select_readable(connection, by_path)}
    by_number = "SELECT rowid, scope, number FROM memories INDEXED BY memories_by_number ORDER BY scope, number"
    rows = {(scope, number): row for row, scope, number in select_readable(connection, by_number)}
    sources: dict[object, dict[int, str]] = {}
    for owner, path in select_readable(connection, "SELECT scope, path FROM files"):
        if isinstance(path, str):
            sources.setdefault(owner, {})[code(f"{owner}/{path}")] = path
    known, unlisted = {*read.values(), *ids.values()}, count(-1, -1)
    for scope, first, blob in select_readable(connection, "SELECT scope, first, records FROM records"):
        for number, identity, group in recorded(blob, scope, first) if isinstance(blob, bytes) else ():
            row = rows.get((scope, number))
            if row is None and identity and identity not in known:  # no index lists it
                row = next(unlisted)
            if row is not None:
                ids.setdefault(row, identity)
                places.setdefault(row, (scope, sources.get(scope, {}).get(group, "")))
    missing = []
    for row in sorted((ids.keys() | places.keys()) - read.keys()):
        scope, path = places.get(row, ("", ""))
        missing.append(CheckedRow(legible_id(ids.get(row), f"row {row}"), _shown(scope), _shown(path)))
    return missing


# -- tables ----------------------------------------------------------------------------------------------------------


class ColumnType(NamedTuple):
    """A column of a table: the types of its values, and whether it is required."""

    name: str
    types: tuple[type, ...]
    is_needed: bool

    def fits(self, value: object) -> bool:
        """Check the type of a value against the column."""
        return isinstance(value, self.types) or (value is None and not self.is_needed)


@cache
def newest_schema() -> tuple[dict[str, tuple[ColumnType, ...]], dict[str, str]]:
    """Return the columns of every table, and the table of each named index and trigger."""
    with closing(connect(":memory:")) as connection:
        for migration in MIGRATIONS:
            run_script(connection, migration.statements)
        run_script(connection, TABLES)
        made = connection.execute("SELECT type, name, tbl_name FROM sqlite_schema WHERE name NOT LIKE 'sqlite%'")
        parts = made.fetchall()
        columns = {
            name: tuple(
                ColumnType(column, _TYPES[kind], bool(needed or key))
                for _, column, kind, needed, _, key in connection.execute(f"PRAGMA table_info({name})")
            )
            for kind, name, _ in parts
            if kind == "table"
        }
    return columns, {name: table for kind, name, table in parts if kind in ("index", "trigger")}


def table_columns(table: str) -> tuple[ColumnType, ...]:
    """Return the columns of a table in their order; later schemas only add some at the end, but for names and pages."""
    return newest_schema()[0][table]


def column_expressions(connection: Connection, table: str) -> dict[str, str]:
    """Return the SQL expression for each column of a table in a file; none if the table is missing.

    Columns are identified by position: their names are stored in the file as well, and may be damaged.
    """
    told = select_readable(connection, f"PRAGMA table_info({table})")
    return {column.name: quoted(name) for column, (_, name, *_) in zip(table_columns(table), told, strict=False)}


def quoted(name: str | bytes) -> str:
    """Quote a name for SQL; a name that is no text becomes NULL."""
    return "NULL" if isinstance(name, bytes) else '"{}"'.format(name.replace('"', '""'))


def select_readable(connection: Connection, *queries: str) -> list[tuple[Any, ...]]:
    """Return the rows of some queries, as far as they can be read."""
    found: list[tuple[Any, ...]] = []
    for query in queries:
        with suppress(*UNREADABLE):  # keep the rows read before the error
            found.extend(connection.execute(query))
    return found


class ReadableRows:
    """The readable rows of a table, as (rowid, columns …) if numbered; `is_whole` is False after damage."""

    def __init__(self, connection: Connection, table: str, columns: Sequence[str], *, numbered: bool) -> None:
        self._connection = connection
        self._table = table
        # The key by any other name than this may be damaged.
        self._columns = ["rowid", *columns] if numbered else [*columns]
        self._numbered = numbered
        self.is_whole = True

    def __iter__(self) -> Iterator[Row]:
        """Yield the rows in their order up to the damage, then those found after it."""
        return self._by_rowid() if self._numbered else self._from_both_ends()

    def _by_rowid(self) -> Iterator[Row]:
        given: set[int] = set()
        try:
            for row in self._select("ORDER BY rowid"):
                given.add(row[0])
                yield row
        except UNREADABLE:
            self.is_whole = False
            for key in self._keys(given):
                # One by one: a range also reads neighbours, which may be what is damaged.
                with suppress(*UNREADABLE):
                    yield from () if key in given else self._select("WHERE rowid = ?", key).fetchall()

    def _keys(self, given: set[int]) -> list[int]:
        """Return the possible keys of rows: those in an index, and all numbers up to the last that was given."""
        known = {key for key in self._indexed() if isinstance(key, int)}
        ends = select_readable(
            self._connection,
            f"SELECT seq FROM sqlite_sequence WHERE name = '{self._table}'",
            f"SELECT max(rowid) FROM {self._table} NOT INDEXED",
        )
        last = next((end for (end,) in ends if isinstance(end, int)), max(known | given, default=0) + _BEYOND)
        # A damaged number may be any number: the range of unlisted ones that are tried is limited.
        return sorted(known.union(range(1, min(last, len(known | given) + _TRIED) + 1)))

    def _indexed(self) -> Iterator[object]:
        """Yield the keys in the indexes of the table, each read from both of its ends."""
        for _, name, *_ in select_readable(self._connection, f"PRAGMA index_list({self._table})"):
            parts = select_readable(self._connection, f"PRAGMA index_info({quoted(name)})")
            for direction in ("", " DESC"):
                order = ", ".join(f"{quoted(column)}{direction}" for *_, column in parts)
                query = f"SELECT rowid FROM {self._table} INDEXED BY {quoted(name)} ORDER BY {order}"
                yield from (key for (key,) in select_readable(self._connection, query))

    def _from_both_ends(self) -> Iterator[Row]:
        seen: set[Row] = set()
        for direction in ("", " DESC"):
            order = ", ".join(f"{place}{direction}" for place in range(1, len(self._columns) + 1))
            try:
                for row in self._select(f"ORDER BY {order}"):
                    if not self.is_whole and row in seen:
                        return
                    seen.add(row)
                    yield row
            except UNREADABLE:
                self.is_whole = False
            else:
                return

    def _select(self, rest: str, *values: int) -> Cursor:
        columns = ", ".join(self._columns)
        return self._connection.execute(f"SELECT {columns} FROM {self._table} NOT INDEXED {rest}", values)
