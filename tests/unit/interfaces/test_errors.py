"""Advice is of use at the door where it is read."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest

import whyrank
from whyrank.errors import ConfigError, NotFound, StoreDamaged
from whyrank.interfaces.errors import AT_HTTP, AT_MCP, at_interface, hint_at, notices_at
from whyrank.interfaces.http.app import told

ROOMS = Path(whyrank.__file__).parent


def test_a_command_is_said_as_what_does_the_same_at_that_door() -> None:
    advice = "no memory passes the filters; paths are as `whyrank list` shows them"
    assert at_interface(AT_HTTP, advice) == "no memory passes the filters; paths are as `GET /v1/memories` shows them"
    assert at_interface(AT_MCP, advice) == "no memory passes the filters; paths are as `memory_search` shows them"


@pytest.mark.parametrize("ways", [AT_HTTP, AT_MCP])
def test_a_command_that_only_the_server_can_run_is_said_to_be_one(ways: dict[str, str]) -> None:
    assert at_interface(ways, "`whyrank calibrate` renews it") == "`whyrank calibrate` (on the server) renews it"
    assert hint_at(ways, "choose another place with --store") == "choose another place with --store (on the server)"


def test_what_a_caller_wrote_is_no_option_of_ours() -> None:
    assert hint_at(AT_HTTP, "did you mean '--limit'? not a--b") == "did you mean '--limit'? not a--b"


def test_every_route_that_is_named_is_there() -> None:
    pytest.importorskip("starlette")
    from whyrank.interfaces.http.routes import OPERATIONS

    routes = {f"`{one.method} {one.path}`" for one in OPERATIONS}
    assert set(AT_HTTP.values()) <= routes


def test_every_tool_that_is_named_is_there() -> None:
    from whyrank.interfaces.mcp.server import TOOLS

    assert {way.strip("`") for way in AT_MCP.values()} <= {tool.name for tool in TOOLS}


def texts_with_commands() -> list[str]:
    """Return every text outside the command line's own room that names a command."""
    files = (file for file in ROOMS.rglob("*.py") if not {"cli", "testing"} & {*file.relative_to(ROOMS).parts})
    nodes = (node for file in files for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))))
    said = (node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str))
    return [text for text in said if "`whyrank " in text]


def test_no_text_of_the_engine_leaves_a_bare_command_to_callers_of_a_server() -> None:
    texts = [text for text in texts_with_commands() if text.count("`") % 2 == 0]
    assert len(texts) > 10
    for text in texts:
        said = at_interface(AT_MCP, text)
        assert said.count("`whyrank ") == said.count(" (on the server)")


def test_an_error_over_http_has_a_hint_that_can_be_followed_there() -> None:
    error = ConfigError("no vectors", "`whyrank ingest` or `whyrank model use` makes them")
    said = json.loads(told(error, "id").body)["error"]
    assert said["hint"] == "`POST /v1/ingest` or `whyrank model use` (on the server) makes them"
    assert "GET /v1/memories" not in json.loads(told(StoreDamaged("broken", "restore it"), "id").body)["error"]["hint"]
    assert "/v1/search" in json.loads(told(NotFound("gone", "`whyrank list` shows them"), "id").body)["error"]["hint"]


def test_an_answer_is_the_same_but_for_its_notices() -> None:
    data = {"hits": [1], "notices": [{"code": "x", "message": "see `whyrank status`"}]}
    assert notices_at(AT_HTTP, data) == {"hits": [1], "notices": [{"code": "x", "message": "see `GET /v1/status`"}]}
    assert data["notices"] == [{"code": "x", "message": "see `whyrank status`"}]
    assert notices_at(AT_HTTP, {"hits": []}) == {"hits": []}
