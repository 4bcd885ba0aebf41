"""The contest: build everybody, then let them take turns, question by question, in one process."""

from __future__ import annotations

import gc
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from whyrank.types.memory import Document, Scope
from whyrank.types.query import Where

from .child import LIMIT, Failed, contestant_named, in_a_process
from .corpus import SPARE_NOTES, Corpus, Written, write
from .measurement import be_still, described, quantile, take_turns
from .ours import SHARES, Ours, passing
from .peers import ALONE, OURS, SHARED, Ability, Key, Peer, missing, versions
from .results import Category, Entrant, Line, Outcome, Round, Scoped, Skipped

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from whyrank.protocols import Vector

    from .corpus import Matrix

DEPTH = 10  # of recall@10 and found@10
_ROWS_AT_ONCE = 100_000
ASKED = 20  # questions where scopes are many, each in the scope of its note
WARM_UP = 3  # questions that everybody answers before anything is measured
INSERTS = 40
INDEXED = "insert, indexed"  # a note that is stored and found, where storing alone leaves the index for later
_UNBOUNDED = 1e6  # seconds: whyrank is waited for, else there is nothing to compare with

Tell: TypeAlias = Callable[[str], None]
Task: TypeAlias = Callable[[str, str, Path, Path, float], dict[str, Any]]


@dataclass(frozen=True)
class Settings:
    """What is to be measured."""

    sizes: tuple[int, ...] = (10_000,)
    peers: tuple[str, ...] = ()
    queries: int = 60
    words: int = 200
    seed: int = 1
    patience: float = 600.0
    scopes: tuple[int, int] | None = None


class Means(NamedTuple):
    """How a contest is held: who is told what is being done, how tasks are done, where contestants come from."""

    tell: Tell = lambda said: None
    task: Task = in_a_process
    find: Callable[[str], Peer] = contestant_named


class Work(NamedTuple):
    """One category: what a contestant has to be able to do, and how it is asked to do it."""

    name: str
    ability: Ability
    ask: Callable[[Peer, Written, int], Sequence[Key]]


WORKS = (
    Work("hybrid", "search", lambda peer, of, at: peer.search(of.questions[at].text, of.question_vectors[at], LIMIT)),
    Work("keyword", "keyword", lambda peer, of, at: peer.keyword(of.questions[at].text, LIMIT)),
    Work("vector", "nearest", lambda peer, of, at: peer.nearest(of.question_vectors[at], LIMIT)),
    Work("name by words", "keyword", lambda peer, of, at: peer.keyword(of.questions[at].name, LIMIT)),
    Work("name", "search", lambda peer, of, at: peer.search(of.questions[at].name, of.question_vectors[at], LIMIT)),
)


def contest(settings: Settings, means: Means) -> Outcome:
    """Hold the contest at every size."""
    rounds = [_round(size, settings, means) for size in settings.sizes]
    return Outcome(
        date=time.strftime("%Y-%m-%d", time.gmtime()),
        machine=described(),
        settings={
            "queries": settings.queries, "words": settings.words, "seed": settings.seed, "limit": LIMIT,
            "patience_s": settings.patience,
        },
        rounds=rounds,
        scopes=scoped(*settings.scopes, settings.words, settings.seed, means.tell) if settings.scopes else None,
    )  # fmt: skip


def _round(size: int, settings: Settings, means: Means) -> Round:
    # A contestant may go on writing behind its own back; what was measured is not lost for that.
    placed = tempfile.TemporaryDirectory(prefix="whyrank-bench-", ignore_cleanup_errors=True)
    with placed as place, ExitStack() as stack:
        tell = means.tell
        tell(f"{size:,} notes: writing the corpus")
        corpus = Corpus(size, settings.words, settings.seed)
        written = write(corpus, settings.queries + WARM_UP, Path(place) / "corpus")
        entrants, skipped = _built([OURS, *settings.peers], written, Path(place), settings.patience, means)
        peers = _opened(entrants, Path(place), stack, skipped, means)
        # What the others have in memory must not be looked through by the collector while one of them is timed.
        gc.collect()
        gc.freeze()
        stack.callback(gc.unfreeze)
        turns = min(settings.queries, max(1, len(written.questions) - WARM_UP))
        categories = [_category(work, peers, written, turns, skipped, tell) for work in WORKS]
        ours = peers[OURS]
        special = filtered(ours, written, turns, tell), ranking_share(ours, written, turns)
        spare = list(zip(*corpus.spare(SPARE_NOTES), strict=True))
        half = len(spare) // 2  # each note is new to everybody
        inserts = min(turns, INSERTS)
        categories.append(_inserts("insert", peers, corpus.size, spare[:half], inserts, skipped, tell))
        categories.append(_inserts(INDEXED, peers, corpus.size + half, spare[half:], inserts, skipped, tell))
        return Round(size, entrants, [category for category in categories if category.lines], *special, skipped)


def _built(
    names: Sequence[str], corpus: Written, place: Path, patience: float, means: Means
) -> tuple[list[Entrant], list[Skipped]]:
    """Build everybody in turn, each in a process of its own; whoever cannot is skipped by name."""
    entrants: list[Entrant] = []
    skipped: list[Skipped] = []
    for name in names:
        peer = means.find(name)
        absent = missing(peer)
        if absent:
            skipped.append(Skipped(name, absent))
            continue
        means.tell(f"building {name}")
        seconds = _UNBOUNDED if name == OURS else patience
        try:
            build = means.task("build", name, corpus.folder, place / name, seconds)
            cold = means.task("cold", name, corpus.folder, place / name, seconds)
        except Failed as error:
            if name == OURS:
                raise
            skipped.append(Skipped(name, _anywhere(error, place)))
            means.tell(f"{name} is skipped: {error}")
        else:
            entrants.append(Entrant(name, versions(peer), build, cold))
    return entrants, skipped


def _opened(
    entrants: Sequence[Entrant], place: Path, stack: ExitStack, skipped: list[Skipped], means: Means
) -> dict[str, Peer]:
    peers: dict[str, Peer] = {}
    for entrant in entrants:
        peer = means.find(entrant.name)
        try:
            peer.open(place / entrant.name)
        except Exception as error:  # whatever a library throws, the others go on
            if entrant.name == OURS:
                raise
            skipped.append(Skipped(entrant.name, f"it cannot be opened: {_anywhere(error, place)}"))
        else:
            peers[entrant.name] = peer
            stack.callback(peer.close)
    return peers


def _anywhere(error: Exception, place: Path) -> str:
    """Return what an error says without the place of one run."""
    return str(error).replace(str(place), "…")


def _category(
    work: Work, peers: Mapping[str, Peer], corpus: Written, turns: int, skipped: list[Skipped], tell: Tell
) -> Category:
    """Let all who can do the work take turns at it."""
    able = {name: peer for name, peer in peers.items() if work.ability in peer.offers}
    tell(f"{work.name}: {turns} turns of {', '.join(able)}")
    guard = _Guard(work.name)
    calls = {name: guard.around(name, _asking(work, peer, corpus)) for name, peer in able.items()}
    for warm in range(turns, turns + WARM_UP):
        for call in calls.values():
            call(min(warm, len(corpus.questions) - 1))
    answers: dict[str, dict[int, Sequence[Key]]] = {name: {} for name in able}
    spans = take_turns(calls, turns, lambda name, turn, answer: answers[name].update({turn: answer}))
    skipped += guard.failures()
    exact = nearest_numbers(corpus.vectors, corpus.question_vectors[:turns]) if work.ability == "nearest" else None
    told = {name: first_ten(peer, answers[name]) for name, peer in able.items() if name not in guard.failed}
    notes = [question.note for question in corpus.questions]
    lines = [
        Line(name, spans[name], None if exact is None else recall(ten, exact), found(ten, notes))
        for name, ten in told.items()
    ]
    return Category(work.name, lines)


def _asking(work: Work, peer: Peer, corpus: Written) -> Callable[[int], Sequence[Key]]:
    return lambda turn: work.ask(peer, corpus, turn)


def _inserts(
    name: str,
    peers: Mapping[str, Peer],
    first: int,
    spare: Sequence[tuple[str, Vector]],
    turns: int,
    skipped: list[Skipped],
    tell: Tell,
) -> Category:
    """Let all who can store one more note durably take turns at it, and index it; last, because it changes indexes."""
    able = {peer.name: peer for peer in peers.values() if "add" in peer.offers}
    tell(f"{name}: {turns} turns of {', '.join(able)}")
    guard = _Guard(name)

    def adding(peer: Peer) -> Callable[[int], Sequence[Key]]:
        def add(turn: int) -> Sequence[Key]:
            peer.add(first + turn, *spare[turn])
            if name == INDEXED:
                peer.index()
            return ()

        return add

    calls = {own: guard.around(own, adding(peer)) for own, peer in able.items()}
    for call in calls.values():
        call(turns)  # the first write opens what later ones find open
    spans = take_turns(calls, turns, before=be_still)
    skipped += guard.failures()
    return Category(name, [Line(own, spans[own]) for own in able if own not in guard.failed])


class _Guard:
    """Keeps one contestant's failure from ending the contest of the others."""

    def __init__(self, category: str) -> None:
        self._category = category
        self.failed: dict[str, str] = {}

    def around(self, name: str, call: Callable[[int], Sequence[Key]]) -> Callable[[int], Sequence[Key]]:
        def guarded(turn: int) -> Sequence[Key]:
            try:
                return () if name in self.failed else call(turn)
            except Exception as error:  # whatever a library throws, the others go on
                if name == OURS:
                    raise
                self.failed[name] = f"{self._category}: {type(error).__name__}: {error}"
                return ()

        return guarded

    def failures(self) -> list[Skipped]:
        return [Skipped(name, reason) for name, reason in self.failed.items()]


# -- what only whyrank is asked: vectors behind a filter, the price of the trail, one scope of many --------------


def filtered(peer: Peer, corpus: Written, turns: int, tell: Callable[[str], None]) -> list[Category]:
    """Search vectors among a half, a twentieth and a two-hundredth of the notes."""
    assert isinstance(peer, Ours)
    tell("vectors behind filters")
    return [_filtered(peer, corpus, turns, share, Where(path=path)) for share, path in SHARES.items()]


def _filtered(peer: Ours, corpus: Written, turns: int, share: float, where: Where) -> Category:
    answers: dict[int, Sequence[Key]] = {}

    def ask(turn: int) -> Sequence[Key]:
        return peer.nearest_where(corpus.question_vectors[turn], where, LIMIT)

    ask(0)  # caches fill once
    spans = take_turns({OURS: ask}, turns, lambda _, turn, answer: answers.update({turn: answer}))
    among = passing(share, len(corpus.vectors))
    exact = nearest_numbers(corpus.vectors, corpus.question_vectors[:turns], among)
    return Category(f"{share:.1%} of the notes", [Line(OURS, spans[OURS], recall(first_ten(peer, answers), exact))])


def ranking_share(peer: Peer, corpus: Written, turns: int) -> float:
    """Return which share of a search is ranking, trails included: the median over the questions."""
    assert isinstance(peer, Ours)
    asked = zip(corpus.questions[:turns], corpus.question_vectors, strict=False)
    timings = [peer.timings(question.text, vector, LIMIT) for question, vector in asked]
    return quantile([spent["ranking"] / spent["total"] for spent in timings], 0.5)


def scoped(scopes: int, memories: int, words: int, seed: int, tell: Callable[[str], None]) -> Scoped:
    """Search scopes of a shared file, each beside a store of its own, taking turns."""
    with tempfile.TemporaryDirectory(prefix="whyrank-bench-") as place, ExitStack() as stack:
        tell(f"{scopes:,} scopes of {memories:,} memories: writing and building")
        corpus = write(Corpus(scopes * memories, words, seed), ASKED, Path(place) / "corpus")
        shared = _filled(corpus, 0, scopes * memories, memories, Path(place) / "shared", stack)
        asked = [question.note // memories for question in corpus.questions]
        alone = {
            scope: _filled(corpus, scope * memories, memories, memories, Path(place) / f"scope-{scope}", stack)
            for scope in sorted(set(asked))
        }
        tell(f"scopes: {len(asked)} turns")
        calls = {
            SHARED: _asking_in(corpus, memories, lambda scope: shared),
            ALONE: _asking_in(corpus, memories, lambda scope: alone[scope]),
        }
        for turn in range(len(asked)):
            for call in calls.values():
                call(turn)  # a scope's caches fill once
        spans = take_turns(calls, len(asked))
    lines = [Line(name, spans[name]) for name in calls]
    return Scoped(scopes, memories, Category("scopes", lines, baseline=ALONE))


def _asking_in(corpus: Written, memories: int, store_of: Callable[[int], Ours]) -> Callable[[int], Sequence[Key]]:
    def ask(turn: int) -> Sequence[Key]:
        question, vector = corpus.questions[turn], corpus.question_vectors[turn]
        scope = question.note // memories
        return store_of(scope).search_in(_scope(scope), question.text, vector, LIMIT)

    return ask


def _filled(corpus: Written, start: int, count: int, memories: int, folder: Path, stack: ExitStack) -> Ours:
    folder.mkdir()
    ours = Ours()
    ours.open(folder)
    stack.callback(ours.close)
    ours.fill(_documents(corpus, start, count, memories), corpus.vectors[start : start + count])
    return ours


def _documents(corpus: Written, start: int, count: int, memories: int) -> Iterator[Document]:
    for number, note in enumerate(islice(corpus.notes(), start, start + count), start):
        yield Document(str(number), note, scope=_scope(number // memories))


def _scope(number: int) -> Scope:
    return Scope("user", str(number))


# -- the exact answer, by comparing everything with everything, and how much of it was found ----------------------


def nearest_numbers(vectors: Matrix, questions: Matrix, among: NDArray[np.int64] | None = None) -> NDArray[np.int64]:
    """Return the numbers of the ten notes nearest to each question, of all notes or of some."""
    numbers = np.arange(len(vectors)) if among is None else among
    best = np.full((len(questions), DEPTH), -np.inf, dtype=np.float32)
    held = np.full((len(questions), DEPTH), -1, dtype=np.int64)
    for start in range(0, len(numbers), _ROWS_AT_ONCE):
        part = numbers[start : start + _ROWS_AT_ONCE]
        scores = np.hstack([best, questions @ np.asarray(vectors[part]).T])
        known = np.hstack([held, np.broadcast_to(part, (len(questions), len(part)))])
        order = np.argsort(-scores, axis=1, kind="stable")[:, :DEPTH]
        best, held = np.take_along_axis(scores, order, 1), np.take_along_axis(known, order, 1)
    return held


def first_ten(peer: Peer, answers: Mapping[int, Sequence[Key]]) -> dict[int, list[int]]:
    """Return the numbers of the first ten notes of every answer."""
    return {turn: peer.numbers(keys[:DEPTH]) for turn, keys in answers.items()}


def found(answers: Mapping[int, Sequence[int]], asked: Sequence[int]) -> float:
    """Return the share of the answers that hold the note that was asked about."""
    return sum(asked[turn] in numbers for turn, numbers in answers.items()) / max(1, len(answers))


def recall(answers: Mapping[int, Sequence[int]], exact: NDArray[np.int64]) -> float:
    """Return the share of the ten nearest that the answers hold, over all turns."""
    held = possible = 0
    for turn, numbers in answers.items():
        nearest = {number for number in exact[turn].tolist() if number >= 0}
        held += len(nearest & {*numbers})
        possible += len(nearest)
    return held / possible if possible else 1.0
