"""One table for all doors: what each error is called, how a process ends on it, and its status over HTTP."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from .. import errors


class Failure(NamedTuple):
    """How an error looks from outside."""

    code: str
    exit_status: int
    http_status: int = 500


OK = 0
CANNOT_WRITE = 74  # as sysexits.h has it
INTERRUPTED = 130

# The most special first: the first class that fits decides.
FAILURES: tuple[tuple[type[errors.WhyrankError], Failure], ...] = (
    (errors.Conflict, Failure("config", 2, 409)),
    (errors.ConfigError, Failure("config", 2, 422)),
    (errors.NotFound, Failure("not-found", 3, 404)),
    (errors.StoreLocked, Failure("store-locked", 4, 503)),
    (errors.StoreChanged, Failure("store", 8, 409)),
    (errors.SchemaTooNew, Failure("schema-too-new", 5, 503)),
    (errors.StoreDamaged, Failure("store-damaged", 6, 503)),
    (errors.StoreFull, Failure("store-full", 7, 507)),
    (errors.StoreUnavailable, Failure("store-unavailable", 19, 503)),
    (errors.StoreError, Failure("store", 8, 503)),
    (errors.SpaceMismatch, Failure("space-mismatch", 9, 503)),
    (errors.ProviderTimeout, Failure("provider", 10, 504)),
    (errors.ProviderError, Failure("provider", 10, 502)),
    (errors.MissingExtra, Failure("missing-extra", 11, 501)),
    (errors.IngestError, Failure("ingest", 12, 404)),
    (errors.BadDataset, Failure("bad-dataset", 13, 422)),
    (errors.BadQuery, Failure("bad-query", 20, 422)),
    (errors.WhyrankError, Failure("error", 1, 500)),
)
PARTLY_READ = Failure("partly-read", 14)
TRAIL_BROKEN = Failure("trail-broken", 15)
PINS_LOST = Failure("pins-lost", 16)
WAITING = Failure("waiting", 17)
NOT_CONFORMING = Failure("not-conforming", 18)


# Advice is written for the command line. Whoever asks a server cannot run a command there: they are told what does the
# same at their door, by the verb, and of all else that it is for those who look after the server.
Ways = Mapping[str, str]
AT_HTTP: Ways = {
    "add": "`POST /v1/memories`",
    "forget": "`DELETE /v1/memories/{id}`",
    "ingest": "`POST /v1/ingest`",
    "list": "`GET /v1/memories`",
    "search": "`POST /v1/search`",
    "status": "`GET /v1/status`",
    "update": "`PATCH /v1/memories/{id}`",
}
AT_MCP: Ways = {
    "add": "`memory_add`",
    "forget": "`memory_forget`",
    "list": "`memory_search`",
    "search": "`memory_search`",
}
_COMMAND = re.compile(r"`whyrank (?P<verb>[\w-]+)[^`]*`")
_OPTION = re.compile(r"(?<![\w`'\"-])--[a-z][a-z-]+")


def at_door(ways: Ways, said: str) -> str:
    """Return what is said as it is of use to those who ask a server, without commands they cannot run."""
    return _COMMAND.sub(lambda found: ways.get(found["verb"]) or f"{found[0]} (on the server)", said)


def hint_at(ways: Ways, hint: str) -> str:
    """Return a hint of an error likewise, and without options that only a command line has."""
    return at_door(ways, _OPTION.sub(r"\g<0> (on the server)", hint))


def notices_at(ways: Ways, data: Mapping[str, Any]) -> dict[str, Any]:
    """Return an answer whose notices are of use to those who ask a server."""
    if not data.get("notices"):
        return dict(data)
    said = [{**one, "message": at_door(ways, one["message"])} for one in data["notices"]]
    return {**data, "notices": said}


def failure_of(error: errors.WhyrankError) -> Failure:
    """Return how an error looks from outside."""
    return next(failure for kind, failure in FAILURES if isinstance(error, kind))


def as_data(error: errors.WhyrankError) -> dict[str, object]:
    """Return an error as plain data."""
    return {"error": {"code": failure_of(error).code, "message": error.message, "hint": error.hint}, "format": 1}
