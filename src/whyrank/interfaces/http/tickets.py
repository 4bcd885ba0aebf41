"""One-time tickets that authenticate the browser opened by `whyrank serve`, valid for a minute.

The ticket is in a file that only the user can read. Command lines are visible to every user of the machine, so neither
the token nor the ticket may be in one. Browsers keep URLs and sync them to other machines, so the token may not be in
one: the ticket they keep is used up.
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
    """One-time ticket of a browser, valid until `until` and while its file exists; use removes the file."""

    text: str
    file: str
    until: float


@contextmanager
def issued(page: str) -> Iterator[Ticket]:
    """Write a file that redirects to the page with a new ticket; remove it after use, timeout or exit."""
    folder = _folder()
    ticket = Ticket(secrets.token_urlsafe(_BYTES), str(folder / "whyrank.html"), time.time() + _SECONDS)
    address = html.escape(f"{page}#ticket={ticket.text}")
    end = threading.Timer(_SECONDS, _remove, [ticket])
    end.daemon = True
    try:
        # Other users can neither list the folder nor read the file.
        number = os.open(ticket.file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(number, "w", encoding="utf-8") as file:
            file.write(_PAGE.format(address=address))
        end.start()
        yield ticket
    finally:
        end.cancel()
        _remove(ticket)


def is_good(ticket: Ticket | None, given: str) -> bool:
    """Redeem a ticket and return whether it was valid: of several processes only one can redeem it."""
    if ticket is None or not hmac.compare_digest(given.encode("utf-8", "replace"), ticket.text.encode()):
        return False
    return _remove(ticket) and time.time() < ticket.until


def _folder() -> Path:
    """Return a new private folder, in the home folder if possible: sandboxed browsers may read there."""
    with suppress(OSError, RuntimeError):
        return Path(tempfile.mkdtemp(prefix="whyrank-", dir=Path.home()))
    return Path(tempfile.mkdtemp(prefix="whyrank-"))


def _remove(ticket: Ticket) -> bool:
    """Remove the file and its folder; return whether the file existed."""
    try:
        os.unlink(ticket.file)
    except OSError:
        return False
    finally:
        with suppress(OSError):
            os.rmdir(os.path.dirname(ticket.file))
    return True
