"""What the regressions share: an engine on a fresh store."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest

import whyrank
from whyrank.config import load as settings
from whyrank.providers.registry import embedder_named
from whyrank.storage.sqlite.postings.kernel import NUMPY
from whyrank.storage.store import SqliteStore

if TYPE_CHECKING:
    from pathlib import Path

OpenEngine = Callable[..., whyrank.Engine]


@pytest.fixture(params=[True, False], ids=["compiled", "plain"])
def open_engine(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[OpenEngine]:
    """Open an engine on a fresh store, filled with facts; the embedded default unless another embedder is named."""
    opened: list[whyrank.Engine] = []

    def plain(path: Path, embedding: str) -> whyrank.Engine:
        config = settings.load({"store": str(path), "embedding": embedding}, workspace=tmp_path)
        return whyrank.Engine(SqliteStore(path, kernel=NUMPY), embedder_named(embedding), config)

    def make(*facts: str, embedding: str = "wordllama", scope: str = "global") -> whyrank.Engine:
        path = tmp_path / f"{len(opened)}.db"
        is_compiled = request.param
        engine = whyrank.open(path, workspace=tmp_path, embedding=embedding) if is_compiled else plain(path, embedding)
        opened.append(engine)
        for fact in facts:
            engine.add(fact, scope=scope)
        return engine

    yield make
    for engine in opened:
        engine.close()
