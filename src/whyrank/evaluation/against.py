"""Two results over the same queries: who wins where, whether chance does as well, and what cannot be compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from .kept import Kept, KeptQuery, KeptSet
from .measures import MAIN
from .significance import Comparison, Interval, bootstrap, compare


class Pair(NamedTuple):
    """One query and the main measure of both sides."""

    query: KeptQuery
    before: float
    after: float

    @property
    def difference(self) -> float:
        """Return what was gained, negative where it was lost."""
        return self.after - self.before


@dataclass(frozen=True)
class Duel:
    """One set, one side against another; `left_out` says what is not compared, `remarks` what else differs."""

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
        """Return the same by kind of query, where there are several."""
        named = dict.fromkeys(pair.query.kind for pair in self.pairs)
        return {kind: self._only(kind) for kind in sorted(named)} if len(named) > 1 else {}

    def _only(self, kind: str) -> Duel:
        chosen = tuple(pair for pair in self.pairs if pair.query.kind == kind)
        return Duel(self.set_name, self.before, self.after, chosen)

    def moved(self) -> tuple[list[Pair], list[Pair]]:
        """Return what was won, the most first, and what was lost, the most first."""
        won = sorted((pair for pair in self.pairs if pair.difference > 0), key=lambda pair: -pair.difference)
        lost = sorted((pair for pair in self.pairs if pair.difference < 0), key=lambda pair: pair.difference)
        return won, lost


@dataclass(frozen=True)
class Against:
    """These results against others: a duel for every set both have, and what stands alone."""

    other: Kept
    duels: tuple[Duel, ...]
    left_out: tuple[str, ...]


def within(one: KeptSet) -> list[Duel]:
    """Compare every further line of a set with its first recipe, the ceiling apart."""
    first = one.recipes[0]
    return [_duel_of_lines(one, first, recipe) for recipe in one.recipes[1:]]


def _duel_of_lines(one: KeptSet, before: str, after: str) -> Duel:
    pairs = tuple(Pair(query, query.main(before), query.main(after)) for query in one.queries)
    return Duel(one.name, before, after, pairs)


def against(mine: Kept, other: Kept) -> Against:
    """Compare results with those of another version or other settings, set by set."""
    here, there = by_name(mine.sets), by_name(other.sets)
    remarks = tuple(_settings_apart(mine, other))
    duels = tuple(_duel(name, one, there[name], remarks) for name, one in here.items() if name in there)
    left_out = [f"set {name}: only in these results" for name in here if name not in there]
    left_out += [f"set {name}: only in the other results" for name in there if name not in here]
    if (mine.abstentions or other.abstentions) and not (mine.sets and other.sets):
        left_out.append("results of --abstention: they have no figures by query")
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
    differing = () if before == after else (f"recipe {after} stands against {before}, which the other results have",)
    corpus = () if mine.digest == other.digest else ("the documents of the set are others, so the task is another",)
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
