"""A server with the paths of Hugging Face's hub: large files by a redirection that tells their hash."""

from __future__ import annotations

import hashlib
import re
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

COMMIT = "c0ffee" + "0" * 34
LARGE_BYTES = 300  # from here on a file is stored elsewhere, as the hub does from ten megabytes on


@dataclass
class HubServer:
    """What is served, and what was asked for."""

    url: str
    files: dict[str, bytes] = field(default_factory=dict)  # "org/model/tokenizer.json"
    asked: list[str] = field(default_factory=list)  # "GET org/model main tokenizer.json 0"
    breaks_off_after: int | None = None

    def publish(self, repository: str, folder: Path) -> None:
        """Serve all files of a folder."""
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                self.files[f"{repository}/{path.relative_to(folder).as_posix()}"] = path.read_bytes()


@contextmanager
def hub_server() -> Iterator[HubServer]:
    """Serve files below `/ORG/MODEL/resolve/REVISION/`."""

    class Handler(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            self._answer(with_body=False)

        def do_GET(self) -> None:
            self._answer(with_body=True)

        def _answer(self, *, with_body: bool) -> None:
            stored = re.fullmatch(r"/stored/(.*)", self.path)
            asked = re.fullmatch(r"/([^/]+/[^/]+)/resolve/([^/]+)/(.*)", self.path)
            if stored:
                self._send(server.files[stored[1]], with_body=with_body)
                return
            assert asked, self.path
            repository, revision, file = asked.groups()
            first = re.sub(r"\D", "", self.headers.get("Range", "0"))
            server.asked.append(f"{self.command} {repository} {revision} {file} {first}")
            content = server.files.get(f"{repository}/{file}")
            if content is None or revision not in ("main", "v2", COMMIT):
                self.send_error(404)
            elif len(content) < LARGE_BYTES:
                self._send(content, with_body=with_body)
            else:
                self.send_response(302)
                self.send_header("Location", f"/stored/{repository}/{file}")
                self.send_header("X-Repo-Commit", COMMIT)
                self.send_header("X-Linked-Size", str(len(content)))
                self.send_header("X-Linked-ETag", f'"{hashlib.sha256(content).hexdigest()}"')
                self.send_header("Content-Length", "0")
                self.end_headers()

        def _send(self, content: bytes, *, with_body: bool) -> None:
            first = int(re.sub(r"\D", "", self.headers.get("Range", "0")) or 0)
            rest = content[first:]
            self.send_response(206 if first else 200)
            self.send_header("Content-Length", str(len(rest)))
            self.send_header("X-Repo-Commit", COMMIT)
            self.send_header("ETag", '"0123456789abcdef0123456789abcdef01234567"')
            self.end_headers()
            if with_body:
                self.wfile.write(rest[: server.breaks_off_after])

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    listening = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server = HubServer(f"http://127.0.0.1:{listening.server_port}")
    thread = threading.Thread(target=listening.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        listening.shutdown()
        listening.server_close()
        thread.join()
