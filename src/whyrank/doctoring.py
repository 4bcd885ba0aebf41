"""What the facade does about a store that may be damaged: looks at all of it, and mends what can be made anew."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from .analysis.names import probe_for
from .checkups import Checkup, Compared, Finding
from .ports import ALTERED, UNREADABLE
from .rereading import Rereading
from .types import Notice, Where

if TYPE_CHECKING:
    from .ingest.filling import Progress

_LOSSES = frozenset({UNREADABLE, ALTERED})  # what no repair can make anew


class Doctoring(Rereading):
    """The care of a store: its file, its words, its vectors."""

    _met: tuple[Notice, ...] = ()  # what searches have met of damage since the last repair

    def doctor(self, *, repair: bool = False, deep: bool = False, progress: Progress | None = None) -> Checkup:
        """Look whether the file, the words and the vectors of the store are in order; with `repair`, make them so.

        What is derived is made anew. Memories that are damaged are named, never dropped unsaid; where the file had to
        be written anew, it is kept as it was beside the new one. A `deep` look makes all that is derived again, and
        compares it with what is stored.
        """
        findings, kept, compared = looked_at(self._config.store, repair, progress, deep=deep)
        self._met = () if repair else self._met
        inside = self.cared_for(repair, progress) if is_usable(findings) else Checkup()
        room = room_for(self._config.store)
        return inside._replace(findings=findings, kept=kept, compared=compared, free_bytes=room)

    def damage_notices(self) -> tuple[Notice, ...]:
        """Say what is known to be damaged without a look at all: what was set aside, and what the last search met."""
        where = Where(self._every_scope(), now=self._clock())
        aside = self._store.named(probe_for("?"), where, 1).notices
        return tuple(one for one in dict.fromkeys((*aside, *self._met)) if one.code in _LOSSES)

    def _heard(self, notices: Sequence[Notice]) -> None:
        """Remember what a search has met of damage; one that met none says nothing of what others met."""
        self._met = tuple(one for one in notices if one.code in _LOSSES) or self._met

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


def looked_at(
    store: Path, repair: bool, progress: Progress | None, *, deep: bool = False
) -> tuple[tuple[Finding, ...], str, Compared | None]:
    """Return what is wrong with the file of a store, where it lies as it was if it was written anew, what was compared.

    A store that is in no file has none that could be damaged.
    """
    from .storage.sqlite import disk
    from .storage.sqlite.mending import examined, mended

    if not store.is_file():
        return (), "", None
    tick = progress or (lambda *_: None)
    findings, kept = mended(store, tick) if repair else (examined(store, tick), "")
    if not deep or not is_usable(findings):
        return (*findings, *disk.findings(store)), kept, None
    from .storage.sqlite.reanalysis import compare

    differing, compared = compare(store, tick)
    if differing and repair:
        differing, again = mended(store, tick, differing)
        kept = again or kept
    return (*findings, *differing, *disk.findings(store)), kept, compared


def room_for(store: Path) -> int | None:
    """Return how many bytes are left on the disk of a store; None for one that is in no file."""
    from .storage.sqlite.disk import free_bytes

    return free_bytes(store) if store.is_file() else None


def is_usable(findings: Sequence[Finding]) -> bool:
    """Tell whether a store may be opened and written to: what is written over damaged pages may damage more."""
    return not any(
        finding.code in ("schema", "pages", "hopeless", "unusable") and not finding.mended for finding in findings
    )
