"""What a store holds, told to those who may see it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ...arguments import scopes_of
from ...config import Config
from ...engine import Engine
from ...errors import BadDataset
from ...evaluation.kept import read_data
from ...types import visible
from .. import shapes, space_shapes


def told_status(engine: Engine, seen: Sequence[str], version: str) -> dict[str, Any]:
    """Return what a store holds; of scopes the caller does not see not even the names."""
    store, calibrations = engine.status(), engine.calibrations()
    if seen:
        own = {str(scope) for scope in visible(scopes_of(seen))}
        scopes = {name: count for name, count in store.scopes.items() if name in own}
        store = replace(store, scopes=scopes, memories=sum(scopes.values()))
        calibrations = [made for made in calibrations if own.issuperset(made.scopes)]
    return {
        **shapes.status(store, engine.space, calibrations),
        "roles": space_shapes.spaces(engine.spaces()),
        "backlog": space_shapes.backlog(engine.backlog()),
        "notices": shapes.notices((*engine.config.notices, *engine.waiting_notices())),
        "evaluation": _kept_evaluation(engine.config),
        "version": version,
    }


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
