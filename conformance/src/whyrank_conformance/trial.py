"""What a check works with: an engine opened on a planted corpus, and the trials it is put to."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING

from .adapter import Ability, Adapter, Answer, Question, Setup
from .meanings import DIMENSION, Corpus, Meanings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

_TOLD = 6  # ids of an answer that are written down


@dataclass(frozen=True, slots=True)
class Trial:
    """One thing tried: what was asked, what was expected, what came back."""

    passed: bool
    asked: str
    expected: str
    got: str


class Lab:
    """Opens one engine on corpus after corpus, each in a folder of its own."""

    def __init__(self, make: Callable[[], Adapter], folder: Path, seed: int = 1) -> None:
        self._make = make
        self._folder = folder
        self._numbers = count(1)
        self.seed = seed

    @contextmanager
    def planted(self, corpus: Corpus, *, own_model: bool = False) -> Iterator[Adapter]:
        """Open the engine in a new folder and let it hold a corpus."""
        place = self._folder / f"{next(self._numbers)}"
        place.mkdir(parents=True)
        engine = self._make()
        engine.open(Setup(place, Meanings(corpus).documents, DIMENSION, own_model))
        try:
            engine.add([one.note for one in corpus.notes])
            yield engine
        finally:
            engine.close()

    def ask(self, corpus: Corpus, question: Question) -> Answer:
        """Open, ask one question and close."""
        with self.planted(corpus) as engine:
            return engine.search(question)

    def promises(self, ability: Ability) -> bool:
        """Tell whether the engine promises something."""
        return ability in self._make().promises


def told(ids: Sequence[str]) -> str:
    """Write an answer's ids down."""
    if not ids:
        return "nothing"
    more = f" and {len(ids) - _TOLD} more" if len(ids) > _TOLD else ""
    return ", ".join(ids[:_TOLD]) + more


def quoted(question: Question) -> str:
    """Write a question down."""
    scope = f" in the scope {question.scope}" if question.scope else ""
    least = f" with a least relevance of {question.minimum}" if question.minimum is not None else ""
    return f"“{printable(question.text)}”, {_results(question.limit)}{scope}{least}"


def _results(limit: int) -> str:
    return "1 result" if limit == 1 else f"{limit:,} results"


def printable(text: str) -> str:
    """Return a text with what cannot be shown written as its code."""
    return "".join(letter if letter.isprintable() else f"\\x{ord(letter):02x}" for letter in text)


def among(answer: Answer, id: str, first: int, question: Question, why: str) -> Trial:
    """Try whether a note is among the first so many."""
    place = "first" if first == 1 else f"among the first {first}"
    return Trial(id in answer.ids[:first], quoted(question), f"“{id}” {place}: {why}", told(answer.ids))


def before(answer: Answer, better: str, worse: str, question: Question, why: str) -> Trial:
    """Try whether one note comes before another; one that is missing comes after all."""
    ids = answer.ids
    passed = better in ids and (worse not in ids or ids.index(better) < ids.index(worse))
    return Trial(passed, quoted(question), f"“{better}” before “{worse}”: {why}", told(ids))
