"""Scorer: posting lists of the terms of a query, sums by place, scores, and per-term contributions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from ....analysis.names import speaker_of
from ....analysis.normalize import BY, text_cache
from ....types.query import ONCE, Repeats, as_asked, inverse_frequency, is_several, label_as, spellings
from ....types.trail import TermKey
from ...bm25 import (
    DATES,
    FIELDS,
    GRAMS,
    K1,
    OWN_WEIGHT,
    SPEAKER_SHARE,
    WORDS,
    B,
    Field,
    Unit,
    repeated,
    wanted_terms,
)
from ..top_k import Rows, Sums, threshold
from .format import Wide
from .kernel import FieldTerms, Kernel
from .reader import PostingLists, Postings

if TYPE_CHECKING:
    from ..database import Connection
    from ..doc_values import Flags, Floats, Integers, ScopeDocValues

Around = Literal["own", "file", "window"]


@dataclass(frozen=True)
class Texts:
    """Texts of one kind and field over all visible scopes: their number and lengths."""

    field: Field
    lengths: Sequence[Floats]
    count: int

    @cached_property
    def average(self) -> float:
        """Return the mean length."""
        return float(sum(float(lengths.sum()) for lengths in self.lengths)) / self.count if self.count else 0.0

    def most(self, frequency: float, idf: float) -> float:
        """Return the maximum score of a term in any text: in the shortest, at its highest frequency."""
        prior = self.field.length_prior
        shortest = K1 * (1 - B + B * prior / (self.average + prior))
        return self.field.weight * idf * frequency / (frequency + shortest)

    @cached_property
    def saturation(self) -> tuple[float, float]:
        """Return the slope of K per term of a text, and its value for an empty text."""
        prior = self.field.length_prior
        per_term = K1 * B / (self.average + prior)
        return per_term, K1 * (1 - B) + per_term * prior


class CollectionStatistics:
    """Collection statistics over all visible scopes, against which the terms of a query are weighted."""

    def __init__(self, shelves: Sequence[ScopeDocValues]) -> None:
        self.shelves = shelves
        self.count = sum(shelf.count for shelf in shelves)
        # Where every memory is the only chunk of its file, the file is the same text and is not scored.
        self.is_plain = all(shelf.is_plain for shelf in shelves)
        self.has_files = any(shelf.files.count for shelf in shelves)
        self.has_letters = any(shelf.lengths[GRAMS.name].any() for shelf in shelves)
        self.has_turns = any(len(shelf.turns) for shelf in shelves)
        self._texts: dict[tuple[Field, Around], Texts] = {}

    def texts(self, field: Field, around: Around) -> Texts:
        """Return the texts of a field: memories' own, their files, or their windows of turns."""
        known = self._texts.get((field, around))
        if known is None:
            known = self._texts[field, around] = self._measured(field, around)
        return known

    def _measured(self, field: Field, around: Around) -> Texts:
        match around:
            case "own":
                return Texts(field, [shelf.lengths[field.name] for shelf in self.shelves], self.count)
            case "file":
                files = [shelf.files for shelf in self.shelves]
                return Texts(field, [file.lengths[field.name] for file in files], sum(file.count for file in files))
            case "window":
                turns = sum(len(shelf.turns) for shelf in self.shelves)
                return Texts(field, [shelf.window_lengths(field) for shelf in self.shelves], turns)


LONG_FROM = 20_000  # memories; below, reading everything is as fast
LONG_SHARE = 1 / 32  # a term with a higher document frequency than this has a low idf and a long list
# Long lists are deferred if their weights add up to at most this share of the highest weight of the others, whose term
# must be in enough memories to fill a run: measured, the last of the best then mostly lies above all they can add.
LATER_SHARE = 0.6
ENOUGH = 128  # memories


def for_later(memories: int, held: Sequence[int], telling: Sequence[float]) -> list[int]:
    """Return the indexes of the terms whose lists are deferred, by document frequency and weight.

    This affects the speed and never the result: every place that can still win is scored by them.
    """
    longest = memories * LONG_SHARE
    long = {term for term, count in enumerate(held) if count > longest} if memories >= LONG_FROM else set()
    if not long:
        return []
    later = sorted(long, key=telling.__getitem__)
    best = max((telling[i] for i, count in enumerate(held) if i not in long and count >= ENOUGH), default=0.0)
    while later and sum(telling[i] for i in later) > LATER_SHARE * best:
        best = max(best, telling[later.pop()])
    return sorted(later)


ONLY_CHUNK = OWN_WEIGHT[Unit.CHUNK] + 1.0  # of a file: the file is the same text
Kind = tuple[Field, Around]


def _by_kind(terms: Sequence[QueryTerm]) -> dict[Kind, list[int]]:
    kinds: dict[Kind, list[int]] = {}
    for number, asked in enumerate(terms):
        kinds.setdefault((asked.field, asked.around), []).append(number)
    return kinds


def own_weights(library: CollectionStatistics, shelf: ScopeDocValues, field: Field) -> Floats | float:
    """Return the weight of each place's own text; where it is the file's text too, it counts as both."""
    if field is DATES:
        return 1.0
    return ONLY_CHUNK if library.is_plain else shelf.own_weights


class QueryTerm(NamedTuple):
    """A query term in one field and kind of text: its postings, its idf, and its multiplicity."""

    term: str
    field: Field
    around: Around
    idf: float
    postings: Sequence[Postings]
    held: int  # texts that hold the term
    often: int = 1
    is_asked: bool = True  # False if these texts hold only other spellings

    @property
    def key(self) -> TermKey:
        """Return the key of the term in a trail."""
        return _key(self.term, self.field.name, self.around, self.often, self.is_asked)


@text_cache(4_096)  # a search for what flips two memories scores the same terms again and again
def _key(term: str, field: str, around: Around, often: int, is_asked: bool) -> TermKey:
    return TermKey(repeated(label_as(term, is_asked), often), field, around)


Known = Mapping[tuple[Field, str, int], Sequence[QueryTerm]]
NOTHING_KNOWN: Known = {}


def by_term(known: Iterable[QueryTerm]) -> Known:
    """Return the terms of an earlier query by field, term and multiplicity."""
    return {key: [*found] for key, found in groupby(known, lambda asked: (asked.field, asked.term, asked.often))}


def asked(
    connection: Connection,
    library: CollectionStatistics,
    lists: Sequence[PostingLists],
    terms: Sequence[str],
    kernel: Kernel,
    fields: Sequence[Field] = FIELDS,
    repeats: Repeats = ONCE,
    known: Known = NOTHING_KNOWN,
) -> Iterator[QueryTerm]:
    """Yield the scored terms of a query, own texts before context; those of an earlier query are reused.

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
            yield from _found(library, kernel, field, term, found[term], exact, often)


def _standing(
    connection: Connection, lists: Sequence[PostingLists], field: Field, terms: Sequence[str]
) -> Mapping[str, Sequence[Postings]]:
    """Return the postings of terms in each scope."""
    by_shelf = [scope.several(connection, field, terms) for scope in lists]
    return {term: [found[number] for found in by_shelf] for number, term in enumerate(terms)}


def _found(
    library: CollectionStatistics,
    kernel: Kernel,
    field: Field,
    term: str,
    own: Sequence[Postings],
    exact: Sequence[Postings] | None,
    often: int,
) -> Iterator[QueryTerm]:
    """Yield the scored terms of a term; `exact` has the postings of its own spelling, if others count too."""
    if not any(found.size for found in own):
        return
    kinds: list[Around] = ["own"]
    if field is not DATES:  # the context of a memory is mostly of the same day
        kinds += ["file"] if library.has_files and not library.is_plain else []
        kinds += ["window"] if library.has_turns else []
    for around in kinds:
        found = _reached(kernel, around, library.shelves, own)
        same = None if exact is None else _reached(kernel, around, library.shelves, exact)
        yield from _split(library, term, field, around, found, same, often)


def _reached(
    kernel: Kernel, around: Around, shelves: Sequence[ScopeDocValues], own: Sequence[Postings]
) -> Sequence[Postings]:
    """Return the texts, files or windows of each scope that hold a term, with its frequency."""
    pairs = zip(shelves, own, strict=True)
    match around:
        case "own":
            return own
        case "file":
            return [one.gathered(shelf.files.of[np.newaxis], shelf.files.count, kernel) for shelf, one in pairs]
        case "window":
            return [one.gathered(shelf.windows, len(shelf), kernel) for shelf, one in pairs]


def _split(
    library: CollectionStatistics,
    term: str,
    field: Field,
    around: Around,
    found: Sequence[Postings],
    exact: Sequence[Postings] | None,
    often: int,
) -> Iterator[QueryTerm]:
    """Yield the texts that hold a term, those with its own spelling before those with others only.

    No text is in both, and both have the same idf: the trail names the spelling that matched, the sum is the same.
    """
    held = sum([postings.size for postings in found])
    if not held:
        return
    texts = library.count if around == "own" else library.texts(field, around).count
    idf = often * inverse_frequency(texts, held)
    if exact is None:
        is_asked = not is_several(term) or bool(spellings(term)[0])
        yield QueryTerm(term, field, around, idf, found, held, often, is_asked)
        return
    inside = [np.isin(one.places, other.places) for one, other in zip(found, exact, strict=True)]
    for is_asked in (True, False):
        kept = [here == is_asked for here in inside]
        wides = [Wide(one.places[here], one.frequencies[here]) for one, here in zip(found, kept, strict=True)]
        part = [Postings((wide,)) for wide in wides]
        if any(postings.size for postings in part):
            yield QueryTerm(term, field, around, idf, part, held, often, is_asked)


@dataclass(frozen=True)
class SpeakerTurns:
    """The only speaker that a query names, and the turns of that speaker."""

    name: str
    postings: Sequence[Postings]


def named_speaker(
    connection: Connection, library: CollectionStatistics, lists: Sequence[PostingLists], terms: Sequence[str]
) -> SpeakerTurns | None:
    """Return the speaker that a query names, if it names exactly one known speaker."""
    marks = [term for term in terms if term.startswith(BY)] if library.has_turns else []
    turns = _standing(connection, lists, DATES, marks) if marks else {}
    known = [mark for mark, found in turns.items() if any(postings.size for postings in found)]
    return SpeakerTurns(speaker_of(known[0]), turns[known[0]]) if len(known) == 1 else None


_MOST_OWN = max(*OWN_WEIGHT.values(), ONLY_CHUNK)


class Scores:
    """The lexical scores of one query: of the places that can be among the best, and of any given ones."""

    def __init__(
        self,
        library: CollectionStatistics,
        terms: Sequence[QueryTerm],
        speaker: SpeakerTurns | None = None,
        *,
        kernel: Kernel,
    ) -> None:
        self.library = library
        self.terms = terms
        self.speaker = speaker
        self._kernel = kernel
        self.unfiltered: dict[int | None, Rows] = {}  # the best rows without a filter, by limit

    def _summed(self, shelf: int, terms: Sequence[QueryTerm], able: Flags | None = None) -> Floats:
        """Sum the scores of some terms at every place of a scope, or at those that can win."""
        home = self.library.shelves[shelf]
        around = {asked.around for asked in terms}
        totals = self._sums_of(shelf, [asked for asked in terms if asked.around == "own"], len(home), able)
        if "file" in around:
            wanted = None if able is None else np.zeros(home.files.count + 1, np.bool_)
            if wanted is not None:
                wanted[home.files.of[able]] = True
            files = [asked for asked in terms if asked.around == "file"]
            totals += self._sums_of(shelf, files, home.files.count + 1, wanted)[home.files.of]
        if "window" in around:
            totals += self._sums_of(shelf, [asked for asked in terms if asked.around == "window"], len(home), able)
        return totals

    def _sums_of(self, shelf: int, terms: Sequence[QueryTerm], texts: int, wanted: Flags | None) -> Floats:
        """Sum the scores of terms of one kind of text in every text, or in those wanted."""
        totals = np.zeros(texts)
        self._kernel.sums(totals, self._given(shelf, terms, wanted))
        return totals

    def _given(self, shelf: int, terms: Sequence[QueryTerm], wanted: Flags | None) -> tuple[FieldTerms, ...]:
        """Return terms in the format of the kernel."""
        home = self.library.shelves[shelf]
        kinds = []
        for (field, around), numbers in _by_kind(terms).items():
            texts = self.library.texts(field, around)
            chosen = [terms[i] for i in numbers]
            alive = home.alive if home.has_gaps and around == "own" else None
            kinds.append(
                FieldTerms(
                    home.columns[field.name] if around == "own" else texts.lengths[shelf],  # type: ignore[arg-type]
                    *texts.saturation,
                    field.weight,
                    own_weights(self.library, home, field) if around == "own" else 1.0,
                    alive if wanted is None else wanted[: len(texts.lengths[shelf])],
                    tuple([(asked.idf, asked.postings[shelf].parts) for asked in chosen]),
                )
            )
        return tuple(kinds)

    @cached_property
    def _later(self) -> Sequence[int]:
        telling = [asked.field.weight * asked.idf for asked in self.terms]
        return for_later(self.library.count, [asked.held for asked in self.terms], telling)

    @cached_property
    def _long(self) -> Sequence[QueryTerm]:
        return [self.terms[i] for i in self._later]

    @cached_property
    def _short(self) -> Sequence[QueryTerm]:
        later = self._later
        return [asked for i, asked in enumerate(self.terms) if i not in later] if later else self.terms

    @cached_property
    def _base(self) -> list[Floats]:
        return [self._summed(shelf, self._short) for shelf in range(len(self.library.shelves))]

    def totals(self, allowed: Sequence[Flags | None], wanted: int | None) -> list[Sums]:
        """Return a score for every place, or only for those that can be among the best `wanted` allowed ones.

        Long lists, of terms with a low idf, are read only for places that can still win by them: those whose score
        without them is no further below the last of the best than all of them together can add.
        """
        if self.speaker is None:
            if wanted is not None and all(asked.around == "own" for asked in self.terms):
                return self._best(allowed, wanted)
            return self._unspoken(allowed, wanted, 0.0)
        totals = self._unspoken(allowed, wanted, self._bonus)
        return [self._with_bonus(shelf, own) for shelf, own in enumerate(totals)]

    def _best(self, allowed: Sequence[Flags | None], wanted: int) -> list[Sums]:
        """Return the best places of each scope, one more than wanted to detect whether there are more."""
        found: list[Sums] = []
        for number, (shelf, mask) in enumerate(zip(self.library.shelves, allowed, strict=True)):
            best = self._kernel.best(len(shelf), self._given(number, self.terms, None), mask, wanted + 1)
            found.append(Sums(np.frombuffer(best[1]), np.frombuffer(best[0], np.int64), is_chosen=True))
        return found

    def _unspoken(self, allowed: Sequence[Flags | None], wanted: int | None, bonus: float) -> list[Sums]:
        """Return totals without the speaker's bonus, exact for places that it can still bring among the best."""
        if not self._long:
            return [Sums(own) for own in self._base]
        masked = [own if mask is None else own * mask for own, mask in zip(self._base, allowed, strict=True)]
        # One more than is wanted, so that the caller detects whether there are more.
        needed = threshold(masked, wanted + 1) - self._most_of_long - bonus if wanted is not None else 0.0
        return [self._with_long(shelf, own, needed) for shelf, own in enumerate(masked)]

    @cached_property
    def _bonus(self) -> float:
        """Return the bonus of the named speaker's turns: a share of the best visible score."""
        everything: list[Flags | None] = [None] * len(self.library.shelves)
        best = max((float(own.values.max(initial=0.0)) for own in self._unspoken(everything, 1, 0.0)), default=0.0)
        return SPEAKER_SHARE * best

    def _with_bonus(self, shelf: int, totals: Sums) -> Sums:
        """Add the bonus to the named speaker's turns that match some word of the query."""
        assert self.speaker is not None
        values, places = totals.values, totals.places
        said = np.zeros(len(self.library.shelves[shelf]), np.bool_)
        said[self.speaker.postings[shelf].places] = True
        raised = values + self._bonus * ((said if places is None else said[places]) & (values > 0.0))
        return Sums(raised, places)

    def _with_long(self, shelf: int, base: Floats, needed: float) -> Sums:
        if needed <= 0.0:
            return Sums(self._summed(shelf, self.terms))
        able = base >= needed
        places = able.nonzero()[0]
        return Sums(self._summed(shelf, self.terms, able)[places], places)

    @cached_property
    def _most_of_long(self) -> float:
        """Return an upper bound of the sum that all long lists can add at one place."""
        most = 0.0
        for asked in self._long:
            texts = self.library.texts(asked.field, asked.around)
            frequency = max(float(found.frequencies.max()) for found in asked.postings if found.size)
            weight = _MOST_OWN if asked.around == "own" else 1.0
            most += weight * texts.most(frequency, asked.idf)
        return most

    @property
    def keys(self) -> tuple[TermKey, ...]:
        """Return the key in a trail of each row of contributions."""
        keys = tuple([asked.key for asked in self.terms])
        return keys if self.speaker is None else (*keys, TermKey(self.speaker.name, "speakers", "own"))

    def contributions(self, shelf: int, places: Integers) -> Floats:
        """Return what each term, and a named speaker last, adds (a row) to the score of each place (a column)."""
        home = self.library.shelves[shelf]
        found = np.zeros((len(self.terms) + (self.speaker is not None), len(places)))
        for (_, around), numbers in _by_kind(self.terms).items():
            texts = home.files.of[places] if around == "file" else places
            kinds = self._given(shelf, [self.terms[i] for i in numbers], None)
            here = np.flatnonzero(texts < len(kinds[0].lengths))  # a memory without a file has a number past the last
            values = np.zeros((len(numbers), len(here)))
            self._kernel.given(kinds, texts[here].astype(np.int64), values)
            found[np.ix_(np.array(numbers), here)] = values
        if self.speaker is not None:
            said = np.isin(places, self.speaker.postings[shelf].places) & (found > 0.0).any(axis=0)
            found[-1] = np.where(said, self._bonus, 0.0)
        return found

    def bound(self, terms: Sequence[str]) -> float:
        """Return the upper bound of the score of words and dates of a query in any text: the sum of their idf."""
        held = {self.terms[i].term: self.terms[i].held for i in self._covering}
        asked = [term for term in terms if not term.startswith(BY)]
        return sum(inverse_frequency(self.library.count, held.get(term, 0)) for term in asked)

    @cached_property
    def _covering(self) -> list[int]:
        """Return the indexes of the terms that count for coverage: words and dates of own texts."""
        own = (i for i, asked in enumerate(self.terms) if asked.around == "own")
        return [i for i in own if self.terms[i].field in (WORDS, DATES)]

    def covered(self, shelf: int, places: Integers, addends: Floats) -> Floats:
        """Return the unweighted score of words and dates of each place's own text, each counted once."""
        words = [i for i in self._covering if self.terms[i].field is WORDS]
        dates = [i for i in self._covering if self.terms[i].field is DATES]
        found = addends[words]
        if any(self.terms[i].often > 1 for i in words):
            found = found / np.array([[self.terms[i].often] for i in words])
        count = len(places)
        own = own_weights(self.library, self.library.shelves[shelf], WORDS)
        words_alone: Floats = folded(found, count) / (own if isinstance(own, float) else own[places])
        return words_alone + folded(addends[dates], count) / DATES.weight


def folded(addends: Iterable[Floats], count: int) -> Floats:
    """Add rows from first to last, the order in which a trail adds them up; numpy's own sum may pair them."""
    total = np.zeros(count)
    for row in addends:
        total += row
    return total
