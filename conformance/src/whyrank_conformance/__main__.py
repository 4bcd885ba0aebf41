"""`python -m whyrank_conformance`: which of the field's mistakes does an engine make?"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from .adapters import ENGINES, UNASKED, chosen, engine_named
from .errors import ConformanceError, NotInstalled, UsageError
from .outcome import Conformance, Report
from .page import is_page, page_of
from .report import HEADING, HOW, as_markdown, as_text
from .session import keep, kept, run
from .trial import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

NOT_CONFORMING, INTERRUPTED = 18, 130  # exit status; the second as shells have it
_BEGINNING = 2_000  # characters: what a file is stands there
_ABOUT = """Put engines to the eighteen checks that hybrid search is known to fail, on planted notes, offline. An
engine is asked only what it promises; what it does not promise is "not applicable", never passed. Every outcome comes
with what was asked, what was expected and what came back. The exit status is 18 when an engine fails a check, so that
it can stand in CI. Engines that are not installed are skipped by name, with the command that installs them.

  python -m whyrank_conformance                                     whyrank itself
  python -m whyrank_conformance --engine lancedb --engine chroma    others; --engine all: every one with an adapter
  python -m whyrank_conformance --engine my_adapter:MyEngine        your own: five methods and a declaration
  python -m whyrank_conformance --list                              what there is, and what is missing
  python -m whyrank_conformance --engine all --out results --html page.html
  python -m whyrank_conformance --from results                      what was kept, without running anything"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Put engines to the checks, or show what was kept; the exit status says whether all of them conform."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    for stream in (sys.stdout, sys.stderr):
        # A terminal's encoding may lack ✓; showing a mark beats dying.
        getattr(stream, "reconfigure", lambda **_: None)(errors="replace")
    try:
        status = _run_command(given)
        sys.stdout.flush()
    except KeyboardInterrupt:
        _complain("interrupted")
        return INTERRUPTED
    except BrokenPipeError:  # the reader has gone (`… | head`)
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    return status


def _run_command(given: list[str]) -> int:
    try:
        asked = _parser().parse_args(given)
        return _list(asked) if asked.list else _conformance(asked)
    except ConformanceError as error:
        return _fail(error, as_json="--json" in given)
    except OSError as error:
        if error.filename is None:
            raise  # not about a file, so about the output
        place = f"{error.filename}: {error.strerror}"
        return _fail(ConformanceError(place, "check the path and its permissions"), as_json="--json" in given)


def _fail(error: ConformanceError, *, as_json: bool) -> int:
    if as_json:
        _say_json({"error": {"code": error.code, "message": error.message, "hint": error.hint}, "format": 1})
    else:
        _complain(f"whyrank_conformance: {error.message}")
        if error.hint:
            _complain(f"  {error.hint}")
    return error.exit_status


def _conformance(asked: argparse.Namespace) -> int:
    _check(asked)
    found = Conformance(kept(Path(asked.kept))) if asked.kept else _run(asked)
    written = _write_page(found, Path(asked.out)) if asked.out else []
    if asked.html:
        Path(asked.html).write_text(page_of(found.reports), encoding="utf-8")
        written.append(asked.html)
    if asked.json:
        _say_json({**found.as_data(), "written": written})
    else:
        _say(as_text(found))
        _say(HOW)
    for file in written:
        _complain(f"written: {file}")
    return 0 if found.conforms else NOT_CONFORMING


class _Parser(argparse.ArgumentParser):
    """A parser whose complaints look like all our errors."""

    def error(self, message: str) -> NoReturn:
        """Raise instead of printing the usage and leaving."""
        raise UsageError(message, f"`{self.prog} --help` shows the usage")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="python -m whyrank_conformance",
        description=_ABOUT,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument(
        "--engine", action="append", metavar="NAME", help="an engine, all, or module:Class; may be repeated (whyrank)"
    )
    parser.add_argument("--list", action="store_true", help="name the engines there are adapters for")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="the seed of the everyday notes (1)")
    parser.add_argument("--html", metavar="FILE", help="write a page that opens without network")
    parser.add_argument(
        "--out", metavar="FOLDER", help="keep each engine's report there, and write FOLDER.md of all that are kept"
    )
    parser.add_argument("--from", dest="kept", metavar="FOLDER", help="show reports that were kept; nothing is run")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of text")
    return parser


def _check(asked: argparse.Namespace) -> None:
    """Refuse now what could not be written after minutes of work."""
    if asked.seed < 0:
        raise UsageError("--seed must be at least 0", f"it is {asked.seed}")
    if asked.kept and asked.engine:
        raise UsageError("--from shows what was kept", "leave out --engine")
    if asked.html:
        _check_file(Path(asked.html), is_page, "a page of this suite")
    if asked.out:
        Path(asked.out).mkdir(parents=True, exist_ok=True)
        page = _page_beside(Path(asked.out))
        _check_file(page, lambda beginning: beginning.startswith(HEADING), "the page of these reports")


def _check_file(file: Path, is_ours: Callable[[str], bool], kind: str) -> None:
    """Refuse a file that cannot be written, or that holds something else."""
    folder = file.absolute().parent
    if file.is_dir() or not folder.is_dir() or not os.access(file if file.exists() else folder, os.W_OK):
        raise UsageError(f"{file} cannot be written", "name a file in an existing folder")
    if file.exists():
        with file.open(encoding="utf-8", errors="replace") as lines:
            beginning = lines.read(_BEGINNING)
        if beginning and not is_ours(beginning):
            raise UsageError(f"{file} already exists and is not {kind}", "name another file, or move that one away")


def _run(asked: argparse.Namespace) -> Conformance:
    def done(report: Report) -> None:
        if asked.out:  # at once: a later engine may bring the process down
            keep([report], Path(asked.out))

    found = run(chosen(asked.engine), seed=asked.seed, tell=_progress, done=done)
    if not found.reports:
        raise NotInstalled("none of these engines can run here", "; ".join(one.reason for one in found.skipped))
    return found


def _page_beside(folder: Path) -> Path:
    return folder.absolute().with_suffix(".md")


def _write_page(found: Conformance, folder: Path) -> list[str]:
    """Keep the reports in a folder, and make the page beside it of all that are kept there; name what was written."""
    files = keep(found.reports, folder)
    page = _page_beside(folder)
    page.write_text(as_markdown(kept(folder), f"{folder.name}/"), encoding="utf-8")
    return [*map(str, files), str(page)]


def _list(asked: argparse.Namespace) -> int:
    engines = []
    for name in ENGINES:
        engine = engine_named(name)()
        engines.append({"engine": name, "about": engine.about, "missing": type(engine).missing()})
    if asked.json:
        _say_json({"engines": engines, "unasked": dict(UNASKED), "format": 1})
        return 0
    for one in engines:
        _say(f"{one['engine']}: {one['about']}" + (f" [{one['missing']}]" if one["missing"] else ""))
    _say("A class of your own: --engine module:Class")
    return 0


def _progress(said: str) -> None:
    if sys.stderr.isatty():
        _complain(said)


def _say(text: str) -> None:
    print("\n".join(map(printable, text.splitlines())))


def _say_json(data: dict[str, Any]) -> None:
    """Print one JSON object; what a terminal would obey is escaped as JSON escapes it."""
    text = json.dumps(data, ensure_ascii=False, indent=2)
    print("".join(sign if sign.isprintable() or sign == "\n" else json.dumps(sign)[1:-1] for sign in text))


def _complain(text: str) -> None:
    print(printable(text), file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
