"""A small engine that passes every check: the measure for adapters, and what the flawed engines spoil one part of."""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .adapter import ABILITIES, Adapter, Answer, Door, Found, Note, Question, Setup, Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .adapter import Vector

_STOP_WORDS = frozenset(
    re.findall(r"\w+", "a am and as at by de der for i ich im in is it la me of on or the this to was what when")
)
_NO_SPACES = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
VECTOR_SHARE = 0.6
_K1, _B = 1.2, 0.75  # Robertson and Zaragoza, 2009
_WEAK, _FOUND = 0.3, 0.6  # evidence: the cosine plus the share of the question's words that matched


@dataclass(frozen=True, slots=True)
class Scored:
    """A candidate: its word score, the share of the question it matched, its cosine, whether it is called so."""

    note: Note
    words: float
    coverage: float
    cosine: float
    named: bool


class Sound(Adapter):
    """BM25 and cosines in dictionaries, fused by shares, with names, scopes, thresholds and a verdict."""

    name = "planted: sound"
    about = "a small engine of the suite that passes every check"
    call = "search(question)"
    promises = frozenset(ABILITIES)
    pool = 100  # candidates that each run may bring

    def open(self, setup: Setup) -> None:
        """Begin with nothing."""
        self._embed = setup.embed
        self._notes: dict[str, Note] = {}
        self._vectors: dict[str, Vector] = {}

    def add(self, notes: Sequence[Note]) -> None:
        """Keep notes and their vectors."""
        for note, vector in zip(notes, self._embed([note.text for note in notes]), strict=True):
            self._notes[note.id] = note
            self._vectors[note.id] = self.stored(vector)

    def delete(self, ids: Sequence[str]) -> None:
        """Forget notes."""
        for id in ids:
            del self._notes[id], self._vectors[id]

    def close(self) -> None:
        """Forget everything."""
        self._notes.clear()

    def doors(self) -> Mapping[str, Door]:
        """Offer a second way to ask."""
        return {"other": lambda question: self.search(question).ids}

    def search(self, question: Question) -> Answer:
        """Score, fuse, cut, and say how relevant it all is."""
        terms = self.terms(question.text)
        candidates = self.candidates(question, terms)
        ranked = self.kept(self.fused(candidates), question)
        best = max(map(_evidence, candidates), default=0.0)
        hits = tuple(Found(one.note.id, self.relevance(one, candidates)) for one in ranked[: question.limit])
        return Answer(hits, self.verdict(best) if hits else "nothing")

    # -- the parts, each of which one flawed engine spoils -----------------------------------------------------

    def stored(self, vector: Vector) -> Vector:
        """Bring a vector to unit length."""
        import numpy as np

        unit: Vector = vector / np.linalg.norm(vector)
        return unit

    def terms(self, text: str) -> list[str]:
        """Return the content words of a text; of scripts without spaces, pairs of characters."""
        words = []
        for word in re.findall(r"\w+", text.casefold()):
            if _NO_SPACES.search(word):
                words += [word[i : i + 2] for i in range(max(1, len(word) - 1))]
            elif word not in _STOP_WORDS:
                words.append(word)
        return words

    def visible(self, question: Question) -> list[Note]:
        """Return what may answer: of the scope, and not replaced."""
        replaced = self.replaced()
        return [note for note in self._notes.values() if self.in_scope(note, question) and note.id not in replaced]

    def in_scope(self, note: Note, question: Question) -> bool:
        """Tell whether a note is of the scope asked for."""
        return not question.scope or note.scope == question.scope

    def replaced(self) -> set[str]:
        """Return the ids that another note replaces."""
        return {note.supersedes for note in self._notes.values()}

    def candidates(self, question: Question, terms: Sequence[str]) -> list[Scored]:
        """Return the best of each run and whatever is called so, each scored by every signal."""
        scored = self.scored(question, terms)
        by_words = sorted((one for one in scored if one.words > 0), key=lambda one: -one.words)
        by_vector = sorted(scored, key=lambda one: -one.cosine)
        return self.union(by_words, by_vector, [one for one in scored if one.named], question)

    def union(
        self, words: Sequence[Scored], vectors: Sequence[Scored], named: Sequence[Scored], question: Question
    ) -> list[Scored]:
        """Let every run bring its own candidates."""
        return list({one.note.id: one for one in (*words[: self.pool], *vectors[: self.pool], *named)}.values())

    def scored(self, question: Question, terms: Sequence[str]) -> list[Scored]:
        """Score everything that may answer."""
        notes = self.visible(question)
        asked = self.stored(self._embed([question.text])[0])
        raw, coverage = self._bm25(notes, terms)
        key = _key(question.text)
        return [
            Scored(
                note,
                self.word_score(raw[note.id]) if raw[note.id] > 0 else 0.0,
                coverage[note.id],
                float(self._vectors[note.id] @ asked),
                bool(note.name) and _key(note.name) == key,
            )
            for note in notes
        ]

    def matches(self, counts: Mapping[str, int], terms: Sequence[str]) -> bool:
        """Tell whether a note with these words is a keyword hit: one word is enough."""
        return any(term in counts for term in terms)

    def word_score(self, bm25: float) -> float:
        """Return what a keyword match is worth."""
        return bm25

    def fused(self, candidates: Sequence[Scored]) -> list[tuple[float, Scored]]:
        """Add up the shares; a run that found nothing leaves its share to the other."""
        most = max((one.words for one in candidates), default=0.0)
        nearest = max((one.cosine for one in candidates), default=0.0)
        share = VECTOR_SHARE if most > 0 else 1.0

        def score(one: Scored) -> float:
            words = (1 - share) * one.words / most if most > 0 else 0.0
            return share * (one.cosine + 1) / (nearest + 1) + words

        ranked = [(score(one), one) for one in candidates]
        return sorted(ranked, key=lambda pair: (not self.is_first(pair[1]), -pair[0]))

    def is_first(self, one: Scored) -> bool:
        """Tell whether a candidate comes before all scores: because it is called so."""
        return one.named

    def kept(self, ranked: Sequence[tuple[float, Scored]], question: Question) -> list[Scored]:
        """Leave out what has neither the cosine nor the words that were asked for."""
        least = question.minimum
        return [one for _, one in ranked if least is None or one.cosine >= least or one.coverage >= least]

    def relevance(self, one: Scored, candidates: Sequence[Scored]) -> float:
        """Say how relevant a hit is, whatever else was found."""
        return min(1.0, (max(0.0, one.cosine) + one.coverage) / 2)

    def verdict(self, best: float) -> Verdict:
        """Say whether anything relevant was found."""
        return "nothing" if best < _WEAK else "weak" if best < _FOUND else "found"

    def _bm25(self, notes: Sequence[Note], terms: Sequence[str]) -> tuple[dict[str, float], dict[str, float]]:
        bags = {note.id: Counter(self.terms(note.text)) for note in notes}
        average = sum(bag.total() for bag in bags.values()) / max(1, len(bags))
        distinct = list(dict.fromkeys(terms))
        idf = {term: _idf(sum(term in bag for bag in bags.values()), len(bags)) for term in distinct}
        whole = sum(idf.values()) or 1.0
        scores, coverage = dict.fromkeys(bags, 0.0), dict.fromkeys(bags, 0.0)
        for id, bag in bags.items():
            if self.matches(bag, distinct):
                room = _K1 * (1 - _B + _B * bag.total() / (average or 1.0))
                scores[id] = sum(idf[term] * bag[term] * (_K1 + 1) / (bag[term] + room) for term in distinct)
                coverage[id] = sum(idf[term] for term in distinct if term in bag) / whole
        return scores, coverage


def _evidence(one: Scored) -> float:
    return max(0.0, one.cosine) + one.coverage


def _idf(found: int, count: int) -> float:
    return math.log(1 + (count - found + 0.5) / (found + 0.5))


def _key(text: str) -> str:
    return re.sub(r"\W", "", text.casefold())
