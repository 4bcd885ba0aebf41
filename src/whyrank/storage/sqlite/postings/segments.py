"""Segments of the keyword index: a write buffer of tokens is flushed into segments, which are merged.

A merge writes its pages beside the old segments, a bounded number of postings per transaction; one update at its
end puts the new segment in their place. After a kill it continues where it was.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ...bm25 import WORDS, Field
from ..database import ChecksumError, Connection, add_checksum, mask_between, rows_at
from ..doc_values import numbers_given
from . import terms
from .format import (
    INDEXED,
    LIVE,
    LOWEST_KEY,
    MAKING,
    MAX_SPAN,
    NO_PAGES,
    PAGE_BYTES,
    Inverted,
    Segment,
    SegmentSpan,
    Text,
    filed,
    is_segment_number,
    key_of,
    live_segments,
    masked,
    pack,
    pages,
    read,
    span,
    stored_texts,
    with_letters_and_marks,
    words_in,
    write_directory,
)
from .kernel import KERNEL, NUMPY, Kernel

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from numpy.typing import NDArray


class MergeSource(NamedTuple):
    """Pages of a segment by ascending key, and the number its offsets count from."""

    first: int
    pages: tuple[bytes, ...]


def merged_pages(
    sources: Sequence[MergeSource],
    first: int,
    low: int,
    below: int | None,
    gone: NDArray[np.bool_],
    kernel: Kernel = KERNEL,
) -> list[tuple[int, bytes]]:
    """Merge the keys from `low` to below `below`, if given, into pages with offsets from `first`.

    Removed memories are left out: `gone` has flags by offset from `first`; if it is empty, none is removed.
    """
    try:
        for page in chain.from_iterable(source.pages for source in sources):
            read(page)  # verifies its checksum
        made = kernel.merged_pages(tuple(sources), first, low, below, gone, PAGE_BYTES)
    except (ValueError, IndexError) as error:  # a valid checksum over invalid content
        raise ChecksumError from error
    return [(key, add_checksum(body)) for key, body in made]


def inverted(texts: Sequence[Text], kernel: Kernel = KERNEL) -> tuple[dict[Field, Inverted], Collection[str]]:
    """Invert texts given by ascending number, and return all their words too."""
    tokens, numbers = [text.tokens for text in texts], np.array([text.number for text in texts], np.int64)
    try:
        *parts, words = kernel.inverted(tokens, numbers)
    except UnicodeEncodeError:  # a lone surrogate, which no entry point accepts
        *parts, words = NUMPY.inverted(tokens, numbers)
    kinds = (np.int64, np.int64, np.uint8, np.uint32)
    postings = Inverted(*(np.frombuffer(part, kind) for part, kind in zip(parts, kinds, strict=True)))
    said = words.decode(errors="surrogatepass")
    return with_letters_and_marks(postings, texts), said.split(" ") if said else ()


FRESH_MEMORIES = 64  # fresh memories are scanned one by one, so there must be few of them
# Segments of bulk writes are not merged two by two: each posting would be rewritten four times.
BULK_MEMORIES, BULK_SEGMENTS = 128, 16
SETTLING = 8  # a segment is merged with an eighth of its memories once no more are to come
PAGES_SCRUBBED_AT_ONCE = 256  # in one transaction: four megabytes
POSTINGS_PER_STEP = 400_000  # read limit of one step of a merge: some tens of milliseconds
_BYTES_PER_POSTING = 7  # with followers
_MOVED_AT_ONCE = 1_000  # memories that are renumbered


def put(connection: Connection, texts: Iterable[tuple[str, Text]]) -> None:
    """Add the memories of some scopes to the write buffer; they can be found at once."""
    connection.executemany(
        "INSERT INTO posting_tokens VALUES (?, ?, ?, ?, ?)",
        (
            (scope, text.number, int(text.letters), " ".join(text.marks), pack(text.tokens, scope, text.number))
            for scope, text in texts
        ),
    )


def remove(connection: Connection, scope: str, number: int) -> None:
    """Delete the tokens of a memory; its postings are skipped, and dropped by the next merge."""
    connection.execute("DELETE FROM posting_tokens WHERE scope = ? AND number = ?", (scope, number))


def flush(connection: Connection, scope: str, numbers: int, newest: Sequence[Text] = ()) -> None:
    """Flush the fresh memories below `numbers` into segments, if there are enough; `newest` are not read."""
    before, begin = made_sound(connection, scope)
    if numbers - begin < FRESH_MEMORIES:
        return
    made: list[Segment] = []
    while begin < numbers:
        end = min(numbers, begin + MAX_SPAN)
        texts = _fresh_texts(connection, scope, begin, end, newest)
        if texts:
            made.append(_new_segment(connection, scope, begin, end - 1, len(texts), LIVE))
            write(connection, made[-1], texts)
        begin = end
    connection.execute(
        "INSERT INTO posting_scopes (scope, flushed, due) VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET "
        "flushed = excluded.flushed, due = max(posting_scopes.due, excluded.due)",
        (scope, numbers, int(_is_worth_merging([*before, *made]))),
    )


def made_sound(connection: Connection, scope: str) -> SegmentSpan:
    """Return the live segments of a scope; if they are inconsistent, rebuild them from the tokens."""
    try:
        return span(connection, scope)
    except ChecksumError:
        renumber(connection, scope, (), numbers_given(connection, scope, None))
        _announce(connection, scope)
        return span(connection, scope)


def _is_worth_merging(segments: Sequence[Segment]) -> bool:
    """Return whether there are enough segments of similar size, after one was added."""
    is_bulk = bool(segments) and segments[-1].memories >= BULK_MEMORIES
    return len(to_merge(segments, 1)) >= (BULK_SEGMENTS if is_bulk else 2)


def _fresh_texts(connection: Connection, scope: str, begin: int, end: int, newest: Sequence[Text]) -> list[Text]:
    known = [text for text in newest if begin <= text.number < end]
    before = known[0].number if known else end
    return [*(stored_texts(connection, scope, begin, before - 1) if begin < before else ()), *known]


def renumber(connection: Connection, scope: str, moves: Sequence[tuple[int, str, int]], numbers: int) -> None:
    """Move the memories of a scope to new numbers, and rebuild its segments."""
    for begin in range(0, len(moves), _MOVED_AT_ONCE):
        part = {old: new for new, _, old in moves[begin : begin + _MOVED_AT_ONCE]}
        stored = rows_at(connection, "SELECT number, tokens FROM posting_tokens", [(scope, old) for old in part])
        connection.executemany(
            "UPDATE posting_tokens SET number = ?, tokens = ? WHERE scope = ? AND number = ?",
            [
                (part[old], _moved(blob, mask_between(scope, old, part[old])), scope, old)
                for old, blob in sorted(stored)
            ],
        )
    keep_count(connection, scope, last_segment(connection, scope))
    connection.execute("DELETE FROM posting_pages WHERE scope = ?", (scope,))
    connection.execute("DELETE FROM posting_segments WHERE scope = ?", (scope,))
    connection.execute("UPDATE posting_scopes SET flushed = 0 WHERE scope = ?", (scope,))
    flush(connection, scope, numbers)


def _moved(blob: object, mask: int) -> object:
    return masked(blob, mask) if isinstance(blob, bytes) else blob


def write(connection: Connection, segment: Segment, texts: Sequence[Text]) -> None:
    """Write all pages of a segment."""
    fields, words = inverted(texts)
    for field, postings in fields.items():
        _write_pages(connection, segment, field.number, pages(postings, segment.first))
    terms.write(connection, segment, words)
    write_directory(connection, segment)


def _write_pages(connection: Connection, segment: Segment, field: int, made: Iterable[tuple[int, bytes]]) -> None:
    place = (segment.scope, segment.segment, field)
    connection.executemany(terms.PUT_PAGE, ((*place, key, page) for key, page in made))


def _new_segment(connection: Connection, scope: str, first: int, last: int, memories: int, state: int) -> Segment:
    made = Segment(scope, last_segment(connection, scope) + 1, first, last, memories)
    keep_count(connection, scope, made.segment)
    connection.execute(
        "INSERT INTO posting_segments (scope, segment, first, last, memories, state, next_key) "
        "VALUES (?, ?, ?, ?, ?, ?, ?)",
        (*made, state, LOWEST_KEY),
    )
    return made


_GIVEN = (
    "SELECT segments FROM posting_scopes WHERE scope = ? UNION ALL SELECT segment FROM posting_segments WHERE scope = ?"
)


def last_segment(connection: Connection, scope: str) -> int:
    """Return the last number that was given to a segment of a scope, whether or not its count is damaged."""
    given = connection.execute(_GIVEN, (scope, scope)).fetchall()
    return max((number for (number,) in given if is_segment_number(number)), default=0)


def keep_count(connection: Connection, scope: str, last: int) -> None:
    """Store the last number of a segment: caches of readers may know a dropped one, so none is given twice."""
    connection.execute(
        "INSERT INTO posting_scopes (scope, flushed, segments) VALUES (?, 0, ?) "
        "ON CONFLICT DO UPDATE SET segments = excluded.segments",
        (scope, last),
    )


_UNLISTED = (
    "FROM posting_segments AS s WHERE s.state = :live AND NOT EXISTS (SELECT 1 FROM posting_pages AS p "
    "WHERE p.scope = s.scope AND p.segment = s.segment AND p.field = :field AND p.first_key = :first)"
)
_LISTING = {"live": LIVE, "field": terms.FIELD, "first": terms.FIRST}


def plan_listing(connection: Connection) -> None:
    """Schedule the scopes that have segments without a term dictionary: those of older stores."""
    connection.execute(f"UPDATE posting_scopes SET due = 1 WHERE scope IN (SELECT s.scope {_UNLISTED})", _LISTING)


def _list_words(connection: Connection, scope: str) -> int:
    """Write the term dictionary of one segment without one; return the number of words read."""
    found = connection.execute(
        f"SELECT s.segment, s.first, s.last, s.memories {_UNLISTED} AND s.scope = :scope LIMIT 1",
        {**_LISTING, "scope": scope},
    ).fetchone()
    if found is None:
        return 0
    segment = Segment(scope, *found)
    if filed(connection, segment) is None:
        rewrite(connection, scope, [segment])
        return POSTINGS_PER_STEP
    texts = stored_texts(connection, scope, segment.first, segment.last)
    terms.write(connection, segment, words_in(texts))
    write_directory(connection, segment)
    return sum(len(text.tokens) for text in texts) + 1


DUE = "SELECT 1 FROM posting_scopes WHERE due = 1 LIMIT 1"


def is_due(connection: Connection) -> bool:
    """Return whether a merge is due."""
    return connection.execute(DUE).fetchone() is not None


def merge_step(connection: Connection) -> bool:
    """Merge as many postings as one step may read, if a merge is due; return whether there may be more."""
    left = POSTINGS_PER_STEP
    while left > 0:
        done = _merge_piece(connection)
        if done is None:
            return False
        left -= done
    return True


def _merge_piece(connection: Connection) -> int | None:
    """Begin, continue or end a merge; return the number of postings read, None if nothing is due."""
    due = connection.execute("SELECT scope FROM posting_scopes WHERE due = 1 LIMIT 1").fetchone()
    if due is None:
        return None
    scope = due[0]
    made_sound(connection, scope)
    listed = _list_words(connection, scope)
    if listed:
        return listed
    done = _go_on(connection, scope)
    if done is None and not _begin_merge(connection, scope):
        connection.execute("UPDATE posting_scopes SET due = 0 WHERE scope = ?", (scope,))
    return done or 0


def _go_on(connection: Connection, scope: str) -> int | None:
    """Continue or end the merge of a scope; return the number of postings read, None if there is none."""
    making = connection.execute(
        "SELECT segment, first, last, memories, field, next_key FROM posting_segments WHERE scope = ? AND state = ?",
        (scope, MAKING),
    ).fetchone()
    if making is None:
        return None
    target, step = Segment(scope, *making[:4]), making[4:]
    is_whole = target.is_possible and filed(connection, target) is not None
    if not (is_whole and _is_step(connection, target, *step)):
        abandon_merge(connection, scope)  # to begin again
        return 0
    return _merge_on(connection, target, *step)


def _is_step(connection: Connection, target: Segment, field: int, key: int) -> bool:
    """Check the progress of a merge: its pages lie below the key, and another segment's page begins there."""
    if not (isinstance(field, int) and isinstance(key, int) and 0 <= field <= len(INDEXED) + 1):
        return False
    if field > len(INDEXED):
        return terms.is_listed(connection, target)
    number = INDEXED[field].number if field < len(INDEXED) else terms.FIELD
    written, beginning = connection.execute(
        "SELECT max(iif(p.segment = :target AND p.first_key >= :key, 1, 0)), "
        "max(iif(p.segment <> :target AND p.first_key = :key, 1, 0)) "
        "FROM posting_segments AS s JOIN posting_pages AS p ON p.scope = s.scope AND p.segment = s.segment "
        "WHERE s.scope = :scope AND p.scope = :scope AND p.field = :field AND p.first_key >= :key",
        {"scope": target.scope, "target": target.segment, "field": number, "key": key},
    ).fetchone()
    return not written and (key == LOWEST_KEY or bool(beginning))


def compact(connection: Connection, scope: str) -> None:
    """Begin a larger merge than those between writes: every segment costs each query term a page."""
    made_sound(connection, scope)
    making = connection.execute("SELECT 1 FROM posting_segments WHERE scope = ? AND state = ?", (scope, MAKING))
    if making.fetchone() is None and _begin_merge(connection, scope, SETTLING):
        connection.execute("UPDATE posting_scopes SET due = 1 WHERE scope = ?", (scope,))


def _begin_merge(connection: Connection, scope: str, larger: int = 1) -> bool:
    """Create the target segment of a merge, if there are segments to merge."""
    together = to_merge(live_segments(connection, scope), larger)
    if together:
        memories = sum(part.memories for part in together)
        _new_segment(connection, scope, together[0].first, together[-1].last, memories, MAKING)
    return bool(together)


def to_merge(segments: Sequence[Segment], larger: int) -> list[Segment]:
    """Return the newest segment and those before it that are at most `larger` times all newer together.

    With 1, every remaining segment is larger than all newer ones together: there are few, and a posting is rewritten
    only when the segment it is in doubles.
    """
    run = list(segments[-1:])
    for segment in reversed(segments[:-1]):
        behind = sum(part.memories for part in run)
        if segment.memories > larger * behind or run[-1].last - segment.first >= MAX_SPAN:
            break
        run.insert(0, segment)
    return run if len(run) > 1 else []


def _merge_on(connection: Connection, target: Segment, field: int, key: int) -> int:
    """Merge the next range of keys, or finish; return the approximate number of postings read."""
    scope = target.scope
    sources = [
        part for part in live_segments(connection, scope) if target.first <= part.first and part.last <= target.last
    ]
    if field > len(INDEXED):
        _replace(connection, target, sources)
        return 0
    directories = [own for own in (filed(connection, source) for source in sources) if own is not None]
    if len(directories) < len(sources):
        rewrite(connection, scope, sources)
        return POSTINGS_PER_STEP
    number = INDEXED[field].number if field < len(INDEXED) else terms.FIELD
    listed = {source: own.get(number, NO_PAGES).lists for source, own in zip(sources, directories, strict=True)}
    if field == len(INDEXED):
        return _merge_words(connection, target, sources, key, listed)
    below = _range_end(connection, sources, number, key)
    try:
        found = [
            MergeSource(source.first, _pages(connection, source, number, key, below, listed[source]))
            for source in sources
        ]
        made = merged_pages(found, target.first, key, below, _gone(connection, target))
    except ChecksumError:
        rewrite(connection, scope, sources)
        return POSTINGS_PER_STEP
    _write_pages(connection, target, number, made)
    write_directory(connection, target)
    step = (field, below) if below is not None else (field + 1, LOWEST_KEY)
    _note_step(connection, target, *step)
    return sum(len(page) for source in found for page in source.pages) // _BYTES_PER_POSTING


def _note_step(connection: Connection, target: Segment, field: int, key: int) -> None:
    connection.execute(
        "UPDATE posting_segments SET field = ?, next_key = ? WHERE scope = ? AND segment = ?",
        (field, key, target.scope, target.segment),
    )


def _merge_words(
    connection: Connection,
    target: Segment,
    sources: Sequence[Segment],
    key: int,
    listed: Mapping[Segment, terms.IsListed],
) -> int:
    """Merge the next words, without those of removed memories alone; return the work done, in postings."""

    def is_living(words: Sequence[str]) -> NDArray[np.bool_]:
        if not len(_gone(connection, target)):
            return np.ones(len(words), np.bool_)
        return _held_by(connection, target)(words)

    try:
        below = terms.merge(connection, sources, target, key, is_living, listed=listed)
    except ChecksumError:
        rewrite(connection, target.scope, sources)
        drop(connection, target.scope, target.segment)  # its own pages were read as well
        return POSTINGS_PER_STEP
    write_directory(connection, target)
    step = (len(INDEXED), below) if below is not None else (len(INDEXED) + 1, LOWEST_KEY)
    _note_step(connection, target, *step)
    return POSTINGS_PER_STEP if below is not None else 0


def _held_by(connection: Connection, segment: Segment) -> terms.IsLiving:
    """Return a function that flags the words that have postings in a segment."""
    pages = connection.execute(
        "SELECT page FROM posting_pages WHERE scope = ? AND segment = ? AND field = ?",
        (segment.scope, segment.segment, WORDS.number),
    )
    keys = np.sort(np.concatenate([np.zeros(0, np.int64), *(read(blob).keys for (blob,) in pages)]))

    def is_held(words: Sequence[str]) -> NDArray[np.bool_]:
        sought = np.array([key_of(word) for word in words], np.int64)
        return keys.searchsorted(sought, side="right") > keys.searchsorted(sought)

    return is_held


def _range_end(connection: Connection, sources: Sequence[Segment], field: int, key: int) -> int | None:
    """Return the key below which the sources hold about one step of postings; None if that is all of them."""
    firsts = [
        (first, size // _BYTES_PER_POSTING)
        for source in sources
        for first, size in connection.execute(
            "SELECT first_key, coalesce(length(page), 0) FROM posting_pages "
            "WHERE scope = ? AND segment = ? AND field = ? AND first_key > ?",
            (source.scope, source.segment, field, key),
        )
    ]
    read_so_far = 0
    for first, size in sorted(firsts):
        if read_so_far >= POSTINGS_PER_STEP:
            return int(first)
        read_so_far += size
    return None


def _pages(
    connection: Connection, source: Segment, field: int, key: int, below: int | None, is_listed: terms.IsListed
) -> tuple[bytes, ...]:
    """Return the pages of a segment that hold keys from `key` to below `below`, if given."""
    rows = connection.execute(
        "SELECT first_key, page FROM posting_pages WHERE scope = :scope AND segment = :segment AND field = :field "
        "AND (:below IS NULL OR first_key < :below) "
        "AND first_key >= coalesce((SELECT max(first_key) FROM posting_pages WHERE scope = :scope "
        "AND segment = :segment AND field = :field AND first_key <= :key), :key) ORDER BY first_key",
        {"scope": source.scope, "segment": source.segment, "field": field, "key": key, "below": below},
    ).fetchall()
    if not all(is_listed(first, page) for first, page in rows):
        raise ChecksumError
    return tuple(page for _, page in rows)


def _gone(connection: Connection, target: Segment) -> NDArray[np.bool_]:
    """Return the flags of removed memories of a segment; empty if there are none."""
    # Read from `memories`, whose index holds nothing else: in `posting_tokens` rows lie some hundred bytes apart.
    living = "FROM memories WHERE scope = ? AND number BETWEEN ? AND ? AND typeof(number) = 'integer'"
    place, span = (target.scope, target.first, target.last), target.last - target.first + 1
    if connection.execute(f"SELECT count(*) {living}", place).fetchone()[0] == span:
        return np.zeros(0, np.bool_)
    gone = np.ones(span, np.bool_)
    there = connection.execute(f"SELECT number {living}", place).fetchall()
    gone[np.array([number for (number,) in there], np.int64) - target.first] = False
    return gone


def _replace(connection: Connection, target: Segment, sources: Sequence[Segment]) -> None:
    """Replace the source segments of a merge by the merged one."""
    scope = target.scope
    connection.execute(
        "UPDATE posting_segments SET state = ? WHERE scope = ? AND segment = ?", (LIVE, scope, target.segment)
    )
    for source in sources:
        drop(connection, scope, source.segment)
    _announce(connection, scope)


def _announce(connection: Connection, scope: str) -> None:
    """Raise the generation of the store and a scope, which invalidates the caches of readers."""
    connection.execute("UPDATE meta SET value = CAST(CAST(value AS INTEGER) + 1 AS TEXT) WHERE key = 'generation'")
    connection.execute(
        "UPDATE scopes SET changed = (SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'generation') "
        "WHERE scope = ?",
        (scope,),
    )


def drop(connection: Connection, scope: str, segment: int) -> None:
    """Delete a segment of a scope."""
    connection.execute("DELETE FROM posting_pages WHERE scope = ? AND segment = ?", (scope, segment))
    connection.execute("DELETE FROM posting_segments WHERE scope = ? AND segment = ?", (scope, segment))


def abandon_merge(connection: Connection, scope: str) -> None:
    """Drop the target segment of a scope's merge; the merge begins again when it is due."""
    connection.execute("DELETE FROM posting_segments WHERE scope = ? AND state = ?", (scope, MAKING))
    connection.execute(  # its number may be damaged, and its pages be those of no segment already
        "DELETE FROM posting_pages WHERE scope = ? "
        "AND segment NOT IN (SELECT segment FROM posting_segments WHERE scope = ?)",
        (scope, scope),
    )


def scrub(connection: Connection, scope: str) -> bool:
    """Remove postings of deleted memories from one segment of a scope; return whether more may be left.

    Pages are rewritten in place where few hold such postings; else the segment is merged into a new one, step by step.
    """
    if _go_on(connection, scope) is not None:
        return True
    for segment in made_sound(connection, scope).segments:
        living = _count_living(connection, segment)
        if living != segment.memories:
            _scrub_segment(connection, segment, living)
            return True
    return False


def _count_living(connection: Connection, segment: Segment) -> int:
    living: int = connection.execute(
        "SELECT count(*) FROM memories WHERE scope = ? AND number BETWEEN ? AND ? AND typeof(number) = 'integer'",
        (segment.scope, segment.first, segment.last),
    ).fetchone()[0]
    return living


def _scrub_segment(connection: Connection, segment: Segment, living: int) -> None:
    """Rewrite the pages of a segment that hold postings of removed memories, and its term dictionary."""
    scope = segment.scope
    if not living:
        drop(connection, scope, segment.segment)
        _announce(connection, scope)
        return
    try:
        gone = _gone(connection, segment)
        if filed(connection, segment) is None:
            raise ChecksumError
        stale = _stale_pages(connection, segment, gone) if len(gone) else []
        if len(stale) > PAGES_SCRUBBED_AT_ONCE:
            _new_segment(connection, scope, segment.first, segment.last, living, MAKING)
            return
        has_lost_terms = [_scrub_page(connection, segment, *page, gone) for page in stale]
        if any(has_lost_terms) and terms.is_listed(connection, segment):
            terms.scrub(connection, segment, _held_by(connection, segment))
    except ChecksumError:
        rewrite(connection, scope, [segment])
        return
    connection.execute(
        "UPDATE posting_segments SET memories = ? WHERE scope = ? AND segment = ?", (living, scope, segment.segment)
    )
    write_directory(connection, segment._replace(memories=living))
    _announce(connection, scope)


def _stale_pages(connection: Connection, segment: Segment, gone: NDArray[np.bool_]) -> list[tuple[int, int, bytes]]:
    """Return the fields, lowest keys and bytes of the pages that hold postings of removed memories."""
    stored = connection.execute(
        "SELECT field, first_key, page FROM posting_pages WHERE scope = ? AND segment = ? AND field <> ?",
        (segment.scope, segment.segment, terms.FIELD),
    )
    try:
        return [(field, first, blob) for field, first, blob in stored if gone[read(blob).offsets].any()]
    except (ValueError, IndexError, TypeError) as error:  # a valid checksum over invalid content
        raise ChecksumError from error


def _scrub_page(
    connection: Connection, segment: Segment, field: int, first: int, blob: bytes, gone: NDArray[np.bool_]
) -> bool:
    """Rewrite a page without the postings of removed memories; return whether it lost terms."""
    place = (segment.scope, segment.segment, field, first)
    made = merged_pages([MergeSource(segment.first, (blob,))], segment.first, LOWEST_KEY, None, gone)
    if not made:
        connection.execute(f"DELETE FROM posting_pages WHERE {terms.PAGE_PLACE}", place)
        return True
    [(key, page)] = made  # part of a page is never split
    connection.execute(
        f"UPDATE posting_pages SET first_key = ?, page = ? WHERE {terms.PAGE_PLACE}", (key, page, *place)
    )
    return len(read(page).keys) < len(read(blob).keys)


def rewrite(connection: Connection, scope: str, segments: Iterable[Segment]) -> None:
    """Rebuild segments from the tokens of their memories, because their pages are damaged."""
    for segment in segments:
        texts = stored_texts(connection, scope, segment.first, segment.last)
        made = _new_segment(connection, scope, segment.first, segment.last, len(texts), LIVE)
        drop(connection, scope, segment.segment)
        write(connection, made, texts)
    _announce(connection, scope)
