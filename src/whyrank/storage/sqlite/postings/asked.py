"""What the terms of a question find: in their own texts, and in what surrounds these."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

import numpy as np

from ....analysis.speakers import BY, speaker_of
from ....caches import text_cache
from ....expressions import as_asked, is_several, label_as, spellings
from ....trail import TermKey
from ....types import ONCE, Repeats, inverse_frequency
from ...fields import DATES, FIELDS, GRAMS, WORDS, Field, wanted_terms
from ...lexical import repeated
from ..catalogue import Flags, Shelf
from ..connection import Connection
from .found import Postings, Wide
from .library import Around, Library
from .lists import Lists


class Asked(NamedTuple):
    """A term of a query in one field and kind of text: where it stands, how much it tells, and how often it counts."""

    term: str
    field: Field
    around: Around
    idf: float
    postings: Sequence[Postings]
    held: int  # texts that hold the term
    often: int = 1
    is_asked: bool = True  # or else these texts hold other spellings alone

    @property
    def key(self) -> TermKey:
        """Return how the trail identifies it."""
        return _key(self.term, self.field.name, self.around, self.often, self.is_asked)


@text_cache(4_096)  # whoever asks what flips two memories asks for the same terms again and again
def _key(term: str, field: str, around: Around, often: int, is_asked: bool) -> TermKey:
    return TermKey(repeated(label_as(term, is_asked), often), field, around)


Known = Mapping[tuple[Field, str, int], Sequence[Asked]]
NOTHING_KNOWN: Known = {}


def by_term(known: Iterable[Asked]) -> Known:
    """Return what an earlier question found, by field, by term, and by how often the term counts."""
    return {key: [*found] for key, found in groupby(known, lambda asked: (asked.field, asked.term, asked.often))}


def asked(
    connection: Connection,
    library: Library,
    lists: Sequence[Lists],
    terms: Sequence[str],
    fields: Sequence[Field] = FIELDS,
    repeats: Repeats = ONCE,
    known: Known = NOTHING_KNOWN,
) -> Iterator[Asked]:
    """Yield what terms find, in their own texts first, then around them; what an earlier question knows is reused.

    Words may count several times; pairs, letters and dates never do.
    """
    there = fields if library.has_letters else [field for field in fields if field is not GRAMS]
    for field, wanted in wanted_terms(terms, there):
        if not wanted:
            continue
        counted = {term: repeats.get(term, 1) if field is WORDS else 1 for term in wanted}
        new = [term for term, often in counted.items() if (field, term, often) not in known] if known else wanted
        found = _standing(connection, lists, field, new)
        for term in wanted:
            often = counted[term]
            known_before = known.get((field, term, often))
            if known_before:
                yield from known_before
                continue
            alone = as_asked(term) if is_several(term) else None
            exact = _standing(connection, lists, field, [alone])[alone] if alone else None
            yield from _found(library, field, term, found[term], exact, often)


def _standing(
    connection: Connection, lists: Sequence[Lists], field: Field, terms: Sequence[str]
) -> Mapping[str, Sequence[Postings]]:
    """Return where terms stand on each shelf."""
    by_shelf = [scope.several(connection, field, terms) for scope in lists]
    return {term: [found[number] for found in by_shelf] for number, term in enumerate(terms)}


def _found(
    library: Library, field: Field, term: str, own: Sequence[Postings], exact: Sequence[Postings] | None, often: int
) -> Iterator[Asked]:
    """Yield where a term stands; `exact` is where it stands as it was asked for, if other spellings count too."""
    if not any(found.size for found in own):
        return
    yield from _split(library, term, field, "own", own, exact, often)
    if field is DATES:
        return  # what surrounds a memory is mostly of the same day
    if library.has_files and not library.is_plain:
        yield from _around(library, term, field, "file", _in_files, own, exact, often)
    if library.has_turns:
        yield from _around(library, term, field, "window", _in_windows, own, exact, often)


def _around(
    library: Library,
    term: str,
    field: Field,
    around: Around,
    reached: Callable[[Shelf, Postings], Postings],
    own: Sequence[Postings],
    exact: Sequence[Postings] | None,
    often: int,
) -> Iterator[Asked]:
    found = [reached(*pair) for pair in zip(library.shelves, own, strict=True)]
    same = None if exact is None else [reached(*pair) for pair in zip(library.shelves, exact, strict=True)]
    yield from _split(library, term, field, around, found, same, often)


def _split(
    library: Library,
    term: str,
    field: Field,
    around: Around,
    found: Sequence[Postings],
    exact: Sequence[Postings] | None,
    often: int,
) -> Iterator[Asked]:
    """Yield the texts that hold a term, those as it was asked for before those that spell it otherwise alone.

    No text is in both, and both tell as much: the trail says by which spelling it was found, the sum is the same.
    """
    held = sum([postings.size for postings in found])
    if not held:
        return
    texts = library.count if around == "own" else library.texts(field, around).count
    idf = often * inverse_frequency(texts, held)
    if exact is None:
        is_asked = not is_several(term) or bool(spellings(term)[0])
        yield Asked(term, field, around, idf, found, held, often, is_asked)
        return
    inside = [np.isin(one.places, other.places) for one, other in zip(found, exact, strict=True)]
    for is_asked in (True, False):
        part = [_only(one, here == is_asked) for one, here in zip(found, inside, strict=True)]
        if any(postings.size for postings in part):
            yield Asked(term, field, around, idf, part, held, often, is_asked)


def _only(found: Postings, kept: Flags) -> Postings:
    return Postings((Wide(found.places[kept], found.frequencies[kept]),))


def _in_files(shelf: Shelf, own: Postings) -> Postings:
    """Return the files that hold a term, and how often."""
    return own.gathered(shelf.files.of[np.newaxis], shelf.files.count)


def _in_windows(shelf: Shelf, own: Postings) -> Postings:
    """Return the turns whose window holds a term, and how often."""
    return own.gathered(shelf.windows, len(shelf))


@dataclass(frozen=True)
class Spoken:
    """The one speaker a question names, and the turns that are his."""

    name: str
    postings: Sequence[Postings]


def named_speaker(
    connection: Connection, library: Library, lists: Sequence[Lists], terms: Sequence[str]
) -> Spoken | None:
    """Return the speaker that a question names, if it names exactly one that is known."""
    marks = [term for term in terms if term.startswith(BY)] if library.has_turns else []
    turns = _standing(connection, lists, DATES, marks) if marks else {}
    known = [mark for mark, found in turns.items() if any(postings.size for postings in found)]
    return Spoken(speaker_of(known[0]), turns[known[0]]) if len(known) == 1 else None
