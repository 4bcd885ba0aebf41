"""A small workspace of notes that has been ingested, and two ways to run the command in it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import pytest

import whyrank
from whyrank.interfaces.cli.main import main

from .. import processes

if TYPE_CHECKING:
    from collections.abc import Iterator

COMMAND = Path(sys.executable).with_name("whyrank")
STORE = Path(".whyrank/memory.db")
SECONDS = processes.SECONDS

NOTES = {
    "notes/tea.md": """---
title: Suzy's tea
date: 2026-03-14
tags: [kitchen, suzy]
---

# Tea

Suzy drinks green tea in the morning and never after four o'clock. She keeps the tin behind the flour.
""",
    "notes/boat.md": """# The rowing boat

The hull was tarred in spring. The left oarlock squeaks; a drop of oil helps for a week.

## Mooring

Tie it to the second ring of the jetty, because the first one is loose.
""",
    "notes/garden/compost.md": """# Compost

Turn the heap every third weekend. Eggshells take a year, so crush them first.
""",
    "notes/servers.md": """# Lighthouse server

The api-key for the weather feed is rotated in June. The collector is written in c++ and restarts by itself.
We don't expose its dashboard to the internet.
""",
    "notes/diary/2026-02-01.md": """# First of February

Snow until noon. Mended the fence, lost a glove, found the neighbour's cat in the shed.
""",
    "notes/chat.jsonl": """{"speaker": "Mara", "text": "Where do we moor the ferry on Sunday?", "date": "2026-04-02"}
{"speaker": "Ivo", "text": "At the north pier, behind the fish market.", "date": "2026-04-02"}
""",
}


class Finished(NamedTuple):
    """How a command ended."""

    status: int
    out: str
    err: str

    @property
    def data(self) -> Any:
        """Return its standard output, which must be one JSON value."""
        return json.loads(self.out)

    @property
    def said(self) -> str:
        """Return all it printed."""
        return self.out + self.err


class Run(Protocol):
    """Runs the command; keywords are environment variables."""

    def __call__(self, *arguments: str, **variables: str) -> Finished: ...


class RunPowerless(Protocol):
    """Runs the real command as somebody whom file permissions stop."""

    def __call__(self, *arguments: str) -> Finished: ...


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the notes and ingest them once; every test gets a copy."""
    folder = tmp_path_factory.mktemp("template") / "workspace"
    for name, text in NOTES.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    with whyrank.open(folder / STORE, workspace=folder, embedding="wordllama") as memory:
        report = memory.ingest(folder / "notes")
    assert report.files == {"new": len(NOTES)}
    return folder


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Keep the settings of whoever runs the tests out of them."""
    for name in [*os.environ]:
        if name.startswith("WHYRANK_") or name in ("NO_COLOR", "PYTHONUNBUFFERED"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


@pytest.fixture
def workspace(template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a fresh copy of the ingested workspace, which is also the current folder."""
    folder = tmp_path / "workspace"
    shutil.copytree(template, folder, ignore=shutil.ignore_patterns("*.recalls"))  # servers of other tests log there
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def run(workspace: Path) -> Run:
    """Return a function that runs the real command in the workspace."""

    def run(*arguments: str, **variables: str) -> Finished:
        return _finish([str(COMMAND), *arguments], workspace, variables)

    return run


@pytest.fixture
def run_powerless(workspace: Path) -> RunPowerless:
    """Return a function that runs the real command without root's power to ignore permissions."""
    prefix: list[str] = []
    if os.geteuid() == 0:
        setpriv = shutil.which("setpriv")
        if setpriv is None:
            pytest.skip("root ignores permissions, and there is no setpriv to take that power away")
        prefix = [setpriv, "--bounding-set=-dac_override,-dac_read_search"]
        if _finish([*prefix, "true"], workspace, {}).status:
            pytest.skip("root ignores permissions, and setpriv may not take that power away here")

    def run_powerless(*arguments: str) -> Finished:
        return _finish([*prefix, str(COMMAND), *arguments], workspace, {})

    return run_powerless


@pytest.fixture
def call(workspace: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Return a function that does the same in this process, which is faster."""

    def call(*arguments: str, **variables: str) -> Finished:
        capsys.readouterr()
        with monkeypatch.context() as patched:
            for name, value in variables.items():
                patched.setenv(name, value)
            try:
                status = main(arguments)
            except SystemExit as left:  # argparse leaves so after --help
                status = left.code if isinstance(left.code, int) else 1
        return Finished(status, *capsys.readouterr())

    return call


@pytest.fixture
def engine(workspace: Path) -> Iterator[whyrank.Engine]:
    """Return the library's own way in."""
    with whyrank.open(workspace / STORE, workspace=workspace) as memory:
        yield memory


def still_answers(call: Run) -> bool:
    """Tell whether the workspace still finds what was in it from the beginning."""
    found = call("search", "green tea", "--embedding", "none", "--json")
    return found.status == 0 and found.data["hits"][0]["path"] == "notes/tea.md"


def _finish(command: list[str], folder: Path, variables: dict[str, str]) -> Finished:
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, **variables},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=SECONDS,
        check=False,
    )
    return Finished(done.returncode, done.stdout.decode("utf-8"), done.stderr.decode("utf-8"))
