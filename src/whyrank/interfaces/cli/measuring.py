"""`whyrank eval`: how we see."""

from __future__ import annotations

import argparse
from pathlib import Path

from ...errors import ConfigError
from ...evaluation.harness import Evaluation, as_data, evaluate, write_run
from ...evaluation.kept import set_from, story_as_data
from ...evaluation.sets import load_set
from ...evaluation.stories import Story, worst
from ...ranking.recipes import recipe_named
from ..failures import OK, TRAIL_BROKEN
from . import output
from .evaluations import say_set
from .files import check_run
from .reporting import Report, is_story_wanted
from .verbs import thrown_away


def evaluate_sets(asked: argparse.Namespace) -> int:
    """Measure recipes on sets, each in a throw-away store; or show what was kept of that."""
    report = Report(asked)
    if asked.kept:
        return report.shown_again()
    if asked.abstention is not None:
        from .abstaining import measure_abstention

        return measure_abstention(asked, report)
    if asked.plot:
        raise ConfigError("--plot draws the curves of --abstention", "add --abstention")
    recipes = list(dict.fromkeys(recipe_named(name).name for name in asked.recipe or ["default"]))
    if asked.run_out and len(asked.sets) > 1:
        raise ConfigError("--run-out takes one set", "call `whyrank eval` once for each set")
    if asked.run_out:
        check_run(Path(asked.run_out))
    measured = []
    for folder in asked.sets:
        evaluation, stories = _evaluate(Path(folder), recipes, asked)
        measured.append({**as_data(evaluation), "worst": [story_as_data(story) for story in stories]})
        if not asked.json:
            say_set(set_from(measured[-1]))
    report.finish(sets=measured, written=[asked.run_out] if asked.run_out else [])
    return TRAIL_BROKEN.exit_status if any(one["trails"]["broken"] for one in measured) else OK


def _evaluate(folder: Path, recipes: list[str], asked: argparse.Namespace) -> tuple[Evaluation, list[Story]]:
    dataset = load_set(folder)
    with thrown_away(asked) as engine, output.progress("eval", quiet=asked.json) as tick:
        evaluation = evaluate(dataset, engine, recipes, tick)
        stories = worst(evaluation, engine) if is_story_wanted(asked) else []
    if asked.run_out:
        try:
            write_run(Path(asked.run_out), evaluation.lines[recipes[0]], f"whyrank-{recipes[0]}")
        except OSError as error:
            raise ConfigError(f"{asked.run_out} cannot be written: {error.strerror}", "check the folder") from error
    return evaluation, stories
