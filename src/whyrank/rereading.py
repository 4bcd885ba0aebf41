"""What the facade does about words that an earlier reader has read: says so, and has them read anew, a few at a time.

What is read anew is stored again under its id: words, names and date words are made anew, all else stays. A step is one
transaction, so searches go on, a kill loses nothing, and each memory has at any time the words of one reader.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from .errors import StoreChanged, WhyrankError
from .ingest.entries import READER_VERSION, entry_for
from .ports import Changes
from .spaces import Spaces
from .types import Notice, Scope

if TYPE_CHECKING:
    from .ingest.filling import Progress

_READ_BY_A_WRITE = 64  # no more than a user who adds a fact would wait for
_READ_PER_STEP = 256  # so that a reader or another writer never waits long
_ATTEMPTS = 5  # of a step over memories that others change at the same time
_MEND = "they are read anew, some with each write, all of them by `whyrank doctor --repair`"


class Rereading(Spaces):
    """Words that are as old as their reader."""

    _words_are_new = False  # known to be so: what this engine writes has the words of its own reader

    def old_words(self, scopes: frozenset[Scope] | None = None) -> int:
        """Count the memories of some scopes, or of all, whose words an earlier whyrank has read."""
        readers = self._store.readers(self._every_scope() if scopes is None else scopes)
        return sum(count for reader, count in readers.items() if reader < READER_VERSION)

    def word_notices(self, scopes: frozenset[Scope] | None = None) -> tuple[Notice, ...]:
        """Say how many memories of some scopes, or of all, have words that another whyrank has read."""
        readers = self._store.readers(self._every_scope() if scopes is None else scopes)
        if readers.keys() <= {READER_VERSION}:
            return ()
        old = sum(count for reader, count in readers.items() if reader < READER_VERSION)
        newer = sum(count for reader, count in readers.items() if reader > READER_VERSION)
        return (*([_old(old)] if old else []), *([_newer(newer)] if newer else []))

    def read_anew(self, progress: Progress | None = None) -> int:
        """Read the words of all memories anew that an earlier whyrank has read; return how many there were.

        Stopped and called again, it goes on.
        """
        if not self._store.read_before(READER_VERSION, 1):  # to count them takes a look at all memories
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
        """Tell whether no memory has words of an earlier reader; looked at until it is so."""
        self._words_are_new = self._words_are_new or not self._store.read_before(READER_VERSION, 1)
        return self._words_are_new

    def _keep(self, changes: Changes) -> None:
        """Write changes; where old words wait to be read anew, take some of them along."""
        super()._keep(changes)
        if self._words_are_new or not changes.put:
            return
        try:
            self._words_are_new = not self._read_some(_READ_BY_A_WRITE)
        except WhyrankError:
            return  # what was to be written is stored; the rest is said in every answer until it is done

    def _read_some(self, most: int) -> int:
        """Read some memories anew in one transaction; return how many."""
        for _ in range(_ATTEMPTS):
            memories = self._store.read_before(READER_VERSION, most)
            if not memories:
                return 0
            entries = [entry_for(memory, self._config["language"]) for memory in memories]
            try:
                super()._keep(Changes(put=entries, basis={memory.id: memory for memory in memories}))
            except StoreChanged:
                continue  # somebody has changed one of them meanwhile
            return len(memories)
        raise StoreChanged("the memories to be read anew are changed all the time", "try again in a moment")

    def _every_scope(self) -> frozenset[Scope]:
        """Return all scopes there are; what is none was damaged, and `doctor` names its memories."""
        found = set[Scope]()
        for scope in self._store.status("").scopes:
            with suppress(ValueError):
                found.add(Scope.parse(scope))
        return frozenset(found)


def _old(count: int) -> Notice:
    message = (
        f"the words of {count} of these memories were read by an earlier whyrank, which may miss joined words, "
        f"acronyms and symbols in them; {_MEND}"
    )
    return Notice("old-words", message)


def _newer(count: int) -> Notice:
    message = (
        f"the words of {count} of these memories were read by a later whyrank than this one, which may miss some of "
        "them; upgrade whyrank here"
    )
    return Notice("newer-words", message)
