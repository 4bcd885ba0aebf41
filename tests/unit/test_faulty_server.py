"""The server that misbehaves on purpose does so on plan, and behaves well otherwise."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import Any

import pytest

from tests.faulty_server import FAULTS, FaultyServer, seeded_plan
from whyrank.testing.fakes import WordDirections


def asked(server: FaultyServer, path: str, body: dict[str, Any]) -> Any:
    request = urllib.request.Request(f"{server.url}{path}", json.dumps(body).encode(), method="POST")
    with urllib.request.urlopen(request, timeout=5) as answer:
        return json.loads(answer.read())


def test_without_a_plan_it_embeds_as_the_deterministic_embedder_does() -> None:
    with FaultyServer() as server:
        data = asked(server, "/embeddings", {"input": ["green tea", "tax"], "model": "m"})["data"]
    expected = WordDirections(32).documents(["green tea", "tax"]).tolist()
    assert [row["embedding"] for row in data] == expected
    assert [row["index"] for row in data] == [0, 1]


def test_without_a_plan_it_chats_and_remembers_what_it_was_asked() -> None:
    with FaultyServer(reply=lambda messages: messages[-1]["content"].upper()) as server:
        answer = asked(server, "/chat/completions", {"messages": [{"role": "user", "content": "tea"}]})
        assert answer["choices"][0]["message"]["content"] == "TEA"
        assert [request.path for request in server.requests] == ["/v1/chat/completions"]


def test_a_plan_is_used_up_request_by_request() -> None:
    with FaultyServer(["503", "wrong-count"], retry_after="7") as server:
        with pytest.raises(urllib.error.HTTPError) as caught:
            asked(server, "/embeddings", {"input": ["a", "b"]})
        assert (caught.value.code, caught.value.headers["Retry-After"]) == (503, "7")
        caught.value.close()
        assert len(asked(server, "/embeddings", {"input": ["a", "b"]})["data"]) == 1
        assert len(asked(server, "/embeddings", {"input": ["a", "b"]})["data"]) == 2


def test_a_seed_decides_the_plan_and_every_fault_is_in_a_long_one() -> None:
    plan = seeded_plan(7, 200, among=50)
    assert plan == seeded_plan(7, 200, among=50)
    assert plan != seeded_plan(8, 200, among=50)
    assert set(plan) == set(FAULTS)
    assert len(plan) == 250
    assert "hang" not in seeded_plan(7, 200, never=["hang"])
