"""`whyrank model`: which embedding models there are, and changing between them."""

from __future__ import annotations

import argparse
from typing import NamedTuple

from ... import config as settings
from ...access import served_card
from ...embedding.models import Model, fetch, models
from ...embedding.providers import NAMES, check_name
from ...errors import ConfigError
from ...ingest.filling import Embedded
from ...opening import open_engine
from .. import shapes
from ..failures import OK
from . import output
from .verbs import settings_of

_MEGABYTE = 1_000_000


def model(asked: argparse.Namespace) -> int:
    """List the models, fetch one, or change to one."""
    if asked.action == "list":
        if asked.name is not None:
            raise ConfigError("`whyrank model list` takes no name", f"`whyrank model use {asked.name}` changes to one")
        return _list(asked)
    if asked.name is None:
        names = ", ".join(NAMES)
        raise ConfigError(f"which model to {asked.action} was not said", f"the models are {names}")
    check_name(asked.name)
    return _fetch(asked) if asked.action == "fetch" else _use(asked)


def _list(asked: argparse.Namespace) -> int:
    config = settings_of(asked)
    vectors = _vectors(config)
    known = models(config.models, served_card(config))
    if asked.json:
        output.say_json(shapes.models(known, config["embedding"], vectors, str(config.models)))
        return OK
    for found in known:
        in_use = found.name == config["embedding"]
        output.say(f"{'*' if in_use else ' '} {output.bold(found.name):12}  {found.about}")
        output.say("    " + output.dim(" · ".join(_particulars(found, vectors.get(found.space, 0)))))
    output.say(f"* in use, by {config.values['embedding'].origin}; fetched models are kept in {config.models}")
    return OK


def _particulars(found: Model, vectors: int) -> list[str]:
    told = []
    if found.dimension:
        told.append(f"{found.dimension} dimensions")
    if found.languages:
        told.append(f"knows {', '.join(found.languages)}")
    if found.space:
        told.append(f"{vectors} vectors here")
    if found.bytes:
        told.append(f"{found.bytes / _MEGABYTE:.0f} MB")
    return [*told, "ready" if found.installed else f"not here yet: {found.needs}"]


def _vectors(config: settings.Config) -> dict[str, int]:
    """Count the vectors of every space in the store, if there is one; no model is loaded for that."""
    if not config.store.is_file():
        return {}
    with open_engine(config.store, workspace=config.workspace, embedding="none") as engine:
        return dict(engine.status().spaces)


def _fetch(asked: argparse.Namespace) -> int:
    config = settings_of(asked)
    fetched = not asked.dry_run and _fetched(asked, config)
    found = _card(asked.name, config)
    if asked.json:
        state = {"installed": found.installed, "needs": found.needs or None, "folder": str(config.models)}
        output.say_json({"model": found.name, "fetched": fetched, **state, "format": shapes.FORMAT})
    elif asked.dry_run and not found.installed:
        output.say(f"{found.name} would be fetched into {config.models}")
    else:
        output.say(f"{found.name} {'was fetched into' if fetched else 'is already in'} {config.models}")
    return OK


def _fetched(asked: argparse.Namespace, config: settings.Config) -> bool:
    with output.progress(asked.name, quiet=asked.json, unit="B") as tick:
        return fetch(asked.name, config.models, tick)


def _card(name: str, config: settings.Config) -> Model:
    return next(found for found in models(config.models, served_card(config)) if found.name == name)


class Change(NamedTuple):
    """What changing to a model did, or would do; the JSON has the same fields."""

    model: str
    dry_run: bool
    fetched: bool
    space: str
    waiting: int
    embedded: int
    without_vector: int
    file: str
    in_use: str
    decided_by: str


def _use(asked: argparse.Namespace) -> int:
    """Fetch, embed what the store holds, and only then write the setting: till then the model before it serves."""
    config = settings_of(asked)
    served = served_card(config)
    if asked.name == served.name and served.needs:
        raise ConfigError(f"nobody said where {asked.name} is served", served.needs)
    change = _would_change(asked, config) if asked.dry_run else _changed(asked, config)
    if asked.json:
        output.say_json({**change._asdict(), "format": shapes.FORMAT})
        return OK
    _say_change(change)
    return OK


def _would_change(asked: argparse.Namespace, config: settings.Config) -> Change:
    found, waiting = _card(asked.name, config), 0
    if config.store.is_file() and found.space:
        with open_engine(config.store, workspace=config.workspace, embedding="none") as engine:
            waiting = engine.status(found.space).without_vector
    file = str(config.workspace / settings.WORKSPACE_FILE)
    used, origin = config.values["embedding"]
    return Change(found.name, True, not found.installed, found.space, waiting, 0, 0, file, used, origin)


def _changed(asked: argparse.Namespace, config: settings.Config) -> Change:
    fetched, done = _fetched(asked, config), Embedded("", 0, 0)
    if config.store.is_file():
        with (
            open_engine(config.store, workspace=config.workspace, embedding=asked.name) as engine,
            output.progress("embedding", quiet=asked.json) as tick,
        ):
            done = engine.embed(tick)
    file = settings.save(config, "embedding", asked.name)
    used, origin = settings_of(asked).values["embedding"]
    return Change(
        asked.name, False, fetched, done.space, 0, done.embedded, done.without_vector, str(file), used, origin
    )


def _say_change(change: Change) -> None:
    if change.dry_run:
        output.say(f"{change.model} {'would be fetched first' if change.fetched else 'is ready'}")
        output.say(f"{change.waiting} texts would be embedded, then {change.file} would name it")
        return
    output.say(f"{change.embedded} texts were embedded; vectors of other models stay")
    if change.without_vector:
        output.say(f"without a vector: {change.without_vector} (they can be found by words)")
    output.say(f"written to {change.file}")
    if change.in_use != change.model:
        output.complain(f"notice: {change.in_use} stays in use, because of {change.decided_by}")
