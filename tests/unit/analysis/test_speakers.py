"""Who said it is a mark of its own, and a question may mean anybody its words can name."""

from __future__ import annotations

from whyrank.analysis.dates import is_mark
from whyrank.analysis.names import is_speaker_mark, speaker_mark, speaker_of
from whyrank.analysis.query import analyse


def test_a_name_makes_the_same_mark_however_it_is_written() -> None:
    assert speaker_mark("Mary-Ann") == speaker_mark("mary ann") == ("by=maryann",)
    assert speaker_mark("!?") == ()


def test_a_mark_is_no_word_and_no_date() -> None:
    [mark] = speaker_mark("Suzy")
    assert is_mark(mark)
    assert is_speaker_mark(mark)
    assert not is_speaker_mark("day=5")
    assert speaker_of(mark) == "suzy"


def test_a_question_may_mean_anybody_its_words_can_name() -> None:
    asked = analyse("What does mary ann drink?").speakers
    assert {"by=mary", "by=ann", "by=maryann"} <= set(asked)
    assert not any(term in analyse("What does mary ann drink?").terms for term in asked)


def test_one_word_alone_may_be_a_name() -> None:
    assert analyse("Suzy").speakers == ("by=suzy",)
    assert analyse("").speakers == ()
