"""Compare two evaluations query by query, and two models before a switch."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from ..formatting import counted
from .measures import MAIN, Comparison, Interval, bootstrap, compare
from .pins import Checked, Pinboard, PinCheck, PinnedEngine, Tick

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ..types.memory import Memory
    from .results import Kept, KeptQuery, KeptSet


class Pair(NamedTuple):
    """One query and the main measure of both sides."""

    query: KeptQuery
    before: float
    after: float

    @property
    def difference(self) -> float:
        """Return the gain, negative for a loss."""
        return self.after - self.before


@dataclass(frozen=True)
class Duel:
    """One set, one line against another; `left_out` lists parts not compared, `remarks` other differences."""

    set_name: str
    before: str
    after: str
    pairs: tuple[Pair, ...]
    left_out: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()

    @property
    def means(self) -> tuple[float, float]:
        """Return the mean of both sides over the queries compared."""
        count = len(self.pairs) or 1
        return sum(pair.before for pair in self.pairs) / count, sum(pair.after for pair in self.pairs) / count

    def comparison(self) -> Comparison:
        """Test the difference, paired by query."""
        return compare([pair.before for pair in self.pairs], [pair.after for pair in self.pairs])

    def interval(self) -> Interval:
        """Return the 95 % interval of the mean difference."""
        return bootstrap([pair.difference for pair in self.pairs])

    def kinds(self) -> dict[str, Duel]:
        """Return the duels by kind of query, if there are several kinds."""
        kinds = sorted({pair.query.kind for pair in self.pairs})
        of_kind = {kind: tuple(pair for pair in self.pairs if pair.query.kind == kind) for kind in kinds}
        duels = {kind: Duel(self.set_name, self.before, self.after, pairs) for kind, pairs in of_kind.items()}
        return duels if len(duels) > 1 else {}

    def moved(self) -> tuple[list[Pair], list[Pair]]:
        """Return the queries won and the queries lost, the largest difference first."""
        won = sorted((pair for pair in self.pairs if pair.difference > 0), key=lambda pair: -pair.difference)
        lost = sorted((pair for pair in self.pairs if pair.difference < 0), key=lambda pair: pair.difference)
        return won, lost


@dataclass(frozen=True)
class Against:
    """Comparison of two results files: a duel for every common set, and the parts not compared."""

    other: Kept
    duels: tuple[Duel, ...]
    left_out: tuple[str, ...]


def within(one: KeptSet) -> list[Duel]:
    """Compare every further line of a set with its first recipe, the ceiling apart."""
    first = one.recipes[0]
    return [
        Duel(
            one.name, first, recipe, tuple(Pair(query, query.main(first), query.main(recipe)) for query in one.queries)
        )
        for recipe in one.recipes[1:]
    ]


def against(mine: Kept, other: Kept) -> Against:
    """Compare results with those of another version or other settings, set by set."""
    here, there = by_name(mine.sets), by_name(other.sets)
    remarks = tuple(_settings_apart(mine, other))
    duels = tuple(_duel(name, one, there[name], remarks) for name, one in here.items() if name in there)
    left_out = [f"set {name}: only in these results" for name in here if name not in there]
    left_out += [f"set {name}: only in the other results" for name in there if name not in here]
    if (mine.abstentions or other.abstentions) and not (mine.sets and other.sets):
        left_out.append("results of --abstention: they have no figures per query")
    return Against(other, duels, tuple(left_out))


def by_name(sets: Sequence[KeptSet]) -> dict[str, KeptSet]:
    """Return sets by name; those of one name are numbered."""
    seen: Counter[str] = Counter()
    named = {}
    for one in sets:
        seen[one.name] += 1
        named[one.name if seen[one.name] == 1 else f"{one.name} ({seen[one.name]})"] = one
    return named


def _settings_apart(mine: Kept, other: Kept) -> Iterator[str]:
    for key in sorted({*mine.settings, *other.settings}):
        then, now = other.settings.get(key, "unset"), mine.settings.get(key, "unset")
        if then != now:
            yield f"{key} was {then} and is {now}"


def _duel(name: str, mine: KeptSet, other: KeptSet, remarks: tuple[str, ...]) -> Duel:
    after = mine.recipes[0]
    before = after if after in other.lines else other.recipes[0]
    theirs = {query.id: query for query in other.queries}
    same = [query for query in mine.queries if query.id in theirs and theirs[query.id].asks == query.asks]
    pairs = tuple(Pair(query, theirs[query.id].main(before), query.main(after)) for query in same)
    differing = () if before == after else (f"recipe {after} is compared with {before}, which the other results have",)
    corpus = () if mine.digest == other.digest else ("the documents of the set differ, so the task is not the same",)
    return Duel(name, before, after, pairs, tuple(_left_out(mine, other)), (*differing, *corpus, *remarks))


def _left_out(mine: KeptSet, other: KeptSet) -> Iterator[str]:
    here, there = ({query.id: query for query in one.queries} for one in (mine, other))
    groups = {
        "only in these results": [one for one in here if one not in there],
        "only in the other results": [one for one in there if one not in here],
        "with another text, scope or judgement": [q for q in here if q in there and here[q].asks != there[q].asks],
    }
    for said, ids in groups.items():
        if ids:
            shown = ", ".join(ids[:3]) + (", …" if len(ids) > 3 else "")
            yield f"{len(ids)} {'query' if len(ids) == 1 else 'queries'} {said} ({shown})"


def as_data(compared: Against) -> dict[str, Any]:
    """Return a comparison as plain data."""
    return {
        "whyrank": compared.other.whyrank,
        "made": compared.other.made,
        "sets": [_duel_as_data(duel) for duel in compared.duels],
        "not_compared": list(compared.left_out),
    }


def _duel_as_data(duel: Duel) -> dict[str, Any]:
    before, after = duel.means
    won, lost = duel.moved()
    return {
        "set": duel.set_name,
        "recipe": duel.after,
        "against": duel.before,
        "measure": MAIN,
        "queries": len(duel.pairs),
        "before": before,
        "after": after,
        **duel.comparison()._asdict(),
        "interval": duel.interval()._asdict(),
        "kinds": {
            kind: {"queries": len(one.pairs), **one.comparison()._asdict()} for kind, one in duel.kinds().items()
        },
        "won": [pair.query.id for pair in won],
        "lost": [pair.query.id for pair in lost],
        "not_compared": list(duel.left_out),
        "remarks": list(duel.remarks),
    }


DEPTH = 10  # results that are compared
_WORDS = 12  # of a memory's beginning make a question
_SENTENCE = re.compile(r"(?<=[.!?。！？])\s")
_MARKUP = re.compile(r"[#*_`>|\[\](){}\"]+")


@dataclass(frozen=True)
class Agreement:
    """Agreement of two models on the same queries; no pin checks if nothing is pinned."""

    questions: int
    overlap: float
    before: PinCheck | None = None
    after: PinCheck | None = None

    @property
    def lost(self) -> tuple[Checked, ...]:
        """Return the pins that the old model keeps and the new one loses."""
        if self.before is None or self.after is None:
            return ()
        kept = {one.pin.key for one in self.before.checked if one.status != "lost"}
        return tuple(one for one in self.after.checked if one.status == "lost" and one.pin.key in kept)

    def __str__(self) -> str:
        alike = (
            f"{self.overlap:.0%} of the first {DEPTH} results are the same over {counted(self.questions, 'question')}"
        )
        if self.after is None:
            return f"{alike}; nothing is pinned"
        return f"{alike}; pins lost: {len(self.lost)} of {len(self.after.checked)}"


def compare_spaces(
    before: PinnedEngine, after: PinnedEngine, memories: Sequence[Memory], pins: Pinboard, recipe: object, tick: Tick
) -> Agreement:
    """Query both models with the beginnings of memories, each in its own scope, and check every pin."""
    asked = [(question, memory) for memory in memories if (question := question_of(memory))]
    shares = []
    for number, (question, memory) in enumerate(asked, 1):
        first, second = (
            [hit.id for hit in subject.search(question, limit=DEPTH, recipe=recipe, scope=[str(memory.scope)])]
            for subject in (before, after)
        )
        shares.append(overlap(first, second))
        tick(number, len(asked), question)
    mean = sum(shares) / len(shares) if shares else 1.0
    if not pins.pins(None):
        return Agreement(len(asked), mean)
    checkups = (Pinboard(pins.file, subject).check(None, recipe, tick) for subject in (before, after))
    return Agreement(len(asked), mean, *checkups)


def question_of(memory: Memory) -> str:
    """Return the first words of the first sentence of a memory."""
    first = _SENTENCE.split(_MARKUP.sub(" ", memory.text).strip(), maxsplit=1)[0]
    return " ".join(first.split()[:_WORDS])


def overlap(first: Iterable[str], second: Iterable[str]) -> float:
    """Return the common share of the longer list; two empty lists agree."""
    ours, theirs = set(first), set(second)
    longer = max(len(ours), len(theirs))
    return len(ours & theirs) / longer if longer else 1.0
