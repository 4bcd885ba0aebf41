"""Protobuf, checked against the bytes of its own specification."""

from __future__ import annotations

import numpy as np
import pytest

from whyrank.embedding.minilm import wire


def test_a_tensor_is_its_shape_its_type_its_name_and_its_bytes() -> None:
    # dims 2 and 300 (300 = 0xac 0x02, as the specification has it), int8 = 3, name "w", 600 = 0xd8 0x04 bytes
    values = np.full((2, 300), -1, np.int8)
    expected = b"\x08\x02\x08\xac\x02\x10\x03\x42\x01w\x4a\xd8\x04" + b"\xff" * 600
    assert wire.tensor("w", values) == expected


def test_a_number_without_dimensions_stays_without() -> None:
    # 1.0 in float32, little-endian: 00 00 80 3f
    assert wire.tensor("s", np.array(1.0, np.float32)) == b"\x10\x01\x42\x01s\x4a\x04\x00\x00\x80\x3f"


@pytest.mark.parametrize(
    ("given", "written"),
    [
        (1, b"\x18\x01\xa0\x01\x02"),  # i (field 3), type INT = 2 in field 20
        (-1, b"\x18" + b"\xff" * 9 + b"\x01" + b"\xa0\x01\x02"),  # the 64-bit complement
        (0.5, b"\x15\x00\x00\x00\x3f\xa0\x01\x01"),  # f (field 2, four bytes), FLOAT = 1
        ([2, 0], b"\x40\x02\x40\x00\xa0\x01\x07"),  # ints (field 8), INTS = 7
    ],
)
def test_an_attribute_says_its_kind(given: wire.Attribute, written: bytes) -> None:
    attribute = b"\x0a\x01a" + written
    expected = b"\x0a\x01x\x12\x01y\x22\x02Op" + bytes([0x2A, len(attribute)]) + attribute
    assert wire.node("Op", ["x"], ["y"], {"a": given}) == expected
