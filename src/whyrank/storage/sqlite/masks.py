"""Filters as masks over shelves: who may answer is known before anything is cut."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from ...caches import ByteBoundedCache
from ...expressions import Says
from ...types import Scope, Where
from .catalogue import Flags, Shelf
from .connection import Connection
from .filters import Clause, choice, clause_for, illegible
from .matching import saying
from .records import NUMBERED

MASK_BYTES = 3 * 1024 * 1024  # thirty masks over a hundred thousand memories
_SCOPES_KEPT = 4_096  # that are known to be sound
_NOT_CHOSEN = (None,) * 6  # path, since, before, category, decay, importance


class Masks:
    """Masks of filters, those that SQL had to be asked for remembered until the scope changes."""

    def __init__(self, max_bytes: int = MASK_BYTES) -> None:
        self._known: ByteBoundedCache[tuple[object, ...], Flags] = ByteBoundedCache(
            max_bytes, lambda _, mask: mask.nbytes
        )
        self._sound: set[tuple[str, str]] = set()
        self._turn = threading.Lock()

    @property
    def nbytes(self) -> int:
        """Return how much memory all masks hold."""
        return self._known.nbytes

    def allowed(self, connection: Connection, shelf: Shelf, where: Where) -> Flags | None:
        """Tell which places of a shelf may answer; None if all may."""
        if _asks_about_lives(where):
            return self._asked(connection, shelf, where)
        mask = self._asked(connection, shelf, where) if _chooses(where) else None
        if mask is None and not (shelf.has_gaps or len(shelf.superseded) or len(shelf.timed.numbers)):
            return None
        mask = shelf.alive.copy() if mask is None else mask & shelf.alive
        if not where.include_superseded:
            mask[shelf.superseded] = False
        timed = shelf.timed
        mask[timed.numbers[(timed.begins > where.now) | (timed.ends <= where.now)]] = False
        return mask

    def _asked(self, connection: Connection, shelf: Shelf, where: Where) -> Flags:
        """Ask SQL for what only the rows themselves know."""
        # Only who asks about lives gets another answer at another moment.
        now = where.now if _asks_about_lives(where) and where.as_of is None else 0.0
        asked = replace(where, now=now, scopes=frozenset({Scope.parse(shelf.scope)}), matching=None)

        def found() -> Flags:
            return _of(connection, shelf, clause_for(asked) if _asks_about_lives(where) else choice(asked))

        return self._remembered((shelf.scope, shelf.changed, asked), found)

    def saying(self, connection: Connection, shelf: Shelf, leaf: Says) -> Flags:
        """Tell which places of a shelf say something in a field."""
        return self._remembered((shelf.scope, shelf.changed, leaf), lambda: saying(connection, shelf, leaf))

    def illegible(self, connection: Connection, shelf: Shelf, column: str) -> Flags | None:
        """Tell at which places of a shelf the list in a column was damaged; None if nowhere.

        What is written is sound, so a scope in which nothing was damaged need not be looked through again.
        """
        if (shelf.scope, column) in self._sound:
            return None
        clause = illegible(column, shelf.scope)
        found = self._remembered((shelf.scope, shelf.changed, column), lambda: _of(connection, shelf, clause))
        if found.any():
            return found
        if len(self._sound) >= _SCOPES_KEPT:
            self._sound.clear()
        self._sound.add((shelf.scope, column))
        return None

    def _remembered(self, key: tuple[object, ...], find: Callable[[], Flags]) -> Flags:
        with self._turn:
            known = self._known.get(key)
            if known is None:
                known = find()
                self._known.put(key, known)
            return known


def _of(connection: Connection, shelf: Shelf, clause: Clause) -> Flags:
    numbers = connection.execute(
        f"SELECT m.number FROM memories AS m WHERE {clause.sql} AND {NUMBERED}", (*clause.parameters, len(shelf))
    )
    flags = np.zeros(len(shelf), np.bool_)
    flags[[number for (number,) in numbers.fetchall()]] = True
    return flags


def _asks_about_lives(where: Where) -> bool:
    return where.as_of is not None or where.include_expired or where.only_superseded or where.only_expired


def _chooses(where: Where) -> bool:
    chosen = (where.path, where.since, where.before, where.category, where.decay, where.min_importance)
    return bool(where.kinds or where.tags) or chosen != _NOT_CHOSEN
