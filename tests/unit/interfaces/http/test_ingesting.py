"""Only files of the workspace are taken in, and work that takes long can be stopped between two of them."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import TYPE_CHECKING

import pytest

from whyrank.interfaces.errors import BadRequest
from whyrank.interfaces.http.handlers import News, inside, until

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    (folder / "notes").mkdir(parents=True)
    (tmp_path / "outside.md").write_text("secret", encoding="utf-8")
    (folder / "link.md").symlink_to(tmp_path / "outside.md")
    (folder / "own.md").symlink_to(folder / "notes")
    return folder


def test_what_lies_below_the_workspace_is_taken(workspace: Path) -> None:
    named = ["notes", "./notes/", str(workspace / "notes"), "own.md", ".", "notes/not-there.md"]
    taken = ["notes", "notes", "notes", "own.md", "", "notes/not-there.md"]
    assert inside(workspace, named) == [workspace / name for name in taken]


@pytest.mark.parametrize(
    "name",
    ["..", "../outside.md", "notes/../../outside.md", "/", "/etc/hosts", "link.md", ".env", "a/.git", "\x00"],
)
def test_nothing_else_is(workspace: Path, name: str) -> None:
    with pytest.raises(BadRequest) as refused:
        inside(workspace, ["notes", name])
    assert (refused.value.status, refused.value.code) == (403, "outside")


def test_work_is_stopped_when_the_server_is_to_end() -> None:
    leaving, told = threading.Event(), list[int]()
    tick = until(leaving, lambda done, total, what: told.append(done))
    tick(1, 3, "a.md")
    leaving.set()
    with pytest.raises(BadRequest, match="files that were stored stay"):
        tick(2, 3, "b.md")
    assert told == [1]


def test_news_end_with_the_report_or_the_error() -> None:
    async def heard(fails: bool) -> list[str]:
        news = News()

        def work() -> bytes:
            news.tell(1, 1, "a.md")
            if fails:
                raise OSError("gone")
            return b'{"chunks": 1}'

        task = asyncio.get_running_loop().run_in_executor(None, work)
        return [one.decode() async for one in news.events(task, lambda error: json.dumps(str(error)).encode())]

    progress = 'event: progress\ndata: {"done": 1, "total": 1, "what": "a.md"}\n\n'
    assert asyncio.run(heard(False)) == [progress, 'event: report\ndata: {"chunks": 1}\n\n']
    assert asyncio.run(heard(True)) == [progress, 'event: error\ndata: "gone"\n\n']
