"""Characters that nobody sees are shown by their numbers; those that belong to what is seen stay."""

from __future__ import annotations

import json
import re
import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from whyrank.analysis.sanitize import EMOJI, HIDDEN, JOINING, visible, visible_data, visible_json, whole_characters
from whyrank.interfaces.http.app import PAGE

EVERY = [chr(code) for code in range(sys.maxunicode + 1)]


@pytest.mark.parametrize(("text", "shown"), [
    ("invoice\u202efdp.exe", "invoice⟨U+202E⟩fdp.exe"),
    ("a\u2066b\u2069", "a⟨U+2066⟩b⟨U+2069⟩"),
    ("\x1b[31mred\x1b[0m", "⟨U+001B⟩[31mred⟨U+001B⟩[0m"),
    ("\x9b31m", "⟨U+009B⟩31m"),
    ("pass\u200bword", "pass⟨U+200B⟩word"),
    ("soft\u00adhyphen", "soft⟨U+00AD⟩hyphen"),
    ("\ufeffbegin", "⟨U+FEFF⟩begin"),
    ("a\x00b\x07c\x7f", "a⟨U+0000⟩b⟨U+0007⟩c⟨U+007F⟩"),
    ("one\rtwo", "one⟨U+000D⟩two"),
    ("a\u2028b\u2029c", "a⟨U+2028⟩b⟨U+2029⟩c"),
    ("half \ud83d", "half ⟨U+D83D⟩"),
    ("x\u200dy", "x⟨U+200D⟩y"),
    ("x\ufe0fy", "x⟨U+FE0F⟩y"),
    ("\u3164\u115f", "⟨U+3164⟩⟨U+115F⟩"),
    ("tag\U000e0041", "tag⟨U+E0041⟩"),
    # A message in variation selectors behind one emoji: the first belongs to it, unless others follow.
    ("😀" + "".join(chr(0xE0100 + code) for code in range(300)), "😀⟨U+E0100 and 299 more hidden characters⟩"),
    ("😀\ufe0f\ufe0e", "😀⟨U+FE0F⟩⟨U+FE0E⟩"),
    ("\u200b" * 5_001, "⟨U+200B and 5,000 more hidden characters⟩"),
    # The flag of a region that is none may spell anything.
    ("\U0001f3f4" + "".join(chr(0xE0000 + ord(letter)) for letter in "evil") + "\U000e007f",
     "\U0001f3f4⟨U+E0065 and 4 more hidden characters⟩"),
])  # fmt: skip
def test_a_hidden_character_is_shown(text: str, shown: str) -> None:
    assert visible(text) == shown


@pytest.mark.parametrize("text", [
    "plain\ttext\nand lines", "Grüße, 東京, हिन्दी, עברית, العربية", "non\u00a0breaking\u2009thin",
    "می\u200cخواهم",  # Persian: "I want" is written with a zero-width non-joiner
    "क्\u200dष",  # a half form of Devanagari
    "👩\u200d👩\u200d👧", "❤\ufe0f", "❤\ufe0f\u200d🔥", "☎\ufe0e", "1\ufe0f\u20e3", "🏳\ufe0f\u200d🌈", "👍🏽",
    "\U0001f3f4\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f",  # the flag of Scotland
])  # fmt: skip
def test_what_belongs_to_a_character_that_is_seen_stays(text: str) -> None:
    assert visible(text) == text


def test_every_control_and_format_character_is_hidden_but_those_with_a_shape() -> None:
    hidden = re.compile(f"[{HIDDEN}]")
    left = {
        char
        for char in EVERY
        if unicodedata.category(char) in ("Cc", "Cf", "Zl", "Zp", "Cs") and not hidden.match(char)
    }
    # Tab and newline; number signs and marks of Arabic, Syriac, Kaithi and hieroglyphs, which can be seen.
    shaped = {*range(0x600, 0x606), 0x6DD, 0x70F, 0x890, 0x891, 0x8E2, 0x110BD, 0x110CD, *range(0x13430, 0x13440)}
    assert {ord(char) for char in left} <= {9, 10} | shaped


def test_the_page_has_the_same_table() -> None:
    source = (PAGE / "characters.js").read_text(encoding="utf-8")
    for name, ours in (("HIDDEN", HIDDEN), ("EMOJI", EMOJI), ("JOINING", JOINING)):
        found = re.search(rf"const {name} =\s*((?:\"[^\"]*\"[\s+]*)+);", source)
        assert found is not None
        theirs = "".join(re.findall(r'"([^"]*)"', found[1])).replace("\\\\", "\\")
        theirs = re.sub(r"\\u\{(\w+)\}", lambda long: f"\\U{long[1]:0>8}", theirs)
        assert theirs == ours, name


def test_data_is_visible_in_depth_and_its_keys_stay() -> None:
    assert visible_data({"a\u200b": ["\u202e", {"b": "\x1b"}, 1, None]}) == {
        "a\u200b": ["⟨U+202E⟩", {"b": "⟨U+001B⟩"}, 1, None]
    }


@given(st.text(alphabet=st.one_of(st.characters(), st.sampled_from("\x7f\x9b\u202e\u200b\U000e0041\ud83d"))))
def test_json_says_the_same_with_escapes(text: str) -> None:
    escaped = visible_json(json.dumps({"text": text}, ensure_ascii=False))
    assert json.loads(escaped) == {"text": text}
    assert re.search(f"[{HIDDEN}]", escaped) is None


@given(st.text(alphabet=st.characters(codec=None, categories=None)))
def test_mended_text_can_be_encoded_and_whole_text_stays(text: str) -> None:
    whole_characters(text).encode()
    if not re.search("[\ud800-\udfff]", text):
        assert whole_characters(text) == text


@given(st.text())
def test_nothing_hidden_is_left_but_what_belongs_to_its_neighbours(text: str) -> None:
    assert visible(visible(text)) == visible(text)
