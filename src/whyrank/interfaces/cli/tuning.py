"""`whyrank tune`: fit the fusion to one's own memories, or learn that there is nothing to gain."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from ...config import Config
from ...errors import ConfigError
from ...wording import counted
from .. import shapes
from ..failures import OK
from . import output
from .files import check_picture
from .verbs import open_existing, settings_of

if TYPE_CHECKING:
    from ...evaluation.tuning import Fit, Judgement, Tuning

_HOW = (
    "Figures are nDCG@10 of questions held out: each fold judged by what the others chose. Witnesses are the kinds "
    "that can speak for a setting; every kind can speak against it."
)


def tune(asked: argparse.Namespace) -> int:
    """Try other settings on questions made of the memories, and write the better one only if told to."""
    if asked.plot:
        check_picture(Path(asked.plot))
    with open_existing(asked) as engine, output.progress("tune", quiet=asked.json) as tick:
        tuning = engine.tune(
            scope=asked.scope,
            recipe=asked.recipe,
            queries=asked.queries,
            seed=asked.seed,
            apply=asked.apply,
            progress=tick,
        )
    if asked.plot:
        _draw(tuning, Path(asked.plot))
    written = tuning.changes if asked.apply else {}
    if asked.json:
        output.say_json({**shapes.tuning(tuning), "applied": bool(written)})
    else:
        _say(tuning, applied=bool(written))
    _warn_of_stronger(settings_of(asked), written)
    return OK


def _draw(tuning: Tuning, file: Path) -> None:
    from ...evaluation.curves import draw

    try:
        file.write_text(draw(tuning), encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{file} cannot be written: {error.strerror}", "check the folder of --plot") from error


def _say(tuning: Tuning, *, applied: bool) -> None:
    output.say(f"present: {tuning.present}; {counted(len(tuning.trials), 'question')}, seed {tuning.seed}")
    for fit in tuning.fits:
        _say_fit(fit)
    if any(fit.witnesses for fit in tuning.fits):
        output.say(output.dim(_HOW))
    if not tuning.changes:
        output.say(f"Nothing to change: {tuning.reason}.")
    for key, value in tuning.changes.items():
        output.say(
            output.bold(f"{key} = {'unset' if value is None else f'{value:g}'}") + (" (written)" if applied else "")
        )
        if not applied:
            output.say(output.dim("nothing was written; --apply writes it into whyrank.toml of the workspace"))


def _say_fit(fit: Fit) -> None:
    output.say()
    output.say(f"{output.bold(f'ranking.{fit.setting}')}: {fit.decision}")
    if fit.witnesses is not None:
        value = getattr(fit.best, fit.setting)
        agreeing = sum(choice == fit.best for choice in fit.folds)
        output.say(f"  best: {'unset' if value is None else f'{value:g}'}, as {agreeing} of {len(fit.folds)} folds say")
        output.say(f"  {'':12}{'questions':>10}{'present':>10}{'chosen':>10}{'difference':>12}   95 %{'p':>21}")
        for judged in (fit.witnesses, *fit.kinds):
            output.say("  " + _line(judged))
    output.say(f"  {fit.reason}")


def _line(judged: Judgement) -> str:
    low, high = judged.interval
    return (
        f"{judged.kind or 'witnesses':12}{judged.queries:>10}{judged.present:>10.4f}{judged.chosen:>10.4f}"
        f"{judged.compared.difference:>+12.4f}   {low:+.4f} to {high:+.4f}   {judged.compared.p:.3f}"
    )


def _warn_of_stronger(config: Config, written: dict[str, float | None]) -> None:
    """Say when what was written does not count, because something stronger than the workspace file says otherwise."""
    for key, value in written.items():
        held, origin = config.values[key]
        if held != value:
            shown = "unset" if held is None else f"{held:g}"
            output.complain(f"notice: {key} is still {shown}, from {origin}, which the workspace file cannot change")
