"""Answers that end before their end: a connection that breaks, and a reader who has gone on."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from tests.e2e.conftest import SECONDS
from whyrank.interfaces.http.app import page_file

from .site import Site, opened

if TYPE_CHECKING:
    from collections.abc import Iterator

HALF = b'{"memories": ['
_READ = """async (leave) => {
  const api = await import("/page/api.js");
  const reader = new AbortController();
  if (leave) setTimeout(() => reader.abort(), 300);
  const told = ({ name, code, message }) => ({ name, code, message });
  return api.memories({}, reader.signal).then(() => "an answer", told);
}"""


@contextmanager
def half_served(status: int = 200, *, holds: bool = False) -> Iterator[str]:
    """Serve the page's own files, and of every other answer the first half: then break it off, or hold on to it."""
    over = threading.Event()

    class Half(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            name = self.path.removeprefix("/page/")
            file = page_file(name) if name.endswith(".js") else None
            content = file.content if file else b"<!doctype html><title>half</title>"
            is_answer = self.path.startswith("/v1/")
            self.send_response(status if is_answer else 200)
            self.send_header("Content-Type", "text/javascript" if file else "text/html")
            self.send_header("Content-Length", str(2 * len(HALF) if is_answer else len(content)))
            self.end_headers()
            self.wfile.write(HALF if is_answer else content)
            self.wfile.flush()
            if is_answer and holds:
                over.wait(SECONDS)

        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Half)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        over.set()
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def tab(browser: Browser) -> Iterator[Page]:
    """Return an empty tab."""
    page = browser.new_page()
    yield page
    page.close()


def test_an_answer_that_breaks_off_is_told_as_that(tab: Page) -> None:
    with half_served() as url:
        tab.goto(url)
        failure = tab.evaluate(_READ, False)
    assert (failure["code"], failure["message"]) == ("broken-off", "The server's answer was cut off.")


def test_a_refusal_without_words_is_told_by_its_number(tab: Page) -> None:
    with half_served(502) as url:
        tab.goto(url)
        failure = tab.evaluate(_READ, False)
    assert (failure["code"], failure["message"]) == ("unreadable", "The server answered 502.")


def test_who_goes_on_amid_an_answer_hears_of_no_failure(tab: Page) -> None:
    """The headers have come and the rest has not: what is left then is left, and nothing went wrong."""
    with half_served(holds=True) as url:
        tab.goto(url)
        assert tab.evaluate(_READ, True)["name"] == "AbortError"


def test_a_change_whose_answer_broke_off_is_not_called_undone(browser: Browser, site: Site) -> None:
    def cut(route: Route) -> None:
        route.fulfill(status=201, body='{"id": "m_', content_type="application/json")

    with opened(browser, site, may_fail=True) as page:
        page.route("**/v1/memories", cut)
        page.get_by_role("button", name="Add a fact").click()
        page.get_by_label("One fact, in a sentence").fill("The zither has forty strings")
        page.get_by_role("button", name="Add", exact=True).click()
        expect(page.locator("#toasts")).to_contain_text("The server's answer was cut off. Try again;")
        expect(page.locator("#toasts")).not_to_contain_text("was not added")
