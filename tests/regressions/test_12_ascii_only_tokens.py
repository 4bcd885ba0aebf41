"""Failure 12: ASCII-only tokens: no keyword run for Russian, Chinese, Japanese."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.regressions.conftest import OpenEngine

NOTES = (
    "Соседи сверху ходят после полуночи",
    "下周三去茶馆测量混响时间",
    "金沢のワークショップは十月に延期された",
    "Das Lärmschutzgutachten liegt im Ordner",
    "اجتماع الفريق يوم الأحد",
    "ประชุมทีมวันจันทร์",
    "회의는 월요일 아침에 있다",
)


@pytest.mark.parametrize(
    ("query", "place"),
    [
        ("сосед ходит", 0),
        ("茶馆", 1),
        ("ワークショップ", 2),
        ("延期", 2),
        ("Lärmschutzgutachten", 3),
        ("الفريق", 4),
        ("ประชุม", 5),
        ("월요일", 6),
    ],
)
def test_words_are_found_in_every_script(open_engine: OpenEngine, query: str, place: int) -> None:
    engine = open_engine(*NOTES, embedding="none")
    assert engine.search(query)[0].memory.text == NOTES[place]
