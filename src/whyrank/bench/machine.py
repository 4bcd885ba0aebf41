"""Where figures were taken: one thread for everybody's linear algebra, and a description of the machine."""

from __future__ import annotations

import os
import platform
import sys
from pathlib import Path
from typing import Any

# Libraries read these when they are loaded. With more threads, wall time would tell how busy the other cores are.
_THREADS = (
    "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS",
    "NUMEXPR_NUM_THREADS", "NUMBA_NUM_THREADS",
)  # fmt: skip


def limit_threads() -> None:
    """Hold numpy and its like to one thread, here and in processes started from here; call before it is loaded."""
    if "numpy" not in sys.modules:
        os.environ.update(dict.fromkeys(_THREADS, "1"))


def one_thread() -> bool:
    """Tell whether the limit was set in time."""
    return all(os.environ.get(name) == "1" for name in _THREADS)


def described() -> dict[str, Any]:
    """Describe the machine and what the contest rests on."""
    import numpy as np

    from .. import __version__
    from ..storage.sqlite.connection import LIBRARY

    return {
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "numpy": np.__version__,
        "sqlite": LIBRARY.removeprefix("SQLite "),
        "whyrank": __version__,
        "one_thread": one_thread(),
    }


def _cpu() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or sys.platform
