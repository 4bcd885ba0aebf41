"""`whyrank model` and `whyrank embed` from the command line: compared, switched, rolled back, dropped, filled up."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

import pytest

import whyrank
from tests.faulty_server import FaultyServer
from tests.minilm import MODELS, installed

from .conftest import SECONDS, STORE, Run
from .test_models import MEMORIES, MINILM

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SERVED = "openai/directions@served/32/no-prompt"


@pytest.fixture
def server() -> Iterator[FaultyServer]:
    with FaultyServer() as server:
        yield server


@pytest.fixture
def served(server: FaultyServer, monkeypatch: pytest.MonkeyPatch) -> FaultyServer:
    """Have the settings name a model behind a server."""
    monkeypatch.setenv("WHYRANK_EMBEDDER_URL", server.url)
    monkeypatch.setenv("WHYRANK_EMBEDDER_MODEL", "directions")
    monkeypatch.setenv("WHYRANK_EMBEDDER_DIMENSION", "32")
    monkeypatch.setenv("WHYRANK_EMBEDDER_TIMEOUT_S", "5")
    return server


def answers(call: Run) -> list[tuple[str, float]]:
    return [(hit["id"], hit["score"]) for hit in call("search", "where is the boat tied up?", "--json").data["hits"]]


def roles(call: Run) -> dict[str, tuple[str, int]]:
    return {one["space"]: (one["role"], one["waiting"]) for one in call("status", "--json").data["roles"]}


@pytest.mark.usefixtures("served")
def test_changed_rolled_back_and_dropped(call: Run, workspace: Path) -> None:
    before = answers(call)
    done = call("model", "use", "openai")
    assert (done.status, done.out.splitlines()[0]) == (
        0,
        f"{MEMORIES} texts were embedded; vectors of other models stay",
    )
    assert 'embedding = "openai"' in (workspace / "whyrank.toml").read_text(encoding="utf-8")
    assert answers(call) != before
    assert roles(call)[SERVED] == ("serving", 0)
    call("add", "The anchor lies under the bench")
    back = call("model", "rollback")
    assert back.out.splitlines()[:2] == ["back to wordllama", "1 text was embedded; vectors of other models stay"]
    assert 'embedding = "wordllama"' in (workspace / "whyrank.toml").read_text(encoding="utf-8")
    assert set(answers(call)) & set(before)
    assert roles(call)[SERVED][0] == "before"
    assert call("model", "drop", "openai").out == f"{MEMORIES + 1} vectors of openai were deleted\n"
    assert SERVED not in roles(call)
    gone = call("model", "rollback")
    assert (gone.status, "there is no model before this one" in gone.err) == (3, True)


@pytest.mark.usefixtures("served")
def test_the_store_goes_on_with_its_own_model_whatever_the_settings_say(call: Run, workspace: Path) -> None:
    assert call("model", "use", "openai", "--json").data["switched"]
    (workspace / "whyrank.toml").unlink()  # as for somebody who was sent the store
    listed = call("model", "list", "--json").data
    assert [found["name"] for found in listed["models"] if found["in_use"]] == ["openai"]
    assert {one["role"] for one in listed["spaces"]} == {"serving", "before"}
    told = call("search", "tea", "--embedding", "wordllama", "--json").data["notices"]
    assert "`whyrank model use wordllama` changes that" in next(
        notice["message"] for notice in told if notice["code"] == "model-differs"
    )


def test_a_store_never_says_where_its_texts_are_sent(call: Run, served: FaultyServer, workspace: Path) -> None:
    call("model", "use", "openai")
    with whyrank.open(workspace / STORE, embedding="none") as memory:
        notes = json.dumps(memory._store.notes())
    assert "directions" in notes
    assert "http" not in notes
    assert served.url not in notes


def test_where_the_server_is_gone_words_answer_and_say_what_mends_it(call: Run, served: FaultyServer) -> None:
    call("model", "use", "openai")
    serverless = {"WHYRANK_EMBEDDER_URL": ""}
    found = call("search", "green tea", "--json", **serverless)
    assert found.data["hits"][0]["path"] == "notes/tea.md"
    [notice] = [notice for notice in found.data["notices"] if notice["code"] == "vector-off"]
    assert "whyrank config embedder.url" in notice["message"]


def test_a_model_that_loses_pins_is_not_taken(call: Run, served: FaultyServer, workspace: Path) -> None:
    question = "hot beverages at breakfast"  # no word of it stands in the note
    with whyrank.open(workspace / STORE, workspace=workspace) as memory:
        memory.pins.add(question, memory.search(question, recipe="vector", limit=1)[0].id, within=1)
    done = call("model", "use", "openai", "--check")
    assert done.status == 16
    assert "of the first 10 results are the same over" in done.out
    assert "pins lost: 1 of 1" in done.out
    assert "--force changes to openai anyway" in done.out
    assert not (workspace / "whyrank.toml").exists()
    assert roles(call)[SERVED] == ("filling", 0)
    again = call("model", "use", "openai", "--check", "--force", "--json")
    assert again.status == 0
    assert (again.data["switched"], again.data["embedded"]) == (True, 0)
    assert (again.data["check"]["pins"], len(again.data["check"]["lost"])) == (1, 1)


def test_what_a_dead_server_left_waiting_is_told_and_embedded_later(call: Run, served: FaultyServer) -> None:
    call("model", "use", "openai")
    served.plan = ["401"]  # nobody comes in
    added = call("add", "The anchor lies under the bench", "--json")
    assert added.status == 0
    assert added.data["notices"][0]["code"] == "waiting"
    status = call("status")
    assert "waiting for a vector: 1: " in status.out
    assert "planned 401" in status.out
    assert call("search", "anchor", "--json").data["hits"][0]["text"] == "The anchor lies under the bench"
    served.plan = ["403"]
    failed = call("embed", "--json")
    assert (failed.status, failed.data["waiting"], failed.data["attempts"]) == (17, 1, 2)
    done = call("embed", "--json")
    assert (done.status, done.data["embedded"], done.data["waiting"], done.data["error"]) == (0, 1, 0, None)


def test_in_the_background_another_process_changes_it(run: Run, call: Run, workspace: Path) -> None:
    installed()
    started = run("model", "use", "minilm", "--background", WHYRANK_MODEL_FOLDER=str(MODELS))
    assert "changes to minilm" in started.out
    deadline = time.monotonic() + SECONDS
    while roles(call).get(MINILM, ("", 0))[0] != "serving" or not (workspace / "whyrank.toml").exists():
        assert time.monotonic() < deadline
        time.sleep(0.1)
    assert roles(call)[MINILM] == ("serving", 0)
