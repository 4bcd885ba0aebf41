"""Memories ready for a store: tokens, names, date words, and the hash of what is embedded."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from itertools import repeat
from operator import attrgetter

from ..ports import Entry, Name
from ..types import Memory
from .datewords import asked_dates, date_words
from .documents import embedded_text, searchable_text
from .names import names_of
from .pieces import Reading, reading_of
from .reldates import told_dates
from .speakers import speaker_mark

# Letter runs help where words are long and change their shape: +0.01 nDCG in German and Russian, nothing in English,
# where they are most of an index.
WORDS_SUFFICE = frozenset({"en"})

# Raised whenever the same text would give other words, names or date words, or the same file other fields:
# files are then read anew when they are ingested, and the words of all other memories a few at a time.
READER_VERSION = 4

# All of a memory that words, names, date words, vectors and places are made of; the rest is looked up when asked for.
_read = attrgetter(
    "id", "text", "kind", "name", "title", "slug", "owner", "aliases", "summary", "headings", "source", "scope",
    "created", "date", "evergreen", "session", "speaker", "position",
)  # fmt: skip


def entry_for(memory: Memory, language: str) -> Entry:
    """Analyse a memory."""
    text = embedded_text(memory)
    read = reading_of(searchable_text(memory), language)
    return _entry(memory, language, read, names_of(memory), text, content_hash(text))


def entries_for(memories: Sequence[Memory], language: str) -> list[Entry]:
    """Analyse memories step by step, all of them in each: its code and its tables stay in the processor's caches."""
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
        marks=(*_date_words(memory, read), *(speaker_mark(memory.speaker) if memory.is_turn else ())),
        language=language,
        reader=READER_VERSION,
    )


def reads_alike(one: Memory, other: Memory) -> bool:
    """Tell whether two memories give the same entry, so that one can stand in the index of the other."""
    return bool(_read(one) == _read(other))


def _date_words(memory: Memory, read: Reading) -> tuple[str, ...]:
    """Return the date words of a memory: its own, those it names, those it tells from where it stands."""
    named = asked_dates(memory.text, read.dated) if read.dated else ()
    # The time it was written down is nobody's date.
    if memory.date is None or memory.date == memory.created:
        return named
    return tuple(
        dict.fromkeys((*date_words(memory.date), *named, *told_dates(memory.text, memory.date, read.language)))
    )


def content_hash(text: str) -> str:
    """Return the fingerprint of a text."""
    return hashlib.blake2b(text.encode("utf-8", errors="replace"), digest_size=16).hexdigest()
