"""Damage to the real file is found and named; what is derived is made anew, and no memory is dropped unsaid."""

from __future__ import annotations

import random
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest
from filelock import Timeout

import whyrank
from tests.damage import PAGE_BYTES, ask, cut, flip, pages_of, told, zero
from whyrank.errors import StoreDamaged, StoreError, StoreFull
from whyrank.storage.sqlite import copies
from whyrank.storage.sqlite import database as databases
from whyrank.storage.sqlite.check import Checkup, Finding, check_store, shorten
from whyrank.storage.sqlite.database import Connection, Database, connect
from whyrank.storage.sqlite.lock import locked
from whyrank.storage.sqlite.recovery import select_readable
from whyrank.storage.sqlite.schema import MIGRATIONS
from whyrank.types.memory import Memory, Source

if TYPE_CHECKING:
    from collections.abc import Iterator

    from whyrank.engine.engine import Engine

WORDS = ("tea", "coffee", "ferry", "harbour", "lamp", "plant", "garden", "river", "stone", "bread", "light", "winter")
QUESTION = "the ferry at the harbour"
DERIVED = [
    "records", "posting_pages", "posting_tokens", "posting_segments", "names", "name_words", "vectors",
    "memories_by_path", "memories_by_number", "names_by_key", "posting_pages_by_key",
]  # fmt: skip


def quiet(*_: object) -> None:
    """Take no notice of progress."""


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a store of a hundred files and forty facts, with vectors."""
    place, chance = tmp_path_factory.mktemp("sound"), random.Random(7)
    notes = place / "notes"
    notes.mkdir()
    for number in range(100):
        parts = (" ".join(chance.choices(WORDS, k=60)) for _ in range(2))
        text = f"# Note {number}\n\n{next(parts)}\n\n## Part\n\n{next(parts)}\n"
        (notes / f"note{number}.md").write_text(text, encoding="utf-8")
    with whyrank.open(place / "memory.db", workspace=place) as memory:
        memory.ingest(notes)
        for number in range(40):
            memory.add(f"Robin told {' '.join(chance.choices(WORDS, k=5))} number {number}", scope="user:42")
        memory.update(memory.list(scope="user:42", limit=1)[0].id, scope="user:42", importance=4)
    return place / "memory.db"


@pytest.fixture
def path(sound: Path, tmp_path: Path) -> Path:
    shutil.copytree(sound.parent / "notes", tmp_path / "notes")
    return Path(shutil.copy(sound, tmp_path / "memory.db"))


def opened(path: Path) -> Engine:
    return whyrank.open(path, workspace=path.parent)


def doctor(path: Path, *, repair: bool = False) -> Checkup:
    return whyrank.doctor(path, workspace=path.parent, repair=repair)


def codes(found: Checkup | list[Finding]) -> set[str]:
    return {finding.code for finding in (found.findings if isinstance(found, Checkup) else found)}


def answers(path: Path) -> list[tuple[str, float]]:
    with opened(path) as memory:
        return [(hit.id, hit.score) for hit in memory.search(QUESTION, scope="user:42", limit=50)]


def test_a_sound_store_is_in_order_and_left_alone(path: Path) -> None:
    before = path.read_bytes()
    assert doctor(path)._replace(free_bytes=None) == Checkup(looked_inside=True)
    assert doctor(path).is_whole
    assert doctor(path, repair=True).is_whole
    assert path.read_bytes() == before
    assert not list(path.parent.glob("*.bak"))


@pytest.mark.parametrize("table", DERIVED)
def test_a_zeroed_page_of_what_is_derived_is_named_and_made_anew(path: Path, sound: Path, table: str) -> None:
    pages = pages_of(path, table)
    zero(path, pages[len(pages) // 2])
    found = doctor(path)
    assert "pages" in codes(found)
    assert not found.is_sound
    assert all(finding.derived for finding in found.findings), found
    mended = doctor(path, repair=True)
    assert mended.is_whole, mended
    assert all(finding.mended for finding in mended.findings)
    assert doctor(path)._replace(free_bytes=None) == Checkup(looked_inside=True)
    assert answers(path) == answers(sound)
    # The file as it was is kept, byte for byte, for those who know more.
    assert Path(mended.kept).name == "memory.db.damaged.bak"
    assert Path(mended.kept).read_bytes()[(pages[len(pages) // 2] - 1) * PAGE_BYTES :][:PAGE_BYTES] == bytes(PAGE_BYTES)


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("SELECT page FROM posting_pages ORDER BY length(page) DESC", "postings"),
        ("SELECT records FROM records", "records"),
        ("SELECT vector FROM vectors", "vectors"),
    ],
)
def test_a_flipped_bit_under_a_checksum_is_named_and_mended_where_it_is(
    path: Path, sound: Path, query: str, code: str
) -> None:
    blob = ask(path, query)[0][0]
    # The checksum in front and what follows it stand nowhere else, and in one page of the file.
    assert flip(path, blob[:16]) == 1
    found = doctor(path)
    assert codes(found) == {code}
    assert not found.is_sound
    mended = doctor(path, repair=True)
    assert [(one.code, one.mended) for one in mended.findings] == [(code, True)]
    assert (mended.kept, mended.embedded) == ("", int(code == "vectors"))
    assert doctor(path)._replace(free_bytes=None) == Checkup(looked_inside=True)
    assert answers(path) == answers(sound)


def test_a_text_that_was_altered_is_restored_from_what_was_embedded(path: Path) -> None:
    [(text,)] = ask(path, "SELECT text FROM memories WHERE scope = 'user:42' ORDER BY row LIMIT 1")
    told(path, "UPDATE memories SET text = 'X' || substr(text, 2) WHERE text = ?", text)
    assert codes(doctor(path)) == {"texts"}
    assert doctor(path, repair=True).is_whole
    assert ask(path, "SELECT count(*) FROM memories WHERE text = ?", text) == [(1,)]


def test_a_flipped_bit_in_both_copies_of_a_fact_is_named_again_and_again(path: Path) -> None:
    [(identity, text)] = ask(path, "SELECT id, text FROM memories WHERE scope = 'user:42' ORDER BY row LIMIT 1")
    assert flip(path, text.encode()) >= 2
    for repair in (False, True, False):
        found = doctor(path, repair=repair)
        [altered] = [finding for finding in found.findings if finding.code == "altered"]
        assert (altered.names, altered.derived, altered.mended) == ((identity,), False, False)
        assert not found.is_sound
    with opened(path) as memory:  # a letter is wrong, and it is still there to be read
        assert memory.get(identity, scope="user:42").text != text


def test_an_altered_fact_is_put_right_by_telling_it_again(path: Path) -> None:
    [(identity, text)] = ask(path, "SELECT id, text FROM memories WHERE scope = 'user:42' ORDER BY row LIMIT 1")
    told(path, "UPDATE memories SET text = text || 'X', embed_text = embed_text || 'X' WHERE id = ?", identity)
    assert "altered" in codes(doctor(path))
    with opened(path) as memory:
        memory.update(identity, scope="user:42", text=text)
    assert doctor(path, repair=True).is_whole


def test_an_altered_chunk_comes_back_with_its_file(path: Path, sound: Path) -> None:
    [(identity,)] = ask(path, "SELECT id FROM memories WHERE path LIKE '%note7.md' ORDER BY row LIMIT 1")
    told(path, "UPDATE memories SET text = text || 'X', embed_text = embed_text || 'X' WHERE id = ?", identity)
    [chunks] = [one for one in doctor(path, repair=True).findings if one.code == "chunks"]
    assert chunks.names == (identity,)
    assert "whyrank ingest" in chunks.hint
    assert codes(doctor(path)) == {"aside"}
    with opened(path) as memory:
        memory.ingest(path.parent / "notes")
    assert doctor(path).is_whole
    assert dict(answers(path)) == pytest.approx(dict(answers(sound)))


def test_a_chunk_that_cannot_be_read_is_set_aside_and_comes_back_with_its_file(path: Path, sound: Path) -> None:
    [(identity,)] = ask(path, "SELECT id FROM memories WHERE path LIKE '%note7.md' ORDER BY row LIMIT 1")
    told(path, "UPDATE memories SET tags = 'oops', text = x'c3ff', embed_text = '' WHERE id = ?", identity)
    found = doctor(path)
    assert ("unreadable", (identity,)) in [(one.code, one.names) for one in found.findings]
    mended = doctor(path, repair=True)
    assert not mended.is_sound
    assert ask(path, "SELECT count(*) FROM memories") == [(139,)]
    assert [(one.code, one.names) for one in doctor(path).findings] == [("aside", (identity,))]
    with opened(path) as memory:
        assert memory.search(QUESTION)
        memory.ingest(path.parent / "notes")
    assert doctor(path).is_whole
    assert dict(answers(path)) == pytest.approx(dict(answers(sound)))


def test_memories_on_a_zeroed_page_are_named_by_their_ids_until_they_are_given_up(path: Path) -> None:
    everything = {identity for (identity,) in ask(path, "SELECT id FROM memories")}
    zero(path, pages_of(path, "memories")[-1])
    found = doctor(path)
    [lost] = [finding for finding in found.findings if finding.code == "lost"]
    assert lost.names
    assert not lost.derived
    mended = doctor(path, repair=True)
    assert not mended.is_sound
    assert {identity for (identity,) in ask(path, "SELECT id FROM memories")} == everything - set(lost.names)
    after = doctor(path)
    [aside] = after.findings
    assert (aside.code, set(aside.names)) == ("aside", set(lost.names))
    with opened(path) as memory:
        assert any("cannot be read any more" in one.message for one in memory.search(QUESTION, scope="user:42").notices)
        assert set(memory.maintenance.discard_damaged()) == set(lost.names)
        assert memory.maintenance.discard_damaged() == ()
    assert doctor(path).is_whole


@pytest.mark.parametrize("share", [0.9, 0.6, 0.3])
def test_a_file_that_was_cut_off_gives_what_is_left_of_it(path: Path, share: float) -> None:
    everything = {identity for (identity,) in ask(path, "SELECT id FROM memories")}
    cut(path, int(path.stat().st_size * share) // PAGE_BYTES)
    with pytest.raises(StoreDamaged, match="facts may be lost"):
        opened(path)
    found = doctor(path)
    assert not found.is_sound
    assert not found.looked_inside
    mended = doctor(path, repair=True)
    named = {name for finding in mended.findings for name in finding.names}
    left = {identity for (identity,) in ask(path, "SELECT id FROM memories")}
    assert left
    assert left | named == everything
    assert codes(doctor(path)) <= {"aside"}


def test_what_holds_no_memory_any_more_is_left_as_it_lies(path: Path) -> None:
    [(root,)] = ask(path, "SELECT rootpage FROM sqlite_schema WHERE name = 'memories'")
    zero(path, root)
    before = path.read_bytes()
    found = doctor(path, repair=True)
    assert "hopeless" in codes(found)
    assert path.read_bytes() == before
    assert not list(path.parent.glob("*.bak"))


@pytest.mark.parametrize("repair", [False, True])
def test_a_file_without_its_first_page_is_no_store_any_more_and_that_is_said(path: Path, repair: bool) -> None:
    zero(path, 1)
    before = path.read_bytes()
    found = doctor(path, repair=repair)
    [unusable] = found.findings
    assert (unusable.code, unusable.derived, found.looked_inside) == ("unusable", False, False)
    assert "look for a copy" in unusable.hint
    assert "ingest the files again" in unusable.hint
    assert "whyrank doctor" not in unusable.hint  # which was just run
    assert path.read_bytes() == before


def test_an_empty_file_was_never_a_store(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    path.touch()
    for repair in (False, True):
        with pytest.raises(StoreError, match="never written") as refused:
            doctor(path, repair=repair)
        assert not isinstance(refused.value, StoreDamaged)
    with opened(path) as memory:
        memory.add("Robin waters the plants")
    assert doctor(path).is_whole


def test_orphans_are_named_and_swept_away(path: Path) -> None:
    told(path, "UPDATE vectors SET hash = 'nobody' WHERE entry = 3")
    assert codes(doctor(path)) == {"orphans", "vectors"}  # nobody's, and not the vector of what it says
    assert doctor(path, repair=True).is_whole


def test_missing_rows_of_every_derived_table_are_noticed_and_made_again(path: Path, sound: Path) -> None:
    for statement in (
        "DELETE FROM names WHERE number = 5 AND place = 0",
        "DELETE FROM name_words WHERE word = 'note7'",
        "DELETE FROM posting_tokens WHERE number = 4",
        "DELETE FROM posting_pages WHERE rowid < 4",
        "DELETE FROM records WHERE first = 64",
        "UPDATE scopes SET numbers = 3",
    ):
        told(path, statement)
    assert codes(doctor(path)) >= {"names", "words", "records", "scopes"}
    assert doctor(path, repair=True).is_whole
    assert answers(path) == answers(sound)


def test_a_rebuild_gives_no_number_of_a_segment_again(path: Path) -> None:
    last: dict[str, int] = dict(ask(path, "SELECT scope, segments FROM posting_scopes"))
    assert any(last.values())
    told(path, "UPDATE posting_scopes SET segments = 0")  # the segments themselves tell
    zero(path, pages_of(path, "names")[0])
    assert doctor(path, repair=True).is_whole
    anew = ask(path, "SELECT scope, min(segment) FROM posting_segments GROUP BY scope")
    assert anew
    assert all(first > last[scope] for scope, first in anew)


def test_everything_a_memory_says_outlives_a_rebuild(path: Path, sound: Path) -> None:
    zero(path, pages_of(path, "names")[0])
    (path.parent / ".memory.db-anew-killed").mkdir()  # as a repair that was killed leaves it
    assert doctor(path, repair=True).is_whole
    assert not list(path.parent.glob(".memory.db-anew-*"))

    def said(store: Path) -> Iterator[object]:
        with opened(store) as memory:
            scopes = ["global", "user:42"]
            for scope in scopes:
                for one in memory.list(scope=scope, limit=200):
                    yield one, memory.history(one.id, scope=scope)

    assert list(said(path)) == list(said(sound))
    assert ask(path, "SELECT * FROM files") == ask(sound, "SELECT * FROM files")


def test_others_who_have_the_store_open_see_it_mended(path: Path, sound: Path) -> None:
    zero(path, pages_of(path, "names_by_key")[0])
    with opened(path) as memory:
        with pytest.raises(StoreDamaged, match="facts may be lost"):
            memory.search("tea lamp")
        assert doctor(path, repair=True).is_sound
        assert memory.status().memories == 140
        new = memory.add("Robin mends the ferry", scope="user:42")
        hits = memory.search("who mends the ferry", scope="user:42")
        assert hits[0].id == new.id
        memory.forget(new.id, scope="user:42")
        assert memory.doctor().is_whole
    assert answers(path) == answers(sound)


def test_a_repair_that_finds_no_room_changes_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    zero(path, pages_of(path, "names")[0])
    before = path.read_bytes()

    def small(place: str, **options: Any) -> Connection:
        connection: Connection = connect(place, **options)
        connection.execute("PRAGMA max_page_count=5")
        return connection

    monkeypatch.setattr(copies, "connect", small)
    with pytest.raises(StoreFull, match="no room left"):
        doctor(path, repair=True)
    assert path.read_bytes() == before


def test_a_repair_knows_its_store_by_any_name(path: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    other = tmp_path / "elsewhere/linked.db"
    other.symlink_to(path)
    zero(path, pages_of(path, "names")[0])
    with Database(other).alone(), pytest.raises(Timeout), locked(Path(f"{path}.lock"), 0.0):
        pass
    assert doctor(other, repair=True).kept == f"{path}.damaged.bak"
    assert doctor(path).is_whole


def test_the_copy_that_is_kept_holds_what_was_in_the_log(path: Path) -> None:
    with opened(path) as memory:
        memory.add("Robin saw the comet")
        memory.search("comet")
        zero(path, pages_of(path, "names")[0])
        kept = Path(memory.doctor(repair=True).kept)
        assert ask(kept, "SELECT count(*) FROM memories WHERE text = 'Robin saw the comet'") == [(1,)]


def test_a_chunk_with_a_hash_of_others_is_believed_where_it_was_embedded_so(tmp_path: Path) -> None:
    source = Source("a.md", 1, 2, "0123456789abcdef0123456789abcdef")
    with opened(tmp_path / "memory.db") as memory:
        memory.facts.import_memories([Memory("m_imported", "Robin saw the whales", kind="chunk", source=source)])
        assert memory.doctor().findings == ()


def test_old_schemas_are_looked_at_before_they_are_brought_forward(tmp_path: Path) -> None:
    old = Path(shutil.copy(Path(__file__).parents[2] / "golden/stores/schema2.db", tmp_path / "memory.db"))
    assert check_store(old, quiet) == []
    assert ask(old, "PRAGMA user_version") == [(2,)]
    pages = pages_of(old, "names")
    zero(old, pages[0])
    mended = whyrank.doctor(old, workspace=tmp_path, embedding="none", repair=True)
    assert all(one.mended for one in mended.findings), mended.findings
    assert ask(old, "PRAGMA user_version") == [(MIGRATIONS[-1].version,)]


def test_a_store_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="there is no store"):
        whyrank.doctor(tmp_path / "none.db", workspace=tmp_path)
    assert not list(tmp_path.iterdir())


def test_nobody_writes_while_a_store_is_written_anew(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(databases, "LOCK_SECONDS", 0.1)
    database = Database(path)
    with database.alone():
        other = Database(path)
        with pytest.raises(StoreError, match="locked"):
            other.writing().__enter__()
        other.close()
    database.close()


def test_long_lists_of_names_are_cut() -> None:
    assert shorten(("a", "b")) == "a, b"
    assert shorten(tuple("abcdefgh")) == "a, b, c, d, e and 3 more"


def test_a_page_in_the_place_of_another_costs_only_what_stood_there(path: Path) -> None:
    lost, twice = pages_of(path, "memories")[3:5]
    content = bytearray(path.read_bytes())
    content[(lost - 1) * PAGE_BYTES : lost * PAGE_BYTES] = content[(twice - 1) * PAGE_BYTES : twice * PAGE_BYTES]
    path.write_bytes(content)
    mended = doctor(path, repair=True)
    [gone] = [finding for finding in mended.findings if finding.code == "lost"]
    with opened(path) as memory:
        assert memory.status().memories == 140 - len(gone.names)
    assert 0 < len(gone.names) < 20


def test_a_store_that_cannot_even_say_which_index_it_has_is_called_damaged(path: Path) -> None:
    for page in pages_of(path, "meta"):
        with path.open("r+b") as file:
            file.seek((page - 1) * PAGE_BYTES)
            file.write(random.Random(5).randbytes(PAGE_BYTES))
    with pytest.raises(StoreDamaged, match="damaged"):
        opened(path)


def test_rows_that_claim_more_than_there_is_memory_for_are_read_as_far_as_they_can_be() -> None:
    class Claiming:
        """A connection whose second row claims to be larger than any."""

        def execute(self, query: str) -> Iterator[tuple[str]]:
            yield (query,)
            raise MemoryError

    assert select_readable(cast("Connection", Claiming()), "one", "other") == [("one",), ("other",)]
