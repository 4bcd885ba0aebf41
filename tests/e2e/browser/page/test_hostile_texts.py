"""What a memory says is shown and never run, wherever it stands, and the page's rules would forbid it anyway."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

import whyrank
from tests.e2e.conftest import STORE
from whyrank.interfaces.http.pagefiles import PAGE

from .site import Site, ask, opened, panel, serving, turn

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
