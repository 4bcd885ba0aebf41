"""A page of another origin in a real browser, and a server that asks for no token: it reads and writes nothing.

Without a token nothing but Host, Origin and the browser's own rules keep a page away from the memories.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import httpx
import pytest

import whyrank
from tests.e2e.conftest import SECONDS, STORE

from .site import Site, serving

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser

SECRET = "the gribble keeps the key under the third stone"

# Every way a page has to ask another origin; each returns what it could read.
ATTACKS = """async ([own, id]) => {
  const read = [];
  const told = async (name, ask) => {
    try {
      const got = await Promise.race([ask(), new Promise(done => setTimeout(() => done(''), 1500))]);
      read.push([name, String(got ?? '')]);
    } catch (error) { read.push([name, '']); }
  };
  const json = {'Content-Type': 'application/json'};
  const fact = JSON.stringify({text: 'planted by a foreign page'});
  const body = async (answer) => { const got = await answer; return got.type === 'opaque' ? '' : got.text(); };
  const at = (path, options) => () => body(fetch(own + path, options));
  await told('fetch', at('/v1/memories'));
  await told('search', at('/v1/search?query=gribble'));
  await told('opaque', at('/v1/memories', {mode: 'no-cors'}));
  await told('with credentials', at('/v1/memories', {credentials: 'include'}));
  await told('post as json', at('/v1/memories', {method: 'POST', headers: json, body: fact}));
  await told('post as text', at('/v1/memories', {method: 'POST', headers: {'Content-Type': 'text/plain'}, body: fact}));
  await told('post opaque', at('/v1/memories', {method: 'POST', mode: 'no-cors', body: fact}));
  await told('post a blob', at('/v1/memories', {method: 'POST', mode: 'no-cors',
    body: new Blob([fact], {type: 'application/json'})}));
  await told('delete', at('/v1/memories/' + id, {method: 'DELETE'}));
  await told('purge', at('/v1/memories/' + id + '?purge=true', {method: 'DELETE'}));
  await told('patch', at('/v1/memories/' + id, {method: 'PATCH', headers: json, body: fact}));
  await told('options', at('/v1/memories', {method: 'OPTIONS'}));
  await told('ingest', at('/v1/ingest', {method: 'POST', headers: json, body: '{"paths": ["."]}'}));
  await told('ticket', at('/ticket', {method: 'POST', headers: json, body: '{"ticket": "x"}'}));
  await told('metrics', at('/metrics'));
  await told('beacon', async () => {
    navigator.sendBeacon(own + '/v1/memories', new Blob([fact], {type: 'text/plain'}));
    return '';
  });
  await told('xhr', () => new Promise(done => {
    const asked = new XMLHttpRequest();
    asked.onloadend = () => done(asked.responseText);
    asked.open('GET', own + '/v1/memories');
    asked.send();
  }));
  await told('events', () => new Promise(done => {
    const events = new EventSource(own + '/v1/memories');
    events.onmessage = event => done(event.data);
    events.onerror = () => { events.close(); done(''); };
  }));
  await told('socket', () => new Promise(done => {
    const socket = new WebSocket(own.replace('http', 'ws') + '/v1/memories');
    socket.onmessage = event => done(event.data);
    socket.onerror = () => done('');
  }));
  await told('script', () => new Promise(done => {
    window.onerror = message => done('');
    const script = document.createElement('script');
    script.src = own + '/v1/memories';
    script.onload = () => done(''); script.onerror = () => done('');
    document.body.append(script);
  }));
  await told('frame', () => new Promise(done => {
    const frame = document.createElement('iframe');
    frame.src = own + '/';
    frame.onload = () => { try { done(frame.contentDocument.body.innerText); } catch (error) { done(''); } };
    document.body.append(frame);
  }));
  await told('form', () => new Promise(done => {
    const frame = document.createElement('iframe');
    frame.name = 'target';
    frame.onload = () => done('');
    document.body.append(frame);
    const form = document.createElement('form');
    Object.assign(form, {action: own + '/v1/memories', method: 'POST', enctype: 'text/plain', target: 'target'});
    const field = document.createElement('input');
    field.name = '{"text": "planted by a foreign page", "name": "'; field.value = '"}';
    form.append(field);
    document.body.append(form);
    form.submit();
  }));
  return read;
}"""


@contextmanager
def foreign_page() -> Iterator[int]:
    """Serve an empty page of somebody else on this machine; give its port."""

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(b"<!doctype html><title>evil</title><body></body>")

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Page) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()


@pytest.fixture
def unguarded(tmp_path: Path) -> Iterator[tuple[Site, str]]:
    """Serve a secret without a token; give the id of the memory too."""
    with whyrank.open(tmp_path / STORE, workspace=tmp_path, embedding="none") as memory:
        identity = memory.add(SECRET).id
    with serving(tmp_path, "--no-token", "--embedding", "none") as started:
        yield started, identity


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost"])
def test_a_page_of_another_port_reads_and_writes_nothing(
    browser: Browser, unguarded: tuple[Site, str], name: str
) -> None:
    site, identity = unguarded
    before = httpx.get(f"{site.url}/v1/memories", timeout=SECONDS).json()["memories"]
    assert [one["text"] for one in before] == [SECRET]
    with foreign_page() as port:
        context = browser.new_context()
        page = context.new_page()
        page.goto(f"http://{name}:{port}/")
        read = page.evaluate(ATTACKS, [site.url, identity])
        context.close()
    assert len(read) == 22
    assert not [(way, got) for way, got in read if got], read
    after = httpx.get(f"{site.url}/v1/memories", timeout=SECONDS).json()["memories"]
    assert after == before


def test_the_servers_own_page_reads_and_writes(browser: Browser, unguarded: tuple[Site, str]) -> None:
    """The attacks are no attacks where they are asked for by the right page: so they would have succeeded."""
    site, identity = unguarded
    context = browser.new_context(bypass_csp=True)
    page = context.new_page()
    page.goto(f"{site.url}/openapi.json")
    read = dict(page.evaluate(ATTACKS, [site.url, identity]))
    context.close()
    assert SECRET in read["fetch"]
    assert "planted" in read["xhr"]
    assert "planted" in read["post as json"]
    texts = [one["text"] for one in httpx.get(f"{site.url}/v1/memories", timeout=SECONDS).json()["memories"]]
    assert texts == ["planted by a foreign page"]  # written, and the secret deleted
