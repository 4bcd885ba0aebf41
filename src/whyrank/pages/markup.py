"""HTML as a value: what is not markup already is escaped, so no text can become part of a page's structure."""

from __future__ import annotations

from html import escape
from typing import TypeAlias

_VOID = frozenset({"meta", "link", "br", "hr", "rect", "line", "circle", "path", "polyline", "polygon"})
_MARK = "\ufffd"  # stands for what must not be shown as it is

# Control characters, and text that reorders what is shown around it; tags nobody sees are left out.
_HARMLESS = {code: _MARK for code in (*range(0x20), 0x7F, *range(0x80, 0xA0)) if code not in (0x09, 0x0A)}
_HARMLESS |= dict.fromkeys((*range(0x202A, 0x202F), *range(0x2066, 0x206A)), _MARK)
_HARMLESS |= dict.fromkeys(range(0xD800, 0xE000), _MARK)  # half characters, which no file could hold
_HARMLESS |= dict.fromkeys(range(0xE0000, 0xE0080), "")


class Markup(str):
    """Text that is HTML already and is put into a page as it is."""

    __slots__ = ()


Child: TypeAlias = "str | Markup | float | None"  # None is left out
Attribute: TypeAlias = "str | float | None"


def text(value: object) -> Markup:
    """Return a value as text of a page: escaped, and harmless to look at."""
    return value if isinstance(value, Markup) else Markup(escape(str(value).translate(_HARMLESS), quote=True))


def element(tag: str, *children: Child, **attributes: Attribute) -> Markup:
    """Return an element; `class_` is the attribute class, `stroke_width` is stroke-width, None is left out."""
    written = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{text(_number(value))}"'
        for name, value in attributes.items()
        if value is not None
    )
    if tag in _VOID and not children:
        return Markup(f"<{tag}{written}>" if tag in ("meta", "link", "br", "hr") else f"<{tag}{written}/>")
    return Markup(f"<{tag}{written}>{joined(*children)}</{tag}>")


def joined(*children: Child) -> Markup:
    """Return children one after the other."""
    return Markup("".join(text(child) for child in children if child is not None))


def foreign(value: object) -> Markup:
    """Return text somebody else wrote, set apart so that its direction of writing stays its own."""
    return element("bdi", str(value))


def _number(value: Attribute) -> str:
    """Write coordinates short: a hundredth of a pixel is nothing."""
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
