"""The table of settings: key, default, parser, meaning."""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, NamedTuple

from ..analysis.tokenizer import LANGUAGES
from ..errors import ConfigError
from ..providers.endpoint import checked_url, masked_url
from ..providers.names import canonical_prompt, check_name, is_recorded_name
from ..ranking.fusion import K_RANGE, THRESHOLDS
from ..ranking.recipes import AS_THE_RECIPE_SAYS, CALIBRATED, SCALED, recipe_named
from ..ranking.stages import MAX_DEADLINE_MS, WINDOW
from ..storage.bm25 import CHUNKS_PER_SOURCE
from ..types.query import LENGTHS, MAX_TIMEOUT_MS

if TYPE_CHECKING:
    from collections.abc import Callable

STORE_FOLDER = ".whyrank"
DEFAULT_STORE = f"{STORE_FOLDER}/memory.db"
PREFIX = "WHYRANK_"
_KEY = re.compile(r"[A-Za-z0-9_-]{20,}", re.ASCII)
# Keys a workspace file may not set: it may come from another author, and texts and keys belong to the user.
USERS_OWN = ("embedder.url", "embedder.key_file", "llm.url", "llm.key_file")


class Setting(NamedTuple):
    """One setting: key, default, parser and description."""

    key: str
    default: Any
    read: Callable[[Any], Any]
    meaning: str

    @property
    def variable(self) -> str:
        """Return the environment variable that sets it."""
        return PREFIX + self.key.replace(".", "_").upper()


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value.strip() or "\0" in value:
        raise ValueError("must be a text")
    return value.strip()


def _optional(read: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: None if value in (None, "", "none") else read(value)


def _several(value: Any) -> str:
    """Read texts separated by commas, or a list of them."""
    return _text(",".join(map(_text, value)) if isinstance(value, list) else value)


_optional_text = _optional(_text)
_optional_url = _optional(lambda value: checked_url(_text(value)))


def _optional_key_file(value: Any) -> str | None:
    if _looks_like_key(value):
        raise ValueError("looks like a key itself; put it into a file and name that")
    name: str | None = _optional_text(value)
    return name


def _looks_like_key(value: Any) -> bool:
    """Return whether a value is a pasted key, not a path: paths have separators, suffixes, or are short."""
    return isinstance(value, str) and _KEY.fullmatch(value.strip()) is not None


def _whole(low: int, high: int) -> Callable[[Any], int]:
    def read(value: Any) -> int:
        number = _as_number(value)
        if number is None or number != number // 1:
            raise ValueError("must be a whole number")
        if not low <= number <= high:
            raise ValueError(f"must be from {low} to {high}")
        return int(number)

    return read


def _as_number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    try:
        return float(value)
    except (ValueError, OverflowError):
        return None


def _number(low: float, high: float) -> Callable[[Any], float]:
    def read(value: Any) -> float:
        number = _as_number(value)
        if number is None:
            raise ValueError("must be a number")
        if not low <= number <= high:
            raise ValueError(f"must be from {low:g} to {high:g}")
        return number

    return read


def _switch(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    word = str(value).strip().lower()
    if word not in _SWITCHES:
        raise ValueError("must be true or false")
    return _SWITCHES[word]


_SWITCHES = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}


def _one_of(*names: str) -> Callable[[Any], str]:
    def read(value: Any) -> str:
        if value not in names:
            raise ValueError(f"must be one of {', '.join(names)}")
        return str(value)

    return read


def _embedder(value: Any) -> str:
    name = _text(value)
    check_name(name)
    return name


def _reranker(value: Any) -> str | None:
    """Parse the name of a cross-encoder; only those of the hub and of folders exist."""
    name: str | None = _optional_text(value)
    if name is not None and not is_recorded_name(name):
        raise ValueError("must be hf:ORG/MODEL, folder:NAME or none")
    return name


SETTINGS: dict[str, Setting] = {
    setting.key: setting
    for setting in (
        Setting("store", DEFAULT_STORE, _text, "where memories live: a path, taken from the workspace"),
        Setting("embedding", "wordllama", _embedder, "the embedder; none for words and names alone"),
        Setting(
            "model.folder",
            None,
            _optional_text,
            "where fetched models are kept; unset: whyrank/models in the user's cache",
        ),
        Setting("model.threads", 1, _whole(1, 256), "how many threads a model may take"),
        Setting("embedder.url", None, _optional_url, "where an OpenAI-compatible embedder listens, up to and with /v1"),
        Setting("embedder.model", None, _optional_text, "what that server calls the model"),
        Setting("embedder.key_file", None, _optional_key_file, "a file with its key; unset: WHYRANK_EMBEDDER_KEY"),
        Setting(
            "embedder.dimension",
            None,
            _optional(_whole(1, 65_536)),
            "ask for vectors of so many numbers, where the model can shorten its own; unset: as many as it gives",
        ),
        Setting("embedder.batch", 64, _whole(1, 2_048), "how many texts go into one request"),
        Setting("embedder.prompt", "none", canonical_prompt, "what stands before texts and questions"),
        Setting("embedder.weight", 0.5, _number(0, 1), "what its vote is worth, against 1 minus that for words"),
        Setting("embedder.timeout_s", 30.0, _number(0.1, 3_600), "how many seconds one request may take"),
        Setting("reranker.model", None, _reranker, "the cross-encoder that reads the first hits; unset: none"),
        Setting("reranker.top", WINDOW, _whole(1, 1_000), "how many hits it reads"),
        Setting(
            "reranker.deadline_ms",
            5_000.0,  # a small cross-encoder takes 3 seconds of CPU for 50 chunks
            _number(1, MAX_DEADLINE_MS),
            "how long that may take; the order stays as it was where it takes longer",
        ),
        Setting("llm.url", None, _optional_url, "where an OpenAI-compatible language model listens, with /v1"),
        Setting("llm.model", None, _optional_text, "what that server calls the model"),
        Setting("llm.key_file", None, _optional_key_file, "a file with its key; unset: WHYRANK_LLM_KEY"),
        Setting("llm.timeout_s", 120.0, _number(0.1, 3_600), "how many seconds one answer may take"),
        Setting("keyword", "postings", _one_of("postings", "fts5"), "the keyword index; a store is switched in place"),
        Setting(
            "cache.megabytes", 320, _whole(8, 1_000_000), "memory the caches of an open store may hold together, about"
        ),
        Setting(
            "ballast.megabytes", 8, _whole(0, 1_024), "room kept beside a store so that deletes work on a full disk"
        ),
        Setting("language", "en", _one_of(*LANGUAGES), "the language of texts that do not show theirs (ISO 639-1)"),
        Setting(
            "calibration",
            "automatic",
            _one_of("automatic", "manual"),
            "automatic: renewed after an ingest when the memories have doubled; manual: by `whyrank calibrate` alone",
        ),
        Setting(
            "dedup.near",
            "report",
            _one_of("report", "merge", "keep"),
            "a fact that says almost the same as another: report it, merge it into that one, or keep it unseen",
        ),
        Setting("dedup.cosine", 0.95, _number(0, 1), "from which cosine on two facts say almost the same"),
        Setting("recipe", "default", lambda name: recipe_named(_text(name)).name, "how results are ranked"),
        Setting("limit", 6, _whole(1, 1_000), "how many results a search gives"),
        Setting(
            "timeout_ms",
            None,
            _optional(_whole(1, MAX_TIMEOUT_MS)),
            "how long a search may take; unset: as long as it takes, over HTTP and MCP 10 s",
        ),
        Setting("pins", None, _optional_text, "where pins are kept, taken from the workspace; unset: beside the store"),
        Setting("chunk.tokens", 400, _whole(16, 4_000), "the length of a chunk, in estimated tokens"),
        Setting("chunk.overlap", 80, _whole(0, 2_000), "how much of a chunk the next one repeats"),
        Setting(
            "ingest.paths",
            "skills/**/*.md,TOOLS.md,AGENTS.md",
            _several,
            "the files `ingest-files` reads: patterns relative to the workspace, separated by commas",
        ),
        Setting("ingest.characters", 800, _whole(100, 20_000), "how much of a file a language model is shown at once"),
        Setting("ingest.overlap", 100, _whole(0, 10_000), "how much of that was in the part before"),
        Setting("ingest.same_cosine", 0.85, _number(0, 1), "from here on an extracted fact is taken for a stored one"),
        Setting("ingest.max_bytes", 10 * 1024 * 1024, _whole(1, 2**31), "files larger than this are skipped"),
        Setting("ranking.vector_weight", None, _optional(_number(0, 1)), "the vector vote; unset: the embedder's own"),
        Setting("ranking.recency_weight", 0.0, _number(0, 1), "how much age may cost; 0 switches it off"),
        Setting("ranking.recency_half_life_days", 30.0, _number(0.001, 1e6), "after how many days that is half"),
        Setting("ranking.min_vector", None, _optional(_number(-1, 1)), "drop hits below this cosine and coverage"),
        Setting("ranking.min_coverage", None, _optional(_number(0, 1)), "drop hits below this coverage and cosine"),
        Setting("ranking.name_bonus", 1.0, _number(0, 10), "how much parts of names and names in sentences count"),
        Setting(
            "ranking.evidence",
            "any",
            _one_of("any", CALIBRATED),
            "calibrated: drop hits below the store's own thresholds of cosine and coverage",
        ),
        Setting("ranking.max_per_file", 1, _whole(1, CHUNKS_PER_SOURCE), "how many chunks of one file may be results"),
        Setting(
            "ranking.mmr_lambda",
            None,
            _optional(_number(0, 1)),
            "relevance against diversity: 1 relevance alone, 0.7 some diversity; unset: none",
        ),
        Setting(
            "ranking.alpha",
            None,
            _optional(_number(0, 1)),
            "vector against keyword in blends such as openvault: 0 words alone, 1 vectors alone; unset: the recipe's",
        ),
        Setting(
            "ranking.boost_weight",
            None,
            _optional(_number(1, 30)),
            "how much both together add to the base, in blends such as openvault; unset: the recipe's",
        ),
        Setting(
            "ranking.vector_threshold",
            None,
            _optional(_number(*THRESHOLDS)),
            "the cosine from which vectors count, in recipes that have one (openvault); unset: the recipe's, 0.5",
        ),
        Setting(
            "ranking.min_score",
            None,
            _optional(_number(0, 1)),
            "the least score in recipes that have one (openclaw); unset: the recipe's",
        ),
        Setting(
            "ranking.importance",
            AS_THE_RECIPE_SAYS,
            _one_of(AS_THE_RECIPE_SAYS, SCALED),
            "scaled: a score × (0.75 + 0.1 · importance), for memories that were given one",
        ),
        Setting(
            "ranking.entity_boost",
            None,
            _optional(_number(0, 30)),
            "how much more names in a question count than other words, the rarer the more; unset: the recipe's",
        ),
        Setting(
            "ranking.analysis",
            AS_THE_RECIPE_SAYS,
            _one_of(AS_THE_RECIPE_SAYS, *LENGTHS),
            "strict-length: words of one or two letters, before or after stemming, are asked for only if no other is",
        ),
        Setting(
            "ranking.pool",
            None,
            _optional(_whole(1, 10_000)),
            "how many sources each run may bring; unset: the recipe's",
        ),
        Setting(
            "ranking.k",
            None,
            _optional(_number(*K_RANGE)),
            "k of reciprocal rank fusion (rrf, hybrid-mem): the larger, the less a first place counts; unset: 60",
        ),
        Setting("query_expansion.enabled", False, _switch, "whether a language model widens questions asked in Python"),
        Setting("query_expansion.model", None, _optional_text, "the model that does; unset: llm.model"),
        Setting(
            "query_expansion.mode",
            "hyde",
            _one_of("hyde", "variants"),
            "hyde: look for a made-up answer; variants: also for other wordings of the question",
        ),
        Setting(
            "query_expansion.timeout_ms",
            15_000,
            _whole(-1, 3_600_000),
            "how long a question waits for it, at least 10000; 0 or less: without limit",
        ),
    )
}


def setting_named(key: str, origin: str = "") -> Setting:
    """Return a setting by key; an unknown key raises an error with a suggestion."""
    if key in SETTINGS:
        return SETTINGS[key]
    close = get_close_matches(key, SETTINGS, n=1)
    listed = "`whyrank config` lists the settings"
    meant = f"did you mean {close[0]!r}?" if close else f"take it out; {listed}" if origin else listed
    raise ConfigError(f"there is no setting {key!r}" + (f" ({origin})" if origin else ""), meant)


def _shown(setting: Setting, raw: Any) -> Any:
    """Return a raw value for error messages, with secrets masked."""
    if setting.read is _optional_url:
        return masked_url(str(raw))
    return f"{raw.strip()[:3]}…" if setting.read is _optional_key_file and _looks_like_key(raw) else raw


def read(key: str, raw: Any, origin: str) -> Any:
    """Parse the raw value of a setting; an invalid one raises an error with its origin."""
    setting = setting_named(key, origin)
    shown = repr(_shown(setting, raw))
    try:
        return setting.read(raw)
    except ConfigError as error:
        raise ConfigError(f"{key} = {shown} from {origin}: {error.message}", error.hint) from error
    except (ValueError, TypeError) as error:
        raise ConfigError(f"{key} = {shown} from {origin}: {error}", f"{key} is {setting.meaning}") from error
