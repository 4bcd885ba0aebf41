"""A store without an embedder, and one whose embedder counts the texts it is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np
import pytest

import whyrank
from whyrank.integrations.importers import import_into
from whyrank.protocols import Thresholds

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from whyrank.integrations.importers import ImportReport


class Bring(Protocol):
    """Imports a path of a system into the store of the test."""

    def __call__(self, system: str, path: Path, *, scope: str = "global", dry_run: bool = False) -> ImportReport: ...


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[whyrank.Engine]:
    with whyrank.open(tmp_path / "m.db", workspace=tmp_path, embedding="none", calibration="manual") as opened:
        yield opened


@pytest.fixture
def bring(engine: whyrank.Engine) -> Bring:
    return lambda system, path, **more: import_into(engine, system, path, **more)


class Counting:
    """An embedder of a served model with three dimensions."""

    fingerprint = "openai/tiny-3@served/3/no-prompt"
    languages: tuple[str, ...] = ()
    thresholds = Thresholds(weak=0.25, found=0.36)
    floor = 0.0

    def __init__(self) -> None:
        self.asked: list[str] = []

    def weight(self, language: str) -> float:
        return 0.5

    def documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.asked += texts
        return np.tile(np.array([0.0, 0.0, 1.0], np.float32), (len(texts), 1))

    def query(self, text: str) -> NDArray[np.float32]:
        return np.array([1.0, 0.0, 0.0], np.float32)


@pytest.fixture
def embedder() -> Counting:
    return Counting()


@pytest.fixture
def embedding(tmp_path: Path, embedder: Counting) -> Iterator[whyrank.Engine]:
    with whyrank.open(tmp_path / "v.db", workspace=tmp_path, embedder=embedder, calibration="manual") as opened:
        yield opened
