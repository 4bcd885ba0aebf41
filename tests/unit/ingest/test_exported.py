"""Exports are known by their lines."""

from __future__ import annotations

import json

import pytest

from whyrank.engine.export import Record, as_record
from whyrank.ingest.walk import is_export
from whyrank.types.memory import Memory


def test_a_line_of_an_export_is_known() -> None:
    line = json.dumps(as_record(Record(Memory("m_1", "tea"))))
    assert is_export(line + "\n" + line)
    assert is_export("\n" + line)


@pytest.mark.parametrize(
    "text",
    [
        "",
        '{"text": "hello", "role": "user"}',
        '{"id": "1", "kind": "turn", "text": "hello", "history": [], "scope": "global"}',
        json.dumps({"text": json.dumps(as_record(Record(Memory("m_1", "tea"))))}),
        json.dumps(as_record(Record(Memory("m_1", "tea"))))[:-1],
    ],
)
def test_a_log_is_no_export(text: str) -> None:
    assert not is_export(text)
