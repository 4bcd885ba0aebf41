"""`whyrank mcp`: starts the server, or prints what a client needs to start it."""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from ...arguments import scope_of
from ...errors import ConfigError, MissingExtra
from ...opening import open_engine
from ...wording import which
from ..desk import Desk, OpenStores, most_open_stores
from ..door import Door
from ..failures import OK
from ..gate import gate_for
from ..listening import address_of, listen
from ..shapes import FORMAT
from ..tenants import check_stores, served_to, settings_of
from .clients import Start, snippet

_NEEDED = {"mcp": "the MCP SDK", "httptools": "httptools"}


def serve(asked: argparse.Namespace) -> int:
    """Serve agents until the client leaves or the process is told to end."""
    scopes = tuple(str(scope_of(scope)) for scope in asked.scope or ())
    _check_place(asked)
    if asked.print_config:
        return _print_config(asked, scopes)
    for name, called in _NEEDED.items():
        if importlib.util.find_spec(name) is None:
            raise MissingExtra(f"`whyrank mcp` needs {called}, which is not installed", "pip install 'whyrank[mcp]'")
    with ExitStack() as stack:
        if asked.http:
            return _served_over_http(asked, stack)
        door = Door(_desk(asked, settings_of(asked).store, stack), scopes, asked.multi_scope, asked.read_only)
        return _served_over_stdio(door)


def _check_place(asked: argparse.Namespace) -> None:
    """Refuse what says where and to whom to listen, if nothing listens; what is unsaid is as usual."""
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


def _desk(asked: argparse.Namespace, store: Path, stack: ExitStack, among: OpenStores | None = None) -> Desk:
    desk = Desk(store, partial(open_engine, workspace=asked.workspace, embedding=asked.embedding), among)
    stack.callback(desk.close)
    return desk


def _served_over_stdio(door: Door) -> int:
    from . import transports
    from .server import server_for

    transports.log_to_stderr()
    door.desk.warm()
    if sys.stdin.isatty():
        print("whyrank: waiting for a client; --print-config says how to tell one of this server", file=sys.stderr)
    transports.over_stdio(server_for(door), door.desk.leave)
    return OK


def _served_over_http(asked: argparse.Namespace, stack: ExitStack) -> int:
    """Serve each tenant from a store of its own; which one it is, its token says."""
    from ..connections import allow_many_files, ending_in_order
    from . import transports
    from .server import server_for

    whom = served_to(asked)
    check_stores(whom)
    tenants, is_new_token = whom
    transports.log_to_stderr()
    listening = listen(asked.host, asked.port)
    url = address_of(listening, asked.host, transports.PATH)
    token = tenants[0].token if is_new_token else None

    def ready() -> None:
        print(f"whyrank: listening on {url}", file=sys.stderr)
        if token is not None:
            print(f"whyrank: the token is {token}", file=sys.stderr, flush=True)
        if asked.json:
            print(json.dumps({"url": url, "token": token, "format": FORMAT}), flush=True)

    stack.enter_context(ending_in_order())
    allow_many_files()
    servers, among = [], OpenStores(most_open_stores())
    for one in tenants:
        desk = _desk(asked, one.store, stack, among)
        if asked.tenants is None:
            desk.warm()
        door = Door(desk, one.scopes, one.is_multi_scope, one.is_read_only)
        servers.append((gate_for(asked.host, asked.allow_host, one.token), server_for(door)))
    with listening:
        transports.over_http(servers, listening, ready)
    return OK


def _print_config(asked: argparse.Namespace, scopes: tuple[str, ...]) -> int:
    """Print what to put where."""
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
    if asked.json:
        told = {"client": asked.print_config, "file": found.file, "config": found.config, "remark": found.remark}
        print(json.dumps({**told, "format": FORMAT}, indent=2))
        return OK
    print(f"# {found.file}")
    if found.remark:
        print(f"# {found.remark}")
    print(json.dumps(found.config, indent=2))
    return OK
