"""`whyrank serve`: the plan of a server, its application, and the processes that run it."""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import signal
import sys
import tempfile
import threading
import webbrowser
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import uvicorn

from ...config import load as settings
from ...engine.open import open_engine
from ...errors import ConfigError
from ..asgi_server import Workers, listen, raise_file_limit, server_config, stop_signals, url_of
from ..auth import LOOPBACK, ServedTenants, Tenant, auth_policy, check_stores, served_to, settings_of
from ..engine_pool import Access, EnginePool, PooledEngine, max_open_stores
from ..errors import OK
from ..serialize import FORMAT
from .app import Application, Principal
from .observability import FOLDER_VARIABLE, Descriptor, Log, LogWriter, log_to, lost_lines, tracing
from .tickets import Ticket, issued

_STDERR = 2


@dataclass(frozen=True)
class ServerOptions:
    """Configuration of a server, sent to worker processes."""

    tenants: Sequence[Tenant]
    names: Sequence[str]
    workspace: str
    embedding: str | None = None
    log_json: bool = False
    ticket: Ticket | None = None  # of the browser that was opened with the server


def serve_http(asked: argparse.Namespace) -> int:
    """Serve the API and the page until the process is stopped."""
    if asked.no_token and asked.host not in LOOPBACK:
        raise ConfigError(f"without a token everybody who reaches {asked.host} may ask", "leave --no-token out")
    if asked.workers < 1:
        raise ConfigError(f"there are {asked.workers} workers", "give 1 or more")
    whom = served_to(asked)
    check_stores(whom)
    if asked.no_token:
        whom = ServedTenants([tenant._replace(token=None) for tenant in whom.tenants], False)
    plan = ServerOptions(
        tenants=whom.tenants,
        names=[asked.host, *asked.allow_host],
        workspace=str(settings_of(asked).workspace),
        embedding=asked.embedding,
        log_json=asked.log_json,
    )
    with listen(asked.host, asked.port) as listening, ExitStack() as stack:
        raise_file_limit()
        config = server_config(None, factory=True, workers=asked.workers)
        # Signals are handled from here on: killed by one, the process would leave files behind.
        if asked.workers > 1:
            run = Workers(config, [listening]).run
            _log_to_stderr(plan, stack)
            os.environ[FOLDER_VARIABLE] = stack.enter_context(tempfile.TemporaryDirectory(prefix="whyrank-metrics-"))
        else:
            server = uvicorn.Server(config)
            stack.enter_context(stop_signals(server.handle_exit))
            run = partial(server.run, sockets=[listening])
        page = url_of(listening, asked.host, "/")
        ticket = stack.enter_context(issued(page)) if asked.open and _only_token(whom) else None
        config.app = partial(_worker if asked.workers > 1 else application, replace(plan, ticket=ticket))
        _print_address(asked, page, whom)
        if asked.open:
            # Text browsers block this terminal until they quit, and need responses meanwhile.
            threading.Thread(target=_open, args=(page, ticket), daemon=True).start()
        run()
    return OK


def application(plan: ServerOptions) -> Application:
    """Return the application of a plan; the end of its lifespan closes all stores."""
    stack = ExitStack()
    log = _log_to_stderr(plan, stack)
    pool = EnginePool(max_open_stores())
    principals = [_principal(plan, tenant, stack, pool) for tenant in plan.tenants]
    if len(principals) == 1:
        principals[0].access.pooled.warm()
    spans = tracing(settings.exports_spans())
    if spans is not None:
        stack.callback(spans.close)
    return Application(principals, log, threading.Event(), spans, plan.ticket, stack.close)


def _worker(plan: ServerOptions) -> Application:
    """Return the application of a worker process, which ends with its supervisor."""
    if sys.platform != "win32":
        signal.signal(signal.SIGHUP, signal.SIG_IGN)  # SIGHUP of a closed terminal is handled by the supervisor
    threading.Thread(target=_follow_supervisor, daemon=True).start()
    return application(plan)


def _follow_supervisor() -> None:
    supervisor = multiprocessing.parent_process()
    if supervisor is not None:
        supervisor.join()
        signal.raise_signal(signal.SIGTERM)


def _log_to_stderr(plan: ServerOptions, stack: ExitStack) -> Log:
    """Send all logging to standard error, through a non-blocking writer."""
    writer = LogWriter(Descriptor(_STDERR), partial(lost_lines, as_json=plan.log_json))
    stack.callback(writer.close)
    log_to(writer, as_json=plan.log_json)
    return Log(writer, as_json=plan.log_json)


def _principal(plan: ServerOptions, tenant: Tenant, stack: ExitStack, pool: EnginePool) -> Principal:
    pooled = PooledEngine(tenant.store, partial(open_engine, workspace=plan.workspace, embedding=plan.embedding), pool)
    stack.callback(pooled.close)
    files = tenant.files if tenant.name else Path(plan.workspace)
    access = Access(pooled, tenant.scopes, tenant.is_multi_scope, tenant.is_read_only, files)
    host, *others = plan.names
    return Principal(tenant.name, auth_policy(host, others, tenant.token), access)


def _only_token(whom: ServedTenants) -> str | None:
    """Return the token if there is one tenant, else None."""
    [token, *others] = [tenant.token for tenant in whom.tenants]
    return None if others else token


def _open(page: str, ticket: Ticket | None) -> None:
    if not webbrowser.open(Path(ticket.file).as_uri() if ticket else page):
        print("whyrank: no browser was found to open it with", file=sys.stderr, flush=True)


def _print_address(asked: argparse.Namespace, page: str, whom: ServedTenants) -> None:
    """Print the URL of the page; a new token is in its fragment, which browsers never send."""
    token = _only_token(whom)
    shown = f"{page}#token={token}" if token and whom.is_new_token else page
    print(f"whyrank: the page is at {shown}", file=sys.stderr, flush=True)
    if asked.json:
        told = {"url": page.removesuffix("/"), "page": shown, "token": token if whom.is_new_token else None}
        print(json.dumps({**told, "format": FORMAT}), flush=True)
