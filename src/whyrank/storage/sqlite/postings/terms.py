"""Sorted term dictionary of a segment: postings are keyed by hashes of terms, which have no prefixes.

It lies beside the postings in checksummed pages of its own, keyed by the prefix of their first word; so words with a
common prefix are adjacent, and the dictionary is merged, rebuilt and dropped with its segment. A segment of a version
before this format has no page at FIRST; its texts are scanned instead until it is listed.
"""

from __future__ import annotations

import zlib
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import compress
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ....analysis.names import accented_in
from ..database import ChecksumError, add_checksum, check_body

if TYPE_CHECKING:
    from ..database import Connection

PUT_PAGE = "INSERT INTO posting_pages (scope, segment, field, first_key, page) VALUES (?, ?, ?, ?, ?)"
PAGE_PLACE = "scope = ? AND segment = ? AND field = ? AND first_key = ?"  # the key of a page
FIELD = 4  # field number of the pages, after the fields of texts
FIRST = -1  # the key of an empty page that marks the dictionary as complete
PAGE_WORDS = 1_024  # some four kilobytes; a prefix of three letters is found on a page or two
PAGES_PER_STEP = 48  # read limit of one step of a merge: some tens of milliseconds
_QUICK = 1  # of zlib: a tenth larger than its usual 6, in half the time
_KEY_BYTES = 7  # of a word's prefix, so that a key is positive and keys are ordered as words are


class SegmentKey(Protocol):
    """The key of a segment: its scope, and its number there."""

    @property
    def scope(self) -> str:
        """Return the scope."""

    @property
    def segment(self) -> int:
        """Return the number."""


IsLiving = Callable[[Sequence[str]], NDArray[np.bool_]]
IsListed = Callable[[int, bytes], bool]  # checks a page against the directory entry of its segment for a key


def _any(first: int, page: bytes) -> bool:
    """Accept every page: for a segment without a directory."""
    return True


def write(connection: Connection, segment: SegmentKey, words: Iterable[str]) -> None:
    """Write the term dictionary of a segment, replacing an earlier one."""
    place = (segment.scope, segment.segment, FIELD)
    connection.execute("DELETE FROM posting_pages WHERE scope = ? AND segment = ? AND field = ?", place)
    _write_pages(connection, segment, words)
    close(connection, segment)


def close(connection: Connection, segment: SegmentKey) -> None:
    """Mark the term dictionary of a segment as complete."""
    connection.execute(PUT_PAGE, (segment.scope, segment.segment, FIELD, FIRST, _packed(())))


def is_listed(connection: Connection, segment: SegmentKey) -> bool:
    """Return whether a segment has a complete term dictionary."""
    place = (segment.scope, segment.segment, FIELD, FIRST)
    known = connection.execute(f"SELECT 1 FROM posting_pages WHERE {PAGE_PLACE}", place)
    return known.fetchone() is not None


def first_of(blob: bytes) -> int:
    """Return the key of a page of words."""
    words = _split(_unpacked(blob))
    return key_for(words[0]) if words else FIRST


def beginning(connection: Connection, segment: SegmentKey, start: str, is_listed: IsListed = _any) -> list[str]:
    """Return the words of a listed segment that have a prefix."""
    low = key_for(start)
    high = int.from_bytes(_bytes(start).ljust(_KEY_BYTES, b"\xff"), "big")
    pages = _listed(connection, segment, low, high + 1, is_listed)
    return [word for page in pages for word in page if word.startswith(start)]


def accented(connection: Connection, segment: SegmentKey, is_listed: IsListed) -> list[str]:
    """Return the words of a listed segment that have accents."""
    blobs = _blobs(connection, segment, 0, None, is_listed)
    return [word for blob in blobs for word in accented_in(_decoded(_unpacked(blob)))]


def merge(
    connection: Connection,
    sources: Sequence[SegmentKey],
    target: SegmentKey,
    key: int,
    is_living: IsLiving,
    listed: Mapping[Any, IsListed] = MappingProxyType({}),
) -> int | None:
    """Merge the next words that living memories hold; return the key to continue at, None at the end."""
    marks = ", ".join("?" * len(sources))
    firsts = connection.execute(
        f"SELECT first_key FROM posting_pages WHERE scope = ? AND segment IN ({marks}) AND field = ? "
        "AND first_key > ? ORDER BY first_key LIMIT 1 OFFSET ?",
        (target.scope, *(source.segment for source in sources), FIELD, max(key, FIRST), PAGES_PER_STEP),
    ).fetchone()
    below: int | None = firsts[0] if firsts else None
    start = max(key, 0)
    words = _merged(connection, {source: listed.get(source, _any) for source in sources}, start, below)
    kept = is_living(words)
    _write_pages(connection, target, words if kept.all() else compress(words, kept.tolist()))
    if below is None:
        close(connection, target)
    return below


def scrub(connection: Connection, segment: SegmentKey, is_living: IsLiving) -> None:
    """Delete the words of a listed segment that none of its memories holds any more."""
    place = (segment.scope, segment.segment, FIELD)
    listed = connection.execute(
        "SELECT first_key, page FROM posting_pages WHERE scope = ? AND segment = ? AND field = ? AND first_key > ?",
        (*place, FIRST),
    ).fetchall()
    for first, blob in listed:
        words = _split(_unpacked(blob))
        living = [*compress(words, is_living(words).tolist())]
        if not living:
            connection.execute(f"DELETE FROM posting_pages WHERE {PAGE_PLACE}", (*place, first))
        elif len(living) < len(words):
            connection.execute(
                f"UPDATE posting_pages SET first_key = ?, page = ? WHERE {PAGE_PLACE}",
                (key_for(living[0]), _packed(living), *place, first),
            )


def _merged(connection: Connection, sources: Mapping[SegmentKey, IsListed], low: int, below: int | None) -> list[str]:
    """Return the words of segments with keys from `low` to below `below`, in order."""
    pages = (page for source in sources.items() for page in _pages_between(connection, *source, low, below))
    return sorted(set().union(*pages))


def _pages_between(
    connection: Connection, segment: SegmentKey, is_listed: IsListed, low: int, below: int | None
) -> Iterator[list[str]]:
    """Yield, page by page, the words with keys from `low` to below `below`; keys are ordered as words are."""
    for page in _listed(connection, segment, low, below, is_listed):
        end = len(page) if below is None else bisect_left(page, below, key=key_for)
        yield page[bisect_left(page, low, key=key_for) : end]


def _listed(
    connection: Connection, segment: SegmentKey, low: int, below: int | None, is_listed: IsListed
) -> Iterator[list[str]]:
    """Yield the words of the pages that hold keys from `low` to below `below`."""
    return (_split(_unpacked(blob)) for blob in _blobs(connection, segment, low, below, is_listed))


def _blobs(
    connection: Connection, segment: SegmentKey, low: int, below: int | None, is_listed: IsListed
) -> Iterator[bytes]:
    place = {"scope": segment.scope, "segment": segment.segment, "field": FIELD}
    rows = connection.execute(
        "SELECT first_key, page FROM posting_pages WHERE scope = :scope AND segment = :segment AND field = :field "
        "AND first_key >= coalesce((SELECT max(first_key) FROM posting_pages WHERE scope = :scope "
        "AND segment = :segment AND field = :field AND first_key <= :low AND first_key > :first), 0) "
        "AND (:below IS NULL OR first_key < :below) ORDER BY first_key",
        {**place, "low": low, "below": below, "first": FIRST},
    ).fetchall()
    if not all(is_listed(first, blob) for first, blob in rows):
        raise ChecksumError
    return (blob for _, blob in rows)


def _write_pages(connection: Connection, segment: SegmentKey, words: Iterable[str]) -> None:
    place = (segment.scope, segment.segment, FIELD)
    connection.executemany(PUT_PAGE, ((*place, key, page) for key, page in _pages(sorted(words))))


def _pages(words: Sequence[str]) -> Iterator[tuple[int, bytes]]:
    """Cut ordered words into pages; words with one key stay together, so that no two pages have the same."""
    start = 0
    while start < len(words):
        end = min(start + PAGE_WORDS, len(words))
        end = bisect_right(words, key_for(words[end - 1]), lo=end, key=key_for)
        yield key_for(words[start]), _packed(words[start:end])
        start = end


def key_for(word: str) -> int:
    """Return the key of a word: its prefix as a number."""
    return int.from_bytes(_bytes(word).ljust(_KEY_BYTES, b"\0"), "big")


def _bytes(word: str) -> bytes:
    return word.encode("utf-8", errors="replace")[:_KEY_BYTES]


def _packed(words: Iterable[str]) -> bytes:
    return add_checksum(zlib.compress(" ".join(words).encode("utf-8", errors="replace"), _QUICK))


def _split(words: bytes) -> list[str]:
    return _decoded(words).split(" ") if words else []


def _decoded(words: bytes) -> str:
    try:
        return words.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ChecksumError from error


def _unpacked(blob: bytes) -> bytes:
    try:
        return zlib.decompress(check_body(blob))
    except zlib.error as error:
        raise ChecksumError from error
