"""The worst queries: what was expected, where it landed, and the trails of both."""

from __future__ import annotations

from ...pages.document import folded, paragraph, preformatted
from ...pages.markup import Markup, element, foreign, joined
from ..kept import KeptQuery, KeptSet
from ..measures import MAIN
from ..stories import Story, Told

_OPEN = 1  # stories that are open at once: one shows what the others hold
_EXPECTED_SHOWN = 5


def stories_part(one: KeptSet) -> Markup | None:
    """Return the worst queries of a set with their trails."""
    if not one.worst:
        return None
    told = [_story(one, story, is_open=place < _OPEN) for place, story in enumerate(one.worst)]
    said = f"Those on which {one.recipes[0]} does worst; of equals first those that ranking could have saved."
    return joined(element("h3", "The worst queries"), paragraph(said, kind="dim small"), *told)


def _story(one: KeptSet, story: Story, *, is_open: bool) -> Markup:
    query = one.query(story.id)
    recipe = one.recipes[0]
    rank = query.ranks[recipe]
    landed = f"expected at {rank}" if rank else "expected not among the results"
    summary = joined(
        foreign(query.text), element("span", f" — {MAIN} {query.main(recipe):.3f}, {landed}", class_="dim")
    )
    parts = [
        paragraph("query ", foreign(query.id), _about(query), kind="dim small"),
        paragraph("Expected: ", _expected(query)),
        paragraph(_others(one, query), kind="dim small"),
        _told("What came first", story.first) if story.first else paragraph("Nothing was found."),
        _told("The best of what was expected", story.expected),
        joined(element("h4", "What would turn the two round"), preformatted(story.flip)) if story.flip else None,
    ]
    return folded(summary, *parts, is_open=is_open)


def _about(query: KeptQuery) -> Markup:
    said = [f"kind {query.kind}" if query.kind else "", f"scope {query.scope}", f"verdict {query.verdict}"]
    return foreign("".join(f" · {one}" for one in said if one))


def _expected(query: KeptQuery) -> Markup:
    ordered = sorted(query.expected.items(), key=lambda item: -item[1])
    shown = [joined(foreign(document), f" (gain {gain})" if gain > 1 else "") for document, gain in ordered]
    more = f", and {len(shown) - _EXPECTED_SHOWN} more" if len(shown) > _EXPECTED_SHOWN else ""
    listed = [joined(", " if place else "", one) for place, one in enumerate(shown[:_EXPECTED_SHOWN])]
    return joined(*listed, more)


def _others(one: KeptSet, query: KeptQuery) -> str:
    """Say where each line has the first expected document."""
    return "First expected document: " + ", ".join(f"{line} {query.ranks[line] or '–'}" for line in one.lines)


def _told(title: str, told: Told) -> Markup:
    place = f"rank {told.rank}" if told.rank else "not among the results"
    worth = "relevant" if told.gain > 0 else "not relevant"
    return joined(
        element("h4", title, ": ", foreign(told.document), element("span", f" ({place}, {worth})", class_="dim")),
        element("blockquote", foreign(told.title or ""), ": " if told.title and told.text else "", foreign(told.text))
        if told.title or told.text
        else None,
        preformatted(told.trail),
    )
