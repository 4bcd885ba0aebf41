"""Kill whoever writes: the store holds what was acknowledged, and of what was not, all or nothing.

A victim does one operation after the other and is killed at a random moment. After n acknowledgements the store must
be in the state after n operations or after n + 1: the last one may have been kept before it could be acknowledged.
"""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import whyrank

from .victims import MODELS, START_ANEW, Agent, CommandLine, Gone, Library, Op, Served, Victim, opened

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from whyrank.engine.engine import Engine

MOST_BEFORE = 6  # operations done in peace before the kill is on its way
KILLED_WITHIN = 2.0  # times what an operation took
EVERYTHING = 1_000_000


@dataclass(frozen=True)
class State:
    """What a store holds: living texts, replaced texts with what replaced them, and which model answers."""

    living: frozenset[str] = frozenset()
    replaced: Mapping[str, str] = field(default_factory=dict)
    model: str = "small"

    def after(self, op: Op) -> State:
        """Return the state after one more operation."""
        if op.verb == "switch":
            return replace(self, model=op.text)
        if op.verb == "forget":
            return replace(self, living=self.living - {op.old})
        living = (self.living - {op.old}) | {op.text}
        if op.verb != "supersede":
            return replace(self, living=living)
        return replace(self, living=living, replaced={**self.replaced, op.old: op.text})


class Interface(NamedTuple):
    """One way to write: who is started, and which operations it does."""

    name: str
    start: Callable[[Path, bool], Victim]  # (store, as the installed command)
    verbs: tuple[str, ...]


def _library(store: Path, is_new: bool) -> Victim:
    return Library(store)


INTERFACES = {
    one.name: one
    for one in (
        Interface("command line", CommandLine, ("add",)),
        Interface("library", _library, ("add",)),
        Interface("http", Served, ("add", "update", "supersede", "forget")),
        Interface("mcp", Agent, ("add", "supersede", "forget")),
        Interface("update", _library, ("update",)),
        Interface("supersede", _library, ("supersede",)),
        Interface("forget", _library, ("add", "forget")),
        Interface("model switch", _library, ("add", "switch")),
    )
}


def script(verbs: tuple[str, ...], seed: int) -> Iterator[Op]:
    """Yield operations for ever, on texts of earlier ones; every text has a word that no other has."""
    chance, number, model = random.Random(seed), 0, "small"
    free, successors = list[str](), list[str]()  # what replaced another can be replaced, but neither change nor go
    while True:
        verb = chance.choice(verbs) if free else "add"
        text = f"Crate r{seed}n{number}x waits on quay {number % 7}"
        old = ""
        if verb in ("update", "supersede", "forget"):
            pool = successors if successors and verb == "supersede" and chance.random() < 0.5 else free
            old = pool.pop(chance.randrange(len(pool)))
        if verb == "switch":
            model = "large" if model == "small" else "small"
            yield Op(verb, model)
        else:
            yield Op(verb, "" if verb == "forget" else text, old)
        if verb in ("add", "update"):
            free.append(text)
        elif verb == "supersede":
            successors.append(text)
        number += 1


class Killed(NamedTuple):
    """How a round ended: the state found, operations acknowledged, and whether the one in flight was kept."""

    state: State
    acknowledged: int
    is_ahead: bool


def kill(
    interface: Interface, store: Path, seed: int, before: State, start: Callable[[], Victim] | None = None
) -> Killed:
    """Let a victim write, kill it, and compare the store with what was acknowledged."""
    chance = random.Random(seed)
    victim = (start or partial(interface.start, store, seed % START_ANEW == 0))()
    done, ids, calm, timer = list[Op](), dict[str, str](), chance.randrange(MOST_BEFORE), None
    acknowledged, began = 0, time.monotonic()
    try:
        for op in _from_model(script(interface.verbs, seed), before.model):
            if acknowledged >= calm and timer is None:
                took = (time.monotonic() - began) / max(acknowledged, 1) if acknowledged else 0.02
                timer = threading.Timer(chance.uniform(0, KILLED_WITHIN * took), victim.kill)
                timer.start()
            done.append(op)
            ids[op.text] = victim.perform(op, ids.get(op.old, ""))
            acknowledged += 1
    except Gone:
        pass
    finally:
        if timer is not None:
            timer.join()
        victim.close()
    return compared(store, before, done, acknowledged)


def kills(name: str, store: Path, seeds: Iterable[int]) -> Counter[str]:
    """Kill victims of one interface one after the other, on one store; return what was counted."""
    state, counts = State(), Counter[str]()
    for seed in seeds:
        killed = kill(INTERFACES[name], store, seed, state)
        state = killed.state
        counts.update(kills=1, acknowledged=killed.acknowledged, kept_unacknowledged=killed.is_ahead)
    with opened(store) as engine:
        for text in sorted(state.living):
            assert_searchable(engine, text, True)
    assert_sound(store)
    return counts


def _from_model(ops: Iterator[Op], model: str) -> Iterator[Op]:
    """Let switches begin with the other model than the one that answers."""
    other = {"small": "large", "large": "small"}
    return (op._replace(text=other[op.text]) if op.verb == "switch" and model == "large" else op for op in ops)


def compared(
    store: Path, before: State, done: Sequence[Op], acknowledged: int, looked_at: Sequence[Op] | None = None
) -> Killed:
    """Read a store whose writer is dead; it must be in the last acknowledged state, or the one after it.

    Texts of all operations are searched for, or of some.
    """
    state = before
    for op in done[:acknowledged]:
        state = state.after(op)
    allowed = [state] + [state.after(op) for op in done[acknowledged : acknowledged + 1]]
    with opened(store) as engine:
        found = read(engine)
        assert found in allowed, _difference(found, allowed)
        searched = done if looked_at is None else looked_at
        texts = {text for op in searched for text in (op.text, op.old) if text and op.verb != "switch"}
        for text in sorted(texts):
            assert_searchable(engine, text, text in found.living)
        if before.model != found.model:
            assert engine.status().without_vector == 0
    return Killed(found, acknowledged, found != allowed[0])


def read(engine: Engine) -> State:
    """Read all a store holds."""
    memories = engine.list(limit=EVERYTHING, include_superseded=True)
    texts = {memory.id: memory.text for memory in memories}
    assert len(set(texts.values())) == len(texts), "a text is there twice"
    replaced = {one.text: texts[one.superseded_by] for one in memories if one.superseded_by is not None}
    space = engine.models.space
    model = next((name for name, model in MODELS.items() if model.fingerprint == space), space)
    return State(frozenset(texts.values()) - replaced.keys(), replaced, model)


def assert_searchable(engine: Engine, text: str, is_living: bool) -> None:
    """A living text is the best answer to the word it alone has; any other is in no answer."""
    answer = engine.search(text.split()[1], limit=5)
    found = [hit.memory.text for hit in answer]
    assert (found[:1] == [text]) if is_living else (text not in found), f"{text!r} in {found}: {answer.notices}"


def assert_sound(store: Path) -> None:
    """Nothing that `whyrank doctor` looks at is damaged."""
    assert whyrank.doctor(store, workspace=store.parent, embedding="none").findings == ()


def _difference(found: State, allowed: list[State]) -> str:
    told = []
    for state in allowed:
        lost, extra = sorted(state.living - found.living), sorted(found.living - state.living)
        replaced = dict(state.replaced.items() ^ found.replaced.items())
        told.append(f"lost {lost}, extra {extra}, replaced otherwise {replaced}, {state.model} is {found.model}")
    return "\n".join(told)
