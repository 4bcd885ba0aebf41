"""DNS rebinding in a real browser: a name of the attacker's that leads to this machine opens no memory.

The page is the attacker's, loaded by the attacker's name; from then on that name resolves to the server. To the
browser both are one origin, so nothing but the server's look at Host keeps the page out.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import whyrank
from tests import processes
from tests.browser import launched

from .lanes import Counts, Lane

if TYPE_CHECKING:
    from collections.abc import Iterable

EVIL = "<!doctype html><title>evil</title>"
SECRET = "the gribble keeps the key under the third stone"
NAMES = 30  # of a round
# Newer browsers keep pages of the web away from this machine; older ones do not, and the server must not rely on it.
LENIENT = (
    "--host-resolver-rules=MAP * 127.0.0.1",
    "--no-proxy-server",
    "--disable-features=LocalNetworkAccessChecks,BlockInsecurePrivateNetworkRequests,PrivateNetworkAccessSendPreflights",
)
SHAPES = ("evil{}.example", "127.0.0.1.evil{}.example", "localhost{}.evil.example", "a{}.localhost", "{}.local", "x{}")
ATTACK = """async (identity) => {
  const json = {'Content-Type': 'application/json'};
  const got = [];
  for (const [method, path, body] of [
    ['GET', '/v1/memories'], ['GET', '/v1/search?query=gribble'], ['GET', '/'], ['GET', '/health'],
    ['POST', '/v1/memories', '{"text": "planted"}'], ['DELETE', '/v1/memories/' + identity],
  ]) {
    const answer = await fetch(path, {method, body, headers: body ? json : {}});
    got.push([answer.status, await answer.text()]);
  }
  return got;
}"""


def rebind(folder: Path, numbers: Iterable[int]) -> Counts:
    """Attack a server from a page of each of these names: it reads and writes nothing."""
    names = 0
    with whyrank.open(folder / "memory.db", workspace=folder, embedding="none") as memory:
        identity = memory.add(SECRET).id
    serve: list[str | Path] = [
        Path(sys.executable).with_name("whyrank"),
        "serve",
        "--port",
        "0",
        "--json",
        "--no-token",
    ]
    with (
        processes.serving(
            [*serve, "--store", "memory.db", "--embedding", "none"],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        ) as process,
        launched(*LENIENT) as browser,
    ):
        assert process.stdout is not None
        port = json.loads(process.stdout.readline())["url"].rpartition(":")[2]
        page = browser.new_context().new_page()
        for number in numbers:
            own = f"http://{SHAPES[number % len(SHAPES)].format(number)}:{port}"
            page.route(f"{own}/begin", lambda route: route.fulfill(body=EVIL, content_type="text/html"))
            page.goto(f"{own}/begin")
            read = page.evaluate(ATTACK, identity)
            assert [status for status, _ in read] == [421] * 6, (own, read)
            assert SECRET not in str(read)
            names += 1
    with whyrank.open(folder / "memory.db", workspace=folder, embedding="none") as memory:
        assert [one.text for one in memory.list()] == [SECRET]
    return {"names": names}


LANE = Lane(
    "rebinding",
    "a page whose name was rebound to this machine reads and writes nothing",
    lambda seed, folder: rebind(folder, range(seed * NAMES, (seed + 1) * NAMES)),
    {"names": 300},
    seconds=300.0,
)
