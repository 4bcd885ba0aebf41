"""What every store must do with facts whose text changes, and with texts that two would say."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ..errors import StoreChanged
from ..ingest.entries import content_hash, entry_for
from ..ports import Changes, Recall, Store
from ..types import GLOBAL, Former, Memory, Source
from .store_setting import MINE, NOW, USER, StoreSetting, fact, ids


class RestatingContract(StoreSetting):
    """A part of `StoreContract`."""

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
        """Words, meaning, text and id; recalls, tags and what it replaced stay, and what it was is told."""
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
        """Only the last is found, the vectors of the others are gone, and the store answers like one written whole."""
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
        """Whatever it changes; nothing of it is written."""
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
        """By a new text, a new fact, or being found again; other scopes and what was replaced do not count."""
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
