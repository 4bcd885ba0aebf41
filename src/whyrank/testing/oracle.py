"""Reference implementation of the lexical score, text by text: slow, short, the oracle of the index."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..analysis.entities import is_speaker_mark, speaker_of
from ..protocols import Entry
from ..storage.bm25 import (
    DATES,
    FIELDS,
    K1,
    OWN_WEIGHT,
    SPEAKER_SHARE,
    WINDOW_TURNS,
    WORDS,
    B,
    Field,
    Unit,
    date_words_in,
    fields_of,
    repeated,
    wanted_terms,
)
from ..types.columns import MemoryId
from ..types.expressions import OTHERWISE_COUNTS, label_as, spellings
from ..types.query import ONCE, Repeats, inverse_frequency
from ..types.trail import TermValue

Addends = list[TermValue]


@dataclass(frozen=True)
class OracleTexts:
    """Texts of one field, each of parts that are lists of terms; no phrase crosses from part to part."""

    parts: Sequence[Sequence[Sequence[str]]]
    field: Field

    def count(self, number: int, term: str) -> float:
        """Count a term in one of the texts."""
        return sum(_count(part, term) for part in self.parts[number])

    def length(self, number: int) -> int:
        """Return the number of terms of one of the texts."""
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
    """Return, for each entry, the contribution of each term to its lexical score, times its repetitions."""
    found: list[Addends] = [[] for _ in entries]
    for field, wanted in wanted_terms(terms):
        for term in wanted:
            often = repeats.get(term, 1) if field is WORDS else 1
            for number, one in _of_term(entries, field, term):
                found[number].append(one._replace(term=repeated(one.term, often), value=often * one.value))
    _add_speaker(entries, terms, found)
    return found


def date_scores(entries: Sequence[Entry], terms: Sequence[str]) -> tuple[dict[MemoryId, float], float]:
    """Return the score of a query's date words in each entry, and their upper bound."""
    texts = OracleTexts([[fields_of(entry)[FIELDS.index(DATES)]] for entry in entries], DATES)
    words = date_words_in(terms)
    numbers = range(len(entries))
    held = {word: sum(1 for number in numbers if texts.count(number, word)) for word in words}
    most = sum(inverse_frequency(len(entries), count) for count in held.values())
    found = [word for word in words if held[word]]
    return {
        entry.memory.id: sum(texts.score(number, word) for word in found) for number, entry in enumerate(entries)
    }, most


def _add_speaker(entries: Sequence[Entry], terms: Sequence[str], found: Sequence[Addends]) -> None:
    """Add a share of the best score to the matching turns of the one speaker that a query names."""
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
    texts = OracleTexts([[text] for text in own], field)
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
    """Yield the contributions of the context of each chunk (its file) or turn (its window)."""
    members = [number for number, entry in enumerate(entries) if unit_of(entry) == unit]
    around = {number: _surroundings(entries, members, number, unit) for number in members}
    distinct = list(dict.fromkeys(around.values())) if unit == Unit.CHUNK else list(around.values())
    texts = OracleTexts([[own[other] for other in numbers] for numbers in distinct], field)
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
    """Return the unit of a memory, which determines its context: turn, chunk or fact."""
    if entry.memory.is_turn:
        return Unit.TURN
    return Unit.CHUNK if entry.memory.kind == "chunk" and entry.memory.source else Unit.FACT


def _name(term: str, texts: Sequence[Sequence[str]]) -> str:
    """Label a term as the trail does: by its other spellings if no text holds it as typed."""
    return label_as(term, any(_count_one(text, one) for text in texts for one in spellings(term)[0]))


def _count(text: Sequence[str], term: str) -> float:
    """Count a term, a phrase of adjacent ones, or all alternatives of a term, in the terms of a text."""
    asked, others = spellings(term)
    weight = OTHERWISE_COUNTS if asked else 1.0
    return sum(_count_one(text, one) for one in asked) + weight * sum(_count_one(text, one) for one in others)


def _count_one(text: Sequence[str], term: str) -> int:
    tokens = term.split(" ")
    if len(tokens) == 1 or term in text:
        return sum(1 for other in text if other == term)
    places = range(len(text) - len(tokens) + 1)
    return sum(1 for i in places if list(text[i : i + len(tokens)]) == tokens)
