"""What each client is told is what its documentation asks for."""

from __future__ import annotations

import pytest

from whyrank.errors import ConfigError
from whyrank.interfaces.cli.main import CLIENTS
from whyrank.interfaces.mcp.command import SNIPPETS, Start, snippet

START = Start("/notes/memory.db", "/notes", "none", ("user:42",), is_read_only=True)
ARGUMENTS = [
    "mcp", "--store", "/notes/memory.db", "--workspace", "/notes", "--embedding", "none", "--scope", "user:42",
    "--read-only",
]  # fmt: skip
URL = "http://127.0.0.1:8642/mcp"


def test_every_client_that_can_be_named_has_a_snippet() -> None:
    assert tuple(SNIPPETS) == CLIENTS


def test_the_command_starts_the_same_server_anywhere() -> None:
    command = START.command()
    assert command[-len(ARGUMENTS) :] == ARGUMENTS
    assert Start("/m.db", "/w", is_multi_scope=True).command()[-2:] == ["/w", "--multi-scope"]


@pytest.mark.parametrize(("client", "path"), [
    ("claude-code", ["mcpServers", "whyrank"]),
    ("claude-desktop", ["mcpServers", "whyrank"]),
    ("cursor", ["mcpServers", "whyrank"]),
    ("openclaw", ["mcp", "servers", "whyrank"]),
    ("vscode", ["servers", "whyrank"]),
])  # fmt: skip
def test_a_client_that_starts_the_server_gets_command_and_arguments(client: str, path: list[str]) -> None:
    server = snippet(client, START).config
    for key in path:
        server = server[key]
    assert [server["command"], *server["args"]] == START.command()
    assert server.get("type") == ("stdio" if client == "vscode" else None)


@pytest.mark.parametrize(("client", "more", "token"), [
    ("claude-code", {"type": "http"}, "${WHYRANK_TOKEN}"),
    ("cursor", {}, "${env:WHYRANK_TOKEN}"),
    ("openclaw", {"transport": "streamable-http"}, "${WHYRANK_TOKEN}"),
    ("vscode", {"type": "http"}, "${input:whyrank-token}"),
])  # fmt: skip
def test_a_client_that_asks_over_http_gets_the_address_and_never_the_token(
    client: str, more: dict[str, str], token: str
) -> None:
    config = snippet(client, Start("/m.db", "/w", url=URL)).config
    servers = config.get("mcpServers") or config.get("servers") or config["mcp"]["servers"]
    assert servers["whyrank"] == {**more, "url": URL, "headers": {"Authorization": f"Bearer {token}"}}


def test_claude_desktop_knows_no_http() -> None:
    with pytest.raises(ConfigError, match="starts local servers itself"):
        snippet("claude-desktop", Start("/m.db", "/w", url=URL))


def test_claude_code_can_be_told_in_one_line() -> None:
    assert snippet("claude-code", START).remark.startswith("or: claude mcp add whyrank -- ")
