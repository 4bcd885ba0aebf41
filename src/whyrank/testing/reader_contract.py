"""What every store must know of the readers that made the words of its memories."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from ..ingest.entries import entry_for
from ..ports import Changes
from .store_setting import MINE, OTHER, USER, StoreSetting, fact


class ReaderContract(StoreSetting):
    """A part of `StoreContract`."""

    def test_memories_are_counted_by_the_reader_that_made_their_words(self, tmp_path: Path) -> None:
        """What a caller does not see is not counted; each write may be another reader's, an earlier one's as well."""
        store = self.open_store(tmp_path)
        assert store.readers(MINE) == {}
        written = [("m_1", MINE, 3), ("m_2", USER, 3), ("m_3", OTHER, 3), ("m_4", USER, 5), ("m_5", USER, 4)]
        for identity, scope, reader in written:
            memory = fact(identity, f"tea {identity}", **({} if scope is MINE else {"scope": scope}))
            store.write(Changes(put=[replace(entry_for(memory, "en"), reader=reader)]))
        assert store.readers(MINE) == {3: 2, 5: 1, 4: 1}
        assert store.readers(frozenset({OTHER})) == {3: 1}
        assert [memory.id for memory in store.read_before(5, 10)] == ["m_1", "m_2", "m_3", "m_5"]
        assert [memory.id for memory in store.read_before(4, 2)] == ["m_1", "m_2"]
        assert store.read_before(3, 10) == []

    def test_what_is_stored_again_has_the_words_of_who_stores_it(self, tmp_path: Path) -> None:
        """Until none of the earlier reader's is left."""
        store = self.open_store(tmp_path)
        old = [replace(entry_for(fact(f"m_{i}", f"tea {i}"), "en"), reader=0) for i in range(3)]
        store.write(Changes(put=old))
        for left in (2, 1, 0):
            [memory] = store.read_before(4, 1)
            store.write(Changes(put=[replace(entry_for(memory, "en"), reader=4)]))
            assert store.readers(MINE) == ({0: left, 4: 3 - left} if left else {4: 3})
        assert store.read_before(4, 1) == []

    def test_what_is_removed_has_no_reader(self, tmp_path: Path) -> None:
        """Nothing waits for what is gone."""
        store = self.open_store(tmp_path)
        store.write(Changes(put=[replace(entry_for(fact("m_1", "tea"), "en"), reader=1)]))
        store.write(Changes(remove=["m_1"]))
        assert (store.readers(MINE), store.read_before(9, 9)) == ({}, [])
