"""The embedder we hand out, as a server on this machine: for engines that take nothing but an address."""

from __future__ import annotations

import base64
import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..adapter import Embed


class EmbeddingServer:
    """Answers `POST /v1/embeddings` on a free port of the loopback interface until it is closed."""

    def __init__(self, embed: Embed) -> None:
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(embed))
        self._server.daemon_threads = True
        self._thread = Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        """Return its address, as OpenAI's libraries take it."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def close(self) -> None:
        """Stop listening."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def _handler(embed: Embed) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        """One exchange."""

        def do_POST(self) -> None:
            """Embed what was sent."""
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            body = json.dumps(_answer(embed, asked)).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *values: object) -> None:
            """Say nothing."""

    return Handler


def _answer(embed: Embed, asked: dict[str, Any]) -> dict[str, Any]:
    given = asked["input"]
    texts: Sequence[str] = [given] if isinstance(given, str) else given
    packed = asked.get("encoding_format") == "base64"
    rows = [base64.b64encode(row.tobytes()).decode() if packed else row.tolist() for row in embed(texts)]
    return {
        "object": "list",
        "model": asked.get("model", ""),
        "data": [{"object": "embedding", "index": place, "embedding": row} for place, row in enumerate(rows)],
        "usage": {"prompt_tokens": 0, "total_tokens": 0},
    }
