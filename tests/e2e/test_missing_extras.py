"""Doors whose extra is not installed say what to install."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

# As if a package had never been installed: nothing finds it.
WITHOUT = """
import sys
from importlib.machinery import PathFinder

class Without(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name.split(".")[0] == {missing!r} else super().find_spec(name, path, target)

sys.meta_path = [Without if finder is PathFinder else finder for finder in sys.meta_path]
from whyrank.__main__ import main
sys.exit(main())
"""


@pytest.mark.parametrize(
    ("typed", "missing"),
    [
        (["serve"], "starlette"),
        (["serve"], "uvicorn"),
        (["serve"], "prometheus_client"),
        (["mcp"], "mcp"),
        (["mcp", "--http"], "mcp"),
    ],
)
def test_a_door_names_the_package_that_is_not_installed(tmp_path: Path, typed: list[str], missing: str) -> None:
    program = [sys.executable, "-c", WITHOUT.format(missing=missing), *typed, "--json", "--store", "memory.db"]
    ended = subprocess.run(program, cwd=tmp_path, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)
    assert ended.returncode == 11, ended.stderr
    told = json.loads(ended.stdout or ended.stderr)["error"]
    assert "not installed" in told["message"]
    assert f"pip install 'whyrank[{typed[0]}]'" in told["hint"]
