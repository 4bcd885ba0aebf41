"""A language model that answers as it was told to: for tests of whatever asks one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ..ports import Completion, Message

Script = Sequence[str | Completion | Exception] | Callable[[Sequence[Message]], str]


class ScriptedLlm:
    """Gives the answers of its script one after the other, or what a function makes of the messages."""

    def __init__(self, script: Script, model: str = "scripted") -> None:
        self._script = script
        self._model = model
        self.asked: list[tuple[Message, ...]] = []

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
        """Return the next answer, or raise it; what was asked is kept in `asked`."""
        number = len(self.asked)
        self.asked.append(tuple(messages))
        answer = self._script(messages) if callable(self._script) else self._script[number]
        if isinstance(answer, Exception):
            raise answer
        return answer if isinstance(answer, Completion) else Completion(answer)
