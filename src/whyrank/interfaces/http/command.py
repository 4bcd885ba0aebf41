"""`whyrank serve`: looks whether all that a server needs is installed before any of it is imported."""

from __future__ import annotations

import argparse
import importlib.util

from ...errors import MissingExtra

_NEEDED = ("starlette", "uvicorn", "httptools", "prometheus_client")


def serve(asked: argparse.Namespace) -> int:
    """Serve programs and people until the process is told to end."""
    for name in _NEEDED:
        if importlib.util.find_spec(name) is None:
            raise MissingExtra(f"`whyrank serve` needs {name}, which is not installed", "pip install 'whyrank[serve]'")
    from .starting import started

    return started(asked)
