"""Whatever was lived in a store: its export, taken into an empty one, makes the same store."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from hypothesis import given, settings
from hypothesis import strategies as st

from whyrank.storage.sqlite.reanalysis import compare
from whyrank.storage.store import SqliteStore
from whyrank.testing.memory_store import MemoryStore

from .test_fact_laws import HOUR, SCOPES, Act, Clock, acts, done, made
from .worlds import memories

if TYPE_CHECKING:
    import pytest

    from whyrank.engine.engine import Engine
    from whyrank.types.memory import Memory, Scope

QUESTIONS = ["green tea", "remind me", "oat milk engine"]


@st.composite
def given_memories(draw: st.DrawFn) -> list[Memory]:
    """Draw memories of files and facts; one that says it was replaced was, by something or by what is gone."""
    drawn = [draw(memories(f"g_{number}")) for number in range(draw(st.integers(0, 5)))]
    return [one for one in drawn if one.kind == "chunk" or one.superseded_by is None]


def exported(engine: Engine) -> list[str]:
    out = io.StringIO()
    engine.export(out, every_scope=True)
    return sorted(out.getvalue().splitlines())


def answers(engine: Engine) -> list[object]:
    """Return what every question gives in every scope, each hit with its explanation."""
    scopes: list[str | Scope] = [*SCOPES, "global", "user:ann"]
    found = [engine.search(query, scope=scope) for query in QUESTIONS for scope in scopes]
    return [(hit.id, hit.score, hit.explain(), hit.memory) for results in found for hit in results]


@settings(deadline=None, max_examples=25)
@given(script=st.lists(acts, max_size=14), put=given_memories(), moment=st.floats(0, 2e9))
def test_a_round_trip_is_the_identity(
    tmp_path_factory: pytest.TempPathFactory, script: list[Act], put: list[Memory], moment: float
) -> None:
    folder = tmp_path_factory.mktemp("round")
    stores = [SqliteStore(folder / name) for name in ("one.db", "two.db")]
    first, second = (made(store, "merge", folder) for store in stores)
    assert isinstance(first._clock, Clock)
    assert isinstance(second._clock, Clock)
    first.facts.import_memories(put)
    for hour, act in enumerate(script):
        first._clock.now = moment + hour * HOUR
        done(first, act)
    second._clock.now = first._clock.now
    lines = exported(first)
    (folder / "all.jsonl").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    imported = second.import_from("whyrank", folder / "all.jsonl")
    assert (imported.new, imported.skipped, imported.bad) == (len(lines), (), ())
    assert exported(second) == lines
    assert answers(second) == answers(first)
    again = second.import_from("whyrank", folder / "all.jsonl")
    assert (again.new, again.unchanged, again.skipped) == (0, len(lines), ())
    oracle = made(MemoryStore(), "merge", folder)
    oracle.import_from("whyrank", folder / "all.jsonl")
    assert exported(oracle) == lines
    for store in stores:
        store.close()
    for name in ("one.db", "two.db"):  # whatever was lived, all that is derived is as it would be made now
        assert compare(folder / name, lambda *_: None)[0] == []
