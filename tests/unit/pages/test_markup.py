"""No text becomes part of a page's structure."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.unit.pages.reading import read
from whyrank.evaluation.report.html import (
    Markup,
    Section,
    element,
    facts,
    folded,
    foreign,
    joined,
    listing,
    notice,
    page,
    paragraph,
    preformatted,
    table,
    text,
)

HOSTILE = (
    "</td><script>alert('x')</script>\"><img src=http://bad.example/ onerror=alert(1)>\u202eevil\u2066\x00\x1b[2J&amp;"
)


def test_text_is_escaped_once_and_markup_is_left_as_it_is() -> None:
    assert text("a < b & 'c'") == "a &lt; b &amp; &#x27;c&#x27;"
    assert text(text("<")) == "&lt;"
    assert element("b", Markup("<i>x</i>"), "<i>") == "<b><i>x</i>&lt;i&gt;</b>"


def test_attributes_cannot_be_left_by_quotes() -> None:
    assert element("p", class_='" onclick="alert(1)') == '<p class="&quot; onclick=&quot;alert(1)"></p>'


def test_an_attribute_or_a_child_that_is_none_is_left_out() -> None:
    assert element("p", None, "x", class_=None, aria_label="y") == '<p aria-label="y">x</p>'
    assert joined("a", None, 1.5) == "a1.5"


def test_text_that_reorders_or_drives_what_is_shown_becomes_a_mark() -> None:
    assert text("a\u202eb\x1bc\ud800d\n") == "a\ufffdb\ufffdc\ufffdd\n"
    assert text("\U000e0041unseen") == "unseen"
    assert foreign("שלום") == "<bdi>שלום</bdi>"


def hostile_page(words: str) -> str:
    body = joined(
        table([words, words], [[words, words]], caption=words),
        facts({words: words}),
        paragraph(words),
        notice(words),
        folded(words, preformatted(words), foreign(words)),
        listing([words]),
    )
    return page(words, paragraph(words), [Section(words, body), Section(words, body)], words)


def test_hostile_text_stays_text_in_every_part_of_a_page() -> None:
    parsed = read(hostile_page(HOSTILE))
    assert parsed.text.count("<script>alert('x')</script>") >= 13
    assert "\u202e" not in parsed.text


@given(st.text(min_size=1))
def test_no_text_changes_the_elements_of_a_page(words: str) -> None:
    assert [tag for tag, _ in read(hostile_page(words)).tags] == [tag for tag, _ in read(hostile_page("plain")).tags]


def test_sections_of_one_name_have_places_of_their_own() -> None:
    parsed = read(
        page("t", Markup(""), [Section("Ärger!", Markup("")), Section("!", Markup("")), Section("!", Markup(""))])
    )
    places = [attributes["id"] for tag, attributes in parsed.tags if tag == "section"]
    assert len(set(places)) == 3
    assert [attributes["href"] for tag, attributes in parsed.tags if tag == "a"] == [f"#{place}" for place in places]


def test_the_policy_of_a_page_lets_nothing_in() -> None:
    policies = [a["content"] for tag, a in read(page("t", Markup(""), [])).tags if a.get("http-equiv")]
    assert policies[0].startswith("default-src 'none'; style-src 'unsafe-inline'; img-src data:;")
