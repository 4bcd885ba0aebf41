"""`whyrank model`, `embed` and `worker`: available models, model changes, and work that nobody waits for."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from ...config import load as settings
from ...config.settings import SETTINGS
from ...engine.open import open_engine, served_card
from ...engine.records import ModelChange, SpaceState
from ...errors import ConfigError, StoreError
from ...formatting import counted, on_one_line, which
from ...providers.names import NAMES, check_name, is_path, is_recorded_name
from ...providers.registry import FetchedModel, Kind, Model, fetch, model_named, models
from .. import serialize
from ..errors import OK, PINS_LOST, WAITING
from ..serialize import moment
from . import output
from .output import settings_of
from .search import open_existing

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterator

    from ...engine.worker import Chore, Line

_MEGABYTE = 1_000_000
_RERANKERS = "hf:ORG/MODEL, ./FOLDER, none"


def model(asked: argparse.Namespace) -> int:
    """List the models, fetch one, change to one, add a second, go back, drop one, or set the reranker."""
    if asked.action in ("list", "rollback") and asked.name is not None:
        hint = f"`whyrank model use {asked.name}` changes to one"
        raise ConfigError(f"`whyrank model {asked.action}` takes no name", hint)
    if (asked.check or asked.force) and asked.action != "use":
        raise ConfigError("--check and --force belong to `model use`", "leave them out")
    if asked.background and asked.action not in ("use", "add"):
        raise ConfigError("--background belongs to `model use` and `model add`", "leave it out")
    if (asked.pooling or asked.prompt) and asked.action not in ("use", "add", "fetch"):
        raise ConfigError("--pooling and --prompt belong to `model use`, `add` and `fetch`", "leave them out")
    if asked.action in ("use", "add", "fetch", "drop", "rerank") and asked.name is None:
        known = f"{', '.join(NAMES)}, hf:ORG/MODEL, ./FOLDER" if asked.action != "rerank" else _RERANKERS
        raise ConfigError(f"no model to {asked.action} was named", f"the models are {known}")
    if asked.action in ("use", "add", "fetch") and not is_path(asked.name):
        check_name(asked.name)
    if (asked.pooling or asked.prompt) and not (is_path(asked.name) or is_recorded_name(asked.name)):
        raise ConfigError(f"{asked.name} has its own pooling and prompt", "leave out --pooling and --prompt")
    doing = {"list": _list, "fetch": _fetch, "use": _use, "add": _add, "rollback": _rollback, "drop": _drop}
    return {**doing, "rerank": _rerank}[asked.action](asked)


def _list(asked: argparse.Namespace) -> int:
    config = settings_of(asked)
    states = _states(config)
    vectors = {state.name: state.vectors for state in states}
    known = models(config.models, served_card(config))
    in_use = _in_use(config, states, known)
    reranker = config["reranker.model"]
    if asked.json:
        data = serialize.models(known, {in_use, reranker}, vectors, str(config.models))
        output.say_json({**data, "spaces": serialize.spaces(states)})
        return OK
    for found in known:
        mark = "*" if found.name == (in_use if found.kind == "embedding" else reranker) else " "
        output.say(f"{mark} {output.bold(found.name):12}  {found.about}")
        output.say("    " + output.dim(" · ".join(_particulars(found, vectors.get(found.space, 0)))))
    named, origin = config.values["embedding"]
    by = origin if named == in_use else f"the store itself ({origin} names {named})"
    output.say(f"* in use, by {by}; fetched models are kept in {config.models}")
    output.say(
        "any other ONNX model: `whyrank model use hf:ORG/MODEL` or a folder; a reranker: `whyrank model rerank …`"
    )
    output.show_spaces(states)
    return OK


def _in_use(config: settings.Config, states: list[SpaceState], known: tuple[Model, ...]) -> str:
    """Return the model in use: `none` if configured so, else the store's serving one, else the configured."""
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
    if size := found.bytes or found.fetched_bytes:
        told.append(f"{size / _MEGABYTE:.0f} MB{'' if found.bytes else ' to fetch'}")
    if found.licence:
        told.append(found.licence)
    return [*told, "ready" if found.installed else f"not here yet: {found.needs}"]


def _states(config: settings.Config) -> list[SpaceState]:
    """Return every space of the store, if it exists, without loading a model."""
    if not config.has_store:
        return []
    with open_engine(config.store, workspace=config.workspace, embedding="none") as engine:
        return engine.models.list()


def _fetch(asked: argparse.Namespace) -> int:
    config = settings_of(asked)
    fetched = not asked.dry_run and _fetched(asked, config).is_new
    found = model_named(asked.name, config.models, served_card(config))
    if asked.json:
        state = {"installed": found.installed, "needs": found.needs or None, "folder": str(config.models)}
        output.say_json({"model": found.name, "fetched": fetched, **state})
    elif asked.dry_run and not found.installed:
        output.say(f"{found.name} would be fetched into {config.models}")
    else:
        output.say(f"{found.name} {'was fetched into' if fetched else 'is already in'} {config.models}")
    return OK


def _fetched(asked: argparse.Namespace, config: settings.Config, kind: Kind = "embedding") -> FetchedModel:
    with output.progress(asked.name, quiet=asked.json, unit="B") as tick:
        return fetch(asked.name, config.models, tick, kind=kind, pooling=asked.pooling, prompt=asked.prompt)


class ModelReport(NamedTuple):
    """Result of a model change or of its dry run; the JSON has the same fields."""

    model: str
    dry_run: bool
    fetched: bool
    space: str
    waiting: int
    embedded: int
    without_vector: int
    file: str = ""
    in_use: str = ""
    decided_by: str = ""
    switched: bool = False
    before: str = ""
    check: dict[str, Any] | None = None


def _use(asked: argparse.Namespace) -> int:
    """Fetch a model, embed the store, switch, and write the setting; the old model serves until then."""
    config = settings_of(asked)
    served = served_card(config)
    if asked.name == served.name and served.needs:
        raise ConfigError(f"no server of {asked.name} is set", served.needs)
    if asked.background:
        return _in_background(asked, config)
    change = _would_change(asked, config) if asked.dry_run else _changed(asked, config)
    _tell(asked, change)
    return OK if change.dry_run or change.switched else PINS_LOST.exit_status


def _would_change(asked: argparse.Namespace, config: settings.Config) -> ModelReport:
    found, waiting = model_named(asked.name, config.models, served_card(config)), 0
    if config.has_store and found.space:
        with open_engine(config.store, workspace=config.workspace, embedding="none") as engine:
            waiting = engine.status(found.space).without_vector
    file = str(config.workspace / settings.WORKSPACE_FILE)
    used, origin = config.values["embedding"]
    return ModelReport(found.name, True, not found.installed, found.space, waiting, 0, 0, file, used, origin)


def _changed(asked: argparse.Namespace, config: settings.Config) -> ModelReport:
    name, is_new = _fetched(asked, config)
    done = ModelChange("", name, "", True, 0, 0)
    if config.has_store and name != "none":
        opened = open_engine(config.store, workspace=config.workspace, embedding=config["embedding"])
        with opened as engine, output.progress("embedding", quiet=asked.json) as tick:
            done = engine.models.use(name, check=asked.check, force=asked.force, progress=tick)
    return _written(asked, config, done, fetched=is_new)


def _written(asked: argparse.Namespace, config: settings.Config, done: ModelChange, *, fetched: bool) -> ModelReport:
    """Write the setting after a switch; return the change with the model now in use."""
    file = str(config.workspace / settings.WORKSPACE_FILE)
    if done.switched and (done.provider in NAMES or is_recorded_name(done.provider)):
        file = str(settings.save(config, "embedding", done.provider))
    used, origin = settings_of(asked).values["embedding"]
    name, check = done.provider or done.space, serialize.agreement(done.agreement)
    counts = (0, done.embedded, done.without_vector)
    return ModelReport(name, False, fetched, done.space, *counts, file, used, origin, done.switched, done.before, check)


def _tell(asked: argparse.Namespace, change: ModelReport) -> None:
    if asked.json:
        output.say_json({**change._asdict()})
        return
    if change.dry_run:
        _say_plan(change)
        return
    output.say(f"{counted(change.embedded, 'text was', 'texts were')} embedded; vectors of other models stay")
    if change.without_vector:
        output.say(f"without a vector: {change.without_vector} (they can be found by words)")
    if change.check is not None:
        _say_check(change.check)
    if not change.switched:
        output.say(f"{change.before} stays in use; --force changes to {change.model} anyway")
        return
    output.say(f"written to {change.file}")
    if change.in_use == "none" != change.model:
        output.complain(f"notice: none stays in use because of {change.decided_by}")
    elif change.in_use != change.model:
        output.complain(f"notice: {change.decided_by} names {change.in_use}; the store uses {change.model}")


def _say_check(check: dict[str, Any]) -> None:
    questions = counted(check["questions"], "question")
    output.say(f"{check['overlap']:.0%} of the first 10 results are the same over {questions}")
    if check["pins"]:
        output.say(f"pins lost: {len(check['lost'])} of {check['pins']}")
    for one in check["lost"]:
        output.say(f"  {one['query']!r} → {on_one_line(one['path'] or one['id'])}: {one['why']}")


def _in_background(asked: argparse.Namespace, config: settings.Config) -> int:
    """Run the change in a detached process; `model list` shows its progress."""
    import subprocess

    if asked.dry_run or asked.check:
        raise ConfigError("--background prints no report", "leave out --dry-run and --check, or --background")
    if not config.has_store:
        raise StoreError(f"there is no store at {config.store}", "`whyrank ingest PATH` makes it")
    command = [sys.executable, "-m", "whyrank", "model", asked.action, asked.name, "--workspace", str(config.workspace)]
    command += [f"--{option}={given}" for option in ("pooling", "prompt") if (given := getattr(asked, option))]
    silent = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    # In the environment, because other users can read the arguments of a process, and an address may have a password.
    place = {**os.environ, SETTINGS["store"].variable: config["store"]}
    process = subprocess.Popen(command, env=place, start_new_session=True, **silent)  # type: ignore[call-overload]
    if asked.json:
        output.say_json({"model": asked.name, "process": process.pid})
    else:
        does = "changes to" if asked.action == "use" else "adds"
        output.say(f"process {process.pid} {does} {asked.name}; `whyrank model list` shows the progress")
    return OK


def _add(asked: argparse.Namespace) -> int:
    """Fetch a second model and embed the store; it votes from the first stored vector on."""
    config = settings_of(asked)
    if asked.background:
        return _in_background(asked, config)
    if asked.dry_run:
        change = _would_change(asked, config)._replace(file="")
    else:
        name, is_new = _fetched(asked, config)
        with open_existing(asked) as engine, output.progress("embedding", quiet=asked.json) as tick:
            done = engine.models.add(name, progress=tick)
        change = ModelReport(name, False, is_new, done.space, 0, done.embedded, done.without_vector)
    if asked.json:
        output.say_json(serialize.fields(change, "model dry_run fetched space waiting embedded without_vector"))
    elif change.dry_run:
        _say_plan(change)
    else:
        output.say(f"{counted(change.embedded, 'text was', 'texts were')} embedded")
        output.say(f"{change.model} also searches notes in other languages than the query's")
    return OK


def _say_plan(change: ModelReport) -> None:
    output.say(f"{change.model} {'would be fetched first' if change.fetched else 'is ready'}")
    then = f", then {change.file} would name it" if change.file else ""
    output.say(f"{counted(change.waiting, 'text')} would be embedded{then}")


def _rollback(asked: argparse.Namespace) -> int:
    config = settings_of(asked)
    with open_existing(asked) as engine, output.progress("embedding", quiet=asked.json) as tick:
        # Since `model use none` keyword search answers alone; the serving space was left unchanged.
        states = engine.models.list() if engine.models.space == "" else []
        left = next((one for one in states if one.role == "serving"), None)
        done = engine.models.use(left.provider, progress=tick) if left else engine.models.rollback(progress=tick)
    change = _written(asked, config, done, fetched=False)
    if not asked.json:
        output.say(f"back to {change.model}")
    _tell(asked, change)
    return OK


def _drop(asked: argparse.Namespace) -> int:
    with open_existing(asked) as engine:
        dropped = engine.models.drop(asked.name)
    if asked.json:
        output.say_json({"model": asked.name, "dropped": dropped})
    else:
        output.say(f"{counted(dropped, 'vector')} of {asked.name} {which(dropped, 'was', 'were')} deleted")
    return OK


def _rerank(asked: argparse.Namespace) -> int:
    """Fetch a cross-encoder and write it into the settings, or remove it from them."""
    config = settings_of(asked)
    is_off = asked.name == "none"
    if not (is_off or is_path(asked.name) or is_recorded_name(asked.name)):
        raise ConfigError(f"there is no reranker {asked.name!r}", f"the rerankers are {_RERANKERS}")
    done = FetchedModel(asked.name, False) if is_off or asked.dry_run else _fetched(asked, config, "reranker")
    file = str(config.workspace / settings.WORKSPACE_FILE)
    if not asked.dry_run:
        file = str(settings.save(config, "reranker.model", done.name))
    used, origin = settings_of(asked).values["reranker.model"]
    if asked.json:
        told = {"reranker": done.name, "dry_run": asked.dry_run, "fetched": done.is_new, "file": file}
        output.say_json({**told, "in_use": used, "decided_by": origin})
    elif asked.dry_run:
        output.say(f"{file} would name {done.name}")
    else:
        output.say(f"written to {file}" + ("" if is_off else f": the first {config['reranker.top']} hits are reranked"))
        if used != (None if is_off else done.name):
            output.complain(f"notice: {used} stays in use, because of {origin}")
    return OK


def embed(asked: argparse.Namespace) -> int:
    """Embed the memories that wait for a vector."""
    with open_existing(asked) as engine, output.progress("embedding", quiet=asked.json) as tick:
        done = engine.models.embed(tick)
        behind = engine.models.backlog()
    if asked.json:
        told = {"space": done.space or None, "embedded": done.embedded, **serialize.backlog(behind)}
        output.say_json({**told})
    else:
        output.say(f"{counted(done.embedded, 'text was', 'texts were')} embedded")
        output.show_backlog(behind)
        if done.error and not behind.error:
            output.complain(f"the additional model failed: {done.error}")
    return WAITING.exit_status if behind.error or done.error else OK


_SIGNALS = ("SIGTERM", "SIGINT")
_DONE: dict[Chore, str] = {"embed": "embedded", "prune": "pruned", "merge": "merged", "reindex": "reindexed"}


def worker(asked: argparse.Namespace) -> int:
    """Do what nobody should wait for, until a signal ends it, or once."""
    with open_existing(asked) as engine:
        working = engine.maintenance.worker(lease_seconds=asked.lease)
        log = _log_json if asked.json else _log
        with _ended_by_signals(working.stop):
            done = working.run_once(log) if asked.once else working.run(log, asked.poll)
        behind = engine.models.backlog() if asked.once else None
    counts = {told: done.get(chore, 0) for chore, told in _DONE.items()}
    if asked.json:
        output.say_json_line({"chore": "end", **counts, **(serialize.backlog(behind) if behind else {})})
    else:
        output.say("in all: " + ", ".join(f"{told} {count}" for told, count in counts.items()))
        if behind:
            output.show_backlog(behind)
    return WAITING.exit_status if behind and behind.error else OK


@contextmanager
def _ended_by_signals(stop: Callable[[], None]) -> Iterator[None]:
    """End cleanly on the first signal, and at once on the second."""
    numbers = [getattr(signal, name) for name in _SIGNALS]

    def end(number: int, frame: object) -> None:
        for one, handler in before.items():
            signal.signal(one, handler)
        stop()

    before = {number: signal.signal(number, end) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _log(line: Line) -> None:
    place = f" ({line.space})" if line.space else ""
    if line.error:
        until = f"; next try at {moment(line.next_try)}" if line.next_try is not None else ""
        output.complain(f"{line.chore}: {line.error}{place}{until}")
    else:
        output.say(f"{_DONE[line.chore]} {line.amount}{place}")
        sys.stdout.flush()


def _log_json(line: Line) -> None:
    told = {"chore": line.chore, "count": line.amount, "space": line.space or None, "error": line.error or None}
    output.say_json_line({**told, "next_try": moment(line.next_try)})
