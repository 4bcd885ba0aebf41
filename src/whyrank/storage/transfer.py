"""Copies between stores: memories with all that belongs to them, read as rows and stored without analysis."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections import Counter, defaultdict
from hashlib import blake2b
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from ..errors import StoreDamaged
from ..types.memory import Entry
from ..types.trail import Name
from .sqlite.database import Connection, Key, Row, meta_value, place_mask, rows_at, rows_of
from .sqlite.doc_values import ranges_in
from .sqlite.postings.format import tokens_in
from .sqlite.rows import COLUMNS, SELECT, read_row, text_embedded
from .sqlite.vectors.checksums import is_vector
from .sqlite.vectors.table import vector_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ..types.memory import MemoryId
    from .sqlite.top_k import KeywordIndex
    from .sqlite.writer import Writer

# A mirror becomes equal to its source; otherwise memories that are there stay as they are. `merge` expects that both
# stores have lives of their own, `add` that the destination is a copy of before.
Mode = Literal["mirror", "add", "merge"]
WriteKey = tuple[str, str, str, str]  # scope, key, memory, content
Past = tuple[float, str]  # moment of a change, and the former fields as JSON
VectorKey = tuple[str, str, str]  # scope, space, hash of the embedded text

_LISTED = "IN (SELECT value FROM json_each(?))"
_MEMORY = f"m.scope, m.number, {SELECT}, m.embed_hash, m.checksum, m.letters, m.dates, m.embed_text"
_NEXT = f"SELECT {_MEMORY} FROM memories AS m WHERE m.scope = ? AND m.number > ? ORDER BY m.number LIMIT ?"
_KNOWN = f"SELECT {_MEMORY} FROM memories AS m WHERE m.id {_LISTED}"
_recalls = itemgetter(COLUMNS.index("recalls"), COLUMNS.index("recalled"))  # each store counts its own
_JSON = ("aliases", "headings", "tags", "entities", "metadata")
_lists = itemgetter(*map(COLUMNS.index, _JSON))
_counted = itemgetter(
    *(place for place, name in enumerate(COLUMNS) if name not in ("recalls", "recalled") and name not in _JSON)
)
_PLAIN = frozenset(("[]", "{}"))
_ID, _PATH = COLUMNS.index("id"), COLUMNS.index("path")
FIRST = -1  # a number before the first of a scope
DIGEST_BYTES = 16


class StoredMemory(NamedTuple):
    """One memory as it is stored: its row, and what the index holds of it."""

    scope: str
    number: int
    columns: Row  # those of SELECT, then the hash of the embedded text and the checksum
    letters: int
    dates: str
    embed_text: str
    reader: int
    tokens: Sequence[str]
    names: Sequence[Row]

    @property
    def id(self) -> MemoryId:
        """Return the id."""
        identity: MemoryId = self.columns[_ID]
        return identity

    @property
    def path(self) -> str:
        """Return the path of its file; empty without one."""
        path: str = self.columns[_PATH]
        return path

    @property
    def hash(self) -> str:
        """Return the hash of the embedded text."""
        embedded: str = self.columns[len(COLUMNS)]
        return embedded

    @property
    def content(self) -> tuple[object, ...]:
        """Return the fields that a user gave, in a form that is the same in every database."""
        told: tuple[object, ...] = _counted(self.columns)
        lists: tuple[object, ...] = _lists(self.columns)
        return told if _PLAIN.issuperset(lists) else (*told, *map(_as_read, lists))

    @property
    def whole(self) -> tuple[object, ...]:
        """Return all that answers depend on: the content, recalls, tokens and names."""
        return (
            *self.content,
            *_recalls(self.columns),
            self.hash,
            int(self.letters),
            self.dates,
            [*self.tokens],
            [*self.names],
        )

    def entry(self) -> Entry:
        """Return the memory as an entry for another store; a damaged one is refused."""
        read = read_row(self.columns)
        if read.is_mended or read.is_altered:
            raise StoreDamaged(
                f"the memory {self.id!r} is damaged", "`whyrank doctor --repair` repairs the source, or sets it aside"
            )
        return Entry(
            memory=read.memory,
            tokens=tuple(self.tokens),
            names=tuple(Name(text, key, tuple(words.split()), place) for text, key, words, place in self.names),
            embed_text=text_embedded(self.embed_text, self.columns),
            embed_hash=self.hash,
            letters=bool(self.letters),
            marks=tuple(self.dates.split()),
            reader=self.reader,
        )


def _as_read(stored: Any) -> object:
    """Return a list or object in one form, whatever version wrote it; a damaged one equals nothing but itself."""
    try:
        return json.dumps(json.loads(stored), sort_keys=True)
    except (ValueError, TypeError):
        return stored


class StoredPart(NamedTuple):
    """Some memories with their history, write keys and sound vectors."""

    memories: Sequence[StoredMemory]
    history: Mapping[MemoryId, Sequence[Past]]
    keys: Sequence[WriteKey]
    vectors: Mapping[VectorKey, bytes]
    damaged: int = 0  # vectors
    language: str = ""  # of texts that do not show theirs
    generation: int = 0

    def only(self, is_wanted: Callable[[StoredMemory], bool]) -> StoredPart:
        """Return the part with some of its memories, and what belongs to them."""
        memories = [one for one in self.memories if is_wanted(one)]
        ids, texts = {one.id for one in memories}, {(one.scope, one.hash) for one in memories}
        return self._replace(
            memories=memories,
            keys=[one for one in self.keys if one[2] in ids],
            vectors={key: vector for key, vector in self.vectors.items() if (key[0], key[2]) in texts},
        )


def read_next(
    connection: Connection, index: KeywordIndex, scopes: Sequence[str], after: int, most: int
) -> tuple[StoredPart, int, int]:
    """Read up to `most` memories of some scopes in the order of their numbers, behind a number of the first scope.

    Return the scopes that were read to their end and the last number of the next.
    """
    found: list[Row] = []
    for done, scope in enumerate(scopes):
        rows = rows_of(connection, _NEXT, (scope, after, most - len(found)))
        found += rows
        if len(found) == most:
            return _with_all(connection, index, found), done, rows[-1][1]
        after = FIRST
    return _with_all(connection, index, found), len(scopes), FIRST


def read_known(connection: Connection, index: KeywordIndex, ids: Sequence[MemoryId]) -> StoredPart:
    """Read these memories, as far as they exist."""
    return _with_all(connection, index, rows_of(connection, _KNOWN, (json.dumps(ids),)))


def _with_all(connection: Connection, index: KeywordIndex, rows: Sequence[Row]) -> StoredPart:
    if not rows:
        return StoredPart((), {}, (), {})
    keys = [(scope, number) for scope, number, *_ in rows]
    names: dict[Key, list[Row]] = defaultdict(list)
    listed = "SELECT scope, number, text, key, words, specificity FROM names"
    for scope, number, *name in rows_at(connection, listed, keys, " ORDER BY number, place"):
        names[scope, number].append(tuple(name))
    tokens = _tokens(connection, index, keys)
    stored = f"SELECT scope, readers FROM scopes WHERE scope {_LISTED}"
    scopes = json.dumps(sorted({scope for scope, _ in keys}))
    readers = {scope: ranges_in(text) for scope, text in rows_of(connection, stored, (scopes,))}
    end = 2 + len(COLUMNS) + 2  # of scope and number, and of the columns with hash and checksum
    memories = []
    for row in rows:
        (scope, number), columns, (letters, dates, embed_text) = row[:2], row[2:end], row[end:]
        ranges = readers.get(scope) or ranges_in(None)
        reader = ranges[bisect_right([one.first for one in ranges], number) - 1].reader
        said = names.get((scope, number), ())
        memories.append(
            StoredMemory(scope, number, columns, letters, dates, embed_text, reader, tokens[scope, number], said)
        )
    ids = json.dumps([one.id for one in memories])
    history: dict[MemoryId, list[Past]] = defaultdict(list)
    for identity, changed, was in rows_of(
        connection, f"SELECT memory, changed, was FROM history WHERE memory {_LISTED} ORDER BY entry", (ids,)
    ):
        history[identity].append((changed, was))
    keys = rows_of(connection, f"SELECT scope, key, memory, content FROM write_keys WHERE memory {_LISTED}", (ids,))
    vectors, damaged = _vectors(connection, memories)
    return StoredPart(
        memories, history, [*map(tuple, keys)], vectors, damaged, meta_value(connection, "language") or ""
    )


def _tokens(connection: Connection, index: KeywordIndex, keys: Sequence[Key]) -> dict[Key, Sequence[str]]:
    """Return the tokens of memories; damaged ones are analyzed again."""
    if index.name != "postings":
        return {key: index.stored_tokens(connection, *key) for key in keys}
    packed = rows_at(connection, "SELECT scope, number, tokens FROM posting_tokens", keys)
    blobs = {(scope, number): blob for scope, number, blob in packed}
    return {key: tokens_in(connection, *key, blobs.get(key)) for key in keys}


def _vectors(connection: Connection, memories: Sequence[StoredMemory]) -> tuple[dict[VectorKey, bytes], int]:
    """Return the sound vectors of memories in every space, by scope, space and text, and the number of damaged ones."""
    found: dict[VectorKey, bytes] = {}
    sizes: dict[str, int | None] = {}
    damaged = 0
    numbers: dict[str, list[int]] = defaultdict(list)
    for one in memories:
        numbers[one.scope].append(one.number)
    for scope, theirs in numbers.items():
        for number, space, *vector in rows_of(
            connection,
            f"SELECT number, space, hash, checksum, vector FROM vectors WHERE scope = ? AND number {_LISTED} "
            "ORDER BY number",
            (scope, json.dumps(theirs)),
        ):
            if space not in sizes:
                sizes[space] = vector_bytes(connection, space)
            if is_vector(sizes[space], place_mask(scope, number), *vector):
                found[scope, space, vector[0]] = vector[2]
            else:
                damaged += 1
    return found, damaged


# -- writing -----------------------------------------------------------------------------------------------------------


class Unlike(NamedTuple):
    """A memory or key of the source that the destination holds with other content, which stays."""

    id: MemoryId
    reason: str


class Taken(NamedTuple):
    """Outcome of storing a part: ids of memories, and of those the ones that took the place of others."""

    new: Sequence[MemoryId] = ()
    replaced: Sequence[MemoryId] = ()
    same: int = 0
    unlike: Sequence[Unlike] = ()
    vectors: Mapping[str, int] = {}  # by space
    keys: int = 0
    history: int = 0


class Takeover:
    """Changes that bring a part of the source into the destination, worked out in one snapshot of it."""

    def __init__(self, connection: Connection, index: KeywordIndex, part: StoredPart, mode: Mode) -> None:
        known = read_known(connection, index, [one.id for one in part.memories])
        there = {one.id: one for one in known.memories}
        self.new: list[StoredMemory] = []
        self.replaced: list[MemoryId] = []
        self.unlike: list[Unlike] = []
        self._part, self._mode = part, mode
        for one in part.memories:
            other = there.get(one.id)
            if other is None:
                self.new.append(one)
            elif mode == "mirror":
                if one.whole != other.whole or [*part.history.get(one.id, ())] != [*known.history.get(one.id, ())]:
                    self.new.append(one)
                    self.replaced.append(one.id)
            elif one.content != other.content:
                self.unlike.append(Unlike(one.id, "the destination holds it with other content, which stays"))
            elif mode == "add" and not _begins(known.history.get(one.id, ()), part.history.get(one.id, ())):
                self.unlike.append(Unlike(one.id, "the destination holds it with another history, which stays"))
        left_out = {one.id for one in self.unlike}
        self._held = [one for one in part.memories if one.id not in left_out]
        self.keys = self._missing_keys(connection)
        self.vectors = self._missing_vectors(known)

    def _missing_keys(self, connection: Connection) -> list[WriteKey]:
        held, anew = {one.id for one in self._held}, {*self.replaced}
        wanted = [key for key in self._part.keys if key[2] in held]
        stored = rows_of(
            connection,
            f"SELECT scope, key, memory, content FROM write_keys WHERE key {_LISTED}",
            (json.dumps([key for _, key, *_ in wanted]),),
        )
        known = {(scope, key): (memory, content) for scope, key, memory, content in stored}
        missing: list[WriteKey] = []
        for one in wanted:
            scope, key, memory, content = one
            told = known.get((scope, key))
            if told is None or (self._mode == "mirror" and (memory in anew or told != (memory, content))):
                missing.append(one)
            elif told != (memory, content):
                self.unlike.append(Unlike(memory, f"its key {key!r} belongs to {told[0]} in the destination"))
        return missing

    def _missing_vectors(self, known: StoredPart) -> dict[tuple[str, str], dict[str, bytes]]:
        texts = {(one.scope, one.hash) for one in self._held}
        missing: dict[tuple[str, str], dict[str, bytes]] = defaultdict(dict)
        for (scope, space, text_hash), vector in self._part.vectors.items():
            told = known.vectors.get((scope, space, text_hash))
            if (scope, text_hash) in texts and (told is None or (self._mode == "mirror" and told != vector)):
                missing[scope, space][text_hash] = vector
        return missing

    @property
    def is_empty(self) -> bool:
        """Return whether the destination holds all of it already."""
        return not (self.new or self.keys or self.vectors)

    @property
    def outcome(self) -> Taken:
        """Return the outcome, once the changes are stored."""
        history = sum(len(self._part.history.get(one.id, ())) for one in self.new)
        unlike = len({one.id for one in self.unlike} - {one.id for one in self.new})
        spaces = Counter[str]()
        for (_, space), vectors in self.vectors.items():
            spaces[space] += len(vectors)
        return Taken(
            [one.id for one in self.new], self.replaced, len(self._part.memories) - len(self.new) - unlike, self.unlike,
            spaces, len(self.keys), history,
        )  # fmt: skip

    def apply(self, writer: Writer) -> None:
        """Store all of it, in the transaction of a writer."""
        history = [(one.scope, one.id, *past) for one in self.new for past in self._part.history.get(one.id, ())]
        vectors = {
            key: {text_hash: np.frombuffer(blob, "<f4") for text_hash, blob in blobs.items()}
            for key, blobs in self.vectors.items()
        }
        entries = [one.entry() for one in self.new]
        writer.take_over(entries, self.replaced, history, self.keys, vectors, self._part.language)


def _begins(longer: Sequence[Past], shorter: Sequence[Past]) -> bool:
    return [*longer[: len(shorter)]] == [*shorter]


# -- verification ------------------------------------------------------------------------------------------------------


def _digest(said: bytes) -> bytes:
    return blake2b(said, digest_size=DIGEST_BYTES).digest()


class Digests:
    """Counts and hashes of the contents of a store by scope and kind, whatever the order they are met in."""

    def __init__(self) -> None:
        self._sums: dict[tuple[str, str], tuple[int, int]] = {}

    def put(self, scope: str, kind: str, told: object) -> None:
        """Count one row."""
        count, total = self._sums.get((scope, kind), (0, 0))
        value = int.from_bytes(_digest(repr(told).encode("utf-8", errors="surrogatepass")), "little")
        self._sums[scope, kind] = count + 1, (total + value) % (1 << 8 * DIGEST_BYTES)

    def add(self, part: StoredPart, is_meant: Callable[[MemoryId], bool]) -> None:
        """Count memories, and their history, keys and vectors."""
        spaces: dict[tuple[str, str], list[str]] = defaultdict(list)
        for scope, space, text_hash in part.vectors:
            spaces[scope, text_hash].append(space)
        for one in part.memories:
            if is_meant(one.id):
                self.put(one.scope, "memories", one.whole)
                for place, past in enumerate(part.history.get(one.id, ())):
                    self.put(one.scope, "history rows", (one.id, place, *past))
                for space in spaces.get((one.scope, one.hash), ()):
                    vector = part.vectors[one.scope, space, one.hash]
                    self.put(one.scope, f"vectors of {space}", (one.id, _digest(vector)))
        for scope, key, memory, content in part.keys:
            if is_meant(memory):
                self.put(scope, "keys", (key, memory, content))

    def count(self, kind: str) -> int:
        """Return the number of rows of a kind, or of kinds that begin so."""
        return sum(count for (_, known), (count, _) in self._sums.items() if known.startswith(kind))

    def differences(self, other: Digests) -> list[str]:
        """Name the scopes and kinds that differ from those of a copy."""
        found: list[str] = []
        for scope, kind in sorted(self._sums.keys() | other._sums.keys()):
            (mine, own), (theirs, its) = (one._sums.get((scope, kind), (0, 0)) for one in (self, other))
            if mine != theirs:
                found.append(f"{scope}: {mine:,} {kind} in the source, {theirs:,} in the copy")
            elif own != its:
                found.append(f"{scope}: the {kind} differ in content")
        return found
