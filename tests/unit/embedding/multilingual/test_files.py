"""From the published files to what is loaded, once."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tests.multilingual import installed
from whyrank.errors import ProviderError
from whyrank.providers.multilingual import ModelFolder, install, read_tokenizer

if TYPE_CHECKING:
    from pathlib import Path


def blob(field: int, content: bytes) -> bytes:
    """Write a protobuf field of up to 16,383 bytes: number and kind, length in two bytes, content."""
    return bytes([field << 3 | 2, len(content) & 0x7F | 0x80, len(content) >> 7]) + content


def piece(text: str, score: float) -> bytes:
    return blob(1, blob(1, text.encode()) + bytes([2 << 3 | 5]) + struct.pack("<f", score) + bytes([3 << 3, 1]))


# A character map without a rule: its length, a trie of 256 empty units of four bytes, and no replacements.
NO_RULES = struct.pack("<I1024x", 1_024)
MODEL = b"".join([
    piece("<unk>", 0.0), piece("▁", -4.0), piece("▁t", -3.0), piece("ea", -2.0), piece("▁tea", -1.0),
    blob(2, b""), blob(3, blob(1, b"plain") + blob(2, NO_RULES)),
])  # fmt: skip


def test_a_sentencepiece_model_becomes_a_tokenizer() -> None:
    tokenizer = read_tokenizer(MODEL)
    # "▁tea" costs 1, "▁t" and "ea" together 5; spaces are one, and none stands at the ends.
    assert tokenizer.encode("  tea   tea ").tokens == ["▁tea", "▁tea"]
    assert tokenizer.encode("teaea").ids == [4, 3]
    assert tokenizer.encode("x").ids == [1, 0]


def test_what_is_there_is_left_alone() -> None:
    files = installed()
    before = {path: path.stat().st_mtime_ns for path in files.folder.iterdir()}
    assert install(files, lambda done, total, label: pytest.fail("something was done")) is False
    assert {path: path.stat().st_mtime_ns for path in files.folder.iterdir()} == before


def test_the_table_has_a_row_for_every_piece_and_nothing_else_is_kept() -> None:
    files = installed()
    table = np.load(files.table, mmap_mode="r")
    assert table.shape == (17 * 7_530, 512)
    assert {path.name for path in files.folder.iterdir()} - {".lock"} == {
        "tokenizer-1.json", "table-1.npy", "layers-1.safetensors",
    }  # fmt: skip
    assert 80_000_000 < files.bytes() < 85_000_000


def test_a_folder_that_cannot_be_made_is_told_with_the_setting_that_names_another(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(ProviderError, match=r"cannot be kept in .*model\.folder"):
        install(ModelFolder.below(tmp_path / "file"))
