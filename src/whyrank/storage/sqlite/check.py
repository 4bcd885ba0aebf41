"""Integrity check of a store: its pages, every memory, and all derived data. Nothing is changed.

Each finding names the loss: derived data is rebuilt by a repair, damaged memories are listed.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...analysis.document import READER_VERSION
from ...analysis.names import is_known_in_part, name_key, names_of, words_key
from ...errors import StoreDamaged
from ...formatting import counted, which
from ...types.trail import Name
from .database import (
    SAVE,
    SET_ASIDE,
    ChecksumError,
    Connection,
    Database,
    Key,
    Row,
    SqlError,
    is_generation,
    lenient,
    place_mask,
    translated,
)
from .disk import LOW_BYTES, MEGABYTE, free_bytes
from .doc_values import BLOCK, GONE, decoded, id_in_record, ranges_in
from .fts5 import UNPAIRED
from .metadata import INDEX_NAMES, index_in, miscounted, was_in
from .names import MISCOUNTED, UNOWNED_NAMES
from .postings import terms
from .postings.format import LIVE, MAKING, NO_PAGES, TABLE_NAMES, Segment, filed, read, span, unpack
from .recovery import (
    NUMBER_CHECKED,
    SCOPE_CHECKED,
    UNREADABLE,
    ReadableRows,
    check_row,
    column_expressions,
    has_sound_embedding,
    legible_id,
    memory_rows,
    missing_memories,
    newest_schema,
    quoted,
    select_readable,
    table_columns,
)
from .schema import MIGRATIONS, PUT_RIGHT, misstated, version_of
from .vectors.checksums import PLACED, is_vector
from .vectors.table import signs_in, vector_bytes

if TYPE_CHECKING:
    from pathlib import Path

Tick = Callable[[int, int, str], None]

CODES = frozenset(
    {
        "pages", "postings", "words", "records", "scopes", "names", "vectors", "signs", "embedded", "orphans", "texts",
        "fields", "schema", "chunks", "altered", "unreadable", "lost", "books", "aside", "hopeless", "unusable",
        "disk", "server",
    }
)  # fmt: skip
IN_PLACE = frozenset(
    {"schema", "records", "postings", "vectors", "signs", "orphans"}
)  # what a repair makes anew in place; for the rest a file is rebuilt
LEFT = (
    "the file is left as it is: look for a copy of it (a `.bak` beside it, a backup, lines of `whyrank export`), "
    "or move it away and ingest the files again; facts that are in no file must be stored again"
)
_NAMED = 5  # ids that a message names; all of them stand in `names`
_MESSAGES = 1_000  # limit for SQLite's own check; further messages add nothing
_MISSING = -1  # in place of a count of errors: the table is not there
_TICK_ROWS = 500
_SOURCES = {
    "memories": "memories",
    "arrivals": "facts that wait to be indexed",
    "history": "the history of memories",
    "write_keys": "the keys of writes",
    "meta": "notes: which model answers, calibration, counters",
    "files": "the list of ingested files",
}
_REBUILD = "`whyrank doctor --repair` rewrites the store with all that can be read"
_REDERIVE = "`whyrank doctor --repair` rebuilds it from the memories"
_FROM_A_COPY = "restore them from a copy of the store, or give them up with `whyrank doctor --give-up`"
_COPY = "ingest their files again, or restore them from a copy of the store"
_SET_ASIDE = (
    "`whyrank doctor --repair` sets them aside, and the next `whyrank ingest` reads their files again; "
    "documents that are in no file must be stored again"
)
UNOWNED = "NOT EXISTS (SELECT 1 FROM memories AS m WHERE m.embed_hash = o.hash)"
UNOWNED_VECTOR = (
    "NOT EXISTS (SELECT 1 FROM memories AS m WHERE m.scope = o.scope AND m.number = o.number AND m.embed_hash = o.hash)"
)
_UPDATE = "`whyrank show ID` shows what is left; correct it with `whyrank update ID --text TEXT`"
_WAS = 4  # the place of the former fields in a row of the history, behind its number
_TREE = re.compile(r"^Tree (\d+)")
_OWNER = re.compile(r"(?:index|in|table) (?:main\.)?(\w+)")


# -- report ----------------------------------------------------------------------------------------------------------


class Finding(NamedTuple):
    """One defect of a store.

    Derived data can be rebuilt from the memories. Anything else is listed, kept as far as it can be read, and needs a
    copy of the store.
    """

    code: str
    message: str
    hint: str = ""
    derived: bool = True
    names: tuple[str, ...] = ()
    mended: bool = False


class Compared(NamedTuple):
    """Amount of data that a deep check has derived again and compared, and the time it took."""

    memories: int = 0
    words: int = 0
    names: int = 0
    records: int = 0
    segments: int = 0
    vectors: int = 0
    sign_blocks: int = 0
    seconds: float = 0.0


class Checkup(NamedTuple):
    """Result of a check: findings, memories with an older analyzer or without a vector, and repairs made."""

    findings: tuple[Finding, ...] = ()
    looked_inside: bool = False  # words and vectors are checked only where the file can be used
    old_words: int = 0
    waiting: int = 0
    read_anew: int = 0
    embedded: int = 0
    has_earlier_vectors: bool = False  # made by an earlier whyrank: usable, with lower recall than newer ones
    free_bytes: int | None = None  # on the disk of the store
    kept: str = ""  # path of the store as it was before the repair, if it was rewritten
    compared: Compared | None = None  # by a deep check

    @property
    def is_sound(self) -> bool:
        """Return True if no damage is left unrepaired; low disk space or a risky setting of a server is no damage."""
        return all(finding.mended or finding.code in ("disk", "server") for finding in self.findings)

    @property
    def is_whole(self) -> bool:
        """Return True if nothing is left to do: the store is sound, fully checked, current and has disk space."""
        is_of_today = not (self.old_words or self.waiting or self.has_earlier_vectors)
        has_room = not any(finding.code == "disk" for finding in self.findings)
        return self.is_sound and self.looked_inside and is_of_today and has_room


def shorten(names: tuple[str, ...]) -> str:
    """Return the first few of some names, with the count of the rest."""
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {more:,} more" if more > 0 else "")


def unusable(error: StoreDamaged) -> Finding:
    """Return the finding of a store that cannot be opened, with the remaining remedy."""
    hint = f"if this is your store: {LEFT}" if SAVE in error.hint else error.hint
    return Finding("unusable", f"the store cannot be used as it is: {error.message}", hint, derived=False)


def check_disk(path: Path) -> list[Finding]:
    """Return a finding if the free space on the disk of a store is below LOW_BYTES."""
    free = free_bytes(path)
    if free is None or free >= LOW_BYTES:
        return []
    told = f"{free / MEGABYTE:,.1f} MB are free on the disk of {path}, less than {LOW_BYTES // MEGABYTE} MB"
    hint = (
        "free space on the disk; `whyrank forget` and `whyrank prune` work on a full disk as long as a ballast is left"
    )
    return [Finding("disk", told, hint, derived=False)]


# -- the check -------------------------------------------------------------------------------------------------------


def check_store(path: Path, tick: Tick) -> list[Finding]:
    """Return the findings of the store in a file."""
    try:
        with closing(Database(path, forgiving=True)) as database:
            return check_database(database, tick)
    except StoreDamaged as error:
        return [unusable(error)]


def check_database(database: Database, tick: Tick) -> list[Finding]:
    """Check all content of a store; raise for a newer schema or another program's file."""
    is_newest = version_of(database) == MIGRATIONS[-1].version
    with _snapshot(database) as connection:
        tick(0, 0, "pages")
        broken = _broken_tables(connection)
        if is_newest:
            broken.update(dict(_missing_parts(connection)))
        told = misstated(database)
        return [
            *([Finding("schema", told, PUT_RIGHT)] if told else ()),
            *_check_pages(broken),
            *_check_memories(connection, tick),
            *_check_arrivals(connection, is_newest),
            *_check_metadata(connection, is_newest),
            *(check_derived(connection, broken, tick) if is_newest else ()),
        ]


@contextmanager
def _snapshot(database: Database) -> Iterator[Connection]:
    with translated(database.path):
        connection = database.reader()
        lenient(connection)
        connection.execute("BEGIN")
        try:
            yield connection
        finally:
            with suppress(*UNREADABLE):  # nothing was written, and the damage is a finding already
                connection.execute("ROLLBACK")


# -- pages and tables ------------------------------------------------------------------------------------------------


def _broken_tables(connection: Connection) -> Counter[str]:
    """Count the errors of SQLite's integrity check by table; the empty name is the file's order of pages."""
    schema = select_readable(connection, "SELECT name, tbl_name, type, rootpage FROM sqlite_schema")
    said = _integrity_check(connection, "") or [
        "a complete check is not possible",
        *(
            line
            for name, _, kind, root in schema
            if kind == "table" and root
            for line in _integrity_check(connection, name)
        ),
    ]
    parts = [(name, root, owner if kind == "table" else f"index of {owner}") for name, owner, kind, root in schema]
    owners, trees = {name: part for name, _, part in parts}, {root: part for _, root, part in parts}
    found = Counter[str]()
    for line in "\n".join(said).splitlines():
        if line not in ("ok", "") and not line.startswith("*** in database"):
            tree = _TREE.match(line)
            named = (owners[name] for name in _OWNER.findall(line) if name in owners)
            found[trees.get(int(tree[1]), "") if tree else next(named, "")] += 1
    return found


def _integrity_check(connection: Connection, table: str) -> list[str]:
    """Return SQLite's integrity messages of a table or the whole file; none if the whole check is aborted."""
    said: list[str] = []
    try:
        said.extend(row[0] for row in connection.execute(f"PRAGMA integrity_check({table or _MESSAGES})"))
    except UNREADABLE as error:
        return [f"table {table}: {error}", *said] if table else []
    return said


def _missing_parts(connection: Connection) -> Iterator[tuple[str, int]]:
    """Yield the tables and indexes that are missing or not as defined, each with its number of errors."""
    made = {name for (name,) in select_readable(connection, "SELECT name FROM sqlite_schema")}
    has_postings = ("keyword", "fts5") not in select_readable(connection, "SELECT key, value FROM meta")
    tables, indexes = newest_schema()
    for table, columns in tables.items():
        defined = {column.name: quoted(column.name) for column in columns}
        if (has_postings or table not in TABLE_NAMES) and column_expressions(connection, table) != defined:
            yield table, 1 if table in made else _MISSING
    for index, table in indexes.items():
        if (has_postings or table not in TABLE_NAMES) and index not in made and table in made:
            yield f"index of {table}", _MISSING


def _check_pages(broken: Counter[str]) -> Iterator[Finding]:
    for table in sorted(broken):
        what = f"the table {table}" if table and not table.startswith("index") else table and f"an {table}"
        what = what or "the page structure of the file"
        how = "is missing" if broken[table] == _MISSING else "has damaged pages"
        lost = _SOURCES.get(table, "")
        is_lost = f": of {lost} some may be lost" if lost else ", which can be rebuilt"
        yield Finding("pages", f"{what} {how}{is_lost}", _REBUILD)


# -- memories --------------------------------------------------------------------------------------------------------


def _check_memories(connection: Connection, tick: Tick) -> Iterator[Finding]:
    rows = memory_rows(connection)
    known, seen = _keys_of_names(connection), dict[int, str]()
    wrong: dict[str, list[str]] = defaultdict(list)
    stale = misnamed = 0
    total = next((count for (count,) in select_readable(connection, "SELECT count(*) FROM memories")), 0)
    for number, (row, *columns) in enumerate(rows):
        if number % _TICK_ROWS == 0:
            tick(number, total, "memories")
        one = check_row(row, tuple(columns))
        seen[row] = one.id
        scope, place = columns[SCOPE_CHECKED], columns[NUMBER_CHECKED]
        is_read_today = known is not None and isinstance(place, int) and place >= known[0].get(scope, place + 1)
        if one.wrong:
            wrong[one.wrong].append(one.id)
        else:
            stale += not has_sound_embedding(tuple(columns), is_read_today)
        if one.memory is not None and known is not None and is_read_today:
            misnamed += {name.key for name in names_of(one.memory)} != known[1].get((scope, place), set())
    yield from wrong_memories({code: tuple(names) for code, names in wrong.items()})
    if lost := missing_memories(connection, seen):
        yield _lost(
            "lost", tuple(one.id for one in lost), "cannot be read from the file any more; only their ids are known"
        )
    elif not rows.is_whole:
        yield Finding("lost", "more memories may be lost, whose ids cannot be read", _COPY, derived=False)
    if stale:
        texts = f"the embedded text of {counted(stale, 'memory', 'memories')}"
        yield Finding("embedded", f"{texts} differs from the text that was embedded", _REBUILD)
    if misnamed:
        yield Finding("names", f"{counted(misnamed, 'memory has', 'memories have')} lost names", _REBUILD)


def wrong_memories(wrong: dict[str, tuple[str, ...]]) -> Iterator[Finding]:
    """Yield a finding for each kind of damage of memories, with their ids."""
    if names := wrong.get("texts"):
        texts = f"{counted(len(names), 'text was', 'texts were')} altered"
        yield Finding("texts", f"{texts} and can be restored: {shorten(names)}", _REBUILD, names=names)
    if names := wrong.get("fields"):
        facts = counted(len(names), "fact has", "facts have")
        told = f"{facts} invalid fields, which will be blank: {shorten(names)}"
        yield Finding("fields", told, _REBUILD, names=names)
    if names := wrong.get("chunks"):
        yield _lost("chunks", names, "of files or documents can be read, but differ from what was stored", _SET_ASIDE)
    if names := wrong.get("altered"):
        yield _lost("altered", names, "can be read, but differ from what was stored", _UPDATE)
    if names := wrong.get("unreadable"):
        yield _lost("unreadable", names, "cannot be read")


def _lost(code: str, names: tuple[str, ...], why: str, hint: str = _COPY) -> Finding:
    return Finding(code, f"{counted(len(names), 'memory', 'memories')} {why}: {shorten(names)}", hint, False, names)


def _keys_of_names(connection: Connection) -> tuple[dict[str, int], dict[Key, set[str]]] | None:
    """Return the first number of each scope that today's analyzer has read, and the keys of names; None if unknown."""
    keys: dict[Key, set[str]] = defaultdict(set)
    try:
        for scope, number, key in connection.execute("SELECT scope, number, key FROM names"):
            keys[scope, number].add(key)
        return read_today(connection), keys
    except UNREADABLE:
        return None


def read_today(connection: Connection) -> dict[str, int]:
    """Return the first number that the current analyzer has indexed, by scope; of some scopes it has indexed none."""
    stored = connection.execute("SELECT scope, readers FROM scopes ORDER BY scope").fetchall()
    last = {scope: ranges_in(text)[-1] for scope, text in stored}
    return {scope: first for scope, (first, reader) in last.items() if reader == READER_VERSION}


# -- other data that is not derived ----------------------------------------------------------------------------------


def _check_arrivals(connection: Connection, is_newest: bool) -> Iterator[Finding]:
    """Find the facts that were set aside as unreadable, and those that a repair would set aside."""
    columns = column_expressions(connection, "arrivals")
    if not columns and not is_newest:
        return
    told = [columns.get(name, "NULL") for name in ("id", "text", "rest")]
    rows = ReadableRows(connection, "arrivals", told, numbered=True)
    names = tuple(
        legible_id(identity, f"arrival {entry}")
        for entry, identity, text, rest in rows
        if entry < 0 or not (isinstance(text, str) and isinstance(rest, str) and _is_object(rest or "{}"))
    )
    if names:
        memories = counted(len(names), "memory was", "memories were")
        hint = "store them again, ingest their files again, or give them up with `whyrank doctor --give-up`"
        yield Finding("aside", f"{memories} damaged and set aside: {shorten(names)}", hint, False, names)
    if not rows.is_whole:
        yield Finding("lost", "facts that waited to be indexed may be lost", _COPY, derived=False)


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False


def _check_metadata(connection: Connection, is_newest: bool) -> Iterator[Finding]:
    """Check history, write keys, notes and the manifest of files: they have no second source."""
    try:
        lost = miscounted(connection)
    except UNREADABLE:
        lost = {}  # a table that cannot be counted cannot be read either
    for table in ("history", "write_keys", "meta", "files"):
        columns = column_expressions(connection, table)
        if not columns and not is_newest:
            continue  # an earlier schema had none
        rows = ReadableRows(connection, table, list(columns.values()), numbered=table == "history")
        wrong = sum(not _is_sound(table, row) for row in rows)
        is_derived = table == "files"  # the next ingest reads them again
        hint = _REBUILD if is_derived else _FROM_A_COPY
        if wrong or not rows.is_whole:
            how_many = f"{wrong:,} of " if rows.is_whole else "some of "
            yield Finding("books", f"{how_many}{_SOURCES[table]} cannot be read", hint, is_derived)
        elif gone := lost.get(table):
            yield Finding("books", f"{gone:,} of {_SOURCES[table]} {which(gone, 'is', 'are')} missing", hint, False)


def _is_sound(table: str, row: Row) -> bool:
    values = row[1:] if table == "history" else row
    if not all(column.fits(value) for column, value in zip(table_columns(table), values, strict=False)):
        return False
    return table != "history" or was_in(row[_WAS]) is not None


# -- derived data ----------------------------------------------------------------------------------------------------


Count = tuple[str, int, str, str, str]  # code, number of defects, and the words of the finding: one, several, why


def check_derived(connection: Connection, broken: Counter[str], tick: Tick) -> Iterator[Finding]:
    """Yield the findings on derived data; damage of broken tables is reported elsewhere."""
    try:
        named = index_in(connection)
    except UNREADABLE:
        return  # a finding reports already that these notes are damaged
    index = named[0] if named else ""
    if index not in INDEX_NAMES:
        yield Finding("pages", "the store does not say which keyword index it has", _REBUILD)
    generations = connection.execute("SELECT value FROM meta WHERE key = 'generation'")
    if not any(is_generation(value) for (value,) in generations):
        yield Finding("pages", "the store does not say which generation it is of", _REBUILD)
    checks = [check for check in _CHECKS if check[0] in ("", index)]
    for number, (_, code, tables, count) in enumerate(checks):
        tick(number, len(checks), code)
        try:
            for found, wrong, one, several, why in count(connection):
                if wrong:
                    yield Finding(found, f"{counted(wrong, one, several)} {why}", _REDERIVE)
        except (SqlError, ValueError, TypeError, LookupError) as error:
            if not any(table in broken or f"index of {table}" in broken for table in tables.split()):
                yield Finding(code, f"derived data cannot be read: {error}", _REBUILD)


def _scalar(connection: Connection, query: str) -> Any:
    return connection.execute(query).fetchone()[0]


def _count_records(connection: Connection) -> Iterator[Count]:
    broken = len(broken_records(connection))
    yield "records", broken, "block of doc values is", "blocks of doc values are", "damaged or missing"


def broken_records(connection: Connection) -> list[tuple[str, int]]:
    """Return the blocks of records that fail their checksum, are missing, or differ from the memories."""
    wanted: dict[tuple[str, int], dict[int, bytes]] = defaultdict(dict)
    for scope, number, identity in connection.execute("SELECT scope, number, id FROM memories"):
        wanted[scope, number - number % BLOCK][number % BLOCK] = id_in_record(identity)
    broken = []
    for scope, first, blob in connection.execute("SELECT scope, first, records FROM records"):
        if _ids_in_block(blob, scope, first) != wanted.pop((scope, first), {}):
            broken.append((scope, first))
    return [*broken, *wanted]


def _ids_in_block(blob: bytes, scope: object, first: object) -> dict[int, bytes] | None:
    try:
        records = decoded(blob, scope, first)
    except (ChecksumError, ValueError, TypeError):
        return None
    places = np.flatnonzero(records["unit"] != GONE).tolist()
    return dict(zip(places, records["id"][places].tolist(), strict=True))


def _count_scopes(connection: Connection) -> Iterator[Count]:
    wrong = _scalar(
        connection,
        "SELECT count(*) FROM (SELECT scope, max(number) AS last FROM memories GROUP BY scope) AS m "
        "LEFT JOIN scopes AS s ON s.scope = m.scope WHERE s.numbers IS NULL OR s.numbers <= m.last",
    )
    yield "scopes", wrong, "scope holds", "scopes hold", "more memories than it says"
    wrong = _scalar(
        connection,
        "SELECT count(*) FROM scopes WHERE typeof(changed) <> 'integer' OR typeof(epoch) <> 'integer' "
        f"OR numbers > {BLOCK} + max(coalesce((SELECT max(first) FROM records AS r WHERE r.scope = scopes.scope), 0), "
        "coalesce((SELECT max(number) FROM memories AS m WHERE m.scope = scopes.scope), 0))",
    )
    yield "scopes", wrong, "scope says", "scopes say", "values of its memories that are not valid"


def _count_pages(connection: Connection) -> Iterator[Count]:
    one, several = "segment of the keyword index has", "segments of the keyword index have"
    yield "postings", len(broken_segments(connection)), one, several, "a damaged, misfiled or missing page"


def broken_segments(connection: Connection) -> list[tuple[str, Segment, bool]]:
    """Return the segments with a damaged or misfiled page, and whether each is live."""
    known = {
        (scope, segment): (scope, Segment(scope, segment, *numbers), state == LIVE)
        for scope, segment, *numbers, state in connection.execute(
            "SELECT scope, segment, first, last, memories, state FROM posting_segments"
        )
    }
    possible = (one for _, one, _ in known.values() if one.is_possible)  # the others are counted elsewhere
    directories = {one[:2]: filed(connection, one) for one in possible}
    broken = dict.fromkeys(place for place, directory in directories.items() if directory is None)
    for *owner, field, first, blob in connection.execute(
        "SELECT scope, segment, field, first_key, page FROM posting_pages"
    ):
        place = (owner[0], owner[1])
        pages = (directories.get(place) or {}).get(field, NO_PAGES)
        is_listed = place not in directories or (pages.lists(first, blob) and _is_page(field, first, blob))
        if place not in broken and not is_listed:
            broken[place] = None
    return [known[place] for place in broken if place in known]


def _is_page(field: int, first: int, blob: bytes) -> bool:
    try:
        return first == (terms.first_of(blob) if field == terms.FIELD else read(blob).lowest)
    except (ChecksumError, ValueError, TypeError, IndexError):
        return False


def _count_tokens(connection: Connection) -> Iterator[Count]:
    rows = connection.execute(
        "SELECT m.length, t.tokens, m.scope, m.number FROM memories AS m LEFT JOIN posting_tokens AS t "
        "ON t.scope = m.scope AND t.number = m.number"
    )
    wrong = sum(not _has_tokens(length, *stored) for length, *stored in rows)
    yield "words", wrong, "memory has", "memories have", "damaged words or none in the keyword index"
    orphans = _scalar(
        connection,
        "SELECT count(*) FROM posting_tokens AS t WHERE NOT EXISTS "
        "(SELECT 1 FROM memories AS m WHERE m.scope = t.scope AND m.number = t.number)",
    )
    yield "words", orphans, "list of words belongs", "lists of words belong", "to no memory"


def _has_tokens(length: int, blob: bytes | None, scope: str, number: int) -> bool:
    try:
        return len(unpack(blob, scope, number)) == length
    except ChecksumError:
        return False


def _count_uncovered(connection: Connection) -> Iterator[Count]:
    """Count flushed memories that lie in no segment with pages, and pages without a segment."""
    missing = _scalar(
        connection,
        "SELECT count(*) FROM memories AS m JOIN posting_scopes AS f ON f.scope = m.scope AND m.number < f.flushed "
        "WHERE m.length > 0 AND NOT EXISTS (SELECT 1 FROM posting_segments AS s WHERE s.scope = m.scope "
        f"AND s.state = {LIVE} AND m.number BETWEEN s.first AND s.last "
        "AND EXISTS (SELECT 1 FROM posting_pages AS p WHERE p.scope = s.scope AND p.segment = s.segment))",
    )
    yield "words", missing, "memory is", "memories are", "in no segment of the keyword index"
    orphans = _scalar(
        connection,
        "SELECT count(*) FROM posting_pages AS p WHERE NOT EXISTS "
        "(SELECT 1 FROM posting_segments AS s WHERE s.scope = p.scope AND s.segment = p.segment)",
    )
    yield "words", orphans, "page of the keyword index belongs", "pages belong", "to no segment"


def _count_segments(connection: Connection) -> Iterator[Count]:
    """Count segments with impossible metadata, and scopes whose segments overlap or leave gaps."""
    given = dict(connection.execute("SELECT scope, segments FROM posting_scopes").fetchall())
    counts = {scope: last for scope, last in given.items() if isinstance(last, int)}
    scopes = {*given}
    wrong = len(given) - len(counts)
    wrong += sum(
        not (Segment(scope, *numbers).is_possible and scope in given and state in (LIVE, MAKING) and are_whole)
        or numbers[0] > counts.get(scope, numbers[0])
        for scope, *numbers, state, are_whole in connection.execute(
            "SELECT scope, segment, first, last, memories, state, "
            "typeof(field) = 'integer' AND typeof(next_key) = 'integer' FROM posting_segments"
        )
    )
    yield "words", wrong, "segment of the keyword index says", "segments say", "values that are not valid"
    scopes.update(scope for (scope,) in connection.execute("SELECT scope FROM scopes"))
    apart = sum(not _has_span(connection, scope) for scope in scopes)
    yield "words", apart, "scope has", "scopes have", "segments that do not fit together"


def _has_span(connection: Connection, scope: str) -> bool:
    try:
        span(connection, scope)
    except ChecksumError:
        return False
    return True


def _count_fts5(connection: Connection) -> Iterator[Count]:
    wrong = _scalar(connection, UNPAIRED)
    yield "words", wrong, "memory and its words do", "memories and their words do", "not go together"


def _count_unindexed(connection: Connection) -> Iterator[Count]:
    wrong = _scalar(connection, f"SELECT count(*) FROM memories WHERE id IN ({SET_ASIDE})")
    yield "words", wrong, "memory was", "memories were", "changed and could not be indexed again"


def _count_names(connection: Connection) -> Iterator[Count]:
    yield "names", _wrong_names(connection), "name is", "names are", "damaged, or without its words"
    scopes = connection.execute("SELECT scope FROM scopes WHERE typeof(scope) = 'text'").fetchall()
    wrong = sum(bool(connection.execute(MISCOUNTED, scope).fetchall()) for scope in scopes)
    yield "names", wrong, "scope has", "scopes have", "lost names, or words of names"


def _wrong_names(connection: Connection) -> int:
    wrong = 0
    spoken: dict[Key, set[str]] = defaultdict(set)
    needed: dict[Key, set[str]] = defaultdict(set)
    words: dict[Key, set[str]] = defaultdict(set)
    for scope, number, text, key, said, ordered, specificity in connection.execute(
        "SELECT scope, number, text, key, words, sorted_words, specificity FROM names"
    ):
        is_text = all(isinstance(value, str) for value in (text, key, said, ordered))
        wrong += not is_text or name_key(text) != key or words_key(said.split()) != ordered
        wrong += is_text and not isinstance(specificity, int)
        if is_text:
            name = Name(text, key, tuple(said.split()), specificity)
            spoken[scope, number].update(name.words)
            needed[scope, number].update(name.words if is_known_in_part(name) else ())
    for scope, number, word in connection.execute("SELECT scope, number, word FROM name_words"):
        words[scope, number].add(word)
    # Words of whole paths were listed by earlier versions as well, and are of no use.
    return wrong + sum(not needed[memory] <= words[memory] <= spoken[memory] for memory in spoken.keys() | words.keys())


def _count_unowned_names(connection: Connection) -> Iterator[Count]:
    tables = ("names", "name_words")
    wrong = sum(_scalar(connection, f"SELECT count(*) FROM {table} AS n WHERE {UNOWNED_NAMES}") for table in tables)
    yield "names", wrong, "name belongs", "names belong", "to no memory"


def _count_vectors(connection: Connection) -> Iterator[Count]:
    wrong = len(misstated_sizes(connection))
    yield "vectors", wrong, "model says", "models say", "another number of dimensions than its vectors have"
    broken = sum(len(numbers) for by_scope in broken_vectors(connection).values() for numbers in by_scope.values())
    yield "vectors", broken, "vector fails", "vectors fail", "its checksum, or has another length"
    orphans = _scalar(connection, f"SELECT count(*) FROM vectors AS o WHERE {UNOWNED_VECTOR}")
    orphans += _scalar(connection, f"SELECT count(*) FROM embedding_failures AS o WHERE {UNOWNED} AND o.hash <> ''")
    yield "orphans", orphans, "vector belongs", "vectors belong", "to no memory, and only take up space"


def broken_vectors(connection: Connection) -> dict[str, dict[str, list[int]]]:
    """Return the numbers of memories whose vectors fail their checksum or have another length, by space and scope."""
    sizes = _usual_bytes(connection)
    broken: dict[str, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for space, scope, number, *vector in connection.execute(
        f"SELECT space, scope, number, hash, checksum, vector FROM vectors WHERE {PLACED}"
    ):
        if not is_vector(sizes.get(space), place_mask(scope, number), *vector):
            broken[space][scope].append(number)
    return broken


def _usual_bytes(connection: Connection) -> dict[str, int]:
    """Return the most frequent vector size in bytes of each space: the size in the notes may be damaged."""
    by_size = "SELECT space, length(vector) FROM vectors GROUP BY 1, 2 ORDER BY count(*)"
    return {space: size for space, size in connection.execute(by_size) if isinstance(size, int)}


def misstated_sizes(connection: Connection) -> dict[str, int]:
    """Return the actual dimensions of the spaces whose notes state another number."""
    found = _usual_bytes(connection)
    return {space: size // 4 for space, size in found.items() if vector_bytes(connection, space) != size}


def broken_signs(connection: Connection) -> int:
    """Count the blocks of signs that fail their checksum or lie outside their scope."""
    blocks = connection.execute(
        "SELECT b.space, b.scope, b.first, b.present, b.signs, s.numbers FROM sign_blocks AS b "
        "LEFT JOIN scopes AS s ON s.scope = b.scope"
    )
    return sum(signs_in(*block) is None or block[2] >= (numbers or 0) for *block, numbers in blocks)


def _count_signs(connection: Connection) -> Iterator[Count]:
    why = "its checksum, or is in the wrong place"
    yield "signs", broken_signs(connection), "block of quantized vectors fails", "blocks of quantized vectors fail", why


# The index it applies to ("" for every store), the code if it cannot be read, the tables, and the counts.
_CHECKS = (
    ("", "records", "records", _count_records),
    ("", "scopes", "scopes", _count_scopes),
    ("postings", "postings", "posting_pages posting_segments", _count_pages),
    ("postings", "words", "posting_tokens", _count_tokens),
    ("postings", "words", "posting_segments posting_pages posting_scopes", _count_uncovered),
    ("postings", "words", "posting_segments posting_scopes", _count_segments),
    ("fts5", "words", "words", _count_fts5),
    ("", "words", "meta", _count_unindexed),
    ("", "names", "names name_words", _count_names),
    ("", "names", "names name_words", _count_unowned_names),
    ("", "vectors", "vectors embedding_failures", _count_vectors),
    ("", "signs", "sign_blocks", _count_signs),
)
