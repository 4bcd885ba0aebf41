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
    """Return what a caller sees of a store; of what others have in it not even the number, the names, or the size."""
    engine, share = door.desk.reading(), _share(door, values)
    own = None if share is None else {str(scope) for scope in visible(scopes_of(share))}
    calibrations = [made for made in engine.calibrations() if own is None or own.issuperset(made.scopes)]
    scopes = None if own is None else frozenset(map(Scope.parse, own))
    return {
        **shapes.status(held_for(door, values), engine.space, calibrations),
        "roles": space_shapes.spaces(engine.spaces(scope=share)),
        "backlog": space_shapes.backlog(engine.backlog(scope=share)),
        "old_words": engine.old_words(scopes),
        "notices": shapes.notices(
            (
                *engine.config.notices,
                *engine.waiting_notices(scope=share),
                *engine.word_notices(scopes),
                *engine.vector_notices(),
            )
        ),
        "evaluation": _kept_evaluation(engine.config),
        "version": version,
    }


def held_for(door: Door, values: Values) -> StoreStatus:
    """Return what a caller sees of a store; the size of the file is told where nobody was given a scope of it."""
    engine, share = door.desk.reading(), _share(door, values)
    # As long as there is no store, an empty one answers, which lies elsewhere.
    seen = replace(engine.status(scope=share), location=str(door.desk.store))
    if share != []:
        return seen
    whole = engine.status("")
    return replace(seen, bytes=whole.bytes, free_bytes=whole.free_bytes, ballast_bytes=whole.ballast_bytes)


def _share(door: Door, values: Values) -> list[str] | None:
    """Return the scopes of a caller beside what is global; None if it may choose any, and has chosen none."""
    seen = door.seen(values)
    return None if door.is_multi_scope and not seen else seen


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
