"""`whyrank model`: from one model to another and back, with the real ones."""

from __future__ import annotations

import json
import os
import subprocess
import time
from typing import TYPE_CHECKING

import pytest

import whyrank
from tests.hub import hub_server
from tests.minilm import MODELS, installed, minilm
from tests.multilingual import installed as multilingual_files
from tests.tiny import write_embedder, write_reranker
from whyrank.errors import ProviderError

from ..processes import started
from .conftest import COMMAND, SECONDS, STORE, Finished, Run

if TYPE_CHECKING:
    from pathlib import Path

MINILM = minilm().fingerprint
MEMORIES = 7  # of the workspace


@pytest.fixture
def model(call: Run) -> Run:
    """Run `whyrank model` with the models of the tests."""
    installed()

    def run(*arguments: str, **variables: str) -> Finished:
        return call("model", *arguments, **{"WHYRANK_MODEL_FOLDER": str(MODELS), **variables})

    return run


def spaces(workspace: Path) -> dict[str, int]:
    with whyrank.open(workspace / STORE, embedding="none") as memory:
        return dict(memory.status().spaces)


@pytest.mark.usefixtures("workspace")
def test_the_list_says_what_there_is_what_is_ready_and_what_is_in_use(model: Run) -> None:
    told = {line.strip("* ").split()[0]: line for line in model().out.splitlines() if not line.startswith("    ")}
    assert {"wordllama", "minilm", "minilm-int8", "none"} < set(told)
    assert told["wordllama"].startswith("* ")
    assert told["minilm"].startswith("  ")
    listed = {found["name"]: found for found in model("list", "--json").data["models"]}
    assert (listed["wordllama"]["in_use"], listed["wordllama"]["vectors"]) == (True, MEMORIES)
    assert (listed["minilm"]["dimension"], listed["minilm"]["languages"]) == (384, ["en"])
    assert 45_000_000 < listed["minilm"]["bytes"] < 46_000_000
    assert (listed["minilm"]["space"], listed["minilm"]["vectors"], listed["minilm"]["needs"]) == (MINILM, 0, None)


def test_a_second_model_is_added_and_dropped(model: Run, workspace: Path) -> None:
    multilingual_files()
    would = model("add", "multilingual", "--dry-run", "--json").data
    assert (would["waiting"], would["fetched"], would["embedded"]) == (MEMORIES, False, 0)
    assert len(spaces(workspace)) == 1
    done = model("add", "multilingual")
    assert done.out.splitlines()[0] == f"{MEMORIES} texts were embedded"
    listed = model("list", "--json").data
    assert [(one["model"], one["role"], one["vectors"]) for one in listed["spaces"]] == [
        ("wordllama", "serving", MEMORIES), ("multilingual", "added", MEMORIES),
    ]  # fmt: skip
    assert [found["name"] for found in listed["models"] if found["in_use"]] == ["wordllama"]
    assert not (workspace / "whyrank.toml").exists()  # the store says it, whoever opens it
    assert model("drop", "multilingual").out == f"{MEMORIES} vectors of multilingual were deleted\n"
    assert len(spaces(workspace)) == 1


@pytest.mark.usefixtures("workspace")
def test_a_model_that_is_not_there_says_what_gets_it(model: Run, tmp_path: Path) -> None:
    listed = model("list", "--json", WHYRANK_MODEL_FOLDER=str(tmp_path / "empty")).data["models"]
    assert [found["needs"] for found in listed] == [
        None, "whyrank model fetch minilm", "whyrank model fetch minilm-int8",
        "whyrank model fetch granite", "whyrank model fetch bge-small", "whyrank model fetch multilingual",
        "whyrank config embedder.url … and whyrank config embedder.model …", None,
    ]  # fmt: skip
    done = model("use", "minilm", "--dry-run", WHYRANK_MODEL_FOLDER=str(tmp_path / "empty"))
    assert done.out.splitlines()[0] == "minilm would be fetched first"


def test_to_another_model_and_back(model: Run, call: Run, workspace: Path) -> None:
    file = workspace / "whyrank.toml"
    file.write_text("# mine\nlimit = 4  # four\n", encoding="utf-8")
    done = model("use", "minilm")
    assert done.out.splitlines()[0] == f"{MEMORIES} texts were embedded; vectors of other models stay"
    assert file.read_text(encoding="utf-8") == '# mine\nlimit = 4  # four\nembedding = "minilm"\n'
    answer = call("search", "what hot drink is hidden in the kitchen?", "--json", WHYRANK_MODEL_FOLDER=str(MODELS)).data
    assert answer["hits"][0]["path"] == "notes/tea.md"
    assert not {"no-vectors", "vectors-missing", "vector-off"} & {notice["code"] for notice in answer["notices"]}
    assert len(spaces(workspace)) == 2
    back = model("use", "wordllama", "--json").data
    assert (back["embedded"], back["in_use"], back["fetched"]) == (0, "wordllama", False)
    assert 'embedding = "wordllama"' in file.read_text(encoding="utf-8")


def test_a_dry_run_counts_and_changes_nothing(model: Run, workspace: Path) -> None:
    would = model("use", "minilm", "--dry-run", "--json").data
    assert (would["waiting"], would["embedded"], would["dry_run"], would["in_use"]) == (MEMORIES, 0, True, "wordllama")
    assert not (workspace / "whyrank.toml").exists()
    assert MINILM not in spaces(workspace)


def test_without_a_store_only_the_setting_is_written(model: Run, workspace: Path) -> None:
    (workspace / STORE).unlink()
    assert model("use", "minilm").status == 0
    assert (workspace / "whyrank.toml").read_text(encoding="utf-8") == 'embedding = "minilm"\n'
    assert not (workspace / STORE).exists()


@pytest.mark.usefixtures("workspace")
def test_what_is_stronger_than_the_file_is_named(model: Run) -> None:
    done = model("use", "minilm", WHYRANK_EMBEDDING="none")
    assert "none stays in use because of environment (WHYRANK_EMBEDDING)" in done.err


def test_until_the_other_model_is_filled_the_old_one_answers_and_says_so(call: Run, workspace: Path) -> None:
    installed()
    asked = ["search", "green tea", "--embedding", "minilm", "--json"]
    answer = call(*asked, WHYRANK_MODEL_FOLDER=str(MODELS)).data
    assert answer["hits"] == call("search", "green tea", "--json").data["hits"]
    [notice] = [notice for notice in answer["notices"] if notice["code"] == "model-differs"]
    assert "wordllama is used" in notice["message"]
    assert "`whyrank model use minilm` changes that" in notice["message"]
    assert MINILM not in spaces(workspace)


@pytest.mark.usefixtures("workspace")
@pytest.mark.parametrize(
    ("typed", "complaint"),
    [
        (("use", "minilmm"), "did you mean 'minilm'?"),
        (("use",), "the models are wordllama, minilm"),
        (("list", "minilm"), "`whyrank model use minilm` changes to one"),
        (("melt", "minilm"), "there is no action 'melt'"),
        (("rollback", "minilm"), "`whyrank model use minilm` changes to one"),
        (("list", "--check"), "belong to `model use`"),
        (("use", "minilm", "--background", "--check"), "--background prints no report"),
        (("add", "minilm"), "minilm only knows en"),
        (("add",), "no model to add was named"),
        (("rollback", "--background"), "belongs to `model use` and `model add`"),
        (("drop", "wordllama"), "change to another one first"),
    ],
)
def test_what_makes_no_sense_is_refused_with_what_does(model: Run, typed: tuple[str, ...], complaint: str) -> None:
    done = model(*typed)
    assert done.status == 2
    assert complaint in done.err


def test_a_model_that_was_not_fetched_leaves_words_to_answer_and_says_how_to_get_it(
    model: Run, call: Run, tmp_path: Path
) -> None:
    assert model("use", "minilm").status == 0
    found = call("search", "tea", "--json", WHYRANK_MODEL_FOLDER=str(tmp_path))
    assert found.status == 0
    assert found.data["hits"]
    [notice] = [notice for notice in found.data["notices"] if notice["code"] == "vector-off"]
    assert "`whyrank model fetch minilm` gets it" in notice["message"]


def test_no_store_is_made_for_a_model_that_was_not_fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WHYRANK_MODEL_FOLDER", str(tmp_path / "models"))
    with pytest.raises(ProviderError, match="whyrank model fetch minilm"):
        whyrank.open(tmp_path / "memory.db", workspace=tmp_path, embedding="minilm")
    assert not (tmp_path / "memory.db").exists()


def test_fetching_what_is_there_says_so(model: Run) -> None:
    assert model("fetch", "minilm").out == f"minilm is already in {MODELS}\n"
    assert model("fetch", "minilm", "--json").data["fetched"] is False


def test_killed_while_embedding_it_goes_on_where_it_was(tmp_path: Path) -> None:
    installed()
    store, notes = tmp_path / "memory.db", 400
    with whyrank.open(store, workspace=tmp_path, embedding="wordllama") as memory:
        for number in range(notes):
            memory.add(
                f"Parcel {number} for the harbour office weighs {number * 7} grams and waits in row {number % 9}"
            )
    environment = {**os.environ, "WHYRANK_MODEL_FOLDER": str(MODELS), "WHYRANK_STORE": str(store)}
    command = [str(COMMAND), "model", "use", "minilm", "--json"]
    with started(command, cwd=tmp_path, env=environment, stdout=subprocess.DEVNULL) as process:
        deadline = time.monotonic() + SECONDS
        while not (before := vectors_in(store)) and time.monotonic() < deadline:
            time.sleep(0.02)
        process.kill()
    assert 0 < before < notes
    assert not (tmp_path / "whyrank.toml").exists()  # the model before it is still the one in use
    kept = vectors_in(store)
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, check=True, timeout=SECONDS)
    assert json.loads(done.stdout)["embedded"] == notes - kept
    assert vectors_in(store) == notes


def vectors_in(store: Path) -> int:
    with whyrank.open(store, embedding="none") as memory:
        return memory.status().spaces.get(MINILM, 0)


# -- any model in ONNX -------------------------------------------------------------------------------------------------

POOLING = {"1_Pooling/config.json": {"pooling_mode_mean_tokens": True}}


@pytest.fixture
def any_model(call: Run, tmp_path: Path) -> Run:
    """Run `whyrank model` with an empty folder of models."""

    def run(*arguments: str, **variables: str) -> Finished:
        return call("model", *arguments, **{"WHYRANK_MODEL_FOLDER": str(tmp_path / "models"), **variables})

    return run


def test_a_model_of_the_hub_is_one_command_away(any_model: Run, call: Run, workspace: Path, tmp_path: Path) -> None:
    with hub_server() as hub:
        hub.publish("org/tiny", write_embedder(tmp_path / "tiny", files=POOLING))
        done = any_model("use", "hf:org/tiny", "--json", HF_ENDPOINT=hub.url).data
    assert (done["model"], done["fetched"], done["embedded"]) == ("hf:org/tiny", True, MEMORIES)
    assert (workspace / "whyrank.toml").read_text(encoding="utf-8") == 'embedding = "hf:org/tiny"\n'
    # The server is gone: the model is here.
    answer = call("search", "tea", "--json", WHYRANK_MODEL_FOLDER=str(tmp_path / "models")).data
    assert answer["hits"][0]["path"] == "notes/tea.md"
    assert not {"vector-off", "model-differs"} & {notice["code"] for notice in answer["notices"]}
    [listed] = [found for found in any_model("list", "--json").data["models"] if found["name"] == "hf:org/tiny"]
    assert (listed["in_use"], listed["vectors"], listed["dimension"]) == (True, MEMORIES, 2)
    assert any_model("use", "hf:org/tiny", "--json", HF_ENDPOINT="http://127.0.0.1:9").data["fetched"] is False


def test_a_folder_is_too_and_what_it_does_not_say_is_asked_for(any_model: Run, workspace: Path, tmp_path: Path) -> None:
    write_embedder(workspace / "tiny")
    refused = any_model("use", "./tiny")
    assert refused.status == 2
    assert "--pooling mean" in refused.err
    assert not (workspace / "whyrank.toml").exists()
    done = any_model("use", "./tiny", "--pooling", "cls", "--prompt", "bge", "--json").data
    assert (done["model"], done["embedded"]) == ("folder:tiny", MEMORIES)
    assert done["space"].endswith("-cls/2/bge")
    assert 'embedding = "folder:tiny"' in (workspace / "whyrank.toml").read_text(encoding="utf-8")
    assert any_model("rollback").out.startswith("back to wordllama")
    assert "would be embedded" in any_model("use", str(tmp_path / "nowhere"), "--dry-run").out


@pytest.mark.usefixtures("workspace")
@pytest.mark.parametrize(
    ("typed", "complaint"),
    [
        (("use", "hf:tiny"), "it must be hf:ORG/MODEL"),
        (("use", "minilm", "--pooling", "cls"), "has its own pooling"),
        (("list", "--prompt", "bge"), "belong to `model use`"),
        (("rerank",), "hf:ORG/MODEL, ./FOLDER, none"),
        (("rerank", "minilm"), "there is no reranker 'minilm'"),
        (("use", "./nowhere"), "there is no folder"),
    ],
)
def test_what_cannot_be_a_model_is_refused(any_model: Run, typed: tuple[str, ...], complaint: str) -> None:
    done = any_model(*typed)
    assert done.status == 2
    assert complaint in done.err


def test_a_reranker_is_set_listed_and_turned_off(any_model: Run, call: Run, workspace: Path, tmp_path: Path) -> None:
    write_reranker(workspace / "judge")
    assert "would name ./judge" in any_model("rerank", "./judge", "--dry-run").out
    assert "the first 50 hits are reranked" in any_model("rerank", "./judge").out
    assert 'model = "folder:judge"' in (workspace / "whyrank.toml").read_text(encoding="utf-8")
    [listed] = [found for found in any_model("list", "--json").data["models"] if found["kind"] == "reranker"]
    assert (listed["name"], listed["in_use"], listed["installed"]) == ("folder:judge", True, True)
    asked = ("search", "green tea", "--explain", "--json")
    [hit, *_] = call(*asked, WHYRANK_MODEL_FOLDER=str(tmp_path / "models")).data["hits"]
    assert "rerank" in {step["stage"] for step in hit["trail"]}
    assert any_model("rerank", "none", "--json").data["in_use"] is None
    [hit, *_] = call(*asked, WHYRANK_MODEL_FOLDER=str(tmp_path / "models")).data["hits"]
    assert "rerank" not in {step["stage"] for step in hit["trail"]}
