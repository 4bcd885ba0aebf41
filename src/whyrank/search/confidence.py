"""Evidence, confidence and verdict."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from ..formatting import counted, which
from ..protocols import Embedder, Store, Thresholds
from ..types.memory import GLOBAL, MemoryId, Notice, Scope
from ..types.query import label_of
from ..types.results import Context, Ranking, column_of, split_dropped
from ..types.trail import EXACT_TIER, Step, name_tier

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from ..types.query import Analysis, Verdict

MOST_COVERAGE_COUNTS = 2.0  # times the cosine, in a question of very many words
WORDS_AT_HALF = 2  # with so many it counts half of that, which is as much as the cosine


def coverage_counts(analysis: Analysis) -> float:
    """Return the weight of coverage relative to the cosine."""
    words = sum(len(label_of(term).split(" ")) for term in analysis.terms)  # a phrase has several
    return max(1.0, MOST_COVERAGE_COUNTS * words / (words + WORDS_AT_HALF))


class Weighing(NamedTuple):
    """Formula that sums the evidence of one query.

    Where the query holds codes that no memory contains, evidence counts only for the rest of the query. A memory that
    holds the only word of the query gets the least evidence above zero: no memory could match more with that word.
    """

    coverage_counts: float
    rest: float = 1.0  # the share of the query without the codes that no memory holds
    least: float = 0.0
    floor: float = 0.0  # the cosine of a memory that has no vector yet: that of unrelated texts
    codes: tuple[str, ...] = ()  # that no memory holds

    @classmethod
    def of(cls, context: Context, weak: float, floor: float = 0.0) -> Weighing:
        """Return the formula for the query of a context, with `weak` as the threshold of weak evidence."""
        analysis, unheld = context.analysis, context.unheld
        is_one_word = len(analysis.terms) == 1 and not analysis.dates and unheld is None
        rest, codes = (1.0, ()) if unheld is None else (1.0 - unheld.share, unheld.codes)
        return cls(coverage_counts(analysis), rest, weak if is_one_word else 0.0, max(0.0, floor), codes)

    def evidence(self, said: Iterable[tuple[float | None, float | None]]) -> list[float]:
        """Add up the cosine and the coverage of each of some memories, where they have them, each at least 0."""
        counts, rest, least, floor, _ = self
        sums: list[float] = []
        for cosine, coverage in said:  # conditions, as `max` costs as much as all the rest
            near = floor if cosine is None else cosine if cosine > 0.0 else 0.0
            found, lowest = rest * (near + counts * (coverage or 0.0)), least if coverage else 0.0
            sums.append(found if found > lowest else lowest)
        return sums

    def formula(self, has_cosines: bool) -> str:
        """Return the formula of the evidence as text."""
        covered = "coverage" if self.coverage_counts == 1.0 else f"{self.coverage_counts:.3g} × coverage"
        summed = f"cosine + {covered}" if has_cosines else covered
        if not self.codes:
            return summed
        return f"({summed}) × {self.rest:.2f}, because no memory contains {', '.join(self.codes)},"


# Words alone, where there is no embedder: the 70 % and 92 % quantiles of foreign questions in stores of 22 to 45 files
# out of four sets are 0.10 to 0.21 and 0.17 to 0.26; larger stores are calibrated.
COVERAGE_THRESHOLDS = Thresholds(weak=0.15, found=0.25)

CONFIDENCE_AT_WEAK = 0.2
CONFIDENCE_AT_FOUND = 0.8
# The last numbers below: rounding must not lift a confidence to a verdict that its evidence does not reach.
_BELOW_WEAK = math.nextafter(CONFIDENCE_AT_WEAK, 0.0)
_BELOW_FOUND = math.nextafter(CONFIDENCE_AT_FOUND, 0.0)
CONFIDENCE_IN_A_SLIP = 0.5  # a name with a letter or two mistyped: likely meant, not certain

SURE = "min-confidence"  # the stage that drops hits which are not confident enough
# Another page, another chunk of a file, no budget left, not confident enough for this caller.
_STILL_ANSWERS = frozenset({"top", "group", "budget", SURE})


class Judgement(NamedTuple):
    """Ranking with confidences, the verdict, its evidence, and the formula of the evidence."""

    ranking: Ranking
    verdict: Verdict
    evidence: float
    weighing: Weighing


class Beside(NamedTuple):
    """Cosines of an additional model for memories in another language, with its weak and found thresholds."""

    name: str
    cosines: Mapping[MemoryId, float]
    thresholds: Thresholds


def judge(
    ranking: Ranking,
    embedder: Embedder | None,
    context: Context,
    calibration: Calibration | None = None,
    beside: Beside | None = None,
) -> Judgement:
    """Give every hit its confidence, and the answer its verdict."""
    # Hits dropped by these stages answer the query all the same, so that the verdict does not depend on the page.
    dropped = split_dropped(ranking.dropped, _STILL_ANSWERS)
    ids = [*(hit.id for hit in ranking.hits), *dropped.ids]
    # A model that cannot read the script gives all texts similar vectors: its cosines are no evidence.
    is_blind = embedder is not None and embedder.weight(context.analysis.language) == 0
    vectors, words = context.signals.get("vector"), context.signals.get("keyword")
    cosines = vectors.values if vectors is not None and not is_blind else {}
    coverages = words.coverage if words is not None else {}
    said = [*zip(column_of(cosines, ids), column_of(coverages, ids), strict=True)]
    # Without any vector score (no embedder, a failed one, a recipe of words), coverage is the only evidence.
    has_cosines = any(cosine is not None for cosine, _ in said)
    floor = (vectors.floor or 0.0) if vectors is not None and has_cosines else 0.0
    speaking = embedder if has_cosines else None
    thresholds = COVERAGE_THRESHOLDS if speaking is None else speaking.thresholds
    if calibration is not None and (bar := calibration.words if speaking is None else calibration.both) is not None:
        thresholds = Thresholds(bar.weak, bar.found)
    weighing = Weighing.of(context, thresholds.weak, floor)
    curve = _curve(thresholds, weighing, has_cosines)
    own = evident = weighing.evidence(said)
    if beside is not None:
        other = _curve(beside.thresholds, None, False)
        rescaled = {key: other.rescaled(thresholds, max(0.0, cosine)) for key, cosine in beside.cosines.items()}
        evident = [max(one, rescaled.get(identity, 0.0)) for one, identity in zip(own, ids, strict=True)]
    shown = []
    for hit, alone, found in zip(ranking.hits, own, evident, strict=False):  # the shown hits come first
        note = curve.note(found, hit.tier, beside.name if beside is not None and found > alone else "")
        shown.append(hit._replace(trail=(*hit.trail, note), confidence=note.value))
    # The verdict is that of the best hit, so that it cannot contradict the confidences of the hits.
    best = max(evident, default=0.0)
    tier = name_tier(max((*(hit.tier for hit in ranking.hits), *dropped.tiers), default=0))
    verdict: Verdict = "nothing"
    if said and (best >= thresholds.found or tier >= EXACT_TIER):
        verdict = "found"
    elif said and (best >= thresholds.weak or tier):
        verdict = "weak"
    return Judgement(replace(ranking, hits=tuple(shown)), verdict, best, weighing)


class _Curve:
    """Confidence over evidence: 20 % at weak, 80 % at found, linear up to there, then 1 − 20 % · found/e.

    A logistic curve through the thresholds puts five hits of six below 5 % or above 95 %.
    """

    def __init__(self, thresholds: Thresholds, measured: str, least: float) -> None:
        self._measured = measured
        self._least = least
        self._weak, self._found = thresholds
        self._scale = f"weak from {thresholds.weak:.3g}, found from {thresholds.found:.3g}"

    def rescaled(self, thresholds: Thresholds, found: float) -> float:
        """Return the evidence that has the same confidence by other thresholds."""
        if found >= self._found:
            return thresholds.found * found / self._found
        if found <= self._weak:
            return thresholds.weak * found / self._weak
        share = (found - self._weak) / (self._found - self._weak)
        return thresholds.weak + share * (thresholds.found - thresholds.weak)

    def note(self, found: float, tier: int, added: str = "") -> Step:
        """Return the trail step that explains the confidence of a hit."""
        tier = name_tier(tier)
        if tier >= EXACT_TIER:
            return Step("confidence", "note", 1.0, "100%, its name is the query")
        if found >= self._found:
            confidence = 1.0 - (1.0 - CONFIDENCE_AT_FOUND) * self._found / found
        elif found < self._weak:
            confidence = min(CONFIDENCE_AT_WEAK * found / self._weak, _BELOW_WEAK)
        else:
            share = (found - self._weak) / (self._found - self._weak)
            confidence = min(CONFIDENCE_AT_WEAK + share * (CONFIDENCE_AT_FOUND - CONFIDENCE_AT_WEAK), _BELOW_FOUND)
        confidence = max(confidence, CONFIDENCE_IN_A_SLIP) if tier else confidence
        measured = f"{self._measured} = {found:.3f}"
        if found == self._least > 0:
            measured = f"{self._measured} is less than {found:.3f}, but it contains the only word of the query"
        if added:
            measured = f"the cosine of {added} counts {found:.3f}"
        reason = f"{confidence:.0%}, {measured}; {self._scale}"
        return Step("confidence", "note", confidence, reason)


@lru_cache(maxsize=64)
def _curve(thresholds: Thresholds, weighing: Weighing | None, has_cosines: bool) -> _Curve:
    """Cache curves: a store has one or two for each number of words."""
    if weighing is None:
        return _Curve(thresholds, "", 0.0)
    return _Curve(thresholds, weighing.formula(has_cosines), weighing.least)


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


def keep_calibration(store: Store, made: Calibration) -> None:
    """Write a calibration down, in place of the one before."""
    store.put_note(_name(made.space, made.scopes), json.dumps({**asdict(made), "format": _FORMAT}))


def calibration_for(
    note: Callable[[str], str | None], space: str, scopes: frozenset[Scope], memories: int
) -> Calibration | None:
    """Return the calibration of the visible scopes, or of most of them: a few more memories change little."""
    for place, name in enumerate(note_names(space, scopes)):
        text = note(name)
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


def notes_within(store: Store, scopes: frozenset[Scope]) -> list[str]:
    """Return the names of the notes that were taken over memories of these scopes alone, or with global ones."""
    named = {str(scope) for scope in scopes}
    calibrated = ((name, {*_scopes_of(name)}) for name in store.notes(_PREFIX))
    return [name for name, over in calibrated if over & named and over <= named | {str(GLOBAL)}]


def calibrated_owners(store: Store) -> list[Scope]:
    """Return the scopes calibrated in any space, by any version, and the global scope."""
    named = {Scope.parse(scope) for name in store.notes(_PREFIX) for scope in _scopes_of(name)}
    return sorted({GLOBAL, *named})


def is_due(store: Store, space: str, scopes: frozenset[Scope]) -> bool:
    """Return whether these scopes have enough memories and no calibration, or an outgrown one."""
    memories = sum(store.readers(scopes).values())
    known = calibration_for(store.note, space, scopes, memories)
    return memories >= MIN_MEMORIES and (known is None or known.is_outgrown(memories))


def notices_about(calibration: Calibration | None, memories: int) -> tuple[Notice, ...]:
    """Return notices about default thresholds or an outdated calibration."""
    if calibration is None and memories < MIN_MEMORIES:
        held = counted(memories, "memory is", "memories are")
        text = f"confidence uses default thresholds: {held} too few to calibrate by"
        return (Notice("few-memories", text),)
    if calibration is None:
        text = "confidence uses default thresholds; `whyrank calibrate` measures them on these memories"
        return (Notice("uncalibrated", text),)
    if calibration.is_outgrown(memories):
        then = counted(calibration.memories, "memory", "memories")
        now = f"now there {which(memories, 'is', 'are')} {memories}"
        text = f"calibrated over {then}, {now}; `whyrank calibrate` renews it"
        return (Notice("calibration-old", text),)
    return ()


@lru_cache(maxsize=4096)
def note_names(space: str, scopes: frozenset[Scope]) -> tuple[str, ...]:
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
