"""Contract tests of stores: subclass `StoreContract` and define `open_store`."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from ..analysis.document import content_hash, entry_for
from ..analysis.names import probe_for
from ..analysis.query import asked_for
from ..errors import ConfigError, StoreChanged, StoreError
from ..protocols import Arrival, Changes, Failure, FileRecord, Recall, Store, Written, sorting_key
from ..search.searcher import parse
from ..storage.query_resolution import resolve_expression
from ..types.memory import GLOBAL, NEVER, Former, Memory, Order, Scope, Source
from ..types.query import All, Compares, Either, Expression, Holds, Not, Query, Where, several, spelled
from ..types.results import Run, memory_of
from .fakes import WordDirections

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

USER, OTHER = Scope("user", "1"), Scope("user", "2")
MINE = frozenset({GLOBAL, USER})
NOW = 1_000_000.0


def fact(identity: str, text: str, **fields: object) -> Memory:
    """Return a memory for tests."""
    memory = Memory(identity, text, created=NOW - 10, date=NOW - 10, source=Source("", content_hash=content_hash(text)))
    return replace(memory, **fields)  # type: ignore[arg-type]  # the fields are those of Memory


def ids(run: Run) -> list[str]:
    """Return the ids of a run in order."""
    return list(run.ids)


class StoreSetting:
    """Base of the contract tests: opening and filling a store."""

    embedder = WordDirections()
    purge_remains: tuple[str, ...] = ()  # what a purge of the store says it cannot reach

    def open_store(self, folder: Path) -> Store:
        """Return an empty store below a folder."""
        raise NotImplementedError

    def filled(self, folder: Path, memories: Sequence[Memory]) -> Store:
        """Return a store that holds these memories, embedded."""
        store = self.open_store(folder)
        self.put(store, memories)
        return store

    def put(self, store: Store, memories: Sequence[Memory]) -> None:
        """Write memories with their vectors."""
        entries = [entry_for(memory, "en") for memory in memories]
        rows = self.embedder.documents([entry.embed_text for entry in entries])
        vectors = {entry.embed_hash: row for entry, row in zip(entries, rows, strict=True) if row.any()}
        store.write(Changes(put=entries, space=self.embedder.fingerprint, vectors=vectors))

    def where(self, **fields: object) -> Where:
        """Return a filter for the caller of the tests."""
        return replace(Where(scopes=MINE, now=NOW), **fields)  # type: ignore[arg-type]


class ArrivalContract(StoreSetting):
    """Contract of inserting new facts on the fast path; a part of `StoreContract`."""

    def arrival(self, memory: Memory) -> Arrival:
        """Return a fact that arrives with its vector."""
        return Arrival(memory, "en", self.embedder.fingerprint, self.embedder.documents([memory.text])[0])

    def opened(self, folder: Path) -> Store:
        """Return a store whose space is known, so that vectors may arrive."""
        return self.filled(folder, [fact("m_0", "black coffee")])

    def test_a_fact_that_is_taken_in_is_found_by_every_run(self, tmp_path: Path) -> None:
        """By terms, vector, name, text and id, with the statistics of all."""
        store, memory = self.opened(tmp_path), fact("m_1", "green tea", name="Sencha", tags=("x",), expires=NOW + 5)
        assert store.take_in(self.arrival(memory))
        vector, space = self.embedder.query("green tea"), self.embedder.fingerprint
        assert ids(store.keyword(["tea"], self.where(), 10)) == ["m_1"]
        assert ids(store.nearest(vector, space, self.where(), 1)) == ["m_1"]
        assert ids(store.named(probe_for("Sencha"), self.where(), 10)) == ["m_1"]
        assert store.get(["m_1"], MINE) == {"m_1": memory}
        assert store.with_text("GREEN  tea", memory.scope) == [memory]
        assert store.statistics(["tea"], MINE).total == 2

    def test_a_fact_that_is_taken_in_is_a_memory_as_one_that_is_written(self, tmp_path: Path) -> None:
        """Two stores answer alike, to the last digit."""
        written, taken = self.opened(tmp_path / "a"), self.opened(tmp_path / "b")
        for number, text in enumerate(("green tea", "black tea", "tea with milk in May 2024")):
            self.put(written, [fact(f"m_1{number}", text, scope=USER)])
            assert taken.take_in(self.arrival(fact(f"m_1{number}", text, scope=USER)))
        asked = (["tea", "milk"], self.embedder.query("milk"), self.embedder.fingerprint, self.where())
        found = [memory.id for memory in written.browse(self.where(), 10)]
        assert found == [memory.id for memory in taken.browse(self.where(), 10)]
        assert [dict(signal.values) for signal in written.score(found, *asked)] == [
            dict(signal.values) for signal in taken.score(found, *asked)
        ]

    def test_what_is_known_is_not_taken_in(self, tmp_path: Path) -> None:
        """A known id, text in its scope, supersession or key: each is left to `write`."""
        store = self.filled(tmp_path, [fact("m_0", "black coffee"), fact("m_2", "new", supersedes="m_9")])
        assert not store.take_in(self.arrival(fact("m_0", "white coffee")))
        assert not store.take_in(self.arrival(fact("m_1", "Black  COFFEE")))
        assert not store.take_in(self.arrival(fact("m_9", "old")))
        assert store.take_in(self.arrival(fact("m_1", "black coffee", scope=OTHER)))
        keyed = self.arrival(fact("m_3", "one"))._replace(key=("k", Written("m_3", "c")))
        assert store.take_in(keyed)
        assert not store.take_in(keyed._replace(memory=fact("m_4", "two")))
        assert store.written(keyed.memory.scope, "k") == Written("m_3", "c")

    def test_what_has_just_been_taken_in_is_known(self, tmp_path: Path) -> None:
        """Two facts that arrive after each other are two, or one."""
        store = self.opened(tmp_path)
        assert store.take_in(self.arrival(fact("m_1", "green tea")))
        assert not store.take_in(self.arrival(fact("m_1", "mint tea")))
        assert not store.take_in(self.arrival(fact("m_2", "Green Tea")))
        assert store.take_in(self.arrival(fact("m_2", "green tea", scope=USER)))
        assert {memory.id for memory in store.browse(self.where(), 10)} == {"m_0", "m_1", "m_2"}

    def test_a_vector_that_does_not_fit_is_for_write_to_refuse(self, tmp_path: Path) -> None:
        """Another dimension, no direction, the first of a space, a space in which something failed."""
        store, sound = self.opened(tmp_path), self.arrival(fact("m_1", "green tea"))
        assert sound.vector is not None
        assert not store.take_in(sound._replace(vector=sound.vector[:5]))
        assert not store.take_in(sound._replace(vector=sound.vector * 0))
        assert not store.take_in(sound._replace(space="testing/new@1"))
        nowhere = {"h_1": Failure("h_1", 1, "no direction", NOW, NEVER)}  # a final state, not a failure of the provider
        store.write(Changes(space=self.embedder.fingerprint, failures=nowhere))
        assert store.take_in(self.arrival(fact("m_2", "black tea")))
        failed = {"": Failure("", 1, "away", NOW, NOW + 1)}
        store.write(Changes(space=self.embedder.fingerprint, failures=failed))
        assert not store.take_in(sound)
        assert store.take_in(Arrival(sound.memory, "en"))

    def test_a_note_that_is_another_by_now_lets_nothing_in(self, tmp_path: Path) -> None:
        """The vector was made with the embedder that the note recorded."""
        store, sound = self.opened(tmp_path), self.arrival(fact("m_1", "green tea"))
        store.put_note("spaces", "new")
        assert not store.take_in(sound._replace(note=("spaces", "old")))
        assert store.take_in(sound._replace(note=("spaces", "new")))

    def test_what_is_done_next_is_done_to_it_as_to_any_other(self, tmp_path: Path) -> None:
        """Removed, replaced, cleared or written again a moment after it came."""
        store = self.opened(tmp_path)
        for number in range(1, 5):
            assert store.take_in(self.arrival(fact(f"m_{number}", f"tea number {number}")))
        store.write(Changes(remove=["m_1"]))
        store.write(Changes(superseded={"m_2": ("m_3", NOW)}, recalled=()))
        self.put(store, [fact("m_4", "cocoa")])
        assert store.take_in(self.arrival(fact("m_5", "tea of another", scope=OTHER)))
        store.write(Changes(clear=[OTHER]))
        assert ids(store.keyword(["tea"], self.where(), 10)) == ["m_3"]
        assert ids(store.keyword(["cocoa"], self.where(), 10)) == ["m_4"]
        everything = replace(self.where(include_superseded=True), scopes=MINE | {OTHER})
        assert {memory.id for memory in store.browse(everything, 10)} == {"m_0", "m_2", "m_3", "m_4"}


class LifeContract(StoreSetting):
    """Contract of supersession, expiry, history and recalls."""

    def test_facts_are_known_by_their_text_in_their_own_scope(self, tmp_path: Path) -> None:
        """Case and white space do not count; chunks and other scopes are ignored."""
        chunk = fact("m_chunk", "Green tea", kind="chunk", source=Source("a.md", 1, 1, "h"))
        store = self.filled(tmp_path, [fact("m_1", "Green  TEA"), chunk, fact("m_2", "green tea", scope=USER)])
        assert [memory.id for memory in store.with_text("green tea", GLOBAL)] == ["m_1"]
        assert [memory.id for memory in store.with_text(" GREEN tea ", USER)] == ["m_2"]
        assert store.with_text("green", GLOBAL) == store.with_text("green tea", OTHER) == []

    def test_what_no_index_reads_is_revised_where_it_stands(self, tmp_path: Path) -> None:
        """Filters see it at once; words, vector, recalls and what replaced it stay."""
        before = fact("m_1", "green tea", tags=("old",), importance=2)
        store = self.filled(tmp_path, [before, fact("m_2", "green mint")])
        store.write(Changes(recalled=[Recall("m_1", NOW)], superseded={"m_1": ("m_2", NOW)}))
        stood = store.get(["m_1"], MINE)["m_1"]
        assert not ids(store.keyword(["tea"], self.where(tags=frozenset({"new"}), include_superseded=True), 9))
        after = replace(stood, tags=("new", "ü"), importance=5, category="rule", entities=("Tea",), trust="agent")
        after = replace(after, decay="short", expires=NOW + 9, expires_given=True, valid_from=1.0, valid_until=NOW + 5)
        store.write(Changes(revised=[replace(after, recalls=0, recalled=None)], basis={"m_1": stood}))
        assert store.get(["m_1"], MINE) == {"m_1": after}
        asked = self.where(tags=frozenset({"new"}), min_importance=4, include_superseded=True)
        for where, expected in (
            (asked, ["m_1"]),
            (replace(asked, now=NOW + 5), []),
            (replace(asked, tags=frozenset({"old"})), []),
            (replace(asked, include_superseded=False), []),
        ):
            assert ids(store.keyword(["tea"], where, 9)) == expected
            assert [memory.id for memory in store.browse(where, 9)] == expected
            vector = self.embedder.documents(["green tea"])[0]
            assert ids(store.nearest(vector, self.embedder.fingerprint, where, 9)) == expected

    def test_what_is_not_there_cannot_be_revised(self, tmp_path: Path) -> None:
        """It has changed meanwhile; nothing of the change is stored."""
        store = self.filled(tmp_path, [fact("m_1", "tea")])
        late = Changes(revised=[fact("m_2", "milk", tags=("new",))], remove=["m_1"])
        with pytest.raises(StoreChanged):
            store.write(late)
        other = replace(fact("m_1", "tea", tags=("new",)), importance=3)
        with pytest.raises(StoreChanged):
            store.write(Changes(revised=[other], basis={"m_1": fact("m_1", "coffee")}))
        assert store.get(["m_1", "m_2"], MINE) == {"m_1": fact("m_1", "tea")}

    def test_who_sees_no_scope_is_shown_nothing(self, tmp_path: Path) -> None:
        """As in a store that holds no memory yet, of which every scope is asked for."""
        store = self.filled(tmp_path, [fact("m_1", "green tea")])
        assert store.browse(self.where(scopes=frozenset()), 10) == []

    def test_lists_are_sorted_as_asked(self, tmp_path: Path) -> None:
        """Latest, most important, most recalled first; no date last, no importance as 3; ties by content key."""
        store = self.filled(
            tmp_path,
            [
                fact("m_1", "a", created=1.0, date=None, importance=2, recalls=1, recalled=2.0),
                fact("m_2", "b", created=3.0, date=5.0, recalls=4, recalled=2.0),
                fact("m_3", "c", created=2.0, date=9.0, importance=5),
            ],
        )
        expected: dict[Order, list[str]] = {
            "created": ["m_2", "m_3", "m_1"],
            "date": ["m_3", "m_2", "m_1"],
            "importance": ["m_3", "m_2", "m_1"],
            "recalls": ["m_2", "m_1", "m_3"],
        }
        for order, wanted in expected.items():
            assert [memory.id for memory in store.browse(self.where(), 9, 0, order)] == wanted
            assert [memory.id for memory in store.browse(self.where(), 1, 1, order)] == wanted[1:2]
            places = {memory.id: sorting_key(memory, order) for memory in store.browse(self.where(), 9)}
            for place, identity in enumerate(wanted):
                behind = store.browse(self.where(), 9, 0, order, places[identity])
                assert [memory.id for memory in behind] == wanted[place + 1 :]
        assert list(store.each(self.where())) == store.browse(self.where(), 9)

    def test_the_filters_on_lives_hold_in_every_run(self, tmp_path: Path) -> None:
        """Each run lists the memories that `Where.allows` accepts."""
        memories = [
            fact("m_1", "tea one", category="rule", importance=5, decay="stable", expires=NOW + 1),
            fact("m_2", "tea two", expires=NOW - 1),
            fact("m_3", "tea three", importance=1, valid_until=NOW - 1),
            fact("m_4", "tea four"),
        ]
        store = self.filled(tmp_path, memories)
        store.write(Changes(superseded={"m_4": ("m_1", NOW - 5)}))
        held = store.get([memory.id for memory in memories], MINE).values()
        for fields in (
            {"category": "rule"}, {"decay": "stable"}, {"min_importance": 3}, {"include_expired": True},
            {"only_expired": True}, {"only_superseded": True}, {"only_expired": True, "as_of": NOW - 2},
            {"include_expired": True, "include_superseded": True, "min_importance": 3},
        ):  # fmt: skip
            where = self.where(**fields)
            expected = {memory.id for memory in held if where.allows(memory)}
            assert {memory.id for memory in store.browse(where, 9)} == expected, fields
            assert {*ids(store.keyword(["tea"], where, 9))} == expected, fields
            vector = self.embedder.query("tea")
            assert {*ids(store.nearest(vector, self.embedder.fingerprint, where, 9))} == expected, fields

    def test_a_change_over_an_outdated_memory_is_refused_whole(self, tmp_path: Path) -> None:
        """No change is overwritten unseen; a recall in between is no change."""
        store = self.filled(tmp_path, [fact("m_1", "tea"), fact("m_2", "milk")])
        read = store.get(["m_1"], MINE)["m_1"]
        store.write(Changes(recalled=[Recall("m_1", NOW)]))
        first = entry_for(replace(read, text="black tea"), "en")
        store.write(Changes(put=[first], basis={"m_1": read}))
        second = entry_for(replace(read, importance=5), "en")
        with pytest.raises(StoreChanged):
            store.write(Changes(put=[second], basis={"m_1": read}, remove=["m_2"]))
        held = store.get(["m_1", "m_2"], MINE)
        assert (held["m_1"].text, held["m_1"].importance, held["m_1"].recalls) == ("black tea", None, 1)
        assert "m_2" in held
        with pytest.raises(StoreChanged):
            store.write(Changes(basis={"m_none": read}))

    def test_histories_are_kept_in_order_and_go_with_their_memory(self, tmp_path: Path) -> None:
        """They survive being put again, and are isolated by scope."""
        store = self.filled(tmp_path, [fact("m_1", "tea", scope=USER)])
        told = [Former("m_1", NOW, {"text": "té", "tags": ["a"]}), Former("m_1", NOW + 1, {"importance": None})]
        store.write(Changes(history=told[:1]))
        store.write(Changes(history=told[1:]))
        self.put(store, [fact("m_1", "tea", scope=USER)])
        assert store.history(["m_1", "m_none"], MINE) == {"m_1": told}
        assert store.history(["m_1"], frozenset({GLOBAL, OTHER})) == {}
        store.write(Changes(remove=["m_1"]))
        self.put(store, [fact("m_1", "tea", scope=USER)])
        assert store.history(["m_1"], MINE) == {}

    def test_a_key_stands_for_one_content_in_one_scope(self, tmp_path: Path) -> None:
        """Another content is refused with all that came with it; other scopes have keys of their own."""
        store = self.filled(tmp_path, [fact("m_1", "tea"), fact("m_2", "milk")])
        store.write(Changes(keys={(GLOBAL, "k"): Written("m_1", "c")}))
        store.write(Changes(keys={(GLOBAL, "k"): Written("m_1", "c"), (USER, "k"): Written("m_2", "d")}))
        with pytest.raises(ConfigError):
            store.write(Changes(keys={(GLOBAL, "k"): Written("m_2", "d")}, remove=["m_2"]))
        assert store.written(GLOBAL, "k") == ("m_1", "c")
        assert store.written(USER, "k") == ("m_2", "d")
        assert store.written(OTHER, "k") is None
        assert store.keys(USER) == {"k": ("m_2", "d")}
        assert store.keys(OTHER) == {}
        assert "m_2" in store.get(["m_2"], MINE)
        store.write(Changes(remove=["m_1"]))
        assert store.written(GLOBAL, "k") is None

    def test_recalls_are_counted_and_put_expiry_off_but_never_forward(self, tmp_path: Path) -> None:
        """1 + 1 recalls; the later of two moments and of two expiries stays."""
        store = self.filled(tmp_path, [fact("m_1", "tea", expires=NOW + 10), fact("m_2", "milk")])
        store.write(Changes(recalled=[Recall("m_1", NOW + 5, NOW + 20), Recall("m_2", NOW, NOW + 1)]))
        store.write(Changes(recalled=[Recall("m_1", NOW + 2, NOW + 15), Recall("m_none", NOW)]))
        held = store.get(["m_1", "m_2"], MINE)
        assert (held["m_1"].recalls, held["m_1"].recalled, held["m_1"].expires) == (2, NOW + 5, NOW + 20)
        assert (held["m_2"].recalls, held["m_2"].recalled, held["m_2"].expires) == (1, NOW, None)
        assert ids(store.keyword(["tea"], self.where(now=NOW + 17), 5)) == ["m_1"]

    def test_what_is_put_again_or_moves_keeps_its_recalls(self, tmp_path: Path) -> None:
        """A chunk of a changed or renamed file was of use before."""
        old = fact("m_old", "tea", kind="chunk", source=Source("a.md", 1, 1, "h"))
        store = self.filled(tmp_path, [old])
        store.write(Changes(recalled=[Recall("m_old", NOW)]))
        self.put(store, [old])
        assert store.get(["m_old"], MINE)["m_old"].recalls == 1
        moved = entry_for(fact("m_new", "tea", kind="chunk", source=Source("b.md", 1, 1, "h")), "en")
        store.write(Changes(put=[moved], replace_files=[(GLOBAL, "a.md")], renamed={"m_old": "m_new"}))
        assert (store.get(["m_new"], MINE)["m_new"].recalls, store.get(["m_new"], MINE)["m_new"].recalled) == (1, NOW)

    def test_circles_of_supersession_are_refused_whole(self, tmp_path: Path) -> None:
        """a by b, b by c; c by a would leave none of them."""
        store = self.filled(tmp_path, [fact("m_a", "tea a"), fact("m_b", "tea b"), fact("m_c", "tea c")])
        store.write(Changes(superseded={"m_a": ("m_b", NOW), "m_b": ("m_c", NOW)}))
        with pytest.raises(StoreError):
            store.write(Changes(superseded={"m_c": ("m_a", NOW)}))
        assert ids(store.keyword(["tea"], self.where(), 5)) == ["m_c"]
        store.write(Changes(superseded={"m_c": ("m_a", NOW), "m_a": None}))
        assert ids(store.keyword(["tea"], self.where(), 5)) == ["m_a"]

    def test_what_was_brought_back_stays_when_it_is_put_again(self, tmp_path: Path) -> None:
        """Its successor's claim has ended with it."""
        store = self.filled(tmp_path, [fact("m_1", "tea"), fact("m_2", "tea two", supersedes="m_1")])
        store.write(Changes(superseded={"m_1": ("m_2", NOW)}))
        store.write(Changes(superseded={"m_1": None}))
        self.put(store, [fact("m_1", "tea")])
        assert {*ids(store.keyword(["tea"], self.where(), 5))} == {"m_1", "m_2"}
        assert store.get(["m_2"], MINE)["m_2"].supersedes is None

    def test_pruning_changes_no_answer(self, tmp_path: Path) -> None:
        """Memories that an expired one had superseded stay superseded, and a postponed expiry stays."""
        store = self.filled(
            tmp_path, [fact("m_1", "tea"), fact("m_2", "tea two", expires=NOW - 1), fact("m_3", "tea", expires=NOW + 9)]
        )
        store.write(Changes(superseded={"m_1": ("m_2", NOW - 5)}))
        before = ids(store.keyword(["tea"], self.where(), 5))
        store.write(Changes(prune={"m_2": NOW, "m_3": NOW, "m_none": NOW}))
        assert ids(store.keyword(["tea"], self.where(), 5)) == before == ["m_3"]
        assert set(store.get(["m_1", "m_2", "m_3"], MINE)) == {"m_1", "m_3"}

    def test_a_cleared_scope_is_empty_and_others_are_whole(self, tmp_path: Path) -> None:
        """Memories, files, keys and histories of the scope are deleted in one write."""
        mine, theirs = fact("m_1", "tea mine", scope=USER), fact("m_2", "tea theirs", scope=OTHER)
        store = self.filled(tmp_path, [mine, theirs])
        for scope, identity in ((USER, "m_1"), (OTHER, "m_2")):
            file = FileRecord("a.md", scope, 1, 1, "h")
            told, key = [Former(identity, NOW, {"text": "x"})], {(scope, "k"): Written(identity, "c")}
            store.write(Changes(files=[file], history=told, keys=key))
        store.put_note("n", "one")
        store.write(Changes(clear=[USER], drop_notes=["n"]))
        everyone = frozenset({USER, OTHER})
        assert set(store.get(["m_1", "m_2"], everyone)) == set(store.history(["m_1", "m_2"], everyone)) == {"m_2"}
        assert (store.written(USER, "k"), store.manifest(USER), store.note("n")) == (None, {}, None)
        assert store.written(OTHER, "k") is not None
        assert list(store.manifest(OTHER)) == ["a.md"]

    def test_after_a_purge_the_store_answers_as_if_the_purged_had_never_been(self, tmp_path: Path) -> None:
        """The same ids in the same order with the same scores as a store that never held them."""
        texts = [f"tea number {n} from the {'hill' if n % 3 else 'valley'}" for n in range(150)]
        memories = [fact(f"m_{n}", text, scope=(USER, OTHER)[n % 2]) for n, text in enumerate(texts)]
        one, two = self.filled(tmp_path / "1", memories), self.filled(tmp_path / "2", memories[20:])
        one.write(Changes(remove=[memory.id for memory in memories[:20]], purge=True))
        assert one.purge() == self.purge_remains
        vector = self.embedder.query("tea from the valley")
        for scope in (USER, OTHER):
            where = self.where(scopes=frozenset({Scope("user", scope.name)}))
            assert one.keyword(["tea", "valley"], where, 99) == two.keyword(["tea", "valley"], where, 99)
            space = self.embedder.fingerprint
            assert one.nearest(vector, space, where, 99) == two.nearest(vector, space, where, 99)


class NotesContract:
    """Contract of notes; a part of `StoreContract`."""

    def open_store(self, folder: Path) -> Store:
        """Return an empty store below a folder."""
        raise NotImplementedError

    def test_a_note_is_kept_until_it_is_written_again(self, tmp_path: Path) -> None:
        """Notes are by name, and no memory."""
        store = self.open_store(tmp_path)
        store.write(Changes(put=[entry_for(Memory("m_1", "tea"), "en")]))
        assert (store.note("a"), store.notes()) == (None, {})
        store.put_note("a", "one")
        store.put_note("b:ü", "two")
        store.put_note("a", "three")
        assert (store.note("a"), store.note("b:ü"), store.note("")) == ("three", "two", None)
        assert store.notes() == {"a": "three", "b:ü": "two"}
        assert [memory.id for memory in store.browse(Where(), 10)] == ["m_1"]

    def test_notes_are_asked_for_by_how_their_names_begin(self, tmp_path: Path) -> None:
        """A prefix is taken letter by letter: no pattern, no case."""
        store = self.open_store(tmp_path)
        for name in ("a", "a%", "a%b", "ab", "A%c", "b"):
            store.put_note(name, name.upper())
        assert store.notes("a%") == {"a%": "A%", "a%b": "A%B"}
        assert store.notes("c") == {}

    def test_notes_are_written_and_taken_away_with_the_memories_of_a_change(self, tmp_path: Path) -> None:
        """A change that cannot be stored whole leaves no note behind, either."""
        store = self.open_store(tmp_path)
        store.put_note("old", "one")
        store.write(Changes(put=[entry_for(Memory("m_1", "tea"), "en")], notes={"new": "two"}, drop_notes=["old"]))
        assert store.notes() == {"new": "two"}
        foreign = Memory("m_1", "coffee", scope=Scope("user", "1"))
        with suppress(StoreError):
            store.write(Changes(put=[entry_for(foreign, "en")], notes={"new": "three"}))
        assert store.note("new") == "two"
        assert store.get(["m_1"], frozenset({GLOBAL}))["m_1"].text == "tea"


class ReaderContract(StoreSetting):
    """Contract of analyzer versions; a part of `StoreContract`."""

    def test_memories_are_counted_by_the_reader_that_made_their_words(self, tmp_path: Path) -> None:
        """Invisible memories are not counted; each write may be by another analyzer, also an earlier one."""
        store = self.open_store(tmp_path)
        assert store.readers(MINE) == {}
        written = [("m_1", MINE, 3), ("m_2", USER, 3), ("m_3", OTHER, 3), ("m_4", USER, 5), ("m_5", USER, 4)]
        for identity, scope, reader in written:
            memory = fact(identity, f"tea {identity}", **({} if scope is MINE else {"scope": scope}))
            store.write(Changes(put=[replace(entry_for(memory, "en"), reader=reader)]))
        assert store.readers(MINE) == {3: 2, 5: 1, 4: 1}
        assert store.readers(frozenset({OTHER})) == {3: 1}
        assert [memory.id for memory in store.read_before(5, 10)] == ["m_1", "m_2", "m_5", "m_3"]
        assert [memory.id for memory in store.read_before(4, 2)] == ["m_1", "m_2"]
        assert store.read_before(3, 10) == []

    def test_what_is_stored_again_has_the_words_of_who_stores_it(self, tmp_path: Path) -> None:
        """Until none of the earlier analyzer's is left."""
        store = self.open_store(tmp_path)
        old = [replace(entry_for(fact(f"m_{i}", f"tea {i}"), "en"), reader=0) for i in range(3)]
        store.write(Changes(put=old))
        for left in (2, 1, 0):
            [memory] = store.read_before(4, 1)
            store.write(Changes(put=[replace(entry_for(memory, "en"), reader=4)]))
            assert store.readers(MINE) == ({0: left, 4: 3 - left} if left else {4: 3})
        assert store.read_before(4, 1) == []

    def test_what_is_removed_has_no_reader(self, tmp_path: Path) -> None:
        """Deleted memories do not wait to be reindexed."""
        store = self.open_store(tmp_path)
        store.write(Changes(put=[replace(entry_for(fact("m_1", "tea"), "en"), reader=1)]))
        store.write(Changes(remove=["m_1"]))
        assert (store.readers(MINE), store.read_before(9, 9)) == ({}, [])


class RestatingContract(StoreSetting):
    """Contract of changing the text of a fact; a part of `StoreContract`."""

    def restate(self, store: Store, before: Memory, text: str) -> Memory:
        """Give a fact another text, with its vector and its history."""
        exact = content_hash(text)
        after = replace(before, text=text, source=Source("", content_hash=exact))
        store.write(
            Changes(
                put=[entry_for(after, "en")],
                basis={before.id: before},
                history=[Former(before.id, NOW, {"text": before.text})],
                space=self.embedder.fingerprint,
                vectors={exact: self.embedder.documents([text])[0]},
            )
        )
        return after

    def test_a_text_that_is_changed_is_found_by_what_it_says_now(self, tmp_path: Path) -> None:
        """By terms, vector, text and id; recalls, tags and supersession stay; the history has the old text."""
        store = self.filled(tmp_path, [fact("m_1", "green tea", tags=("x",)), fact("m_2", "black coffee")])
        store.write(Changes(recalled=[Recall("m_1", NOW)], superseded={"m_2": ("m_1", NOW)}))
        before = store.get(["m_1"], MINE)["m_1"]
        after = self.restate(store, before, "warm milk")
        assert store.get(["m_1"], MINE) == {"m_1": after}
        assert store.with_text("Warm  MILK", GLOBAL) == [after]
        assert store.with_text("green tea", GLOBAL) == []
        assert [former.was for former in store.history(["m_1"], MINE)["m_1"]] == [{"text": "green tea"}]
        assert store.browse(self.where(tags=frozenset({"x"})), 9) == [after]
        assert ids(store.keyword(["milk"], self.where(), 9)) == ["m_1"]
        assert ids(store.keyword(["tea"], self.where(), 9)) == []
        nearest = store.nearest(self.embedder.query("warm milk"), self.embedder.fingerprint, self.where(), 9)
        assert [(one.id, round(one.score, 4)) for one in nearest.candidates] == [("m_1", 1.0)]
        frequency = store.statistics(["milk", "tea"], MINE).frequency
        assert (frequency.get("milk", 0), frequency.get("tea", 0)) == (1, 0)

    def test_a_text_may_change_again_before_anybody_reads(self, tmp_path: Path) -> None:
        """Only the last is found, other vectors are gone, and the store answers like one written whole."""
        store = self.filled(tmp_path / "a", [fact("m_1", "green tea"), fact("m_2", "tea with milk")])
        memory = fact("m_1", "green tea")
        for text in ("warm milk", "black coffee", "green tea with honey"):
            memory = self.restate(store, memory, text)
        whole = self.filled(tmp_path / "b", [memory, fact("m_2", "tea with milk")])
        for terms in (["tea"], ["milk", "honey"], ["coffee"]):
            mine, theirs = (one.keyword(terms, self.where(), 9) for one in (store, whole))
            assert mine.candidates == theirs.candidates
        assert store.spaces() == whole.spaces()

    def test_a_text_that_waits_goes_with_its_fact(self, tmp_path: Path) -> None:
        """Whatever is done next is done to the fact as it is now."""
        store = self.filled(tmp_path, [fact("m_1", "green tea"), fact("m_2", "black coffee")])
        after = self.restate(store, fact("m_1", "green tea"), "warm milk")
        store.write(Changes(superseded={"m_1": ("m_2", NOW)}, basis={"m_1": after}))
        assert ids(store.keyword(["milk"], self.where(), 9)) == []
        assert ids(store.keyword(["milk"], self.where(include_superseded=True), 9)) == ["m_1"]
        store.write(Changes(remove=["m_1"]))
        assert store.get(["m_1"], MINE) == {}
        assert store.history(["m_1"], MINE) == {}

    def test_a_text_changes_over_the_fact_that_was_read_or_not_at_all(self, tmp_path: Path) -> None:
        """One that is gone, or another by now, has changed meanwhile."""
        store = self.filled(tmp_path, [fact("m_1", "green tea")])
        for before in (fact("m_1", "black tea"), fact("m_9", "green tea")):
            with pytest.raises(StoreChanged):
                self.restate(store, before, "warm milk")
        assert store.get(["m_1", "m_9"], MINE) == {"m_1": fact("m_1", "green tea")}
        assert store.history(["m_1"], MINE) == {}

    def test_a_change_over_a_note_that_says_something_else_by_now_is_refused(self, tmp_path: Path) -> None:
        """Whatever it changes, the whole change is refused."""
        store = self.filled(tmp_path, [fact("m_1", "green tea")])
        store.put_note("spaces", "two")
        before = fact("m_1", "green tea")
        after = replace(before, text="warm milk")
        for noted in (("spaces", "one"), ("others", "two")):
            with pytest.raises(StoreChanged):
                store.write(Changes(put=[entry_for(after, "en")], basis={"m_1": before}, noted=noted))
        assert store.get(["m_1"], MINE) == {"m_1": before}
        store.write(Changes(put=[entry_for(after, "en")], basis={"m_1": before}, noted=("spaces", "two")))
        assert store.get(["m_1"], MINE) == {"m_1": after}

    def test_no_two_living_facts_of_a_scope_come_to_say_the_same(self, tmp_path: Path) -> None:
        """By a new text, a new fact, or a restored one; other scopes and superseded facts do not count."""
        green, milk, old = fact("m_1", "green tea"), fact("m_2", "warm milk"), fact("m_3", "Green  TEA")
        store = self.filled(tmp_path, [green, milk, old, fact("m_4", "honey", scope=USER)])
        store.write(Changes(superseded={"m_3": ("m_1", NOW)}))
        with pytest.raises(StoreChanged):
            self.restate(store, milk, "GREEN tea")
        for refused in (
            Changes(put=[entry_for(replace(milk, text="green tea"), "en")], basis={"m_2": milk}),
            Changes(put=[entry_for(fact("m_5", "green tea"), "en")], basis={"m_5": None}),
            Changes(superseded={"m_3": None}),
        ):
            with pytest.raises(StoreChanged):
                store.write(refused)
        self.restate(store, milk, "honey")
        store.write(Changes(superseded={"m_3": None}, remove=["m_1"]))
        assert [one.id for one in store.with_text("green tea", GLOBAL)] == ["m_3"]


_TRIED, _LATER = 100.0, 160.0


class SpaceContract:
    """Contract of spaces, the embedding queue, and compare-and-swap of notes."""

    embedder = WordDirections()

    def open_store(self, folder: Path) -> Store:
        """Return an empty store below a folder."""
        raise NotImplementedError

    def _with_texts(self, folder: Path, *texts: str) -> Store:
        store = self.open_store(folder)
        memories = [Memory(f"m_{number}", text) for number, text in enumerate(texts)]
        store.write(Changes(put=[entry_for(memory, "en") for memory in memories]))
        return store

    def test_texts_without_a_vector_are_named(self, tmp_path: Path) -> None:
        """The texts that still have to be embedded."""
        store = self._with_texts(tmp_path, "tea")
        space = self.embedder.fingerprint
        [(text_hash, text, _)] = store.without_vector(space, 10)
        assert text == "tea"
        assert store.status(space).without_vector == 1
        store.write(Changes(space=space, vectors={text_hash: self.embedder.query(text)}))
        assert store.without_vector(space, 10) == []
        assert store.known_vectors([text_hash, "other"], space, GLOBAL) == {text_hash}

    def test_one_goes_on_behind_a_place(self, tmp_path: Path) -> None:
        """A batch begins where the one before ended."""
        store = self._with_texts(tmp_path, "tea", "coffee", "milk")
        first = store.without_vector("space", 2)
        assert [one.text for one in first] == ["tea", "coffee"]
        assert [one.text for one in store.without_vector("space", 2, after=first[-1].place)] == ["milk"]

    def test_a_failure_is_kept_until_a_vector_comes(self, tmp_path: Path) -> None:
        """A failure is visible, and cleared by a vector."""
        store, space = self._with_texts(tmp_path, "tea", "coffee"), self.embedder.fingerprint
        tea, _ = store.without_vector(space, 9)
        failed = Failure(tea.hash, 2, "refused", _TRIED, _LATER)
        away = Failure("", 1, "nobody there", _TRIED, _LATER)
        store.write(Changes(space=space, failures={tea.hash: failed, "": away}))
        assert store.failures(space) == [away, failed]
        assert store.failures("another") == []
        vectors = {tea.hash: self.embedder.query("tea")}
        store.write(Changes(space=space, vectors=vectors, failures={"": None}))
        assert store.failures(space) == []

    def test_a_failure_counts_the_memories_that_hold_its_text(self, tmp_path: Path) -> None:
        """A failure belongs to a text, which several memories may share; other scopes are not counted."""
        store, space = self._with_texts(tmp_path, "tea", "coffee"), self.embedder.fingerprint
        ann = Scope.parse("user:ann")
        store.write(Changes(put=[entry_for(Memory("m_twin", "tea", scope=ann), "en")]))
        tea = next(one for one in store.without_vector(space, 9) if one.text == "tea")
        store.write(Changes(space=space, failures={tea.hash: Failure(tea.hash, 1, "refused", _TRIED, _LATER)}))
        for scopes, memories in ((None, 2), (frozenset({GLOBAL, ann}), 2), (frozenset({ann}), 1)):
            assert [failure.memories for failure in store.failures(space, scopes)] == [memories]

    def test_a_share_is_counted_as_if_there_were_nothing_else(self, tmp_path: Path) -> None:
        """Counts are those of a store that holds only the visible memories; the file size is not shared out."""
        space, own = self.embedder.fingerprint, frozenset({GLOBAL, Scope.parse("user:1")})
        texts = {"global": ("tea", "coffee"), "user:1": ("milk",), "user:2": ("tea", "water", "juice")}
        memories = [
            Memory(f"m_{scope}_{text}", text, scope=Scope.parse(scope))
            for scope, all_ in texts.items()
            for text in all_
        ]
        alone = self._with_some_vectors(tmp_path / "alone", [one for one in memories if one.scope in own])
        among = self._with_some_vectors(tmp_path / "among", memories)
        for store in (alone, among):
            told = store.status(space, own)
            counted = (told.memories, told.files, told.scopes, told.spaces, told.without_vector, told.bytes)
            assert counted == (3, 3, {"global": 2, "user:1": 1}, {space: 1}, 2, None)
            assert sorted(one.error for one in store.failures(space, own)) == ["away", "coffee", "milk"]
        assert (among.status(space).memories, len(among.failures(space))) == (6, 4)

    def _with_some_vectors(self, folder: Path, memories: list[Memory]) -> Store:
        """Return a store of these, each from a file; tea and water have vectors, the rest was refused."""
        store, space = self.open_store(folder), self.embedder.fingerprint
        entries = [entry_for(memory, "en") for memory in memories]
        files = [FileRecord(f"{memory.text}.md", memory.scope, 1, 1, "hash") for memory in memories]
        store.write(Changes(put=entries, files=files))
        texts = {entry.embed_hash: entry.memory.text for entry in entries}
        known = {key: self.embedder.query(text) for key, text in texts.items() if text in ("tea", "water")}
        failed = {key: Failure(key, 1, text, _TRIED, _LATER) for key, text in texts.items() if key not in known}
        away = Failure("", 1, "away", _TRIED, _LATER)
        store.write(Changes(space=space, vectors=known, failures={**failed, "": away}))
        return store

    def test_what_failed_waits_for_its_time(self, tmp_path: Path) -> None:
        """A text that was refused is passed over until it is due."""
        store, space = self._with_texts(tmp_path, "tea", "coffee"), "space"
        tea = store.without_vector(space, 1)[0]
        store.write(Changes(space=space, failures={tea.hash: Failure(tea.hash, 1, "no", _TRIED, _LATER)}))
        assert [one.text for one in store.without_vector(space, 9, due=_LATER - 1)] == ["coffee"]
        assert [one.text for one in store.without_vector(space, 9, due=_LATER)] == ["tea", "coffee"]
        assert [one.text for one in store.without_vector(space, 9)] == ["tea", "coffee"]

    def test_two_workers_share_the_texts_without_a_vector(self, tmp_path: Path) -> None:
        """No text is leased twice, and texts that are leased are no failures."""
        store, space = self._with_texts(tmp_path, *(f"note {number}" for number in range(10))), "space"
        parts = [store.claim(space, 4, worker, 60.0, NOW) for worker in ("one", "two", "one", "two")]
        assert [len(part) for part in parts] == [4, 4, 2, 0]
        assert {one.text for part in parts for one in part} == {f"note {number}" for number in range(10)}
        assert (store.failures(space), store.claim("another", 9, "one", 60.0, NOW)[0].text) == ([], "note 0")

    def test_the_work_of_a_worker_that_died_is_taken_over_after_its_lease(self, tmp_path: Path) -> None:
        """Until then nobody else embeds it; the second lease is as long as the first."""
        store, space = self._with_texts(tmp_path, "tea"), "space"
        [tea] = store.claim(space, 9, "one", 60.0, NOW)
        assert store.claim(space, 9, "two", 60.0, NOW + 59) == []
        assert store.claim(space, 9, "two", 60.0, NOW + 61) == [tea]
        assert store.claim(space, 9, "one", 60.0, NOW + 120) == []

    def test_a_lease_ends_with_its_vector_its_failure_or_by_a_release(self, tmp_path: Path) -> None:
        """An embedded text is done, a failed one waits for its time, a released one is taken at once."""
        store, space = self._with_texts(tmp_path, "tea", "coffee", "milk"), self.embedder.fingerprint
        tea, coffee, milk = store.claim(space, 9, "one", 60.0, NOW)
        failed = {coffee.hash: Failure(coffee.hash, 1, "refused", NOW, NOW + 30)}
        store.write(Changes(space=space, vectors={tea.hash: self.embedder.query("tea")}, failures=failed))
        store.release(space, [milk.hash], "two")
        assert store.claim(space, 9, "two", 60.0, NOW + 1) == []
        store.release(space, [milk.hash], "one")
        assert store.claim(space, 9, "two", 60.0, NOW + 1) == [milk]
        assert store.claim(space, 9, "two", 60.0, NOW + 31) == [coffee]
        assert [failure.error for failure in store.failures(space)] == ["refused"]

    def test_texts_that_are_stored_later_are_claimed(self, tmp_path: Path) -> None:
        """A claim that found nothing finds what has come since; a text that two memories hold is one."""
        store, space = self._with_texts(tmp_path, "tea"), self.embedder.fingerprint
        [tea] = store.claim(space, 9, "one", 60.0, NOW)
        assert store.claim(space, 9, "one", 60.0, NOW) == []
        twins = [fact("m_8", "milk"), fact("m_9", "milk", scope=USER)]
        store.write(Changes(put=[entry_for(memory, "en") for memory in twins]))
        assert [one.text for one in store.claim(space, 9, "two", 60.0, NOW)] == ["milk"]
        store.release(space, [tea.hash], "one")
        assert store.claim(space, 9, "two", 60.0, NOW) == [tea]

    def test_a_fact_is_taken_in_while_others_are_embedded(self, tmp_path: Path) -> None:
        """A lease is no failure of the space."""
        store, space = self._with_texts(tmp_path, "tea"), self.embedder.fingerprint
        [tea] = store.claim(space, 9, "one", 60.0, NOW)
        store.write(Changes(space=space, vectors={tea.hash: self.embedder.query("tea")}))
        assert store.take_in(Arrival(fact("m_1", "coffee"), "en", space))
        assert [one.text for one in store.claim(space, 9, "one", 60.0, NOW)] == ["coffee"]
        assert store.take_in(Arrival(fact("m_2", "milk"), "en", space))

    def test_a_text_that_is_forgotten_while_it_is_embedded_leaves_no_vector(self, tmp_path: Path) -> None:
        """Neither does it leave a failure, which might quote it."""
        store, space = self._with_texts(tmp_path, "tea", "coffee"), self.embedder.fingerprint
        tea, coffee = store.claim(space, 9, "one", 60.0, NOW)
        store.write(Changes(remove=["m_0", "m_1"]))
        failed = {coffee.hash: Failure(coffee.hash, 1, "coffee?", NOW, NOW + 30)}
        store.write(Changes(space=space, vectors={tea.hash: self.embedder.query("tea")}, failures=failed))
        assert (store.spaces(), store.failures(space)) == ({}, [])

    def test_the_failure_of_a_text_goes_with_it(self, tmp_path: Path) -> None:
        """The failure of a deleted text is deleted."""
        store = self._with_texts(tmp_path, "tea")
        tea = store.without_vector("space", 1)[0]
        store.write(Changes(space="space", failures={tea.hash: Failure(tea.hash, 1, "no", _TRIED, _LATER)}))
        store.write(Changes(remove=["m_0"]))
        assert store.failures("space") == []

    def test_a_space_is_dropped_whole_and_alone(self, tmp_path: Path) -> None:
        """Its vectors, its dimension and its failures go; those of others stay, and it can be filled again."""
        store, other = self._with_texts(tmp_path, "tea"), WordDirections(16)
        tea = store.without_vector("x", 1)[0]
        for embedder in (self.embedder, other):
            store.write(Changes(space=embedder.fingerprint, vectors={tea.hash: embedder.query("tea")}))
        store.write(Changes(space=other.fingerprint, failures={"": Failure("", 1, "away", _TRIED, _LATER)}))
        assert store.dimensions(other.fingerprint) == 16
        assert store.drop_space(other.fingerprint) == 1
        assert store.spaces() == {self.embedder.fingerprint: 1}
        assert (store.dimensions(other.fingerprint), store.failures(other.fingerprint)) == (None, [])
        store.write(Changes(space=other.fingerprint, vectors={tea.hash: WordDirections(8).query("tea")}))
        assert store.dimensions(other.fingerprint) == 8

    def test_a_note_is_swapped_only_if_it_is_what_was_read(self, tmp_path: Path) -> None:
        """Two writers of the same note do not undo each other."""
        store = self.open_store(tmp_path)
        assert store.swap_note("roles", None, "one")
        assert not store.swap_note("roles", None, "two")
        assert not store.swap_note("roles", "two", "three")
        assert store.swap_note("roles", "one", "two")
        assert store.note("roles") == "two"


__all__ = ["MINE", "NOW", "OTHER", "USER", "StoreContract", "fact", "ids"]


class StoreContract(LifeContract, NotesContract, ReaderContract, SpaceContract, ArrivalContract, RestatingContract):
    """The contract of stores: subclass this and define `open_store`."""

    def test_what_was_written_comes_back_whole(self, tmp_path: Path) -> None:
        """Every field survives the store."""
        memory = fact(
            "m_1", "Suzy drinks tea", kind="chunk", name="Tea", title="Tea", slug="tea", owner="suzy", aliases=("cha",),
            summary="hot", headings=("Drinks", "Tea"), source=Source("a/b.md", 3, 9, "h"), scope=USER,
            category="preference", tags=("x", "y"), entities=("Suzy",), importance=4, evergreen=True, valid_from=1.0,
            valid_until=NOW + 5, expires=NOW + 9, supersedes="m_0", trust="agent", session="s", speaker="Suzy",
            position=7,
        )  # fmt: skip
        store = self.filled(tmp_path, [memory])
        assert store.get(["m_1", "m_2"], MINE) == {"m_1": memory}

    def test_a_foreign_id_does_not_exist(self, tmp_path: Path) -> None:
        """Ids are isolated by scope too."""
        assert self.filled(tmp_path, [fact("m_1", "tea", scope=OTHER)]).get(["m_1"], MINE) == {}

    def test_writing_an_id_again_replaces_it_everywhere(self, tmp_path: Path) -> None:
        """No index keeps a trace of the old text."""
        store = self.filled(tmp_path, [fact("m_1", "tea", name="Tea")])
        self.put(store, [fact("m_1", "coffee", name="Coffee")])
        assert ids(store.keyword(["coffe"], self.where(), 10)) == ["m_1"]
        assert not ids(store.keyword(["tea"], self.where(), 10)) + ids(store.named(probe_for("Tea"), self.where(), 10))

    def test_what_was_read_before_a_write_is_read_anew_after_it(self, tmp_path: Path) -> None:
        """No cache of a store outlives a change of it."""
        store = self.open_store(tmp_path)
        for text in ("green tea", "green mint"):
            self.put(store, [fact("m_1", text)])
            assert ids(store.keyword(["green"], self.where(), 10)) == ["m_1"]
            assert memory_of(store.held(["m_1"], MINE)["m_1"]).text == store.get(["m_1"], MINE)["m_1"].text == text

    def test_what_breaks_ties_is_known_without_reading_memories(self, tmp_path: Path) -> None:
        """Path, line, content and id, of facts and chunks alike, in the order of the ids given."""
        chunk = fact("m_1", "tea", kind="chunk", source=Source("notes/tea.md", 3, 7, "a1"))
        store = self.filled(tmp_path, [fact("m_3", "milk"), chunk, fact("m_2", "pot")])
        asked = ["m_3", "m_1", "m_2"]
        held = store.held(asked, MINE)
        assert [held[key].content_key for key in asked] == [store.get([key], MINE)[key].content_key for key in asked]

    def test_removed_means_gone_from_every_run(self, tmp_path: Path) -> None:
        """A removed memory is nowhere, and neither is its vector."""
        store = self.filled(tmp_path, [fact("m_1", "tea", name="Tea")])
        store.write(Changes(remove=["m_1"]))
        vector = self.embedder.query("tea")
        assert store.get(["m_1"], MINE) == {}
        assert ids(store.keyword(["tea"], self.where(), 10)) == []
        assert ids(store.nearest(vector, self.embedder.fingerprint, self.where(), 10)) == []
        assert ids(store.named(probe_for("Tea"), self.where(), 10)) == []
        assert store.spaces() == {}

    def test_a_vector_lives_as_long_as_any_memory_with_its_text(self, tmp_path: Path) -> None:
        """Equal texts share a vector."""
        store = self.filled(tmp_path, [fact("m_1", "tea"), fact("m_2", "tea")])
        store.write(Changes(remove=["m_1"]))
        assert ids(store.nearest(self.embedder.query("tea"), self.embedder.fingerprint, self.where(), 10)) == ["m_2"]

    def test_keyword_orders_by_word_score_and_any_term_is_enough(self, tmp_path: Path) -> None:
        """OR-join; more and rarer terms are better; higher is better."""
        store = self.filled(
            tmp_path,
            [fact("m_1", "green tea"), fact("m_2", "black tea and milk"), fact("m_3", "coffee"), fact("m_4", "tea")],
        )
        run = store.keyword(["tea", "milk"], self.where(), 10)
        assert ids(run)[0] == "m_2"
        assert set(ids(run)) == {"m_1", "m_2", "m_4"}
        assert [candidate.score for candidate in run.candidates] == sorted(
            (candidate.score for candidate in run.candidates), reverse=True
        )

    def test_and_join_asks_for_every_term(self, tmp_path: Path) -> None:
        """The AND-join exists to show the memories it loses."""
        store = self.filled(tmp_path, [fact("m_1", "green tea"), fact("m_2", "black tea milk")])
        assert ids(store.keyword(["tea", "milk"], self.where(), 10, "and")) == ["m_2"]

    def test_a_phrase_matches_only_side_by_side(self, tmp_path: Path) -> None:
        """A term of several tokens is a phrase."""
        store = self.filled(tmp_path, [fact("m_1", "green tea pot"), fact("m_2", "tea is green")])
        assert ids(store.keyword(["green tea"], self.where(), 10)) == ["m_1"]

    def test_hostile_terms_match_nothing_and_raise_nothing(self, tmp_path: Path) -> None:
        """Operators, quotes and symbols are text."""
        store = self.filled(tmp_path, [fact("m_1", "tea")])
        for term in ['"', "AND", "NOT", "*", "te*", "tokens:tea", "(", "^tea", "NEAR", "c++", "'", "é" * 100]:
            assert ids(store.keyword([term], self.where(), 10)) == []

    def test_nearest_orders_by_cosine(self, tmp_path: Path) -> None:
        """The same text is nearest, at cosine 1."""
        store = self.filled(tmp_path, [fact("m_1", "green tea"), fact("m_2", "tea"), fact("m_3", "engine oil")])
        run = store.nearest(self.embedder.query("tea"), self.embedder.fingerprint, self.where(), 10)
        assert ids(run)[0] == "m_2"
        assert abs(run.candidates[0].score - 1.0) < 1e-6

    def test_filters_come_before_the_cut(self, tmp_path: Path) -> None:
        """A hundred foreign rows do not starve one of ours."""
        foreign = [fact(f"m_{i}", "tea tea tea", scope=OTHER) for i in range(100)]
        store = self.filled(tmp_path, [*foreign, fact("m_mine", "some tea", scope=USER)])
        vector = self.embedder.query("tea")
        assert ids(store.keyword(["tea"], self.where(), 1)) == ["m_mine"]
        assert ids(store.nearest(vector, self.embedder.fingerprint, self.where(), 1)) == ["m_mine"]

    def test_every_filter_says_the_same_as_where(self, tmp_path: Path) -> None:
        """Kinds, tags, paths, dates, expiry, validity and supersession are those of Where.allows."""
        memories = [
            fact("m_plain", "tea"),
            fact("m_chunk", "tea", kind="chunk", source=Source("notes/a.md", 1, 2, "h")),
            fact("m_tag", "tea", tags=("hot", "x")),
            fact("m_old", "tea", date=NOW - 1e6),
            fact("m_gone", "tea", superseded_by="m_plain", superseded_at=NOW - 5),
            fact("m_expired", "tea", expires=NOW - 1),
            fact("m_future", "tea", valid_from=NOW + 1),
            fact("m_past", "tea", valid_until=NOW - 1),
            fact("m_over", "tea", created=NOW, valid_until=NOW - 50),
            fact("m_late", "tea", created=NOW, valid_until=NOW + 50),
            fact("m_foreign", "tea", scope=OTHER),
            fact("m_undated", "tea", date=None),
            fact("m_open", "tea", metadata={"status": "open", "n": 2, "tags": ["a", {"b": None}]}),
            fact("m_shut", "tea", metadata={"status": "shut", "n": 2.5, "is": True}, subject="pot", attribute="lid"),
        ]
        is_open, many = Compares("status", "$eq", '"open"'), Compares("n", "$gte", "2.5")
        store = self.filled(tmp_path, memories)
        vector, space = self.embedder.query("tea"), self.embedder.fingerprint
        for where in (
            self.where(),
            self.where(kinds=frozenset({"chunk"})),
            self.where(tags=frozenset({"hot"})),
            self.where(path="notes/*"),
            self.where(since=NOW - 100),
            self.where(before=NOW - 100),
            self.where(include_superseded=True),
            self.where(as_of=NOW - 7),
            self.where(as_of=NOW - 100),
            self.where(only_expired=True),
            self.where(metadata=is_open),
            self.where(metadata=Not(is_open)),
            self.where(metadata=Either((is_open, All((many, Compares("is", "$in", "[1, true]")))))),
            self.where(metadata=Compares("tags", "$eq", '["a", {"b": null}]'), kinds=frozenset({"fact"})),
            self.where(metadata=Compares("n", "$lt", '"3"')),
        ):
            expected = {memory.id for memory in memories if where.allows(memory)}
            assert set(ids(store.keyword(["tea"], where, 50))) == expected
            assert set(ids(store.nearest(vector, space, where, 50))) == expected
            assert {memory.id for memory in store.browse(where, 50)} == expected

    def test_scopes_are_named_one_by_one_or_as_a_branch(self, tmp_path: Path) -> None:
        """Whole segments are compared: team:ab is not below team:a."""
        names = ("global", "team:a", "team:ab", "team:a/agent:b", "team:a/agent:b/user:1", "team:a.b")
        scopes = [*map(Scope.parse, names)]
        store = self.filled(tmp_path, [fact(f"m_{n}", f"tea {n}", scope=scope) for n, scope in enumerate(scopes)])
        assert store.scopes() == frozenset(scopes)
        assert {*map(str, store.scopes(Scope.parse("team:a")))} == {"team:a", "team:a/agent:b", "team:a/agent:b/user:1"}
        assert {*map(str, store.scopes(Scope.parse("team:a/agent:b/user:1")))} == {"team:a/agent:b/user:1"}
        assert not store.scopes(Scope.parse("team:b"))

    def test_a_language_filters_every_run_before_the_cut(self, tmp_path: Path) -> None:
        """Memories pass by their detected language, or that of the setting; no others, and none is starved."""
        german = [fact(f"m_{i}", f"das ist der Tee mit der Nummer {i} tea") for i in range(9)]
        english = fact("m_en", "this is the tea of the house", name="Tea House")
        store = self.filled(tmp_path, [*german, english, fact("m_bare", "tea")])
        vector, space = self.embedder.query("tea"), self.embedder.fingerprint
        where = self.where(language="en")
        assert {*ids(store.keyword(["tea"], where, 3))} == {"m_en", "m_bare"}
        assert {*ids(store.nearest(vector, space, where, 3))} == {"m_en", "m_bare"}
        assert ids(store.named(probe_for("tea house"), where, 3)) == ["m_en"]
        assert {memory.id for memory in store.browse(where, 50)} == {"m_en", "m_bare"}
        assert store.passing(["m_0", "m_en"], self.where(language="de")) == {"m_0"}
        assert not store.browse(self.where(language="fr"), 1)

    def test_memories_that_show_another_language_are_told(self, tmp_path: Path) -> None:
        """Of the given visible ones, each with its language; memories without a detected language are absent."""
        texts = {"m_de": "das ist der Tee", "m_en": "this is the tea", "m_bare": "tea", "m_ru": "это чай"}
        memories = [fact(identity, text) for identity, text in texts.items()]
        store = self.filled(tmp_path, [*memories, fact("m_foreign", "das ist der Tee", scope=OTHER)])
        scopes = self.where().scopes
        assert store.in_other_languages([*texts, "m_foreign"], "en", scopes) == {"m_de": "de", "m_ru": "ru"}
        assert store.in_other_languages(["m_en", "m_bare"], "de", scopes) == {"m_en": "en"}
        assert store.in_other_languages(["m_en", "m_bare", "m_none"], "en", scopes) == {}

    def test_the_pool_counts_sources_not_chunks(self, tmp_path: Path) -> None:
        """Chunks of one long file do not fill the pool."""
        long = [
            fact(f"m_{i:02}", f"tea number{i}", kind="chunk", source=Source("long.md", i, i, str(i))) for i in range(40)
        ]
        store = self.filled(tmp_path, [*long, fact("m_fact", "tea once upon a time in a far away country")])
        assert "m_fact" in ids(store.keyword(["tea"], self.where(), 2))

    def test_ties_do_not_depend_on_the_order_of_inserts(self, tmp_path: Path) -> None:
        """Content breaks ties, never the row number."""
        memories = [fact(f"m_{i}", "tea") for i in range(6)]
        first = self.filled(tmp_path / "1", memories)
        second = self.filled(tmp_path / "2", memories[::-1])
        vector, space = self.embedder.query("tea"), self.embedder.fingerprint
        assert ids(first.keyword(["tea"], self.where(), 3)) == ids(second.keyword(["tea"], self.where(), 3))
        assert ids(first.nearest(vector, space, self.where(), 3)) == ids(second.nearest(vector, space, self.where(), 3))

    def test_names_are_found_by_key_words_prefix_window_and_typo(self, tmp_path: Path) -> None:
        """The name run proposes every relation there is."""
        store = self.filled(tmp_path, [fact("m_1", "sets alarms", name="Remind Me", slug="remind-me")])
        for text in ("Remind Me", "remindme", "REMIND-ME", "me remind", "remi", "how do I use remind me"):
            assert ids(store.named(probe_for(text), self.where(), 5)) == ["m_1"], text
        assert ids(store.named(probe_for("remnd me", typos=True), self.where(), 5)) == ["m_1"]
        assert ids(store.named(probe_for("remnd me", typos=False), self.where(), 5)) == []

    def test_score_covers_candidates_that_no_run_listed(self, tmp_path: Path) -> None:
        """Absence from a list is not evidence; absence of a vector is."""
        store = self.filled(tmp_path, [fact("m_1", "green tea"), fact("m_2", "coffee")])
        store.write(Changes(put=[entry_for(fact("m_3", "tea without vector"), "en")]))
        signals = {
            signal.name: signal
            for signal in store.score(
                ["m_1", "m_2", "m_3"], ["tea"], self.embedder.query("tea"), self.embedder.fingerprint, self.where()
            )
        }
        assert set(signals["keyword"].values) == {"m_1", "m_2", "m_3"}
        assert signals["keyword"].values["m_2"] == 0.0
        assert set(signals["vector"].values) == {"m_1", "m_2"}

    def test_scores_equal_those_of_the_run(self, tmp_path: Path) -> None:
        """A run and `score` return the same numbers."""
        store = self.filled(tmp_path, [fact("m_1", "green tea"), fact("m_2", "tea tea milk"), fact("m_3", "coffee")])
        vector, space = self.embedder.query("green tea"), self.embedder.fingerprint
        signals = store.score(["m_1", "m_2", "m_3"], ["green", "tea"], vector, space, self.where())
        for run in (store.keyword(["green", "tea"], self.where(), 9), store.nearest(vector, space, self.where(), 9)):
            values = next(signal.values for signal in signals if signal.name == run.name)
            assert {candidate.id: candidate.score for candidate in run.candidates}.items() <= values.items()

    def test_vectors_are_those_nearest_compares_and_stay_behind_the_wall(self, tmp_path: Path) -> None:
        """A vector comes back at unit length and gives the cosine of the run; foreign and missing ones do not."""
        foreign = fact("m_3", "tea pot", scope=OTHER)
        store = self.filled(tmp_path, [fact("m_1", "green tea"), fact("m_2", "coffee"), foreign])
        store.write(Changes(put=[entry_for(fact("m_4", "no vector yet"), "en")]))
        question, space = self.embedder.query("tea"), self.embedder.fingerprint
        vectors = store.vectors(["m_1", "m_2", "m_3", "m_4", "m_5"], space, MINE)
        assert sorted(vectors) == ["m_1", "m_2"]
        for identity, cosine in store.nearest(question, space, self.where(), 9).candidates:
            assert abs(float((vectors[identity] * question).sum()) - cosine) < 1e-5
            assert abs(float((vectors[identity] ** 2).sum()) - 1.0) < 1e-5
        assert store.vectors(["m_1"], "another space", MINE) == {}
        assert store.vectors([], space, MINE) == {}

    def test_statistics_are_those_of_the_scope(self, tmp_path: Path) -> None:
        """Another user's inserts change nothing for this one."""
        store = self.filled(tmp_path, [fact("m_1", "tea", scope=USER), fact("m_2", "two words")])
        before = store.statistics(["tea"], MINE)
        self.put(store, [fact(f"m_x{i}", "tea", scope=OTHER) for i in range(20)])
        assert store.statistics(["tea"], MINE) == before
        assert (before.total, before.frequency["tea"]) == (2, 1)

    def test_the_manifest_remembers_files(self, tmp_path: Path) -> None:
        """Files come and go with their records."""
        store = self.open_store(tmp_path)
        record = FileRecord("a.md", USER, 3, 4, "h")
        store.write(Changes(files=[record]))
        assert store.manifest(USER) == {"a.md": record}
        assert store.manifest(GLOBAL) == {}
        store.write(Changes(files=[record._replace(size=9)]))
        assert store.manifest(USER)["a.md"].size == 9
        store.write(Changes(forget_files=[(USER, "a.md")]))
        assert store.manifest(USER) == {}

    def test_supersession_is_written_with_its_moment(self, tmp_path: Path) -> None:
        """The old memory knows what replaced it and when."""
        store = self.filled(tmp_path, [fact("m_1", "tea")])
        entry = entry_for(fact("m_2", "coffee", supersedes="m_1"), "en")
        store.write(Changes(put=[entry], superseded={"m_1": ("m_2", NOW)}))
        old = store.get(["m_1"], MINE)["m_1"]
        assert (old.superseded_by, old.superseded_at) == ("m_2", NOW)
        assert ids(store.keyword(["tea"], self.where(), 5)) == []

    def test_an_id_of_another_scope_is_not_overwritten(self, tmp_path: Path) -> None:
        """Writes are isolated by scope too."""
        store = self.filled(tmp_path, [fact("m_1", "tea", scope=OTHER)])
        try:
            self.put(store, [fact("m_1", "coffee", scope=USER)])
        except StoreError:
            pass
        else:
            raise AssertionError("the id of another scope was overwritten")
        assert store.get(["m_1"], frozenset({OTHER}))["m_1"].text == "tea"

    def test_writing_a_replaced_memory_again_does_not_bring_it_back(self, tmp_path: Path) -> None:
        """A file that is read again keeps the supersession of its chunks, unless the change sets it."""
        store = self.filled(tmp_path, [fact("m_1", "tea"), fact("m_2", "coffee")])
        store.write(Changes(superseded={"m_1": ("m_2", NOW)}))
        self.put(store, [fact("m_1", "tea", date=NOW - 3)])
        assert store.get(["m_1"], MINE)["m_1"].superseded_by == "m_2"
        store.write(Changes(superseded={"m_1": None}))
        assert ids(store.keyword(["tea"], self.where(), 5)) == ["m_1"]

    def test_what_a_removed_memory_had_replaced_comes_back(self, tmp_path: Path) -> None:
        """Forgetting the correction brings back what it corrected."""
        store = self.filled(tmp_path, [fact("m_1", "tea"), fact("m_2", "coffee")])
        store.write(Changes(superseded={"m_1": ("m_2", NOW)}))
        store.write(Changes(remove=["m_2"]))
        assert ids(store.keyword(["tea"], self.where(), 5)) == ["m_1"]

    def test_replacing_a_file_leaves_only_what_is_put(self, tmp_path: Path) -> None:
        """Old chunks go even if another process wrote the file in between; facts and other scopes stay."""
        place = Source("a.md", 1, 1, "h")
        store = self.filled(
            tmp_path,
            [
                fact("m_old", "tea old", kind="chunk", source=place),
                fact("m_kept", "tea kept", kind="chunk", source=place),
                fact("m_fact", "tea fact"),
                fact("m_other", "tea other", kind="chunk", source=place, scope=USER),
            ],
        )
        kept = entry_for(fact("m_kept", "tea kept", kind="chunk", source=place), "en")
        store.write(Changes(put=[kept], replace_files=[(GLOBAL, "a.md")]))
        assert set(ids(store.keyword(["tea"], self.where(), 9))) == {"m_kept", "m_fact", "m_other"}

    def test_path_patterns_are_those_of_the_shell(self, tmp_path: Path) -> None:
        """`[!a]` leaves out a, in every store."""
        chunks = [fact(f"m_{n}", "tea", kind="chunk", source=Source(f"n/{n}.md", 1, 1, n)) for n in "ab"]
        store = self.filled(tmp_path, chunks)
        assert ids(store.keyword(["tea"], self.where(path="n/[!a].md"), 5)) == ["m_b"]

    def test_forgetting_the_middle_of_a_chain_hands_the_rest_on(self, tmp_path: Path) -> None:
        """a was replaced by b, b by c: without b, a is replaced by c."""
        store = self.filled(tmp_path, [fact("m_a", "tea"), fact("m_b", "tea b"), fact("m_c", "tea c")])
        store.write(Changes(superseded={"m_a": ("m_b", NOW - 2), "m_b": ("m_c", NOW - 1)}))
        store.write(Changes(remove=["m_b"]))
        assert ids(store.keyword(["tea"], self.where(), 5)) == ["m_c"]
        assert store.get(["m_a"], MINE)["m_a"].superseded_by == "m_c"

    def test_what_comes_back_after_a_while_is_still_replaced(self, tmp_path: Path) -> None:
        """A file that was away, as on another branch, is superseded again by its successor."""
        old = fact("m_old", "tea", kind="chunk", source=Source("a.md", 1, 1, "h"))
        store = self.filled(tmp_path, [old, fact("m_new", "tea now", supersedes="m_old")])
        store.write(Changes(superseded={"m_old": ("m_new", NOW)}))
        store.write(Changes(replace_files=[(GLOBAL, "a.md")]))
        self.put(store, [old])
        assert ids(store.keyword(["tea"], self.where(), 5)) == ["m_new"]

    def test_what_moves_takes_its_successor_along(self, tmp_path: Path) -> None:
        """A renamed file has new ids and the old supersession."""
        old = fact("m_old", "tea", kind="chunk", source=Source("a.md", 1, 1, "h"))
        store = self.filled(tmp_path, [old, fact("m_new", "tea now", supersedes="m_old")])
        store.write(Changes(superseded={"m_old": ("m_new", NOW)}))
        moved = entry_for(fact("m_moved", "tea", kind="chunk", source=Source("b.md", 1, 1, "h")), "en")
        store.write(Changes(put=[moved], replace_files=[(GLOBAL, "a.md")], renamed={"m_old": "m_moved"}))
        assert store.get(["m_moved"], MINE)["m_moved"].superseded_by == "m_new"
        assert store.get(["m_new"], MINE)["m_new"].supersedes == "m_moved"

    def test_nothing_is_replaced_across_scopes_or_by_itself(self, tmp_path: Path) -> None:
        """Supersession is isolated by scope too."""
        store = self.filled(tmp_path, [fact("m_1", "tea", scope=USER), fact("m_2", "tea", scope=OTHER)])
        for other in ("m_2", "m_1"):
            store.write(Changes(superseded={"m_1": (other, NOW)}))
        assert ids(store.keyword(["tea"], self.where(), 5)) == ["m_1"]

    def test_the_last_of_equal_ids_in_one_write_wins(self, tmp_path: Path) -> None:
        """Duplicate ids raise no raw error of the database."""
        twice = [fact("m_1", "tea"), fact("m_1", "coffee")]
        assert self.filled(tmp_path, twice).get(["m_1"], MINE)["m_1"].text == "coffee"

    def test_a_sample_is_the_same_whatever_the_order_of_writing(self, tmp_path: Path) -> None:
        """The sample depends on the memories alone, not on other content of the store."""
        memories = [fact(f"m_{number}", f"note number {number}") for number in range(30)]
        hidden = [fact(f"o_{number}", "tea", scope=OTHER) for number in range(9)]
        one = self.filled(tmp_path / "1", [*memories, *hidden])
        two = self.filled(tmp_path / "2", memories[::-1])
        drawn = one.sample(self.where(), 10)
        assert drawn == two.sample(self.where(), 10)
        assert len({memory.id for memory in drawn}) == 10
        assert set(drawn) <= set(memories)
        assert drawn == one.sample(self.where(), 20)[:10]

    def test_a_sample_holds_only_what_may_answer(self, tmp_path: Path) -> None:
        """Filters apply, and a small store returns all it has."""
        store = self.filled(tmp_path, [fact("m_1", "tea"), fact("m_2", "milk", expires=NOW - 1), fact("m_3", "oat")])
        assert {memory.id for memory in store.sample(self.where(), 10)} == {"m_1", "m_3"}


class MatchingContract(StoreContract):
    """The contract of stores, extended by expressions of the advanced syntax."""

    def asked(self, store: Store, text: str, **fields: object) -> Query:
        """Return a query in the advanced syntax, resolved against a store."""
        query = Query(text, self.where(**fields), syntax="advanced")
        return resolve_expression(parse(query, "en"), store, "en").query

    def passing(self, store: Store, text: str, memories: Sequence[str], **fields: object) -> set[str]:
        """Return those of some memories that pass a query."""
        return store.passing(memories, self.asked(store, text, **fields).where)

    def test_words_that_begin_alike_are_counted_by_what_the_caller_may_see(self, tmp_path: Path) -> None:
        """A prefix finds terms of the visible scopes, and the document frequency of each."""
        texts = ["deploy the pots", "deploy them again", "deploying depends", "the teapot"]
        store = self.filled(tmp_path, [fact(f"m_{i}", text, scope=USER) for i, text in enumerate(texts)])
        self.put(store, [fact("m_9", "depth of a well", scope=OTHER)])
        # deploying is stemmed to deploy; depth is another's
        assert dict(store.beginning("dep", MINE)) == {"deploy": 3, "depend": 1}
        assert dict(store.beginning("zebra", MINE)) == {}

    def test_a_word_that_is_gone_begins_nothing(self, tmp_path: Path) -> None:
        """Deleted and replaced memories lose their terms, flushed long ago or not."""
        many = [fact(f"m_{i}", f"alpha{i} text") for i in range(150)]
        store = self.filled(tmp_path, [*many, fact("m_x", "alphabet")])
        store.write(Changes(remove=[f"m_{i}" for i in range(1, 150)]))
        assert dict(store.beginning("alpha", MINE)) == {"alpha0": 1, "alphabet": 1}
        self.put(store, [fact("m_x", "beta")])
        assert dict(store.beginning("alph", MINE)) == {"alpha0": 1}

    def test_words_with_accents_are_known_by_what_is_typed_without(self, tmp_path: Path) -> None:
        """Other spellings are those of the visible scopes, flushed long ago or fresh."""
        many = [fact(f"m_{i}", f"café{i} text") for i in range(150)]
        store = self.filled(tmp_path, [*many, fact("m_x", "a cafe, a Müller", scope=USER)])
        self.put(store, [fact("m_z", "a Núñez", scope=OTHER), fact("m_y", "a cafè", scope=USER)])
        typed = ["cafe", "cafe7", "muller", "mueller", "nunez", "text"]
        assert dict(store.spelled(typed, MINE)) == {
            "cafe": ("cafè",), "cafe7": ("café7",), "muller": ("müller",), "mueller": ("müller",),
        }  # fmt: skip

    def test_a_beginning_is_that_of_words_with_accents_as_well(self, tmp_path: Path) -> None:
        """A prefix without accents matches words with them; a prefix with one matches only that."""
        many = [fact(f"m_{i}", f"café{i} text", scope=USER) for i in range(150)]
        store = self.filled(
            tmp_path, [*many, fact("m_x", "cafeteria, École", scope=USER), fact("m_z", "cafè", scope=OTHER)]
        )
        store.write(Changes(remove=[f"m_{i}" for i in range(1, 150)]))
        self.put(store, [fact("m_y", "cafés", scope=USER)])
        assert dict(store.beginning("cafe", MINE)) == {"cafeteria": 1, "café": 1, "café0": 1}
        assert dict(store.beginning("ecol", MINE)) == {"école": 1}
        assert dict(store.beginning("café", MINE)) == {"café": 1, "café0": 1}
        assert self.passing(store, "cafe*", ["m_0", "m_x", "m_y"]) == {"m_0", "m_x", "m_y"}
        assert self.passing(store, "NOT cafe*", ["m_0", "m_x", "m_y"]) == set()

    def test_a_spelling_that_was_not_asked_for_counts_half_and_is_told(self, tmp_path: Path) -> None:
        """Both spellings are one term with one idf; the spelling in the query counts twice as often."""
        texts = ["café pot", "cafe pot", "café café", "green tea"]
        store = self.filled(tmp_path, [fact(f"m_{i}", text) for i, text in enumerate(texts)])
        term = spelled("cafe", ["café"], is_known=True)
        assert store.statistics([term], MINE).frequency == {term: 3}
        [signal] = store.score(["m_0", "m_1", "m_2"], [term], None, "", self.where())
        told = {key: [found.label for found in signal.terms[key]] for key in ("m_0", "m_1", "m_2")}
        assert told == {"m_0": ["cafe as café"], "m_1": ["cafe"], "m_2": ["cafe as café"]}
        assert signal.values["m_0"] < signal.values["m_1"]
        # Two halves are as much as one whole, in texts of one length.
        assert signal.values["m_2"] == signal.values["m_1"]
        assert ids(store.keyword([term], self.where(), 3))[-1] == "m_0"

    def test_words_are_found_in_every_script_and_as_identifiers(self, tmp_path: Path) -> None:
        """Prefixes work in every script, and symbols inside identifiers count."""
        texts = ["развёртывание сервера", "api-key rotation", "日本語の検索", "snake_case_name", "c++ code"]
        store = self.filled(tmp_path, [fact(f"m_{i}", text) for i, text in enumerate(texts)])
        everything = [f"m_{i}" for i in range(len(texts))]
        expected = {
            "развёрт*": {"m_0"},
            "api-k*": {"m_1"},
            "日*": {"m_2"},
            "日本*": {"m_2"},
            "snake_c*": {"m_3"},
            "c+*": {"m_4"},
            "rotat*": {"m_1"},
        }
        assert {text: self.passing(store, text, everything) for text in expected} == expected

    def test_an_expression_is_a_filter_in_every_run(self, tmp_path: Path) -> None:
        """Keyword, vector and name runs, browsing and sampling list only memories that it matches."""
        memories = [
            fact("m_1", "green tea", name="Tea Pot"),
            fact("m_2", "green tea with milk", name="Tea Pot"),
            fact("m_3", "coffee with milk", name="Tea Pot"),
            fact("m_4", "oil"),
        ]
        store = self.filled(tmp_path, memories)
        where = self.asked(store, "tea AND NOT milk").where
        vector = self.embedder.query("green tea milk coffee oil")
        assert ids(store.keyword(["tea", "milk", "oil"], where, 10)) == ["m_1"]
        assert ids(store.nearest(vector, self.embedder.fingerprint, where, 10)) == ["m_1"]
        assert ids(store.named(probe_for("Tea Pot"), where, 10)) == ["m_1"]
        assert [memory.id for memory in store.browse(where, 10)] == ["m_1"]
        assert [memory.id for memory in store.sample(where, 10)] == ["m_1"]
        assert store.passing(["m_1", "m_2", "m_9"], where) == {"m_1"}

    def test_an_expression_changes_no_score(self, tmp_path: Path) -> None:
        """Statistics are those of the scope, whatever the filter."""
        texts = ["green tea", "green tea with milk", "milk", "tea tea"]
        store = self.filled(tmp_path, [fact(f"m_{i}", text) for i, text in enumerate(texts)])
        free = store.keyword(["tea", "milk"], self.where(), None)
        kept = store.keyword(["tea", "milk"], self.asked(store, "tea -milk").where, None)
        assert {found.id: found.score for found in kept.candidates} == {
            found.id: found.score for found in free.candidates if found.id in ("m_0", "m_3")
        }

    def test_fields_say_what_a_memory_is(self, tmp_path: Path) -> None:
        """Names and headings by their words, paths by folder or pattern, the others by their value."""
        memories = [
            fact(
                "m_1", "one", kind="chunk", name="Tea Pot", headings=("Häuser am See", "Two"), tags=("Work", "a b"),
                source=Source("notes/tea.md", 1, 2, "h1"),
            ),
            fact(
                "m_2", "two\n\n## Lids of pots", title="Pots", slug="pots-2", aliases=("kettle",), category="decision",
            ),
            fact("m_3", "3\nHandles\n---", speaker="Ann Lee", session="s", source=Source("log.jsonl", 1, 1, "h3")),
        ]  # fmt: skip
        store = self.filled(tmp_path, memories)
        everything = ["m_1", "m_2", "m_3"]
        expected = {
            "name:pot": {"m_1"}, "title:pot*": {"m_1", "m_2"}, 'name:"tea pot"': {"m_1"}, 'name:"pot tea"': set(),
            "name:kettle": {"m_2"}, "heading:lids": {"m_2"}, "heading:handles": {"m_3"}, "heading:3": set(),
            "heading:HÄUSER": {"m_1"}, 'heading:"am see"': {"m_1"}, 'heading:"see two"': set(),
            "path:notes": {"m_1"}, "path:notes/": {"m_1"}, "path:tea.md": {"m_1"}, "path:*.md": {"m_1"},
            "path:not": set(), "path:not*": {"m_1"}, "tag:work": {"m_1"}, 'tag:"a b"': {"m_1"}, "tag:wor": set(),
            "tag:wor*": {"m_1"}, "category:decision": {"m_2"}, "kind:chunk": {"m_1"}, "-kind:chunk": {"m_2", "m_3"},
            "speaker:ann": {"m_3"}, "NOT (tag:work OR speaker:lee)": {"m_2"},
        }  # fmt: skip
        assert {text: self.passing(store, text, everything) for text in expected} == expected

    def test_a_term_for_several_counts_as_one(self, tmp_path: Path) -> None:
        """Its frequency is that of the union, and its occurrences in a memory are summed before scoring."""
        store = self.filled(tmp_path, [fact("m_1", "tea teapot pot"), fact("m_2", "tea tea pot"), fact("m_3", "oil")])
        both = several("tea*", ["tea", "teapot"])
        assert store.statistics([both], MINE).frequency == {both: 2}
        [signal] = store.score(["m_1", "m_2", "m_3"], [both], None, "", self.where())
        # two of three tokens each, whichever they are
        assert signal.values["m_1"] == signal.values["m_2"] > 0
        assert not signal.values["m_3"]
        assert [*signal.terms["m_1"]] == [("tea*", "words", "own", signal.values["m_1"])]
        assert ids(store.keyword([several("zebra*", [])], self.where(), 10)) == []

    def test_a_term_may_stand_for_words_and_phrases(self, tmp_path: Path) -> None:
        """A memory that holds any of them holds the term, as often as all together; flushed long ago or not."""
        many = [fact(f"m_{i}", f"oil {i}") for i in range(100)]
        store = self.filled(tmp_path, [fact("m_a", "green tea pot"), fact("m_b", "teapot"), *many])
        self.put(store, [fact("m_c", "teapot, or tea pot"), fact("m_d", "pot of tea")])
        either = several("teapot", ["teapot", "tea pot"])
        assert store.statistics([either], MINE).frequency == {either: 3}
        found = store.passing(["m_a", "m_b", "m_c", "m_d", "m_1"], self.where(matching=Holds("teapot", either)))
        assert found == {"m_a", "m_b", "m_c"}
        assert {*ids(store.keyword([either], self.where(), 10))} == {"m_a", "m_b", "m_c"}

    def test_an_identifier_is_found_however_a_text_writes_it(self, tmp_path: Path) -> None:
        """As one word, or as its adjacent parts; a phrase around it matches the same spellings."""
        texts = [
            "the new night-shift begins", "the new nightShift begins", "a new night shift begins",
            "new nightshift begins", "nights without a shift", "C++ code", "C code", "an A/B test", "plan B test",
            "TGF-β1 signals", "TGFβ1 signals", "TGF beta1 signals", "two GPUs", "one GPU",
        ]  # fmt: skip
        store = self.filled(tmp_path, [fact(f"m_{i}", text) for i, text in enumerate(texts)])
        expected = {
            "night-shift": {0, 1, 2, 3}, "night_shift": {0, 1, 2, 3}, "nightShift": {0, 1, 2, 3},
            "nightshift": {0, 1, 3}, "night shift": {0, 1, 2, 4}, '"new night-shift begins"': {0, 1, 2, 3},
            '"night-shift begins"': {0, 1, 2, 3}, '"night-shift ends"': set(), "begins -night-shift": set(),
            "C++": {5}, "A/B test": {7}, '"A/B test"': {7}, "TGFβ1": {9, 10, 11}, "TGF-beta1": {9, 10, 11},
            '"TGFβ1 signals"': {9, 10, 11}, "GPUs": {12, 13}, "GPU": {12, 13},
        }  # fmt: skip
        everything = [f"m_{i}" for i in range(len(texts))]
        found = {text: {int(one[2:]) for one in self.passing(store, text, everything)} for text in expected}
        assert found == expected

    def test_other_filters_and_the_wall_still_stand(self, tmp_path: Path) -> None:
        """An expression, even a negated one, gives no access to other scopes."""
        memories = [
            fact("m_1", "tea", scope=OTHER),
            fact("m_2", "tea", expires=NOW - 1),
            fact("m_3", "tea", tags=("x",)),
            fact("m_4", "tea"),
        ]
        store = self.filled(tmp_path, memories)
        everything = [memory.id for memory in memories]
        assert self.passing(store, "NOT coffee", everything) == {"m_3", "m_4"}
        assert self.passing(store, "te*", everything, tags=frozenset({"x"})) == {"m_3"}
        denied: Expression = Not(Holds("oil", "oil"))
        assert store.passing(everything, Where(MINE, now=NOW, matching=denied, as_of=NOW)) == {"m_3", "m_4"}

    def test_phrases_of_any_length_are_held_side_by_side(self, tmp_path: Path) -> None:
        """A phrase is its words in order and adjacent."""
        store = self.filled(tmp_path, [fact("m_1", "green tea pot"), fact("m_2", "green pot tea pot")])
        where = self.where(matching=asked_for('"green tea pot"').expression)
        assert store.passing(["m_1", "m_2"], where) == {"m_1"}
        assert store.passing(["m_1", "m_2"], replace(where, matching=asked_for("pot").expression)) == {"m_1", "m_2"}
