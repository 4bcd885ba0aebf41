"""Which of two memories diversity places first: the sums of the whole pool, without making a hit of every candidate.

A recipe that ends in MMR compares everything with everything, so no few memories tell how two of them stand. But the
picks need numbers alone: what is fused, what the stages before make of it, and how like each other the memories are.
Many settings are looked at together, a row of a matrix for each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from ..columns import MemoryId, column_of
from ..hits import Context
from ..types import Run
from .diversity import MMR
from .duels import Duels
from .effects import BY_ITSELF, Effects, Keys, Measured
from .filing import grouped
from .fusion import Board, Fuse, SignalColumn, Vote, listed_by, share_out
from .ground import Ground
from .normalisers import Normaliser
from .order import Stage
from .recipes import Recipe
from .stages import GroupBySource, evidence_of

if TYPE_CHECKING:
    from .duels import Flags, Floats, Integers


def ends_in_diversity(recipe: Recipe) -> bool:
    """Tell whether diversity has the last word, after stages that see each memory by itself and a grouping at most."""
    *others, last = recipe.stages or (None,)
    if others and isinstance(others[-1], GroupBySource):
        others.pop()
    return isinstance(last, MMR) and all(isinstance(stage, BY_ITSELF) for stage in others)


def are_above(looks: Sequence[tuple[Diverse, Recipe]], one: MemoryId, other: MemoryId, by: float = 0.0) -> list[bool]:
    """Tell for each look if the one stands and the other stands below it, by more than that score, or not at all.

    All looks are at pools on one ground, through recipes that differ in numbers alone.
    """
    import numpy as np

    seen = [look.keys([recipe]) for look, recipe in looks]
    keys = Keys(*map(np.concatenate, zip(*seen, strict=True)))
    recipes = [recipe for _, recipe in looks]
    ground = looks[0][0].ground
    return _decided(_Field.of(keys, ground, recipes[0], (one, other)), ground, recipes, by)


def _decided(field: _Field, ground: Ground, recipes: Sequence[Recipe], by: float) -> list[bool]:
    """Tell for each recipe who of the two is above; where nothing but λ differs, all recipes share one row."""
    import numpy as np

    above, is_level = (np.resize(column, len(recipes)) for column in (field.above, field.is_level))
    rows = np.flatnonzero(is_level)
    if len(rows):
        own = rows % len(field.above)
        lambdas = np.array([lambda_of(recipe) for recipe in recipes])[rows]
        worth = np.where(field.shown[own], lambdas[:, None] * field.relevance[own], -np.inf)
        duels = Duels(ground, lambdas, field.tiers[own], worth, field.first[own], field.second[own])
        above[rows] = duels.are_won(by)
    told: list[bool] = above.tolist()
    return told


class _Field(NamedTuple):
    """What diversity chooses from under each setting, and what is known of two before it has chosen.

    In rows that are level it is for diversity to tell whether the first is above the second.
    """

    shown: Flags
    tiers: Integers
    relevance: Floats
    first: Integers
    second: Integers
    above: Flags
    is_level: Flags

    @classmethod
    def of(cls, keys: Keys, ground: Ground, recipe: Recipe, pair: tuple[MemoryId, MemoryId]) -> _Field:
        """Group files, and see how two memories stand."""
        import numpy as np

        places = [ground.places.get(identity) for identity in pair]
        shown, (first, second) = grouped(keys, ground, _most_of_a_file(recipe), places)
        rows = np.arange(len(shown))
        is_met = (first.of >= 0) & (second.of >= 0)
        is_apart = first.of != second.of
        tier, tier_second = keys.tiers[rows, first.of], keys.tiers[rows, second.of]
        is_before = np.where(is_apart, tier > tier_second, first.behind < second.behind)
        above = np.where(is_met, is_before, first.of >= 0)
        relevance = _relevance(keys.scores, shown)
        return cls(shown, keys.tiers, relevance, first.of, second.of, above, is_met & is_apart & (tier == tier_second))


def _most_of_a_file(recipe: Recipe) -> int | None:
    groupings = [stage.max_per_file for stage in recipe.stages if isinstance(stage, GroupBySource)]
    return groupings[0] if groupings else None


def _before_grouping(recipe: Recipe) -> tuple[Stage, ...]:
    return tuple(stage for stage in recipe.stages if not isinstance(stage, (GroupBySource, MMR)))


def lambda_of(recipe: Recipe) -> float:
    """Return how much relevance counts beside diversity in a recipe that ends in it."""
    diversity = recipe.stages[-1]
    if not isinstance(diversity, MMR):
        raise TypeError(f"{diversity!r} is no diversity")
    return diversity.lambda_


def _relevance(scores: Floats, shown: Flags) -> Floats:
    """Scale the scores of each row from the worst to the best of those shown, as diversity does."""
    import numpy as np

    low = np.where(shown, scores, np.inf).min(axis=1)[:, None]
    high = np.where(shown, scores, -np.inf).max(axis=1)[:, None]
    half = high / 2 - low / 2
    shares = np.minimum(np.maximum((scores / 2 - low / 2) / np.where(half > 0, half, 1.0), 0.0), 1.0)
    return np.where(half > 0, shares, 1.0)


@dataclass(frozen=True, eq=False)
class _Column:
    """What a signal says of the places, and the same as numbers if it knows all of them."""

    told: SignalColumn
    numbers: Floats | None


_Columns = dict[tuple[str, Normaliser, int], tuple[Sequence[MemoryId], _Column]]


class Diverse:
    """Looks at one pool through recipes that end in diversity and differ in a number.

    The runs may list less than the ground holds: what they do not list does not stand.
    """

    def __init__(self, runs: Sequence[Run], context: Context, ground: Ground | None = None) -> None:
        self.ground = ground or Ground(runs, context)
        self._columns_of_all: _Columns = self.ground.columns
        self._runs = runs
        self._context = context
        self._ids = listed_by(runs)
        self._columns: dict[tuple[str, Normaliser], _Column] = {}
        self._effects: Effects | None = None
        self._seen: tuple[object, _Field] | None = None

    def are_above(self, recipes: Sequence[Recipe], one: MemoryId, other: MemoryId, by: float = 0.0) -> list[bool]:
        """Tell for each recipe if the one stands and the other stands below it, by more than that, or not at all."""
        return _decided(self._field(recipes, (one, other)), self.ground, recipes, by)

    def _field(self, recipes: Sequence[Recipe], pair: tuple[MemoryId, MemoryId]) -> _Field:
        """Return what diversity chooses from: one row, seen once, for all recipes that differ in nothing before it."""
        first = recipes[0]
        if any(recipe.fusion is not first.fusion or recipe.stages[:-1] != first.stages[:-1] for recipe in recipes):
            return _Field.of(self.keys(recipes), self.ground, first, pair)
        asked = first.fusion, first.stages[:-1], pair
        if self._seen is None or self._seen[0] != asked:
            self._seen = asked, _Field.of(self.keys([first]), self.ground, first, pair)
        return self._seen[1]

    def keys(self, recipes: Sequence[Recipe]) -> Keys:
        """Return what recipes make of every place before they group files: a row for each recipe.

        Most numbers change either fusion or one stage: what they leave as it is, all rows share.
        """
        import numpy as np

        first = recipes[0]
        if self._effects is None:
            self._effects = Effects(self.ground, self._context, lambda: self._evidence(first.fusion))
        fusions = [recipe.fusion for recipe in recipes]
        fused = self._fused(fusions[:1] if all(fusion is fusions[0] for fusion in fusions) else fusions)
        before = [_before_grouping(recipe) for recipe in recipes]
        if before.count(before[0]) == len(before):
            scores, tiers, stands = self._effects.after(fused, before[0])
        else:
            rows = [self._effects.after(fused.row(place), stages) for place, stages in enumerate(before)]
            scores, tiers, stands = (np.concatenate(column) for column in zip(*rows, strict=True))
        shape = len(recipes), len(self.ground.ids)
        return Keys(np.broadcast_to(scores, shape), np.broadcast_to(tiers, shape), np.broadcast_to(stands, shape))

    def _fused(self, fusions: Sequence[Fuse]) -> Keys:
        import numpy as np

        stands = self._stands[None]
        return Keys(self._sums(fusions), np.zeros(stands.shape, np.int64), stands)

    @cached_property
    def _listed(self) -> Integers:
        """Return the places of what the runs list, in their order."""
        import numpy as np

        return np.array([*map(self.ground.places.__getitem__, self._ids)], np.int64)

    @cached_property
    def _stands(self) -> Flags:
        """Tell which places the runs list."""
        import numpy as np

        stands = np.zeros(len(self.ground.ids), np.bool_)
        stands[self._listed] = True
        return stands

    def _spread(self, numbers: Floats) -> Floats:
        """Give each place its number, and nothing to those that the runs do not list."""
        import numpy as np

        spread = np.zeros(len(self.ground.ids))
        spread[self._listed] = numbers
        return spread

    def _sums(self, fusions: Sequence[Fuse]) -> Floats:
        """Add up from left to right what each signal gives each place, as fusion does: a row for each fusion."""
        import numpy as np

        votes = [self._live(fusion) for fusion in fusions]
        columns = [[self._column(fusion, vote) for vote in row] for fusion, row in zip(fusions, votes, strict=True)]
        usual = max(columns, key=columns.count)  # at the ends of a weight a vote may fall silent
        numbers = [column.numbers for column in usual if column.numbers is not None]
        if len(numbers) < len(usual):
            return np.array([self._sum(*row) for row in zip(fusions, votes, columns, strict=True)])
        is_usual = [row == usual for row in columns]
        silent = [0.0] * len(usual)
        rows = zip(fusions, votes, is_usual, strict=True)
        weights = np.array([_shares(fusion, own) if same else silent for fusion, own, same in rows])
        scores = np.zeros((len(fusions), len(self.ground.ids)))
        for values, weight in zip(numbers, weights.T, strict=True):
            scores += weight[:, None] * values
        for row in (row for row, same in enumerate(is_usual) if not same):
            scores[row] = self._sum(fusions[row], votes[row], columns[row])
        return scores

    def _live(self, fusion: Fuse) -> Sequence[Vote]:
        """Return the votes that count; where every one has weight and its run found something, that is all of them."""
        is_whole = fusion.others is None and fusion.absent == "shared"
        if is_whole and all(vote.weight and vote.signal in self._found for vote in fusion.votes):
            return fusion.votes
        return fusion.live(self._runs)

    @cached_property
    def _found(self) -> set[str]:
        """Return the runs that found something."""
        return {run.name for run in self._runs if run.candidates}

    def _sum(self, fusion: Fuse, votes: Sequence[Vote], columns: Sequence[_Column]) -> Floats:
        import numpy as np

        numbers = [column.numbers for column in columns if column.numbers is not None]
        if len(numbers) < len(columns):  # what is unknown of a place leaves its weight to the others
            weighed = [replace(column.told, weight=v.weight or 0.0) for column, v in zip(columns, votes, strict=True)]
            board = Board(weighed, fusion.absent, whole=fusion.whole)
            return self._spread(np.array(board.scores(len(self._ids)), np.float64))
        scores = np.zeros(len(self.ground.ids))
        for values, weight in zip(numbers, _shares(fusion, votes), strict=True):
            scores += weight * values
        return scores

    def _column(self, fusion: Fuse, vote: Vote) -> _Column:
        """Return what a signal says of the places, and the same as numbers if it knows all of them."""
        known = self._columns.get((vote.signal, vote.normaliser))
        if known is None:
            known = self._columns[vote.signal, vote.normaliser] = self._shared_column(fusion, vote)
        return known

    def _shared_column(self, fusion: Fuse, vote: Vote) -> _Column:
        """Return the column of another pool on this ground, if it lists the same and the signal says the same."""
        signal = self._context.signals.get(vote.signal)
        if signal is None or vote.normaliser.by_rank or fusion.absent != "shared":
            return self._made_column(fusion, vote)
        key = vote.signal, vote.normaliser, id(signal)
        ids, column = self._columns_of_all.get(key, (None, None))
        if column is None or ids != self._ids:
            column = self._made_column(fusion, vote)
            self._columns_of_all[key] = self._ids, column
        return column

    def _made_column(self, fusion: Fuse, vote: Vote) -> _Column:
        import numpy as np

        column = fusion.column(vote, self._runs, self._context, self._ids)
        numbers = column.array
        if numbers is None and None not in column.normalised:
            numbers = np.array(column.normalised, np.float64)
        return _Column(column, None if numbers is None else self._spread(numbers))

    def _evidence(self, fusion: Fuse) -> list[Measured]:
        """Return the cosine and the coverage of each place, where it has them."""
        ids, signals = self.ground.ids, self._context.signals
        if fusion.absent == "shared" and all(run.name in signals for run in self._runs if run.name != "name"):
            vector, keyword = signals.get("vector"), signals.get("keyword")
            cosines = column_of(vector.values if vector else {}, ids)
            return [*zip(cosines, column_of(keyword.coverage if keyword else {}, ids), strict=True)]
        hits = {hit.id: hit for hit in fusion(self._runs, self._context).hits}
        return [evidence_of(hits[identity]) if identity in hits else (None, None) for identity in ids]


def _shares(fusion: Fuse, votes: Sequence[Vote]) -> list[float]:
    return share_out([vote.weight or 0.0 for vote in votes], fusion.whole)
