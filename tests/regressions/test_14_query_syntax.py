"""Failure 14: user text such as c++, api-key, don't, NOT breaks the FTS query."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.regressions.conftest import OpenEngine


@pytest.mark.parametrize(
    "query",
    [
        "c++",
        "api-key",
        "don't",
        "NOT",
        "AND OR NOT",
        '"',
        '"unclosed',
        "*",
        "te*",
        "a:b",
        "(x",
        "^",
        "20.04",
        "C#",
        "a/b",
        "NEAR(a b)",
        "-tea",
        "\x00",
        "\ud800",
        "{}",
        "'; DROP TABLE memories; --",
    ],
)
def test_no_query_raises(open_engine: OpenEngine, query: str) -> None:
    engine = open_engine("the c++ api-key isn't here", embedding="none")
    engine.search(query)
    assert engine.status().memories == 1


def test_signs_are_part_of_what_is_looked_for(open_engine: OpenEngine) -> None:
    engine = open_engine("written in c++ last year", "vitamin c is good", "rotate the api-key", embedding="none")
    assert engine.search("c++")[0].memory.text == "written in c++ last year"
    assert engine.search("api-key")[0].memory.text == "rotate the api-key"
