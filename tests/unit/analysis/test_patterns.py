"""Patterns are compiled when they are needed, and what stands in for them finds what they find."""

from __future__ import annotations

import copy
import random
import string
import subprocess
import sys

import pytest
import regex

from whyrank.analysis import names, tokenizer
from whyrank.analysis.normalize import pattern
from whyrank.storage import bm25


def texts(letters: str, count: int = 20_000) -> list[str]:
    chance = random.Random(1)
    return ["".join(chance.choices(letters, k=chance.randint(0, 12))) for _ in range(count)]


# Letters, signs and white space in shares that make names and identifiers likely.
ASCII = texts("abcABC01'-_./:\\~() \t\n\x1c" + string.ascii_letters) + texts(string.printable + "\x1c\x1f\x7f")


def test_a_pattern_is_compiled_at_its_first_use() -> None:
    found = pattern(r"\p{Lu}\p{Ll}+")
    assert "search" not in vars(found)
    assert found.findall("Suzy drinks Tea") == ["Suzy", "Tea"]
    assert found.sub("X", "Suzy drinks Tea") == "X drinks X"
    assert "search" in vars(found)


def test_a_pattern_that_cannot_be_is_an_error_where_it_is_used() -> None:
    with pytest.raises(regex.error):
        pattern("(").search("tea")


def test_a_pattern_that_was_never_used_can_be_copied() -> None:
    assert copy.copy(pattern("t")).match("tea")


def test_in_ascii_others_find_the_same_entities() -> None:
    for text in ASCII:
        capitalised = [match.span() for match in names._CAPITALISED.finditer(text)]
        assert [match.span() for match in names._ASCII_CAPITALISED.finditer(text)] == capitalised, text
        identifiers = [match.span() for match in names._IDENTIFIER.finditer(text)]
        assert [match.span() for match in names._ASCII_IDENTIFIER.finditer(text)] == identifiers, text


def test_no_identifier_is_passed_over() -> None:
    for text in ASCII:
        assert names.is_identifier(text) == bool(names._WHOLE_IDENTIFIER.fullmatch(text.strip())), text


def test_no_plural_of_an_acronym_is_passed_over() -> None:
    for text in texts("ABCsSé"):
        without = tokenizer._PLURAL.sub(r"\1", text)
        assert tokenizer.singular_of(text, "xx") == (without if without != text else None), text


def test_letters_are_told_from_others_and_runs_counted() -> None:
    for text in texts("ab1_é語"):
        assert (tokenizer._LETTERS.fullmatch(text) is not None) == (text != "" and set(text) <= set("abé語")), text
        assert bm25.gram_count(text) == (0 if "語" in text else max(1, len(text) - 3)), text


def test_a_question_in_plain_words_needs_no_patterns_of_unicode() -> None:
    code = (
        "import sys; from whyrank.analysis.query import analyse; analyse('What does Suzy think of the tea?', 'en');"
        "print('regex' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
