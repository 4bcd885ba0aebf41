"""Small generated worlds: memories, runs over them, and what stages may read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hypothesis import strategies as st

from whyrank.analysis.document import content_hash
from whyrank.analysis.names import name_words
from whyrank.analysis.query import analyse
from whyrank.ranking.boosts import PRESETS, Base, Importance, TokenGate, TokenMatch
from whyrank.ranking.diversity import MMR, Similarity
from whyrank.ranking.fusion import (
    Above,
    AboveFloor,
    Absent,
    AgainstMass,
    Atan,
    BatchMax,
    DistributionBased,
    Fuse,
    MinMax,
    Normaliser,
    ReciprocalRank,
    Saturating,
    Sigmoid,
    Theoretical,
    Vote,
)
from whyrank.ranking.recipes import Recipe
from whyrank.ranking.stages import (
    Dedup,
    Evidence,
    ExactName,
    GroupBySource,
    InScope,
    NameFirst,
    NotExpired,
    OpenClawSelection,
    Recency,
    Rerank,
    SameLanguage,
    Superseded,
)
from whyrank.testing.fakes import SharedWords, WordDirections
from whyrank.types.memory import GLOBAL, Memory, Scope, Source
from whyrank.types.query import Plan, Query, Statistics, Where
from whyrank.types.results import Candidate, Context, Labels, Run, Signal
from whyrank.types.trail import NameMatch, TermValue

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from whyrank.ranking.stages import Stage

NOW = 1_700_000_000.0
DAY = 86_400.0
ANN, BOB = Scope("user", "ann"), Scope("user", "bob")
SEEN = frozenset({GLOBAL, ANN})
WORDS = ("tea", "téa", "milk", "green", "pot", "oil", "engine", "remind", "note", "E-47")
NAMES = ("", "", "Remind Me", "Tea Pot", "note")

words = st.lists(st.sampled_from(WORDS), min_size=1, max_size=6).map(" ".join)
scopes = st.sampled_from([GLOBAL, ANN, BOB])
queries = st.one_of(
    words, st.sampled_from(["Remind Me", "rémind me", "remnd me", "tea pot", "what is E47, the tea?", "E-48 oil", ""])
)


@st.composite
def memories(draw: st.DrawFn, identity: str) -> Memory:
    text = draw(words)
    path = draw(st.sampled_from(["", "", "a.md", "b.md"]))
    line = draw(st.integers(1, 50))
    return Memory(
        id=identity,
        text=text,
        kind="chunk" if path else "fact",
        name=draw(st.sampled_from(NAMES)),
        scope=draw(scopes),
        source=Source(path, line if path else 0, line if path else 0, content_hash(text)),
        created=NOW - DAY,
        date=draw(st.one_of(st.none(), st.floats(NOW - 400 * DAY, NOW + 2 * DAY))),
        evergreen=draw(st.booleans()),
        superseded_by=draw(st.sampled_from([None, None, None, "m_0"])),
        superseded_at=NOW - 1,
        expires=draw(st.sampled_from([None, None, None, NOW - 5, NOW + 5])),
        tags=tuple(draw(st.sets(st.sampled_from(["x", "y"])))),
        summary=draw(st.sampled_from(["", "", "reminds me of tea", "notes on green tea"])),
        slug=draw(st.sampled_from(["", "", "remind-me", "tea"])),
        entities=draw(st.sampled_from([(), (), ("tea",), ("Green Tea", "oil")])),
        importance=draw(st.sampled_from([None, None, 1, 3, 5])),
    )


@dataclass(frozen=True)
class World:
    """Runs over memories, every candidate scored by every signal that knows it."""

    runs: tuple[Run, ...]
    context: Context


@st.composite
def worlds(draw: st.DrawFn, visible_only: bool = False) -> World:
    count = draw(st.integers(1, 10))
    found = {f"m_{i}": draw(memories(f"m_{i}")) for i in range(count)}
    if visible_only:
        found = {identity: memory for identity, memory in found.items() if memory.scope in SEEN}
    text = draw(queries)
    vectorless = draw(st.sets(st.sampled_from(sorted(found)), max_size=2)) if found else set()
    signals = {
        "keyword": _signal(draw, "keyword", sorted(found), 0.0, 12.0),
        "vector": _signal(draw, "vector", sorted(set(found) - vectorless), -1.0, 1.0),
    }
    runs = tuple(_run(draw, signals[name]) for name in ("keyword", "vector"))
    query = Query(text, Where(scopes=SEEN, now=NOW), limit=draw(st.integers(0, 12)))
    names = {
        identity: NameMatch(draw(st.sampled_from(["equal", "one edit", "all words", "in a sentence"])), memory.name)
        for identity, memory in found.items()
        if memory.name and draw(st.booleans())
    }
    analysis = analyse(text)
    statistics = Statistics(count, 4.0, {term: draw(st.integers(0, count)) for term in analysis.terms})
    some = st.sets(st.sampled_from(sorted(found))) if found else st.just(set[str]())
    vectors = WordDirections(4).documents([memory.text for memory in found.values()])
    embedded = draw(some)
    return World(
        runs,
        Context(
            query,
            analysis,
            found,
            signals,
            names,
            statistics,
            likeness=Similarity(
                {key: row for key, row in zip(found, vectors, strict=True) if key in embedded},
                {key: frozenset(memory.text.split()) for key, memory in found.items()},
            ),
            labels={
                key: Labels(name_words(memory.name), name_words(memory.slug), name_words(memory.summary))
                for key, memory in found.items()
            },
            opinions={key: draw(st.sampled_from([-2.5, 0.0, 7.0])) for key in sorted(draw(some))},
            languages=dict.fromkeys(sorted(draw(some)), "de"),
        ),
    )


def _signal(draw: st.DrawFn, name: str, ids: list[str], low: float, high: float) -> Signal:
    # Few distinct values, so that ties are common.
    values = st.one_of(st.floats(low, high), st.sampled_from([low, (low + high) / 2, high]))
    scores = {identity: draw(values) for identity in ids}
    coverage = {identity: max(0.0, score) / high for identity, score in scores.items()}
    words = {identity: [TermValue("tea", "words", "own", score)] for identity, score in scores.items()}
    if name == "vector":
        return Signal(name, scores, coverage, floor=draw(st.sampled_from([0.0, 0.7])))
    memories = draw(st.one_of(st.none(), st.integers(0, 300)))
    return Signal(name, scores, coverage, words, mass=draw(st.floats(0.0, 40.0)), memories=memories)


def _run(draw: st.DrawFn, signal: Signal) -> Run:
    ordered = sorted(signal.values.items(), key=lambda pair: (-pair[1], pair[0]))
    length = draw(st.integers(0, len(ordered)))
    return Run(signal.name, tuple(Candidate(identity, score) for identity, score in ordered[:length]))


normalisers: st.SearchStrategy[Normaliser] = st.sampled_from(
    [
        ReciprocalRank(),
        ReciprocalRank(k=1),
        BatchMax(),
        BatchMax(least=3, cap=15.0),
        MinMax(),
        Theoretical(-1.0),
        Theoretical(0.0, 0.4),
        AboveFloor(),
        AgainstMass(),
        Theoretical(0.0),
        Sigmoid(),
        Saturating(),
        Above(0.5),
        Atan(),
        DistributionBased(),
    ]
)


# Sigmoid takes the absolute value, for BM25 of either sign; a cosine below zero is no match.
of_cosines = normalisers.filter(lambda normaliser: not isinstance(normaliser, Sigmoid))


@st.composite
def fusions(draw: st.DrawFn, absent: Sequence[Absent] = ("shared",)) -> Fuse:
    weight = draw(st.sampled_from([0.0, 0.3, 0.5, 0.7, 1.0]))
    strength = draw(st.sampled_from([None, None, 1.0, 15.0]))
    votes = (Vote("vector", weight, draw(of_cosines)), Vote("keyword", 1 - weight, draw(normalisers)))
    return Fuse(votes, absent=draw(st.sampled_from(absent)), strength=strength)


STAGES: tuple[Stage, ...] = (
    NameFirst(),
    SameLanguage(),
    Recency(),
    Evidence(min_vector=0.3, min_coverage=0.3),
    OpenClawSelection(),
    Dedup(),
    Dedup(near=0.8),
    TokenMatch(),
    TokenMatch(0.3),
    PRESETS["clawhub"],
    PRESETS["clawhub-266"],
    TokenGate(),
    ExactName(),
    Base(),
    Importance(),
    Superseded(),
    NotExpired(),
    GroupBySource(),
    GroupBySource(2),
    MMR(),
    MMR(0.2),
    Rerank(SharedWords()),
)


@st.composite
def recipes(draw: st.DrawFn) -> Recipe:
    drawn = draw(st.lists(st.sampled_from(STAGES), max_size=6))
    # A recipe may have one reranker only.
    stages = [stage for i, stage in enumerate(drawn) if not isinstance(stage, Rerank) or stage not in drawn[:i]]
    return Recipe("generated", draw(fusions(("shared", "kept"))), (InScope(), *stages), Plan())


def candidates(world: World) -> set[str]:
    return {candidate.id for run in world.runs for candidate in run.candidates}


def temporary(path: Path) -> Path:
    path.mkdir(parents=True, exist_ok=True)
    return path
