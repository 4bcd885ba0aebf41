"""One transaction: memories, their names, postings, records and vectors change together or not at all.

Numbers are given out once, so a scope that is rewritten often has many gaps: then it is renumbered.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING

from ...analysis.normalize import text_key
from ...errors import StoreError
from ...protocols import Changes, Vector
from . import pending
from .database import (
    META_VALUE,
    RAISE,
    Connection,
    add_checksum,
    foresee,
    meta_value,
    portions,
    raise_generation,
    set_meta,
    undoable,
)
from .doc_values import BLOCK, BOUNDS, NUMBERS, RecordWriter, made_anew, ranges_in, renumbered, set_aside_lost
from .history import (
    all_in,
    check_basis,
    count_recalls,
    end_claims,
    forget_past,
    forget_set_aside,
    lives_of,
    mark_superseded,
    put_keys,
    put_past,
    refuse_circles,
    refuse_foreign_ids,
    refuse_twins,
    revise,
    still_expired,
    take_keys,
    with_recalls,
    write_history,
)
from .metadata import (
    INDEX_IN,
    INDEX_TO_COME,
    check_note,
    dimensions_key,
    drop_notes,
    drop_orphaned_failures,
    mark_for_purge,
    put_failures,
    write_notes,
)
from .postings.format import span_asked
from .postings.segments import DUE
from .rows import INSERT, check_rows, to_row
from .top_k import KeywordIndex, NumberedMemory
from .vectors.table import Holder, put_vectors, renumber_vectors, take_over_vectors, write_signs

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from ...protocols import Arrival
    from ...types.memory import Entry, MemoryId, Scope
    from .database import Asked
    from .names import NameIndex
    from .pending import Arrived

LOOKED_AT_EVERY = 4_096  # numbers given out between two checks for gaps
_DROP_VECTORS = "DELETE FROM vectors WHERE scope = ? AND number = ?"  # of every space
_DROP_VECTOR = "DELETE FROM vectors WHERE scope = ? AND space = ? AND number = ?"
MAX_MEMORIES = 50_000  # more would block other writers too long; their gaps cost less


def renumber(connection: Connection, index: KeywordIndex, scope: str, generation: int) -> int:
    """Give the memories of a scope numbers without gaps, in their order; return their count.

    Data keyed by numbers is rewritten, except for signs, which are deleted: the caller derives them from the vectors.
    """
    old = [
        number
        for (number,) in connection.execute("SELECT number FROM memories WHERE scope = ? ORDER BY number", (scope,))
    ]
    # Each new number is at most the old one, and assigned in order, so none conflicts with another.
    moves = [(new, scope, number) for new, number in enumerate(old) if new != number]
    for (first,) in connection.execute("SELECT first FROM records WHERE scope = ?", (scope,)).fetchall():
        set_aside_lost(connection, scope, first)
    for table in ("memories", "names", "name_words"):
        connection.executemany(f"UPDATE {table} SET number = ? WHERE scope = ? AND number = ?", moves)
    renumber_vectors(connection, scope, moves)
    index.renumber(connection, scope, moves, len(old))
    connection.execute("DELETE FROM sign_blocks WHERE scope = ?", (scope,))
    connection.execute("DELETE FROM records WHERE scope = ?", (scope,))
    for first in range(0, len(old), BLOCK):
        records = made_anew(connection, scope, first, index.stored_tokens)
        connection.execute(
            "INSERT INTO records VALUES (?, ?, ?, ?)",
            (scope, first, generation, add_checksum(records.tobytes(), scope, first)),
        )
    known = connection.execute(NUMBERS, (scope,)).fetchone()
    connection.execute(
        "UPDATE scopes SET numbers = ?, changed = ?, epoch = epoch + 1, readers = ? WHERE scope = ?",
        (len(old), generation, json.dumps(renumbered(ranges_in(known[1] if known else None), old)), scope),
    )
    return len(old)


class Writer:
    """Writer of one transaction, which applies its changes to every table."""

    def __init__(
        self, connection: Connection, keyword: KeywordIndex, names: NameIndex, to_come: KeywordIndex | None = None
    ) -> None:
        self._connection = connection
        self.keyword = keyword
        self._names = names
        self._generation = generation = raise_generation(connection)
        self._to_come = to_come  # the index that is being built: memories are removed from it too
        self._ledger = RecordWriter(connection, generation, keyword.stored_tokens)
        self._put: dict[str, list[int]] = defaultdict(list)
        self._placed: list[NumberedMemory] = []
        self._lost: Counter[str] = Counter()  # number of memories a scope has lost
        self._removed: list[tuple[str, int]] = []

    def apply(self, changes: Changes) -> None:
        """Apply the changes."""
        connection = self._connection
        entries = {entry.memory.id: entry for entry in changes.put}
        refuse_foreign_ids(connection, entries.values())
        check_basis(connection, changes.basis)
        check_note(connection, changes.noted)
        below = _chunks_below(connection, changes.replace_files)
        gone = {*changes.remove, *below, *all_in(connection, changes.clear)} - entries.keys()
        pruned = still_expired(connection, changes.prune) - entries.keys()
        lives = lives_of(connection, entries, gone, changes.renamed)
        put = with_recalls(connection, entries, changes.renamed)
        before = self._holders_before(put)
        orphans = self._remove([*gone, *pruned, *entries])
        forget_past(connection, gone | pruned, changes.clear)
        forget_set_aside(connection, [*gone, *pruned, *entries], changes.clear)
        self._insert(put)
        self._speak({entry.language for entry in entries.values()})
        for scope in revise(connection, changes.revised):
            self._ledger.touch(scope)
        end_claims(connection, changes.superseded)
        for scope, _ in mark_superseded(connection, {**lives, **changes.superseded}):
            self._ledger.touch(scope)
        refuse_circles(connection, changes.superseded)
        for scope in count_recalls(connection, changes.recalled):
            self._ledger.touch(scope)
        write_history(connection, changes.history)
        take_keys(connection, changes.keys)
        refuse_twins(connection, _said_anew(changes))
        drop_notes(connection, changes.drop_notes)
        self._write_manifest(changes)
        write_notes(connection, changes.notes)
        changes = _without_gone(connection, changes)
        holders = self._holders(changes.vectors, {str(entry.memory.scope) for entry in put} or None)
        if changes.vectors:
            put_vectors(connection, changes.space, changes.vectors, holders)
        self._move_vectors(before)
        drop_orphaned_failures(connection, orphans)
        put_failures(connection, changes.space, {**changes.failures, **dict.fromkeys(changes.vectors)})
        self._close({changes.space}, holders)
        self._close_keyword()
        check_rows(connection)
        if changes.purge:
            self._purge()
        else:
            self._close_gaps()

    def take_in(self, arrived: Sequence[Arrived]) -> None:
        """Insert new facts without predecessors; every check was made before."""
        by_space: dict[str, dict[str, Vector]] = {}
        for entry, space, vector in arrived:
            vectors = by_space.setdefault(space, {})
            if vector is not None:
                vectors[entry.embed_hash] = vector
        entries = [entry for entry, _, _ in arrived]
        before = self._holders_before(entries)
        self._insert(entries)
        known = {text_hash for vectors in by_space.values() for text_hash in vectors}
        holders = [one for one in chain(before, self._holders_placed()) if one[-1] in known]
        for space, vectors in by_space.items():
            if vectors:
                put_vectors(self._connection, space, vectors, holders)
        self._move_vectors(before)
        self._speak({entry.language for entry, _, _ in arrived})
        self._close(by_space, holders)
        self._close_keyword()
        self._close_gaps()

    def take_over(
        self,
        entries: Sequence[Entry],
        gone: Sequence[MemoryId],
        history: Sequence[tuple[str, MemoryId, float, str]],
        keys: Sequence[tuple[str, str, str, str]],
        vectors: Mapping[tuple[str, str], Mapping[str, Vector]],
        language: str = "",
    ) -> None:
        """Store memories of another store as they are there, with all that belongs to them; `gone` are removed before.

        Successors, history and recalls are given, so nothing is derived from what the store holds. Vectors, by scope
        and space, take the place of those that are there.
        """
        connection = self._connection
        before = self._holders_before(entries)
        orphans = self._remove(gone)
        forget_past(connection, gone, ())
        forget_set_aside(connection, [*gone, *(entry.memory.id for entry in entries)], ())
        self._insert(entries)
        put_past(connection, history)
        put_keys(connection, keys)
        if language and meta_value(connection, "language") is None:
            self._speak({language})
        for (scope, space), by_hash in vectors.items():
            put_vectors(connection, space, by_hash, self._holders(by_hash, [scope]))
        self._move_vectors(before)
        drop_orphaned_failures(connection, orphans)
        holders = [one for (scope, _), by_hash in vectors.items() for one in self._holders(by_hash, [scope])]
        self._close({space for _, space in vectors}, holders)
        self._close_keyword()
        self._close_gaps()

    def read_anew(self, anew: pending.ChangedTexts) -> None:
        """Index memories again whose texts were changed in their rows."""
        self.apply(Changes(put=anew.entries, space=anew.space))

    def _speak(self, languages: Collection[str]) -> None:
        """Store the language for texts without a detected one."""
        for language in filter(None, languages):
            set_meta(self._connection, "language", language)

    def _purge(self) -> None:
        """Mark the scopes that lost memories as to be scrubbed; renumber those that lost most."""
        if self._to_come is not None:
            raise StoreError("the keyword index is being changed", "purge when that has finished; nothing was removed")
        for scope, lost in sorted(self._lost.items()):
            left = "SELECT count(*) FROM (SELECT 1 FROM memories WHERE scope = ? LIMIT ?) AS rest"
            # Renumbering costs no more where a scope has lost at least as many memories as it has left.
            if self._connection.execute(left, (scope, lost + 1)).fetchone()[0] <= lost:
                self._renumber(scope)
            else:
                self.keyword.abandon_merge(self._connection, scope)
        # The stored error of a provider may quote deleted text.
        self._connection.execute("DELETE FROM embedding_failures WHERE hash = ''")
        mark_for_purge(self._connection, self._lost)

    def _renumber(self, scope: str) -> None:
        spaces = self._connection.execute("SELECT DISTINCT space FROM sign_blocks WHERE scope = ?", (scope,)).fetchall()
        living = renumber(self._connection, self.keyword, scope, self._generation)
        for (space,) in spaces:
            write_signs(self._connection, space, {scope: range(living)})

    def _close_gaps(self) -> None:
        """Renumber scopes of which most numbers are unused; checked every LOOKED_AT_EVERY numbers."""
        if self._to_come is not None:
            return
        for scope, numbers in self._put.items():
            if numbers[0] // LOOKED_AT_EVERY != (numbers[-1] + 1) // LOOKED_AT_EVERY:
                count = "SELECT count(*) FROM memories WHERE scope = ?"
                living: int = self._connection.execute(count, (scope,)).fetchone()[0]
                if living <= MAX_MEMORIES and 2 * living < numbers[-1] + 1:
                    self._renumber(scope)

    def mend(self, broken: Mapping[str, Sequence[int]]) -> Writer:
        """Rebuild damaged blocks of records."""
        for scope, firsts in broken.items():
            for first in firsts:
                self._ledger.mend(scope, first)
        return self

    def drop_vectors(self, space: str, numbers: Mapping[str, Iterable[int]]) -> None:
        """Delete the vectors of some memories, by scope, so that they are embedded again."""
        dropped = [(scope, number, "") for scope, theirs in numbers.items() for number in theirs]
        self._connection.executemany(_DROP_VECTOR, ((scope, space, number) for scope, number, _ in dropped))
        self._close({space}, dropped)

    def _insert(self, entries: Iterable[Entry]) -> None:
        entries = [*entries]
        scopes = [str(entry.memory.scope) for entry in entries]
        numbers = [*map(self._ledger.next_number, scopes)]
        self._connection.executemany(INSERT, map(to_row, entries, numbers))
        foresee(self._connection, self._ledger.asked(zip(scopes, numbers, strict=True)))
        for scope, number, entry in zip(scopes, numbers, entries, strict=True):
            self._ledger.put(scope, number, entry)
            self._put[scope].append(number)
        placed = [*map(NumberedMemory, numbers, entries)]
        self.keyword.put(self._connection, placed)
        named = [(str(entry.memory.scope), number, entry.names) for number, entry in placed if entry.names]
        for counted in self._names.put(self._connection, named):
            self._ledger.count_names(*counted)
        self._placed += placed

    def _remove(self, ids: Sequence[MemoryId]) -> list[str]:
        """Delete memories from every table; return the hashes of their embedded texts."""
        indexes = [self.keyword, *([self._to_come] if self._to_come is not None else [])]
        hashes = []
        for scope, number, text_hash in _found(self._connection, ids):
            self._ledger.remove(scope, number)
            for index in indexes:
                index.remove(self._connection, scope, number)
            self._ledger.count_names(*self._names.remove(self._connection, scope, number))
            self._connection.execute("DELETE FROM memories WHERE scope = ? AND number = ?", (scope, number))
            self._lost[scope] += 1
            self._removed.append((scope, number))
            hashes.append(text_hash)
        return hashes

    def _holders(self, hashes: Iterable[str], scopes: Collection[str] | None) -> list[Holder]:
        """Return the memories with some embedded texts, of these scopes or of all."""
        found = (self._connection.execute(*asked).fetchall() for asked in _holders_asked(hashes, scopes))
        return [*chain.from_iterable(found)]

    def _holders_before(self, entries: Sequence[Entry]) -> list[Holder]:
        """Return the memories that have the same texts as some entries, in the scopes of these."""
        return self._holders({entry.embed_hash for entry in entries}, {str(entry.memory.scope) for entry in entries})

    def _holders_placed(self) -> Iterator[Holder]:
        """Yield the memories that were inserted, with their embedded texts."""
        for number, entry in self._placed:
            yield str(entry.memory.scope), number, entry.embed_hash

    def _move_vectors(self, before: Iterable[Holder]) -> None:
        """Give new memories the vectors of those that had the same text before, and delete those of removed ones."""
        sources: dict[tuple[str, str], list[int]] = defaultdict(list)
        for scope, number, text_hash in before:
            sources[scope, text_hash].append(number)
        moves = [  # of all of them: some may have lost a vector that another has
            (scope, source, number, text_hash)
            for scope, number, text_hash in self._holders_placed()
            for source in sources.get((scope, text_hash), ())
        ]
        take_over_vectors(self._connection, moves)
        self._connection.executemany(_DROP_VECTORS, self._removed)

    def _close(self, spaces: Collection[str], holders: Sequence[Holder]) -> None:
        """Write the records, and the signs of new memories and of those whose vectors arrived later, by space."""
        changed = {scope: set(numbers) for scope, numbers in self._put.items()}
        for scope, number, _ in holders:
            numbers = changed.setdefault(scope, set())
            if number not in numbers:
                self._ledger.touch(scope, [number])
                numbers.add(number)
        self._ledger.close()
        for space in filter(None, spaces):
            write_signs(self._connection, space, changed, self._ledger.size)

    def _close_keyword(self) -> None:
        numbers = {scope: numbers[-1] + 1 for scope, numbers in self._put.items()}
        self.keyword.close(self._connection, numbers, self._placed)

    def _write_manifest(self, changes: Changes) -> None:
        if not (changes.forget_files or changes.files):
            return
        self._connection.executemany(
            "DELETE FROM files WHERE scope = ? AND path = ?",
            ((str(scope), path) for scope, path in changes.forget_files),
        )
        self._connection.executemany(
            "INSERT INTO files (scope, path, size, mtime_ns, content_hash) VALUES (?, ?, ?, ?, ?) "
            "ON CONFLICT DO UPDATE SET size = excluded.size, mtime_ns = excluded.mtime_ns, "
            "content_hash = excluded.content_hash",
            ((str(file.scope), file.path, file.size, file.mtime_ns, file.content_hash) for file in changes.files),
        )


def _holders_asked(hashes: Iterable[str], scopes: Collection[str] | None) -> Iterator[Asked]:
    """Yield the statements that find the memories with some embedded texts."""
    for part, marks in portions([*hashes]):
        for scope in scopes or ():
            yield (
                f"SELECT scope, number, embed_hash FROM memories WHERE scope = ? AND embed_hash IN ({marks})",
                (scope, *part),
            )
        if scopes is None:
            yield f"SELECT scope, number, embed_hash FROM memories WHERE embed_hash IN ({marks})", part


def foreseen_by(arrival: Arrival, arrived: Arrived) -> Iterator[Asked]:
    """Yield the statements that storing a new fact begins with."""
    scope = str(arrival.memory.scope)
    yield RAISE, ()  # first, as it writes `meta`; rolled back if the fact is not new
    yield pending.new_asked(arrival)
    yield INDEX_IN, ()
    for key in (INDEX_TO_COME, dimensions_key(arrival.space)):
        yield META_VALUE, (key,)
    yield NUMBERS, (scope,)
    yield BOUNDS, (scope,)
    yield from span_asked(scope)
    yield DUE, ()
    yield from _holders_asked([arrived.entry.embed_hash], [scope])


def read_anew(connection: Connection, writing: Callable[[], Writer], restated: Sequence[pending.ChangedTexts]) -> None:
    """Index changed texts, all together, or else one by one; those of damaged rows are set aside."""
    with suppress(*pending.UNFIT), undoable(connection):
        for anew in pending.ChangedTexts.joined(restated):
            writing().read_anew(anew)
        return
    for anew in restated:  # one of them is unfit, or some; the batch was rolled back
        try:
            with undoable(connection):
                writing().read_anew(anew)
        except pending.UNFIT:
            _set_aside(connection, anew)


def _set_aside(connection: Connection, anew: pending.ChangedTexts) -> None:
    """Set aside texts that cannot be indexed."""
    for entry in anew.entries:
        pending.set_change_aside(connection, entry.memory.id)


def _said_anew(changes: Changes) -> list[MemoryId]:
    """Return the facts with a new or changed text, and those that became current again."""
    put = {entry.memory.id: entry.memory for entry in changes.put}
    known = {identity: before for identity, before in changes.basis.items() if identity in put}
    said = [key for key, before in known.items() if before is None or text_key(before.text) != text_key(put[key].text)]
    return [*said, *(identity for identity, life in changes.superseded.items() if life is None)]


def _without_gone(connection: Connection, changes: Changes) -> Changes:
    """Leave out vectors and failures of texts that were removed while they were embedded."""
    late = {*changes.vectors, *changes.failures} - {entry.embed_hash for entry in changes.put} - {""}
    there: set[str] = set()
    for part, marks in portions(sorted(late)):
        there |= {
            row[0] for row in connection.execute(f"SELECT embed_hash FROM memories WHERE embed_hash IN ({marks})", part)
        }
    gone = late - there
    if not gone:
        return changes
    vectors = {text_hash: vector for text_hash, vector in changes.vectors.items() if text_hash not in gone}
    failures = {text_hash: failure for text_hash, failure in changes.failures.items() if text_hash not in gone}
    return replace(changes, vectors=vectors, failures=failures)


def _found(connection: Connection, ids: Sequence[MemoryId]) -> list[Holder]:
    found: list[Holder] = []
    for part, marks in portions(ids):
        query = f"SELECT scope, number, embed_hash FROM memories WHERE id IN ({marks})"
        found += connection.execute(query, part).fetchall()
    return found


def _chunks_below(connection: Connection, files: Iterable[tuple[Scope, str]]) -> list[MemoryId]:
    paths: dict[str, list[str]] = defaultdict(list)
    for scope, path in files:
        paths[str(scope)].append(path)
    return [
        identity
        for scope, below in paths.items()
        for part, marks in portions(below)
        for (identity,) in connection.execute(
            f"SELECT id FROM memories WHERE scope = ? AND path IN ({marks}) AND kind = 'chunk'", (scope, *part)
        )
    ]
