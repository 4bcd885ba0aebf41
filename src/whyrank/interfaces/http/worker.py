"""One of several processes that answer: it is told what to serve, and is handed its connections."""

from __future__ import annotations

import json
import socket
import sys
from contextlib import ExitStack, suppress

from ..connections import Connection, allow_many_files
from .serving import hosted, plan_from


def main() -> None:
    """Serve what standard input says, over the channel that the argument names, until told to end."""
    channel = socket.socket(fileno=int(sys.argv[1]))

    class Handed(Connection):
        """A connection whose end is told to whoever handed it over."""

        def connection_lost(self, exc: Exception | None) -> None:
            super().connection_lost(exc)
            with suppress(OSError):  # nobody counts any more
                channel.send(b"-")

    allow_many_files()
    with ExitStack() as stack:
        plan = plan_from(json.load(sys.stdin))
        hosted(plan, stack, Handed, channel).run(sockets=[])


if __name__ == "__main__":
    main()
