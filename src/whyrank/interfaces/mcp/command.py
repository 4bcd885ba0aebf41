"""`whyrank mcp`: start the server, or print the configuration of a client."""

from __future__ import annotations

import importlib.util
import json
import shlex
import sys
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ...config.load import TOKEN_VARIABLE, StoreUrl
from ...engine.arguments import scope_of
from ...engine.engine import check_store
from ...engine.open import open_engine
from ...errors import ConfigError, MissingExtra
from ...formatting import which
from ..auth import auth_policy
from ..engine_pool import Access, EnginePool, PooledEngine, max_open_stores
from ..errors import FORMAT, OK
from ..tenants import check_stores, served_to, settings_of

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

NAME = "whyrank"
_NO_PASSWORD = (
    "whyrank: the password of the store is not printed: let the client set PGPASSWORD for the server, or use a "
    "passfile; or leave out --store and let the client set WHYRANK_STORE to the whole address"
)


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
    server = _server(start, f"${{{TOKEN_VARIABLE}}}", type="http")
    command = f"claude mcp add {NAME} -- {shlex.join(start.command())}"
    return ConfigSnippet(".mcp.json in the project", _servers(server), f"or: {command}" if start.url is None else "")


def _claude_desktop(start: Start) -> ConfigSnippet:
    if start.url is not None:
        raise ConfigError("Claude Desktop starts local servers itself", "omit --http")
    place = "claude_desktop_config.json (Settings › Developer › Edit Config)"
    return ConfigSnippet(place, _servers(_server(start, "")), "then restart Claude Desktop")


def _cursor(start: Start) -> ConfigSnippet:
    server = _server(start, f"${{env:{TOKEN_VARIABLE}}}")
    return ConfigSnippet(".cursor/mcp.json in the project, or ~/.cursor/mcp.json for all", _servers(server))


def _openclaw(start: Start) -> ConfigSnippet:
    server = _server(start, f"${{{TOKEN_VARIABLE}}}", transport="streamable-http")
    remark = f"then: openclaw mcp doctor {NAME} --probe"
    return ConfigSnippet("~/.openclaw/openclaw.json", {"mcp": {"servers": {NAME: server}}}, remark)


def _vscode(start: Start) -> ConfigSnippet:
    place = ".vscode/mcp.json in the workspace"
    if start.url is None:
        return ConfigSnippet(place, {"servers": {NAME: {"type": "stdio", **_server(start, "")}}})
    secret = f"{NAME}-token"
    asked = {"type": "promptString", "id": secret, "description": "Token of whyrank mcp", "password": True}
    server = _server(start, f"${{input:{secret}}}", type="http")
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


def _server(start: Start, token: str, **more: str) -> dict[str, Any]:
    if start.url is not None:
        return {**more, "url": start.url, "headers": {"Authorization": f"Bearer {token}"}}
    command, *arguments = start.command()
    return {"command": command, "args": arguments}


def serve(asked: argparse.Namespace) -> int:
    """Serve agents until the client disconnects or the process is stopped."""
    scopes = tuple(str(scope_of(scope)) for scope in asked.scope or ())
    _check_place(asked)
    if asked.print_config:
        return _print_config(asked, scopes)
    if importlib.util.find_spec("mcp") is None:
        hint = "pip install 'whyrank[mcp]', or '.[mcp]' in a clone"
        raise MissingExtra("`whyrank mcp` needs the MCP SDK, which is not installed", hint)
    with ExitStack() as stack:
        if asked.http:
            return _served_over_http(asked, stack)
        pooled = _pooled_engine(asked, settings_of(asked).store, stack)
        return _served_over_stdio(Access(pooled, scopes, asked.multi_scope, asked.read_only))


def _check_place(asked: argparse.Namespace) -> None:
    """Refuse options of a listening server without --http; fill in default host and port."""
    given = {
        "--host": asked.host,
        "--port": asked.port,
        "--allow-host": asked.allow_host or None,
        "--token-file": asked.token_file,
        "--tenants": asked.tenants,
    }
    said = [option for option, value in given.items() if value is not None]
    if said and not asked.http:
        raise ConfigError(f"{' and '.join(said)} {which(len(said), 'is', 'are')} for servers that listen", "add --http")
    host, port = asked.usual_place
    asked.host, asked.port = host if asked.host is None else asked.host, port if asked.port is None else asked.port


def _pooled_engine(
    asked: argparse.Namespace, store: Path | StoreUrl, stack: ExitStack, pool: EnginePool | None = None
) -> PooledEngine:
    pooled = PooledEngine(store, partial(open_engine, workspace=asked.workspace, embedding=asked.embedding), pool)
    stack.callback(pooled.close)
    return pooled


def _served_over_stdio(access: Access) -> int:
    from . import transports
    from .server import server_for

    transports.log_to_stderr()
    access.pooled.warm()
    if sys.stdin.isatty():
        print("whyrank: waiting for a client; --print-config prints the configuration of a client", file=sys.stderr)
    transports.over_stdio(server_for(access), access.pooled.leave)
    return OK


def _served_over_http(asked: argparse.Namespace, stack: ExitStack) -> int:
    """Serve each tenant from its own store, selected by token."""
    from ..asgi_server import listen, raise_file_limit, url_of
    from . import transports
    from .server import server_for

    whom = served_to(asked)
    check_stores(whom, check_store)
    tenants, is_new_token = whom
    transports.log_to_stderr()
    listening = listen(asked.host, asked.port)
    url = url_of(listening, asked.host, transports.PATH)
    token = tenants[0].token if is_new_token else None

    def ready() -> None:
        print(f"whyrank: listening on {url}", file=sys.stderr)
        if token is not None:
            print(f"whyrank: the token is {token}", file=sys.stderr, flush=True)
        if asked.json:
            print(json.dumps({"url": url, "token": token, "format": FORMAT}), flush=True)

    raise_file_limit()
    servers, pool = [], EnginePool(max_open_stores())
    for one in tenants:
        pooled = _pooled_engine(asked, one.store, stack, pool)
        if asked.tenants is None:
            pooled.warm()
        access = Access(pooled, one.scopes, one.is_multi_scope, one.is_read_only)
        servers.append((auth_policy(asked.host, asked.allow_host, one.token), server_for(access)))
    with listening:
        transports.over_http(servers, listening, ready)
    return OK


def _print_config(asked: argparse.Namespace, scopes: tuple[str, ...]) -> int:
    config = settings_of(asked)
    start = Start(
        store=str(config.store),
        workspace=str(config.workspace),
        embedding=asked.embedding,
        scopes=scopes,
        is_multi_scope=asked.multi_scope,
        is_read_only=asked.read_only,
        url=f"http://{asked.host}:{asked.port}/mcp" if asked.http else None,
    )
    found = snippet(asked.print_config, start)
    if isinstance(config.store, StoreUrl) and config.store.has_secret and start.url is None:
        print(_NO_PASSWORD, file=sys.stderr)
    if asked.json:
        told = {"client": asked.print_config, "file": found.file, "config": found.config, "remark": found.remark}
        print(json.dumps({**told, "format": FORMAT}, indent=2))
        return OK
    print(f"# {found.file}")
    if found.remark:
        print(f"# {found.remark}")
    print(json.dumps(found.config, indent=2))
    return OK
