"""What fusion makes of the places of a ground, under many weights and constants at once: a row for each fusion."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from ..columns import MemoryId, column_of
from ..hits import Context
from ..types import Run
from .effects import Measured
from .fusion import Fuse, Vote, listed_by, share_out
from .ground import Ground
from .knobs import Turn
from .normalisers import BatchMax, Normaliser, ReciprocalRank
from .stages import evidence_of

if TYPE_CHECKING:
    from .duels import Flags, Floats, Integers


class Column(NamedTuple):
    """What a signal says of each place, nothing where it knows nothing; and of which it knows something, if not all."""

    numbers: Floats
    known: Flags | None = None


class Fused:
    """The votes of one pool, counted again and again.

    The ground may hold less than the runs list: scores are brought into 0..1 among all of these. It may hold more:
    what the runs do not list does not stand.
    """

    def __init__(self, runs: Sequence[Run], context: Context, ground: Ground) -> None:
        self._runs = runs
        self._context = context
        self._ground = ground
        self._ids = listed_by(runs)
        self._columns: dict[tuple[str, Normaliser], Column] = {}
        self._ranks: dict[str, Floats] = {}

    @cached_property
    def stands(self) -> Flags:
        """Tell which places the runs list."""
        stands: Flags = self._listed >= 0
        return stands

    def scores(self, fusions: Sequence[Fuse]) -> Floats:
        """Add up from left to right what each signal gives each place, as fusion does: a row for each fusion."""
        import numpy as np

        votes = [self._live(fusion) for fusion in fusions]
        kinds = [[self._kind(vote) for vote in row] for row in votes]
        scores = np.empty((len(fusions), len(self._ground.ids)))
        for rows in _alike(kinds):
            scores[rows] = self._counted([fusions[row] for row in rows], [votes[row] for row in rows])
        return scores

    def _counted(self, fusions: Sequence[Fuse], votes: Sequence[Sequence[Vote]]) -> Floats:
        """Do so for fusions of the same signals, each brought into 0..1 in the same way; k alone may differ."""
        import numpy as np

        columns = [self._column_of_all(fusions[0], [*turn]) for turn in zip(*votes, strict=True)]
        shares = np.array([_shares(fusion, row) for fusion, row in zip(fusions, votes, strict=True)])
        wholes = np.array([fusion.whole for fusion in fusions])
        return self._summed(fusions[0], columns, shares.reshape(len(fusions), len(columns)), wholes)

    def can_turn(self, turn: Turn) -> bool:
        """Tell whether nothing of the votes changes at a turn but what it says: a cap is a boost weight as well."""
        normalisers = [self._settled(vote.normaliser) for vote in turn.votes]
        return not any(isinstance(one, BatchMax) and one.least for one in normalisers)

    def turned(self, fusion: Fuse, turn: Turn, weights: Floats, values: Floats) -> Floats:
        """Do so for values of one knob, a row for each, at none of which a vote falls silent."""
        import numpy as np

        columns = [
            self._by_rank(vote.signal, turn.constants(vote.normaliser, values))
            if isinstance(vote.normaliser, ReciprocalRank)
            else self._column(fusion, vote)
            for vote in turn.votes
        ]
        summed, wholes = np.zeros(len(weights)), turn.wholes(values)
        for column in weights.T:
            summed += column
        return self._summed(fusion, columns, weights / summed[:, None] * wholes[:, None], wholes)

    def _summed(self, fusion: Fuse, columns: Sequence[Column], shares: Floats, wholes: Floats) -> Floats:
        """Add up what columns give, each by its share of the whole."""
        import numpy as np

        weights = shares[:, :, None]
        if fusion.absent == "shared" and any(column.known is not None for column in columns):
            weights = _left_to_others(weights, columns, wholes[:, None])
        scores = np.zeros((len(shares), len(self._ground.ids)))
        for turn, column in enumerate(columns):
            scores += weights[:, turn] * column.numbers
        return scores

    def ranked(self, fusions: Sequence[Fuse], signal: str) -> Flags:
        """Tell which places have a rank in a run whose vote counts: a row for each fusion."""
        import numpy as np

        return np.array([self._ranked(fusion, signal) for fusion in fusions])

    def _ranked(self, fusion: Fuse, signal: str) -> Flags:
        import numpy as np

        vote = next((vote for vote in self._live(fusion) if vote.signal == signal), None)
        if vote is None:
            return np.zeros(len(self._ground.ids), np.bool_)
        is_listed, known = np.isfinite(self._ranks_in(signal)), self._column(fusion, vote).known
        return is_listed if known is None else is_listed & known

    def evidence(self, fusion: Fuse) -> list[Measured]:
        """Return the cosine and the coverage of each place, where it has them."""
        ids, signals = self._ground.ids, self._context.signals
        if fusion.absent == "shared" and all(run.name in signals for run in self._runs if run.name != "name"):
            vector, keyword = signals.get("vector"), signals.get("keyword")
            cosines = column_of(vector.values if vector else {}, ids)
            return [*zip(cosines, column_of(keyword.coverage if keyword else {}, ids), strict=True)]
        hits = {hit.id: hit for hit in fusion(self._runs, self._context).hits}
        return [evidence_of(hits[identity]) if identity in hits else (None, None) for identity in ids]

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

    @cached_property
    def _listed(self) -> Integers:
        """Return where each place of the ground stands among what the runs list; −1 where it does not."""
        return self._ground.among(self._ids)

    def _spread(self, numbers: Floats) -> Floats:
        """Give each place its number, and nothing to those that the runs do not list."""
        import numpy as np

        ended = np.zeros(len(numbers) + 1)  # nothing stands last, where −1 points
        ended[:-1] = numbers
        return ended[self._listed]

    def _ranks_in(self, signal: str) -> Floats:
        """Return the rank of each place in a run; where it is not listed, that is beyond all."""
        import numpy as np

        if signal not in self._ranks:
            ranks: dict[MemoryId, int] = next((run.ranks() for run in self._runs if run.name == signal), {})
            self._ranks[signal] = np.array([ranks.get(key, np.inf) for key in self._ground.ids], np.float64)
        return self._ranks[signal]

    def _column_of_all(self, fusion: Fuse, votes: Sequence[Vote]) -> Column:
        """Return what a signal says of the places: by rank a row for each k, else one row for all."""
        import numpy as np

        constants = [vote.normaliser.k for vote in votes if isinstance(vote.normaliser, ReciprocalRank)]
        return self._by_rank(votes[0].signal, np.array(constants)) if constants else self._column(fusion, votes[0])

    def _by_rank(self, signal: str, constants: Floats) -> Column:
        k = constants[:, None]
        return Column((k + 1) / (k + self._ranks_in(signal)))

    def _column(self, fusion: Fuse, vote: Vote) -> Column:
        """Return what a signal says of the places."""
        normaliser = self._settled(vote.normaliser)
        known = self._columns.get((vote.signal, normaliser))
        if known is None:
            known = self._columns[vote.signal, normaliser] = self._shared_column(fusion, vote)
        return known

    def _kind(self, vote: Vote) -> tuple[str, object]:
        is_by_rank = isinstance(vote.normaliser, ReciprocalRank)
        return vote.signal, ReciprocalRank if is_by_rank else self._settled(vote.normaliser)

    def _settled(self, normaliser: Normaliser) -> Normaliser:
        """Return what tells columns apart: where no batch can be too small, its cap says nothing."""
        if isinstance(normaliser, BatchMax) and not self._has_gaps and len(self._ids) >= normaliser.least:
            return BatchMax()
        return normaliser

    @cached_property
    def _has_gaps(self) -> bool:
        """Tell whether a signal may not know a candidate."""
        return any(None in column_of(signal.values, self._ids) for signal in self._context.signals.values())

    def _shared_column(self, fusion: Fuse, vote: Vote) -> Column:
        """Return the column of another pool on this ground, if it lists the same and the signal says the same."""
        signal = self._context.signals.get(vote.signal)
        if signal is None or vote.normaliser.by_rank or fusion.absent != "shared":
            return self._made_column(fusion, vote)
        key = vote.signal, vote.normaliser, id(signal)
        ids, column = self._ground.columns.get(key, (None, None))
        if column is None or ids != self._ids:
            column = self._made_column(fusion, vote)
            self._ground.columns[key] = self._ids, column
        shared: Column = column
        return shared

    def _made_column(self, fusion: Fuse, vote: Vote) -> Column:
        import numpy as np

        column = fusion.column(vote, self._runs, self._context, self._ids)
        if column.array is not None:
            return Column(self._spread(column.array))
        if None not in column.normalised:
            return Column(self._spread(np.array(column.normalised, np.float64)))
        numbers = np.array([value or 0.0 for value in column.normalised], np.float64)
        known = np.array([value is not None for value in column.normalised], np.float64)
        return Column(self._spread(numbers), self._spread(known) > 0)


def _shares(fusion: Fuse, votes: Sequence[Vote]) -> list[float]:
    return share_out([vote.weight or 0.0 for vote in votes], fusion.whole)


def _alike(rows: Sequence[Sequence[tuple[str, object]]]) -> list[list[int]]:
    """Return which rows are the same: at the ends of a weight a vote may fall silent."""
    groups: dict[tuple[tuple[str, object], ...], list[int]] = {}
    for number, row in enumerate(rows):
        groups.setdefault(tuple(row), []).append(number)
    return [*groups.values()]


def _left_to_others(weights: Floats, columns: Sequence[Column], wholes: Floats) -> Floats:
    """Return the weights for each place; a signal that does not know it leaves its weight to the others."""
    import numpy as np

    everywhere = np.ones(columns[0].numbers.shape[-1], np.bool_)
    known = np.array([everywhere if column.known is None else column.known for column in columns])
    own = weights * known
    summed = np.zeros((len(weights), len(everywhere)))
    for turn in range(len(columns)):
        summed += own[:, turn]
    shared = own / np.where(summed > 0, summed, 1.0)[:, None] * wholes[:, None]
    return np.where(known.all(axis=0), np.broadcast_to(weights, shared.shape), shared)
