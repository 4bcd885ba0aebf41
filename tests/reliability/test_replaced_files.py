"""A store that is deleted or replaced under whoever has it open: no write is acknowledged into nowhere.

A write is refused, or is found by whoever opens the store by its path. While there is no file, a server is not well.
"""

from __future__ import annotations

import http.client
import json
import shutil
import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import whyrank
from whyrank.errors import WhyrankError

from .victims import SECONDS, TOKEN, Program, run_command, store_options

if TYPE_CHECKING:
    from collections.abc import Callable

WRITES = 7


def opened(store: Path) -> whyrank.Engine:
    return whyrank.open(store, workspace=store.parent, embedding="none", calibration="manual")


def delete(store: Path) -> None:
    """Delete the file and what lies beside it, as a person would who wants it gone."""
    for end in ("", "-wal", "-shm"):
        Path(f"{store}{end}").unlink(missing_ok=True)


def delete_alone(store: Path) -> None:
    store.unlink()


def replace(store: Path) -> None:
    """Put a copy in place of the file by `mv`, with nothing of the old one beside it: a restore."""
    for end in ("-wal", "-shm"):
        Path(f"{store}{end}").unlink(missing_ok=True)
    shutil.copy(store.with_name("copy.db"), store.with_name("aside.db"))
    store.with_name("aside.db").replace(store)


def replace_alone(store: Path) -> None:
    """Put a copy in place of the file by `mv`, and forget what lies beside it."""
    shutil.copy(store.with_name("copy.db"), store.with_name("aside.db"))
    store.with_name("aside.db").replace(store)


WAYS: list[Callable[[Path], None]] = [delete, delete_alone, replace, replace_alone]


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Return a store of one fact, with a copy of it beside."""
    made = tmp_path / "memory.db"
    with opened(made) as engine:
        engine.add("Crate first0x waits on the quay")
    shutil.copy(made, tmp_path / "copy.db")
    return made


def assert_kept(store: Path, acknowledged: list[str]) -> None:
    """Whoever opens the store by its path finds what was acknowledged, and the store is sound."""
    if not acknowledged:
        return
    with opened(store) as engine:
        kept = {memory.text for memory in engine.list(limit=1_000)}
        assert sorted(set(acknowledged) - kept) == []
        for text in acknowledged:
            assert engine.search(text.split()[1], limit=1)[0].memory.text == text


@pytest.mark.parametrize("way", WAYS)
def test_no_write_of_an_open_engine_goes_nowhere(store: Path, way: Callable[[Path], None]) -> None:
    acknowledged = list[str]()
    with opened(store) as engine:
        engine.add("Crate second0x waits on the quay")
        way(store)
        for number in range(WRITES):
            text = f"Crate late{number}x waits on the quay"
            try:
                engine.add(text)
                acknowledged.append(text)
            except WhyrankError:
                continue
    assert_kept(store, acknowledged)


@pytest.mark.parametrize("way", [replace, replace_alone])
def test_an_engine_opened_after_a_restore_writes_and_finds(store: Path, way: Callable[[Path], None]) -> None:
    with opened(store) as engine:
        engine.add("Crate second0x waits on the quay")
        way(store)
        with opened(store) as other:
            other.add("Crate other0x waits on the quay")
    assert_kept(store, ["Crate first0x waits on the quay", "Crate other0x waits on the quay"])


class Server:
    """`whyrank serve`, asked over one connection for each request."""

    def __init__(self, store: Path) -> None:
        self._program = Program(["serve", "--port", "0", "--json", *store_options(store)], run_command)
        said = ""
        while not said.endswith("}"):
            said += self._program.line()
        self._port = int(json.loads(said)["url"].rpartition(":")[2])
        self.close = self._program.close

    def asked(self, method: str, path: str, body: object = None) -> tuple[int, str]:
        with closing(http.client.HTTPConnection("127.0.0.1", self._port, timeout=SECONDS)) as client:
            headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
            client.request(method, path, None if body is None else json.dumps(body), headers)
            answer = client.getresponse()
            return answer.status, answer.read().decode()

    def is_well(self) -> bool:
        return self.asked("GET", "/health")[0] == 200


@pytest.mark.parametrize("way", WAYS)
def test_no_write_over_http_goes_nowhere(store: Path, way: Callable[[Path], None]) -> None:
    acknowledged = list[str]()
    with closing(Server(store)) as server:
        assert server.asked("POST", "/v1/memories", {"text": "Crate second0x waits on the quay"})[0] == 201
        way(store)
        for number in range(WRITES):
            text = f"Crate late{number}x waits on the quay"
            status, _ = server.asked("POST", "/v1/memories", {"text": text})
            assert status in (200, 201) or status >= 500
            if status < 300:
                acknowledged.append(text)
    assert_kept(store, acknowledged)


@pytest.mark.parametrize("way", [delete, delete_alone])
def test_a_server_whose_store_is_gone_is_not_well(store: Path, way: Callable[[Path], None]) -> None:
    with closing(Server(store)) as server:
        assert server.asked("POST", "/v1/memories", {"text": "Crate second0x waits on the quay"})[0] == 201
        assert server.is_well()
        way(store)
        deadline = time.monotonic() + 10  # an answer about health may be a second old
        while server.is_well() and time.monotonic() < deadline:
            time.sleep(0.1)
        assert store.exists() or not server.is_well()


@pytest.mark.parametrize("way", [replace, replace_alone])
def test_a_server_goes_on_with_a_restored_store(store: Path, way: Callable[[Path], None]) -> None:
    with closing(Server(store)) as server:
        assert server.asked("POST", "/v1/memories", {"text": "Crate second0x waits on the quay"})[0] == 201
        way(store)
        deadline, text = time.monotonic() + 10, "Crate late0x waits on the quay"
        while server.asked("POST", "/v1/memories", {"text": text})[0] not in (200, 201):
            assert time.monotonic() < deadline, "the server never took the restored store"
            time.sleep(0.1)
        status, found = server.asked("POST", "/v1/search", {"query": "late0x"})
        assert status == 200
        assert json.loads(found)["hits"][0]["text"] == text
    assert_kept(store, ["Crate first0x waits on the quay", text])
