"""Steps of a hit through ranking: their fold is the key of the hit, their text the explanation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
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


class Lazy(Sequence[Item]):
    """Sequence that makes its items when they are read; it equals the tuple of them, and is copied as that.

    Such a class is no dataclass, so that `asdict` copies its items instead of its columns.
    """

    def item(self, number: int) -> Item:
        """Make one item."""
        raise NotImplementedError

    @overload
    def __getitem__(self, index: int) -> Item: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Item, ...]: ...
    def __getitem__(self, index: int | slice) -> Item | tuple[Item, ...]:
        numbers = range(len(self))[index]
        return self.item(numbers) if isinstance(numbers, int) else tuple(map(self.item, numbers))

    def __iter__(self) -> Iterator[Item]:
        return map(self.item, range(len(self)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return repr(tuple(self))

    def __reduce__(self) -> tuple[type[tuple[Item, ...]], tuple[tuple[Item, ...]]]:
        return tuple, (tuple(self),)  # a copy holds the items, and no reference to a store


class Later(Lazy[Item]):
    """Parts, steps or terms of one hit, written all at once when the first is read."""

    def __init__(self, write: Callable[[int], tuple[Item, ...]], place: int) -> None:
        self._write = write
        self._place = place

    @cached_property
    def made(self) -> tuple[Item, ...]:
        """Return them, written out."""
        return self._write(self._place)

    def item(self, number: int) -> Item:
        """Return one of them."""
        return self.made[number]

    def __iter__(self) -> Iterator[Item]:
        return iter(self.made)

    def __len__(self) -> int:
        return len(self.made)


@dataclass(eq=False, repr=False)
class TermTable(Mapping[str, Sequence[TermValue]]):
    """Per-term contributions to many raw scores: a key per term, and a row of values per hit.

    Instead of keys there may be a function that makes them when they are read. Values of 0 are left out.
    """

    keys_or_maker: Sequence[TermKey] | Callable[[], Sequence[TermKey]]
    ids: Sequence[str]
    added: _Table

    @cached_property
    def _places(self) -> dict[str, int]:
        return {known: place for place, known in enumerate(self.ids)}

    @cached_property
    def _keys(self) -> Sequence[TermKey]:
        return self.keys_or_maker if isinstance(self.keys_or_maker, Sequence) else self.keys_or_maker()

    def _records(self, place: int) -> tuple[TermValue, ...]:
        values = zip(self._keys, self.added[place].tolist(), strict=True)
        return tuple(TermValue(*key, value) for key, value in values if value)

    def __getitem__(self, identity: str) -> Sequence[TermValue]:
        return Later(self._records, self._places[identity])

    def __iter__(self) -> Iterator[str]:
        return iter(self.ids)

    def __len__(self) -> int:
        return len(self.ids)


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
