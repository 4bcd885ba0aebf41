"""Files of the page, packed for browsers that read gzip."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING

from whyrank.interfaces.http.app import PAGE, page_file

if TYPE_CHECKING:
    from pathlib import Path


def test_a_packed_file_unpacks_to_the_file() -> None:
    packed = page_file("main.js", packed=True)
    assert packed is not None
    assert packed.headers["content-encoding"] == "gzip"
    assert packed.headers["vary"] == "accept-encoding"
    assert gzip.decompress(packed.content) == (PAGE / "main.js").read_bytes()
    assert len(packed.content) < (PAGE / "main.js").stat().st_size / 2


def test_packed_and_plain_are_told_apart_by_caches() -> None:
    packed, plain = page_file("main.js", packed=True), page_file("main.js")
    assert packed is not None
    assert plain is not None
    assert "content-encoding" not in plain.headers
    assert packed.headers["etag"] != plain.headers["etag"]


def test_a_changed_file_is_packed_anew(tmp_path: Path) -> None:
    file = tmp_path / "x.js"
    for text in (b"one();", b"two();"):
        file.write_bytes(text)
        packed = page_file("x.js", tmp_path, packed=True)
        assert packed is not None
        assert gzip.decompress(packed.content) == text
