"""The page with everything it loads stays small."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Response

    from .site import Site

MOST_BYTES = 200_000


@pytest.mark.parametrize("path", ["/", "/?q=how+do+I+calibrate+a+microphone"], ids=["alone", "with-an-answer"])
def test_a_visit_loads_at_most_200_kilobytes(browser: Browser, site: Site, path: str) -> None:
    """Headers and bodies as they travel, answers of the API included."""
    context = browser.new_context()
    page = context.new_page()
    answers: list[Response] = []
    page.on("response", lambda answer: answers.append(answer))
    page.goto(site.at(path), wait_until="networkidle")
    sizes = [answer.request.sizes() for answer in answers]
    weight = sum(size["responseBodySize"] + size["responseHeadersSize"] for size in sizes)
    assert len(answers) > 30
    assert 20_000 < weight <= MOST_BYTES
    context.close()
