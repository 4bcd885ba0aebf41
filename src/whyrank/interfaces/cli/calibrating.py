"""`whyrank calibrate`: fit confidence to what the store holds."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence

from ...engine import Engine
from ...errors import ConfigError
from ...search.calibration import MIN_MEMORIES, Calibration
from ...wording import counted
from ..failures import OK
from ..shapes import FORMAT, calibration
from . import output
from .verbs import open_existing


def calibrate(asked: argparse.Namespace) -> int:
    """Measure thresholds for the scopes asked for, and say what was measured."""
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
        _say(one)
    return OK


def _each(engine: Engine, scopes: Sequence[str | None], tick: Callable[[int, int, str], None]) -> Iterator[Calibration]:
    """Yield the calibrations of all scopes; one that cannot be calibrated is named and keeps nobody waiting."""
    for scope in scopes:
        try:
            yield engine.calibrate(scope=scope, progress=tick)
        except ConfigError as error:
            output.complain(f"notice: {scope or 'global'}: {error.message}")


def _every_scope(engine: Engine) -> Sequence[str | None]:
    """Return the scopes that can be calibrated: with the global memories they see enough."""
    counts = engine.status().scopes
    shared = counts.get("global", 0)
    seen = {scope: count + (shared if scope != "global" else 0) for scope, count in counts.items()}
    enough = [scope for scope, count in seen.items() if count >= MIN_MEMORIES]
    if not enough:
        raise ConfigError(
            f"no scope has {MIN_MEMORIES} memories", "until then the default thresholds serve; ingest or add more"
        )
    return [None if scope == "global" else scope for scope in enough]


def _say(made: Calibration) -> None:
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
