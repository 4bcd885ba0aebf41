"""When facts are indexed changes nothing: a store that lets them wait answers as one that indexes each at once."""

from __future__ import annotations

import tempfile
from pathlib import Path
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
    from collections.abc import Callable, Sequence

    from whyrank.engine.records import Changed
    from whyrank.types.memory import Memory

TEXTS = ["green tea", "tea green", "Green  TEA", "black tea in May 2024", "milk", "oat milk", "Übertee", "a b", "!"]
SCOPES = ["global", "user:1"]
HOUR = 3_600.0


class Act(NamedTuple):
    """Something done to a store; `which` is the memory it is done to, counted from the first that was added."""

    verb: str
    scope: str
    text: str
    which: int
    key: str | None
    decay: str


acts = st.builds(
    Act,
    st.sampled_from(
        ["add"] * 6
        + ["retext"] * 3
        + ["search", "forget", "update", "rename", "replace", "replace-text", "bring-back", "recall", "list"]
    ),
    st.sampled_from(SCOPES),
    st.sampled_from(TEXTS),
    st.integers(0, 5),
    st.sampled_from([None, None, "k1", "k2"]),
    st.sampled_from(["", "stable", "checkpoint"]),
)


class Clock:
    now = 0.0

    def __call__(self) -> float:
        self.now += HOUR / 2
        return self.now


def found(engine: Engine, text: str, scope: str) -> list[Any]:
    results = engine.search(text, scope=scope)
    return [(hit.id, hit.score, hit.trail) for hit in results] + [notice.code for notice in results.notices]


def changed(done: Changed) -> tuple[Memory, list[str]]:
    return done.memory, [notice.code for notice in done.notices]


def done(engine: Engine, act: Act, added: list[str]) -> Any:
    """Do it, and return all the caller learns."""
    which = added[act.which % len(added)] if added else "m_none"
    told: list[str] = []
    try:
        if act.verb == "add":
            memory = engine.add(act.text, scope=act.scope, key=act.key, decay=act.decay, name=act.text[:3])
        elif act.verb in ("replace", "replace-text"):
            replaced = which if act.verb == "replace" else TEXTS[act.which]
            memory = engine.add(act.text, scope=act.scope, supersedes=replaced)
        elif act.verb == "update":
            memory, told = changed(engine.facts.revise(which, scope=act.scope, importance=4, decay=act.decay))
        elif act.verb == "retext":
            memory, told = changed(engine.facts.revise(which, scope=act.scope, text=act.text))
        elif act.verb == "rename":
            memory, told = changed(engine.facts.revise(which, scope=act.scope, text=act.text, name=act.decay))
        elif act.verb == "bring-back":
            memory, told = changed(engine.facts.revise(which, scope=act.scope, supersedes=None))
        elif act.verb == "forget":
            return engine.forget(which, scope=act.scope)
        elif act.verb == "recall":
            return engine.mark_used(which, scope=act.scope)
        elif act.verb == "list":
            return engine.list(scope=act.scope, include_superseded=True)
        else:
            return found(engine, act.text, act.scope)
    except WhyrankError as error:
        return type(error), error.message
    added.append(memory.id)
    return memory, told


def lived(engine: Engine, script: Sequence[Act], after: Callable[[], object]) -> list[Any]:
    added: list[str] = []
    told = []
    for act in script:
        told.append(done(engine, act, added))
        after()
    return [*told, *(found(engine, text, scope) for text in ("green tea", "oat milk") for scope in SCOPES)]


def made(store: Any, folder: Path) -> Engine:
    return Engine(store, WordDirections(), config.load({"calibration": "manual"}, workspace=folder), Clock())


@pytest.mark.parametrize("keyword", ["postings", "fts5"])
@settings(deadline=None, max_examples=60)
@given(script=st.lists(acts, max_size=16))
def test_facts_that_wait_change_no_answer(keyword: str, script: list[Act]) -> None:
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        waits = made(SqliteStore(folder / "waits.db", keyword), folder)
        indexes = made(SqliteStore(folder / "indexes.db", keyword), folder)
        oracle = made(MemoryStore(), folder)
        told = lived(waits, script, lambda: None)
        assert told == lived(indexes, script, lambda: indexes.status(""))
        # The oracle's trails say the same in another order; what callers learn of their writes must be the same.
        writes = [number for number, act in enumerate(script) if act.verb not in ("search", "list")]
        learnt = lived(oracle, script, lambda: None)
        assert [told[number] for number in writes] == [learnt[number] for number in writes]
        for engine in (waits, indexes):
            engine.close()
