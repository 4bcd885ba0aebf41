"""What the regressions share: an engine on a fresh store."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import whyrank

OpenEngine = Callable[..., whyrank.Engine]


@pytest.fixture
def open_engine(tmp_path: Path) -> Iterator[OpenEngine]:
    """Open an engine on a fresh store, filled with facts; the embedded default unless another embedder is named."""
    opened: list[whyrank.Engine] = []

    def make(*facts: str, embedding: str = "wordllama", scope: str = "global") -> whyrank.Engine:
        engine = whyrank.open(tmp_path / f"{len(opened)}.db", workspace=tmp_path, embedding=embedding)
        opened.append(engine)
        for fact in facts:
            engine.add(fact, scope=scope)
        return engine

    yield make
    for engine in opened:
        engine.close()
