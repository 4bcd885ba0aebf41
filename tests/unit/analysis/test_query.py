"""What a query asks: terms, phrases, kind."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from whyrank.analysis.query import MAX_QUERY_CHARACTERS, MAX_TERMS, analyse
from whyrank.analysis.tokenizer import tokens_of
from whyrank.types.query import label_of

if TYPE_CHECKING:
    from whyrank.types.query import QueryKind


def codes(text: str) -> list[str]:
    return [notice.code for notice in analyse(text).notices]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Night Owl", "name"),
        ("owl", "name"),
        ("The Who", "name"),
        ("night-owl-watch-tower", "name"),
        ("docs/setup/linux.md", "name"),
        ("cache.redis.host.port", "name"),
        ("parseLogLineFast", "name"),
        ("v2.10.3", "name"),
        ("c++", "name"),
        ("東京", "name"),
        ("what colour is the boat", "question"),
        ("colour?", "question"),
        ("boat colour?", "question"),
        ("is there a spare key", "question"),
        ("wo liegt der Schlüssel", "question"),
        ("где лежит запасной ключ", "question"),
        ("où est la clé du garage", "question"),
        ("鍵はどこ？", "question"),
        ("boat colour harbour winter", "keywords"),
        ("港の倉庫に置いた青い船の鍵", "keywords"),
        ("", "keywords"),
        ("!!!", "keywords"),
    ],
)
def test_a_query_is_of_one_kind(text: str, kind: QueryKind) -> None:
    assert analyse(text).kind == kind


def test_the_terms_are_the_distinct_content_words_in_order() -> None:
    assert analyse("the boats of the harbour and the boat").terms == ("boat", "harbour")


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("Are there any boats in the harbour?", ("boat", "harbour")),
        ("the pump still leaks, why", ("pump", "leak")),
        ("how many boats, how much rope?", ("boat", "rope")),
        ("did somebody really ever paint it?", ("somebodi", "paint")),
        ("I quit the harbour choir", ("quit", "harbour", "choir")),  # "quite" has the same stem
        ("every boat before all storms", ("everi", "boat", "befor", "all", "storm")),
        ("is any-port a boat name?", ("anyport", "ani", "port", "boat", "name")),
    ],
)
def test_words_a_question_is_only_told_with_are_not_asked_for(text: str, terms: tuple[str, ...]) -> None:
    assert analyse(text).terms == terms


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("Still Life", ("still", "life")),  # a name has all its words
        ("how many are there?", ("mani",)),  # and nothing else is asked for
        ('"any port" in some storm', ("ani port", "storm")),  # and a phrase has all of its own
    ],
)
def test_names_phrases_and_questions_of_nothing_else_keep_them(text: str, terms: tuple[str, ...]) -> None:
    assert analyse(text).terms == terms


def test_texts_keep_the_words_a_question_is_only_told_with() -> None:
    assert tokens_of("the pump still leaks") == ("pump", "still", "leak")


def test_what_is_no_filler_in_another_language_is_asked_for() -> None:
    assert analyse("der Yeti und der many ist hier").terms == ("yeti", "many")


@pytest.mark.parametrize(
    "text", ['"blue boat" harbour', "“blue boat” harbour", "„blue boat“ harbour", "«blue boat» harbour"]
)
def test_a_quoted_phrase_is_one_term_of_its_tokens(text: str) -> None:
    assert analyse(text).terms == ("blue boat", "harbour")


def test_words_of_a_phrase_are_stemmed_as_the_index_does() -> None:
    assert analyse('"sleeping dogs"').terms == ("sleep dog",)


@pytest.mark.parametrize("text", ['"blue boat', 'blue boat"', '"" blue boat'])
def test_a_quote_without_its_partner_makes_no_phrase(text: str) -> None:
    assert analyse(text).terms == ("blue", "boat")


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("boat AND harbour", ("boat", "harbour")),
        ("NOT boat", ("boat",)),
        ("boat*", ("boat",)),
        ("(boat OR ship)", ("boat", "ship")),
        ("boat^2 NEAR/3", ("boat", "2", "near/3", "near", "3")),
    ],
)
def test_operators_are_plain_words(text: str, terms: tuple[str, ...]) -> None:
    assert analyse(text).terms == terms


def test_stop_words_alone_are_kept_as_terms() -> None:
    assert analyse("who is it").terms == ("who", "is", "it")


@pytest.mark.parametrize("text", ["", "   ", "!?!", "😀"])
def test_a_query_without_words_has_no_terms_and_no_name_key(text: str) -> None:
    analysis = analyse(text)

    assert analysis.terms == ()
    assert analysis.probe.key == ""


def test_at_most_64_terms_are_looked_for_and_the_rest_is_said() -> None:
    analysis = analyse(" ".join(f"item{number}" for number in range(70)))

    assert MAX_TERMS == 64
    assert analysis.terms == tuple(f"item{number}" for number in range(64))
    assert [notice.code for notice in analysis.notices] == ["terms-cut"]
    assert "64 of 70" in analysis.notices[0].message


def test_exactly_64_terms_need_no_notice() -> None:
    assert codes(" ".join(f"item{number}" for number in range(64))) == []


def test_repeated_words_do_not_count_against_the_limit() -> None:
    assert codes("boat " * 200) == []


def test_characters_that_cannot_be_stored_are_replaced_with_a_notice() -> None:
    analysis = analyse("boat\x00 harbour\ud800")

    assert analysis.terms == ("boat", "harbour")
    assert analysis.text == "boat\ufffd harbour\ufffd"
    assert [notice.code for notice in analysis.notices] == ["query-cleaned"]


def test_a_text_too_long_for_a_query_is_cut_with_a_notice() -> None:
    analysis = analyse("a" * MAX_QUERY_CHARACTERS + " harbour")

    assert len(analysis.text) == MAX_QUERY_CHARACTERS
    assert "harbour" not in analysis.terms
    assert [notice.code for notice in analysis.notices] == ["query-cut"]


def test_name_keys_are_made_before_stop_words_go() -> None:
    analysis = analyse("Remind Me")

    assert analysis.terms == ("remind",)
    assert analysis.probe.key == "remindme"
    assert analysis.probe.words == ("remind", "me")


def test_the_language_of_the_query_is_told_or_set() -> None:
    assert analyse("где ключ").language == "ru"
    assert analyse("kubectl", "de").language == "de"


def test_the_language_setting_stems_a_query_that_does_not_show_its_language() -> None:
    assert analyse("Häuser", "de").terms == ("haus",)
    assert analyse("Häuser", "en").terms == ("häuser",)


def test_entities_of_the_query_are_named() -> None:
    assert analyse("where did Greta Holm moor the boat").entities == ("Greta Holm",)


@pytest.mark.parametrize(
    "text", ["c++", "api-key", "don't", "NOT", "a:b:c", "NEAR(", "'", "\\", "-", "^*()", '"""', "\n\r\t"]
)
def test_no_query_text_raises(text: str) -> None:
    assert analyse(text).text == text


def test_a_quoted_title_is_read_in_the_language_of_the_question_like_the_texts_that_name_it() -> None:
    text = "Wer sang das Lied „Rain on the Window“ im Radio?"
    title = ("rain", "on", "the", "window")  # function words in English only
    assert tokens_of("Wer sang das Lied Rain on the Window im Radio?") == ("sang", "lied", *title, "radio")
    asked, *others = analyse(text).terms
    assert (label_of(asked), others) == (" ".join(title), ["sang", "lied", "radio"])


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("向量数据库是什么？", ("向量", "量数", "数据", "据库", "库是")),  # not 是什 and 什么
        ("什么是向量数据库？", ("向量", "量数", "数据", "据库")),
        ("目的是什么", ("目的",)),  # 的 is a part of 目的
        ("他们为什么在巴黎？", ("在巴", "巴黎")),
        ("Docker 的 端口", ("docker", "端口")),
        ("東京はどこにありますか？", ("東京", "京は")),
        ("什么", ("什么",)),  # nothing else would be left
    ],
)
def test_function_words_of_scripts_without_spaces_are_not_asked_for(text: str, terms: tuple[str, ...]) -> None:
    assert analyse(text).terms == terms


def test_texts_keep_function_words_of_scripts_without_spaces() -> None:
    assert tokens_of("他是谁") == ("他是", "是谁")
