"""Write a store whose words an earlier reader has read; run once, with the code of that reader."""

from __future__ import annotations

import sys
from pathlib import Path

import whyrank


def main(path: Path) -> None:
    """Make a small store with facts of every fate, and two files that are gone, one of them without a title."""
    note = path.parent / "shifts.md"
    note.write_text("# Rota\n\nThe night-shift begins at ten in the evening.\n", encoding="utf-8")
    untitled = path.parent / "winter-tyres.md"
    untitled.write_text("They hang in the cellar behind the bicycles.\n", encoding="utf-8")
    with whyrank.open(path, workspace=path.parent) as engine:
        engine.ingest(note, untitled)
        engine.add("Signalling by TGF-β slows down with age")
        old = engine.add("The hand-over takes five minutes", scope="user:42", key="hand-over")
        engine.add("The hand-over takes ten minutes", scope="user:42", supersedes=old.id)
        changed = engine.add("Two GPUs hang in the cellar", tags=["machines"], importance=4)
        engine.update(changed.id, text="Three GPUs hang in the cellar")
        engine.mark_used(changed.id)
        engine.add("Suzy drinks tea")
    note.unlink()
    untitled.unlink()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
