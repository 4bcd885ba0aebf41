"""Further memories for the run of names, which only proposes: those that it does not know by a name or a code."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice

from ..analysis.names import plainly
from ..analysis.spellings import may_hold_umlauts
from ..columns import Candidate, MemoryId
from ..expressions import spellings
from ..ports import Store
from ..types import Analysis, Run, Where

_NAMED_OTHERWISE = 20  # memories that hold other spellings whose names are looked at


def also_proposed(runs: Sequence[Run], further: Iterable[MemoryId]) -> tuple[Run, ...]:
    """Return runs of which that of names lists further memories, behind its own."""
    return tuple(_behind(run, further) if run.name == "name" else run for run in runs)


def _behind(names: Run, further: Iterable[MemoryId]) -> Run:
    known = {*names.ids}
    new = [Candidate(identity, 0.0) for identity in dict.fromkeys(further) if identity not in known]
    return Run(names.name, (*names.candidates, *new), names.notices) if new else names


def with_accented_names(runs: tuple[Run, ...], analysis: Analysis, store: Store, where: Where) -> tuple[Run, ...]:
    """Let the run of names propose who may be called so with other accents than were asked for.

    Names are looked up as they are written. Those that the question writes without accents stand in the texts that hold
    other spellings of its words, those that it writes with accents under what it would be without.
    """
    named = [store.named(probe, where, _NAMED_OTHERWISE) for probe in plainly(analysis.probe)]
    further = [identity for run in named for identity in run.ids]
    if may_hold_umlauts(analysis.probe.key) or any(spellings(term)[1] for term in analysis.terms):
        further += [identity for run in runs if run.name == "keyword" for identity in islice(run.ids, _NAMED_OTHERWISE)]
    return also_proposed(runs, further) if further else runs
