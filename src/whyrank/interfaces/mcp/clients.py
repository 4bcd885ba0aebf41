"""Configuration snippets for MCP clients, in the format of each client."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from ...config.load import TOKEN_VARIABLE
from ...errors import ConfigError

NAME = "whyrank"


@dataclass(frozen=True)
class Start:
    """Start command of the server, or its URL if it already runs."""

    store: str
    workspace: str
    embedding: str | None = None
    scopes: tuple[str, ...] = ()
    is_multi_scope: bool = False
    is_read_only: bool = False
    url: str | None = None

    def command(self) -> list[str]:
        """Return the command with its arguments; clients start it in any folder, so every path is absolute."""
        script = Path(sys.executable).with_name(NAME)  # of this installation; another one may be first in PATH
        options = {"--store": self.store, "--workspace": self.workspace, "--embedding": self.embedding}
        return [
            *([str(script)] if script.is_file() else [sys.executable, "-m", NAME]),
            "mcp",
            *(word for option, value in options.items() if value for word in (option, value)),
            *(word for scope in self.scopes for word in ("--scope", scope)),
            *(["--multi-scope"] if self.is_multi_scope else []),
            *(["--read-only"] if self.is_read_only else []),
        ]


class ConfigSnippet(NamedTuple):
    """Configuration of a client, and the file it belongs in."""

    file: str
    config: dict[str, Any]
    remark: str = ""


def snippet(client: str, start: Start) -> ConfigSnippet:
    """Return the configuration snippet of a client."""
    return SNIPPETS[client](start)


def _claude_code(start: Start) -> ConfigSnippet:
    server = _started(start) if start.url is None else _asked(start.url, f"${{{TOKEN_VARIABLE}}}", type="http")
    command = f"claude mcp add {NAME} -- {shlex.join(start.command())}"
    return ConfigSnippet(".mcp.json in the project", _servers(server), f"or: {command}" if start.url is None else "")


def _claude_desktop(start: Start) -> ConfigSnippet:
    if start.url is not None:
        raise ConfigError("Claude Desktop starts local servers itself", "leave --http out")
    place = "claude_desktop_config.json (Settings › Developer › Edit Config)"
    return ConfigSnippet(place, _servers(_started(start)), "then quit Claude Desktop and start it again")


def _cursor(start: Start) -> ConfigSnippet:
    server = _started(start) if start.url is None else _asked(start.url, f"${{env:{TOKEN_VARIABLE}}}")
    return ConfigSnippet(".cursor/mcp.json in the project, or ~/.cursor/mcp.json for all", _servers(server))


def _openclaw(start: Start) -> ConfigSnippet:
    server = _started(start)
    if start.url is not None:
        server = _asked(start.url, f"${{{TOKEN_VARIABLE}}}", transport="streamable-http")
    remark = f"then: openclaw mcp doctor {NAME} --probe"
    return ConfigSnippet("~/.openclaw/openclaw.json", {"mcp": {"servers": {NAME: server}}}, remark)


def _vscode(start: Start) -> ConfigSnippet:
    place = ".vscode/mcp.json in the workspace"
    if start.url is None:
        return ConfigSnippet(place, {"servers": {NAME: {"type": "stdio", **_started(start)}}})
    secret = f"{NAME}-token"
    asked = {"type": "promptString", "id": secret, "description": "Token of whyrank mcp", "password": True}
    server = _asked(start.url, f"${{input:{secret}}}", type="http")
    return ConfigSnippet(place, {"inputs": [asked], "servers": {NAME: server}})


SNIPPETS: dict[str, Callable[[Start], ConfigSnippet]] = {
    "claude-code": _claude_code,
    "claude-desktop": _claude_desktop,
    "cursor": _cursor,
    "openclaw": _openclaw,
    "vscode": _vscode,
}


def _servers(server: dict[str, Any]) -> dict[str, Any]:
    return {"mcpServers": {NAME: server}}


def _started(start: Start) -> dict[str, Any]:
    command, *arguments = start.command()
    return {"command": command, "args": arguments}


def _asked(url: str, token: str, **more: str) -> dict[str, Any]:
    return {**more, "url": url, "headers": {"Authorization": f"Bearer {token}"}}
