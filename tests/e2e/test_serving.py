"""A server over its life: it ends without losing anything, takes in files, serves tenants, and tells how it fares."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from ..processes import started
from .conftest import COMMAND, SECONDS, STORE, Run
from .rest import TOKEN, Serving, code_of, ended, request_bytes, searched, serving

if TYPE_CHECKING:
    from collections.abc import Iterator

    import whyrank


@pytest.fixture
def server(workspace: Path) -> Iterator[Serving]:
    with serving(workspace) as started:
        yield started


@pytest.mark.parametrize("workers", ["1", "2"])
def test_an_end_in_the_middle_of_writes_loses_nothing(workspace: Path, engine: whyrank.Engine, workers: str) -> None:
    kept: list[str] = []
    others: list[int] = []

    def write(name: str, url: str) -> None:
        with httpx.Client(base_url=url, headers={"Authorization": f"Bearer {TOKEN}"}, timeout=SECONDS) as client:
            for number in range(10_000):
                try:
                    answer = client.post("/v1/memories", json={"text": f"{name} wrote sentence number {number}"})
                except httpx.TransportError:
                    return  # the server takes no more
                if answer.status_code != 201:
                    others.append(answer.status_code)
                    return
                kept.append(answer.json()["id"])

    with serving(workspace, "--workers", workers) as server:
        writers = [threading.Thread(target=write, args=(name, server.url)) for name in ("Ada", "Bo", "Cy")]
        for writer in writers:
            writer.start()
        while len(kept) < 10:
            time.sleep(0.01)
        server.process.send_signal(signal.SIGTERM)
        for writer in writers:
            writer.join(SECONDS)
        assert server.process.wait(SECONDS) == 0
        assert "Traceback" not in server.log.read_text(encoding="utf-8")
    assert others == []
    assert len(kept) >= 10
    for identity in kept:
        assert engine.get(identity)
    # Nor is anything stored that nobody was told of: every writer's last request was answered.
    assert len(engine.list(kind="fact", limit=10_000)) == len(kept)


def test_what_has_begun_ends_and_nothing_new_begins(workspace: Path) -> None:
    body = json.dumps({"text": "The ferry leaves at seven"}).encode()
    head = f"POST /v1/memories HTTP/1.1\nContent-Type: application/json\nContent-Length: {len(body)}"
    with serving(workspace) as server:
        searched(server, "tea")
        with server.connected() as connection:
            connection.sendall(request_bytes(head, body[:10]))
            time.sleep(0.3)
            server.process.send_signal(signal.SIGTERM)
            deadline = time.monotonic() + SECONDS
            with suppress(httpx.TransportError):
                while time.monotonic() < deadline:  # until the signal has come
                    httpx.get(f"{server.url}/health")
            with pytest.raises(httpx.ConnectError):
                httpx.get(f"{server.url}/health")
            connection.sendall(body[10:])
            answer = connection.recv(65_536)
        assert answer.startswith(b"HTTP/1.1 201")
        assert b"connection: close" in answer
        assert server.process.wait(SECONDS) == 0


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_terminal_that_closes_ends_a_server_as_well(tmp_path: Path, workers: str) -> None:
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        pytest.skip("these tests are to outlive their terminal, and so is what they start")
    (tmp_path / "temporary").mkdir()
    with serving(tmp_path, "--workers", workers, TMPDIR=str(tmp_path / "temporary")) as server:
        assert searched(server, "tea").json()["hits"] == []  # from a store that lies in a temporary folder
        assert list((tmp_path / "temporary").iterdir())
        server.process.send_signal(signal.SIGHUP)
        assert server.process.wait(SECONDS) == 0
    assert list((tmp_path / "temporary").iterdir()) == []


def test_a_worker_that_dies_is_replaced(workspace: Path) -> None:
    with serving(workspace, "--workers", "2") as server:
        searched(server, "tea")
        place = Path(f"/proc/{server.process.pid}/task/{server.process.pid}/children")
        if not place.exists():
            pytest.skip("this system does not tell the children of a process")
        first = place.read_text(encoding="ascii").split()
        os.kill(int(first[-1]), signal.SIGKILL)  # the first may be the helper of Python's multiprocessing
        deadline = time.monotonic() + SECONDS
        while (now := set(place.read_text(encoding="ascii").split())) == set(first) or len(now) < len(first):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        for _ in range(4):
            with httpx.Client(base_url=server.url, headers=server.client.headers, timeout=SECONDS) as client:
                assert client.post("/v1/search", json={"query": "tea"}).status_code == 200
        assert "a worker ended with status -9 and is replaced" in server.log.read_text(encoding="utf-8")


def test_figures_are_those_of_all_workers(workspace: Path) -> None:
    with serving(workspace, "--workers", "2") as server:
        for _ in range(6):  # each on a connection of its own, so that both workers have some
            with httpx.Client(base_url=server.url, headers=server.client.headers, timeout=SECONDS) as client:
                client.post("/v1/search", json={"query": "what does Suzy drink"})
        server.client.get("/v1/nothing")
        told = server.client.get("/metrics")
    assert told.headers["content-type"].startswith("text/plain; version=0.0.4")
    lines = dict(line.rsplit(" ", 1) for line in told.text.splitlines() if not line.startswith("#"))
    assert lines['whyrank_queries_total{door="http",verdict="found"}'] == "6.0"
    assert lines['whyrank_http_requests_total{route="/v1/search",status="200"}'] == "6.0"
    assert lines['whyrank_http_requests_total{route="none",status="404"}'] == "1.0"
    assert lines['whyrank_search_stage_seconds_count{stage="ranking"}'] == "6.0"
    assert lines['whyrank_http_request_seconds_bucket{le="+Inf",route="/v1/search"}'] == "6.0"
    assert float(lines["whyrank_memories"]) > 5
    assert lines["whyrank_embedding_queue"] == "0.0"
    assert float(lines["whyrank_store_bytes"]) > 10_000


def events_of(answer: httpx.Response) -> list[tuple[str, Any]]:
    blocks = [block for block in answer.text.split("\n\n") if block and not block.startswith(":")]
    parts = (block.split("\n") for block in blocks)
    return [(name.removeprefix("event: "), json.loads(data.removeprefix("data: "))) for name, data in parts]


LISTENING = {"Accept": "text/event-stream"}


def test_an_ingest_tells_how_far_it_is(workspace: Path, server: Serving) -> None:
    for number in range(30):
        (workspace / f"notes/n{number}.md").write_text(f"# Note {number}\n\nAbout topic {number}.\n", encoding="utf-8")
    dry = server.client.post("/v1/ingest", json={"paths": ["notes"], "dry_run": True}).json()
    assert (dry["dry_run"], dry["files"]["new"]) == (True, 30)
    answer = server.client.post("/v1/ingest", json={"paths": ["notes"]}, headers=LISTENING)
    assert answer.headers["content-type"].startswith("text/event-stream")
    told = events_of(answer)
    assert {name for name, _ in told[:-1]} == {"progress"}
    assert set(told[0][1]) == {"done", "total", "what"}
    assert told[-1][0] == "report"
    assert told[-1][1]["files"] == {"unchanged": 6, "new": 30}
    assert searched(server, "Note 17").json()["hits"][0]["path"] == "notes/n17.md"
    missing = events_of(server.client.post("/v1/ingest", json={"paths": ["notes/x"]}, headers=LISTENING))
    assert (missing[0][0], missing[0][1]["error"]["code"]) == ("error", "ingest")


def test_nothing_outside_the_workspace_is_read(workspace: Path, server: Serving, tmp_path: Path) -> None:
    secret = tmp_path / "secret.md"
    secret.write_text("# Secret\n\nThe vault opens at nine.\n", encoding="utf-8")
    (tmp_path / "more").mkdir()
    (tmp_path / "more/secret.md").write_text("# Secret\n\nThe vault opens at nine.\n", encoding="utf-8")
    (workspace / "link.md").symlink_to(secret)
    (workspace / "linked").symlink_to(tmp_path / "more")
    (workspace / "notes/inner.md").symlink_to(secret)
    (workspace / ".hidden.md").write_text("# Secret\n\nThe vault opens at nine.\n", encoding="utf-8")
    for path in (
        "..", "../secret.md", str(secret), "/etc/hostname", "link.md", "linked", "linked/secret.md", "notes/../..",
        ".hidden.md", ".whyrank", "~/x", "notes/../../secret.md",
    ):  # fmt: skip
        refused = server.client.post("/v1/ingest", json={"paths": ["notes", path]})
        assert (refused.status_code, code_of(refused)) in ((403, "outside"), (404, "ingest")), path
    done = server.client.post("/v1/ingest", json={"paths": ["notes", "."]}).json()
    assert any("inner.md" in one["path"] for one in done["skipped"])
    hits = searched(server, "when does the vault open?").json()["hits"]
    assert all("vault" not in hit["text"] for hit in hits)


def many_notes(workspace: Path, count: int) -> None:
    (workspace / "many").mkdir()
    for number in range(count):
        text = f"# Page {number}\n\n" + f"Sentence about subject {number} and its neighbour. " * 40
        (workspace / f"many/p{number:04}.md").write_text(text, encoding="utf-8")


def test_an_ingest_goes_on_without_its_listener_and_facts_are_stored_meanwhile(
    workspace: Path, server: Serving
) -> None:
    many_notes(workspace, 600)
    with server.client.stream("POST", "/v1/ingest", json={"paths": ["many"]}, headers=LISTENING) as answer:
        assert next(answer.iter_lines()) == "event: progress"
        added = httpx.post(
            f"{server.url}/v1/memories", json={"text": "Tea is ready"}, headers=server.client.headers, timeout=SECONDS
        )
        assert added.status_code == 201
    deadline = time.monotonic() + SECONDS
    while server.client.get("/v1/status").json()["files"] < 606:
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_an_ingest_stops_between_files_when_the_server_ends(workspace: Path, call: Run) -> None:
    many_notes(workspace, 3_000)
    with serving(workspace) as server:
        with server.client.stream("POST", "/v1/ingest", json={"paths": ["many"]}, headers=LISTENING) as answer:
            lines = answer.iter_lines()
            assert next(lines) == "event: progress"
            server.process.send_signal(signal.SIGTERM)
            rest = "\n".join(lines)
        assert json.loads(rest.rsplit("event: error\ndata: ", 1)[1])["error"]["code"] == "stopping"
        assert server.process.wait(SECONDS) == 0
    # What was stored is whole, and the next ingest does the rest.
    again = call("ingest", "many", "--json", "--embedding", "none")
    assert again.data["files"]["unchanged"] + again.data["files"]["new"] == 3_000
    assert again.data["files"].get("changed", 0) == 0


def test_a_scope_is_a_wall(workspace: Path, engine: whyrank.Engine) -> None:
    mine = engine.add("Robin's code is 1234", scope="user:42").id
    theirs = engine.add("Kim's code is 9876", scope="user:7").id
    everybodys = engine.add("The code of the gate is 5555").id
    with serving(workspace, "--scope", "user:42") as server:
        hits = searched(server, "what is the code", limit=20).json()["hits"]
        assert {mine, everybodys} <= {hit["id"] for hit in hits}
        assert theirs not in {hit["id"] for hit in hits}
        for answer in (
            server.client.get(f"/v1/memories/{theirs}"),
            server.client.delete(f"/v1/memories/{theirs}"),
            server.client.patch(f"/v1/memories/{theirs}", json={"importance": 1}),
            server.client.post("/v1/why", json={"query": "code", "id": theirs}),
            server.client.post("/v1/recalled", json={"ids": [mine, theirs]}),
            server.client.post("/v1/memories", json={"text": "Kim's code is 0000", "supersedes": theirs}),
        ):
            assert (answer.status_code, code_of(answer)) == (404, "not-found")
            assert "9876" not in answer.text
        chosen = searched(server, "code", scope="user:7")
        assert (chosen.status_code, code_of(chosen)) == (422, "config")
        for answer in (
            server.client.delete(f"/v1/memories/{everybodys}"),
            server.client.patch(f"/v1/memories/{everybodys}", json={"importance": 1}),
        ):
            assert (answer.status_code, code_of(answer)) == (403, "not-own")
        added = server.client.post("/v1/memories", json={"text": "Robin's door is green"}).json()
        assert added["scope"] == "user:42"
        status = server.client.get("/v1/status").json()
        assert set(status["scopes"]) == {"global", "user:42"}
        assert "user:7" not in json.dumps(status)
        held = re.search(r"^whyrank_memories (\S+)$", server.client.get("/metrics").text, flags=re.M)
        assert held is not None
        assert float(held[1]) == status["memories"] == sum(status["scopes"].values())
    with serving(workspace) as server:
        assert set(server.client.get("/v1/status").json()["scopes"]) == {"global"}
    assert engine.get(theirs, scope="user:7").text == "Kim's code is 9876"


def test_what_others_store_changes_nothing_that_is_told_of_the_store(workspace: Path, engine: whyrank.Engine) -> None:
    engine.add("Robin's code is 1234", scope="user:42")

    def told(server: Serving) -> tuple[dict[str, Any], list[str]]:
        figures = server.client.get("/metrics").text.splitlines()
        held = ("whyrank_memories ", "whyrank_store_bytes ", "whyrank_embedding_queue ")
        return server.client.get("/v1/status").json(), [line for line in figures if line.startswith(held)]

    with serving(workspace, "--scope", "user:42") as server, serving(workspace) as plain:
        before, unscoped = told(server), told(plain)
        engine.ingest("notes/boat.md", "notes/tea.md", scope="user:7")
        for number in range(300):
            engine.add(f"Kim's code of day {number} is {number * 17}", scope="user:7")
        after, later = told(server), told(plain)
    assert after == before
    assert (before[0]["files"], before[0]["bytes"], len(before[1])) == (6, None, 2)
    [space] = before[0]["spaces"]
    assert before[0]["spaces"][space] == before[0]["roles"][0]["vectors"] == before[0]["memories"]
    # Where nobody was given a scope, the size of the file and the room on its disk are told, and nothing else of it.
    assert later[0]["bytes"] > unscoped[0]["bytes"] > 10_000
    room = {"bytes": 0, "free_bytes": 0, "ballast_bytes": 0, "caches": {}}
    assert {**later[0], **room} == {**unscoped[0], **room}
    with serving(workspace, "--multi-scope") as several:
        assert several.client.get("/v1/status").json()["files"] == 8
        assert several.client.get("/v1/status", params={"scope": "user:42"}).json()["memories"] == before[0]["memories"]


def test_with_multi_scope_the_caller_chooses(workspace: Path) -> None:
    with serving(workspace, "--multi-scope") as server:
        added = server.client.post("/v1/memories", json={"text": "Kim's code is 9876", "scope": "user:7"})
        assert added.json()["scope"] == "user:7"
        assert "9876" not in searched(server, "Kim's code").text
        assert "9876" in searched(server, "Kim's code", scope="user:7").text
        assert "9876" in searched(server, "Kim's code", scope=["user:42", "user:7"]).text
        asked = {"query": "Kim's code", "scope": ["user:42", "user:7"]}
        assert "9876" in server.client.get("/v1/search", params=asked).text
        assert searched(server, "code", scope="everybody").status_code == 422


def test_a_server_that_only_reads_writes_nothing(workspace: Path, engine: whyrank.Engine) -> None:
    before = engine.status().memories
    identity = engine.search("tea")[0].id
    with serving(workspace, "--read-only") as server:
        assert searched(server, "tea").status_code == 200
        for method, path, body in (
            ("POST", "/v1/memories", {"text": "a"}),
            ("PATCH", f"/v1/memories/{identity}", {"importance": 1}),
            ("DELETE", f"/v1/memories/{identity}", None),
            ("POST", "/v1/recalled", {"ids": [identity]}),
            ("POST", "/v1/ingest", {"paths": ["notes"]}),
        ):
            refused = server.client.request(method, path, json=body)
            assert (refused.status_code, code_of(refused)) == (403, "read-only")
    assert engine.status().memories == before


def test_a_question_makes_no_store(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        empty = searched(server, "tea").json()
        assert (empty["hits"], empty["notices"][0]["code"]) == ([], "nothing-stored")
        assert server.client.get("/health").json()["memories_searchable"] is True
        assert not (tmp_path / STORE).exists()
        assert server.client.post("/v1/memories", json={"text": "Tea is ready"}).status_code == 201
        assert (tmp_path / STORE).exists()
        assert searched(server, "tea").json()["hits"][0]["text"] == "Tea is ready"


def test_a_damaged_store_is_named_and_left_alone(tmp_path: Path) -> None:
    with serving(tmp_path) as server:  # one that is damaged at the start is refused
        (tmp_path / STORE).parent.mkdir()
        (tmp_path / STORE).write_bytes(b"this is no database " * 400)
        for answer in (searched(server, "tea"), server.client.post("/v1/memories", json={"text": "tea"})):
            assert (answer.status_code, code_of(answer)) == (503, "store-damaged")
        health = httpx.get(f"{server.url}/health")
        assert (health.status_code, health.json()["status"]) == (503, "failing")
    assert (tmp_path / STORE).read_bytes() == b"this is no database " * 400


def test_the_status_names_the_place_where_the_store_will_be(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        told = server.client.get("/v1/status").json()
        assert (told["store"], told["memories"]) == (str(tmp_path / STORE), 0)
        assert not (tmp_path / STORE).exists()
        server.client.post("/v1/memories", json={"text": "Robin prefers tea"})
        told = server.client.get("/v1/status").json()
        assert (told["store"], told["memories"]) == (str(tmp_path / STORE), 1)


def test_a_tenant_that_cannot_be_served_keeps_nobody_else_from_it(tmp_path: Path) -> None:
    for name in ("alice", "bob"):
        (tmp_path / f"{name}.token").write_text(f"the-token-of-{name}-here", encoding="utf-8")
    tables = (f'[{name}]\nstore = "{name}.db"\ntoken_file = "{name}.token"\n' for name in ("alice", "bob"))
    (tmp_path / "tenants.toml").write_text("\n".join(tables), encoding="utf-8")
    (tmp_path / "bob.db").write_text("no store at all", encoding="utf-8")
    with serving(tmp_path, "--tenants", "tenants.toml") as server:
        alice, bob = ({"Authorization": f"Bearer the-token-of-{name}-here"} for name in ("alice", "bob"))
        assert server.client.get("/v1/status", headers=alice).status_code == 200
        assert code_of(server.client.get("/v1/status", headers=bob)) == "store-damaged"


def test_tenants_have_stores_and_files_of_their_own(workspace: Path) -> None:
    for name in ("alice", "bob"):
        (workspace / f"{name}.token").write_text(f"the-token-of-{name}-here", encoding="utf-8")
        (workspace / name).mkdir()
        (workspace / name / "diary.md").write_text(f"# Diary\n\n{name} met the ferryman.\n", encoding="utf-8")
    tables = (f'[{name}]\nstore = "{name}/memory.db"\ntoken_file = "{name}.token"\n' for name in ("alice", "bob"))
    (workspace / "tenants.toml").write_text("\n".join(tables), encoding="utf-8")
    with serving(workspace, "--tenants", "tenants.toml", "--workers", "2") as server:
        alice, bob = ({"Authorization": f"Bearer the-token-of-{name}-here"} for name in ("alice", "bob"))
        assert server.client.get("/v1/status").status_code == 401
        ingested = server.client.post("/v1/ingest", json={"paths": ["diary.md"]}, headers=alice)
        assert ingested.json()["files"]["new"] == 1
        for path in ("../bob/diary.md", "../bob", "bob/diary.md"):
            refused = server.client.post("/v1/ingest", json={"paths": [path]}, headers=alice)
            assert refused.status_code in (403, 404)
        found = server.client.post("/v1/search", json={"query": "who met the ferryman?"}, headers=alice).json()
        assert "alice met" in found["hits"][0]["text"]
        assert server.client.post("/v1/search", json={"query": "ferryman"}, headers=bob).json()["hits"] == []
        told = server.client.get("/metrics", headers=bob).text
        assert 'whyrank_queries_total{door="http",verdict="nothing"} 1.0' in told
        assert 'verdict="found"' not in told
        assert "alice" not in told
    assert not (workspace / "bob/memory.db").exists()


def test_a_tenant_reads_no_token_through_ingest(workspace: Path) -> None:
    for name in ("alice", "bob"):
        (workspace / f"{name}.txt").write_text(f"the-token-of-{name}-here", encoding="utf-8")
    tables = (f'[{name}]\nstore = "{name}.db"\ntoken_file = "{name}.txt"\n' for name in ("alice", "bob"))
    (workspace / "tenants.toml").write_text("\n".join(tables), encoding="utf-8")
    with serving(workspace, "--tenants", "tenants.toml") as server:
        bob = {"Authorization": "Bearer the-token-of-bob-here"}
        refused = server.client.post("/v1/ingest", json={"paths": ["alice.txt"]}, headers=bob)
        assert (refused.status_code, code_of(refused)) == (403, "outside")


def test_the_log_tells_of_requests_and_of_no_secret(workspace: Path) -> None:
    with serving(workspace) as server:
        searched(server, "a very private question")
        server.client.get("/v1/search", params={"query": "another private question"})
        server.client.get("/v1/nothing%0Awhyrank: forged", headers={"X-Request-Id": "mine"})
        _, log = ended(server)
    lines = log.splitlines()
    assert re.fullmatch(r"whyrank: the page is at http://127\.0\.0\.1:\d+/", lines[0])
    assert re.fullmatch(r"whyrank: POST /v1/search 200 [\d.]+ ms [0-9a-f]{16}", lines[1])
    assert re.fullmatch(r"whyrank: GET /v1/search 200 [\d.]+ ms [0-9a-f]{16}", lines[2])
    assert re.fullmatch(r"whyrank: GET /v1/nothing%0A\S* 404 [\d.]+ ms mine", lines[3].replace("%20", ""))
    assert len(lines) == 4
    assert "private" not in log
    assert TOKEN not in log


def test_the_log_may_be_lines_of_json(workspace: Path) -> None:
    with serving(workspace, "--log-json", "--workers", "2") as server:
        answer = searched(server, "tea")
        _, log = ended(server)
    told = [json.loads(line) for line in log.splitlines() if line.startswith("{")]
    [request] = [one for one in told if one["event"] == "request"]
    assert (request["method"], request["path"], request["status"]) == ("POST", "/v1/search", 200)
    assert request["request_id"] == answer.headers["x-request-id"]


def test_a_log_that_nobody_reads_holds_up_no_answer(workspace: Path) -> None:
    with started(
        [COMMAND, "serve", "--port", "0", "--json", "--no-token"],
        cwd=workspace,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        url = json.loads(process.stdout.readline())["url"]
        with httpx.Client(base_url=url, timeout=SECONDS) as client:
            # A line has some 50 characters, and a pipe holds 65,536 on Linux.
            statuses = {client.get("/openapi.json").status_code for _ in range(2_000)}
        process.terminate()
        assert process.wait(SECONDS) == 0
    assert statuses == {200}


def test_a_new_token_stands_in_the_address_of_the_page(workspace: Path) -> None:
    with serving(workspace, token="") as server:
        said = server.log.read_text(encoding="utf-8")
        found = re.fullmatch(rf"whyrank: the page is at {server.url}/#token=(\S{{43}})\n", said)
        assert found is not None
        assert httpx.get(f"{server.url}/v1/status").status_code == 401
        bearer = {"Authorization": f"Bearer {found[1]}"}
        assert httpx.get(f"{server.url}/v1/status", headers=bearer).status_code == 200


def opened_by(folder: Path) -> dict[str, str]:
    """Return an environment in which a browser writes down what it is to open, and a home of its own."""
    (folder / "home").mkdir()
    script = folder / "browser.sh"
    script.write_text(f'#!/bin/sh\nprintf "%s" "$*" > "{folder}/half"; mv "{folder}/half" "{folder}/shown"\n')
    script.chmod(0o755)
    return {"BROWSER": str(script), "HOME": str(folder / "home")}


def shown_in(folder: Path) -> str:
    """Return the command line of the browser that was opened, once it was."""
    deadline = time.monotonic() + SECONDS
    while not (folder / "shown").exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return (folder / "shown").read_text(encoding="utf-8")


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_browser_is_opened_without_a_secret_on_its_command_line(
    workspace: Path, tmp_path: Path, workers: str
) -> None:
    with serving(workspace, "--open", "--workers", workers, **opened_by(tmp_path)) as server:
        command = shown_in(tmp_path)
        file = Path(command.removeprefix("file://"))
        assert file.stat().st_mode & 0o077 == 0
        found = re.search(rf'url={server.url}/#ticket=([^"]+)"', file.read_text(encoding="utf-8"))
        assert found is not None
        assert TOKEN not in file.read_text(encoding="utf-8")
        assert found[1] not in command
        wrong = httpx.post(f"{server.url}/ticket", json={"ticket": "x" * 43})
        assert (wrong.status_code, code_of(wrong)) == (403, "ticket")
        foreign = httpx.post(
            f"{server.url}/ticket", json={"ticket": found[1]}, headers={"Origin": "http://evil.example"}
        )
        assert foreign.status_code == 403
        assert httpx.post(f"{server.url}/ticket", json={"ticket": 7}).status_code == 422
        let_in = httpx.post(f"{server.url}/ticket", json={"ticket": found[1]})
        assert (let_in.json(), let_in.headers["cache-control"]) == ({"token": TOKEN, "format": 1}, "no-store")
        for _ in range(4):  # whichever worker is asked
            again = httpx.post(f"{server.url}/ticket", json={"ticket": found[1]})
            assert (again.status_code, code_of(again)) == (403, "ticket")
        assert list((tmp_path / "home").iterdir()) == []
        _, log = ended(server)
    assert TOKEN not in log
    assert found[1] not in log


def test_a_browser_that_does_not_come_leaves_nothing_behind(workspace: Path, tmp_path: Path) -> None:
    with serving(workspace, "--open", **opened_by(tmp_path)):
        assert shown_in(tmp_path)
        assert list((tmp_path / "home").iterdir())
    assert list((tmp_path / "home").iterdir()) == []


@pytest.mark.parametrize("workers", ["1", "2"])
def test_told_to_end_while_it_begins_it_ends_well(workspace: Path, tmp_path: Path, workers: str) -> None:
    with serving(workspace, "--open", "--workers", workers, **opened_by(tmp_path)) as server:
        ended(server)
    assert server.process.returncode == 0
    assert list((tmp_path / "home").iterdir()) == []


def test_without_a_token_the_page_is_opened_as_it_is(workspace: Path, tmp_path: Path) -> None:
    with serving(workspace, "--open", "--no-token", **opened_by(tmp_path)) as server:
        assert shown_in(tmp_path) == f"{server.url}/"
        assert httpx.post(f"{server.url}/ticket", json={"ticket": ""}).status_code == 403


def test_without_a_token_everybody_on_this_machine_may_ask(workspace: Path) -> None:
    with serving(workspace, "--no-token") as server:
        assert httpx.get(f"{server.url}/v1/status").status_code == 200
        assert httpx.get(f"{server.url}/v1/status", headers={"Host": "evil.example"}).status_code == 421
        assert "securitySchemes" in httpx.get(f"{server.url}/openapi.json").json()["components"]


@pytest.mark.parametrize(("arguments", "message"), [
    (["--no-token", "--host", "0.0.0.0"], "without a token everybody"),
    (["--workers", "0"], "there are 0 workers"),
    (["--scope", "nobody"], "'nobody' is not a scope"),
    (["--token-file", "missing.txt"], "missing.txt cannot be read"),
    (["--port", "99999999"], "there is no port 99999999"),
    (["--tenants", "tenants.toml", "--read-only"], "--tenants says for each tenant"),
])  # fmt: skip
def test_what_cannot_be_served_is_refused_at_the_start(call: Run, arguments: list[str], message: str) -> None:
    done = call("serve", *arguments)
    assert done.status == 2
    assert message in done.err


def test_without_the_extra_its_install_command_is_said(call: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    done = call("serve")
    assert done.status == 11
    assert "pip install 'whyrank[serve]'" in done.err


def test_an_evaluation_that_was_kept_is_told(workspace: Path, call: Run) -> None:
    folder = workspace / "set"
    folder.mkdir()
    (folder / "corpus.jsonl").write_text('{"id": "d1", "text": "Robin prefers green tea"}\n', encoding="utf-8")
    (folder / "queries.jsonl").write_text('{"id": "q1", "text": "which tea?"}\n', encoding="utf-8")
    (folder / "qrels.tsv").write_text("query\tdocument\tgain\nq1\td1\t1\n", encoding="utf-8")
    done = call("eval", str(folder), "--keep", "--json")
    assert done.status == 0, done.err
    with serving(workspace) as server:
        kept = server.client.get("/v1/status").json()["evaluation"]
    [measured], [told] = done.data["sets"], kept["sets"]
    assert told["lines"]["default"] == measured["lines"]["default"]["measures"]
    assert (told["set"], told["queries"]) == ("set", 1)
    assert kept["made"].startswith("20")
    away = call("eval", str(folder), "--keep", "--store", "nowhere/memory.db")
    assert away.status == 2
    assert "no store" in away.err
