"""A calibration: where a store's evidence begins to mean something, as it was measured and is kept.

`calibrating` measures it; searches only read it, and read it every time, so it is one small text in the store.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import NamedTuple

from ..ports import Store, Thresholds
from ..types import GLOBAL, Notice, Scope
from ..wording import counted, which

MIN_MEMORIES = 20  # fewer say nothing about what chance finds among them
GROWTH_BEFORE_REFRESH = 2.0
_FORMAT = 2  # raised whenever evidence is added up in another way: what was measured in the old one says nothing
_KIND = "calibration"
_ALWAYS = ("coverage", "words")  # bars that every calibration has
_PREFIX = json.dumps([_KIND])[:-1]  # how the names of their notes begin


class Bar(NamedTuple):
    """Thresholds of one kind of evidence; what of the own questions is kept by `weak`, what of the foreign rejected."""

    weak: float
    found: float
    kept: float
    rejected: float

    @property
    def thresholds(self) -> Thresholds:
        """Return the two thresholds."""
        return Thresholds(self.weak, self.found)


@dataclass(frozen=True, slots=True)
class Calibration:
    """What was measured for one set of visible scopes and one embedding space; no bar where no vector spoke.

    Cosine and coverage each by itself say which hits may be dropped; `words` is the evidence of words alone, `both`
    that of words and vectors: what verdicts rest on.
    """

    space: str
    scopes: tuple[str, ...]
    memories: int
    made: float
    own: int
    foreign: int
    languages: tuple[str, ...]
    coverage: Bar
    words: Bar
    cosine: Bar | None = None
    both: Bar | None = None

    def is_outgrown(self, memories: int) -> bool:
        """Tell whether a store has so many memories more, or less, that it should be measured again."""
        return not self.memories / GROWTH_BEFORE_REFRESH < memories < self.memories * GROWTH_BEFORE_REFRESH

    @property
    def least(self) -> dict[str, float]:
        """Return what each signal alone must say to count, by the name of the signal."""
        bars = {"vector": self.cosine, "keyword": self.coverage}
        return {signal: bar.weak for signal, bar in bars.items() if bar is not None}


def keep_calibration(store: Store, made: Calibration) -> None:
    """Write a calibration down, in place of the one before."""
    store.put_note(_name(made.space, made.scopes), json.dumps({**asdict(made), "format": _FORMAT}))


def calibration_for(store: Store, space: str, scopes: frozenset[Scope], memories: int) -> Calibration | None:
    """Return the calibration of what a caller may see, or of most of it: few memories more change little."""
    for place, name in enumerate(_names_for(space, scopes)):
        text = store.note(name)
        found = _read(text) if text is not None else None
        if found is not None and (not place or not found.is_outgrown(memories)):
            return found
    return None


def calibrations_in(store: Store, space: str) -> list[Calibration]:
    """Return all calibrations of a space, by their scopes."""
    read = (_read(text) for text in store.notes(_PREFIX).values())
    return sorted((c for c in read if c is not None and c.space == space), key=lambda c: c.scopes)


def notes_about(store: Store, scope: Scope) -> list[str]:
    """Return the names of the notes that were taken over memories of a scope, by whatever version."""
    return [name for name in store.notes(_PREFIX) if str(scope) in _scopes_of(name)]


def calibrated_owners(store: Store) -> list[Scope]:
    """Return whose memories have been calibrated in any space, by whatever version, and everybody's."""
    named = {Scope.parse(scope) for name in store.notes(_PREFIX) for scope in _scopes_of(name)}
    return sorted({GLOBAL, *named})


def is_due(store: Store, space: str, scopes: frozenset[Scope]) -> bool:
    """Tell whether these scopes have enough memories to be calibrated and have not been, or have outgrown it."""
    memories = store.statistics((), scopes).total
    known = calibration_for(store, space, scopes, memories)
    return memories >= MIN_MEMORIES and (known is None or known.is_outgrown(memories))


def notices_about(calibration: Calibration | None, memories: int) -> tuple[Notice, ...]:
    """Say what confidence rests on where it is not a calibration of these memories."""
    if calibration is None and memories < MIN_MEMORIES:
        held = counted(memories, "memory is", "memories are")
        text = f"confidence rests on default thresholds: {held} too few to calibrate by"
        return (Notice("few-memories", text),)
    if calibration is None:
        text = "confidence rests on default thresholds; `whyrank calibrate` fits them to these memories"
        return (Notice("uncalibrated", text),)
    if calibration.is_outgrown(memories):
        then = counted(calibration.memories, "memory", "memories")
        now = f"now there {which(memories, 'is', 'are')} {memories}"
        text = f"calibrated over {then}, {now}; `whyrank calibrate` renews it"
        return (Notice("calibration-old", text),)
    return ()


@lru_cache(maxsize=4096)
def _names_for(space: str, scopes: frozenset[Scope]) -> tuple[str, ...]:
    """Return the name of the note about these scopes, and the names of those about what is lasting or everybody's."""
    lasting = frozenset(scope for scope in scopes if scope.kind != "session")
    parts = dict.fromkeys((scopes, lasting, frozenset({GLOBAL})))
    return tuple([_name(space, sorted(map(str, part))) for part in parts])


def _name(space: str, scopes: Sequence[str]) -> str:
    return json.dumps([_KIND, space, list(scopes)])


def _scopes_of(name: str) -> list[str]:
    """Read the scopes off the name of a note; what is named otherwise has none."""
    try:
        _, _, scopes = json.loads(name)
        return [str(scope) for scope in scopes]
    except (ValueError, TypeError):
        return []


@lru_cache(maxsize=4096)
def _read(text: str) -> Calibration | None:
    """Read a calibration; what another version wrote in another shape is none."""
    try:
        data = json.loads(text)
        if data.pop("format") != _FORMAT:
            return None
        for name in ("coverage", "words", "cosine", "both"):
            data[name] = _bar(data[name]) if data[name] is not None or name in _ALWAYS else None
        if not isinstance(data["memories"], int) or not math.isfinite(data["made"]):
            return None
        return Calibration(**{**data, "scopes": tuple(data["scopes"]), "languages": tuple(data["languages"])})
    except (ValueError, TypeError, KeyError, AttributeError):
        return None


def _bar(stored: list[float]) -> Bar:
    """Read thresholds; such as nobody measures were damaged."""
    bar = Bar(*stored)
    if not all(map(math.isfinite, bar)) or not 0.0 < bar.weak < bar.found:
        raise ValueError("thresholds that make no sense")
    return bar
