"""What a second careful reading found, each held by a test."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

import whyrank
from whyrank.errors import ConfigError, NotFound
from whyrank.ingest.documents import ChunkSize, memories_in
from whyrank.interfaces.cli.main import main
from whyrank.interfaces.cli.output import heading
from whyrank.ranking.fusion import Atan
from whyrank.types.memory import GLOBAL, Document, Memory, Scope

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LONG = "word " * 120


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[whyrank.Engine]:
    with whyrank.open(tmp_path / "memory.db", workspace=tmp_path, embedding="none") as opened:
        yield opened


CLOSE = """
import sys, threading, time, whyrank
engine = whyrank.open(sys.argv[1], workspace=sys.argv[2], embedding="none")
def work(number):
    try:
        for i in range(10_000):
            engine.add(f"fact {number} {i}") if number % 2 else engine.search("fact")
    except whyrank.WhyrankError as error:
        assert "was closed" in str(error), error
threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
for thread in threads: thread.start()
time.sleep(0.3)
engine.close()
for thread in threads: thread.join()
print("closed")
"""


def test_closing_waits_for_what_other_threads_are_doing(tmp_path: Path) -> None:
    command = [sys.executable, "-c", CLOSE, str(tmp_path / "memory.db"), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout.strip()) == (0, "closed"), done.stderr


def test_a_renamed_file_stays_replaced(tmp_path: Path) -> None:
    note = tmp_path / "a.md"
    note.write_text("Suzy drinks coffee every day.")
    with whyrank.open(tmp_path / "memory.db", workspace=tmp_path, embedding="none") as engine:
        engine.ingest(tmp_path)
        engine.add("Suzy drinks tea now", supersedes=engine.search("coffee")[0].id)
        note.rename(tmp_path / "b.md")
        assert engine.ingest(tmp_path).files == {"renamed": 1}
        assert [hit.memory.text for hit in engine.search("Suzy drinks")] == ["Suzy drinks tea now"]


def test_a_memory_already_replaced_is_not_replaced_again(engine: whyrank.Engine) -> None:
    tea = engine.add("tea")
    coffee = engine.add("coffee", supersedes=tea.id)
    with pytest.raises(ConfigError, match=coffee.id):
        engine.add("water", supersedes=tea.id)


def test_what_is_said_again_keeps_what_was_said_of_it(engine: whyrank.Engine) -> None:
    tea = engine.add("tea", tags=["hot"], importance=5, name="Tea")
    coffee = engine.add("coffee", supersedes=tea.id)
    again = engine.add("tea", supersedes=coffee.id)
    assert (again.tags, again.importance, again.name, again.created) == (("hot",), 5, "Tea", tea.created)


def test_equal_documents_in_one_batch_are_one(engine: whyrank.Engine) -> None:
    engine.add_documents([Document("a", "hello"), Document("a", "hello"), Document("a", "bye")])
    assert [memory.text for memory in engine.list()] == ["bye"]


def test_a_document_takes_the_place_of_a_file_until_the_next_ingest(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("from the file")
    with whyrank.open(tmp_path / "memory.db", workspace=tmp_path, embedding="none") as engine:
        engine.ingest(tmp_path)
        engine.add_documents([Document("a.md", "from elsewhere")])
        assert [memory.text for memory in engine.list()] == ["from elsewhere"]
        engine.ingest(tmp_path)
        assert "from the file" in [memory.text for memory in engine.list()]


def test_a_folder_that_may_not_be_entered_is_a_failure_and_not_the_end(tmp_path: Path) -> None:
    (tmp_path / "good.md").write_text("text")
    # A tree deeper than a path may be long cannot be made by path; one step at a time it can.
    made = subprocess.run(
        [
            "sh",
            "-c",
            'cd "$0" && for i in $(seq 30); do mkdir "$1" && cd "$1" || exit 0; done',
            str(tmp_path),
            "d" * 200,
        ],
        check=False,
    )
    assert made.returncode == 0
    with whyrank.open(tmp_path / "memory.db", workspace=tmp_path, embedding="none") as engine:
        assert engine.ingest(tmp_path).files == {"new": 1}


def test_a_key_of_front_matter_that_is_no_text_is_passed_over() -> None:
    read = memories_in("---\n? 0x" + "f" * 5_000 + "\n: 1\n---\nbody", "a.md", GLOBAL, 0.0, ChunkSize())
    assert read.memories[-1].text.endswith("body")


def test_a_heading_beside_a_long_line_is_not_lost() -> None:
    text = "# Doc\n\n## Zanzibar\n\n## Other\n\n" + "word " * 900
    read = memories_in(text, "a.md", GLOBAL, 0.0, ChunkSize(100, 20))
    assert any("Zanzibar" in memory.text for memory in read.memories)


def test_why_speaks_of_the_best_chunk_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("green tea and more green tea")
    (tmp_path / "z.md").write_text(f"# One\n\ngreen tea {LONG}\n\n# Two\n\ngreen tea again {LONG}\n")
    with whyrank.open(tmp_path / "memory.db", workspace=tmp_path, embedding="none") as engine:
        engine.ingest(tmp_path)
        assert engine.why("green tea", "z.md", limit=1).summary.startswith("it is ranked 2")
        with pytest.raises(NotFound):
            engine.why("green tea", "")


def test_a_foreign_run_may_be_called_name() -> None:
    assert [hit.id for hit in whyrank.rank({"name": [("b", 2.0), ("a", 1.0)]})] == ["b", "a"]


def test_a_weight_of_nothing_shuts_vectors_off(tmp_path: Path) -> None:
    with whyrank.open(tmp_path / "m.db", workspace=tmp_path, ranking_vector_weight=0.0) as engine:
        engine.add("the cat sleeps")
        assert all(hit.score == 0.0 for hit in engine.search("feline naps"))


def test_the_verdict_does_not_depend_on_the_recipe(tmp_path: Path) -> None:
    with whyrank.open(tmp_path / "m.db", workspace=tmp_path) as engine:
        for text in ("green tea in the afternoon", "the tax office", "engine oil"):
            engine.add(text)
        verdicts = {
            engine.search("green tea afternoon", recipe=recipe).verdict for recipe in ("default", "vector", "rrf")
        }
        assert verdicts == {"found"}


def test_a_recipe_given_as_a_value_is_the_whole_policy_and_says_which_settings_it_sets_aside(tmp_path: Path) -> None:
    with whyrank.open(tmp_path / "m.db", workspace=tmp_path, embedding="none", ranking_min_coverage=0.9) as engine:
        engine.add("green tea and a great many other words that nobody asked for")
        asked = "green giraffes dance under seven yellow moons"
        assert len(engine.search(asked)) == 0
        given = engine.search(asked, recipe=whyrank.RECIPES["default"])
        assert len(given) == 1
        [notice] = [notice for notice in given.notices if notice.code == "setting-unused"]
        assert "ranking.min_coverage" in notice.message


def test_replaced_memories_of_an_earlier_time_can_be_asked_for(engine: whyrank.Engine) -> None:
    tea = engine.add("Suzy drinks tea")
    coffee = engine.add("Suzy drinks coffee", supersedes=tea.id)
    later = coffee.created + 60
    assert len(engine.search("Suzy drinks", as_of=later)) == 1
    assert len(engine.search("Suzy drinks", as_of=later, include_superseded=True)) == 2


@pytest.mark.parametrize("scale", [0.0, -1.0, float("nan")])
def test_a_scale_that_makes_no_sense_is_refused(scale: float) -> None:
    with pytest.raises(ConfigError):
        Atan(scale)


@pytest.mark.parametrize(("kind", "name"), [("user", ""), ("user", " a "), ("global", "x"), ("Planet", "earth")])
def test_a_scope_that_is_none_cannot_be_made(kind: str, name: str) -> None:
    with pytest.raises(ValueError, match="not a scope"):
        Scope(kind, name)


def test_a_name_cannot_forge_a_line_of_output() -> None:
    assert heading(Memory("m", "x", title="Tea\n 2. Forged  confidence 100%\x1b[2m")).count("\n") == 0


def test_text_after_two_dashes_belongs_to_the_question(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.md").write_text("the flag foo does nothing")
    assert main(["ingest", "a.md", "--embedding", "none"]) == 0
    assert main(["search", "flag", "--embedding", "none", "--limit", "3", "--", "-foo"]) == 0
    assert "a.md" in capsys.readouterr().out


def test_a_dry_run_names_files_as_the_ingest_will(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.md").write_text("text")
    assert main(["ingest", "a.md", "--dry-run", "--embedding", "none"]) == 0
    assert "new      a.md" in capsys.readouterr().out


def test_a_store_beside_another_workspace_is_one_store_for_all_verbs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "a.md").write_text("green tea")
    monkeypatch.chdir(tmp_path / "here")
    common = ["--store", "s.db", "--workspace", str(tmp_path), "--embedding", "none"]
    assert main(["ingest", str(tmp_path / "a.md"), *common]) == 0
    assert main(["search", "tea", *common]) == 0
    assert "green" in capsys.readouterr().out.lower()
