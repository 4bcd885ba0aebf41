"""Whyrank on systems and versions of Python that lack what Linux has."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from typing import TYPE_CHECKING

import pytest

from whyrank.errors import MissingExtra, ProviderError
from whyrank.providers.onnx.description import Pinned
from whyrank.providers.wordllama import FILES, FINGERPRINT, TABLE, WordLlama, fetched_folder, install

if TYPE_CHECKING:
    from pathlib import Path

WHEEL = "wordllama-0.4.0.post1-cp313-cp313-manylinux2014_x86_64.whl"

# As on Windows: what Whyrank imports of these is not there. Packages that ask `sys.platform` first may have them.
IMPORT_EVERYTHING = """
import builtins, importlib, pkgutil
MISSING = {"fcntl", "grp", "pty", "pwd", "readline", "resource", "termios", "tty"}
real = builtins.__import__

def without(name, globals=None, locals=None, fromlist=(), level=0):
    if name in MISSING and str((globals or {}).get("__name__")).startswith("whyrank"):
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)
    return real(name, globals, locals, fromlist, level)

builtins.__import__ = without
import whyrank
names = [module.name for module in pkgutil.walk_packages(whyrank.__path__, "whyrank.")]
for name in names:
    importlib.import_module(name)
from whyrank.storage.sqlite import lock
assert not lock.HAS_FLOCK
print(len(names))
"""

# As if its package had never been installed: nothing finds it.
WITHOUT_WORDLLAMA = """
import sys
from importlib.machinery import PathFinder

class Without(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name.split(".")[0] == "wordllama" else super().find_spec(name, path, target)

sys.meta_path = [Without if finder is PathFinder else finder for finder in sys.meta_path]
from whyrank.__main__ import main
sys.exit(main())
"""


def test_every_module_is_imported_without_what_only_posix_has() -> None:
    done = subprocess.run([sys.executable, "-c", IMPORT_EVERYTHING], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 100


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder that pip takes for its only index."""
    folder = tmp_path / "index"
    folder.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


def publish(index: Path, *, is_forged: bool = False) -> None:
    """Write a wheel for another interpreter with the real files, or with a table that has one other byte."""
    with zipfile.ZipFile(index / WHEEL, "w", zipfile.ZIP_STORED) as wheel:
        for name, content in CONTENTS.items():
            forged = bytes([content[0] ^ 1]) + content[1:]
            wheel.writestr(f"wordllama/{name}", forged if is_forged and name == TABLE else content)
        about = "wordllama-0.4.0.post1.dist-info"
        wheel.writestr(f"{about}/METADATA", "Metadata-Version: 2.1\nName: wordllama\nVersion: 0.4.0.post1\n")
        tag = "Tag: cp313-cp313-manylinux2014_x86_64"
        wheel.writestr(f"{about}/WHEEL", f"Wheel-Version: 1.0\nRoot-Is-Purelib: false\n{tag}\n")
        wheel.writestr(f"{about}/RECORD", "")


EMBEDDER = WordLlama()
CONTENTS = {name: (EMBEDDER._folder / name).read_bytes() for name, _, _ in FILES}


@pytest.fixture
def hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide the package."""
    monkeypatch.setitem(sys.modules, "wordllama", None)


@pytest.mark.usefixtures("hidden")
def test_without_its_package_the_files_are_fetched_and_give_the_same_vectors(index: Path, tmp_path: Path) -> None:
    texts = ["green tea in the morning", "a boat at the second quay"]
    publish(index)
    models = tmp_path / "models"
    with pytest.raises(MissingExtra, match="is not installed") as failure:
        WordLlama(models=models)
    assert "`whyrank model fetch wordllama` gets it (19 MB)" in failure.value.hint
    assert install(models) is True
    assert install(models) is False
    assert sorted(path.name for path in fetched_folder(models).iterdir()) == [".lock", "tokenizers", "weights"]
    fetched = WordLlama(models=models)
    assert fetched.fingerprint == FINGERPRINT == EMBEDDER.fingerprint
    assert fetched.documents(texts).tolist() == EMBEDDER.documents(texts).tolist()


@pytest.mark.usefixtures("hidden")
def test_files_with_another_hash_are_refused(index: Path, tmp_path: Path) -> None:
    publish(index, is_forged=True)
    with pytest.raises(ProviderError, match=r"its weights/l2_supercat_256\.safetensors is not the one expected"):
        install(tmp_path)
    with pytest.raises(MissingExtra, match="is not installed"):
        WordLlama(models=tmp_path)


def test_with_its_package_nothing_is_fetched(tmp_path: Path) -> None:
    assert install(tmp_path) is False
    assert list(tmp_path.iterdir()) == []


def test_the_pinned_files_are_those_of_the_package() -> None:
    assert all(Pinned(*file).is_at(EMBEDDER._folder / file[0]) for file in FILES)


def test_on_the_command_line_the_first_use_says_what_to_type_and_later_ones_are_offline(
    index: Path, tmp_path: Path
) -> None:
    (tmp_path / "tea.md").write_text("# Tea\n\nRobin drinks green tea in the morning.\n", encoding="utf-8")
    environment = {**os.environ, "WHYRANK_MODEL_FOLDER": str(tmp_path / "models")}

    def typed(*arguments: str) -> subprocess.CompletedProcess[str]:
        program = [sys.executable, "-c", WITHOUT_WORDLLAMA, *arguments]
        return subprocess.run(
            program, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120, check=False
        )

    first = typed("ingest", "tea.md", "--store", "memory.db")
    assert first.returncode != 0
    assert "wordllama, the default model, is not installed" in first.stderr
    assert "`whyrank model fetch wordllama` gets it" in first.stderr
    publish(index)
    assert "was fetched into" in typed("model", "fetch", "wordllama").stdout
    (index / WHEEL).unlink()
    assert typed("ingest", "tea.md", "--store", "memory.db").returncode == 0
    searched = typed("search", "hot drinks", "--store", "memory.db", "--json", "--explain")
    assert searched.returncode == 0, searched.stderr
    found = json.loads(searched.stdout)
    assert found["hits"][0]["path"] == "tea.md"
    assert "vector" in json.dumps(found["hits"][0])
    assert not {"vector-off", "no-vectors", "vectors-missing"} & {notice["code"] for notice in found["notices"]}
    # Where the files are not there, an existing store is searched by words, and a notice says what to type.
    environment["WHYRANK_MODEL_FOLDER"] = str(tmp_path / "empty")
    words = json.loads(typed("search", "green tea", "--store", "memory.db", "--json").stdout)
    assert words["hits"]
    [notice] = [notice for notice in words["notices"] if notice["code"] == "vector-off"]
    assert "`whyrank model fetch wordllama` gets it" in notice["message"]
