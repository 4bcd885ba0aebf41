"""HTML elements as values, and the page around them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import NamedTuple, TypeAlias

_VOID = frozenset({"meta", "link", "br", "hr", "rect", "line", "circle", "path", "polyline", "polygon"})
_MARK = "\ufffd"  # replaces characters that must not be shown as they are

# Control characters and bidirectional overrides; invisible tag characters are removed.
_HARMLESS = {code: _MARK for code in (*range(0x20), 0x7F, *range(0x80, 0xA0)) if code not in (0x09, 0x0A)}
_HARMLESS |= dict.fromkeys((*range(0x202A, 0x202F), *range(0x2066, 0x206A)), _MARK)
_HARMLESS |= dict.fromkeys(range(0xD800, 0xE000), _MARK)  # lone surrogates, which no file could hold
_HARMLESS |= dict.fromkeys(range(0xE0000, 0xE0080), "")


class Markup(str):
    """Text that is HTML already and is not escaped again."""

    __slots__ = ()


Child: TypeAlias = "str | Markup | float | None"  # None is left out
Attribute: TypeAlias = "str | float | None"


def text(value: object) -> Markup:
    """Return a value as HTML text: escaped, without control or bidirectional characters."""
    return value if isinstance(value, Markup) else Markup(escape(str(value).translate(_HARMLESS), quote=True))


def element(tag: str, *children: Child, **attributes: Attribute) -> Markup:
    """Return an element; `class_` becomes class, `stroke_width` stroke-width, None is left out."""
    written = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{text(_number(value))}"'
        for name, value in attributes.items()
        if value is not None
    )
    if tag in _VOID and not children:
        return Markup(f"<{tag}{written}>" if tag in ("meta", "link", "br", "hr") else f"<{tag}{written}/>")
    return Markup(f"<{tag}{written}>{joined(*children)}</{tag}>")


def joined(*children: Child) -> Markup:
    """Return the concatenated children."""
    return Markup("".join(text(child) for child in children if child is not None))


def foreign(value: object) -> Markup:
    """Return text of foreign origin, isolated so that its writing direction stays its own."""
    return element("bdi", str(value))


def _number(value: Attribute) -> str:
    """Format a coordinate to a hundredth of a pixel."""
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)


SERIES = 8  # distinguishable colours; further lines are dashed

STYLE = """
:root{color-scheme:light dark;--bg:#fcfcfb;--fg:#1b1c1e;--dim:#5d6168;--rule:#dcdee2;--card:#f3f4f5;
--good:#0b7a4b;--bad:#b3331f;--warn:#8a5a00;--link:#0b57a4;
--s0:#1b1c1e;--s1:#0072b2;--s2:#d55e00;--s3:#00875f;--s4:#b0508a;--s5:#a67700;--s6:#2f93c9;--s7:#7a5cc0}
@media (prefers-color-scheme:dark){:root{--bg:#15171a;--fg:#e8e9eb;--dim:#a0a5ad;--rule:#363a41;--card:#1f2227;
--good:#4cc38a;--bad:#ff8a70;--warn:#e5b454;--link:#7cb7f2;
--s0:#f2f3f5;--s1:#5cb3ec;--s2:#ff9152;--s3:#3fcf9f;--s4:#e58fc4;--s5:#e6b93c;--s6:#9ad7f7;--s7:#b9a2f2}}
*{box-sizing:border-box}
body{margin:0;background:var(--bg);color:var(--fg);font:16px/1.5 system-ui,"Segoe UI",Roboto,"Noto Sans",sans-serif;
overflow-wrap:anywhere}
main{max-width:64rem;margin:0 auto;padding:1.5rem 1rem 4rem}
h1{font-size:1.7rem;line-height:1.2;margin:.5rem 0}
h2{font-size:1.3rem;margin:2.8rem 0 .6rem;padding-top:.6rem;border-top:1px solid var(--rule)}
h3{font-size:1.05rem;margin:1.8rem 0 .4rem}
h4{font-size:.95rem;margin:1rem 0 .3rem}
p,ul,dl{margin:.5rem 0;max-width:46rem}
ul{padding-left:1.3rem}
a{color:var(--link)}
nav ul{list-style:none;padding:0;display:flex;flex-wrap:wrap;gap:.2rem 1rem;max-width:none}
.dim{color:var(--dim)}
.small{font-size:.875rem}
.good{color:var(--good)}
.bad{color:var(--bad)}
.warn{color:var(--warn)}
.notice{border-left:3px solid var(--warn);background:var(--card);padding:.5rem .8rem;margin:.6rem 0;max-width:46rem}
dl.facts{display:grid;grid-template-columns:max-content 1fr;gap:.1rem 1rem}
dl.facts dt{color:var(--dim)}
dl.facts dd{margin:0}
.wide{overflow-x:auto;margin:.6rem 0}
table{border-collapse:collapse;font-size:.9rem;overflow-wrap:break-word;font-variant-numeric:tabular-nums}
caption{text-align:left;color:var(--dim);padding-bottom:.3rem}
th,td{padding:.28rem .7rem;border-bottom:1px solid var(--rule);text-align:left;vertical-align:top}
thead th{border-bottom:2px solid var(--rule);color:var(--dim);font-weight:600;vertical-align:bottom}
th.n,td.n{text-align:right;white-space:nowrap}
td{min-width:2rem}
tbody th,td.w{min-width:6.5rem;max-width:26rem}
td.w{min-width:12rem}
tr.ours th,tr.ours td{font-weight:650;background:var(--card)}
tbody th{font-weight:500}
figure{margin:.8rem 0;max-width:44rem}
figcaption{color:var(--dim);font-size:.875rem;margin-bottom:.3rem}
.bars{display:grid;grid-template-columns:minmax(6rem,max-content) minmax(8rem,1fr) max-content;gap:.3rem .8rem;
align-items:center;font-size:.9rem;font-variant-numeric:tabular-nums}
.bars svg{width:100%;height:1.1rem;display:block;overflow:visible}
.bars .v{text-align:right}
.track{fill:var(--card)}
.bars rect:not(.track){opacity:.62}
.whisker{stroke:var(--fg);stroke-width:1.5;fill:none}
.mark{stroke:var(--warn);stroke-width:2}
.chart{width:100%;max-width:33rem;height:auto;display:block;font-size:12px}
.chart text{fill:var(--dim)}
.grid{stroke:var(--rule);stroke-width:1}
.zero{stroke:var(--dim);stroke-width:1}
.line{fill:none;stroke-width:2;stroke-linejoin:round}
.line.strong{stroke-width:3.5}
.d1{stroke-dasharray:6 3}
.d2{stroke-dasharray:2 3}
.legend{list-style:none;padding:0;display:flex;flex-wrap:wrap;gap:.1rem 1.1rem;font-size:.875rem;max-width:44rem}
.legend svg{width:1.8em;height:.8em;vertical-align:middle;margin-right:.35em}
details{border:1px solid var(--rule);border-radius:.4rem;margin:.5rem 0;padding:0 .8rem}
summary{cursor:pointer;padding:.5rem 0;font-weight:500}
details[open]{padding-bottom:.7rem}
pre{background:var(--card);padding:.6rem .8rem;border-radius:.3rem;overflow-x:auto;font:.82rem/1.45 ui-monospace,
"SFMono-Regular",Menlo,Consolas,"DejaVu Sans Mono",monospace;white-space:pre-wrap;overflow-wrap:anywhere;margin:.3rem 0}
code{font:.9em ui-monospace,"SFMono-Regular",Menlo,Consolas,"DejaVu Sans Mono",monospace}
blockquote{margin:.3rem 0;padding-left:.8rem;border-left:3px solid var(--rule)}
footer{margin-top:3rem;color:var(--dim);font-size:.85rem}
@media (max-width:34rem){body{font-size:15px}main{padding:1rem .75rem 3rem}h1{font-size:1.4rem}
.bars{grid-template-columns:1fr max-content}.bars .l{grid-column:1/-1;margin-top:.3rem}
th,td{padding:.25rem .45rem}dl.facts{grid-template-columns:1fr}dl.facts dd{margin-bottom:.3rem}}
@media print{:root{color-scheme:light;--bg:#fff;--fg:#000;--dim:#444;--card:#f4f4f4;--rule:#bbb;--s0:#000;--s1:#0072b2;
--s2:#d55e00;--s3:#00875f;--s4:#b0508a;--s5:#a67700;--s6:#2f93c9;--s7:#7a5cc0;--good:#0b7a4b;--bad:#b3331f}
body{font-size:10.5pt}main{max-width:none;padding:0}.wide{overflow:visible}figure,tr,pre{break-inside:avoid}
details::details-content{content-visibility:visible;display:block}h2,h3,h4{break-after:avoid}*{print-color-adjust:exact}}
""" + "".join(f".f{n}{{fill:var(--s{n})}}.k{n}{{stroke:var(--s{n})}}" for n in range(SERIES))


# No fetching and no scripts, whatever the text contains.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
_GUARD = element("meta", http_equiv="Content-Security-Policy", content=_POLICY)


class Section(NamedTuple):
    """A section of a page with a heading linked from the table of contents."""

    title: str
    body: Markup


def page(title: str, lead: Markup, sections: Sequence[Section], foot: str = "") -> str:
    """Return a complete, self-contained page."""
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
    """Check by its beginning that a text is a page that this module made."""
    return beginning.startswith("<!doctype html>") and str(_GUARD) in beginning


def table(
    head: Sequence[Child],
    rows: Iterable[Sequence[Child]],
    *,
    words: int = 1,
    strong: Iterable[int] = (),
    caption: str = "",
) -> Markup:
    """Return a table: the first `words` columns are text, the others figures; strong rows stand out."""
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
    """Return a definition list of names and values."""
    rows = (joined(element("dt", name), element("dd", value)) for name, value in pairs.items())
    return element("dl", *rows, class_="facts")


def paragraph(*children: Child, kind: str | None = None) -> Markup:
    """Return a paragraph; a kind is one of the classes dim, small, notice, good, bad, warn."""
    return element("p", *children, class_=kind)


def notice(*children: Child) -> Markup:
    """Return a highlighted notice."""
    return element("div", *children, class_="notice", role="note")


def folded(summary: Child, *body: Child, is_open: bool = False) -> Markup:
    """Return a collapsible block, closed by default."""
    return element("details", element("summary", summary), *body, open="" if is_open else None)


def listing(items: Iterable[Child]) -> Markup:
    """Return a list."""
    return element("ul", *(element("li", item) for item in items))


def preformatted(written: str) -> Markup:
    """Return preformatted text."""
    return element("pre", element("bdi", text(written)))


def _anchors(titles: Sequence[str]) -> list[str]:
    """Return a unique anchor for every title."""
    seen: dict[str, int] = {}
    places = []
    for title in titles:
        base = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-") or "part"
        seen[base] = seen.get(base, 0) + 1
        places.append(base if seen[base] == 1 else f"{base}-{seen[base]}-")
    return places
