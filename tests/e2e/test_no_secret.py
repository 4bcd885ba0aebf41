"""Keys, tokens and passwords are canaries: no command, answer, log, error or file of ours may show one."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.faulty_server import Fault, FaultyServer
from whyrank.config.load import load
from whyrank.interfaces.cli.main import VERBS

from .agents import listening
from .conftest import STORE, Run
from .rest import ended, serving
from .test_mcp_texts import call as called
from .test_mcp_texts import over_http, over_stdio

if TYPE_CHECKING:
    from pathlib import Path

EMBEDDER_KEY = "sk-canary-embedder-0123456789"
LLM_KEY = "sk-canary-llm-0123456789"
OPENAI_KEY = "sk-canary-openai-0123456789"
TOKEN = "canary-token-0123456789"
PASSWORD = "canary-password-0123456789"
CANARIES = (EMBEDDER_KEY, LLM_KEY, OPENAI_KEY, TOKEN, PASSWORD)

# One line of each verb that asks, changes, or fails; servers have tests of their own below.
COMMANDS: dict[str, list[str]] = {
    "ingest": ["ingest", "notes"],
    "ingest-files": ["ingest-files", "notes/*.md", "--dry-run"],
    "search": ["search", "green tea", "--expand", "--explain"],
    "why": ["why", "green tea", "notes/tea.md"],
    "show": ["show", "notes/tea.md"],
    "list": ["list"],
    "rank": ["rank", "notes/tea.md"],
    "add": ["add", "the tin is blue"],
    "update": ["update", "m_aaaaaaaaaaaaaaaa", "--name", "tin"],
    "forget": ["forget", "m_aaaaaaaaaaaaaaaa"],
    "recall": ["recall", "green tea"],
    "hook": ["hook", "claude-code"],
    "recalled": ["recalled", "m_aaaaaaaaaaaaaaaa"],
    "copy": ["copy", ".whyrank/memory.db", "copy.db"],
    "reindex": ["reindex"],
    "worker": ["worker", "--once"],
    "prune": ["prune"],
    "export": ["export"],
    "calibrate": ["calibrate"],
    "status": ["status"],
    "config": ["config"],
    "model": ["model", "list"],
    "embed": ["embed"],
    "doctor": ["doctor"],
    "recipes": ["recipes"],
    "pin": ["pin", "green tea", "notes/tea.md"],
    "check": ["check"],
    "tune": ["tune", "--dry-run"],
}
ELSEWHERE = {"mcp", "serve", "eval"}  # the last asks no provider of the user's


def environment(url: str) -> dict[str, str]:
    return {
        "WHYRANK_EMBEDDER_URL": url,
        "WHYRANK_EMBEDDER_MODEL": "m",
        "WHYRANK_EMBEDDER_KEY": EMBEDDER_KEY,
        "WHYRANK_LLM_URL": url,
        "WHYRANK_LLM_MODEL": "m",
        "WHYRANK_LLM_KEY": LLM_KEY,
        "OPENAI_API_KEY": OPENAI_KEY,
        "WHYRANK_TOKEN": TOKEN,
        "WHYRANK_EMBEDDING": "openai",
    }


def shown_in(folder: Path) -> list[str]:
    """Return the files below a folder that hold a canary."""
    files = [file for file in folder.rglob("*") if file.is_file()]
    assert any(file.name == STORE.name for file in files)
    return [str(file) for file in files if any(canary.encode() in file.read_bytes() for canary in CANARIES)]


def test_every_verb_has_its_line() -> None:
    """A verb that is added must be tried here."""
    new = set(VERBS) - set(COMMANDS) - ELSEWHERE
    assert new <= {"backup", "restore", "import", "copy", "compare-with"}, new  # none, or as ingest and search


@pytest.mark.parametrize("faults", [(), ("401",) * 500, ("500",) * 500], ids=["well", "refused", "failing"])
def test_no_command_shows_a_key(call: Run, workspace: Path, tmp_path: Path, faults: tuple[Fault, ...]) -> None:
    with FaultyServer(faults, reply=lambda messages: "a tin") as server:
        known = environment(server.url)
        if not faults:
            assert call("model", "use", "openai", **known).status == 0
        statuses: dict[str, int] = {}
        patience = {"WHYRANK_EMBEDDER_TIMEOUT_S": "0.5", "WHYRANK_LLM_TIMEOUT_S": "0.5"}
        for verb, arguments in COMMANDS.items():
            if faults and verb not in ("search", "add", "embed", "worker", "status", "config", "model", "doctor"):
                continue
            for more in ([], ["--json"]) if not faults else (["--json"],):
                if verb == "export" and more:
                    continue
                done = call(*arguments, *more, **known, **patience)
                said = done.said
                statuses[verb] = done.status
                assert not [canary for canary in CANARIES if canary in said], (verb, said[:500])
        worked = [verb for verb, status in statuses.items() if status == 0]
        assert {"search", "add", "embed", "status", "config", "model", "doctor"} <= set(worked)
    assert shown_in(workspace) == []
    assert shown_in_config(tmp_path) == []


def shown_in_config(folder: Path) -> list[str]:
    files = [file for file in (folder / "config").rglob("*") if file.is_file()]
    return [str(file) for file in files if any(canary.encode() in file.read_bytes() for canary in CANARIES)]


MISTYPED = {
    "a password in a url": {"WHYRANK_EMBEDDER_URL": f"http://user:{PASSWORD}@localhost:1/v1"},
    "a password in a url of the language model": {"WHYRANK_LLM_URL": f"http://user:{PASSWORD}@localhost:1/v1"},
    "a key in a query": {"WHYRANK_LLM_URL": f"http://localhost:1/v1?api_key={PASSWORD}"},
    "a password for a port": {"WHYRANK_LLM_URL": f"http://user:{PASSWORD}"},
    "a key for a key file": {"WHYRANK_EMBEDDER_KEY_FILE": EMBEDDER_KEY},
    "a key with a line end": {"WHYRANK_EMBEDDER_KEY": f"{EMBEDDER_KEY}\nX-Evil: 1"},
    "a password of a store": {"WHYRANK_STORE": f"postgresql://user:{PASSWORD}@no-such-host.invalid/db"},
    "a password of a store with an @": {"WHYRANK_STORE": f"postgresql://user:x@{PASSWORD}@127.0.0.1/db"},
    "a password of a store for a port": {"WHYRANK_STORE": f"postgresql://user:{PASSWORD}"},
    "a password of a store after a space": {"WHYRANK_STORE": f" postgresql://user:x@{PASSWORD}@h/db"},
    "a token with a space": {"WHYRANK_TOKEN": f"{TOKEN} x"},
}


@pytest.mark.parametrize("mistake", MISTYPED)
def test_no_error_shows_what_was_mistyped(call: Run, mistake: str) -> None:
    known = {**environment("http://127.0.0.1:9"), **MISTYPED[mistake]}
    for arguments in (["status"], ["config"], ["search", "tea"], ["model", "list"], ["serve", "--port", "0"]):
        if arguments[0] == "serve" and "token" not in mistake:
            continue
        for more in ([], ["--json"]):
            said = call(*arguments, *more, **known).said
            assert not [canary for canary in CANARIES if canary in said], (arguments, said)


def test_the_address_of_a_store_is_shown_with_its_schema_and_without_its_password(call: Run) -> None:
    store = f"postgresql://ann:{PASSWORD}@h/db?schema=team&pool_size=3&sslpassword={PASSWORD}"
    safe = "postgresql://ann@h/db?schema=team&pool_size=3"
    assert call("config", "store", WHYRANK_STORE=store).out.startswith(f"store = {safe}  (environment")
    for arguments in (["config", "store", "--json"], ["config", "--json"]):
        data = call(*arguments, WHYRANK_STORE=store).data
        assert data["settings"]["store"]["value"] == safe


def test_the_repr_of_settings_shows_no_password_of_a_store() -> None:
    config = load({"store": f"postgresql://ann:{PASSWORD}@h/db?schema=team"})
    assert "postgresql://ann@h/db?schema=team" in repr(config)
    assert PASSWORD not in repr((config, config.store))


@pytest.mark.parametrize("key", ["embedder.url", "llm.url"])
def test_a_password_that_is_set_is_neither_shown_nor_written(call: Run, tmp_path: Path, key: str) -> None:
    refused = call("config", key, f"http://user:{PASSWORD}@localhost:1234/v1")
    assert refused.status == 2
    assert f"{key} = 'http://…@localhost:1234/v1'" in refused.err
    assert PASSWORD not in refused.said
    assert shown_in_config(tmp_path) == []


def test_no_answer_or_log_of_a_server_shows_a_secret(workspace: Path) -> None:
    with FaultyServer(("401",) * 500) as provider:
        known = {name: value for name, value in environment(provider.url).items() if name != "WHYRANK_TOKEN"}
        with serving(workspace, "--log-json", token=TOKEN, **known) as server:
            paths = ("/", "/health", "/metrics", "/openapi.json", "/v1/status", "/v1/recipes", "/v1/memories")
            said = [server.client.get(path).text for path in paths]
            bodies: list[dict[str, object]] = [{"query": "tea", "expand": True, "explain": True}, {"query": 5}]
            said += [server.client.post("/v1/search", json=body).text for body in bodies]
            said.append(server.client.post("/v1/memories", json={"text": "the tin is blue"}).text)
            said.append(server.client.get("/v1/status", headers={"Authorization": f"Bearer {TOKEN}x"}).text)
            said += ended(server)
    assert not [canary for canary in CANARIES for text in said if canary in text]
    assert shown_in(workspace) == []


def test_no_answer_to_an_agent_shows_a_secret(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with FaultyServer(("401",) * 500) as provider:
        for name, value in environment(provider.url).items():
            if name != "WHYRANK_TOKEN":
                monkeypatch.setenv(name, value)
        lines = (
            called(1, "memory_search", json.dumps({"query": "green tea"})),
            called(2, "memory_add", json.dumps({"text": "the tin is red"})),
            called(3, "memory_why", json.dumps({"query": "green tea", "id": "notes/tea.md"})),
        )
        said = json.dumps([over_stdio(workspace, *lines), over_http(workspace, *lines)])
        with listening(workspace) as server:
            server.process.terminate()
            said += "".join(server.process.communicate())
    assert not [canary for canary in CANARIES if canary in said]
    assert shown_in(workspace) == []
