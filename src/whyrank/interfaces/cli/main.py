"""Command line: parsing, dispatch to a verb, and errors as one line and an exit status."""

from __future__ import annotations

import argparse
import itertools
import os
import sys
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from ... import __version__
from ...errors import ConfigError, MissingExtra, WhyrankError
from ..errors import CANNOT_WRITE, INTERRUPTED, OK, as_data, failure_of
from . import options
from .parser import Family, Parser, Verbs, common_options

# Module and function of each verb: imported when the verb runs, so that no verb waits for another's imports.
_VERBS = {
    "ingest": ("search", "ingest"),
    "ingest-files": ("files", "ingest_files"),
    "search": ("search", "search"),
    "why": ("search", "why"),
    "show": ("facts", "show"),
    "list": ("search", "list_memories"),
    "rank": ("rank", "rank"),
    "add": ("facts", "add"),
    "update": ("facts", "update"),
    "forget": ("facts", "forget"),
    "recalled": ("facts", "recalled"),
    "prune": ("facts", "prune"),
    "export": ("facts", "export"),
    "import": ("maintain", "import_memories"),
    "calibrate": ("tune", "calibrate"),
    "status": ("search", "status"),
    "config": ("search", "config"),
    "model": ("models", "model"),
    "embed": ("models", "embed"),
    "doctor": ("maintain", "doctor"),
    "backup": ("maintain", "backup"),
    "restore": ("maintain", "restore"),
    "recipes": ("search", "recipes"),
    "eval": ("evaluate", "evaluate_sets"),
    "pin": ("tune", "pin"),
    "check": ("tune", "check"),
    "tune": ("tune", "tune"),
    "mcp": (".mcp.command", "serve"),
    "serve": (".http.serve", "serve_http"),
}
_NEEDED = {"serve": ("starlette", "uvicorn", "prometheus_client")}  # packages of an extra, by verb
# Verbs whose answer holds these notices, and verbs that work without settings.
_WITHOUT_WARNING = frozenset({"search", "rank", "recipes", "config"})


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    for stream in (sys.stdout, sys.stderr):
        # A memory may hold characters the terminal cannot encode: print a replacement instead of failing.
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
        return status  # the reader closed the pipe (`whyrank list | head`)
    except OSError as error:
        _leave_output()
        print(f"whyrank: the output cannot be written: {error.strerror}", file=sys.stderr)
        return CANNOT_WRITE
    return status


def _leave_output() -> None:
    """Redirect the remaining output to the null device, so that the flush at exit does not fail."""
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
            raise  # no file name: the error is about the output
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
    for package in _NEEDED.get(asked.verb, ()):
        if find_spec(package) is None:
            told = f"`whyrank {asked.verb}` needs {package}, which is not installed"
            raise MissingExtra(told, f"pip install 'whyrank[{asked.verb}]', or '.[{asked.verb}]' in a clone")
    module, function = _VERBS[asked.verb]
    status: int = getattr(import_module(f".{module}", __package__), function)(asked)
    return status


def _warn(asked: argparse.Namespace) -> None:
    """Print notices about retired settings to standard error; standard output is for the verb alone."""
    from .output import complain
    from .search import settings_of

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


# In the order of the help; only the family of the given verb is added to the parser.
FAMILIES: Mapping[str, tuple[str, ...]] = {
    "search": ("ingest", "search", "why", "show", "list", "rank"),
    "files": ("ingest-files",),
    "facts": ("add", "update", "forget", "recalled", "prune", "export", "import"),
    "maintenance": ("calibrate", "status", "config", "model", "embed", "doctor", "backup", "restore", "recipes"),
    "evaluation": ("eval", "pin", "check", "tune"),
    "servers": ("mcp", "serve"),
}
_ADD_VERBS = {
    "search": options.add_search_verbs,
    "files": options.add_file_verbs,
    "facts": options.add_fact_verbs,
    "maintenance": options.add_maintenance_verbs,
    "evaluation": options.add_evaluation_verbs,
    "servers": options.add_server_verbs,
}
# Verbs of earlier versions, and their replacement.
_MOVED = {
    "bench": "python -m benchmarks, in a clone of the repository",
    "conformance": "python -m whyrank_conformance, after pip install ./conformance in a clone of the repository",
}
_NAMES = [name for names in FAMILIES.values() for name in names]
_LIKE = 0.7  # similarity below which an unknown option is not a typo of a known one


def parse(given: Sequence[str]) -> argparse.Namespace:
    """Parse the command line; unknown arguments raise an error that points to the help."""
    if given[:1] == ["help"]:
        given = [*given[1:2], "--help"]
    _check_verb(given)
    parser = build(*(family for family, names in FAMILIES.items() if given and given[0] in names))
    _check_options(given, parser)
    asked, rest = parser.parse_known_args(given)
    if rest[:1] == ["--"] and asked.verb in ("search", "add"):
        words = asked.query if asked.verb == "search" else asked.text
        words += rest[1:]
        rest = []
    if rest:
        meant = "a new text goes behind --text; " if asked.verb == "update" else ""
        hint = f"{meant}`whyrank {asked.verb} --help` shows what can be typed"
        raise ConfigError(f"{rest[0]!r} is unknown here", hint)
    return asked


def _check_verb(given: Sequence[str]) -> None:
    first = given[0] if given else "--help"
    if first in (*_NAMES, "-h", "--help", "--version"):
        return
    if first in _MOVED:
        raise ConfigError(f"`whyrank {first}` has moved: {_MOVED[first]}")
    if first.startswith("-"):
        raise ConfigError(f"{first} stands before the verb", "options go after it: whyrank search QUERY --store PATH")
    close = get_close_matches(first, _NAMES, n=1)
    meant = f"did you mean {close[0]!r}?" if close else f"the verbs are {', '.join(_NAMES)}"
    raise ConfigError(f"there is no verb {first!r}", meant)


def _check_options(given: Sequence[str], parser: Parser) -> None:
    """Refuse unknown options with a suggestion; argparse may report a missing argument instead."""
    verbs: Any = next(action.choices for action in parser._actions if action.dest == "verb")
    if not given or given[0] not in verbs:
        return
    known = [option for action in verbs[given[0]]._actions for option in action.option_strings]
    words = itertools.takewhile(lambda word: word != "--", given[1:])
    for word in words:
        option = word.partition("=")[0]
        # A word with a space is a text, even if it begins with dashes.
        if option.startswith("--") and " " not in word and option not in known:
            close = get_close_matches(option[2:], [name.lstrip("-") for name in known], n=1, cutoff=_LIKE)
            meant = f"did you mean --{close[0]}?" if close else f"`whyrank {given[0]} --help` shows what can be typed"
            raise ConfigError(f"{option} is no option of `whyrank {given[0]}`", meant)


def build(*families: str) -> Parser:
    """Return the parser of some families of verbs, or of the whole command line."""
    parser = Parser(
        prog="whyrank",
        description="Memory search for AI agents that can say why.",
        epilog="Begin with: whyrank ingest notes/ && whyrank search 'what did we decide about the server?'",
        formatter_class=Verbs,
    )
    parser.add_argument("--version", action="store_true", help="print the version and leave")
    # Set explicitly: argparse would format the usage to find the program name.
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", parser_class=Parser, prog=parser.prog)
    for family in families or FAMILIES:
        _ADD_VERBS[family](Family(verbs, common_options()))
    return parser
