"""Ctrl-C at any moment of any command: one line at most, status 130, nothing half written, and nobody hangs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from tests.processes import SECONDS, started

from .conftest import COMMAND, Run

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# Python that runs the command and is interrupted at the n-th call of a function of ours, whatever it is then doing.
INTERRUPTED = """
import os, signal, sys
from whyrank.__main__ import main

left = int(sys.argv.pop(1))

def watch(frame, event, argument):
    global left
    if event == "call" and "whyrank" in frame.f_code.co_filename:
        left -= 1
        if left == 0:
            sys.setprofile(None)
            os.kill(os.getpid(), signal.SIGINT)

sys.setprofile(watch)
main()
"""
COMMANDS = {
    "search": ["search", "green tea"],
    "ingest": ["ingest", "notes", "--store", "fresh.db"],
    "add": ["add", "Robin prefers tea"],
    "model": ["model", "use", "wordllama"],
    "export": ["export", "--out", "all.jsonl"],
    "doctor": ["doctor", "--repair"],
    "backup": ["backup", "copy.db"],
}


@pytest.fixture(autouse=True)
def heard() -> Iterator[None]:
    """Let children hear Ctrl-C: what a shell starts in the background ignores it, and whatever that starts."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def ran(code: str, *arguments: str, cwd: Path, temporary: Path) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=cwd, capture_output=True, text=True, timeout=SECONDS, check=False,
        env={**os.environ, "TMPDIR": str(temporary)},
    )  # fmt: skip
    return done.returncode, done.stderr.strip()


@pytest.fixture
def temporary(tmp_path: Path) -> Path:
    folder = tmp_path / "temporary"
    folder.mkdir()
    return folder


@pytest.mark.parametrize("at", [2, 60, 1_500])
@pytest.mark.parametrize("verb", COMMANDS)
def test_an_interrupt_ends_a_command_in_order(call: Run, workspace: Path, temporary: Path, verb: str, at: int) -> None:
    ended = ran(INTERRUPTED, str(at), *COMMANDS[verb], cwd=workspace, temporary=temporary)
    assert ended in [(130, "interrupted"), (0, "")]
    assert list(temporary.iterdir()) == []
    assert not list(workspace.glob(".all.jsonl*"))
    assert "notes/tea.md" in call("search", "green tea").out


def test_facts_that_were_stored_are_kept_when_the_rest_is_interrupted(workspace: Path, call: Run) -> None:
    def stored() -> int:
        return len(call("list", "--kind", "fact", "--json").data["memories"])

    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
    with started([COMMAND, "add", "-"], cwd=workspace, **pipes) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        process.stdin.write("the boat is blue\nthe mast is oak\n")
        process.stdin.flush()
        deadline = time.monotonic() + SECONDS
        while stored() < 2:
            assert time.monotonic() < deadline
        process.send_signal(signal.SIGINT)
        assert process.wait(SECONDS) == 130
        assert process.stderr.read().strip() == "interrupted"
    assert stored() == 2


def test_a_key_hit_twice_does_not_cut_the_undoing_short(workspace: Path, temporary: Path) -> None:
    again = "def again(frame, event, argument):\n    os.kill(os.getpid(), signal.SIGINT)\n\ndef watch"
    twice = INTERRUPTED.replace("def watch", again).replace("setprofile(None)", "setprofile(again)")
    assert ran(twice, "900", "search", "tea", cwd=workspace, temporary=temporary) == (130, "interrupted")


def test_an_interrupt_that_nobody_could_hear_is_heard_again(tmp_path: Path) -> None:
    code = """
import os, signal, sys, time
sys.argv = ["whyrank", "status"]
import whyrank.interfaces.cli.main as command
from whyrank.__main__ import main

class Deaf:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0)

def run():
    deaf = Deaf()
    del deaf
    time.sleep(60)

command.main = run
main()
"""
    assert ran(code, cwd=tmp_path, temporary=tmp_path) == (130, "interrupted")


def test_an_import_that_fails_because_it_was_cut_short_is_an_interrupt(tmp_path: Path) -> None:
    code = """
import os, signal, sys
sys.argv = ["whyrank", "status"]
import whyrank.interfaces.cli.main as command
from whyrank.__main__ import main

def run():
    try:
        os.kill(os.getpid(), signal.SIGINT)
    except KeyboardInterrupt:
        raise ImportError("half a module")

command.main = run
main()
"""
    assert ran(code, cwd=tmp_path, temporary=tmp_path) == (130, "interrupted")
