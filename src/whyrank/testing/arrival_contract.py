"""What every store must do with facts that are taken in one by one: kept and found at once, whatever is done next."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from ..analysis.names import probe_for
from ..lifetimes import NEVER
from ..ports import Arrival, Changes, Failure, Store, Written
from ..types import Memory
from .store_setting import MINE, NOW, OTHER, USER, StoreSetting, fact, ids


class ArrivalContract(StoreSetting):
    """A part of `StoreContract`."""

    def arrival(self, memory: Memory) -> Arrival:
        """Return a fact that arrives with its vector."""
        return Arrival(memory, "en", self.embedder.fingerprint, self.embedder.documents([memory.text])[0])

    def opened(self, folder: Path) -> Store:
        """Return a store whose space is known, so that vectors may arrive."""
        return self.filled(folder, [fact("m_0", "black coffee")])

    def test_a_fact_that_is_taken_in_is_found_by_every_run(self, tmp_path: Path) -> None:
        """Words, meaning, name, text and id, with the statistics of all."""
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
        """The id, the text in its scope, something that replaced it, a key: each is for `write` to think about."""
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
        nowhere = {"h_1": Failure("h_1", 1, "no direction", NOW, NEVER)}  # which is nobody's failure
        store.write(Changes(space=self.embedder.fingerprint, failures=nowhere))
        assert store.take_in(self.arrival(fact("m_2", "black tea")))
        failed = {"": Failure("", 1, "away", NOW, NOW + 1)}
        store.write(Changes(space=self.embedder.fingerprint, failures=failed))
        assert not store.take_in(sound)
        assert store.take_in(Arrival(sound.memory, "en"))

    def test_a_note_that_is_another_by_now_lets_nothing_in(self, tmp_path: Path) -> None:
        """The vector was made by what it said."""
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
