"""The lexical score of every visible memory: words, pairs and letters, of its own text and of what surrounds it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property

import numpy as np

from ....analysis.speakers import BY
from ....kernel import COMPILED, Kernel
from ....trail import TermKey
from ....types import inverse_frequency
from ...contexts import OWN_WEIGHT, SPEAKER_SHARE
from ...fields import DATES, WORDS
from ..catalogue import Flags, Floats, Integers
from ..selection import Rows, Sums, threshold
from . import pruning
from .asked import Asked, Spoken
from .library import Library
from .sums import ONLY_CHUNK, Adding, own_weights

_MOST_OWN = max(*OWN_WEIGHT.values(), ONLY_CHUNK)


class Scores:
    """The lexical scores of one query: of the places that can be among the best, and of any that are asked for."""

    def __init__(
        self,
        library: Library,
        terms: Sequence[Asked],
        speaker: Spoken | None = None,
        kernel: Kernel | None = COMPILED,
    ) -> None:
        self.library = library
        self.terms = terms
        self.speaker = speaker
        self.kernel = kernel
        self.unfiltered: dict[int | None, Rows] = {}  # the best, by their number, where nothing is filtered
        self._adding = Adding(library, kernel)

    @cached_property
    def _later(self) -> Sequence[int]:
        telling = [asked.field.weight * asked.idf for asked in self.terms]
        return pruning.for_later(self.library.count, [asked.held for asked in self.terms], telling)

    @cached_property
    def _long(self) -> Sequence[Asked]:
        return [self.terms[i] for i in self._later]

    @cached_property
    def _short(self) -> Sequence[Asked]:
        later = self._later
        return [asked for i, asked in enumerate(self.terms) if i not in later] if later else self.terms

    @cached_property
    def _base(self) -> list[Floats]:
        if self.is_simple:
            return [self._with_rest(shelf, words) for shelf, words in enumerate(self._worded)]
        return [self._adding.summed(shelf, self._short) for shelf in range(len(self.library.shelves))]

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
        words = [asked for asked in self.terms if asked.field is WORDS]
        return [self._adding.summed(shelf, words) for shelf in range(len(self.library.shelves))]

    def _with_rest(self, shelf: int, words: Floats) -> Floats:
        """Add what pairs and letters give, one after the other: the order in which a trail adds them up."""
        rest = [asked for asked in self.terms if asked.field is not WORDS]
        return self._adding.further(words, shelf, rest) if rest else words

    def simply(self, shelf: int, places: Integers) -> tuple[Floats, Floats]:
        """Return the scores of places, and what the words of each score without any weight, if all is simple."""
        return self._base[shelf][places], self._worded[shelf][places] / self._weights(shelf, places)

    def _weights(self, shelf: int, places: Integers) -> Floats | float:
        own = own_weights(self.library, self.library.shelves[shelf], WORDS)
        return own if isinstance(own, float) else own[places]

    def totals(self, allowed: Sequence[Flags | None], wanted: int | None) -> list[Sums]:
        """Return a score for every place, or for those alone that can be among the best `wanted` that are allowed.

        Long lists, of terms that tell little, are read only for places that can still win by them: those whose
        score without them is no further below the last of the best than all of them together can add.
        """
        if self.speaker is None:
            return self._best(allowed, wanted) if wanted and self._is_own else self._unspoken(allowed, wanted, 0.0)
        totals = self._unspoken(allowed, wanted, self._bonus)
        return [self._with_bonus(shelf, own) for shelf, own in enumerate(totals)]

    @cached_property
    def _is_own(self) -> bool:
        """Tell whether the kernel can choose the best places: where own texts alone count."""
        return self.kernel is not None and all(asked.around == "own" for asked in self.terms)

    def _best(self, allowed: Sequence[Flags | None], wanted: int) -> list[Sums]:
        """Return the best places of each shelf; one more than is wanted, which tells whether there are more."""
        if self.is_simple:  # whoever scores the candidates takes it from all sums
            return [self._adding.top(own, mask, wanted + 1) for own, mask in zip(self._base, allowed, strict=True)]
        return [self._adding.best(shelf, self.terms, mask, wanted + 1) for shelf, mask in enumerate(allowed)]

    def _unspoken(self, allowed: Sequence[Flags | None], wanted: int | None, bonus: float) -> list[Sums]:
        """Return the same before a speaker counts, right for all that a bonus can still bring among the best."""
        if not self._long:
            return [Sums(own) for own in self._base]
        masked = [own if mask is None else own * mask for own, mask in zip(self._base, allowed, strict=True)]
        # One more than is wanted, so that whoever looks can tell whether there are more.
        needed = threshold(masked, wanted + 1) - self._most_of_long - bonus if wanted is not None else 0.0
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
        values, places = totals.values, totals.places
        said = np.zeros(len(self.library.shelves[shelf]), np.bool_)
        said[self.speaker.postings[shelf].places] = True
        raised = values + self._bonus * ((said if places is None else said[places]) & (values > 0.0))
        return Sums(raised, places)

    def _with_long(self, shelf: int, base: Floats, needed: float) -> Sums:
        if needed <= 0.0:
            return Sums(self._adding.summed(shelf, self.terms))
        able = base >= needed
        places = able.nonzero()[0]
        return Sums(self._adding.summed(shelf, self.terms, able)[places], places)

    @cached_property
    def _most_of_long(self) -> float:
        """Return more than all long lists together can add to one place."""
        most = 0.0
        for asked in self._long:
            texts = self.library.texts(asked.field, asked.around)
            frequency = max(float(found.frequencies.max()) for found in asked.postings if found.size)
            weight = _MOST_OWN if asked.around == "own" else 1.0
            most += weight * texts.most(frequency, asked.idf)
        return most

    @property
    def count(self) -> int:
        """Return how many rows of addends there are."""
        return len(self.terms) + (self.speaker is not None)

    @property
    def keys(self) -> tuple[TermKey, ...]:
        """Return how the trail identifies each row of the addends."""
        keys = tuple([asked.key for asked in self.terms])
        return keys if self.speaker is None else (*keys, TermKey(self.speaker.name, "speakers", "own"))

    def of_speaker(self, shelf: int, places: Integers, words: Floats) -> Floats:
        """Return what the named speaker adds to the score of each place that some word speaks for."""
        assert self.speaker is not None
        said = np.isin(places, self.speaker.postings[shelf].places) & (words > 0.0).any(axis=0)
        return np.where(said, self._bonus, 0.0)

    def of_terms(self, shelf: int, places: Integers, chosen: Sequence[int]) -> Floats:
        """Return what each of some terms (a row) adds to the score of each place (a column)."""
        return self._adding.table(shelf, [self.terms[i] for i in chosen], places)

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
        found = addends[words]
        if any(self.terms[i].often > 1 for i in words):
            found = found / np.array([[self.terms[i].often] for i in words])
        count = len(places)
        words_alone: Floats = folded(found, count) / self._weights(shelf, places)
        return words_alone + folded(addends[dates], count) / DATES.weight


def folded(addends: Iterable[Floats], count: int) -> Floats:
    """Add rows from the first to the last, the order in which a trail adds them up; numpy's own sum may pair them."""
    total = np.zeros(count)
    for row in addends:
        total += row
    return total
