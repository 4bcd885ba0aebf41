"""The care of a store in a file: what is wrong with it, and its repair.

Blocks that fail their checksum are made anew where they are. Where pages, tables or memories are damaged, the whole
store is written anew with all that can be read.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from ...checkups import Finding
from ...errors import StoreDamaged
from .connection import SAVE, Connection, leniently
from .database import Database
from .examining import Tick, examine
from .indexes import INDEXES, index_in
from .migrations import MIGRATIONS
from .names import NameIndex
from .notes import raise_generation, recount
from .postings import segments
from .queue import dimensions_key
from .reanalysis import compare
from .rebuilding import LEFT, rebuild
from .records import Ledger
from .restating import HASHES_GIVEN
from .schema import restate, version_of
from .soundness import broken_records, broken_segments, broken_signs, broken_vectors, misstated_sizes
from .vectors import VectorIndex
from .writing import Writing

# What is mended where it stands; whatever else is wrong and derived takes writing everything anew.
_IN_PLACE = frozenset({"schema", "records", "postings", "vectors", "signs", "orphans"})
_SET_ASIDE = frozenset({"unreadable", "lost", "chunks"})  # so that the others answer, and files are read anew
_SENSELESS = (ValueError, TypeError, LookupError, ArithmeticError)  # what values that were damaged may raise
_WITHOUT_MEMORY = "NOT EXISTS (SELECT 1 FROM memories AS m WHERE m.embed_hash = o.hash)"


def examined(path: Path, tick: Tick) -> list[Finding]:
    """Return what is wrong with the store in a file."""
    try:
        with closing(Database(path, forgiving=True)) as database:
            return examine(database, tick)
    except StoreDamaged as error:
        return [unusable(error)]


def unusable(error: StoreDamaged) -> Finding:
    """Say that a store cannot be opened, and what is left to do where looking at it was of no help."""
    hint = f"if this is your store: {LEFT}" if SAVE in error.hint else error.hint
    return Finding("unusable", f"the store cannot be used as it is: {error.message}", hint, derived=False)


def given_up(path: Path) -> tuple[str, ...]:
    """Forget the memories that were set aside because they cannot be read; return which they were."""
    with closing(Database(path)) as database, database.writing() as connection:
        gone = connection.execute("DELETE FROM arrivals WHERE entry < 0 RETURNING id").fetchall()
        recount(connection)
        raise_generation(connection)
    return tuple(sorted(str(identity) for (identity,) in gone))


def mended(path: Path, tick: Tick, known: Sequence[Finding] = ()) -> tuple[list[Finding], str]:
    """Mend what can be made anew; return what was wrong, and where the store lies as it was if it was written anew.

    What a deep look has found is known: then the whole store is written anew, and looked at deeply again.
    """
    found, kept = [*known] or examined(path, tick), ""
    with closing(Database(path, forgiving=True)) as database:
        wanted = {finding.code for finding in found if finding.derived or finding.code in _SET_ASIDE}
        if not wanted:
            return found, ""
        if "schema" in wanted:
            restate(database)
        if wanted == {"schema"}:
            return _told(found, examined(path, tick)), ""
        if known or wanted - _IN_PLACE or version_of(database) != MIGRATIONS[-1].version:
            try:
                kept = str(rebuild(database, tick))
            except StoreDamaged as error:
                return _hopeless(found, error.message), ""
            except _SENSELESS as error:
                return _hopeless(found, f"what can be read of the store does not fit together: {error}"), ""
        else:
            _mend_in_place(database)
    # Looked at by nobody who knew it before.
    return _told(found, compare(path, tick)[0] if known else examined(path, tick)), kept


def _hopeless(found: list[Finding], why: str) -> list[Finding]:
    """Say that no repair is possible; of what it would have made anew nobody is sent to it again."""
    said = [one._replace(hint="") if one.derived else one for one in found]
    return [*said, Finding("hopeless", why, LEFT, derived=False)]


def _told(before: list[Finding], after: list[Finding]) -> list[Finding]:
    """Say of what was wrong whether it is mended, and what is still wrong."""
    still = {finding.code for finding in after if finding.derived}
    done = [one._replace(mended=one.code not in still) for one in before if one.derived]
    return [*done, *(one for one in before if not one.derived and one.code != "aside"), *_new(before, after)]


def _new(before: list[Finding], after: list[Finding]) -> list[Finding]:
    """Return what is wrong after a repair and was not said of before; what was set aside just now was."""
    known = {name for one in before if one.code != "aside" for name in one.names}
    aside = [one for one in after if one.code == "aside" and not known.issuperset(one.names)]
    codes = {one.code for one in before} | {"aside"}
    return [*aside, *(one for one in after if one.code not in codes)]


def _mend_in_place(database: Database) -> None:
    with database.writing() as connection, leniently(connection):
        named = index_in(connection)
        if named is None:
            raise StoreDamaged(f"{database.path} does not say which keyword index it has", "take a copy of the store")
        if named[0] == "postings":
            _mend_segments(connection)
        index = INDEXES[named[0]](0, None)
        ledger = Ledger(connection, raise_generation(connection), index.stored_tokens)
        for scope, first in broken_records(connection):
            if isinstance(first, int) and isinstance(scope, str):
                ledger.mend(scope, first)
            else:
                # As bytes: what is no UTF-8 was read as such, and is no equal of the text it stands in as.
                which = "CAST(scope AS BLOB) IS CAST(? AS BLOB) AND first IS ?"
                connection.execute(f"DELETE FROM records WHERE {which}", (scope, first))
        ledger.close()
        _mend_vectors(connection, Writing(connection, index, NameIndex(), VectorIndex()))


def _mend_segments(connection: Connection) -> None:
    for scope, segment, answers in broken_segments(connection):
        if answers:
            segments.rewrite(connection, scope, [segment])
        else:  # a merge, which begins again
            segments.drop(connection, segment.segment)


def _mend_vectors(connection: Connection, writing: Writing) -> None:
    """Drop vectors that are damaged or nobody's; those that are wanted are embedded again, signs made from them."""
    for space, dimensions in misstated_sizes(connection).items():
        connection.execute(
            "INSERT INTO meta VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value",
            (dimensions_key(space), str(dimensions)),
        )
    for space, hashes in broken_vectors(connection).items():
        writing.drop_vectors(space, hashes)
    if broken_signs(connection):
        VectorIndex().make_signs_anew(connection)
    connection.execute(f"DELETE FROM vectors AS o WHERE {_WITHOUT_MEMORY} AND o.hash NOT IN ({HASHES_GIVEN})")
    connection.execute(f"DELETE FROM embedding_failures AS o WHERE o.hash <> '' AND {_WITHOUT_MEMORY}")
