"""A verb is parsed by its own family, and every family has the verbs that are said of it."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

import pytest

from whyrank.errors import ConfigError
from whyrank.interfaces.cli.main import FAMILIES, VERBS, Verb, build, parse

if TYPE_CHECKING:
    from whyrank.interfaces.cli.main import Parser


def verbs_of(parser: Parser) -> tuple[str, ...]:
    choices = next(action.choices for action in parser._actions if action.dest == "verb")
    return tuple(choices or ())


@pytest.mark.parametrize("family", FAMILIES)
def test_a_family_has_the_verbs_that_are_said_of_it(family: str) -> None:
    assert verbs_of(build(family)) == tuple(verb.name for verb in FAMILIES[family])


def test_a_new_text_without_its_option_is_told_where_it_goes() -> None:
    with pytest.raises(ConfigError, match="unknown here") as caught:
        parse(["update", "m_1", "Suzy prefers tea"])
    assert caught.value.hint == "put a new text after --text; `whyrank update --help` shows the usage"


def test_the_whole_parser_has_every_verb_that_is_done() -> None:
    assert set(verbs_of(build())) == set(VERBS)


@pytest.mark.parametrize("verb", VERBS.values(), ids=VERBS)
def test_every_verb_has_a_function_that_does_it(verb: Verb) -> None:
    module = import_module(f".{verb.module}", "whyrank.interfaces.cli")
    assert callable(getattr(module, verb.function))


@pytest.mark.parametrize("verb", ["search", "add", "model", "serve"])
def test_a_verb_is_told_alike_by_its_family_and_by_the_whole(verb: str) -> None:
    family = next(name for name, verbs in FAMILIES.items() if VERBS[verb] in verbs)
    told = [
        next(action.choices for action in parser._actions if action.dest == "verb")[verb].format_help()  # type: ignore[index]
        for parser in (build(family), build())
    ]
    assert told[0] == told[1]
