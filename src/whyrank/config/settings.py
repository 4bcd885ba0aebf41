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
from ..storage import address
from ..storage.bm25 import CHUNKS_PER_SOURCE
from ..types.query import LENGTHS, MAX_TIMEOUT_MS

if TYPE_CHECKING:
    from collections.abc import Callable

STORE_FOLDER = ".whyrank"
DEFAULT_STORE = f"{STORE_FOLDER}/memory.db"
PREFIX = "WHYRANK_"
_KEY = re.compile(r"[A-Za-z0-9_-]{20,}", re.ASCII)
# Keys a workspace file may not set: it may come from another author, and texts and keys belong to the user.
USERS_OWN = ("embedder.url", "embedder.key_file", "llm.url", "llm.key_file", "recall.server")


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


def _store(value: Any) -> str:
    """Read the path or the address of a store; whether an address can be opened is seen then."""
    named = _text(value)
    if named.startswith(address.SCHEMES):
        address.parts_of(named)
    return named


def _optional(read: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: None if value in (None, "", "none") else read(value)


def _several(value: Any) -> str:
    """Read texts separated by commas, or a list of them."""
    return _text(",".join(map(_text, value)) if isinstance(value, list) else value)


_optional_text = _optional(_text)
_optional_url = _optional(lambda value: checked_url(_text(value)))


def _optional_key_file(value: Any) -> str | None:
    if _looks_like_key(value):
        raise ValueError("looks like a key itself; put it into a file and name the file")
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
        Setting(
            "store",
            DEFAULT_STORE,
            _store,
            "the store: a file, relative to the workspace, or postgresql://USER@HOST/DATABASE",
        ),
        Setting("embedding", "wordllama", _embedder, "the embedding model; none: keyword and name search only"),
        Setting(
            "model.folder",
            None,
            _optional_text,
            "where fetched models are kept; unset: whyrank/models in the user's cache",
        ),
        Setting("model.threads", 1, _whole(1, 256), "how many threads a model may use"),
        Setting("embedder.url", None, _optional_url, "URL of an OpenAI-compatible embedder, including /v1"),
        Setting("embedder.model", None, _optional_text, "name of the model on that server"),
        Setting("embedder.key_file", None, _optional_key_file, "a file with its API key; unset: WHYRANK_EMBEDDER_KEY"),
        Setting(
            "embedder.dimension",
            None,
            _optional(_whole(1, 65_536)),
            "dimension to request, for models that can shorten their vectors; unset: the model's own",
        ),
        Setting(
            "embedder.when",
            "write",
            _one_of("write", "worker"),
            "who embeds new texts: write: whoever stores them; worker: `whyrank worker`, so that no write waits",
        ),
        Setting("embedder.batch", 64, _whole(1, 2_048), "how many texts to send in one request"),
        Setting("embedder.prompt", "none", canonical_prompt, "the prefixes of texts and queries"),
        Setting("embedder.weight", 0.5, _number(0, 1), "the weight of its votes; keywords get 1 minus that"),
        Setting("embedder.timeout_s", 30.0, _number(0.1, 3_600), "time limit of one request, in seconds"),
        Setting("reranker.model", None, _reranker, "the cross-encoder that reranks the first hits; unset: none"),
        Setting("reranker.top", WINDOW, _whole(1, 1_000), "how many hits it reranks"),
        Setting(
            "reranker.deadline_ms",
            5_000.0,  # a small cross-encoder takes 3 seconds of CPU for 50 chunks
            _number(1, MAX_DEADLINE_MS),
            "time limit of reranking; when it is exceeded, the order stays as it was",
        ),
        Setting("llm.url", None, _optional_url, "URL of an OpenAI-compatible language model, including /v1"),
        Setting("llm.model", None, _optional_text, "name of the model on that server"),
        Setting("llm.key_file", None, _optional_key_file, "a file with its API key; unset: WHYRANK_LLM_KEY"),
        Setting("llm.timeout_s", 120.0, _number(0.1, 3_600), "time limit of one answer, in seconds"),
        Setting(
            "keyword",
            "postings",
            _one_of("postings", "fts5"),
            "the keyword index; an existing store is converted in place",
        ),
        Setting(
            "cache.megabytes", 320, _whole(8, 1_000_000), "approximate memory limit of all caches of an open store"
        ),
        Setting(
            "ballast.megabytes",
            8,
            _whole(0, 1_024),
            "space reserved beside a store, so that deletes work on a full disk",
        ),
        Setting(
            "language", "en", _one_of(*LANGUAGES), "the language of texts whose language cannot be detected (ISO 639-1)"
        ),
        Setting(
            "calibration",
            "automatic",
            _one_of("automatic", "manual"),
            "automatic: after an ingest, when the number of memories has doubled; manual: only by `whyrank calibrate`",
        ),
        Setting(
            "dedup.near",
            "report",
            _one_of("report", "merge", "keep"),
            "what to do with near-duplicate facts: report them, merge them, or keep them without a report",
        ),
        Setting("dedup.cosine", 0.95, _number(0, 1), "the cosine from which two facts are near-duplicates"),
        Setting("recipe", "default", lambda name: recipe_named(_text(name)).name, "how results are ranked"),
        Setting("limit", 6, _whole(1, 1_000), "how many results a search returns"),
        Setting(
            "timeout_ms",
            None,
            _optional(_whole(1, MAX_TIMEOUT_MS)),
            "time limit of a search; unset: none, over HTTP and MCP 10 s",
        ),
        Setting(
            "recall.max_tokens", 1_200, _whole(1, 100_000), "how many tokens a recall may inject, its frame included"
        ),
        Setting("recall.limit", 3, _whole(1, 100), "how many memories a recall may inject"),
        Setting(
            "recall.min_confidence",
            0.5,  # measured: a fifth to a half less for foreign questions than from 0.2, and 0 to 2 % less is found
            _number(0, 1),
            "the confidence below which a recall leaves a memory out; 0.8: only what a search calls found",
        ),
        Setting(
            "recall.min_share",
            0.7,  # measured: a third to four fifths of the irrelevant extras go, and 0 to 3 % less is found
            _number(0, 1),
            "the share of the best score below which a recall leaves a memory out",
        ),
        Setting("recall.ingested", True, _switch, "whether a recall may inject memories of ingested files"),
        Setting(
            "recall.timeout_ms", 400, _whole(1, MAX_TIMEOUT_MS), "time limit of `whyrank hook`, which is silent then"
        ),
        Setting(
            "recall.server",
            None,
            _optional_url,
            "URL of a `whyrank serve` that `whyrank hook` asks instead of opening the store; token: WHYRANK_TOKEN",
        ),
        Setting("recall.log", True, _switch, "whether recalls are logged beside the store; sessions depend on it"),
        Setting("pins", None, _optional_text, "the file of pins, relative to the workspace; unset: beside the store"),
        Setting("chunk.tokens", 400, _whole(16, 4_000), "the length of a chunk, in estimated tokens"),
        Setting("chunk.overlap", 80, _whole(0, 2_000), "how much of a chunk is repeated in the next one"),
        Setting(
            "ingest.paths",
            "skills/**/*.md,TOOLS.md,AGENTS.md",
            _several,
            "the files `ingest-files` reads: patterns relative to the workspace, separated by commas",
        ),
        Setting("ingest.characters", 800, _whole(100, 20_000), "how much of a file a language model gets at once"),
        Setting("ingest.overlap", 100, _whole(0, 10_000), "how much of that repeats the part before"),
        Setting(
            "ingest.same_cosine",
            0.85,
            _number(0, 1),
            "the cosine from which an extracted fact counts as already stored",
        ),
        Setting("ingest.max_bytes", 10 * 1024 * 1024, _whole(1, 2**31), "files larger than this are skipped"),
        Setting("ranking.vector_weight", None, _optional(_number(0, 1)), "the vector vote; unset: the embedder's own"),
        Setting("ranking.recency_weight", 0.0, _number(0, 1), "how much age may lower a score; 0 switches it off"),
        Setting(
            "ranking.recency_half_life_days", 30.0, _number(0.001, 1e6), "after how many days half of that is reached"
        ),
        Setting("ranking.min_vector", None, _optional(_number(-1, 1)), "drop hits below this cosine and coverage"),
        Setting("ranking.min_coverage", None, _optional(_number(0, 1)), "drop hits below this coverage and cosine"),
        Setting(
            "ranking.name_bonus",
            1.0,
            _number(0, 10),
            "factor of the bonus for parts of names and for names in sentences",
        ),
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
            "relevance against diversity: 1 is relevance only, 0.7 adds some diversity; unset: none",
        ),
        Setting(
            "ranking.alpha",
            None,
            _optional(_number(0, 1)),
            "balance in blends such as openvault: 0 is keywords only, 1 is vectors only; unset: the recipe's",
        ),
        Setting(
            "ranking.boost_weight",
            None,
            _optional(_number(1, 30)),
            "how much vectors and keywords together add to the base score, in blends such as openvault; unset: the "
            "recipe's",
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
            "the minimum score in recipes that have one (openclaw); unset: the recipe's",
        ),
        Setting(
            "ranking.importance",
            AS_THE_RECIPE_SAYS,
            _one_of(AS_THE_RECIPE_SAYS, SCALED),
            "scaled: score × (0.75 + 0.1 · importance), for memories with an importance",
        ),
        Setting(
            "ranking.entity_boost",
            None,
            _optional(_number(0, 30)),
            "how much more names in a query count than other words, more the rarer they are; unset: the recipe's",
        ),
        Setting(
            "ranking.analysis",
            AS_THE_RECIPE_SAYS,
            _one_of(AS_THE_RECIPE_SAYS, *LENGTHS),
            "strict-length: words of one or two letters, before or after stemming, are searched only if there are "
            "no others",
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
            "k of reciprocal rank fusion (rrf, hybrid-mem): the larger, the less the first ranks count; unset: 60",
        ),
        Setting(
            "query_expansion.enabled", False, _switch, "whether a language model expands queries asked from Python"
        ),
        Setting("query_expansion.model", None, _optional_text, "the model for query expansion; unset: llm.model"),
        Setting(
            "query_expansion.mode",
            "hyde",
            _one_of("hyde", "variants"),
            "hyde: also search for a made-up answer; variants: also search for other wordings of the query",
        ),
        Setting(
            "query_expansion.timeout_ms",
            15_000,
            _whole(-1, 3_600_000),
            "time limit of query expansion, at least 10000; 0 or less: no limit",
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
    if setting.key == "store" and str(raw).strip().startswith(address.SCHEMES):
        return address.shown(str(raw).strip())
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
