"""Deep check of a store: all data derived from its texts is derived again and compared.

Checksums verify that bytes are those that were written. This verifies that they are what this whyrank would write:
tokens, marks and names of every memory, its record, the postings of every segment, the signs of every vector. Nothing
is changed. Memories that were indexed by an earlier analyzer, or that wait to be indexed, are left out.
"""

from __future__ import annotations

import math
import time
from collections import Counter, defaultdict
from contextlib import closing
from typing import TYPE_CHECKING

import numpy as np

from ...analysis.document import entry_for
from ...analysis.tokenizer import LANGUAGES
from ...errors import StoreDamaged
from ...formatting import counted
from .check import Compared, Finding, Tick, read_today
from .database import SET_ASIDE, ChecksumError, Connection, Database, Key, Row, leniently, meta_value, translated
from .doc_values import BLOCK, RECORD, decoded, record_of
from .indexes import answering, uncached_index
from .pending import MARKED
from .postings import terms
from .postings.format import (
    INDEXED,
    NO_PAGES,
    Inverted,
    Segment,
    filed,
    live_segments,
    merged,
    only,
    postings_of,
    read,
    stored_texts,
)
from .postings.segments import inverted
from .rows import SELECT, to_memory
from .vectors.table import UNIT_TOLERANCE, read_range, signs_in

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from ...types.memory import Entry, Memory
    from .top_k import KeywordIndex

_REPAIR = "`whyrank doctor --deep --repair` writes the store anew with all that can be read"
_TICK_ROWS = 500
_POSTINGS = "postings"  # the keyword index that has segments
_MISREAD = (ChecksumError, ValueError, TypeError, LookupError)  # damage that the normal check reports already


def compare(path: Path, tick: Tick) -> tuple[list[Finding], Compared]:
    """Derive everything in a file again; return the differences, and the amount of data compared."""
    with (
        closing(Database(path, forgiving=True)) as database,
        translated(path),
        database.reading() as snapshot,
        leniently(snapshot.connection) as connection,
    ):
        return compare_snapshot(connection, tick)


def compare_snapshot(connection: Connection, tick: Tick) -> tuple[list[Finding], Compared]:
    """Derive everything in one snapshot again, of any backend; return the differences, and the amount compared."""
    begun = time.monotonic()
    look = _Look(connection, tick)
    look.memories()
    look.segments()
    look.vectors()
    found = [
        Finding(code, f"{counted(look.wrong[code], *words)}", _REPAIR)
        for code, words in _TOLD.items()
        if look.wrong[code]
    ]
    if look.crooked:
        found.append(
            Finding("vectors", f"{counted(look.crooked, 'vector does', 'vectors do')} not have length 1", _EMBED, False)
        )
    seconds = time.monotonic() - begun
    return found, Compared(**{name: look.done[name] for name in Compared._fields if name != "seconds"}, seconds=seconds)


_EMBED = "`whyrank model use NAME` with another model and back creates new vectors"
_TOLD = {
    "words": (
        "memory has words in the index that differ from its text",
        "memories have words that differ from their texts",
    ),
    "names": (
        "memory has names in the index that differ from its fields",
        "memories have names that differ from their fields",
    ),
    "records": (
        "memory has doc values that differ from its fields",
        "memories have doc values that differ from their fields",
    ),
    "postings": (
        "segment of the keyword index lists words that differ from its memories",
        "segments of the keyword index list words that differ from their memories",
    ),
    "signs": (
        "block of quantized vectors differs from its vectors",
        "blocks of quantized vectors differ from their vectors",
    ),
}


class _Look:
    """One deep check of one snapshot of a file: counts of what was compared, and of what differs."""

    def __init__(self, connection: Connection, tick: Tick) -> None:
        self._connection = connection
        self._tick = tick
        self._index_name = answering(connection)[0]
        self._index: KeywordIndex = uncached_index(self._index_name)
        self.done = Counter[str]()
        self.wrong = Counter[str]()
        self.crooked = 0

    # -- memories --------------------------------------------------------------------------------------------

    def memories(self) -> None:
        """Analyze every memory again; compare its words, its names and its record."""
        connection = self._connection
        language = meta_value(connection, "language") or "en"
        total = connection.execute("SELECT count(*) FROM memories").fetchone()[0]
        names = self._names()
        blocks: dict[tuple[str, int], dict[int, tuple[object, ...]]] = defaultdict(dict)
        for place, (scope, number, letters, dates, *columns) in enumerate(self._rows()):
            if place % _TICK_ROWS == 0:
                self._tick(place, total, "memories")
            try:
                memory = to_memory(tuple(columns))
                tokens = tuple(self._index.stored_tokens(connection, scope, number))
                stored = (tokens, bool(letters), tuple(dates.split()))
            except (StoreDamaged, AttributeError, *_MISREAD):
                continue
            entry = _like(memory, language, stored)
            self.done += Counter(memories=1, words=len(tokens), names=len(entry.names))
            self.wrong["words"] += (entry.tokens, entry.letters, entry.marks) != stored
            told = {(name.text, name.key, " ".join(name.words), name.specificity) for name in entry.names}
            self.wrong["names"] += told != names.get((scope, number), set())
            blocks[scope, number - number % BLOCK][number % BLOCK] = record_of(entry)
        self._records(blocks)

    def _rows(self) -> Iterator[Row]:
        """Yield the memories indexed by the current analyzer that do not wait to be indexed again."""
        for scope, first in read_today(self._connection).items():
            yield from self._connection.execute(
                f"SELECT m.scope, m.number, m.letters, m.dates, {SELECT} FROM memories AS m WHERE m.scope = ? "
                f"AND m.number >= ? AND m.id NOT IN ({MARKED}) AND m.id NOT IN ({SET_ASIDE}) ORDER BY m.number",
                (scope, first),
            )

    def _names(self) -> dict[Key, set[tuple[str, str, str, int]]]:
        names: dict[Key, set[tuple[str, str, str, int]]] = defaultdict(set)
        stored = self._connection.execute("SELECT scope, number, text, key, words, specificity FROM names")
        for scope, number, *name in stored:
            names[scope, number].add(tuple(name))
        return names

    def _records(self, blocks: dict[tuple[str, int], dict[int, tuple[object, ...]]]) -> None:
        query = "SELECT records FROM records WHERE scope = ? AND first = ?"
        for block, made in blocks.items():
            try:
                stored = decoded(self._connection.execute(query, block).fetchone()[0], *block)
                wanted = {place: np.array([record], RECORD)[0] for place, record in made.items()}
                self.wrong["records"] += sum(stored[place] != record for place, record in wanted.items())
            except _MISREAD:
                continue
            self.done["records"] += len(made)

    # -- the keyword index -----------------------------------------------------------------------------------

    def segments(self) -> None:
        """Invert the stored tokens again; compare the postings and the list of words of every segment."""
        if self._index_name != _POSTINGS:
            return
        for (scope,) in self._connection.execute("SELECT scope FROM posting_scopes ORDER BY scope").fetchall():
            try:
                live = live_segments(self._connection, scope)
            except ChecksumError:
                continue
            for segment in live:
                self._tick(self.done["segments"], 0, "segments")
                self.done["segments"] += 1
                self.wrong["postings"] += not self._is_as_inverted(scope, segment)

    def _is_as_inverted(self, scope: str, segment: Segment) -> bool:
        connection = self._connection
        texts = stored_texts(connection, scope, segment.first, segment.last)
        living = np.zeros(segment.last - segment.first + 1, np.bool_)
        living[[text.number - segment.first for text in texts]] = True
        made, words = inverted(texts)
        try:
            directories = filed(connection, segment)
            if directories is None:
                return True  # the normal check has found it
            for field in INDEXED:
                stored = self._stored(segment, field.number, directories.get(field.number, NO_PAGES).firsts)
                if not _are_equal(only(stored, living[stored.numbers - segment.first]), made[field]):
                    return False
            is_listed = terms.is_listed(connection, segment)
            return not is_listed or {*words} <= {*terms.beginning(connection, segment, "")}
        except _MISREAD:
            return True

    def _stored(self, segment: Segment, field: int, firsts: Sequence[int]) -> Inverted:
        query, place = f"SELECT page FROM posting_pages WHERE {terms.PAGE_PLACE}", (*segment[:2], field)
        parts = [
            postings_of(read(self._connection.execute(query, (*place, first)).fetchone()[0]), segment.first)
            for first in firsts
        ]
        return merged(parts) if parts else Inverted(*(np.zeros(0, kind) for kind in ("i8", "i8", "u1", "u4")))

    # -- vectors ---------------------------------------------------------------------------------------------

    def vectors(self) -> None:
        """Check every vector for unit length, and every block of signs against its vectors."""
        for (blob,) in self._connection.execute("SELECT vector FROM vectors WHERE typeof(vector) = 'blob'"):
            self.done["vectors"] += 1
            if len(blob) % 4 == 0:
                length = float(np.linalg.norm(np.frombuffer(blob, "<f4").astype(np.float64)))
                self.crooked += not math.isclose(length, 1.0, abs_tol=UNIT_TOLERANCE)
        for space, scope, first, present, signs in self._connection.execute(
            "SELECT space, scope, first, present, signs FROM sign_blocks"
        ).fetchall():
            self._tick(self.done["sign_blocks"], 0, "signs")
            block = signs_in(space, scope, first, present, signs)
            if block is None:
                continue
            made = read_range(self._connection, space, scope, first, first + BLOCK)
            self.done["sign_blocks"] += 1
            there = made.has  # signs of deleted memories stay in their block until it is written again
            is_same = bool(block.has[there].all())
            is_same = is_same and (not there.any() or np.array_equal(block.signs[:, there], made.signs[:, there]))
            self.wrong["signs"] += not is_same and not len(made.damaged)


def _like(memory: Memory, language: str, stored: tuple[object, ...]) -> Entry:
    """Analyze a memory in the language of its stored words, which may differ from that of the settings."""
    first = entry_for(memory, language)
    if (first.tokens, first.letters, first.marks) == stored:
        return first
    others = (entry_for(memory, other) for other in LANGUAGES)
    return next((one for one in others if (one.tokens, one.letters, one.marks) == stored), first)


def _are_equal(one: Inverted, other: Inverted) -> bool:
    pairs: Iterator[tuple[NDArray[np.generic], NDArray[np.generic]]] = zip(one, other, strict=True)
    return all(np.array_equal(mine, its) for mine, its in pairs)
