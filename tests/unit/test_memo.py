"""What a function made of a word is remembered, and some of it forgotten where there is too much."""

from __future__ import annotations

from whyrank.memo import LONGEST_WORD, Memo


def test_a_word_is_worked_out_once() -> None:
    asked: list[str] = []

    def shouted(word: str) -> str:
        asked.append(word)
        return word.upper()

    memo = Memo(shouted)
    assert [*map(memo.__getitem__, ("tea", "pot", "tea"))] == ["TEA", "POT", "TEA"]
    assert asked == ["tea", "pot"]


def test_what_is_too_long_to_come_again_is_not_kept() -> None:
    memo = Memo(len)
    assert memo["x" * LONGEST_WORD] == LONGEST_WORD
    assert memo["x" * (LONGEST_WORD + 1)] == LONGEST_WORD + 1
    assert [*memo.values()] == [LONGEST_WORD]


def test_the_older_half_goes_where_there_is_too_much() -> None:
    memo = Memo(len, most=4)
    for word in ("a", "b", "c", "d", "e"):
        assert memo[word] == 1
    assert [*memo] == ["c", "d", "e"]
