"""`whyrank eval`: how we see."""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

from ...errors import ConfigError
from ...evaluation.harness import CEILING, Evaluation, as_data, evaluate, write_run
from ...evaluation.measures import MEASURES
from ...evaluation.sets import load_set
from ...exporting import written_whole
from ...ranking.recipes import recipe_named
from ..failures import OK, TRAIL_BROKEN
from ..shapes import FORMAT, moment
from . import output
from .verbs import settings_of, thrown_away


def evaluate_sets(asked: argparse.Namespace) -> int:
    """Measure recipes on sets, each in a throw-away store."""
    if asked.abstention is not None:
        from .abstaining import measure_abstention

        return measure_abstention(asked)
    if asked.plot:
        raise ConfigError("--plot draws the curves of --abstention", "add --abstention")
    recipes = [recipe_named(name).name for name in asked.recipe or ["default"]]
    if asked.run_out and len(asked.sets) > 1:
        raise ConfigError("--run-out takes one set", "call `whyrank eval` once for each set")
    evaluations = []
    for folder in asked.sets:
        evaluation = _evaluate(Path(folder), recipes, asked)
        evaluations.append(evaluation)
        if not asked.json:
            _say(evaluation)
    data = {"sets": [as_data(evaluation) for evaluation in evaluations], "format": FORMAT}
    if asked.keep:
        _keep(asked, data)
    if asked.json:
        output.say_json(data)
    return TRAIL_BROKEN.exit_status if any(evaluation.broken_trails for evaluation in evaluations) else OK


def _keep(asked: argparse.Namespace, data: dict[str, Any]) -> None:
    """Keep an evaluation beside the store, with the day it was made, in place of the one before."""
    config = settings_of(asked)
    if not config.store.is_file():
        raise ConfigError(f"there is no store at {config.store} to keep it beside", "--store names another")
    with written_whole(config.evaluation) as file:
        json.dump({**data, "made": moment(time.time())}, file)


def _evaluate(folder: Path, recipes: list[str], asked: argparse.Namespace) -> Evaluation:
    dataset = load_set(folder)
    with thrown_away(asked) as engine, output.progress("eval", quiet=asked.json) as tick:
        evaluation = evaluate(dataset, engine, recipes, tick)
    if asked.run_out:
        try:
            write_run(Path(asked.run_out), evaluation.lines[recipes[0]], f"whyrank-{recipes[0]}")
        except OSError as error:
            raise ConfigError(f"{asked.run_out} cannot be written: {error.strerror}", "check the folder") from error
    return evaluation


def _say(evaluation: Evaluation) -> None:
    names = [measure.name for measure in MEASURES]
    output.say(output.bold(f"{evaluation.set_name}: {len(evaluation.questions)} queries"))
    output.say(
        f"{'':20}" + "".join(f"{name:>11}" for name in names) + "   95 % of ndcg@10   against " + evaluation.recipes[0]
    )
    for name, line in evaluation.lines.items():
        low, high = line.interval()
        figures = "".join(f"{line.means()[measure]:>11.4f}" for measure in names)
        output.say(f"{name:20}{figures}   {low:.4f} – {high:.4f}" + _against(evaluation, name))
    for kind, (count, means) in evaluation.by_kind(evaluation.recipes[0]).items():
        output.say(
            f"  {kind or '–':18}" + "".join(f"{means[measure]:>11.4f}" for measure in names) + f"   {count} queries"
        )
    if evaluation.broken_trails:
        output.say(f"{len(evaluation.broken_trails)} of {evaluation.trails} trails do not replay to their key")
    else:
        output.say(output.dim(f"{evaluation.trails} trails replayed, every one to its exact key"))
    output.say()


def _against(evaluation: Evaluation, name: str) -> str:
    if name in (evaluation.recipes[0], CEILING):
        return ""
    compared = evaluation.comparison(name)
    return f"   {compared.difference:+.4f} (better {compared.better}, worse {compared.worse}, p {compared.p:.4f})"
