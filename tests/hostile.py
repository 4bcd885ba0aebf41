"""Queries that nobody would write and anybody may send: what they must not do is raise, or take long."""

from __future__ import annotations

import random
import string
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import whyrank
from whyrank import Engine
from whyrank.errors import BadQuery

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

MEMORIES = 10_000
CPU_SECONDS = 2.0  # of one query; on an idle machine the worst takes a tenth of that
_SYLLABLES = [consonant + vowel for consonant in "bdfgklmnprstv" for vowel in "aeiou"]
_QUERY_BYTES = 8_192
_SCRIPTS = (
    "茶壺在廚房裡的架子上",
    "чайник стоит на полке",
    "ティーポットは棚の上",
    "قهوة وشاي",
    "กาน้ำชาอยู่บนชั้น",
    "ñüßéàöäåø",
)
_SIGNS = "\"'“”„«»()[]{}*:;,.!?-_/\\|&^%$#@~`<>=+ \t\n\r\x00\x1b\u200b\u202e\ufeff\ud83d\U0001f600\u0301"


def words(chance: random.Random, count: int) -> list[str]:
    """Return made-up words of two to four syllables, from some eighty thousand to seventeen million."""
    return ["".join(chance.choices(_SYLLABLES, k=chance.randint(2, 4))) for _ in range(count)]


def fill(place: Path, memories: int = MEMORIES, per_file: int = 50) -> Path:
    """Make a store of so many memories without vectors, one chunk a section; return its file."""
    chance = random.Random(1)
    vocabulary = words(chance, 4_000)
    notes = place / "notes"
    notes.mkdir(parents=True)
    for number in range(memories // per_file):
        sections = (
            f"# {' '.join(chance.choices(vocabulary, k=3))}\n\n{' '.join(chance.choices(vocabulary, k=12))}\n"
            for _ in range(per_file)
        )
        (notes / f"note-{number}.md").write_text("\n".join(sections))
    with open_store(place) as engine:
        engine.ingest(notes)
    return place / "memory.db"


def open_store(place: Path, **settings: Any) -> Engine:
    """Open the store that `fill` has made."""
    return whyrank.open(
        place / "memory.db", workspace=place, embedding="none", chunk_tokens=40, chunk_overlap=0, **settings
    )


def _count(chance: random.Random, most: int) -> int:
    """Return how many there are of something: few of it in most queries, as much as fits into some."""
    return most if chance.random() < 0.05 else chance.randint(1, max(1, most // 16))


def _fresh(chance: random.Random) -> str:
    return " ".join("".join(chance.choices(string.ascii_lowercase, k=8)) for _ in range(_count(chance, 900)))


def _known(chance: random.Random) -> str:
    return " ".join(words(chance, _count(chance, 1_000)))


def _names(chance: random.Random) -> str:
    return " ".join(word.title() for word in words(chance, _count(chance, 900)))


def _umlauts(chance: random.Random) -> str:
    return " ".join(word.replace("a", "ae").replace("o", "ö").title() for word in words(chance, _count(chance, 800)))


def _codes(chance: random.Random) -> str:
    return " ".join(
        f"{word.upper()}-{chance.randint(0, 10**6)}/v{chance.random()}" for word in words(chance, _count(chance, 300))
    )


def _phrases(chance: random.Random) -> str:
    return " ".join(f'"{" ".join(words(chance, chance.randint(1, 9)))}"' for _ in range(_count(chance, 150)))


def _dates(chance: random.Random) -> str:
    return " ".join(
        f"{chance.randint(0, 9_999)}-{chance.randint(0, 99)}-{chance.randint(0, 99)}"
        for _ in range(_count(chance, 700))
    )


def _one_word(chance: random.Random) -> str:
    return chance.choice(["a", "ä", "茶", "-", "x-", "9", "'", "a.b/", "\ud83d"]) * _count(chance, _QUERY_BYTES)


def _signs(chance: random.Random) -> str:
    return "".join(chance.choices(_SIGNS + string.ascii_letters, k=_count(chance, 2_000)))


def _scripts(chance: random.Random) -> str:
    return "".join(chance.choice(_SCRIPTS) + chance.choice([" ", "", "\n"]) for _ in range(_count(chance, 400)))


def _joined(chance: random.Random) -> str:
    joint = chance.choice(["-", "_", "/", ".", "::", "'", "@", "\\", "+"])
    return joint.join(words(chance, 1 + _count(chance, 900)))


def _short(chance: random.Random) -> str:
    return " ".join(words(chance, chance.randint(1, 8)))


def _huge(chance: random.Random) -> str:
    return " ".join(words(chance, 100)) * _count(chance, 200)


def _advanced(chance: random.Random) -> str:
    starred = [word[: chance.randint(2, 4)] + "*" for word in words(chance, _count(chance, 60))]
    return f" {chance.choice(['AND', 'OR', 'NOT', '-', '(', ') OR ('])} ".join(starred)


_KINDS: tuple[Callable[[random.Random], str], ...] = (
    _fresh, _known, _names, _umlauts, _codes, _phrases, _dates, _one_word, _signs, _scripts, _joined, _short, _huge,
    _advanced,
)  # fmt: skip


def ask_all(engine: Engine, numbers: Iterable[int]) -> float:
    """Search by the queries of these numbers: none raises or takes long; return the seconds of the slowest."""
    worst = 0.0
    for number in numbers:
        make = _KINDS[number % len(_KINDS)]
        text, begun = make(random.Random(number)), time.thread_time()
        try:
            _ask(engine, text, is_advanced=make is _advanced)
        except Exception as error:
            error.add_note(f"query {number}, of {make.__name__}")
            raise
        spent = time.thread_time() - begun
        assert spent <= CPU_SECONDS, f"query {number}, of {make.__name__}, took {spent:.2f} s"
        worst = max(worst, spent)
    return worst


def _ask(engine: Engine, text: str, *, is_advanced: bool) -> None:
    if not is_advanced:
        engine.search(text)
        return
    with suppress(BadQuery):  # as the advanced syntax may
        engine.search(text, syntax="advanced")
