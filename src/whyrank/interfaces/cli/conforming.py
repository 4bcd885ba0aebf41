"""`whyrank conformance`: which of the field's mistakes does an engine make?"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from ...errors import ConfigError, MissingExtra
from ..failures import NOT_CONFORMING, OK
from . import output
from .files import begins_with, check, check_page, tell_written

if TYPE_CHECKING:
    from ...testing.conformance.outcome import Conformance, Report


def conformance(asked: argparse.Namespace) -> int:
    """Put engines to the checks, or show what was kept; the exit status says whether all of them conform."""
    if asked.list:
        return _list(asked)
    if asked.seed < 0:
        raise ConfigError("--seed must be at least 0", f"it is {asked.seed}")
    _check_places(asked)
    found = _kept(asked) if asked.kept else _run(asked)
    written = _write_page(found, Path(asked.out)) if asked.out else []
    if asked.html:
        from ...testing.conformance.page import page_of

        Path(asked.html).write_text(page_of(found.reports), encoding="utf-8")
        written.append(asked.html)
    _say(found, asked, written)
    tell_written(written)
    return OK if found.conforms else NOT_CONFORMING.exit_status


def _check_places(asked: argparse.Namespace) -> None:
    """Refuse now what could not be written after minutes of work."""
    if asked.kept and asked.engine:
        raise ConfigError("--from shows what was kept", "leave out --engine")
    if asked.html:
        check_page(Path(asked.html))
    if asked.out:
        from ...testing.conformance.report import HEADING

        Path(asked.out).mkdir(parents=True, exist_ok=True)
        page = _page_beside(Path(asked.out))
        check(page, lambda: begins_with(page, HEADING), "the page of these reports")


def _run(asked: argparse.Namespace) -> Conformance:
    from ...testing.conformance.adapters import chosen
    from ...testing.conformance.session import keep, run

    def done(report: Report) -> None:
        if asked.out:  # at once: a later engine may bring the process down
            keep([report], Path(asked.out))

    found = run(chosen(asked.engine), seed=asked.seed, tell=_progress, done=done)
    if not found.reports:
        raise MissingExtra("none of these engines can run here", "; ".join(one.reason for one in found.skipped))
    return found


def _progress(said: str) -> None:
    if sys.stderr.isatty():
        output.complain(said)


def _kept(asked: argparse.Namespace) -> Conformance:
    from ...testing.conformance.outcome import Conformance
    from ...testing.conformance.session import kept

    return Conformance(kept(Path(asked.kept)))


def _page_beside(folder: Path) -> Path:
    return folder.absolute().with_suffix(".md")


def _write_page(found: Conformance, folder: Path) -> list[str]:
    """Keep the reports in a folder, and make the page beside it of all that are kept there; name what was written."""
    from ...testing.conformance.report import as_markdown
    from ...testing.conformance.session import keep, kept

    files = keep(found.reports, folder)
    page = _page_beside(folder)
    page.write_text(as_markdown(kept(folder), f"{folder.name}/"), encoding="utf-8")
    return [*map(str, files), str(page)]


def _say(found: Conformance, asked: argparse.Namespace, written: list[str]) -> None:
    from ...testing.conformance.report import HOW, as_text

    if asked.json:
        output.say_json({**found.as_data(), "written": written})
        return
    output.say(as_text(found))
    output.say(output.dim(HOW))


def _list(asked: argparse.Namespace) -> int:
    from ...testing.conformance.adapters import ENGINES, UNASKED, engine_named

    engines = []
    for name in ENGINES:
        engine = engine_named(name)()
        engines.append({"engine": name, "about": engine.about, "missing": type(engine).missing()})
    if asked.json:
        output.say_json({"engines": engines, "unasked": dict(UNASKED), "format": 1})
        return OK
    for one in engines:
        output.say(f"{one['engine']}: {one['about']}" + (f" [{one['missing']}]" if one["missing"] else ""))
    output.say(output.dim("A class of your own: --engine module:Class"))
    return OK
