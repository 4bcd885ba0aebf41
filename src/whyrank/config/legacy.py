"""Map settings of other programs and of earlier versions to the keys of today."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from ..errors import ConfigError
from ..types.memory import Notice

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

# HyDE had a longer timeout than query expansion has; migrated settings keep it.
HYDE_TIMEOUT_MS = 25_000


# Keys of other programs with the same meaning as one of whyrank's, read as they are.
SPELLINGS = {
    "queryExpansion.enabled": "query_expansion.enabled",
    "queryExpansion.model": "query_expansion.model",
    "queryExpansion.timeoutMs": "query_expansion.timeout_ms",
}


class Retired(NamedTuple):
    """Old keys that are read together, the new keys, and the conversion.

    `become` is given those of the old keys that were set, and returns values for new keys, read like any other value.
    """

    keys: tuple[str, ...]
    instead: tuple[str, ...]
    become: Callable[[Mapping[str, Any]], Mapping[str, Any]]


def _expansion(old: Mapping[str, Any]) -> dict[str, Any]:
    new: dict[str, Any] = {"query_expansion.mode": "hyde", "query_expansion.timeout_ms": HYDE_TIMEOUT_MS}
    if "search.hydeEnabled" in old:
        new["query_expansion.enabled"] = old["search.hydeEnabled"]
    if "search.hydeModel" in old:
        new["query_expansion.model"] = old["search.hydeModel"]
    return new


# Defaults of OpenVault and OpenClaw for a missing one of two keys that are read together.
_OPENVAULT_WEIGHTS = {"vectorSimilarityWeight": 15.0, "keywordMatchWeight": 3.0}
_OPENCLAW_RESULTS = 6.0
_OPENCLAW_MULTIPLIER = 4.0
_OPENCLAW_MOST_CANDIDATES = 200
_OPENCLAW_WEIGHTS = {"vectorWeight": 0.7, "textWeight": 0.3}
_OPENCLAW_MIN_SCORE = 0.35
_OPENCLAW_LAMBDA = 0.7
_OPENCLAW_HALF_LIFE_DAYS = 30.0
_OPENCLAW = "memorySearch.query."
_OPENCLAW_PROVIDER, _OPENCLAW_MODEL = "memorySearch.provider", "memorySearch.model"
_OPENCLAW_EMBEDDERS = {"none": "none", "local": "wordllama"}  # all others are servers
_OPENCLAW_ROOT = "agents.defaults."  # prefix of these keys in openclaw.json


def _number(old: Mapping[str, Any], key: str, default: float) -> float:
    value = old.get(key, default)
    try:
        number = float("" if isinstance(value, bool) else value)
    except (TypeError, ValueError):
        number = -1.0
    if not 0 <= number < float("inf"):
        raise ConfigError(f"{key} = {value!r}: must be a number from 0 upwards")
    return number


def _is_on(old: Mapping[str, Any], key: str, default: bool) -> bool:
    value = str(old.get(key, default)).lower()
    if value not in ("true", "false"):
        raise ConfigError(f"{key} = {old[key]!r}: must be true or false")
    return value == "true"


def _share(old: Mapping[str, Any], prefix: str, defaults: Mapping[str, float]) -> float:
    """Return the first weight as a share of the sum of both."""
    keys = [prefix + key for key in defaults]
    first, second = (_number(old, key, default) for key, default in zip(keys, defaults.values(), strict=True))
    if not first + second:
        raise ConfigError(f"{' and '.join(keys)} are both 0; one must be greater")
    return first / (first + second)


def _blend(old: Mapping[str, Any]) -> dict[str, Any]:
    weight = _number(old, "vectorSimilarityWeight", _OPENVAULT_WEIGHTS["vectorSimilarityWeight"])
    alpha = _share(old, "", _OPENVAULT_WEIGHTS)
    return {"recipe": "openvault", "ranking.boost_weight": weight, "ranking.alpha": alpha}


def _sliders(old: Mapping[str, Any]) -> dict[str, Any]:
    names = {
        "alpha": "ranking.alpha",
        "combinedBoostWeight": "ranking.boost_weight",
        "entityBoostWeight": "ranking.entity_boost",
        "vectorSimilarityThreshold": "ranking.vector_threshold",
    }
    return {"recipe": "openvault", **{names[key]: value for key, value in old.items()}}


def _results(old: Mapping[str, Any]) -> dict[str, Any]:
    wanted = _number(old, f"{_OPENCLAW}maxResults", _OPENCLAW_RESULTS)
    multiplier = _number(old, f"{_OPENCLAW}hybrid.candidateMultiplier", _OPENCLAW_MULTIPLIER)
    candidates = min(_OPENCLAW_MOST_CANDIDATES, int(wanted * multiplier))
    limit = {"limit": wanted} if f"{_OPENCLAW}maxResults" in old else {}
    return {"recipe": "openclaw", **limit, "ranking.pool": max(1, candidates)}


def _weights(old: Mapping[str, Any]) -> dict[str, Any]:
    return {"recipe": "openclaw", "ranking.vector_weight": _share(old, f"{_OPENCLAW}hybrid.", _OPENCLAW_WEIGHTS)}


def _diversity(old: Mapping[str, Any]) -> dict[str, Any]:
    if not _is_on(old, f"{_OPENCLAW}hybrid.mmr.enabled", False):
        return {}
    return {"recipe": "openclaw", "ranking.mmr_lambda": old.get(f"{_OPENCLAW}hybrid.mmr.lambda", _OPENCLAW_LAMBDA)}


def _decay(old: Mapping[str, Any]) -> dict[str, Any]:
    """Convert temporal decay: OpenClaw halves the whole score, which is a recency weight of 1."""
    if not _is_on(old, f"{_OPENCLAW}hybrid.temporalDecay.enabled", False):
        return {}
    days = old.get(f"{_OPENCLAW}hybrid.temporalDecay.halfLifeDays", _OPENCLAW_HALF_LIFE_DAYS)
    return {"recipe": "openclaw", "ranking.recency_weight": 1.0, "ranking.recency_half_life_days": days}


def _selection(old: Mapping[str, Any]) -> dict[str, Any]:
    """Convert the minimum score; without hybrid search it is a minimum cosine."""
    least = old.get(f"{_OPENCLAW}minScore", _OPENCLAW_MIN_SCORE)
    if _is_on(old, f"{_OPENCLAW}hybrid.enabled", True):
        return {"recipe": "openclaw", "ranking.min_score": least}
    return {"recipe": "vector", "ranking.min_vector": least}


def _embedder(old: Mapping[str, Any]) -> dict[str, Any]:
    """Convert the provider; servers are OpenAI-compatible, and their URL is the user's to set."""
    provider = old.get(_OPENCLAW_PROVIDER, "auto")
    if not isinstance(provider, str) or not provider.strip():
        raise ConfigError(f"{_OPENCLAW_PROVIDER} = {provider!r}: must be the name of a provider")
    if provider == "auto":
        return {}
    if provider in _OPENCLAW_EMBEDDERS:
        return {"embedding": _OPENCLAW_EMBEDDERS[provider]}
    model = {"embedder.model": old[_OPENCLAW_MODEL]} if _OPENCLAW_MODEL in old else {}
    return {"embedding": "openai", **model}


# If two rows set the same key, the later wins.
RETIRED: tuple[Retired, ...] = (
    Retired(
        ("search.hydeEnabled", "search.hydeModel"), ("query_expansion.enabled", "query_expansion.model"), _expansion
    ),
    Retired(
        ("vectorSimilarityWeight", "keywordMatchWeight"), ("recipe", "ranking.boost_weight", "ranking.alpha"), _blend
    ),
    Retired(
        ("alpha", "combinedBoostWeight", "entityBoostWeight", "vectorSimilarityThreshold"),
        ("recipe", "ranking.alpha", "ranking.boost_weight", "ranking.entity_boost", "ranking.vector_threshold"),
        _sliders,
    ),
    Retired(
        (f"{_OPENCLAW}maxResults", f"{_OPENCLAW}hybrid.candidateMultiplier"),
        ("recipe", "limit", "ranking.pool"),
        _results,
    ),
    Retired(
        (f"{_OPENCLAW}hybrid.vectorWeight", f"{_OPENCLAW}hybrid.textWeight"),
        ("recipe", "ranking.vector_weight"),
        _weights,
    ),
    Retired(
        (f"{_OPENCLAW}hybrid.mmr.enabled", f"{_OPENCLAW}hybrid.mmr.lambda"),
        ("recipe", "ranking.mmr_lambda"),
        _diversity,
    ),
    Retired(
        (f"{_OPENCLAW}hybrid.temporalDecay.enabled", f"{_OPENCLAW}hybrid.temporalDecay.halfLifeDays"),
        ("recipe", "ranking.recency_weight", "ranking.recency_half_life_days"),
        _decay,
    ),
    Retired(
        (f"{_OPENCLAW}hybrid.enabled", f"{_OPENCLAW}minScore"),
        ("recipe", "ranking.min_score", "ranking.min_vector"),
        _selection,
    ),
    Retired((_OPENCLAW_PROVIDER, _OPENCLAW_MODEL), ("embedding", "embedder.model"), _embedder),
    Retired(("ingest.chunkSize",), ("ingest.characters",), lambda old: {"ingest.characters": old["ingest.chunkSize"]}),
)


class Renewed(NamedTuple):
    """Values of new keys, the old keys they come from, and the notices that name both."""

    values: Mapping[str, Any]
    notices: tuple[Notice, ...]
    said_by: Mapping[str, str]


def is_retired(key: str) -> bool:
    """Return whether a key is a retired one."""
    return any(_bare(key) in row.keys for row in RETIRED)


def _bare(key: str) -> str:
    return key.removeprefix(_OPENCLAW_ROOT)


def renewed(old: Mapping[str, Any], origin: str) -> Renewed:
    """Convert the old keys of one source to new settings; one notice per row of the table."""
    values: dict[str, Any] = {}
    said_by: dict[str, str] = {}
    notices = []
    said = {_bare(key): value for key, value in old.items()}
    for row in RETIRED:
        given = {key: said[key] for key in row.keys if key in said}
        if given:
            try:
                new = row.become(given)
            except ConfigError as error:
                hint = f"write {' and '.join(row.instead)} instead"
                raise ConfigError(f"{error.message} (from {origin})", hint) from error
            values |= new
            said_by |= dict.fromkeys(new, " and ".join(given))
            notices.append(_notice(tuple(given), [key for key in row.instead if key in new], origin))
    return Renewed(values, tuple(notices), said_by)


def _notice(old: tuple[str, ...], instead: Sequence[str], origin: str) -> Notice:
    are = "are old names" if len(old) > 1 else "is an old name"
    new = f"write {' and '.join(instead)}, which wins if both are set" if instead else "it has no effect"
    return Notice("setting-old", f"{' and '.join(old)} ({origin}) {are}; {new}")
