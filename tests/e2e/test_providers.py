"""Providers over HTTP as a user meets them: set up, used, failing; keys and addresses stay the user's."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.faulty_server import FaultyServer

if TYPE_CHECKING:
    from pathlib import Path

    from .conftest import Run

SECRET = "sk-very-secret-0123456789"
SPACE = "openai/m@served/own/no-prompt"
MEMORIES = 7  # of the workspace


def user_file(tmp_path: Path) -> Path:
    return tmp_path / "config/whyrank/config.toml"


def test_a_served_model_is_set_up_listed_and_used(call: Run, tmp_path: Path, workspace: Path) -> None:
    with FaultyServer(key=SECRET) as server:
        assert "no server of" in call("model", "use", "openai").err
        assert call("config", "embedder.url", server.url).status == 0
        assert call("config", "embedder.model", "m").status == 0
        listed = {found["name"]: found for found in call("model", "list", "--json").data["models"]}
        assert listed["openai"]["installed"]
        assert (listed["openai"]["space"], listed["openai"]["vectors"]) == (SPACE, 0)

        used = call("model", "use", "openai", "--json", WHYRANK_EMBEDDER_KEY=SECRET)
        assert (used.status, used.data["embedded"], used.data["space"]) == (0, MEMORIES, SPACE)
        found = call("search", "what does Suzy drink?", "--json", WHYRANK_EMBEDDER_KEY=SECRET).data
        assert found["hits"][0]["path"] == "notes/tea.md"
        assert "vector-off" not in [notice["code"] for notice in found["notices"]]
    assert "url" in user_file(tmp_path).read_text(encoding="utf-8")
    written = (workspace / "whyrank.toml").read_text(encoding="utf-8")
    assert 'embedding = "openai"' in written
    assert "url" not in written


def test_a_wrong_key_says_which_was_sent_and_the_model_before_goes_on_answering(call: Run) -> None:
    with FaultyServer(key="another") as server:
        known = {"WHYRANK_EMBEDDER_URL": server.url, "WHYRANK_EMBEDDER_MODEL": "m", "WHYRANK_EMBEDDER_KEY": SECRET}
        used = call("model", "use", "openai", **known)
        assert used.status == 10
        assert "401" in used.err
        assert "WHYRANK_EMBEDDER_KEY" in used.err
        found = call("search", "green tea", "--json", "--embedding", "openai", **known)
        assert found.data["hits"][0]["path"] == "notes/tea.md"
        assert "model-differs" in [notice["code"] for notice in found.data["notices"]]
        assert SECRET not in used.said + found.said + call("config", **known).said


def test_a_workspace_without_a_server_is_served_by_the_model_it_is_embedded_with(call: Run, workspace: Path) -> None:
    (workspace / "whyrank.toml").write_text('embedding = "openai"\n', encoding="utf-8")
    found = call("search", "green tea", "--json")
    assert found.data["hits"][0]["path"] == "notes/tea.md"
    [notice] = [notice for notice in found.data["notices"] if notice["code"] == "model-differs"]
    assert notice["message"].startswith("wordllama is used")
    assert call("status").status == 0


@pytest.mark.parametrize("key", ["embedder.url", "embedder.key_file", "llm.url", "llm.key_file"])
def test_a_workspace_file_may_not_say_where_texts_and_keys_go(call: Run, workspace: Path, key: str) -> None:
    table, name = key.split(".")
    value = "http://evil.example/v1" if name == "url" else "/etc/hostname"
    (workspace / "whyrank.toml").write_text(f'[{table}]\n{name} = "{value}"\n', encoding="utf-8")
    refused = call("search", "tea")
    assert refused.status == 2
    assert key in refused.err
    assert "evil" not in refused.err.split("a workspace may not")[1]


@pytest.mark.parametrize("given", ["localhost:11434", "ftp://host", "http://u:p@host", "http://"])
def test_what_is_no_url_is_refused_and_not_written(call: Run, tmp_path: Path, given: str) -> None:
    refused = call("config", "llm.url", given)
    assert refused.status == 2
    assert "must" in refused.err
    assert not user_file(tmp_path).exists()


@pytest.mark.parametrize(
    ("content", "said"),
    [(None, "is not a file"), ("two words\n", "is not valid"), ("", "is not valid"), ("x" * 5_000, "too long")],
)
def test_a_key_file_that_holds_no_key_is_an_error_that_does_not_show_it(
    call: Run, tmp_path: Path, content: str | None, said: str
) -> None:
    file = tmp_path / "key"
    if content is not None:
        file.write_text(content, encoding="utf-8")
    known = {"WHYRANK_EMBEDDER_URL": "http://127.0.0.1:9", "WHYRANK_EMBEDDER_MODEL": "m"}
    refused = call("status", "--embedding", "openai", WHYRANK_EMBEDDER_KEY_FILE=str(file), **known)
    assert refused.status == 2
    assert said in refused.err
    assert "two words" not in refused.err


def test_a_key_file_is_read(call: Run, tmp_path: Path) -> None:
    (tmp_path / "key").write_text(f"{SECRET}\n", encoding="utf-8")
    with FaultyServer(key=SECRET) as server:
        known = {"WHYRANK_EMBEDDER_URL": server.url, "WHYRANK_EMBEDDER_MODEL": "m"}
        used = call("model", "use", "openai", WHYRANK_EMBEDDER_KEY_FILE=str(tmp_path / "key"), **known)
        assert used.status == 0, used.err
        assert {request.headers["authorization"] for request in server.requests} == {f"Bearer {SECRET}"}


def test_the_key_of_openai_is_sent_to_nobody_else(call: Run) -> None:
    with FaultyServer() as server:
        known = {"WHYRANK_EMBEDDER_URL": server.url, "WHYRANK_EMBEDDER_MODEL": "m", "OPENAI_API_KEY": SECRET}
        assert call("model", "use", "openai", **known).status == 0
        assert server.requests
        assert not any("authorization" in request.headers for request in server.requests)


def test_a_search_is_widened_only_when_asked_to(call: Run) -> None:
    with FaultyServer(reply=lambda messages: "a hull that was tarred") as server:
        known = {"WHYRANK_LLM_URL": server.url, "WHYRANK_LLM_MODEL": "m", "WHYRANK_QUERY_EXPANSION_ENABLED": "true"}
        assert call("search", "boat", "--json", **known).status == 0
        assert server.requests == []
        found = call("search", "boat", "--json", "--expand", "--explain", **known).data
        assert len(server.requests) == 1
    assert "expanded" in [notice["code"] for notice in found["notices"]]
    parts = found["hits"][0]["trail"][0]["parts"]
    assert "vector:hyde" in [part["signal"] for part in parts]


def test_a_dead_language_model_leaves_the_question_as_it_is(call: Run) -> None:
    known = {"WHYRANK_LLM_URL": "http://127.0.0.1:9", "WHYRANK_LLM_MODEL": "m"}
    found = call("search", "green tea", "--json", "--expand", **known)
    assert found.status == 0
    assert found.data["hits"][0]["path"] == "notes/tea.md"
    assert "expansion-off" in [notice["code"] for notice in found.data["notices"]]


def test_old_names_are_told_of_once(call: Run, workspace: Path) -> None:
    (workspace / "whyrank.toml").write_text('[search]\nhydeEnabled = true\nhydeModel = "m"\n', encoding="utf-8")
    found = call("search", "green tea")
    assert found.err.count("search.hydeEnabled") == 1
    assert "query_expansion.enabled" in found.err
    assert call("config").err.count("search.hydeEnabled") == 1
