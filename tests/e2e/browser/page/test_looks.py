"""The page is readable for everybody: small and large screens, dark and light, without eyes, in no hurry."""

from __future__ import annotations

from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, ViewportSize, expect

from .site import DESK, PHONE, Site, ask, opened, panel, turn

QUESTION = "headphone time"
PANELS = ("Tune", "Memory", "Compare", "Missing?", "Dropped", "Store")
SCREENS: dict[str, ViewportSize] = {
    "phone": {"width": 360, "height": 740},
    "tablet": {"width": 768, "height": 1024},
    "desk": {"width": 1280, "height": 900},
    "wall": {"width": 3840, "height": 2160},
}


def complaints(page: Page, where: str = "body") -> list[str]:
    """Return what axe-core finds to be a serious or critical obstacle."""
    found: dict[str, Any] = Axe().run(page, where, {"resultTypes": ["violations"]}).response
    return [
        f"{one['id']}: {node['html'][:120]} {node['failureSummary'][:200]}"
        for one in found["violations"]
        if one["impact"] in ("serious", "critical")
        for node in one["nodes"]
    ]


def in_use(page: Page) -> None:
    """Bring the page into a state in which every panel has something to show."""
    ask(page, QUESTION)
    page.locator("[data-part=bar]").first.click()
    for place in (0, 1):
        page.locator("#hits > li").nth(place).get_by_role("checkbox").check()
    page.keyboard.press("Escape")
    page.locator("#hits h2 button").nth(2).click()
    turn(page, "ranking.vector_weight", 0.2)
    panel(page, "Missing?")
    page.get_by_label("The memory you expected").fill("TOOLS.md")
    page.get_by_role("button", name="Where is it?").click()
    page.locator("#lost [data-outcome]").wait_for()
    panel(page, "Dropped")
    page.locator("#dropped summary").first.click()
    page.locator("#compare [data-flips] ul, #compare [data-flips] [data-hint]").first.wait_for(state="attached")


@pytest.mark.parametrize(("colours", "screen"), [("light", "desk"), ("dark", "desk"), ("dark", "phone")])
def test_axe_finds_no_obstacle_in_any_panel(browser: Browser, site: Site, colours: str, screen: str) -> None:
    with opened(browser, site, color_scheme=colours, viewport=SCREENS[screen]) as page:
        assert complaints(page) == []
        in_use(page)
        assert complaints(page) == []
        for name in PANELS if screen == "desk" else PANELS[:1]:
            if page.get_by_role("tab", name=name).get_attribute("aria-selected") != "true":
                panel(page, name)
            assert complaints(page, "aside") == [], name
        page.keyboard.press("Escape")
        for opener in ("#help", "#add"):
            page.locator(opener).click()
            assert complaints(page, "dialog") == []
            page.keyboard.press("Escape")


@pytest.mark.parametrize("screen", SCREENS)
def test_nothing_sticks_out_of_the_screen(browser: Browser, site: Site, screen: str) -> None:
    width = SCREENS[screen]["width"]
    with opened(browser, site, viewport=SCREENS[screen]) as page:
        assert page.evaluate("() => document.documentElement.scrollWidth") == width
        in_use(page)
        for name in PANELS:
            if page.get_by_role("tab", name=name).get_attribute("aria-selected") != "true":
                panel(page, name)
            assert page.evaluate("() => document.documentElement.scrollWidth") == width, name
            box = page.locator("[role=tabpanel]:visible").bounding_box()
            assert box is not None
            assert box["x"] >= 0
            assert box["x"] + box["width"] <= width


def test_colours_follow_the_system_until_somebody_chooses(browser: Browser, site: Site) -> None:
    dark = "() => getComputedStyle(document.body).backgroundColor"
    with opened(browser, site, color_scheme="dark") as page:
        at_night = page.evaluate(dark)
        button = page.get_by_role("button", name="Colours")
        button.click()
        by_day = page.evaluate(dark)
        assert at_night != by_day
        expect(button).to_have_attribute("aria-label", "Colours: light")
        page.reload()
        assert page.evaluate(dark) == by_day
        button.click()
        assert page.evaluate(dark) == at_night


def test_hits_do_not_glide_for_those_who_asked_for_stillness(browser: Browser, site: Site) -> None:
    for motion, expected in (("reduce", 0), ("no-preference", 1)):
        with opened(browser, site, reduced_motion=motion) as page:
            ask(page, QUESTION)
            turn(page, "ranking.vector_weight", 0.0)
            moving = page.evaluate(
                "() => document.getAnimations().filter(one => one.effect.target.matches('li')).length"
            )
            assert min(moving, 1) == expected


def test_on_a_phone_a_panel_is_a_sheet_that_closes(browser: Browser, site: Site) -> None:
    with opened(browser, site, viewport=PHONE) as page:
        ask(page, QUESTION)
        expect(page.locator("[role=tabpanel]:visible")).to_have_count(0)
        panel(page, "Tune")
        expect(page.locator("#tune")).to_be_visible()
        page.keyboard.press("Escape")
        expect(page.locator("#tune")).to_be_hidden()
        page.set_viewport_size({"width": DESK["width"], "height": DESK["height"]})
        expect(page.locator("#tune")).to_be_visible()


def test_the_count_is_told_to_those_who_listen(page: Page) -> None:
    ask(page, QUESTION)
    status = page.get_by_role("status").first
    expect(status).to_have_attribute("aria-live", "polite")
    expect(status).to_contain_text("10 hits of")


@pytest.mark.parametrize("screen", ["desk", "wall"])
def test_the_panel_stays_whole_at_the_end_of_the_page(browser: Browser, site: Site, screen: str) -> None:
    with opened(browser, site, viewport=SCREENS[screen]) as page:
        ask(page, QUESTION)
        page.evaluate("() => scrollTo(0, document.documentElement.scrollHeight)")
        head, beside = page.locator("body > header").bounding_box(), page.locator("aside").bounding_box()
        assert head is not None
        assert beside is not None
        assert beside["y"] >= head["y"] + head["height"]
        assert beside["y"] + beside["height"] <= SCREENS[screen]["height"]


def test_on_a_phone_the_sliders_have_the_sheet_to_themselves(browser: Browser, site: Site) -> None:
    with opened(browser, site, viewport=PHONE) as page:
        ask(page, QUESTION)
        panel(page, "Tune")
        turn(page, "ranking.vector_weight", 0.2)
        turn(page, "ranking.recency_weight", 0.4)
        expect(page.locator("[data-key='ranking.recency_weight']")).to_be_in_viewport()
        expect(page.get_by_role("button", name="Copy as TOML")).not_to_be_in_viewport()
        page.get_by_role("button", name="Copy as TOML").scroll_into_view_if_needed()
        expect(page.locator("#toml")).to_be_visible()
