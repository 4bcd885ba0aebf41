"""What was asked about which part of a file and what came of it: one note of the store for each part."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import Literal, NamedTuple

from ..columns import MemoryId
from ..lifetimes import LIFETIMES
from ..ports import Store
from ..types import Memory, Scope
from .answers import Refused
from .entries import content_hash
from .prompts import PROMPT_VERSION
from .windows import Window

Outcome = Literal["done", "failed"]

DECAY = "stable"  # the class of what is extracted
LIFETIME_S = LIFETIMES[DECAY] or 0.0
RENEWED_AFTER_S = LIFETIME_S / 10  # sooner, a run that finds nothing new would write for nothing

KEPT_LINES = 100  # of one part; an answer of ten thousand lines need not be kept to be understood
KEPT_CHARACTERS = 2_000  # of one line

_FORMAT = 1
_KIND = "extraction"

_ESCAPED = re.compile(r"\\u([0-9a-fA-F]{4})")
_SHORT_ESCAPE = re.compile(r"\\[nrtbf]")
_NO_LETTER = re.compile(r"[\W_]+")


class Part(NamedTuple):
    """A part of a file that a model is asked about."""

    path: str
    window: Window
    date: float | None = None

    @property
    def fingerprint(self) -> str:
        """Return the hash of its text."""
        return content_hash(self.window.text)

    def key(self, model: str) -> str:
        """Return what its record is kept under: the same text asked of the same model in the same words."""
        return content_hash(json.dumps([PROMPT_VERSION, model, self.window.text]))


class LeftOut(NamedTuple):
    """A line of an answer that was not stored, and why."""

    line: str
    reason: str


@dataclass(frozen=True)
class Record:
    """What came of asking about one part; `more_left_out` lines were left out besides those that are kept."""

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
        """Tell whether the part need not be asked about again: it was done, and what it gave has not faded since."""
        return self.outcome == "done" and now < self.at + LIFETIME_S

    def seen(self, now: float) -> Record:
        """Return the record of a part that still stands in its file."""
        return replace(self, at=now)


def record_of(part: Part, model: str, now: float) -> Record:
    """Return the record of a part of which nothing has come yet."""
    window = part.window
    return Record(part.path, window.start_line, window.end_line, part.fingerprint, model, "done", now)


def with_lines(record: Record, left_out: list[LeftOut]) -> Record:
    """Return a record that keeps these lines, or the first of them."""
    kept = tuple(LeftOut(_clipped(line), reason) for line, reason in left_out[:KEPT_LINES])
    return replace(record, left_out=kept, more_left_out=len(left_out) - len(kept))


def left_out_of(refused: tuple[Refused, ...]) -> list[LeftOut]:
    """Return refused lines as they are kept."""
    return [LeftOut(bad.line, bad.reason) for bad in refused]


def _clipped(line: str) -> str:
    cut = len(line) - KEPT_CHARACTERS
    return line if cut <= 0 else f"{line[:KEPT_CHARACTERS]}… ({cut:,} characters more)"


def name_of(scope: Scope, key: str) -> str:
    """Return the name of the note a record is kept in."""
    return json.dumps([_KIND, str(scope), key])


def records_of(store: Store, scope: Scope) -> dict[str, Record]:
    """Return the records of a scope by the names of their notes; what another version wrote otherwise is none."""
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
    """Return what texts share however they are written down: letters and digits, also where JSON has escaped them."""
    plain = " ".join(texts)
    unescaped = _ESCAPED.sub(lambda escape: chr(int(escape.group(1), 16)), plain)
    return _NO_LETTER.sub("", _SHORT_ESCAPE.sub("", unescaped.casefold()))


def _notes(store: Store, scope: Scope) -> dict[str, str]:
    return store.notes(json.dumps([_KIND, str(scope)])[:-1] + ",")


def as_note(record: Record) -> str:
    """Return a record as it is kept."""
    return json.dumps({**asdict(record), "format": _FORMAT})


def _read(text: str) -> Record | None:
    try:
        data = json.loads(text)
        if data.pop("format") != _FORMAT:
            return None
        lines = tuple(LeftOut(line, reason) for line, reason in data.pop("left_out"))
        return Record(**{**data, "facts": tuple(data["facts"]), "left_out": lines})
    except (ValueError, TypeError, KeyError, AttributeError):
        return None
