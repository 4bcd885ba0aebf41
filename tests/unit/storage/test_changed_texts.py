"""A text that is changed is found by what it says now, whoever else writes, embeds or dies meanwhile."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import whyrank
from tests.processes import started
from whyrank.config import load as config
from whyrank.engine.engine import Engine
from whyrank.engine.spaces import Makers
from whyrank.errors import Conflict, ProviderRefused, ProviderUnavailable, StoreDamaged
from whyrank.storage.sqlite.check import check_store
from whyrank.storage.sqlite.database import check_body
from whyrank.storage.sqlite.doc_values import BLOCK
from whyrank.storage.sqlite.repair import repair_store
from whyrank.storage.store import SqliteStore
from whyrank.testing.fakes import WordDirections
from whyrank.types.memory import Memory, Scope
from whyrank.types.query import Where

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from whyrank.protocols import Embedder

MODELS: dict[str, Embedder] = {"small": WordDirections(16, "small"), "large": WordDirections(48, "large")}
SECRET = "Xyzzyplugh drinks quinoa lemonade"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "memory.db"


def opened(path: Path, clock: Callable[[], float] = lambda: 1_000.0) -> Engine:
    told = config.load({"store": str(path), "calibration": "manual"}, workspace=path.parent)
    return Engine(SqliteStore(path), WordDirections(), told, clock)


def modelled(path: Path, name: str = "", models: Mapping[str, Embedder] = MODELS) -> Engine:
    """Open an engine that can make some models, and embeds by one of them, or none."""
    told = config.load({"store": str(path), "calibration": "manual"}, workspace=path.parent, environment={})
    of = {model.fingerprint: key for key, model in models.items()}
    makers = Makers(name, is_chosen=True, make=lambda key, _: models[key], provider_of=lambda space: of.get(space, ""))
    return Engine(SqliteStore(path), models.get(name), told, lambda: 1_000.0, makers=makers)


def quick(engine: Engine) -> Engine:
    """Take the embedder for one that was found to be quick."""
    engine.facts._looks_first = False
    return engine


def stored(engine: Engine, *texts: str) -> list[Memory]:
    """Store facts and let them be indexed; the embedder counts as quick then, however busy the machine is."""
    facts = [engine.add(text) for text in ("the first of a space is written whole", "the second is not", *texts)]
    quick(engine).search("space")
    return facts[2:]


def test_a_process_that_dies_after_a_change_loses_nothing(path: Path) -> None:
    script = """
import sys, whyrank
memory = whyrank.open(sys.argv[1], calibration="manual")
memory.add("the first of a space is written whole")
memory.add("the second is not")
fact = memory.add("Robin drinks tea")
memory.search("tea")
memory.facts._looks_first = False
memory.update(fact.id, text="Robin drinks lemonade")
print(fact.id, flush=True)
sys.stdin.readline()
"""
    with started([sys.executable, "-c", script, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        identity = process.stdout.readline().strip()
        process.kill()
        process.wait()
    with whyrank.open(path, workspace=path.parent, calibration="manual") as engine:
        assert engine.search("lemonade")[0].id == identity
        assert engine.doctor().is_sound
        assert engine.history(identity)[0].was == {"text": "Robin drinks tea"}


def test_a_purge_leaves_no_byte_of_what_a_text_was_or_is(path: Path) -> None:
    engine = opened(path)
    [fact] = stored(engine, SECRET)
    engine.update(fact.id, text=SECRET.upper() + " cold")
    assert SECRET.encode() in b"".join(file.read_bytes() for file in path.parent.glob("memory.db*"))
    engine.forget(fact.id, purge=True)
    engine.close()
    left = b"".join(file.read_bytes() for file in path.parent.glob("memory.db*")).lower()
    assert b"xyzzyplugh" not in left
    assert b"quinoa" not in left


# -- one text, two facts ---------------------------------------------------------------------------------------


class Meddling:
    """A clock that lets somebody else write between a look and the write that was thought out over it."""

    def __init__(self) -> None:
        self.meddle: Callable[[], object] = lambda: None

    def __call__(self) -> float:
        meddle, self.meddle = self.meddle, lambda: None
        meddle()
        return 1_000.0


def living(engine: Engine, text: str) -> list[str]:
    return [one.id for one in engine._store.with_text(text, whyrank.Scope("global")) if one.superseded_by is None]


# A text alone waits to be indexed, with a name it is written whole.
@pytest.mark.parametrize("fields", [{}, {"name": "Robin"}])
def test_a_text_that_another_process_stores_meanwhile_is_not_said_by_two(path: Path, fields: Any) -> None:
    clock = Meddling()
    engine, other = opened(path, clock), opened(path)
    [fact] = stored(engine, "Robin drinks tea")
    clock.meddle = lambda: other.add("Robin drinks milk")
    with pytest.raises(Conflict, match="already has this text"):
        engine.update(fact.id, text="robin  drinks MILK", **fields)
    assert len(living(engine, "Robin drinks milk")) == 1
    assert engine.get(fact.id).text == "Robin drinks tea"
    engine.close()
    other.close()


def test_what_comes_back_is_not_said_by_another_meanwhile(path: Path) -> None:
    clock = Meddling()
    engine, other = opened(path, clock), opened(path)
    old, third = stored(engine, "Robin drinks tea", "Kim drinks water")
    new = engine.add("Robin drinks milk", supersedes=old.id)
    clock.meddle = lambda: other.update(third.id, text="Robin drinks tea")
    with pytest.raises(Conflict, match="would be found again"):
        engine.update(new.id, supersedes=None)
    assert living(engine, "Robin drinks tea") == [third.id]
    engine.close()
    other.close()


def test_a_fact_does_not_take_up_the_text_of_what_it_brings_back(path: Path) -> None:
    engine = opened(path)
    [old] = stored(engine, "Robin drinks tea")
    new = engine.add("Robin drinks milk", supersedes=old.id)
    with pytest.raises(Conflict, match="would be found again"):
        engine.update(new.id, text="Robin drinks TEA", supersedes=None)
    assert engine.update(new.id, supersedes=None).supersedes is None
    assert living(engine, "Robin drinks tea") == [old.id]
    engine.close()


# -- spaces ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_dropped", [False, True])
def test_a_text_is_embedded_by_the_model_that_has_taken_over(path: Path, is_dropped: bool) -> None:
    engine, other = modelled(path, "small"), modelled(path, "large")
    [fact] = stored(engine, "Robin drinks tea")
    quick(engine).update(fact.id, text="Robin drinks milk")  # what it knows of the spaces is kept
    engine.search("milk")
    other.models.use()
    if is_dropped:
        other.models.drop("small")
    quick(engine).update(fact.id, text="Robin drinks lemonade")
    spaces = {space.name: (space.vectors, space.waiting) for space in other.models.list()}
    assert spaces.pop(MODELS["large"].fingerprint) == (3, 0)
    # The model before stays as it was left, which is without the new text; one that was dropped does not come back.
    assert spaces == ({} if is_dropped else {MODELS["small"].fingerprint: (2, 1)})
    engine.close()
    other.close()


def test_a_vector_that_a_text_gets_stays_in_its_scope(path: Path) -> None:
    bare, engine = modelled(path), modelled(path, "small")
    [fact] = stored(engine, "Robin drinks tea")
    texts = [f"parcel {number} waits" for number in range(BLOCK)]
    others = [bare.add(text, scope="user:1") for text in texts]  # a whole block without a vector
    bare.search("parcel")
    model, where = MODELS["small"], Where(frozenset({Scope.parse("user:1")}), now=1_000.0)

    def near(engine: Engine) -> set[str]:
        found = engine._store.nearest(model.query("parcel waits"), model.fingerprint, where, BLOCK)
        return {one.id for one in found.candidates}

    for text in texts[:2]:
        quick(engine).update(fact.id, text=text)
    assert near(engine) == near(modelled(path, "small")) == set()
    assert engine.models.embed().embedded == BLOCK
    assert near(engine) == near(modelled(path, "small")) == {one.id for one in others}
    with engine._store.reading():
        reader = engine._store._database.reader()  # type: ignore[attr-defined]
        [[present]] = reader.execute("SELECT present FROM sign_blocks WHERE scope = 'user:1'").fetchall()
    bits = np.unpackbits(np.frombuffer(check_body(present, model.fingerprint, "user:1", 0), np.uint8))
    assert np.count_nonzero(bits) == BLOCK
    bare.close()
    engine.close()


def test_who_knows_no_model_changes_a_text_and_leaves_its_vectors_to_those_who_do(path: Path) -> None:
    bare, engine = modelled(path), modelled(path, "small")
    [fact] = stored(engine, "Robin drinks tea")
    quick(engine).update(fact.id, text="Robin drinks milk")
    bare.update(fact.id, text="Robin drinks lemonade")
    assert [(space.vectors, space.waiting) for space in engine.models.list()] == [(2, 1)]
    assert engine.doctor().is_sound
    bare.close()
    engine.close()


class Failing(WordDirections):
    """Refuses texts about parcels, or everything when nobody is there; counts how often it is asked."""

    def __init__(self) -> None:
        super().__init__(16, "small")
        self.is_there = True
        self.takes_parcels = True
        self.asked = 0

    def documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.asked += 1
        if not self.is_there:
            raise ProviderUnavailable("nobody there", "start it")
        if not self.takes_parcels and any("parcel" in text for text in texts):
            raise ProviderRefused("not this one", "doc values that differ")
        return super().documents(texts)


def test_a_vector_ends_what_went_wrong_with_its_text_before(path: Path) -> None:
    model = Failing()
    engine, other = (modelled(path, "small", {"small": model}) for _ in range(2))
    [fact] = stored(engine, "Robin drinks tea")
    quick(engine).update(fact.id, text="Robin drinks milk")  # what it knows of the spaces is kept
    model.takes_parcels = False
    other.add("the red parcel", scope="user:1")
    assert other.models.backlog().refused == 1
    model.takes_parcels = True
    quick(engine).update(fact.id, text="the red parcel")
    # The text of the other scope is no longer refused, but waits for a vector of its own.
    assert (engine.models.backlog().refused, engine.models.backlog().waiting) == (0, 1)
    engine.close()
    other.close()


def test_a_provider_that_failed_is_asked_once_and_then_left_alone_for_a_while(path: Path) -> None:
    model = Failing()
    engine = modelled(path, "small", {"small": model})
    [fact] = stored(engine, "Robin drinks tea")
    quick(engine).update(fact.id, text="Robin drinks milk")
    model.is_there, model.asked = False, 0
    for number in range(3):
        quick(engine).update(fact.id, text=f"Robin drinks {number} cups")
    assert model.asked == 1
    assert engine.models.backlog().attempts == 1
    assert engine.get(fact.id).text == "Robin drinks 2 cups"
    engine.close()


def test_a_text_that_a_provider_refuses_is_asked_for_once_as_by_a_fact(path: Path) -> None:
    model = Failing()
    engine = modelled(path, "small", {"small": model})
    [fact] = stored(engine, "Robin drinks tea")
    model.takes_parcels, model.asked = False, 0
    quick(engine).update(fact.id, text="the red parcel")
    told = engine.models.backlog()
    # One text is asked for twice: together with others, of which there are none, and alone.
    assert (model.asked, told.refused, told.waiting) == (2, 1, 1)
    engine.close()


# -- damage ----------------------------------------------------------------------------------------------------


def damaged(path: Path, statement: str, *values: object) -> None:
    """Change the file behind everybody's back."""
    store = SqliteStore(path)
    with store._database.writing() as connection:
        assert connection.execute(statement, values).rowcount == 1
    store._database.close()


def codes(engine: Engine, question: str) -> list[str]:
    return [notice.code for notice in engine.search(question).notices if notice.code != "few-memories"]


def test_recalls_that_are_no_number_count_as_none(path: Path) -> None:
    engine = opened(path)
    [fact] = stored(engine, "Robin drinks tea")
    damaged(path, "UPDATE memories SET recalls = 'x' WHERE id = ?", fact.id)
    engine.update(fact.id, text="Robin drinks milk")
    assert engine.search("milk")[0].memory.text == "Robin drinks milk"
    assert engine.get(fact.id).recalls == 0
    engine.close()


@pytest.mark.parametrize("number", ["x", b"\xff", -(2**63), 10**6])
def test_a_row_whose_number_was_damaged_refuses_a_change_and_keeps_nobody_from_the_others(
    path: Path, number: object
) -> None:
    engine = opened(path)
    bad, good = stored(engine, "Robin drinks tea", "Kim drinks coffee")
    damaged(path, "UPDATE memories SET number = ? WHERE id = ?", number, bad.id)
    with pytest.raises(StoreDamaged, match="which is not valid"):
        engine.update(bad.id, text="Robin drinks milk")
    engine.update(good.id, text="Kim drinks cocoa")
    assert engine.search("cocoa")[0].id == good.id
    engine.close()
    assert check_store(path, lambda *_: None)
    repair_store(path, lambda *_: None)
    with opened(path) as again:
        again.update(bad.id, text="Robin drinks milk")
        assert again.search("milk")[0].id == bad.id
        assert again.doctor().is_sound


@pytest.mark.parametrize("names", ["[1]", '"ab"', '{"a": 1}', "[null]"])
def test_a_list_of_names_that_holds_something_else_is_found_by_whoever_looks_for_damage(path: Path, names: str) -> None:
    engine = opened(path)
    [fact] = stored(engine, "Robin drinks tea")
    engine.close()
    damaged(path, "UPDATE memories SET aliases = ? WHERE id = ?", names, fact.id)
    found = check_store(path, lambda *_: None)
    assert [finding.names for finding in found if finding.code == "fields"] == [(fact.id,)]
