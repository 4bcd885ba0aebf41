"""What of a memory analysis reads: whatever else changes, its entry is the same."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pytest

from whyrank.analysis.document import entry_for, reads_alike
from whyrank.storage.sqlite.doc_values import record_of
from whyrank.storage.sqlite.history import _REVISABLE
from whyrank.types.memory import Memory, Scope, Source

BEFORE = Memory("m_1", "Tea in May", kind="chunk", session="s", created=5.0, date=5.0, source=Source("a.md", 1, 2, "h"))
OTHER: dict[str, Any] = {
    "id": "m_2", "text": "Coffee", "kind": "fact", "name": "Tea", "title": "Green", "slug": "tea", "owner": "suzy",
    "aliases": ("cha",), "summary": "hot", "headings": ("Drinks",), "source": Source("b.md", 1, 2, "h"),
    "scope": Scope("user", "1"), "category": "rule", "tags": ("x",), "entities": ("Suzy",), "importance": 4,
    "created": 6.0, "date": 9e8, "evergreen": True, "valid_from": 1.0, "valid_until": 2.0, "expires": 3.0,
    "supersedes": "m_0", "superseded_by": "m_9", "superseded_at": 4.0, "trust": "agent", "session": "t",
    "speaker": "Robin", "position": 3, "decay": "short", "recalls": 2, "recalled": 7.0, "expires_given": True,
    "metadata": {"n": 1}, "subject": "Robin", "attribute": "drink",
}  # fmt: skip


def test_every_field_is_tried() -> None:
    assert {field.name for field in fields(Memory)} == OTHER.keys()


@pytest.mark.parametrize("name", OTHER)
def test_memories_that_read_alike_give_the_same_entry_and_record(name: str) -> None:
    after = replace(BEFORE, **{name: OTHER[name]})
    if reads_alike(BEFORE, after):
        was, now = entry_for(BEFORE, "en"), entry_for(after, "en")
        assert replace(now, memory=BEFORE) == was
        assert record_of(now) == record_of(was)


def test_all_that_is_not_read_can_be_revised_or_is_written_elsewhere() -> None:
    unread = {name for name, value in OTHER.items() if reads_alike(BEFORE, replace(BEFORE, **{name: value}))}
    assert unread == {*_REVISABLE, "superseded_by", "superseded_at", "recalls", "recalled"}
