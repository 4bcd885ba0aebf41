"""Embeddings and chat behind an OpenAI-compatible server."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import ProviderGarbage, ProviderRefused
from ..protocols import Completion, Message, Thresholds
from ..types.memory import scale_rows
from .names import NO_PROMPT, TRANSFORMER_WEIGHT, Prompts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from .endpoint import Patience
    from .http import Transport

# Statuses that may mean "too much at once": the batch is halved.
_TOO_MUCH = frozenset({400, 413, 422})
_TOO_LARGE = 413
_PROBE = "how long is a vector?"
# A query is interactive, and keywords and names can answer it without a vector.
_QUESTION_ATTEMPTS = 2
_QUESTION_PAUSE_S = 0.25


@dataclass(frozen=True)
class ServedModel:
    """Configured properties of a served model, known before the first request."""

    model: str
    dimension: int | None = None
    prompts: Prompts = NO_PROMPT
    weight: float = TRANSFORMER_WEIGHT
    batch: int = 64

    @property
    def fingerprint(self) -> str:
        """Return the name of the space; the URL is not part of it, so that a server may move."""
        prompt = "no-prompt" if self.prompts == NO_PROMPT else self.prompts.name
        return f"openai/{self.model}@served/{self.dimension or 'own'}/{prompt}"


class OpenAiEmbedder:
    """Unit vectors from `/v1/embeddings`."""

    languages: tuple[str, ...] = ()
    # Models differ; these are MiniLM's, and calibration measures a store's own.
    thresholds = Thresholds(weak=0.25, found=0.36)
    floor = None  # of some served models it is 0.7: calibration measures it

    def __init__(self, served: ServedModel, transport: Transport) -> None:
        self.fingerprint = served.fingerprint
        self._served = served
        self._transport = transport
        self._dimension = served.dimension
        self._batch = served.batch

    def __repr__(self) -> str:
        return f"OpenAiEmbedder({self._served!r}, {self._transport!r})"

    def weight(self, language: str) -> float:
        """Return the weight of the vector vote; the languages of a served model are unknown."""
        return self._served.weight

    def documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one unit vector per text; a blank text gets a zero row and is not sent."""
        return self._rows(texts, self._served.prompts.passage, self._transport.patience)

    def query(self, text: str) -> NDArray[np.float32]:
        """Return the unit vector of a query, with fewer attempts and shorter pauses than for documents."""
        patience = self._transport.patience
        hurried = replace(
            patience,
            total_s=min(patience.attempt_s, patience.total_s),
            attempts=min(_QUESTION_ATTEMPTS, patience.attempts),
            first_pause_s=min(_QUESTION_PAUSE_S, patience.first_pause_s),
        )
        row: NDArray[np.float32] = self._rows([text], self._served.prompts.query, hurried)[0]
        return row

    def _rows(self, texts: Sequence[str], prompt: str, patience: Patience) -> NDArray[np.float32]:
        said = [place for place, text in enumerate(texts) if text.strip()]
        found: list[NDArray[np.float32]] = []
        while len(found) < len(said):
            batch = said[len(found) : len(found) + self._batch]
            found += self._embedded([prompt + texts[place] for place in batch], patience)
        rows = np.zeros((len(texts), self._width(bool(texts), patience)), dtype=np.float32)
        for place, row in zip(said, found, strict=True):
            rows[place] = row
        return rows

    def _width(self, is_asked: bool, patience: Patience) -> int:
        """Return the dimension; if only blank texts were given, send a probe to learn it."""
        if self._dimension is None and is_asked:
            self._embedded([_PROBE], patience)
        return self._dimension or 0

    def _embedded(self, texts: Sequence[str], patience: Patience) -> list[NDArray[np.float32]]:
        """Embed one batch; if it is refused as too large, embed its halves."""
        asked: dict[str, object] = {"model": self._served.model, "input": list(texts)}
        if self._served.dimension is not None:
            asked["dimensions"] = self._served.dimension
        try:
            answer = self._transport.post("embeddings", asked, patience=patience)
        except ProviderRefused as error:
            if error.status not in _TOO_MUCH:
                raise
            return self._halved(texts, patience, error)
        return list(self._checked(answer, len(texts)))

    def _halved(self, texts: Sequence[str], patience: Patience, error: ProviderRefused) -> list[NDArray[np.float32]]:
        if len(texts) == 1:
            # The text itself is not quoted: the message is stored, and shown to others than its owner.
            message = f"{error.message}; it was one text of {len(texts[0])} letters"
            raise ProviderRefused(message, error.hint, status=error.status) from error
        middle = len(texts) // 2
        if error.status == _TOO_LARGE:
            self._batch = min(self._batch, max(middle, 1))  # so that the next batch is not refused as well
        return [*self._embedded(texts[:middle], patience), *self._embedded(texts[middle:], patience)]

    # -- validation of responses -----------------------------------------------------------------------------------

    def _checked(self, answer: dict[str, Any], wanted: int) -> NDArray[np.float32]:
        """Return the vectors in the order of the texts, at unit length; refuse invalid ones."""
        rows = answer.get("data")
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            raise self._garbage("no list of embeddings")
        if len(rows) != wanted:
            raise self._garbage(f"{len(rows)} embeddings for {wanted} texts")
        vectors = [self._numbers(row.get("embedding")) for row in self._in_order(rows)]
        table = np.array(vectors, dtype=np.float64)
        largest = np.abs(table).max(axis=1, keepdims=True)
        if not np.isfinite(largest).all():
            raise self._garbage("numbers that are not finite")
        if not (largest > 0).all():
            raise self._garbage("a vector of zeros")
        return scale_rows((table / largest).astype(np.float32))

    def _in_order(self, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        places = [row.get("index") for row in rows]
        if places == [None] * len(rows):
            return rows
        if sorted(place for place in places if isinstance(place, int)) != list(range(len(rows))):
            raise self._garbage("embeddings without the index of their text")
        return sorted(rows, key=lambda row: int(row["index"]))

    def _numbers(self, vector: Any) -> list[float]:
        if not isinstance(vector, list) or not vector or not all(type(value) in (int, float) for value in vector):
            raise self._garbage("an embedding that is not a list of numbers")
        if self._dimension is None:
            self._dimension = len(vector)
        if len(vector) != self._dimension:
            raise self._garbage(f"a vector of {len(vector)} numbers instead of {self._dimension}")
        return vector

    def _garbage(self, what: str) -> ProviderGarbage:
        hint = "are embedder.model and embedder.url right, and does the model have embedder.dimension, if that is set?"
        return ProviderGarbage(f"the embedder at {self._transport.endpoint.host} gave {what}", hint)


_NOT_UNDERSTOOD = frozenset({400, 415, 422, 501})
# Dialects of servers: some know no schemas, and reasoning models neither a temperature nor `max_tokens`.
_WITH_SCHEMA, _NO_SCHEMA, _BARE, _DIALECTS = range(4)


class OpenAiChat:
    """Completions from `/v1/chat/completions`, with temperature 0 for repeatability."""

    def __init__(self, model: str, transport: Transport) -> None:
        self.model = model
        self._transport = transport
        self._dialect = _WITH_SCHEMA

    def __repr__(self) -> str:
        return f"OpenAiChat({self.model!r}, {self._transport!r})"

    def complete(
        self,
        messages: Sequence[Message],
        *,
        schema: Mapping[str, object] | None = None,
        max_tokens: int | None = None,
        timeout_s: float | None = None,
    ) -> Completion:
        """Return the completion; a schema is sent if the server accepts schemas."""
        asked: dict[str, object] = {
            "model": self.model,
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
        """Send the richest dialect not known to be refused; if all are refused, raise the first refusal."""
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
