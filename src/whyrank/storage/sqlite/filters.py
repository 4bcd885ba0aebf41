"""Filters: `Where` in SQL and as masks over doc values, applied before any run is cut."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Collection
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ...analysis.normalize import ByteBoundedCache
from ...analysis.query import headings_in, is_said
from ...analysis.tokenizer import marks_of_language
from ...types.memory import USUAL_IMPORTANCE, Scope
from ...types.query import Compares, Expression, Holds, Leaf, Says, valued, wanted
from .database import Connection, rows_of
from .rows import NUMBERED, legible, legible_object

if TYPE_CHECKING:
    from ...types.query import Where
    from .doc_values import Flags, Integers, ScopeDocValues

# Damaged tags count as none; they must not fail a filter on other memories' tags.
_TAGGED = "EXISTS (SELECT 1 FROM json_each(iif(json_valid(m.tags), m.tags, '[]')) WHERE value = ?)"
MARKED = "instr(' ' || m.dates || ' ', ' ' || {} || ' ') > 0"
# True of a list of texts that was damaged, as `rows` judges it; by far the most lists are empty.
_ILLEGIBLE = (
    "CASE WHEN m.{0} = '[]' THEN FALSE WHEN NOT json_valid(m.{0}) THEN TRUE WHEN json_type(m.{0}) <> 'array' THEN TRUE "
    "ELSE EXISTS (SELECT 1 FROM json_each(m.{0}) WHERE type <> 'text') END"
)

_ILLEGIBLE_OBJECT = (
    "CASE WHEN m.metadata = '{}' THEN FALSE WHEN NOT json_valid(m.metadata) THEN TRUE "
    "ELSE json_type(m.metadata) <> 'object' END"
)


class Clause(NamedTuple):
    """A condition on the table `memories AS m`, with its parameters."""

    sql: str
    parameters: tuple[str | float, ...]


def clause_for(where: Where) -> Clause:
    """Translate a filter into SQL."""
    return _all_of([in_scopes(where.scopes), *_life(where), *_choices(where)])


def choice(where: Where) -> Clause:
    """Translate a filter without expiry and validity: scope, kind, tags, path and dates."""
    return _all_of([in_scopes(where.scopes), *_choices(where)])


def illegible(column: str, scope: str) -> Clause:
    """Return the clause for the rows of a scope whose list, or metadata, in a column is damaged."""
    damaged = _ILLEGIBLE_OBJECT if column == "metadata" else _ILLEGIBLE.format(column)
    return Clause(f"m.scope = ? AND {damaged}", (scope,))


def _choices(where: Where) -> list[Clause]:
    parts: list[Clause] = []
    if where.kinds:
        parts.append(_one_of("m.kind", where.kinds))
    parts += [Clause(_TAGGED, (tag,)) for tag in sorted(where.tags)]
    if where.path is not None:
        # SQLite negates a set of characters by ^, fnmatch and the shell by !.
        parts.append(Clause("m.path GLOB ?", (where.path.replace("[!", "[^"),)))
    if where.since is not None:
        parts.append(Clause("m.date >= ?", (where.since,)))
    if where.before is not None:
        parts.append(Clause("m.date < ?", (where.before,)))
    if where.category is not None:
        parts.append(Clause("m.category = ?", (where.category,)))
    if where.decay is not None:
        parts.append(Clause("m.decay = ?", (where.decay,)))
    if where.min_importance is not None:
        parts.append(Clause("coalesce(m.importance, ?) >= ?", (USUAL_IMPORTANCE, where.min_importance)))
    if where.language is not None:
        marks = marks_of_language(where.language)
        parts.append(Clause(f"({' OR '.join([MARKED.format('?')] * len(marks))})", marks))
    if where.only_superseded:
        parts.append(Clause("m.superseded_by IS NOT NULL", ()))
    if where.only_expired:
        parts.append(Clause("(m.expires <= ? OR m.valid_until <= ?)", (where.moment, where.moment)))
    return parts


def _all_of(parts: list[Clause]) -> Clause:
    return Clause(" AND ".join(part.sql for part in parts), tuple(value for part in parts for value in part.parameters))


def in_scopes(scopes: Collection[Scope]) -> Clause:
    """Return the clause of scope isolation: only rows of these scopes."""
    return _one_of("m.scope", {str(scope) for scope in scopes})


def _one_of(column: str, values: Collection[str]) -> Clause:
    return Clause(f"{column} IN ({', '.join('?' * len(values))})", tuple(sorted(values)))


def _life(where: Where) -> list[Clause]:
    moment = where.moment
    parts = (
        []
        if where.include_expired or where.only_expired
        else [
            Clause("(m.expires IS NULL OR m.expires > ?)", (moment,)),
            Clause("(m.valid_from IS NULL OR m.valid_from <= ?)", (moment,)),
            Clause("(m.valid_until IS NULL OR m.valid_until > ?)", (moment,)),
        ]
    )
    with_superseded = where.include_superseded or where.only_superseded
    if where.as_of is not None:
        held = "m.valid_from IS NOT NULL OR m.valid_until <= m.created"
        parts.append(Clause(f"({held} OR m.created <= ?)", (where.as_of,)))
        if not with_superseded:
            parts.append(Clause("(m.superseded_by IS NULL OR m.superseded_at > ?)", (where.as_of,)))
    elif not with_superseded:
        parts.append(Clause("m.superseded_by IS NULL", ()))
    return parts


Holders = Callable[[str], "Integers"]
Said = Callable[[Says | Compares], "Flags"]

# The columns that a field of an expression is matched against; those in the second place hold lists.
_COLUMNS = {
    "name": ("name, title, slug", "aliases"),
    "heading": ("text", "headings"),
    "path": ("path", ""),
    "tag": ("", "tags"),
    "category": ("category", ""),
    "kind": ("kind", ""),
    "speaker": ("speaker", ""),
}


def matching(shelf: ScopeDocValues, expression: Expression, holders: Holders, said: Said) -> Flags:
    """Return the mask of places where an expression is true; undefined at vacant places."""

    def leaf_flags(leaf: Leaf) -> Flags:
        match leaf:
            case Holds():
                flags = np.zeros(len(shelf), np.bool_)
                flags[holders(leaf.term)] = True
                return flags
            case Says() | Compares():
                return said(leaf)
            case _:
                raise ValueError(f"{leaf} must be resolved before the store is queried")

    return valued(expression, leaf_flags, np.logical_not)


def comparing(connection: Connection, shelf: ScopeDocValues, leaf: Compares) -> Flags:
    """Return the mask of places whose metadata satisfy a leaf; equal metadata are read once."""
    rows = rows_of(
        connection,
        f"SELECT number, metadata FROM memories WHERE scope = ? AND metadata <> '{{}}' AND {NUMBERED}",
        (shelf.scope, len(shelf)),
    )
    known: dict[object, bool] = {}
    flags, value = np.zeros(len(shelf), np.bool_), json.loads(leaf.value)
    for number, stored in rows:
        is_so = known.get(stored)
        if is_so is None:
            metadata = legible_object(stored)
            is_so = known[stored] = leaf.field in metadata and leaf.holds(metadata[leaf.field], value)
        flags[number] = is_so
    return flags


def saying(connection: Connection, shelf: ScopeDocValues, leaf: Says) -> Flags:
    """Return the mask of places whose field matches a leaf; equal values are evaluated once."""
    single, listed = _COLUMNS[leaf.field]
    columns = ", ".join(column for column in (single, listed) if column)
    rows = rows_of(
        connection, f"SELECT number, {columns} FROM memories WHERE scope = ? AND {NUMBERED}", (shelf.scope, len(shelf))
    )
    known: dict[tuple[str, ...], bool] = {}
    flags = np.zeros(len(shelf), np.bool_)
    for number, *stored in rows:
        if not all(isinstance(value, str) for value in stored):
            stored = [value if isinstance(value, str) else "" for value in stored]  # damaged values count as empty
        values = (*headings_in(stored[0]), stored[1]) if leaf.field == "heading" else tuple(stored)
        is_so = known.get(values)
        if is_so is None:
            spread = (*values[:-1], *legible(values[-1])) if listed else values
            is_so = known[values] = is_said(leaf, spread)
        flags[number] = is_so
    return flags


def lists_wanted(expression: Expression | None) -> set[str]:
    """Return the list columns that an expression requires a match in."""
    leaves = [*wanted(expression)] if expression is not None else []
    lists = {_COLUMNS[leaf.field][1] for leaf in leaves if isinstance(leaf, Says)} - {""}
    return lists | ({"metadata"} if any(isinstance(leaf, Compares) for leaf in leaves) else set())


MASK_BYTES = 3 * 1024 * 1024  # thirty masks over a hundred thousand memories
_SCOPES_KEPT = 4_096  # that are known to be undamaged
_NOT_CHOSEN = (None,) * 7  # path, since, before, category, decay, importance, language


class Masks:
    """Masks of filters; those that need SQL are cached until the scope changes."""

    def __init__(self, max_bytes: int = MASK_BYTES) -> None:
        self._known: ByteBoundedCache[tuple[object, ...], Flags] = ByteBoundedCache(
            max_bytes, lambda _, mask: mask.nbytes
        )
        self._sound: set[tuple[str, str]] = set()
        self._turn = threading.Lock()

    @property
    def nbytes(self) -> int:
        """Return the memory of all cached masks, in bytes."""
        return self._known.nbytes

    def allowed(self, connection: Connection, shelf: ScopeDocValues, where: Where) -> Flags | None:
        """Return the mask of places that pass a filter; None if all do."""
        if where.as_of is not None or where.include_expired or where.only_superseded or where.only_expired:
            now = where.now if where.as_of is None else 0.0  # without a date, expiry depends on the current time
            return self._asked(connection, shelf, replace(where, now=now), clause_for)
        # Expiry and supersession are known without SQL.
        chosen = (where.path, where.since, where.before, where.category, where.decay, where.min_importance)
        chooses = where.kinds or where.tags or (*chosen, where.language) != _NOT_CHOSEN
        mask = self._asked(connection, shelf, replace(where, now=0.0), choice) if chooses else None
        if mask is None and not (shelf.has_gaps or len(shelf.superseded) or len(shelf.timed.numbers)):
            return None
        mask = shelf.alive.copy() if mask is None else mask & shelf.alive
        if not where.include_superseded:
            mask[shelf.superseded] = False
        timed = shelf.timed
        mask[timed.numbers[(timed.begins > where.now) | (timed.ends <= where.now)]] = False
        return mask

    def _asked(
        self, connection: Connection, shelf: ScopeDocValues, where: Where, translate: Callable[[Where], Clause]
    ) -> Flags:
        """Return the mask of a filter that needs SQL, cached until the scope changes."""
        asked = replace(where, scopes=frozenset({Scope.parse(shelf.scope)}), matching=None, metadata=None)
        return self._remembered((shelf.scope, shelf.changed, asked), lambda: _of(connection, shelf, translate(asked)))

    def saying(self, connection: Connection, shelf: ScopeDocValues, leaf: Says | Compares) -> Flags:
        """Return the mask of places whose field matches a leaf, cached until the scope changes."""

        def find() -> Flags:
            return saying(connection, shelf, leaf) if isinstance(leaf, Says) else comparing(connection, shelf, leaf)

        return self._remembered((shelf.scope, shelf.changed, leaf), find)

    def illegible(self, connection: Connection, shelf: ScopeDocValues, column: str) -> Flags | None:
        """Return the mask of places whose list in a column is damaged; None if there are none.

        Writes are sound, so a scope without damage is not checked again.
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


def _of(connection: Connection, shelf: ScopeDocValues, clause: Clause) -> Flags:
    numbers = connection.execute(
        f"SELECT m.number FROM memories AS m WHERE {clause.sql} AND {NUMBERED}", (*clause.parameters, len(shelf))
    )
    flags = np.zeros(len(shelf), np.bool_)
    flags[[number for (number,) in numbers.fetchall()]] = True
    return flags
