"""How a browser that we open ourselves is let in: by a ticket, good once and for a minute, in a file that only we read.

A command line is shown to everybody on the machine, so neither the token nor the ticket may stand there. Browsers keep
addresses and copy them to other machines, so the token may not stand in one: of a ticket they keep what is used up.
"""

from __future__ import annotations

import hmac
import html
import os
import secrets
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

_SECONDS = 60.0  # for a browser to start on a slow machine
_BYTES = 32
_PAGE = """<!doctype html>
<meta charset="utf-8">
<meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0; url={address}">
<title>whyrank</title>
<a href="{address}">whyrank</a>
"""


class Ticket(NamedTuple):
    """What lets one browser in: good until then, and as long as its file is there, which whoever uses it removes."""

    text: str
    file: str
    until: float


@contextmanager
def issued(page: str) -> Iterator[Ticket]:
    """Write a file that leads to the page with a new ticket; it goes when it is used, too old, or no longer wanted."""
    folder = _folder()
    ticket = Ticket(secrets.token_urlsafe(_BYTES), str(folder / "whyrank.html"), time.time() + _SECONDS)
    address = html.escape(f"{page}#ticket={ticket.text}")
    end = threading.Timer(_SECONDS, _remove, [ticket])
    end.daemon = True
    try:
        # Nobody else could look into the folder; nobody else can read the file either.
        number = os.open(ticket.file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(number, "w", encoding="utf-8") as file:
            file.write(_PAGE.format(address=address))
        end.start()
        yield ticket
    finally:
        end.cancel()
        _remove(ticket)


def is_good(ticket: Ticket | None, given: str) -> bool:
    """Tell whether somebody is let in by what was given, and use the ticket up: of several processes one can."""
    if ticket is None or not hmac.compare_digest(given.encode("utf-8", "replace"), ticket.text.encode()):
        return False
    return _remove(ticket) and time.time() < ticket.until


def _folder() -> Path:
    """Return a new folder that nobody else looks into, where browsers that are kept apart from the system may read."""
    with suppress(OSError, RuntimeError):
        return Path(tempfile.mkdtemp(prefix="whyrank-", dir=Path.home()))
    return Path(tempfile.mkdtemp(prefix="whyrank-"))


def _remove(ticket: Ticket) -> bool:
    """Remove the file and its folder; tell whether it was there."""
    try:
        os.unlink(ticket.file)
    except OSError:
        return False
    finally:
        with suppress(OSError):
            os.rmdir(os.path.dirname(ticket.file))
    return True
