"""The way in: parse, run the verb, and turn every error into one line and an exit status."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from ... import __version__
from ...errors import WhyrankError
from ..failures import INTERRUPTED, OK, as_data, failure_of
from .parser import build


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    for stream in (sys.stdout, sys.stderr):
        # A memory may hold what the terminal's encoding does not; showing a mark beats dying.
        getattr(stream, "reconfigure", lambda **_: None)(errors="replace")
    try:
        return _run(given)
    except WhyrankError as error:
        return _fail(error, as_json="--json" in given)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        # The reader has gone (`whyrank list | head`); there is nobody left to tell.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK


def _run(given: list[str]) -> int:
    parser = build()
    asked = parser.parse_args(given)
    if asked.version:
        print(f"whyrank {__version__}")
        return OK
    if asked.verb is None:
        parser.print_help()
        return OK
    if asked.verb == "eval":
        from .measuring import evaluate_sets

        return evaluate_sets(asked)
    from . import verbs

    known: dict[str, verbs.Verb] = {
        "ingest": verbs.ingest,
        "search": verbs.search,
        "why": verbs.why,
        "show": verbs.show,
        "list": verbs.list_memories,
        "status": verbs.status,
        "config": verbs.config,
        "recipes": verbs.recipes,
    }
    return known[asked.verb](asked)


def _fail(error: WhyrankError, *, as_json: bool) -> int:
    from .output import complain, say_json

    if as_json:
        say_json(as_data(error))
    else:
        complain(f"whyrank: {error.message}")
        if error.hint:
            complain(f"  {error.hint}")
    return failure_of(error).exit_status
