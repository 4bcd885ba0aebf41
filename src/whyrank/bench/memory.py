"""How much memory this process has had at most."""

from __future__ import annotations

from pathlib import Path

_STATUS = Path("/proc/self/status")


def peak_megabytes() -> float | None:
    """Return the largest resident size so far, or None where the system does not tell."""
    # What `resource` tells is inherited from the parent on Linux, so the process's own record is asked first.
    if _STATUS.exists():
        lines = _STATUS.read_text(encoding="ascii", errors="replace").splitlines()
        return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM")), None)
    return None


def disk_megabytes(folder: Path) -> float:
    """Return the size of all files below a folder."""
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) / 1e6
