"""What the tables of today look like, so that a file whose own word for it is damaged can still be read."""

from __future__ import annotations

from contextlib import closing
from functools import cache
from typing import NamedTuple

from .connection import connect, run_script
from .migrations import MIGRATIONS

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
def layout(table: str) -> tuple[Column, ...]:
    """Return the columns of a table in their order; later schemas only add some at the end, but for names."""
    with closing(connect(":memory:")) as connection:
        for migration in MIGRATIONS:
            run_script(connection, migration.statements)
        told = connection.execute(f"PRAGMA table_info({table})").fetchall()
    return tuple(Column(name, _TYPES[kind], bool(needed or key)) for _, name, kind, needed, _, key in told)
