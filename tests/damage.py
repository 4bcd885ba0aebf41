"""Damage done to files of stores on purpose: bytes flipped, pages zeroed, ends cut off."""

from __future__ import annotations

import random
from contextlib import closing
from typing import TYPE_CHECKING

from whyrank.storage.sqlite.database import Row, connect

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PAGE_BYTES = 4_096
_INTERIOR = (2, 5)  # the types of b-tree pages that point to others
_HEADER_BYTES = 12  # of such a page
_FILE_HEADER_BYTES = 100  # in front of the first page


def settled(path: Path) -> None:
    """Bring everything from the log into the file, so that damage to the file is seen."""
    with closing(connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def ask(path: Path, query: str, *values: object) -> list[Row]:
    """Ask a store in SQL."""
    with closing(connect(path)) as connection:
        return connection.execute(query, values).fetchall()


def told(path: Path, statement: str, *values: object) -> None:
    """Tell a store something in SQL, past all checks."""
    with closing(connect(path, isolation_level=None)) as connection:
        connection.execute(statement, values)
    settled(path)


def pages_of(path: Path, name: str) -> list[int]:
    """Return the leaves of the b-tree of a table or an index, by their numbers."""
    settled(path)
    [(root,)] = ask(path, "SELECT rootpage FROM sqlite_schema WHERE name = ?", name) or [(1,)]
    return list(_leaves(path.read_bytes(), root))


def _leaves(data: bytes, page: int) -> Iterator[int]:
    start = (page - 1) * PAGE_BYTES
    head = start + (_FILE_HEADER_BYTES if page == 1 else 0)
    if data[head] not in _INTERIOR:
        yield page
        return
    cells = int.from_bytes(data[head + 3 : head + 5], "big")
    for cell in range(cells):
        place = head + _HEADER_BYTES + 2 * cell
        at = start + int.from_bytes(data[place : place + 2], "big")
        yield from _leaves(data, int.from_bytes(data[at : at + 4], "big"))
    yield from _leaves(data, int.from_bytes(data[head + 8 : head + 12], "big"))


def zero(path: Path, page: int) -> None:
    """Fill a page with zeros."""
    _write(path, (page - 1) * PAGE_BYTES, bytes(PAGE_BYTES))


def scribble(path: Path, page: int, first: int, seed: int = 0) -> None:
    """Fill a page with chance from one of its bytes to its end."""
    _write(path, (page - 1) * PAGE_BYTES + first, random.Random(seed).randbytes(PAGE_BYTES - first))


def flip(path: Path, found: bytes, bit: int = 1) -> int:
    """Flip a bit in the middle of every place that holds these bytes; return how many there are."""
    settled(path)
    data = path.read_bytes()
    places, at = [], data.find(found)
    while at >= 0:
        places.append(at + len(found) // 2)
        at = data.find(found, at + 1)
    for place in places:
        _write(path, place, bytes([data[place] ^ bit]))
    return len(places)


def cut(path: Path, pages: int) -> None:
    """Cut off the end of a file, so that so many pages are left."""
    settled(path)
    with path.open("r+b") as file:
        file.truncate(pages * PAGE_BYTES)


def _write(path: Path, place: int, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(place)
        file.write(data)
