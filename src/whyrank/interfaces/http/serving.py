"""How a server comes to what it serves: from what it was started with to seats behind their gates."""

from __future__ import annotations

import socket
import threading
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from ... import config as settings
from ...opening import open_engine
from ..connections import Connection, Host, allow_many_files, host_for
from ..desk import Desk, OpenStores, most_open_stores
from ..door import Door
from ..gate import gate_for
from ..tenants import Tenant
from .app import Seat, Site
from .logs import Log, log_to, lost_lines
from .outlet import Descriptor, Outlet
from .tickets import Ticket
from .tracing import tracing
from .workers import run_workers

_STDERR = 2


@dataclass(frozen=True)
class Plan:
    """What a server was started with; whoever answers for it can be given this."""

    tenants: Sequence[Tenant]
    names: Sequence[str]
    workspace: str
    embedding: str | None = None
    log_json: bool = False
    ticket: Ticket | None = None  # of the browser that was opened with the server

    def as_data(self) -> dict[str, Any]:
        """Return the plan as plain data."""
        tenants = [
            {**one._asdict(), "store": str(one.store), "files": None if one.files is None else str(one.files)}
            for one in self.tenants
        ]
        return {**vars(self), "tenants": tenants, "names": list(self.names)}


def plan_from(data: Mapping[str, Any]) -> Plan:
    """Read a plan that was written down."""
    tenants = [
        Tenant(
            **{
                **one,
                "store": Path(one["store"]),
                "scopes": tuple(one["scopes"]),
                "files": one["files"] and Path(one["files"]),
            }
        )
        for one in data["tenants"]
    ]
    ticket = data["ticket"] and Ticket(*data["ticket"])
    return Plan(**{**data, "tenants": tenants, "ticket": ticket})


def served(plan: Plan, listening: socket.socket, workers: int) -> None:
    """Serve until the process is told to end."""
    with ExitStack() as stack:
        if workers > 1:
            _logging(plan, stack)
            run_workers(plan.as_data(), listening, workers)
        else:
            allow_many_files()
            hosted(plan, stack).run(sockets=[listening])


def hosted(
    plan: Plan, stack: ExitStack, connection: type[Connection] = Connection, channel: socket.socket | None = None
) -> Host:
    """Return a server for a plan; what it opened is released with the stack."""
    log = _logging(plan, stack)
    leaving = threading.Event()
    among = OpenStores(most_open_stores())
    seats = [_seat(plan, tenant, stack, among) for tenant in plan.tenants]
    if len(seats) == 1:
        seats[0].door.desk.warm()
    spans = tracing(settings.exports_spans())
    if spans is not None:
        stack.callback(spans.close)
    site = Site(seats, log, leaving, spans, plan.ticket)
    return host_for(site, leaving.set, connection, channel)


def _logging(plan: Plan, stack: ExitStack) -> Log:
    """Send all that is logged to standard error, by a way that is never blocked."""
    outlet = Outlet(Descriptor(_STDERR), partial(lost_lines, as_json=plan.log_json))
    stack.callback(outlet.close)
    log_to(outlet, as_json=plan.log_json)
    return Log(outlet, as_json=plan.log_json)


def _seat(plan: Plan, tenant: Tenant, stack: ExitStack, among: OpenStores) -> Seat:
    desk = Desk(tenant.store, partial(open_engine, workspace=plan.workspace, embedding=plan.embedding), among)
    stack.callback(desk.close)
    files = tenant.files if tenant.name else Path(plan.workspace)
    door = Door(desk, tenant.scopes, tenant.is_multi_scope, tenant.is_read_only, files)
    host, *others = plan.names
    return Seat(tenant.name, gate_for(host, others, tenant.token), door)
