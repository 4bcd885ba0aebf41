"""`Where` in SQL: the same filters as Where.allows, applied before any run is cut."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from ...types import USUAL_IMPORTANCE, Scope, Where

# Tags that were damaged say nothing; they must not stop those who look for others'.
_TAGGED = "EXISTS (SELECT 1 FROM json_each(iif(json_valid(m.tags), m.tags, '[]')) WHERE value = ?)"
# A list of texts that was damaged, as `rows` judges it; by far the most lists hold nothing.
_ILLEGIBLE = (
    "CASE WHEN m.{0} = '[]' THEN FALSE WHEN NOT json_valid(m.{0}) THEN TRUE WHEN json_type(m.{0}) <> 'array' THEN TRUE "
    "ELSE EXISTS (SELECT 1 FROM json_each(m.{0}) WHERE type <> 'text') END"
)


class Clause(NamedTuple):
    """A condition on the table `memories AS m`, with its parameters."""

    sql: str
    parameters: tuple[str | float, ...]


def clause_for(where: Where) -> Clause:
    """Translate a filter."""
    return _all_of([in_scopes(where.scopes), *_life(where), *_choices(where)])


def choice(where: Where) -> Clause:
    """Translate a filter without its times of life: scope, kind, tags, path and dates."""
    return _all_of([in_scopes(where.scopes), *_choices(where)])


def illegible(column: str, scope: str) -> Clause:
    """Return the rows of a scope whose list in a column is none."""
    return Clause(f"m.scope = ? AND {_ILLEGIBLE.format(column)}", (scope,))


def _choices(where: Where) -> list[Clause]:
    parts: list[Clause] = []
    if where.kinds:
        parts.append(_one_of("m.kind", where.kinds))
    parts += [Clause(_TAGGED, (tag,)) for tag in sorted(where.tags)]
    if where.path is not None:
        # SQLite writes "not these letters" with ^, fnmatch and the shell with !.
        parts.append(Clause("m.path GLOB ?", (where.path.replace("[!", "[^"),)))
    if where.since is not None:
        parts.append(Clause("m.date >= ?", (where.since,)))
    if where.before is not None:
        parts.append(Clause("m.date < ?", (where.before,)))
    return parts + _likes(where)


def _likes(where: Where) -> list[Clause]:
    parts: list[Clause] = []
    if where.category is not None:
        parts.append(Clause("m.category = ?", (where.category,)))
    if where.decay is not None:
        parts.append(Clause("m.decay = ?", (where.decay,)))
    if where.min_importance is not None:
        parts.append(Clause("coalesce(m.importance, ?) >= ?", (USUAL_IMPORTANCE, where.min_importance)))
    if where.only_superseded:
        parts.append(Clause("m.superseded_by IS NOT NULL", ()))
    if where.only_expired:
        parts.append(Clause("(m.expires <= ? OR m.valid_until <= ?)", (where.moment, where.moment)))
    return parts


def _all_of(parts: list[Clause]) -> Clause:
    return Clause(" AND ".join(part.sql for part in parts), tuple(value for part in parts for value in part.parameters))


def in_scopes(scopes: Collection[Scope]) -> Clause:
    """Return the wall: only rows of these scopes."""
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
