"""The parts of a page, and the page around them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from .markup import Child, Markup, element, joined, text
from .style import STYLE

# Nothing may be fetched and nothing run, whatever stands in the text.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
_GUARD = element("meta", http_equiv="Content-Security-Policy", content=_POLICY)


class Section(NamedTuple):
    """A part of a page with a heading that the table of contents leads to."""

    title: str
    body: Markup


def page(title: str, lead: Markup, sections: Sequence[Section], foot: str = "") -> str:
    """Return a whole page that needs nothing but itself."""
    places = _anchors([section.title for section in sections])
    contents = [element("li", element("a", one.title, href=f"#{at}")) for one, at in zip(sections, places, strict=True)]
    body = [
        element("section", element("h2", one.title), one.body, id=at) for one, at in zip(sections, places, strict=True)
    ]
    main = element(
        "main",
        element("h1", title),
        lead,
        element("nav", element("ul", *contents)) if len(sections) > 1 else None,
        *body,
        element("footer", foot) if foot else None,
    )
    head = element(
        "head",
        element("meta", charset="utf-8"),
        _GUARD,
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", title),
        element("link", rel="icon", href="data:,"),
        element("style", Markup(STYLE)),
    )
    return f"<!doctype html>\n{element('html', head, element('body', main), lang='en')}\n"


def is_page(beginning: str) -> bool:
    """Tell by its beginning whether a text is a page that was made here."""
    return beginning.startswith("<!doctype html>") and str(_GUARD) in beginning


def table(
    head: Sequence[Child],
    rows: Iterable[Sequence[Child]],
    *,
    words: int = 1,
    strong: Iterable[int] = (),
    caption: str = "",
) -> Markup:
    """Return a table: its first so many columns are words, the others figures; strong rows stand out."""
    emphasised = frozenset(strong)
    top = [element("th", cell, scope="col", class_=None if at < words else "n") for at, cell in enumerate(head)]
    body = [
        element("tr", *_cells(row, words), class_="ours" if number in emphasised else None)
        for number, row in enumerate(rows)
    ]
    whole = element(
        "table",
        element("caption", caption) if caption else None,
        element("thead", element("tr", *top)),
        element("tbody", *body),
    )
    # Wide tables scroll by themselves; to be scrolled from the keyboard they must take the focus.
    return element("div", whole, class_="wide", tabindex="0", role="region", aria_label=caption or "table")


def _cells(row: Sequence[Child], words: int) -> Iterable[Markup]:
    yield element("th", row[0], scope="row") if words else element("td", row[0], class_="n")
    yield from (element("td", cell, class_="w" if at < words else "n") for at, cell in enumerate(row[1:], 1))


def facts(pairs: Mapping[str, Child]) -> Markup:
    """Return names and what they stand for, one under the other."""
    rows = (joined(element("dt", name), element("dd", value)) for name, value in pairs.items())
    return element("dl", *rows, class_="facts")


def paragraph(*children: Child, kind: str | None = None) -> Markup:
    """Return a paragraph; a kind is one of the classes dim, small, notice, good, bad, warn."""
    return element("p", *children, class_=kind)


def notice(*children: Child) -> Markup:
    """Return what a reader must not overlook."""
    return element("div", *children, class_="notice", role="note")


def folded(summary: Child, *body: Child, is_open: bool = False) -> Markup:
    """Return what is shown when somebody opens it."""
    return element("details", element("summary", summary), *body, open="" if is_open else None)


def listing(items: Iterable[Child]) -> Markup:
    """Return a list."""
    return element("ul", *(element("li", item) for item in items))


def preformatted(written: str) -> Markup:
    """Return text whose lines and spaces count."""
    return element("pre", element("bdi", text(written)))


def _anchors(titles: Sequence[str]) -> list[str]:
    """Return a place to jump to for every title, no two alike."""
    seen: dict[str, int] = {}
    places = []
    for title in titles:
        base = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-") or "part"
        seen[base] = seen.get(base, 0) + 1
        places.append(base if seen[base] == 1 else f"{base}-{seen[base]}-")
    return places
