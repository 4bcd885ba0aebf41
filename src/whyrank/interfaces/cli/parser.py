"""What users may type: every family of verbs in one parser."""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from importlib import import_module
from typing import Any

from ...errors import ConfigError
from .grammar.parts import Family, Parser, Verbs, common_options

# Where each verb is told of, in the order of the help: whoever types one need not wait for all the others.
FAMILIES: Mapping[str, tuple[str, ...]] = {
    "finding": ("ingest", "search", "why", "show", "list"),
    "extracting": ("ingest-files",),
    "facts": ("add", "update", "forget", "recalled", "prune", "export", "import"),
    "care": ("calibrate", "status", "config", "model", "embed", "doctor", "backup", "restore", "recipes"),
    "measuring": ("eval", "pin", "check", "tune", "bench", "conformance"),
    "serving": ("mcp", "serve"),
}
_NAMES = [name for names in FAMILIES.values() for name in names]
_LIKE = 0.7  # of letters in common, below which an option is another option


def parse(given: Sequence[str]) -> argparse.Namespace:
    """Read the command line; what nobody understands is an error that says where to look."""
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
    if first.startswith("-"):
        raise ConfigError(f"{first} stands before the verb", "options go after it: whyrank search QUERY --store PATH")
    close = get_close_matches(first, _NAMES, n=1)
    meant = f"did you mean {close[0]!r}?" if close else f"the verbs are {', '.join(_NAMES)}"
    raise ConfigError(f"there is no verb {first!r}", meant)


def _check_options(given: Sequence[str], parser: Parser) -> None:
    """Refuse an option the verb does not have, and say which was meant; argparse may take it for a missing argument."""
    verbs: Any = next(action.choices for action in parser._actions if action.dest == "verb")
    if not given or given[0] not in verbs:
        return
    known = [option for action in verbs[given[0]]._actions for option in action.option_strings]
    words = itertools.takewhile(lambda word: word != "--", given[1:])
    for word in words:
        option = word.partition("=")[0]
        # What holds a space is a text, whatever it begins with.
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
    # Named, or argparse would write the usage to find out how it begins.
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", parser_class=Parser, prog=parser.prog)
    for family in families or FAMILIES:
        import_module(f".grammar.{family}", __package__).add_verbs(Family(verbs, common_options()))
    return parser
