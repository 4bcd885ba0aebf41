"""How much the surroundings of a memory count beside its own text.

Context is added, never concatenated: neighbours blurred into the unit make it worse.
"""

from __future__ import annotations

from enum import IntEnum

WINDOW_TURNS = 2  # turns before and after a turn, in the same session
# What a matching turn gains when the question names its speaker and nobody else: a share of the best score there is.
SPEAKER_SHARE = 0.1


class Unit(IntEnum):
    """What a memory is, as far as its surroundings go."""

    FACT = 0
    CHUNK = 1
    TURN = 2


# A chunk counts half beside its file, a turn as much as its window; a fact has no surroundings and counts for both.
OWN_WEIGHT = {Unit.FACT: 1.5, Unit.CHUNK: 0.5, Unit.TURN: 1.0}
