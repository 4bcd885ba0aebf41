"""What the tables of today look like, so that a file whose own word for it is damaged can still be read."""

from __future__ import annotations

from contextlib import closing
from functools import cache
from typing import NamedTuple

from .connection import connect, run_script
from .migrations import MIGRATIONS
from .postings.segments import TABLE_NAMES, TABLES

_TYPES: dict[str, tuple[type, ...]] = {"TEXT": (str,), "INTEGER": (int,), "REAL": (float, int), "BLOB": (bytes,)}


class Column(NamedTuple):
    """A column of a table: the types its values have, and whether it always has one."""

    name: str
    types: tuple[type, ...]
    is_needed: bool

    def fits(self, value: object) -> bool:
        """Tell whether a value can stand here."""
        return isinstance(value, self.types) or (value is None and not self.is_needed)


@cache
def _today() -> tuple[dict[str, tuple[Column, ...]], dict[str, str]]:
    """Return the columns of the tables of today, and the table of each index and trigger that was given a name."""
    with closing(connect(":memory:")) as connection:
        for migration in MIGRATIONS:
            run_script(connection, migration.statements)
        run_script(connection, TABLES)
        made = connection.execute("SELECT type, name, tbl_name FROM sqlite_schema WHERE name NOT LIKE 'sqlite%'")
        named = made.fetchall()
        columns = {
            name: tuple(
                Column(column, _TYPES[kind], bool(needed or key))
                for _, column, kind, needed, _, key in connection.execute(f"PRAGMA table_info({name})")
            )
            for kind, name, _ in named
            if kind == "table"
        }
    return columns, {name: table for kind, name, table in named if kind in ("index", "trigger")}


def layout(table: str) -> tuple[Column, ...]:
    """Return the columns of a table in their order; later schemas only add some at the end, but for names."""
    return _today()[0][table]


def tables(*, with_postings: bool) -> list[str]:
    """Return the names of the tables, with those of the keyword index on postings or without."""
    return [name for name in _today()[0] if with_postings or name not in TABLE_NAMES]


def indexes(*, with_postings: bool) -> dict[str, str]:
    """Return the table of each index, and of each trigger."""
    return {name: table for name, table in _today()[1].items() if with_postings or table not in TABLE_NAMES}
