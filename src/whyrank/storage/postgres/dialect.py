"""Statements of the index in PostgreSQL's words: placeholders, conflict targets, and the functions it lacks.

The index writes its statements once, in SQLite's form. Most of them are standard SQL; the rest is rewritten here, once
per statement, or runs on functions of the same names that the schema defines.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# SQLite's functions, in the schema of the store; simple ones are inlined by the planner.
FUNCTIONS = r"""
CREATE FUNCTION typeof(anyelement) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT CASE WHEN $1 IS NULL THEN 'null' ELSE
        CASE pg_typeof($1)::text WHEN 'bigint' THEN 'integer' WHEN 'integer' THEN 'integer'
            WHEN 'double precision' THEN 'real' WHEN 'bytea' THEN 'blob' ELSE 'text' END
    END $$;
CREATE FUNCTION iif(boolean, anycompatible, anycompatible) RETURNS anycompatible LANGUAGE sql IMMUTABLE
    AS $$ SELECT CASE WHEN $1 THEN $2 ELSE $3 END $$;
CREATE FUNCTION instr(text, text) RETURNS integer LANGUAGE sql IMMUTABLE AS $$ SELECT strpos($1, $2) $$;
CREATE FUNCTION max(bigint, bigint) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$ SELECT greatest($1, $2) $$;
CREATE FUNCTION min(bigint, bigint) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$ SELECT least($1, $2) $$;
CREATE FUNCTION max(float8, float8) RETURNS float8 LANGUAGE sql IMMUTABLE AS $$ SELECT greatest($1, $2) $$;
CREATE FUNCTION min(float8, float8) RETURNS float8 LANGUAGE sql IMMUTABLE AS $$ SELECT least($1, $2) $$;
CREATE FUNCTION json_valid(text) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS $$
    BEGIN PERFORM $1::json; RETURN true; EXCEPTION WHEN OTHERS THEN RETURN false; END $$;
CREATE FUNCTION json_type(text) RETURNS text LANGUAGE sql IMMUTABLE AS $$ SELECT json_typeof($1::json) $$;
CREATE FUNCTION json_each(text) RETURNS TABLE (value text, type text) LANGUAGE sql IMMUTABLE AS $$
    SELECT item #>> '{}', CASE json_typeof(item) WHEN 'string' THEN 'text' ELSE json_typeof(item) END
    FROM json_array_elements($1::json) AS item $$;
CREATE FUNCTION glob(text, text) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
    SELECT $1 ~ ('^' || replace(replace(regexp_replace($2, '([.\\+(){}|$])', '\\\1', 'g'), '*', '.*'), '?', '.') || '$')
    $$;
"""

# A conflict needs a target in PostgreSQL: the primary key, or the unique columns that the index means.
_TARGETS = {
    "meta": "key", "embedding_failures": "space, hash", "files": "scope, path", "records": "scope, first",
    "scopes": "scope", "sign_blocks": "space, scope, first", "vectors": "hash, space", "posting_scopes": "scope",
}  # fmt: skip
_GENERATED = {"posting_segments": "segment"}  # columns that a caller reads as `lastrowid`
_INSERT = re.compile(r"\s*INSERT INTO (\w+)")
_PLAIN_INSERT = re.compile(r"\s*INSERT INTO (\w+)( \([\w, ]+\))? VALUES \([?, ]+\)\s*")
_QUOTED = re.compile(r"('(?:[^']|'')*')")
_LISTED = re.compile(r"IN \(SELECT value FROM json_each\((\?\d*|:\w+)\)\)")
_LIST_MARK = "\x01"  # behind a placeholder whose value is a JSON list
_PLACEHOLDER = re.compile(rf"(?:\?(?P<number>\d*)|(?<![:\w]):(?P<name>[a-z_]\w*))(?P<list>{_LIST_MARK}?)")
_REWRITTEN = (
    (re.compile(r"([\w.]+) NOT GLOB (\?|'[^']*')"), r"NOT glob(\1, \2)"),
    (re.compile(r"([\w.]+) GLOB (\?|'[^']*')"), r"glob(\1, \2)"),
    (re.compile(r" IS (?=\?|:)"), " IS NOT DISTINCT FROM "),
    (re.compile(r"\((\?\d*|:by) IS NULL OR"), r"(CAST(\1 AS text) IS NULL OR"),
    (re.compile(r"\(:below IS NULL OR"), "(CAST(:below AS bigint) IS NULL OR"),
    (re.compile(r"-9e999\b"), "'-infinity'::float8"),
    (re.compile(r"\b9e999\b"), "'infinity'::float8"),
    (re.compile(r"\bAS INTEGER\)"), "AS bigint)"),
    (re.compile(r"last_insert_rowid\(\)"), "lastval()"),
    (re.compile(r"/\* SKIP LOCKED \*/"), "FOR NO KEY UPDATE SKIP LOCKED"),
    (re.compile(r"(?<!NOT )IN \(\)"), "IN (NULL)"),
    (_LISTED, rf"= ANY(\1{_LIST_MARK})"),
)


class Statement(NamedTuple):
    """A statement for psycopg, with the names of the parameters that are JSON lists."""

    text: str
    lists: tuple[str, ...]
    returns_id: bool
    copied: str = ""  # the same for many rows as COPY, where it inserts its parameters as they are

    def bind(self, given: Sequence[Any] | Mapping[str, Any]) -> dict[str, Any]:
        """Return the parameters by name, as psycopg takes them."""
        named = dict(given) if hasattr(given, "keys") else {f"p{place}": value for place, value in enumerate(given, 1)}
        for name in self.lists:
            named[name] = json.loads(named[name])
        return {name: plain(value) for name, value in named.items()}


def plain(value: Any) -> Any:
    """Return a value as psycopg takes it."""
    if isinstance(value, memoryview):
        return bytes(value)
    return value.item() if hasattr(value, "item") else value  # numpy's numbers


@lru_cache(maxsize=2_048)
def translate(statement: str) -> Statement:
    """Return a statement of the index as PostgreSQL reads it."""
    text = statement.replace("%", "%%")
    inserted = _INSERT.match(text)
    table = inserted[1] if inserted else ""
    if table in _TARGETS:
        text = text.replace("ON CONFLICT DO UPDATE", f"ON CONFLICT ({_TARGETS[table]}) DO UPDATE")
    for found, put in _REWRITTEN:
        text = found.sub(put, text)
    count, lists = 0, list[str]()

    def placeholder(found: re.Match[str]) -> str:
        nonlocal count
        name = found["name"]
        if name is None:
            count += not found["number"]
            name = f"p{found['number'] or count}"
        if found["list"]:
            lists.append(name)
        return f"%({name})s"

    parts = _QUOTED.split(text)
    parts[::2] = [_PLACEHOLDER.sub(placeholder, part) for part in parts[::2]]
    returned = f" RETURNING {_GENERATED[table]}" if table in _GENERATED else ""
    many = _PLAIN_INSERT.fullmatch(statement)
    copied = f"COPY {many[1]}{many[2] or ''} FROM STDIN" if many else ""
    return Statement("".join(parts) + returned, tuple(dict.fromkeys(lists)), bool(returned), copied)
