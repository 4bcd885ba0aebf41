"""Single facts: stored and removed."""

from __future__ import annotations

import argparse

from ....types import CATEGORIES
from .parts import Family, verb


def add_verbs(family: Family) -> None:
    """Add the verbs of this family."""
    _add(verb(family, "add", "store a fact", _ADD))
    _forget(verb(family, "forget", "remove memories by their ids", _FORGET))


_ADD = """Store a fact. It is durable when its id is printed; the same text in the same scope is not stored twice.
With - every line of standard input is a fact; a line that cannot be stored is named, and the others are kept.

  whyrank add "Suzy prefers tea" --scope user:42 --tag drinks
  whyrank add "Suzy prefers coffee" --scope user:42 --supersedes m_4f2a…    the old fact is found no more
  whyrank add - --category decision < decisions.txt"""
_FORGET = """Remove memories by their exact ids, which `whyrank search` and `whyrank list` show. If one of them is not
there, all stay. Chunks of a file come back when the file is ingested again after a change: remove them from the file.

  whyrank forget m_4f2a… --scope user:42"""


def _add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "text", nargs="+", metavar="TEXT", help="the fact; - reads one from every line of standard input"
    )
    parser.add_argument("--scope", default="global", metavar="S", help="whose memory it is (global)")
    parser.add_argument("--name", default="", metavar="NAME", help="what it is called")
    parser.add_argument("--category", default="other", metavar="C", help=f"one of {', '.join(CATEGORIES)}")
    parser.add_argument("--tag", action="append", default=[], metavar="T", help="a tag; may be repeated")
    parser.add_argument("--importance", type=int, metavar="1-5", help="how much it matters")
    parser.add_argument("--date", metavar="D", help="when it happened (2026-03-14)")
    parser.add_argument("--expires", metavar="D", help="from when on it is found no more")
    parser.add_argument("--supersedes", metavar="ID", help="the memory it replaces")


def _forget(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("id", nargs="+", metavar="ID", help="what to remove")
    parser.add_argument(
        "--scope", action="append", metavar="S", help="whose memories besides the global ones (user:42)"
    )
