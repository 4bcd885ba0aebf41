"""The files of the page, as they lie beside this one."""

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
# The page runs what it brings along and asks this server alone.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self';"
    " base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


class PageFile(NamedTuple):
    """A file of the page, and what is said with it."""

    content: bytes
    headers: Mapping[str, str]


def page_file(name: str, folder: Path = PAGE, *, packed: bool = False) -> PageFile | None:
    """Return a file of the page by its name, the page itself for none; nothing outside its folder is one.

    `packed` is how browsers like it: they say that they read gzip.
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
    """Pack a file once, however often it is asked for; without a time of day, so that it is the same everywhere."""
    return gzip.compress(content, mtime=0)
