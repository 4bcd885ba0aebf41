"""Starting the server: whom it serves, where it listens, and what is said of that."""

from __future__ import annotations

import argparse
import json
import sys
import threading
import webbrowser
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from ...errors import ConfigError
from ..connections import ending_in_order
from ..failures import OK
from ..gate import LOOPBACK
from ..listening import address_of, listen
from ..shapes import FORMAT
from ..tenants import Served, check_stores, served_to, settings_of
from .serving import Plan, served
from .tickets import Ticket, issued


def started(asked: argparse.Namespace) -> int:
    """Serve programs and people until the process is told to end."""
    if asked.no_token and asked.host not in LOOPBACK:
        raise ConfigError(f"without a token everybody who reaches {asked.host} may ask", "leave --no-token out")
    if asked.workers < 1:
        raise ConfigError(f"there are {asked.workers} workers", "give 1 or more")
    whom = served_to(asked)
    check_stores(whom)
    if asked.no_token:
        whom = Served([tenant._replace(token=None) for tenant in whom.tenants], False)
    plan = Plan(
        tenants=whom.tenants,
        names=[asked.host, *asked.allow_host],
        workspace=str(settings_of(asked).workspace),
        embedding=asked.embedding,
        log_json=asked.log_json,
    )
    with listen(asked.host, asked.port) as listening, ending_in_order(), ExitStack() as stack:
        page = address_of(listening, asked.host, "/")
        ticket = None
        if asked.open and _only_token(whom):
            ticket = stack.enter_context(issued(page))
        _say_where(asked, page, whom)
        if asked.open:
            # Some browsers run in this terminal until they are left, and want to be answered meanwhile.
            threading.Thread(target=_open, args=(page, ticket), daemon=True).start()
        served(replace(plan, ticket=ticket), listening, asked.workers)
    return OK


def _only_token(whom: Served) -> str | None:
    """Return the token, if there is one that opens the page."""
    [token, *others] = [tenant.token for tenant in whom.tenants]
    return None if others else token


def _open(page: str, ticket: Ticket | None) -> None:
    if not webbrowser.open(Path(ticket.file).as_uri() if ticket else page):
        print("whyrank: no browser was found to open it with", file=sys.stderr, flush=True)


def _say_where(asked: argparse.Namespace, page: str, whom: Served) -> None:
    """Say where the page is; a token that is new stands behind it, in the part of an address that is never sent."""
    token = _only_token(whom)
    shown = f"{page}#token={token}" if token and whom.is_new_token else page
    print(f"whyrank: the page is at {shown}", file=sys.stderr, flush=True)
    if asked.json:
        told = {"url": page.removesuffix("/"), "page": shown, "token": token if whom.is_new_token else None}
        print(json.dumps({**told, "format": FORMAT}), flush=True)
