"""A language model for tests that says what it was told to say."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from ..errors import ProviderError, ProviderTimeout
from ..ports import Completion, Message

Answer = str | ProviderError | Callable[[Sequence[Message]], str]


class Asked(NamedTuple):
    """One call as it was made."""

    messages: tuple[Message, ...]
    schema: Mapping[str, object] | None
    max_tokens: int | None
    timeout_s: float | None


class ScriptedLlm:
    """Gives out its answers one after the other, the last one for ever; an error is raised, a function called.

    With `takes_s` it thinks first, and where it was given less time than that it is late, as a real one would be.
    """

    def __init__(self, *answers: Answer, model: str = "scripted", takes_s: float = 0.0) -> None:
        if not answers:
            raise ValueError("a script needs an answer")
        self._answers = list(answers)
        self._model = model
        self._takes_s = takes_s
        self.asked: list[Asked] = []

    @property
    def model(self) -> str:
        """Name the model."""
        return self._model

    def complete(
        self,
        messages: Sequence[Message],
        *,
        schema: Mapping[str, object] | None = None,
        max_tokens: int | None = None,
        timeout_s: float | None = None,
    ) -> Completion:
        """Return the next answer, with as many tokens as it has words."""
        self.asked.append(Asked(tuple(messages), schema, max_tokens, timeout_s))
        self._think(timeout_s)
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(answer, ProviderError):
            raise answer
        text = answer if isinstance(answer, str) else answer(messages)
        return Completion(text, sum(len(message.text.split()) for message in messages), len(text.split()))

    def _think(self, timeout_s: float | None) -> None:
        if timeout_s is not None and timeout_s < self._takes_s:
            time.sleep(timeout_s)
            raise ProviderTimeout(f"{self._model} did not answer within {timeout_s:g} seconds", "give it more time")
        time.sleep(self._takes_s)
