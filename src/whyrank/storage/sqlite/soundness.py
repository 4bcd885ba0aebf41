"""Whether what is derived from the memories is whole: checksums hold, nothing is missing, nothing belongs to nobody."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import numpy as np

from ...analysis.names import is_known_in_part, name_key, words_key
from ...checkups import Finding
from ...ports import Name
from ...wording import counted
from .connection import Connection
from .held import signs_in, vector_bytes
from .indexes import index_in
from .names import MISCOUNTED
from .postings import vocabulary
from .postings.filing import NO_PAGES, filed
from .postings.pages import read
from .postings.spans import LIVE, MAKING, Segment, span
from .postings.texts import unpack
from .records import BLOCK, GONE, decoded
from .restating import HASHES_GIVEN, SET_ASIDE
from .sealed import BrokenSeal, is_vector

Place = tuple[str, int]
# Whether a name stands in another scope than its memory; one of no memory is said of elsewhere.
_ASTRAY = "scope <> (SELECT m.scope FROM memories AS m WHERE m.row = {}.memory) IS TRUE"
_REPAIR = "`whyrank doctor --repair` makes it anew from the memories"


class Check(NamedTuple):
    """One thing to look at, the tables it is in, and what is found there."""

    code: str
    tables: frozenset[str]
    look: Callable[[Connection], Iterable[Finding]]


def _found(code: str, count: int, one: str, several: str, why: str) -> Iterator[Finding]:
    """Say how many of something are wrong, if any are."""
    if count:
        yield Finding(code, f"{counted(count, one, several)} {why}", _REPAIR)


# -- records ---------------------------------------------------------------------------------------------------------


def broken_records(connection: Connection) -> list[Place]:
    """Return the blocks of records that fail their checksum, are missing, or do not say what the memories say."""
    wanted: dict[Place, dict[int, int]] = defaultdict(dict)
    for scope, number, row in connection.execute("SELECT scope, number, row FROM memories"):
        wanted[scope, number - number % BLOCK][number % BLOCK] = row
    broken = []
    for scope, first, blob in connection.execute("SELECT scope, first, records FROM records"):
        if _said(blob, scope, first) != wanted.pop((scope, first), {}):
            broken.append((scope, first))
    return [*broken, *wanted]


def _said(blob: bytes, scope: object, first: object) -> dict[int, int] | None:
    """Return which memory stands at which place of a block; None if it cannot be read."""
    try:
        records = decoded(blob, scope, first)
    except (BrokenSeal, ValueError, TypeError):
        return None
    places = np.flatnonzero(records["unit"] != GONE).tolist()
    return dict(zip(places, records["row"][places].tolist(), strict=True))


def _records(connection: Connection) -> Iterator[Finding]:
    broken = len(broken_records(connection))
    yield from _found("records", broken, "block of records is", "blocks of records are", "damaged or missing")


def _scopes(connection: Connection) -> Iterator[Finding]:
    wrong = connection.execute(
        "SELECT count(*) FROM (SELECT scope, max(number) AS last FROM memories GROUP BY scope) AS m "
        "LEFT JOIN scopes AS s ON s.scope = m.scope WHERE s.numbers IS NULL OR s.numbers <= m.last"
    ).fetchone()[0]
    yield from _found("scopes", wrong, "scope holds", "scopes hold", "more memories than it says")
    damaged = connection.execute(
        "SELECT count(*) FROM scopes WHERE typeof(changed) <> 'integer' OR typeof(epoch) <> 'integer' "
        "OR numbers > (SELECT seq FROM sqlite_sequence WHERE name = 'memories')"
    ).fetchone()[0]
    yield from _found("scopes", damaged, "scope says", "scopes say", "of its memories what none can say")


# -- words -----------------------------------------------------------------------------------------------------------


def broken_segments(connection: Connection) -> list[tuple[str, Segment, bool]]:
    """Return the segments of the keyword index with a page that is damaged or misfiled, and whether each answers."""
    known = {
        segment: (scope, Segment(segment, first, last, memories), state == LIVE)
        for segment, scope, first, last, memories, state in connection.execute(
            "SELECT segment, scope, first, last, memories, state FROM posting_segments"
        )
    }
    possible = (one.segment for _, one, _ in known.values() if one.is_possible)  # of the others it is said elsewhere
    directories = {segment: filed(connection, segment) for segment in possible}
    broken = dict.fromkeys(segment for segment, directory in directories.items() if directory is None)
    for segment, field, first, blob in connection.execute("SELECT segment, field, first_key, page FROM posting_pages"):
        pages = (directories.get(segment) or {}).get(field, NO_PAGES)
        is_listed = segment not in directories or (pages.lists(first, blob) and _is_page(field, first, blob))
        if segment not in broken and not is_listed:
            broken[segment] = None
    return [known[segment] for segment in broken if segment in known]


def _is_page(field: int, first: int, blob: bytes) -> bool:
    try:
        return first == (vocabulary.first_of(blob) if field == vocabulary.FIELD else read(blob).lowest)
    except (BrokenSeal, ValueError, TypeError, IndexError):
        return False


def _postings(connection: Connection) -> Iterator[Finding]:
    broken = len(broken_segments(connection))
    yield from _found(
        "postings",
        broken,
        "segment of the keyword index has",
        "segments of the keyword index have",
        "a damaged, misfiled or missing page",
    )


def _uncovered(connection: Connection) -> Iterator[Finding]:
    """Look whether every memory whose words were flushed lies in a segment that has pages."""
    missing = connection.execute(
        "SELECT count(*) FROM memories AS m JOIN posting_scopes AS f ON f.scope = m.scope AND m.number < f.flushed "
        "WHERE m.length > 0 AND NOT EXISTS (SELECT 1 FROM posting_segments AS s WHERE s.scope = m.scope "
        "AND s.state = ? AND m.number BETWEEN s.first AND s.last "
        "AND EXISTS (SELECT 1 FROM posting_pages AS p WHERE p.segment = s.segment))",
        (LIVE,),
    ).fetchone()[0]
    orphans = connection.execute(
        "SELECT count(*) FROM posting_pages WHERE segment IS NULL "
        "OR segment NOT IN (SELECT segment FROM posting_segments)"
    ).fetchone()[0]
    yield from _found("words", missing, "memory is", "memories are", "in no segment of the keyword index")
    yield from _found("words", orphans, "page of the keyword index belongs", "pages belong", "to no segment")


def _spans(connection: Connection) -> Iterator[Finding]:
    """Look whether segments say of themselves what they can say, and those of a scope fit together."""
    scopes = {scope for (scope,) in connection.execute("SELECT scope FROM posting_scopes")}
    wrong = sum(
        not (Segment(*numbers).is_possible and scope in scopes and state in (LIVE, MAKING) and are_whole)
        for *numbers, scope, state, are_whole in connection.execute(
            "SELECT segment, first, last, memories, scope, state, "
            "typeof(field) = 'integer' AND typeof(next_key) = 'integer' FROM posting_segments"
        )
    )
    yield from _found("words", wrong, "segment of the keyword index says", "segments say", "what none can say")
    scopes.update(scope for (scope,) in connection.execute("SELECT scope FROM scopes"))
    apart = sum(not _fits_together(connection, scope) for scope in scopes)
    yield from _found("words", apart, "scope has", "scopes have", "segments that do not fit together")


def _fits_together(connection: Connection, scope: str) -> bool:
    try:
        span(connection, scope)
    except BrokenSeal:
        return False
    return True


def _tokens(connection: Connection) -> Iterator[Finding]:
    """Look whether every memory has its words, as many as were counted, and no words are of nobody."""
    wrong = 0
    for length, row, blob in connection.execute(
        "SELECT m.length, m.row, t.tokens FROM memories AS m LEFT JOIN posting_tokens AS t "
        "ON t.scope = m.scope AND t.number = m.number"
    ):
        wrong += not _are_tokens(blob, row, length)
    yield from _found("words", wrong, "memory has", "memories have", "damaged words or none in the keyword index")
    orphans = connection.execute(
        "SELECT count(*) FROM posting_tokens AS t WHERE NOT EXISTS "
        "(SELECT 1 FROM memories AS m WHERE m.scope = t.scope AND m.number = t.number)"
    ).fetchone()[0]
    yield from _found("words", orphans, "list of words belongs", "lists of words belong", "to no memory")


def _are_tokens(blob: bytes | None, row: int, length: int) -> bool:
    try:
        return len(unpack(blob, row)) == length
    except BrokenSeal:
        return False


def _fts5(connection: Connection) -> Iterator[Finding]:
    wrong = connection.execute(
        "SELECT (SELECT count(*) FROM memories WHERE row NOT IN (SELECT rowid FROM words)) + "
        "(SELECT count(*) FROM words WHERE rowid NOT IN (SELECT row FROM memories))"
    ).fetchone()[0]
    yield from _found("words", wrong, "memory and its words do", "memories and their words do", "not go together")


def _unindexed(connection: Connection) -> Iterator[Finding]:
    wrong = connection.execute(f"SELECT count(*) FROM memories WHERE id IN ({SET_ASIDE})").fetchone()[0]
    yield from _found("words", wrong, "memory was", "memories were", "changed and could not be indexed anew")


# -- names -----------------------------------------------------------------------------------------------------------


def _names(connection: Connection) -> Iterator[Finding]:
    wrong = 0
    spoken: dict[int, set[str]] = defaultdict(set)
    needed: dict[int, set[str]] = defaultdict(set)
    words: dict[int, set[str]] = defaultdict(set)
    for memory, text, key, said, ordered, specificity, is_astray in connection.execute(
        f"SELECT memory, text, key, words, sorted_words, specificity, {_ASTRAY.format('names')} FROM names"
    ):
        is_text = all(isinstance(value, str) for value in (text, key, said, ordered))
        wrong += not is_text or name_key(text) != key or words_key(said.split()) != ordered
        wrong += is_text and (is_astray or not isinstance(specificity, int))
        if is_text:
            name = Name(text, key, tuple(said.split()), specificity)
            spoken[memory].update(name.words)
            needed[memory].update(name.words if is_known_in_part(name) else ())
    for memory, word, is_astray in connection.execute(
        f"SELECT memory, word, {_ASTRAY.format('name_words')} FROM name_words"
    ):
        words[memory].add(f"{word} astray" if is_astray else word)
    # Those of whole paths were listed as well by earlier versions, and are of no use.
    wrong += sum(not needed[memory] <= words[memory] <= spoken[memory] for memory in spoken.keys() | words.keys())
    yield from _found("names", wrong, "name is", "names are", "damaged, or without its words")
    miscounted = sum(bool(connection.execute(MISCOUNTED, scope).fetchall()) for scope in _scopes_said(connection))
    yield from _found("names", miscounted, "scope has", "scopes have", "lost names, or words of names")


def _scopes_said(connection: Connection) -> list[tuple[str]]:
    return connection.execute("SELECT scope FROM scopes WHERE typeof(scope) = 'text'").fetchall()


# -- vectors ---------------------------------------------------------------------------------------------------------


def broken_vectors(connection: Connection) -> dict[str, list[str]]:
    """Return the hashes of texts whose vectors fail their checksum or do not fit, by space."""
    sizes = usual_bytes(connection)
    broken: dict[str, list[str]] = defaultdict(list)
    for space, text_hash, checksum, blob in connection.execute("SELECT space, hash, checksum, vector FROM vectors"):
        if not is_vector(sizes.get(space), text_hash, checksum, blob):
            broken[space].append(text_hash)
    return broken


def usual_bytes(connection: Connection) -> dict[str, int]:
    """Return how many bytes most vectors of each space have: what the file says of it may be damaged."""
    counted_by = "SELECT space, length(vector) FROM vectors GROUP BY 1, 2 ORDER BY count(*)"
    return {space: size for space, size in connection.execute(counted_by) if isinstance(size, int)}


def misstated_sizes(connection: Connection) -> dict[str, int]:
    """Return the spaces whose notes say another number of dimensions than their vectors have, and which they have."""
    found = usual_bytes(connection)
    return {space: size // 4 for space, size in found.items() if vector_bytes(connection, space) != size}


def _vectors(connection: Connection) -> Iterator[Finding]:
    spaces = len(misstated_sizes(connection))
    yield from _found(
        "vectors", spaces, "model says", "models say", "another number of dimensions than its vectors have"
    )
    broken = sum(map(len, broken_vectors(connection).values()))
    yield from _found("vectors", broken, "vector fails", "vectors fail", "its checksum, or has another length")
    unowned = "FROM {} AS o WHERE NOT EXISTS (SELECT 1 FROM memories AS m WHERE m.embed_hash = o.hash)"
    # The vector of a text that waits to be indexed is its memory's then.
    waiting = f"AND o.hash NOT IN ({HASHES_GIVEN})"
    orphans = connection.execute(f"SELECT count(*) {unowned.format('vectors')} {waiting}").fetchone()[0]
    failures = f"SELECT count(*) {unowned.format('embedding_failures')} AND o.hash <> ''"
    orphans += connection.execute(failures).fetchone()[0]
    yield from _found("orphans", orphans, "vector belongs", "vectors belong", "to no memory, and only take room")


def broken_signs(connection: Connection) -> int:
    """Count the blocks of signs that fail their checksum, or stand where none can."""
    blocks = connection.execute(
        "SELECT b.space, b.scope, b.first, b.entries, b.signs, s.numbers FROM sign_blocks AS b "
        "LEFT JOIN scopes AS s ON s.scope = b.scope"
    )
    return sum(signs_in(*block) is None or block[2] >= (numbers or 0) for *block, numbers in blocks)


def _signs(connection: Connection) -> Iterator[Finding]:
    broken = broken_signs(connection)
    yield from _found(
        "signs", broken, "block of signs fails", "blocks of signs fail", "its checksum, or stands where none can"
    )


def _unowned(connection: Connection) -> Iterator[Finding]:
    rows = connection.execute("PRAGMA foreign_key_check").fetchall()
    yield from _found("names", len(rows), "name belongs", "names belong", "to no memory")


def checks(connection: Connection) -> list[Check]:
    """Return what there is to be looked at, by the index the file has."""
    named = index_in(connection)
    by_index = {
        "postings": [
            Check("postings", frozenset({"posting_pages", "posting_segments"}), _postings),
            Check("words", frozenset({"posting_tokens"}), _tokens),
            Check("words", frozenset({"posting_segments", "posting_pages", "posting_scopes"}), _uncovered),
            Check("words", frozenset({"posting_segments", "posting_scopes"}), _spans),
        ],
        "fts5": [Check("words", frozenset({"words"}), _fts5)],
    }
    return [
        Check("records", frozenset({"records"}), _records),
        Check("scopes", frozenset({"scopes"}), _scopes),
        *by_index.get(named[0] if named else "", ()),
        Check("words", frozenset({"meta"}), _unindexed),
        Check("names", frozenset({"names", "name_words"}), _names),
        Check("names", frozenset({"names", "name_words"}), _unowned),
        Check("vectors", frozenset({"vectors", "embedding_failures"}), _vectors),
        Check("signs", frozenset({"sign_blocks"}), _signs),
    ]
