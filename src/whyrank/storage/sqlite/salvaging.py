"""Reading what can be read of a damaged file: every row that its pages still give, whatever lies between them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from .connection import Connection, Row, SqlError

_BEYOND = 10_000  # how far behind the last row that was read others are looked for, where nothing says where they end


def lenient(connection: Connection) -> None:
    """Let a connection give texts that are no text any more as the bytes they are."""
    connection.text_factory = _text


def _text(stored: bytes) -> str | bytes:
    try:
        return stored.decode("utf-8")
    except UnicodeDecodeError:
        return stored


class Rows:
    """The rows of a table that can be read, as (key, columns …); afterwards it knows whether that was all of them."""

    def __init__(self, connection: Connection, table: str, columns: Sequence[str], key: str = "") -> None:
        self._connection = connection
        self._table = table
        self._columns = ", ".join(columns)
        self._key = key  # of a table that is ordered by whole numbers; without it the columns are its order
        self.is_whole = True

    def __iter__(self) -> Iterator[Row]:
        """Yield them in their order as far as it can be followed, then what is found behind the damage."""
        if self._key:
            return self._numbered()
        return self._from_both_ends()

    def _numbered(self) -> Iterator[Row]:
        last: int | None = None
        try:
            for row in self._select(f"ORDER BY {self._key}"):
                last = row[0]
                yield row
        except SqlError:
            self.is_whole = False
            first = self._end("min", 0) if last is None else last
            yield from self._between(first if last is not None else first - 1, self._end("max", first + _BEYOND))

    def _end(self, which: str, otherwise: int) -> int:
        """Return the lowest or highest key, by the table itself or by what SQLite remembers of it."""
        for query in (
            f"SELECT {which}({self._key}) FROM {self._table}",
            f"SELECT seq FROM sqlite_sequence WHERE name = '{self._table}' AND '{which}' = 'max'",
        ):
            try:
                found = self._connection.execute(query).fetchone()
            except SqlError:
                continue
            if found and found[0] is not None:
                return int(found[0])
        return otherwise

    def _between(self, after: int, last: int) -> Iterator[Row]:
        """Yield the rows behind a key up to another, halving where something cannot be read."""
        if after >= last:
            return
        try:
            yield from self._select(f"WHERE {self._key} > ? AND {self._key} <= ? ORDER BY {self._key}", after, last)
        except SqlError:
            if last - after > 1:
                middle = (after + last) // 2
                yield from self._between(after, middle)
                yield from self._between(middle, last)

    def _from_both_ends(self) -> Iterator[Row]:
        seen: set[Row] = set()
        for direction in ("", " DESC"):
            order = ", ".join(f"{place}{direction}" for place in range(1, self._columns.count(",") + 2))
            try:
                for row in self._select(f"ORDER BY {order}"):
                    if not self.is_whole and row in seen:
                        return
                    seen.add(row)
                    yield row
            except SqlError:
                self.is_whole = False
            else:
                return

    def _select(self, rest: str, *values: int) -> Iterator[Row]:
        key = f"{self._key}, " if self._key else ""
        found = self._connection.execute(f"SELECT {key}{self._columns} FROM {self._table} NOT INDEXED {rest}", values)
        # `_between` reads the same range again after an error: nothing of it may have been given out before.
        return iter(found.fetchall()) if values else found


def columns_of(connection: Connection, table: str) -> list[str]:
    """Return the columns of a table; none if it is not there."""
    try:
        return [name for _, name, *_ in connection.execute(f"PRAGMA table_info({table})")]
    except SqlError:
        return []


def known_of(connection: Connection, query: str) -> list[tuple[Any, ...]]:
    """Return what an index says of rows, as far as it can be read."""
    found: list[tuple[Any, ...]] = []
    try:
        found.extend(connection.execute(query))
    except SqlError:
        return found
    return found
