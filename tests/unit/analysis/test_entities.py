"""Entities by rule: capitalised spans, identifiers, names the store knows."""

from __future__ import annotations

import pytest

from whyrank.analysis.names import entities_in, is_identifier


def test_capitalised_spans_are_entities_in_order_of_appearance() -> None:
    assert entities_in("we saw Greta Holm and Otto in Malmö") == ("Greta Holm", "Otto", "Malmö")


def test_a_function_word_at_the_beginning_of_a_sentence_is_no_entity() -> None:
    assert entities_in("When will it rain?") == ()
    assert entities_in("Did Greta call?") == ("Greta",)


def test_identifiers_are_entities() -> None:
    assert entities_in("set max_retries in conf/app.yaml to 3") == ("max_retries", "conf/app.yaml")


def test_an_entity_is_named_once_however_it_is_written() -> None:
    assert entities_in("Night Owl, night-owl, NightOwl") == ("Night Owl",)


def test_a_text_without_names_has_no_entities() -> None:
    assert entities_in("") == ()
    assert entities_in("nothing to see, 12 times") == ()


@pytest.mark.parametrize(
    "text", ["app_name", "appName", "AppName", "app-name", "app.name", "app/name", "1.2.3", " a.b ", "a:b", "iPad"]
)
def test_one_identifier_is_told(text: str) -> None:
    assert is_identifier(text)


@pytest.mark.parametrize("text", ["", "app", "App", "app name", "app_name please", "don't", "?"])
def test_words_and_sentences_are_no_identifiers(text: str) -> None:
    assert not is_identifier(text)
