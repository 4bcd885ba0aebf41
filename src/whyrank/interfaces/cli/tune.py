"""`whyrank tune`, `calibrate`, `pin` and `check`."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ...config.load import Config
from ...engine.engine import Engine
from ...errors import ConfigError
from ...formatting import counted, on_one_line
from ...search.calibration import MIN_MEMORIES, Calibration
from .. import serialize
from ..errors import OK, PINS_LOST
from ..serialize import FORMAT, calibration
from . import output
from .files import check_picture
from .search import name_of, open_existing, settings_of, suggesting

if TYPE_CHECKING:
    from ...evaluation.pins import Pin, PinCheck
    from ...evaluation.tuning import Fit, HeldOut, Tuning

_HOW = (
    "Figures are nDCG@10 of questions held out: each fold judged by what the others chose. Witnesses are the kinds "
    "that can speak for a setting; every kind can speak against it."
)


def tune(asked: argparse.Namespace) -> int:
    """Try other settings on queries made of the memories; write the better ones only with --apply."""
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
        output.say_json({**serialize.tuning(tuning), "applied": bool(written)})
    else:
        _say_tuning(tuning, applied=bool(written))
    _warn_of_stronger(settings_of(asked), written)
    return OK


def _draw(tuning: Tuning, file: Path) -> None:
    from ...evaluation.report.charts import draw_curves

    try:
        file.write_text(draw_curves(tuning), encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{file} cannot be written: {error.strerror}", "check the folder of --plot") from error


def _say_tuning(tuning: Tuning, *, applied: bool) -> None:
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


def _line(judged: HeldOut) -> str:
    low, high = judged.interval
    return (
        f"{judged.kind or 'witnesses':12}{judged.queries:>10}{judged.present:>10.4f}{judged.chosen:>10.4f}"
        f"{judged.compared.difference:>+12.4f}   {low:+.4f} to {high:+.4f}   {judged.compared.p:.3f}"
    )


def _warn_of_stronger(config: Config, written: dict[str, float | None]) -> None:
    """Warn if a written setting has no effect, because a source of higher precedence overrides it."""
    for key, value in written.items():
        held, origin = config.values[key]
        if held != value:
            shown = "unset" if held is None else f"{held:g}"
            output.complain(f"notice: {key} is still {shown}, from {origin}, which the workspace file cannot change")


def calibrate(asked: argparse.Namespace) -> int:
    """Measure and print the thresholds of the given scopes."""
    if asked.every_scope and asked.scope:
        raise ConfigError("--every-scope and --scope exclude each other", "leave one of them out")
    made: list[Calibration] = []
    with open_existing(asked) as engine, output.progress("calibrate", quiet=asked.json) as tick:
        if asked.every_scope:
            made.extend(_each(engine, _every_scope(engine), tick))
        else:
            made.append(engine.calibrate(scope=asked.scope, progress=tick))
    if asked.json:
        output.say_json({"calibrations": [calibration(one) for one in made], "format": FORMAT})
        return OK
    for one in made:
        _say_calibration(one)
    return OK


def _each(engine: Engine, scopes: Sequence[str | None], tick: Callable[[int, int, str], None]) -> Iterator[Calibration]:
    """Yield the calibrations of all scopes; one that fails is reported and skipped."""
    for scope in scopes:
        try:
            yield engine.calibrate(scope=scope, progress=tick)
        except ConfigError as error:
            output.complain(f"notice: {scope or 'global'}: {error.message}")


def _every_scope(engine: Engine) -> Sequence[str | None]:
    """Return the scopes that see enough memories for a calibration, global ones included."""
    counts = engine.status().scopes
    shared = counts.get("global", 0)
    seen = {scope: count + (shared if scope != "global" else 0) for scope, count in counts.items()}
    enough = [scope for scope, count in seen.items() if count >= MIN_MEMORIES]
    if not enough:
        raise ConfigError(
            f"no scope has {MIN_MEMORIES} memories", "until then the default thresholds serve; ingest or add more"
        )
    return [None if scope == "global" else scope for scope in enough]


def _say_calibration(made: Calibration) -> None:
    output.say(
        output.bold(" + ".join(made.scopes))
        + f": {counted(made.memories, 'memory', 'memories')}, {', '.join(made.languages)}"
    )
    output.say(f"  asked: {counted(made.own, 'question')} of the store's own words, {made.foreign} foreign")
    bars = {"evidence": made.both, "words": made.words, "cosine": made.cosine, "coverage": made.coverage}
    for name, bar in bars.items():
        if bar is not None:
            output.say(
                f"  {name + ':':10} weak from {bar.weak:.3f}, found from {bar.found:.3f}"
                f"   (keeps {bar.kept:.0%} of the own, rejects {bar.rejected:.0%} of the foreign)"
            )


def pin(asked: argparse.Namespace) -> int:
    """Record, list or remove pins."""
    _check_typed(asked)
    with open_existing(asked) as engine:
        wanted = name_of(engine, asked.id, asked.scope)
        if asked.list:
            pins = engine.pins(scope=asked.scope, all_scopes=asked.all_scopes)
        elif asked.remove:
            pins = engine.unpin(asked.query, wanted, scope=asked.scope, all_scopes=asked.all_scopes)
        else:
            with suggesting(engine, asked, wanted):
                pins = [engine.pin(asked.query, wanted, scope=asked.scope, within=asked.within, recipe=asked.recipe)]
        file = engine.config.pins
    if asked.json:
        output.say_json({"pins": [serialize.pin(held) for held in pins], "file": str(file), "format": serialize.FORMAT})
        return OK
    done = "" if asked.list else "removed: " if asked.remove else "pinned: "
    for held in pins:
        output.say(done + _told(held))
    output.say(output.dim(f"{counted(len(pins), 'pin')} in {file}" if asked.list else f"written to {file}"))
    return OK


def _check_typed(asked: argparse.Namespace) -> None:
    if asked.list and asked.query is not None:
        raise ConfigError("--list takes no query", "`whyrank pin --list` prints all pins")
    if not asked.list and asked.query is None:
        raise ConfigError(
            "no query was given", "`whyrank pin QUERY ID` records a pin, `whyrank pin --list` prints them"
        )
    if not asked.list and not asked.remove and asked.id is None:
        raise ConfigError("no memory was named", "give its id or its path after the query; `whyrank search` shows both")


def _told(held: Pin) -> str:
    whose = f"  {output.dim(', '.join(held.scopes))}" if held.scopes else ""
    return f"{held.query!r} → {on_one_line(held.place)}  {output.dim(f'within {held.within}')}{whose}"


def check(asked: argparse.Namespace) -> int:
    """Run every pinned query again."""
    with open_existing(asked) as engine, output.progress("check", quiet=asked.json) as tick:
        done = engine.check(scope=asked.scope, all_scopes=asked.all_scopes, recipe=asked.recipe, progress=tick)
    if asked.json:
        output.say_json(serialize.checkup(done))
    else:
        _say_check(done)
    return PINS_LOST.exit_status if done.count("lost") else OK


def _say_check(done: PinCheck) -> None:
    for one in done.checked:
        if one.status == "kept":
            continue
        place = f", at {output.place(one.memory)}" if one.memory is not None else ""
        output.say(f"{output.bold(one.status)}  {_told(one.pin)}")
        output.say(f"       {one.why}{place}" + (f", result {one.rank}" if one.status == "moved" else ""))
    output.say(str(done))
