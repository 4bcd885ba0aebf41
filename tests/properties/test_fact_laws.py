"""Law 6 when facts are written: nobody's facts are added, merged, keyed, replaced, pruned or exported otherwise
because of what others hold."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whyrank.config import load as config
from whyrank.engine.engine import Engine
from whyrank.errors import WhyrankError
from whyrank.storage.store import SqliteStore
from whyrank.testing.fakes import WordDirections
from whyrank.testing.memory_store import MemoryStore

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

TEXTS = ["green tea", "tea green", "Green  TEA", "black tea", "milk", "oat milk", "milk oat"]
SCOPES = ["user:1", "user:2"]
HOUR = 3_600.0


class Act(NamedTuple):
    """Something done for one scope."""

    scope: str
    verb: str
    text: str
    other: str
    key: str | None
    decay: str


acts = st.builds(
    Act,
    st.sampled_from(SCOPES),
    st.sampled_from(["add", "add", "add", "replace", "update", "recall", "prune", "forget", "clear"]),
    st.sampled_from(TEXTS),
    st.sampled_from(TEXTS),
    st.sampled_from([None, "k1", "k2"]),
    st.sampled_from(["", "stable", "checkpoint"]),
)


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def done(engine: Engine, act: Act) -> Any:
    """Do it, and return all the caller learns."""
    try:
        return _done(engine, act)
    except WhyrankError as error:
        return type(error), error.message


def _done(engine: Engine, act: Act) -> Any:
    scope = act.scope
    known = [memory.id for memory in engine.list(scope=scope, include_superseded=True) if memory.text == act.other]
    if act.verb == "add":
        return engine.facts.remember(act.text, scope=scope, key=act.key, decay=act.decay, tags=[act.other])
    if act.verb == "replace":
        return engine.facts.remember(act.text, scope=scope, supersedes=act.other)
    if act.verb == "update":
        return [engine.update(identity, scope=scope, text=act.text, decay=act.decay) for identity in known]
    if act.verb == "recall":
        return engine.mark_used(*known, scope=scope)
    if act.verb == "prune":
        return [memory.id for memory in engine.memories.prune(scope=scope)]
    if act.verb == "forget":
        return engine.forget(*known, scope=scope)
    return engine.memories.forget_scope(scope)


def exported(engine: Engine, scope: str) -> list[Any]:
    out = io.StringIO()
    engine.export(out, scope=scope)
    return [json.loads(line) for line in out.getvalue().splitlines()]


def lived(engine: Engine, script: Sequence[tuple[int, Act]], scopes: Sequence[str]) -> list[Any]:
    """Live a script, skipping what is of other scopes; return what was learnt, and what is there at the end."""
    assert isinstance(engine._clock, Clock)
    told = []
    for hour, act in script:
        engine._clock.now = hour * HOUR
        if act.scope in scopes:
            outcome = done(engine, act)
            told += [outcome] if act.scope == SCOPES[0] else []
    found = engine.search("green tea", scope=SCOPES[0]).hits
    return [*told, exported(engine, SCOPES[0]), [(hit.id, hit.score) for hit in found]]


def made(store: Any, near: str, folder: Path) -> Engine:
    given_settings = {"dedup.near": near, "calibration": "manual"}
    return Engine(store, WordDirections(), config.load(given_settings, workspace=folder), Clock())


@pytest.mark.parametrize("near", ["report", "merge"])
@settings(deadline=None, max_examples=60)
@given(script=st.lists(acts, max_size=14))
def test_what_others_write_changes_nothing_of_mine(
    tmp_path_factory: pytest.TempPathFactory, near: str, script: list[Act]
) -> None:
    timed = list(enumerate(script))
    folder = tmp_path_factory.getbasetemp()  # the workspace of stores that are in no file
    both = lived(made(MemoryStore(), near, folder), timed, SCOPES)
    alone = lived(made(MemoryStore(), near, folder), timed, SCOPES[:1])
    assert both == alone


@settings(deadline=None, max_examples=25)
@given(script=st.lists(acts, max_size=14))
def test_the_store_in_a_file_lives_as_the_one_in_dictionaries(
    tmp_path_factory: pytest.TempPathFactory, script: list[Act]
) -> None:
    folder = tmp_path_factory.mktemp("lives")
    timed = list(enumerate(script))
    store = SqliteStore(folder / "memory.db")
    ours = lived(made(store, "merge", folder), timed, SCOPES)
    oracle = lived(made(MemoryStore(), "merge", folder), timed, SCOPES)
    store.close()
    assert ours[:-1] == oracle[:-1]
    assert [identity for identity, _ in ours[-1]] == [identity for identity, _ in oracle[-1]]
    assert [score for _, score in ours[-1]] == pytest.approx([score for _, score in oracle[-1]], abs=1e-5)
