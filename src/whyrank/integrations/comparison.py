"""Comparison of the ranking of another system with the default one, on the user's own questions."""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ..config.load import Config, Value
from ..config.settings import SETTINGS
from ..errors import ConfigError
from ..ranking.recipes import RECIPES
from .importers import openclaw
from .importers.records import Findings, map_settings

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ..engine.engine import Engine
    from ..ranking.recipes import Recipe
    from ..types.memory import Memory
    from ..types.results import Results
    from .importers.records import MappedSetting

NEW = "default"
# The recipe with the arithmetic of each system; that of OpenClaw shows its known failures.
SYSTEMS = {"openclaw": "openclaw-2026-02", "hybrid-mem": "hybrid-mem", "clawhub": "clawhub", "openvault": "openvault"}
_WITH_SETTINGS = "openclaw"
_RANKING = ("recipe", "limit")  # settings that decide the ranking, beside those that begin so:
_RANKING_PREFIX = "ranking."
_NO_RUN = "no run brought it into its candidates"
_DEPTH = 100  # hits of each that are looked at, so that a hit that only stands further down is told from a lost one


class Policy(NamedTuple):
    """How another system ranks: a recipe as a value, the number of results, and the settings it was made of."""

    recipe: Recipe
    limit: int | None = None
    settings: Sequence[MappedSetting] = ()


class ComparedHit(NamedTuple):
    """One hit of one of the two; `lost` says why the other does not show it, and is empty if it does."""

    memory: Memory
    score: float
    confidence: float | None  # None where the store is not calibrated
    lost: str


class ComparedQuery(NamedTuple):
    """Hits of one question with the old ranking and with the new one, and the verdict of the new one."""

    query: str
    verdict: str
    old: Sequence[ComparedHit]
    new: Sequence[ComparedHit]


def policy_of(system: str, settings: Path | None = None) -> Policy:
    """Return how a system ranks as shipped, or with the user's settings of it."""
    if system not in SYSTEMS:
        close = get_close_matches(system, SYSTEMS, n=1)
        hint = f"did you mean {close[0]!r}?" if close else f"the systems are {', '.join(SYSTEMS)}"
        raise ConfigError(f"there is no system {system!r} to compare with", hint)
    if settings is None:
        return Policy(RECIPES[SYSTEMS[system]])
    if system != _WITH_SETTINGS:
        raise ConfigError(f"settings of {system} are not read from a file", "leave --settings out")
    findings = Findings()
    map_settings(openclaw.mapped_names(openclaw.read_settings(settings)), str(settings), findings)
    if findings.unread:
        raise ConfigError(f"{settings}: {findings.unread[0][1]}", "correct it, or leave --settings out")
    given: dict[str, Any] = {"recipe": _WITH_SETTINGS}
    for one in findings.settings:
        given |= {key: value for key, value in one.becomes.items() if _decides_ranking(key)}
    config = _only(given)
    return Policy(config.recipe(), config["limit"] if "limit" in given else None, findings.settings)


def _decides_ranking(key: str) -> bool:
    return key in _RANKING or key.startswith(_RANKING_PREFIX)


def _only(given: Mapping[str, Any]) -> Config:
    """Return the defaults with these settings, whatever the workspace and the user have set."""
    usual = {key: Value(setting.default, "default") for key, setting in SETTINGS.items()}
    return Config(Path(), {**usual, **{key: Value(value, "argument") for key, value in given.items()}})


def compare(
    engine: Engine,
    queries: Sequence[str],
    policy: Policy,
    *,
    limit: int | None = None,
    scope: Sequence[str] | None = None,
) -> Iterator[ComparedQuery]:
    """Ask every question twice, with the old ranking and with the default one, over the same memories."""
    size = limit or policy.limit or engine.config["limit"]
    for query in queries:
        deep = max(size, _DEPTH)
        old = engine.search(query, recipe=policy.recipe, limit=deep, scope=scope)
        new = engine.search(query, recipe=RECIPES[NEW], limit=deep, scope=scope)
        yield ComparedQuery(query, new.verdict, _hits(old, new, size), _hits(new, old, size))


def _hits(shown: Results, other: Results, size: int) -> list[ComparedHit]:
    ranks = {hit.memory.id: rank for rank, hit in enumerate(other, 1)}
    dropped = {hit.id: hit.trail[-1].why for hit in other.dropped}
    hits = []
    for hit in shown[:size]:
        rank = ranks.get(hit.id)
        lost = dropped.get(hit.id, _NO_RUN) if rank is None else "" if rank <= size else f"its rank is {rank}"
        hits.append(ComparedHit(hit.memory, hit.score, hit.confidence, lost))
    return hits
