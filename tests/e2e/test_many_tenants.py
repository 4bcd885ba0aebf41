"""Two hundred tenants of one server that may open few files: each is served, and few stores are open at a time."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from typing import TYPE_CHECKING

import httpx
import pytest

import whyrank

from .. import processes
from .conftest import COMMAND, SECONDS

if TYPE_CHECKING:
    from pathlib import Path

TENANTS = 200
FILES = 256  # a process may have open; the stores of all tenants would need 1,600

pytestmark = pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="open files are counted in /proc")


def test_every_tenant_is_served_though_few_files_may_be_open(tmp_path: Path) -> None:
    names = [f"tenant-{number}" for number in range(TENANTS)]
    with whyrank.open(tmp_path / "template.db", workspace=tmp_path, embedding="none") as memory:
        memory.add("Robin likes tea")
    for name in names:
        (tmp_path / f"{name}.token").write_text(f"the-token-of-{name}", encoding="utf-8")
        shutil.copyfile(tmp_path / "template.db", tmp_path / f"{name}.db")
    tables = (f'[{name}]\nstore = "{name}.db"\ntoken_file = "{name}.token"\n' for name in names)
    (tmp_path / "tenants.toml").write_text("\n".join(tables), encoding="utf-8")
    serve = f"ulimit -n {FILES}; exec {COMMAND} serve --port 0 --json --embedding none --tenants tenants.toml"
    with (
        (tmp_path / "log").open("w") as stderr,
        processes.serving(["sh", "-c", serve], cwd=tmp_path, stdout=subprocess.PIPE, stderr=stderr) as process,
    ):
        assert process.stdout is not None
        url = json.loads(process.stdout.readline())["url"]
        most = 0
        with httpx.Client(base_url=url, timeout=SECONDS) as client:
            for number, name in enumerate(names):
                bearer = {"Authorization": f"Bearer the-token-of-{name}"}
                if number % 20 == 0:
                    added = client.post("/v1/memories", json={"text": f"{name} likes coffee"}, headers=bearer)
                    assert added.status_code == 201, (name, added.text)
                found = client.post("/v1/search", json={"query": "who likes tea?", "limit": 1}, headers=bearer)
                assert [hit["text"] for hit in found.json()["hits"]] == ["Robin likes tea"], name
                most = max(most, len(os.listdir(f"/proc/{process.pid}/fd")))
            assert client.get("/health").status_code == 200
            for name in names[::20]:  # closed since, and opened again
                bearer = {"Authorization": f"Bearer the-token-of-{name}"}
                found = client.post("/v1/search", json={"query": "who likes coffee?", "limit": 1}, headers=bearer)
                assert [hit["text"] for hit in found.json()["hits"]] == [f"{name} likes coffee"]
        assert most < FILES / 2
    assert "Traceback" not in (tmp_path / "log").read_text()
