"""What users may type: every family of verbs in one parser."""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any

from ...errors import ConfigError
from .grammar import care, extracting, facts, finding, measuring, serving
from .grammar.parts import Family, Parser, Verbs, common_options

_LIKE = 0.7  # of letters in common, below which an option is another option


def parse(given: Sequence[str]) -> argparse.Namespace:
    """Read the command line; what nobody understands is an error that says where to look."""
    parser = build()
    if given[:1] == ["help"]:
        given = [*given[1:2], "--help"]
    _check_verb(given, parser)
    _check_options(given, parser)
    asked, rest = parser.parse_known_args(given)
    if rest[:1] == ["--"] and asked.verb in ("search", "add"):
        words = asked.query if asked.verb == "search" else asked.text
        words += rest[1:]
        rest = []
    if rest:
        raise ConfigError(f"{rest[0]!r} is unknown here", f"`whyrank {asked.verb} --help` shows what can be typed")
    return asked


def _check_verb(given: Sequence[str], parser: Parser) -> None:
    verbs = next(action.choices for action in parser._actions if action.dest == "verb")
    names = list(verbs or ())
    first = given[0] if given else "--help"
    if first in (*names, "-h", "--help", "--version"):
        return
    if first.startswith("-"):
        raise ConfigError(f"{first} stands before the verb", "options go after it: whyrank search QUERY --store PATH")
    close = get_close_matches(first, names, n=1)
    meant = f"did you mean {close[0]!r}?" if close else f"the verbs are {', '.join(names)}"
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


def build() -> Parser:
    """Return the parser of the whole command line."""
    parser = Parser(
        prog="whyrank",
        description="Memory search for AI agents that can say why.",
        epilog="Begin with: whyrank ingest notes/ && whyrank search 'what did we decide about the server?'",
        formatter_class=Verbs,
    )
    parser.add_argument("--version", action="store_true", help="print the version and leave")
    family = Family(parser.add_subparsers(dest="verb", metavar="VERB", parser_class=Parser), common_options())
    for verbs in (finding, extracting, facts, care, measuring, serving):
        verbs.add_verbs(family)
    return parser
