"""What is written out only when somebody reads it, and what it is then."""

from __future__ import annotations

import copy
import pickle

from whyrank.types.memory import Memory
from whyrank.types.results import Hit
from whyrank.types.trail import Later, Step

STEPS = (Step("fusion", "set", 0.5), Step("confidence", "note", 0.9, "90%"))


def test_steps_are_written_out_once_and_only_when_somebody_reads_them() -> None:
    written: list[int] = []

    def write(place: int) -> tuple[Step, ...]:
        written.append(place)
        return STEPS

    later = Later(write, 7)
    assert written == []
    assert (later[0], later[-1], len(later), later[:1]) == (STEPS[0], STEPS[1], 2, STEPS[:1])
    assert written == [7]


def test_what_waits_equals_what_it_is_and_copies_as_that() -> None:
    later = Later(lambda place: STEPS, 0)
    waiting, made = Hit(Memory("a", "tea"), trail=later), Hit(Memory("a", "tea"), trail=STEPS)
    assert waiting == made
    assert made == waiting
    assert (hash(later), repr(later)) == (hash(STEPS), repr(STEPS))
    assert type(copy.deepcopy(later)) is type(pickle.loads(pickle.dumps(later))) is tuple
