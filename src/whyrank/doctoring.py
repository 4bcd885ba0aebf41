"""What the facade does about a store that may be damaged: looks at all of it, and mends what can be made anew."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from .checkups import Checkup, Finding
from .rereading import Rereading

if TYPE_CHECKING:
    from .ingest.filling import Progress


class Doctoring(Rereading):
    """The care of a store: its file, its words, its vectors."""

    def doctor(self, *, repair: bool = False, progress: Progress | None = None) -> Checkup:
        """Look whether the file, the words and the vectors of the store are in order; with `repair`, make them so.

        What is derived is made anew. Memories that are damaged are named, never dropped unsaid; where the file had to
        be written anew, it is kept as it was beside the new one.
        """
        findings, kept = looked_at(self._config.store, repair, progress)
        inside = self.cared_for(repair, progress) if is_usable(findings) else Checkup()
        return inside._replace(findings=findings, kept=kept)

    def give_up_damaged(self) -> tuple[str, ...]:
        """Forget the memories that were set aside because they cannot be read; return the ids they had."""
        from .storage.sqlite.mending import given_up

        return given_up(self._config.store) if self._config.store.is_file() else ()

    def cared_for(self, repair: bool, progress: Progress | None) -> Checkup:
        """Look after words and vectors alone: those that this whyrank would make."""
        read = self.read_anew(progress) if repair else 0
        embedded = self.renew_vectors(progress) + self.embed(progress).embedded if repair else 0
        return Checkup(
            looked_inside=True,
            old_words=self.old_words(),
            waiting=self.backlog().waiting,
            read_anew=read,
            embedded=embedded,
            has_earlier_vectors=self.has_earlier_vectors(),
        )


def looked_at(store: Path, repair: bool, progress: Progress | None) -> tuple[tuple[Finding, ...], str]:
    """Return what is wrong with the file of a store, and where it lies as it was if it was written anew.

    A store that is in no file has none that could be damaged.
    """
    from .storage.sqlite.mending import examined, mended

    if not store.is_file():
        return (), ""
    tick = progress or (lambda *_: None)
    if not repair:
        return tuple(examined(store, tick)), ""
    findings, kept = mended(store, tick)
    return tuple(findings), kept


def is_usable(findings: Sequence[Finding]) -> bool:
    """Tell whether a store may be opened and written to: what is written over damaged pages may damage more."""
    return not any(finding.code in ("pages", "hopeless", "unusable") and not finding.mended for finding in findings)
