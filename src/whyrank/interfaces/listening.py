"""Sockets that listen, and the addresses they are asked for by."""

from __future__ import annotations

import socket
from typing import Any

from ..errors import ConfigError

_BACKLOG = 2_048  # connections that wait to be taken; the system may hold fewer
_HIGHEST_PORT = 65_535
_HERE = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens; port 0 takes a free one."""
    if not 0 <= port <= _HIGHEST_PORT:
        # The system would take the lowest sixteen bits of it.
        raise ConfigError(f"there is no port {port}", f"give one from 0 to {_HIGHEST_PORT}")
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        return _bound(socket.socket(family, kind, protocol), address)
    except (OSError, OverflowError, UnicodeError) as error:
        said = getattr(error, "strerror", None) or error
        raise ConfigError(f"cannot listen on {host}:{port}: {said}", "choose others with --host and --port") from error


def _bound(listening: socket.socket, address: Any) -> socket.socket:
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(_BACKLOG)
    except BaseException:
        listening.close()
        raise
    return listening


def address_of(listening: socket.socket, host: str, path: str = "") -> str:
    """Return where a server is to be asked for; one that listens everywhere, by the name it has on this machine."""
    host = _HERE.get(host, host)
    name = f"[{host}]" if ":" in host else host
    return f"http://{name}:{listening.getsockname()[1]}{path}"
