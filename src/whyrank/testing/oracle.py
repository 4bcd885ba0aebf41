"""The lexical score written out text by text: slow, short, and the oracle of the index."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..analysis.speakers import is_speaker_mark, speaker_of
from ..columns import MemoryId
from ..expressions import OTHERWISE_COUNTS, label_as, spellings
from ..ports import Entry
from ..storage.contexts import OWN_WEIGHT, SPEAKER_SHARE, WINDOW_TURNS, Unit
from ..storage.fields import DATES, FIELDS, WORDS, Field, date_words_in, fields_of, wanted_terms
from ..storage.lexical import K1, B, repeated
from ..trail import TermValue
from ..types import ONCE, Repeats, inverse_frequency

Addends = list[TermValue]


@dataclass(frozen=True)
class Texts:
    """Some texts of one field, each of parts that are lists of terms; no phrase goes from one part to the next."""

    parts: Sequence[Sequence[Sequence[str]]]
    field: Field

    def count(self, number: int, term: str) -> float:
        """Count a term in one of the texts."""
        return sum(_count(part, term) for part in self.parts[number])

    def length(self, number: int) -> int:
        """Return how many terms one of the texts has."""
        return sum(map(len, self.parts[number]))

    def score(self, number: int, term: str) -> float:
        """Return idf · tf/(tf + K) of a term in one of the texts."""
        prior, numbers = self.field.length_prior, range(len(self.parts))
        average = float(sum(map(self.length, numbers))) / len(self.parts)
        k = K1 * (1 - B + B * (self.length(number) + prior) / (average + prior))
        frequency = float(self.count(number, term))
        idf = inverse_frequency(len(self.parts), sum(1 for other in numbers if self.count(other, term)))
        return idf * frequency / (frequency + k)


def addends(entries: Sequence[Entry], terms: Sequence[str], repeats: Repeats = ONCE) -> list[Addends]:
    """Return, for each entry, what each term adds to its lexical score, a word as often as it is repeated."""
    found: list[Addends] = [[] for _ in entries]
    for field, wanted in wanted_terms(terms):
        for term in wanted:
            often = repeats.get(term, 1) if field is WORDS else 1
            for number, one in _of_term(entries, field, term):
                found[number].append(one._replace(term=repeated(one.term, often), value=often * one.value))
    _add_speaker(entries, terms, found)
    return found


def date_scores(entries: Sequence[Entry], terms: Sequence[str]) -> tuple[dict[MemoryId, float], float]:
    """Return what the date words of a query score in each entry, and the most they could."""
    texts = Texts([[fields_of(entry)[FIELDS.index(DATES)]] for entry in entries], DATES)
    words = date_words_in(terms)
    numbers = range(len(entries))
    held = {word: sum(1 for number in numbers if texts.count(number, word)) for word in words}
    most = sum(inverse_frequency(len(entries), count) for count in held.values())
    found = [word for word in words if held[word]]
    return {
        entry.memory.id: sum(texts.score(number, word) for word in found) for number, entry in enumerate(entries)
    }, most


def _add_speaker(entries: Sequence[Entry], terms: Sequence[str], found: Sequence[Addends]) -> None:
    """Give the matching turns of the one speaker a question names a share of the best score."""
    known = {mark for entry in entries for mark in entry.marks if is_speaker_mark(mark) and mark in terms}
    if len(known) != 1:
        return
    [mark] = known
    bonus = SPEAKER_SHARE * max(sum(one.value for one in own) for own in found)
    for entry, own in zip(entries, found, strict=True):
        if own and mark in entry.marks:
            own.append(TermValue(speaker_of(mark), "speakers", "own", bonus))


def _of_term(entries: Sequence[Entry], field: Field, term: str) -> Iterator[tuple[int, TermValue]]:
    own = [fields_of(entry)[FIELDS.index(field)] for entry in entries]
    texts = Texts([[text] for text in own], field)
    for number, entry in enumerate(entries):
        if _count(own[number], term):
            weight = field.weight * (1.0 if field is DATES else OWN_WEIGHT[unit_of(entry)])
            name = _name(term, [own[number]])
            yield number, TermValue(name, field.name, "own", weight * texts.score(number, term))
    if field is DATES:
        return
    yield from _around(entries, own, field, term, Unit.CHUNK, "file")
    yield from _around(entries, own, field, term, Unit.TURN, "window")


def _around(
    entries: Sequence[Entry], own: Sequence[Sequence[str]], field: Field, term: str, unit: Unit, context: str
) -> Iterator[tuple[int, TermValue]]:
    """Yield what the surroundings of each chunk (its file) or turn (its window) add."""
    members = [number for number, entry in enumerate(entries) if unit_of(entry) == unit]
    around = {number: _surroundings(entries, members, number, unit) for number in members}
    distinct = list(dict.fromkeys(around.values())) if unit == Unit.CHUNK else list(around.values())
    texts = Texts([[own[other] for other in numbers] for numbers in distinct], field)
    for place, number in enumerate(members):
        text = distinct.index(around[number]) if unit == Unit.CHUNK else place
        if texts.count(text, term):
            held = [own[other] for other in distinct[text]]
            yield number, TermValue(_name(term, held), field.name, context, field.weight * texts.score(text, term))


def _surroundings(entries: Sequence[Entry], members: Sequence[int], number: int, unit: Unit) -> tuple[int, ...]:
    memory = entries[number].memory
    if unit == Unit.CHUNK:
        return tuple(other for other in members if entries[other].memory.group == memory.group)
    session = sorted(
        (other for other in members if _session(entries[other]) == _session(entries[number])),
        key=lambda other: (entries[other].memory.position, entries[other].memory.id),
    )
    place = session.index(number)
    return tuple(session[max(0, place - WINDOW_TURNS) : place + WINDOW_TURNS + 1])


def _session(entry: Entry) -> tuple[str, str]:
    return str(entry.memory.scope), entry.memory.session


def unit_of(entry: Entry) -> Unit:
    """Return what a memory is, as far as its surroundings go."""
    if entry.memory.is_turn:
        return Unit.TURN
    return Unit.CHUNK if entry.memory.kind == "chunk" and entry.memory.source else Unit.FACT


def _name(term: str, texts: Sequence[Sequence[str]]) -> str:
    """Name a term as the trail does: by its other spellings where no text holds it as it was asked for."""
    return label_as(term, any(_count_one(text, one) for text in texts for one in spellings(term)[0]))


def _count(text: Sequence[str], term: str) -> float:
    """Count a term, a phrase of neighbouring ones, or all that a term stands for, in the terms of a text."""
    asked, others = spellings(term)
    weight = OTHERWISE_COUNTS if asked else 1.0
    return sum(_count_one(text, one) for one in asked) + weight * sum(_count_one(text, one) for one in others)


def _count_one(text: Sequence[str], term: str) -> int:
    tokens = term.split(" ")
    if len(tokens) == 1 or term in text:
        return sum(1 for other in text if other == term)
    places = range(len(text) - len(tokens) + 1)
    return sum(1 for i in places if list(text[i : i + len(tokens)]) == tokens)
