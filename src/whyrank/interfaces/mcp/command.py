"""`whyrank mcp`: starts the server, or prints what a client needs to start it."""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import sys
from functools import partial
from pathlib import Path

from ... import config as settings
from ...arguments import scope_of
from ...errors import MissingExtra
from ...opening import open_engine
from ..desk import Desk
from ..failures import OK
from ..gate import gate_for, token_from
from ..shapes import FORMAT
from .calls import Door
from .clients import Start, snippet


def serve(asked: argparse.Namespace) -> int:
    """Serve agents until the client leaves or the process is told to end."""
    scopes = tuple(str(scope_of(scope)) for scope in asked.scope or ())
    if asked.print_config:
        return _print_config(asked, scopes)
    if importlib.util.find_spec("mcp") is None:
        raise MissingExtra("`whyrank mcp` needs the MCP SDK, which is not installed", "pip install 'whyrank[mcp]'")
    desk = Desk(_settings(asked).store, partial(open_engine, workspace=asked.workspace, embedding=asked.embedding))
    try:
        return _served(asked, Door(desk, scopes, asked.multi_scope, asked.read_only))
    finally:
        desk.close()


def _served(asked: argparse.Namespace, door: Door) -> int:
    from . import transports
    from .server import server_for

    transports.log_to_stderr()
    door.desk.warm()
    if not asked.http:
        if sys.stdin.isatty():
            print("whyrank: waiting for a client; --print-config says how to tell one of this server", file=sys.stderr)
        transports.over_stdio(server_for(door), door.desk.leave)
        return OK
    token = token_from(asked.token_file, settings.token())
    listening = transports.listen(asked.host, asked.port)
    url = transports.address_of(listening, asked.host)

    def ready() -> None:
        print(f"whyrank: listening on {url}", file=sys.stderr)
        if token.is_new:
            print(f"whyrank: the token is {token.text}", file=sys.stderr, flush=True)
        if asked.json:
            told = {"url": url, "token": token.text if token.is_new else None, "format": FORMAT}
            print(json.dumps(told), flush=True)

    with listening:
        transports.over_http(server_for(door), gate_for(asked.host, asked.allow_host, token.text), listening, ready)
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
