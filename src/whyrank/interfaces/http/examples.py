"""Examples of what is answered, made by the shapes themselves, so that they are what a server says."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from ... import __version__
from ...analysis.query import analyse
from ...facts import Added, Changed
from ...hits import Hit, Results
from ...ingest.ingestor import Report
from ...lives import Forgotten
from ...ports import StoreStatus
from ...ranking.recipes import RECIPES
from ...ranking.settings import honoured
from ...search.why import Why
from ...spaces import Backlog, SpaceState
from ...trail import Part, Step, TermValue
from ...types import Memory, Scope
from .. import fact_shapes, shapes, space_shapes
from . import sliding

_CREATED = datetime(2026, 3, 14, 9, 30, tzinfo=UTC).timestamp()
_QUERY = "which tea does Robin prefer?"
_SPACE = "wordllama/l2_supercat@0.4.0.post1/256/plain-words"
MEMORY = Memory(
    "m_tcvp3fagya7erbvs",
    "Robin prefers green tea",
    scope=Scope("user", "42"),
    tags=("drinks",),
    importance=4,
    created=_CREATED,
    date=_CREATED,
)
_TERMS = (TermValue("tea", "words", "own", 2.1), TermValue("robin", "words", "own", 1.1))
_KEYWORD = Part("keyword", 0.4, 0.4, 1.0, 3.2, 1, terms=_TERMS)
_STEP = Step("fusion", "set", 1.0, "", (Part("vector", 0.6, 0.6, 1.0, 0.71, 1), _KEYWORD))
_HIT = Hit(MEMORY, 0, 1.0, (_STEP,), confidence=0.99)


def _results() -> dict[str, Any]:
    return shapes.results(Results(_QUERY, (_HIT,), "found", "default", analyse(_QUERY), timings={"total": 2.1}))


def _status() -> dict[str, Any]:
    store = StoreStatus(
        "/srv/notes/.whyrank/memory.db", 3, "postings", 412, 87, {"global": 411, "user:42": 1}, {_SPACE: 412}, 0,
        3_200_000, "SQLite 3.51.3, a compiled kernel", 81_000_000_000, 8_388_608,
        {"vectors": 426_000, "lists": 51_200, "pages": 310_000},
    )  # fmt: skip
    return {
        **shapes.status(store, _SPACE),
        "roles": space_shapes.spaces([SpaceState(_SPACE, "wordllama", "serving", 412, 0)]),
        "backlog": space_shapes.backlog(Backlog()),
        "old_words": 0,
        "notices": [],
        "evaluation": None,
        "version": __version__,
        "multi_scope": False,
        "read_only": False,
    }


def _report() -> dict[str, Any]:
    return shapes.report(Report(files={"new": 1}, unchanged=86, chunks=3, embedded=3, plans=[("notes/tea.md", "new")]))


ANSWERS: dict[str, dict[str, Any]] = {
    "Results": _results(),
    "WhyOrContrast": shapes.why(Why(_QUERY, MEMORY, "found", "it is result 1", rank=1, hit=_HIT)),
    "Page": {"memories": [shapes.memory(MEMORY)], "next": None, "notices": [], "format": shapes.FORMAT},
    "Added": fact_shapes.added(Added(MEMORY, "stored")),
    "Shown": fact_shapes.shown(MEMORY, [], []),
    "Changed": fact_shapes.changed(Changed(MEMORY), [], []),
    "Forgotten": fact_shapes.forgotten([MEMORY.id], None, Forgotten(1)),
    "Recalled": {"recalled": [MEMORY.id], "format": shapes.FORMAT},
    "Status": _status(),
    "Recipes": {
        "recipes": {"rrf": {"value": repr(RECIPES["rrf"]), "settings": list(honoured(RECIPES["rrf"]))}},
        "format": shapes.FORMAT,
    },
    **sliding.examples(MEMORY, _TERMS),
    "Report": _report(),
    "Health": {"status": "ok", "memories_searchable": True, "format": shapes.FORMAT},
    "Error": {
        "error": {
            "code": "config",
            "message": "POST /v1/search does not know 'limitt'",
            "hint": "did you mean 'limit'?",
            "request_id": "5f0c1d2e3a4b5c6d",
        },
        "format": shapes.FORMAT,
    },
}
