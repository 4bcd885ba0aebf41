"""A store in plain dictionaries: slow, exact and short, for tests and as the oracle of real stores."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING

from ..analysis.names import match_name, proposal_score
from ..analysis.text import same_text
from ..columns import MemoryId
from ..errors import StoreError
from ..matches import NameProbe
from ..ports import (
    Arrival,
    Changes,
    Entry,
    Failure,
    FileRecord,
    Recall,
    SortingKey,
    StoreStatus,
    Waiting,
    Written,
    sorting_key,
)  # fmt: skip
from ..storage import lexical
from ..storage.pools import Scored, best
from ..storage.samples import spread
from ..types import ONCE, Former, Join, Memory, Order, Repeats, Run, Scope, Signal, Statistics, Where
from .memory_arrivals import changes_of
from .memory_matching import passes, with_tie, words_in
from .memory_past import Past, counted, end_claims, life_of, refuse_circles, refuse_others, revised, with_recalls
from .memory_readers import MemoryReaders
from .oracle import addends, date_scores

if TYPE_CHECKING:
    from ..ports import Vector


class MemoryStore(MemoryReaders):
    """Everything in dictionaries; term statistics are those of the visible scopes."""

    def __init__(self) -> None:
        self._entries: dict[MemoryId, Entry] = {}
        self._files: dict[tuple[Scope, str], FileRecord] = {}
        self._vectors: dict[tuple[str, str], Vector] = {}
        self._notes: dict[str, str] = {}
        self._past = Past()
        self._failures: dict[tuple[str, str], Failure] = {}

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Hold one view; nothing changes here while anybody reads."""
        yield

    @property
    def is_current(self) -> bool:
        """Tell that nobody can replace it."""
        return True

    def take_in(self, arrival: Arrival) -> bool:
        """Store one new fact, if nothing of it is known."""
        changes = changes_of(arrival, self._entries, self)
        if changes is not None:
            self.write(changes)
        return changes is not None

    def write(self, changes: Changes) -> None:
        """Apply changes."""
        import numpy as np

        written = (*changes.put, *revised(changes, self._entries))
        put = {entry.memory.id: with_recalls(entry, self._entries, changes.renamed) for entry in written}
        if any(key in self._entries and self.memory(key).scope != entry.memory.scope for key, entry in put.items()):
            raise StoreError("an id is taken", "give another id; nothing was stored")
        refuse_others(self._entries, self._notes, changes)
        self._past.check_keys(changes.keys)
        refuse_circles(self._entries, changes)
        below = (identity for place in changes.replace_files for identity in self.chunks_of(*place))
        cleared = (key for key, entry in self._entries.items() if entry.memory.scope in changes.clear)
        gone = {*changes.remove, *below, *cleared} - put.keys()
        pruned = {key for key, at in changes.prune.items() if self._is_expired(key, at)}
        lives = self._lives(put, gone, changes.renamed)
        for identity in gone | pruned:
            self._entries.pop(identity, None)
        self._entries.update(put)
        end_claims(self._entries, changes.superseded)
        for identity, life in {**lives, **changes.superseded}.items():
            self._mark(identity, life)
        for recall in changes.recalled:
            self._recall(recall)
        self._past.change(changes, gone | pruned)
        for name in changes.drop_notes:
            self._notes.pop(name, None)
        self._files = {place: file for place, file in self._files.items() if place[0] not in changes.clear}
        for place in changes.forget_files:
            self._files.pop(place, None)
        for record in changes.files:
            self._files[record.scope, record.path] = record
        for text_hash, vector in changes.vectors.items():
            self._vectors[changes.space, text_hash] = vector / np.linalg.norm(vector)
        self._notes |= changes.notes
        alive = {entry.embed_hash for entry in self._entries.values()}
        self._vectors = {key: vector for key, vector in self._vectors.items() if key[1] in alive}
        for text_hash, failure in {**changes.failures, **dict.fromkeys(changes.vectors)}.items():
            self._failures.pop((changes.space, text_hash), None)
            if failure is not None:
                self._failures[changes.space, text_hash] = failure._replace(hash=text_hash)
        self._failures = {key: failure for key, failure in self._failures.items() if key[1] in {"", *alive}}

    def _lives(
        self, put: Mapping[MemoryId, Entry], gone: set[MemoryId], renamed: Mapping[MemoryId, MemoryId]
    ) -> dict[MemoryId, tuple[MemoryId, float] | None]:
        """Return what is to be said of memories after a write."""
        successors = {key: life for key, entry in self._entries.items() if (life := life_of(entry.memory))}
        lives = {key: successors.get(key) for key in put if key in self._entries}
        lives |= {new: successors.get(old) for old, new in renamed.items()}
        for key, entry in list(self._entries.items()):
            old = entry.memory.supersedes
            if old is not None and old in renamed:
                self._entries[key] = replace(entry, memory=replace(entry.memory, supersedes=renamed[old]))
            if entry.memory.superseded_by in gone:
                lives.setdefault(key, successors[key])
            if old is not None and old in put:
                lives[old] = lives.get(old) or (key, entry.memory.created)
        for key, life in lives.items():
            while life is not None and life[0] in gone:
                life = successors.get(life[0])
            lives[key] = life
        return lives

    def _is_expired(self, identity: MemoryId, moment: float) -> bool:
        expires = self.memory(identity).expires if identity in self._entries else None
        return expires is not None and expires <= moment

    def _recall(self, recall: Recall) -> None:
        entry = self._entries.get(recall.memory)
        if entry is not None:
            self._entries[recall.memory] = replace(entry, memory=counted(entry.memory, recall))

    def _mark(self, identity: MemoryId, life: tuple[MemoryId, float] | None) -> None:
        if identity not in self._entries:
            return
        by, at = life or (None, None)
        owner = self.memory(by).scope if by in self._entries else self.memory(identity).scope
        if by != identity and owner == self.memory(identity).scope:
            entry = self._entries[identity]
            self._entries[identity] = replace(entry, memory=replace(entry.memory, superseded_by=by, superseded_at=at))

    def memory(self, identity: MemoryId | None) -> Memory:
        """Return a stored memory."""
        return self._entries[identity or ""].memory

    def settle(self, scopes: Iterable[Scope]) -> None:
        """Do nothing: there is no house to keep."""

    def get(self, ids: Iterable[MemoryId], scopes: frozenset[Scope]) -> dict[MemoryId, Memory]:
        """Return those of these memories that the scopes may see."""
        found = (self._entries[identity].memory for identity in ids if identity in self._entries)
        return {memory.id: memory for memory in found if memory.scope in scopes}

    def held(self, ids: Iterable[MemoryId], scopes: frozenset[Scope]) -> dict[MemoryId, Memory]:
        """Return the same: nothing has to be read here."""
        return self.get(ids, scopes)

    def browse(
        self, where: Where, limit: int, offset: int = 0, order: Order = "place", after: SortingKey | None = None
    ) -> list[Memory]:
        """Return memories in the order of their content keys, or the latest, weightiest, most recalled first."""
        found = sorted((entry.memory for entry in self._visible(where)), key=lambda one: sorting_key(one, order))
        behind = [one for one in found if after is None or sorting_key(one, order) > after]
        return behind[offset : offset + limit]

    def each(self, where: Where) -> Iterator[Memory]:
        """Yield memories in the order of their content keys."""
        yield from self.browse(where, len(self._entries))

    def with_text(self, text: str, scope: Scope) -> list[Memory]:
        """Return the facts of one scope that say the same."""
        facts = (entry.memory for entry in self._entries.values() if entry.memory.kind == "fact")
        return [fact for fact in facts if fact.scope == scope and same_text(fact.text) == same_text(text)]

    def written(self, scope: Scope, key: str) -> Written | None:
        """Return what a write with a key came to, if there was one in the scope."""
        return self._past.keys.get((scope, key))

    def keys(self, scope: Scope) -> dict[str, Written]:
        """Return what all writes with keys in the scope came to, by key."""
        return {key: written for (owner, key), written in self._past.keys.items() if owner == scope}

    def history(self, ids: Sequence[MemoryId], scopes: frozenset[Scope]) -> dict[MemoryId, list[Former]]:
        """Return what those of these memories were before that were changed and may be seen."""
        seen = self.get(ids, scopes)
        return {key: list(self._past.formers[key]) for key in seen if key in self._past.formers}

    def sample(self, where: Where, count: int) -> list[Memory]:
        """Return up to `count` memories from all over."""
        found = {entry.memory.id: entry.memory for entry in self._visible(where)}
        return [found[identity] for identity in spread(found, count)]

    def keyword(
        self, terms: Sequence[str], where: Where, limit: int | None, join: Join = "or", repeats: Repeats = ONCE
    ) -> Run:
        """Return the best memories by lexical score."""
        seen, scored = self._seen(where.scopes), list[Scored]()
        for entry, found in zip(seen, addends(seen, terms, repeats), strict=True):
            text = lexical.padded(entry.tokens)
            enough = join == "or" or all(lexical.occurrences(text, term) for term in words_in(terms))
            if terms and found and enough and passes(entry, where):
                scored.append(with_tie(lexical.word_score(tuple(found)), entry.memory))
        return Run("keyword", best(scored, limit))

    def passing(self, ids: Iterable[MemoryId], where: Where) -> set[MemoryId]:
        """Return those of these memories that may answer."""
        return {identity for identity in ids if identity in self._entries and passes(self._entries[identity], where)}

    def nearest(self, vector: Vector, space: str, where: Where, limit: int | None) -> Run:
        """Return the nearest memories by cosine."""
        scored = [
            with_tie(cosine, entry.memory)
            for entry in self._visible(where)
            if (cosine := self._cosine(entry, vector, space)) is not None
        ]
        return Run("vector", best(scored, limit))

    def named(self, probe: NameProbe, where: Where, limit: int) -> Run:
        """Propose memories whose names are related to the query."""
        scored = [
            with_tie(proposal_score(match), entry.memory)
            for entry in self._visible(where)
            if (match := match_name(probe, entry.names)) is not None
        ]
        return Run("name", best(scored, limit))

    def score(
        self,
        ids: Collection[MemoryId],
        terms: Sequence[str],
        vector: Vector | None,
        space: str,
        where: Where,
        repeats: Repeats = ONCE,
    ) -> list[Signal]:
        """Score the given candidates by every signal."""
        entries = [self._entries[identity] for identity in ids if identity in self._entries]
        signals = []
        if terms:
            seen = self._seen(where.scopes)
            scored = zip(seen, addends(seen, terms, repeats), strict=True)
            details = {entry.memory.id: tuple(found) for entry, found in scored}
            wanted = {entry.memory.id: details.get(entry.memory.id, ()) for entry in entries}
            values = {identity: lexical.word_score(found) for identity, found in wanted.items()}
            dated, most = date_scores(seen, terms)
            coverage = {
                entry.memory.id: self._coverage(
                    entry, words_in(terms), where.scopes, dated.get(entry.memory.id, 0.0), most
                )
                for entry in entries
            }
            signals.append(Signal("keyword", values, coverage, wanted))
        if vector is not None:
            cosines = {entry.memory.id: self._cosine(entry, vector, space) for entry in entries}
            found = {identity: cosine for identity, cosine in cosines.items() if cosine is not None}
            signals.append(Signal("vector", found))
        return signals

    def last_positions(self, sessions: Collection[tuple[Scope, str]]) -> dict[tuple[Scope, str], int]:
        """Return the position of the last turn of each of these sessions."""
        turns = [
            entry.memory for entry in self._entries.values() if (entry.memory.scope, entry.memory.session) in sessions
        ]
        ordered = sorted(turns, key=lambda memory: memory.position)
        return {(memory.scope, memory.session): memory.position for memory in ordered if memory.is_turn}

    def vectors(self, ids: Sequence[MemoryId], space: str, scopes: frozenset[Scope]) -> dict[MemoryId, Vector]:
        """Return the unit vectors of those of these memories that have one and may be seen."""
        hashes = {identity: self._entries[identity].embed_hash for identity in self.get(ids, scopes)}
        return {key: self._vectors[space, known] for key, known in hashes.items() if (space, known) in self._vectors}

    def statistics(self, terms: Iterable[str], scopes: frozenset[Scope]) -> Statistics:
        """Return the term statistics of what the scopes may see."""
        seen = [entry for entry in self._entries.values() if entry.memory.scope in scopes]
        frequency = {
            term: sum(1 for entry in seen if lexical.occurrences(lexical.padded(entry.tokens), term)) for term in terms
        }
        length = sum(len(entry.tokens) for entry in seen)
        return Statistics(len(seen), length / len(seen) if seen else 0.0, frequency)

    def spaces(self) -> dict[str, int]:
        """Count the vectors of each embedding space."""
        names = sorted({space for space, _ in self._vectors})
        return {name: sum(1 for space, _ in self._vectors if space == name) for name in names}

    def known_vectors(self, hashes: Iterable[str], space: str) -> set[str]:
        """Return those of these embedded texts that already have a vector in the space."""
        return {text_hash for text_hash in hashes if (space, text_hash) in self._vectors}

    def without_vector(self, space: str, limit: int, after: int = 0, due: float | None = None) -> list[Waiting]:
        """Return up to `limit` texts behind a place that need a vector; those to be tried later than `due` are not."""
        texts = ((entry.embed_hash, entry.embed_text) for entry in self._entries.values())
        later = {one.hash for one in self.failures(space) if due is not None and one.next_try > due}
        placed = (Waiting(key, text, place) for place, (key, text) in enumerate(texts, 1) if key not in later)
        return [one for one in placed if one.place > after and (space, one.hash) not in self._vectors][:limit]

    def failures(self, space: str, scopes: frozenset[Scope] | None = None) -> list[Failure]:
        """Return what could not be embedded in a space and why."""
        held = Counter(entry.embed_hash for entry in self._seen(scopes))
        found = [failure for (owner, _), failure in sorted(self._failures.items()) if owner == space]
        seen = [failure for failure in found if scopes is None or not failure.hash or held[failure.hash]]
        return [failure._replace(memories=max(1, held[failure.hash])) for failure in seen]

    def dimensions(self, space: str) -> int | None:
        """Return how many numbers a vector of the space has, if it holds one."""
        return next((vector.size for (owner, _), vector in self._vectors.items() if owner == space), None)

    def drop_space(self, space: str) -> int:
        """Delete all vectors of a space."""
        before = len(self._vectors)
        self._vectors = {key: vector for key, vector in self._vectors.items() if key[0] != space}
        self._failures = {key: failure for key, failure in self._failures.items() if key[0] != space}
        return before - len(self._vectors)

    def manifest(self, scope: Scope) -> dict[str, FileRecord]:
        """Return the files ingested into a scope, by path."""
        return {path: record for (owner, path), record in self._files.items() if owner == scope}

    def drop_damaged_vectors(self, space: str) -> int:
        """Find nothing damaged in a dictionary."""
        return 0

    def chunks_of(self, scope: Scope, path: str) -> dict[MemoryId, str]:
        """Return the chunks of one file: id and hash of what was embedded."""
        return {
            entry.memory.id: entry.embed_hash
            for entry in self._entries.values()
            if entry.memory.kind == "chunk"
            and entry.memory.scope == scope
            and entry.memory.source
            and entry.memory.source.path == path
        }

    def note(self, name: str) -> str | None:
        """Return the text kept under a name, if there is one."""
        return self._notes.get(name)

    def notes(self, prefix: str = "") -> dict[str, str]:
        """Return all texts that are kept under names that begin so, by name."""
        return {name: text for name, text in sorted(self._notes.items()) if name.startswith(prefix)}

    def put_note(self, name: str, text: str) -> None:
        """Keep a text under a name."""
        self._notes[name] = text

    def swap_note(self, name: str, before: str | None, after: str) -> bool:
        """Keep a text in place of another only if that one still stands there."""
        stands = self._notes.get(name) == before
        if stands:
            self._notes[name] = after
        return stands

    def aborting(self, moment: float) -> AbstractContextManager[None]:
        """Abort nothing: no read takes long."""
        return nullcontext()

    def status(self, space: str, scopes: frozenset[Scope] | None = None) -> StoreStatus:
        """Count what the store holds, or what of it these scopes see."""
        entries = self._seen(scopes)
        names = Counter(str(entry.memory.scope) for entry in entries)
        vectors = Counter(name for name, text in self._vectors if text in {entry.embed_hash for entry in entries})
        files = sum(scopes is None or owner in scopes for owner, _ in self._files)
        waiting = sum((space, entry.embed_hash) not in self._vectors for entry in entries)
        spaces = self.spaces() if scopes is None else dict(sorted(vectors.items()))
        whole = 0 if scopes is None else None
        counted = (len(entries), files, dict(sorted(names.items())), spaces, waiting, whole)
        return StoreStatus("memory", 0, "exact", *counted, "dictionaries")

    def _seen(self, scopes: frozenset[Scope] | None) -> list[Entry]:
        return [entry for entry in self._entries.values() if scopes is None or entry.memory.scope in scopes]

    def purge(self) -> tuple[str, ...]:
        """Leave nothing behind, as ever."""
        return ()

    def close(self) -> None:
        """Release nothing."""

    def _visible(self, where: Where) -> Iterator[Entry]:
        return (entry for entry in self._entries.values() if passes(entry, where))

    def _coverage(
        self, entry: Entry, terms: Sequence[str], scopes: frozenset[Scope], dated: float, most: float
    ) -> float:
        """Return the share of what the words could score, and of what the dates could."""
        statistics = self.statistics(terms, scopes)
        scores = lexical.term_scores(lexical.padded(entry.tokens), len(entry.tokens), terms, statistics)
        bound = statistics.mass(terms) + most
        return (lexical.word_score(scores) + dated) / bound if bound else 0.0

    def _cosine(self, entry: Entry, vector: Vector, space: str) -> float | None:
        import numpy as np

        stored = self._vectors.get((space, entry.embed_hash))
        if stored is None:
            return None
        return float((stored.astype(np.float32).astype(np.float64) * vector.astype(np.float64)).sum())
