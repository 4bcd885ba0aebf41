"""A real server over a real store, and a page in a real browser that is watched while it is used."""

from __future__ import annotations

import json
import os
import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import httpx

from tests import processes
from tests.e2e.conftest import COMMAND, SECONDS, STORE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser, ConsoleMessage, Page, Request

WAIT_MS = 10_000
DESK = {"width": 1280, "height": 900}
PHONE = {"width": 360, "height": 740}
_REFUSED = "Failed to load resource"  # what a browser says of an answer that is meant to be a refusal


class Site(NamedTuple):
    """A server that listens, the token that opens it, and the workspace it serves."""

    url: str
    token: str
    folder: Path
    process: subprocess.Popen[str]

    def at(self, path: str = "/") -> str:
        """Return an address of the page as the command line prints it: with the token behind it."""
        return f"{self.url}{path}#token={self.token}"

    def ask(self, method: str, path: str, **body: Any) -> Any:
        """Ask the server past the page."""
        headers = {"Authorization": f"Bearer {self.token}"}
        answer = httpx.request(method, self.url + path, json=body or None, headers=headers, timeout=SECONDS)
        return answer.json()

    def search(self, query: str, **asked: Any) -> list[str]:
        """Return the ids the server finds."""
        return [hit["id"] for hit in self.ask("POST", "/v1/search", query=query, **asked)["hits"]]


@contextmanager
def serving(folder: Path, *options: str) -> Iterator[Site]:
    """Start `whyrank serve` on a free port, and end it afterwards."""
    with processes.serving(
        [COMMAND, "serve", "--port", "0", "--json", "--store", str(folder / STORE), *options],
        cwd=folder,
        env={name: value for name, value in os.environ.items() if not name.startswith("WHYRANK_")},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        assert process.stdout is not None
        told = json.loads(process.stdout.readline())
        yield Site(told["url"], told["token"], folder, process)


@contextmanager
def opened(browser: Browser, site: Site, path: str = "/", *, may_fail: bool = False, **options: Any) -> Iterator[Page]:
    """Open the page; nothing may go wrong in it unseen, and nothing may be asked of anybody else.

    `may_fail` is for tests in which the server is meant to refuse.
    """
    context = browser.new_context(**{"viewport": DESK, "reduced_motion": "reduce", **options})
    page = context.new_page()
    page.set_default_timeout(WAIT_MS)
    wrong: list[str] = []
    asked: list[str] = []

    def hear(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning") and not (may_fail and _REFUSED in message.text):
            wrong.append(message.text)

    def see(request: Request) -> None:
        asked.append(request.url)

    page.on("console", hear)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("request", see)
    page.goto(site.at(path))
    yield page
    context.close()
    foreign = [address for address in asked if not address.startswith(f"{site.url}/")]
    assert not wrong, wrong
    assert not foreign, foreign


def ask(page: Page, query: str) -> None:
    """Type a question and wait for its answer."""
    page.get_by_role("searchbox").fill(query)
    settled(page, query)


def settled(page: Page, query: str) -> None:
    """Wait until the page shows the answer to a question."""
    page.locator(f"#hits[data-asked={json.dumps(query)}]:not([aria-busy]) > li").first.wait_for()


def ids(page: Page) -> list[str]:
    """Return the ids of the hits, in the order they are shown."""
    found: list[str] = page.locator("#hits > li").evaluate_all("items => items.map(item => item.dataset.id)")
    return found


def turn(page: Page, key: str, value: float) -> None:
    """Turn the slider of a setting."""
    page.locator(f"[data-key='{key}']").evaluate(
        "(slider, value) => { slider.value = value; slider.dispatchEvent(new Event('input', {bubbles: true})); }", value
    )


def panel(page: Page, name: str) -> None:
    """Open a panel."""
    page.get_by_role("tab", name=name).click()
