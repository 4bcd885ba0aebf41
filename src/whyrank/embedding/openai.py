"""A model behind an OpenAI-compatible server: batches over HTTP, and nothing believed that was not checked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import ProviderGarbage, ProviderRefused
from ..ports import Thresholds
from ..transport.asking import Transport
from ..transport.endpoint import Patience
from .prompts import NO_PROMPT, Prompts
from .vectors import TRANSFORMER_WEIGHT, unit_rows

# Answers that may mean "too much at once", so that half of it may do.
_TOO_MUCH = frozenset({400, 413, 422})
_TOO_LARGE = 413
_PROBE = "how long is a vector?"
# Somebody waits for the answer to a question, and words and names can give one.
_QUESTION_ATTEMPTS = 2
_QUESTION_PAUSE_S = 0.25


@dataclass(frozen=True)
class Served:
    """What is known of a served model before it is asked: what settings say."""

    model: str
    dimension: int | None = None
    prompts: Prompts = NO_PROMPT
    weight: float = TRANSFORMER_WEIGHT
    batch: int = 64

    @property
    def fingerprint(self) -> str:
        """Name the space; where it is served is not part of it, so that a server may move."""
        prompt = "no-prompt" if self.prompts == NO_PROMPT else self.prompts.name
        return f"openai/{self.model}@served/{self.dimension or 'own'}/{prompt}"


class OpenAiEmbedder:
    """Unit vectors from `/v1/embeddings`."""

    # Models differ; these are MiniLM's, and calibration measures a store's own.
    thresholds = Thresholds(weak=0.4, found=0.65)

    def __init__(self, served: Served, transport: Transport) -> None:
        self._served = served
        self._transport = transport
        self._dimension = served.dimension
        self._batch = served.batch

    def __repr__(self) -> str:
        return f"OpenAiEmbedder({self._served!r}, {self._transport!r})"

    @property
    def fingerprint(self) -> str:
        """Name the space: provider, model, revision, dimension and prompts."""
        return self._served.fingerprint

    def weight(self, language: str) -> float:
        """Return what its vote is worth; which languages a served model knows nobody says."""
        return self._served.weight

    def documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one unit vector per text; a blank text gets a zero row and is not sent."""
        return self._rows(texts, self._served.prompts.passage, self._transport.patience)

    def query(self, text: str) -> NDArray[np.float32]:
        """Return the unit vector of a question."""
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
        """Return the dimension; a model that was asked for nothing but blanks has to be asked for it."""
        if self._dimension is None and is_asked:
            self._embedded([_PROBE], patience)
        return self._dimension or 0

    def _embedded(self, texts: Sequence[str], patience: Patience) -> list[NDArray[np.float32]]:
        """Embed one batch, and where it is refused as too much, its halves."""
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
            # The text itself is not quoted: what is said here is kept, and shown to others than its owner.
            message = f"{error.message}; it was one text of {len(texts[0])} letters"
            raise ProviderRefused(message, error.hint, status=error.status) from error
        middle = len(texts) // 2
        if error.status == _TOO_LARGE:
            self._batch = min(self._batch, max(middle, 1))  # so that the next batch is not refused as well
        return [*self._embedded(texts[:middle], patience), *self._embedded(texts[middle:], patience)]

    # -- what is not believed --------------------------------------------------------------------------------------

    def _checked(self, answer: dict[str, Any], wanted: int) -> NDArray[np.float32]:
        """Return the vectors in the order of the texts, at unit length; refuse whatever is wrong with them."""
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
        return unit_rows((table / largest).astype(np.float32))

    def _in_order(self, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        places = [row.get("index") for row in rows]
        if places == [None] * len(rows):
            return rows
        if sorted(place for place in places if isinstance(place, int)) != list(range(len(rows))):
            raise self._garbage("embeddings that do not say which text they are of")
        return sorted(rows, key=lambda row: int(row["index"]))

    def _numbers(self, vector: Any) -> list[float]:
        if not isinstance(vector, list) or not vector or not all(type(value) in (int, float) for value in vector):
            raise self._garbage("an embedding that is no list of numbers")
        if self._dimension is None:
            self._dimension = len(vector)
        if len(vector) != self._dimension:
            raise self._garbage(f"a vector of {len(vector)} numbers instead of {self._dimension}")
        return vector

    def _garbage(self, what: str) -> ProviderGarbage:
        hint = "are embedder.model and embedder.url right, and does the model have embedder.dimension, if that is set?"
        return ProviderGarbage(f"the embedder at {self._transport.endpoint.host} gave {what}", hint)
