"""Chat with a language model behind an OpenAI-compatible server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..errors import ProviderGarbage, ProviderRefused
from ..ports import Completion, Message
from ..transport.asking import Transport
from ..transport.endpoint import Patience

_NOT_UNDERSTOOD = frozenset({400, 415, 422, 501})
# What servers understand: some know no schemas, and models that reason neither a temperature nor `max_tokens`.
_WITH_SCHEMA, _NO_SCHEMA, _BARE, _DIALECTS = range(4)


class OpenAiChat:
    """Answers from `/v1/chat/completions`, as repeatable as the server makes them: the temperature is 0."""

    def __init__(self, model: str, transport: Transport) -> None:
        self._model = model
        self._transport = transport
        self._dialect = _WITH_SCHEMA

    def __repr__(self) -> str:
        return f"OpenAiChat({self._model!r}, {self._transport!r})"

    @property
    def model(self) -> str:
        """Name the model, for reports and trails."""
        return self._model

    def complete(
        self,
        messages: Sequence[Message],
        *,
        schema: Mapping[str, object] | None = None,
        max_tokens: int | None = None,
        timeout_s: float | None = None,
    ) -> Completion:
        """Return the model's answer; a schema is asked for, and done without where the server does not take it."""
        asked: dict[str, object] = {
            "model": self._model,
            "messages": [{"role": message.role, "content": message.text} for message in messages],
            "temperature": 0,
        }
        if max_tokens is not None:
            asked["max_tokens"] = max_tokens
        return self._read(self._answer(asked, schema, self._patience(timeout_s)))

    def _patience(self, timeout_s: float | None) -> Patience:
        patience = self._transport.patience
        return patience if timeout_s is None else replace(patience, total_s=timeout_s, attempt_s=timeout_s)

    def _answer(
        self, asked: dict[str, object], schema: Mapping[str, object] | None, patience: Patience
    ) -> dict[str, Any]:
        """Ask in the richest dialect the server is not known to refuse; where none helps, its first refusal counts."""
        refusals: list[ProviderRefused] = []
        for dialect in range(self._dialect if schema is not None else max(self._dialect, _NO_SCHEMA), _DIALECTS):
            try:
                answer = self._transport.post("chat/completions", _put(asked, schema, dialect), patience=patience)
            except ProviderRefused as error:
                if error.status not in _NOT_UNDERSTOOD:
                    raise
                refusals.append(error)
                continue
            if refusals:
                self._dialect = dialect  # only now is it known what it does not take
            return answer
        raise refusals[0]

    def _read(self, answer: Mapping[str, Any]) -> Completion:
        choices = answer.get("choices")
        first = choices[0] if isinstance(choices, list) and choices else None
        message = first.get("message") if isinstance(first, dict) else None
        text = message.get("content") if isinstance(message, dict) else None
        if not isinstance(text, str):
            host = self._transport.endpoint.host
            raise ProviderGarbage(f"the llm at {host} gave no answer", "are llm.url and llm.model right?")
        usage = answer.get("usage")
        counts = usage if isinstance(usage, dict) else {}
        return Completion(text, _count(counts.get("prompt_tokens")), _count(counts.get("completion_tokens")))


def _put(asked: Mapping[str, object], schema: Mapping[str, object] | None, dialect: int) -> dict[str, object]:
    """Return a request in one dialect."""
    put = dict(asked)
    if dialect == _WITH_SCHEMA and schema is not None:
        shape = {"name": "answer", "strict": True, "schema": dict(schema)}
        put["response_format"] = {"type": "json_schema", "json_schema": shape}
    if dialect == _BARE:
        del put["temperature"]
        if "max_tokens" in put:
            put["max_completion_tokens"] = put.pop("max_tokens")
    return put


def _count(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0
