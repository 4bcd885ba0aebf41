"""One run over several engines, and reports that are kept as files, so that engines of several environments meet."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from .adapters import ENGINES, engine_named
from .errors import BadReport
from .outcome import FORMAT, Conformance, Report, Skipped, report_from
from .suite import Tell, examine

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from .adapter import Adapter


def run(
    names: Sequence[str],
    *,
    seed: int = 1,
    tell: Tell = lambda _: None,
    done: Callable[[Report], None] = lambda _: None,
) -> Conformance:
    """Put the engines of these names to the checks; each report is `done` at once, an engine that is absent skipped."""
    reports: list[Report] = []
    skipped: list[Skipped] = []
    for name in names:
        make = engine_named(name)
        missing = _kind(make()).missing()
        if missing:
            skipped.append(Skipped(name, missing))
            continue
        reports.append(examine(make, seed=seed, tell=tell))
        done(reports[-1])
    return Conformance(tuple(reports), tuple(skipped))


def _kind(engine: Adapter) -> type[Adapter]:
    return type(engine)


def keep(reports: Sequence[Report], folder: Path) -> list[Path]:
    """Write each report into a file of its own, in place of one of the same engine; return the files."""
    folder.mkdir(parents=True, exist_ok=True)
    files = [folder / f"{_slug(report.engine)}.json" for report in reports]
    for report, file in zip(reports, files, strict=True):
        file.write_text(json.dumps(report.as_data(), ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    return files


def kept(folder: Path) -> tuple[Report, ...]:
    """Read all reports of a folder, in the order in which engines are named, strangers last."""
    files = sorted(folder.glob("*.json"))
    if not files:
        raise BadReport(
            f"there are no reports in {folder}", "write some with python -m whyrank_conformance --out FOLDER"
        )
    order = {name: place for place, name in enumerate(ENGINES)}
    reports = [_read(file) for file in files]
    return tuple(sorted(reports, key=lambda report: (order.get(report.engine, len(order)), report.engine)))


def _read(file: Path) -> Report:
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
        if data["format"] != FORMAT:
            raise ValueError(f"its format is {data['format']}, not {FORMAT}")
        return report_from(data)
    except (ValueError, KeyError, TypeError) as error:
        raise BadReport(
            f"{file} is no report of the conformance suite: {error}", "remove it, or run it again"
        ) from error


def _slug(name: str) -> str:
    return re.sub(r"[^a-z0-9.]+", "-", name.lower()).strip("-")
