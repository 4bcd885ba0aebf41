"""Everything can be done without a mouse."""

from __future__ import annotations

from playwright.sync_api import Browser, Page, expect

from .site import Site, ask, ids, opened, settled

QUESTION = "headphone time"


def test_a_whole_visit_by_keyboard_alone(page: Page, site: Site) -> None:
    page.keyboard.press("/")
    expect(page.get_by_role("searchbox")).to_be_focused()
    page.keyboard.type(QUESTION)
    settled(page, QUESTION)

    page.keyboard.press("ArrowDown")
    first, second, third = page.locator("#hits > li").all()[:3]
    expect(first.locator("[data-part=bar]")).to_be_focused()
    page.keyboard.press("Enter")
    expect(first.get_by_role("table")).to_be_visible()
    expect(first.locator("[data-part=bar]")).to_be_focused()
    page.keyboard.press("Enter")
    expect(first.get_by_role("table")).to_have_count(0)

    page.keyboard.press("c")
    page.keyboard.press("j")
    expect(second.locator("[data-part=bar]")).to_be_focused()
    page.keyboard.press("j")
    page.keyboard.press("k")
    page.keyboard.press("ArrowDown")
    expect(third.locator("[data-part=bar]")).to_be_focused()
    page.keyboard.press("c")
    expect(page.get_by_role("tab", name="Compare")).to_have_attribute("aria-selected", "true")
    expect(page.locator("#compare [data-card]")).to_have_count(2)

    page.keyboard.press("m")
    expect(page.locator("#memory [data-text]")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("searchbox")).to_be_focused()


def test_sliders_and_tabs_answer_to_arrows(page: Page, site: Site) -> None:
    page.keyboard.press("/")
    page.keyboard.type(QUESTION)
    settled(page, QUESTION)
    page.keyboard.press("ArrowDown")
    page.keyboard.press("1")
    expect(page.get_by_role("tab", name="Tune")).to_be_focused()
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    expect(page.locator("[data-key='ranking.vector_weight']")).to_be_focused()
    page.keyboard.press("Home")
    expect(page.locator("[data-knob='ranking.vector_weight'] output")).to_have_text("0.35 → 0")
    assert ids(page) != site.search(QUESTION, limit=10)
    expect(page.locator("[data-key='ranking.vector_weight']")).to_be_focused()
    page.keyboard.press("r")
    assert ids(page) == site.search(QUESTION, limit=10)

    page.keyboard.press("6")
    page.keyboard.press("ArrowLeft")
    expect(page.get_by_role("tab", name="Dropped")).to_be_focused()
    expect(page.locator("#dropped")).to_be_visible()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("tab", name="Tune")).to_be_focused()


def test_help_tells_the_keys_and_gives_the_focus_back(page: Page) -> None:
    page.get_by_role("button", name="Keys and help").focus()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keys")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.get_by_role("button", name="Keys and help")).to_be_focused()


def test_letters_that_are_typed_are_letters(page: Page) -> None:
    page.get_by_role("searchbox").fill("")
    page.keyboard.type("jack? 1/2 mc")
    expect(page.get_by_role("searchbox")).to_have_value("jack? 1/2 mc")
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_escape_closes_what_is_open_before_it_empties_the_search(page: Page) -> None:
    ask(page, QUESTION)
    box, bar = page.get_by_role("searchbox"), page.locator("[data-part=bar]").first
    bar.click()
    expect(page.locator("#hits table")).to_have_count(1)
    page.keyboard.press("Escape")
    expect(box).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.locator("#hits table")).to_have_count(0)
    expect(box).to_have_value(QUESTION)
    page.keyboard.press("Escape")
    expect(box).to_have_value("")
    expect(page.locator("#hits > li")).to_have_count(0)


def test_an_emptied_search_can_be_brought_back(page: Page) -> None:
    ask(page, QUESTION)
    box = page.get_by_role("searchbox")
    box.press("Escape")
    expect(box).to_have_value("")
    expect(page.locator("#toasts")).to_contain_text("Esc once more brings the question back.")
    box.press("Escape")
    expect(box).to_have_value(QUESTION)
    settled(page, QUESTION)
    box.press("Escape")
    expect(page.get_by_role("heading", name="Ask, and see why")).to_be_visible()
    page.go_back()
    expect(box).to_have_value(QUESTION)
    settled(page, QUESTION)


def test_words_on_their_way_through_an_input_method_keep_their_escape(page: Page) -> None:
    ask(page, QUESTION)
    page.get_by_role("searchbox").evaluate(
        "box => box.dispatchEvent(new KeyboardEvent('keydown', {key: 'Escape', bubbles: true, isComposing: true}))"
    )
    expect(page.get_by_role("searchbox")).to_have_value(QUESTION)


def test_the_first_arrow_on_a_page_that_was_just_opened_goes_to_the_first_hit(browser: Browser, site: Site) -> None:
    with opened(browser, site, f"/?q={QUESTION}") as page:
        settled(page, QUESTION)
        page.keyboard.press("ArrowUp")
        expect(page.locator("#hits > li").first.locator("[data-part=bar]")).not_to_be_focused()
        page.keyboard.press("ArrowDown")
        expect(page.locator("#hits > li").first.locator("[data-part=bar]")).to_be_focused()
        page.keyboard.press("ArrowDown")
        expect(page.locator("#hits > li").nth(1).locator("[data-part=bar]")).to_be_focused()
