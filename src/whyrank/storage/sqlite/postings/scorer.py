"""Scorer: posting lists of the terms of a query, sums by place, scores, and per-term contributions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from ....analysis.names import speaker_of
from ....analysis.normalize import BY
from ....types.query import as_asked, inverse_frequency, is_several, label_as, spellings
from ....types.trail import TermKey
from ...bm25 import DATES, GRAMS, K1, OWN_WEIGHT, SPEAKER_SHARE, WORDS, B, Field, Unit, repeated
from ..top_k import Rows, Sums, threshold
from .format import Wide
from .kernel import FieldTerms, Kernel
from .reader import Postings

if TYPE_CHECKING:
    from ..doc_values import Flags, Floats, Integers, ScopeDocValues

Around = Literal["own", "file", "window"]
Moment = tuple[tuple[str, int], ...]  # the visible scopes, and the generation of the last change of each


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

    def __init__(self, shelves: Sequence[ScopeDocValues], moment: Moment) -> None:
        self.shelves = shelves
        self.moment = moment
        self.count = sum(shelf.count for shelf in shelves)
        # Where every memory is the only chunk of its file, the file is the same text and is not scored.
        self.is_plain = all(shelf.is_plain for shelf in shelves)
        self.has_letters = any(shelf.lengths[GRAMS.name].any() for shelf in shelves)
        self.has_turns = any(len(shelf.turns) for shelf in shelves)
        # The kinds of text that are scored; for files and windows, to which ones each place of a scope belongs.
        self.groups: dict[Around, list[tuple[Integers, int]]] = {"own": []}
        if not self.is_plain and any(shelf.files.count for shelf in shelves):
            self.groups["file"] = [(shelf.files.of[np.newaxis], shelf.files.count) for shelf in shelves]
        if self.has_turns:
            self.groups["window"] = [(shelf.windows, len(shelf)) for shelf in shelves]
        self._texts: dict[tuple[Field, Around], Texts] = {}

    def texts(self, field: Field, around: Around) -> Texts:
        """Return the texts of a field: memories' own, their files, or their windows of turns."""
        known = self._texts.get((field, around))
        if known is not None:
            return known
        match around:
            case "own":
                measured = Texts(field, [shelf.lengths[field.name] for shelf in self.shelves], self.count)
            case "file":
                files = [shelf.files for shelf in self.shelves]
                measured = Texts(field, [file.lengths[field.name] for file in files], sum(file.count for file in files))
            case "window":
                turns = sum(len(shelf.turns) for shelf in self.shelves)
                measured = Texts(field, [shelf.window_lengths(field) for shelf in self.shelves], turns)
        self._texts[field, around] = measured
        return measured


class QueryTerm(NamedTuple):
    """A query term in one field and kind of text: its key in a trail, postings, idf, and multiplicity."""

    key: TermKey
    term: str
    field: Field
    around: Around
    idf: float
    postings: Sequence[Postings]
    held: int  # texts that hold the term
    often: int


TermPostings = Mapping[tuple[Field, str], Sequence[Postings]]  # of each scope
TermName = tuple[Field, str, int]  # a field, a term, and its multiplicity
WeighedTerms = Sequence[tuple[TermName, Sequence[QueryTerm]]]


def weigh_terms(
    collection: CollectionStatistics,
    names: Iterable[TermName],
    postings: TermPostings,
    known: Mapping[TermName, Sequence[QueryTerm]],
    kernel: Kernel,
) -> WeighedTerms:
    """Weigh the terms of a query, own texts before context; those of an earlier query are reused."""
    weighed: list[tuple[TermName, Sequence[QueryTerm]]] = []
    for name in names:
        field, term, often = name
        found = [*known.get(name, ())]
        weighed.append((name, found))
        own = postings.get((field, term), ())
        if found or not any(one.size for one in own):
            continue
        alone = as_asked(term) if is_several(term) else None
        label = repeated(label_as(term, bool(spellings(term)[0])), often)
        for around, groups in collection.groups.items():
            if around == "own":
                holding = own
            elif field is DATES:  # the context of a memory is mostly of the same day
                continue
            else:
                holding = []
                for one, (belonging, count) in zip(own, groups, strict=True):
                    holding.append(one.gathered(belonging, count, kernel))
            held = sum([one.size for one in holding])
            if held:
                idf = often * inverse_frequency(collection.texts(field, around).count, held)
                key = TermKey(label, field.name, around)
                found.append(QueryTerm(key, term, field, around, idf, holding, held, often))
        if alone is not None:
            found[:] = _split_spellings(collection, found, postings[field, alone], kernel)
    return weighed


def _split_spellings(
    collection: CollectionStatistics, terms: Sequence[QueryTerm], exact: Sequence[Postings], kernel: Kernel
) -> Iterator[QueryTerm]:
    """Yield the texts with the query's own spelling of a term before those with other spellings only.

    No text is in both, and both have the same idf: the trail names the spelling that matched, the sum is the same.
    """
    for term in terms:
        groups = collection.groups[term.around]
        same = [one.gathered(*own, kernel) for one, own in zip(exact, groups, strict=True)] if groups else exact
        inside = [
            np.isin(one.joined.places, other.joined.places) for one, other in zip(term.postings, same, strict=True)
        ]
        for is_same in (True, False):
            part = [
                Postings((Wide(one.joined.places[here == is_same], one.joined.frequencies[here == is_same]),))
                for one, here in zip(term.postings, inside, strict=True)
            ]
            if any(postings.size for postings in part):
                label = repeated(label_as(term.term, is_same), term.often)
                yield term._replace(key=term.key._replace(term=label), postings=part)


@dataclass(frozen=True)
class SpeakerTurns:
    """The only speaker that a query names, and the turns of that speaker."""

    name: str
    postings: Sequence[Postings]


def named_speaker(marks: Sequence[str], postings: TermPostings) -> SpeakerTurns | None:
    """Return the speaker that a query names, if it names exactly one known speaker."""
    known = [mark for mark in marks if any(found.size for found in postings[DATES, mark])]
    return SpeakerTurns(speaker_of(known[0]), postings[DATES, known[0]]) if len(known) == 1 else None


LONG_FROM = 20_000  # memories; below, reading everything is as fast
LONG_SHARE = 1 / 32  # a term with a higher document frequency than this has a low idf and a long list
# Long lists are deferred if their weights add up to at most this share of the highest weight of the others, whose term
# must be in enough memories to fill a run: measured, the last of the best then mostly lies above all they can add.
LATER_SHARE = 0.6
ENOUGH = 128  # memories


def defer_lists(memories: int, held: Sequence[int], weights: Sequence[float]) -> list[int]:
    """Return the indexes of the terms whose lists are deferred, by document frequency and weight.

    This affects the speed and never the result: every place that can still win is scored by them.
    """
    longest = memories * LONG_SHARE
    long = {term for term, count in enumerate(held) if count > longest} if memories >= LONG_FROM else set()
    if not long:
        return []
    later = sorted(long, key=weights.__getitem__)
    best = max((weights[i] for i, count in enumerate(held) if i not in long and count >= ENOUGH), default=0.0)
    while later and sum(weights[i] for i in later) > LATER_SHARE * best:
        best = max(best, weights[later.pop()])
    return sorted(later)


KernelTerms = Mapping[Around, tuple[FieldTerms, ...]]
ONLY_CHUNK = OWN_WEIGHT[Unit.CHUNK] + 1.0  # of a file: the file is the same text
_MOST_OWN = max(*OWN_WEIGHT.values(), ONLY_CHUNK)


class Scores:
    """The lexical scores of one query: of the places that can be among the best, and of any given ones."""

    def __init__(
        self,
        collection: CollectionStatistics,
        weighed: WeighedTerms,
        speaker: SpeakerTurns | None = None,
        *,
        kernel: Kernel,
    ) -> None:
        self.collection = collection
        self.weighed = weighed
        self.terms = [term for _, found in weighed for term in found]
        self.speaker = speaker
        self.unfiltered: dict[int | None, Rows] = {}  # the best rows without a filter, by limit
        self._kernel = kernel
        keys = [term.key for term in self.terms]  # of each row of contributions
        self.keys = (*keys, *([TermKey(speaker.name, "speakers", "own")] if speaker is not None else []))
        weights = [term.field.weight * term.idf for term in self.terms]
        deferred = defer_lists(collection.count, [term.held for term in self.terms], weights)
        self._long = [self.terms[i] for i in deferred]
        self._rows: dict[Around, dict[Field, list[int]]] = {around: {} for around in collection.groups}
        for row, term in enumerate(self.terms):
            self._rows[term.around].setdefault(term.field, []).append(row)
        scopes = range(len(collection.shelves))
        self._every = [self._kernel_terms(shelf, frozenset()) for shelf in scopes]
        self._short = [self._kernel_terms(shelf, frozenset(deferred)) for shelf in scopes] if deferred else self._every
        self._base: list[Floats] | None = None  # sums of the short lists at every place

    def _kernel_terms(self, shelf: int, deferred: frozenset[int]) -> KernelTerms:
        """Return the terms in a scope as the kernel takes them, by kind of text; a memory's own text is weighted.

        Where the own text is that of the file too, it counts as both.
        """
        home = self.collection.shelves[shelf]
        weights = ONLY_CHUNK if self.collection.is_plain else home.own_weights
        found: dict[Around, tuple[FieldTerms, ...]] = {}
        for around, by_field in self._rows.items():
            alive = home.alive if home.has_gaps and around == "own" else None
            for field, rows in by_field.items():
                texts = self.collection.texts(field, around)
                lengths = home.columns[field.name] if around == "own" else texts.lengths[shelf]
                own = weights if around == "own" and field is not DATES else 1.0
                terms = [self.terms[row] for row in rows if row not in deferred]
                lists = tuple([(term.idf, term.postings[shelf].parts) for term in terms])
                if lists:
                    kind = FieldTerms(lengths, *texts.saturation, field.weight, own, alive, lists)  # type: ignore[arg-type]
                    found[around] = (*found.get(around, ()), kind)
        return found

    def sum_terms(self, allowed: Sequence[Flags | None], wanted: int | None) -> list[Sums]:
        """Return a score for every allowed place, or only for those that can be among the best `wanted`.

        Long lists, of terms with a low idf, are read only for places that can still win by them: those whose score
        without them is no further below the last of the best than all of them together can add.
        """
        if self.speaker is not None:
            return [self._with_bonus(shelf, own) for shelf, own in enumerate(self._sums(allowed, wanted, self._bonus))]
        if wanted is None or any(term.around != "own" for term in self.terms):
            return self._sums(allowed, wanted, 0.0)
        # One more than is wanted, so that the caller detects whether there are more; here and below.
        found: list[Sums] = []
        for shelf, terms, mask in zip(self.collection.shelves, self._every, allowed, strict=True):
            places, values = self._kernel.best(len(shelf), terms.get("own", ()), mask, wanted + 1)
            found.append(Sums(np.frombuffer(values), np.frombuffer(places, np.int64), is_chosen=True))
        return found

    def _sums(self, allowed: Sequence[Flags | None], wanted: int | None, bonus: float) -> list[Sums]:
        """Return totals without the speaker's bonus, exact for places that it can still bring among the best."""
        if self._base is None:
            sums = []
            for shelf, terms in enumerate(self._short):
                sums.append(self._sum(shelf, terms))
            self._base = sums
        masked = [own if mask is None else own * mask for own, mask in zip(self._base, allowed, strict=True)]
        if not self._long:
            return [Sums(own) for own in masked]
        needed = threshold(masked, wanted + 1) - self._most_of_long - bonus if wanted is not None else 0.0
        if needed <= 0.0:
            every = [self._sum(shelf, terms) for shelf, terms in enumerate(self._every)]
            return [Sums(own if mask is None else own * mask) for own, mask in zip(every, allowed, strict=True)]
        found: list[Sums] = []
        for shelf, base in enumerate(masked):
            able = base >= needed
            places = able.nonzero()[0]
            found.append(Sums(self._sum(shelf, self._every[shelf], able)[places], places))
        return found

    def _sum(self, shelf: int, terms: KernelTerms, able: Flags | None = None) -> Floats:
        """Sum the scores of some terms at every place of a scope, or at those that can win."""
        home = self.collection.shelves[shelf]
        totals = np.zeros(len(home.alive))
        for around, kinds in terms.items():
            sums = np.zeros(home.files.count + 1 if around == "file" else len(totals))
            if able is not None:
                wanted = np.bincount(home.files.of[able], minlength=len(sums)) > 0 if around == "file" else able
                kinds = tuple([kind._replace(wanted=wanted[: len(kind.lengths)]) for kind in kinds])
            self._kernel.sums(sums, kinds)
            totals += sums[home.files.of] if around == "file" else sums
        return totals

    @cached_property
    def _most_of_long(self) -> float:
        """Return an upper bound of the sum that all long lists can add at one place."""
        most = 0.0
        for term in self._long:
            texts = self.collection.texts(term.field, term.around)
            frequency = max(float(found.joined.frequencies.max()) for found in term.postings if found.size)
            most += (_MOST_OWN if term.around == "own" else 1.0) * texts.most(frequency, term.idf)
        return most

    @cached_property
    def _bonus(self) -> float:
        """Return the bonus of the named speaker's turns: a share of the best visible score."""
        everything: list[Flags | None] = [None] * len(self.collection.shelves)
        best = max((float(own.values.max(initial=0.0)) for own in self._sums(everything, 1, 0.0)), default=0.0)
        return SPEAKER_SHARE * best

    def _with_bonus(self, shelf: int, totals: Sums) -> Sums:
        """Add the bonus to the named speaker's turns that match some word of the query."""
        assert self.speaker is not None
        values, places = totals.values, totals.places
        said = np.zeros(len(self.collection.shelves[shelf]), np.bool_)
        said[self.speaker.postings[shelf].joined.places] = True
        raised = values + self._bonus * ((said if places is None else said[places]) & (values > 0.0))
        return Sums(raised, places)

    def contributions(self, shelf: int, places: Integers) -> tuple[Floats, Floats]:
        """Return what each term, and a named speaker last, adds (a row) to the score of each place (a column).

        Behind it comes the coverage of each place: the unweighted score of the words and dates of its own text, each
        counted once.
        """
        home = self.collection.shelves[shelf]
        found = np.zeros((len(self.keys), len(places)))
        for around, kinds in self._every[shelf].items():
            texts = home.files.of[places] if around == "file" else places
            for rows, kind in zip(self._rows[around].values(), kinds, strict=True):
                here = np.flatnonzero(texts < len(kind.lengths))  # a memory without a file has a number past the last
                values = np.zeros((len(rows), len(here)))
                self._kernel.given((kind,), texts[here].astype(np.int64), values)
                found[np.ix_(np.array(rows), here)] = values
        if self.speaker is not None:
            said = np.isin(places, self.speaker.postings[shelf].joined.places) & (found > 0.0).any(axis=0)
            found[-1] = np.where(said, self._bonus, 0.0)
        own = self._rows["own"]
        words, dates = own.get(WORDS, []), own.get(DATES, [])
        once = found[words]
        if any(self.terms[i].often > 1 for i in words):
            once = once / np.array([[self.terms[i].often] for i in words])
        weights = ONLY_CHUNK if self.collection.is_plain else home.own_weights[places]
        covered: Floats = add_rows(once, len(places)) / weights
        return found, covered + add_rows(found[dates], len(places)) / DATES.weight

    def bound(self, terms: Sequence[str]) -> float:
        """Return the upper bound of the score of words and dates of a query in any text: the sum of their idf."""
        own = [term for term in self.terms if term.around == "own" and term.field in (WORDS, DATES)]
        held = {term.term: term.held for term in own}
        count = self.collection.count
        return sum([inverse_frequency(count, held.get(term, 0)) for term in terms if not term.startswith(BY)])


def add_rows(addends: Iterable[Floats], count: int) -> Floats:
    """Add rows from first to last, the order in which a trail adds them up; numpy's own sum may pair them."""
    total = np.zeros(count)
    for row in addends:
        total += row
    return total
