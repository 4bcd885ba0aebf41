"""Read a page as a browser would: its elements, its text, and what it would fetch or run."""

from __future__ import annotations

from html.parser import HTMLParser

_VOID = frozenset({"meta", "link", "br", "hr"})
_FETCHING = frozenset({"src", "href", "action", "data", "poster", "srcset", "xlink:href", "formaction"})


class Read(HTMLParser):
    """A parsed page; `problems` is what must not be there."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.words: list[str] = []
        self.problems: list[str] = []
        self._open: list[str] = []
        self.feed(page)
        self.close()
        self.problems += [f"{tag} is never closed" for tag in self._open]

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())

    def count(self, tag: str) -> int:
        return sum(name == tag for name, _ in self.tags)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {name: value or "" for name, value in attrs}
        self.tags.append((tag, attributes))
        if tag in ("script", "iframe", "object", "embed", "img", "form", "base"):
            self.problems.append(f"<{tag}>")
        for name, value in attributes.items():
            if name.startswith("on"):
                self.problems.append(f"{tag} {name}")
            if name in _FETCHING and not value.startswith(("#", "data:,")):
                self.problems.append(f"{tag} {name}={value}")
        if tag not in _VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self._open.pop()

    def handle_endtag(self, tag: str) -> None:
        if not self._open or self._open.pop() != tag:
            self.problems.append(f"</{tag}> closes another")

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1] == "style":
            if "url(" in data or "@import" in data:
                self.problems.append("a style that fetches")
            return
        self.words.append(data)


def read(page: str) -> Read:
    """Parse a page and insist that it fetches nothing, runs nothing and nests rightly."""
    parsed = Read(page)
    assert page.startswith("<!doctype html>")
    assert parsed.problems == []
    return parsed
