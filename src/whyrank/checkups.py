"""What a look at a store found: what is wrong, what is lost by it, and whether it can be made again."""

from __future__ import annotations

from typing import NamedTuple

NAMED = 5  # ids that a message names; all of them stand in `names`

CODES = frozenset(
    {
        "pages", "postings", "words", "records", "scopes", "names", "vectors", "signs", "embedded", "orphans", "texts",
        "fields", "schema", "chunks", "altered", "unreadable", "lost", "books", "aside", "hopeless", "unusable",
        "disk",
    }
)  # fmt: skip


class Finding(NamedTuple):
    """One thing that is wrong with a store.

    What is derived can be made anew from the memories. What is not is named, kept as far as it can be read, and waits
    for somebody who has a copy.
    """

    code: str
    message: str
    hint: str = ""
    derived: bool = True
    names: tuple[str, ...] = ()
    mended: bool = False


class Compared(NamedTuple):
    """How much a deep look has made again and compared with what is stored, and how long that took."""

    memories: int = 0
    words: int = 0
    names: int = 0
    records: int = 0
    segments: int = 0
    vectors: int = 0
    sign_blocks: int = 0
    seconds: float = 0.0


class Checkup(NamedTuple):
    """The state of a store: what is damaged, whose words are old, what waits for a vector, and what was done."""

    findings: tuple[Finding, ...] = ()
    looked_inside: bool = False  # words and vectors are looked at only where the file can be used
    old_words: int = 0
    waiting: int = 0
    read_anew: int = 0
    embedded: int = 0
    has_earlier_vectors: bool = False  # as an earlier whyrank made them; they answer, and newer ones find more
    free_bytes: int | None = None  # on the disk of the store
    kept: str = ""  # where the store lies as it was before it was mended, if it was written anew
    compared: Compared | None = None  # by a deep look

    @property
    def is_sound(self) -> bool:
        """Tell whether nothing is damaged, or nothing any more; little room on the disk is no damage."""
        return all(finding.mended or finding.code == "disk" for finding in self.findings)

    @property
    def is_whole(self) -> bool:
        """Tell whether nothing is left to do."""
        is_of_today = not (self.old_words or self.waiting or self.has_earlier_vectors)
        has_room = not any(finding.code == "disk" for finding in self.findings)
        return self.is_sound and self.looked_inside and is_of_today and has_room


def listed(names: tuple[str, ...]) -> str:
    """Return the first of some names, and how many more there are."""
    more = len(names) - NAMED
    return ", ".join(names[:NAMED]) + (f" and {more:,} more" if more > 0 else "")
