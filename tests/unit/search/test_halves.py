"""Questions made of a store's own words."""

from __future__ import annotations

from whyrank.search.calibrator import WORDS_OF_EACH, halved_questions

TEXTS = [
    "The kettle whistles loudly. Copper pipes freeze in January.",
    "Seven geese crossed the frozen lake before sunrise.",
    "Ok.",
]


def words(text: str) -> set[str]:
    return {word.strip(".") for word in text.split()}


def test_a_question_is_half_of_one_sentence_and_half_of_another_memorys() -> None:
    for question in halved_questions(TEXTS, 20, "en"):
        asked = question.split()
        assert len(asked) == 2 * WORDS_OF_EACH
        assert len(words(TEXTS[1]).intersection(asked)) == WORDS_OF_EACH
        first, second = TEXTS[0].split(". ")
        assert WORDS_OF_EACH in (len(words(first).intersection(asked)), len(words(second).intersection(asked)))


def test_function_words_ask_nothing() -> None:
    assert not {"The", "the", "in"} & {
        word for question in halved_questions(TEXTS, 50, "en") for word in question.split()
    }


def test_the_same_texts_give_the_same_questions() -> None:
    assert halved_questions(TEXTS, 9, "en") == halved_questions(TEXTS, 12, "en")[:9]


def test_one_text_alone_has_no_other_half() -> None:
    assert halved_questions(TEXTS[:1], 5, "en") == []
    assert halved_questions([TEXTS[0], "Ok."], 5, "en") == []


def test_a_script_without_spaces_is_asked_in_pairs_of_letters() -> None:
    [question] = halved_questions(["东京铁路公司成立", "北方森林动物保护"], 1, "en")
    assert [len(word) for word in question.split()] == [2] * 6
