"""Ledger of extraction: the parts of files sent to a model, with their results."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import Literal, NamedTuple

from ...protocols import Store
from ...types.columns import MemoryId
from ...types.lifetimes import LIFETIMES
from ...types.memory import Memory, Scope
from ..entries import content_hash
from .parsing import RefusedLine
from .prompts import PROMPT_VERSION, Window

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

    def seen(self, now: float) -> PartRecord:
        """Return the record, renewed at this moment, as its part is still in the file."""
        return replace(self, at=now)


def record_of(part: FilePart, model: str, now: float) -> PartRecord:
    """Return the record of a part of which nothing has come yet."""
    window = part.window
    return PartRecord(part.path, window.start_line, window.end_line, part.fingerprint, model, "done", now)


def with_lines(record: PartRecord, left_out: list[LeftOut]) -> PartRecord:
    """Return a record that keeps these lines, or the first of them."""
    kept = tuple(LeftOut(_clipped(line), reason) for line, reason in left_out[:KEPT_LINES])
    return replace(record, left_out=kept, more_left_out=len(left_out) - len(kept))


def left_out_of(refused: tuple[RefusedLine, ...]) -> list[LeftOut]:
    """Return refused lines as they are kept."""
    return [LeftOut(bad.line, bad.reason) for bad in refused]


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
