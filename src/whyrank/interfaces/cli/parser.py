"""Parser classes and shared options: errors as WhyrankErrors, wider help, options of many verbs."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from typing import Any, NamedTuple, NoReturn

from ...errors import ConfigError

_OF_ARGUMENT = re.compile(r"^argument (?=[^:]+: )")  # argparse's prefix before the name of an argument


def whole_number(text: str) -> int:
    """Read a whole number."""
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number") from None


def number(text: str) -> float:
    """Read a number."""
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no number") from None


def share(text: str) -> float:
    """Read a number from 0 to 1."""
    read = number(text)
    if not 0 <= read <= 1:
        raise argparse.ArgumentTypeError(f"{text} is not between 0 and 1")
    return read


def one_of(what: str, names: Sequence[str]) -> Callable[[str], str]:
    """Return a parser of one of a few names; others are refused with a suggestion."""

    def read(text: str) -> str:
        if text in names:
            return text
        close = get_close_matches(text, names, n=1)
        raise ConfigError(
            f"there is no {what} {text!r}", f"did you mean {close[0]!r}?" if close else f"give {_listed(names)}"
        )

    return read


def _listed(names: Sequence[str]) -> str:
    return f"{', '.join(names[:-1])} or {names[-1]}"


class Parser(argparse.ArgumentParser):
    """Argument parser that reports errors like the rest of whyrank."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **{**options, "allow_abbrev": False})

    def error(self, message: str) -> NoReturn:
        """Raise ConfigError instead of printing the usage and exiting."""
        dash = "; put -- before a text that begins with -" if "required" in message else ""
        raise ConfigError(_OF_ARGUMENT.sub("", message), f"`{self.prog} --help` shows what can be typed{dash}")


class Verbs(argparse.HelpFormatter):
    """Help formatter with a column wide enough for the longest verb: argparse ignores their indentation."""

    def add_argument(self, action: argparse.Action) -> None:
        """Add an argument, and measure its choices with their indentation."""
        super().add_argument(action)
        if action.dest == "verb":
            longest = max(map(len, action.choices or ()))
            self._action_max_length = max(self._action_max_length, longest + 2 * self._indent_increment)


class Once(argparse.Action):
    """Option that may be given once: if the last of two scopes won silently, users would expect both."""

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, option: str | None = None
    ) -> None:
        """Store the value, unless there is one already."""
        if getattr(namespace, self.dest, self.default) != self.default:
            parser.error(f"{option} is given twice, and counts once here")
        setattr(namespace, self.dest, values)


class Family(NamedTuple):
    """Target of a family of verbs: the subparsers, and the common options."""

    verbs: argparse._SubParsersAction[Parser]
    common: Parser


def common_options() -> Parser:
    """Return the options of every verb."""
    common = Parser(add_help=False)
    common.add_argument("--store", metavar="PATH", help="the store (else WHYRANK_STORE, else .whyrank/memory.db)")
    elsewhere = "else WHYRANK_WORKSPACE, else OPENCLAW_WORKSPACE, else this folder"
    common.add_argument("--workspace", metavar="DIR", help=f"the workspace ({elsewhere})")
    common.add_argument(
        "--embedding",
        metavar="NAME",
        help="the embedder: wordllama, minilm, granite … (`whyrank model list`), or none",
    )
    common.add_argument("--json", action="store_true", help="print one JSON object instead of text")
    return common


def verb(family: Family, name: str, short: str, long: str) -> argparse.ArgumentParser:
    """Add one verb, with a short help for the list and a long one that teaches it."""
    return family.verbs.add_parser(
        name,
        help=short,
        description=long,
        parents=[family.common],
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def filters(parser: argparse.ArgumentParser) -> None:
    """Add the filter options."""
    parser.add_argument(
        "--scope", action="append", metavar="S", help="whose memories besides the global ones (user:42)"
    )
    parser.add_argument("--kind", metavar="K", help="chunk or fact")
    parser.add_argument("--tag", action="append", default=[], metavar="T", help="only with this tag; may be repeated")
    parser.add_argument("--category", metavar="C", help="only of this category")
    parser.add_argument("--decay", metavar="CLASS", help="only of this decay class")
    parser.add_argument(
        "--min-importance", type=whole_number, metavar="1-5", help="only what matters so much (3 if not said)"
    )
    parser.add_argument(
        "--path", metavar="GLOB", help="only from files whose path matches; ./, ../ and / are taken from here"
    )
    parser.add_argument("--language", metavar="L", help="only in this language (en, de, …)")
    parser.add_argument("--since", metavar="D", help="only from this date on (2026-03-14)")
    parser.add_argument("--before", metavar="D", help="only from before this date")
    parser.add_argument("--as-of", metavar="T", help="answer as of that time")
    parser.add_argument("--include-superseded", action="store_true", help="also what has been replaced")


def paging(parser: argparse.ArgumentParser, what: str) -> None:
    """Add --limit and --offset."""
    parser.add_argument("--limit", type=whole_number, metavar="N", help=f"how many {what}")
    parser.add_argument("--offset", type=whole_number, default=0, metavar="N", help=f"skip the first {what}")
