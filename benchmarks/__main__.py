"""`python -m benchmarks`: how fast, beside what else there is."""

from __future__ import annotations

import argparse
import re
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from whyrank.errors import ConfigError, WhyrankError
from whyrank.interfaces.cli import output
from whyrank.interfaces.cli.files import begins_with, check, check_data, check_page, tell_written
from whyrank.interfaces.cli.main import Parser, whole_number
from whyrank.interfaces.errors import INTERRUPTED, OK, as_data, failure_of

from .speed import results
from .speed.measurement import limit_threads
from .speed.page import DATA, INDEX, PAGE, page_of, write_folder
from .speed.peers import chosen
from .speed.report import HEADING, HOW, as_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .speed.contest import Settings

_UNITS = {"": 1, "k": 1_000, "m": 1_000_000}
_PATIENT_SECONDS = 60.0
_FEWEST, _MOST = 100, 100_000_000  # notes
_ABOUT = """Measure speed, memory and recall on notes made from a seed, beside other engines in the same run: for every
question each contestant answers once, in rotating order, so that ratios hold on a busy machine too. An engine that is
not installed, or takes longer than --patience to build, is skipped by name. pip install '.[peers]' brings them.

  python -m benchmarks                                  10,000 notes, every engine that is installed
  python -m benchmarks --sizes 10k,100k --peers fts5+numpy,tantivy
  python -m benchmarks --sizes 10k,100k,1m --out docs/benchmarks
  python -m benchmarks --from new/results.json --against old/results.json --html page.html
  python -m benchmarks --peers none --scopes 100x1000   one scope of many, beside a store of its own"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    for stream in (sys.stdout, sys.stderr):
        # A terminal's encoding may lack ×; showing a mark beats dying.
        getattr(stream, "reconfigure", lambda **_: None)(errors="replace")
    try:
        return bench(_parser().parse_args(given))
    except KeyboardInterrupt:
        output.complain("interrupted")
        return INTERRUPTED
    except WhyrankError as error:
        if "--json" in given:
            output.say_json(as_data(error))
        else:
            output.complain(f"benchmarks: {error.message}")
            if error.hint:
                output.complain(f"  {error.hint}")
        return failure_of(error).exit_status


def _parser() -> Parser:
    parser = Parser(
        prog="python -m benchmarks", description=_ABOUT, formatter_class=argparse.RawDescriptionHelpFormatter
    )
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
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of text")
    return parser


def bench(asked: argparse.Namespace) -> int:
    """Hold a contest, or read one that was kept, and print its tables; write pages where they are wanted."""
    limit_threads()
    earlier = results.read(Path(asked.against)) if asked.against else None
    if asked.kept and (asked.peers is not None or asked.scopes is not None):
        raise ConfigError("--from shows a contest that was held", "leave --peers and --scopes out")
    settings = None if asked.kept else _settings(asked)
    # Better refused now than after an hour.
    if asked.out:
        _check_folder(Path(asked.out))
    if asked.html:
        check_page(Path(asked.html))
    data = _held(settings) if settings else results.read_data(Path(asked.kept))
    contest = results.kept_from(data)
    written = list(map(str, write_folder(data, Path(asked.out), earlier))) if asked.out else []
    if asked.html:
        Path(asked.html).write_text(page_of(contest, earlier), encoding="utf-8")
        written.append(asked.html)
    if asked.json:
        output.say_json({**data, "written": written})
    else:
        output.say(as_text(contest))
        output.say(output.dim(HOW))
    tell_written(written)
    return OK


def _check_folder(folder: Path) -> None:
    """Make the folder, and refuse one where other things go by the names of what is written there."""
    folder.mkdir(parents=True, exist_ok=True)
    check_page(folder / PAGE)
    check_data(folder / DATA, "the data of a contest", results.is_kept)
    check(folder / INDEX, lambda: begins_with(folder / INDEX, HEADING), "a page of benchmarks")


def _held(settings: Settings) -> dict[str, Any]:
    from .speed.contest import Means, contest

    return contest(settings, Means(tell=_Progress())).as_data()


class _Progress:
    """Tells what is being done: on a terminal at once, in a log when it takes long, in a short pipe not at all."""

    def __init__(self) -> None:
        self._begun = time.monotonic()

    def __call__(self, said: str) -> None:
        if sys.stderr.isatty() or time.monotonic() - self._begun > _PATIENT_SECONDS:
            output.complain(said)


def _settings(asked: argparse.Namespace) -> Settings:
    peers = None if asked.peers is None else [name.strip() for name in asked.peers.split(",")]
    for option, least in (("queries", 1), ("words", 10), ("seed", 0), ("patience", 1)):
        if getattr(asked, option) < least:
            raise ConfigError(f"--{option} must be at least {least}", f"it is {getattr(asked, option)}")
    sizes = tuple(_size(text) for text in asked.sizes.split(","))
    scopes = None if asked.scopes is None else _scopes(asked.scopes)
    # From here on numpy is loaded, so everything cheap is checked before.
    from .speed.contest import Settings

    return Settings(sizes, tuple(chosen(peers)), asked.queries, asked.words, asked.seed, asked.patience, scopes)


def _size(text: str) -> int:
    found = re.fullmatch(r"(\d+)([km]?)", text.strip().lower())
    size = int(found[1]) * _UNITS[found[2]] if found else 0
    if not _FEWEST <= size <= _MOST:
        raise ConfigError(f"{text!r} is no size", f"write 10k, 100k or 1m; at least {_FEWEST}")
    return size


def _scopes(text: str) -> tuple[int, int]:
    found = re.fullmatch(r"(\d+)x(\d+)", text.strip().lower())
    if not found or not int(found[1]) or int(found[2]) < 1:
        raise ConfigError(
            f"{text!r} is not a number of scopes", "write 1000x1000 for a thousand scopes of a thousand memories"
        )
    return int(found[1]), int(found[2])


if __name__ == "__main__":
    sys.exit(main())
