"""Description of a model: files, pooling, prompts, weight, and the record stored beside the files.

The layout is that of Hugging Face, which sentence-transformers, optimum and fastembed share: a graph, `tokenizer.json`,
and small JSON files that define the pooling of token vectors and the prompt of a query.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, cast, get_args

from ...errors import ConfigError, ProviderError
from ..names import NO_PROMPT, TRANSFORMER_WEIGHT, UNKNOWN_LANGUAGE_WEIGHT, Prompts, prompts_of

if TYPE_CHECKING:
    from pathlib import Path

# How the vectors of a text's tokens become one: the first, the mean, the largest of each number, the last; or the graph
# does it itself.
Pooling = Literal["cls", "mean", "max", "lasttoken", "graph"]
Kind = Literal["embedding", "reranker"]
POOLINGS: tuple[str, ...] = tuple(name for name in get_args(Pooling) if name != "graph")

TOKENIZER = "tokenizer.json"
# Where a graph may lie: as Hugging Face and optimum have it, as fastembed has it, and quantised.
GRAPHS = ("onnx/model.onnx", "model.onnx", "model_optimized.onnx", "onnx/model_quantized.onnx", "model_quantized.onnx")
EXTERNAL_DATA = ("_data", ".data")  # behind the name of a graph whose weights lie in a file of their own
MODULES, POOLING, PROMPTS = "modules.json", "1_Pooling/config.json", "config_sentence_transformers.json"
SENTENCE, TOKENS, CONFIG, CARD = "sentence_bert_config.json", "tokenizer_config.json", "config.json", "README.md"
SMALL_FILES = (MODULES, POOLING, PROMPTS, SENTENCE, TOKENS, CONFIG, CARD)  # all of them optional
RECORD = "whyrank.json"

_FORMAT = 1
_READ_BYTES = 1 << 20
_USUAL_TOKENS = 512  # what nearly every encoder reads
_MOST_TOKENS = 2_048  # attention takes memory by the square, and chunks are a quarter of it
# Their first positions are taken by padding.
_OFFSET_POSITIONS = frozenset({"roberta", "xlm-roberta", "camembert", "mpnet"})
_KNOWN_MODULES = frozenset({"Transformer", "Pooling", "Normalize"})
_LANGUAGE = re.compile(r"[a-z]{2}", re.ASCII)
_FRONT_MATTER = re.compile(r"---\r?\n(.*?)\r?\n---", re.DOTALL)


class Pinned(NamedTuple):
    """A file known by its size and its hash; without a hash, by its size alone."""

    name: str
    bytes: int
    sha256: str

    def is_at(self, path: Path) -> bool:
        """Check the file at a path by size and hash."""
        if not path.is_file() or path.stat().st_size != self.bytes:
            return False
        return not self.sha256 or sha256_of(path) == self.sha256


@dataclass(frozen=True)
class Description:
    """One model: its names, its input limits, and the weight of its vectors."""

    name: str  # as users type it
    model: str  # provider and model, the first part of the space's name
    revision: str  # of its vectors: part of the space's name
    dimension: int
    max_tokens: int
    pooling: Pooling
    graph: str = GRAPHS[0]
    prompts: Prompts = NO_PROMPT
    kind: Kind = "embedding"
    about: str = ""
    licence: str = ""
    languages: tuple[str, ...] = ()  # that it knows; () if undeclared
    unread: tuple[str, ...] = ()  # languages of which it reads no word
    floor: float = 0.0  # cosine of unrelated texts
    weight: float | None = None  # of its vote; None: that of a transformer
    fetched_bytes: int = 0  # what has to be downloaded
    is_exact_in_batches: bool = False  # a text's vector is the same, bit for bit, in any batch
    files: tuple[Pinned, ...] = field(default=(), repr=False)  # as they were at first use

    @property
    def fingerprint(self) -> str:
        """Return the name of the space: provider, model, revision, dimension and prompts."""
        prompt = "no-prompt" if self.prompts == NO_PROMPT else self.prompts.name
        return f"{self.model}@{self.revision}/{self.dimension}/{prompt}"

    def weight_in(self, language: str) -> float:
        """Return the weight of the vector vote in a language."""
        if language in self.unread:
            return 0.0
        if self.languages and language not in self.languages:
            return UNKNOWN_LANGUAGE_WEIGHT
        return TRANSFORMER_WEIGHT if self.weight is None else self.weight

    def is_at(self, folder: Path) -> bool:
        """Check that its files exist, by name and size."""
        sizes = {self.graph: None, TOKENIZER: None} | {pinned.name: pinned.bytes for pinned in self.files}
        return all(
            (folder / name).is_file() and size in (None, (folder / name).stat().st_size) for name, size in sizes.items()
        )

    def bytes_at(self, folder: Path) -> int:
        """Return the size of its files on disk."""
        names = {self.graph, TOKENIZER, *(pinned.name for pinned in self.files)}
        return sum((folder / name).stat().st_size for name in names if (folder / name).is_file())


# -- the record --------------------------------------------------------------------------------------------------------


def write_record(folder: Path, description: Description) -> None:
    """Write the record; a model that has one is installed."""
    content = json.dumps({**asdict(description), "format": _FORMAT}, indent=1, ensure_ascii=False)
    part = folder / f"{RECORD}.part"
    part.write_text(content, encoding="utf-8")
    part.replace(folder / RECORD)


def read_record(folder: Path) -> Description | None:
    """Read the record of an installed model; None if it is missing or in the format of another version."""
    try:
        data = json.loads((folder / RECORD).read_text(encoding="utf-8"))
        if data.pop("format") != _FORMAT:
            return None
        tuples = {key: tuple(data[key]) for key in ("languages", "unread")}
        files = tuple(Pinned(*pinned) for pinned in data["files"])
        return Description(**{**data, **tuples, "files": files, "prompts": Prompts(*data["prompts"])})
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None


def pin_files(folder: Path, names: Iterable[str]) -> tuple[Pinned, ...]:
    """Return the current sizes and hashes of files."""
    return tuple(Pinned(name, (folder / name).stat().st_size, sha256_of(folder / name)) for name in names)


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(_READ_BYTES):
            digest.update(block)
    return digest.hexdigest()


# -- metadata in a model's own files -----------------------------------------------------------------------------------


class DescribedFiles(NamedTuple):
    """Metadata in the small files beside a graph; empty where they have none."""

    graph: str
    pooling: Pooling | None
    prompts: Prompts
    max_tokens: int
    languages: tuple[str, ...]
    licence: str
    needs_more: str  # a module after the pooling that the graph would have to hold


def read_files(folder: Path, name: str, *, pooling: str | None = None, prompt: str | None = None) -> DescribedFiles:
    """Read the metadata of a model from its folder; explicit arguments take precedence."""
    if pooling and pooling not in POOLINGS:
        raise ConfigError(f"there is no pooling {pooling!r}", f"it is one of {', '.join(POOLINGS)}")
    card = _card(folder)
    return DescribedFiles(
        graph=graph_in(folder, name),
        pooling=cast("Pooling", pooling) if pooling else _pooling(folder, name),
        prompts=_checked_prompts(prompt, name) if prompt else _prompts(folder, name),
        max_tokens=_max_tokens(folder),
        languages=tuple(_languages(card.get("language"))),
        licence=str(card.get("license") or ""),
        needs_more=next((kind for kind in _modules(folder) if kind not in _KNOWN_MODULES), ""),
    )


def graph_in(folder: Path, name: str) -> str:
    """Return the path of the graph in a folder; refuse a folder without a model in ONNX."""
    graph = next((graph for graph in GRAPHS if (folder / graph).is_file()), None)
    if graph is None:
        export = "`optimum-cli export onnx --model MODEL FOLDER` makes one from PyTorch weights"
        raise ProviderError(f"{name} has no ONNX graph: neither {' nor '.join(GRAPHS[:2])} exists", export)
    if not (folder / TOKENIZER).is_file():
        raise ProviderError(
            f"{name} has no {TOKENIZER}", "put the tokenizer of the same model beside the graph, in that format"
        )
    return graph


def files_of(folder: Path, graph: str) -> Iterator[str]:
    """Yield the names of all files that belong to a model."""
    data = (graph + suffix for suffix in EXTERNAL_DATA)
    for name in (graph, TOKENIZER, *data, *SMALL_FILES):
        if (folder / name).is_file():
            yield name


def _pooling(folder: Path, name: str) -> Pooling | None:
    told = _json(folder / POOLING)
    modes = [key for key, value in told.items() if key.startswith("pooling_mode_") and value is True]
    if not modes and isinstance(told.get("pooling_mode"), str):
        modes = [f"pooling_mode_{told['pooling_mode']}"]
    if not modes:
        return None
    known: dict[str, Pooling] = {
        "pooling_mode_cls_token": "cls",
        "pooling_mode_cls": "cls",
        "pooling_mode_mean_tokens": "mean",
        "pooling_mode_mean": "mean",
        "pooling_mode_mean_sqrt_len_tokens": "mean",  # of another length and the same direction
        "pooling_mode_max_tokens": "max",
        "pooling_mode_max": "max",
        "pooling_mode_lasttoken": "lasttoken",
    }
    if len(modes) > 1 or modes[0] not in known or told.get("include_prompt") is False:
        raise ProviderError(
            f"{name} pools in a way that whyrank does not know ({POOLING}: {', '.join(modes)})",
            f"one of {', '.join(POOLINGS)} is known; --pooling would set it, and give other vectors",
        )
    return known[modes[0]]


def _checked_prompts(given: str, name: str) -> Prompts:
    try:
        return prompts_of(given)
    except ValueError as error:
        raise ConfigError(f"the prompt of {name} cannot be used: {error}", "--prompt names one that fits") from error


def _prompts(folder: Path, name: str) -> Prompts:
    """Return the prompts for queries and texts; the default prompt replaces a missing one."""
    told = _json(folder / PROMPTS)
    prompts = told.get("prompts")
    if not isinstance(prompts, Mapping):
        return NO_PROMPT
    default_name = told.get("default_prompt_name")
    default = prompts.get(default_name, "") if isinstance(default_name, str) else ""
    query = prompts.get("query", default)
    passage = next((prompts[name] for name in ("document", "passage", "corpus") if name in prompts), default)
    if not (isinstance(query, str) and isinstance(passage, str)) or not query + passage:
        return NO_PROMPT
    return _checked_prompts(json.dumps([query, passage]), name)


def _max_tokens(folder: Path) -> int:
    said = (_json(folder / SENTENCE).get("max_seq_length"), _json(folder / TOKENS).get("model_max_length"))
    lengths = [length for length in said if isinstance(length, int) and 0 < length < 10**6]
    config = _json(folder / CONFIG)
    positions = config.get("max_position_embeddings")
    if isinstance(positions, int) and positions > 0:
        lengths.append(positions - 2 if config.get("model_type") in _OFFSET_POSITIONS else positions)
    return max(8, min([*lengths, _MOST_TOKENS] if lengths else [_USUAL_TOKENS]))


def _modules(folder: Path) -> list[str]:
    modules = _json(folder / MODULES, list)
    kinds = (module.get("type") for module in modules if isinstance(module, Mapping))
    return [kind.rpartition(".")[2] for kind in kinds if isinstance(kind, str)]


def _card(folder: Path) -> Mapping[str, Any]:
    """Return the front matter of the model's page."""
    import yaml

    try:
        matter = _FRONT_MATTER.match((folder / CARD).read_text(encoding="utf-8", errors="replace"))
        read = yaml.safe_load(matter[1]) if matter else None
    except (OSError, ValueError, RecursionError, yaml.YAMLError):
        return {}
    return read if isinstance(read, Mapping) else {}


def _languages(said: Any) -> Iterator[str]:
    """Yield two-letter codes; "multilingual" yields none."""
    listed = said if isinstance(said, list) else [said]
    if "multilingual" not in listed:
        yield from (language for language in listed if isinstance(language, str) and _LANGUAGE.fullmatch(language))


def _json(path: Path, kind: type[Any] = dict) -> Any:
    """Read an optional JSON file; refuse an unreadable one, because its content shapes the vectors."""
    if not path.is_file():
        return kind()
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ProviderError(f"{path} cannot be read: {error}", "fix the file, or fetch it again") from error
    return data if isinstance(data, kind) else kind()
