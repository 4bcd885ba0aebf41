"""Error table shared by all interfaces: code, exit status and HTTP status of each error."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from .. import errors


class ErrorResponse(NamedTuple):
    """External form of an error: code, exit status and HTTP status."""

    code: str
    exit_status: int
    http_status: int = 500


class BadRequest(errors.WhyrankError):
    """An invalid request, with its HTTP status."""

    def __init__(self, status: int, code: str, message: str, hint: str, retry_after_s: float | None = None) -> None:
        super().__init__(message, hint)
        self.status = status
        self.code = code
        self.retry_after_s = retry_after_s


FORMAT = 1  # of the JSON that all interfaces write
OK = 0
CANNOT_WRITE = 74  # as sysexits.h has it
INTERRUPTED = 130

# The most special first: the first class that fits decides.
FAILURES: tuple[tuple[type[errors.WhyrankError], ErrorResponse], ...] = (
    (errors.Conflict, ErrorResponse("config", 2, 409)),
    (errors.ConfigError, ErrorResponse("config", 2, 422)),
    (errors.NotFound, ErrorResponse("not-found", 3, 404)),
    (errors.StoreLocked, ErrorResponse("store-locked", 4, 503)),
    (errors.StoreChanged, ErrorResponse("store", 8, 409)),
    (errors.SchemaTooNew, ErrorResponse("schema-too-new", 5, 503)),
    (errors.StoreDamaged, ErrorResponse("store-damaged", 6, 503)),
    (errors.StoreFull, ErrorResponse("store-full", 7, 507)),
    (errors.StoreUnavailable, ErrorResponse("store-unavailable", 19, 503)),
    (errors.StoreError, ErrorResponse("store", 8, 503)),
    (errors.SpaceMismatch, ErrorResponse("space-mismatch", 9, 503)),
    (errors.ProviderTimeout, ErrorResponse("provider", 10, 504)),
    (errors.ProviderError, ErrorResponse("provider", 10, 502)),
    (errors.MissingExtra, ErrorResponse("missing-extra", 11, 501)),
    (errors.IngestError, ErrorResponse("ingest", 12, 404)),
    (errors.BadDataset, ErrorResponse("bad-dataset", 13, 422)),
    (errors.BadQuery, ErrorResponse("bad-query", 20, 422)),
    (errors.WhyrankError, ErrorResponse("error", 1, 500)),
)
PARTLY_READ = ErrorResponse("partly-read", 14)
TRAIL_BROKEN = ErrorResponse("trail-broken", 15)
PINS_LOST = ErrorResponse("pins-lost", 16)
WAITING = ErrorResponse("waiting", 17)


# Hints are written for the command line. Clients of a server cannot run a command there: a command is replaced by the
# equivalent of their interface, by verb; any other command is marked as one for the administrator of the server.
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


def at_interface(ways: Ways, said: str) -> str:
    """Replace `whyrank` commands in a message by their equivalent at an interface."""
    return _COMMAND.sub(lambda found: ways.get(found["verb"]) or f"{found[0]} (on the server)", said)


def hint_at(ways: Ways, hint: str) -> str:
    """Replace commands in an error hint, and mark options that exist on the command line alone."""
    return at_interface(ways, _OPTION.sub(r"\g<0> (on the server)", hint))


def notices_at(ways: Ways, data: Mapping[str, Any]) -> dict[str, Any]:
    """Return response data with the commands in its notices replaced."""
    if not data.get("notices"):
        return dict(data)
    said = [{**one, "message": at_interface(ways, one["message"])} for one in data["notices"]]
    return {**data, "notices": said}


def failure_of(error: errors.WhyrankError) -> ErrorResponse:
    """Return the table entry of an error; the first matching class decides."""
    return next(failure for kind, failure in FAILURES if isinstance(error, kind))


def as_data(error: errors.WhyrankError) -> dict[str, object]:
    """Return an error as plain data."""
    return {"error": {"code": failure_of(error).code, "message": error.message, "hint": error.hint}, "format": 1}
