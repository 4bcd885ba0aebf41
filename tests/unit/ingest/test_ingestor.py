"""Ingest into a real store: what is read, embedded, kept and removed."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pytest

from whyrank.analysis.document import entries_for
from whyrank.errors import IngestError, ProviderError
from whyrank.ingest.documents import ChunkSize, memories_in
from whyrank.ingest.pipeline import Ingestor, Report, Settings
from whyrank.protocols import Changes, Embedder
from whyrank.storage.store import SqliteStore
from whyrank.testing.fakes import WordDirections
from whyrank.types.memory import GLOBAL, Entry, Memory, Scope
from whyrank.types.query import Where

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

USER = Scope("user", "1")
LATER = 1e11


class Counting(WordDirections):
    """Remembers every text it embedded; fails while it is down."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.down = False

    def documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        if self.down:
            raise ProviderError("the embedder is down", "start it")
        self.texts += texts
        return super().documents(texts)

    def taken(self) -> list[str]:
        """Return the texts embedded since the last look."""
        texts, self.texts = self.texts, []
        return texts


@dataclass
class Desk:
    """A folder of files, a store, and an embedder that counts."""

    root: Path
    store: SqliteStore
    embedder: Counting = field(default_factory=Counting)
    seconds: int = 1_000_000_000

    def put(self, name: str, text: str | bytes) -> Path:
        """Write a file with a time of its own, so that a change is seen even within one tick of the clock."""
        file = self.root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode() if isinstance(text, str) else text)
        self.seconds += 1
        os.utime(file, (self.seconds, self.seconds))
        return file

    def ingestor(self, *, embed: bool = True, size: ChunkSize | None = None, max_bytes: int = 10_000) -> Ingestor:
        embedder: Embedder | None = self.embedder if embed else None
        return Ingestor(self.store, embedder, Settings(self.root, "en", size or ChunkSize(), max_bytes))

    def ingest(self, *names: str, scope: Scope = GLOBAL, dry_run: bool = False) -> Report:
        paths = [self.root / name for name in names] or [self.root]
        return self.ingestor().ingest(paths, scope, dry_run=dry_run)

    def memories(self, scope: Scope = GLOBAL) -> list[Memory]:
        return self.store.browse(Where(scopes=frozenset({scope}), now=LATER), 1_000)

    def texts(self, scope: Scope = GLOBAL) -> list[str]:
        return [memory.text for memory in self.memories(scope)]

    def paths(self) -> list[str]:
        return [memory.source.path for memory in self.memories() if memory.source]

    def vectors(self) -> int:
        return self.store.spaces().get(self.embedder.fingerprint, 0)


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    root = tmp_path / "workspace"
    root.mkdir()
    store = SqliteStore(tmp_path / "memory.db")
    yield Desk(root, store)
    store.close()


def sections(*names: str) -> str:
    """Return a file of sections, each long enough to be a chunk of its own."""
    return "".join(f"# {name}\n\n" + f"{name} " * 110 + "\n\n" for name in names)


def test_two_files_of_one_run_are_stored_and_counted(desk: Desk) -> None:
    desk.put("a.md", "red boat\n")
    desk.put("sub/b.md", "blue boat\n")

    report = desk.ingest()

    assert report.files == {"new": 2}
    assert (report.chunks, report.embedded, report.skipped, report.remarks) == (2, 2, [], [])
    assert (desk.paths(), desk.texts()) == (["a.md", "sub/b.md"], ["red boat", "blue boat"])


def test_stored_line_spans_point_at_the_text_in_the_file(desk: Desk) -> None:
    file = desk.put("a.md", "---\ntitle: Boats\n---\n\n" + sections("ida", "ulf", "eva"))
    desk.ingest()

    lines = file.read_text(encoding="utf-8").split("\n")
    for memory in desk.memories():
        assert memory.source is not None
        assert memory.text == "\n".join(lines[memory.source.start_line - 1 : memory.source.end_line]).strip("\n")
    assert len(desk.memories()) == 3


def test_an_unchanged_file_is_skipped(desk: Desk) -> None:
    desk.put("a.md", "red boat\n")
    desk.ingest()
    desk.embedder.taken()

    report = desk.ingest()

    assert (report.unchanged, report.files, report.chunks) == (1, {}, 0)
    assert desk.embedder.taken() == []


def test_an_unchanged_file_costs_a_stat_and_no_reading(desk: Desk) -> None:
    file = desk.put("a.md", "red boat\n")
    desk.ingest()
    status = file.stat()
    file.write_text("RED BOAT\n", encoding="utf-8")  # as long as before
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))  # and as old

    assert desk.ingest().unchanged == 1
    assert desk.texts() == ["red boat"]


def test_a_file_touched_but_not_changed_is_not_stored_again(desk: Desk) -> None:
    desk.put("a.md", "red boat\n")
    desk.ingest()
    desk.embedder.taken()
    desk.put("a.md", "red boat\n")

    report = desk.ingest()

    assert (report.plans, report.chunks, report.removed) == ([("a.md", "touched")], 0, 0)
    assert desk.texts() == ["red boat"]
    assert desk.embedder.taken() == []
    assert desk.ingest().unchanged == 1


def test_only_the_changed_chunks_of_a_file_are_embedded_again(desk: Desk) -> None:
    desk.put("a.md", sections("ida", "ulf", "eva"))
    desk.ingest()
    assert len(desk.embedder.taken()) == 3
    desk.put("a.md", sections("ida", "new", "eva"))

    report = desk.ingest()

    assert [text.split("\n")[1].split()[0] for text in desk.embedder.taken()] == ["new"]
    assert (report.plans, report.chunks, report.removed, report.embedded) == ([("a.md", "changed")], 3, 1, 1)
    assert [memory.headings for memory in desk.memories()] == [("ida",), ("new",), ("eva",)]


def test_lines_added_above_move_the_spans_without_embedding_again(desk: Desk) -> None:
    desk.put("a.md", sections("ida", "ulf"))
    desk.ingest()
    desk.embedder.taken()
    desk.put("a.md", "\n\n\n" + sections("ida", "ulf"))

    desk.ingest()

    assert desk.embedder.taken() == []
    assert [memory.source.start_line for memory in desk.memories() if memory.source] == [4, 8]


def test_ids_of_unchanged_chunks_survive_a_change(desk: Desk) -> None:
    desk.put("a.md", sections("ida", "ulf"))
    desk.ingest()
    before = {memory.headings: memory.id for memory in desk.memories()}
    desk.put("a.md", sections("ida", "eva"))
    desk.ingest()
    after = {memory.headings: memory.id for memory in desk.memories()}

    assert before["ida",] == after["ida",]


def test_a_renamed_file_is_not_embedded_again(desk: Desk) -> None:
    desk.put("a.md", sections("ida", "ulf"))
    desk.ingest()
    desk.embedder.taken()
    (desk.root / "sub").mkdir()
    (desk.root / "a.md").rename(desk.root / "sub" / "b.md")

    report = desk.ingest()

    assert report.plans == [("sub/b.md", "renamed")]
    assert desk.embedder.taken() == []
    assert desk.paths() == ["sub/b.md", "sub/b.md"]
    assert desk.vectors() == 2
    assert list(desk.store.manifest(GLOBAL)) == ["sub/b.md"]


def test_files_that_swap_their_texts_are_not_embedded_again(desk: Desk) -> None:
    desk.put("a.md", "# red boat\n")
    desk.put("b.md", "# blue boat\n")
    desk.ingest()
    desk.embedder.taken()
    desk.put("a.md", "# blue boat\n")
    desk.put("b.md", "# red boat\n")

    desk.ingest()

    assert desk.embedder.taken() == []
    assert desk.texts() == ["# blue boat", "# red boat"]


def test_a_text_in_two_files_of_one_title_is_embedded_once(desk: Desk) -> None:
    desk.put("a.md", "# red boat\n")
    desk.put("b.md", "# red boat\n")
    desk.put("c/oars.md", "grey\n")
    desk.put("d/oars.md", "grey\n")

    desk.ingest()

    assert desk.embedder.taken() == ["red boat\n# red boat", "oars\ngrey"]
    assert desk.texts() == ["# red boat", "# red boat", "grey", "grey"]


def test_a_renamed_file_without_a_title_is_embedded_by_its_new_name_and_keeps_what_is_known_of_it(desk: Desk) -> None:
    desk.put("oars.md", "\n## Colour\n\n" + "grey " * 110 + "\n\n## Wood\n\nash\n")
    desk.ingest()
    old = {memory.headings: memory.id for memory in desk.memories()}
    desk.store.write(Changes(superseded={old["Wood",]: ("m_successor", 5.0)}))
    desk.embedder.taken()
    (desk.root / "oars.md").rename(desk.root / "paddles.md")

    desk.ingest()

    assert {text.split("\n")[0] for text in desk.embedder.taken()} == {"paddles"}
    everything = Where(include_superseded=True, now=LATER)
    replaced = {memory.headings: memory.superseded_by for memory in desk.store.browse(everything, 10)}
    assert replaced == {("Colour",): None, ("Wood",): "m_successor"}


def test_a_deleted_file_is_gone(desk: Desk) -> None:
    desk.put("a.md", "red boat\n")
    desk.put("b.md", "blue boat\n")
    desk.ingest()
    (desk.root / "a.md").unlink()

    report = desk.ingest()

    assert (report.files, report.removed, report.unchanged) == ({"deleted": 1}, 1, 1)
    assert (desk.texts(), desk.vectors()) == (["blue boat"], 1)
    assert list(desk.store.manifest(GLOBAL)) == ["b.md"]


def test_files_outside_the_given_paths_are_left_alone(desk: Desk) -> None:
    desk.put("one/a.md", "red boat\n")
    desk.put("one-two/b.md", "blue boat\n")
    desk.ingest()
    (desk.root / "one-two" / "b.md").unlink()

    assert desk.ingest("one").files == {}
    assert desk.texts() == ["blue boat", "red boat"]


def test_a_file_that_is_ignored_from_now_on_is_gone(desk: Desk) -> None:
    desk.put("a.md", "red boat\n")
    desk.put("b.md", "blue boat\n")
    desk.ingest()
    desk.put(".whyrankignore", "a.md\n")

    report = desk.ingest()

    assert desk.texts() == ["blue boat"]
    assert [(path, remark[:28]) for path, remark in report.remarks] == [("a.md", "the file exists, but its fol")]


def test_a_file_that_is_gone_is_no_news(desk: Desk) -> None:
    gone = desk.put("a.md", "red boat\n")
    desk.ingest()
    gone.unlink()
    report = desk.ingest()
    assert (report.files, report.remarks) == ({"deleted": 1}, [])


def test_ignored_files_are_not_stored(desk: Desk) -> None:
    desk.put(".gitignore", "private/\n")
    desk.put("private/a.md", "secret boat\n")
    desk.put("sub/.gitignore", "draft-*.md\n")
    desk.put("sub/draft-1.md", "draft boat\n")
    desk.put("sub/b.md", "blue boat\n")
    desk.put("draft-2.md", "other boat\n")

    desk.ingest()

    assert desk.paths() == ["draft-2.md", "sub/b.md"]


def test_a_dry_run_stores_nothing_and_says_what_would_be(desk: Desk) -> None:
    desk.put("a.md", sections("ida", "ulf"))

    report = desk.ingest(dry_run=True)

    assert (report.dry_run, report.plans, report.chunks) == (True, [("a.md", "new")], 2)
    assert (desk.texts(), desk.store.manifest(GLOBAL), desk.vectors()) == ([], {}, 0)
    assert desk.embedder.taken() == []


def test_a_dry_run_deletes_nothing(desk: Desk) -> None:
    desk.put("a.md", "red boat\n")
    desk.put("b.md", "blue boat\n")
    desk.ingest()
    (desk.root / "a.md").unlink()
    desk.put("b.md", "green boat\n")

    report = desk.ingest(dry_run=True)

    assert report.files == {"changed": 1, "deleted": 1}
    assert desk.texts() == ["red boat", "blue boat"]


def test_an_embedder_that_fails_leaves_the_words_searchable(desk: Desk) -> None:
    desk.put("a.md", "red boat\n")
    desk.embedder.down = True

    report = desk.ingest()

    assert (desk.texts(), desk.vectors()) == (["red boat"], 0)
    assert (report.embedded, report.without_vector) == (0, 1)
    assert "the embedder is down" in report.remarks[0][1]
    assert desk.store.keyword(("boat",), Where(now=LATER), 10).candidates


def test_what_an_embedder_missed_is_embedded_at_the_next_ingest(desk: Desk) -> None:
    desk.put("a.md", "red boat\n")
    desk.embedder.down = True
    desk.ingest()
    desk.embedder.down = False

    report = desk.ingest()

    assert (report.unchanged, report.embedded, report.without_vector) == (1, 1, 0)
    assert desk.embedder.taken() == ["a\nred boat"]
    assert desk.vectors() == 1


def test_without_an_embedder_files_are_stored_all_the_same(desk: Desk) -> None:
    desk.put("a.md", "red boat\n")

    report = desk.ingestor(embed=False).ingest([desk.root], GLOBAL)

    assert (report.chunks, report.embedded, report.remarks) == (1, 0, [])
    assert desk.texts() == ["red boat"]


def test_an_embedder_that_comes_later_embeds_what_is_there(desk: Desk) -> None:
    desk.put("a.md", "red boat\n")
    desk.ingestor(embed=False).ingest([desk.root], GLOBAL)

    assert desk.ingest().embedded == 1


def test_a_change_of_chunk_size_reads_the_files_again(desk: Desk) -> None:
    desk.put("a.md", sections("ida", "ulf"))
    desk.ingest()

    report = desk.ingestor(size=ChunkSize(100, 0)).ingest([desk.root], GLOBAL)

    assert report.files == {"changed": 1}
    assert len(desk.memories()) > 2


@pytest.mark.parametrize(
    ("name", "data", "reason"),
    [
        ("big.md", b"x" * 10_001, "10,001 bytes, over the limit of 10,000"),
        ("bin.md", b"PK\x03\x04\x00", "a binary file"),
    ],
)
def test_a_file_that_is_no_readable_text_is_skipped_with_its_reason(
    desk: Desk, name: str, data: bytes, reason: str
) -> None:
    desk.put("a.md", "red boat\n")
    file = desk.put(name, data)

    report = desk.ingest()

    assert [(skipped.path, skipped.reason) for skipped in report.skipped] == [(str(file), reason)]
    assert desk.texts() == ["red boat"]


def test_a_pipe_is_skipped_with_its_reason(desk: Desk) -> None:
    desk.put("a.md", "red boat\n")
    os.mkfifo(desk.root / "pipe.md")

    report = desk.ingest()

    assert [skipped.reason for skipped in report.skipped] == ["not a regular file"]
    assert desk.texts() == ["red boat"]


def test_a_link_out_of_the_root_is_skipped_with_its_reason(desk: Desk) -> None:
    desk.put("a.md", "red boat\n")
    outside = desk.root.parent / "secret.md"
    outside.write_text("secret boat\n", encoding="utf-8")
    (desk.root / "link.md").symlink_to(outside)

    report = desk.ingest()

    assert [skipped.reason for skipped in report.skipped] == ["a link that leads out of the folder"]
    assert desk.texts() == ["red boat"]


def test_an_unreadable_file_is_a_failure_beside_the_readable_ones(desk: Desk) -> None:
    desk.put("a.md", "red boat\n")
    (desk.root / "loop.md").symlink_to("loop.md")

    report = desk.ingest()

    assert [skipped.path for skipped in report.failed] == [str(desk.root / "loop.md")]
    assert desk.texts() == ["red boat"]


def test_skipped_files_are_no_failures_unless_they_should_have_been_readable(desk: Desk) -> None:
    desk.put("a.md", "red boat\n")
    desk.put("bin.md", b"\x00")

    assert desk.ingest().failed == []


def test_bytes_that_are_no_utf_8_are_replaced_with_a_remark(desk: Desk) -> None:
    desk.put("a.md", b"caf\xe9 boat\n")

    report = desk.ingest()

    assert report.remarks == [("a.md", "bytes that are not UTF-8 were replaced")]
    assert desk.texts() == ["caf\ufffd boat"]


def test_a_file_that_was_cut_otherwise_is_read_anew(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.put("a.md", "red boat\n")
    monkeypatch.setattr("whyrank.ingest.pipeline.CUT_VERSION", 0)
    desk.ingest()
    assert desk.ingest().unchanged == 1
    monkeypatch.undo()

    assert desk.ingest().plans == [("a.md", "changed")]
    assert desk.ingest().unchanged == 1
    assert desk.texts() == ["red boat"]


def test_remarks_about_a_file_name_it(desk: Desk) -> None:
    desk.put("chat.jsonl", '{"text": "hello"}\nnonsense\n')

    report = desk.ingest()

    assert report.remarks == [("chat.jsonl", "1 line is not a turn, the first is line 2")]
    assert desk.texts() == ["hello"]


def test_a_path_that_does_not_exist_is_an_error(desk: Desk) -> None:
    with pytest.raises(IngestError, match="does not exist"):
        desk.ingest("missing")


def test_a_file_given_twice_is_read_once(desk: Desk) -> None:
    desk.put("a.md", "red boat\n")

    report = desk.ingest("a.md", ".", "a.md")

    assert (report.files, desk.texts()) == ({"new": 1}, ["red boat"])


def test_an_empty_folder_is_nothing_to_do(desk: Desk) -> None:
    assert desk.ingest() == Report()


def test_scopes_keep_their_files_apart(desk: Desk) -> None:
    desk.put("a.md", "red boat\n")
    desk.ingest()
    desk.ingest(scope=USER)
    (desk.root / "a.md").unlink()

    desk.ingest(scope=USER)

    assert (desk.texts(), desk.texts(USER)) == (["red boat"], [])


def test_a_file_outside_the_workspace_is_known_by_its_whole_path(desk: Desk) -> None:
    outside = desk.root.parent / "far.md"
    outside.write_text("far boat\n", encoding="utf-8")

    desk.ingestor().ingest([outside], GLOBAL)

    assert desk.paths() == [outside.as_posix()]


def test_more_chunks_than_one_transaction_takes_are_all_stored(desk: Desk) -> None:
    for number in range(270):
        desk.put(f"{number:03}.md", f"boat number {number}\n")

    report = desk.ingest()

    assert (report.chunks, report.embedded, len(desk.memories())) == (270, 270, 270)


def test_progress_is_told_file_by_file(desk: Desk) -> None:
    desk.put("a.md", "red boat\n")
    desk.put("b.md", "blue boat\n")
    told: list[tuple[int, int, str]] = []

    replace(desk.ingestor(), progress=lambda done, total, label: told.append((done, total, label))).ingest(
        [desk.root], GLOBAL
    )

    assert told == [(1, 2, "a.md"), (2, 2, "b.md")]


def test_a_skill_is_stored_under_its_name_and_slug(desk: Desk) -> None:
    desk.put("skills/tide-table/SKILL.md", "---\nname: Tide Table\ndescription: Tells the tides\n---\nAsk.\n")

    desk.ingest()

    (memory,) = desk.memories()
    assert (memory.name, memory.slug, memory.summary, memory.text) == (
        "Tide Table",
        "tide-table",
        "Tells the tides",
        "Ask.",
    )


@pytest.mark.parametrize("embed", [False, True])
@pytest.mark.parametrize("failing", [0, 3, 256 + 3, 2 * 256 + 3])  # of 600 files, 256 a transaction
def test_what_was_planned_before_an_error_is_written(desk: Desk, embed: bool, failing: int) -> None:
    def stumble(done: int, total: int, label: str) -> None:
        if done > failing:
            raise IngestError("no further")

    for number in range(600):
        desk.put(f"{number:03d}.md", f"tea {number}")
    with pytest.raises(IngestError, match="no further"):
        replace(desk.ingestor(embed=embed), progress=stumble).ingest([desk.root], USER)
    assert sorted(desk.store.manifest(USER)) == [f"{number:03d}.md" for number in range(failing)]
    assert len(desk.embedder.texts) == (failing if embed else 0)


def test_a_file_that_cannot_be_planned_loses_none_of_those_before_it(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stumble(text: str, path: str, *rest: Any) -> Any:
        if path == "050.md":
            raise IngestError("no further")
        return memories_in(text, path, *rest)

    monkeypatch.setattr("whyrank.ingest.pipeline.memories_in", stumble)
    for number in range(60):
        desk.put(f"{number:03d}.md", f"tea {number}")
    with pytest.raises(IngestError, match="no further"):
        desk.ingestor(embed=False).ingest([desk.root], USER)
    assert sorted(desk.store.manifest(USER)) == [f"{number:03d}.md" for number in range(50)]


def test_a_file_that_was_cut_otherwise_and_renamed_is_renamed(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.put("a.md", "red boat\n")
    monkeypatch.setattr("whyrank.ingest.pipeline.CUT_VERSION", 0)
    desk.ingest()
    monkeypatch.undo()
    (desk.root / "a.md").rename(desk.root / "b.md")

    report = desk.ingest()

    assert (report.plans, report.renamed) == ([("b.md", "renamed")], {"b.md": "a.md"})


@pytest.fixture
def batches(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return how many memories are written together, as long as they are."""
    written, write = list[int](), desk.store.write

    def heard(changes: Changes) -> None:
        written.append(len(changes.put))
        write(changes)

    monkeypatch.setattr(desk.store, "write", heard)
    return written


def put_notes(desk: Desk, count: int) -> None:
    for number in range(count):
        desk.put(f"{number:04d}.md", f"tea number {number}")


@pytest.mark.parametrize(
    ("files", "wanted"),
    [(511, [511]), (700, [700]), (767, [767]), (768, [512, 256]), (1_300, [512, 512, 276])],
)
def test_a_few_notes_are_left_to_no_batch_of_their_own(
    desk: Desk, batches: list[int], files: int, wanted: list[int]
) -> None:
    put_notes(desk, files)
    desk.ingest()
    assert batches == wanted


def test_a_large_file_behind_small_ones_waits_for_no_other(desk: Desk, batches: list[int]) -> None:
    put_notes(desk, 600)
    desk.put("large.md", sections(*(f"pot{number}" for number in range(800))))
    desk.ingestor(max_bytes=10_000_000).ingest([desk.root], GLOBAL)
    assert batches == [512, 88 + 800]
    for number in range(800):
        (desk.root / f"{number:04d}.md").unlink(missing_ok=True)
    assert desk.ingestor(max_bytes=10_000_000).ingest([desk.root], GLOBAL).files == {"deleted": 600}
    assert batches == [512, 88 + 800, 0]


def test_where_a_batch_cannot_be_analysed_nothing_behind_it_is_written(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_notes(desk, 800)

    def failing(memories: Sequence[Memory], language: str) -> list[Entry]:
        if any(memory.text == "tea number 3" for memory in memories):
            raise ValueError("number 3")
        return entries_for(memories, language)

    monkeypatch.setattr("whyrank.ingest.pipeline.entries_for", failing)
    with pytest.raises(ValueError, match="number 3"):
        desk.ingest()
    assert desk.memories() == []
