"""What the facade does about confidence: measures it for whoever asks, and by itself when a store has grown."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from . import config as settings
from .arguments import Scopes, scopes_of
from .errors import WhyrankError
from .ports import Embedder, Store
from .search.calibration import Calibration, calibrations_in, is_due, keep_calibration
from .serving import Serving
from .types import Scope, Where, visible

if TYPE_CHECKING:
    from .ingest.filling import Progress


class Calibrating:
    """Thresholds of confidence, measured on the memories themselves."""

    _store: Store
    _serving: Serving
    _config: settings.Config
    _clock: Callable[[], float]

    @property
    def _embedder(self) -> Embedder | None:
        """Return the embedder that answers now: another process may have changed it."""
        return self._serving.embedder()

    @property
    def space(self) -> str:
        """Return the name of the embedding space that answers, or nothing without an embedder."""
        embedder = self._embedder
        return embedder.fingerprint if embedder else ""

    def calibrate(self, *, scope: Scopes = None, progress: Progress | None = None) -> Calibration:
        """Measure where evidence begins to mean something among the memories a caller with this scope may see."""
        return self._calibrated(visible(scopes_of(scope)), progress, self._embedder)

    def calibrations(self) -> Sequence[Calibration]:
        """Return what was measured with this embedder, for each set of scopes."""
        return calibrations_in(self._store, self.space)

    def _calibrated(
        self, scopes: frozenset[Scope], progress: Progress | None, embedder: Embedder | None
    ) -> Calibration:
        from .search.calibrating import calibrate  # of no use to a search, which should not wait for it

        where = Where(scopes, now=self._clock())
        told = [progress] if progress else []
        made = calibrate(self._store, embedder, self._config["language"], where, *told)
        keep_calibration(self._store, made)
        return made

    def _recalibrate(
        self, owners: Sequence[Scope], progress: Progress | None = None, embedder: Embedder | None = None
    ) -> list[str]:
        """Calibrate what has outgrown its calibration; the memories are stored, so a failure is only a remark."""
        if self._config["calibration"] != "automatic":
            return []
        remarks = []
        embedder = embedder or self._embedder
        space = embedder.fingerprint if embedder else ""
        for owner in owners:
            scopes = visible([owner])
            try:
                if is_due(self._store, space, scopes):
                    self._calibrated(scopes, progress, embedder)
            except WhyrankError as error:
                remarks.append(f"not done: {error.message}")
        return remarks
