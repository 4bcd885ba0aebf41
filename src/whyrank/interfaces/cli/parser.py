"""What users may type, and the help that teaches it."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any, NoReturn

from ...errors import ConfigError
from ...types import CATEGORIES


class Parser(argparse.ArgumentParser):
    """A parser whose complaints look like all our errors."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **{**options, "allow_abbrev": False})

    def error(self, message: str) -> NoReturn:
        """Raise instead of printing the usage and leaving."""
        dash = "; put -- before a text that begins with -" if "required" in message else ""
        raise ConfigError(message, f"`{self.prog} --help` shows what can be typed{dash}")


class Verbs(argparse.HelpFormatter):
    """Help with room beside the longest verb: argparse forgets that verbs are indented."""

    def add_argument(self, action: argparse.Action) -> None:
        """Measure an argument, and its choices with their indentation."""
        super().add_argument(action)
        if action.dest == "verb":
            longest = max(map(len, action.choices or ()))
            self._action_max_length = max(self._action_max_length, longest + 2 * self._indent_increment)


def parse(given: Sequence[str]) -> argparse.Namespace:
    """Read the command line; what nobody understands is an error that says where to look."""
    parser = build()
    _check_verb(given, parser)
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


def build() -> Parser:
    """Return the parser of the whole command line."""
    parser = Parser(
        prog="whyrank",
        description="Memory search for AI agents that can say why.",
        epilog="Begin with: whyrank ingest notes/ && whyrank search 'what did we decide about the server?'",
        formatter_class=Verbs,
    )
    parser.add_argument("--version", action="store_true", help="print the version and leave")
    common = _common()
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", parser_class=Parser)
    _ingest(_verb(verbs, common, "ingest", "index files and folders", _INGEST))
    _add(_verb(verbs, common, "add", "store a fact", _ADD))
    _forget(_verb(verbs, common, "forget", "remove memories by their ids", _FORGET))
    _search(_verb(verbs, common, "search", "find memories", _SEARCH))
    _why(_verb(verbs, common, "why", "explain a rank, or an absence", _WHY))
    _show(_verb(verbs, common, "show", "print one memory whole", "Print one memory with all its fields."))
    _list(_verb(verbs, common, "list", "list memories", "List memories in the order of their files and lines."))
    _calibrate(_verb(verbs, common, "calibrate", "fit confidence to this store", _CALIBRATE))
    _verb(verbs, common, "status", "what the store holds", "Count memories, files, scopes and vectors.")
    _config(_verb(verbs, common, "config", "show or change settings", _CONFIG))
    _model(_verb(verbs, common, "model", "list, fetch and change embedding models", _MODEL))
    _recipes(_verb(verbs, common, "recipes", "show how results are ranked", _RECIPES))
    _eval(_verb(verbs, common, "eval", "measure on an evaluation set", _EVAL))
    _pin(_verb(verbs, common, "pin", "record a good answer", _PIN))
    _check(_verb(verbs, common, "check", "look whether pinned answers are still found", _CHECK))
    _tune(_verb(verbs, common, "tune", "fit the ranking to these memories", _TUNE))
    _bench(_verb(verbs, common, "bench", "measure speed beside other engines", _BENCH))
    return parser


_INGEST = """Index markdown, text and turn logs (JSONL). Unchanged files cost a stat, changed ones re-embed only
changed chunks, deleted ones vanish. .gitignore and .whyrankignore are honoured.

  whyrank ingest notes/            index a folder
  whyrank ingest notes/ --dry-run  say what would happen, change nothing"""
_ADD = """Store a fact. It is durable when its id is printed; the same text in the same scope is not stored twice.
With - every line of standard input is a fact; a line that cannot be stored is named, and the others are kept.

  whyrank add "Suzy prefers tea" --scope user:42 --tag drinks
  whyrank add "Suzy prefers coffee" --scope user:42 --supersedes m_4f2a…    the old fact is found no more
  whyrank add - --category decision < decisions.txt"""
_FORGET = """Remove memories by their exact ids, which `whyrank search` and `whyrank list` show. If one of them is not
there, all stay. Chunks of a file come back when the file is ingested again after a change: remove them from the file.

  whyrank forget m_4f2a… --scope user:42"""
_SEARCH = """Find memories by words, meaning and names.

  whyrank search "what to do when a task seems impossible"
  whyrank search "Remind Me"            an exact name comes first
  whyrank search 'api "exact phrase"'   a phrase counts as one word
  whyrank search tea --explain          with the arithmetic behind every rank"""
_WHY = """Say why a memory has its rank, or in which run or stage it was lost and by how much.
Ids and paths are in the output of search and list.

With --over, say which of two is above, and the smallest change of one setting that would turn them round.

  whyrank why "what does Suzy drink?" notes/tea.md
  whyrank why "what does Suzy drink?" notes/tea.md --over notes/coffee.md"""
_CALIBRATE = """Measure where evidence (cosine plus coverage) begins to mean something in this store, so that a search
can say that nothing relevant was found. Two kinds of questions are asked: everyday ones on matters that hardly stand in
it, and ones put together of half of one of its sentences and half of another. It takes seconds, and an ingest does it
by itself when the memories have doubled since (unless `calibration` is manual); do it after many single facts.

  whyrank calibrate                    what everybody sees
  whyrank calibrate --scope user:42    what user 42 sees
  whyrank calibrate --every-scope      both, for every scope there is"""
_CONFIG = """Without arguments, print every setting and where it came from. With a key, print that one.
With a key and a value, write it into whyrank.toml of the workspace.

  whyrank config embedding none"""
_MODEL = """List the embedding models, fetch one, or change to one. Changing fetches the model if need be (once per
machine, checked against its pinned hash), embeds what the store holds, and then writes the setting `embedding` into
whyrank.toml of the workspace. Stopped, it goes on where it was when called again. Vectors of the model before stay, so
that going back costs nothing.

  whyrank model list                  what there is, what is ready, what is in use
  whyrank model use minilm            change to all-MiniLM-L6-v2 (needs: pip install onnxruntime)
  whyrank model use minilm --dry-run  say what that would take
  whyrank model use wordllama         and back
  whyrank model fetch minilm          only fetch, for a machine that will be offline"""
_RECIPES = """Print the recipes that ship. A recipe is a printable value: which runs are asked, how their
scores are fused, and the stages after that.

  whyrank recipes default"""
_EVAL = """Measure recipes on a folder with corpus.jsonl (or files/), queries.jsonl and qrels.tsv.
A throw-away store is built; the keyword-only, vector-only and ceiling lines are always beside.

  whyrank eval "$DATA/scifact" --recipe default --recipe rrf

With --abstention, measure instead how well a search says that nothing relevant is there: the set's own questions are
answerable, those of other sets are not, nor are those of its other scopes, with and without their speakers' names
replaced by those of the scope asked.

  whyrank eval "$DATA/scifact" --abstention "$DATA/cranfield"
  whyrank eval "$DATA/locomo-turns" --abstention --plot curve.svg"""
_PIN = """Record that a memory is a good answer to a query, so that `whyrank check` can tell when it is lost. The pin
holds if the memory is among the first five results, or as far down as it is now. A path pins the file: any
chunk of it will do. Pins are lines of text beside the store (setting `pins`), to be committed with the notes.

  whyrank pin "what does Suzy drink?" notes/tea.md
  whyrank pin "what does Suzy drink?" m_4f2a… --within 1
  whyrank pin --remove "what does Suzy drink?"
  whyrank pin --list"""
_CHECK = """Ask every pinned query again, for instance after a change of notes, settings, model, chunks or version.
Says for each lost pin where it went; a text that was cut, edited or renamed counts as moved, not as lost.
The exit status is 16 when a pin is lost, so that it can stand in CI.

  whyrank check                    the pins of the global scope
  whyrank check --all-scopes       all pins, each asked in its own scopes"""
_TUNE = """Fit the fusion to this store without labels. Questions are made of its own memories (headings, titles, links,
sentences without their rarest words, rare terms, parts of names); the words of the first four are hidden, in a copy of
the store, from the memories they were taken from. Part of the questions chooses a setting, the rest judges it. What is
inside the noise, or would be paid for by one kind of question, is refused. Nothing is written without --apply.

  whyrank tune                     try, and say what was found
  whyrank tune --plot tuning.svg   with a picture of what every setting gains
  whyrank tune --apply             write it into whyrank.toml, if it is better beyond the noise"""
_BENCH = """Measure speed, memory and recall on notes made from a seed, beside other engines in the same run: for every
question each contestant answers once, in rotating order, so that ratios hold on a busy machine too. An engine that is
not installed, or takes longer than --patience to build, is skipped by name. pip install 'whyrank[peers]' brings them.

  whyrank bench                                     10,000 notes, every engine that is installed
  whyrank bench --sizes 10k,100k --peers fts5+numpy,tantivy
  whyrank bench --sizes 10k,100k,1m --out docs/benchmarks
  whyrank bench --peers none --scopes 100x1000      one scope of many, beside a store of its own"""


def _common() -> Parser:
    common = Parser(add_help=False)
    common.add_argument("--store", metavar="PATH", help="the store (else WHYRANK_STORE, else .whyrank/memory.db)")
    common.add_argument("--workspace", metavar="DIR", help="the workspace (else WHYRANK_WORKSPACE, else this folder)")
    common.add_argument("--embedding", metavar="NAME", help="the embedder: wordllama, minilm, minilm-int8 or none")
    common.add_argument("--json", action="store_true", help="print one JSON object instead of text")
    return common


def _verb(
    verbs: argparse._SubParsersAction[Parser], common: Parser, name: str, short: str, long: str
) -> argparse.ArgumentParser:
    return verbs.add_parser(
        name,
        help=short,
        description=long,
        parents=[common],
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def _filters(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--scope", action="append", metavar="S", help="whose memories besides the global ones (user:42)"
    )
    parser.add_argument("--kind", metavar="K", help="chunk or fact")
    parser.add_argument("--tag", action="append", default=[], metavar="T", help="only with this tag; may be repeated")
    parser.add_argument("--path", metavar="GLOB", help="only from files whose path matches")
    parser.add_argument("--since", metavar="D", help="only from this date on (2026-03-14)")
    parser.add_argument("--before", metavar="D", help="only from before this date")
    parser.add_argument("--as-of", metavar="T", help="answer as of that time")
    parser.add_argument("--include-superseded", action="store_true", help="also what has been replaced")


def _paging(parser: argparse.ArgumentParser, what: str) -> None:
    parser.add_argument("--limit", type=int, metavar="N", help=f"how many {what}")
    parser.add_argument("--offset", type=int, default=0, metavar="N", help=f"skip the first {what}")


def _ingest(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("paths", nargs="+", metavar="PATH", help="files and folders")
    parser.add_argument("--dry-run", action="store_true", help="say what would happen and change nothing")
    parser.add_argument("--scope", default="global", metavar="S", help="whose memories these are (global)")


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


def _search(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("query", nargs="+", help="the question, a name, or words")
    _paging(parser, "results")
    _filters(parser)
    parser.add_argument("--recipe", metavar="R", help="how results are ranked; `whyrank recipes` lists them")
    parser.add_argument("--strict", action="store_true", help="no results at all when nothing relevant was found")
    parser.add_argument("--explain", action="store_true", help="show how every score was made, and what was dropped")
    parser.add_argument("--max-tokens", type=int, metavar="N", help="stop before the texts exceed about N tokens")


def _why(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("query", help="the question that was asked")
    parser.add_argument("id", metavar="ID-OR-PATH", help="the memory in question, or its file")
    parser.add_argument("--over", metavar="ID-OR-PATH", help="another one: say what would make the two change places")
    parser.add_argument("--limit", type=int, metavar="N", help="how many results were asked for")
    _filters(parser)
    parser.add_argument("--recipe", metavar="R", help="how results are ranked")


def _show(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("id", help="the memory's id")
    parser.add_argument("--scope", action="append", metavar="S", help="whose memories besides the global ones")


def _list(parser: argparse.ArgumentParser) -> None:
    _paging(parser, "memories")
    _filters(parser)


def _calibrate(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--scope", action="append", metavar="S", help="whose memories besides the global ones")
    parser.add_argument("--every-scope", action="store_true", help="the global ones, and each scope with them")


def _config(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("key", nargs="?", help="a setting")
    parser.add_argument("value", nargs="?", help="its new value")


def _model(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", nargs="?", choices=("list", "use", "fetch"), default="list", help="what to do (list)")
    parser.add_argument("name", nargs="?", help="the model")
    parser.add_argument("--dry-run", action="store_true", help="say what would happen and change nothing")


def _recipes(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", nargs="?", help="print this recipe only")


def _eval(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("sets", nargs="+", metavar="SET", help="folders of evaluation sets")
    parser.add_argument("--recipe", action="append", metavar="R", help="a recipe to measure; may be repeated")
    parser.add_argument(
        "--abstention",
        nargs="*",
        metavar="OTHER",
        help="measure the verdict; OTHER: sets whose questions cannot be answered",
    )
    parser.add_argument("--plot", metavar="FILE", help="draw the curves of --abstention (.png or .svg; one set only)")
    parser.add_argument("--run-out", metavar="FILE", help="write a TREC run of the first recipe (one set only)")


def _pin(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("query", nargs="?", help="the question")
    parser.add_argument("id", nargs="?", metavar="ID-OR-PATH", help="the memory that answers it, or its file")
    parser.add_argument("--within", type=int, metavar="N", help="among how many results it shall be (5, or as it is)")
    parser.add_argument("--list", action="store_true", help="print the pins")
    parser.add_argument("--remove", action="store_true", help="take out the pins of the query, or that of the id")
    parser.add_argument("--recipe", metavar="R", help="how results are ranked when the present rank is looked up")
    _pin_scopes(parser)


def _check(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--recipe", metavar="R", help="how results are ranked (the one in the settings)")
    _pin_scopes(parser)


def _pin_scopes(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--scope", action="append", metavar="S", help="whose pins besides the global ones")
    parser.add_argument("--all-scopes", action="store_true", help="the pins of all scopes")


def _tune(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--scope", action="append", metavar="S", help="whose memories besides the global ones")
    parser.add_argument("--recipe", metavar="R", help="the recipe to fit (the one in the settings)")
    parser.add_argument("--queries", type=int, default=600, metavar="N", help="questions at most, of all kinds (600)")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="the seed of questions and folds (1)")
    parser.add_argument("--plot", metavar="FILE", help="draw what every setting gains, as SVG")
    parser.add_argument("--apply", action="store_true", help="write a better setting into whyrank.toml")


def _bench(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--sizes", default="10k", metavar="N,N", help="how many notes: 10k (as it is), 100k, 1m")
    parser.add_argument(
        "--peers", metavar="NAMES", help="which other engines, with commas between; none for none (all)"
    )
    parser.add_argument("--queries", type=int, default=60, metavar="N", help="how many questions (60)")
    parser.add_argument("--words", type=int, default=200, metavar="N", help="about how many words a note has (200)")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="the seed of notes, vectors and questions (1)")
    parser.add_argument(
        "--patience", type=float, default=600.0, metavar="S", help="seconds another engine may take to build (600)"
    )
    parser.add_argument(
        "--scopes", nargs="?", const="1000x1000", metavar="SxM", help="also S scopes of M memories (1000x1000)"
    )
    parser.add_argument("--out", metavar="FOLDER", help="write results.json, index.md and plots there")
