"""The pins of a store in one text file, and the check that finds out what became of them."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, Protocol

from filelock import FileLock, Timeout

from ..columns import MemoryId
from ..errors import ConfigError, NotFound
from ..hits import Hit, Results
from ..types import Memory
from .pins import DEFAULT_WITHIN, Pin, answers, from_line, pin_of, succeeds, to_line

LOOKED_AT = 50  # results in which a pinned memory is looked for
_MODE = 0o644  # as any file people commit
_LOCK_SECONDS = 10.0
_LONGEST_CHAIN = 100  # corrections of corrections that are followed
Status = Literal["kept", "moved", "lost"]
Tick = Callable[[int, int, str], None]


class Explained(Protocol):
    """What a subject says about the place of one memory."""

    @property
    def memory(self) -> Memory:
        """Return the memory it is about."""

    @property
    def summary(self) -> str:
        """Return where it is, or where it was lost."""

    @property
    def details(self) -> tuple[str, ...]:
        """Return by how much."""


class Subject(Protocol):
    """What pins need of an engine."""

    def search(self, query: str, *, limit: int, recipe: Any, scope: Any) -> Results:
        """Answer a query."""

    def why(self, query: str, identity: str, *, limit: int, recipe: Any, scope: Any) -> Explained:
        """Explain the place of a memory, given by its id or its path."""

    def get(self, identity: MemoryId, *, scope: Any) -> Memory:
        """Return a memory, or raise NotFound."""


@dataclass(frozen=True)
class Checked:
    """What became of one pin: kept, moved to another id, or lost; where it is now, and why."""

    pin: Pin
    status: Status
    rank: int | None
    memory: Memory | None
    why: str


@dataclass(frozen=True)
class Checkup:
    """What became of all pins."""

    checked: tuple[Checked, ...]

    def count(self, status: Status) -> int:
        """Count the pins with this status."""
        return sum(one.status == status for one in self.checked)

    def __str__(self) -> str:
        lost, moved = self.count("lost"), self.count("moved")
        return f"loses {lost or 'none'} of {len(self.checked)}" + (f", {moved} moved" if moved else "")


@dataclass(frozen=True)
class Pinboard:
    """The pins in one file, asked of one subject; a caller sees the pins of the scopes asked for, None sees all."""

    file: Path
    subject: Subject

    def pins(self, scopes: Sequence[str] | None) -> list[Pin]:
        """Return the pins a caller may see, in the order of their queries."""
        return [pin for pin in _read(self.file) if scopes is None or pin.is_for(scopes)]

    def add(self, query: str, identity: str, scopes: Sequence[str], within: int | None, recipe: Any) -> Pin:
        """Record a good answer: within the first five, or its present rank if that is further down."""
        told = self.subject.why(query, identity, limit=LOOKED_AT, recipe=recipe, scope=scopes)
        is_file = told.memory.id != identity
        wanted = pin_of(query, scopes, within or DEFAULT_WITHIN, told.memory, whole_file=is_file)
        if within is None:
            rank = self._find(wanted, recipe)[0]
            if rank is None:
                raise ConfigError(
                    f"{identity} is not among the first {LOOKED_AT} results: {told.summary}",
                    "say within how many it shall be (--within N) to pin it as a goal",
                )
            wanted = replace(wanted, within=max(DEFAULT_WITHIN, rank))
        with _changing(self.file) as pins:
            pins[:] = [pin for pin in pins if pin.key != wanted.key] + [wanted]
        return wanted

    def take(self, given: Sequence[Pin]) -> int:
        """Record pins that were recorded elsewhere; those that are here already stay as they are. Return how many."""
        with _changing(self.file) as pins:
            known = {pin.key for pin in pins}
            new = {pin.key: pin for pin in given if pin.key not in known}
            pins += new.values()
        return len(new)

    def remove(self, query: str, identity: str | None, scopes: Sequence[str] | None) -> list[Pin]:
        """Take out the pins of a query, or one of them."""

        def is_meant(pin: Pin) -> bool:
            may_see = scopes is None or pin.is_for(scopes)
            return may_see and pin.query == query and identity in (None, pin.id, pin.path)

        with _changing(self.file) as pins:
            gone = [pin for pin in pins if is_meant(pin)]
            pins[:] = [pin for pin in pins if not is_meant(pin)]
        if not gone:
            raise NotFound(f"nothing is pinned to {query!r} like that", "`whyrank pin --list` shows the pins")
        return gone

    def check(self, scopes: Sequence[str] | None, recipe: Any, tick: Tick) -> Checkup:
        """Ask every pinned query again."""
        pins = self.pins(scopes)
        if not pins:
            raise NotFound(f"there are no pins to check in {self.file}", "`whyrank pin QUERY ID` records one")
        checked = []
        for number, pin in enumerate(pins, 1):
            checked.append(self._checked(pin, recipe))
            tick(number, len(pins), pin.query)
        return Checkup(tuple(checked))

    def _checked(self, pin: Pin, recipe: Any) -> Checked:
        rank, memory = self._find(pin, recipe)
        if rank is None or memory is None or rank > pin.within:
            return Checked(pin, "lost", rank, memory, self._reason(pin, memory, recipe))
        if pin.is_moved(memory):
            return Checked(pin, "moved", rank, memory, f"it is now {memory.id}")
        return Checked(pin, "kept", rank, memory, f"it is result {rank}")

    def _find(self, pin: Pin, recipe: Any) -> tuple[int | None, Memory | None]:
        """Return the rank of a pinned memory or of what became of it, and which memory that is."""
        limit = max(pin.within, LOOKED_AT)
        results = self.subject.search(pin.query, limit=limit, recipe=recipe, scope=pin.scopes)
        accepts = self._acceptance(pin)
        for rank, hit in enumerate(results, 1):
            found = next((memory for memory in _shown(hit) if accepts(memory)), None)
            if found is not None:
                return rank, found
        return None, None

    def _acceptance(self, pin: Pin) -> Callable[[Memory], bool]:
        """Return what tells a good answer: the file, the memory itself, its correction, or what became of it."""
        if not pin.id:
            return lambda memory: answers(memory, pin)
        held = self._latest(pin, pin.id)
        if held is not None:
            return lambda memory: memory.id == held.id
        return lambda memory: succeeds(memory, pin)

    def _latest(self, pin: Pin, identity: MemoryId) -> Memory | None:
        """Return a memory, or what has replaced it since."""
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
        """Say where a lost pin went."""
        latest = found or (self._latest(pin, pin.id) if pin.id else None)
        identity = latest.id if latest else pin.path
        try:
            told = self.subject.why(pin.query, identity, limit=pin.within, recipe=recipe, scope=pin.scopes)
        except NotFound:
            return "it is no longer in the store"
        gone = "" if latest or not pin.id else "its text is no longer in the file; of what is: "
        return gone + "; ".join((told.summary, *told.details))


def _shown(hit: Hit) -> tuple[Memory, ...]:
    """Return what a result shows: its memory, and other chunks of the same file beside it."""
    return hit.memory, *hit.also


def _read(file: Path) -> list[Pin]:
    try:
        lines = file.read_text(encoding="utf-8").split("\n")
    except FileNotFoundError:
        return []
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file} cannot be read: {error}", "mend the file, or move it away") from error
    return [from_line(line, f"{file}:{number}") for number, line in enumerate(lines, 1) if line.strip()]


@contextmanager
def _changing(file: Path) -> Iterator[list[Pin]]:
    """Let pins be changed by one process at a time; the file is wholly old or wholly new."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(f"{file}.lock", timeout=_LOCK_SECONDS):
            pins = _read(file)
            yield pins
            _write(file, "".join(f"{to_line(pin)}\n" for pin in sorted(pins, key=lambda pin: pin.key)))
    except Timeout as error:
        raise ConfigError(f"{file} is being changed by another process", "try again in a moment") from error
    except OSError as error:
        raise ConfigError(f"{file} cannot be written: {error.strerror}", "check the folder of the pins") from error


def _write(file: Path, text: str) -> None:
    """Write a file beside the old one under a name nobody could foresee, then put it in its place."""
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
