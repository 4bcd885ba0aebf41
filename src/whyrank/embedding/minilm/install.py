"""Fetch the weights, convert them, keep what is needed: once per machine."""

from __future__ import annotations

import os
from pathlib import Path
from typing import get_args

from filelock import FileLock

from ...errors import ProviderError
from .fetch import Progress, fetch
from .files import MODEL, WEIGHTS, Place, Precision
from .graph import converted

PRECISIONS: tuple[Precision, ...] = get_args(Precision)


def install(place: Place, tick: Progress = lambda done, total, label: None) -> None:
    """Make the model ready to be loaded; safe in several processes at once, and again after a kill."""
    if is_ready(place):
        return
    try:
        place.folder.mkdir(parents=True, exist_ok=True)
        with FileLock(place.folder / ".lock"):
            if not is_ready(place):
                fetch(place, tick)
                _convert(place, tick)
    except OSError as error:
        raise ProviderError(
            f"{MODEL} cannot be kept in {place.folder}: {error.strerror or error}",
            "make room there, or name another folder by the setting model.folder",
        ) from error


def is_ready(place: Place) -> bool:
    """Tell whether every variant can be loaded."""
    return all(place.is_ready(precision) for precision in PRECISIONS)


def _convert(place: Place, tick: Progress) -> None:
    """Write every variant, so that changing between them fetches nothing; the weights are not needed after that."""
    from safetensors.numpy import load_file

    weights = load_file(place.file(WEIGHTS))
    for done, precision in enumerate(PRECISIONS, 1):
        _write(place.graph(precision), converted(weights, precision))
        # In bytes, as the fetching was told.
        tick(WEIGHTS.bytes * done // len(PRECISIONS), WEIGHTS.bytes, f"converting to {precision}")
    place.file(WEIGHTS).unlink()


def _write(path: Path, content: bytes) -> None:
    """Write a file so that it is either whole or not there."""
    part = path.with_name(path.name + ".part")
    with part.open("wb") as out:
        out.write(content)
        out.flush()
        os.fsync(out.fileno())
    os.replace(part, path)
