"""Pins: good answers recorded once, and how they are known again when texts were cut or moved otherwise.

A pin keeps no text of the memory, only fingerprints of it: a memory that is forgotten must not live on in a file that
people commit. An id derives from content, so it changes with every edit and every other way of chunking; path,
headings and fingerprints are what a changed chunk is known by.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import regex

from ..analysis.text import UNSPACED, fold
from ..columns import MemoryId
from ..errors import ConfigError
from ..types import Memory

DEFAULT_WITHIN = 5  # ranks: what people look at, and most agents read
SHINGLE = 3  # words in a row: two texts rarely share three by chance
SKETCH = 24  # fingerprints kept: enough to see a quarter of a text in another
MIN_SHARED = 0.25  # share of a pinned text that makes a chunk its successor: a chunk may be cut in three
_WORD = regex.compile(rf"(?V1)[{UNSPACED}]|[[\p{{L}}\p{{M}}\p{{N}}_]--[{UNSPACED}]]+")


@dataclass(frozen=True, slots=True)
class Pin:
    """A memory that is a good answer to a query: among the first `within` results, for whoever may see the scopes.

    Without an id any chunk of the path will do, or the text that was its best, in a file of another name.
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
        """Return what makes it the same pin: query, scopes, and the memory or file."""
        return self.query, self.scopes, self.id or self.path

    @property
    def place(self) -> str:
        """Return where the memory stood."""
        return (f"{self.path}:{self.line}" if self.line else self.path) or self.id

    def is_moved(self, memory: Memory) -> bool:
        """Tell whether what answers now has another id, or for a whole file another path."""
        return memory.id != self.id if self.id else memory.source is None or memory.source.path != self.path

    def is_for(self, scopes: Iterable[str]) -> bool:
        """Tell whether a caller with these scopes may see it."""
        return {*self.scopes} <= {*scopes, "global"}


def pin_of(query: str, scopes: Iterable[str], within: int, memory: Memory, *, whole_file: bool) -> Pin:
    """Record a memory, or its whole file, as a good answer."""
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
    """Tell whether a memory is of a pinned file, whatever that is called now."""
    source = memory.source
    return source is not None and (source.path == pin.path or source.content_hash == (pin.text_hash or None))


def succeeds(memory: Memory, pin: Pin) -> bool:
    """Tell whether a memory is what became of a pinned one that is no longer there under its id."""
    source = memory.source
    if source is None:
        return False
    if pin.text_hash and source.content_hash == pin.text_hash:
        return True  # the same text in a file of another name
    if not pin.path or source.path != pin.path:
        return False
    return (bool(pin.headings) and memory.headings == pin.headings) or shared(pin, memory.text) >= MIN_SHARED


def shared(pin: Pin, text: str) -> float:
    """Return which share of the pinned text stands in another."""
    return len(_shingles(text).intersection(pin.sketch)) / len(pin.sketch) if pin.sketch else 0.0


def _shingles(text: str) -> set[str]:
    """Return fingerprints of every three words in a row; they depend on no analysis, which may change."""
    words = _WORD.findall(fold(text))
    runs = (" ".join(words[i : i + SHINGLE]) for i in range(max(1, len(words) - SHINGLE + 1)))
    return {hashlib.blake2b(run.encode(), digest_size=4).hexdigest() for run in runs} if words else set()


def to_line(pin: Pin) -> str:
    """Write a pin as one line; what is empty is left out."""
    data = {key: value for key, value in asdict(pin).items() if value or key == "within"}
    return json.dumps(data, ensure_ascii=False)


def _texts(given: object) -> tuple[str, ...]:
    if not isinstance(given, list):
        raise TypeError(f"{given!r} is no list")
    return tuple(map(str, given))


def from_line(line: str, place: str) -> Pin:
    """Read a pin, or say which line is none."""
    try:
        fields: Mapping[str, Any] = json.loads(line)
        lists = {key: _texts(fields.get(key, [])) for key in ("scopes", "headings", "sketch")}
        texts = {key: str(fields.get(key, "")) for key in ("id", "path", "text_hash")}
        within, start = int(fields["within"]), int(fields.get("line", 0))
        pin = Pin(str(fields["query"]), within=within, line=start, **texts, **lists)  # type: ignore[arg-type]
        line.encode("utf-8"), pin.query.encode("utf-8")  # what cannot be written could not be kept
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError) as error:
        raise ConfigError(f"{place} is no pin: {error!r}", "mend the line, or take it out") from error
    if pin.within < 1 or not (pin.id or pin.path):
        raise ConfigError(f"{place} is no pin: it needs an id or a path, and within from 1", "mend the line")
    return pin
