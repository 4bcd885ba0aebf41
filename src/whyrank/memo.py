"""What a function makes of words, each worked out once: a text says most of its words again and again."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Generic, TypeVar

MOST_WORDS = 65_536  # kept; some ten megabytes
LONGEST_WORD = 64  # letters; what is longer is data, or a script without spaces, and does not come again

Made = TypeVar("Made")


class Memo(dict[str, Made], Generic[Made]):
    """A dictionary that makes what it lacks: `map(memo.__getitem__, words)` runs no line of Python for known words."""

    def __init__(self, make: Callable[[str], Made], most: int = MOST_WORDS) -> None:
        super().__init__()
        self._make = make
        self._most = most

    def __missing__(self, word: str) -> Made:
        made = self._make(word)
        if len(word) <= LONGEST_WORD:
            if len(self) >= self._most:
                self._forget()
            self[word] = made
        return made

    def _forget(self) -> None:
        """Let the older half go; what is said often is back with its next word."""
        for word in [*islice(self, self._most // 2)]:
            self.pop(word, None)  # another thread may have been faster
