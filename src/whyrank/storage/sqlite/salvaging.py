"""Reading what can be read of a damaged file: every row that its pages still give, whatever lies between them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from contextlib import suppress
from typing import Any

from .connection import Connection, Cursor, Row, SqlError
from .layout import layout

# What reading a damaged file may raise; names of columns that are no text any more are nothing SQLite knows of, and for
# a record that claims to be larger than any it lacks memory.
UNREADABLE = (SqlError, UnicodeDecodeError, MemoryError)
_TRIED = 1_000_000  # rows that are looked for by their numbers alone: some seconds
_BEYOND = 10_000  # how far behind the last row that was read others are looked for, where nothing says where they end


class Rows:
    """The rows of a table that can be read, as (key, columns …); afterwards it knows whether that was all of them."""

    def __init__(self, connection: Connection, table: str, columns: Sequence[str], *, numbered: bool) -> None:
        self._connection = connection
        self._table = table
        self._columns = columns
        self._key = "rowid" if numbered else ""  # by any other name it may be damaged; without it columns are the order
        self.is_whole = True

    def __iter__(self) -> Iterator[Row]:
        """Yield them in their order as far as it can be followed, then what is found behind the damage."""
        if self._key:
            return self._numbered()
        return self._from_both_ends()

    def _numbered(self) -> Iterator[Row]:
        given: set[int] = set()
        try:
            for row in self._select(f"ORDER BY {self._key}"):
                given.add(row[0])
                yield row
        except UNREADABLE:
            self.is_whole = False
            yield from self._looked_up([key for key in self._keys(given) if key not in given])

    def _keys(self, given: Set[int]) -> list[int]:
        """Return the keys that rows may have: those an index lists, and all numbers up to the last that was given."""
        known = {key for key in self._indexed() if isinstance(key, int)}
        ends = known_of(
            self._connection,
            f"SELECT seq FROM sqlite_sequence WHERE name = '{self._table}'",
            f"SELECT max({self._key}) FROM {self._table} NOT INDEXED",
        )
        last = next((end for (end,) in ends if isinstance(end, int)), max(known | given, default=0) + _BEYOND)
        # A number that was damaged may be any number: of those nobody knows, so many are tried.
        return sorted(known.union(range(1, min(last, len(known | given) + _TRIED) + 1)))

    def _indexed(self) -> Iterator[object]:
        """Yield the keys that indexes of the table list, each read from both of its ends."""
        for _, name, *_ in known_of(self._connection, f"PRAGMA index_list({self._table})"):
            query = f"SELECT {self._key} FROM {self._table} INDEXED BY {_quoted(name)} ORDER BY "
            columns = [
                _quoted(column) for *_, column in known_of(self._connection, f"PRAGMA index_info({_quoted(name)})")
            ]
            for direction in ("", " DESC"):
                order = ", ".join(f"{column}{direction}" for column in columns)
                yield from (key for (key,) in known_of(self._connection, query + order))

    def _looked_up(self, keys: Sequence[int]) -> Iterator[Row]:
        """Yield the rows of some keys one by one: a range also looks at neighbours, which may be what is damaged."""
        for key in keys:
            with suppress(*UNREADABLE):  # `is_whole` says so
                yield from self._select(f"WHERE {self._key} = ?", key).fetchall()

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
        columns = ", ".join([self._key, *self._columns] if self._key else self._columns)
        return self._connection.execute(f"SELECT {columns} FROM {self._table} NOT INDEXED {rest}", values)


def columns_of(connection: Connection, table: str) -> dict[str, str]:
    """Return how a file gives each column of a table that it has; none if the table is not there.

    Columns are told by their place: their names stand in the file as well, and may be damaged.
    """
    told = known_of(connection, f"PRAGMA table_info({table})")
    return {column.name: _quoted(name) for column, (_, name, *_) in zip(layout(table), told, strict=False)}


def is_as_defined(connection: Connection, table: str) -> bool:
    """Tell whether a file still says of a table what columns it has today."""
    return columns_of(connection, table) == {column.name: _quoted(column.name) for column in layout(table)}


def _quoted(name: str | bytes) -> str:
    return "NULL" if isinstance(name, bytes) else '"{}"'.format(name.replace('"', '""'))


def known_of(connection: Connection, *queries: str) -> list[tuple[Any, ...]]:
    """Return what an index says of rows, as far as it can be read."""
    found: list[tuple[Any, ...]] = []
    for query in queries:
        with suppress(*UNREADABLE):  # what was read before is what there is
            found.extend(connection.execute(query))
    return found
