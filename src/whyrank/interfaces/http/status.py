"""What a store holds, told to those who may see it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ...arguments import scopes_of
from ...config import Config
from ...errors import BadDataset
from ...evaluation.kept import read_data
from ...ports import StoreStatus
from ...types import Scope, visible
from .. import shapes, space_shapes
from ..door import Door, Values


def told_status(door: Door, values: Values, version: str) -> dict[str, Any]:
    """Return what a store holds, of scopes the caller does not see not even the names; sizes are the whole store's."""
    engine = door.desk.reading()
    store, own = held_for(door, values), _own_scopes(door, values)
    calibrations = [made for made in engine.calibrations() if own is None or own.issuperset(made.scopes)]
    scopes = None if own is None else frozenset(map(Scope.parse, own))
    return {
        **shapes.status(store, engine.space, calibrations),
        "roles": space_shapes.spaces(engine.spaces()),
        "backlog": space_shapes.backlog(engine.backlog()),
        "old_words": engine.old_words(scopes),
        "notices": shapes.notices((*engine.config.notices, *engine.waiting_notices(), *engine.word_notices(scopes))),
        "evaluation": _kept_evaluation(engine.config),
        "version": version,
    }


def held_for(door: Door, values: Values) -> StoreStatus:
    """Return what a store holds with the memories counted that a caller sees."""
    store, own = door.desk.reading().status(), _own_scopes(door, values)
    if own is None:
        return store
    scopes = {name: count for name, count in store.scopes.items() if name in own}
    return replace(store, scopes=scopes, memories=sum(scopes.values()))


def _own_scopes(door: Door, values: Values) -> set[str] | None:
    """Return the scopes a caller sees; None if it may choose any, and has chosen none."""
    seen = door.seen(values)
    if door.is_multi_scope and not seen:
        return None
    return {str(scope) for scope in visible(scopes_of(seen))}


def _kept_evaluation(config: Config) -> dict[str, Any] | None:
    """Return the figures of the evaluation that was kept beside the store last, if one was; no question of it."""
    try:
        kept = read_data(config.evaluation)
    except BadDataset:
        return None
    sets = [
        {
            "set": one["set"],
            "queries": one["queries"],
            "lines": {name: line["measures"] for name, line in one["lines"].items()},
        }
        for one in kept.get("sets", ())
    ]
    return {"made": kept["made"], "whyrank": kept["whyrank"], "settings": kept["settings"], "sets": sets}
