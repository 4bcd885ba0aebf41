"""When something is wrong the page says what, and what to do: no token, no server, no memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import Browser, Route, ViewportSize, expect

import whyrank
from tests.e2e.conftest import STORE

from .site import DESK, PHONE, Site, ask, opened, panel, serving, settled

if TYPE_CHECKING:
    from pathlib import Path

QUESTION = "headphone time"


def test_without_a_token_the_page_asks_for_it_and_keeps_it_for_the_tab(browser: Browser, site: Site) -> None:
    with opened(browser, site._replace(token=""), f"/?q={QUESTION}", may_fail=True) as page:
        expect(page.get_by_role("heading", name="This memory is locked")).to_be_visible()
        page.get_by_label("Token").fill("not the right one at all")
        page.get_by_role("button", name="Come in").click()
        expect(page.get_by_role("heading", name="This memory is locked")).to_be_visible()
        page.get_by_label("Token").fill(site.token)
        page.get_by_role("button", name="Come in").click()
        settled(page, QUESTION)
        page.reload()
        settled(page, QUESTION)


def test_the_token_is_taken_out_of_the_address(browser: Browser, site: Site) -> None:
    with opened(browser, site, f"/?q={QUESTION}") as page:
        settled(page, QUESTION)
        assert site.token not in page.url
        assert site.token not in page.content()


def test_a_server_that_is_gone_is_waited_for(browser: Browser, site: Site) -> None:
    with opened(browser, site, may_fail=True) as page:
        ask(page, QUESTION)
        page.route("**/v1/**", lambda route: route.abort())
        page.route("**/health", lambda route: route.abort())
        page.get_by_role("searchbox").fill("calibrate")
        expect(page.get_by_role("alert")).to_contain_text("No answer.")
        page.unroute("**/v1/**")
        page.unroute("**/health")
        settled(page, "calibrate")
        expect(page.locator("[data-verdict]")).to_contain_text("Found")


def test_a_browser_that_was_opened_with_the_server_is_let_in_once(
    browser: Browser, site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("BROWSER", "true")  # the one of these tests comes instead
    with serving(site.folder, "--open") as started:
        [file] = tmp_path.glob("*/whyrank.html")
        context = browser.new_context()
        page = context.new_page()
        page.goto(file.as_uri())
        page.wait_for_url(f"{started.url}/")
        assert page.evaluate("() => history.length") <= 2  # an empty tab, the page
        ask(page, QUESTION)
        assert not file.exists()
        page.reload()
        ask(page, QUESTION)
        address = f"{started.url}/#ticket=used"
        context.new_page().goto(address)
        expect(context.pages[-1].get_by_role("heading", name="This memory is locked")).to_be_visible()
        context.close()


@pytest.mark.parametrize("screen", [DESK, PHONE], ids=["desk", "phone"])
def test_a_server_that_is_gone_is_told_wherever_one_has_scrolled_to(
    browser: Browser, site: Site, screen: ViewportSize
) -> None:
    with opened(browser, site, viewport=screen, may_fail=True) as page:
        ask(page, QUESTION)
        page.locator("#hits > li").last.scroll_into_view_if_needed()
        assert page.evaluate("() => scrollY") > 0
        page.route("**/v1/**", lambda route: route.abort())
        page.route("**/health", lambda route: route.abort())
        page.get_by_role("searchbox").evaluate("box => box.focus({preventScroll: true})")
        page.keyboard.insert_text(" gone")
        alarm = page.get_by_role("alert")
        expect(alarm).to_contain_text("No answer.")
        assert page.evaluate("() => scrollY") > 0
        expect(alarm).to_be_in_viewport(ratio=1)
        head, said = page.locator("body > header").bounding_box(), alarm.bounding_box()
        assert head is not None
        assert said is not None
        assert said["y"] >= head["y"] + head["height"]


def test_an_error_of_the_server_is_told_with_its_hint(browser: Browser, site: Site) -> None:
    def refuse(route: Route) -> None:
        error = {"code": "store-locked", "message": "the store is locked", "hint": "end the other", "request_id": "1"}
        route.fulfill(status=503, json={"error": error, "format": 1})

    with opened(browser, site, may_fail=True) as page:
        page.route("**/v1/candidates", refuse)
        page.get_by_role("searchbox").fill("calibrate")
        expect(page.locator("#verdict")).to_contain_text("The store is locked.")
        expect(page.locator("#verdict")).to_contain_text("End the other.")
        page.unroute("**/v1/candidates")
        page.get_by_role("button", name="Try again").click()
        settled(page, "calibrate")


def test_an_unknown_recipe_is_refused_in_words(browser: Browser, site: Site) -> None:
    with opened(browser, site, "/?q=tea&recipe=nonsense", may_fail=True) as page:
        expect(page.locator("#verdict")).to_contain_text("That did not work.")
        page.locator("#recipe").select_option("")
        settled(page, "tea")


def test_an_empty_memory_says_how_to_fill_it(browser: Browser, tmp_path: Path) -> None:
    with whyrank.open(tmp_path / STORE, workspace=tmp_path, embedding="wordllama"):
        pass
    with serving(tmp_path) as empty, opened(browser, empty) as page:
        expect(page.get_by_role("heading", name="This memory is empty")).to_be_visible()
        expect(page.locator("#verdict")).to_contain_text("whyrank ingest notes/")
        page.get_by_role("searchbox").fill("tea")
        expect(page.locator("#verdict")).to_contain_text("This memory is empty")
        page.get_by_role("button", name="add a first fact").click()
        page.get_by_label("One fact, in a sentence").fill("Robin prefers tea")
        page.get_by_role("button", name="Add", exact=True).click()
        settled(page, "tea")
        panel(page, "Store")
        expect(page.locator("#store")).to_contain_text("1 memory from 0 files")


def test_one_memory_is_listening(browser: Browser, tmp_path: Path) -> None:
    with whyrank.open(tmp_path / STORE, workspace=tmp_path, embedding="none") as memory:
        memory.add("Robin prefers tea")
    with serving(tmp_path) as small, opened(browser, small) as page:
        expect(page.locator("#verdict")).to_contain_text("1 memory is listening.")


def test_whoever_was_given_a_scope_sees_its_share_of_the_store(browser: Browser, tmp_path: Path) -> None:
    with whyrank.open(tmp_path / STORE, workspace=tmp_path, embedding="wordllama") as memory:
        memory.add("Robin prefers tea", scope="user:42")
        memory.add("Kim prefers coffee", scope="user:7")
        memory.add("Kim drinks water at night", scope="user:7")
    with serving(tmp_path, "--scope", "user:42") as mine, opened(browser, mine) as page:
        panel(page, "Store")
        store = page.locator("#store")
        expect(store).to_contain_text("1 memory from 0 files")
        expect(store).to_contain_text("serving, 1 vector")
        expect(store.locator("dt")).to_have_text(["File", "Holds", "Queue", "Kept by", "whyrank"])


def test_a_server_that_only_reads_offers_nothing_that_writes(browser: Browser, site: Site) -> None:
    with serving(site.folder, "--read-only") as reading, opened(browser, reading) as page:
        ask(page, "Robin prefers tea")
        expect(page.locator("#add")).to_be_hidden()
        page.locator("#hits h2 button").first.click()
        expect(page.locator("#memory")).to_contain_text("This server is read-only.")
        expect(page.get_by_role("button", name="Forget", exact=True)).to_have_count(0)


def test_a_server_of_several_scopes_lets_them_be_chosen(browser: Browser, site: Site) -> None:
    with serving(site.folder, "--multi-scope") as several, opened(browser, several) as page:
        several.ask("POST", "/v1/memories", text="Mara keeps a spare xylorimba", scope="user:42")
        page.reload()
        ask(page, "xylorimba")
        expect(page.locator("#hits")).not_to_contain_text("Mara keeps")
        page.get_by_label("Scope").select_option("user:42")
        expect(page.locator("#hits h2").first).to_have_text("Mara keeps a spare xylorimba")
        assert "scope=user%3A42" in page.url
