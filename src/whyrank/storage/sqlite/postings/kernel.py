"""The kernel in use, chosen once: the compiled module built from `kernel/`, or numpy without it."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import cast

from .loops import NUMPY, Kernel

_VERSION = 15  # the same in kernel/kernel.h: a module left over from an earlier build is not used


def _compiled() -> Kernel | None:
    try:
        found = import_module("whyrank._kernel")
    except ImportError:
        return None
    # Stored numbers are little-endian and are read in place.
    return cast("Kernel", found) if found.VERSION == _VERSION and sys.byteorder == "little" else None


COMPILED = _compiled()
KERNEL = COMPILED or NUMPY
