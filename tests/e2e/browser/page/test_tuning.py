"""Sliders rank again in the browser; what they come to, the command line comes to as well."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.conftest import COMMAND, SECONDS, STORE

from .site import Site, ask, ids, turn

if TYPE_CHECKING:
    from pathlib import Path

QUESTION = "headphone time"


def asked_by_command(site: Site, folder: Path, toml: str, query: str) -> list[str]:
    """Put the page's TOML into a workspace, and ask there."""
    (folder / "whyrank.toml").write_text(toml, encoding="utf-8")
    command = [str(COMMAND), "search", query, "--store", str(site.folder / STORE), "--limit", "10", "--json"]
    done = subprocess.run(command, cwd=folder, capture_output=True, timeout=SECONDS, check=True)
    return [hit["id"] for hit in json.loads(done.stdout)["hits"]]


@pytest.mark.parametrize(
    "wish",
    [
        {"ranking.vector_weight": 0.05},
        {"ranking.vector_weight": 0.95, "ranking.recency_weight": 0.8, "ranking.recency_half_life_days": 90},
        {"ranking.min_vector": 0.3, "ranking.min_coverage": 0.4},
        {"ranking.mmr_lambda": 0.3},
    ],
    ids=lambda wish: "-".join(key.removeprefix("ranking.") for key in wish),
)
def test_a_turned_slider_ranks_as_the_command_line_does_by_the_copied_toml(
    page: Page, site: Site, tmp_path: Path, wish: dict[str, float]
) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    ask(page, QUESTION)
    before = ids(page)
    for key, value in wish.items():
        turn(page, key, value)
    page.wait_for_function("ids => JSON.stringify([...document.querySelectorAll('#hits > li')].map(i => i.dataset.id))"
                           " !== JSON.stringify(ids)", arg=before)  # fmt: skip
    page.get_by_role("button", name="Copy as TOML").click()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert {f"{key.removeprefix('ranking.')} = {value:g}" for key, value in wish.items()} <= set(copied.splitlines())
    after = ids(page)
    assert after == asked_by_command(site, tmp_path, copied, QUESTION)


def test_moved_hits_say_by_how_many_places(page: Page) -> None:
    ask(page, QUESTION)
    before = ids(page)
    turn(page, "ranking.vector_weight", 0.0)
    after = ids(page)
    assert after != before
    for place, identity in enumerate(after):
        said = page.locator(f"[data-id='{identity}'] [data-move]")
        if identity not in before:
            expect(said).to_have_text("new")
        elif before.index(identity) == place:
            expect(said).to_have_count(0)
        else:
            by = before.index(identity) - place
            expect(said).to_have_text(f"{'▲' if by > 0 else '▼'}{abs(by)}")
    gone = [identity for identity in before if identity not in after]
    expect(page.locator("[data-gone] li")).to_have_count(len(gone))


def test_reset_brings_the_order_back(page: Page, site: Site) -> None:
    ask(page, QUESTION)
    turn(page, "ranking.vector_weight", 0.0)
    turn(page, "ranking.recency_weight", 1.0)
    assert ids(page) != site.search(QUESTION, limit=10)
    page.get_by_role("button", name="Reset").click()
    assert ids(page) == site.search(QUESTION, limit=10)
    expect(page.locator("[data-move]")).to_have_count(0)
    expect(page.get_by_role("button", name="Copy as TOML")).to_be_disabled()


def test_turned_sliders_stay_turned_for_the_next_question(page: Page, site: Site, tmp_path: Path) -> None:
    ask(page, QUESTION)
    turn(page, "ranking.vector_weight", 0.0)
    ask(page, "how do I calibrate a microphone")
    toml = "[ranking]\nvector_weight = 0\n"
    assert ids(page) == asked_by_command(site, tmp_path, toml, "how do I calibrate a microphone")


def test_the_half_life_is_idle_until_recency_is_turned_up(page: Page) -> None:
    ask(page, QUESTION)
    row = page.locator("[data-knob='ranking.recency_half_life_days']")
    expect(row).to_have_attribute("data-idle", "")
    expect(row.locator("[data-hint]")).to_contain_text("Idle here: Recency is at 0")
    turn(page, "ranking.recency_weight", 0.4)
    expect(row).not_to_have_attribute("data-idle", "")
    expect(row.locator("[data-hint]")).not_to_contain_text("Idle")
    page.get_by_role("button", name="Reset").click()
    expect(row).to_have_attribute("data-idle", "")


def test_sliding_asks_the_server_nothing(page: Page) -> None:
    ask(page, QUESTION)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    for step in range(0, 101, 5):
        turn(page, "ranking.vector_weight", step / 100)
    assert asked == []
