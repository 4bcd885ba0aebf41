"""Memory search for AI agents that can say why.

The public names are these; they are loaded when first used, so that importing whyrank costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False  # as `typing` has it, which takes longer to import than all of this
if TYPE_CHECKING:
    from .checkups import Checkup, Finding
    from .engine import Engine
    from .errors import WhyrankError
    from .hits import Hit, Ranking, Results
    from .opening import AsyncEngine, doctor, fetch_model, rank, restore
    from .opening import open_engine as open
    from .opening import open_engine_async as open_async
    from .ranking.recipes import RECIPES, Recipe
    from .search.contrast import Contrast
    from .search.why import Why
    from .trail import Part, Step, replay
    from .types import Document, Memory, Run, Scope

__version__ = "0.1.0"

_HOMES = {
    "open": ("opening", "open_engine"),
    "open_async": ("opening", "open_engine_async"),
    "doctor": ("opening", "doctor"),
    "fetch_model": ("opening", "fetch_model"),
    "rank": ("opening", "rank"),
    "restore": ("opening", "restore"),
    "Checkup": ("checkups", "Checkup"),
    "Document": ("types", "Document"),
    "Engine": ("engine", "Engine"),
    "Finding": ("checkups", "Finding"),
    "AsyncEngine": ("opening", "AsyncEngine"),
    "WhyrankError": ("errors", "WhyrankError"),
    "RECIPES": ("ranking.recipes", "RECIPES"),
    "Recipe": ("ranking.recipes", "Recipe"),
    "Contrast": ("search.contrast", "Contrast"),
    "Why": ("search.why", "Why"),
    "Part": ("trail", "Part"),
    "Step": ("trail", "Step"),
    "replay": ("trail", "replay"),
    "Hit": ("hits", "Hit"),
    "Memory": ("types", "Memory"),
    "Ranking": ("hits", "Ranking"),
    "Results": ("hits", "Results"),
    "Run": ("types", "Run"),
    "Scope": ("types", "Scope"),
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
