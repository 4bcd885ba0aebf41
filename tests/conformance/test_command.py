"""`python -m whyrank_conformance` as people and CI call it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from whyrank_conformance.__main__ import NOT_CONFORMING, main

ADAPTERS = '''
from whyrank_conformance.flaws import AllWords
from whyrank_conformance.sound import Sound


class Good(Sound):
    """A sound engine."""

    name = "good"


class Bad(AllWords):
    """One that joins words by AND."""

    name = "bad"
'''


@pytest.fixture
def adapters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Two adapters in the current folder, under a name of their own."""
    name = f"adapters_of_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{name}.py").write_text(ADAPTERS, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return name


def test_an_engine_of_ones_own_that_conforms_ends_with_nought(
    adapters: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--engine", f"{adapters}:Good"]) == 0
    assert "18 of 18 passed" in capsys.readouterr().out


def test_one_that_fails_ends_with_a_status_of_its_own_and_the_evidence(
    adapters: str, capsys: pytest.CaptureFixture[str]
) -> None:
    status = main(["--engine", f"{adapters}:Good", "--engine", f"{adapters}:Bad", "--json"])
    assert status == NOT_CONFORMING == 18
    told = json.loads(capsys.readouterr().out)
    assert told["conforms"] is False
    good, bad = told["engines"]
    assert {outcome["state"] for outcome in good["outcomes"]} == {"passed"}
    [failed] = [outcome for outcome in bad["outcomes"] if outcome["state"] == "failed"]
    assert failed["check"] == 5
    assert "shares-words" in failed["expected"]


def test_reports_are_kept_and_shown_again_with_a_page_of_both_kinds(
    adapters: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--engine", f"{adapters}:Good", "--out", "docs/results"]) == 0
    assert main(["--engine", f"{adapters}:Bad", "--out", "docs/results"]) == 18
    page = (tmp_path / "docs/results.md").read_text(encoding="utf-8")
    assert "| good |" in page
    assert "| bad |" in page  # of both runs
    capsys.readouterr()
    assert main(["--from", "docs/results", "--html", "page.html"]) == 18
    told = capsys.readouterr()
    assert "good" in told.out
    assert told.err == "written: page.html\n"
    assert "<!doctype html>" in (tmp_path / "page.html").read_text(encoding="utf-8")
    main(["--from", "docs/results", "--html", "page.html", "--json"])
    assert json.loads(capsys.readouterr().out)["written"] == ["page.html"]


def test_a_page_that_is_not_of_these_reports_is_not_overwritten(
    adapters: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "notes.md").write_text("# My notes\n", encoding="utf-8")
    assert main(["--engine", f"{adapters}:Good", "--out", "notes"]) == 2
    assert main(["--engine", f"{adapters}:Good", "--html", "notes.md"]) == 2
    assert capsys.readouterr().err.count("notes.md already exists") == 2
    assert (tmp_path / "notes.md").read_text(encoding="utf-8") == "# My notes\n"


def test_when_nothing_that_was_asked_for_is_installed_the_command_that_installs_it_is_named(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["--engine", "tests.conformance.strangers:Absent"]) == 11
    assert "no-such-distribution is not installed; pip install it" in capsys.readouterr().err


def test_the_list_names_engines_and_what_is_missing(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--list", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    missing = {one["engine"]: one["missing"] for one in told["engines"]}
    assert missing["whyrank"] == ""
    assert "graphiti" in told["unasked"]
    assert main(["--list"]) == 0
    assert "whyrank: whyrank as it comes" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--engine", "lancdb"], "did you mean 'lancedb'?"),
        (["--engine", "whyrank", "--from", "x"], "leave out --engine"),
        (["--html", "no/such/folder/page.html"], "name a file in an existing folder"),
        (["--seed", "-1"], "it is -1"),
    ],
)
def test_what_cannot_be_done_is_refused_before_anything_is_run(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*arguments]) == 2
    assert said in capsys.readouterr().err


def test_it_runs_where_whyrank_is_not_installed() -> None:
    code = (
        "import sys; sys.modules['whyrank'] = None; from whyrank_conformance.__main__ import main;"
        "main(['--list']); sys.exit(main(['--engine', 'whyrank_conformance.sound:Sound']))"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2] / "conformance/src")}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "18 of 18 passed" in done.stdout
