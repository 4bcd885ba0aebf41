"""Two models side by side before one takes over: how much of their answers is alike, which pins would be lost."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from ..types import Memory
from ..wording import counted
from .pinboard import Checked, Checkup, Pinboard, Subject

Tick = Callable[[int, int, str], None]

DEPTH = 10  # results that are compared
_WORDS = 12  # of a memory's beginning make a question
_SENTENCE = re.compile(r"(?<=[.!?。！？])\s")
_MARKUP = re.compile(r"[#*_`>|\[\](){}\"]+")


@dataclass(frozen=True)
class Agreement:
    """How two models answer the same questions; no check-ups where nothing is pinned."""

    questions: int
    overlap: float
    before: Checkup | None = None
    after: Checkup | None = None

    @property
    def lost(self) -> tuple[Checked, ...]:
        """Return the pins that the model before keeps and the new one loses."""
        if self.before is None or self.after is None:
            return ()
        kept = {one.pin.key for one in self.before.checked if one.status != "lost"}
        return tuple(one for one in self.after.checked if one.status == "lost" and one.pin.key in kept)

    def __str__(self) -> str:
        alike = (
            f"{self.overlap:.0%} of the first {DEPTH} results are the same over {counted(self.questions, 'question')}"
        )
        if self.after is None:
            return f"{alike}; nothing is pinned"
        return f"{alike}; of the pins it loses {len(self.lost) or 'none'} of {len(self.after.checked)}"


def compare(
    before: Subject, after: Subject, memories: Sequence[Memory], pins: Pinboard, recipe: object, tick: Tick
) -> Agreement:
    """Ask both models the beginnings of memories, each in the memory's own scope, and every pinned query."""
    asked = [(question, memory) for memory in memories if (question := question_of(memory))]
    shares = []
    for number, (question, memory) in enumerate(asked, 1):
        first, second = (_ids(subject, question, memory, recipe) for subject in (before, after))
        shares.append(overlap(first, second))
        tick(number, len(asked), question)
    mean = sum(shares) / len(shares) if shares else 1.0
    if not pins.pins(None):
        return Agreement(len(asked), mean)
    checkups = (Pinboard(pins.file, subject).check(None, recipe, tick) for subject in (before, after))
    return Agreement(len(asked), mean, *checkups)


def question_of(memory: Memory) -> str:
    """Return the first words of the first sentence of a memory."""
    first = _SENTENCE.split(_MARKUP.sub(" ", memory.text).strip(), maxsplit=1)[0]
    return " ".join(first.split()[:_WORDS])


def overlap(first: Iterable[str], second: Iterable[str]) -> float:
    """Return the share of the longer list that stands in both; two empty lists agree."""
    ours, theirs = set(first), set(second)
    longer = max(len(ours), len(theirs))
    return len(ours & theirs) / longer if longer else 1.0


def _ids(subject: Subject, question: str, memory: Memory, recipe: object) -> list[str]:
    results = subject.search(question, limit=DEPTH, recipe=recipe, scope=[str(memory.scope)])
    return [hit.id for hit in results]
