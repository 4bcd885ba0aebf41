"""Facts and their life, through the library."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING

import pytest

import whyrank
from whyrank.config import load as config
from whyrank.engine.engine import Engine
from whyrank.errors import ConfigError, NotFound, StoreError
from whyrank.testing.fakes import WordDirections
from whyrank.testing.memory_store import MemoryStore
from whyrank.types.memory import LIFETIMES, REFRESHED, Memory, Scope

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from whyrank.engine.records import Added, Changed

HOUR = 3_600.0
DAY = 24 * HOUR


class Clock:
    def __init__(self) -> None:
        self.now = 1_000 * DAY

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def engine(tmp_path: Path, clock: Clock) -> Iterator[Engine]:
    with whyrank.open(tmp_path / "memory.db", workspace=tmp_path, embedding="none", clock=clock) as opened:
        yield opened


def embedding(tmp_path: Path, **given: object) -> Engine:
    return Engine(MemoryStore(), WordDirections(), config.load(given, workspace=tmp_path), Clock())


def test_every_field_is_kept(engine: Engine) -> None:
    kept = engine.get(
        engine.add(
            "Suzy drinks tea", name="Tea", category="preference", tags=["a", "b"], entities="Suzy", importance=5,
            decay="stable", date="2026-03-14", valid_from="1970-01-02", valid_until="1972-01-01", trust="agent",
        ).id
    )  # fmt: skip
    assert (kept.name, kept.category, kept.tags, kept.entities) == ("Tea", "preference", ("a", "b"), ("Suzy",))
    assert (kept.importance, kept.decay, kept.trust, kept.valid_from) == (5, "stable", "agent", DAY)
    assert kept.expires == 1_000 * DAY + 90 * DAY


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"importance": 2.5}, "importance is 2.5"),
        ({"importance": True}, "importance is True"),
        ({"decay": "slow"}, "no decay class 'slow'"),
        ({"trust": "blind"}, "no trust 'blind'"),
        ({"valid_from": "2026-02-01", "valid_until": "2026-01-01"}, "not before"),
        ({"valid_until": "someday"}, "not a date"),
        ({"tags": ["a\x00"]}, "NUL"),
        ({"entities": ["a\ud800"]}, "surrogate"),
        ({"name": "x" * 1_001}, "1001 characters"),
        ({"key": " "}, "key is not valid"),
        ({"mood": "blue"}, "no 'mood'"),
    ],
)
def test_what_makes_no_sense_is_refused_and_nothing_stored(
    engine: Engine, fields: dict[str, object], said: str
) -> None:
    with pytest.raises(ConfigError, match=said):
        engine.add("tea", **fields)  # type: ignore[arg-type]
    assert engine.status().memories == 0


def test_a_fact_of_a_megabyte_is_refused(engine: Engine) -> None:
    with pytest.raises(ConfigError, match="1,000,000 characters"):
        engine.add("x" * 1_000_000)
    assert engine.status().memories == 0


# -- keys and duplicates -------------------------------------------------------------------------------------


def test_the_same_write_with_a_key_happens_once(engine: Engine) -> None:
    first = engine.facts.remember("invoice 17 is paid", key="i17", tags="money")
    again = engine.facts.remember("invoice 17 is paid", key="i17", tags="money")
    assert (first.outcome, again.outcome, again.memory) == ("stored", "known", first.memory)
    with pytest.raises(ConfigError, match="'i17' was used"):
        engine.add("invoice 18 is paid", key="i17")
    with pytest.raises(ConfigError, match="'i17' was used"):
        engine.add("invoice 17 is paid", key="i17", tags="other")
    assert engine.add("invoice 18 is paid", key="i17", scope="user:1").text == "invoice 18 is paid"
    assert engine.status().memories == 2


def test_a_key_leads_to_the_fact_as_it_is_now(engine: Engine) -> None:
    fact = engine.add("tea", key="k")
    engine.update(fact.id, text="green tea")
    assert engine.facts.remember("tea", key="k").memory.text == "green tea"
    assert engine.status().memories == 1


def test_duplicates_are_known_by_the_text_a_fact_has_now(engine: Engine) -> None:
    fact = engine.add("Suzy drinks tea")
    engine.update(fact.id, text="Suzy drinks coffee")
    assert engine.facts.remember("suzy  drinks COFFEE").outcome == "known"
    other = engine.facts.remember("Suzy drinks tea")
    assert (other.outcome, other.memory.id == fact.id) == ("stored", False)
    assert engine.get(fact.id).text == "Suzy drinks coffee"
    assert engine.facts.remember("Suzy drinks tea").memory.id == other.memory.id
    with pytest.raises(ConfigError, match="already has this text"):
        engine.update(fact.id, text="SUZY drinks tea")


def test_a_known_fact_stays_as_it_is_and_what_was_not_applied_is_named(engine: Engine, clock: Clock) -> None:
    tea = engine.add("Suzy drinks tea", tags=["a", "b"], importance=2)
    again = engine.facts.remember("suzy drinks TEA", importance=5, tags=["b", "a"], expires=clock.now + DAY)
    assert (again.outcome, codes(again), again.memory) == ("known", ["known-as-it-is"], tea)
    assert "not applied: importance, expires" in again.notices[0].message
    assert f"`whyrank update {tea.id}`" in again.notices[0].message
    assert engine.get(tea.id) == tea
    # What says the same again, or says it with less trust, leaves nothing out.
    assert codes(engine.facts.remember("Suzy drinks tea", importance=2, tags=["a", "b"], trust="agent")) == []


def test_a_known_fact_may_replace_another_and_stays_as_it_is_otherwise(engine: Engine) -> None:
    tea = engine.add("Suzy drinks tea", importance=2)
    milk = engine.add("Suzy drinks milk")
    done = engine.facts.remember("suzy drinks TEA", supersedes=milk.id, importance=5)
    assert (done.outcome, codes(done)) == ("replacing", ["known-as-it-is"])
    assert "not applied: importance" in done.notices[0].message
    kept = engine.get(tea.id)
    assert (kept.text, kept.importance, kept.supersedes) == ("Suzy drinks tea", 2, milk.id)
    assert engine.get(milk.id).superseded_by == tea.id
    # The same once more finds it done.
    assert engine.facts.remember("Suzy drinks tea", supersedes=milk.id).outcome == "known"


def test_near_duplicates_are_reported_in_their_own_scope_only(tmp_path: Path) -> None:
    memory = embedding(tmp_path)
    tea = memory.add("green tea in the pot", scope="user:1")
    memory.add("pot in the tea green", scope="user:2")
    done = memory.facts.remember("the pot in green tea", scope="user:1")
    assert (done.outcome, [near.memory for near in done.near]) == ("stored", [tea])
    assert done.near[0].cosine == pytest.approx(1.0)
    assert memory.facts.near("tea in the green pot") == []
    assert memory.facts.remember("the mast is made of oak", scope="user:1").near == ()


def test_near_duplicates_are_merged_where_that_is_asked_for(tmp_path: Path) -> None:
    memory = embedding(tmp_path, **{"dedup.near": "merge"})
    tea = memory.add("green tea in the pot", tags="a", importance=2, decay="active")
    assert isinstance(memory._clock, Clock)
    memory._clock.now += DAY
    done = memory.facts.remember("a green tea in the pot", tags=["b"], importance=4, key="k")
    assert (done.outcome, done.memory.id, done.memory.text) == ("merged", tea.id, "green tea in the pot")
    assert (done.memory.tags, done.memory.importance) == (("a", "b"), 4)
    assert done.memory.expires == memory._clock.now + 14 * DAY
    assert memory.facts.remember("a green tea in the pot", tags=["b"], importance=4, key="k").outcome == "known"
    assert [told.was["tags"] for told in memory.history(tea.id)] == [["a"]]
    assert memory.status().memories == 1


def test_a_correction_is_never_merged_away(tmp_path: Path) -> None:
    memory = embedding(tmp_path, **{"dedup.near": "merge"})
    old = memory.add("green tea in the pot")
    done = memory.facts.remember("the pot in green tea", supersedes=old.id)
    assert (done.outcome, done.near) == ("stored", ())


def test_near_duplicates_are_not_looked_for_where_they_are_kept(tmp_path: Path) -> None:
    memory = embedding(tmp_path, **{"dedup.near": "keep"})
    memory.add("green tea in the pot")
    assert memory.facts.remember("the pot in green tea").near == ()


# -- supersession --------------------------------------------------------------------------------------------


def test_a_fact_is_replaced_by_its_text_within_its_scope(engine: Engine) -> None:
    mine = engine.add("Suzy drinks tea", scope="user:1")
    theirs = engine.add("Suzy drinks tea", scope="user:2")
    engine.add("Suzy drinks milk", scope="user:1", supersedes="suzy  DRINKS tea")
    assert engine.get(mine.id, scope="user:1").superseded_by is not None
    assert engine.get(theirs.id, scope="user:2").superseded_by is None
    with pytest.raises(NotFound):
        engine.add("Suzy drinks oat", scope="user:3", supersedes="Suzy drinks tea")
    assert engine.list(scope="user:3") == []


def test_a_chain_says_who_replaced_whom_and_when(engine: Engine, clock: Clock) -> None:
    a = engine.add("Suzy drinks tea")
    clock.now += 10 * DAY
    b = engine.add("Suzy drinks milk", supersedes=a.id)
    clock.now += 10 * DAY
    c = engine.add("Suzy drinks oat", supersedes=b.id)
    assert [one.id for one in engine.memories.replaced(c.id)] == [b.id, a.id]
    # Day 1010 after 1970-01-01 is 1972-10-07.
    assert engine.why("Suzy drinks", a.id).summary == f"it cannot answer: replaced by {b.id} on 1972-10-07"
    assert [hit.id for hit in engine.search("Suzy drinks", as_of=1_015 * DAY)] == [b.id]
    found = engine.search("Suzy drinks", include_superseded=True)
    assert {hit.id for hit in found} == {a.id, b.id, c.id}
    with pytest.raises(ConfigError, match="was replaced by"):
        engine.add("Suzy drinks water", supersedes=a.id)


def test_circles_are_refused_and_nothing_changes(engine: Engine) -> None:
    a = engine.add("Suzy drinks tea")
    b = engine.add("Suzy drinks milk", supersedes=a.id)
    with pytest.raises(ConfigError, match="would replace itself"):
        engine.add("suzy drinks MILK", supersedes=b.id)
    with pytest.raises(ConfigError, match="over others or by itself"):
        engine.update(a.id, supersedes=b.id)
    with pytest.raises(StoreError, match="replaced by itself"):
        engine.facts.import_memories([Memory("m_x", "x", supersedes="m_y"), Memory("m_y", "y", supersedes="m_x")])
    assert [memory.id for memory in engine.list()] == [b.id]


def test_a_fact_that_replaces_nothing_any_more_brings_back_what_it_replaced(engine: Engine) -> None:
    tea = engine.add("Suzy drinks tea")
    milk = engine.add("Suzy drinks milk", supersedes=tea.id)
    engine.update(milk.id, importance=4)  # unsaid, it stays as it is
    assert engine.get(tea.id).superseded_by == milk.id
    freed = engine.update(milk.id, supersedes=None)
    assert freed.supersedes is None
    assert engine.get(tea.id) == tea
    assert {memory.id for memory in engine.list()} == {tea.id, milk.id}
    assert engine.update(milk.id, supersedes=None) == freed  # once more changes nothing
    engine.update(milk.id, supersedes=tea.id)
    assert [memory.id for memory in engine.list()] == [milk.id]


def test_going_back_and_forth_leaves_one(engine: Engine) -> None:
    tea = engine.add("Suzy drinks tea")
    milk = engine.add("Suzy drinks milk", supersedes=tea.id)
    assert engine.facts.remember("Suzy drinks tea", supersedes=milk.id).outcome == "revived"
    engine.update(tea.id, importance=4)
    assert [memory.id for memory in engine.list()] == [tea.id]
    engine.add("Suzy drinks milk", supersedes=tea.id)
    assert [memory.id for memory in engine.list()] == [milk.id]


# -- changes and their history -------------------------------------------------------------------------------


def test_an_update_keeps_the_id_and_tells_what_was(engine: Engine, clock: Clock) -> None:
    fact = engine.add("the ferry leaves at nine", tags="boat", importance=2, expires="2030-01-01")
    clock.now += HOUR
    engine.update(fact.id, text="the ferry leaves at ten", importance=None, expires=None)
    clock.now += HOUR
    engine.update(fact.id, name="Ferry")
    now = engine.get(fact.id)
    assert (now.text, now.importance, now.expires, now.tags, now.title) == (
        "the ferry leaves at ten", None, None, ("boat",), "Ferry",
    )  # fmt: skip
    first, second = engine.history(fact.id)
    assert (first.changed, first.was["text"], first.was["importance"]) == (1_000 * DAY + HOUR, fact.text, 2)
    assert (second.changed, second.was) == (1_000 * DAY + 2 * HOUR, {"name": ""})
    assert [hit.id for hit in engine.search("ten")] == [fact.id]
    assert not engine.search("nine").hits
    assert engine.search("Ferry")[0].tier > 0


def test_an_update_that_changes_nothing_writes_nothing(engine: Engine) -> None:
    fact = engine.add("tea", tags=["a"])
    assert engine.update(fact.id, text="tea", tags=["a"]) == fact
    assert engine.history(fact.id) == []


def codes(done: Added | Changed) -> list[str]:
    return [notice.code for notice in done.notices]


def test_an_update_that_changes_nothing_says_so(engine: Engine) -> None:
    tea = engine.add("Suzy drinks tea", tags=["a"])
    for done in (engine.facts.revise(tea.id), engine.facts.revise(tea.id, text="Suzy drinks tea", tags="a")):
        assert (done.memory, codes(done)) == (tea, ["nothing-changed"])
    assert codes(engine.facts.revise(tea.id, tags="b")) == []
    assert len(engine.history(tea.id)) == 1


def test_who_changes_what_was_replaced_is_told_by_what(engine: Engine) -> None:
    tea = engine.add("Suzy drinks tea")
    coffee = engine.add("Suzy drinks coffee", supersedes=tea.id)
    done = engine.facts.revise(tea.id, importance=5)
    assert (done.memory.importance, codes(done)) == (5, ["replaced-already"])
    assert coffee.id in done.notices[0].message
    assert engine.get(tea.id).superseded_by == coffee.id
    assert codes(engine.facts.revise(coffee.id, importance=5)) == []


def test_what_has_expired_when_it_is_said_is_told(engine: Engine, clock: Clock) -> None:
    said = engine.facts.remember("Suzy drank tea", expires=clock.now)
    assert (said.outcome, codes(said)) == ("stored", ["expired-already"])
    assert list(engine.search("tea")) == []
    assert codes(engine.facts.remember("Suzy drinks milk", expires=clock.now + 1)) == []
    milk = engine.facts.remember("Suzy drinks milk").memory
    assert codes(engine.facts.revise(milk.id, expires=clock.now - 1)) == ["expired-already"]
    assert codes(engine.facts.remember("Suzy drinks cocoa", supersedes=milk.id, expires=clock.now)) == [
        "expired-already"
    ]


def test_what_is_out_of_its_time_when_it_is_said_is_told_listed_and_not_pruned(engine: Engine, clock: Clock) -> None:
    over = engine.facts.remember("Suzy lived in Bergen", valid_until=clock.now - DAY)
    assert (over.outcome, codes(over)) == ("stored", ["over-already"])
    later = engine.facts.remember("Suzy lives in Bodø", valid_from=clock.now + DAY)
    assert (later.outcome, codes(later)) == ("stored", ["not-valid-yet"])
    assert (list(engine.search("Suzy")), engine.list()) == ([], [])
    assert engine.list(expired=True) == [over.memory]
    # It was over when it was written down, so it held before that; the other holds from its own day on.
    assert engine.list(as_of=clock.now - 2 * DAY) == [over.memory]
    assert [hit.id for hit in engine.search("Suzy", as_of=clock.now - 2 * DAY)] == [over.memory.id]
    assert engine.list(as_of=clock.now + 2 * DAY) == [later.memory]
    assert engine.memories.prune() == []
    assert codes(engine.facts.revise(later.memory.id, valid_from=None, valid_until=clock.now)) == ["over-already"]


def test_what_holds_until_later_was_not_known_before_it_was_stored(engine: Engine, clock: Clock) -> None:
    engine.add("the offer stands", valid_until=clock.now + DAY)
    assert engine.list(as_of=clock.now - 1) == []


def test_a_fact_that_held_no_more_holds_again_when_it_is_said_again(engine: Engine, clock: Clock) -> None:
    oslo = engine.add("Suzy lives in Oslo", valid_until=clock.now - DAY)
    same = engine.facts.remember("Suzy lives in Oslo", valid_until=clock.now - DAY)
    assert (same.outcome, codes(same), engine.history(oslo.id)) == ("known", ["over-already"], [])
    again = engine.facts.remember("Suzy lives in Oslo")
    assert (again.outcome, codes(again), again.memory.valid_until) == ("revived", [], None)
    assert [hit.id for hit in engine.search("Oslo")] == [oslo.id]
    assert [one.was for one in engine.history(oslo.id)] == [{"valid_until": clock.now - DAY}]


def test_fields_that_no_index_reads_change_what_is_found_at_once(engine: Engine, clock: Clock) -> None:
    tea = engine.add("Suzy drinks tea")
    assert not list(engine.search("tea", tags=["warm"]))
    engine.update(tea.id, tags=["warm"], importance=5)
    assert [hit.memory.importance for hit in engine.search("tea", tags=["warm"], min_importance=4)] == [5]
    engine.update(tea.id, valid_until=clock.now)
    assert not list(engine.search("tea"))
    engine.update(tea.id, valid_until=None, tags=())
    assert [hit.id for hit in engine.search("tea")] == [tea.id]
    assert [one.was for one in engine.history(tea.id)] == [
        {"tags": [], "importance": None}, {"valid_until": None}, {"tags": ["warm"], "valid_until": clock.now},
    ]  # fmt: skip


def test_an_update_over_anothers_update_keeps_both(engine: Engine) -> None:
    """The first attempt reads what somebody else changes before it is written."""
    fact = engine.add("tea")
    write = engine._store.write
    raced: list[int] = []

    def racing(changes: object) -> None:
        if not raced:
            raced.append(1)
            engine.update(fact.id, importance=5)
        write(changes)  # type: ignore[arg-type]

    engine._store.write = racing  # type: ignore[method-assign]
    engine.update(fact.id, tags=["a"])
    assert (engine.get(fact.id).tags, engine.get(fact.id).importance) == (("a",), 5)


def test_a_chunk_is_changed_in_its_file(engine: Engine, tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("# Tea\n\nGreen.\n", encoding="utf-8")
    engine.ingest(tmp_path / "a.md")
    with pytest.raises(ConfigError, match=r"part of a\.md"):
        engine.update(engine.list()[0].id, importance=5)


# -- decay, recall, pruning ----------------------------------------------------------------------------------


def test_the_lifetimes_are_those_of_the_contract() -> None:
    days = {"permanent": None, "durable": 90, "stable": 90, "normal": 14, "active": 14, "short": 2, "session": 1}
    hours = {"ephemeral": 4, "checkpoint": 4}
    assert {
        **{name: None if count is None else count * DAY for name, count in days.items()},
        **{name: count * HOUR for name, count in hours.items()},
    } == LIFETIMES
    assert {"durable", "stable", "normal", "active"} == REFRESHED


def test_recalls_are_counted_and_what_is_used_lives_on(engine: Engine, clock: Clock) -> None:
    stable = engine.add("tea one", decay="stable")
    session = engine.add("tea two", decay="session")
    fixed = engine.add("tea three", decay="stable", expires=clock.now + 2 * DAY)
    clock.now += 10 * HOUR
    assert engine.mark_used(stable.id, session.id, fixed.id, stable.id) == 3
    after = {one.id: engine.get(one.id) for one in (stable, session, fixed)}
    assert [(one.recalls, one.recalled) for one in after.values()] == [(1, clock.now)] * 3
    assert after[stable.id].expires == clock.now + 90 * DAY
    assert after[session.id].expires == session.expires
    assert after[fixed.id].expires == fixed.expires
    with pytest.raises(NotFound):
        engine.mark_used(stable.id, "m_none")
    assert engine.get(stable.id).recalls == 1


def test_a_search_writes_nothing(engine: Engine) -> None:
    fact = engine.add("tea", decay="stable")
    engine.search("tea")
    assert engine.get(fact.id) == fact


def test_what_expired_is_not_found_not_revived_by_recall_and_pruned(engine: Engine, clock: Clock) -> None:
    gone = engine.add("tea is ready", decay="checkpoint")
    kept = engine.add("tea is hot", decay="active", scope="user:1")
    clock.now += 4 * HOUR
    assert not engine.search("tea").hits
    engine.mark_used(gone.id)
    assert [memory.id for memory in engine.list(expired=True)] == [gone.id]
    assert [memory.id for memory in engine.memories.prune(dry_run=True)] == [gone.id]
    assert engine.status().memories == 2
    clock.now += 14 * DAY
    assert [memory.id for memory in engine.memories.prune()] == [gone.id]  # of user:1 nothing is seen
    assert [memory.id for memory in engine.memories.prune(every_scope=True)] == [kept.id]
    assert engine.status().memories == 0


# -- lists, erasure, export ----------------------------------------------------------------------------------


def test_lists_are_filtered_and_sorted(engine: Engine) -> None:
    rule = engine.add("tea rule", category="rule", importance=5, decay="stable")
    other = engine.add("tea other", importance=1)
    plain = engine.add("tea plain")
    assert [memory.id for memory in engine.list(category="rule")] == [rule.id]
    assert [memory.id for memory in engine.list(decay="stable")] == [rule.id]
    assert {memory.id for memory in engine.list(min_importance=3)} == {rule.id, plain.id}
    assert [memory.id for memory in engine.list(sort="importance")] == [rule.id, plain.id, other.id]
    assert [memory.id for memory in engine.list(sort="importance", limit=1, offset=1)] == [plain.id]
    assert [hit.id for hit in engine.search("tea", category="rule")] == [rule.id]
    for wrong in ({"sort": "mood"}, {"category": "gossip"}, {"decay": "slow"}, {"min_importance": 9}):
        with pytest.raises(ConfigError):
            engine.list(**wrong)


def test_forgetting_several_is_all_or_none(engine: Engine) -> None:
    one, two = engine.add("tea"), engine.add("milk")
    with pytest.raises(NotFound):
        engine.forget(one.id, "m_none", two.id)
    assert engine.status().memories == 2
    assert engine.forget(one.id, two.id).memories == 2
    assert engine.status().memories == 0


def test_a_scope_is_erased_and_exported_alone(engine: Engine, tmp_path: Path, clock: Clock) -> None:
    mine = engine.add("my tea", scope="user:1", key="k", decay="session", tags=["a"])
    engine.update(mine.id, scope="user:1", text="my green tea")
    engine.add("my milk", scope="user:1", supersedes=mine.id)
    engine.add("their tea", scope="user:2", key="k")
    engine.add("everybody's tea")
    clock.now += 2 * DAY
    out = io.StringIO()
    assert engine.export(out, scope="user:1") == engine.export(tmp_path / "x.jsonl", scope="user:1") == 2
    assert (tmp_path / "x.jsonl").read_text(encoding="utf-8") == out.getvalue()
    records = {record["text"]: record for record in map(json.loads, out.getvalue().splitlines())}
    assert set(records) == {"my green tea", "my milk"}
    told = records["my green tea"]
    assert told["history"] == [{"changed": "1972-09-27T00:00:00.000000Z", "was": {"text": "my tea"}}]
    assert (told["scope"], told["decay"], told["tags"], told["superseded_by"]) == (
        "user:1", "session", ["a"], records["my milk"]["id"],
    )  # fmt: skip
    assert engine.memories.forget_scope("user:1").memories == 2
    assert engine.status().scopes == {"global": 1, "user:2": 1}
    assert engine.facts.remember("their tea", scope="user:2", key="k").outcome == "known"
    assert engine.facts.remember("another tea", scope="user:1", key="k").outcome == "stored"


def test_an_export_carries_every_field_of_a_memory(engine: Engine) -> None:
    out = io.StringIO()
    engine.add("tea")
    engine.export(out)
    missing = set(Memory.__dataclass_fields__) - set(json.loads(out.getvalue())) - {"source"}
    assert missing == set()


def test_an_export_that_fails_leaves_what_was_there(engine: Engine, tmp_path: Path) -> None:
    engine.add("tea")
    file = tmp_path / "x.jsonl"
    file.write_text("old", encoding="utf-8")

    def fail(done: int, total: int, label: str) -> None:
        raise OSError(28, "No space left on device")

    with pytest.raises(ConfigError, match="No space left"):
        engine.export(file, progress=fail)
    assert file.read_text(encoding="utf-8") == "old"
    assert not list(tmp_path.glob(".x.jsonl.*"))


def test_no_door_leads_to_a_foreign_fact(engine: Engine) -> None:
    theirs = engine.add("their tea", scope="user:2", decay="checkpoint")
    for ask in (
        lambda: engine.update(theirs.id, scope="user:1", text="mine"),
        lambda: engine.history(theirs.id, scope="user:1"),
        lambda: engine.memories.replaced(theirs.id, scope="user:1"),
        lambda: engine.mark_used(theirs.id, scope="user:1"),
        lambda: engine.forget(theirs.id, scope="user:1", purge=True),
        lambda: engine.add("mine", scope="user:1", supersedes="their tea"),
    ):
        with pytest.raises(NotFound):
            ask()
    assert engine.get(theirs.id, scope="user:2") == theirs
    assert Scope.parse("user:2") == theirs.scope


def test_forgetting_a_part_of_a_file_says_that_the_file_still_holds_it(engine: Engine, tmp_path: Path) -> None:
    (tmp_path / "tea.md").write_text("# Tea\n\nSuzy drinks rooibos.\n", encoding="utf-8")
    engine.ingest(tmp_path / "tea.md", base=tmp_path)
    [chunk] = engine.list(path="tea.md")
    [said] = engine.forget(chunk.id).remains
    assert said.startswith("tea.md still contains it")


@pytest.mark.parametrize("becomes", ["again", "by a change"])
def test_what_a_fact_said_that_has_expired_may_be_said_beside_it(engine: Engine, clock: Clock, becomes: str) -> None:
    ended = engine.add("uncle Bob likes tea", expires=clock.now + HOUR)
    clock.now += 60.0  # what was said last is what is meant
    other, replaced = engine.add("granny naps at noon"), engine.add("aunt Ann likes milk")
    engine.add("aunt Ann likes oat milk", supersedes=replaced.id)
    engine.update(ended.id, text="aunt Ann likes milk")
    clock.now += 2 * HOUR
    if becomes == "again":
        assert engine.facts.remember("aunt Ann likes milk").outcome == "revived"
    else:
        assert engine.update(other.id, text="aunt Ann likes milk").text == "aunt Ann likes milk"
