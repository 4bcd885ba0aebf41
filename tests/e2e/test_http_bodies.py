"""Bodies that no client should send: each is answered at once with a refusal that says why, never with a 500."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from .rest import Serving, code_of, serving

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import httpx

# Each value in the place of a text, a number or a list of a body.
ODD_VALUES = {
    "half of a pair": r'"\ud83d"',
    "the other half": r'"a\ude00b"',
    "NUL": r'"a\u0000b"',
    "NaN": "NaN",
    "minus infinity": "-Infinity",
    "a number beyond doubles": "1e999",
    "a huge number": "9" * 4_000,
    "a longer number than Python reads": "9" * 5_000,
    "deep lists": "[" * 5_000 + "]" * 5_000,
    "deep objects": '{"a":' * 5_000 + "1" + "}" * 5_000,
    "an open list": "[" * 100_000,
    "an object": '{"$gt": ""}',
    "null": "null",
    "true": "true",
}
# A route, and the body around one value.
PLACES = (
    ("POST", "/v1/search", '{"query": %s}'),
    ("POST", "/v1/search", '{"query": "tea", "limit": %s}'),
    ("POST", "/v1/search", '{"query": "tea", "tags": [%s]}'),
    ("POST", "/v1/search", '{"query": "tea", "path": %s}'),
    ("POST", "/v1/search", '{"query": "tea", "since": %s}'),
    ("POST", "/v1/search", '{"query": "tea", %s: 1}'),
    ("POST", "/v1/recall", '{"turn": %s}'),
    ("POST", "/v1/recall", '{"turn": "tea", "session": %s}'),
    ("POST", "/v1/candidates", '{"query": %s}'),
    ("POST", "/v1/likeness", '{"query": %s}'),
    ("POST", "/v1/why", '{"query": "tea", "id": %s}'),
    ("POST", "/v1/why", '{"query": %s, "id": "notes/tea.md"}'),
    ("POST", "/v1/memories", '{"text": %s}'),
    ("POST", "/v1/memories", '{"text": "tea", "name": %s}'),
    ("POST", "/v1/memories", '{"text": "tea", "tags": [%s]}'),
    ("POST", "/v1/memories", '{"text": "tea", "entities": [%s]}'),
    ("POST", "/v1/memories", '{"text": "tea", "supersedes": %s}'),
    ("POST", "/v1/memories", '{"text": "tea", "key": %s}'),
    ("POST", "/v1/memories", '{"text": "tea", "importance": %s}'),
    ("POST", "/v1/memories", '{"text": "tea", "expires": %s}'),
    ("PATCH", "/v1/memories/m_aaaaaaaaaaaaaaaa", '{"text": %s}'),
    ("PATCH", "/v1/memories/m_aaaaaaaaaaaaaaaa", '{"tags": [%s]}'),
    ("POST", "/v1/recalled", '{"ids": [%s]}'),
    ("POST", "/v1/ingest", '{"paths": [%s]}'),
    ("POST", "/ticket", '{"ticket": %s}'),
)
QUESTIONS = frozenset({"/v1/search", "/v1/recall", "/v1/candidates", "/v1/likeness", "/v1/why"})


@pytest.fixture(scope="module")
def server(template: Path) -> Iterator[Serving]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("XDG_CONFIG_HOME", str(template / "no-config"))
        with serving(template) as server:
            yield server


def sent(server: Serving, method: str, path: str, body: str) -> httpx.Response:
    return server.client.request(method, path, content=body, headers={"Content-Type": "application/json"})


@pytest.mark.parametrize("value", ODD_VALUES)
def test_an_odd_value_is_refused_in_every_field(server: Serving, value: str) -> None:
    for method, path, body in PLACES:
        answer = sent(server, method, path, body % ODD_VALUES[value])
        said = (method, path, body, answer.status_code, answer.text[:200])
        if path in QUESTIONS and answer.status_code == 200:
            assert ODD_VALUES[value].startswith('"') or ODD_VALUES[value] in ("null", "true"), said
            answer.json()
        else:
            assert 400 <= answer.status_code < 500, said
            code_of(answer)
    assert server.client.post("/v1/search", json={"query": "green tea"}).json()["hits"]


def test_half_of_a_pair_in_a_question_is_replaced_with_a_notice(server: Serving) -> None:
    answer = sent(server, "POST", "/v1/search", r'{"query": "green tea \ud83d"}')
    assert answer.json()["hits"][0]["path"] == "notes/tea.md"
    assert "query-cleaned" in [notice["code"] for notice in answer.json()["notices"]]
    assert answer.content.isascii() or answer.content.decode()


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ('{"query": "a", "query": "b"}', "bad-json"),
        ('{"query": "a"} {"query": "b"}', "bad-json"),
        ('\ufeff{"query": "a"}', "bad-json"),
        ("[]", "config"),
        ("", "bad-json"),
    ],
)
def test_a_body_that_says_two_things_or_none_is_refused(server: Serving, body: str, code: str) -> None:
    answer = sent(server, "POST", "/v1/search", body)
    assert answer.status_code in (400, 422)
    assert code_of(answer) == code


@pytest.mark.parametrize("text", ["%ED%A0%BD", "%00", "%FF%FE", "%F0%9F%98%80%ED%B0%80", "a" * 5_000])
def test_odd_bytes_in_an_address_are_answered(server: Serving, text: str) -> None:
    for path in (f"/v1/search?query={text}", f"/v1/memories?path={text}", f"/v1/memories?tags={text}",
                 f"/v1/memories/{text}", f"/v1/memories?cursor={text}"):  # fmt: skip
        answer = server.client.get(path)
        assert answer.status_code == 200 or 400 <= answer.status_code < 500, (path, answer.text[:200])
    assert server.client.delete(f"/v1/memories/{text}").status_code in (404, 422)
