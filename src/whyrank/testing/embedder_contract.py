"""Contract tests of embedders: subclass `EmbedderContract`, define `make`, run pytest."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..protocols import Embedder

TEXTS = ("what does Suzy drink?", "green tea", "日本語", "x" * 3_000)


class EmbedderContract:
    """The contract of embedders: subclass this and define `make`."""

    def make(self) -> Embedder:
        """Return the embedder under test."""
        raise NotImplementedError

    def test_every_text_gets_a_unit_vector_of_one_dimension(self) -> None:
        """As many rows as texts, each of length 1."""
        rows = self.make().documents(TEXTS)
        assert rows.shape[0] == len(TEXTS)
        assert rows.dtype.name == "float32"
        for row in rows.tolist():
            assert abs(math.fsum(value * value for value in row) - 1.0) < 1e-3

    def test_the_same_text_gets_the_same_vector_in_any_batch(self) -> None:
        """A vector depends on its text alone."""
        embedder = self.make()
        alone = [embedder.documents([text])[0].tolist() for text in TEXTS]
        assert embedder.documents(TEXTS).tolist() == alone

    def test_a_question_has_the_dimension_of_the_documents(self) -> None:
        """Queries and documents share one space."""
        embedder = self.make()
        assert embedder.query("tea").shape == embedder.documents(["tea"])[0].shape

    def test_no_text_at_all_is_no_error(self) -> None:
        """An empty batch gives no rows, an empty text a zero row."""
        embedder = self.make()
        assert len(embedder.documents([])) == 0
        assert not embedder.documents([""])[0].any()

    def test_a_question_is_nearest_to_itself(self) -> None:
        """A text is nearer to itself than to another."""
        embedder = self.make()
        near = embedder.documents(["green tea", "the tax office"]) @ embedder.query("green tea")
        assert near[0] > near[1]

    def test_the_space_has_a_name_and_votes_are_shares(self) -> None:
        """The fingerprint names the space, weights lie between 0 and 1, the floor below 1, thresholds rise."""
        embedder = self.make()
        assert embedder.fingerprint.count("/") >= 2
        assert all(0 <= embedder.weight(language) <= 1 for language in ("en", "de", "zh", "xx"))
        assert embedder.floor is None or 0 <= embedder.floor < 1
        assert all(len(language) == 2 for language in embedder.languages)
        assert embedder.thresholds.weak < embedder.thresholds.found
