"""Reindex memories that an earlier analyzer read, a few at a time."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from ..analysis.document import READER_VERSION, entry_for
from ..errors import StoreChanged, WhyrankError
from ..protocols import Changes
from ..types.memory import Notice, Scope
from .spaces import Spaces

if TYPE_CHECKING:
    from ..ingest.embedding import Progress


_READ_BY_A_WRITE = 64  # no more than a user who adds a fact would wait for
_READ_PER_STEP = 256  # so that a reader or another writer never waits long
_ATTEMPTS = 5  # of a step over memories that others change at the same time
_MEND = "they are read anew, some with each write, all of them by `whyrank doctor --repair`"


class Rereading(Spaces):
    """Reindexing of memories whose terms an earlier analyzer made."""

    _words_are_new = False  # cached: this engine writes terms of its own analyzer only

    def old_words(self, scopes: frozenset[Scope] | None = None) -> int:
        """Count the memories of some scopes, or of all, that an earlier analyzer indexed."""
        readers = self._store.readers(self._every_scope() if scopes is None else scopes)
        return sum(count for reader, count in readers.items() if reader < READER_VERSION)

    def word_notices(self, scopes: frozenset[Scope] | None = None) -> tuple[Notice, ...]:
        """Return notices on memories, of some or all scopes, that another analyzer version indexed."""
        readers = self._store.readers(self._every_scope() if scopes is None else scopes)
        if readers.keys() <= {READER_VERSION}:
            return ()
        old = sum(count for reader, count in readers.items() if reader < READER_VERSION)
        newer = sum(count for reader, count in readers.items() if reader > READER_VERSION)
        return (*([_old(old)] if old else []), *([_newer(newer)] if newer else []))

    def read_anew(self, progress: Progress | None = None) -> int:
        """Reindex all memories that an earlier analyzer indexed; return their number.

        An interrupted run continues when called again.
        """
        if not self._store.read_before(READER_VERSION, 1):  # counting them scans all memories
            return 0
        total, done = self.old_words(), 0
        while read := self._read_some(_READ_PER_STEP):
            done += read
            if progress is not None:
                progress(min(done, total), total, "")
        if done:
            self._store.settle(sorted(self._every_scope()))
        return done

    def _are_words_new(self) -> bool:
        """Return true if no memory has terms of an earlier analyzer; queried until that is so, then cached."""
        self._words_are_new = self._words_are_new or not self._store.read_before(READER_VERSION, 1)
        return self._words_are_new

    def _keep(self, changes: Changes) -> None:
        """Write changes, and reindex some memories of an earlier analyzer along with them."""
        super()._keep(changes)
        if self._words_are_new or not changes.put:
            return
        try:
            self._words_are_new = not self._read_some(_READ_BY_A_WRITE)
        except WhyrankError:
            return  # the changes are stored; a notice reports the rest until it is done

    def _read_some(self, most: int) -> int:
        """Reindex up to `most` memories in one transaction; return their number."""
        for _ in range(_ATTEMPTS):
            memories = self._store.read_before(READER_VERSION, most)
            if not memories:
                return 0
            entries = [entry_for(memory, self._config["language"]) for memory in memories]
            try:
                super()._keep(Changes(put=entries, basis={memory.id: memory for memory in memories}))
            except StoreChanged:
                continue  # version conflict: another writer changed one of them
            return len(memories)
        raise StoreChanged("the memories to be read anew are changed all the time", "try again in a moment")

    def _every_scope(self) -> frozenset[Scope]:
        """Return all valid scopes; an invalid one was damaged, and `doctor` names its memories."""
        found = set[Scope]()
        for scope in self._store.status("").scopes:
            with suppress(ValueError):
                found.add(Scope.parse(scope))
        return frozenset(found)


def _old(count: int) -> Notice:
    message = (
        f"the words of {count} of these memories were read by an earlier whyrank, which may miss joined words, "
        f"acronyms and symbols in them, and does not know their languages; {_MEND}"
    )
    return Notice("old-words", message)


def _newer(count: int) -> Notice:
    message = (
        f"the words of {count} of these memories were read by a later whyrank than this one, which may miss some of "
        "them; upgrade whyrank here"
    )
    return Notice("newer-words", message)
