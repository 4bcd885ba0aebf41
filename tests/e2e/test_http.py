"""The HTTP door as programs meet it: real processes, real sockets, and everything that can be sent wrongly."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import httpx
import pytest

import whyrank
from whyrank.interfaces import serialize

from .rest import Serving, all_of, code_of, ended, request_bytes, searched, serving

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def server(workspace: Path) -> Iterator[Serving]:
    with serving(workspace) as started:
        yield started


def test_a_fact_lives_its_life(server: Serving) -> None:
    added = server.client.post("/v1/memories", json={"text": "Robin prefers green tea", "tags": ["drinks"]})
    assert (added.status_code, added.json()["outcome"]) == (201, "stored")
    identity = added.json()["id"]
    again = server.client.post("/v1/memories", json={"text": "robin prefers GREEN tea"})
    assert (again.status_code, again.json()["outcome"], again.json()["id"]) == (200, "known", identity)
    more = server.client.post("/v1/memories", json={"text": "Robin prefers green tea", "importance": 5}).json()
    assert ([notice["code"] for notice in more["notices"]], more["importance"]) == (["known-as-it-is"], None)
    assert "`PATCH /v1/memories/" in more["notices"][0]["message"]
    found = searched(server, "which tea does Robin prefer?").json()["hits"][0]
    assert (found["id"], found["trust"]) == (identity, "owner")
    changed = server.client.patch(f"/v1/memories/{identity}", json={"text": "Robin prefers oolong", "tags": None})
    assert changed.json()["notices"] == []
    again = server.client.patch(f"/v1/memories/{identity}", json={"text": "Robin prefers oolong"})
    assert [notice["code"] for notice in again.json()["notices"]] == ["nothing-changed"]
    assert changed.json()["history"][0]["was"]["text"] == "Robin prefers green tea"
    assert (changed.json()["text"], changed.json()["tags"]) == ("Robin prefers oolong", [])
    newer = server.client.post("/v1/memories", json={"text": "Robin drinks water", "supersedes": identity}).json()
    shown = server.client.get(f"/v1/memories/{newer['id']}").json()
    assert shown["replaced"] == [{"id": identity, "text": "Robin prefers oolong"}]
    assert server.client.post("/v1/recalled", json={"ids": [newer["id"]]}).json()["recalled"] == [newer["id"]]
    assert server.client.get(f"/v1/memories/{newer['id']}").json()["recalls"] == 1
    gone = server.client.delete(f"/v1/memories/{newer['id']}", params={"purge": True})
    assert gone.json()["forgotten"] == [newer["id"]]
    missing = server.client.get(f"/v1/memories/{newer['id']}")
    assert (missing.status_code, code_of(missing)) == (404, "not-found")


def test_a_turn_is_answered_by_what_the_library_would_inject(server: Serving, engine: whyrank.Engine) -> None:
    def posted(**asked: Any) -> Any:
        return server.client.post("/v1/recall", json={"turn": "what does Suzy drink in the morning?", **asked}).json()

    own = serialize.reminder(engine.recall("what does Suzy drink in the morning?", budget=300))
    assert {**posted(max_tokens=300), "id": ""} == {**own, "id": ""}
    given = [bool(posted(session="s")["text"]) for _ in range(2)]
    assert given == [True, False]
    nothing = server.client.post("/v1/recall", json={"turn": "quarterly revenue of semiconductor vendors"}).json()
    assert (nothing["text"], nothing["verdict"]) == ("", "nothing")
    assert engine.recall.log()[0].host == "http"


def test_a_write_with_a_key_happens_once(server: Serving) -> None:
    def put(text: str, key: str) -> httpx.Response:
        return server.client.post("/v1/memories", json={"text": text}, headers={"Idempotency-Key": key})

    first, again = put("The spare key hangs in the shed", "k-1"), put("The spare key hangs in the shed", "k-1")
    assert (first.status_code, again.status_code, again.json()["id"]) == (201, 200, first.json()["id"])
    other = put("The spare key is lost", "k-1")
    assert (other.status_code, code_of(other)) == (409, "config")
    both = server.client.post("/v1/memories", json={"text": "a", "key": "one"}, headers={"Idempotency-Key": "two"})
    assert both.status_code == 409
    assert put("a", "with spaces in it").status_code == 422


def test_pages_go_on_where_they_ended_whatever_comes_and_goes(server: Serving, engine: whyrank.Engine) -> None:
    ids = [engine.add(f"Fact number {number}").id for number in range(10)]
    listed = sorted(ids)
    for sort in ("place", "created", "date", "importance", "recalls"):
        whole = server.client.get("/v1/memories", params={"kind": "fact", "sort": sort, "limit": 1000}).json()
        assert whole["next"] is None
        order = [one["id"] for one in whole["memories"]]
        assert sorted(order) == listed
        page = server.client.get("/v1/memories", params={"kind": "fact", "sort": sort, "limit": 4}).json()
        assert [one["id"] for one in page["memories"]] == order[:4]
        # The last of the page is forgotten, another comes; neither moves the next page.
        engine.forget(order[3])
        rest, cursor = [], page["next"]
        while cursor:
            asked = {"kind": "fact", "sort": sort, "limit": 3, "cursor": cursor}
            page = server.client.get("/v1/memories", params=asked).json()
            rest += [one["id"] for one in page["memories"]]
            cursor = page["next"]
        assert rest == order[4:], sort
        listed.remove(order[3])
        wrong = server.client.get("/v1/memories", params={"cursor": whole.get("next") or "nonsense"})
        assert (wrong.status_code, code_of(wrong)) == (404, "cursor")


def test_the_other_answers_are_the_librarys_too(server: Serving, engine: whyrank.Engine) -> None:
    query = "what does Suzy drink"
    first, second = [hit.id for hit in engine.search(query)[:2]]

    def posted(path: str, **asked: Any) -> Any:
        return server.client.post(path, json=asked).json()

    assert posted("/v1/why", query=query, id=first) == serialize.why(engine.why(query, first))
    assert posted("/v1/why", query=query, id="notes/boat.md", over=first) == serialize.contrast(
        engine.why(query, "notes/boat.md", over=first)
    )
    assert second
    explained = posted("/v1/search", query=query, explain=True, limit=2)
    own = serialize.results(engine.search(query, limit=2), explain=True)
    assert {**explained, "timings": {}} == {**own, "timings": {}}
    shown = server.client.get(f"/v1/memories/{first}").json()
    assert shown == serialize.shown(engine.get(first), engine.history(first), engine.memories.replaced(first))
    status = server.client.get("/v1/status").json()
    assert (status["memories"], status["version"], status["evaluation"]) == (
        engine.status().memories, whyrank.__version__, None,
    )  # fmt: skip
    recipes = server.client.get("/v1/recipes").json()["recipes"]
    assert "ranking.alpha" in recipes["openvault"]["settings"]
    assert "ranking.alpha" not in recipes["default"]["settings"]


WRONG: list[tuple[str, str, bytes, int, str]] = [
    ("POST", "/v1/search", b"{", 400, "bad-json"),
    ("POST", "/v1/search", b'{"query": "\xff"}', 400, "bad-json"),
    ("POST", "/v1/search", b'{"query": "a", "query": "b"}', 400, "bad-json"),
    ("POST", "/v1/search", b'{"query": "a", "limit": NaN}', 400, "bad-json"),
    ("POST", "/v1/search", b"[" * 200_000, 400, "bad-json"),
    ("POST", "/v1/search", b'{"query": ' + b"[" * 5_000 + b"]" * 5_000 + b"}", 400, "bad-json"),
    ("POST", "/v1/search", b'{"query": "a", "limit": ' + b"9" * 5_000 + b"}", 400, "bad-json"),
    ("POST", "/v1/search", b"", 400, "bad-json"),
    ("POST", "/v1/search", b"[]", 422, "config"),
    ("POST", "/v1/search", b"{}", 422, "config"),
    ("POST", "/v1/search", b'{"query": 7}', 422, "config"),
    ("POST", "/v1/search", b'{"query": null}', 422, "config"),
    ("POST", "/v1/search", b'{"query": "a", "limit": "5"}', 422, "config"),
    ("POST", "/v1/search", b'{"query": "a", "limit": 1e400}', 422, "config"),
    ("POST", "/v1/search", b'{"query": "a", "limit": -1}', 422, "config"),
    ("POST", "/v1/search", b'{"query": "a", "limitt": 1}', 422, "config"),
    ("POST", "/v1/search", b'{"query": "a", "scope": "user:7"}', 422, "config"),
    ("POST", "/v1/search", b'{"query": "a", "since": "yesterday"}', 422, "config"),
    ("POST", "/v1/search", b'{"query": "a", "recipe": "best"}', 422, "config"),
    ("POST", "/v1/search", b'{"query": "(a", "syntax": "advanced"}', 422, "bad-query"),
    ("POST", "/v1/search?limit=3", b'{"query": "a"}', 422, "config"),
    ("GET", "/v1/search?query=a&limit=x", b"", 422, "config"),
    ("GET", "/v1/search?query=a&query=b", b"", 422, "config"),
    ("GET", "/v1/search", b"", 422, "config"),
    ("POST", "/v1/memories", b'{"text": "a \\ud800 b"}', 422, "config"),
    ("POST", "/v1/memories", b'{"text": "a \\u0000 b"}', 422, "config"),
    ("POST", "/v1/memories", b'{"text": "  "}', 422, "config"),
    ("POST", "/v1/memories", b'{"text": "a", "supersedes": "m_1"}', 404, "not-found"),
    ("POST", "/v1/why", b'{"query": "a", "id": "m_1"}', 404, "not-found"),
    ("POST", "/v1/recalled", b'{"ids": ["m_1"]}', 404, "not-found"),
    ("POST", "/v1/ingest", b'{"paths": ["nowhere"]}', 404, "ingest"),
    ("DELETE", "/v1/memories/m_1", b"", 404, "not-found"),
    ("PUT", "/v1/memories", b"{}", 405, "method"),
    ("TRACE", "/v1/search", b"", 405, "method"),
    ("GET", "/v1/nothing", b"", 404, "not-found"),
    ("GET", "/v1/search/", b"", 404, "not-found"),
    ("GET", "/page/../../../pyproject.toml", b"", 404, "not-found"),
    ("GET", "/page/%2e%2e/app.py", b"", 404, "not-found"),
]  # fmt: skip


def test_what_is_wrong_is_said(server: Serving) -> None:
    for method, path, body, status, code in WRONG:
        refused = server.client.request(method, path, content=body, headers={"Content-Type": "application/json"})
        assert (refused.status_code, code_of(refused)) == (status, code), (method, path, body[:40])
        if status == 405:
            assert "POST" in refused.headers["allow"]
    hint = searched(server, "a", limitt=1).json()["error"]["hint"]
    assert hint == "did you mean 'limit'?"
    kinds: list[dict[str, str]] = [
        {}, {"Content-Type": "text/plain"}, {"Content-Type": "application/json; charset=latin-1"},
        {"Content-Type": "application/json", "Content-Encoding": "gzip"},
    ]  # fmt: skip
    for kind in kinds:
        refused = server.client.post("/v1/search", content=b'{"query": "a"}', headers=kind)
        assert (refused.status_code, code_of(refused)) == (415, "content-type"), kind
    assert searched(server, "green tea").status_code == 200
    assert "Traceback" not in ended(server)[1]


def test_any_text_is_a_question(server: Serving) -> None:
    for body in (
        b'{"query": "\\ud800 tea"}',
        b'{"query": "tea\\u0000pot"}',
        b'{"query": ""}',
        '{"query": "茶"}'.encode(),
    ):
        answer = server.client.post("/v1/search", content=body, headers={"Content-Type": "application/json"})
        assert (answer.status_code, answer.json()["format"]) == (200, 1)


def test_nobody_comes_in_without_token_or_by_a_foreign_name(server: Serving) -> None:
    for headers, status, code in (
        ({"Authorization": ""}, 401, "token"),
        ({"Authorization": "Bearer wrong-wrong-wrong"}, 401, "token"),
        ({"Host": "evil.example"}, 421, "foreign-host"),
        ({"Origin": "http://evil.example"}, 403, "foreign-origin"),
        ({"Origin": "null"}, 403, "foreign-origin"),
    ):
        for path in ("/v1/search", "/v1/nothing", "/metrics", "/v1/memories/m_1"):
            refused = server.client.get(path, headers=headers)
            assert (refused.status_code, code_of(refused)) == (status, code)
    assert server.client.get("/health", headers={"Host": "evil.example"}).status_code == 421
    assert server.client.get("/v1/status", headers={"Origin": server.url}).status_code == 200
    for path in ("/health", "/openapi.json"):
        assert httpx.get(f"{server.url}{path}").status_code == 200
    missing = httpx.get(f"{server.url}/page/none.js")
    assert (missing.status_code, code_of(missing)) == (404, "not-found")


def test_an_id_is_taken_over_if_it_is_sane(server: Serving) -> None:
    own = server.client.get("/v1/recipes", headers={"X-Request-Id": "mine-1.a_B"})
    assert own.headers["x-request-id"] == "mine-1.a_B"
    for wild in (b"two words", b"x" * 65, b'a"b', b"\xe9"):
        other = server.client.get("/v1/recipes", headers={b"X-Request-Id": wild})
        assert len(other.headers["x-request-id"]) == 16


def test_heads_and_options_say_what_there_is(server: Serving) -> None:
    head, whole = server.client.head("/v1/recipes"), server.client.get("/v1/recipes")
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["content-length"] == str(len(whole.content))
    options = server.client.options("/v1/memories")
    assert (options.status_code, options.headers["allow"]) == (204, "GET, POST, HEAD, OPTIONS")


def test_ten_megabytes_are_refused_however_they_come(server: Serving) -> None:
    kind = {"Content-Type": "application/json"}
    whole = server.client.post("/v1/search", content=b" " * 10_000_000, headers=kind)
    assert (whole.status_code, code_of(whole)) == (413, "too-long")
    pieces = server.client.post("/v1/search", content=(b" " * 100_000 for _ in range(100)), headers=kind)
    assert (pieces.status_code, code_of(pieces)) == (413, "too-long")
    with server.connected() as connection:
        # It is refused before a byte of it has come.
        connection.sendall(request_bytes("POST /v1/search HTTP/1.1\nContent-Length: 99999999999"))
        assert connection.recv(12) == b"HTTP/1.1 413"
    assert searched(server, "green tea").status_code == 200


def test_what_is_no_http_and_what_does_not_come_are_let_go(server: Serving) -> None:
    with server.connected() as connection:
        connection.sendall(b"\x16\x03\x01 this is no HTTP\r\n\r\n")
        said = all_of(connection)
    assert said.startswith(b"HTTP/1.1 400")
    assert json.loads(said.partition(b"\r\n\r\n")[2])["error"]["code"] == "bad-http"
    began = time.monotonic()
    with server.connected() as slow, server.connected() as silent, server.connected() as halting:
        slow.sendall(b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ")
        halting.sendall(
            request_bytes("POST /v1/search HTTP/1.1\nContent-Type: application/json\nContent-Length: 50", b"{")
        )
        # Others are answered meanwhile.
        assert searched(server, "green tea").status_code == 200
        for _ in range(4):
            time.sleep(0.5)
            slow.sendall(b"a")
        ends = [all_of(connection) for connection in (slow, silent, halting)]
    assert time.monotonic() - began < 40
    for end in ends:
        assert end.startswith(b"HTTP/1.1 408"), end[:100]
        assert json.loads(end.partition(b"\r\n\r\n")[2])["error"]["hint"] == "send it at once"


def test_a_client_that_leaves_harms_nobody(server: Serving) -> None:
    body = json.dumps({"query": "green tea", "explain": True}).encode()
    head = f"POST /v1/search HTTP/1.1\nContent-Type: application/json\nContent-Length: {len(body)}"
    for _ in range(20):
        with server.connected() as connection:
            connection.sendall(request_bytes(head, body))
        with server.connected() as connection:
            connection.sendall(request_bytes(head, body[:5]))
    assert searched(server, "green tea").status_code == 200
    assert "Traceback" not in ended(server)[1]


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_thousand_connections_at_once_are_all_answered(workspace: Path, workers: str) -> None:
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4_096), hard))
    try:
        with serving(workspace, "--workers", workers) as server:
            assert searched(server, "green tea").status_code == 200
            connections = [server.connected() for _ in range(1_000)]
            for connection in connections:
                connection.sendall(request_bytes("GET /v1/recipes HTTP/1.1"))
            heads = [connection.recv(15) for connection in connections]
            for connection in connections:
                connection.close()
            assert set(heads) == {b"HTTP/1.1 200 OK"}
            assert searched(server, "green tea").status_code == 200
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_purges_are_limited_and_all_else_goes_on(server: Serving) -> None:
    path = "/v1/memories/m_aaaaaaaaaaaaaaaa"
    statuses = [server.client.delete(path, params={"purge": True}).status_code for _ in range(12)]
    assert statuses == [404] * 10 + [429] * 2
    late = server.client.delete(path, params={"purge": True})
    assert (late.status_code, code_of(late)) == (429, "too-many")
    assert 0 < int(late.headers["retry-after"]) <= 60
    assert server.client.delete(path).status_code == 404
    assert searched(server, "tea tin").status_code == 200
