"""The public list is what it says, and importing it costs next to nothing."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

import whyrank

if TYPE_CHECKING:
    from pathlib import Path

PUBLIC = {
    "RECIPES", "AsyncEngine", "Checkup", "Contrast", "Document", "Engine", "Finding", "Hit", "Memory", "Part",
    "Ranking", "Recipe", "Results", "Run", "Scope", "Step", "Why", "WhyrankError", "doctor", "fetch_model", "open",
    "open_async", "rank", "replay", "restore",
}  # fmt: skip


def test_the_public_names_are_these() -> None:
    assert set(whyrank.__all__) == PUBLIC
    assert set(dir(whyrank)) == {*PUBLIC, "__version__"}  # for whoever types a name half


def test_every_public_name_can_be_had_and_says_what_it_is() -> None:
    for name in whyrank.__all__:
        thing = getattr(whyrank, name)
        assert name == "RECIPES" or (thing.__doc__ or "").strip(), name


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
