"""The seams: what whyrank asks of a store, an embedder, a reranker and a language model, and nothing more."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, Protocol

from .columns import MemoryId
from .hits import Held
from .matches import NameProbe
from .types import ONCE, USUAL_IMPORTANCE, Former, Join, Memory, Order, Repeats, Run, Scope, Signal, Statistics, Where

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vector = NDArray[np.float32]
else:
    Vector = object  # ports are imported by all; numpy is loaded only where vectors are computed

LACKING = "vectors-missing"  # the notice of an answer where memories have no vector yet
ALTERED = "damaged-text"  # the notice of an answer that shows a text which is not the one that was stored
UNREADABLE = "facts-damaged"  # the notice of a run where facts cannot be read any more
SortingKey = tuple[object, ...]  # where a memory stands in a list of some order; what comes behind has a greater one
UNKNOWN_READER = 0  # earlier than all that are known


class Name(NamedTuple):
    """One name of a memory: as written, its key, its words, and how specific a path it is (0 for no path)."""

    text: str
    key: str
    words: tuple[str, ...]
    specificity: int = 0


@dataclass(frozen=True, slots=True)
class Entry:
    """A memory ready to be stored: analysed, named and fingerprinted outside any transaction.

    `embed_text` is `embedded_text` of the memory. `letters` says that it is in a language whose words are also matched
    by the letters inside them; `marks` are its date words and who said it; `language` is that of texts that do not show
    theirs; `reader` is the version of what turned its text into words.
    """

    memory: Memory
    tokens: tuple[str, ...]
    names: tuple[Name, ...]
    embed_text: str
    embed_hash: str
    letters: bool = False
    marks: tuple[str, ...] = ()
    language: str = ""
    reader: int = UNKNOWN_READER


class FileRecord(NamedTuple):
    """What the manifest remembers of an ingested file, so that an unchanged one costs a stat."""

    path: str
    scope: Scope
    size: int
    mtime_ns: int
    content_hash: str


class Written(NamedTuple):
    """What a write with a key came to: the memory, and a fingerprint of what was asked to be written."""

    memory: MemoryId
    content: str


class Arrival(NamedTuple):
    """A fact that nobody has said before: a vector if it has one, the key of the write and what that came to.

    `note` is a name with the text that stood under it when the vector was made.
    """

    memory: Memory
    language: str = ""
    space: str = ""
    vector: Vector | None = None
    key: tuple[str, Written] | None = None
    note: tuple[str, str] | None = None


class Recall(NamedTuple):
    """A memory was of use at a moment, and may live until another; None leaves its expiry."""

    memory: MemoryId
    at: float
    expires: float | None = None


class Waiting(NamedTuple):
    """A text that has no vector in a space, and its place: one goes on after it."""

    hash: str
    text: str
    place: int


class Failure(NamedTuple):
    """Why a text has no vector yet, or (where the hash is empty) why the whole provider gives none."""

    hash: str
    attempts: int
    error: str
    failed: float
    next_try: float
    memories: int = 1  # that hold the text, as far as whoever asks sees them


@dataclass(frozen=True, slots=True)
class Changes:
    """One transaction's worth of changes: all of it happens, or none.

    A memory that is put again under its id keeps its recalls and what replaced it, unless `superseded` says otherwise:
    a pair of successor and moment, or None to bring it back, which ends its successor's claim. A circle is refused. Of
    what is `revised` only fields change that no index reads (`analysis.entries`); where it is not there, StoreChanged.
    Of `replace_files` only what is put stays; `renamed` has new ids by old ones that live on.

    `basis` holds memories as they were when the change was thought out, None for one that was not there, and `noted` a
    note: if one is another by now, or would live beside a fact of its scope that says the same, StoreChanged. `clear`
    empties scopes, files and keys included. `prune` removes what has expired by a moment; what that replaced stays so,
    while what a removed one replaced comes back. A key in `keys` that stands for other content is refused. `purge`
    leaves nothing in indexes. `failures` are by the hash of the text, None where one is over, as by a vector.
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
    """What a store holds, or what of it some scopes see: of the size of the file no part is theirs."""

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
    free_bytes: int | None = field(default=None, compare=False)  # on the disk of the store, whoever else fills it
    ballast_bytes: int | None = None  # kept beside it, to be given up when the disk is full
    caches: Mapping[str, int] = field(
        default_factory=dict, compare=False
    )  # bytes held by each; none where only a share is told


class Store(Protocol):
    """Where memories live; every run filters by `where` before it cuts."""

    def reading(self) -> AbstractContextManager[None]:
        """Hold one consistent view for all reads inside the block."""

    @property
    def is_current(self) -> bool:
        """Tell whether what was opened is still what stands under its name; if not, every call is refused."""

    def aborting(self, moment: float) -> AbstractContextManager[None]:
        """Abort reads of this thread inside the block with StoreTimeout once `time.monotonic()` has passed a moment."""

    def take_in(self, arrival: Arrival) -> bool:
        """Store one new fact; return only when it is durable, and every later read finds it.

        False, and nothing is stored, where `write` must decide: the id, the text in its scope or the key is known,
        something claims to have replaced it, its vector does not fit the space or is the first there, the space has
        failures, or another text stands under the name of the note.
        """

    def write(self, changes: Changes) -> None:
        """Apply changes in one transaction; return only when they are durable."""

    def settle(self, scopes: Iterable[Scope]) -> None:
        """Keep house after many writes to these scopes, so that searches need not pay for them."""

    def get(self, ids: Iterable[MemoryId], scopes: frozenset[Scope]) -> dict[MemoryId, Memory]:
        """Return those of these memories that the scopes may see."""

    def held(self, ids: Iterable[MemoryId], scopes: frozenset[Scope]) -> Mapping[MemoryId, Held]:
        """Return the same as `get`, to be read only when looked at; it stays what it is now."""

    def browse(
        self, where: Where, limit: int, offset: int = 0, order: Order = "place", after: SortingKey | None = None
    ) -> list[Memory]:
        """Return memories in the order of their content keys, or the latest, weightiest, most recalled first.

        With `after` those that stand behind this place in the order, be there still a memory in it or not.
        """

    def each(self, where: Where) -> Iterator[Memory]:
        """Yield memories in the order of their content keys, without holding them all."""

    def with_text(self, text: str, scope: Scope) -> list[Memory]:
        """Return the facts of one scope that say the same: case and white space aside."""

    def written(self, scope: Scope, key: str) -> Written | None:
        """Return what a write with a key came to, if there was one in the scope."""

    def keys(self, scope: Scope) -> dict[str, Written]:
        """Return what all writes with keys in the scope came to, by key."""

    def history(self, ids: Sequence[MemoryId], scopes: frozenset[Scope]) -> dict[MemoryId, list[Former]]:
        """Return what those of these memories were before that were changed and may be seen, the latest change last."""

    def sample(self, where: Where, count: int) -> list[Memory]:
        """Return up to `count` memories from all over; the same memories in any store give the same choice."""

    def keyword(
        self, terms: Sequence[str], where: Where, limit: int | None, join: Join = "or", repeats: Repeats = ONCE
    ) -> Run:
        """Return the best by word score, up to `limit` distinct sources (None: all); `repeats` change no coverage."""

    def beginning(self, beginning: str, scopes: frozenset[Scope]) -> Mapping[str, int]:
        """Return terms of what the scopes may see that begin so, accents or none, and how many memories hold each."""

    def spelled(self, plain: Collection[str], scopes: frozenset[Scope]) -> Mapping[str, tuple[str, ...]]:
        """Return terms of what the scopes may see, or saw, that are these without accents (`by_plain_spelling`)."""

    def readers(self, scopes: frozenset[Scope]) -> Mapping[int, int]:
        """Count what the scopes may see by the reader that made its words."""

    def read_before(self, reader: int, limit: int) -> list[Memory]:
        """Return up to `limit` memories, of whatever scope, whose words an earlier reader made."""

    def passing(self, ids: Iterable[MemoryId], where: Where) -> set[MemoryId]:
        """Return those of these memories that may answer, by every filter."""

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

    def last_positions(self, sessions: Collection[tuple[Scope, str]]) -> dict[tuple[Scope, str], int]:
        """Return the position of the last turn of each of these sessions."""

    def vectors(self, ids: Sequence[MemoryId], space: str, scopes: frozenset[Scope]) -> dict[MemoryId, Vector]:
        """Return the unit vectors `nearest` compares, of those of these memories that have one and may be seen."""

    def statistics(self, terms: Iterable[str], scopes: frozenset[Scope]) -> Statistics:
        """Return the term statistics of what the scopes may see."""

    def spaces(self) -> dict[str, int]:
        """Count the vectors of each embedding space."""

    def known_vectors(self, hashes: Iterable[str], space: str) -> set[str]:
        """Return those of these embedded texts that already have a vector in the space."""

    def without_vector(self, space: str, limit: int, after: int = 0, due: float | None = None) -> list[Waiting]:
        """Return up to `limit` texts behind a place that need a vector; those to be tried later than `due` are not."""

    def failures(self, space: str, scopes: frozenset[Scope] | None = None) -> list[Failure]:
        """Return what of these scopes could not be embedded in a space and why, the provider's own failure first."""

    def dimensions(self, space: str) -> int | None:
        """Return how many numbers a vector of the space has, if it ever held one."""

    def drop_space(self, space: str) -> int:
        """Delete all vectors of a space and what is known of it; return how many."""

    def manifest(self, scope: Scope) -> dict[str, FileRecord]:
        """Return the files ingested into a scope, by path."""

    def drop_damaged_vectors(self, space: str) -> int:
        """Delete vectors that fail their checksum, so that they are made again; return how many."""

    def chunks_of(self, scope: Scope, path: str) -> dict[MemoryId, str]:
        """Return the chunks of one file: id and hash of what was embedded."""

    def note(self, name: str) -> str | None:
        """Return the text kept under a name, if there is one."""

    def notes(self, prefix: str = "") -> dict[str, str]:
        """Return all texts that are kept under names that begin so, by name."""

    def put_note(self, name: str, text: str) -> None:
        """Keep a text under a name, in place of the one before; return only when it is durable."""

    def swap_note(self, name: str, before: str | None, after: str) -> bool:
        """Keep a text in place of another only if that one still stands there; tell whether it did."""

    def status(self, space: str, scopes: frozenset[Scope] | None = None) -> StoreStatus:
        """Count what the store holds, or what of it these scopes see."""

    def purge(self) -> tuple[str, ...]:
        """Leave no byte of what was removed in any file; say what may still hold some."""

    def close(self) -> None:
        """Release the store."""


class Thresholds(NamedTuple):
    """Where evidence (of cosine and coverage) begins to be worth showing, and where it is convincing."""

    weak: float
    found: float


class Embedder(Protocol):
    """Turns text into unit vectors, for any thread that asks, and declares what they are worth in which language."""

    @property
    def fingerprint(self) -> str:
        """Name the space: provider, model, revision, dimension and prompts."""

    def weight(self, language: str) -> float:
        """Return what its vote is worth in a language, against 1 minus that for the keywords'; 0 shuts it off."""

    @property
    def thresholds(self) -> Thresholds:
        """Return the model's default thresholds of evidence, for stores that are not calibrated."""

    def documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one unit vector per text; a text without direction gets a zero row."""

    def query(self, text: str) -> Vector:
        """Return the unit vector of a question, or zeros if it has no direction."""


class Reranker(Protocol):
    """Reads a question and texts together, and says how well each text answers; its repr is in the trail."""

    def scores(self, question: str, texts: Sequence[str]) -> Sequence[float]:
        """Return one finite number for each text; higher is better, and only their order matters."""


class Message(NamedTuple):
    """One message to a language model; the role is system, user or assistant."""

    role: str
    text: str


class Completion(NamedTuple):
    """What a language model answered, and how many tokens it says that took (0 if it does not say)."""

    text: str
    prompt_tokens: int = 0
    completion_tokens: int = 0


class Llm(Protocol):
    """Answers messages; whatever goes wrong is a ProviderError."""

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
        """Return the model's answer; a schema asks for JSON of that shape where the server can promise it."""


def sorting_key(memory: Memory, order: Order) -> SortingKey:
    """Return where a memory stands in a list."""
    first: dict[Order, tuple[float, ...]] = {
        "place": (),
        "created": (-memory.created,),
        "date": (memory.date is None, -(memory.date or 0.0)),
        "importance": (-(memory.importance or USUAL_IMPORTANCE),),
        "recalls": (-memory.recalls,),
    }
    return (*first[order], *memory.content_key)
