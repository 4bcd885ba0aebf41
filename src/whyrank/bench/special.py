"""What only whyrank is asked: vectors behind a filter, and the price of the trail."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..types import Where
from .child import LIMIT
from .clock import quantile, take_turns
from .contestant import OURS, Key, Peer
from .corpus import Written
from .exact import first_ten, nearest_numbers, recall
from .ours import SHARES, Ours, passing
from .outcome import Category, Line


def filtered(peer: Peer, corpus: Written, turns: int, tell: Callable[[str], None]) -> list[Category]:
    """Search vectors among a half, a twentieth and a two-hundredth of the notes."""
    assert isinstance(peer, Ours)
    tell("vectors behind filters")
    return [_filtered(peer, corpus, turns, share, Where(path=path)) for share, path in SHARES.items()]


def _filtered(peer: Ours, corpus: Written, turns: int, share: float, where: Where) -> Category:
    answers: dict[int, Sequence[Key]] = {}

    def ask(turn: int) -> Sequence[Key]:
        return peer.nearest_where(corpus.question_vectors[turn], where, LIMIT)

    ask(0)  # caches fill once
    spans = take_turns({OURS: ask}, turns, lambda _, turn, answer: answers.update({turn: answer}))
    among = passing(share, len(corpus.vectors))
    exact = nearest_numbers(corpus.vectors, corpus.question_vectors[:turns], among)
    return Category(f"{share:.1%} of the notes", [Line(OURS, spans[OURS], recall(first_ten(peer, answers), exact))])


def ranking_share(peer: Peer, corpus: Written, turns: int) -> float:
    """Return which share of a search is ranking, trails included: the median over the questions."""
    assert isinstance(peer, Ours)
    asked = zip(corpus.questions[:turns], corpus.question_vectors, strict=False)
    timings = [peer.timings(question.text, vector, LIMIT) for question, vector in asked]
    return quantile([spent["ranking"] / spent["total"] for spent in timings], 0.5)
