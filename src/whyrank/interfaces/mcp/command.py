"""`whyrank mcp`: starts the server, or prints what a client needs to start it."""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from ... import config as settings
from ...arguments import scope_of
from ...errors import ConfigError, MissingExtra
from ...opening import open_engine
from ..desk import Desk
from ..failures import OK
from ..gate import Token, gate_for, token_from
from ..shapes import FORMAT
from ..tenants import tenants_in
from .calls import Door
from .clients import Start, snippet


def serve(asked: argparse.Namespace) -> int:
    """Serve agents until the client leaves or the process is told to end."""
    scopes = tuple(str(scope_of(scope)) for scope in asked.scope or ())
    if asked.print_config:
        return _print_config(asked, scopes)
    if importlib.util.find_spec("mcp") is None:
        raise MissingExtra("`whyrank mcp` needs the MCP SDK, which is not installed", "pip install 'whyrank[mcp]'")
    with ExitStack() as stack:
        if asked.tenants is not None:
            return _served_to_tenants(asked, stack)
        door = Door(_desk(asked, _settings(asked).store, stack), scopes, asked.multi_scope, asked.read_only)
        return _served_over_http(asked, door) if asked.http else _served_over_stdio(door)


def _desk(asked: argparse.Namespace, store: Path, stack: ExitStack) -> Desk:
    desk = Desk(store, partial(open_engine, workspace=asked.workspace, embedding=asked.embedding))
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


def _served_over_http(asked: argparse.Namespace, door: Door) -> int:
    door.desk.warm()
    return _listening(asked, [(door, token_from(asked.token_file, settings.token()))])


def _served_to_tenants(asked: argparse.Namespace, stack: ExitStack) -> int:
    """Serve each tenant from a store of its own; which one it is, its token says."""
    said = (asked.scope, asked.multi_scope, asked.read_only, asked.token_file, asked.store)
    if not asked.http or any(said):
        raise ConfigError(
            "--tenants says for each tenant what --store, --scope, --multi-scope, --read-only and --token-file say",
            "give it with --http, and without these",
        )
    known = tenants_in(asked.tenants)
    doors = [Door(_desk(asked, one.store, stack), one.scopes, one.is_multi_scope, one.is_read_only) for one in known]
    return _listening(asked, [(door, Token(one.token, False)) for door, one in zip(doors, known, strict=True)])


def _listening(asked: argparse.Namespace, doors: Sequence[tuple[Door, Token]]) -> int:
    from . import transports
    from .server import server_for

    transports.log_to_stderr()
    listening = transports.listen(asked.host, asked.port)
    token = doors[0][1]
    url = transports.address_of(listening, asked.host)

    def ready() -> None:
        print(f"whyrank: listening on {url}", file=sys.stderr)
        if token.is_new:
            print(f"whyrank: the token is {token.text}", file=sys.stderr, flush=True)
        if asked.json:
            told = {"url": url, "token": token.text if token.is_new else None, "format": FORMAT}
            print(json.dumps(told), flush=True)

    servers = [(gate_for(asked.host, asked.allow_host, own.text), server_for(door)) for door, own in doors]
    with listening:
        transports.over_http(servers, listening, ready)
    return OK


def _print_config(asked: argparse.Namespace, scopes: tuple[str, ...]) -> int:
    """Print what to put where."""
    config = _settings(asked)
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


def _settings(asked: argparse.Namespace) -> settings.Config:
    store = None if asked.store is None else os.path.abspath(os.path.expanduser(asked.store))
    given = {"store": store, "embedding": asked.embedding}
    return settings.load(given, workspace=Path(asked.workspace) if asked.workspace else None)
