"""Which files the model is made of, how they are known, and where they lie."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Literal, NamedTuple

# How the weights are stored: half precision (as good as whole), or bytes (smaller and faster, a little worse).
Precision = Literal["fp16", "int8"]
MODEL = "all-MiniLM-L6-v2"
CONVERSION = 1  # raised whenever the same weights would give other vectors
_READ_BYTES = 1 << 20


class Pinned(NamedTuple):
    """A file that is accepted from anybody, because its content is known beforehand."""

    name: str
    bytes: int
    sha256: str

    def is_at(self, path: Path) -> bool:
        """Tell whether the file at a path is this one."""
        return path.is_file() and path.stat().st_size == self.bytes and sha256_of(path) == self.sha256


WEIGHTS = Pinned(
    "model.safetensors", 90_868_376, "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
)  # fmt: skip
TOKENIZER = Pinned("tokenizer.json", 466_247, "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037")
PINNED = (WEIGHTS, TOKENIZER)


class Place(NamedTuple):
    """The folder of the model; what is finished in it has its final name."""

    folder: Path

    @classmethod
    def below(cls, models: Path) -> Place:
        """Return the model's own folder below that of all models."""
        return cls(models / MODEL)

    def file(self, pinned: Pinned) -> Path:
        """Return where a fetched file belongs."""
        return self.folder / pinned.name

    def graph(self, precision: Precision) -> Path:
        """Return where the converted model belongs."""
        return self.folder / f"{precision}-{CONVERSION}.onnx"

    def is_ready(self, precision: Precision) -> bool:
        """Tell whether the model can be loaded."""
        return self.graph(precision).is_file() and self.file(TOKENIZER).is_file()


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(_READ_BYTES):
            digest.update(block)
    return digest.hexdigest()
