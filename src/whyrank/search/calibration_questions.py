"""Off-topic questions for calibration: their scores in a store are those of chance matches.

They cover a hundred topics (`calibration_questions.json`). A store on one of these topics answers a few of them, never
most, so a calibration uses the bulk of their scores and not the best.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from itertools import cycle, islice

FALLBACK = "en"
QUESTIONS: Mapping[str, Sequence[str]] = json.loads(
    (files(__package__) / "calibration_questions.json").read_text(encoding="utf-8")
)


def off_topic(languages: Iterable[str], count: int) -> list[str]:
    """Return up to `count` questions, distributed over the languages as often as they are named.

    A language without questions gets the English ones: their words occur in no text of another script, which is as
    off-topic as a question can be.
    """
    spoken = [language if language in QUESTIONS else FALLBACK for language in languages] or [FALLBACK]
    hands = {language: iter(QUESTIONS[language]) for language in dict.fromkeys(spoken)}
    turns = islice(cycle(_mixed(spoken)), count * len(hands))
    dealt = (next(hands[language], None) for language in turns)
    return [question for question in dealt if question is not None][:count]


def _mixed(spoken: Sequence[str]) -> list[str]:
    """Order the languages so that every stretch holds them in about the same proportion."""
    sizes = Counter(spoken)
    seen: Counter[str] = Counter()
    places = []
    for language in spoken:
        places.append((seen[language] / sizes[language], language))
        seen[language] += 1
    return [language for _, language in sorted(places)]
