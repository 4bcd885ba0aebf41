"""Steps of a hit through ranking: their fold is the key of the hit, their text the explanation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol, TypeVar, overload

Item = TypeVar("Item", covariant=True)
Op = Literal["set", "add", "scale", "lift", "note", "drop"]

# Sign of each operation in an explanation.
_SIGNS: dict[Op, str] = {"set": "=", "add": "+", "scale": "×", "lift": "↑", "note": "·", "drop": "✗"}


class _Numbers(Protocol):
    def tolist(self) -> list[float]: ...


class _Table(Protocol):
    def __getitem__(self, place: int, /) -> _Numbers: ...


class TermKey(NamedTuple):
    """Term of the query, the index field it was found in, and the context whose text holds it.

    Fields are words, pairs, grams, dates and speakers; contexts are own, file and window. A word may equal a gram.
    """

    term: str
    field: str
    context: str


class TermValue(NamedTuple):
    """Contribution of a term in one field and one context to a raw score; several may have the same term."""

    term: str
    field: str
    context: str
    value: float

    @property
    def label(self) -> str:
        """Return the label: the term, and in brackets any field but word or date, and any context but its own."""
        if self.field == "speakers":
            return f"said by {self.term}"
        field = () if self.field in ("words", "dates") else (self.field,)
        context = () if self.context == "own" else (self.context,)
        return f"{self.term} ({', '.join((*field, *context))})" if field or context else self.term


class Terms(Sequence[TermValue]):
    """Per-term contributions to one raw score, as records once they are read; those of 0 are left out."""

    __slots__ = ("_keys", "_values")

    def __init__(self, keys: Sequence[TermKey], values: _Numbers) -> None:
        self._keys = keys
        self._values = values

    def _records(self) -> tuple[TermValue, ...]:
        return tuple(
            TermValue(*key, value) for key, value in zip(self._keys, self._values.tolist(), strict=True) if value
        )

    def __iter__(self) -> Iterator[TermValue]:
        return iter(self._records())

    def __len__(self) -> int:
        return len(self._records())

    @overload
    def __getitem__(self, index: int) -> TermValue: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[TermValue, ...]: ...
    def __getitem__(self, index: int | slice) -> TermValue | tuple[TermValue, ...]:
        return self._records()[index]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and self._records() == tuple(other)

    def __hash__(self) -> int:
        return hash(self._records())

    def __repr__(self) -> str:
        return repr(self._records())

    def __reduce__(self) -> tuple[type[tuple[TermValue, ...]], tuple[tuple[TermValue, ...]]]:
        return tuple, (self._records(),)  # a copy holds the values, not the function


class Part(NamedTuple):
    """One addend of a fusion step: the contribution of one signal to one hit.

    Where the normaliser is linear, normalised = max(0, raw − floor)/reference.
    """

    signal: str
    value: float
    weight: float
    normalised: float
    raw: float | None = None
    rank: int | None = None
    coverage: float | None = None
    terms: Sequence[TermValue] = ()
    best: float | None = None
    floor: float | None = None
    reference: float | None = None


class TermTable(Mapping[str, Terms]):
    """Per-term contributions to many raw scores: a key per term, and a row of values per hit.

    Instead of keys there may be a function that makes them when they are read.
    """

    def __init__(
        self, keys: Sequence[TermKey] | Callable[[], Sequence[TermKey]], ids: Sequence[str], added: _Table
    ) -> None:
        self._keys = keys
        self._ids = ids
        self._added = added
        self._places: dict[str, int] | None = None

    def __getitem__(self, identity: str) -> Terms:
        if self._places is None:
            self._places = {known: place for place, known in enumerate(self._ids)}
        if not isinstance(self._keys, Sequence):
            self._keys = self._keys()
        return Terms(self._keys, self._added[self._places[identity]])

    def __iter__(self) -> Iterator[str]:
        return iter(self._ids)

    def __len__(self) -> int:
        return len(self._ids)


class Later(Sequence[Item]):
    """Parts or steps of one hit, created lazily."""

    __slots__ = ("_made", "_place", "_write")

    def __init__(self, write: Callable[[int], tuple[Item, ...]], place: int) -> None:
        self._write = write
        self._place = place
        self._made: tuple[Item, ...] | None = None

    @property
    def made(self) -> tuple[Item, ...]:
        """Return them, written out."""
        if self._made is None:
            self._made = self._write(self._place)
        return self._made

    def __iter__(self) -> Iterator[Item]:
        return iter(self.made)

    def __len__(self) -> int:
        return len(self.made)

    @overload
    def __getitem__(self, index: int) -> Item: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Item, ...]: ...
    def __getitem__(self, index: int | slice) -> Item | tuple[Item, ...]:
        return self.made[index]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and self.made == tuple(other)

    def __hash__(self) -> int:
        return hash(self.made)

    def __repr__(self) -> str:
        return repr(self.made)

    def __reduce__(self) -> tuple[type[tuple[Item, ...]], tuple[tuple[Item, ...]]]:
        return tuple, (self.made,)  # a copy holds the values, not the function


class Step(NamedTuple):
    """Effect of one stage on one hit, and the reason."""

    stage: str
    op: Op
    value: float = 0.0
    why: str = ""
    parts: Sequence[Part] = ()


Trail = Sequence[Step]
Key = tuple[int, float]

START: Key = (0, 0.0)


def apply(key: Key, step: Step) -> Key:
    """Return the key (tier, score) after one step."""
    tier, score = key
    match step.op:
        case "set":
            return tier, step.value
        case "add":
            return tier, score + step.value
        case "scale":
            return tier, score * step.value
        case "lift":
            return tier + int(step.value), score
        case _:
            return key


def replay(trail: Iterable[Step]) -> Key:
    """Fold a trail into the key it produced."""
    key = START
    for step in trail:
        key = apply(key, step)
    return key


def total(parts: Iterable[Part]) -> float:
    """Add parts from left to right, the one order in which a fused score is ever summed."""
    value = 0.0
    for part in parts:
        value += part.value
    return value


def part_of(trail: Trail, signal: str) -> Part | None:
    """Return the part of a signal in this trail, if there is one."""
    for step in trail:
        for part in step.parts:
            if part.signal == signal:
                return part
    return None


def render(trail: Trail) -> str:
    """Write a trail as text in which the arithmetic can be followed line by line."""
    key = START
    lines: list[str] = []
    for step in trail:
        key = apply(key, step)
        lines.append(_step_line(step, key))
        lines.extend(_part_line(part) for part in step.parts)
    tier, score = replay(trail)
    lines.append(f"score {score:.4f}" + (f" in tier {tier}" if tier else ""))
    return "\n".join(lines)


def _step_line(step: Step, key: Key) -> str:
    tier, score = key
    why = f"  {step.why}" if step.why else ""
    match step.op:
        case "lift":
            return f"{_SIGNS['lift']} {step.stage}: tier {tier}{why}"
        case "note" | "drop":
            return f"{_SIGNS[step.op]} {step.stage}: {step.why}"
        case "set":
            return f"{_SIGNS['set']} {step.stage}: {score:.4f}{why}"
        case _:
            return f"{_SIGNS[step.op]} {step.stage}: {step.value:.4f} → {score:.4f}{why}"


def _part_line(part: Part) -> str:
    place = f"rank {part.rank}" if part.rank is not None else "not listed"
    raw = f"raw {part.raw:.4f}" if part.raw is not None else "no score"
    if part.best is not None:
        raw += f" of at best {part.best:.4f}"
    if part.raw is not None and part.reference is not None:
        above = f"({part.raw:.4f} − {part.floor:.4f})" if part.floor else f"{part.raw:.4f}"
        if part.raw < (part.floor or 0.0):
            above = f"max(0, {above.strip('()')})"
        raw += f"; vote {above} / {part.reference:.4f}"
    line = f"    {part.signal}: {part.value:.4f} = {part.weight:.3f} × {part.normalised:.4f}  ({place}, {raw})"
    if part.terms:
        line += "\n        " + " + ".join(f"{term.label} {term.value:.3f}" for term in part.terms)
    return line


class Name(NamedTuple):
    """One name of a memory: as written, its key, its words, and how specific a path it is (0 for no path)."""

    text: str
    key: str
    words: tuple[str, ...]
    specificity: int = 0


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


TIER_STEP = 4  # tiers leave gaps for the three degrees of path specificity inside each
# Relations that put a name into a tier of its own; rare codes in a text rank below all names, by how many it holds.
TIERS: dict[NameRelation, int] = {"equal": 4, "accents": 3, "same words": 3, "one edit": 2, "two edits": 1, "code": 0}
EXACT_TIER = TIERS["same words"] * TIER_STEP  # from here on the query is the name, not a slip of the finger
# Larger than any name's tier, so that reranked hits rank above the rest, and names above other names.
WINDOW_LIFT = 64


def name_tier(tier: int) -> int:
    """Return the tier a hit has for its name, lifted by a reranker or not."""
    return tier % WINDOW_LIFT
