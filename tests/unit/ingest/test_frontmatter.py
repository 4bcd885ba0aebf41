"""Front matter read by libyaml says what it says read by PyYAML, to the place of every key."""

from __future__ import annotations

import random

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from whyrank.ingest.frontmatter import OwnLoader, QuickLoader, front_matter, is_read_alike, loaded_by

pytestmark = pytest.mark.skipif(not yaml.__with_libyaml__, reason="PyYAML was built without libyaml")

# What front matter is made of, and what parsers differ in.
PARTS = (
    "title", "tags", "tea pot", "x: y", ": ", "- ", "\n", "\n", "\n  ", "\n- ", "\n  - ", '"', "'", "[", "]", "{", "}",
    ",", "#", " # tea", "|", ">", "|-", ">+2", "&a", "*a", "!!int ", "!tea ", "%", "@", "`", "2024-05-01", "2024-02-30",
    "1_000", "0x1f", "1:30", "yes", "null", "~", "---", "...", "\t", "é", "🎉", "\u2028", "\x85", "\ufeff", "\\n",
    "\\x41", "\\ud800", "?", "? ", "<<: ", "=", ".inf", "1e3", "\x07", "\u200b", "://", " ", "  ", '"a: b"', "[x, y]",
    "{a: b}", "-", "--- ", ":", "a:b", "\r", "\u00a0", "\x7f", "\ue000", "\ufffe", "\uffff", "key: ", "!", "! ",
    "[a, !, b]", "tea!",
)  # fmt: skip


def read_by(kind: type[object], text: str) -> str | None:
    """Return what a loader says, written out since not even a number that is none equals itself; None for an error."""
    try:
        return repr(loaded_by(kind, text))
    except (yaml.YAMLError, ValueError, LookupError, AttributeError, TypeError, OverflowError):
        return None


def differs(text: str) -> bool:
    quick = read_by(QuickLoader, text) if is_read_alike(text) else None
    return quick is not None and quick != read_by(OwnLoader, text)


@given(st.lists(st.sampled_from(PARTS), max_size=12).map("".join))
def test_what_libyaml_reads_is_what_pyyaml_reads(text: str) -> None:
    assert not differs(text)


def test_what_libyaml_reads_of_many_texts_is_what_pyyaml_reads() -> None:
    chance = random.Random(7)
    for _ in range(10_000):
        text = chance.choice(["", "key: "]) + "".join(chance.choices(PARTS, k=chance.randint(1, 9)))
        assert not differs(text), text


def test_usual_front_matter_is_read_by_libyaml() -> None:
    assert is_read_alike("title: Tea\ndate: 2024-05-01\ntags: [green, black]\nsources:\n  - https://tea.example\n")


@pytest.mark.parametrize("nested", ["[" * 100_000, "- " * 100_000, "{a: " * 100_000, "? " * 100_000, "- [{a: " * 500])
def test_what_nests_without_an_end_is_not_given_to_libyaml(nested: str) -> None:
    assert not is_read_alike(nested)
    assert "could not be read" in front_matter(["---", nested, "---"]).problem
