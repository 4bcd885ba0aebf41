"""Entries: the ids, tokens, names, date words and content hashes of memories."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from itertools import repeat
from operator import attrgetter
from typing import TYPE_CHECKING

from ..protocols import Entry, Name
from ..types.memory import GLOBAL, Scope
from .dates import asked_dates, date_words, told_dates
from .language import language_mark
from .names import names_of, speaker_mark
from .normalize import same_bytes
from .tokenizer import Reading, reading_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ..types.columns import MemoryId
    from ..types.memory import Memory


def searchable_text(memory: Memory) -> str:
    """Return the indexed text of a memory: name or title, slug, heading trail, summary and text."""
    return _joined(memory, _called(memory), " ".join(memory.headings), memory.summary)


def embedded_text(memory: Memory) -> str:
    """Return the text to embed: name or title, slug and headings in front, to give a chunk its subject.

    The folders of a path stay out, so that a moved file keeps its vectors.
    """
    if not (memory.name or memory.title or memory.slug or memory.headings):  # as most facts
        return memory.text
    called = _called(memory)
    # A file named by its date or a number has no subject to embed; dates are matched as date words.
    if not memory.name and not any(map(str.isalpha, called)):
        called = ""
    return _joined(memory, called, " › ".join(memory.headings))


def _called(memory: Memory) -> str:
    """Return the name of a memory, else its title; a turn is not called after its log."""
    return memory.name or ("" if memory.is_turn else memory.title)


def _joined(memory: Memory, called: str, *context: str) -> str:
    # A name that equals a heading is not repeated.
    name = "" if called in memory.headings else called
    return "\n".join(line for line in (name, memory.slug, *context, memory.text) if line)


# Letter runs help where words are long and change their shape: +0.01 nDCG in German and Russian, nothing in English,
# where they are most of an index.
WORDS_SUFFICE = frozenset({"en"})

# Raised whenever the same text would give other words, names or date words, or be embedded otherwise, or the same file
# other fields: files are then read anew when they are ingested, and all other memories a few at a time.
READER_VERSION = 5

# All fields of a memory that words, names, date words, vectors and places derive from; others are read on demand.
_read = attrgetter(
    "id", "text", "kind", "name", "title", "slug", "owner", "aliases", "summary", "headings", "source", "scope",
    "created", "date", "evergreen", "session", "speaker", "position",
)  # fmt: skip


def entry_for(memory: Memory, language: str) -> Entry:
    """Analyse a memory."""
    return entries_for([memory], language)[0]


def entries_for(memories: Sequence[Memory], language: str) -> list[Entry]:
    """Analyse memories in a batch, step by step: each step's code and tables stay in the CPU caches."""
    texts = [*map(embedded_text, memories)]
    reads = [reading_of(searched, language) for searched in map(searchable_text, memories)]
    names = [*map(names_of, memories)]
    return [*map(_entry, memories, repeat(language), reads, names, texts, map(content_hash, texts))]


def _entry(
    memory: Memory, language: str, read: Reading, names: tuple[Name, ...], embed_text: str, embed_hash: str
) -> Entry:
    return Entry(
        memory=memory,
        tokens=read.tokens,
        names=names,
        embed_text=embed_text,
        embed_hash=embed_hash,
        letters=read.language not in WORDS_SUFFICE,
        marks=(
            *_date_words(memory, read),
            *(speaker_mark(memory.speaker) if memory.is_turn else ()),
            language_mark(read.shown, language),
        ),
        language=language,
        reader=READER_VERSION,
    )


def reads_alike(one: Memory, other: Memory) -> bool:
    """Return whether two memories give the same entry, so that one can replace the other in the index."""
    return bool(_read(one) == _read(other))


def _date_words(memory: Memory, read: Reading) -> tuple[str, ...]:
    """Return the date words of a memory: its own date, dates it names, and dates relative to its own."""
    named = asked_dates(memory.text, read.dated) if read.dated else ()
    # The time of storage is not a date of the content.
    if memory.date is None or memory.date == memory.created:
        return named
    return tuple(
        dict.fromkeys((*date_words(memory.date), *named, *told_dates(memory.text, memory.date, read.language)))
    )


def content_hash(text: str) -> str:
    """Return the fingerprint of a text."""
    return hashlib.blake2b(text.encode("utf-8", errors="replace"), digest_size=16).hexdigest()


_ID_BYTES = 10  # 80 bits: two of a million memories share an id once in a million stores
_LETTERS = "abcdefghijklmnopqrstuvwxyz234567"  # of base 32 (RFC 4648), two at a time below
_PAIRS = [first + second for first in _LETTERS for second in _LETTERS]


def fingerprints(scope: Scope, text: str) -> tuple[MemoryId, str, str]:
    """Return the id, the `text_key` and the `content_hash` of a new fact, encoding its text once."""
    said = same_bytes(text)
    key = hashlib.blake2b(said, digest_size=16).hexdigest()
    letters = text.encode("utf-8", errors="replace")
    exact = key if said == letters else hashlib.blake2b(letters, digest_size=16).hexdigest()
    return _id(_EVERYBODYS if scope is GLOBAL else _place(scope, ""), said, _FIRST), key, exact


def id_for(scope: Scope, path: str, text: str, occurrence: int = 0) -> MemoryId:
    """Return the id of a memory: the same content at the same place has the same id in every store."""
    return _id(_place(scope, path), text.encode("utf-8", errors="replace"), _number(occurrence))


def _id(place: bytes, said: bytes, number: bytes) -> MemoryId:
    told = b"".join((place, len(said).to_bytes(8, "little"), said, number))
    bits = int.from_bytes(hashlib.blake2b(told, digest_size=_ID_BYTES).digest(), "big")
    pairs = _PAIRS
    return (
        f"m_{pairs[bits >> 70]}{pairs[bits >> 60 & 1023]}{pairs[bits >> 50 & 1023]}{pairs[bits >> 40 & 1023]}"
        f"{pairs[bits >> 30 & 1023]}{pairs[bits >> 20 & 1023]}{pairs[bits >> 10 & 1023]}{pairs[bits & 1023]}"
    )


@lru_cache(maxsize=64)  # many memories come from one place
def _place(scope: Scope, path: str) -> bytes:
    return _measured(str(scope)) + _measured(path)


@lru_cache(maxsize=8)  # a text seldom occurs at one place more than once
def _number(occurrence: int) -> bytes:
    return _measured(str(occurrence))


def _measured(text: str) -> bytes:
    """Return a text with its length in front: no two lists of texts give the same bytes."""
    data = text.encode("utf-8", errors="replace")
    return len(data).to_bytes(8, "little") + data


_EVERYBODYS, _FIRST = _place(GLOBAL, ""), _number(0)  # as nearly all facts have them


def occurrences(texts: Iterable[str]) -> Iterable[tuple[str, int]]:
    """Number equal texts, so that each gets an id of its own."""
    seen: dict[str, int] = {}
    for text in texts:
        number = seen.get(text, 0)
        yield text, number
        seen[text] = number + 1
