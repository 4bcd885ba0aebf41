"""`pin`, `check` and `tune` as they are typed."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from xml.etree import ElementTree

import pytest

from tests.unit.test_rehearsal import notes
from whyrank.interfaces.errors import PINS_LOST

if TYPE_CHECKING:
    from pathlib import Path

    from .conftest import Run


def test_pins_are_recorded_listed_checked_and_removed(call: Run, workspace: Path) -> None:
    assert "pinned: 'green tea' → notes/tea.md  within 5" in call("pin", "green tea", "notes/tea.md").out
    assert (workspace / ".whyrank/memory.pins").is_file()
    assert "'green tea' → notes/tea.md" in call("pin", "--list").out
    assert call("check").out == "pins lost: 0 of 1\n"
    assert "removed: 'green tea'" in call("pin", "--remove", "green tea").out
    assert call("check").status == 3


def test_a_lost_pin_ends_with_its_own_status_and_a_reason(call: Run) -> None:
    call("pin", "green tea", "notes/boat.md", "--within", "1")
    call("pin", "green tea", "notes/tea.md")
    done = call("check")
    assert done.status == PINS_LOST.exit_status == 16
    assert "lost  'green tea' → notes/boat.md  within 1" in done.out
    assert "result 1 was asked for" in done.out
    assert done.out.endswith("pins lost: 1 of 2\n")


def test_the_json_of_a_check_tells_all(call: Run) -> None:
    call("pin", "green tea", "notes/boat.md", "--within", "1")
    done = call("check", "--json")
    assert done.status == 16
    assert {key: done.data[key] for key in ("pins", "kept", "moved", "lost")} == {
        "pins": 1,
        "kept": 0,
        "moved": 0,
        "lost": 1,
    }
    [one] = done.data["checked"]
    assert (one["status"], one["path"], one["within"], one["id"]) == ("lost", "notes/boat.md", 1, None)
    assert one["why"]


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        (("pin",), "no query was given"),
        (("pin", "green tea"), "no memory was named"),
        (("pin", "--list", "green tea"), "--list takes no query"),
        (("pin", "green tea", "notes/tea.md", "--within", "0"), "within is 0"),
        (("pin", "green tea", "notes/nowhere.md"), "there is no memory"),
        (("pin", "--remove", "green tea"), "there is no such pin"),
        (("tune", "--queries", "0"), "queries is 0"),
        (("tune", "--recipe", "nope"), "there is no recipe"),
        (("tune", "--plot", "no/such/folder.svg"), "cannot be written"),
    ],
)
def test_what_makes_no_sense_is_refused_in_words(call: Run, typed: tuple[str, ...], said: str) -> None:
    done = call(*typed)
    assert done.status in (2, 3)
    assert said in done.err


def test_pins_of_other_scopes_are_asked_for_by_name(call: Run) -> None:
    call("pin", "green tea", "notes/tea.md", "--scope", "user:1")
    assert call("check").status == 3
    assert call("check", "--scope", "user:1").out == "pins lost: 0 of 1\n"
    assert call("check", "--all-scopes").out == "pins lost: 0 of 1\n"
    assert "user:1" not in call("pin", "--list").out
    assert "user:1" in call("pin", "--list", "--all-scopes").out


def test_a_small_memory_is_told_that_it_is_too_small_and_nothing_is_written(call: Run, workspace: Path) -> None:
    done = call("tune", "--apply", "--plot", "tuning.svg")
    assert (done.status, done.err) == (0, "")
    assert "it takes 80 and 30 to tell a better setting from chance" in done.out
    assert not (workspace / "whyrank.toml").exists()
    assert ElementTree.parse(workspace / "tuning.svg").getroot().tag.endswith("svg")


def test_a_tuned_setting_that_something_stronger_overrides_is_said(call: Run, workspace: Path) -> None:
    notes(workspace / "made", 50)
    call("ingest", "made", "--scope", "user:1")
    typed = ("tune", "--apply", "--queries", "200", "--scope", "user:1")
    done = call(*typed, WHYRANK_RANKING_VECTOR_WEIGHT="1.0")
    assert re.search(r"^ranking\.vector_weight = \S+ \(written\)$", done.out, re.M)
    assert "ranking.vector_weight is still 1: it comes from environment (WHYRANK_RANKING_VECTOR_WEIGHT)" in done.err
