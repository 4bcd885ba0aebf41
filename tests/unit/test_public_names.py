"""The public list is what it says, and importing it costs next to nothing."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from operator import attrgetter
from typing import TYPE_CHECKING, Any, cast

import pytest

import whyrank
from whyrank.engine.engine import COLLABORATORS, RENAMED

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PUBLIC = {
    "RECIPES", "AsyncEngine", "Checkup", "Contrast", "Document", "Engine", "Finding", "Hit", "Memory", "Part",
    "Ranking", "Recipe", "Results", "Run", "Scope", "Step", "Why", "WhyrankError", "doctor", "fetch_model", "open",
    "open_async", "rank", "replay", "restore",
}  # fmt: skip


ENGINE = {
    "add", "add_documents", "backup", "calibrate", "close", "config", "doctor", "export", "facts", "forget", "get",
    "history", "import_from", "ingest", "ingest_files", "list", "maintenance", "mark_used", "memories", "models",
    "pins", "pool", "recall", "search", "status", "tune", "update", "why",
}  # fmt: skip


def test_the_public_names_are_these() -> None:
    assert set(whyrank.__all__) == PUBLIC
    assert set(dir(whyrank)) == {*PUBLIC, "__version__"}  # for whoever types a name half


def test_every_public_name_can_be_had_and_says_what_it_is() -> None:
    for name in whyrank.__all__:
        thing = getattr(whyrank, name)
        assert name == "RECIPES" or (thing.__doc__ or "").strip(), name


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[whyrank.Engine]:
    with whyrank.open(tmp_path / "memory.db", workspace=tmp_path, embedding="none") as opened:
        yield opened


def test_the_engine_is_a_facade_without_bases_and_with_few_public_members(engine: whyrank.Engine) -> None:
    assert {name for name in dir(engine) if not name.startswith("_")} == ENGINE
    assert len(ENGINE) <= 28
    assert whyrank.Engine.__bases__ == (object,)
    for name in COLLABORATORS:
        assert type(getattr(engine, name)).__bases__ == (object,)


@pytest.mark.parametrize("old", RENAMED)
def test_a_former_name_of_the_engine_works_and_names_the_new_one(engine: whyrank.Engine, old: str) -> None:
    said = rf"Engine\.{old} is now Engine\.{re.escape(RENAMED[old])}$"
    with pytest.warns(DeprecationWarning, match=said) as told:
        assert getattr(engine, old) == attrgetter(RENAMED[old])(engine)
    assert told[0].filename == __file__
    with pytest.warns(DeprecationWarning, match=said) as told:
        getattr(whyrank.AsyncEngine(engine), old)
    assert told[0].filename == __file__


@pytest.mark.filterwarnings("ignore:Engine:DeprecationWarning")
def test_former_names_do_what_they_did(engine: whyrank.Engine) -> None:
    async def ask() -> list[Any]:
        memory = whyrank.AsyncEngine(engine)
        return [await memory.pins(), await memory.pins.list(), (await memory.saying("suzy drinks GREEN tea")).id]

    tea, old = engine.add("Suzy drinks green tea"), cast("Any", engine)
    assert old.recalled(tea.id) == 1
    pin = old.pin("green tea", tea.id)
    assert old.pins() == engine.pins.list() == [pin]
    assert (old.is_current, old.space) == (True, "")
    assert asyncio.run(ask()) == [[pin], [pin], tea.id]


def test_the_former_call_of_pins_warns_and_an_unknown_member_is_none(engine: whyrank.Engine) -> None:
    with pytest.warns(DeprecationWarning, match=r"Engine\.pins\(\) is now Engine\.pins\.list\(\)"):
        assert engine.pins() == []
    assert not hasattr(engine, "no_such_name")
    assert not hasattr(whyrank.AsyncEngine(engine), "no_such_name")


def test_an_unknown_name_is_an_attribute_error() -> None:
    assert not hasattr(whyrank, "no_such_name")


def test_importing_whyrank_loads_neither_numpy_nor_a_model() -> None:
    heavy = "{'numpy', 'tokenizers', 'safetensors', 'regex', 'yaml', 'sqlite3', 'pysqlite3', 'markdown_it'}"
    code = f"import sys, whyrank; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_help_loads_neither_numpy_nor_a_model() -> None:
    code = (
        "import sys; from whyrank.interfaces.cli.main import build; build().format_help();"
        "print(sorted({'numpy', 'tokenizers', 'regex', 'markdown_it'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# What reads files, loads whole models, serves others or mends what is broken.
NOT_FOR_A_SEARCH = (
    "markdown_it", "yaml", "pathspec", "tokenizers", "safetensors", "regex", "rapidfuzz", "filelock", "httpx", "tqdm",
    "importlib.metadata", "email", "asyncio", "tempfile", "tomllib", "logging", "whyrank.ingest.pipeline",
)  # fmt: skip


@pytest.mark.parametrize("question", ["What does Suzy drink in the morning?", "green tea"])
def test_a_search_loads_what_it_needs(tmp_path: Path, question: str) -> None:
    store = tmp_path / "memory.db"
    with whyrank.open(store) as memory:
        memory.add("Suzy drinks green tea in the morning")
    code = (
        "import sys; from whyrank.interfaces.cli.main import main;"
        f"status = main(['search', {question!r}, '--store', {str(store)!r}]);"
        f"print(status, sorted({set(NOT_FOR_A_SEARCH)} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "Suzy drinks" in done.stdout
    assert done.stdout.splitlines()[-1] == "0 []"
