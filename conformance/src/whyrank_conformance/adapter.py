"""The seam: what an engine has to be able to do to be asked, and what it says of itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from typing import TYPE_CHECKING, ClassVar, Literal

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    Vector = NDArray[np.float32]

Ability = Literal[
    "words", "vectors", "relevance", "threshold", "names", "scopes", "doors", "supersession", "abstention"
]
Verdict = Literal["found", "weak", "nothing"]
Embed = Callable[[Sequence[str]], "NDArray[np.float32]"]

# What each ability means, and what is said of an engine that does not promise it.
ABILITIES: Mapping[Ability, tuple[str, str]] = {
    "words": ("a keyword run has a say in the order", "it has no keyword run"),
    "vectors": ("vectors we give have a say in the order", "it has no vector run"),
    "relevance": (
        "a number between 0 and 1 says how relevant a hit is",
        "its scores are documented to order hits, not to say how relevant they are",
    ),
    "threshold": (
        "a search can ask for a least relevance between 0 and 1",
        "it documents no threshold between 0 and 1",
    ),
    "names": ("a note can have a name by which it is found", "it documents no search by a note's name"),
    "scopes": ("a search can be kept to one scope", "it documents no filter by scope"),
    "doors": ("there is more than one way to ask", "there is one way to ask"),
    "supersession": ("a note can replace another", "it documents no note that replaces another"),
    "abstention": (
        "it can say that nothing relevant is there, or leave out what is not relevant",
        "it documents that it returns the nearest, however far they are",
    ),
}


@dataclass(frozen=True, slots=True)
class Note:
    """One memory to be stored; what an engine has no field for it leaves out."""

    id: str
    text: str
    name: str = ""
    scope: str = ""
    supersedes: str = ""


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked; `scope` and `minimum` only of engines that promise scopes and thresholds."""

    text: str
    limit: int = 5
    scope: str = ""
    minimum: float | None = None


@dataclass(frozen=True, slots=True)
class Found:
    """One hit: the note's id and, where the engine says it, its relevance between 0 and 1."""

    id: str
    relevance: float | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """Hits, best first, and the engine's verdict where it gives one."""

    hits: tuple[Found, ...] = ()
    verdict: Verdict | None = None

    @property
    def ids(self) -> tuple[str, ...]:
        """Return the ids, best first."""
        return tuple(hit.id for hit in self.hits)


@dataclass(frozen=True, slots=True)
class Setup:
    """What an engine is opened with: an empty folder of its own, and the embedder whose vectors it shall use.

    `own_model` allows an engine to use the model it ships instead: what comes back is compared with itself alone.
    """

    folder: Path
    embed: Embed
    dimension: int
    own_model: bool = False


Door = Callable[[Question], Sequence[str]]


class Adapter:
    """An engine under test: five methods, and a declaration of what its documentation promises.

    It is opened once for every planted corpus, each time in a new folder, and closed again.
    """

    name: ClassVar[str] = ""
    about: ClassVar[str] = ""  # what it is, in a sentence
    packages: ClassVar[tuple[str, ...]] = ()  # distributions it needs, the engine's own first
    install: ClassVar[str] = "pip install 'whyrank-conformance[engines]'"
    call: ClassVar[str] = ""  # the exact call that searches
    promises: ClassVar[frozenset[Ability]] = frozenset({"words", "vectors"})
    reasons: ClassVar[Mapping[Ability, str]] = {}  # why an ability is not promised, where more is to be said
    choices: ClassVar[
        Mapping[int, str]
    ] = {}  # by number of check: which design choice or known cause is behind a failure

    def open(self, setup: Setup) -> None:
        """Make an empty engine in the folder."""
        raise NotImplementedError

    def add(self, notes: Sequence[Note]) -> None:
        """Store notes; they can be found on return."""
        raise NotImplementedError

    def delete(self, ids: Sequence[str]) -> None:
        """Remove notes; they cannot be found on return."""
        raise NotImplementedError

    def search(self, question: Question) -> Answer:
        """Answer as a user's search would."""
        raise NotImplementedError

    def close(self) -> None:
        """Release everything."""
        raise NotImplementedError

    def doors(self) -> Mapping[str, Door]:
        """Return the other ways to ask, by name; each answers with ids, best first."""
        return {}

    @classmethod
    def missing(cls) -> str:
        """Say what has to be installed before this engine can run, or nothing."""
        absent = [name for name in cls.packages if _version(name) is None]
        return (
            f"{', '.join(absent)} {'is' if len(absent) == 1 else 'are'} not installed; {cls.install}" if absent else ""
        )

    @classmethod
    def versions(cls) -> dict[str, str]:
        """Return the versions of what it needs."""
        found = {name: _version(name) for name in cls.packages}
        return {name: version for name, version in found.items() if version is not None}


def _version(distribution: str) -> str | None:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


@dataclass(frozen=True)
class Ids:
    """The notes' ids as consecutive numbers, for engines that take nothing else."""

    numbers: dict[str, int] = field(default_factory=dict)

    def number(self, id: str) -> int:
        """Return the number of an id, a new one for a new id."""
        return self.numbers.setdefault(id, len(self.numbers) + 1)

    def id(self, number: int) -> str:
        """Return the id of a number."""
        return next(id for id, known in self.numbers.items() if known == number)
