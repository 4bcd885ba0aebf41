"""Try an installed whyrank from end to end: store, search, explain. Run by `make dist` with the wheel alone."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import whyrank
from whyrank.storage.sqlite.postings.kernel import COMPILED


def main() -> None:
    """Fail with an AssertionError if the wheel lacks something."""
    assert "site-packages" in str(whyrank.__file__), f"{whyrank.__file__} is no installed package"
    assert COMPILED is not None, "the wheel has no compiled kernel"
    with tempfile.TemporaryDirectory() as folder:
        notes = Path(folder) / "notes"
        notes.mkdir()
        (notes / "tea.md").write_text("# Tea\n\nRobin drinks green tea in the morning.\n", encoding="utf-8")
        (notes / "boat.md").write_text("# Boat\n\nThe boat lies at the second quay.\n", encoding="utf-8")
        whyrank.fetch_model("wordllama")  # where its package has no wheel
        with whyrank.open(Path(folder) / "memory.db", workspace=folder) as memory:
            memory.ingest(str(notes))
            [first, *_] = memory.search("what does Robin drink?")
            assert first.memory.title == "Tea", first
            assert first.key == whyrank.replay(first.trail), first.explain()
        command = [sys.executable, "-m", "whyrank", "search", "second quay", "--json", "--workspace", folder]
        done = subprocess.run([*command, "--store", f"{folder}/memory.db"], capture_output=True, text=True, check=True)
        assert "boat.md" in done.stdout, done.stdout
    print(f"whyrank {whyrank.__version__} works as installed")


if __name__ == "__main__":
    main()
