"""The planted embedder: every note lies exactly as near to every question as its corpus says.

A real model would make checks depend on what it happens to know. Here the cosine of a note and a question is written
down beside the note, so that an engine's order can be compared with what it was given.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from .adapter import Note, Vector

TOPICS = 16  # axes that questions lie on, at most so many in a corpus
PRIVATE = 240  # further axes, in which every text has a direction of its own: cosines of 0 ± 0.06 among themselves
DIMENSION = TOPICS + PRIVATE
_SHORTEST_PART = 12  # characters; a shorter piece of a text does not carry its meaning


@dataclass(frozen=True, slots=True)
class Planted:
    """A note, its cosine to the questions of each topic, and the length of its vector."""

    note: Note
    likeness: Mapping[str, float] = field(default_factory=dict)
    length: float = 1.0


@dataclass(frozen=True)
class Corpus:
    """Notes, and the topic that each question is about."""

    notes: tuple[Planted, ...]
    questions: Mapping[str, str] = field(default_factory=dict)
    question_length: float = 1.0  # of the questions' vectors


class Meanings:
    """An embedder that knows the texts of a corpus; a text that holds one of them, or is a part of one, means it."""

    def __init__(self, corpus: Corpus) -> None:
        topics = list(dict.fromkeys([*corpus.questions.values(), *_topics(corpus)]))
        if len(topics) > TOPICS:
            raise ValueError(f"a corpus has at most {TOPICS} topics, not {len(topics)}")
        self._axes = {topic: axis for axis, topic in enumerate(topics)}
        self._known: dict[str, Vector] = {}
        for planted in corpus.notes:
            self._known[_plain(planted.note.text)] = self._direction(planted) * planted.length
        for text, topic in corpus.questions.items():
            self._known[_plain(text)] = self._axis(topic) * corpus.question_length

    def documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one vector per text, of the length that its corpus gave it."""
        import numpy as np

        return np.stack([self._vector(text) for text in texts]) if texts else np.zeros((0, DIMENSION), np.float32)

    def _vector(self, text: str) -> Vector:
        plain = _plain(text)
        if plain not in self._known:
            self._known[plain] = self._meant(plain)
        return self._known[plain]

    def _meant(self, plain: str) -> Vector:
        held = [known for known in self._known if len(known) >= _SHORTEST_PART and known in plain]
        if held:
            return self._known[max(held, key=len)]
        whole = next((known for known in self._known if len(plain) >= _SHORTEST_PART and plain in known), None)
        return self._known[whole] if whole is not None else _private(plain)

    def _direction(self, planted: Planted) -> Vector:
        import numpy as np

        vector = np.zeros(DIMENSION, dtype=np.float32)
        for topic, cosine in planted.likeness.items():
            vector += cosine * self._axis(topic)
        rest = max(0.0, 1.0 - float(vector @ vector))
        return vector + np.float32(rest**0.5) * _private(_plain(planted.note.text))

    def _axis(self, topic: str) -> Vector:
        import numpy as np

        axis = np.zeros(DIMENSION, dtype=np.float32)
        axis[self._axes[topic]] = 1.0
        return axis


def _topics(corpus: Corpus) -> list[str]:
    return [topic for planted in corpus.notes for topic in planted.likeness]


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())


def _private(plain: str) -> Vector:
    """Return a text's own direction, of unit length, among the axes that no question lies on."""
    import numpy as np

    digest = hashlib.shake_128(plain.encode("utf-8", errors="replace")).digest(PRIVATE)
    own = np.frombuffer(digest, dtype=np.uint8).astype(np.float32) / 127.5 - 1.0
    vector = np.zeros(DIMENSION, dtype=np.float32)
    vector[TOPICS:] = own / np.linalg.norm(own)
    return vector
