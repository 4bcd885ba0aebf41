"""Pinned answers: the file of pins and the check that finds lost ones."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

import regex
from filelock import FileLock, Timeout

from ..analysis.normalize import UNSPACED, fold
from ..errors import ConfigError, NotFound

if TYPE_CHECKING:
    from ..search.explain import Why
    from ..types.memory import Memory, MemoryId
    from ..types.results import Results

DEFAULT_WITHIN = 5  # ranks that people read, and most agents
SHINGLE = 3  # words in a row: two texts rarely share three by chance
SKETCH = 24  # fingerprints kept: enough to see a quarter of a text in another
MIN_SHARED = 0.25  # share of a pinned text that makes a chunk its successor: a chunk may be cut in three
_WORD = regex.compile(rf"(?V1)[{UNSPACED}]|[[\p{{L}}\p{{M}}\p{{N}}_]--[{UNSPACED}]]+")


@dataclass(frozen=True, slots=True)
class Pin:
    """A memory expected within the first `within` results of a query, searched in the given scopes.

    Without an id any chunk of the path is accepted, or the text that was its best in a file of another name.
    """

    query: str
    scopes: tuple[str, ...] = ()
    within: int = DEFAULT_WITHIN
    id: MemoryId = ""
    path: str = ""
    line: int = 0
    headings: tuple[str, ...] = ()
    text_hash: str = ""
    sketch: tuple[str, ...] = ()

    @property
    def key(self) -> tuple[str, tuple[str, ...], str]:
        """Return the identity of a pin: query, scopes, and the memory or file."""
        return self.query, self.scopes, self.id or self.path

    @property
    def place(self) -> str:
        """Return the location of the memory when it was pinned."""
        return (f"{self.path}:{self.line}" if self.line else self.path) or self.id

    def is_moved(self, memory: Memory) -> bool:
        """Check if the matching memory has another id, or for a whole file another path."""
        return memory.id != self.id if self.id else memory.source is None or memory.source.path != self.path

    def is_for(self, scopes: Iterable[str]) -> bool:
        """Check that a caller with these scopes may see the pin."""
        return {*self.scopes} <= {*scopes, "global"}


def pin_of(query: str, scopes: Iterable[str], within: int, memory: Memory, *, whole_file: bool) -> Pin:
    """Make a pin of a memory, or of its whole file."""
    source = memory.source
    path = source.path if source else ""
    named = tuple(sorted({*scopes} - {"global"}))
    text_hash = source.content_hash if source else ""
    if whole_file:
        return Pin(query, named, within, path=path, text_hash=text_hash)
    line = source.start_line if source else 0
    sketch = tuple(sorted(_shingles(memory.text))[:SKETCH])
    return Pin(query, named, within, memory.id, path, line, memory.headings, text_hash, sketch)


def answers(memory: Memory, pin: Pin) -> bool:
    """Check that a memory belongs to a pinned file, even if the file was renamed."""
    source = memory.source
    return source is not None and (source.path == pin.path or source.content_hash == (pin.text_hash or None))


def succeeds(memory: Memory, pin: Pin) -> bool:
    """Check that a memory is the successor of a pinned one whose id no longer exists."""
    source = memory.source
    if source is None:
        return False
    if pin.text_hash and source.content_hash == pin.text_hash:
        return True  # the same text in a file of another name
    if not pin.path or source.path != pin.path:
        return False
    return (bool(pin.headings) and memory.headings == pin.headings) or shared(pin, memory.text) >= MIN_SHARED


def shared(pin: Pin, text: str) -> float:
    """Return the share of the pinned text that another text contains."""
    return len(_shingles(text).intersection(pin.sketch)) / len(pin.sketch) if pin.sketch else 0.0


def _shingles(text: str) -> set[str]:
    """Return the hashes of all three-word shingles; independent of the analyzer, which may change."""
    words = _WORD.findall(fold(text))
    runs = (" ".join(words[i : i + SHINGLE]) for i in range(max(1, len(words) - SHINGLE + 1)))
    return {hashlib.blake2b(run.encode(), digest_size=4).hexdigest() for run in runs} if words else set()


def to_line(pin: Pin) -> str:
    """Write a pin as one JSON line; empty fields are left out."""
    data = {key: value for key, value in asdict(pin).items() if value or key == "within"}
    return json.dumps(data, ensure_ascii=False)


def _texts(given: object) -> tuple[str, ...]:
    if not isinstance(given, list):
        raise TypeError(f"{given!r} is not a list")
    return tuple(map(str, given))


def from_line(line: str, place: str) -> Pin:
    """Parse a pin; an invalid line raises ConfigError that names it."""
    try:
        fields: Mapping[str, Any] = json.loads(line)
        lists = {key: _texts(fields.get(key, [])) for key in ("scopes", "headings", "sketch")}
        texts = {key: str(fields.get(key, "")) for key in ("id", "path", "text_hash")}
        within, start = int(fields["within"]), int(fields.get("line", 0))
        pin = Pin(str(fields["query"]), within=within, line=start, **texts, **lists)  # type: ignore[arg-type]
        line.encode("utf-8"), pin.query.encode("utf-8")  # a pin that cannot be encoded could not be stored
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError) as error:
        raise ConfigError(f"{place} is not a pin: {error!r}", "fix the line, or remove it") from error
    if pin.within < 1 or not (pin.id or pin.path):
        raise ConfigError(f"{place} is not a pin: it needs an id or a path, and within from 1", "fix the line")
    return pin


LOOKED_AT = 50  # depth of the search for a pinned memory
_MODE = 0o644  # the usual mode of a file under version control
_LOCK_SECONDS = 10.0
_LONGEST_CHAIN = 100  # corrections of corrections that are followed
Status = Literal["kept", "moved", "lost"]
Tick = Callable[[int, int, str], None]


class PinnedEngine(Protocol):
    """Engine protocol for pins: search, `why` and `get`."""

    def search(self, query: str, *, limit: int, recipe: Any, scope: Any) -> Results:
        """Answer a query."""

    def why(self, query: str, identity: str, *, limit: int, recipe: Any, scope: Any) -> Why:
        """Explain the rank of a memory, given by its id or its path."""

    def get(self, identity: MemoryId, *, scope: Any) -> Memory:
        """Return a memory, or raise NotFound."""


@dataclass(frozen=True)
class Checked:
    """State of one pin: kept, moved to another id, or lost; with its rank and the reason."""

    pin: Pin
    status: Status
    rank: int | None
    memory: Memory | None
    why: str


@dataclass(frozen=True)
class PinCheck:
    """States of all checked pins."""

    checked: tuple[Checked, ...]

    def count(self, status: Status) -> int:
        """Count the pins with this status."""
        return sum(one.status == status for one in self.checked)

    def __str__(self) -> str:
        lost, moved = self.count("lost"), self.count("moved")
        return f"pins lost: {lost} of {len(self.checked)}" + (f", {moved} moved" if moved else "")


@dataclass(frozen=True)
class Pinboard:
    """The pins in one file, checked on one subject; scopes limit the visible pins, None shows all."""

    file: Path
    subject: PinnedEngine

    def pins(self, scopes: Sequence[str] | None) -> list[Pin]:
        """Return the pins a caller may see, in the order of their queries."""
        return [pin for pin in pins_in(self.file) if scopes is None or pin.is_for(scopes)]

    def add(self, query: str, identity: str, scopes: Sequence[str], within: int | None, recipe: Any) -> Pin:
        """Record a pin: within the first five, or within its current rank if that is lower down."""
        told = self.subject.why(query, identity, limit=LOOKED_AT, recipe=recipe, scope=scopes)
        is_file = told.memory.id != identity
        wanted = pin_of(query, scopes, within or DEFAULT_WITHIN, told.memory, whole_file=is_file)
        if within is None:
            rank = self._find(wanted, recipe)[0]
            if rank is None:
                raise ConfigError(
                    f"{identity} is not among the first {LOOKED_AT} results: {told.summary}",
                    "give the rank it should reach (--within N) to pin it as a goal",
                )
            wanted = replace(wanted, within=max(DEFAULT_WITHIN, rank))
        with _changing(self.file) as pins:
            pins[:] = [pin for pin in pins if pin.key != wanted.key] + [wanted]
        return wanted

    def take(self, given: Sequence[Pin]) -> int:
        """Record pins made elsewhere; existing ones stay as they are. Return the number added."""
        return take_pins(self.file, given)

    def remove(self, query: str, identity: str | None, scopes: Sequence[str] | None) -> list[Pin]:
        """Remove the pins of a query, or one of them."""

        def is_meant(pin: Pin) -> bool:
            may_see = scopes is None or pin.is_for(scopes)
            return may_see and pin.query == query and identity in (None, pin.id, pin.path)

        with _changing(self.file) as pins:
            gone = [pin for pin in pins if is_meant(pin)]
            pins[:] = [pin for pin in pins if not is_meant(pin)]
        if not gone:
            raise NotFound(f"there is no such pin of {query!r}", "`whyrank pin --list` shows the pins")
        return gone

    def check(self, scopes: Sequence[str] | None, recipe: Any, tick: Tick) -> PinCheck:
        """Run every pinned query again."""
        pins = self.pins(scopes)
        if not pins:
            raise NotFound(f"there are no pins to check in {self.file}", "`whyrank pin QUERY ID` records one")
        checked = []
        for number, pin in enumerate(pins, 1):
            checked.append(self._checked(pin, recipe))
            tick(number, len(pins), pin.query)
        return PinCheck(tuple(checked))

    def _checked(self, pin: Pin, recipe: Any) -> Checked:
        rank, memory = self._find(pin, recipe)
        if rank is None or memory is None or rank > pin.within:
            return Checked(pin, "lost", rank, memory, self._reason(pin, memory, recipe))
        if pin.is_moved(memory):
            return Checked(pin, "moved", rank, memory, f"it is now {memory.id}")
        return Checked(pin, "kept", rank, memory, f"it is result {rank}")

    def _find(self, pin: Pin, recipe: Any) -> tuple[int | None, Memory | None]:
        """Return the rank of a pinned memory or of its successor, and that memory."""
        limit = max(pin.within, LOOKED_AT)
        results = self.subject.search(pin.query, limit=limit, recipe=recipe, scope=pin.scopes)
        accepts = self._acceptance(pin)
        for rank, hit in enumerate(results, 1):
            found = next((memory for memory in (hit.memory, *hit.also) if accepts(memory)), None)
            if found is not None:
                return rank, found
        return None, None

    def _acceptance(self, pin: Pin) -> Callable[[Memory], bool]:
        """Return the test for a matching memory: the file, the memory, its correction, or its successor."""
        if not pin.id:
            return lambda memory: answers(memory, pin)
        held = self._latest(pin, pin.id)
        if held is not None:
            return lambda memory: memory.id == held.id
        return lambda memory: succeeds(memory, pin)

    def _latest(self, pin: Pin, identity: MemoryId) -> Memory | None:
        """Return a memory, or the latest one that superseded it."""
        memory: Memory | None = None
        for _ in range(_LONGEST_CHAIN):
            try:
                memory = self.subject.get(identity, scope=pin.scopes)
            except NotFound:
                return memory
            if memory.superseded_by is None:
                return memory
            identity = memory.superseded_by
        return memory

    def _reason(self, pin: Pin, found: Memory | None, recipe: Any) -> str:
        """Return the reason for a lost pin as text."""
        latest = found or (self._latest(pin, pin.id) if pin.id else None)
        identity = latest.id if latest else pin.path
        try:
            told = self.subject.why(pin.query, identity, limit=pin.within, recipe=recipe, scope=pin.scopes)
        except NotFound:
            return "it is no longer in the store"
        gone = "" if latest or not pin.id else "its text is no longer in the file; of the rest: "
        return gone + "; ".join((told.summary, *told.details))


def pins_in(file: Path) -> list[Pin]:
    """Return the pins in a file; none if there is no such file."""
    try:
        lines = file.read_text(encoding="utf-8").split("\n")
    except FileNotFoundError:
        return []
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file} cannot be read: {error}", "fix the file, or move it away") from error
    return [from_line(line, f"{file}:{number}") for number, line in enumerate(lines, 1) if line.strip()]


def take_pins(file: Path, given: Sequence[Pin]) -> int:
    """Record pins made elsewhere in a file; existing ones stay as they are. Return the number added."""
    with _changing(file) as pins:
        known = {pin.key for pin in pins}
        new = {pin.key: pin for pin in given if pin.key not in known}
        pins += new.values()
    return len(new)


@contextmanager
def _changing(file: Path) -> Iterator[list[Pin]]:
    """Lock the file for one writer at a time, and replace it atomically."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(f"{file}.lock", timeout=_LOCK_SECONDS):
            pins = pins_in(file)
            yield pins
            _write(file, "".join(f"{to_line(pin)}\n" for pin in sorted(pins, key=lambda pin: pin.key)))
    except Timeout as error:
        raise ConfigError(f"{file} is being changed by another process", "try again in a moment") from error
    except OSError as error:
        raise ConfigError(f"{file} cannot be written: {error.strerror}", "check the folder of the pins") from error


def _write(file: Path, text: str) -> None:
    """Write to a temporary file with an unpredictable name, then rename it into place."""
    number, fresh = tempfile.mkstemp(prefix=f"{file.name}.", dir=file.parent)
    try:
        with os.fdopen(number, "w", encoding="utf-8") as out:
            out.write(text)
            out.flush()
            os.fsync(out.fileno())
        os.chmod(fresh, file.stat().st_mode if file.exists() else _MODE)
        os.replace(fresh, file)
    except BaseException:
        Path(fresh).unlink(missing_ok=True)
        raise
