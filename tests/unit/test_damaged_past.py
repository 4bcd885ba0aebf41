"""What a memory was, damaged: the rest is shown, and what is missing is said."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING

import pytest

import whyrank
from tests.damage import told
from whyrank.interfaces.cli.main import main
from whyrank.types.memory import Notice

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LOST = "what it was before 1 change was damaged and cannot be read"


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Return a store with a fact that was changed twice."""
    file = tmp_path / "memory.db"
    with whyrank.open(file, workspace=tmp_path, embedding="none") as engine:
        identity = engine.add("Suzy drinks tea").id
        engine.update(identity, text="Suzy drinks coffee")
        engine.update(identity, text="Suzy drinks cocoa")
    return file


@pytest.fixture(params=["{", "5", "[1]", "{}", b"\xff"])
def engine(store: Path, request: pytest.FixtureRequest) -> Iterator[whyrank.Engine]:
    """Return the same, with what it was before the first change damaged."""
    told(store, "UPDATE history SET was = ? WHERE entry = (SELECT min(entry) FROM history)", request.param)
    with whyrank.open(store, workspace=store.parent, embedding="none") as engine:
        yield engine


def test_the_rest_of_a_past_is_told(engine: whyrank.Engine) -> None:
    [memory] = engine.list()
    assert [former.was for former in engine.history(memory.id)] == [{}, {"text": "Suzy drinks coffee"}]


def test_an_export_goes_on_and_says_so(engine: whyrank.Engine) -> None:
    out, notices = io.StringIO(), list[Notice]()
    assert engine.export(out, notices=notices) == 1
    assert [change["was"] for change in json.loads(out.getvalue())["history"]] == [{}, {"text": "Suzy drinks coffee"}]
    assert [(notice.code, notice.message[: len(LOST)]) for notice in notices] == [("facts-damaged", LOST)]


def test_the_doctor_finds_it(engine: whyrank.Engine) -> None:
    assert [(one.code, one.message) for one in engine.doctor().findings] == [
        ("books", "1 of the history of memories cannot be read")
    ]


def test_show_goes_on_and_says_so(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told(store, "UPDATE history SET was = '{', changed = 'x' WHERE entry = (SELECT min(entry) FROM history)")
    with whyrank.open(store, workspace=store.parent, embedding="none") as engine:
        [memory] = engine.list()
    arguments = ["show", memory.id, "--store", str(store)]
    assert main(arguments) == 0
    shown = capsys.readouterr()
    assert "until a time that was damaged: damaged\n" in shown.out
    assert "text: Suzy drinks coffee\n" in shown.out
    assert LOST in shown.err
    assert main([*arguments, "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["history"][0] == {"changed": None, "was": {}}
    assert [notice["code"] for notice in data["notices"]] == ["facts-damaged"]
