"""Documents without files become memories."""

from __future__ import annotations

from typing import TYPE_CHECKING

import whyrank
from whyrank.ingest.documents import ChunkSize, memories_of
from whyrank.types.memory import Document

if TYPE_CHECKING:
    from pathlib import Path


def test_a_document_without_text_is_what_it_is_called() -> None:
    [memory] = memories_of(Document("a/pot", " \n", title="Tea Pot", slug="tea-pot"), ChunkSize(), 0.0, 0)
    assert (memory.text, memory.name, memory.slug) == ("Tea Pot", "Tea Pot", "tea-pot")
    assert memory.source is not None
    assert (memory.source.path, memory.source.start_line, memory.source.end_line) == ("a/pot", 1, 1)


def test_a_document_without_text_and_title_is_nothing() -> None:
    assert list(memories_of(Document("a", "", title=" "), ChunkSize(), 0.0, 0)) == []


def test_a_document_without_text_is_found_by_its_name(tmp_path: Path) -> None:
    with whyrank.open(tmp_path / "m.db", workspace=tmp_path) as engine:
        engine.add_documents([Document("a", "", title="Tea Pot"), Document("b", "A pot for tea", title="Kettle")])
        assert engine.search("tea pot")[0].memory.name == "Tea Pot"
