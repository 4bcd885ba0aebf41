"""A model that is not here: words and names answer without it, and it says what is missing when it is needed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NoReturn

from ..errors import ProviderUnavailable, WhyrankError
from ..ports import Thresholds, Vector

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class MissingModel:
    """Stands for an embedder whose model is not installed on this machine."""

    thresholds = Thresholds(weak=0.35, found=0.7)  # never read: no vector of it speaks

    def __init__(self, fingerprint: str, error: WhyrankError) -> None:
        self.fingerprint = fingerprint
        self.error = error

    def weight(self, language: str) -> float:
        """Return what its vote is worth: nothing."""
        return 0.0

    def documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Say what is missing."""
        self._refuse()

    def query(self, text: str) -> Vector:
        """Say what is missing."""
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise ProviderUnavailable(self.error.message, self.error.hint) from self.error
