"""Counts as people say them."""

from __future__ import annotations

import pytest

from whyrank.formatting import counted, on_one_line, which


@pytest.mark.parametrize(
    ("count", "said"), [(0, "0 queries"), (1, "1 query"), (2, "2 queries"), (1_234, "1,234 queries")]
)
def test_one_is_said_in_the_singular_and_all_else_in_the_plural(count: int, said: str) -> None:
    assert counted(count, "query", "queries") == said


def test_most_plurals_need_not_be_given() -> None:
    assert [counted(count, "trail") for count in (1, 3)] == ["1 trail", "3 trails"]
    assert [which(count, "was", "were") for count in (1, 3)] == ["was", "were"]


def test_what_ends_or_turns_a_line_is_written_as_an_escape() -> None:
    assert on_one_line("a\nb\r\tc\x1b[1m\x85\u2028\u202e\u2069 é日 \\") == (
        r"a\nb\r\tc\x1b[1m\x85\u2028\u202e\u2069 é日 " + "\\"
    )
