"""Calibrations: the thresholds of evidence, as measured and stored."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import NamedTuple

from ..formatting import counted, which
from ..protocols import Store, Thresholds
from ..types.memory import GLOBAL, Notice, Scope

MIN_MEMORIES = 20  # with fewer, the scores of chance matches are not representative
GROWTH_BEFORE_REFRESH = 2.0
_FORMAT = 3  # raised whenever evidence is summed in another way: measurements in an old format are not comparable
_KIND = "calibration"
_ALWAYS = ("coverage", "words")  # bars that every calibration has
_PREFIX = json.dumps([_KIND])[:-1]  # how the names of their notes begin


class Cutoffs(NamedTuple):
    """Thresholds of one kind of evidence, with the shares of own questions kept and foreign ones rejected."""

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
    """Thresholds measured for some visible scopes and one embedding space; no cosine bar without vectors.

    The bars for cosine and coverage alone decide which hits may be dropped. Verdicts use `words`, the evidence of words
    alone, and `both`, that of words and vectors. `floor` is the cosine of unrelated texts, where the embedder declares
    none.
    """

    space: str
    scopes: tuple[str, ...]
    memories: int
    made: float
    own: int
    foreign: int
    languages: tuple[str, ...]
    coverage: Cutoffs
    words: Cutoffs
    cosine: Cutoffs | None = None
    both: Cutoffs | None = None
    floor: float | None = None

    def is_outgrown(self, memories: int) -> bool:
        """Return whether the number of memories has changed so much that the store needs a new calibration."""
        return not self.memories / GROWTH_BEFORE_REFRESH < memories < self.memories * GROWTH_BEFORE_REFRESH

    @property
    def least(self) -> dict[str, float]:
        """Return the minimum value at which each signal alone counts as evidence, by signal name."""
        bars = {"vector": self.cosine, "keyword": self.coverage}
        return {signal: bar.weak for signal, bar in bars.items() if bar is not None}


def keep_calibration(store: Store, made: Calibration) -> None:
    """Write a calibration down, in place of the one before."""
    store.put_note(_name(made.space, made.scopes), json.dumps({**asdict(made), "format": _FORMAT}))


def calibration_for(store: Store, space: str, scopes: frozenset[Scope], memories: int) -> Calibration | None:
    """Return the calibration of the visible scopes, or of most of them: a few more memories change little."""
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
    """Return the scopes calibrated in any space, by any version, and the global scope."""
    named = {Scope.parse(scope) for name in store.notes(_PREFIX) for scope in _scopes_of(name)}
    return sorted({GLOBAL, *named})


def is_due(store: Store, space: str, scopes: frozenset[Scope]) -> bool:
    """Return whether these scopes have enough memories and no calibration, or an outgrown one."""
    memories = store.statistics((), scopes).total
    known = calibration_for(store, space, scopes, memories)
    return memories >= MIN_MEMORIES and (known is None or known.is_outgrown(memories))


def notices_about(calibration: Calibration | None, memories: int) -> tuple[Notice, ...]:
    """Return notices about default thresholds or an outdated calibration."""
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
    """Return the note names for these scopes, for them without sessions, and for the global scope."""
    lasting = frozenset(scope for scope in scopes if scope.kind != "session")
    parts = dict.fromkeys((scopes, lasting, frozenset({GLOBAL})))
    return tuple([_name(space, sorted(map(str, part))) for part in parts])


def _name(space: str, scopes: Sequence[str]) -> str:
    return json.dumps([_KIND, space, list(scopes)])


def _scopes_of(name: str) -> list[str]:
    """Parse the scopes in the name of a note; a name in another format has none."""
    try:
        _, _, scopes = json.loads(name)
        return [str(scope) for scope in scopes]
    except (ValueError, TypeError):
        return []


@lru_cache(maxsize=4096)
def _read(text: str) -> Calibration | None:
    """Parse a calibration; None if another version wrote it in another format."""
    try:
        data = json.loads(text)
        if data.pop("format") != _FORMAT:
            return None
        for name in ("coverage", "words", "cosine", "both"):
            data[name] = _bar(data[name]) if data[name] is not None or name in _ALWAYS else None
        if not isinstance(data["memories"], int) or not math.isfinite(data["made"]):
            return None
        if data["floor"] is not None and not -1.0 <= data["floor"] < 1.0:
            return None
        return Calibration(**{**data, "scopes": tuple(data["scopes"]), "languages": tuple(data["languages"])})
    except (ValueError, TypeError, KeyError, AttributeError):
        return None


def _bar(stored: list[float]) -> Cutoffs:
    """Parse thresholds; values that no measurement produces mean a damaged note."""
    bar = Cutoffs(*stored)
    if not all(map(math.isfinite, bar)) or not 0.0 < bar.weak < bar.found:
        raise ValueError("thresholds that make no sense")
    return bar
