"""Format of postings: texts are inverted into postings, and postings packed into pages with checksums.

A page is: number of terms u32 · keys i64 · ends of their lists u32 · ends of their followers u32 ·
numbers u16, counted from the segment's first · frequencies u8 · followers u32.
"""

from __future__ import annotations

import hashlib
import zlib
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import chain, pairwise
from struct import Struct
from struct import error as struct_error
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ....analysis.document import searchable_text
from ....analysis.normalize import MOST_WORDS, Memo, share
from ....analysis.tokenizer import tokens_of
from ...bm25 import DATES, GRAMS, WORDS, Field, grams_of
from ..database import ChecksumError, Connection, add_checksum, check_body, checksum_of, place_mask, rows_of
from ..rows import SELECT, as_far_as_legible
from . import terms

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray

    from ...bm25 import Field
    from ..database import Asked

MAX_FREQUENCY = 255  # the maximum of a byte; more of the same word changes no score by a thousandth
INDEXED = (WORDS, GRAMS, DATES)  # pairs are read off the words' followers

TABLES = """
CREATE TABLE posting_tokens (
    scope TEXT NOT NULL,
    number INTEGER NOT NULL,
    letters INTEGER NOT NULL,
    dates TEXT NOT NULL,
    tokens BLOB NOT NULL,
    PRIMARY KEY (scope, number)
);
CREATE TABLE posting_scopes (
    scope TEXT PRIMARY KEY,
    flushed INTEGER NOT NULL,
    due INTEGER NOT NULL DEFAULT 0,
    segments INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE TABLE posting_segments (
    segment INTEGER NOT NULL,
    scope TEXT NOT NULL,
    first INTEGER NOT NULL,
    last INTEGER NOT NULL,
    memories INTEGER NOT NULL,
    state INTEGER NOT NULL,
    field INTEGER NOT NULL DEFAULT 0,
    next_key INTEGER NOT NULL DEFAULT 0,
    directory BLOB,
    PRIMARY KEY (scope, segment)
);
CREATE INDEX posting_scopes_due ON posting_scopes (due) WHERE due = 1;
CREATE INDEX posting_segments_by_scope ON posting_segments (scope, state, first);
CREATE TABLE posting_pages (
    scope TEXT NOT NULL,
    segment INTEGER NOT NULL,
    field INTEGER NOT NULL,
    first_key INTEGER NOT NULL,
    page BLOB NOT NULL
);
CREATE UNIQUE INDEX posting_pages_by_key ON posting_pages (scope, segment, field, first_key);
"""
TABLE_NAMES = ("posting_tokens", "posting_scopes", "posting_segments", "posting_pages")


class Text(NamedTuple):
    """A text to be inverted: its number, its tokens, a flag for its letter runs, and its marks."""

    number: int
    tokens: Sequence[str]
    letters: bool = False
    marks: Sequence[str] = ()


class Inverted(NamedTuple):
    """Postings by ascending key, then number: frequencies, and for words the follower of every occurrence."""

    keys: NDArray[np.int64]
    numbers: NDArray[np.int64]
    frequencies: NDArray[np.uint8]
    followers: NDArray[np.uint32]

    @property
    def ends(self) -> NDArray[np.int64]:
        """Return the end of the followers of each posting."""
        return np.cumsum(self.frequencies, dtype=np.int64)


def _hash(term: str) -> int:
    """Return the key of a term: a 64-bit hash; a million terms collide in one of a million stores."""
    digest = hashlib.blake2b(term.encode("utf-8", errors="replace"), digest_size=8).digest()
    return int.from_bytes(digest, "little", signed=True)


_KEYS = Memo(_hash)
key_of = _KEYS.__getitem__
FOLLOWER_MASK = 0xFFFFFFFF  # the follower code of a term is the lower half of its key; 0 is the end of a text


def keys_of(terms: Iterable[str]) -> NDArray[np.int64]:
    """Return the keys of many terms; new ones are not cached, as few of them come again."""
    digests = [hashlib.blake2b(term.encode("utf-8", "replace"), digest_size=8).digest() for term in terms]
    return np.frombuffer(b"".join(digests), "<i8").astype(np.int64)


def _run_keys(token: str) -> tuple[int, ...]:
    return tuple(map(key_of, grams_of((token,))))


_RUN_KEYS = Memo(_run_keys)
share(lambda: len(_KEYS) + len(_RUN_KEYS), 2 * MOST_WORDS)


def invert(texts: Sequence[Text]) -> dict[Field, Inverted]:
    """Invert texts given by ascending number."""
    return with_letters_and_marks(inverted_words(texts), texts)


def with_letters_and_marks(words: Inverted, texts: Sequence[Text]) -> dict[Field, Inverted]:
    """Return the postings of all fields, given those of the words."""
    marks = [(key_of(mark), text.number) for text in texts for mark in text.marks]
    return {
        WORDS: words,
        GRAMS: _gathered(*_letters([text for text in texts if text.letters])),
        DATES: _gathered(*np.array(marks, np.int64).reshape(-1, 2).T),
    }


def words_in(texts: Iterable[Text]) -> set[str]:
    """Return the words of some texts."""
    return set().union(*(text.tokens for text in texts))


def inverted_words(texts: Sequence[Text]) -> Inverted:
    """Return the postings of the words of texts."""
    lengths = [len(text.tokens) for text in texts]
    tokens = chain.from_iterable([text.tokens for text in texts])
    keys = np.fromiter(map(_KEYS.__getitem__, tokens), np.int64, sum(lengths))
    holders = np.repeat(np.array([text.number for text in texts], np.int64), lengths)
    return _gathered(keys, holders, _followers(keys, lengths))


def _followers(keys: NDArray[np.int64], lengths: Sequence[int]) -> NDArray[np.uint32]:
    """Return the follower of each occurrence in its text."""
    followers = np.zeros(len(keys), np.uint32)
    followers[:-1] = (keys[1:] & FOLLOWER_MASK).astype(np.uint32)
    counts = np.array(lengths, np.int64)
    last = np.cumsum(counts) - 1
    followers[last[counts > 0]] = 0
    return followers


def _letters(texts: Sequence[Text]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the keys of the letter runs of every token, and the number of the text of each."""
    runs = [[*chain.from_iterable(map(_RUN_KEYS.__getitem__, text.tokens))] for text in texts]
    keys = np.fromiter(chain.from_iterable(runs), np.int64, sum(map(len, runs)))
    return keys, np.repeat(np.array([text.number for text in texts], np.int64), [len(run) for run in runs])


def spread(starts: NDArray[np.int64], counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return start, start + 1, … for each start, `counts` values each."""
    ends = np.cumsum(counts)
    return np.repeat(starts - ends + counts, counts) + np.arange(ends[-1] if len(ends) else 0)


def _gathered(
    keys: NDArray[np.int64], numbers: NDArray[np.int64], followers: NDArray[np.uint32] | None = None
) -> Inverted:
    """Group occurrences in the order of their texts into postings."""
    order = np.argsort(keys, kind="stable")
    keys, numbers = keys[order], numbers[order]
    followers = np.zeros(0, np.uint32) if followers is None else followers[order]
    begins = np.ones(len(keys), np.bool_)
    begins[1:] = (keys[1:] != keys[:-1]) | (numbers[1:] != numbers[:-1])
    starts = np.flatnonzero(begins)
    frequencies = np.diff(np.append(starts, len(keys)))
    if len(followers) and len(frequencies) and frequencies.max() > MAX_FREQUENCY:
        followers = followers[np.arange(len(keys)) - np.repeat(starts, frequencies) < MAX_FREQUENCY]
    limited = np.minimum(frequencies, MAX_FREQUENCY).astype(np.uint8)
    return Inverted(keys[starts], numbers[starts], limited, followers)


def merged(parts: Sequence[Inverted]) -> Inverted:
    """Merge postings whose numbers ascend from part to part."""
    keys = np.concatenate([part.keys for part in parts])
    numbers = np.concatenate([part.numbers for part in parts])
    frequencies = np.concatenate([part.frequencies for part in parts])
    followers = np.concatenate([part.followers for part in parts])
    order = np.argsort(keys, kind="stable")
    if len(followers):
        counts = frequencies.astype(np.int64)
        starts = np.cumsum(counts) - counts
        followers = followers[spread(starts[order], counts[order])]
    return Inverted(keys[order], numbers[order], frequencies[order], followers)


def only(postings: Inverted, kept: NDArray[np.bool_]) -> Inverted:
    """Return the postings that are kept."""
    followers = postings.followers
    if len(followers):
        followers = followers[np.repeat(kept, postings.frequencies)]
    return Inverted(postings.keys[kept], postings.numbers[kept], postings.frequencies[kept], followers)


# zlib's level 0. Compressed tokens take half of the space, a twentieth of a note's, and eight times as long to write.
_AS_THEY_ARE = 0
_HEADER = b"\x78\x01\x01"  # of zlib, of no level, and of its last block
_LONGEST_BLOCK = 0xFFFF


def pack(tokens: Iterable[str], scope: str, number: int) -> bytes:
    """Pack the tokens of a memory as a stored zlib block, with a checksum that fails for any other memory.

    zlib zeroes its tables for each text, which takes longer than all the rest: a text that fits one block is written
    here.
    """
    said = " ".join(tokens).encode("utf-8", errors="replace")
    if len(said) > _LONGEST_BLOCK:
        return masked(zlib.compress(said, _AS_THEY_ARE), place_mask(scope, number))
    lengths = len(said).to_bytes(2, "little"), (len(said) ^ _LONGEST_BLOCK).to_bytes(2, "little")
    checksum = zlib.adler32(said) ^ place_mask(scope, number)
    return b"".join((_HEADER, *lengths, said, checksum.to_bytes(4, "big")))


def masked(blob: bytes, mask: int) -> bytes:
    """Combine the checksum of packed tokens with a mask by XOR: that of their place, or what moves them to another."""
    return blob[:-4] + (int.from_bytes(blob[-4:], "big") ^ mask).to_bytes(4, "big")


def unpack(blob: object, scope: object, number: object) -> list[str]:
    """Unpack the tokens of a memory."""
    if not isinstance(blob, bytes):
        raise ChecksumError
    try:
        text = zlib.decompress(masked(blob, place_mask(scope, number))).decode("utf-8")
    except (zlib.error, UnicodeDecodeError) as error:
        raise ChecksumError from error
    return text.split(" ") if text else []


TOKENS_AT = "SELECT tokens FROM posting_tokens WHERE scope = ? AND number = ?"


def tokens_in(connection: Connection, scope: str, number: int, blob: object) -> list[str]:
    """Unpack the tokens of a memory; if they are damaged, analyze it again."""
    try:
        return unpack(blob, scope, number)
    except ChecksumError:
        return [token for text in _analysed(connection, scope, number) for token in text.tokens]


def texts_asked(scope: str, first: int, last: int) -> tuple[Asked, Asked]:
    """Return the statements that read the tokens of memories, and which of these exist."""
    place = (scope, first, last)
    return (
        (
            "SELECT number, tokens, letters, dates FROM posting_tokens "
            "WHERE scope = ? AND number BETWEEN ? AND ? ORDER BY number",
            place,
        ),
        (
            "SELECT number FROM memories WHERE scope = ? AND number BETWEEN ? AND ? "
            "AND typeof(number) = 'integer' ORDER BY number",
            place,
        ),
    )


def stored_texts(connection: Connection, scope: str, first: int, last: int) -> list[Text]:
    """Return the tokens of the memories from `first` to `last`, by number; lost ones are analyzed again.

    Tokens without a memory are left out: its row was lost, and it cannot be found.
    """
    (tokens, living_numbers) = texts_asked(scope, first, last)
    rows = rows_of(connection, *tokens)
    living = connection.execute(*living_numbers).fetchall()
    known = {number: columns for number, *columns in rows}
    texts: list[Text] = []
    for (number,) in living:
        if number not in known:
            texts += _analysed(connection, scope, number)
            continue
        blob, letters, dates = known[number]
        marks = tuple(dates.split()) if isinstance(dates, str) else ()
        texts.append(Text(number, tokens_in(connection, scope, number, blob), bool(letters), marks))
    return texts


def _analysed(connection: Connection, scope: str, number: int) -> Iterator[Text]:
    """Analyze a memory again, if it exists."""
    language = connection.execute("SELECT value FROM meta WHERE key = 'language'").fetchone()
    for letters, dates, *row in rows_of(
        connection,
        f"SELECT m.letters, m.dates, {SELECT} FROM memories AS m WHERE m.scope = ? AND m.number = ?",
        (scope, number),
    ):
        tokens = tokens_of(searchable_text(as_far_as_legible(tuple(row))), *(language or ()))
        yield Text(number, list(tokens), bool(letters), tuple(dates.split()) if isinstance(dates, str) else ())


PAGE_BYTES = 16_384  # target size; a longer list has a page to itself
MAX_SPAN = 65_536  # numbers in one segment, so that an offset fits two bytes
_HEAD_BYTES = 8  # the checksum, and the number of terms
_TERM_BYTES, _POSTING_BYTES, _FOLLOWER_BYTES = 16, 3, 4
_U4, _I8 = Struct("<I").unpack_from, Struct("<q").unpack_from


class Page:
    """A page as stored, terms by ascending key; its arrays are decoded lazily."""

    def __init__(self, blob: bytes, terms: int, count: int, heard: int) -> None:
        self.blob = blob
        self.heard = heard
        self.count = count
        self._terms = terms
        self.offsets_at = _HEAD_BYTES + _TERM_BYTES * terms

    @property
    def nbytes(self) -> int:
        """Return the memory of the page, in bytes."""
        return len(self.blob)

    @property
    def lowest(self) -> int:
        """Return the lowest key of its terms."""
        lowest: int = _I8(self.blob, _HEAD_BYTES)[0]
        return lowest

    @cached_property
    def keys(self) -> NDArray[np.int64]:
        """Return the keys of its terms."""
        return np.frombuffer(self.blob, "<i8", self._terms, _HEAD_BYTES)

    @cached_property
    def ends(self) -> NDArray[np.uint32]:
        """Return the end of the list of each term."""
        return np.frombuffer(self.blob, "<u4", self._terms, _HEAD_BYTES + 8 * self._terms)

    @cached_property
    def follower_ends(self) -> NDArray[np.uint32]:
        """Return the end of the followers of each term."""
        return np.frombuffer(self.blob, "<u4", self._terms, _HEAD_BYTES + 12 * self._terms)

    @property
    def offsets(self) -> NDArray[np.uint16]:
        """Return the memories of each posting, as offsets from the segment's first number."""
        return np.frombuffer(self.blob, "<u2", self.count, self.offsets_at)

    @property
    def frequencies(self) -> NDArray[np.uint8]:
        """Return the term frequency of each posting."""
        return np.frombuffer(self.blob, "u1", self.count, self.offsets_at + 2 * self.count)

    @property
    def followers(self) -> NDArray[np.uint32]:
        """Return the follower of each occurrence."""
        return np.frombuffer(self.blob, "<u4", self.heard, self.offsets_at + _POSTING_BYTES * self.count)


class PostingList(NamedTuple):
    """The posting list of one term in one segment, as a view of its page; offsets count from `first`."""

    first: int
    blob: bytes
    offsets_at: int
    frequencies_at: int
    size: int
    followers_at: int
    heard: int

    @property
    def offsets(self) -> NDArray[np.uint16]:
        """Return the memories that hold the term, as offsets from the first number."""
        return np.frombuffer(self.blob, "<u2", self.size, self.offsets_at)

    @property
    def numbers(self) -> NDArray[np.int64]:
        """Return the numbers of the memories that hold the term."""
        return np.add(self.offsets, self.first, dtype=np.int64)

    @property
    def frequencies(self) -> NDArray[np.uint8]:
        """Return the term frequency of each posting."""
        return np.frombuffer(self.blob, "u1", self.size, self.frequencies_at)

    @property
    def followers(self) -> NDArray[np.uint32]:
        """Return the follower of each occurrence."""
        return np.frombuffer(self.blob, "<u4", self.heard, self.followers_at)


class Wide(NamedTuple):
    """Ascending places with the term frequency of each, as arrays."""

    places: NDArray[np.int64]
    frequencies: NDArray[np.float64]

    @property
    def numbers(self) -> NDArray[np.int64]:
        """Return the places, as a posting list names them."""
        return self.places

    @property
    def size(self) -> int:
        """Return the number of places."""
        return len(self.places)

    def only(self, wanted: NDArray[np.bool_]) -> Wide:
        """Return the postings at the wanted places."""
        kept = np.flatnonzero(wanted[self.places])
        return self if len(kept) == len(self.places) else Wide(self.places[kept], self.frequencies[kept])


NOTHING = Wide(np.zeros(0, np.int64), np.zeros(0))
Part = PostingList | Wide


def joined(parts: Sequence[Part]) -> Wide:
    """Return the places and frequencies of some lists, one list after the other."""
    if len(parts) == 1 and isinstance(parts[0], Wide):
        return parts[0]
    begin, size = 0, sum([part.size for part in parts])
    places, often = np.empty(size, np.int64), np.empty(size)
    for part in parts:  # each is written once, into its final array: lists may be long
        end = begin + part.size
        if isinstance(part, PostingList):
            np.add(part.offsets, part.first, out=places[begin:end], dtype=np.int64)
        else:
            places[begin:end] = part.places
        often[begin:end] = part.frequencies
        begin = end
    return Wide(places, often)


def pages(postings: Inverted, first: int, page_bytes: int = 0) -> Iterator[tuple[int, bytes]]:
    """Cut postings into pages, each with the lowest key it holds; numbers are counted from `first`."""
    if not len(postings.keys):
        return
    bounds = np.append(_begins(postings.keys), len(postings.keys))
    heard = _heard(postings)
    sizes = _TERM_BYTES + _POSTING_BYTES * np.diff(bounds) + _FOLLOWER_BYTES * np.diff(heard[bounds])
    cuts = np.append(_begins((np.cumsum(sizes) - sizes) // (page_bytes or PAGE_BYTES)), len(sizes)).tolist()
    for begin, end in pairwise(cuts):
        yield int(postings.keys[bounds[begin]]), _page(postings, bounds[begin : end + 1], heard, first)


def _heard(postings: Inverted) -> NDArray[np.int64]:
    """Return the begin of the followers of each posting, and the end of the last."""
    return np.append(0, postings.ends) if len(postings.followers) else np.zeros(len(postings.keys) + 1, np.int64)


def _begins(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the positions at which the value changes."""
    return np.flatnonzero(np.append(True, numbers[1:] != numbers[:-1]))


def _page(postings: Inverted, bounds: NDArray[np.int64], heard: NDArray[np.int64], first: int) -> bytes:
    low, high = bounds[0], bounds[-1]
    body = b"".join(
        (
            np.array([len(bounds) - 1], "<u4").tobytes(),
            postings.keys[bounds[:-1]].astype("<i8").tobytes(),
            (bounds[1:] - low).astype("<u4").tobytes(),
            (heard[bounds[1:]] - heard[low]).astype("<u4").tobytes(),
            (postings.numbers[low:high] - first).astype("<u2").tobytes(),
            postings.frequencies[low:high].tobytes(),
            postings.followers[heard[low] : heard[high]].astype("<u4").tobytes(),
        )
    )
    return add_checksum(body)


def read(blob: bytes) -> Page:
    """Decode a page; one whose length differs from its header is broken, whatever its checksum."""
    check_body(blob)
    size = len(blob)
    terms = _U4(blob, _HEAD_BYTES - 4)[0] if size >= _HEAD_BYTES else 0
    after = _HEAD_BYTES + _TERM_BYTES * terms
    if not terms or after > size:
        raise ChecksumError
    count, heard = _U4(blob, after - 4 * terms - 4)[0], _U4(blob, after - 4)[0]
    if size != after + _POSTING_BYTES * count + _FOLLOWER_BYTES * heard:
        raise ChecksumError
    return Page(blob, terms, count, heard)


def find_list(page: Page, key: int, first: int) -> PostingList | None:
    """Return the list of a term, if the page has it; its numbers are counted from `first`."""
    ends, follower_ends = page.ends, page.follower_ends
    place = int(page.keys.searchsorted(key))
    if place == len(ends) or page.keys[place] != key:
        return None
    begin, end = (int(ends[place - 1]) if place else 0), int(ends[place])
    low, high = (int(follower_ends[place - 1]) if place else 0), int(follower_ends[place])
    if not (begin <= end <= page.count and low <= high <= page.heard):
        raise ValueError("a page is shorter than it says")
    frequencies_at = page.offsets_at + 2 * page.count
    followers_at = frequencies_at + page.count
    return PostingList(
        first,
        page.blob,
        page.offsets_at + 2 * begin,
        frequencies_at + begin,
        end - begin,
        followers_at + 4 * low,
        high - low,
    )


def postings_of(page: Page, first: int) -> Inverted:
    """Return all postings of a page."""
    sizes = page.ends.astype(np.int64)
    sizes[1:] -= sizes[:-1].copy()
    return Inverted(
        np.repeat(page.keys, sizes), page.offsets.astype(np.int64) + first, page.frequencies, page.followers
    )


def one_page(postings: Inverted, first: int) -> Page:
    """Return postings as one page, however long."""
    if not len(postings.keys):
        return Page(add_checksum(bytes(4)), 0, 0, 0)
    bounds = np.append(_begins(postings.keys), len(postings.keys))
    return read(_page(postings, bounds, _heard(postings), first))


LIVE, MAKING = 0, 1
_HIGHEST = 2**53  # of numbers that were given out: one that is higher was damaged
_HEAD = Struct("<4q2I")  # segment, first, last, memories, CRC-32 of the scope and of the list of pages
_DIRECTORY_HEAD = 4 + _HEAD.size  # with its checksum


def is_segment_number(number: object) -> bool:
    """Return whether a number can have been given to a segment."""
    return isinstance(number, int) and 0 < number < _HIGHEST


class Segment(NamedTuple):
    """Postings of the memories of a scope from number `first` to number `last`."""

    scope: str
    segment: int  # its number in the scope
    first: int
    last: int
    memories: int

    @property
    def is_possible(self) -> bool:
        """Check that the numbers of a segment are in range."""
        return (
            all(isinstance(value, int) for value in self[1:])
            and is_segment_number(self.segment)
            and 0 <= self.first <= self.last < self.first + MAX_SPAN
            and 0 <= self.memories <= MAX_SPAN
        )


def directory_with(segment: Segment, entries: bytes) -> bytes:
    """Return the directory of a segment: a checksummed head that repeats its row, and a list of its pages."""
    return _head(segment, zlib.crc32(entries)) + entries


def entries_in(directory: bytes) -> bytes:
    """Return the list of pages of a directory whose head `span` has checked."""
    entries = directory[_DIRECTORY_HEAD:]
    if _HEAD.unpack_from(directory, 4)[-1] != zlib.crc32(entries):
        raise ChecksumError
    return entries


def _head(segment: Segment, checksum: int) -> bytes:
    scope, *numbers = segment
    return add_checksum(_HEAD.pack(*numbers, zlib.crc32(scope.encode("utf-8", errors="replace")), checksum))


def _is_headed(segment: Segment, head: bytes | None) -> bool:
    """Check a row against the head of its directory; segments of earlier versions have none."""
    if head is None:
        return True
    if not isinstance(segment.scope, str) or not isinstance(head, bytes) or len(head) != _DIRECTORY_HEAD:
        return False
    return head == _head(segment, _HEAD.unpack_from(head, 4)[-1])


class SegmentSpan(NamedTuple):
    """The live segments of a scope by ascending number, and the number from which on all is fresh."""

    segments: Sequence[Segment]
    flushed: int


def span_asked(scope: str) -> tuple[Asked, Asked]:
    """Return the statements that read the live segments of a scope, and where its fresh memories begin."""
    return (
        (
            f"SELECT segment, first, last, memories, substr(directory, 1, {_DIRECTORY_HEAD}) FROM posting_segments "
            "WHERE scope = ? AND state = ? ORDER BY first",
            (scope, LIVE),
        ),
        ("SELECT flushed FROM posting_scopes WHERE scope = ?", (scope,)),
    )


def span(connection: Connection, scope: str) -> SegmentSpan:
    """Return the live segments of a scope; raise ChecksumError if they do not fit together."""
    live, flushed = span_asked(scope)
    rows = connection.execute(*live).fetchall()
    known = connection.execute(*flushed).fetchone()
    found = SegmentSpan([Segment(scope, *row[:4]) for row in rows], known[0] if known else 0)
    if not isinstance(found.flushed, int) or not all(segment.is_possible for segment in found.segments):
        raise ChecksumError
    if not all(_is_headed(segment, row[4]) for segment, row in zip(found.segments, rows, strict=True)):
        raise ChecksumError
    if not _fits(connection, scope, found):
        raise ChecksumError
    return found


def live_segments(connection: Connection, scope: str) -> Sequence[Segment]:
    """Return the live segments, in the order of their numbers."""
    return span(connection, scope).segments


def _fits(connection: Connection, scope: str, found: SegmentSpan) -> bool:
    """Check that segments do not overlap, and leave out no flushed memory."""
    begin = 0
    for segment in found.segments:
        if segment.first < begin or _holds_any(connection, scope, begin, segment.first):
            return False
        begin = segment.last + 1
    return begin <= max(found.flushed, 0) and not _holds_any(connection, scope, begin, found.flushed)


def _holds_any(connection: Connection, scope: str, begin: int, end: int) -> bool:
    """Return whether a scope has memories from number `begin` to below `end`."""
    if begin >= end:
        return False
    query = "SELECT 1 FROM posting_tokens WHERE scope = ? AND number >= ? AND number < ? LIMIT 1"
    return connection.execute(query, (scope, begin, end)).fetchone() is not None


LOWEST_KEY = -(2**63)
# Pages that no segment of a scope can have; searched from both ends of an index, as fast for many as for few.
_STRAY = """
SELECT 1 FROM posting_pages WHERE scope = ? AND segment < 1
UNION ALL SELECT 1 FROM posting_pages WHERE scope = ?
    AND segment > (SELECT coalesce(max(segment), 0) FROM posting_segments WHERE scope = ?) LIMIT 1
"""
_FIELDS = frozenset({*(field.number for field in INDEXED), terms.FIELD})
_PART = Struct("<2I")  # of a directory: a field and the number of its pages; their lowest keys and checksums follow
_CHECKSUM = "substr(page, 1, 4)"  # of a page, in SQL

Listed = Mapping[int, tuple[Sequence[int], Sequence[int]]]  # lowest keys and checksums of pages by field


class Directory(NamedTuple):
    """The pages of one field of a segment: their lowest keys, ascending, and their checksums."""

    firsts: Sequence[int]
    checksums: Sequence[int] = ()  # none in a segment written by an earlier version
    is_stored: bool = True

    def lists(self, first: int, page: object) -> bool:
        """Check a page against the checksum listed under its lowest key."""
        place = bisect_left(self.firsts, first)
        if place == len(self.firsts) or self.firsts[place] != first or not isinstance(page, bytes):
            return False
        return not self.checksums or self.checksums[place] == checksum_of(page)


NO_PAGES = Directory(())


def write_directory(connection: Connection, segment: Segment) -> None:
    """Write the list of pages with checksums into the row of a segment, by which a lost page is detected."""
    rows = connection.execute(
        f"SELECT field, first_key, {_CHECKSUM} FROM posting_pages WHERE scope = ? AND segment = ? "
        "ORDER BY field, first_key",
        (segment.scope, segment.segment),
    ).fetchall()
    pages: dict[int, list[tuple[int, int]]] = {}
    for field, first, head in rows:
        pages.setdefault(field, []).append((first, checksum_of(head) if isinstance(head, bytes) else 0))
    entries = b"".join(
        _PART.pack(field, len(own))
        + np.array([first for first, _ in own], "<i8").tobytes()
        + np.array([checksum for _, checksum in own], "<u4").tobytes()
        for field, own in sorted(pages.items())
    )
    connection.execute(
        "UPDATE posting_segments SET directory = ? WHERE scope = ? AND segment = ?",
        (directory_with(segment, entries), segment.scope, segment.segment),
    )


def _listed(directory: bytes) -> Listed:
    """Decode the list of pages of a directory."""
    entries, at = entries_in(directory), 0
    found: dict[int, tuple[list[int], list[int]]] = {}
    while at < len(entries):
        field, count = _PART.unpack_from(entries, at)
        at += _PART.size
        firsts = np.frombuffer(entries, "<i8", count, at)
        checksums = np.frombuffer(entries, "<u4", count, at + firsts.nbytes)
        at += firsts.nbytes + checksums.nbytes
        found[field] = (firsts.tolist(), checksums.tolist())
    return found


def one_unfiled() -> Directory:
    """Return a directory of one page that is not in the file, for all terms of a field."""
    return Directory((LOWEST_KEY,), is_stored=False)


def filed_asked(segment: Segment) -> tuple[Asked, Asked]:
    """Return the statements that read which pages a segment has, and which it should have."""
    return (
        (
            "SELECT segment, field, first_key FROM posting_pages WHERE scope = ? AND segment > ? AND segment < ? "
            "ORDER BY segment, field, first_key",  # with pages misfiled between two segments
            (segment.scope, segment.segment - 1, segment.segment + 1),
        ),
        (
            "SELECT directory FROM posting_segments WHERE scope = ? AND segment = ?",
            (segment.scope, segment.segment),
        ),
    )


def filed(connection: Connection, segment: Segment) -> Mapping[int, Directory] | None:
    """Return the pages of a segment by field; None if a page is missing or misfiled."""
    pages_asked, directory_asked = filed_asked(segment)
    rows = rows_of(connection, *pages_asked)
    number = segment.segment
    if any(owner != number or field not in _FIELDS or not isinstance(key, int) for owner, field, key in rows):
        return None
    found: dict[int, Directory] = {}
    for field in _FIELDS:
        firsts = [key for _, own, key in rows if own == field]
        if firsts:
            found[field] = Directory(firsts)
    listed = connection.execute(*directory_asked).fetchone()
    return found if listed is None or listed[0] is None else _with_checksums(found, listed[0])


def _with_checksums(found: Mapping[int, Directory], directory: bytes) -> Mapping[int, Directory] | None:
    """Return pages with their listed checksums; None if the list differs from the pages."""
    try:
        listed = _listed(directory)
    except (ChecksumError, struct_error, ValueError, TypeError):
        return None
    if {field: [*pages.firsts] for field, pages in found.items()} != {
        field: keys for field, (keys, _) in listed.items()
    }:
        return None
    return {field: pages._replace(checksums=listed[field][1]) for field, pages in found.items()}


def strays_asked(scope: str) -> Asked:
    """Return the statement that looks for pages of a scope that belong to none of its segments."""
    return _STRAY, (scope, scope, scope)


def has_strays(connection: Connection, scope: str) -> bool:
    """Return whether some pages of a scope belong to no existing segment: their owner is unknown."""
    return connection.execute(*strays_asked(scope)).fetchone() is not None
