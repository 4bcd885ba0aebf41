"""A copy of a store, for trying things out that must not touch it."""

from __future__ import annotations

from pathlib import Path

from .connection import connect, translated
from .database import Database


def copy_store(path: Path, to: Path) -> None:
    """Copy a store as it stands at this moment, while others read and write it."""
    database = Database(path)
    try:
        with translated(path):
            source, target = database.reader(), connect(to)
            try:
                source.backup(target)
            finally:
                target.close()
    finally:
        database.close()
