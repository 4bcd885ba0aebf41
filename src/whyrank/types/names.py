"""Name and entity matches between a query and a memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple


@dataclass(frozen=True, slots=True)
class NameProbe:
    """Name lookup of a query: its own key, its words, and the keys of word windows inside it."""

    key: str
    words: tuple[str, ...]
    windows: tuple[tuple[str, ...], ...] = ()
    typos: bool = False


NameRelation = Literal[
    "equal",
    "accents",
    "same words",
    "one edit",
    "two edits",
    "code",
    "first words",
    "all words",
    "prefixes",
    "in a sentence",
]


class NameMatch(NamedTuple):
    """Relation between the query and one name of a memory."""

    relation: NameRelation
    name: str
    specificity: int = 0
    covered: float = 1.0
    words: tuple[str, ...] = ()


class Unheld(NamedTuple):
    """Codes in a query that no memory holds, and their share of the query."""

    codes: tuple[str, ...]
    share: float


class TermBoost(NamedTuple):
    """A term that counts as if the query repeated it, because it names an entity few memories hold."""

    entity: str
    term: str
    base: int
    held: int
    total: int
    ratio: float
    repeats: int

    def __str__(self) -> str:
        rarity = f"{self.term!r} in {self.held} of {self.total}, ratio {self.ratio:.3f}"
        return f"entity {self.entity!r}: {rarity}, {self.base} repeats become {self.repeats}"
