"""Putting files in, and getting memories out."""

from __future__ import annotations

import argparse

from ....types import ORDERS
from .parts import Family, Once, filters, one_of, paging, verb, whole_number


def add_verbs(family: Family) -> None:
    """Add the verbs of this family."""
    _ingest(verb(family, "ingest", "index files and folders", _INGEST))
    _search(verb(family, "search", "find memories", _SEARCH))
    _why(verb(family, "why", "explain a rank, or an absence", _WHY))
    _show(verb(family, "show", "print one memory whole", _SHOW))
    _list(verb(family, "list", "list memories", _LIST))


_INGEST = """Index markdown, text and turn logs (JSONL). Unchanged files cost a stat, changed ones re-embed only
changed chunks, deleted ones vanish. .gitignore and .whyrankignore are honoured.

  whyrank ingest notes/            index a folder
  whyrank ingest notes/ --dry-run  say what would happen, change nothing"""
_SEARCH = """Find memories by words, meaning and names.

  whyrank search "what to do when a task seems impossible"
  whyrank search "Remind Me"            an exact name comes first
  whyrank search 'api "exact phrase"'   a phrase counts as one word
  whyrank search tea --explain          with the arithmetic behind every rank
  whyrank search "why did we move?" --expand    a language model widens the question first (llm.url)

With --advanced the query says which memories may answer at all:

  deploy*            a word that begins so: deploy, deploys, deployment
  "green tea"        these words side by side
  tea milk           both, as tea AND milk
  tea OR coffee      one of them, or both
  NOT milk, -milk    not this; the words of a NOT rank nothing
  (tea OR coffee) -milk              parentheses hold together
  tag:work path:notes/ kind:fact     what a memory is: name: (or title:) heading: path: tag: category: kind: speaker:

Operators are written in capitals. A query that begins with - goes behind --, after all options.

  whyrank search --advanced 'deploy* AND (staging OR production) NOT rollback'"""
_WHY = """Say why a memory has its rank, or in which run or stage it was lost and by how much.
Ids and paths are in the output of search and list; a path is one from the folder you are in, or one as it is stored.

With --over, say which of two is above, and the smallest change of one setting that would turn them round.

  whyrank why "what does Suzy drink?" notes/tea.md
  whyrank why "what does Suzy drink?" notes/tea.md --over notes/coffee.md"""


_SHOW = """Print one memory with all its fields, what it replaced and was replaced by, and what it was before
each change.

  whyrank show m_4f2a… --scope user:42"""
_LIST = """List memories in the order of their files and lines, or as --sort says.

  whyrank list --kind fact --category decision --sort date
  whyrank list --expired               what has expired or holds no more
  whyrank list --superseded            what has been replaced"""


def _ingest(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("paths", nargs="+", metavar="PATH", help="files and folders")
    parser.add_argument("--dry-run", action="store_true", help="say what would happen and change nothing")
    parser.add_argument("--scope", action=Once, default="global", metavar="S", help="whose memories these are (global)")


def _search(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("query", nargs="+", help="the question, a name, or words")
    _advanced(parser)
    paging(parser, "results")
    filters(parser)
    parser.add_argument("--recipe", metavar="R", help="how results are ranked; `whyrank recipes` lists them")
    parser.add_argument("--strict", action="store_true", help="no results at all when nothing relevant was found")
    parser.add_argument("--explain", action="store_true", help="show how every score was made, and what was dropped")
    parser.add_argument(
        "--max-tokens", type=whole_number, metavar="N", help="stop before the texts exceed about N tokens"
    )
    parser.add_argument(
        "--timeout-ms", type=whole_number, metavar="N", help="answer with what was found so far after N milliseconds"
    )
    _expand(parser)


def _why(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("query", help="the question that was asked")
    parser.add_argument("id", metavar="ID-OR-PATH", help="the memory in question, or its file")
    parser.add_argument("--over", metavar="ID-OR-PATH", help="another one: say what would make the two change places")
    parser.add_argument("--limit", type=whole_number, metavar="N", help="how many results were asked for")
    _advanced(parser)
    filters(parser)
    parser.add_argument("--recipe", metavar="R", help="how results are ranked")
    _expand(parser)


def _expand(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--expand", action="store_true", help="let a language model widen the question first")


def _advanced(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--advanced", action="store_true", help="AND, OR, NOT, (…), word*, field:word; see `search`")


def _show(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("id", help="the memory's id")
    parser.add_argument("--scope", action="append", metavar="S", help="whose memories besides the global ones")


def _list(parser: argparse.ArgumentParser) -> None:
    paging(parser, "memories")
    filters(parser)
    parser.add_argument("--superseded", action="store_true", help="only what has been replaced")
    parser.add_argument("--expired", action="store_true", help="only what has expired or holds no more")
    shown = f"{{{','.join(ORDERS)}}}"
    parser.add_argument(
        "--sort", type=one_of("order", ORDERS), metavar=shown, default="place", help="by what, the most first (place)"
    )
