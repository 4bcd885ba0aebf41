"""Memory search for AI agents that can say why.

The public names are these; they are loaded when first used, so that importing whyrank costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False  # as `typing` has it, which takes longer to import than all of this
if TYPE_CHECKING:
    from .engine.engine import Engine
    from .engine.open import AsyncEngine, doctor, fetch_model, rank, restore
    from .engine.open import open_engine as open
    from .engine.open import open_engine_async as open_async
    from .errors import WhyrankError
    from .ranking.recipes import RECIPES, Recipe
    from .search.explain import Contrast, Why
    from .storage.sqlite.check import Checkup, Finding
    from .types.memory import Document, Memory, Scope
    from .types.results import Hit, Ranking, Results, Run
    from .types.trail import Part, Step, replay

__version__ = "0.1.0"

_HOMES = {
    "open": ("engine.open", "open_engine"),
    "open_async": ("engine.open", "open_engine_async"),
    "doctor": ("engine.open", "doctor"),
    "fetch_model": ("engine.open", "fetch_model"),
    "rank": ("engine.open", "rank"),
    "restore": ("engine.open", "restore"),
    "Checkup": ("storage.sqlite.check", "Checkup"),
    "Document": ("types.memory", "Document"),
    "Engine": ("engine.engine", "Engine"),
    "Finding": ("storage.sqlite.check", "Finding"),
    "AsyncEngine": ("engine.open", "AsyncEngine"),
    "WhyrankError": ("errors", "WhyrankError"),
    "RECIPES": ("ranking.recipes", "RECIPES"),
    "Recipe": ("ranking.recipes", "Recipe"),
    "Contrast": ("search.explain", "Contrast"),
    "Why": ("search.explain", "Why"),
    "Part": ("types.trail", "Part"),
    "Step": ("types.trail", "Step"),
    "replay": ("types.trail", "replay"),
    "Hit": ("types.results", "Hit"),
    "Memory": ("types.memory", "Memory"),
    "Ranking": ("types.results", "Ranking"),
    "Results": ("types.results", "Results"),
    "Run": ("types.results", "Run"),
    "Scope": ("types.memory", "Scope"),
}

__all__ = [
    "RECIPES", "AsyncEngine", "Checkup", "Contrast", "Document", "Engine", "Finding", "Hit", "Memory", "Part",
    "Ranking", "Recipe", "Results", "Run", "Scope", "Step", "Why", "WhyrankError", "doctor", "fetch_model", "open",
    "open_async", "rank", "replay", "restore",
]  # fmt: skip


def __dir__() -> list[str]:
    return [*__all__, "__version__"]


def __getattr__(name: str) -> object:
    try:
        module, attribute = _HOMES[name]
    except KeyError:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None
    return getattr(import_module(f".{module}", __name__), attribute)
