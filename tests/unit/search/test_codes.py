"""A code that stands in the store is found, in however long a text; words are judged as ever."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import whyrank
from whyrank.analysis.entities import is_code

SHORT, LONG = 40, 600


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[whyrank.Engine]:
    """Return a store of short notes, and two long ones with a code and a rare word each in the middle."""
    with whyrank.open(tmp_path / "memory.db", workspace=tmp_path, embedding="none") as engine:
        for number in range(SHORT):
            engine.add(f"tea and oil no {number}, kept on shelf s{number % 5}")
        filler = " ".join(f"w{number}x" for number in range(LONG // 2))
        for code, word in (("E47", "boiler"), ("ERR-4011", "licence")):
            engine.add(f"{filler} {code} {word} {filler}")
        yield engine


@pytest.mark.parametrize("code", ["E47", "e47", "“E47”?", "ERR-4011", "E47 boiler-room"])
def test_a_rare_code_is_found_if_one_memory_holds_all_of_it(engine: whyrank.Engine, code: str) -> None:
    # 1/(1 + K), K = 1.2 · (0.25 + 0.75 · (602 + 20)/(34 + 20)) = 10.7, is 0.09 of the question, and weak is from 0.1
    found = engine.search(code)
    assert found.verdict == ("nothing" if "room" in code else "found")
    if found.verdict == "found":
        assert found[0].confidence is not None
        assert found[0].confidence > 0.8
        assert found.evidence == 1.0


def test_who_holds_a_part_of_a_code_does_not_hold_the_code(engine: whyrank.Engine) -> None:
    engine.add("no err in the log of today")
    parts = {hit.memory.text: hit.trail[0].parts for hit in engine.search("ERR-4011")}
    coverages = {text: part.coverage for text, [part] in parts.items()}
    assert coverages.pop("no err in the log of today") not in (None, 0.0, 1.0)
    assert [*coverages.values()] == [1.0]


def test_a_word_a_code_that_many_hold_and_one_that_none_holds_are_judged_by_what_they_cover(
    engine: whyrank.Engine,
) -> None:
    assert engine.search("licence").evidence < 0.1
    assert engine.search("E48").verdict == "nothing"
    assert engine.search("s3").evidence < 1.0  # 8 of 42 memories hold it, and few are 3


def test_a_code_holds_a_digit_or_a_sign_inside() -> None:
    assert all(map(is_code, ("E47", "40113", "v1.2", "max_pool_size", "E47, X1", "(E47)")))
    assert not any(map(is_code, ("", "?", "tea", "error 40113", "what is E47")))
