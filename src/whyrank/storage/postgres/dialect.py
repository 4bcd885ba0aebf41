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
"""

# A conflict needs a target in PostgreSQL: the primary key, or the unique columns that the index means.
_TARGETS = {
    "meta": "key", "embedding_failures": "space, hash", "files": "scope, path", "records": "scope, first",
    "scopes": "scope", "sign_blocks": "scope, space, first", "vectors": "scope, space, number",
    "posting_scopes": "scope",
}  # fmt: skip
_INSERT = re.compile(r"\s*INSERT INTO (\w+)")
_PLAIN_INSERT = re.compile(r"\s*INSERT INTO (\w+)( \([\w, ]+\))? VALUES \([?, ]+\)\s*")
_QUOTED = re.compile(r"('(?:[^']|'')*')")
_LISTED = re.compile(r"IN \(SELECT value FROM json_each\((\?\d*|:\w+)\)\)")
_LIST_MARK, _GLOB_MARK = "\x01", "\x02"  # behind a placeholder whose value is a JSON list, or a pattern of GLOB
_PLACEHOLDER = re.compile(rf"(?:\?(?P<number>\d*)|(?<![:\w]):(?P<name>[a-z_]\w*))(?P<mark>[{_LIST_MARK}{_GLOB_MARK}]?)")
_GLOB_TEXT = re.compile(r" (NOT )?GLOB '([^']*)'")
_REWRITTEN = (
    (re.compile(r" GLOB (\?)"), rf" ~ \1{_GLOB_MARK}"),
    (re.compile(r" IS (?=\?|:)"), " IS NOT DISTINCT FROM "),
    (re.compile(r"\((\?\d*|:by) IS NULL OR"), r"(CAST(\1 AS text) IS NULL OR"),
    (re.compile(r"\(:below IS NULL OR"), "(CAST(:below AS bigint) IS NULL OR"),
    (re.compile(r"-9e999\b"), "'-infinity'::float8"),
    (re.compile(r"\b9e999\b"), "'infinity'::float8"),
    (re.compile(r"\bAS INTEGER\)"), "AS bigint)"),
    (re.compile(r"/\* SKIP LOCKED \*/"), "FOR NO KEY UPDATE SKIP LOCKED"),
    (re.compile(r"(?<!NOT )IN \(\)"), "IN (NULL)"),
    (_LISTED, rf"= ANY(\1{_LIST_MARK})"),
)


_CLASS = re.compile(r"\[(\^|(?!\^))(\]|(?!\]))([^\]]*)\]")  # a `]` that comes first is one of its characters
_MEMBERS = re.compile(r"(.)-(.)|(.)", re.DOTALL)
_NO_TEXT = "^$."


def glob_expression(pattern: str) -> str:
    """Return the regular expression of PostgreSQL for a pattern of SQLite's GLOB."""
    pattern, place, parts = pattern.partition("\0")[0], 0, ["^"]
    while place < len(pattern):
        letter = pattern[place]
        found = _CLASS.match(pattern, place) if letter == "[" else None
        if letter == "[" and found is None:
            return _NO_TEXT  # the class is not closed
        if found is not None:
            parts.append(_class_expression(*found.groups()))
        elif letter != "*":
            parts.append("." if letter == "?" else _escaped(letter))
        elif parts[-1] != ".*":
            parts.append(".*")
        place = place + 1 if found is None else found.end()
    return "".join(parts) + "$"


def _class_expression(inverted: str, bracket: str, members: str) -> str:
    """Return the expression of one class; a range that ends before it begins has its first character alone."""
    found = [_escaped(bracket)] if bracket else []
    for first, last, single in _MEMBERS.findall(members):
        is_range = not single and first <= last
        found.append(f"{_escaped(first)}-{_escaped(last)}" if is_range else _escaped(single or first))
    return f"[{inverted}{''.join(found)}]"


def _escaped(letter: str) -> str:
    return letter if letter.isascii() and letter.isalnum() else f"\\U{ord(letter):08x}"


class Statement(NamedTuple):
    """A statement for psycopg, with the names of the parameters that are JSON lists, or patterns of GLOB."""

    text: str
    lists: tuple[str, ...]
    globs: tuple[str, ...]
    copied: str = ""  # the same for many rows as COPY, where it inserts its parameters as they are

    def bind(self, given: Sequence[Any] | Mapping[str, Any]) -> dict[str, Any]:
        """Return the parameters by name, as psycopg takes them."""
        named = dict(given) if hasattr(given, "keys") else {f"p{place}": value for place, value in enumerate(given, 1)}
        for name in self.lists:
            named[name] = json.loads(named[name])
        for name in self.globs:
            named[name] = glob_expression(named[name])
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
    text = _GLOB_TEXT.sub(lambda found: f" {found[1] and '!'}~ '{glob_expression(found[2])}'", text)
    for found, put in _REWRITTEN:
        text = found.sub(put, text)
    count, lists, globs = 0, list[str](), list[str]()

    def placeholder(found: re.Match[str]) -> str:
        nonlocal count
        name = found["name"]
        if name is None:
            count += not found["number"]
            name = f"p{found['number'] or count}"
        if found["mark"]:
            (lists if found["mark"] == _LIST_MARK else globs).append(name)
        return f"%({name})s"

    parts = _QUOTED.split(text)
    parts[::2] = [_PLACEHOLDER.sub(placeholder, part) for part in parts[::2]]
    many = _PLAIN_INSERT.fullmatch(statement)
    copied = f"COPY {many[1]}{many[2] or ''} FROM STDIN" if many else ""
    patterns = tuple(dict.fromkeys(globs))
    return Statement("".join(parts), tuple(dict.fromkeys(lists)), patterns, copied)
