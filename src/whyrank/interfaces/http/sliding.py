"""The routes behind the sliders: all that ranking knew of a question's candidates, and how like each other they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...analysis.query import analyse
from ...columns import Candidate
from ...hits import Context, Results
from ...ranking.counterfactuals import Pool
from ...ranking.recipes import RECIPES
from ...ranking.settings import Adjustments
from ...search.evidence import Weighing
from ...search.pooled import Pooled
from ...trail import TermValue
from ...types import Memory, Query, Run, Signal
from .. import pool_shapes
from ..door import Door, Values
from . import answers
from .schemas import (
    FORMAT,
    IDENTITY,
    NUMBER,
    TERM_KEY,
    TEXT,
    WHOLE,
    YES_OR_NO,
    Schema,
    listing,
    named,
    or_null,
    record,
    table,
)


def candidates(door: Door, values: Values) -> answers.Answer:
    """Give out the candidates of a question, to be ranked again."""
    return answers.Answer(pool_shapes.pool(_pooled(door, values, likeness=False)))


def likeness(door: Door, values: Values) -> answers.Answer:
    """Say how like each other the candidates of a question are."""
    return answers.Answer(pool_shapes.likeness(_pooled(door, values, likeness=True)))


def _pooled(door: Door, values: Values, *, likeness: bool) -> Pooled:
    asked = answers.searched(values)
    return door.desk.reading().pool(values["query"], scope=door.seen(values), likeness=likeness, **asked)


_NORMALISER: Schema = {"type": "object", "properties": {"kind": TEXT}, "required": ["kind"]}
_VOTE = record(signal=TEXT, weight=or_null(NUMBER), normaliser=_NORMALISER)
_FUSION = record(
    votes=listing(_VOTE), others=or_null(_VOTE), proposing=listing(TEXT),
    absent={"type": "string", "enum": ["shared", "zero"]}, strength=or_null(NUMBER), declared=NUMBER,
    shares=table(table(NUMBER)), why=TEXT,
)  # fmt: skip
_STAGE: Schema = {"type": "object", "properties": {"kind": TEXT}, "required": ["kind"]}
_SIGNAL = record(
    name=TEXT, raw=listing(or_null(NUMBER)), rank=listing(or_null(WHOLE)),
    coverage=or_null(listing(or_null(NUMBER))), is_evidence=YES_OR_NO,
    terms=record(
        keys=listing(record(**TERM_KEY)),
        added={**listing(listing(NUMBER)), "description": "key, value, key, value, … of each candidate"},
    ),
)  # fmt: skip
_CANDIDATE = record(
    id=IDENTITY, title=TEXT, headings=listing(TEXT), path=or_null(TEXT), start_line=or_null(WHOLE),
    end_line=or_null(WHOLE), kind=TEXT, scope=TEXT, tags=listing(TEXT), date=or_null(TEXT), trust=TEXT,
    snippet={**listing(TEXT), "description": "text, match, text, match, …: every second piece matches"},
    confidence=or_null(NUMBER), age_days=or_null(NUMBER),
    origin={"type": "integer", "description": "equal for chunks of one file"},
)  # fmt: skip
_KNOB = record(
    key=TEXT, setting=TEXT, label=TEXT, meaning=TEXT, low=NUMBER, high=NUMBER, step=NUMBER, value=NUMBER,
    given=or_null(NUMBER), unit=TEXT, idle=or_null(TEXT), needs=or_null(TEXT),
)  # fmt: skip
SCHEMAS: dict[str, Schema] = {
    "Candidates": record(
        query=TEXT, verdict=TEXT, evidence=NUMBER, notices=listing(named("Notice")), recipe=TEXT, limit=WHOLE,
        offset=WHOLE, settings=table({}), knobs=listing(_KNOB), runs=listing(TEXT), fusion=_FUSION,
        stages=listing(_STAGE), importance=or_null(_STAGE), last=listing(_STAGE), least=table(NUMBER),
        weighing=record(coverage_counts=NUMBER, rest=NUMBER, least=NUMBER),
        signals=listing(_SIGNAL),
        candidates={**listing(_CANDIDATE), "description": "in the order that breaks ties"},
        timings=table(NUMBER), format=FORMAT,
    ),
    "Likeness": record(
        ids=listing(IDENTITY),
        likeness={**listing(listing(NUMBER)), "description": "of each to each of those that stand before it"},
        format=FORMAT,
    ),
}  # fmt: skip


def examples(memory: Memory, terms: Sequence[TermValue]) -> dict[str, dict[str, Any]]:
    """Return what is answered where one memory is all there is."""
    text, recipe = "which tea does Robin prefer?", RECIPES["default"]
    runs = (Run("keyword", (Candidate(memory.id, 3.2),)), Run("vector", (Candidate(memory.id, 0.71),)))
    signals = {
        "keyword": Signal("keyword", {memory.id: 3.2}, {memory.id: 0.8}, {memory.id: terms}),
        "vector": Signal("vector", {memory.id: 0.71}),
    }
    context = Context(Query(text), analyse(text), {memory.id: memory}, signals)
    results = Results(text, (), "found", recipe.name, context.analysis, timings={"total": 2.1}, evidence=1.67)
    settled = Pool(runs, context, recipe)
    found = Pooled(results, settled, recipe, Adjustments(), (), 0.6, {}, {memory.id: 0.99}, Weighing.of(context, 0.35))
    return {"Candidates": pool_shapes.pool(found), "Likeness": pool_shapes.likeness(found)}
