"""The lexical score of every visible memory: words, pairs and letters, of its own text and of what surrounds it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby

import numpy as np

from ....analysis.speakers import BY, speaker_of
from ....expressions import label_of
from ....types import ONCE, Repeats, inverse_frequency
from ...contexts import OWN_WEIGHT, SPEAKER_SHARE, Unit
from ...fields import DATES, FIELDS, GRAMS, WORDS, Field, wanted_terms
from ...lexical import repeated
from ..catalogue import NOWHERE, Flags, Floats, Integers, Shelf
from ..connection import Connection
from ..selection import Sums, threshold
from . import pruning
from .library import Around, Library
from .lists import Lists, Postings

_ONLY_CHUNK = OWN_WEIGHT[Unit.CHUNK] + 1.0  # of a file: the file is the same text
_MOST_OWN = max(*OWN_WEIGHT.values(), _ONLY_CHUNK)


@dataclass(frozen=True)
class Asked:
    """A term of a query in one field and kind of text: where it stands, how much it tells, and how often it counts."""

    term: str
    field: Field
    around: Around
    idf: float
    postings: Sequence[Postings]
    often: int = 1

    @cached_property
    def held(self) -> int:
        """Return how many texts hold the term."""
        return sum(len(found.places) for found in self.postings)

    @cached_property
    def label(self) -> str:
        """Return how the trail names it."""
        name = repeated(label_of(self.term), self.often)
        return name if self.around == "own" else f"{name} ({self.around})"


def asked(
    connection: Connection,
    library: Library,
    lists: Sequence[Lists],
    terms: Sequence[str],
    fields: Sequence[Field] = FIELDS,
    repeats: Repeats = ONCE,
    known: Sequence[Asked] = (),
) -> Iterator[Asked]:
    """Yield what terms find, in their own texts first, then around them; what an earlier question knows is reused.

    Words may count several times; pairs, letters and dates never do.
    """
    before = {key: [*found] for key, found in groupby(known, lambda asked: (asked.field, asked.term, asked.often))}
    for field, wanted in wanted_terms(terms):
        is_there = field in fields and (field is not GRAMS or library.has_letters)
        for term in wanted if is_there else ():
            often = repeats.get(term, 1) if field is WORDS else 1
            yield from before.get((field, term, often)) or _found(connection, library, lists, field, term, often)


def _found(
    connection: Connection, library: Library, lists: Sequence[Lists], field: Field, term: str, often: int
) -> Iterator[Asked]:
    own = [scope.postings(connection, field, term) for scope in lists]
    held = sum(len(found.places) for found in own)
    if not held:
        return
    yield Asked(term, field, "own", often * inverse_frequency(library.count, held), own, often)
    if field is DATES:
        return  # what surrounds a memory is mostly of the same day
    if library.has_files and not library.is_plain:
        files = [_in_files(*pair) for pair in _pairs(library, own)]
        yield from _around(library, term, field, "file", files, often)
    if library.has_turns:
        windows = [_in_windows(*pair) for pair in _pairs(library, own)]
        yield from _around(library, term, field, "nearby", windows, often)


def _pairs(library: Library, own: Sequence[Postings]) -> Iterator[tuple[Shelf, Postings]]:
    return zip(library.shelves, own, strict=True)


def _around(
    library: Library, term: str, field: Field, around: Around, found: Sequence[Postings], often: int
) -> Iterator[Asked]:
    held = sum(len(postings.places) for postings in found)
    if held:
        idf = inverse_frequency(library.texts(field, around).count, held)
        yield Asked(term, field, around, often * idf, found, often)


def _in_files(shelf: Shelf, own: Postings) -> Postings:
    """Return the files that hold a term, and how often."""
    files = shelf.files.of[own.places]
    inside = files < shelf.files.count
    return summed(files[inside], own.frequencies[inside])


def _in_windows(shelf: Shelf, own: Postings) -> Postings:
    """Return the turns whose window holds a term, and how often."""
    reached = np.concatenate([step[own.places] for step in shelf.windows])
    inside = reached != NOWHERE
    return summed(reached[inside], np.tile(own.frequencies, len(shelf.windows))[inside])


def summed(numbers: Integers, values: Floats) -> Postings:
    """Add up the values of each number."""
    if not len(numbers):
        return Postings(numbers, values)
    if (numbers[1:] < numbers[:-1]).any():
        order = np.argsort(numbers, kind="stable")
        numbers, values = numbers[order], values[order]
    starts = np.flatnonzero(np.append(True, numbers[1:] != numbers[:-1]))
    return Postings(numbers[starts], np.add.reduceat(values, starts))


Kind = tuple[Field, Around]


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
    turns = {mark: [scope.postings(connection, DATES, mark) for scope in lists] for mark in marks}
    known = [mark for mark, found in turns.items() if any(len(postings.places) for postings in found)]
    return Spoken(speaker_of(known[0]), turns[known[0]]) if len(known) == 1 else None


class Scores:
    """The lexical scores of one query: of the places that can be among the best, and of any that are asked for."""

    def __init__(self, library: Library, terms: Sequence[Asked], speaker: Spoken | None = None) -> None:
        self.library = library
        self.terms = terms
        self.speaker = speaker
        telling = [asked.field.weight * asked.idf for asked in terms]
        self._long = pruning.for_later(library.count, [asked.held for asked in terms], telling)
        self._short = [i for i in range(len(terms)) if i not in self._long]

    @cached_property
    def _base(self) -> list[Floats]:
        if self.is_simple:
            return [self._with_rest(shelf, words) for shelf, words in enumerate(self._worded)]
        return [self._summed(shelf, self._short) for shelf in range(len(self.library.shelves))]

    @cached_property
    def is_simple(self) -> bool:
        """Tell whether a place's own words, then its pairs and letters, added up in this order, are all there is to it.

        So it is in small stores where no memory has surroundings, for a question without dates and repeats.
        """
        if self.library.count >= pruning.LONG_FROM or self.speaker is not None:
            return False
        return all(asked.around == "own" and asked.field is not DATES and asked.often == 1 for asked in self.terms)

    @cached_property
    def _worded(self) -> list[Floats]:
        """Return what words alone give to every place."""
        words = [i for i in self._short if self.terms[i].field is WORDS]
        return [self._summed(shelf, words) for shelf in range(len(self.library.shelves))]

    def _with_rest(self, shelf: int, words: Floats) -> Floats:
        """Add what pairs and letters give, one after the other: the order in which a trail adds them up."""
        rest = [i for i in self._short if self.terms[i].field is not WORDS]
        totals = words.copy()
        for (field, around), numbers in self._by_kind(rest).items():
            np.add.at(totals, *self._given(shelf, field, around, *self._joined(shelf, numbers)))
        return totals

    def simply(self, shelf: int, places: Integers) -> tuple[Floats, Floats]:
        """Return the scores of places, and what the words of each score without any weight, if all is simple."""
        weights = _own_weights(self.library, self.library.shelves[shelf], WORDS, places)
        return self._base[shelf][places], self._worded[shelf][places] / weights

    def totals(self, allowed: Sequence[Flags | None], wanted: int | None) -> list[Sums]:
        """Return a score for every place, or for those alone that can be among the best `wanted` that are allowed.

        Long lists, of terms that tell little, are read only for places that can still win by them: those whose
        score without them is no further below the last of the best than all of them together can add.
        """
        if self.speaker is None:
            return self._unspoken(allowed, wanted, 0.0)
        totals = self._unspoken(allowed, wanted, self._bonus)
        return [self._with_bonus(shelf, own) for shelf, own in enumerate(totals)]

    def _unspoken(self, allowed: Sequence[Flags | None], wanted: int | None, bonus: float) -> list[Sums]:
        """Return the same before a speaker counts, right for all that a bonus can still bring among the best."""
        if not self._long:
            return [Sums(own) for own in self._base]
        masked = [own if mask is None else own * mask for own, mask in zip(self._base, allowed, strict=True)]
        needed = threshold(masked, wanted) - self._most_of_long - bonus if wanted is not None else 0.0
        return [self._with_long(shelf, own, needed) for shelf, own in enumerate(masked)]

    @cached_property
    def _bonus(self) -> float:
        """Return what the named speaker's turns gain: a share of the best score of all there is to see."""
        everything: list[Flags | None] = [None] * len(self.library.shelves)
        best = max((float(own.values.max(initial=0.0)) for own in self._unspoken(everything, 1, 0.0)), default=0.0)
        return SPEAKER_SHARE * best

    def _with_bonus(self, shelf: int, totals: Sums) -> Sums:
        """Add the bonus to what the named speaker said and some word of the question speaks for."""
        assert self.speaker is not None
        values, places = totals
        said = np.zeros(len(self.library.shelves[shelf]), np.bool_)
        said[self.speaker.postings[shelf].places] = True
        raised = values + self._bonus * ((said if places is None else said[places]) & (values > 0.0))
        return Sums(raised, places)

    def _with_long(self, shelf: int, base: Floats, needed: float) -> Sums:
        if needed <= 0.0:
            return Sums(base + self._summed(shelf, self._long))
        able = base >= needed
        places = able.nonzero()[0]
        return Sums(self._summed(shelf, self._long, able)[places] + base[places], places)

    @cached_property
    def _most_of_long(self) -> float:
        """Return more than all long lists together can add to one place."""
        most = 0.0
        for asked in (self.terms[i] for i in self._long):
            texts = self.library.texts(asked.field, asked.around)
            frequency = max(float(found.frequencies.max()) for found in asked.postings if len(found.places))
            weight = _MOST_OWN if asked.around == "own" else 1.0
            most += weight * texts.most(frequency, asked.idf)
        return most

    def _summed(self, shelf: int, chosen: Sequence[int], able: Flags | None = None) -> Floats:
        """Add up what some terms give to every place of a shelf, or to those that are able to win."""
        home = self.library.shelves[shelf]
        addends: dict[Around, list[tuple[Integers, Floats]]] = {"own": [], "file": [], "nearby": []}
        for (field, around), numbers in self._by_kind(chosen).items():
            wanted = _files_of(home, able) if able is not None and around == "file" else able
            addends[around].append(self._given(shelf, field, around, *self._joined(shelf, numbers, wanted)))
        totals = _added_up(addends["own"], len(home))
        if addends["file"]:
            totals += _added_up(addends["file"], home.files.count + 1)[home.files.of]
        if addends["nearby"]:
            totals += _added_up(addends["nearby"], len(home))
        return totals

    def _given(
        self, shelf: int, field: Field, around: Around, texts: Integers, frequencies: Floats, idf: Floats
    ) -> tuple[Integers, Floats]:
        """Return texts that hold terms, and what that gives each."""
        values = self.library.texts(field, around).scores(shelf, texts, frequencies, idf)
        if around == "own":
            values *= _own_weights(self.library, self.library.shelves[shelf], field, texts)
        return texts, values

    def _joined(
        self, shelf: int, numbers: Sequence[int], wanted: Flags | None = None
    ) -> tuple[Integers, Floats, Floats]:
        """Join lists of terms: the texts (if given, of those wanted), how often each, and how much the term tells."""
        found = [self.terms[i].postings[shelf] for i in numbers]
        if wanted is not None:
            found = [postings.only(wanted) for postings in found]
        idf = np.array([self.terms[i].idf for i in numbers]).repeat([len(postings.places) for postings in found])
        texts = np.concatenate([postings.places for postings in found])
        return texts, np.concatenate([postings.frequencies for postings in found]), idf

    def _by_kind(self, chosen: Sequence[int]) -> dict[Kind, list[int]]:
        kinds: dict[Kind, list[int]] = {}
        for i in chosen:
            kinds.setdefault((self.terms[i].field, self.terms[i].around), []).append(i)
        return kinds

    @property
    def labels(self) -> tuple[str, ...]:
        """Return how the trail names each row of the addends."""
        labels = tuple(asked.label for asked in self.terms)
        return labels if self.speaker is None else (*labels, f"said by {self.speaker.name}")

    def of_speaker(self, shelf: int, places: Integers, words: Floats) -> Floats:
        """Return what the named speaker adds to the score of each place that some word speaks for."""
        assert self.speaker is not None
        said = np.isin(places, self.speaker.postings[shelf].places) & (words > 0.0).any(axis=0)
        return np.where(said, self._bonus, 0.0)

    def of_terms(self, shelf: int, places: Integers, chosen: Sequence[int]) -> Floats:
        """Return what each of some terms (a row) adds to the score of each place (a column)."""
        home = self.library.shelves[shelf]
        found = np.zeros((len(self.terms), len(places)))
        for (field, around), numbers in self._by_kind(chosen).items():
            texts = home.files.of[places] if around == "file" else places
            rows, columns, frequencies = _matching([self.terms[i].postings[shelf] for i in numbers], texts)
            terms = np.array(numbers)[rows]
            idf = np.array([self.terms[i].idf for i in numbers])[rows]
            found[terms, columns] = self.library.texts(field, around).scores(shelf, texts[columns], frequencies, idf)
            if around == "own":
                found[numbers] *= _own_weights(self.library, home, field, places)
        return found[chosen]

    def bound(self, terms: Sequence[str]) -> float:
        """Return the most that words and dates of a query can score in any text: the idf of all of them."""
        held = {self.terms[i].term: self.terms[i].held for i in self._covering}
        asked = [term for term in terms if not term.startswith(BY)]
        return sum(inverse_frequency(self.library.count, held.get(term, 0)) for term in asked)

    @cached_property
    def _covering(self) -> list[int]:
        """Return the terms that say how much of a question a text covers: words and dates of its own."""
        own = (i for i, asked in enumerate(self.terms) if asked.around == "own")
        return [i for i in own if self.terms[i].field in (WORDS, DATES)]

    def covered(self, shelf: int, places: Integers, addends: Floats) -> Floats:
        """Return what the words and dates of each place's own text score, without any weight, each counted once."""
        words = [i for i in self._covering if self.terms[i].field is WORDS]
        dates = [i for i in self._covering if self.terms[i].field is DATES]
        weights = _own_weights(self.library, self.library.shelves[shelf], WORDS, places)
        found = addends[words]
        if any(self.terms[i].often > 1 for i in words):
            found = found / np.array([[self.terms[i].often] for i in words])
        scores: Floats = folded(found) / weights + folded(addends[dates]) / DATES.weight
        return scores


def _added_up(addends: Sequence[tuple[Integers, Floats]], count: int) -> Floats:
    """Add up what each text was given, in one pass."""
    if not addends:
        return np.zeros(count)
    texts, values = (np.concatenate(parts) if len(parts) > 1 else parts[0] for parts in zip(*addends, strict=True))
    sums: Floats = np.bincount(texts, values, count).astype(np.float64, copy=False)
    return sums


def folded(addends: Floats) -> Floats:
    """Add rows from the first to the last, the order in which a trail adds them up; numpy's own sum may pair them."""
    total = np.zeros(addends.shape[1])
    for row in addends:
        total += row
    return total


def _matching(lists: Sequence[Postings], texts: Integers) -> tuple[Integers, Integers, Floats]:
    """Return which list holds which text, and how often."""
    rows, columns, frequencies = [], [], []
    for number, found in enumerate(lists):
        if len(found.places):
            index = found.places.searchsorted(texts)
            index[index == len(found.places)] = 0
            held = np.flatnonzero(found.places[index] == texts)
            rows.append(np.full(len(held), number))
            columns.append(held)
            frequencies.append(found.frequencies[index[held]])
    if not rows:
        return np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0)
    return np.concatenate(rows), np.concatenate(columns), np.concatenate(frequencies)


def _files_of(shelf: Shelf, able: Flags) -> Flags:
    files = np.zeros(shelf.files.count + 1, np.bool_)
    files[shelf.files.of[able]] = True
    return files


def _own_weights(library: Library, shelf: Shelf, field: Field, places: Integers) -> Floats | float:
    """Return how much the own text of each place counts; where it is the file's text too, it counts as both."""
    if field is DATES:
        return 1.0
    if library.is_plain:
        return _ONLY_CHUNK
    return shelf.own_weights[places]
