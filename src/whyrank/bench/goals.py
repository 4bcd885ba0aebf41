"""What whyrank holds itself to: for each figure of a contest what it must reach, and what it aims at."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Literal, NamedTuple, TypeAlias

from .contestant import OURS, SHARED
from .kept import KeptContest, KeptRound

Standing = Literal["aim reached", "must reached", "missed"]
_K, _M = 1_000, 1_000_000


class Goal(NamedTuple):
    """One figure and its limits: at least so much, or at most where `is_most`. `A / B` is A's CPU over B's."""

    name: str
    must: float
    aim: float
    is_most: bool = False
    notes: int = 0

    def standing(self, value: float) -> Standing:
        """Tell how far a figure gets."""
        sign = -1 if self.is_most else 1
        if sign * value >= sign * self.aim:
            return "aim reached"
        return "must reached" if sign * value >= sign * self.must else "missed"


class Held(NamedTuple):
    """A goal and the figure that was measured."""

    goal: Goal
    value: float
    standing: Standing


_Figure: TypeAlias = Callable[[KeptRound], float | None]


def held_to(contest: KeptContest) -> list[Held]:
    """Return every goal the contest says something about."""
    measured = [*_of_rounds(contest), *_of_scopes(contest)]
    return [Held(goal, value, goal.standing(value)) for goal, value in measured]


def _of_rounds(contest: KeptContest) -> Iterator[tuple[Goal, float]]:
    for notes, goal, figure in _GOALS:
        one = contest.round_of(notes)
        value = figure(one) if one else None
        if value is not None:
            yield goal._replace(notes=notes), value


def _of_scopes(contest: KeptContest) -> Iterator[tuple[Goal, float]]:
    line = contest.scopes.category.line(SHARED) if contest.scopes else None
    if contest.scopes and line and line.ratio:
        name = f"search in one scope of {contest.scopes.scopes:,} / in a store of its own"
        yield Goal(name, 1.5, 1.1, is_most=True, notes=contest.scopes.memories), line.ratio.cpu


def _slower(category: str, peer: str) -> _Figure:
    """Return how many times whyrank's CPU a peer takes."""

    def of(one: KeptRound) -> float | None:
        found = one.category(category)
        line = found.line(peer) if found else None
        return line.ratio.cpu if line and line.ratio else None

    return of


def _faster(category: str, peer: str) -> _Figure:
    """Return how many times a peer's CPU whyrank takes."""

    def of(one: KeptRound) -> float | None:
        ratio = _slower(category, peer)(one)
        return 1 / ratio if ratio else None

    return of


def _recall(one: KeptRound) -> float | None:
    found = one.category("vector")
    line = found.line(OURS) if found else None
    return line.recall if line else None


def _worst_filtered(one: KeptRound) -> float | None:
    recalls = [line.recall for category in one.filtered for line in category.lines if line.recall is not None]
    return min(recalls, default=None)


def _peak(one: KeptRound) -> float | None:
    ours = one.entrant(OURS)
    return ours.cold.get("peak_mb") if ours else None


_USUAL = "search: FTS5 + numpy / whyrank"
_WORDS = "words: FTS5 / whyrank"
_GOALS: tuple[tuple[int, Goal, _Figure], ...] = (
    *((notes, Goal(_USUAL, must, aim), _slower("hybrid", "fts5+numpy"))
      for notes, must, aim in ((10 * _K, 4, 12), (100 * _K, 20, 60), (_M, 40, 100))),
    (100 * _K, Goal("search: LanceDB / whyrank", 2, 5), _slower("hybrid", "lancedb")),
    (10 * _K, Goal("search: Chroma / whyrank", 5, 20), _slower("hybrid", "chroma")),
    (10 * _K, Goal("search: txtai / whyrank", 3, 10), _slower("hybrid", "txtai")),
    (10 * _K, Goal("search: whyrank / qdrant-edge", 12, 4, is_most=True),
     _faster("hybrid", "qdrant-edge")),
    *((notes, Goal(_WORDS, must, aim), _slower("keyword", "fts5+numpy"))
      for notes, must, aim in ((10 * _K, 15, 30), (100 * _K, 60, 130), (_M, 80, 300))),
    (100 * _K, Goal("words: FTS5 without stop words / whyrank", 10, 20),
     _slower("keyword", "fts5 without stop words")),
    (100 * _K, Goal("words: whyrank / tantivy", 1.5, 0.8, is_most=True),
     _faster("keyword", "tantivy")),
    (10 * _K, Goal("a new memory: whyrank / a bare SQLite row", 2, 1.3, is_most=True),
     _faster("insert", "sqlite insert")),
    *((notes, Goal("recall@10 of vectors", 0.99, 0.999), _recall) for notes in (10 * _K, 100 * _K, _M)),
    *((notes, Goal("recall@10 behind a filter, the worst", 0.99, 0.999), _worst_filtered)
      for notes in (10 * _K, 100 * _K, _M)),
    (10 * _K, Goal("ranking and trails, share of a search", 0.25, 0.10, is_most=True),
     lambda one: one.ranking_share),
    (100 * _K, Goal("memory at its peak, MB", 250, 120, is_most=True), _peak),
)  # fmt: skip
