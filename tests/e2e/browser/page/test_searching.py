"""People search by typing, and the page shows what the server answers."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import TYPE_CHECKING

from playwright.sync_api import Browser, Error, Page, Route, expect

from tests.e2e.conftest import STORE
from whyrank.interfaces.cli.main import main

from .site import Site, ask, ids, opened, panel, settled

if TYPE_CHECKING:
    from pathlib import Path

QUESTION = "how do I calibrate a microphone"


def test_the_hits_are_those_of_the_server_in_its_order(page: Page, site: Site) -> None:
    ask(page, QUESTION)
    assert ids(page) == site.search(QUESTION, limit=10)
    expect(page.locator("[data-verdict]")).to_contain_text("Found")
    expect(page.locator("#verdict")).to_contain_text("10 hits of")


def test_a_hit_shows_what_it_is_and_where_it_stands(page: Page) -> None:
    ask(page, QUESTION)
    first = page.locator("#hits > li").first
    expect(first.locator("h2")).to_have_text("Mic Calibration")
    expect(first.locator("code")).to_contain_text(re.compile(r"mic-calibration/SKILL\.md:\d+-\d+"))
    assert {text.lower() for text in first.locator("mark").all_inner_texts()} >= {"calibration", "microphone"}
    expect(first.locator("footer")).to_contain_text("confident, 93 %")
    expect(first.locator("footer")).to_contain_text("ingested")


def test_the_parts_of_a_bar_add_up_to_the_score(page: Page) -> None:
    ask(page, QUESTION)
    for hit in page.locator("#hits > li").all():
        said = hit.locator("[data-sum]").inner_text()
        *parts, score = [float(number) for number in re.findall(r"\d+\.\d+", said)]
        assert abs(sum(parts) - score) <= 0.0015  # each is rounded to a thousandth
        lengths = hit.locator("[data-bar] > i").evaluate_all("all => all.map(one => one.getBoundingClientRect().width)")
        assert len(lengths) == len(parts)
        assert all(length > 0 for length in lengths)


def test_an_exact_name_comes_first_and_says_so(page: Page) -> None:
    ask(page, "Remind Me")
    first = page.locator("#hits > li").first
    expect(first.locator("h2")).to_have_text("Remind Me")
    expect(first.locator("[data-badge=tier]")).to_have_text("exact name")


def test_only_the_last_of_several_questions_is_shown(page: Page, site: Site) -> None:
    """The answer to the first comes late, and is not let in."""
    held: list[Route] = []
    page.route("**/v1/candidates", lambda route: held.append(route) if not held else route.continue_())
    page.get_by_role("searchbox").fill("Remind Me")
    page.wait_for_timeout(300)
    ask(page, QUESTION)
    with suppress(Error):  # the page may have hung up on it, which is as good
        held[0].continue_()
    page.wait_for_timeout(300)
    assert ids(page) == site.search(QUESTION, limit=10)


def test_the_question_stands_in_the_address_and_in_the_history(page: Page, site: Site) -> None:
    ask(page, QUESTION)
    page.keyboard.press("Enter")
    assert "token" not in page.url
    page.get_by_role("searchbox").fill("Remind Me")
    page.keyboard.press("Enter")
    settled(page, "Remind Me")
    page.go_back()
    settled(page, QUESTION)
    expect(page.get_by_role("searchbox")).to_have_value(QUESTION)
    assert ids(page) == site.search(QUESTION, limit=10)


def test_an_address_with_a_question_answers_it_at_once(browser: Browser, site: Site) -> None:
    with opened(browser, site, "/?q=Remind+Me&recipe=keyword") as page:
        settled(page, "Remind Me")
        expect(page.locator("#recipe")).to_have_value("keyword")
        assert ids(page) == site.search("Remind Me", limit=10, recipe="keyword")


def test_another_recipe_gives_its_own_order(page: Page, site: Site) -> None:
    ask(page, QUESTION)
    page.locator("#recipe").select_option("rrf")
    expect(page.locator("#tune")).to_contain_text("Rank Constant k")
    assert ids(page) == site.search(QUESTION, limit=10, recipe="rrf")
    assert "recipe=rrf" in page.url


def test_more_hits_are_one_click_away(page: Page, site: Site) -> None:
    ask(page, QUESTION)
    page.get_by_role("button", name="Show more").click()
    assert ids(page) == site.search(QUESTION, limit=20)


def test_a_question_nothing_answers_is_called_so_and_helped(page: Page) -> None:
    ask(page, "who won the chess final in 1972?")
    expect(page.locator("[data-verdict]")).to_contain_text("Nothing relevant")
    page.get_by_role("button", name="see where it was lost").click()
    expect(page.get_by_label("The memory you expected")).to_be_focused()


def test_without_a_question_the_page_offers_some(page: Page) -> None:
    expect(page.get_by_role("heading", name="Ask, and see why")).to_be_visible()
    offered = page.locator("[data-chip]").first
    name = offered.inner_text()
    offered.click()
    expect(page.get_by_role("searchbox")).to_have_value(name)
    settled(page, name)


def test_the_store_tells_about_itself(page: Page, site: Site) -> None:
    panel(page, "Store")
    store = page.locator("#store")
    status = site.ask("GET", "/v1/status")
    expect(store).to_contain_text(f"{status['memories']} memories from {status['files']} files")
    expect(store).to_contain_text("every memory has its vector")
    expect(store).to_contain_text("whyrank eval SET --keep")
    weak, found = (status["calibrations"][0]["thresholds"]["evidence"][name] for name in ("weak", "found"))
    curve = store.get_by_role("img")
    expect(curve).to_have_attribute("aria-label", re.compile(rf"weak from {weak:.3f}, found from {found:.3f}"))
    ask(page, QUESTION)
    expect(store.locator("[data-dot]")).to_have_count(10)


def test_a_kept_evaluation_is_shown(page: Page, site: Site, tmp_path: Path) -> None:
    (tmp_path / "corpus.jsonl").write_text('{"id": "d1", "text": "Robin prefers green tea"}\n', encoding="utf-8")
    (tmp_path / "queries.jsonl").write_text('{"id": "q1", "text": "which tea?"}\n', encoding="utf-8")
    (tmp_path / "qrels.tsv").write_text("query\tdocument\tgain\nq1\td1\t1\n", encoding="utf-8")
    assert main(["eval", str(tmp_path), "--keep", "--json", "--store", str(site.folder / STORE)]) == 0
    page.reload()
    panel(page, "Store")
    line = page.locator("#store [data-evaluation]").get_by_role("row", name=re.compile("^default"))
    expect(line).to_contain_text("1.000")  # the one document there is
