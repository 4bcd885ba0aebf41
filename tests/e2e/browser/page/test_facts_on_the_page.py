"""People add, replace and forget facts; what takes something away can be undone before it is sent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from whyrank.engine.arguments import MAX_FACT_CHARACTERS

from .site import PHONE, Site, ask, opened

if TYPE_CHECKING:
    from collections.abc import Iterator


def facts(site: Site, tag: str, **also: str) -> list[dict[str, Any]]:
    """Return the facts with a tag, as the server has them."""
    extra = "".join(f"&{name}={value}" for name, value in also.items())
    found: list[dict[str, Any]] = site.ask("GET", f"/v1/memories?kind=fact&tags={tag}{extra}")["memories"]
    return found


@pytest.fixture
def fact(site: Site, request: pytest.FixtureRequest) -> Iterator[dict[str, Any]]:
    """Store a fact that only one test knows, and forget it with all that came of it."""
    tag = str(request.node.name).replace("_", "-")[:60]
    stored: dict[str, Any] = site.ask("POST", "/v1/memories", text=f"The quaggle of {tag} is blue", tags=[tag])
    yield stored
    while left := facts(site, tag):  # what was replaced comes back when its successor is forgotten
        for one in left:
            site.ask("DELETE", f"/v1/memories/{one['id']}")


def look_at(page: Page, fact: dict[str, Any]) -> None:
    ask(page, fact["text"])
    page.locator(f"[data-id='{fact['id']}'] h2 button").click()
    expect(page.locator("#memory [data-text]")).to_have_text(fact["text"])


def test_a_fact_is_added_and_found(page: Page, site: Site) -> None:
    page.get_by_role("button", name="Add a fact").click()
    page.get_by_label("One fact, in a sentence").fill("The zorbing starts at nine")
    page.get_by_label("Tags, separated by commas").fill("zorbing, times")
    page.get_by_label("Importance").select_option("4")
    page.get_by_role("button", name="Add", exact=True).click()
    expect(page.locator("#toasts")).to_contain_text("Added.")
    [stored] = facts(site, "zorbing")
    assert (stored["text"], stored["tags"], stored["importance"]) == (
        "The zorbing starts at nine",
        ["zorbing", "times"],
        4,
    )
    ask(page, "when does the zorbing start")
    expect(page.locator("#hits h2").first).to_have_text("The zorbing starts at nine")


def test_a_fact_that_was_there_is_not_stored_twice(page: Page, site: Site, fact: dict[str, Any]) -> None:
    page.get_by_role("button", name="Add a fact").click()
    page.get_by_label("One fact, in a sentence").fill(fact["text"])
    page.get_by_role("button", name="Add", exact=True).click()
    expect(page.locator("#toasts")).to_contain_text("It existed already.")
    assert len(facts(site, fact["tags"][0])) == 1


def test_what_there_is_to_say_of_a_fact_is_said_when_it_is_added_and_when_it_replaces_another(
    page: Page, site: Site, fact: dict[str, Any]
) -> None:
    page.get_by_role("button", name="Add a fact").click()
    page.get_by_label("One fact, in a sentence").fill(fact["text"])
    page.get_by_label("Tags, separated by commas").fill("another")
    page.get_by_role("button", name="Add", exact=True).click()
    [notice] = site.ask("POST", "/v1/memories", text=fact["text"], tags=["another"])["notices"]
    assert notice["code"] == "known-as-it-is"
    expect(page.locator("#toasts")).to_contain_text(f"It existed already. {notice['message'][:1].upper()}")
    expect(page.locator("#toasts")).to_contain_text(notice["message"][1:])
    look_at(page, fact)
    page.get_by_role("button", name="Replace").click()
    page.get_by_label("What is true now").fill("The quaggle is green")
    page.route("**/v1/memories", answer_with_notice)
    page.get_by_role("button", name="Replace", exact=True).last.click()
    page.get_by_role("button", name="Now").click()
    expect(page.locator("#toasts")).to_contain_text("Replaced. It waits.")


def answer_with_notice(route: Route) -> None:
    """Answer as the server does, and have it say one thing more."""
    if route.request.method != "POST":
        route.fallback()
        return
    answer = route.fetch()
    told = {**answer.json(), "notices": [{"code": "not-indexed-yet", "message": "it waits"}]}
    route.fulfill(response=answer, json=told)


def test_control_and_enter_add_a_fact(page: Page, site: Site, fact: dict[str, Any]) -> None:
    text = page.get_by_label("One fact, in a sentence")
    page.keyboard.press("a")
    expect(text).to_be_focused()
    page.keyboard.press("Control+Enter")
    expect(page.get_by_role("dialog", name="Add a fact")).to_be_visible()  # there is no fact yet
    page.keyboard.type(fact["text"])
    page.keyboard.press("Enter")
    expect(text).to_have_value(f"{fact['text']}\n")
    page.keyboard.press("Control+Enter")
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.locator("#toasts")).to_contain_text("It existed already.")


def test_a_form_that_is_closed_keeps_what_was_typed_until_it_is_stored(page: Page, fact: dict[str, Any]) -> None:
    add, text = page.get_by_role("button", name="Add a fact"), page.get_by_label("One fact, in a sentence")
    add.click()
    text.fill(fact["text"])
    page.get_by_label("Tags, separated by commas").fill("half, said")
    page.get_by_label("Importance").select_option("2")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    add.click()
    expect(text).to_have_value(fact["text"])
    expect(page.get_by_label("Tags, separated by commas")).to_have_value("half, said")
    expect(page.get_by_label("Importance")).to_have_value("2")
    page.keyboard.press("Control+Enter")
    expect(page.locator("#toasts")).to_contain_text("It existed already.")
    add.click()
    expect(text).to_have_value("")


def test_a_fact_that_could_not_be_stored_is_still_in_the_form(browser: Browser, site: Site) -> None:
    with opened(browser, site, may_fail=True) as page:
        page.route("**/v1/memories", lambda route: route.abort())
        page.get_by_role("button", name="Add a fact").click()
        page.get_by_label("One fact, in a sentence").fill("The quaggle waits")
        page.keyboard.press("Control+Enter")
        expect(page.locator("#toasts")).to_contain_text("The fact was not added")
        page.get_by_role("button", name="Add a fact").click()
        expect(page.get_by_label("One fact, in a sentence")).to_have_value("The quaggle waits")


def test_forgetting_can_be_undone(page: Page, site: Site, fact: dict[str, Any]) -> None:
    look_at(page, fact)
    page.get_by_role("button", name="Forget", exact=True).click()
    expect(page.locator(f"[data-id='{fact['id']}']")).to_have_attribute("data-doomed", "")
    page.get_by_role("button", name="Undo", exact=True).click()
    expect(page.locator("[data-toast]")).to_have_count(0)
    expect(page.locator("[data-doomed]")).to_have_count(0)
    assert facts(site, fact["tags"][0])


def test_a_forgotten_fact_is_gone_after_the_time_to_undo(page: Page, site: Site, fact: dict[str, Any]) -> None:
    look_at(page, fact)
    page.clock.install()
    page.get_by_role("button", name="Forget", exact=True).click()
    page.clock.fast_forward(5_000)
    assert facts(site, fact["tags"][0])
    page.clock.fast_forward(2_000)
    expect(page.locator(f"[data-id='{fact['id']}']")).to_have_count(0)
    assert not facts(site, fact["tags"][0])


def test_what_waits_is_sent_when_the_page_is_left(page: Page, site: Site, fact: dict[str, Any]) -> None:
    look_at(page, fact)
    page.get_by_role("button", name="Forget", exact=True).click()
    page.goto("about:blank")
    page.wait_for_timeout(300)
    assert not facts(site, fact["tags"][0])


def test_whoever_comes_back_can_neither_undo_nor_repeat_what_was_sent(
    page: Page, site: Site, fact: dict[str, Any]
) -> None:
    """The browser keeps a page that is left as it stood, and shows it again with everything that is on it."""
    look_at(page, fact)
    sent: list[str] = []
    page.on("request", lambda request: sent.append(request.url) if request.method == "DELETE" else None)
    page.get_by_role("button", name="Forget", exact=True).click()
    buttons = page.locator("[data-toast] button").element_handles()
    assert len(buttons) == 2
    with page.expect_response(lambda answer: answer.request.method == "DELETE"):
        page.evaluate("dispatchEvent(new PageTransitionEvent('pagehide', { persisted: true }))")
    page.evaluate("dispatchEvent(new PageTransitionEvent('pageshow', { persisted: true }))")
    expect(page.locator("[data-toast='undo']")).to_have_count(0)
    for button in buttons:
        button.evaluate("button => button.click()")
    expect(page.locator(f"[data-id='{fact['id']}']")).to_have_count(0)
    assert len(sent) == 1
    assert not facts(site, fact["tags"][0])


def test_purging_is_a_second_choice_and_asks_once_more(page: Page, site: Site, fact: dict[str, Any]) -> None:
    look_at(page, fact)
    page.get_by_role("button", name="Purge …").click()
    dialog = page.get_by_role("dialog", name="Purge this memory?")
    dialog.get_by_role("button", name="Cancel").click()
    assert facts(site, fact["tags"][0])
    page.get_by_role("button", name="Purge …").click()
    dialog.get_by_role("button", name="Purge", exact=True).click()
    with page.expect_response(lambda answer: answer.request.method == "DELETE" and "purge=true" in answer.url):
        page.get_by_role("button", name="Now", exact=True).click()
    assert not facts(site, fact["tags"][0])


def test_a_replaced_fact_gives_way_to_the_new_one(page: Page, site: Site, fact: dict[str, Any]) -> None:
    look_at(page, fact)
    page.get_by_role("button", name="Replace …").click()
    page.get_by_label("What is true now").fill(fact["text"].replace("blue", "green"))
    page.get_by_role("button", name="Replace", exact=True).click()
    page.get_by_role("button", name="Now", exact=True).click()
    expect(page.locator(f"[data-id='{fact['id']}']")).to_have_count(0)
    [new] = facts(site, fact["tags"][0])
    assert new["text"].endswith("is green")
    assert new["supersedes"] == fact["id"]
    page.locator(f"[data-id='{new['id']}'] h2 button").click()
    expect(page.locator("#memory")).to_contain_text(f"replaced {fact['text']}")


def test_what_a_fact_was_is_told_field_by_field(page: Page, site: Site, fact: dict[str, Any]) -> None:
    [tag] = fact["tags"]
    address = f"/v1/memories/{fact['id']}"
    site.ask("PATCH", address, importance=2, expires="2999-05-03")
    site.ask("PATCH", address, importance=5, expires="2999-06-04", tags=[tag, "later"])
    changed = site.ask("PATCH", address, text=fact["text"].replace("blue", "<b>red</b>"))
    today = page.evaluate(
        """async (moment) => (await import("/page/words.js")).day(moment)""", changed["history"][0]["changed"]
    )
    look_at(page, changed)
    assert page.locator("#memory [data-past] li").all_inner_texts() == [
        f"until {today}: importance not set; expires not set",
        f"until {today}: tags {tag}; importance 2; expires 3 May 2999",
        f"until {today}: text {fact['text']}",
    ]


def replaced_by(page: Page, fact: dict[str, Any], text: str) -> None:
    look_at(page, fact)
    page.get_by_role("button", name="Replace …").click()
    page.get_by_label("What is true now").fill(text)
    page.get_by_role("button", name="Replace", exact=True).click()


def test_the_form_takes_as_much_as_the_server_does(page: Page) -> None:
    page.get_by_role("button", name="Add a fact").click()
    expect(page.get_by_label("One fact, in a sentence")).to_have_attribute("maxlength", str(MAX_FACT_CHARACTERS))


def test_what_is_too_long_to_be_sent_on_leaving_is_sent_at_once(page: Page, site: Site, fact: dict[str, Any]) -> None:
    """30,000 letters of two bytes and what stands around them are more than 60,000 bytes."""
    with page.expect_response(lambda answer: answer.request.method == "POST" and "/v1/memories" in answer.url):
        replaced_by(page, fact, "ü" * 30_000)
    expect(page.locator("#toasts")).to_contain_text("It is too long to wait for an undo.")
    expect(page.get_by_role("button", name="Undo", exact=True)).to_have_count(0)
    [new] = facts(site, fact["tags"][0])
    assert (new["text"], new["supersedes"]) == ("ü" * 30_000, fact["id"])


def test_long_facts_that_wait_together_all_arrive_when_the_page_is_left(
    page: Page, site: Site, fact: dict[str, Any]
) -> None:
    """Twice 20,000 letters of two bytes: either alone could wait, both together are more than 60,000 bytes."""
    [tag] = fact["tags"]
    other = site.ask("POST", "/v1/memories", text=f"The quibble of {tag} is round", tags=[tag])
    replaced_by(page, fact, "ü" * 20_000)
    expect(page.get_by_role("button", name="Undo", exact=True)).to_have_count(1)
    with page.expect_response(lambda answer: "é" in (answer.request.post_data or "")):
        replaced_by(page, other, "é" * 20_000)
        expect(page.locator("#toasts")).to_contain_text("It is too long to wait for an undo.")
    expect(page.get_by_role("button", name="Undo", exact=True)).to_have_count(1)
    page.goto("about:blank")
    page.wait_for_timeout(300)
    assert {one["text"] for one in facts(site, tag)} == {"ü" * 20_000, "é" * 20_000}


def test_a_text_without_a_space_stays_on_a_narrow_screen(browser: Browser, site: Site, fact: dict[str, Any]) -> None:
    """It is offered to search with as long as nothing is asked, and is told as what the fact was."""
    wide = "() => document.documentElement.scrollWidth"
    address = f"/v1/memories/{fact['id']}"
    site.ask("PATCH", address, text="ü" * 400)
    with opened(browser, site, viewport=PHONE) as page:
        page.locator("[data-chip]", has_text="ü" * 70).wait_for()
        assert page.evaluate(wide) == PHONE["width"]
        site.ask("PATCH", address, text=fact["text"])
        look_at(page, fact)
        past = page.locator("#memory [data-past]")
        expect(past).to_contain_text("ü" * 400)
        assert past.evaluate("list => list.scrollWidth <= list.clientWidth")
        assert page.evaluate(wide) == PHONE["width"]


def test_replacing_can_be_undone(page: Page, site: Site, fact: dict[str, Any]) -> None:
    look_at(page, fact)
    page.get_by_role("button", name="Replace …").click()
    page.get_by_label("What is true now").fill("The quaggle was sold")
    page.get_by_role("button", name="Replace", exact=True).click()
    page.get_by_role("button", name="Undo", exact=True).click()
    [kept] = facts(site, fact["tags"][0])
    assert kept["text"] == fact["text"]
    assert kept["superseded_by"] is None


def test_a_refused_change_says_why_and_loses_nothing(browser: Browser, site: Site, fact: dict[str, Any]) -> None:
    with opened(browser, site, may_fail=True) as page:
        look_at(page, fact)
        site.ask("DELETE", f"/v1/memories/{fact['id']}")
        page.get_by_role("button", name="Forget", exact=True).click()
        page.get_by_role("button", name="Now", exact=True).click()
        expect(page.locator("#toasts")).to_contain_text("It was not forgotten")
