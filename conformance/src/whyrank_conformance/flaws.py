"""One flawed engine for every check: the sound engine with one part spoiled, as it is spoiled in the field."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from .sound import Scored, Sound

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .adapter import Answer, Door, Note, Question, Vector, Verdict

_MINIMUM = 0.35  # OpenClaw's default of February 2026
_POOL = 50  # candidates, where only the vectors bring any or a filter comes too late
_RANK_CONSTANT = 60  # Cormack, Clarke and Büttcher, 2009


class FlatWords(Sound):
    """1: every match scores the same, as `max(0, bm25)` makes it where bm25 is negative."""

    def word_score(self, bm25: float) -> float:
        """Score every match alike."""
        return 1.0


class UpsideDown(Sound):
    """2: `1/(1+abs(bm25))` falls as the match gets better."""

    def word_score(self, bm25: float) -> float:
        """Score the best match lowest."""
        return 1 / (1 + bm25)


class Unbounded(Sound):
    """3: the raw word score is added to a cosine."""

    def fused(self, candidates: Sequence[Scored]) -> list[tuple[float, Scored]]:
        """Add what is not of one scale."""
        ranked = [(one.cosine + one.words, one) for one in candidates]
        return sorted(ranked, key=lambda pair: (not self.is_first(pair[1]), -pair[0]))


class BatchMax(Sound):
    """4: the best keyword hit of a batch is 1.0, however weak."""

    def relevance(self, one: Scored, candidates: Sequence[Scored]) -> float:
        """Compare a hit with nothing but its batch."""
        most = max(other.words for other in candidates)
        return one.words / most if most > 0 else max(0.0, one.cosine)


class AllWords(Sound):
    """5: the words are joined by AND."""

    def matches(self, counts: Mapping[str, int], terms: Sequence[str]) -> bool:
        """Ask for every word."""
        return bool(terms) and all(term in counts for term in terms)


class VectorCandidates(Sound):
    """6: words only rescore what the vectors brought."""

    def union(
        self, words: Sequence[Scored], vectors: Sequence[Scored], named: Sequence[Scored], question: Question
    ) -> list[Scored]:
        """Take the nearest alone."""
        return list(vectors[:_POOL])


class AbsentIsZero(Sound):
    """7: without keyword hits the cosine counts seven tenths, and the minimum stays."""

    def kept(self, ranked: Sequence[tuple[float, Scored]], question: Question) -> list[Scored]:
        """Hold what only the vectors found against a minimum that was meant for both."""
        kept = super().kept(ranked, question)
        return [one for one in kept if one.words > 0 or one.named or 0.7 * one.cosine >= _MINIMUM]


class MinimumOnTheSum(Sound):
    """8: three tenths for the words never reach the minimum alone."""

    def kept(self, ranked: Sequence[tuple[float, Scored]], question: Question) -> list[Scored]:
        """Hold the weighted sum against a fixed minimum."""
        kept = super().kept(ranked, question)
        most = max((one.words for one in kept), default=0.0)

        def score(one: Scored) -> float:
            return 0.7 * max(0.0, one.cosine) + 0.3 * one.words / most if most > 0 else one.cosine

        return [one for one in kept if one.named or score(one) >= _MINIMUM]


class MinimumOnRanks(Sound):
    """9: a threshold between 0 and 1 is laid on scores that end at 2/61."""

    def kept(self, ranked: Sequence[tuple[float, Scored]], question: Question) -> list[Scored]:
        """Hold reciprocal ranks against what the caller asked for."""
        return [
            one
            for rank, (_, one) in enumerate(ranked, 1)
            if question.minimum is None or 2 / (_RANK_CONSTANT + rank) >= question.minimum
        ]


class BuriedNames(Sound):
    """10: a name is one text among others."""

    def is_first(self, one: Scored) -> bool:
        """Give a name no place of its own."""
        return False


class LateFilter(Sound):
    """11: the scope is looked at when the candidates are there."""

    def in_scope(self, note: Note, question: Question) -> bool:
        """Let everything compete."""
        return True

    def union(
        self, words: Sequence[Scored], vectors: Sequence[Scored], named: Sequence[Scored], question: Question
    ) -> list[Scored]:
        """Filter what is left."""
        best = super().union(words[:_POOL], vectors[:_POOL], named, question)
        return [one for one in best if super(LateFilter, self).in_scope(one.note, question)]


class AsciiWords(Sound):
    """12: words are runs of ASCII letters."""

    def terms(self, text: str) -> list[str]:
        """Lose what is written otherwise."""
        return super().terms(" ".join(re.findall(r"[A-Za-z0-9_]+", text)))


class RawProducts(Sound):
    """13: products of vectors as they come are taken for cosines."""

    def stored(self, vector: Vector) -> Vector:
        """Keep a vector as it is."""
        return vector


class BrittleSyntax(Sound):
    """14: the question is handed to a query parser as it is."""

    def search(self, question: Question) -> Answer:
        """Stumble over signs."""
        if re.search(r"[\"*():^{}\[\]~+\-'/\\]|\b(AND|OR|NOT|NEAR)\b", question.text):
            raise ValueError(f"syntax error near {question.text!r}")
        return super().search(question)


class OtherDoor(Sound):
    """15: one of the doors asks the vectors alone."""

    def doors(self) -> Mapping[str, Door]:
        """Leave the words out at the second door."""
        return {"other": self._by_vector}

    def _by_vector(self, question: Question) -> list[str]:
        nearest = sorted(self.scored(question, []), key=lambda one: one.cosine)
        return [one.note.id for one in nearest][: question.limit]


class Unreplaced(Sound):
    """16: what was replaced is ranked as if it were not."""

    def replaced(self) -> set[str]:
        """Know of no replacement."""
        return set()


class PoolByLimit(Sound):
    """17: each run brings as many candidates as results are wanted."""

    def union(
        self, words: Sequence[Scored], vectors: Sequence[Scored], named: Sequence[Scored], question: Question
    ) -> list[Scored]:
        """Cut each run at the limit."""
        return super().union(words[: question.limit], vectors[: question.limit], named, question)


class NeverNothing(Sound):
    """18: whatever is nearest is a find."""

    def verdict(self, best: float) -> Verdict:
        """Be content with anything."""
        return "found"


_BY_NUMBER = (
    FlatWords,
    UpsideDown,
    Unbounded,
    BatchMax,
    AllWords,
    VectorCandidates,
    AbsentIsZero,
    MinimumOnTheSum,
    MinimumOnRanks,
    BuriedNames,
    LateFilter,
    AsciiWords,
    RawProducts,
    BrittleSyntax,
    OtherDoor,
    Unreplaced,
    PoolByLimit,
    NeverNothing,
)
FLAWS: Mapping[int, type[Sound]] = dict(enumerate(_BY_NUMBER, 1))
