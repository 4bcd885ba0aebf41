"""The command as a process: what it leaves out that only those need who stay, and what it leaves alone."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Mapping

AS_IT_IS = gc.get_threshold()[0]  # how many new objects Python lets come before it looks for garbage
COMMAND = """
import gc, os, sys
sys.argv[1:] = {arguments!r}
import whyrank.__main__ as command
try:
    command.main()
except SystemExit:
    pass
print(gc.get_threshold()[0], os.environ.get("OPENBLAS_NUM_THREADS"))
"""


def left(*arguments: str, environment: Mapping[str, str] | None = None) -> str:
    """Run a command and return how it leaves garbage and threads."""
    given = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}
    code = COMMAND.format(arguments=list(arguments))
    done = subprocess.run(
        [sys.executable, "-c", code], env={**given, **(environment or {})}, capture_output=True, text=True, check=True
    )
    return done.stdout.splitlines()[-1]


def test_a_command_that_goes_looks_for_no_garbage_and_starts_no_threads() -> None:
    assert left("--version") == "200000 1"


def test_whoever_says_how_many_threads_there_shall_be_is_heard() -> None:
    assert left("--version", environment={"OMP_NUM_THREADS": "2"}) == "200000 None"
    assert left("--version", environment={"OPENBLAS_NUM_THREADS": "2"}) == "200000 2"


@pytest.mark.parametrize("verb", ["serve", "mcp"])
def test_those_who_stay_and_those_who_measure_others_find_everything_as_it_is(verb: str) -> None:
    assert left(verb, "--no-such-option") == f"{AS_IT_IS} None"
