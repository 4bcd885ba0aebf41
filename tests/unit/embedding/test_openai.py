"""Vectors over HTTP: in batches, in order, checked; what is wrong is refused and says what to do."""

from __future__ import annotations

import gc
import socket
import time
from typing import Any

import numpy as np
import pytest

from tests.faulty_server import Fault, FaultyServer, seeded_plan
from whyrank.errors import ProviderError, ProviderGarbage, ProviderRefused, ProviderTimeout, ProviderUnavailable
from whyrank.providers.endpoint import Endpoint, Patience
from whyrank.providers.http import Transport
from whyrank.providers.names import PROMPTS, canonical_prompt, prompts_of
from whyrank.providers.openai import OpenAiEmbedder, ServedModel
from whyrank.testing.fakes import WordDirections

TEXTS = [f"note number {i} about tea" for i in range(10)]
OURS = WordDirections(32)


def embedder(
    server: FaultyServer, total_s: float = 10.0, most_bytes: int = 10_000_000, **served: Any
) -> OpenAiEmbedder:
    endpoint, patience = Endpoint(server.url, "embedder"), Patience(total_s)
    transport = Transport(endpoint, patience, sleep=lambda seconds: None, most_bytes=most_bytes)
    return OpenAiEmbedder(ServedModel("m", **served), transport)


def sizes(server: FaultyServer) -> list[int]:
    return [len(request.body["input"]) for request in server.requests]


def test_texts_go_in_batches_and_come_back_as_they_are() -> None:
    with FaultyServer() as server:
        rows = embedder(server, batch=4).documents(TEXTS)
        assert sizes(server) == [4, 4, 2]
    assert np.allclose(rows, OURS.documents(TEXTS), atol=1e-6)


def test_answers_in_another_order_are_put_in_order() -> None:
    with FaultyServer(["shuffled"]) as server:
        rows = embedder(server).documents(TEXTS)
    assert np.allclose(rows, OURS.documents(TEXTS), atol=1e-6)


def test_vectors_of_any_length_are_brought_to_unit_length() -> None:
    with FaultyServer() as server:
        server.embeddings = lambda texts: [[3e200, 4e200], [3e-200, 4e-200]]  # type: ignore[method-assign]
        rows = embedder(server).documents(["long", "short"])
    # (3, 4) / √(3² + 4²) = (0.6, 0.8)
    assert np.allclose(rows, [[0.6, 0.8], [0.6, 0.8]])


def test_a_batch_that_is_too_large_is_halved_and_the_next_one_is_smaller() -> None:
    with FaultyServer(most_texts=3) as server:
        rows = embedder(server, batch=8).documents(TEXTS)
        # 8 → 4 and 4 → 2 and 2 each; from then on two at a time
        assert sizes(server) == [8, 4, 2, 2, 4, 2, 2, 2]
    assert np.allclose(rows, OURS.documents(TEXTS), atol=1e-6)


def test_a_text_that_is_refused_alone_is_told_by_its_length_and_not_quoted() -> None:
    long = "an endless story " * 50
    with FaultyServer(most_letters=400) as server, pytest.raises(ProviderRefused) as caught:
        embedder(server).documents([*TEXTS, long])
    assert caught.value.status == 400
    assert "one text of 850 letters" in caught.value.message  # 17 letters, fifty times
    assert "endless" not in caught.value.message


def test_a_wrong_key_is_not_halved() -> None:
    with FaultyServer(key="right") as server, pytest.raises(ProviderRefused):
        embedder(server).documents(TEXTS)
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("wrong-count", "9 embeddings for 10 texts"),
        ("mixed-dimensions", "a vector of 33 numbers instead of 32"),
        ("nan", "not finite"),
        ("zero", "zeros"),
        ("text-for-numbers", "not a list of numbers"),
        ("twice-the-same-index", "index of their text"),
        ("no-data", "no list of embeddings"),
        ("garbage", "other than JSON"),
    ],
)
def test_nonsense_is_refused(fault: Fault, said: str) -> None:
    with FaultyServer([fault]) as server, pytest.raises(ProviderGarbage) as caught:
        embedder(server).documents(TEXTS)
    assert said in caught.value.message
    assert caught.value.hint


def test_another_dimension_than_before_or_than_declared_is_refused() -> None:
    with FaultyServer(["ok", "wrong-dimension"]) as server:
        ours = embedder(server)
        ours.documents(["tea"])
        with pytest.raises(ProviderGarbage, match="31 numbers instead of 32"):
            ours.documents(["tea"])
        with pytest.raises(ProviderGarbage, match="32 numbers instead of 64"):
            embedder(server, dimension=64).documents(["tea"])
        assert server.requests[-1].body["dimensions"] == 64
        assert "dimensions" not in server.requests[0].body


def test_a_blank_text_is_not_sent_and_has_no_direction() -> None:
    with FaultyServer() as server:
        rows = embedder(server).documents(["tea", " \n", ""])
        assert sizes(server) == [1]
    assert rows[0].any()
    assert not rows[1:].any()


def test_a_question_and_a_text_get_the_prompts_that_were_chosen() -> None:
    with FaultyServer() as server:
        ours = embedder(server, prompts=PROMPTS["query-passage"])
        ours.query("tea")
        ours.documents(["green"])
        assert [request.body["input"] for request in server.requests] == [["query: tea"], ["passage: green"]]


@pytest.mark.parametrize("name", ["sentence-similarity", "narrative-similarity", "romantic-scene-similarity"])
def test_task_prompts_are_the_same_on_both_sides(name: str) -> None:
    prompts = prompts_of(name)
    assert prompts.query == prompts.passage == f"task: {name.replace('-', ' ')} | query: "


def test_another_prompt_model_or_dimension_is_another_space_and_another_server_is_not() -> None:
    names = {
        ServedModel("m").fingerprint,
        ServedModel("n").fingerprint,
        ServedModel("m", dimension=64).fingerprint,
        ServedModel("m", prompts=prompts_of("search")).fingerprint,
        ServedModel("m", prompts=prompts_of('["a: ", "b: "]')).fingerprint,
        ServedModel("m", prompts=prompts_of('["a: ", "c: "]')).fingerprint,
    }
    assert len(names) == 6
    assert ServedModel("m").fingerprint == "openai/m@served/own/no-prompt"
    assert ServedModel("m", batch=3, weight=0.2).fingerprint == ServedModel("m").fingerprint


@pytest.mark.parametrize("given", ["query-pasage", "[1, 2]", '["one"]', 3, ["a"], ["a", "b\0"], "[" * 5_000])
def test_a_prompt_that_makes_no_sense_is_refused(given: object) -> None:
    gc.collect()  # what was left behind before must not be finalised where there is no room to call anything
    with pytest.raises(ValueError, match=r"must|did you mean"):
        canonical_prompt(given)


def test_a_pair_of_prompts_may_be_written_as_a_list_or_as_its_text() -> None:
    assert canonical_prompt(["q: ", "p: "]) == canonical_prompt('["q: ", "p: "]') == '["q: ", "p: "]'
    assert prompts_of('["q: ", "p: "]')[1:] == ("q: ", "p: ")


def test_a_question_to_a_dead_server_does_not_wait_long() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        endpoint = Endpoint(f"http://127.0.0.1:{taken.getsockname()[1]}/v1", "embedder")
        start = time.monotonic()
        with pytest.raises(ProviderUnavailable):
            OpenAiEmbedder(ServedModel("m"), Transport(endpoint, Patience(total_s=120, attempt_s=30))).query("tea")
    assert time.monotonic() - start < 15  # where texts are embedded, two minutes


def test_through_two_hundred_faults_every_vector_is_right_or_an_error_says_why() -> None:
    with FaultyServer(seeded_plan(5, 200, among=40), hang_s=1.0) as server:
        ours, errors, answered = embedder(server, total_s=0.25, most_bytes=1_000_000), [], 0
        while server.plan:
            try:
                rows = ours.documents(TEXTS[:3])
            except ProviderError as error:
                errors.append(error)
            else:
                answered += 1
                assert np.allclose(rows, OURS.documents(TEXTS[:3]), atol=1e-6)
    assert {ProviderGarbage, ProviderRefused, ProviderTimeout} <= {type(error) for error in errors}
    assert all(error.hint for error in errors)
    assert len(errors) > 100
    assert answered > 5  # most good answers are spent on halves of what was refused
