"""Protocols of the store, the embedder, the reranker and the language model."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from .types.memory import USUAL_IMPORTANCE, Entry, Former, Memory, Notice, Order, Scope
from .types.query import ONCE, All, Analysis, Either, Holds, Join, Plan, Query, Repeats, Statistics, Stopwatch, Where
from .types.results import Run, Signal

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    import numpy as np
    from numpy.typing import NDArray

    from .types.memory import MemoryId
    from .types.query import Expression
    from .types.results import Candidates, Context
    from .types.trail import NameProbe

    Vector = NDArray[np.float32]
else:
    Vector = object


LEASE_SECONDS = 300.0  # longer than a slow server takes for a batch, also where it is asked text by text
LACKING = "vectors-missing"  # the notice of an answer where memories have no vector yet
ADDED_LACKING = "added-vectors-missing"  # the same of the additional model
ALTERED = "damaged-text"  # the notice of an answer that shows a text which is not the one that was stored
UNREADABLE = "facts-damaged"  # the notice of a run where facts cannot be read any more
SortingKey = tuple[object, ...]  # position of a memory in a list of some order; later ones have a greater key


class FileRecord(NamedTuple):
    """Manifest row of an ingested file, so that an unchanged one costs a stat."""

    path: str
    scope: Scope
    size: int
    mtime_ns: int
    content_hash: str


class Written(NamedTuple):
    """Result of a write with an idempotency key: the memory, and a fingerprint of the written content."""

    memory: MemoryId
    content: str


class Arrival(NamedTuple):
    """New fact to store: with a vector if it has one, the idempotency key and its result.

    `note` is a name with the text stored under it when the vector was made.
    """

    memory: Memory
    language: str = ""
    space: str = ""
    vector: Vector | None = None
    key: tuple[str, Written] | None = None
    note: tuple[str, str] | None = None


class Recall(NamedTuple):
    """Use of a memory at a moment, with its new expiry; None leaves the expiry."""

    memory: MemoryId
    at: float
    expires: float | None = None


class Waiting(NamedTuple):
    """A text that has no vector in a space, and its place: one goes on after it."""

    hash: str
    text: str
    place: tuple[str, int]  # the scope and number of a memory that holds the text


FIRST_PLACE = ("", -1)  # before every memory


class Failure(NamedTuple):
    """Reason why a text has no vector yet, or (where the hash is empty) why the whole provider gives none."""

    hash: str
    attempts: int
    error: str
    failed: float
    next_try: float
    memories: int = 1  # that hold the text and are visible to the caller


@dataclass(frozen=True, slots=True)
class Changes:
    """Changes of one transaction: all of them are applied, or none.

    A memory that is put again under its id keeps its recalls and its successor, unless `superseded` changes it: a pair
    of successor and moment, or None to restore it, which ends its successor's claim. A cycle is refused. In `revised`
    memories only fields change that no index reads (`analysis.entries`); a missing one raises StoreChanged. Of
    `replace_files` only the memories that are put stay; `renamed` maps old ids that continue to new ones.

    Optimistic concurrency: `basis` holds memories as they were when the change was computed, None for one that did not
    exist, and `noted` a note. If one has changed since, or would duplicate the text of a fact in its scope,
    StoreChanged is raised. `clear` empties scopes, files and keys included. `prune` removes memories expired by a
    moment; those that they replaced stay replaced, while those replaced by a removed memory are restored. A key in
    `keys` that belongs to other content is refused. `purge` leaves nothing in indexes. `failures` are by the hash of
    the text, None where one is over, as by a vector.
    """

    put: Sequence[Entry] = ()
    revised: Sequence[Memory] = ()
    remove: Sequence[MemoryId] = ()
    replace_files: Sequence[tuple[Scope, str]] = ()
    renamed: Mapping[MemoryId, MemoryId] = field(default_factory=dict)
    files: Sequence[FileRecord] = ()
    forget_files: Sequence[tuple[Scope, str]] = ()
    superseded: Mapping[MemoryId, tuple[MemoryId, float] | None] = field(default_factory=dict)
    space: str = ""
    vectors: Mapping[str, Vector] = field(default_factory=dict)
    basis: Mapping[MemoryId, Memory | None] = field(default_factory=dict)
    noted: tuple[str, str] | None = None
    history: Sequence[Former] = ()
    keys: Mapping[tuple[Scope, str], Written] = field(default_factory=dict)
    recalled: Sequence[Recall] = ()
    prune: Mapping[MemoryId, float] = field(default_factory=dict)
    clear: Sequence[Scope] = ()
    notes: Mapping[str, str] = field(default_factory=dict)
    drop_notes: Sequence[str] = ()
    purge: bool = False
    failures: Mapping[str, Failure | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StoreStatus:
    """Statistics of a store, or of the part visible to some scopes; the file size is not divided by scope."""

    location: str
    schema: int
    keyword_index: str
    memories: int
    files: int
    scopes: Mapping[str, int]
    spaces: Mapping[str, int]
    without_vector: int
    bytes: int | None
    engine: str
    free_bytes: int | None = field(default=None, compare=False)  # on the disk, shared with other programs
    ballast_bytes: int | None = None  # kept beside it, to be given up when the disk is full
    caches: Mapping[str, int] = field(
        default_factory=dict, compare=False
    )  # bytes held by each; none where only some scopes are counted
    server: Mapping[str, Any] = field(default_factory=dict, compare=False)  # facts and counts of a server


class Fetched(NamedTuple):
    """Memories read for an answer: `mended` ones lack a value, `altered` ones fail their checksum."""

    memories: Mapping[MemoryId, Memory]
    mended: frozenset[MemoryId] = frozenset()
    altered: frozenset[MemoryId] = frozenset()


FEW_HOLDERS = 3  # so many may hold a code in any store, …
SHARE_OF_HOLDERS = 0.05  # … and this share of a large one
LEAST_SHARE = 0.5  # of a query that a code must be, so that the memories that hold it rank above all others


def is_rare(holders: int, total: int) -> bool:
    """Return whether so few memories hold a code that they must be meant."""
    return 0 < holders <= max(FEW_HOLDERS, SHARE_OF_HOLDERS * total)


class HeldCode(NamedTuple):
    """Code of a query: its text, its term, its share of the query, and the memories that hold it."""

    text: str
    term: str
    share: float
    alone: float  # the same, counted as one thing without its parts
    frequency: int  # of the term
    holders: tuple[MemoryId, ...]  # if they are few
    is_missing: bool  # no visible memory holds it, nor all of its parts
    total: int

    @property
    def is_rare(self) -> bool:
        """Return whether so few memories hold the code that they must be meant."""
        return is_rare(max(self.frequency, len(self.holders)), self.total)

    @property
    def is_meant(self) -> bool:
        """Return whether the query is about the code, so that the memories that hold it are the answer."""
        return 0 < len(self.holders) <= FEW_HOLDERS and self.share >= LEAST_SHARE


class Question(NamedTuple):
    """A query and its analysis; in the advanced syntax with the expression that memories must satisfy."""

    query: Query
    analysis: Analysis
    expression: Expression | None = None


@dataclass(frozen=True, slots=True)
class Resolution:
    """A question in the terms of the index, and what a search needs to know of the store before it embeds.

    `further` are the other wordings, in the order they were given; `dimensions` are those of the spaces asked for, and
    `languages` counts the visible memories by language where there are two of them; `notes` are the texts that were
    asked for.
    """

    query: Query
    analysis: Analysis
    statistics: Statistics
    codes: tuple[HeldCode, ...] = ()
    is_respelled: bool = False
    further: tuple[Analysis, ...] = ()
    notices: tuple[Notice, ...] = ()
    dimensions: Mapping[str, int | None] = field(default_factory=dict)
    languages: Mapping[str, int] = field(default_factory=dict)
    notes: Mapping[str, str | None] = field(default_factory=dict)


class Probe(NamedTuple):
    """One text searched beside the query, or in its place, and the kinds of runs that search it."""

    label: str
    text: str
    families: tuple[str, ...]
    analysis: Analysis
    vector: Vector | None

    @property
    def runs(self) -> tuple[str, ...]:
        """Name its runs."""
        return tuple(f"{family}:{self.label}" for family in self.families)

    def run(self, index: Index, name: str, space: str, where: Where, join: Join, limit: int | None) -> Run:
        """Return the candidates of one of its runs, up to `limit` distinct sources; None for all."""
        if name.startswith("vector") and self.vector is not None:
            found = index.nearest(self.vector, space, where, limit)
        else:
            found = index.keyword(self.analysis.asked, where, limit, join)
        return Run(name, found.candidates, found.notices)


class AddedSpace(NamedTuple):
    """Query vector in the space of an additional model, with the language marks of the memories to search."""

    embedder: Embedder
    language: str
    marks: Mapping[str, str]
    vector: Vector

    @property
    def name(self) -> str:
        """Name its run and its signal."""
        return f"vector:{self.embedder.fingerprint.partition('/')[0]}"

    def run(self, index: Index, where: Where, limit: int | None) -> Run:
        """Return the nearest memories in another language, up to `limit` distinct sources; None for all."""
        spoken = Either(tuple(Holds(language, mark) for mark, language in self.marks.items()))
        within = replace(where, matching=spoken if where.matching is None else All((where.matching, spoken)))
        found = index.nearest(self.vector, self.embedder.fingerprint, within, limit)
        return Run(self.name, found.candidates, tuple(map(self._about, found.notices)))

    def _about(self, notice: Notice) -> Notice:
        if notice.code != LACKING:
            return notice
        lacking = f"some memories in another language have no vector in {self.name} yet, so it does not vote for them"
        return Notice(ADDED_LACKING, f"{lacking}; `whyrank embed` creates the missing vectors")


@dataclass(frozen=True, slots=True)
class Request:
    """The request of a search to the index: resolved query, vectors, inputs of the recipe's stages."""

    resolution: Resolution
    plan: Plan
    language: str
    vector: Vector | None = None
    space: str = ""
    probes: Sequence[Probe] = ()
    added: AddedSpace | None = None
    reads: frozenset[str] = frozenset()  # names of `ranking.recipes.GATHERED`
    watch: Stopwatch = field(default_factory=Stopwatch)


@dataclass(frozen=True, slots=True)
class Retrieval:
    """Runs and candidates of a query with all signals; `late` names parts skipped at the deadline."""

    runs: tuple[Run, ...]
    context: Context
    probes: tuple[Probe, ...] = ()
    notices: tuple[Notice, ...] = ()
    late: tuple[str, ...] = ()
    vectors: Mapping[MemoryId, Vector] = field(default_factory=dict)  # if the likeness of candidates is read


class Hint(NamedTuple):
    """Announcement of what a block of reads will ask for, so that a server sends it together."""

    scopes: frozenset[Scope] = frozenset()
    spaces: Sequence[str] = ()
    notes: Sequence[str] = ()
    until: float | None = None  # by `time.monotonic()`, how long the block may wait for a connection


NO_HINT = Hint()


class Terms(Protocol):
    """Term dictionary: statistics and spellings of the visible memories, and the analyzers that made them."""

    def statistics(self, terms: Iterable[str], scopes: frozenset[Scope]) -> Statistics:
        """Return the term statistics of the visible memories."""

    def beginning(self, beginning: str, scopes: frozenset[Scope]) -> Mapping[str, int]:
        """Return visible terms with this prefix, accents or none, and the number of memories that hold each."""

    def spelled(self, plain: Collection[str], scopes: frozenset[Scope]) -> Mapping[str, tuple[str, ...]]:
        """Return terms that are or were visible and equal these without accents (`by_plain_spelling`)."""

    def languages(self, scopes: frozenset[Scope]) -> Mapping[str, int]:
        """Count the visible memories by the language they show; those that show none are not counted."""

    def readers(self, scopes: frozenset[Scope]) -> Mapping[int, int]:
        """Count the visible memories by the version of the analyzer that tokenized them."""


class Index(Protocol):
    """Runs over the visible memories, each filtered by `where` before it is cut, and scores of given ones."""

    def keyword(
        self, terms: Sequence[str], where: Where, limit: int | None, join: Join = "or", repeats: Repeats = ONCE
    ) -> Run:
        """Return the best by word score, up to `limit` sources (None: all); `repeats` change no coverage."""

    def nearest(self, vector: Vector, space: str, where: Where, limit: int | None) -> Run:
        """Return the nearest memories by cosine, up to `limit` distinct sources; None for all."""

    def named(self, probe: NameProbe, where: Where, limit: int) -> Run:
        """Propose memories whose names are related to the query."""

    def score(
        self,
        ids: Collection[MemoryId],
        terms: Sequence[str],
        vector: Vector | None,
        space: str,
        where: Where,
        repeats: Repeats = ONCE,
    ) -> list[Signal]:
        """Score the given candidates by every signal, listed by its run or not."""

    def passing(self, ids: Iterable[MemoryId], where: Where) -> set[MemoryId]:
        """Return those of these memories that may answer, by every filter."""


class DocValues(Protocol):
    """Columns of given memories, without reading them."""

    def held(self, ids: Iterable[MemoryId], scopes: frozenset[Scope]) -> Candidates:
        """Return the visible ones of these memories as candidates, with sources and content keys, unread."""

    def vectors(self, ids: Sequence[MemoryId], space: str, scopes: frozenset[Scope]) -> dict[MemoryId, Vector]:
        """Return the unit vectors `nearest` compares, of these memories that are visible and have one."""

    def in_other_languages(
        self, ids: Collection[MemoryId], language: str, scopes: frozenset[Scope]
    ) -> dict[MemoryId, str]:
        """Return those of these memories that are visible and show another language, each with its own."""

    def last_positions(self, sessions: Collection[tuple[Scope, str]]) -> dict[tuple[Scope, str], int]:
        """Return the position of the last turn of each of these sessions."""


class Reader(Terms, Index, DocValues, Protocol):
    """All that a search asks of one snapshot of a store."""

    def fetch(self, ids: Iterable[MemoryId], scopes: frozenset[Scope]) -> Fetched:
        """Return these memories as far as they are visible and can be read, and which of them are damaged."""

    def dimensions(self, space: str) -> int | None:
        """Return the dimension of the space's vectors, if it ever had one."""

    def note(self, name: str) -> str | None:
        """Return the text of a note, if there is one."""

    def aborting(self, moment: float) -> AbstractContextManager[None]:
        """Abort this thread's reads in the block with StoreTimeout once `time.monotonic()` passes a moment."""


class Memories(Protocol):
    """Stored memories, read by id, by filter and by text."""

    def get(self, ids: Iterable[MemoryId], scopes: frozenset[Scope]) -> dict[MemoryId, Memory]:
        """Return those of these memories that are visible to the scopes."""

    def browse(
        self, where: Where, limit: int, offset: int = 0, order: Order = "place", after: SortingKey | None = None
    ) -> list[Memory]:
        """Return memories in the order of their content keys, or the latest, weightiest, most recalled first.

        With `after`, those behind this position in the order, whether a memory is still there or not.
        """

    def each(self, where: Where) -> Iterator[Memory]:
        """Yield memories in the order of their content keys, without holding them all."""

    def with_text(self, text: str, scope: Scope) -> list[Memory]:
        """Return the facts of one scope with the same text, ignoring case and white space."""

    def scopes(self, within: Scope | None = None) -> frozenset[Scope]:
        """Return the scopes that hold memories or have held some: all, or one and those below it."""

    def written(self, scope: Scope, key: str) -> Written | None:
        """Return the result of a write with an idempotency key in the scope, if there was one."""

    def keys(self, scope: Scope) -> dict[str, Written]:
        """Return the results of all writes with idempotency keys in the scope, by key."""

    def history(self, ids: Sequence[MemoryId], scopes: frozenset[Scope]) -> dict[MemoryId, list[Former]]:
        """Return the earlier states of those of these memories that changed and are visible, oldest first."""

    def read_before(self, reader: int, limit: int) -> list[Memory]:
        """Return up to `limit` memories of any scope that an earlier analyzer tokenized."""

    def sample(self, where: Where, count: int) -> list[Memory]:
        """Return up to `count` memories from all over; the same memories in any store give the same choice."""


class Retriever(Protocol):
    """The reads of a search, with `fetch`; a reranker adds a second `fetch`."""

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

    def retrieve(self, request: Request) -> Retrieval:
        """Take every run of the plan, then score all their candidates by every signal."""


class Spaces(Protocol):
    """Vectors by embedding space, and what still needs one."""

    def spaces(self) -> dict[str, int]:
        """Count the vectors of each embedding space."""

    def known_vectors(self, hashes: Iterable[str], space: str, scope: Scope) -> set[str]:
        """Return those of these embedded texts that already have a vector in the space and scope."""

    def without_vector(
        self, space: str, limit: int, after: tuple[str, int] = FIRST_PLACE, due: float | None = None
    ) -> list[Waiting]:
        """Return up to `limit` texts behind a place that need a vector, without those to retry after `due`."""

    def claim(self, space: str, limit: int, worker: str, lease_seconds: float, now: float) -> list[Waiting]:
        """Lease up to `limit` distinct texts that need a vector, are due at `now` and leased to nobody else.

        A lease ends when the vector or a failure of the text is written, by `release`, or by its time.
        """

    def release(self, space: str, hashes: Iterable[str], worker: str) -> None:
        """End the leases of a worker; one on a text that had failed before ends by its time."""

    def listening(self, wake: Callable[[], None]) -> AbstractContextManager[bool]:
        """Call `wake`, in a thread, whenever a writer with an embedder leaves texts without a vector.

        False where writers cannot tell: then one polls.
        """

    def failures(self, space: str, scopes: frozenset[Scope] | None = None) -> list[Failure]:
        """Return the embedding failures of these scopes in a space, the provider's own failure first."""

    def drop_space(self, space: str) -> int:
        """Delete all vectors of a space and all its other records; return the number of vectors."""

    def drop_damaged_vectors(self, space: str) -> int:
        """Delete vectors that fail their checksum, so that they are made again; return how many."""


class Metadata(Protocol):
    """Notes under names, and the manifest of ingested files."""

    def notes(self, prefix: str = "") -> dict[str, str]:
        """Return all notes whose names have this prefix, by name."""

    def put_note(self, name: str, text: str) -> None:
        """Keep a text under a name, in place of the one before; return only when it is durable."""

    def swap_note(self, name: str, before: str | None, after: str) -> bool:
        """Replace a note's text only if it still equals `before`; return whether it did (compare-and-swap)."""

    def manifest(self, scope: Scope) -> dict[str, FileRecord]:
        """Return the files ingested into a scope, by path."""

    def chunks_of(self, scope: Scope, path: str) -> dict[MemoryId, str]:
        """Return the chunks of one file: id and hash of the embedded text."""


class Store(Reader, Memories, Retriever, Spaces, Metadata, Protocol):
    """Storage of memories, read in snapshots and changed in transactions."""

    def reading(self, hint: Hint = NO_HINT) -> AbstractContextManager[object]:
        """Hold one consistent view for all reads inside the block; the hint changes no answer."""

    @property
    def is_current(self) -> bool:
        """Return whether the opened file is still the one under its name; if not, every call is refused."""

    def take_in(self, arrival: Arrival) -> bool:
        """Store one new fact; return only when it is durable, and every later read finds it.

        Return False, and store nothing, where `write` must decide: the id, the text in its scope or the key is known,
        something claims to have replaced it, its vector does not fit the space or is the first there, the space has
        failures, or the note has another text.
        """

    def write(self, changes: Changes) -> None:
        """Apply changes in one transaction; return only when they are durable."""

    def settle(self, scopes: Iterable[Scope]) -> int:
        """Run maintenance after many writes to these scopes, and all that is due; return the number of steps."""

    def status(self, space: str, scopes: frozenset[Scope] | None = None) -> StoreStatus:
        """Count the contents of the store, or of the part visible to these scopes."""

    def purge(self) -> tuple[str, ...]:
        """Erase every byte of removed content from all files; return the places that may still hold some."""

    def close(self) -> None:
        """Release the store."""


class Thresholds(NamedTuple):
    """Evidence (of cosine and coverage) from which a result is worth showing, and is convincing."""

    weak: float
    found: float


class Embedder(Protocol):
    """Embedder of texts as unit vectors, thread-safe, with the weight of its vote per language."""

    @property
    def fingerprint(self) -> str:
        """Name the space: provider, model, revision, dimension and prompts."""

    def weight(self, language: str) -> float:
        """Return the weight of its vote in a language, against 1 minus it for keywords; 0 disables it."""

    @property
    def floor(self) -> float | None:
        """Return the cosine of unrelated texts, from which its vote counts; None: calibration measures it."""

    @property
    def languages(self) -> tuple[str, ...]:
        """Return the languages the model supports, as ISO 639-1 codes; none if they are unknown."""

    @property
    def thresholds(self) -> Thresholds:
        """Return the model's default thresholds of evidence, for stores that are not calibrated."""

    def documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one unit vector per text; a text without direction gets a zero row."""

    def query(self, text: str) -> Vector:
        """Return the unit vector of a question, or zeros if it has no direction."""


class Reranker(Protocol):
    """Scorer that reads a query and texts together and rates each text; its repr is in the trail."""

    def scores(self, question: str, texts: Sequence[str]) -> Sequence[float]:
        """Return one finite number for each text; higher is better, and only their order matters."""


class Message(NamedTuple):
    """One message to a language model; the role is system, user or assistant."""

    role: str
    text: str


class Completion(NamedTuple):
    """Answer of a language model, with the token counts it reports (0 if it reports none)."""

    text: str
    prompt_tokens: int = 0
    completion_tokens: int = 0


class Llm(Protocol):
    """Answers messages; every failure is a ProviderError."""

    @property
    def model(self) -> str:
        """Name the model, for reports and trails."""

    def complete(
        self,
        messages: Sequence[Message],
        *,
        schema: Mapping[str, object] | None = None,
        max_tokens: int | None = None,
        timeout_s: float | None = None,
    ) -> Completion:
        """Return the model's answer; a schema requests JSON of that shape where the server can enforce it."""


def sorting_key(memory: Memory, order: Order) -> SortingKey:
    """Return the sort key of a memory in a list of this order."""
    first: dict[Order, tuple[float, ...]] = {
        "place": (),
        "created": (-memory.created,),
        "date": (memory.date is None, -(memory.date or 0.0)),
        "importance": (-(memory.importance or USUAL_IMPORTANCE),),
        "recalls": (-memory.recalls,),
    }
    return (*first[order], *memory.content_key)
