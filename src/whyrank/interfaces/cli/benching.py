"""`whyrank bench`: how fast, beside what else there is."""

from __future__ import annotations

import argparse
import re
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...bench import kept
from ...bench.machine import limit_threads
from ...bench.page import page_of
from ...bench.report import HEADING, HOW, as_text
from ...bench.writing import DATA, INDEX, PAGE, write_folder
from ...errors import ConfigError
from ..failures import OK
from . import output
from .files import begins_with, check, check_data, check_page, tell_written

if TYPE_CHECKING:
    from ...bench.contest import Settings

_UNITS = {"": 1, "k": 1_000, "m": 1_000_000}
_PATIENT_SECONDS = 60.0
_FEWEST, _MOST = 100, 100_000_000  # notes


def bench(asked: argparse.Namespace) -> int:
    """Hold a contest, or read one that was kept, and print its tables; write pages where they are wanted."""
    limit_threads()
    earlier = kept.read(Path(asked.against)) if asked.against else None
    if asked.kept and (asked.peers is not None or asked.scopes is not None):
        raise ConfigError("--from shows a contest that was held", "leave --peers and --scopes out")
    settings = None if asked.kept else _settings(asked)
    # Better refused now than after an hour.
    if asked.out:
        _check_folder(Path(asked.out))
    if asked.html:
        check_page(Path(asked.html))
    data = _held(settings) if settings else kept.read_data(Path(asked.kept))
    contest = kept.kept_from(data)
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
    check_data(folder / DATA, "the data of a contest", kept.is_kept)
    check(folder / INDEX, lambda: begins_with(folder / INDEX, HEADING), "a page of benchmarks")


def _held(settings: Settings) -> dict[str, Any]:
    from ...bench.contest import Means, contest

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
    from ...bench.contest import Settings
    from ...bench.peers import chosen

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
            f"{text!r} is no number of scopes", "write 1000x1000 for a thousand scopes of a thousand memories"
        )
    return int(found[1]), int(found[2])
