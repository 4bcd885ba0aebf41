"""Write the store that later versions must still open; run once per released schema."""

from __future__ import annotations

import sys
from pathlib import Path

import whyrank
from whyrank.storage.store import SqliteStore


def main(path: Path) -> None:
    """Make a small store with a file, facts, scopes and a supersession."""
    note = path.parent / "note.md"
    note.write_text(
        "---\ntitle: Tea Pot\ntags: [kitchen]\n---\n# Tea\n\nThe green pot holds one litre.\n", encoding="utf-8"
    )
    with whyrank.open(path, workspace=path.parent) as engine:
        engine.ingest(note)
        old = engine.add("Suzy drinks coffee", scope="user:42")
        engine.add("Suzy prefers tea", scope="user:42", supersedes=old.id)
        engine.add("Котёл чистят в октябре")
        # As a process that is killed leaves it.
        assert isinstance(engine._store, SqliteStore)
        engine._store._database.close()
    note.unlink()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
