"""`whyrank model` and `whyrank embed`: which embedding models there are, changing between them, and what waits."""

from __future__ import annotations

import argparse
from typing import Any, NamedTuple

from ... import config as settings
from ...access import served_card
from ...embedding.models import Model, fetch, models
from ...embedding.providers import NAMES, check_name
from ...engine import Engine
from ...errors import ConfigError, StoreError
from ...opening import open_engine
from ...spaces import ModelChange, SpaceState
from ...wording import counted, on_one_line, which
from .. import shapes, space_shapes
from ..failures import OK, PINS_LOST, WAITING
from . import output
from .verbs import open_existing, settings_of

_MEGABYTE = 1_000_000


def model(asked: argparse.Namespace) -> int:
    """List the models, fetch one, change to one, go back, or drop one."""
    if asked.action in ("list", "rollback") and asked.name is not None:
        raise ConfigError(
            f"`whyrank model {asked.action}` takes no name", f"`whyrank model use {asked.name}` changes to one"
        )
    if (asked.check or asked.force or asked.background) and asked.action != "use":
        raise ConfigError("--check, --force and --background belong to `model use`", "leave them out")
    if asked.action in ("use", "fetch", "drop") and asked.name is None:
        raise ConfigError(f"which model to {asked.action} was not said", f"the models are {', '.join(NAMES)}")
    if asked.action in ("use", "fetch"):
        check_name(asked.name)
    doing = {"list": _list, "fetch": _fetch, "use": _use, "rollback": _rollback, "drop": _drop}
    return doing[asked.action](asked)


# -- what there is -----------------------------------------------------------------------------------------------------


def _list(asked: argparse.Namespace) -> int:
    config = settings_of(asked)
    states = _states(config)
    vectors = {state.name: state.vectors for state in states}
    known = models(config.models, served_card(config))
    in_use = _in_use(config, states, known)
    if asked.json:
        data = shapes.models(known, in_use, vectors, str(config.models))
        output.say_json({**data, "spaces": space_shapes.spaces(states)})
        return OK
    for found in known:
        output.say(f"{'*' if found.name == in_use else ' '} {output.bold(found.name):12}  {found.about}")
        output.say("    " + output.dim(" · ".join(_particulars(found, vectors.get(found.space, 0)))))
    named, origin = config.values["embedding"]
    by = origin if named == in_use else f"the store's own account ({origin} names {named})"
    output.say(f"* in use, by {by}; fetched models are kept in {config.models}")
    output.show_spaces(states)
    return OK


def _in_use(config: settings.Config, states: list[SpaceState], known: tuple[Model, ...]) -> str:
    """Return the model that answers: the store's own, or the one the settings name; words alone if they name none."""
    named = str(config["embedding"])
    serving = next((state for state in states if state.role == "serving"), None)
    if named == "none" or serving is None:
        return named
    return next((model.name for model in known if model.space == serving.name), serving.provider or serving.name)


def _particulars(found: Model, vectors: int) -> list[str]:
    told = []
    if found.dimension:
        told.append(counted(found.dimension, "dimension"))
    if found.languages:
        told.append(f"knows {', '.join(found.languages)}")
    if found.space:
        told.append(f"{counted(vectors, 'vector')} here")
    if found.bytes:
        told.append(f"{found.bytes / _MEGABYTE:.0f} MB")
    return [*told, "ready" if found.installed else f"not here yet: {found.needs}"]


def _states(config: settings.Config) -> list[SpaceState]:
    """Return every space in the store, if there is one; no model is loaded for that."""
    if not config.store.is_file():
        return []
    with open_engine(config.store, workspace=config.workspace, embedding="none") as engine:
        return engine.spaces()


# -- fetching ----------------------------------------------------------------------------------------------------------


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


# -- changing ----------------------------------------------------------------------------------------------------------


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
    switched: bool = False
    before: str = ""
    check: dict[str, Any] | None = None


def _use(asked: argparse.Namespace) -> int:
    """Fetch, embed what the store holds, switch, and write the setting: till then the model before it serves."""
    config = settings_of(asked)
    served = served_card(config)
    if asked.name == served.name and served.needs:
        raise ConfigError(f"nobody said where {asked.name} is served", served.needs)
    if asked.background:
        return _use_in_background(asked, config)
    change = _would_change(asked, config) if asked.dry_run else _changed(asked, config)
    _tell(asked, change)
    return OK if change.dry_run or change.switched else PINS_LOST.exit_status


def _would_change(asked: argparse.Namespace, config: settings.Config) -> Change:
    found, waiting = _card(asked.name, config), 0
    if config.store.is_file() and found.space:
        with open_engine(config.store, workspace=config.workspace, embedding="none") as engine:
            waiting = engine.status(found.space).without_vector
    file = str(config.workspace / settings.WORKSPACE_FILE)
    used, origin = config.values["embedding"]
    return Change(found.name, True, not found.installed, found.space, waiting, 0, 0, file, used, origin)


def _changed(asked: argparse.Namespace, config: settings.Config) -> Change:
    fetched = _fetched(asked, config)
    done = ModelChange("", asked.name, "", True, 0, 0)
    if config.store.is_file() and asked.name != "none":
        with _opened(config) as engine, output.progress("embedding", quiet=asked.json) as tick:
            done = engine.change_model(asked.name, check=asked.check, force=asked.force, progress=tick)
    return _written(asked, config, done, fetched=fetched)


def _opened(config: settings.Config) -> Engine:
    named = config["embedding"]
    return open_engine(config.store, workspace=config.workspace, embedding=named)


def _written(asked: argparse.Namespace, config: settings.Config, done: ModelChange, *, fetched: bool) -> Change:
    """Write the setting after a switch; say what is in use now."""
    file = str(config.workspace / settings.WORKSPACE_FILE)
    if done.switched and done.provider in NAMES:
        file = str(settings.save(config, "embedding", done.provider))
    used, origin = settings_of(asked).values["embedding"]
    return Change(
        model=done.provider or done.space,
        dry_run=False,
        fetched=fetched,
        space=done.space,
        waiting=0,
        embedded=done.embedded,
        without_vector=done.without_vector,
        file=file,
        in_use=used,
        decided_by=origin,
        switched=done.switched,
        before=done.before,
        check=space_shapes.agreement(done.agreement),
    )


def _tell(asked: argparse.Namespace, change: Change) -> None:
    if asked.json:
        output.say_json({**change._asdict(), "format": shapes.FORMAT})
        return
    if change.dry_run:
        output.say(f"{change.model} {'would be fetched first' if change.fetched else 'is ready'}")
        output.say(f"{counted(change.waiting, 'text')} would be embedded, then {change.file} would name it")
        return
    output.say(f"{counted(change.embedded, 'text was', 'texts were')} embedded; vectors of other models stay")
    if change.without_vector:
        output.say(f"without a vector: {change.without_vector} (they can be found by words)")
    if change.check is not None:
        _say_check(change.check)
    if not change.switched:
        output.say(f"{change.before} goes on answering; --force changes to {change.model} all the same")
        return
    output.say(f"written to {change.file}")
    if change.in_use == "none" != change.model:
        output.complain(f"notice: none stays in use, because of {change.decided_by}")
    elif change.in_use != change.model:
        output.complain(f"notice: {change.decided_by} names {change.in_use}; the store answers by {change.model}")


def _say_check(check: dict[str, Any]) -> None:
    output.say(
        f"{check['overlap']:.0%} of the first 10 results are the same over {counted(check['questions'], 'question')}"
    )
    if check["pins"]:
        output.say(f"loses {len(check['lost']) or 'none'} of {counted(check['pins'], 'pin')}")
    for one in check["lost"]:
        output.say(f"  {one['query']!r} → {on_one_line(one['path'] or one['id'])}: {one['why']}")


def _use_in_background(asked: argparse.Namespace, config: settings.Config) -> int:
    """Have another process do it, which goes on when this one has ended; `model list` shows how far it is."""
    import subprocess
    import sys

    if asked.dry_run or asked.check:
        raise ConfigError("--background shows nothing", "leave out --dry-run and --check, or --background")
    if not config.store.is_file():
        raise StoreError(f"there is no store at {config.store}", "without one, `model use` takes a moment")
    command = [sys.executable, "-m", "whyrank", "model", "use", asked.name, "--store", str(config.store)]
    command += ["--workspace", str(config.workspace)]
    silent = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen(command, start_new_session=True, **silent)  # type: ignore[call-overload]
    if asked.json:
        output.say_json({"model": asked.name, "process": process.pid, "format": shapes.FORMAT})
    else:
        output.say(f"process {process.pid} changes to {asked.name}; `whyrank model list` shows how far it is")
    return OK


def _rollback(asked: argparse.Namespace) -> int:
    config = settings_of(asked)
    with open_existing(asked) as engine, output.progress("embedding", quiet=asked.json) as tick:
        # Words answer alone since `model use none`, which left the space that answered as it was.
        left = next((one for one in engine.spaces() if one.role == "serving"), None) if engine.space == "" else None
        done = engine.change_model(left.provider, progress=tick) if left else engine.rollback_model(progress=tick)
    change = _written(asked, config, done, fetched=False)
    if not asked.json:
        output.say(f"back to {change.model}")
    _tell(asked, change)
    return OK


def _drop(asked: argparse.Namespace) -> int:
    with open_existing(asked) as engine:
        dropped = engine.drop_model(asked.name)
    if asked.json:
        output.say_json({"model": asked.name, "dropped": dropped, "format": shapes.FORMAT})
    else:
        output.say(f"{counted(dropped, 'vector')} of {asked.name} {which(dropped, 'was', 'were')} deleted")
    return OK


# -- the queue ---------------------------------------------------------------------------------------------------------


def embed(asked: argparse.Namespace) -> int:
    """Give a vector to whatever waits for one."""
    with open_existing(asked) as engine, output.progress("embedding", quiet=asked.json) as tick:
        done = engine.embed(tick)
        behind = engine.backlog()
    if asked.json:
        told = {"space": done.space or None, "embedded": done.embedded, **space_shapes.backlog(behind)}
        output.say_json({**told, "format": shapes.FORMAT})
    else:
        output.say(f"{counted(done.embedded, 'text was', 'texts were')} embedded")
        output.show_backlog(behind)
    return WAITING.exit_status if behind.error else OK
