"""The stages after fusion: small frozen values, each a function from a ranking to a ranking."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from ..errors import ConfigError, check_finite
from ..formatting import counted, which
from ..types.memory import SECONDS_PER_DAY, Memory, Notice
from ..types.query import label_of
from ..types.results import Context, Hit, Hits, Ranking, drop, in_order, keep, memory_of, rescore
from ..types.trail import TIER_STEP, TIERS, WINDOW_LIFT, Part, Step, name_tier, part_of

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping, Sequence

    from ..protocols import Reranker
    from ..types.memory import MemoryId
    from ..types.trail import NameMatch, NameRelation


class Stage(Protocol):
    """A small frozen value that turns a ranking into a ranking."""

    def __call__(self, ranking: Ranking, context: Context, /) -> Ranking:
        """Return the ranking after this stage."""


_OPENING = 8  # words; most texts that begin with the same ones are the same


def text_key(text: str) -> str:
    """Return the normal form of a text for equality: case-folded, with single spaces."""
    return " ".join(text.casefold().split())


def same_texts(memories: Sequence[Memory]) -> list[list[MemoryId]]:
    """Return groups of memories with the same text; an empty text equals no other.

    Long texts are folded only where they begin alike.
    """
    openings = [" ".join(memory.text.split(None, _OPENING)[:_OPENING]).casefold() for memory in memories]
    alike = [group for group in _grouped(openings, range(len(memories))) if openings[group[0]]]
    same = (_grouped([text_key(memories[place].text) for place in group], group) for group in alike)
    return [[memories[place].id for place in group] for groups in same for group in groups]


def _grouped(keys: Iterable[Hashable], places: Iterable[int]) -> list[list[int]]:
    """Return the places that have their key in common with another."""
    groups: dict[Hashable, list[int]] = {}
    for key, place in zip(keys, places, strict=True):
        groups.setdefault(key, []).append(place)
    return [group for group in groups.values() if len(group) > 1]


_INSIDE = frozenset({"in a sentence", "code"})  # relations of names inside the question
# Value of a partial name, before the share of the name it covers is added.
_PARTIAL: dict[NameRelation, float] = {"first words": 1.0, "all words": 0.8, "prefixes": 0.5}


@dataclass(frozen=True)
class NameFirst:
    """Exact names come first, by order and not by a bigger bonus; parts of names get a bounded one."""

    partial_bonus: float = 0.1
    covered_weight: float = 0.9
    sentence_bonus: float = 0.3
    min_sentence_share: float = 0.3

    def __post_init__(self) -> None:
        check_finite(self)

    def __call__(self, ranking: Ranking, context: Context) -> Ranking:
        """Lift hits whose name is the query, and add to those whose name is part of it."""
        if not context.names:
            return ranking
        whole_query_matched = any(match.relation not in _INSIDE for match in context.names.values())

        steps: dict[MemoryId, Sequence[Step]] = {}
        for identity, match in context.names.items():
            if match.relation in TIERS:
                steps[identity] = (_lifted(match),)
            elif match.relation in _PARTIAL:
                told = f"{match.relation} of {match.name!r}"
                steps[identity] = (Step("name", "add", self._partial(match), told),)
            elif not whole_query_matched:
                steps[identity] = self._in_sentence(match, context)
        return rescore(ranking, lambda identity: steps.get(identity, ()))

    def _partial(self, match: NameMatch) -> float:
        return self.partial_bonus * (_PARTIAL[match.relation] + self.covered_weight * match.covered)

    def _in_sentence(self, match: NameMatch, context: Context) -> Sequence[Step]:
        share = _idf_share(match, context)
        if share < self.min_sentence_share:
            return ()
        why = f"{match.name!r} is in the question, {share:.2f} of its weight"
        return (Step("name", "add", self.sentence_bonus * share, why),)


def _lifted(match: NameMatch, stage: str = "name") -> Step:
    tier = TIERS[match.relation] * TIER_STEP + match.specificity
    return Step(stage, "lift", tier, f"{match.relation}: {match.name!r}")


@dataclass(frozen=True)
class ExactName:
    """Memories whose name or slug is the query come first, by order; typos and partial names do not."""

    def __call__(self, ranking: Ranking, context: Context) -> Ranking:
        """Lift hits whose name is the query, ignoring case, punctuation and accents."""
        exact = {key: match for key, match in context.names.items() if match.relation in ("equal", "accents")}

        return rescore(ranking, lambda key: [_lifted(exact[key], "exact-name")] if key in exact else ())


def _idf_share(match: NameMatch, context: Context) -> float:
    """Return the share of the query's idf in the words of the name."""
    statistics = context.statistics
    if statistics is None:
        return 0.0
    terms = context.analysis.terms
    whole = statistics.mass(terms)
    return statistics.mass(term for term in terms if label_of(term) in match.words) / whole if whole else 0.0


@dataclass(frozen=True)
class Recency:
    """× (1 − w + w·2^(−age/half-life)): newer is better, within bounds; evergreen memories do not age."""

    half_life_days: float = 30.0
    weight: float = 0.2
    reads_memories = True

    def __post_init__(self) -> None:
        check_finite(self)
        if not self.half_life_days > 0 or not 0 <= self.weight <= 1:
            raise ConfigError(
                f"recency: half-life {self.half_life_days}, weight {self.weight}",
                "give a positive half-life and a weight from 0 to 1",
            )

    def __call__(self, ranking: Ranking, context: Context) -> Ranking:
        """Scale each dated hit by its age."""
        moment = context.query.where.moment

        def steps(identity: MemoryId) -> Sequence[Step]:
            memory = memory_of(context.memories[identity])
            if memory.evergreen or memory.date is None:
                return ()
            days = max(0.0, moment - memory.date) / SECONDS_PER_DAY
            factor = 1 - self.weight + self.weight * 2 ** (-days / self.half_life_days)
            told = f"{days:.0f} {which(round(days), 'day', 'days')} old, half-life {self.half_life_days:g}"
            return (Step("recency", "scale", factor, told),)

        return rescore(ranking, steps)


@dataclass(frozen=True)
class SameLanguage:
    """× (1 − w) for memories in another language than the query: of two translations one is meant.

    Both must show their languages; where neither script nor function words do, nothing is held against a memory.
    """

    weight: float = 0.2
    reads_languages = True

    def __post_init__(self) -> None:
        check_finite(self)
        if not 0 <= self.weight <= 1:
            raise ConfigError(f"language: weight {self.weight}", "give a weight from 0 to 1")

    def __call__(self, ranking: Ranking, context: Context) -> Ranking:
        """Scale each hit that is in another language."""
        if not context.languages:
            return ranking
        asked = context.analysis.shown_language

        steps = {
            identity: (Step("language", "scale", 1 - self.weight, f"in {language}, the question in {asked}"),)
            for identity, language in context.languages.items()
        }
        return rescore(ranking, lambda identity: steps.get(identity, ()))


@dataclass(frozen=True)
class Evidence:
    """Threshold filter: a hit stays if its cosine or its coverage passes; the fused score is not used.

    A hit lifted for its name stays. Without a threshold for coverage any matching word passes. Without any threshold
    those of the store's calibration apply, and nothing is dropped before there is one.
    """

    min_vector: float | None = None
    min_coverage: float | None = None

    def __post_init__(self) -> None:
        check_finite(self)

    def __call__(self, ranking: Ranking, context: Context) -> Ranking:
        """Drop hits whose every piece of evidence is below its threshold."""
        return keep(ranking, "evidence", self.calibrated(context)._reason)

    def calibrated(self, context: Context) -> Evidence:
        """Return the stage with the thresholds that count."""
        if self.min_vector is None and self.min_coverage is None:
            return Evidence(context.least.get("vector"), context.least.get("keyword"))
        return self

    def passes(self, cosine: float | None, coverage: float | None) -> bool:
        """Return whether one of the two reaches its threshold, or neither has both value and threshold."""
        if cosine is not None and self.min_vector is not None and cosine >= self.min_vector:
            return True
        if coverage is not None and coverage > 0 and coverage >= (self.min_coverage or 0.0):
            return True
        return (cosine is None or self.min_vector is None) and (coverage is None or self.min_coverage is None)

    def _reason(self, hit: Hit) -> str | None:
        vector, keyword = part_of(hit.trail, "vector"), part_of(hit.trail, "keyword")
        cosine, coverage = vector.raw if vector else None, keyword.coverage if keyword else None
        if name_tier(hit.tier) or self.passes(cosine, coverage):
            return None
        failed = []
        if cosine is not None and self.min_vector is not None:
            failed.append(f"cosine {cosine:.3f} is below {self.min_vector:.3g}")
        if coverage is not None and self.min_coverage is not None:
            failed.append(f"coverage {coverage:.3f} is below {self.min_coverage:.3g}")
        return ", ".join(failed)


@dataclass(frozen=True)
class MinScore:
    """A threshold on the fused score: the field's failure 8, here to be shown, not used."""

    at_least: float = 0.35

    def __post_init__(self) -> None:
        check_finite(self)

    def __call__(self, ranking: Ranking, context: Context) -> Ranking:
        """Drop hits below the threshold."""
        return keep(
            ranking,
            "min-score",
            lambda hit: None if hit.score >= self.at_least else f"score {hit.score:.3f} is below {self.at_least:g}",
        )


@dataclass(frozen=True)
class OpenClawSelection:
    """Filter of rows by score or cosine, with exceptions for keyword matches.

    Rows whose score or cosine reaches the minimum stay. Of the other keyword matches these stay: all of them if no
    score reaches the minimum, those that the vector run did not list, and the chunks of a note that alone holds a word
    of the query.
    """

    min_score: float = 0.35

    def __post_init__(self) -> None:
        check_finite(self)

    def __call__(self, ranking: Ranking, context: Context) -> Ranking:
        """Drop the rest; a row kept for another reason than its score gets a note with it."""
        none_passes = not any(hit.score >= self.min_score for hit in ranking.hits)
        holders = _holders(ranking.hits)
        kept: list[Hit] = []
        gone: list[Hit] = []
        for hit in ranking.hits:
            if hit.score >= self.min_score:
                kept.append(hit)
                continue
            stays = self._pardon(hit, holders, none_passes)
            step = Step("openclaw-selection", "note" if stays else "drop", why=stays or self._reason(hit))
            (kept if stays else gone).append(hit.after(step))
        return Ranking(tuple(kept), Hits.of(ranking.dropped).joined(gone), ranking.notices)

    def _pardon(self, hit: Hit, holders: Mapping[str, set[object]], none_passes: bool) -> str | None:
        """Return the reason why a row stays though its score is too low, or None."""
        keyword, vector = part_of(hit.trail, "keyword"), part_of(hit.trail, "vector")
        if vector is not None and vector.raw is not None and vector.raw >= self.min_score:
            return f"cosine {vector.raw:.3f} reaches {self.min_score:g}"
        if keyword is None or keyword.rank is None:
            return None
        if none_passes:
            return f"its words match, and no score reaches {self.min_score:g}"
        if vector is None or vector.rank is None:
            return "its words match, and the vector run did not find it"
        alone = next((word for word in _words(keyword) if len(holders[word]) == 1), None)
        return None if alone is None else f"no other memory contains {alone or 'a word of the query'}"

    def _reason(self, hit: Hit) -> str:
        keyword = part_of(hit.trail, "keyword")
        backed = keyword is not None and keyword.rank is not None
        return f"score {hit.score:.3f} is below {self.min_score:g}" + ("" if backed else ", and no keyword matches")


def _holders(hits: Sequence[Hit]) -> Mapping[str, set[object]]:
    """Return the notes that hold each word of the query."""
    holders: dict[str, set[object]] = {}
    for hit in hits:
        keyword = part_of(hit.trail, "keyword")
        for word in _words(keyword) if keyword else ():
            holders.setdefault(word, set()).add(hit.held.origin)
    return holders


def _words(keyword: Part) -> Sequence[str]:
    """Return the query's words that a row holds; without term data, one unknown word if it is listed."""
    if not keyword.terms:
        return [""] if keyword.rank is not None else []
    return [term.term for term in keyword.terms if term.field == "words" and term.context != "window"]


@dataclass(frozen=True)
class Dedup:
    """Deduplication: of memories with the same text, the best placed stays and represents the rest.

    With `near`, memories of at least that similarity (by vectors, else by words) count as the same.
    """

    near: float | None = None
    reads_memories = True

    def __post_init__(self) -> None:
        if self.near is not None and not 0 < self.near <= 1:
            raise ConfigError(f"near is {self.near}", "give a likeness above 0 and up to 1; 0.95 is usual")

    @property
    def reads_likeness(self) -> bool:
        """Return whether memories are compared."""
        return self.near is not None

    def __call__(self, ranking: Ranking, context: Context) -> Ranking:
        """Drop hits with an equal case-folded text; on equal keys the newer, then the keyword's row stays."""
        hits = ranking.hits
        twins = same_texts([hit.memory for hit in hits])
        if not twins and self.near is None:
            return ranking
        same: dict[MemoryId, MemoryId] = {}
        by_id = {hit.id: hit for hit in hits}
        for group in twins:
            best = min(map(by_id.__getitem__, group), key=_representative).id
            same.update({identity: best for identity in group if identity != best})
        near = self._near([hit for hit in hits if hit.id not in same], context)

        def reason(hit: Hit) -> str | None:
            return f"same text as {same[hit.id]}" if hit.id in same else near.get(hit.id)

        return keep(ranking, "dedup", reason)

    def _near(self, hits: Sequence[Hit], context: Context) -> dict[MemoryId, str]:
        """Return the near-duplicates among these, each with the better placed memory that stays."""
        if self.near is None or context.likeness is None:
            return {}
        ids = [hit.id for hit in sorted(hits, key=_representative)]
        likeness = context.likeness.between(ids)
        gone: dict[MemoryId, str] = {}
        for place, kept in enumerate(ids):
            if kept in gone:
                continue
            alike = likeness[place]
            for later in range(place + 1, len(ids)):
                if alike[later] >= self.near:
                    gone.setdefault(ids[later], f"{alike[later]:.3f} like {kept}")
        return gone


def _representative(hit: Hit) -> tuple[int, float, float, bool, tuple[str, int, str, str]]:
    keyword = part_of(hit.trail, "keyword")
    listed = keyword is not None and keyword.rank is not None
    return -hit.tier, -hit.score, -(hit.memory.date or 0.0), not listed, hit.memory.content_key


@dataclass(frozen=True)
class InScope:
    """Guard behind the store's own scope filter: should never fire; reports without content if it does."""

    def __call__(self, ranking: Ranking, context: Context) -> Ranking:
        """Remove foreign hits unlisted."""
        scopes = context.query.where.scopes
        inside = tuple(hit for hit in ranking.hits if hit.memory.scope in scopes)
        foreign = len(ranking.hits) - len(inside)
        if not foreign:
            return ranking
        removed = f"removed {counted(foreign, 'candidate')} from outside the scope; please report this"
        notice = Notice("scope-defect", removed)
        return Ranking(inside, ranking.dropped, (*ranking.notices, notice))


@dataclass(frozen=True)
class Superseded:
    """Guard behind the store's own filter: drops replaced memories unless the query includes them."""

    def __call__(self, ranking: Ranking, context: Context) -> Ranking:
        """Drop replaced memories."""
        return keep(ranking, "superseded", lambda hit: context.query.where.replaced(hit.memory))


@dataclass(frozen=True)
class NotExpired:
    """Guard behind the store's own filter: drops memories not valid at the moment of the query."""

    def __call__(self, ranking: Ranking, context: Context) -> Ranking:
        """Drop memories that have expired, are not valid, or were not stored yet."""
        return keep(ranking, "expiry", lambda hit: context.query.where.untimely(hit.memory))


@dataclass(frozen=True)
class GroupBySource:
    """Grouping by file: the best chunks stay, the others are listed under them; not for turns or facts."""

    max_per_file: int = 1

    def __post_init__(self) -> None:
        if self.max_per_file < 1:
            raise ConfigError(f"max_per_file is {self.max_per_file}", "give 1 or more")

    def __call__(self, ranking: Ranking, context: Context) -> Ranking:
        """Keep the best chunks of each file."""
        hits = Hits.of(ranking.hits)
        origins = [hits.candidates.origins[place] for place in hits.places]
        if len({*origins}) == len(origins):
            return ranking
        ids, shown = hits.ids, dict[object, list[int]]()
        behind: dict[int, MemoryId] = {}  # the shown hit that each hidden one stands under
        beside: dict[MemoryId, list[int]] = {key: [*places] for key, places in hits.beside.items()}
        for number, origin in enumerate(origins):
            taken = shown.setdefault(origin, [])
            if len(taken) < self.max_per_file:
                taken.append(number)
            else:
                first = behind[number] = ids[taken[0]]
                beside.setdefault(first, []).append(hits.places[number])
        grouped = Ranking(hits.pick(range(len(origins)), beside), ranking.dropped, ranking.notices)
        return drop(grouped, "group", lambda number: f"same file as {behind[number]}, which ranks higher", [*behind])


@dataclass(frozen=True)
class Top:
    """Page of the results: `limit` hits after `offset`."""

    limit: int = 6
    offset: int = 0

    def __call__(self, ranking: Ranking, context: Context) -> Ranking:
        """Cut the page; the trails of hits beyond it keep their rank in the reason."""
        count = len(ranking.hits)
        beyond = [*range(min(self.offset, count)), *range(self.offset + self.limit, count)]
        return drop(ranking, "top", lambda number: f"ranked {number + 1}, and {self._asked()}", beyond)

    def _asked(self) -> str:
        first, last = self.offset + 1, self.offset + self.limit
        if last < first:
            return "no results were asked for"
        return f"results {first} to {last} were asked for" if first < last else f"result {first} was asked for"


WINDOW = 50  # memories; a small cross-encoder reads so many in about half a second of CPU
DEADLINE_MS = 1_000.0
MAX_DEADLINE_MS = 86_400_000.0  # a day


@dataclass(frozen=True)
class Rerank:
    """Order of the `top` first hits by a reranker's scores; names stay first, the window above the rest.

    The reranker runs before ranking, and its scores are in the context. Without them (it was late, it failed) the order
    stays as it is.
    """

    reranker: Reranker | None = None
    top: int = WINDOW
    deadline_ms: float = DEADLINE_MS

    def __post_init__(self) -> None:
        if self.top < 1 or not 0 < self.deadline_ms <= MAX_DEADLINE_MS:
            raise ConfigError(
                f"rerank: top {self.top}, deadline {self.deadline_ms} ms",
                "give 1 or more, and a deadline of at most a day",
            )

    def __call__(self, ranking: Ranking, context: Context) -> Ranking:
        """Set the score of reranked hits to the reranker's, and lift them above the others."""
        opinions = context.opinions
        if not opinions:
            return ranking
        read = [hit.id for hit in ranking.hits if hit.id in opinions]
        scores = _falling(sorted(read, key=lambda key: -opinions[key]), opinions)
        places = {key: place for place, key in enumerate(scores, 1)}

        def opined(hit: Hit) -> Hit:
            if hit.id not in scores:
                return hit
            told = f"{places[hit.id]} of {len(places)} by {self.reranker!r}"
            return hit.after(Step("rerank", "set", scores[hit.id], told)).after(
                Step("rerank", "lift", WINDOW_LIFT, "reranked hits come before the others")
            )

        return Ranking(in_order([*map(opined, ranking.hits)]), ranking.dropped, ranking.notices)


def _falling(ordered: Sequence[MemoryId], opinions: Mapping[MemoryId, float]) -> dict[MemoryId, float]:
    """Return the scores, ties separated by the least float step: hits of equal score keep their order."""
    scores: dict[MemoryId, float] = {}
    above = math.inf
    for identity in ordered:
        above = scores[identity] = min(opinions[identity], math.nextafter(above, -math.inf))
    return scores
