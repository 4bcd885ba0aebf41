"""A deep look finds what is wrong though every checksum is right, and says how much it compared."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import whyrank
from whyrank.storage.postgres.backend import PostgresBackend
from whyrank.storage.sqlite.database import add_checksum, check_body
from whyrank.storage.sqlite.doc_values import RECORD, decoded
from whyrank.storage.sqlite.postings.format import Text, invert, live_segments, pack, pages, write_directory
from whyrank.storage.sqlite.vectors.checksums import vector_checksum

from ... import postgres

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

MEMORIES = 150  # two whole blocks of records and signs, and a segment of postings


@pytest.fixture(params=["file", "server"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Make a store in either database; return its path or address."""
    store = str(tmp_path / "memory.db") if request.param == "file" else postgres.new_store()
    with whyrank.open(store, workspace=tmp_path, calibration="manual") as engine:
        words = [f"the boat number {number} is blue and its mast is oak" for number in range(MEMORIES)]
        engine.facts.import_memories(
            [whyrank.Memory(f"m{number}", text, name=f"Boat {number}") for number, text in enumerate(words)]
        )
        engine.forget("m7")
        engine.add("Robin prefers green tea", scope="user:1", date="2026-03-14")
        engine.search("tea", scope="user:1")
    return store


def changed(path: str, change: Callable[[Any], object]) -> None:
    """Change the tables of a store in its own database."""
    if path.startswith("postgresql:"):
        with closing(PostgresBackend(path)) as backend, backend.writing() as connection:
            change(connection)
        return
    with closing(sqlite3.connect(path)) as connection:
        change(connection)
        connection.commit()


def other_words(connection: Any) -> None:
    """Give a memory as many words as it had, but others."""
    [(count, number)] = connection.execute("SELECT length, number FROM memories WHERE scope = 'user:1'")
    packed = pack(["rum"] * count, "user:1", number)
    connection.execute("UPDATE posting_tokens SET tokens = ? WHERE scope = 'user:1'", (packed,))


def other_names(connection: Any) -> None:
    """Write a name in another way, under the same key."""
    connection.execute("UPDATE names SET text = 'BOAT 8' WHERE key = 'boat8'")


def another_record(connection: Any) -> None:
    [(blob,)] = connection.execute("SELECT records FROM records WHERE scope = 'global' AND first = 0")
    records = decoded(blob, "global", 0).copy()
    records["words"][3] = 77
    assert records.dtype == RECORD
    connection.execute(
        "UPDATE records SET records = ? WHERE scope = 'global' AND first = 0", (add_checksum(records.tobytes()),)
    )


def other_postings(connection: Any) -> None:
    """Put a page of other memories in the place of one, and list it with its checksum."""
    segment, *_ = live_segments(connection, "global")
    texts = [Text(segment.first + number, ["boat"] * (number + 1)) for number in range(3)]
    [(key, page)] = [*pages(next(iter(invert(texts).values())), segment.first)]
    place = (segment.scope, segment.segment)
    connection.execute("DELETE FROM posting_pages WHERE scope = ? AND segment = ? AND field = 0", place)
    connection.execute("INSERT INTO posting_pages VALUES (?, ?, 0, ?, ?)", (*place, key, page))
    write_directory(connection, segment)


def other_signs(connection: Any) -> None:
    [(blob, *place)] = connection.execute("SELECT signs, space, scope, first FROM sign_blocks WHERE first = 0")
    signs = ~np.frombuffer(check_body(blob, *place), np.uint64)
    connection.execute("UPDATE sign_blocks SET signs = ? WHERE first = 0", (add_checksum(signs.tobytes()),))


def test_a_sound_store_is_found_sound_and_told_of(path: str) -> None:
    found = whyrank.doctor(path, deep=True)
    assert found.is_whole
    assert found.compared is not None
    done = found.compared
    assert (done.memories, done.records, done.vectors) == (MEMORIES, MEMORIES, MEMORIES)  # one forgotten, one added
    assert done.sign_blocks == 2
    assert done.segments >= 1
    assert done.words > 5 * MEMORIES
    assert done.seconds > 0


def test_a_look_that_is_not_deep_compares_nothing(path: str) -> None:
    assert whyrank.doctor(path).compared is None


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (other_words, "words"),
        (other_names, "names"),
        (another_record, "records"),
        (other_postings, "postings"),
        (other_signs, "signs"),
    ],
)
def test_what_is_wrong_under_a_right_checksum_is_found_and_repaired(
    path: str, change: Callable[[Any], object], code: str
) -> None:
    changed(path, change)
    assert whyrank.doctor(path).is_whole  # no checksum or count shows it
    assert code in {finding.code for finding in whyrank.doctor(path, deep=True).findings}
    mended = whyrank.doctor(path, deep=True, repair=True)
    assert mended.is_sound
    assert mended.findings
    assert whyrank.doctor(path, deep=True).is_whole


def test_a_vector_without_unit_length_is_named(path: str) -> None:
    def double(connection: Any) -> None:
        asked = "SELECT scope, number, hash, vector FROM vectors LIMIT 1"
        scope, number, text_hash, blob = connection.execute(asked).fetchone()
        twice = (2 * np.frombuffer(blob, np.float32)).tobytes()
        connection.execute("UPDATE vectors SET vector = ?, checksum = ? WHERE scope = ? AND number = ?",
                           (twice, vector_checksum(scope, number, text_hash, twice), scope, number))  # fmt: skip

    changed(path, double)
    found = whyrank.doctor(path, deep=True)
    assert "1 vector does not have length 1" in [finding.message for finding in found.findings]


def test_words_of_another_language_than_the_settings_say_are_no_damage(tmp_path: Path) -> None:
    for language in ("en", "de"):
        with whyrank.open(
            tmp_path / "memory.db", workspace=tmp_path, embedding="none", calibration="manual", language=language
        ) as engine:
            engine.add(f"{language} 4711 xyz")
            engine.add(f"{language} boats going")
    assert whyrank.doctor(tmp_path / "memory.db", deep=True, embedding="none").is_sound
