"""What every store must do with the life of memories: their pasts, keys, recalls, and how they end."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ..errors import ConfigError, StoreChanged, StoreError
from ..ingest.entries import entry_for
from ..ports import Changes, FileRecord, Recall, Written, sorting_key
from ..types import GLOBAL, Former, Order, Scope, Source
from .store_setting import MINE, NOW, OTHER, USER, StoreSetting, fact, ids


class LifeContract(StoreSetting):
    """The part of the contract that is about lives."""

    def test_facts_are_known_by_their_text_in_their_own_scope(self, tmp_path: Path) -> None:
        """Case and white space do not count; chunks and other scopes are not looked at."""
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

    def test_lists_are_sorted_as_asked(self, tmp_path: Path) -> None:
        """The latest, weightiest, most recalled first; no date last, no importance as 3; ties by content key."""
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
        """What is listed is what the filter itself says of each memory."""
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
        """Nobody's change is written over unseen; a recall in between is no change."""
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
        """They survive being put again, and stay behind the wall."""
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
        """What an expired memory had replaced stays replaced, and what was put off meanwhile stays."""
        store = self.filled(
            tmp_path, [fact("m_1", "tea"), fact("m_2", "tea two", expires=NOW - 1), fact("m_3", "tea", expires=NOW + 9)]
        )
        store.write(Changes(superseded={"m_1": ("m_2", NOW - 5)}))
        before = ids(store.keyword(["tea"], self.where(), 5))
        store.write(Changes(prune={"m_2": NOW, "m_3": NOW, "m_none": NOW}))
        assert ids(store.keyword(["tea"], self.where(), 5)) == before == ["m_3"]
        assert set(store.get(["m_1", "m_2", "m_3"], MINE)) == {"m_1", "m_3"}

    def test_a_cleared_scope_is_empty_and_others_are_whole(self, tmp_path: Path) -> None:
        """Memories, files, keys and pasts of the scope go, in one write."""
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
        assert one.purge() == ()
        vector = self.embedder.query("tea from the valley")
        for scope in (USER, OTHER):
            where = self.where(scopes=frozenset({Scope("user", scope.name)}))
            assert one.keyword(["tea", "valley"], where, 99) == two.keyword(["tea", "valley"], where, 99)
            space = self.embedder.fingerprint
            assert one.nearest(vector, space, where, 99) == two.nearest(vector, space, where, 99)
