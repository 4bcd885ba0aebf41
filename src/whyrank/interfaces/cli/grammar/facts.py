"""Single facts: stored, changed, taken out, and what becomes of them."""

from __future__ import annotations

import argparse

from ....lifetimes import LIFETIMES, REFRESHED
from ....types import CATEGORIES, TRUSTS
from .parts import Family, Once, verb


def add_verbs(family: Family) -> None:
    """Add the verbs of this family."""
    _add(verb(family, "add", "store a fact", _ADD))
    _update(verb(family, "update", "change a fact", _UPDATE))
    _forget(verb(family, "forget", "remove memories, or a whole scope", _FORGET))
    _recalled(verb(family, "recalled", "say that memories were of use", _RECALLED))
    _prune(verb(family, "prune", "remove what has expired", _PRUNE))
    _export(verb(family, "export", "write a scope as lines of JSON", _EXPORT))
    _import(verb(family, "import", "take in memories of another store", _IMPORT))


_ADD = """Store a fact. It is durable when its id is printed; the same text in the same scope is not stored twice, and
facts that say almost the same are named (setting `dedup.near`: report, merge or keep).
With - every line of standard input is a fact; a line that cannot be stored is named, and the others are kept.

  whyrank add "Suzy prefers tea" --scope user:42 --tag drinks
  whyrank add "Suzy prefers coffee" --scope user:42 --supersedes m_4f2a…    the old fact is found no more
  whyrank add "Suzy prefers coffee" --supersedes "suzy prefers tea"         the same, by its text
  whyrank add "The demo runs on port 8080" --decay session                  gone in a day
  whyrank add "Paid invoice 17" --key invoice-17                            safe to run twice
  whyrank add - --category decision < decisions.txt"""
_UPDATE = """Change a fact. It keeps its id, and `whyrank show` tells what it was. What is not named stays as it is;
none takes a field back. Chunks of files are changed in their files.

  whyrank update m_4f2a… --text "Suzy prefers green tea" --importance 4
  whyrank update m_4f2a… --expires none
  whyrank update m_4f2a… --supersedes none      what it had replaced is found again
  echo "Suzy prefers green tea" | whyrank update m_4f2a… --text -"""
_FORGET = """Remove memories by their exact ids, which `whyrank search` and `whyrank list` show, or all there is of one
scope. If one of the ids is not there, all stay. Chunks of a file come back when the file is ingested again after a
change: remove them from the file. With --purge no byte of them is left in the store.

  whyrank forget m_4f2a… --scope user:42
  whyrank forget --whole-scope user:42 --purge --yes"""
_RECALLED = f"""Say that memories were of use to whoever searched: a search itself changes nothing. Each is counted
once, with the time; those of the classes {", ".join(name for name in LIFETIMES if name in REFRESHED)} live on from
now, unless their expiry was given.

  whyrank recalled m_4f2a… m_81cc… --scope user:42"""
_PRUNE = """Remove memories that have expired. They were not found any more; until they are removed they count in the
term statistics of their scope, so scores may change a little.

  whyrank prune --dry-run              say what would go
  whyrank prune --every-scope"""
_EXPORT = """Write everything of one scope as lines of JSON, one memory each with all its fields and its history: to
standard output, or whole or not at all to a file. Pins of the scope follow, a line each. `whyrank import` reads it.

  whyrank export --scope user:42 --out user-42.jsonl
  whyrank export --every-scope --out all.jsonl"""
_IMPORT = """Take in memories of another store. The format `whyrank` is what `whyrank export` writes: ids, scopes,
history, dates, trust, tags, what replaced what, recalls, keys of writes, files and pins come back as they were; vectors
are made again. What the store holds already is never changed: a memory that is there to the letter is counted, one that
is there with other content is skipped and named. So it is safe to run twice, and goes on when it was stopped.

The exit status is 14 if a line could not be read; the others are taken in all the same.

  whyrank import whyrank all.jsonl --dry-run     say what would happen
  whyrank import whyrank all.jsonl"""


def _fields(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--name", metavar="NAME", help="what it is called")
    parser.add_argument("--category", metavar="C", help=f"one of {', '.join(CATEGORIES)}")
    parser.add_argument("--tag", action="append", metavar="T", help="a tag; may be repeated")
    parser.add_argument("--entity", action="append", metavar="E", help="whom or what it is about; may be repeated")
    parser.add_argument("--importance", metavar="1-5", help="how much it matters")
    parser.add_argument("--decay", metavar="CLASS", help=f"how long it is kept: one of {', '.join(LIFETIMES)}")
    parser.add_argument("--date", metavar="D", help="when it happened (2026-03-14)")
    parser.add_argument("--valid-from", metavar="D", help="from when on it holds")
    parser.add_argument("--valid-until", metavar="D", help="from when on it holds no more")
    parser.add_argument("--expires", metavar="D", help="from when on it is found no more")
    parser.add_argument("--trust", metavar="T", help=f"who vouches for it: one of {', '.join(TRUSTS)}")
    parser.add_argument("--supersedes", metavar="ID-OR-TEXT", help="the memory it replaces")


def _add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "text", nargs="+", metavar="TEXT", help="the fact; - reads one from every line of standard input"
    )
    parser.add_argument("--scope", action=Once, default="global", metavar="S", help="whose memory it is (global)")
    _fields(parser)
    parser.add_argument("--key", metavar="KEY", help="a name for this write: the same again writes nothing")


def _update(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("id", metavar="ID", help="the fact")
    parser.add_argument("--text", metavar="T", help="its new text; - reads it from standard input")
    _fields(parser)
    _visible(parser)


def _forget(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("id", nargs="*", metavar="ID", help="what to remove")
    _visible(parser)
    parser.add_argument("--whole-scope", action=Once, metavar="S", help="remove all there is of this scope")
    parser.add_argument("--purge", action="store_true", help="leave no byte of it in the file")
    parser.add_argument("--yes", action="store_true", help="do not ask before a whole scope is removed")


def _recalled(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("id", nargs="+", metavar="ID", help="what was of use")
    _visible(parser)


def _prune(parser: argparse.ArgumentParser) -> None:
    _visible(parser)
    parser.add_argument("--every-scope", action="store_true", help="whoever's memories they are")
    parser.add_argument("--dry-run", action="store_true", help="say what would go and change nothing")


def _export(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--scope", action=Once, metavar="S", help="whose memories (global)")
    parser.add_argument("--every-scope", action="store_true", help="whoever's memories they are")
    parser.add_argument("--out", metavar="FILE", help="write into this file")


def _import(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("format", metavar="FORMAT", help="what wrote the file: whyrank")
    parser.add_argument("path", metavar="PATH", help="the file")
    parser.add_argument("--dry-run", action="store_true", help="say what would happen and change nothing")


def _visible(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--scope", action="append", metavar="S", help="whose memories besides the global ones (user:42)"
    )
