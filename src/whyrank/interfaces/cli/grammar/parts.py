"""The parser's own parts: complaints like all our errors, help with room, options that many verbs share."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from typing import Any, NamedTuple, NoReturn

from ....errors import ConfigError

_OF_ARGUMENT = re.compile(r"^argument (?=[^:]+: )")  # what argparse says before the name of what it complains of


def whole_number(text: str) -> int:
    """Read a whole number."""
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number") from None


def one_of(what: str, names: Sequence[str]) -> Callable[[str], str]:
    """Return what reads one of a few names; another is refused as all we do not know, with the one that was meant."""

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
    """A parser whose complaints look like all our errors."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **{**options, "allow_abbrev": False})

    def error(self, message: str) -> NoReturn:
        """Raise instead of printing the usage and leaving."""
        dash = "; put -- before a text that begins with -" if "required" in message else ""
        raise ConfigError(_OF_ARGUMENT.sub("", message), f"`{self.prog} --help` shows what can be typed{dash}")


class Verbs(argparse.HelpFormatter):
    """Help with room beside the longest verb: argparse forgets that verbs are indented."""

    def add_argument(self, action: argparse.Action) -> None:
        """Measure an argument, and its choices with their indentation."""
        super().add_argument(action)
        if action.dest == "verb":
            longest = max(map(len, action.choices or ()))
            self._action_max_length = max(self._action_max_length, longest + 2 * self._indent_increment)


class Once(argparse.Action):
    """An option that may be given once: of two scopes, silently taking the last would be believed to take both."""

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, option: str | None = None
    ) -> None:
        """Keep the value, unless there is one already."""
        if getattr(namespace, self.dest, self.default) != self.default:
            parser.error(f"{option} is given twice, and counts once here")
        setattr(namespace, self.dest, values)


class Family(NamedTuple):
    """Where a family of verbs is added: the parser's verbs, and the options they all have."""

    verbs: argparse._SubParsersAction[Parser]
    common: Parser


def common_options() -> Parser:
    """Return the options of every verb."""
    common = Parser(add_help=False)
    common.add_argument("--store", metavar="PATH", help="the store (else WHYRANK_STORE, else .whyrank/memory.db)")
    common.add_argument("--workspace", metavar="DIR", help="the workspace (else WHYRANK_WORKSPACE, else this folder)")
    common.add_argument(
        "--embedding", metavar="NAME", help="the embedder: wordllama, minilm, minilm-int8, openai or none"
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
    """Add what may be asked of the memories that answer."""
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
    parser.add_argument("--since", metavar="D", help="only from this date on (2026-03-14)")
    parser.add_argument("--before", metavar="D", help="only from before this date")
    parser.add_argument("--as-of", metavar="T", help="answer as of that time")
    parser.add_argument("--include-superseded", action="store_true", help="also what has been replaced")


def paging(parser: argparse.ArgumentParser, what: str) -> None:
    """Add how many, and from where on."""
    parser.add_argument("--limit", type=whole_number, metavar="N", help=f"how many {what}")
    parser.add_argument("--offset", type=whole_number, default=0, metavar="N", help=f"skip the first {what}")
