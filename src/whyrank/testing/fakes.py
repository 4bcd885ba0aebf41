"""Deterministic embedder, language model and reranker for tests."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from ..analysis.tokenizer import tokens_of
from ..errors import ProviderError, ProviderTimeout
from ..protocols import Completion, Message, Thresholds
from ..providers.names import STATIC_WEIGHT
from ..types.memory import scale_rows

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ..protocols import Vector


class WordDirections:
    """Fake embedder: texts that share words are near each other; nothing else is known."""

    floor = 0.0
    thresholds = Thresholds(weak=0.4, found=0.9)
    languages: tuple[str, ...] = ()

    def __init__(self, dimension: int = 32, name: str = "word-directions") -> None:
        self.fingerprint = f"testing/{name}@1/{dimension}/no-prompt"
        self._dimension = dimension

    def weight(self, language: str) -> float:
        """Return the weight of the vector vote."""
        return STATIC_WEIGHT

    def documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one unit vector per text."""
        import numpy as np

        rows = np.zeros((len(texts), self._dimension), dtype=np.float32)
        for row, text in zip(rows, texts, strict=True):
            for token in tokens_of(text):
                row += self._direction(token)
        return scale_rows(rows)

    def query(self, text: str) -> Vector:
        """Return the unit vector of a query."""
        vector: Vector = self.documents([text])[0]
        return vector

    def _direction(self, token: str) -> NDArray[np.float32]:
        import numpy as np

        digest = hashlib.shake_128(token.encode("utf-8", errors="replace")).digest(self._dimension)
        return np.frombuffer(digest, dtype=np.uint8).astype(np.float32) / 127.5 - 1.0


Answer = str | ProviderError | Callable[[Sequence[Message]], str]


class RecordedCall(NamedTuple):
    """Arguments of one recorded call."""

    messages: tuple[Message, ...]
    schema: Mapping[str, object] | None
    max_tokens: int | None
    timeout_s: float | None


class ScriptedLlm:
    """Fake language model: returns its answers in order, repeating the last; errors raise, functions run.

    With `takes_s` it sleeps first, and with a shorter timeout it raises ProviderTimeout, as a real one would.
    """

    def __init__(self, *answers: Answer, model: str = "scripted", takes_s: float = 0.0) -> None:
        if not answers:
            raise ValueError("a script needs an answer")
        self._answers = list(answers)
        self.model = model
        self._takes_s = takes_s
        self.asked: list[RecordedCall] = []

    def complete(
        self,
        messages: Sequence[Message],
        *,
        schema: Mapping[str, object] | None = None,
        max_tokens: int | None = None,
        timeout_s: float | None = None,
    ) -> Completion:
        """Return the next answer, with as many tokens as it has words."""
        self.asked.append(RecordedCall(tuple(messages), schema, max_tokens, timeout_s))
        if timeout_s is not None and timeout_s < self._takes_s:
            time.sleep(timeout_s)
            raise ProviderTimeout(f"{self.model} did not answer within {timeout_s:g} seconds", "give it more time")
        time.sleep(self._takes_s)
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(answer, ProviderError):
            raise answer
        text = answer if isinstance(answer, str) else answer(messages)
        return Completion(text, sum(len(message.text.split()) for message in messages), len(text.split()))


@dataclass(frozen=True)
class SharedWords:
    """Fake reranker: the share of query words in a text, plus half the share of adjacent word pairs.

    Ten occurrences of one word count no more than one, and a long text is no worse than a short one.
    """

    pair_weight: float = 0.5

    def scores(self, question: str, texts: Sequence[str]) -> list[float]:
        """Return one number from 0 to 1 + pair_weight for each text."""
        asked = tokens_of(question)
        return [
            _share(asked, tokens) + self.pair_weight * _share([*pairwise(asked)], [*pairwise(tokens)])
            for tokens in map(tokens_of, texts)
        ]


def _share(asked: Sequence[object], there: Sequence[object]) -> float:
    wanted = set(asked)
    return len(wanted & set(there)) / len(wanted) if wanted else 0.0
