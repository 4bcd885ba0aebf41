"""The way in: parse, run the verb, and turn every error into one line and an exit status."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module

from ... import __version__
from ...errors import WhyrankError
from ..failures import CANNOT_WRITE, INTERRUPTED, OK, as_data, failure_of
from .parser import build, parse

# Where each verb is done: what a verb does not need it does not wait for.
_VERBS = {
    "ingest": ("verbs", "ingest"),
    "ingest-files": ("extracting", "ingest_files"),
    "search": ("verbs", "search"),
    "why": ("verbs", "why"),
    "show": ("lives", "show"),
    "list": ("verbs", "list_memories"),
    "add": ("facts", "add"),
    "update": ("facts", "update"),
    "forget": ("lives", "forget"),
    "recalled": ("lives", "recalled"),
    "prune": ("lives", "prune"),
    "export": ("lives", "export"),
    "import": ("backups", "import_memories"),
    "calibrate": ("calibrating", "calibrate"),
    "status": ("verbs", "status"),
    "config": ("verbs", "config"),
    "model": ("models", "model"),
    "embed": ("models", "embed"),
    "doctor": ("mending", "doctor"),
    "backup": ("backups", "backup"),
    "restore": ("backups", "restore"),
    "recipes": ("verbs", "recipes"),
    "eval": ("measuring", "evaluate_sets"),
    "pin": ("pinning", "pin"),
    "check": ("pinning", "check"),
    "tune": ("tuning", "tune"),
    "bench": ("benching", "bench"),
    "conformance": ("conforming", "conformance"),
    "mcp": (".mcp.command", "serve"),  # a door of its own
    "serve": (".http.command", "serve"),  # another
}
# Those that say it in their answer, and those that work without settings.
_WITHOUT_WARNING = frozenset({"search", "recipes", "bench", "conformance", "config"})


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    for stream in (sys.stdout, sys.stderr):
        # A memory may hold what the terminal's encoding does not; showing a mark beats dying.
        getattr(stream, "reconfigure", lambda **_: None)(errors="replace")
    status = OK
    try:
        status = _told(given)
        sys.stdout.flush()
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        _leave_output()
        return status  # the reader has gone (`whyrank list | head`); there is nobody left to tell
    except OSError as error:
        _leave_output()
        print(f"whyrank: the output cannot be written: {error.strerror}", file=sys.stderr)
        return CANNOT_WRITE
    return status


def _leave_output() -> None:
    """Send what is still in the buffer nowhere, so that leaving does not fail on it."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _told(given: list[str]) -> int:
    try:
        return _run(given)
    except WhyrankError as error:
        return _fail(error, as_json="--json" in given)
    except BrokenPipeError:
        raise
    except OSError as error:
        if error.filename is None:
            raise  # not about a file, so about the output
        place = f"{error.filename}: {error.strerror}"
        return _fail(WhyrankError(place, "check the path and its permissions"), as_json="--json" in given)


def _run(given: list[str]) -> int:
    asked = parse(given)
    if asked.version:
        print(f"whyrank {__version__}")
        return OK
    if asked.verb is None:
        build().print_help()
        return OK
    if asked.verb not in _WITHOUT_WARNING:
        _warn(asked)
    module, function = _VERBS[asked.verb]
    status: int = getattr(import_module(f".{module}", __package__), function)(asked)
    return status


def _warn(asked: argparse.Namespace) -> None:
    """Say which settings go by old names; standard output is the verb's own."""
    from .output import complain
    from .verbs import settings_of

    for notice in settings_of(asked).notices:
        complain(f"notice: {notice.message}")


def _fail(error: WhyrankError, *, as_json: bool) -> int:
    from .output import complain, say_json

    if as_json:
        say_json(as_data(error))
    else:
        complain(f"whyrank: {error.message}")
        if error.hint:
            complain(f"  {error.hint}")
    return failure_of(error).exit_status
