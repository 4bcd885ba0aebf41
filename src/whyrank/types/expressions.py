"""Expressions of the advanced syntax, as a small frozen tree; and terms that combine several.

A term is a token, a phrase (tokens with a space between them), or several of these under one label, counted as one:
`deploy*|deploy|deployment`. Some of them may be the label in another spelling: `cafe|cafe|~café`. No token holds a
space, a `|` or a `~`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from operator import and_, or_
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

_BETWEEN = "|"
_OTHERWISE = "~"
OTHERWISE_COUNTS = 0.5  # of the weight of a word in the spelling of the query, where any text has it so
_SPELLINGS_NAMED = 3  # of a term's spellings; `cafe*` may have a thousand, and a trail is read by people
T = TypeVar("T")


def several(label: str, terms: Iterable[str]) -> str:
    """Return a term that combines others; a combination of none matches no text."""
    return label + _BETWEEN + _BETWEEN.join(terms)


def is_several(term: str) -> bool:
    """Return whether a term combines others."""
    return _BETWEEN in term


def meant(term: str) -> list[str]:
    """Return the tokens and phrases of a term: itself, or those under its label."""
    return [one.removeprefix(_OTHERWISE) for one in term.split(_BETWEEN)[1:] if one] if _BETWEEN in term else [term]


def spelled(asked: str, others: Iterable[str], is_known: bool) -> str:
    """Return a term that combines this one with its other spellings, or these alone."""
    return several(label_of(asked), [*(meant(asked) if is_known else ()), *(_OTHERWISE + other for other in others)])


def spellings(term: str) -> tuple[list[str], list[str]]:
    """Return the tokens and phrases of a term: in the spelling of the query, and in other spellings."""
    if _OTHERWISE not in term:
        return meant(term), []
    parts = [one for one in term.split(_BETWEEN)[1:] if one]
    others = [one.removeprefix(_OTHERWISE) for one in parts if one.startswith(_OTHERWISE)]
    return [one for one in parts if not one.startswith(_OTHERWISE)], others


def as_asked(term: str) -> str | None:
    """Return the same without its other spellings; None if it has none, or nothing else."""
    asked, others = spellings(term)
    if not (asked and others):
        return None
    return asked[0] if len(asked) == 1 else several(label_of(term), asked)


def as_word(term: str) -> str:
    """Return the one word that a term is, in whatever spellings; nothing if it is a phrase, or several."""
    if _BETWEEN not in term:
        return "" if " " in term else term
    asked, others = spellings(term)
    words = asked or others
    return words[0] if others and len(asked) < 2 and " " not in words[0] else ""


def label_of(term: str) -> str:
    """Return the label of a term, its name in a trail."""
    return term.partition(_BETWEEN)[0]


def label_as(term: str, is_asked: bool) -> str:
    """Return a term's name in a trail: its label, or the label with the other spellings that were found."""
    others = [] if is_asked else spellings(term)[1]
    if not others:
        return label_of(term)
    more = f" and {len(others) - _SPELLINGS_NAMED} more" if len(others) > _SPELLINGS_NAMED else ""
    return f"{label_of(term)} as {'/'.join(others[:_SPELLINGS_NAMED])}{more}"


@dataclass(frozen=True, slots=True)
class Holds:
    """Leaf: the text holds a word or a phrase; with the text of the query and the index term."""

    asked: str
    term: str

    def __str__(self) -> str:
        return self.asked


@dataclass(frozen=True, slots=True)
class Begins:
    """Leaf: the text holds a word with this prefix; only a store can expand it to terms.

    `spellings` are the prefix as texts and as stems write it (`häus`, `haus`), `stems` those of words that begin so
    although their stems do not (`operat*`: `oper`).
    """

    asked: str
    spellings: tuple[str, ...]
    stems: tuple[str, ...] = ()

    @property
    def beginning(self) -> str:
        """Return the prefix as the query writes it."""
        return self.spellings[0]

    def __str__(self) -> str:
        return self.asked


@dataclass(frozen=True, slots=True)
class Says:
    """Leaf: a field of the memory has this value; with `begins`, a value with this prefix."""

    asked: str
    field: str
    value: str
    begins: bool = False

    def __str__(self) -> str:
        return self.asked


@dataclass(frozen=True, slots=True)
class All:
    """Every part is true."""

    parts: tuple[Expression, ...]

    def __str__(self) -> str:
        return " AND ".join(f"({part})" if isinstance(part, Either) else str(part) for part in self.parts)


@dataclass(frozen=True, slots=True)
class Either:
    """At least one part is true."""

    parts: tuple[Expression, ...]

    def __str__(self) -> str:
        return " OR ".join(map(str, self.parts))


@dataclass(frozen=True, slots=True)
class Not:
    """The part is not true."""

    part: Expression

    def __str__(self) -> str:
        return f"NOT ({self.part})" if isinstance(self.part, All | Either) else f"NOT {self.part}"


Leaf = Holds | Begins | Says
Expression = Leaf | All | Either | Not


def valued(expression: Expression, leaf: Callable[[Leaf], T], negated: Callable[[T], T]) -> T:
    """Return the value of an expression from those of its leaves, which `&` and `|` put together."""
    match expression:
        case All(parts):
            return reduce(and_, (valued(part, leaf, negated) for part in parts))
        case Either(parts):
            return reduce(or_, (valued(part, leaf, negated) for part in parts))
        case Not(part):
            return negated(valued(part, leaf, negated))
        case _:
            return leaf(expression)


def rewritten(expression: Expression, leaf: Callable[[Leaf], Expression]) -> Expression:
    """Return the expression with every leaf put in the place of another."""
    match expression:
        case All(parts):
            return All(tuple(rewritten(part, leaf) for part in parts))
        case Either(parts):
            return Either(tuple(rewritten(part, leaf) for part in parts))
        case Not(part):
            return Not(rewritten(part, leaf))
        case _:
            return leaf(expression)


def wanted(expression: Expression, positive: bool = True) -> Iterator[Leaf]:
    """Yield the positive leaves: those under an even number of NOTs."""
    match expression:
        case All(parts) | Either(parts):
            for part in parts:
                yield from wanted(part, positive)
        case Not(part):
            yield from wanted(part, not positive)
        case _ if positive:
            yield expression


def refusal(expression: Expression, is_true: Callable[[Leaf], bool]) -> str | None:
    """Return the reason why an expression excludes a memory; None if it does not."""
    if valued(expression, is_true, lambda value: not value):
        return None
    return _said(expression, is_true)


def _said(expression: Expression, is_true: Callable[[Leaf], bool]) -> str:
    """Return the reason why an expression that is not true is not."""
    match expression:
        case All(parts):
            failing = (part for part in parts if refusal(part, is_true) is not None)
            return _said(next(failing), is_true)
        case Either(parts):
            return f"it holds neither of {', '.join(map(str, parts))}"
        case Not(part):
            return f"it holds {part}" if not isinstance(part, Says) else f"it is {part}"
        case Says():
            return f"it is not {expression}"
        case _:
            return f"it does not hold {expression}"
