"""`python -m whyrank`, and the `whyrank` command."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line."""
    from .interfaces.cli.main import main as run

    sys.exit(run())


if __name__ == "__main__":
    main()
