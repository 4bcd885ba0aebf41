"""Cross-encoders: models that score a query and a text together."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ...errors import ProviderError
from .description import TOKENIZER, Description
from .embedder import Graph, check_runtime, feed, fetching_hint, open_session, open_tokenizer, scoring_graph

if TYPE_CHECKING:
    from onnxruntime import InferenceSession
    from tokenizers import Tokenizer


_QUESTION_SHARE = 0.5  # of the model's token limit; the rest is for the text


class CrossEncoder:
    """A reranker in ONNX; a text over the token limit is truncated."""

    def __init__(self, description: Description, folder: Path, threads: int = 1) -> None:
        self.description = description
        self._folder = folder
        self._threads = threads

    def __repr__(self) -> str:
        return f"{self.description.name}@{self.description.revision}"

    def scores(self, question: str, texts: Sequence[str]) -> list[float]:
        """Return a number from 0 to 1 for each text: the logistic function of the model's logit."""
        name = self.description.name
        check_runtime(name)
        if not self.description.is_at(self._folder):
            raise ProviderError(f"{name} is not in {self._folder}", fetching_hint(name))
        # One pair at a time: a score then depends on its pair alone.
        return [self._score(question, text) for text in texts]

    def _score(self, question: str, text: str) -> float:
        tokenizer = self._tokenizer
        room = self.description.max_tokens - tokenizer.num_special_tokens_to_add(True)
        first = tokenizer.encode(question, add_special_tokens=False)
        first.truncate(max(1, int(room * _QUESTION_SHARE)))
        second = tokenizer.encode(text, add_special_tokens=False)
        second.truncate(max(1, room - len(first.ids)))
        pair = tokenizer.post_process(first, second)
        ids, types = (np.array([values], np.int64) for values in (pair.ids, pair.type_ids))
        [logits] = self._session.run([self._graph.output], feed(self._graph, ids, types))
        if logits.shape not in ((1, 1), (1, 2)):
            raise ProviderError(
                f"{self.description.name} gives scores of shape {logits.shape} for one pair",
                "a cross-encoder gives one or two logits for each",
            )
        # Of two logits the second is that of "relevant", and their difference is the single logit.
        logit = float(logits[0, -1]) - (float(logits[0, 0]) if logits.shape[1] == 2 else 0.0)
        return 0.5 * (1 + math.tanh(logit / 2))

    @cached_property
    def _session(self) -> InferenceSession:
        return open_session(self._folder / self.description.graph, self.description.name, self._threads)

    @cached_property
    def _graph(self) -> Graph:
        return scoring_graph(self._session, self.description.name)

    @cached_property
    def _tokenizer(self) -> Tokenizer:
        return open_tokenizer(self._folder / TOKENIZER, self.description.name)
