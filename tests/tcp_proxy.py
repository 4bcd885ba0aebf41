"""A proxy before a server: it speaks TLS to clients, and loses connections when it is told to."""

from __future__ import annotations

import socket
import ssl
import threading
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from typing import TYPE_CHECKING, Literal

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_PIECE = 65_536
Cut = Literal["before", "after"]


class Proxy:
    """Forwards connections to a port; the first message that holds `fatal` is the last of its connection.

    It is cut before the server has read that message, or after the server has answered it.
    """

    def __init__(self, port: int, tls: ssl.SSLContext | None = None) -> None:
        self.fatal: bytes | None = None
        self.cut: Cut = "after"
        self.lost = 0
        self.answered = 0  # bytes of the server's answers
        self.is_stalled = threading.Event()
        self._target, self._tls = port, tls
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with suppress(OSError, ssl.SSLError), client:
            wrapped = client if self._tls is None else self._tls.wrap_socket(client, server_side=True)
            with wrapped, socket.create_connection(("127.0.0.1", self._target)) as server:
                answering = threading.Thread(target=self._answer, args=(server, wrapped), daemon=True)
                answering.start()
                while piece := wrapped.recv(_PIECE):
                    if self.fatal is not None and self.fatal in piece:
                        self._lose(piece, wrapped, server)
                        return
                    server.sendall(piece)

    def _lose(self, piece: bytes, client: socket.socket, server: socket.socket) -> None:
        self.fatal, self.lost = None, self.lost + 1
        client.shutdown(socket.SHUT_RDWR)  # the answer finds nobody
        if self.cut == "after":
            server.sendall(piece)
            server.settimeout(5.0)
            with suppress(OSError):
                server.recv(_PIECE)
        server.shutdown(socket.SHUT_RDWR)  # closing alone leaves it open while another thread reads it

    def _answer(self, server: socket.socket, client: socket.socket) -> None:
        with suppress(OSError, ssl.SSLError):
            while piece := server.recv(_PIECE):
                self.answered += len(piece)
                client.sendall(piece)
        with suppress(OSError):
            client.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Accept no more connections."""
        self._listener.close()


@contextmanager
def proxy(port: int, tls: ssl.SSLContext | None = None) -> Iterator[Proxy]:
    """Start a proxy to a port, and stop it afterwards."""
    made = Proxy(port, tls)
    try:
        yield made
    finally:
        made.close()


def certified(folder: Path) -> ssl.SSLContext:
    """Make a certificate for 127.0.0.1 that signs itself, as `authority.pem` in a folder, and a context with it."""
    folder.mkdir(parents=True, exist_ok=True)
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "whyrank tests")])
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    (folder / "authority.pem").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    (folder / "key.pem").write_bytes(private)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.set_alpn_protocols(["postgresql"])
    context.load_cert_chain(folder / "authority.pem", folder / "key.pem")
    return context
