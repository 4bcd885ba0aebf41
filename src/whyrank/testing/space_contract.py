"""What every store must do about embedding spaces and what waits for a vector; part of `StoreContract`."""

from __future__ import annotations

from pathlib import Path

from ..ingest.entries import entry_for
from ..ports import Changes, Failure, FileRecord, Store
from ..types import GLOBAL, Memory, Scope
from .embedder import WordDirections

_TRIED, _LATER = 100.0, 160.0


class SpaceContract:
    """Spaces, the queue of what has no vector, and notes that are replaced only if they are what was read."""

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
        """What still has to be embedded."""
        store = self._with_texts(tmp_path, "tea")
        space = self.embedder.fingerprint
        [(text_hash, text, _)] = store.without_vector(space, 10)
        assert text == "tea"
        assert store.status(space).without_vector == 1
        store.write(Changes(space=space, vectors={text_hash: self.embedder.query(text)}))
        assert store.without_vector(space, 10) == []
        assert store.known_vectors([text_hash, "other"], space) == {text_hash}

    def test_one_goes_on_behind_a_place(self, tmp_path: Path) -> None:
        """A batch begins where the one before ended."""
        store = self._with_texts(tmp_path, "tea", "coffee", "milk")
        first = store.without_vector("space", 2)
        assert [one.text for one in first] == ["tea", "coffee"]
        assert [one.text for one in store.without_vector("space", 2, after=first[-1].place)] == ["milk"]

    def test_a_failure_is_kept_until_a_vector_comes(self, tmp_path: Path) -> None:
        """What went wrong is visible, and over by itself."""
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
        """A failure is of a text, and several memories may share one; of other scopes nothing is told."""
        store, space = self._with_texts(tmp_path, "tea", "coffee"), self.embedder.fingerprint
        ann = Scope.parse("user:ann")
        store.write(Changes(put=[entry_for(Memory("m_twin", "tea", scope=ann), "en")]))
        tea = next(one for one in store.without_vector(space, 9) if one.text == "tea")
        store.write(Changes(space=space, failures={tea.hash: Failure(tea.hash, 1, "refused", _TRIED, _LATER)}))
        for scopes, memories in ((None, 2), (frozenset({GLOBAL, ann}), 2), (frozenset({ann}), 1)):
            assert [failure.memories for failure in store.failures(space, scopes)] == [memories]

    def test_a_share_is_counted_as_if_there_were_nothing_else(self, tmp_path: Path) -> None:
        """What scopes see is told as by a store that holds only that; of the file's size no part is theirs."""
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
        """Return a store of these, each from a file; tea and water have their vectors, the rest was refused."""
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

    def test_the_failure_of_a_text_goes_with_it(self, tmp_path: Path) -> None:
        """Nothing is remembered of a text that was forgotten."""
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
        """Two who change the same note do not undo each other."""
        store = self.open_store(tmp_path)
        assert store.swap_note("roles", None, "one")
        assert not store.swap_note("roles", None, "two")
        assert not store.swap_note("roles", "two", "three")
        assert store.swap_note("roles", "one", "two")
        assert store.note("roles") == "two"
