"""Where callers choose a scope, the page opens, replaces, forgets and looks for memories of the scope it asks in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import Browser, Page, expect

from .site import Site, ask, opened, panel, serving

if TYPE_CHECKING:
    from collections.abc import Iterator

ALICE = "user:alice"


@pytest.fixture(scope="module")
def several(site: Site) -> Iterator[Site]:
    """Serve the example memory to callers who choose their scope."""
    with serving(site.folder, "--multi-scope") as started:
        yield started


@pytest.fixture
def page(browser: Browser, several: Site) -> Iterator[Page]:
    """Return the page as Alice asks on it."""
    with opened(browser, several, f"/?scope={ALICE}") as shown:
        expect(shown.get_by_label("Scope")).to_have_value(ALICE)
        yield shown


def stored(several: Site, text: str, scope: str = ALICE) -> dict[str, Any]:
    fact: dict[str, Any] = several.ask("POST", "/v1/memories", text=text, scope=scope)
    return fact


def texts(several: Site, scope: str = ALICE) -> list[str]:
    """Return the facts of one scope alone, without what was replaced."""
    found = several.ask("GET", f"/v1/memories?kind=fact&scope={scope}&limit=50")["memories"]
    return [one["text"] for one in found if one["scope"] == scope and not one["superseded_by"]]


def look_at(page: Page, fact: dict[str, Any]) -> None:
    ask(page, fact["text"])
    page.locator(f"[data-id='{fact['id']}'] h2 button").click()
    expect(page.locator("#memory [data-text]")).to_have_text(fact["text"])


def now(page: Page, method: str) -> int:
    """Send what waits, and return what the server answered."""
    with page.expect_response(lambda answer: answer.request.method == method and "/v1/memories" in answer.url) as heard:
        page.get_by_role("button", name="Now", exact=True).click()
    return heard.value.status


def test_a_scoped_memory_is_opened_replaced_and_forgotten(page: Page, several: Site) -> None:
    fact = stored(several, "Alice keeps her theremin in the attic")
    look_at(page, fact)
    expect(page.locator("#memory dl")).to_contain_text(ALICE)
    page.get_by_role("button", name="Replace …").click()
    page.get_by_label("What is true now").fill("Alice keeps her theremin in the cellar")
    page.get_by_role("button", name="Replace", exact=True).click()
    assert now(page, "POST") == 201
    assert "Alice keeps her theremin in the attic" not in texts(several)
    new = page.locator("#hits h2 button", has_text="theremin in the cellar")
    new.click()
    expect(page.locator("#memory")).to_contain_text(f"replaced {fact['text']}")
    page.get_by_role("button", name="Forget", exact=True).click()
    assert now(page, "DELETE") == 200
    expect(new).to_have_count(0)
    assert "Alice keeps her theremin in the cellar" not in texts(several)


def test_a_scoped_memory_is_purged(page: Page, several: Site) -> None:
    look_at(page, stored(several, "Alice once owned a serpent made of brass"))
    page.get_by_role("button", name="Purge …").click()
    page.get_by_role("dialog").get_by_role("button", name="Purge", exact=True).click()
    assert now(page, "DELETE") == 200
    assert "Alice once owned a serpent made of brass" not in texts(several)


def test_a_scoped_memory_is_explained_by_its_id(page: Page, several: Site) -> None:
    fact = stored(several, "Alice tunes the hurdy-gurdy on Sundays")
    ask(page, "hurdy-gurdy")
    panel(page, "Missing?")
    page.get_by_label("The memory you expected").fill(fact["id"])
    page.get_by_role("button", name="Where is it?").click()
    expect(page.locator("#lost h3").first).to_have_text(fact["text"])
    expect(page.locator("#lost [data-outcome]")).to_have_count(1)


def test_what_belongs_to_all_is_forgotten_from_within_a_scope(page: Page, several: Site) -> None:
    fact = stored(several, "The ophicleide stands in the hall", "global")
    look_at(page, fact)
    page.get_by_role("button", name="Forget", exact=True).click()
    assert now(page, "DELETE") == 200
    assert fact["text"] not in texts(several, "global")
