"""Writing the index: fresh memories wait as tokens, are flushed into a segment, and segments are merged step by step.

A merge writes its pages beside the old segments, a bounded number of postings per transaction; one update at its
end puts the new segment in their place. Killed in the middle, it goes on where it was.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from ....kernel import COMPILED
from ...fields import WORDS
from ..connection import Connection
from ..records import numbers_given
from ..sealed import BrokenSeal
from . import vocabulary
from .filing import LOWEST_KEY, NO_PAGES, filed, write_directory
from .inversion import INDEXED, Text, inverted, key_of, words_in
from .merging import Source, merged_pages
from .pages import MAX_SPAN, pages, read
from .spans import LIVE, MAKING, Segment, Span, live_segments, span
from .texts import pack, stored_texts

FRESH_MEMORIES = 64  # fresh memories are looked through one by one, so there must be few of them
# Many memories at once make segments that need not be merged two by two: each posting would be rewritten four times.
BULK_MEMORIES, BULK_SEGMENTS = 128, 16
SETTLING = 8  # a segment is merged with an eighth of its memories once no more are to come
PAGES_SCRUBBED_AT_ONCE = 256  # in one transaction: four megabytes
POSTINGS_PER_STEP = 400_000  # what one step of a merge may read: some tens of milliseconds
_BYTES_PER_POSTING = 7  # with followers

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
    due INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE TABLE posting_segments (
    segment INTEGER PRIMARY KEY AUTOINCREMENT,
    scope TEXT NOT NULL,
    first INTEGER NOT NULL,
    last INTEGER NOT NULL,
    memories INTEGER NOT NULL,
    state INTEGER NOT NULL,
    field INTEGER NOT NULL DEFAULT 0,
    next_key INTEGER NOT NULL DEFAULT 0,
    directory BLOB
);
CREATE INDEX posting_scopes_due ON posting_scopes (due) WHERE due = 1;
CREATE INDEX posting_segments_by_scope ON posting_segments (scope, state, first);
CREATE TABLE posting_pages (
    number INTEGER PRIMARY KEY,
    segment INTEGER NOT NULL,
    field INTEGER NOT NULL,
    first_key INTEGER NOT NULL,
    page BLOB NOT NULL
);
CREATE UNIQUE INDEX posting_pages_by_key ON posting_pages (segment, field, first_key);
"""
TABLE_NAMES = ("posting_tokens", "posting_scopes", "posting_segments", "posting_pages")


def put(connection: Connection, texts: Iterable[tuple[str, int, Text]]) -> None:
    """Take in the memories of some scopes; they can be found at once."""
    connection.executemany(
        "INSERT INTO posting_tokens VALUES (?, ?, ?, ?, ?)",
        (
            (scope, text.number, text.letters, " ".join(text.marks), pack(text.tokens, row))
            for scope, row, text in texts
        ),
    )


def remove(connection: Connection, scope: str, number: int) -> None:
    """Forget the tokens of a memory; its postings are passed over, and dropped by the next merge."""
    connection.execute("DELETE FROM posting_tokens WHERE scope = ? AND number = ?", (scope, number))


def flush(connection: Connection, scope: str, numbers: int, newest: Sequence[Text] = ()) -> None:
    """Turn the fresh memories below `numbers` into segments, once there are enough; the newest need not be read."""
    before, begin = made_sound(connection, scope)
    if numbers - begin < FRESH_MEMORIES:
        return
    made: list[Segment] = []
    while begin < numbers:
        end = min(numbers, begin + MAX_SPAN)
        texts = _fresh_texts(connection, scope, begin, end, newest)
        if texts:
            made.append(_new_segment(connection, scope, begin, end - 1, len(texts), LIVE))
            write(connection, scope, made[-1], texts)
        begin = end
    connection.execute(
        "INSERT INTO posting_scopes VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET "
        "flushed = excluded.flushed, due = max(due, excluded.due)",
        (scope, numbers, _is_worth_merging([*before, *made])),
    )


def made_sound(connection: Connection, scope: str) -> Span:
    """Return what the segments of a scope hold; where that cannot be believed, make them anew from the tokens."""
    try:
        return span(connection, scope)
    except BrokenSeal:
        renumber(connection, scope, (), numbers_given(connection, scope, None))
        _announce(connection, scope)
        return span(connection, scope)


def _is_worth_merging(segments: Sequence[Segment]) -> bool:
    """Tell whether there are enough segments of a kind, now that there is one more."""
    is_bulk = bool(segments) and segments[-1].memories >= BULK_MEMORIES
    return len(to_merge(segments, 1)) >= (BULK_SEGMENTS if is_bulk else 2)


def _fresh_texts(connection: Connection, scope: str, begin: int, end: int, newest: Sequence[Text]) -> list[Text]:
    known = [text for text in newest if begin <= text.number < end]
    before = known[0].number if known else end
    return [*(stored_texts(connection, scope, begin, before - 1) if begin < before else ()), *known]


def renumber(connection: Connection, scope: str, moves: Sequence[tuple[int, str, int]], numbers: int) -> None:
    """Follow the memories of a scope to new numbers."""
    connection.executemany("UPDATE posting_tokens SET number = ? WHERE scope = ? AND number = ?", moves)
    for (segment,) in connection.execute("SELECT segment FROM posting_segments WHERE scope = ?", (scope,)).fetchall():
        drop(connection, segment)
    connection.execute("UPDATE posting_scopes SET flushed = 0 WHERE scope = ?", (scope,))
    flush(connection, scope, numbers)


def write(connection: Connection, scope: str, segment: Segment, texts: Sequence[Text]) -> None:
    """Write all pages of a segment."""
    fields, words = inverted(texts)
    for field, postings in fields.items():
        _write_pages(connection, segment, field.number, pages(postings, segment.first))
    vocabulary.write(connection, segment.segment, words)
    write_directory(connection, scope, segment)


def _write_pages(connection: Connection, segment: Segment, field: int, made: Iterable[tuple[int, bytes]]) -> None:
    connection.executemany(
        "INSERT INTO posting_pages (segment, field, first_key, page) VALUES (?, ?, ?, ?)",
        ((segment.segment, field, key, page) for key, page in made),
    )


def _new_segment(connection: Connection, scope: str, first: int, last: int, memories: int, state: int) -> Segment:
    made = connection.execute(
        "INSERT INTO posting_segments (scope, first, last, memories, state, next_key) VALUES (?, ?, ?, ?, ?, ?)",
        (scope, first, last, memories, state, LOWEST_KEY),
    )
    assert made.lastrowid is not None
    return Segment(made.lastrowid, first, last, memories)


_UNLISTED = (
    "FROM posting_segments AS s WHERE s.state = :live AND NOT EXISTS (SELECT 1 FROM posting_pages AS p "
    "WHERE p.segment = s.segment AND p.field = :field AND p.first_key = :first)"
)
_LISTING = {"live": LIVE, "field": vocabulary.FIELD, "first": vocabulary.FIRST}


def plan_listing(connection: Connection) -> None:
    """Let the scopes be tidied that have segments whose words are not listed: those of older stores."""
    connection.execute(f"UPDATE posting_scopes SET due = 1 WHERE scope IN (SELECT s.scope {_UNLISTED})", _LISTING)


def _list_words(connection: Connection, scope: str) -> int:
    """List the words of one segment that was written without; return how many words were read."""
    found = connection.execute(
        f"SELECT s.segment, s.first, s.last, s.memories {_UNLISTED} AND s.scope = :scope LIMIT 1",
        {**_LISTING, "scope": scope},
    ).fetchone()
    if found is None:
        return 0
    segment = Segment(*found)
    if filed(connection, segment.segment) is None:
        rewrite(connection, scope, [segment])
        return POSTINGS_PER_STEP
    texts = stored_texts(connection, scope, segment.first, segment.last)
    vocabulary.write(connection, segment.segment, words_in(texts))
    write_directory(connection, scope, segment)
    return sum(len(text.tokens) for text in texts) + 1


def is_due(connection: Connection) -> bool:
    """Tell whether a merge is due."""
    return connection.execute("SELECT 1 FROM posting_scopes WHERE due = 1 LIMIT 1").fetchone() is not None


def merge_step(connection: Connection) -> bool:
    """Merge for as many postings as one step may read, if a merge is due; tell whether there may be more."""
    left = POSTINGS_PER_STEP
    while left > 0:
        done = _merge_piece(connection)
        if done is None:
            return False
        left -= done
    return True


def _merge_piece(connection: Connection) -> int | None:
    """Begin a merge, go on with one or end it; return how many postings were read, None if nothing is due."""
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
    """Go on with the merge that a scope is in, or end it; return how many postings were read, None if it is in none."""
    making = connection.execute(
        "SELECT segment, first, last, memories, field, next_key FROM posting_segments WHERE scope = ? AND state = ?",
        (scope, MAKING),
    ).fetchone()
    if making is None:
        return None
    target, step = Segment(*making[:4]), making[4:]
    is_whole = target.is_possible and filed(connection, target.segment) is not None
    if not (is_whole and _is_step(connection, scope, target.segment, *step)):
        drop(connection, target.segment)  # to begin again
        return 0
    return _merge_on(connection, scope, target, *step)


def _is_step(connection: Connection, scope: str, target: int, field: int, key: int) -> bool:
    """Tell whether a merge can have come so far: what it has written lies below the key, where another page begins."""
    if not (isinstance(field, int) and isinstance(key, int) and 0 <= field <= len(INDEXED) + 1):
        return False
    if field > len(INDEXED):
        return vocabulary.is_listed(connection, target)
    number = INDEXED[field].number if field < len(INDEXED) else vocabulary.FIELD
    written, beginning = connection.execute(
        "SELECT max(p.segment = :target AND p.first_key >= :key), max(p.segment <> :target AND p.first_key = :key) "
        "FROM posting_segments AS s JOIN posting_pages AS p ON p.segment = s.segment "
        "WHERE s.scope = :scope AND p.field = :field AND p.first_key >= :key",
        {"scope": scope, "target": target, "field": number, "key": key},
    ).fetchone()
    return not written and (key == LOWEST_KEY or bool(beginning))


def settle(connection: Connection, scope: str) -> None:
    """Begin a merge that goes further than those between writes: every segment costs each word of a question a page."""
    made_sound(connection, scope)
    making = connection.execute("SELECT 1 FROM posting_segments WHERE scope = ? AND state = ?", (scope, MAKING))
    if making.fetchone() is None and _begin_merge(connection, scope, SETTLING):
        connection.execute("UPDATE posting_scopes SET due = 1 WHERE scope = ?", (scope,))


def _begin_merge(connection: Connection, scope: str, larger: int = 1) -> bool:
    """Name the segment to be made, if there are some to make it from."""
    together = to_merge(live_segments(connection, scope), larger)
    if together:
        memories = sum(part.memories for part in together)
        _new_segment(connection, scope, together[0].first, together[-1].last, memories, MAKING)
    return bool(together)


def to_merge(segments: Sequence[Segment], larger: int) -> list[Segment]:
    """Return the newest segment with those before it that are at most so many times larger than all behind them.

    With once, every segment is larger than all newer ones together: there are few, and a posting is rewritten only
    when the segment it is in doubles.
    """
    run = list(segments[-1:])
    for segment in reversed(segments[:-1]):
        behind = sum(part.memories for part in run)
        if segment.memories > larger * behind or run[-1].last - segment.first >= MAX_SPAN:
            break
        run.insert(0, segment)
    return run if len(run) > 1 else []


def _merge_on(connection: Connection, scope: str, target: Segment, field: int, key: int) -> int:
    """Merge the next range of keys, or finish; return about how many postings were read."""
    sources = [
        part for part in live_segments(connection, scope) if target.first <= part.first and part.last <= target.last
    ]
    if field > len(INDEXED):
        _replace(connection, scope, target, sources)
        return 0
    directories = [own for own in (filed(connection, source.segment) for source in sources) if own is not None]
    if len(directories) < len(sources):
        rewrite(connection, scope, sources)
        return POSTINGS_PER_STEP
    number = INDEXED[field].number if field < len(INDEXED) else vocabulary.FIELD
    listed = {source.segment: own.get(number, NO_PAGES).lists for source, own in zip(sources, directories, strict=True)}
    if field == len(INDEXED):
        return _merge_words(connection, scope, target, sources, key, listed)
    below = _range_end(connection, sources, number, key)
    try:
        found = [
            Source(source.first, _pages(connection, source, number, key, below, listed[source.segment]))
            for source in sources
        ]
        made = merged_pages(found, target.first, key, below, _gone(connection, scope, target))
    except BrokenSeal:
        rewrite(connection, scope, sources)
        return POSTINGS_PER_STEP
    _write_pages(connection, target, number, made)
    write_directory(connection, scope, target)
    step = (field, below) if below is not None else (field + 1, LOWEST_KEY)
    connection.execute("UPDATE posting_segments SET field = ?, next_key = ? WHERE segment = ?", (*step, target.segment))
    return sum(len(page) for source in found for page in source.pages) // _BYTES_PER_POSTING


def _merge_words(
    connection: Connection,
    scope: str,
    target: Segment,
    sources: Sequence[Segment],
    key: int,
    listed: Mapping[int, vocabulary.IsListed],
) -> int:
    """Merge the next words, those that no memory holds any more left out; return how much was done."""

    def is_living(words: Sequence[str]) -> NDArray[np.bool_]:
        if not len(_gone(connection, scope, target)):
            return np.ones(len(words), np.bool_)
        return _held_by(connection, target.segment)(words)

    try:
        numbers = [source.segment for source in sources]
        below = vocabulary.merge(connection, numbers, target.segment, key, is_living, listed=listed)
    except BrokenSeal:
        rewrite(connection, scope, sources)
        drop(connection, target.segment)  # whose own pages were read as well
        return POSTINGS_PER_STEP
    write_directory(connection, scope, target)
    step = (len(INDEXED), below) if below is not None else (len(INDEXED) + 1, LOWEST_KEY)
    connection.execute("UPDATE posting_segments SET field = ?, next_key = ? WHERE segment = ?", (*step, target.segment))
    return POSTINGS_PER_STEP if below is not None else 0


def _held_by(connection: Connection, segment: int) -> vocabulary.IsLiving:
    """Return what tells which of some words have postings in a segment."""
    pages = connection.execute(
        "SELECT page FROM posting_pages WHERE segment = ? AND field = ?", (segment, WORDS.number)
    )
    keys = np.sort(np.concatenate([np.zeros(0, np.int64), *(read(blob, COMPILED).keys for (blob,) in pages)]))

    def is_held(words: Sequence[str]) -> NDArray[np.bool_]:
        sought = np.array([key_of(word) for word in words], np.int64)
        return keys.searchsorted(sought, side="right") > keys.searchsorted(sought)

    return is_held


def _range_end(connection: Connection, sources: Sequence[Segment], field: int, key: int) -> int | None:
    """Return the key below which the sources hold about as many postings as one step may read; None if all of them."""
    firsts = [
        (first, size // _BYTES_PER_POSTING)
        for source in sources
        for first, size in connection.execute(
            "SELECT first_key, coalesce(length(page), 0) FROM posting_pages "
            "WHERE segment = ? AND field = ? AND first_key > ?",
            (source.segment, field, key),
        )
    ]
    read_so_far = 0
    for first, size in sorted(firsts):
        if read_so_far >= POSTINGS_PER_STEP:
            return int(first)
        read_so_far += size
    return None


def _pages(
    connection: Connection, source: Segment, field: int, key: int, below: int | None, is_listed: vocabulary.IsListed
) -> tuple[bytes, ...]:
    """Return the pages on which a segment holds something from one key to below another, if there is one."""
    rows = connection.execute(
        "SELECT first_key, page FROM posting_pages WHERE segment = :segment AND field = :field "
        "AND (:below IS NULL OR first_key < :below) "
        "AND first_key >= coalesce((SELECT max(first_key) FROM posting_pages WHERE segment = :segment "
        "AND field = :field AND first_key <= :key), :key) ORDER BY first_key",
        {"segment": source.segment, "field": field, "key": key, "below": below},
    ).fetchall()
    if not all(is_listed(first, page) for first, page in rows):
        raise BrokenSeal
    return tuple(page for _, page in rows)


def _gone(connection: Connection, scope: str, target: Segment) -> NDArray[np.bool_]:
    """Tell which memories of a segment are no more; nothing if all are there."""
    # As their own table tells, whose index holds nothing else: among their tokens they lie some hundred bytes apart.
    living = "FROM memories WHERE scope = ? AND number BETWEEN ? AND ? AND typeof(number) = 'integer'"
    place, span = (scope, target.first, target.last), target.last - target.first + 1
    if connection.execute(f"SELECT count(*) {living}", place).fetchone()[0] == span:
        return np.zeros(0, np.bool_)
    gone = np.ones(span, np.bool_)
    there = connection.execute(f"SELECT number {living}", place).fetchall()
    gone[np.array([number for (number,) in there], np.int64) - target.first] = False
    return gone


def _replace(connection: Connection, scope: str, target: Segment, sources: Sequence[Segment]) -> None:
    """Put a merged segment in the place of those it was made from."""
    connection.execute("UPDATE posting_segments SET state = ? WHERE segment = ?", (LIVE, target.segment))
    for source in sources:
        drop(connection, source.segment)
    _announce(connection, scope)


def _announce(connection: Connection, scope: str) -> None:
    """Tell readers that what they keep of a scope in memory is no longer what the file holds."""
    connection.execute("UPDATE meta SET value = value + 1 WHERE key = 'generation'")
    connection.execute(
        "UPDATE scopes SET changed = (SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'generation') "
        "WHERE scope = ?",
        (scope,),
    )


def drop(connection: Connection, segment: int) -> None:
    """Delete a segment."""
    connection.execute("DELETE FROM posting_pages WHERE segment = ?", (segment,))
    connection.execute("DELETE FROM posting_segments WHERE segment = ?", (segment,))


def abandon_merge(connection: Connection, scope: str) -> None:
    """Drop the segment that a merge is making in a scope; the merge begins again when it is due."""
    making = "SELECT segment FROM posting_segments WHERE scope = ? AND state = ?"
    for (segment,) in connection.execute(making, (scope, MAKING)).fetchall():
        drop(connection, segment)


def scrub(connection: Connection, scope: str) -> bool:
    """Take what is left of removed memories out of one segment of a scope; tell whether more may be left.

    Pages are rewritten in place where few hold such postings; else the segment is merged into a new one, step by step.
    """
    if _go_on(connection, scope) is not None:
        return True
    for segment in made_sound(connection, scope).segments:
        living = _count_living(connection, scope, segment)
        if living != segment.memories:
            _scrub_segment(connection, scope, segment, living)
            return True
    return False


def _count_living(connection: Connection, scope: str, segment: Segment) -> int:
    living: int = connection.execute(
        "SELECT count(*) FROM memories WHERE scope = ? AND number BETWEEN ? AND ? AND typeof(number) = 'integer'",
        (scope, segment.first, segment.last),
    ).fetchone()[0]
    return living


def _scrub_segment(connection: Connection, scope: str, segment: Segment, living: int) -> None:
    """Rewrite the pages of a segment that hold postings of removed memories, and its list of words."""
    if not living:
        drop(connection, segment.segment)
        _announce(connection, scope)
        return
    try:
        gone = _gone(connection, scope, segment)
        if filed(connection, segment.segment) is None:
            raise BrokenSeal
        stale = _stale_pages(connection, segment, gone) if len(gone) else []
        if len(stale) > PAGES_SCRUBBED_AT_ONCE:
            _new_segment(connection, scope, segment.first, segment.last, living, MAKING)
            return
        has_lost_terms = [_scrub_page(connection, segment, number, blob, gone) for number, blob in stale]
        if any(has_lost_terms) and vocabulary.is_listed(connection, segment.segment):
            vocabulary.scrub(connection, segment.segment, _held_by(connection, segment.segment))
    except BrokenSeal:
        rewrite(connection, scope, [segment])
        return
    connection.execute("UPDATE posting_segments SET memories = ? WHERE segment = ?", (living, segment.segment))
    write_directory(connection, scope, segment._replace(memories=living))
    _announce(connection, scope)


def _stale_pages(connection: Connection, segment: Segment, gone: NDArray[np.bool_]) -> list[tuple[int, bytes]]:
    """Return the pages of a segment, each with its number, that hold postings of removed memories."""
    stored = connection.execute(
        "SELECT number, page FROM posting_pages WHERE segment = ? AND field <> ?", (segment.segment, vocabulary.FIELD)
    )
    try:
        return [(number, blob) for number, blob in stored if gone[read(blob, COMPILED).offsets].any()]
    except (ValueError, IndexError, TypeError) as error:  # sealed, and not what it says
        raise BrokenSeal from error


def _scrub_page(connection: Connection, segment: Segment, number: int, blob: bytes, gone: NDArray[np.bool_]) -> bool:
    """Write a page without the postings of removed memories; tell whether some of its terms have no others."""
    made = merged_pages([Source(segment.first, (blob,))], segment.first, LOWEST_KEY, None, gone)
    if not made:
        connection.execute("DELETE FROM posting_pages WHERE number = ?", (number,))
        return True
    [(key, page)] = made  # part of a page is never cut in two
    connection.execute("UPDATE posting_pages SET first_key = ?, page = ? WHERE number = ?", (key, page, number))
    return len(read(page).keys) < len(read(blob).keys)


def rewrite(connection: Connection, scope: str, segments: Iterable[Segment]) -> None:
    """Make segments anew from the tokens of their memories: their pages cannot be believed."""
    for segment in segments:
        texts = stored_texts(connection, scope, segment.first, segment.last)
        drop(connection, segment.segment)
        made = _new_segment(connection, scope, segment.first, segment.last, len(texts), LIVE)
        write(connection, scope, made, texts)
    _announce(connection, scope)
