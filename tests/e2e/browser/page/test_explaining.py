"""People see why: the arithmetic, two hits side by side, what was lost and what was dropped."""

from __future__ import annotations

import re
from itertools import pairwise

from playwright.sync_api import Browser, Page, expect

from whyrank.types.trail import TermValue

from .site import Site, ask, ids, opened, panel

QUESTION = "how do I calibrate a microphone"


def test_a_bar_opens_the_arithmetic_which_is_the_servers(page: Page, site: Site) -> None:
    ask(page, QUESTION)
    second = page.locator("#hits > li").nth(1)
    second.get_by_role("button", name="show the arithmetic").click()
    table = second.get_by_role("table")
    expect(table).to_be_visible()
    hit = site.ask("POST", "/v1/search", query=QUESTION, limit=2, explain=True)["hits"][1]
    for part in hit["trail"][0]["parts"]:
        line = table.get_by_role("row", name=re.compile(f"^{part['signal']}"))
        expect(line).to_contain_text(f"{part['weight']:g} weight × {part['normalised']:.4f} vote")
        expect(line).to_contain_text(f"{part['value']:.4f}")
        for term in part["terms"]:
            expect(line).to_contain_text(f"{TermValue(**term).label}{term['value']:.3f}")
        if part["terms"]:
            expect(line.locator("[data-whole]")).to_have_text(f"together{part['raw']:.3f}")
    expect(table.get_by_role("row", name=re.compile("^fusion"))).to_contain_text(f"= {hit['score']:.4f}")
    second.get_by_role("button", name="show the arithmetic").click()
    expect(table).to_have_count(0)


def test_two_hits_are_compared_and_the_smallest_change_flips_them(page: Page, site: Site) -> None:
    query = "headphone time"
    ask(page, query)
    shown = ids(page)
    upper, lower, told = next(
        (one, other, answer)
        for one, other in pairwise(shown)
        for answer in [site.ask("POST", "/v1/why", query=query, id=other, over=one)]
        if any(change.get("key") == "ranking.vector_weight" for change in answer["changes"])
    )
    for identity in (upper, lower):
        page.locator(f"[data-id='{identity}']").get_by_role("checkbox").check()
    compare = page.locator("#compare")
    expect(compare.locator("[data-card]")).to_have_count(2)
    for change in told["changes"]:
        expect(compare.locator("[data-flips]")).to_contain_text(change["text"])
    compare.locator("[data-try='ranking.vector_weight']").click()
    after = ids(page)
    assert after.index(lower) < after.index(upper)
    expect(page.locator(f"[data-id='{lower}'] [data-move=up]")).to_be_visible()


def test_a_missing_memory_is_found_by_its_path_and_told_where_it_was_lost(page: Page, site: Site) -> None:
    ask(page, QUESTION)
    panel(page, "Missing?")
    page.get_by_label("The memory you expected").fill("mietvertrag-studio")
    page.get_by_role("button", name="Where is it?").click()
    lost = page.locator("#lost")
    expect(lost.locator("[data-outcome]")).to_be_visible()
    expect(lost).to_contain_text("mietvertrag-studio.md")
    listed = site.ask("GET", "/v1/memories?path=*mietvertrag-studio*&limit=1")["memories"][0]["id"]
    told = site.ask("POST", "/v1/why", query=QUESTION, id=listed, limit=10)
    expect(lost.locator("[data-outcome]")).to_have_attribute("data-outcome", told["outcome"])


def test_a_missing_memory_is_found_by_its_id_and_by_its_words(page: Page, site: Site) -> None:
    ask(page, QUESTION)
    panel(page, "Missing?")
    [fact] = site.ask("GET", "/v1/memories?kind=fact&tags=drinks")["memories"]
    for wanted in (fact["id"], "Robin prefers tea"):
        page.get_by_label("The memory you expected").fill(wanted)
        page.get_by_role("button", name="Where is it?").click()
        expect(page.locator("#lost h3").first).to_have_text("Robin prefers tea")
        expect(page.locator("#lost [data-outcome]")).to_contain_text(re.compile(r"ranked \d+|not shown|no candidate"))


def test_what_no_store_holds_is_said_to_be_nowhere(browser: Browser, site: Site) -> None:
    with opened(browser, site, may_fail=True) as page:
        ask(page, QUESTION)
        panel(page, "Missing?")
        page.get_by_label("The memory you expected").fill("m_doesnotexist")
        page.get_by_role("button", name="Where is it?").click()
        expect(page.locator("#lost")).to_contain_text("Nothing in this store is called")


def test_every_dropped_candidate_has_its_reason(page: Page, site: Site) -> None:
    ask(page, QUESTION)
    panel(page, "Dropped")
    answer = site.ask("POST", "/v1/search", query=QUESTION, limit=10, explain=True)
    stages = [hit["trail"][-1]["stage"] for hit in answer["dropped"]]
    for stage in set(stages):
        group = page.locator(f"#dropped [data-stage='{stage}']")
        expect(group.locator("summary span")).to_have_text(str(stages.count(stage)))
        group.locator("summary").click()
        expect(group.locator("li [data-hint]").first).not_to_be_empty()
    expect(page.locator("#dropped")).to_contain_text(f"{len(stages)} candidates looked at and not shown")


def test_the_whole_memory_is_read_beside_the_hits(page: Page, site: Site) -> None:
    ask(page, QUESTION)
    page.locator("#hits h2 button").first.click()
    whole = site.ask("GET", f"/v1/memories/{ids(page)[0]}")
    expect(page.locator("#memory [data-text]")).to_have_text(whole["text"])
    expect(page.locator("#memory")).to_contain_text(whole["id"])
    expect(page.locator("#memory")).to_contain_text("It comes from a file")
