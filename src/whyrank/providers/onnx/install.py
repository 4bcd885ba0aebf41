"""Installation of models: fetch or copy, convert or describe, once per machine."""

from __future__ import annotations

import hashlib
import shutil
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ...errors import ConfigError, ProviderError, WhyrankError
from ..names import HUB_NAME, NO_PROMPT, folder_name, prompts_of
from .catalog import Installed, Published, folder_of, published
from .conversion import Precision, check_converter, converted, read_pack
from .description import (
    EXTERNAL_DATA,
    GRAPHS,
    RECORD,
    SMALL_FILES,
    TOKENIZER,
    DescribedFiles,
    Description,
    Kind,
    files_of,
    graph_in,
    pin_files,
    read_files,
    read_record,
    write_record,
)
from .embedder import (
    CrossEncoder,
    OnnxEmbedder,
    check_runtime,
    embedding_graph,
    feed,
    fetching_hint,
    measure_floor,
    open_session,
    scoring_graph,
)
from .fetch import FAILURES, HUB_VARIABLE, Hub, Progress, fetch, kept_in, write_whole

if TYPE_CHECKING:
    from collections.abc import Sequence

_PROBE = "how long is a vector?"


def silent(done: int, total: int, label: str) -> None:
    """Report no progress."""


# -- models with a name of their own -----------------------------------------------------------------------------------


def install_published(name: str, models: Path, tick: Progress = silent) -> bool:
    """Install a model of the catalog; safe in several processes at once, and again after a kill.

    Return true if anything had to be done.
    """
    found = published(name)
    assert found is not None, name
    source, folder = found[0], folder_of(name, models)
    check_runtime(name)  # checked before the download rather than after it
    if is_ready(source, folder):
        return False
    if source.encoder is not None:
        check_converter()
    with kept_in(folder, name):
        if is_ready(source, folder):
            return False
        fetch(source.folder, source.files, source.sources, folder, tick)
        if source.encoder is not None:
            _convert(source, folder, tick)
    return True


def is_ready(source: Published, folder: Path) -> bool:
    """Check that every model made of the same files can be loaded."""
    return all(model.is_at(folder) for model in source.models)


def _convert(source: Published, folder: Path, tick: Progress) -> None:
    """Write every variant, so that switching fetches nothing, and delete the weights."""
    from safetensors.numpy import load_file

    weights_file = folder / source.files[0].name
    if weights_file.suffix == ".safetensors":
        weights = load_file(weights_file)
    else:
        pack = read_pack(weights_file.read_bytes())
        weights = pack.weights
        write_whole(folder / TOKENIZER, lambda part: part.write_bytes(pack.tokenizer))
    total = source.files[0].bytes  # in bytes, the unit of the download's progress
    assert source.encoder is not None
    for done, model in enumerate(source.models, 1):
        precision: Precision = "int8" if model.graph.startswith("int8") else "fp16"
        graph = converted(weights, source.encoder, precision)
        write_whole(folder / model.graph, partial(Path.write_bytes, data=graph))
        tick(total * done // len(source.models), total, f"converting to {precision}")
    weights_file.unlink()


# -- any other model ---------------------------------------------------------------------------------------------------


def install_from_hub(
    name: str,
    models: Path,
    tick: Progress = silent,
    *,
    kind: Kind = "embedding",
    pooling: str | None = None,
    prompt: str | None = None,
) -> tuple[Installed, bool]:
    """Install a model of Hugging Face unless it is here; return true as second value if it was fetched."""
    named = HUB_NAME.fullmatch(name)
    assert named is not None, name
    folder = folder_of(name, models)
    check_runtime(name)
    if (known := read_record(folder)) and known.is_at(folder) and _is_as_asked(known, kind, pooling, prompt):
        _check_recorded(known, folder)
        return Installed(known, folder), False
    with kept_in(folder, name):
        was_here = known is not None and known.is_at(folder)
        if not was_here:
            _download(Hub(named[1], named[2] or "main"), name, folder, tick)
        description = _described(folder, name, kind, pooling, prompt)
        write_record(folder, description)
        return Installed(description, folder), not was_here


def install_from_folder(
    source: Path, models: Path, *, kind: Kind = "embedding", pooling: str | None = None, prompt: str | None = None
) -> tuple[Installed, bool]:
    """Copy a model from a folder, not needed afterwards; return true as second value if it was new."""
    name = folder_name(source)
    folder = folder_of(name, models)
    check_runtime(name)
    if not source.is_dir():
        raise ConfigError(f"there is no folder {source}", f"it should hold {GRAPHS[0]} and {TOKENIZER}")
    needed = tuple(files_of(source, graph_in(source, name)))
    known = read_record(folder)
    if known and known.files == pin_files(source, needed) and _is_as_asked(known, kind, pooling, prompt):
        _check_recorded(known, folder)
        return Installed(known, folder), False
    with kept_in(folder, name):
        description = _described(source, name, kind, pooling, prompt)
        if source.resolve() != folder.resolve():
            _replace_files(source, folder, needed, known)
        write_record(folder, description)
        return Installed(description, folder), True


def installed_folder(name: str, models: Path) -> Path:
    """Return the folder of a model that was copied from a folder; refuse one that is not installed."""
    if read_record(folder_of(name, models)) is None:
        raise ProviderError(f"{name} is not in {models}", fetching_hint(name))
    return folder_of(name, models)


def _replace_files(source: Path, folder: Path, needed: Sequence[str], known: Description | None) -> None:
    """Copy the files of a model; delete those of a former one, its record first."""
    (folder / RECORD).unlink(missing_ok=True)
    for pinned in known.files if known else ():
        (folder / pinned.name).unlink(missing_ok=True)
    for file in needed:
        (folder / file).parent.mkdir(exist_ok=True)
        shutil.copyfile(source / file, folder / file)


def _is_as_asked(known: Description, kind: Kind, pooling: str | None, prompt: str | None) -> bool:
    return (
        known.kind == kind
        and pooling in (None, known.pooling)
        and (prompt is None or prompts_of(prompt) == known.prompts)
    )


def _check_recorded(known: Description, folder: Path) -> None:
    """Refuse files that have changed since the first use."""
    for pinned in known.files:
        if not pinned.is_at(folder / pinned.name):
            raise ProviderError(
                f"{folder / pinned.name} has changed since its first use (SHA-256 {pinned.sha256[:12]}…)",
                f"remove {folder}, then fetch it again",
            )


def _download(hub: Hub, name: str, folder: Path, tick: Progress) -> None:
    """Download the files of a model, small ones first; all from the commit of the first one."""
    try:
        first = hub.look(TOKENIZER)
        if first is None:
            raise ProviderError(
                f"there is no {hub.repository}/{TOKENIZER} on the hub",
                "check the name, and whether the model is public; a model behind a login works from a folder",
            )
        hub = hub._replace(revision=first[1] or hub.revision)
        for small in (*SMALL_FILES, TOKENIZER):
            _download_if_there(hub, small, folder, tick)
        graph = next((graph for graph in GRAPHS if _download_if_there(hub, graph, folder, tick)), None)
        if graph is not None:
            any(_download_if_there(hub, graph + suffix, folder, tick) for suffix in EXTERNAL_DATA)
    except FAILURES as error:
        raise ProviderError(
            f"{name} could not be fetched: {error}",
            f"try again when the network is back, and it continues; {HUB_VARIABLE} names another server",
        ) from error


def _download_if_there(hub: Hub, file: str, folder: Path, tick: Progress) -> bool:
    found = hub.look(file)
    if found is None:
        return False
    wanted = found[0]
    if not wanted.sha256 or not wanted.is_at(folder / file):
        hub.download(wanted, folder, tick)
    return True


# -- describing --------------------------------------------------------------------------------------------------------


def _described(source: Path, name: str, kind: Kind, pooling: str | None, prompt: str | None) -> Description:
    """Test a model and describe it; refuse a model of another kind."""
    told = read_files(source, name, pooling=pooling, prompt=prompt)
    files = pin_files(source, files_of(source, told.graph))
    hashes = {pinned.name: pinned.sha256 for pinned in files}
    weights = [hashes[told.graph + suffix] for suffix in EXTERNAL_DATA if told.graph + suffix in hashes]
    shaped = " ".join([hashes[told.graph], hashes[TOKENIZER], str(told.max_tokens), *weights])
    described = Description(
        name=name,
        model=name.partition("@")[0].replace(":", "/", 1),
        revision=hashlib.sha256(shaped.encode()).hexdigest()[:8],
        dimension=0,
        max_tokens=told.max_tokens,
        pooling="graph",
        graph=told.graph,
        prompts=told.prompts if kind == "embedding" else NO_PROMPT,
        kind=kind,
        licence=told.licence,
        languages=told.languages,
        fetched_bytes=sum(pinned.bytes for pinned in files),
        files=files,
    )
    tried = _tried_embedding if kind == "embedding" else _tried_reranker
    try:
        return tried(described, source, told, pooling)
    except WhyrankError:
        raise
    except Exception as error:  # whatever onnxruntime or the tokenizer raises: it is no model that can be used
        reason = str(error).strip().partition("\n")[0][:200]
        hint = "its graph must take token ids as int64, in batches and of any length"
        raise ProviderError(f"{name} could not be run: {reason}", hint) from error


def _tried_embedding(described: Description, source: Path, told: DescribedFiles, given: str | None) -> Description:
    session = open_session(source / described.graph, described.name, 1)
    graph = embedding_graph(session, described.name)
    if graph.rank == 2:
        if given is not None:
            raise ConfigError(f"{described.name} pools in its graph ({graph.output})", "leave --pooling out")
        described = replace(described, about="a model of sentences, which pools in its graph")
    elif told.needs_more:
        raise ProviderError(
            f"{described.name} has a module {told.needs_more} behind its pooling, which its graph leaves out",
            "export it with `optimum-cli export onnx --library sentence_transformers`, which puts all into the graph",
        )
    elif told.pooling is None:
        raise ConfigError(
            f"{described.name} does not say how the vectors of its tokens become one (no 1_Pooling/config.json)",
            "its page does; say it with --pooling mean (most models), cls (bge, arctic), max or lasttoken",
        )
    else:
        about = f"a model of sentences, pooled by {told.pooling}"
        described = replace(
            described, pooling=told.pooling, revision=f"{described.revision}-{told.pooling}", about=about
        )
    values = session.run([graph.output], feed(graph, np.ones((1, 4), np.int64)))[0]
    embedder = OnnxEmbedder(replace(described, dimension=int(values.shape[-1])), source)
    vector = embedder.documents([_PROBE])[0]
    if not np.isfinite(vector).all() or not vector.any():
        raise ProviderError(f"{described.name} gives no finite vectors", "its graph does not fit onnxruntime")
    return replace(embedder.description, floor=measure_floor(embedder))


def _tried_reranker(described: Description, source: Path, told: DescribedFiles, given: str | None) -> Description:
    scoring_graph(open_session(source / described.graph, described.name, 1), described.name)
    described = replace(described, about="a cross-encoder, which reads a question and a text together")
    CrossEncoder(described, source).scores(_PROBE, [_PROBE])
    return described
