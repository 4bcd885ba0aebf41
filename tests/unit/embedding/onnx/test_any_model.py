"""Models of the hub and of folders: what their files say, what is asked for, what is refused."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest

from tests.hub import COMMIT, HubServer, hub_server
from tests.minilm import installed, minilm
from tests.tiny import write_embedder, write_tokenizer
from whyrank.errors import ConfigError, ProviderError
from whyrank.providers.names import PROMPTS
from whyrank.providers.onnx.catalog import find_model, folder_of
from whyrank.providers.onnx.embedder import measure_floor
from whyrank.providers.onnx.install import install_from_folder, install_from_hub
from whyrank.providers.registry import embedder_named, fetch, model_named, models

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from whyrank.providers.onnx.description import Description

MEAN = {"1_Pooling/config.json": {"word_embedding_dimension": 2, "pooling_mode_mean_tokens": True}}
CARD = "---\nlicense: mit\nlanguage:\n- en\n- de\n---\n# Tiny\n"


def quiet(done: int, total: int, label: str) -> None:
    """Say nothing."""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return tmp_path / "Tiny model"


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    return tmp_path / "models"


def is_part(path: Path) -> bool:
    """Tell a file of the model from those that whyrank keeps beside it."""
    return path.is_file() and path.name not in ("whyrank.json", ".lock")


def described(source: Path, kept: Path, **options: str) -> Description:
    return install_from_folder(source, kept, **options)[0].description  # type: ignore[arg-type]


# -- folders -----------------------------------------------------------------------------------------------------------


def test_a_folder_is_copied_and_not_needed_after_that(source: Path, kept: Path) -> None:
    write_embedder(source, files={**MEAN, "README.md": CARD})
    assert fetch(str(source), kept, quiet) == ("folder:Tiny-model", True)
    shutil.rmtree(source)
    embedder = embedder_named("folder:Tiny-model", kept)
    assert embedder is not None
    assert embedder.query("tea").tolist() == pytest.approx([0.8944, 0.4472], abs=1e-4)  # (0+3+1, 1+0+1) / √20
    listed = next(model for model in models(kept) if model.name == "folder:Tiny-model")
    assert (listed.licence, listed.languages, listed.dimension) == ("mit", ("en", "de"), 2)
    assert listed.installed
    assert listed.space == embedder.fingerprint
    assert listed.bytes == sum(
        path.stat().st_size for path in folder_of(listed.name, kept).rglob("*.*") if is_part(path)
    )


@pytest.mark.parametrize(
    ("files", "pooling", "prompts", "max_tokens"),
    [
        (MEAN, "mean", ("", ""), 512),
        (
            {"1_Pooling/config.json": {"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}},
            "cls", ("", ""), 512,
        ),
        ({"1_Pooling/config.json": {"pooling_mode": "lasttoken"}}, "lasttoken", ("", ""), 512),
        (
            {**MEAN, "config_sentence_transformers.json": {"prompts": {"query": "ask: ", "document": "note: "}}},
            "mean", ("ask: ", "note: "), 512,
        ),
        (
            {**MEAN, "config_sentence_transformers.json": {"prompts": {"query": "ask: "}, "default_prompt_name": None}},
            "mean", ("ask: ", ""), 512,
        ),
        (
            {**MEAN, "config_sentence_transformers.json": {"prompts": {"all": "say: "}, "default_prompt_name": "all"}},
            "mean", ("say: ", "say: "), 512,
        ),
        (
            {
                **MEAN,
                "sentence_bert_config.json": {"max_seq_length": 256},
                "tokenizer_config.json": {"model_max_length": 512},
            },
            "mean", ("", ""), 256,
        ),
        ({**MEAN, "tokenizer_config.json": {"model_max_length": 10**30}}, "mean", ("", ""), 512),
        ({**MEAN, "config.json": {"model_type": "xlm-roberta", "max_position_embeddings": 514}}, "mean", ("", ""), 512),
        ({**MEAN, "config.json": {"model_type": "bert", "max_position_embeddings": 128}}, "mean", ("", ""), 128),
        ({**MEAN, "sentence_bert_config.json": {"max_seq_length": 8192}}, "mean", ("", ""), 2048),
    ],
)  # fmt: skip
def test_what_a_models_own_files_say(
    source: Path, kept: Path, files: dict[str, object], pooling: str, prompts: tuple[str, str], max_tokens: int
) -> None:
    write_embedder(source, files=files)
    told = described(source, kept)
    assert (told.pooling, told.prompts[1:], told.max_tokens) == (pooling, prompts, max_tokens)


def test_where_the_files_do_not_say_the_pooling_it_is_asked_for(source: Path, kept: Path) -> None:
    write_embedder(source)
    with pytest.raises(ConfigError, match="--pooling mean"):
        described(source, kept)
    assert described(source, kept, pooling="cls").pooling == "cls"
    with pytest.raises(ConfigError, match="it is one of cls, mean, max, lasttoken"):
        described(source, kept, pooling="average")


def test_another_pooling_or_prompt_is_another_space(source: Path, kept: Path) -> None:
    write_embedder(source, files=MEAN)
    mean, cls = described(source, kept), described(source, kept, pooling="cls")
    bge = described(source, kept, prompt="bge")
    assert len({mean.fingerprint, cls.fingerprint, bge.fingerprint}) == 3
    assert bge.prompts == PROMPTS["bge"]
    assert bge.fingerprint.endswith("/2/bge")


@pytest.mark.parametrize("graph", ["model.onnx", "model_optimized.onnx"])
def test_the_graph_may_lie_where_others_lay_it(source: Path, kept: Path, graph: str) -> None:
    write_embedder(source, graph=graph, files=MEAN)
    assert described(source, kept).graph == graph


def test_a_graph_that_pools_needs_no_pooling(source: Path, kept: Path) -> None:
    write_embedder(source, output="sentence_embedding", pools=True)
    assert described(source, kept).pooling == "graph"
    with pytest.raises(ConfigError, match="leave --pooling out"):
        described(source, kept, pooling="cls")


def test_the_floor_is_measured_once_and_recorded(source: Path, kept: Path) -> None:
    (source / "onnx").mkdir(parents=True)
    shutil.copyfile(installed() / "int8-1.onnx", source / "onnx" / "model.onnx")
    shutil.copyfile(installed() / "tokenizer.json", source / "tokenizer.json")
    told = described(source, kept)
    assert (told.dimension, told.pooling) == (384, "graph")
    assert told.floor == measure_floor(minilm("minilm-int8")) == pytest.approx(0.065, abs=0.01)
    found = find_model("folder:Tiny-model", kept)
    assert found is not None
    assert found.description == told


NO_MODELS: dict[str, tuple[dict[str, object], str]] = {
    "another modality": ({"inputs": ("pixel_values",), "files": MEAN}, "its inputs are pixel_values"),
    "a decoder": ({"inputs": ("input_ids", "past_key_values.0.key"), "files": MEAN}, "is not a text encoder"),
    "a classifier": ({"output": "logits", "files": MEAN}, "whyrank model rerank"),
    "two poolings": (
        {"files": {"1_Pooling/config.json": {"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": True}}},
        "pools in a way that whyrank does not know",
    ),
    "a layer behind": (
        {"files": {**MEAN, "modules.json": [{"type": "sentence_transformers.models.Dense"}]}},
        "has a module Dense behind its pooling",
    ),
    "not JSON": ({"files": {"1_Pooling/config.json": "{"}}, "1_Pooling/config.json cannot be read"),
}


@pytest.mark.parametrize("name", NO_MODELS)
def test_what_is_no_such_model_is_refused_and_leaves_no_record(source: Path, kept: Path, name: str) -> None:
    changes, complaint = NO_MODELS[name]
    write_embedder(source, **changes)  # type: ignore[arg-type]
    with pytest.raises(ProviderError, match=complaint):
        described(source, kept)
    assert find_model("folder:Tiny-model", kept) is None


def test_a_folder_without_graph_or_tokenizer_says_which(source: Path, kept: Path) -> None:
    write_tokenizer(source)
    with pytest.raises(ProviderError, match=r"neither onnx/model\.onnx nor model\.onnx exists.*optimum-cli"):
        described(source, kept)
    (source / "model.onnx").write_bytes(b"no graph")
    with pytest.raises(ProviderError, match=r"model\.onnx cannot be loaded"):
        described(source, kept)
    (source / "tokenizer.json").unlink()
    with pytest.raises(ProviderError, match=r"has no tokenizer\.json"):
        described(source, kept)
    with pytest.raises(ConfigError, match="there is no folder"):
        described(source / "nowhere", kept)


def test_a_folder_that_has_changed_replaces_the_model_by_another_space(source: Path, kept: Path) -> None:
    before = described(write_embedder(source, files=MEAN), kept)
    write_embedder(source, files=MEAN, inputs=("input_ids",))
    after, is_new = install_from_folder(source, kept)
    assert is_new
    assert after.description.fingerprint != before.fingerprint
    assert install_from_folder(source, kept)[1] is False


def test_an_installed_folder_is_described_anew_by_its_name(source: Path, kept: Path) -> None:
    described(write_embedder(source, files=MEAN), kept)
    shutil.rmtree(source)
    assert fetch("folder:Tiny-model", kept, quiet, pooling="max") == ("folder:Tiny-model", True)
    found = find_model("folder:Tiny-model", kept)
    assert found is not None
    assert found.description.pooling == "max"
    with pytest.raises(ProviderError, match="`whyrank model use PATH/other` copies it"):
        fetch("folder:other", kept, quiet)
    with pytest.raises(ConfigError, match=r"`whyrank model use \./tiny` installs"):
        embedder_named("./tiny", kept)


def test_files_that_have_changed_behind_our_back_are_not_believed(source: Path, kept: Path) -> None:
    write_embedder(source, files=MEAN)
    described(source, kept)
    copy = folder_of("folder:Tiny-model", kept) / "tokenizer.json"
    copy.write_text(copy.read_text(encoding="utf-8").replace("tea", "tee"), encoding="utf-8")  # of the same size
    with pytest.raises(ProviderError, match=r"tokenizer\.json has changed since its first use"):
        described(source, kept)


# -- the hub -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[HubServer]:
    with hub_server() as server:
        monkeypatch.setenv("HF_ENDPOINT", server.url)
        yield server


def test_a_model_of_the_hub_is_fetched_once_and_then_offline(hub: HubServer, source: Path, kept: Path) -> None:
    hub.publish("org/tiny", write_embedder(source, files={**MEAN, "README.md": CARD}))
    seen: list[str] = []
    assert fetch("hf:org/tiny", kept, lambda done, total, label: seen.append(f"{done}/{total} {label}")).is_new
    graph = hub.files["org/tiny/onnx/model.onnx"]
    assert seen[-1] == f"{len(graph)}/{len(graph)} onnx/model.onnx"
    # Everything after the first look is of the commit that the branch stood for then.
    assert {line.split()[2] for line in hub.asked if not line.endswith("main tokenizer.json 0")} == {COMMIT}
    hub.asked.clear()
    assert not fetch("hf:org/tiny", kept, quiet).is_new
    embedder = embedder_named("hf:org/tiny", kept)
    assert embedder is not None
    assert embedder.query("tea").any()
    assert hub.asked == []
    assert embedder.fingerprint.startswith("hf/org/tiny@")
    assert embedder.languages == ("en", "de")


def test_what_broke_off_goes_on_where_it_was(hub: HubServer, source: Path, kept: Path) -> None:
    hub.publish("org/tiny", write_embedder(source, files=MEAN))
    tokenizer = len(hub.files["org/tiny/tokenizer.json"])
    hub.breaks_off_after = 350
    with pytest.raises(
        ProviderError, match=rf"tokenizer\.json was cut off after 350 of {tokenizer:,} bytes.*continues"
    ):
        install_from_hub("hf:org/tiny", kept)
    hub.breaks_off_after = None
    hub.asked.clear()
    install_from_hub("hf:org/tiny", kept)
    gets = [line for line in hub.asked if line.startswith("GET") and "tokenizer" in line]
    assert gets == [f"GET org/tiny {COMMIT} tokenizer.json 350"]


def test_a_revision_is_a_model_of_its_own(hub: HubServer, source: Path, kept: Path) -> None:
    hub.publish("org/tiny", write_embedder(source, files=MEAN))
    install_from_hub("hf:org/tiny@v2", kept)
    assert "HEAD org/tiny v2 tokenizer.json 0" in hub.asked
    assert find_model("hf:org/tiny@v2", kept) is not None
    assert find_model("hf:org/tiny", kept) is None
    with pytest.raises(ProviderError, match=r"there is no org/tiny/tokenizer\.json"):
        install_from_hub("hf:org/tiny@v3", kept)


def test_another_pooling_is_described_anew_and_nothing_fetched(hub: HubServer, source: Path, kept: Path) -> None:
    hub.publish("org/tiny", write_embedder(source))
    with pytest.raises(ConfigError, match="--pooling"):
        install_from_hub("hf:org/tiny", kept)
    mean, _ = install_from_hub("hf:org/tiny", kept, pooling="mean")
    hub.asked.clear()
    cls, is_new = install_from_hub("hf:org/tiny", kept, pooling="cls")
    assert (hub.asked, is_new) == ([], False)
    assert mean.description.fingerprint != cls.description.fingerprint


def test_a_file_that_is_not_the_one_the_hub_told_of_is_thrown_away(hub: HubServer, source: Path, kept: Path) -> None:
    hub.publish("org/tiny", write_embedder(source, files=MEAN))
    folder = folder_of("hf:org/tiny", kept)
    (folder / "onnx").mkdir(parents=True)
    (folder / "onnx" / "model.onnx.part").write_bytes(b"half of another file")
    with pytest.raises(ProviderError, match=r"onnx/model\.onnx is not the one expected"):
        install_from_hub("hf:org/tiny", kept)
    install_from_hub("hf:org/tiny", kept)
    assert (folder / "onnx" / "model.onnx").read_bytes() == hub.files["org/tiny/onnx/model.onnx"]


def test_a_repository_without_a_graph_is_refused(hub: HubServer, source: Path, kept: Path) -> None:
    write_tokenizer(source)
    (source / "model.safetensors").write_bytes(b"weights")
    hub.publish("org/torch", source)
    with pytest.raises(ProviderError, match="no ONNX graph"):
        install_from_hub("hf:org/torch", kept)


def test_weights_in_a_file_of_their_own_are_fetched_too(hub: HubServer, source: Path, kept: Path) -> None:
    import onnx

    write_embedder(source, files=MEAN)
    model = onnx.load(source / "onnx/model.onnx")
    onnx.save_model(
        model, source / "onnx/model.onnx", save_as_external_data=True, location="model.onnx_data", size_threshold=0
    )
    hub.publish("org/large", source)
    found, _ = install_from_hub("hf:org/large", kept)
    assert "onnx/model.onnx_data" in {pinned.name for pinned in found.description.files}


def test_a_server_that_is_not_there_says_what_to_do(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(ProviderError, match=r"hf:org/tiny could not be fetched: .*HF_ENDPOINT names another"):
        install_from_hub("hf:org/tiny", kept)


@pytest.mark.parametrize("name", ["hf:tiny", "hf:../../etc/passwd", "hf:org/..", "hf:org/tiny@../x", "folder:../x"])
def test_a_name_cannot_lead_out_of_the_folder_of_models(kept: Path, name: str) -> None:
    with pytest.raises((ConfigError, ProviderError)):
        fetch(name, kept, quiet)
    assert not kept.exists()


def test_a_model_that_is_not_here_says_how_to_get_it(kept: Path) -> None:
    with pytest.raises(ProviderError, match="`whyrank model fetch hf:org/tiny` gets it"):
        embedder_named("hf:org/tiny", kept)
    assert model_named("hf:org/tiny", kept).needs == "whyrank model fetch hf:org/tiny"


def test_a_record_of_another_shape_is_no_model(source: Path, kept: Path) -> None:
    described(write_embedder(source, files=MEAN), kept)
    record = folder_of("folder:Tiny-model", kept) / "whyrank.json"
    record.write_text(json.dumps({**json.loads(record.read_text(encoding="utf-8")), "format": 99}), encoding="utf-8")
    assert find_model("folder:Tiny-model", kept) is None
