"""A look at a whole store: its pages, every memory it holds, and all that was made from them.

Nothing is changed. Each thing that is wrong is a finding of its own, which says what is lost by it: what is derived is
made anew by a repair, what is not is named.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress

from ...analysis.entries import READER_VERSION
from ...analysis.names import names_of
from ...checkups import Finding, listed
from ...wording import counted, which
from .connection import Connection, SqlError, lenient, translated
from .database import Database
from .indexes import INDEXES, index_in
from .judging import FIELDS, Judged, has_sound_embedding, judged, legible_id, memory_rows, missing
from .layout import indexes, layout, tables
from .migrations import MIGRATIONS
from .notes import is_generation, miscounted
from .past import was_in
from .readers import KEY as READERS
from .readers import stretches_in
from .salvaging import UNREADABLE, Rows, columns_of, is_as_defined, known_of
from .schema import PUT_RIGHT, misstated, version_of
from .soundness import Check, checks

Tick = Callable[[int, int, str], None]

MESSAGES = 1_000  # of SQLite's own check; more of them say no more
MISSING = -1  # in place of a count of errors: there is nothing to have any
_TICK_ROWS = 500
SOURCES = {
    "memories": "memories",
    "arrivals": "facts that wait to be indexed",
    "history": "what memories were before",
    "write_keys": "the keys of writes",
    "meta": "notes: which model answers, calibration, counters",
    "files": "which files were read",
}
_GENERATION = "SELECT value FROM meta WHERE key = 'generation'"
_REPAIR = "`whyrank doctor --repair` writes the store anew with all that can be read"
_FROM_A_COPY = "take them from a copy of the store, or give them up with `whyrank doctor --give-up`"
COPY = "ingest their files again, or take them from a copy of the store"
_SET_ASIDE = (
    "`whyrank doctor --repair` sets them aside, and the next `whyrank ingest` reads their files anew; "
    "documents that stand in no file must be stored again"
)
_PUT_RIGHT = "`whyrank show ID` shows what is left; put it right with `whyrank update ID --text TEXT`"
_TREE = re.compile(r"^Tree (\d+)")
_NAMED = re.compile(r"(?:index|in|table) (?:main\.)?(\w+)")


def examine(database: Database, tick: Tick) -> list[Finding]:
    """Look at everything a store holds; a newer one, or what is none, is refused."""
    version = version_of(database)
    with _moment(database) as connection:
        tick(0, 0, "pages")
        broken = _broken_tables(connection)
        if version == MIGRATIONS[-1].version:
            broken.update(dict(_missing_parts(connection)))
        found = [
            *_schema(database),
            *_pages(broken),
            *_memories(connection, tick),
            *_aside(connection, version),
            *_past(connection, version),
        ]
        if version == MIGRATIONS[-1].version:
            found += _derived(connection, broken, tick)
    return found


@contextmanager
def _moment(database: Database) -> Iterator[Connection]:
    """Hold one moment of a file, whatever can be read of it."""
    with translated(database.path):
        connection = database.reader()
        lenient(connection)
        connection.execute("BEGIN")
        try:
            yield connection
        finally:
            with suppress(*UNREADABLE):  # nothing was written, and damage is said of already
                connection.execute("ROLLBACK")


def _schema(database: Database) -> Iterator[Finding]:
    """Say that a file says another schema than its tables show, or not that it is ours."""
    told = misstated(database)
    if told:
        yield Finding("schema", told, PUT_RIGHT)


# -- pages -----------------------------------------------------------------------------------------------------------


def _broken_tables(connection: Connection) -> Counter[str]:
    """Return what SQLite finds wrong with the file, by the table it is in; the empty name is the file's own."""
    schema = known_of(connection, "SELECT name, tbl_name, type, rootpage FROM sqlite_schema")
    said = _said(connection, "") or [
        "no whole look is possible",
        *(line for name, _, kind, root in schema if kind == "table" and root for line in _said(connection, name)),
    ]
    trees = {root: owner if kind == "table" else f"index of {owner}" for _, owner, kind, root in schema}
    owners = {name: owner if kind == "table" else f"index of {owner}" for name, owner, kind, _ in schema}
    found = Counter[str]()
    for line in "\n".join(said).splitlines():
        if line not in ("ok", "") and not line.startswith("*** in database"):
            found[_owner(line, trees, owners)] += 1
    return found


def _missing_parts(connection: Connection) -> Iterator[tuple[str, int]]:
    """Yield the tables and indexes that are not there, or not as they should be, and how many errors each counts as."""
    made = {name for (name,) in known_of(connection, "SELECT name FROM sqlite_schema")}
    with_postings = ("keyword", "fts5") not in known_of(connection, "SELECT key, value FROM meta")
    for table in tables(with_postings=with_postings):
        if not is_as_defined(connection, table):
            yield table, MISSING if table not in made else 1
    for index, table in indexes(with_postings=with_postings).items():
        if index not in made and table in made:
            yield f"index of {table}", MISSING


def _said(connection: Connection, table: str) -> list[str]:
    """Return what SQLite says of a table, or of the whole file; nothing of a file that it cannot get through."""
    said: list[str] = []
    try:
        said.extend(row[0] for row in connection.execute(f"PRAGMA integrity_check({table or MESSAGES})"))
    except UNREADABLE as error:
        return [f"table {table}: {error}", *said] if table else []
    return said


def _owner(line: str, trees: dict[int, str], owners: dict[str, str]) -> str:
    tree = _TREE.match(line)
    if tree:
        return trees.get(int(tree[1]), "")
    return next((owners[name] for name in _NAMED.findall(line) if name in owners), "")


def _pages(broken: Counter[str]) -> Iterator[Finding]:
    """Say which tables are damaged; of what is no derived data it is said by itself what is lost."""
    for table in sorted(broken):
        what = f"the table {table}" if table and not table.startswith("index") else table and f"an {table}"
        what = what or "the file's own order of pages"
        lost = SOURCES.get(table, "")
        is_lost = f": of {lost} some may be lost" if lost else ", which can be made anew"
        how = "is missing" if broken[table] == MISSING else "has damaged pages"
        yield Finding("pages", f"{what} {how}{is_lost}", _REPAIR)


# -- memories --------------------------------------------------------------------------------------------------------


def _memories(connection: Connection, tick: Tick) -> Iterator[Finding]:
    rows = memory_rows(connection)
    known, stale, seen = _named_keys(connection), 0, set[int]()
    wrong: list[Judged] = []
    misnamed = 0
    total = _count(connection, "memories")
    for number, (row, *columns) in enumerate(rows):
        if number % _TICK_ROWS == 0:
            tick(number, total, "memories")
        seen.add(row)
        one = judged(row, tuple(columns))
        if one.wrong:
            wrong.append(one)
        elif not has_sound_embedding(tuple(columns)):
            stale += 1
        if one.memory is not None and known is not None and row >= known[0]:
            misnamed += {name.key for name in names_of(one.memory)} != known[1].get(row, set())
    yield from _wrong(wrong)
    if lost := missing(connection, seen):
        names = tuple(one.id for one in lost)
        yield _lost("lost", names, "cannot be read from the file any more, only known by name")
    elif not rows.is_whole:
        yield Finding("lost", "memories may be lost whose names cannot be read either", COPY, derived=False)
    if stale:
        texts = f"the embedded text of {counted(stale, 'memory', 'memories')}"
        yield Finding("embedded", f"{texts} is not the one that was embedded", _REPAIR)
    if misnamed:
        yield Finding("names", f"{counted(misnamed, 'memory has', 'memories have')} lost names", _REPAIR)


def _wrong(wrong: Iterable[Judged]) -> Iterator[Finding]:
    """Tell memories that can be restored from those that can be read only in part, or not at all."""
    by_state: dict[str, list[str]] = {"restored": [], "fields": [], "chunks": [], "altered": [], "unreadable": []}
    for one in wrong:
        by_state[_state(one)].append(one.id)
    restored, fields, chunks, altered, unreadable = (tuple(names) for names in by_state.values())
    if restored:
        texts = f"{counted(len(restored), 'text was', 'texts were')} altered"
        yield Finding("texts", f"{texts} and can be restored: {listed(restored)}", _REPAIR, names=restored)
    if fields:
        facts = counted(len(fields), "fact has", "facts have")
        told = f"{facts} fields that no memory can have, which will be blank: {listed(fields)}"
        yield Finding("fields", told, _REPAIR, names=fields)
    if chunks:
        yield _lost("chunks", chunks, "of files or documents can be read, but not as stored")._replace(hint=_SET_ASIDE)
    if altered:
        yield _lost("altered", altered, "can be read, but not as stored")._replace(hint=_PUT_RIGHT)
    if unreadable:
        yield _lost("unreadable", unreadable, "cannot be read")


def _state(one: Judged) -> str:
    if one.wrong == FIELDS:
        return "fields"
    if "restored" in one.wrong:
        return "restored"
    if one.memory is None:
        return "unreadable"
    return "chunks" if one.memory.kind == "chunk" else "altered"


def _lost(code: str, names: tuple[str, ...], why: str) -> Finding:
    return Finding(code, f"{counted(len(names), 'memory', 'memories')} {why}: {listed(names)}", COPY, False, names)


def _named_keys(connection: Connection) -> tuple[int, dict[int, set[str]]] | None:
    """Return the keys of names by row, and from which row on they are those of today's reader; None if unknown."""
    try:
        found = connection.execute("SELECT value FROM meta WHERE key = ?", (READERS,)).fetchone()
        last = stretches_in(found[0] if found else None)[-1]
        keys: dict[int, set[str]] = {}
        for row, key in connection.execute("SELECT memory, key FROM names"):
            keys.setdefault(row, set()).add(key)
    except UNREADABLE:
        return None
    return (last.first, keys) if last.reader == READER_VERSION else None


def _count(connection: Connection, table: str) -> int:
    try:
        return int(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0])
    except UNREADABLE:
        return 0


# -- what else is nowhere but here -----------------------------------------------------------------------------------


def _aside(connection: Connection, version: int) -> Iterator[Finding]:
    """Name the facts that were set aside because they cannot be read, and those that are about to be."""
    columns = columns_of(connection, "arrivals")
    if not columns and version != MIGRATIONS[-1].version:
        return
    rows = Rows(connection, "arrivals", [columns.get(name, "NULL") for name in ("id", "text", "rest")], numbered=True)
    names = tuple(
        legible_id(identity, f"arrival {entry}")
        for entry, identity, text, rest in rows
        if entry < 0 or not _is_sound(text, rest)
    )
    if names:
        memories = counted(len(names), "memory was", "memories were")
        told = f"{memories} damaged and set aside: {listed(names)}"
        hint = "store them again, ingest their files again, or give them up with `whyrank doctor --give-up`"
        yield Finding("aside", told, hint, False, names)
    if not rows.is_whole:
        yield Finding("lost", "facts may be lost that waited to be indexed", COPY, derived=False)


def _is_sound(text: object, rest: object) -> bool:
    try:
        return isinstance(text, str) and isinstance(rest, str) and isinstance(json.loads(rest or "{}"), dict)
    except ValueError:
        return False


def _past(connection: Connection, version: int) -> Iterator[Finding]:
    """Look at what memories were, the keys of writes, the notes and the manifest: nothing else knows them."""
    try:
        lost = miscounted(connection)
    except UNREADABLE:
        lost = {}  # what cannot be counted cannot be read either
    for table in ("history", "write_keys", "meta", "files"):
        columns = columns_of(connection, table)
        if not columns and version != MIGRATIONS[-1].version:
            continue  # an earlier whyrank had none
        rows = Rows(connection, table, list(columns.values()), numbered=table == "history")
        wrong = sum(not _is_told(table, row) for row in rows)
        is_derived = table == "files"  # the next ingest reads them anew
        hint = _REPAIR if is_derived else _FROM_A_COPY
        if wrong or not rows.is_whole:
            how_many = f"{wrong:,} of " if rows.is_whole else "some of "
            yield Finding("books", f"{how_many}{SOURCES[table]} cannot be read", hint, is_derived)
        elif missing := lost.get(table):
            yield Finding(
                "books", f"{missing:,} of {SOURCES[table]} {which(missing, 'is', 'are')} missing", hint, False
            )


def _is_told(table: str, row: tuple[object, ...]) -> bool:
    values = row[1:] if table == "history" else row
    if not all(column.fits(value) for column, value in zip(layout(table), values, strict=False)):
        return False
    return table != "history" or was_in(row[-1]) is not None


# -- what is derived -------------------------------------------------------------------------------------------------


def _derived(connection: Connection, broken: Counter[str], tick: Tick) -> Iterator[Finding]:
    try:
        planned = checks(connection)
    except UNREADABLE:
        return  # which index there is cannot be read: it is said above that these notes are damaged
    if (index_in(connection) or ("",))[0] not in INDEXES:
        yield Finding("pages", "the store does not say which keyword index it has", _REPAIR)
    if not any(is_generation(value) for (value,) in connection.execute(_GENERATION)):
        yield Finding("pages", "the store does not say which generation it is of", _REPAIR)
    for number, check in enumerate(planned):
        tick(number, len(planned), check.code)
        try:
            yield from check.look(connection)
        except (SqlError, ValueError, TypeError, LookupError) as error:
            if not _is_said(check, broken):
                yield Finding(check.code, f"what is derived cannot be read: {error}", _REPAIR)


def _is_said(check: Check, broken: Counter[str]) -> bool:
    return any(table in broken or f"index of {table}" in broken for table in check.tables)
