"""The OpenAPI document is true: requests made of it are answered as it says, and what it does not allow is refused."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from .rest import BEARER, serving

if TYPE_CHECKING:
    import whyrank

HOOKS = "tests.e2e.openapi_hooks"
ROOT = Path(__file__).parents[2]
LIMIT_SECONDS = 600
BUDGET_SECONDS = 30  # after which no further requests are thought up


def test_requests_made_of_the_document_pass_every_check(workspace: Path, engine: whyrank.Engine) -> None:
    engine.add("Robin prefers green tea", scope="user:42")
    tool = Path(sys.executable).with_name("schemathesis")
    with serving(workspace, "--multi-scope") as server:
        command = [
            str(tool), "run", f"{server.url}/openapi.json", "--checks", "all",
            "--max-examples", "3", "--max-time", str(BUDGET_SECONDS),
            "--generation-deterministic", "--phases", "examples,coverage,fuzzing,stateful", "--no-color",
            "--suppress-health-check", "all", "-H", f"Authorization: {BEARER['Authorization']}",
        ]  # fmt: skip
        done = subprocess.run(
            command,
            cwd=ROOT,
            env={**os.environ, "SCHEMATHESIS_HOOKS": HOOKS, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            timeout=LIMIT_SECONDS,
            check=False,
        )
        assert server.client.get("/health").status_code == 200
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    assert "17 selected / 17 total" in done.stdout
