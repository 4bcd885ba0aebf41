"""A store in plain dictionaries: slow, exact and short, for tests and as the oracle of real stores."""

from __future__ import annotations

from collections import Counter
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import TYPE_CHECKING

from ..analysis.dates import date_words_in, is_mark
from ..analysis.document import entry_for
from ..analysis.names import by_plain_spelling, is_speaker_mark, match_name, proposal_score, speaker_of, typed_beginning
from ..analysis.normalize import same_text
from ..analysis.query import MEMORY_FIELDS, is_said
from ..analysis.tokenizer import marks_but_of, marks_of_language
from ..errors import ConfigError, StoreChanged, StoreError
from ..protocols import (
    FIRST_PLACE,
    NO_HINT,
    Arrival,
    Changes,
    Failure,
    Fetched,
    FileRecord,
    Hint,
    Recall,
    SortingKey,
    Store,
    StoreStatus,
    Waiting,
    Written,
    sorting_key,
)
from ..storage import bm25
from ..storage.bm25 import (
    DATES,
    FIELDS,
    K1,
    OWN_WEIGHT,
    SPEAKER_SHARE,
    WINDOW_TURNS,
    WORDS,
    B,
    Field,
    Scored,
    Unit,
    best,
    fields_of,
    repeated,
    spread,
    wanted_terms,
)
from ..storage.query_resolution import resolve
from ..storage.retrieval import retrieve
from ..types.memory import NEVER, Former, Memory, Order, Scope
from ..types.query import (
    ONCE,
    OTHERWISE_COUNTS,
    Holds,
    Join,
    Leaf,
    Repeats,
    Says,
    Statistics,
    Where,
    inverse_frequency,
    label_as,
    spellings,
    valued,
)
from ..types.results import Candidates, Run, Signal
from ..types.trail import TermValue

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from ..protocols import Question, Request, Resolution, Retrieval, Vector
    from ..types.memory import Entry, MemoryId
    from ..types.query import Analysis, Plan
    from ..types.trail import NameProbe

Addends = list[TermValue]


@dataclass(frozen=True)
class OracleTexts:
    """Texts of one field, each of parts that are lists of terms; no phrase crosses from part to part."""

    parts: Sequence[Sequence[Sequence[str]]]
    field: Field

    def count(self, number: int, term: str) -> float:
        """Count a term in one of the texts."""
        return sum(_count(part, term) for part in self.parts[number])

    def length(self, number: int) -> int:
        """Return the number of terms of one of the texts."""
        return sum(map(len, self.parts[number]))

    def score(self, number: int, term: str) -> float:
        """Return idf · tf/(tf + K) of a term in one of the texts."""
        prior, numbers = self.field.length_prior, range(len(self.parts))
        average = float(sum(map(self.length, numbers))) / len(self.parts)
        k = K1 * (1 - B + B * (self.length(number) + prior) / (average + prior))
        frequency = float(self.count(number, term))
        idf = inverse_frequency(len(self.parts), sum(1 for other in numbers if self.count(other, term)))
        return idf * frequency / (frequency + k)


def addends(entries: Sequence[Entry], terms: Sequence[str], repeats: Repeats = ONCE) -> list[Addends]:
    """Return, for each entry, the contribution of each term to its lexical score, times its repetitions."""
    found: list[Addends] = [[] for _ in entries]
    for kind, wanted in wanted_terms(terms):
        for term in wanted:
            often = repeats.get(term, 1) if kind is WORDS else 1
            for number, one in _of_term(entries, kind, term):
                found[number].append(one._replace(term=repeated(one.term, often), value=often * one.value))
    _add_speaker(entries, terms, found)
    return found


def date_scores(entries: Sequence[Entry], terms: Sequence[str]) -> tuple[dict[MemoryId, float], float]:
    """Return the score of a query's date words in each entry, and their upper bound."""
    texts = OracleTexts([[fields_of(entry)[FIELDS.index(DATES)]] for entry in entries], DATES)
    words = date_words_in(terms)
    numbers = range(len(entries))
    held = {word: sum(1 for number in numbers if texts.count(number, word)) for word in words}
    most = sum(inverse_frequency(len(entries), count) for count in held.values())
    found = [word for word in words if held[word]]
    return {
        entry.memory.id: sum(texts.score(number, word) for word in found) for number, entry in enumerate(entries)
    }, most


def _add_speaker(entries: Sequence[Entry], terms: Sequence[str], found: Sequence[Addends]) -> None:
    """Add a share of the best score to the matching turns of the one speaker that a query names."""
    known = {mark for entry in entries for mark in entry.marks if is_speaker_mark(mark) and mark in terms}
    if len(known) != 1:
        return
    [mark] = known
    bonus = SPEAKER_SHARE * max(sum(one.value for one in own) for own in found)
    for entry, own in zip(entries, found, strict=True):
        if own and mark in entry.marks:
            own.append(TermValue(speaker_of(mark), "speakers", "own", bonus))


def _of_term(entries: Sequence[Entry], field: Field, term: str) -> Iterator[tuple[int, TermValue]]:
    own = [fields_of(entry)[FIELDS.index(field)] for entry in entries]
    texts = OracleTexts([[text] for text in own], field)
    for number, entry in enumerate(entries):
        if _count(own[number], term):
            weight = field.weight * (1.0 if field is DATES else OWN_WEIGHT[unit_of(entry)])
            name = _name(term, [own[number]])
            yield number, TermValue(name, field.name, "own", weight * texts.score(number, term))
    if field is DATES:
        return
    yield from _around(entries, own, field, term, Unit.CHUNK, "file")
    yield from _around(entries, own, field, term, Unit.TURN, "window")


def _around(
    entries: Sequence[Entry], own: Sequence[Sequence[str]], field: Field, term: str, unit: Unit, context: str
) -> Iterator[tuple[int, TermValue]]:
    """Yield the contributions of the context of each chunk (its file) or turn (its window)."""
    members = [number for number, entry in enumerate(entries) if unit_of(entry) == unit]
    around = {number: _surroundings(entries, members, number, unit) for number in members}
    distinct = list(dict.fromkeys(around.values())) if unit == Unit.CHUNK else list(around.values())
    texts = OracleTexts([[own[other] for other in numbers] for numbers in distinct], field)
    for place, number in enumerate(members):
        text = distinct.index(around[number]) if unit == Unit.CHUNK else place
        if texts.count(text, term):
            held = [own[other] for other in distinct[text]]
            yield number, TermValue(_name(term, held), field.name, context, field.weight * texts.score(text, term))


def _surroundings(entries: Sequence[Entry], members: Sequence[int], number: int, unit: Unit) -> tuple[int, ...]:
    memory = entries[number].memory
    if unit == Unit.CHUNK:
        return tuple(other for other in members if entries[other].memory.group == memory.group)
    session = sorted(
        (other for other in members if _session(entries[other]) == _session(entries[number])),
        key=lambda other: (entries[other].memory.position, entries[other].memory.id),
    )
    place = session.index(number)
    return tuple(session[max(0, place - WINDOW_TURNS) : place + WINDOW_TURNS + 1])


def _session(entry: Entry) -> tuple[str, str]:
    return str(entry.memory.scope), entry.memory.session


def unit_of(entry: Entry) -> Unit:
    """Return the unit of a memory, which determines its context: turn, chunk or fact."""
    if entry.memory.is_turn:
        return Unit.TURN
    return Unit.CHUNK if entry.memory.kind == "chunk" and entry.memory.source else Unit.FACT


def _name(term: str, texts: Sequence[Sequence[str]]) -> str:
    """Label a term as the trail does: by its other spellings if no text holds it as typed."""
    return label_as(term, any(_count_one(text, one) for text in texts for one in spellings(term)[0]))


def _count(text: Sequence[str], term: str) -> float:
    """Count a term, a phrase of adjacent ones, or all alternatives of a term, in the terms of a text."""
    asked, others = spellings(term)
    weight = OTHERWISE_COUNTS if asked else 1.0
    return sum(_count_one(text, one) for one in asked) + weight * sum(_count_one(text, one) for one in others)


def _count_one(text: Sequence[str], term: str) -> int:
    tokens = term.split(" ")
    if len(tokens) == 1 or term in text:
        return sum(1 for other in text if other == term)
    places = range(len(text) - len(tokens) + 1)
    return sum(1 for i in places if list(text[i : i + len(tokens)]) == tokens)


def changes_of(arrival: Arrival, entries: Mapping[MemoryId, Entry], store: Store) -> Changes | None:
    """Return the changes that insert a new fact; None where the slow path must decide."""
    memory, vector = arrival.memory, arrival.vector
    keys = {(memory.scope, arrival.key[0]): arrival.key[1]} if arrival.key else {}
    is_taken = memory.id in entries or any(entry.memory.supersedes == memory.id for entry in entries.values())
    is_said = bool(store.with_text(memory.text, memory.scope))
    if is_taken or is_said or any(store.written(*place) for place in keys):
        return None
    has_failed = any(failure.next_try < NEVER for failure in store.failures(arrival.space))
    if has_failed or (arrival.note and store.note(arrival.note[0]) != arrival.note[1]):
        return None
    if vector is not None and (store.dimensions(arrival.space) != vector.size or not vector.any()):
        return None
    entry = entry_for(memory, arrival.language)
    vectors = {} if vector is None else {entry.embed_hash: vector}
    return Changes(put=[entry], space=arrival.space, vectors=vectors, keys=keys)


def passes(entry: Entry, where: Where) -> bool:
    """Check a memory against a filter: times, fields, language and expression."""
    if where.language is not None and not {*marks_of_language(where.language)} & {*entry.marks}:
        return False
    return where.allows(entry.memory) and (
        where.matching is None or valued(where.matching, lambda leaf: _is_true(leaf, entry), lambda value: not value)
    )


def _is_true(leaf: Leaf, entry: Entry) -> bool:
    match leaf:
        case Holds() if is_mark(leaf.term):
            return leaf.term in entry.marks
        case Holds():
            return bm25.occurrences(bm25.padded(entry.tokens), leaf.term) > 0
        case Says():
            return is_said(leaf, MEMORY_FIELDS[leaf.field](entry.memory))
        case _:
            raise ValueError(f"{leaf} must be resolved before the store is queried")


def with_tie(score: float, memory: Memory) -> Scored:
    """Return a memory's score with its tie-breakers."""
    return Scored(score, memory.content_key, memory.group)


def words_in(terms: Sequence[str]) -> list[str]:
    """Return the words among terms, without marks of dates or speakers."""
    return [term for term in terms if not is_mark(term)]


@dataclass
class Past:
    """Histories of memories, and the outcomes of keyed writes."""

    formers: dict[MemoryId, list[Former]] = field(default_factory=dict)
    keys: dict[tuple[Scope, str], Written] = field(default_factory=dict)

    def check_keys(self, keys: Mapping[tuple[Scope, str], Written]) -> None:
        """Refuse a key that was used for other content."""
        for place, written in keys.items():
            if self.keys.get(place, written).content != written.content:
                raise ConfigError(f"the key {place[1]!r} was used for another write", "give each a key of its own")

    def change(self, changes: Changes, gone: Iterable[MemoryId]) -> None:
        """Record the history and keys of a write, and drop those of deleted memories."""
        lost = {*gone}
        self.formers = {key: list(told) for key, told in self.formers.items() if key not in lost}
        for former in changes.history:
            self.formers.setdefault(former.memory, []).append(former)
        kept = {
            place: written
            for place, written in self.keys.items()
            if written.memory not in lost and place[0] not in changes.clear
        }
        self.keys = {**changes.keys, **kept}


def refuse_others(entries: Mapping[MemoryId, Entry], notes: Mapping[str, str], changes: Changes) -> None:
    """Refuse changes based on memories or a note that have changed since, or whose texts are taken."""
    if changes.noted is not None and notes.get(changes.noted[0]) != changes.noted[1]:
        raise StoreChanged("a note has changed meanwhile", "read it again; nothing was stored")
    for key, known in changes.basis.items():
        found = _unrecalled(entries[key].memory) if key in entries else None
        if found != (None if known is None else _unrecalled(known)):
            raise StoreChanged(f"{key} has changed meanwhile", "read it again; nothing was stored")
    _refuse_twins({key: entry.memory for key, entry in entries.items()}, changes)


def _refuse_twins(before: Mapping[MemoryId, Memory], changes: Changes) -> None:
    """Refuse a change after which two living facts of a scope have the same text."""
    told = {entry.memory.id: entry.memory for entry in changes.put}
    after = {key: one for key, one in {**before, **told}.items() if key not in changes.remove}
    replaced = {key for key, one in before.items() if one.superseded_by} | changes.superseded.keys()
    revived = {key for key, life in changes.superseded.items() if life is None}
    living = {key: one for key, one in after.items() if key not in replaced - revived and one.kind == "fact"}
    for key in (changes.basis.keys() & told.keys()) | revived:
        known, now = changes.basis.get(key), living.get(key)
        if now is None or (key not in revived and known is not None and same_text(known.text) == same_text(now.text)):
            continue
        others = (one for other, one in living.items() if other != key and one.scope == now.scope)
        # A fact with an end may be over by now; the caller, which knows the time, decides.
        others = (one for one in others if one.expires is None and one.valid_until is None)
        if any(same_text(one.text) == same_text(now.text) for one in others):
            raise StoreChanged(f"another says what {key} says", "read it again; nothing was stored")


def revised(changes: Changes, entries: Mapping[MemoryId, Entry]) -> Iterator[Entry]:
    """Yield revised memories, which must exist, with the derived data of their entries."""
    for memory in changes.revised:
        if memory.id not in entries:
            raise StoreChanged(f"{memory.id} no longer exists", "read it again; nothing was stored")
    yield from (replace(entries[memory.id], memory=memory) for memory in changes.revised)


def _unrecalled(memory: Memory) -> Memory:
    return replace(memory, recalls=0, recalled=None)


def refuse_circles(entries: Mapping[MemoryId, Entry], changes: Changes) -> None:
    """Refuse a cycle of supersession."""
    successors = {key: entry.memory.superseded_by for key, entry in entries.items()}
    scopes = {key: entry.memory.scope for key, entry in entries.items()}
    scopes |= {entry.memory.id: entry.memory.scope for entry in changes.put}
    for key, life in changes.superseded.items():
        if life is None:
            successors[key] = None
        elif life[0] != key and scopes.get(life[0]) in (None, scopes.get(key)):
            successors[key] = life[0]
    for key, life in changes.superseded.items():
        met, by = {key}, successors.get(key) if life is not None else None
        while by is not None and by not in met:
            met.add(by)
            by = successors.get(by)
        if by is not None:
            raise StoreError(f"{by} would be replaced by itself", "nothing was stored")


def end_claims(entries: dict[MemoryId, Entry], superseded: Mapping[MemoryId, tuple[MemoryId, float] | None]) -> None:
    """Clear `supersedes` in memories that superseded a restored one."""
    back = {identity for identity, life in superseded.items() if life is None}
    for key, entry in entries.items():
        if entry.memory.supersedes in back:
            entries[key] = replace(entry, memory=replace(entry.memory, supersedes=None))


def with_recalls(entry: Entry, entries: Mapping[MemoryId, Entry], renamed: Mapping[MemoryId, MemoryId]) -> Entry:
    """Return an entry with the recalls of the memory it replaces."""
    sources = [entry.memory.id, *(old for old, new in renamed.items() if new == entry.memory.id)]
    known = next((entries[key].memory for key in sources if key in entries and entries[key].memory.recalls), None)
    if known is None or known.recalls <= entry.memory.recalls:
        return entry
    return replace(entry, memory=replace(entry.memory, recalls=known.recalls, recalled=known.recalled))


def counted(memory: Memory, recall: Recall) -> Memory:
    """Return a memory after one more recall."""
    last, expires = max(memory.recalled or recall.at, recall.at), memory.expires
    if expires is not None and recall.expires is not None:
        expires = max(expires, recall.expires)
    return replace(memory, recalls=memory.recalls + 1, recalled=last, expires=expires)


def life_of(memory: Memory) -> tuple[MemoryId, float] | None:
    """Return the successor of a memory and the time of its supersession."""
    return (memory.superseded_by, memory.superseded_at or 0.0) if memory.superseded_by else None


class MemoryReaders:
    """Terms of each entry, and the analyzer version that made them."""

    _entries: dict[MemoryId, Entry]

    def readers(self, scopes: frozenset[Scope]) -> dict[int, int]:
        """Count the memories visible to the scopes by analyzer version."""
        return dict(Counter(entry.reader for entry in self._entries.values() if entry.memory.scope in scopes))

    def beginning(self, beginning: str, scopes: frozenset[Scope]) -> dict[str, int]:
        """Return the terms with a prefix, as typed, and the document frequency of each."""
        seen = [{*entry.tokens} for entry in self._entries.values() if entry.memory.scope in scopes]
        every = set[str]().union(*seen)
        typed = typed_beginning(by_plain_spelling(every), beginning)
        terms = typed | {token for token in every if token.startswith(beginning)}
        return {term: sum(term in tokens for tokens in seen) for term in sorted(terms)}

    def spelled(self, plain: Collection[str], scopes: frozenset[Scope]) -> dict[str, tuple[str, ...]]:
        """Return the accented tokens of each plain spelling."""
        seen = {token for entry in self._entries.values() if entry.memory.scope in scopes for token in entry.tokens}
        known = by_plain_spelling(sorted(seen))
        return {word: known[word] for word in plain if word in known}

    def read_before(self, reader: int, limit: int) -> list[Memory]:
        """Return up to `limit` memories that an earlier analyzer indexed."""
        older = [entry.memory for entry in self._entries.values() if entry.reader < reader]
        return sorted(older, key=lambda memory: str(memory.scope))[:limit]


class MemoryStore(MemoryReaders):
    """Everything in dictionaries; term statistics are those of the visible scopes."""

    def __init__(self) -> None:
        self._entries: dict[MemoryId, Entry] = {}
        self._files: dict[tuple[Scope, str], FileRecord] = {}
        self._vectors: dict[tuple[Scope, str, str], Vector] = {}  # by scope, space and hash of the embedded text
        self._notes: dict[str, str] = {}
        self._past = Past()
        self._failures: dict[tuple[str, str], Failure] = {}
        self._leases: dict[tuple[str, str], tuple[str, float]] = {}  # the worker that embeds a text, and until when

    @contextmanager
    def reading(self, hint: Hint = NO_HINT) -> Iterator[None]:
        """Hold one snapshot; there is no concurrent writer here."""
        yield

    @property
    def is_current(self) -> bool:
        """Return true: a store in dictionaries cannot be replaced."""
        return True

    def take_in(self, arrival: Arrival) -> bool:
        """Insert one new fact, if neither its id, text nor key is known."""
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
        scopes = {entry.memory.scope for entry in changes.put}
        for entry in self._entries.values():
            vector = changes.vectors.get(entry.embed_hash)
            if vector is not None and (not scopes or entry.memory.scope in scopes):
                self._vectors[entry.memory.scope, changes.space, entry.embed_hash] = vector / np.linalg.norm(vector)
        self._notes |= changes.notes
        alive = {entry.embed_hash for entry in self._entries.values()}
        held = {(entry.memory.scope, entry.embed_hash) for entry in self._entries.values()}
        self._vectors = {key: vector for key, vector in self._vectors.items() if (key[0], key[2]) in held}
        for text_hash, failure in {**changes.failures, **dict.fromkeys(changes.vectors)}.items():
            self._failures.pop((changes.space, text_hash), None)
            self._leases.pop((changes.space, text_hash), None)
            if failure is not None:
                self._failures[changes.space, text_hash] = failure._replace(hash=text_hash)
        self._failures = {key: failure for key, failure in self._failures.items() if key[1] in {"", *alive}}

    def _lives(
        self, put: Mapping[MemoryId, Entry], gone: set[MemoryId], renamed: Mapping[MemoryId, MemoryId]
    ) -> dict[MemoryId, tuple[MemoryId, float] | None]:
        """Return the supersession of each affected memory after a write."""
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

    def settle(self, scopes: Iterable[Scope]) -> int:
        """Do nothing: there is no maintenance."""
        return 0

    def resolve(
        self,
        question: Question,
        plan: Plan,
        language: str,
        further: Sequence[Analysis] = (),
        spaces: Sequence[str] = (),
        notes: Iterable[str] = (),
    ) -> Resolution:
        """Rewrite a question, and further wordings of it, in the terms of the visible memories."""
        return resolve(self, question, plan, language, further, spaces, notes)

    def retrieve(self, request: Request) -> Retrieval:
        """Take every run of the plan, then score all their candidates by every signal."""
        with self.reading():
            return retrieve(self, request)

    def get(self, ids: Iterable[MemoryId], scopes: frozenset[Scope]) -> dict[MemoryId, Memory]:
        """Return those of these memories that the scopes may see."""
        found = (self._entries[identity].memory for identity in ids if identity in self._entries)
        return {memory.id: memory for memory in found if memory.scope in scopes}

    def fetch(self, ids: Iterable[MemoryId], scopes: frozenset[Scope]) -> Fetched:
        """Return the same as `get`: nothing is damaged here."""
        return Fetched(self.get(ids, scopes))

    def held(self, ids: Iterable[MemoryId], scopes: frozenset[Scope]) -> Candidates:
        """Return the same as `get`: nothing has to be read here."""
        return Candidates.of(self.get(ids, scopes))

    def browse(
        self, where: Where, limit: int, offset: int = 0, order: Order = "place", after: SortingKey | None = None
    ) -> list[Memory]:
        """Return memories by content key, or the latest, most important or most recalled first."""
        found = sorted((entry.memory for entry in self._visible(where)), key=lambda one: sorting_key(one, order))
        behind = [one for one in found if after is None or sorting_key(one, order) > after]
        return behind[offset : offset + limit]

    def each(self, where: Where) -> Iterator[Memory]:
        """Yield memories in the order of their content keys."""
        yield from self.browse(where, len(self._entries))

    def with_text(self, text: str, scope: Scope) -> list[Memory]:
        """Return the facts of one scope with the same text."""
        facts = (entry.memory for entry in self._entries.values() if entry.memory.kind == "fact")
        return [fact for fact in facts if fact.scope == scope and same_text(fact.text) == same_text(text)]

    def scopes(self, within: Scope | None = None) -> frozenset[Scope]:
        """Return the scopes of all memories, or one and those below it."""
        found = {entry.memory.scope for entry in self._entries.values()}
        return frozenset(scope for scope in found if within is None or scope.is_within(within))

    def written(self, scope: Scope, key: str) -> Written | None:
        """Return the outcome of a keyed write in the scope, if there was one."""
        return self._past.keys.get((scope, key))

    def keys(self, scope: Scope) -> dict[str, Written]:
        """Return the outcomes of all keyed writes in the scope, by key."""
        return {key: written for (owner, key), written in self._past.keys.items() if owner == scope}

    def history(self, ids: Sequence[MemoryId], scopes: frozenset[Scope]) -> dict[MemoryId, list[Former]]:
        """Return the histories of those of these memories that were changed and may be seen."""
        seen = self.get(ids, scopes)
        return {key: list(self._past.formers[key]) for key in seen if key in self._past.formers}

    def sample(self, where: Where, count: int) -> list[Memory]:
        """Return up to `count` memories, spread evenly over the store."""
        found = {entry.memory.id: entry.memory for entry in self._visible(where)}
        return [found[identity] for identity in spread(found, count)]

    def keyword(
        self, terms: Sequence[str], where: Where, limit: int | None, join: Join = "or", repeats: Repeats = ONCE
    ) -> Run:
        """Return the best memories by lexical score."""
        seen, scored = self._seen(where.scopes), list[Scored]()
        for entry, found in zip(seen, addends(seen, terms, repeats), strict=True):
            text = bm25.padded(entry.tokens)
            enough = join == "or" or all(bm25.occurrences(text, term) for term in words_in(terms))
            if terms and found and enough and passes(entry, where):
                scored.append(with_tie(bm25.word_score(tuple(found)), entry.memory))
        return Run("keyword", best(scored, limit))

    def passing(self, ids: Iterable[MemoryId], where: Where) -> set[MemoryId]:
        """Return those of these memories that pass the filter."""
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
            values = {identity: bm25.word_score(found) for identity, found in wanted.items()}
            dated, most = date_scores(seen, terms)
            coverage = {
                entry.memory.id: self._coverage(
                    entry, words_in(terms), where.scopes, dated.get(entry.memory.id, 0.0), most
                )
                for entry in entries
            }
            signals.append(
                Signal("keyword", values, coverage, wanted, memories=self.statistics((), where.scopes).total)
            )
        if vector is not None:
            cosines = {entry.memory.id: self._cosine(entry, vector, space) for entry in entries}
            found = {identity: cosine for identity, cosine in cosines.items() if cosine is not None}
            signals.append(Signal("vector", found))
        return signals

    def languages(self, scopes: frozenset[Scope]) -> Mapping[str, int]:
        """Count the memories visible to the scopes by detected language; those without one are not counted."""
        marks = marks_but_of("")
        return Counter(marks[mark] for entry in self._seen(scopes) for mark in entry.marks if mark in marks)

    def in_other_languages(
        self, ids: Collection[MemoryId], language: str, scopes: frozenset[Scope]
    ) -> dict[MemoryId, str]:
        """Return the languages of those of these memories that may be seen and are in another language."""
        marks, seen = marks_but_of(language), {entry.memory.id: entry.marks for entry in self._seen(scopes)}
        own = ((identity, mark) for identity in ids for mark in seen.get(identity, ()))
        return {identity: marks[mark] for identity, mark in own if mark in marks}

    def last_positions(self, sessions: Collection[tuple[Scope, str]]) -> dict[tuple[Scope, str], int]:
        """Return the position of the last turn of each of these sessions."""
        turns = [
            entry.memory for entry in self._entries.values() if (entry.memory.scope, entry.memory.session) in sessions
        ]
        ordered = sorted(turns, key=lambda memory: memory.position)
        return {(memory.scope, memory.session): memory.position for memory in ordered if memory.is_turn}

    def vectors(self, ids: Sequence[MemoryId], space: str, scopes: frozenset[Scope]) -> dict[MemoryId, Vector]:
        """Return the unit vectors of those of these memories that have one and may be seen."""
        found = {key: self._vector(self._entries[key], space) for key in self.get(ids, scopes)}
        return {key: vector for key, vector in found.items() if vector is not None}

    def _vector(self, entry: Entry, space: str) -> Vector | None:
        return self._vectors.get((entry.memory.scope, space, entry.embed_hash))

    def statistics(self, terms: Iterable[str], scopes: frozenset[Scope]) -> Statistics:
        """Return the term statistics of the memories visible to the scopes."""
        seen = [entry for entry in self._entries.values() if entry.memory.scope in scopes]
        frequency = {
            term: sum(1 for entry in seen if bm25.occurrences(bm25.padded(entry.tokens), term)) for term in terms
        }
        length = sum(len(entry.tokens) for entry in seen)
        return Statistics(len(seen), length / len(seen) if seen else 0.0, frequency)

    def spaces(self) -> dict[str, int]:
        """Count the vectors of each embedding space."""
        return self._count_vectors(self._entries.values())

    def _count_vectors(self, entries: Iterable[Entry]) -> dict[str, int]:
        held = Counter((entry.memory.scope, entry.embed_hash) for entry in entries)
        counts = Counter[str]()
        for scope, space, text_hash in self._vectors:
            counts[space] += held[scope, text_hash]
        return {space: count for space, count in sorted(counts.items()) if count}

    def known_vectors(self, hashes: Iterable[str], space: str, scope: Scope) -> set[str]:
        """Return those of these embedded texts that already have a vector in the space and scope."""
        return {text_hash for text_hash in hashes if (scope, space, text_hash) in self._vectors}

    def without_vector(
        self, space: str, limit: int, after: tuple[str, int] = FIRST_PLACE, due: float | None = None
    ) -> list[Waiting]:
        """Return up to `limit` texts after a place that lack a vector, except those to retry after `due`."""
        later = {one.hash for one in self.failures(space) if due is not None and one.next_try > due}
        placed = (
            Waiting(entry.embed_hash, entry.embed_text, (str(entry.memory.scope), number))
            for number, entry in enumerate(self._entries.values())
            if entry.embed_hash not in later and self._vector(entry, space) is None
        )
        return sorted((one for one in placed if one.place > after), key=attrgetter("place"))[:limit]

    def claim(self, space: str, limit: int, worker: str, lease_seconds: float, now: float) -> list[Waiting]:
        """Lease texts without a vector that are due and leased to nobody."""
        leased = {text_hash for (owner, text_hash), (_, end) in self._leases.items() if owner == space and end > now}
        waiting = {one.hash: one for one in self.without_vector(space, len(self._entries), due=now)}
        found = [one for text_hash, one in waiting.items() if text_hash not in leased][:limit]
        self._leases |= {(space, one.hash): (worker, now + lease_seconds) for one in found}
        return found

    def release(self, space: str, hashes: Iterable[str], worker: str) -> None:
        """End the leases of a worker on these texts."""
        for text_hash in hashes:
            if self._leases.get((space, text_hash), ("",))[0] == worker:
                del self._leases[space, text_hash]

    def listening(self, wake: Callable[[], None]) -> AbstractContextManager[bool]:
        """Yield False: workers poll."""
        return nullcontext(False)

    def failures(self, space: str, scopes: frozenset[Scope] | None = None) -> list[Failure]:
        """Return the embedding failures of a space."""
        held = Counter(entry.embed_hash for entry in self._seen(scopes))
        found = [failure for (owner, _), failure in sorted(self._failures.items()) if owner == space]
        seen = [failure for failure in found if scopes is None or not failure.hash or held[failure.hash]]
        return [failure._replace(memories=max(1, held[failure.hash])) for failure in seen]

    def dimensions(self, space: str) -> int | None:
        """Return the dimension of the vectors of a space, if it holds one."""
        return next((vector.size for (_, owner, _), vector in self._vectors.items() if owner == space), None)

    def drop_space(self, space: str) -> int:
        """Delete all vectors of a space."""
        dropped = self.spaces().get(space, 0)
        self._vectors = {key: vector for key, vector in self._vectors.items() if key[1] != space}
        self._failures = {key: failure for key, failure in self._failures.items() if key[0] != space}
        return dropped

    def manifest(self, scope: Scope) -> dict[str, FileRecord]:
        """Return the files ingested into a scope, by path."""
        return {path: record for (owner, path), record in self._files.items() if owner == scope}

    def drop_damaged_vectors(self, space: str) -> int:
        """Return 0: vectors in a dictionary are never damaged."""
        return 0

    def chunks_of(self, scope: Scope, path: str) -> dict[MemoryId, str]:
        """Return the chunks of one file: id and hash of the embedded text."""
        return {
            entry.memory.id: entry.embed_hash
            for entry in self._entries.values()
            if entry.memory.kind == "chunk"
            and entry.memory.scope == scope
            and entry.memory.source
            and entry.memory.source.path == path
        }

    def note(self, name: str) -> str | None:
        """Return the note of a name, if there is one."""
        return self._notes.get(name)

    def notes(self, prefix: str = "") -> dict[str, str]:
        """Return all notes with a prefix of their names, by name."""
        return {name: text for name, text in sorted(self._notes.items()) if name.startswith(prefix)}

    def put_note(self, name: str, text: str) -> None:
        """Write a note."""
        self._notes[name] = text

    def swap_note(self, name: str, before: str | None, after: str) -> bool:
        """Compare and swap a note: write it only if its text is still `before`."""
        stands = self._notes.get(name) == before
        if stands:
            self._notes[name] = after
        return stands

    def aborting(self, moment: float) -> AbstractContextManager[None]:
        """Do nothing: no read takes long."""
        return nullcontext()

    def status(self, space: str, scopes: frozenset[Scope] | None = None) -> StoreStatus:
        """Count the memories of the store, or those that these scopes see."""
        entries = self._seen(scopes)
        names = Counter(str(entry.memory.scope) for entry in entries)
        files = sum(scopes is None or owner in scopes for owner, _ in self._files)
        waiting = sum(self._vector(entry, space) is None for entry in entries)
        whole = 0 if scopes is None else None
        counted = (len(entries), files, dict(sorted(names.items())), self._count_vectors(entries), waiting, whole)
        return StoreStatus("memory", 0, "exact", *counted, "dictionaries")

    def _seen(self, scopes: frozenset[Scope] | None) -> list[Entry]:
        return [entry for entry in self._entries.values() if scopes is None or entry.memory.scope in scopes]

    def purge(self) -> tuple[str, ...]:
        """Do nothing: deleted memories leave no traces in dictionaries."""
        return ()

    def close(self) -> None:
        """Do nothing: there are no resources to release."""

    def _visible(self, where: Where) -> Iterator[Entry]:
        return (entry for entry in self._entries.values() if passes(entry, where))

    def _coverage(
        self, entry: Entry, terms: Sequence[str], scopes: frozenset[Scope], dated: float, most: float
    ) -> float:
        """Return the attained share of the maximal scores of words and dates."""
        statistics = self.statistics(terms, scopes)
        scores = bm25.term_scores(bm25.padded(entry.tokens), len(entry.tokens), terms, statistics)
        bound = statistics.mass(terms) + most
        return (bm25.word_score(scores) + dated) / bound if bound else 0.0

    def _cosine(self, entry: Entry, vector: Vector, space: str) -> float | None:
        import numpy as np

        stored = self._vector(entry, space)
        if stored is None:
            return None
        return float((stored.astype(np.float32).astype(np.float64) * vector.astype(np.float64)).sum())
