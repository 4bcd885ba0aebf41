"""Static files of the page, from the folder `page` beside this module."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

PAGE = Path(__file__).with_name("page")
_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".woff2": "font/woff2",
}
# The page runs its own files alone and sends requests to this server alone.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self';"
    " base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


class PageFile(NamedTuple):
    """One file of the page and its response headers."""

    content: bytes
    headers: Mapping[str, str]


def page_file(name: str, folder: Path = PAGE, *, packed: bool = False) -> PageFile | None:
    """Return a file of the page, index.html for an empty name; None for any path outside the folder.

    `packed` compresses it for clients that accept gzip.
    """
    try:
        path = (folder / (name or "index.html")).resolve()
        kind = _TYPES.get(path.suffix)
        if kind is None or not path.is_relative_to(folder.resolve()) or not path.is_file():
            return None
        content = path.read_bytes()
    except (OSError, ValueError):
        return None
    if packed:
        content = _packed(content)
    headers = {
        "content-type": kind,
        **({"content-encoding": "gzip"} if packed else {}),
        "vary": "accept-encoding",
        "content-security-policy": POLICY,
        "cache-control": "no-cache",
        "etag": f'"{hashlib.blake2b(content, digest_size=12).hexdigest()}"',
    }
    return PageFile(content, headers)


@lru_cache(maxsize=128)
def _packed(content: bytes) -> bytes:
    """Compress a file with gzip, cached; without a timestamp, so that the bytes are the same everywhere."""
    return gzip.compress(content, mtime=0)
