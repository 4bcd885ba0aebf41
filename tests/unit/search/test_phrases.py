"""A phrase is found however a text joins its words: in both syntaxes, by both keyword indexes, and marked."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import whyrank
from whyrank.interfaces import serialize

if TYPE_CHECKING:
    from collections.abc import Iterator

JOINED = ("one night-shift", "two nightShift", "three night_shift", "four night shift")
LATER = ("a late night-shift", "a late nightShift", "no late night shift")
FURTHER = ("a night shift-worker", "the night shift_plan")
LATER_STILL = ("no late night-shift-plan",)
APART = ("a shift in the night", "shift by night", "night and day, then a shift", "night, shiftwork and tea")


@pytest.fixture(scope="module", params=["postings", "fts5"])
def engine(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[whyrank.Engine]:
    place = tmp_path_factory.mktemp("phrases")
    with whyrank.open(place / "memory.db", workspace=place, embedding="none", keyword=request.param) as engine:
        for text in (*JOINED, *LATER, *FURTHER, *LATER_STILL, *APART):
            engine.add(text)
        yield engine


@pytest.mark.parametrize("syntax", ["plain", "advanced"])
@pytest.mark.parametrize(
    ("phrase", "expected"),
    [
        ('"night shift"', {*JOINED, *LATER, *FURTHER, *LATER_STILL}),
        ('"night-shift"', {*JOINED, *LATER, *FURTHER, *LATER_STILL}),
        ('"late night shift"', {*LATER, *LATER_STILL}),
        ('"late nightShift"', {*LATER}),
    ],
)
def test_words_side_by_side_are_found_joined_or_not(
    engine: whyrank.Engine, syntax: str, phrase: str, expected: set[str]
) -> None:
    found = engine.search(phrase, limit=20, syntax=syntax, recipe="keyword")
    assert {hit.memory.text for hit in found} == expected


@pytest.mark.parametrize("syntax", ["plain", "advanced"])
def test_what_was_found_is_marked(engine: whyrank.Engine, syntax: str) -> None:
    def marked(phrase: str) -> set[str]:
        found = engine.search(phrase, limit=20, syntax=syntax, recipe="keyword")
        return {hit["snippet"] for hit in serialize.results(found)["hits"]}

    assert {"one **night**-**shift**", "two **nightShift**", "three **night_shift**"} < marked('"night shift"')
    assert marked('"late night shift"') == {
        "a **late** **night-shift**",
        "a **late** **nightShift**",
        "no **late** **night** **shift**",
        "no **late** **night-shift-plan**",
    }
