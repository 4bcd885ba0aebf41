"""Facts that wait while others hold the store, or where nobody may write: no door leaves them out silently."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from ..processes import started
from .agents import over_stdio, run, told
from .conftest import STORE, Run, RunPowerless
from .rest import serving

WORDS_ALONE = ("--embedding", "none")
MINE = (*WORDS_ALONE, "--scope", "user:42")
LATE, FOREIGN = "Robin prefers quinoa lemonade", "Kim hides the lemonade"
# Stores two facts that wait, then holds the lock of the writers until its input ends, or the test.
HOLDER = f"""
import sys, whyrank
from whyrank.storage.sqlite.locking import side_lock
memory = whyrank.open(sys.argv[1], embedding="none")
late = memory.add({LATE!r}, scope="user:42", tags=["drinks"])
foreign = memory.add({FOREIGN!r}, scope="user:7")
lock = side_lock(sys.argv[1] + ".lock")
if sys.argv[2] == "hold":
    lock.take(30.0)
print(late.id, foreign.id, flush=True)
sys.stdin.read()
"""


class Late(NamedTuple):
    """The ids of what waits: of our own scope, and of another."""

    mine: str
    foreign: str


@pytest.fixture
def late(workspace: Path) -> Iterator[Late]:
    """Let two facts wait in the store while another process holds its lock."""
    command = [sys.executable, "-c", HOLDER, str(workspace / STORE), "hold"]
    with started(command, cwd=workspace, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        yield Late(*process.stdout.readline().split())


def listed_ids(answer: dict[str, Any]) -> list[str]:
    return [memory["id"] for memory in answer["memories"]]


def test_the_command_line_lists_shows_counts_and_exports_what_waits(call: Run, late: Late) -> None:
    assert late.mine in listed_ids(call("list", *MINE, "--json").data)
    assert late.mine in call("list", *MINE).out
    assert call("list", *MINE, "--kind", "fact", "--tag", "drinks", "--json").data["memories"][0]["text"] == LATE
    assert late.mine not in listed_ids(call("list", *MINE, "--tag", "kitchen", "--json").data)
    assert late.foreign not in listed_ids(call("list", *MINE, "--json").data)
    assert call("show", late.mine, *MINE, "--json").data["text"] == LATE
    assert call("show", late.foreign, *MINE).status != 0
    lines = [json.loads(line) for line in call("export", *MINE).out.splitlines()]
    assert [line["id"] for line in lines if "id" in line] == [late.mine]
    scopes = call("status", *WORDS_ALONE, "--json").data["scopes"]
    assert (scopes["user:42"], scopes["user:7"]) == (1, 1)
    assert [one["code"] for one in call("search", "lemonade", *MINE, "--json").data["notices"]].count(
        "not-indexed-yet"
    ) == 1


def test_why_says_that_a_fact_waits(call: Run, late: Late) -> None:
    done = call("why", "quinoa lemonade", late.mine, *MINE, "--json")
    assert (done.data["outcome"], done.data["summary"]) == ("not a candidate", "it is stored, but no run knows it yet")
    [said] = done.data["details"]
    assert said.startswith("1 fact is stored but not indexed yet")
    assert "not indexed yet" in call("why", "quinoa lemonade", late.mine, *MINE).out
    beside = call("why", "green tea", "notes/tea.md", *MINE, "--json").data
    assert beside["outcome"] == "found"
    assert said in beside["details"]


def test_what_waits_is_found_when_the_lock_is_given_back(call: Run, workspace: Path) -> None:
    command = [sys.executable, "-c", HOLDER, str(workspace / STORE), "hold"]
    with started(command, cwd=workspace, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        mine = process.stdout.readline().split()[0]
    found = call("search", "quinoa lemonade", *MINE, "--json").data
    assert (found["hits"][0]["id"], [one["code"] for one in found["notices"]].count("not-indexed-yet")) == (mine, 0)
    assert listed_ids(call("list", *MINE, "--json").data).count(mine) == 1


def test_servers_list_show_and_count_what_waits(workspace: Path, late: Late) -> None:
    with serving(workspace, *MINE) as server:
        client = server.client
        assert late.mine in listed_ids(client.get("/v1/memories", params={"kind": "fact"}).json())
        assert client.get(f"/v1/memories/{late.mine}").json()["text"] == LATE
        assert client.get(f"/v1/memories/{late.foreign}").status_code == 404
        assert client.get("/v1/status").json()["scopes"]["user:42"] == 1
        why = client.post("/v1/why", json={"query": "quinoa lemonade", "id": late.mine}).json()
        assert "not indexed yet" in why["details"][0]


def test_agents_are_shown_and_told_what_waits(workspace: Path, late: Late) -> None:
    async def ask() -> tuple[Any, Any, Any]:
        async with over_stdio(workspace, *MINE) as client:
            recent = await client.read_resource("whyrank://recent")
            shown = await told(client, "memory_get", id=late.mine)
            return recent, shown, await told(client, "memory_why", query="quinoa lemonade", id=late.mine)

    recent, shown, why = run(ask)
    assert LATE in recent.contents[0].text
    assert FOREIGN not in recent.contents[0].text
    assert LATE in shown.text
    assert "not indexed yet" in why.text


def test_a_file_that_may_not_be_written_tells_what_waits_in_it(run_powerless: RunPowerless, workspace: Path) -> None:
    command = [sys.executable, "-c", HOLDER, str(workspace / STORE), "leave"]
    with started(command, cwd=workspace, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        mine = process.stdout.readline().split()[0]
    # It was killed: the facts wait, and nobody may index them.
    folder = (workspace / STORE).parent
    (workspace / STORE).chmod(0o400)
    folder.chmod(0o500)
    try:
        assert mine in listed_ids(run_powerless("list", *MINE, "--json").data)
        assert run_powerless("show", mine, *MINE, "--json").data["text"] == LATE
        assert LATE in run_powerless("export", *MINE).out
        assert run_powerless("status", *WORDS_ALONE, "--json").data["scopes"]["user:42"] == 1
        assert "not indexed yet" in run_powerless("why", "quinoa lemonade", mine, *MINE).out
        assert "not indexed yet" in run_powerless("search", "quinoa lemonade", *MINE).err
    finally:
        folder.chmod(0o700)
