"""What every store must do with notes: small texts by name, written with the memories they belong to."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from ..errors import StoreError
from ..ingest.entries import entry_for
from ..ports import Changes, Store
from ..types import GLOBAL, Memory, Scope, Where


class NotesContract:
    """A part of `StoreContract`."""

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
        """What cannot be stored whole leaves no note behind, either."""
        store = self.open_store(tmp_path)
        store.put_note("old", "one")
        store.write(Changes(put=[entry_for(Memory("m_1", "tea"), "en")], notes={"new": "two"}, drop_notes=["old"]))
        assert store.notes() == {"new": "two"}
        foreign = Memory("m_1", "coffee", scope=Scope("user", "1"))
        with suppress(StoreError):
            store.write(Changes(put=[entry_for(foreign, "en")], notes={"new": "three"}))
        assert store.note("new") == "two"
        assert store.get(["m_1"], frozenset({GLOBAL}))["m_1"].text == "tea"
