"""Ledger of extraction: the parts of files sent to a model, with their results."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Literal, NamedTuple

from ...analysis.document import content_hash, entry_for, numbers_in
from ...analysis.normalize import same_text
from ...errors import StoreChanged
from ...protocols import Changes, Store, Vector
from ...types.memory import LIFETIMES, Entry, Memory, Scope, expiry
from ...types.query import Where
from .prompts import PROMPT_VERSION, Window

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from ...protocols import Store
    from ...types.memory import MemoryId

Outcome = Literal["done", "failed"]

DECAY = "stable"  # the decay class of extracted facts
LIFETIME_S = LIFETIMES[DECAY] or 0.0
RENEWED_AFTER_S = LIFETIME_S / 10  # sooner, a run that finds nothing new would write for nothing

KEPT_LINES = 100  # of one part; an answer of ten thousand lines need not be kept to be understood
KEPT_CHARACTERS = 2_000  # of one line

_FORMAT = 1
_KIND = "extraction"

_ESCAPED = re.compile(r"\\u([0-9a-fA-F]{4})")
_SHORT_ESCAPE = re.compile(r"\\[nrtbf]")
_NO_LETTER = re.compile(r"[\W_]+")


class FilePart(NamedTuple):
    """Part of a file that is sent to a model."""

    path: str
    window: Window
    date: float | None = None

    @property
    def fingerprint(self) -> str:
        """Return the hash of its text."""
        return content_hash(self.window.text)

    def key(self, model: str) -> str:
        """Return the key of its record: a hash of the prompt version, the model and the text."""
        return content_hash(json.dumps([PROMPT_VERSION, model, self.window.text]))


class LeftOut(NamedTuple):
    """A line of an answer that was not stored, and why."""

    line: str
    reason: str


@dataclass(frozen=True)
class PartRecord:
    """Result of one part; `more_left_out` lines were left out besides those that are kept."""

    path: str
    start_line: int
    end_line: int
    fingerprint: str
    model: str
    outcome: Outcome
    at: float
    reason: str = ""
    facts: tuple[MemoryId, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    more_left_out: int = 0

    def is_fresh(self, now: float) -> bool:
        """Return whether the part can be skipped: it was done, and its facts have not faded since."""
        return self.outcome == "done" and now < self.at + LIFETIME_S


def record_of(
    part: FilePart, model: str, now: float, failure: str = "", facts: tuple[MemoryId, ...] = ()
) -> PartRecord:
    """Return the record of a part: it failed, or gave these facts."""
    _, start, end = part.window
    outcome: Outcome = "failed" if failure else "done"
    return PartRecord(part.path, start, end, part.fingerprint, model, outcome, now, failure, facts)


def with_lines(record: PartRecord, left_out: list[LeftOut]) -> PartRecord:
    """Return a record that keeps these lines, or the first of them."""
    kept = tuple(LeftOut(_clipped(line), reason) for line, reason in left_out[:KEPT_LINES])
    return replace(record, left_out=kept, more_left_out=len(left_out) - len(kept))


def _clipped(line: str) -> str:
    cut = len(line) - KEPT_CHARACTERS
    return line if cut <= 0 else f"{line[:KEPT_CHARACTERS]}… ({cut:,} characters more)"


def name_of(scope: Scope, key: str) -> str:
    """Return the name of the note a record is kept in."""
    return json.dumps([_KIND, str(scope), key])


def records_of(store: Store, scope: Scope) -> dict[str, PartRecord]:
    """Return the records of a scope by note name; those in another version's format are left out."""
    read = {name: _read(text) for name, text in _notes(store, scope).items()}
    return {name: record for name, record in read.items() if record is not None}


def names_of(store: Store, scope: Scope) -> list[str]:
    """Return the names of all notes that hold records of a scope."""
    return list(_notes(store, scope))


def without_traces(store: Store, memories: Iterable[Memory]) -> dict[str, str]:
    """Return the notes of records that quote any of these memories, without the lines that do."""
    rewritten: dict[str, str] = {}
    by_scope: dict[Scope, list[str]] = {}
    for memory in memories:
        by_scope.setdefault(memory.scope, []).append(_letters(memory.text))
    for scope, texts in by_scope.items():
        for name, record in records_of(store, scope).items():
            kept = tuple(line for line in record.left_out if not any(text in _letters(*line) for text in texts))
            if len(kept) < len(record.left_out):
                more = record.more_left_out + len(record.left_out) - len(kept)
                rewritten[name] = as_note(replace(record, left_out=kept, more_left_out=more))
    return rewritten


def _letters(*texts: str) -> str:
    """Return the letters and digits of texts, JSON escapes decoded: equal however they are written."""
    plain = " ".join(texts)
    unescaped = _ESCAPED.sub(lambda escape: chr(int(escape.group(1), 16)), plain)
    return _NO_LETTER.sub("", _SHORT_ESCAPE.sub("", unescaped.casefold()))


def _notes(store: Store, scope: Scope) -> dict[str, str]:
    return store.notes(json.dumps([_KIND, str(scope)])[:-1] + ",")


def as_note(record: PartRecord) -> str:
    """Return a record as it is kept."""
    return json.dumps({**asdict(record), "format": _FORMAT})


def _read(text: str) -> PartRecord | None:
    try:
        data = json.loads(text)
        if data.pop("format") != _FORMAT:
            return None
        lines = tuple(LeftOut(line, reason) for line, reason in data.pop("left_out"))
        return PartRecord(**{**data, "facts": tuple(data["facts"]), "left_out": lines})
    except (ValueError, TypeError, KeyError, AttributeError):
        return None


SAME_COSINE = 0.85  # from here on two facts are taken to mean the same

_NEIGHBOURS = 8  # the nearest may differ in a number; one behind it may not


@dataclass
class Familiar:
    """Known facts of a scope, with those not in the store yet: of this chunk, or of a whole dry run."""

    store: Store
    scope: Scope
    space: str
    now: float
    same_cosine: float = SAME_COSINE
    _learned: dict[MemoryId, tuple[Memory, Vector | None]] = field(default_factory=dict)

    def reason(self, entry: Entry, vector: Vector | None) -> str | None:
        """Return the reason why a fact need not be stored, or None."""
        return self._by_text(entry.memory) or self._by_meaning(entry.memory, vector)

    def learn(self, entries: Sequence[Entry], vectors: Mapping[str, Vector]) -> None:
        """Add facts that were or would be stored."""
        for entry in entries:
            self._learned[entry.memory.id] = (entry.memory, vectors.get(entry.embed_hash))

    def leave_to_store(self) -> None:
        """Clear the added facts: they have been written."""
        self._learned.clear()

    def _by_text(self, memory: Memory) -> str | None:
        if memory.id in self._learned:
            return f"its text is stored already, as {memory.id}"
        for known in self.store.with_text(memory.text, self.scope):
            if known.superseded_by is not None:
                return f"its text was replaced by {known.superseded_by}"
            expired = known.expires is not None and known.expires <= self.now
            # A fact that expired by decay may come back; one with a given expiry stays expired.
            if not expired or known.expires_given or known.id != memory.id:
                return f"its text is stored already, as {known.id}"
        former = self.store.get([memory.id], frozenset({self.scope})).get(memory.id)
        if former is not None and same_text(former.text) != same_text(memory.text):
            return f"its text was changed since, in {former.id}: {former.text}"
        return None

    def _by_meaning(self, memory: Memory, vector: Vector | None) -> str | None:
        if vector is None:
            return None
        for cosine, known in self._near(vector):
            if cosine >= self.same_cosine and numbers_in(known.text) == numbers_in(memory.text):
                replaced = f", which was replaced by {known.superseded_by}" if known.superseded_by else ""
                return f"it is a near-duplicate of {known.id} (cosine {cosine:.2f}){replaced}: {known.text}"
        return None

    def _near(self, vector: Vector) -> Iterator[tuple[float, Memory]]:
        where = Where(frozenset({self.scope}), frozenset({"fact"}), include_superseded=True, now=self.now)
        run = self.store.nearest(vector, self.space, where, _NEIGHBOURS)
        found = self.store.get(run.ids, where.scopes)
        yield from ((near.score, found[near.id]) for near in run.candidates if near.id in found)
        for memory, learned in self._learned.values():
            if learned is not None:
                yield float(learned @ vector), memory


_RECORDS_PER_TRANSACTION = 64


@dataclass(frozen=True)
class Renewal:
    """Renewal of the facts of a scope whose text is still in the files.

    `present` are the fingerprints of the parts now in the files, `looked_at` the records whose files this run has read.
    """

    store: Store
    scope: Scope
    now: float
    present: Collection[str]
    records: Mapping[str, PartRecord]
    looked_at: Collection[str]

    def fading(self) -> list[Memory]:
        """Return the active facts whose text is gone from every file."""
        present = (record for record in self.records.values() if record.fingerprint in self.present)
        kept = {fact for record in present for fact in record.facts}
        gone = {fact for record in self._gone().values() for fact in record.facts}
        where = Where(frozenset({self.scope}), now=self.now)
        found = self._facts(gone - kept)
        return sorted((fact for fact in found if where.allows(fact)), key=lambda fact: fact.content_key)

    def renew(self, language: str) -> int:
        """Postpone the expiry of facts still in the files, drop useless records; return the number of facts."""
        useless = [name for name, one in self._gone().items() if one.outcome == "failed" or not one.is_fresh(self.now)]
        if useless:
            self.store.write(Changes(drop_notes=useless))
        due = {name: record for name, record in self.records.items() if self._is_due(record)}
        names = list(due)
        return sum(
            self._renewed({name: due[name] for name in names[start : start + _RECORDS_PER_TRANSACTION]}, language)
            for start in range(0, len(names), _RECORDS_PER_TRANSACTION)
        )

    def _renewed(self, records: Mapping[str, PartRecord], language: str) -> int:
        ids = {fact for record in records.values() for fact in record.facts}
        facts = [fact for fact in self._facts(ids) if self._is_renewable(fact)]
        put = [entry_for(replace(fact, expires=expiry(DECAY, self.now)), language) for fact in facts]
        notes = {name: as_note(replace(record, at=self.now)) for name, record in records.items()}
        try:
            self.store.write(Changes(put=put, basis={fact.id: fact for fact in facts}, notes=notes))
        except StoreChanged:
            return 0  # another writer is changing these facts; there is time until the next run
        return len(facts)

    def _facts(self, ids: Collection[MemoryId]) -> list[Memory]:
        return list(self.store.get(ids, frozenset({self.scope})).values())

    def _gone(self) -> dict[str, PartRecord]:
        """Return the records of parts that are no more in the files this run has read."""
        gone = (name for name, record in self.records.items() if record.fingerprint not in self.present)
        return {name: self.records[name] for name in gone if name in self.looked_at}

    def _is_due(self, record: PartRecord) -> bool:
        is_time = record.is_fresh(self.now) and self.now > record.at + RENEWED_AFTER_S
        return is_time and record.fingerprint in self.present

    def _is_renewable(self, fact: Memory) -> bool:
        return fact.decay == DECAY and not fact.expires_given and (fact.expires or 0.0) < self.now + LIFETIME_S
