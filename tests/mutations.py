"""Seeded damage to a small store that fills every table, and the law it is held to: found or harmless."""

from __future__ import annotations

import os
import random
import shutil
from collections import Counter
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import whyrank
from tests.damage import PAGE_BYTES, ask, cut, scribble, settled, zero
from whyrank.errors import WhyrankError
from whyrank.storage.sqlite.database import connect
from whyrank.types.memory import Memory, Notice

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from whyrank.engine.engine import Engine
    from whyrank.storage.sqlite.check import Checkup

WORDS = (
    "tea", "coffee", "ferry", "harbour", "lamp", "plant", "garden", "river", "stone", "bread", "light", "winter",
    "copper", "violin", "ladder", "paper", "window", "señal", "café", "anchor", "basket", "candle", "meadow", "orchid",
)  # fmt: skip
NOW = 1_700_000_000.0
MINE = "user:42"
# Notices that say why an answer is not what it was; thresholds that are lost are measured anew by `whyrank calibrate`.
DAMAGE = frozenset(
    {"facts-damaged", "index-damaged", "vectors-damaged", "damaged-text", "vectors-missing", "uncalibrated"}
)


def opened(path: Path) -> Engine:
    """Open a store whose clock stands still."""
    return whyrank.open(path, workspace=path.parent, calibration="manual", clock=lambda: NOW)


def make_world(folder: Path) -> Path:
    """Write a store with rows in every table: files, facts of two scopes, turns, a history, keys, notes, vectors."""
    chance = random.Random(7)
    notes = folder / "notes"
    notes.mkdir(parents=True)
    for number in range(80):
        parts = [" ".join(chance.choices(WORDS, k=30)) for _ in range(2)]
        rare = " ".join(f"{chance.choice(WORDS)}{chance.randrange(10**6)}" for _ in range(40))
        head = f"---\ntags: [{WORDS[number % 5]}]\n---\n# Note {number} {WORDS[number % 24]}"
        text = f"{head}\n\n{parts[0]}\n\n## Part\n\n{parts[1]} {rare}\n"
        (notes / f"note{number}.md").write_text(text, encoding="utf-8")
        os.utime(notes / f"note{number}.md", (NOW, NOW))  # every world is the same
    path = folder / "memory.db"
    with opened(path) as memory:
        memory.ingest(notes)
        for number in range(90):
            memory.add(
                f"Robin told {' '.join(chance.choices(WORDS, k=6))} number {number}", scope=MINE, key=f"k{number}"
            )
        first = memory.list(scope=MINE, limit=1)[0]
        memory.update(first.id, scope=MINE, importance=4)
        memory.update(first.id, scope=MINE, text=first.text + " and more")
        memory.add("Robin drinks tea at the harbour now", scope=MINE, supersedes=memory.list(scope=MINE, limit=3)[2].id)
        memory.facts.import_memories(
            [
                Memory(f"turn{position}", said, session="s1", speaker="ann", position=position)
                for position, said in enumerate(("the ferry leaves at nine", "from which harbour", "the copper one"))
            ]
        )
        memory.calibrate()
        memory.calibrate(scope=MINE)
    settled(path)
    return path


QUESTIONS: tuple[dict[str, Any], ...] = (
    {"query": "the ferry at the harbour", "limit": 8},
    {"query": "copper violin ladder", "scope": MINE, "limit": 20},
    {"query": "note 7 plant", "limit": 5},
    {"query": "nte 7", "limit": 5},
    {"query": '"robin told" AND tea', "syntax": "advanced", "scope": MINE, "limit": 20},
    {"query": "can* OR cafe", "syntax": "advanced", "limit": 5},
    {"query": "winter bread", "tags": ["tea"], "limit": 5},
    {"query": "river stone", "recipe": "vector", "scope": MINE, "limit": 5},
    {"query": "river stone", "recipe": "keyword", "scope": MINE, "limit": 5},
)


class Answer(NamedTuple):
    """What somebody was shown, and the codes of the notices that said the store is damaged."""

    shown: object
    damage: frozenset[str]


def answers(path: Path) -> list[Answer]:
    """Ask a store all questions; an error on purpose is an answer too, and says what is wrong."""
    try:
        with opened(path) as memory:
            return [
                *(_answer(partial(_searched, memory, **asked)) for asked in QUESTIONS),
                _answer(partial(_listed, memory)),
            ]
    except WhyrankError as error:
        return [_refused(error)] * (len(QUESTIONS) + 1)


def _answer(ask_for: Callable[[], tuple[object, tuple[Notice, ...]]]) -> Answer:
    try:
        shown, notices = ask_for()
    except WhyrankError as error:
        return _refused(error)
    return Answer(shown, frozenset(notice.code for notice in notices) & DAMAGE)


def _refused(error: WhyrankError) -> Answer:
    if not error.hint:
        raise AssertionError(f"{error} does not say what to do")
    return Answer(type(error).__name__, frozenset({type(error).__name__}))


def _searched(memory: Engine, **asked: Any) -> tuple[object, tuple[Notice, ...]]:
    found = memory.search(**asked)
    shown = [(hit.id, hit.score, hit.memory, hit.explain(), [one.id for one in hit.also]) for hit in found]
    return (shown, found.verdict), found.notices


def _listed(memory: Engine) -> tuple[object, tuple[Notice, ...]]:
    found = memory.list(scope=MINE, limit=500)
    return found, memory.memories.list_notices(found, scope=MINE)


# -- mutations -------------------------------------------------------------------------------------------------------

# What is sealed together, and so can be swapped with another row whose seals hold as well.
SEALED = {
    "records": ("records",),
    "posting_pages": ("page",),
    "posting_tokens": ("tokens",),
    "posting_segments": ("directory",),
    "vectors": ("checksum", "vector"),
    "sign_blocks": ("present", "signs"),
}
_KEYS = {
    "meta": "key", "scopes": "scope", "records": "scope, first", "files": "scope, path", "write_keys": "scope, key",
    "names": "scope, number, place", "name_words": "scope, word, number", "posting_scopes": "scope",
    "sign_blocks": "space, scope, first", "embedding_failures": "space, hash",
}  # fmt: skip


def key_of(table: str) -> str:
    """Return the columns that tell the rows of a table apart."""
    return _KEYS.get(table, "rowid")


def tables_in(path: Path) -> list[str]:
    """Return the tables of a store that hold something."""
    named = ask(path, "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%' ORDER BY name")
    return [name for (name,) in named if ask(path, f"SELECT 1 FROM {name} LIMIT 1")]


def delete_row(path: Path, table: str, key: tuple[object, ...]) -> None:
    """Delete one row as damage does: nothing that depends on it follows."""
    with closing(connect(path, isolation_level=None)) as connection:
        marks = ", ".join("?" * len(key))
        connection.execute(f"DELETE FROM {table} WHERE ({key_of(table)}) = ({marks})", key)
    settled(path)


def _flip_bit(path: Path, chance: random.Random) -> str:
    place, bit = chance.randrange(path.stat().st_size), 1 << chance.randrange(8)
    with path.open("r+b") as file:
        file.seek(place)
        [before] = file.read(1)
        file.seek(place)
        file.write(bytes([before ^ bit]))
    return f"bit {bit} of byte {place}"


def _page(path: Path, chance: random.Random) -> int:
    return chance.randrange(1, path.stat().st_size // PAGE_BYTES + 1)


def _zero_page(path: Path, chance: random.Random) -> str:
    page = _page(path, chance)
    zero(path, page)
    return f"zeros on page {page}"


def _scribble(path: Path, chance: random.Random) -> str:
    page, first = _page(path, chance), chance.randrange(PAGE_BYTES)
    scribble(path, page, first, chance.randrange(2**31))
    return f"chance on page {page} from byte {first}"


def _swap_pages(path: Path, chance: random.Random) -> str:
    data = bytearray(path.read_bytes())
    one, other = ((_page(path, chance) - 1) * PAGE_BYTES for _ in range(2))
    data[one : one + PAGE_BYTES], data[other : other + PAGE_BYTES] = (
        data[other : other + PAGE_BYTES],
        data[one : one + PAGE_BYTES],
    )
    path.write_bytes(data)
    return f"pages {one // PAGE_BYTES + 1} and {other // PAGE_BYTES + 1} swapped"


def _truncate(path: Path, chance: random.Random) -> str:
    pages = _page(path, chance)
    cut(path, pages)
    return f"cut after {pages} pages"


def _delete_row(path: Path, chance: random.Random) -> str:
    table = chance.choice(tables_in(path))
    key = chance.choice(ask(path, f"SELECT {key_of(table)} FROM {table} ORDER BY {key_of(table)}"))
    delete_row(path, table, key)
    return f"row {key} of {table} deleted"


def _swap_sealed(path: Path, chance: random.Random) -> str:
    table = chance.choice([name for name in tables_in(path) if name in SEALED])
    columns = SEALED[table]
    rows = ask(path, f"SELECT {key_of(table)}, {', '.join(columns)} FROM {table} ORDER BY {key_of(table)}")
    one, other = (chance.choice(rows) for _ in range(2))
    size = len(columns)
    statement = (
        f"UPDATE {table} SET {', '.join(f'{name} = ?' for name in columns)} "
        f"WHERE ({key_of(table)}) = ({', '.join('?' * (len(one) - size))})"
    )
    with closing(connect(path, isolation_level=None)) as connection:
        connection.execute(statement, (*other[-size:], *one[:-size]))
        connection.execute(statement, (*one[-size:], *other[:-size]))
    settled(path)
    return f"{columns} of {table} swapped between {one[:-size]} and {other[:-size]}"


def _swap_texts(path: Path, chance: random.Random) -> str:
    one, other = chance.sample(ask(path, "SELECT row, text FROM memories ORDER BY row"), 2)
    with closing(connect(path, isolation_level=None)) as connection:
        for row, text in ((one[0], other[1]), (other[0], one[1])):
            # Unseen by the trigger that takes the checksum away from whatever is changed in SQL.
            connection.execute("UPDATE memories SET text = ?, checksum = checksum + 1 WHERE row = ?", (text, row))
            connection.execute("UPDATE memories SET checksum = checksum - 1 WHERE row = ?", (row,))
    settled(path)
    return f"texts of rows {one[0]} and {other[0]} swapped"


def _renumber_file(path: Path, chance: random.Random) -> str:
    name = chance.choice(("user_version", "application_id"))
    value = chance.choice((0, 1, 2, 3, 4, 5, -1, 2**31 - 1, -(2**31)))
    with closing(connect(path, isolation_level=None)) as connection:
        connection.execute(f"PRAGMA {name} = {value}")
    settled(path)
    return f"{name} = {value}"


def _drop(path: Path, chance: random.Random) -> str:
    named = "SELECT type, name FROM sqlite_schema WHERE type IN ('table', 'index') AND name NOT LIKE 'sqlite%'"
    kind, name = chance.choice(sorted(ask(path, named)))
    with closing(connect(path, isolation_level=None)) as connection:
        connection.execute(f"DROP {kind} {name}")
    settled(path)
    return f"{kind} {name} dropped"


MUTATIONS: Mapping[str, Callable[[Path, random.Random], str]] = {
    "bit flipped": _flip_bit,
    "page zeroed": _zero_page,
    "page overwritten": _scribble,
    "pages swapped": _swap_pages,
    "file truncated": _truncate,
    "row deleted": _delete_row,
    "sealed values swapped": _swap_sealed,
    "texts swapped": _swap_texts,
    "file renumbered": _renumber_file,
    "part dropped": _drop,
}


# -- the law ---------------------------------------------------------------------------------------------------------


class Outcome(NamedTuple):
    """What became of a mutation: `found`, `harmless`, or what was wrong with the answers to it."""

    kind: str
    what: str
    state: str
    wrong: str = ""


def mutated(world: Path, before: list[Answer], folder: Path, seed: int, *, repairs: bool) -> Outcome:
    """Damage a copy of a world and hold it to the law: found or harmless, never a crash."""
    chance = random.Random(seed)
    kind = chance.choice([*MUTATIONS])
    folder.mkdir(parents=True, exist_ok=True)
    damaged, asked, mended = (folder / name for name in ("damaged.db", "asked.db", "mended.db"))
    shutil.copy(world, damaged)
    what = MUTATIONS[kind](damaged, chance)
    try:
        for place in (asked, mended):
            shutil.copy(damaged, place)
        return Outcome(kind, what, *_judged(before, asked, mended, repairs))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def mutate(world: Path, before: list[Answer], folder: Path, seeds: Iterable[int], repaired_every: int) -> Counter[str]:
    """Make the mutations of these seeds, none of which is wrong; count them, and what became of each kind."""
    counted = Counter[str]()
    for seed in seeds:
        outcome = mutated(world, before, folder, seed, repairs=seed % repaired_every == 0)
        assert not outcome.wrong, (seed, outcome)
        counted.update(("mutations", outcome.state, f"{outcome.kind}: {outcome.state}"))
    return counted


def _judged(before: list[Answer], asked: Path, mended: Path, repairs: bool) -> tuple[str, str]:
    after = answers(asked)
    silent = [number for number, (one, other) in enumerate(zip(before, after, strict=True)) if _is_silent(one, other)]
    if silent:
        return "wrong", f"answers {silent} changed without a notice"
    is_changed = any(one.shown != other.shown or other.damage for one, other in zip(before, after, strict=True))
    found = _doctor(mended, repair=False)
    if is_changed and found is not None and found.is_whole:
        return "wrong", "an answer changed, and `doctor` found nothing"
    if repairs:
        left = _doctor(mended, repair=True)
        again = answers(mended)
        silent = [
            number for number, (one, other) in enumerate(zip(before, again, strict=True)) if _is_silent(one, other)
        ]
        if silent and (left is None or left.is_sound):
            return "wrong", f"answers {silent} are still others after a repair that said all was mended"
    return ("found" if found is None or not found.is_whole or is_changed else "harmless"), ""


def _is_silent(before: Answer, after: Answer) -> bool:
    return before.shown != after.shown and not after.damage


def _doctor(path: Path, *, repair: bool) -> Checkup | None:
    """Look at a store; None if it says that it cannot be used."""
    try:
        return whyrank.doctor(path, workspace=path.parent, repair=repair)
    except WhyrankError as error:
        _refused(error)
        return None
