"""`whyrank eval --abstention`: does it say so when nothing relevant is there?"""

from __future__ import annotations

import argparse
from pathlib import Path

from ...errors import ConfigError
from ...evaluation.abstention import KEPT_SHOWN, KEPT_WANTED, Abstention, abstention, as_data
from ...evaluation.plots import check_drawable, draw
from ...evaluation.sets import load_set
from ...ranking.recipes import recipe_named
from ...wording import counted
from ..failures import OK
from . import output
from .evaluations import say_curve, say_uncalibrated
from .files import check_picture
from .reporting import Report
from .verbs import thrown_away


def measure_abstention(asked: argparse.Namespace, report: Report) -> int:
    """Ask sets what they can and what they cannot answer, each in a throw-away store."""
    if asked.run_out:
        raise ConfigError("--run-out and --abstention exclude each other", "leave one of them out")
    if asked.plot and len(asked.sets) > 1:
        raise ConfigError("--plot takes one set", "call `whyrank eval` once for each set")
    if asked.plot:
        check_drawable(Path(asked.plot))
        check_picture(Path(asked.plot))
    names = asked.recipe or ["default"]
    if len(names) > 1:
        raise ConfigError("--abstention takes one recipe", "call `whyrank eval` once for each")
    measured = []
    for folder in asked.sets:
        measured.append(_measure(Path(folder), recipe_named(names[0]).name, asked))
        if not asked.json:
            _say(measured[-1])
    if asked.plot:
        draw(measured[0], Path(asked.plot))
    report.finish(abstention=[as_data(one) for one in measured], written=[asked.plot] if asked.plot else [])
    return OK


def _measure(folder: Path, recipe: str, asked: argparse.Namespace) -> Abstention:
    # By its place and not by its name: two languages of one set may be called alike.
    elsewhere = [Path(other) for other in asked.abstention if Path(other).resolve() != folder.resolve()]
    dataset, others = load_set(folder), [load_set(other) for other in elsewhere]
    with thrown_away(asked) as engine, output.progress("eval", quiet=asked.json) as tick:
        return abstention(dataset, others, engine, recipe, tick)


def _say(measured: Abstention) -> None:
    for side in measured.sides:
        output.say(output.bold(f"{measured.set_name}: {side.name}"))
        answerable = counted(len(side.answerable), "answerable question")
        output.say(f"{answerable}, {len(side.unanswerable)} unanswerable")
        say_curve([side.at_kept(share) for share in KEPT_SHOWN])
        wanted = side.at_kept(KEPT_WANTED)
        output.say(f"at {KEPT_WANTED:.0%} kept: {wanted.rejected:.1%} rejected; AUC {side.auc:.3f}")
        own, other = side.verdicts
        output.say(
            f"the verdict, calibrated without labels: {own.kept:.1%} kept, {1 - other.kept:.1%} rejected; "
            f"called found: {own.found:.1%} and {other.found:.1%}"
        )
        output.say()
    say_uncalibrated(measured.uncalibrated)
