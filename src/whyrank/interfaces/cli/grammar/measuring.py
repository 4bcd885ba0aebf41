"""Measuring: on sets, on pinned answers, on the store itself, beside other engines."""

from __future__ import annotations

import argparse

from .parts import Family, verb, whole_number

BESIDE_THE_STORE = ""  # where `--keep` keeps when it names no file


def add_verbs(family: Family) -> None:
    """Add the verbs of this family."""
    _eval(verb(family, "eval", "measure on an evaluation set", _EVAL))
    _pin(verb(family, "pin", "record a good answer", _PIN))
    _check(verb(family, "check", "look whether pinned answers are still found", _CHECK))
    _tune(verb(family, "tune", "fit the ranking to these memories", _TUNE))
    _bench(verb(family, "bench", "measure speed beside other engines", _BENCH))
    _conformance(verb(family, "conformance", "see which of the field's mistakes an engine makes", _CONFORMANCE))


_EVAL = """Measure recipes on a folder with corpus.jsonl (or files/), queries.jsonl and qrels.tsv.
A throw-away store is built; the keyword-only, vector-only and ceiling lines are always beside.

  whyrank eval "$DATA/scifact" --recipe default --recipe rrf

--html writes a page to look at: intervals, kinds, wins and losses, the worst queries with their trails. --keep writes
the figures of every query, so that another version or another setting can be held against them later.

  whyrank eval "$DATA/scifact" --keep before.json
  whyrank eval "$DATA/scifact" --against before.json --html page.html
  whyrank eval --from before.json                                           show it again, without measuring
  whyrank eval --from after.json --against before.json --html page.html

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
  whyrank bench --from new/results.json --against old/results.json --html page.html
  whyrank bench --peers none --scopes 100x1000      one scope of many, beside a store of its own"""

_CONFORMANCE = """Put engines to the eighteen checks that hybrid search is known to fail, on planted notes, offline. An
engine is asked only what it promises; what it does not promise is "not applicable", never passed. Every outcome comes
with what was asked, what was expected and what came back. The exit status is 18 when an engine fails a check, so that
it can stand in CI. Engines that are not installed are skipped by name, with the command that installs them.

  whyrank conformance                                         whyrank itself
  whyrank conformance --engine lancedb --engine chroma        others; --engine all: every one there is an adapter for
  whyrank conformance --engine my_adapter:MyEngine            your own: five methods and a declaration
  whyrank conformance --list                                  what there is, and what is missing
  whyrank conformance --engine all --out results --html page.html
  whyrank conformance --from results                          what was kept, without running anything"""


def _eval(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("sets", nargs="*", metavar="SET", help="folders of evaluation sets")
    parser.add_argument("--recipe", action="append", metavar="R", help="a recipe to measure; may be repeated")
    parser.add_argument(
        "--abstention",
        nargs="*",
        metavar="OTHER",
        help="measure the verdict; OTHER: sets whose questions cannot be answered",
    )
    parser.add_argument("--plot", metavar="FILE", help="draw the curves of --abstention (.png or .svg; one set only)")
    parser.add_argument("--run-out", metavar="FILE", help="write a TREC run of the first recipe (one set only)")
    parser.add_argument("--html", metavar="FILE", help="write a page that opens without network")
    parser.add_argument(
        "--keep",
        nargs="?",
        const=BESIDE_THE_STORE,
        metavar="FILE",
        help="keep the results, with the figures of every query, as JSON; without FILE beside the store, for the page",
    )
    parser.add_argument("--against", metavar="FILE", help="compare with results that were kept, query by query")
    parser.add_argument("--from", dest="kept", metavar="FILE", help="show results that were kept; no SET is measured")


def _pin(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("query", nargs="?", help="the question")
    parser.add_argument("id", nargs="?", metavar="ID-OR-PATH", help="the memory that answers it, or its file")
    parser.add_argument(
        "--within", type=whole_number, metavar="N", help="among how many results it shall be (5, or as it is)"
    )
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
    parser.add_argument(
        "--queries", type=whole_number, default=600, metavar="N", help="questions at most, of all kinds (600)"
    )
    parser.add_argument("--seed", type=whole_number, default=1, metavar="N", help="the seed of questions and folds (1)")
    parser.add_argument("--plot", metavar="FILE", help="draw what every setting gains, as SVG")
    parser.add_argument("--apply", action="store_true", help="write a better setting into whyrank.toml")


def _bench(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--sizes", default="10k", metavar="N,N", help="how many notes: 10k (as it is), 100k, 1m")
    parser.add_argument(
        "--peers", metavar="NAMES", help="which other engines, with commas between; none for none (all)"
    )
    parser.add_argument("--queries", type=whole_number, default=60, metavar="N", help="how many questions (60)")
    parser.add_argument(
        "--words", type=whole_number, default=200, metavar="N", help="about how many words a note has (200)"
    )
    parser.add_argument(
        "--seed", type=whole_number, default=1, metavar="N", help="the seed of notes, vectors and questions (1)"
    )
    parser.add_argument(
        "--patience", type=float, default=600.0, metavar="S", help="seconds another engine may take to build (600)"
    )
    parser.add_argument(
        "--scopes", nargs="?", const="1000x1000", metavar="SxM", help="also S scopes of M memories (1000x1000)"
    )
    parser.add_argument("--out", metavar="FOLDER", help="write results.json, page.html, index.md and plots there")
    parser.add_argument("--html", metavar="FILE", help="write a page that opens without network")
    parser.add_argument("--from", dest="kept", metavar="FILE", help="show a results.json; no contest is held")
    parser.add_argument("--against", metavar="FILE", help="set the page beside that of an earlier results.json")


def _conformance(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--engine", action="append", metavar="NAME", help="an engine, all, or module:Class; may be repeated (whyrank)"
    )
    parser.add_argument("--list", action="store_true", help="name the engines there are adapters for")
    parser.add_argument("--seed", type=whole_number, default=1, metavar="N", help="the seed of the everyday notes (1)")
    parser.add_argument("--html", metavar="FILE", help="write a page that opens without network")
    parser.add_argument(
        "--out", metavar="FOLDER", help="keep each engine's report there, and write FOLDER.md of all that are kept"
    )
    parser.add_argument("--from", dest="kept", metavar="FOLDER", help="show reports that were kept; nothing is run")
