"""What users type: every verb, as text and as JSON, through the real command where the process matters."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import whyrank
from whyrank import Part, Step, replay

from ..processes import started
from .conftest import COMMAND, SECONDS, STORE, Finished, Run, still_answers

if TYPE_CHECKING:
    from collections.abc import Sequence

VERBS = (
    "ingest", "add", "forget", "search", "why", "show", "list", "status", "config", "recipes", "model", "embed",
    "calibrate", "eval", "pin", "check", "tune", "update", "recalled", "prune", "export", "ingest-files",
    "mcp", "reindex", "doctor", "backup", "restore", "import", "rank", "copy", "worker", "compare-with",
    "recall",
)  # fmt: skip
# Run by others than people: `test_serving.py` and `test_recall.py` have them.
SERVERS = ("serve", "hook")

# An example of every verb, a word its text must hold, and the keys its JSON must have.
EXAMPLES: dict[str, tuple[list[str], str, set[str]]] = {
    "ingest": (["ingest", "notes"], "6 unchanged", {"files", "chunks", "removed", "embedded", "skipped", "remarks"}),
    "ingest-files": (
        ["ingest-files", "--plan", "--paths", "notes/tea.md"],
        "would ask about 1 chunk,",
        {"files", "chunks", "lines", "facts", "known", "refused", "failed", "tokens", "estimated_tokens", "stopped"},
    ),
    "add": (["add", "Robin", "prefers", "tea"], "Robin prefers tea", {"memories", "refused"}),
    "update": (["update", "OLD", "--importance", "4"], "the old ferry", {"id", "text", "importance", "history"}),
    "recalled": (["recalled", "TEA"], "1 memory recorded as useful", {"recalled"}),
    "prune": (["prune"], "0 memories pruned", {"pruned", "dry_run"}),
    "export": (["export", "--out", "all.jsonl"], "memories of global written to all.jsonl", {"exported", "file"}),
    "import": (
        ["import", "whyrank", "EXPORT"],
        "0 memories imported, 8 unchanged",
        {"new", "unchanged", "pins", "skipped", "bad", "dry_run"},
    ),
    "forget": (["forget", "OLD"], "forgot m_", {"forgotten", "memories", "remains"}),
    "search": (["search", "green tea"], "notes/tea.md:7-9", {"query", "verdict", "notices", "hits", "timings"}),
    "why": (["why", "green tea", "TEA"], "it is result 1", {"query", "id", "outcome", "summary", "rank", "trail"}),
    "recall": (["recall", "green tea"], "> Suzy drinks green tea", {"id", "text", "verdict", "reason", "memories"}),
    "show": (["show", "TEA"], "behind the flour", {"id", "text", "title", "path", "tags", "scope", "created"}),
    "list": (["list"], "notes/garden/compost.md:1-3", {"memories"}),
    "rank": (["rank", "LISTS"], " 1. m_2  score 0.9919", {"recipe", "runs", "notices", "hits"}),
    "status": (["status"], "memories: 8", {"store", "schema", "memories", "files", "scopes", "spaces"}),
    "config": (["config"], "limit = 6", {"settings", "workspace", "notices"}),
    "recipes": (["recipes"], "default", {"recipes"}),
    "model": (["model", "list"], "wordllama", {"models", "folder"}),
    "reindex": (["reindex"], "0 memories reindexed", {"reindexed", "reader"}),
    "doctor": (["doctor"], "words: in order", {"file", "words", "vectors", "notices"}),
    "backup": (["backup", "copy.db"], "8 memories written to ", {"path", "memories", "bytes", "schema", "created"}),
    "restore": (["restore", "BACKUP", "--yes"], "8 memories restored from", {"restored", "file", "kept", "schema"}),
    "copy": (["copy", "BIG", "copied.db"], "20 memories copied from", {"memories", "unchanged", "unlike", "vectors"}),
    "embed": (["embed"], "0 texts were embedded", {"space", "embedded", "waiting", "refused", "error", "next_try"}),
    "worker": (["worker", "--once"], "embedded 0, pruned 0", {"chore", "embedded", "pruned", "merged", "waiting"}),
    "calibrate": (["calibrate", "--store", "BIG"], "20 memories, en", {"calibrations"}),
    "eval": (["eval", "SET", "--embedding", "none"], "ndcg@10", {"sets"}),
    "pin": (["pin", "green tea", "TEA"], "within 5", {"pins", "file"}),
    "check": (["check"], "pins lost: 0 of 1", {"pins", "kept", "moved", "lost", "checked"}),
    "tune": (["tune"], "Nothing to change: the memories give", {"decision", "reason", "changes", "fits", "choices"}),
    "compare-with": (
        ["compare-with", "openclaw", "--queries", "QUESTIONS"],
        "1 question: openclaw-2026-02 does not show",
        {"system", "recipes", "settings", "queries", "lost"},
    ),
    "mcp": (["mcp", "--print-config", "cursor"], ".cursor/mcp.json", {"client", "file", "config", "remark"}),
}
DOCUMENTED_KEYS = {"query", "verdict", "notices", "hits", "timings", "format"}
DOCUMENTED_HIT_KEYS = {
    "id", "score", "confidence", "text", "snippet", "title", "headings", "path", "start_line", "end_line", "kind",
    "scope", "tags", "date",
}  # fmt: skip
FRUITS = ("apple", "cherry", "melon", "quince", "plum")
QUESTIONS = ["green tea", "where is the ferry moored?", "Compost", "compots", "snow in February", "zeppelin"]


@pytest.fixture
def example(workspace: Path, engine: whyrank.Engine) -> dict[str, list[str]]:
    """Return the examples with a real id and a real evaluation set in them; one answer is pinned."""
    engine.pins.add("turn the heap", "notes/garden/compost.md")
    tea = engine.list(path="notes/tea.md")[0].id
    old = engine.add("the old ferry has gone").id
    places = {
        "TEA": tea,
        "OLD": old,
        "SET": str(_evaluation_set(workspace / "measured")),
        "BIG": str(_bigger(workspace)),
        "BACKUP": engine.backup(workspace / "kept.db").path,
        "EXPORT": str(workspace / "kept.jsonl"),
        "LISTS": str(workspace / "lists.json"),
        "QUESTIONS": str(workspace / "questions.txt"),
    }
    Path(places["QUESTIONS"]).write_text("when does Suzy drink tea?\n", encoding="utf-8")
    engine.export(places["EXPORT"])
    lists = {"keyword": [["m_1", 8.5], ["m_2", 3.2]], "vector": [["m_2", 0.8]]}
    Path(places["LISTS"]).write_text(json.dumps(lists), encoding="utf-8")
    return {verb: [places.get(word, word) for word in words] for verb, (words, _, _) in EXAMPLES.items()}


def _evaluation_set(folder: Path) -> Path:
    folder.mkdir()
    corpus = [{"id": "d1", "title": "Kites", "text": "Kites need wind."}, {"id": "d2", "text": "Bread needs yeast."}]
    (folder / "corpus.jsonl").write_text("\n".join(map(json.dumps, corpus)), encoding="utf-8")
    (folder / "queries.jsonl").write_text(json.dumps({"id": "q1", "text": "yeast for bread"}), encoding="utf-8")
    (folder / "qrels.tsv").write_text("query\tdocument\tgain\nq1\td2\t1\n", encoding="utf-8")
    return folder


def _bigger(workspace: Path) -> Path:
    """Make a store of enough facts to be calibrated by."""
    store = workspace / "bigger.db"
    with whyrank.open(store, workspace=workspace) as memory:
        for number in range(20):
            memory.add(
                f"The parcel with number {number} waits in the {FRUITS[number % 5]} depot near gate {number * 3}."
            )
    return store


def _trail(steps: list[dict[str, Any]]) -> list[Step]:
    return [Step(step["stage"], step["op"], step["value"], step["why"]) for step in steps]


def _searched(call: Run, *arguments: str) -> Any:
    return call("search", *arguments, "--json").data


# -- every verb ----------------------------------------------------------------------------------------------


def test_every_verb_has_an_example_here(call: Run) -> None:
    choices = re.search(r"the verbs are (.*)", call("xyzzy").err)
    assert choices is not None
    assert set(choices.group(1).split(", ")) == {*VERBS, *SERVERS} == {*EXAMPLES, *SERVERS}


@pytest.mark.parametrize(
    ("typed", "advice"),
    [
        (("serch", "tea"), "did you mean 'search'?"),
        (("--store", "x", "search", "tea"), "options go after it"),
        (("search", "tea", "--nope"), "`whyrank search --help`"),
        (("search", "-x"), "put -- before"),
    ],
)
def test_a_slip_on_the_command_line_is_answered_with_advice(call: Run, typed: tuple[str, ...], advice: str) -> None:
    done = call(*typed)
    assert done.status == 2
    assert advice in done.err


@pytest.mark.parametrize(
    ("verb", "now"), [("bench", "python -m benchmarks"), ("conformance", "python -m whyrank_conformance")]
)
def test_a_verb_that_has_moved_says_where_in_one_line(call: Run, verb: str, now: str) -> None:
    for typed in ([verb], [verb, "--anything"], ["help", verb]):
        done = call(*typed)
        assert (done.status, done.out, done.err.count("\n")) == (2, "", 1)
        assert now in done.err
    assert f" {verb} " not in call("--help").out


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_prints_text(verb: str, call: Run, example: dict[str, list[str]]) -> None:
    done = call(*example[verb])
    assert (done.status, done.err) == (0, "")
    assert EXAMPLES[verb][1] in done.out


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_prints_json_of_format_1(verb: str, call: Run, example: dict[str, list[str]]) -> None:
    done = call(*example[verb], "--json")
    assert (done.status, done.err, done.data["format"]) == (0, "", 1)
    assert done.data.keys() >= EXAMPLES[verb][2]


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_works_as_a_real_command(verb: str, run: Run, example: dict[str, list[str]]) -> None:
    done = run(*example[verb], "--json")
    assert (done.status, done.err) == (0, "")
    assert done.data.keys() >= EXAMPLES[verb][2]


@pytest.mark.parametrize("verb", [*VERBS, *SERVERS])
def test_a_verb_has_help_that_shows_its_options(verb: str, call: Run) -> None:
    done = call(verb, "--help")
    assert (done.status, done.err) == (0, "")
    assert all(option in done.out for option in ("--store", "--json", "--workspace", "--embedding"))


@pytest.mark.parametrize("verb", [*VERBS, *SERVERS])
def test_the_help_of_the_command_names_every_verb(verb: str, call: Run) -> None:
    assert re.search(rf"^ +{verb} +\w", call("--help").out, re.MULTILINE)


def test_the_command_alone_prints_its_help(run: Run) -> None:
    done = run()
    assert done == Finished(0, run("--help").out, "")
    assert "Start with: whyrank ingest" in done.out


def test_the_version_is_the_package_version(run: Run) -> None:
    assert run("--version") == Finished(0, f"whyrank {whyrank.__version__}\n", "")


# -- search --------------------------------------------------------------------------------------------------


def test_search_has_the_documented_keys(call: Run) -> None:
    assert _searched(call, "tea").keys() >= DOCUMENTED_KEYS


def test_every_hit_has_the_documented_keys(call: Run) -> None:
    hits = _searched(call, "tea")["hits"]
    assert hits
    assert all(hit.keys() >= DOCUMENTED_HIT_KEYS for hit in hits)


def test_a_hit_tells_where_it_was_read(call: Run) -> None:
    hit = _searched(call, "green tea")["hits"][0]
    told = {key: hit[key] for key in ("path", "start_line", "end_line", "title", "headings", "tags", "kind", "scope")}
    assert told == {
        "path": "notes/tea.md",
        "start_line": 7,
        "end_line": 9,
        "title": "Suzy's tea",
        "headings": ["Tea"],
        "tags": ["kitchen", "suzy"],
        "kind": "chunk",
        "scope": "global",
    }


def test_a_hit_has_the_date_of_its_front_matter(call: Run) -> None:
    assert _searched(call, "green tea")["hits"][0]["date"] == "2026-03-14T00:00:00Z"


def test_the_snippet_marks_what_matched(call: Run) -> None:
    assert "**oarlock**" in _searched(call, "oarlock")["hits"][0]["snippet"]


def test_the_words_of_a_query_need_no_quotes(call: Run) -> None:
    assert _searched(call, "green", "tea")["query"] == "green tea"


def test_hits_come_best_first(call: Run) -> None:
    keys = [(hit["tier"], hit["score"]) for hit in _searched(call, "tea for the boat in the garden")["hits"]]
    assert len(keys) > 2
    assert keys == sorted(keys, reverse=True)


def test_one_result_is_the_head_of_many(call: Run) -> None:
    many = _searched(call, "tea for the boat", "--limit", "50")["hits"]
    assert _searched(call, "tea for the boat", "--limit", "1")["hits"] == many[:1]


def test_an_offset_continues_where_the_limit_ended(call: Run) -> None:
    many = _searched(call, "tea for the boat", "--limit", "4")["hits"]
    assert _searched(call, "tea for the boat", "--limit", "2", "--offset", "2")["hits"] == many[2:]


@pytest.mark.parametrize(
    ("filters", "paths"),
    [
        (["--tag", "kitchen"], {"notes/tea.md"}),
        (["--path", "notes/garden/*"], {"notes/garden/compost.md"}),
        (["--since", "2026-04-01", "--before", "2026-04-03"], {"notes/chat.jsonl"}),
        (["--kind", "fact"], set()),
        (["--as-of", "2001-01-01"], set()),
    ],
)
def test_a_filter_lets_only_its_own_through(filters: list[str], paths: set[str], call: Run) -> None:
    hits = _searched(call, "tea boat compost pier", *filters)["hits"]
    assert {hit["path"] for hit in hits} == paths


def test_strict_gives_no_results_when_nothing_is_relevant(call: Run) -> None:
    answer = _searched(call, "zeppelin", "--strict", "--embedding", "none")
    assert (answer["verdict"], answer["hits"]) == ("nothing", [])


def test_a_token_budget_keeps_whole_memories_only(call: Run) -> None:
    everything = _searched(call, "green tea")["hits"]
    kept = _searched(call, "green tea", "--max-tokens", "40")["hits"]
    assert kept == everything[: len(kept)]
    assert 0 < len(kept) < len(everything)


# -- explain -------------------------------------------------------------------------------------------------


def test_without_explain_there_is_no_trail(call: Run) -> None:
    answer = _searched(call, "tea")
    assert "dropped" not in answer
    assert not any("trail" in hit for hit in answer["hits"])


def test_explain_adds_the_trail_of_every_hit(call: Run) -> None:
    hits = _searched(call, "tea", "--explain")["hits"]
    assert hits
    assert all(hit["trail"] for hit in hits)


def test_explain_adds_what_was_dropped_with_the_reason(call: Run) -> None:
    dropped = _searched(call, "tea for the boat", "--limit", "1", "--explain")["dropped"]
    assert dropped
    assert all(hit["trail"][-1]["op"] == "drop" and hit["trail"][-1]["why"] for hit in dropped)


@pytest.mark.parametrize("question", QUESTIONS)
def test_the_parts_of_a_step_add_up_to_it(question: str, call: Run) -> None:
    answer = _searched(call, question, "--explain", "--limit", "2")
    steps = [step for hit in answer["hits"] + answer["dropped"] for step in hit["trail"] if step["parts"]]
    assert steps
    for step in steps:
        added = 0.0
        for part in step["parts"]:
            added += part["value"]
        assert added == step["value"]


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_part_is_its_weight_times_its_normalised_score(question: str, call: Run) -> None:
    hits = _searched(call, question, "--explain")["hits"]
    parts = [part for hit in hits for step in hit["trail"] for part in step["parts"]]
    assert parts
    for part in parts:
        assert part["value"] == pytest.approx(part["weight"] * part["normalised"], abs=1e-12)


@pytest.mark.parametrize("question", QUESTIONS)
def test_the_printed_trail_replays_to_the_printed_score(question: str, call: Run) -> None:
    hits = _searched(call, question, "--explain")["hits"]
    assert hits
    for hit in hits:
        assert replay(_trail(hit["trail"])) == (hit["tier"], hit["score"])


def test_explain_as_text_shows_the_arithmetic(call: Run) -> None:
    out = call("search", "oarlock", "--explain", "--embedding", "none").out
    told = re.search(r"keyword: (\S+) = (\S+) × (\S+)  \(rank 1, raw (\S+) .*; vote (\S+) / (\S+)\)", out)
    assert told is not None, out
    contribution, weight, vote, raw, counted, reference = map(float, told.groups())
    assert (weight, counted) == (1.0, raw)
    assert contribution == vote == pytest.approx(raw / reference, abs=1e-4)


def test_why_names_the_run_that_did_not_propose_a_memory(call: Run, engine: whyrank.Engine) -> None:
    boat = engine.list(path="notes/boat.md")[0].id
    told = call("why", "green tea", boat, "--embedding", "none", "--json").data
    assert (told["outcome"], told["rank"]) == ("not a candidate", None)
    assert "keyword: no shared term" in told["details"]


# -- one answer through every door ---------------------------------------------------------------------------


def test_why_over_tells_what_would_turn_two_notes_round(call: Run, engine: whyrank.Engine) -> None:
    first, second = [hit.id for hit in engine.search("green tea compost", limit=2)]
    words = ("why", "green tea compost", second, "--over", first)
    told = call(*words, "--json").data
    assert set(told) == {
        "query",
        "id",
        "over",
        "outcome",
        "summary",
        "first",
        "changes",
        "details",
        "notices",
        "format",
    }
    assert (told["id"], told["over"], told["first"]) == (second, first, first)
    said = call(*words).out
    for change in told["changes"]:
        assert change["text"] in said
        keys = {"kind", "setting", "key", "before", "after", "text"}
        assert set(change) == (keys if change["kind"] == "setting" else {"kind", "term", "words", "text"})
    assert told["summary"] in said


@pytest.mark.parametrize("recipe", sorted(whyrank.RECIPES))
@pytest.mark.parametrize("question", QUESTIONS)
def test_library_and_command_line_give_the_same_answer(
    question: str, recipe: str, call: Run, engine: whyrank.Engine
) -> None:
    printed = _searched(call, question, "--recipe", recipe)
    answer = engine.search(question, recipe=recipe)
    assert [(hit["id"], hit["tier"], hit["score"]) for hit in printed["hits"]] == [
        (hit.id, hit.tier, hit.score) for hit in answer
    ]
    assert printed["verdict"] == answer.verdict


def test_the_real_command_gives_the_same_answer_too(run: Run, engine: whyrank.Engine) -> None:
    printed = run("search", "where is the ferry moored?", "--json").data
    answer = engine.search("where is the ferry moored?")
    assert [(hit["id"], hit["score"]) for hit in printed["hits"]] == [(hit.id, hit.score) for hit in answer]


def test_the_same_question_twice_gives_the_same_answer(call: Run) -> None:
    first, second = (_searched(call, "tea for the boat", "--explain") for _ in range(2))
    assert first.pop("timings").keys() == second.pop("timings").keys()
    assert first == second


def test_parts_in_the_library_are_parts_on_the_command_line(call: Run, engine: whyrank.Engine) -> None:
    printed = _searched(call, "oarlock", "--explain")["hits"][0]["trail"][0]["parts"]
    parts: Sequence[Part] = engine.search("oarlock")[0].trail[0].parts
    assert [(part["signal"], part["value"], part["raw"]) for part in printed] == [
        (part.signal, part.value, part.raw) for part in parts
    ]


# -- ingest and settings -------------------------------------------------------------------------------------


def test_a_dry_run_says_what_would_happen_and_changes_nothing(call: Run, workspace: Path) -> None:
    (workspace / "notes" / "stove.md").write_text("# Stove\n\nSweep the chimney in autumn.\n", encoding="utf-8")
    report = call("ingest", "notes", "--dry-run", "--json").data
    assert {"path": "notes/stove.md", "action": "new", "renamed_from": None} in report["plans"]
    assert call("status", "--json").data["memories"] == 7


def test_a_dry_run_says_what_a_renamed_file_was_called(call: Run, workspace: Path) -> None:
    (workspace / "notes" / "tea.md").rename(workspace / "notes" / "other.md")
    assert "renamed  notes/other.md  (was notes/tea.md)" in call("ingest", "notes", "--dry-run").out
    plans = call("ingest", "notes", "--dry-run", "--json").data["plans"]
    assert plans == [{"path": "notes/other.md", "action": "renamed", "renamed_from": "notes/tea.md"}]


def test_what_is_gone_is_removed_with_its_folder_and_whoever_names_it_hears_how(call: Run, workspace: Path) -> None:
    (workspace / "notes" / "tea.md").unlink()
    refused = call("ingest", "notes/tea.md")
    assert refused.status != 0
    assert "notes/tea.md does not exist" in refused.err
    assert "they are removed when a folder it was in is ingested" in refused.err
    assert "1 deleted" in call("ingest", "notes").out
    assert "check the path" in call("ingest", "notes/tea.md").err


def test_a_list_shows_how_a_memory_begins(call: Run, engine: whyrank.Engine) -> None:
    lines = call("list").out.splitlines()
    chunk = next(memory for memory in engine.list() if memory.kind == "chunk" and memory.title)
    [line] = [line for line in lines if line.startswith(chunk.id)]
    first = next(line for line in chunk.text.splitlines() if line and not line.startswith("#"))
    assert chunk.title in line
    assert first[:20] in line
    assert not any(line.endswith(" ") for line in lines)


def test_a_new_file_is_found_after_the_next_ingest(call: Run, workspace: Path) -> None:
    (workspace / "notes" / "stove.md").write_text("# Stove\n\nSweep the chimney in autumn.\n", encoding="utf-8")
    call("ingest", "notes")
    assert _searched(call, "chimney")["hits"][0]["path"] == "notes/stove.md"


def test_a_deleted_file_is_gone_after_the_next_ingest(call: Run, workspace: Path) -> None:
    (workspace / "notes" / "boat.md").unlink()
    call("ingest", "notes")
    assert "notes/boat.md" not in {memory["path"] for memory in call("list", "--json").data["memories"]}


def test_what_was_ingested_for_a_user_is_hidden_from_others(call: Run, workspace: Path) -> None:
    (workspace / "private.md").write_text("# Diary\n\nThe treasure is under the walnut tree.\n", encoding="utf-8")
    call("ingest", "private.md", "--scope", "user:mara")
    paths = {
        scope: {hit["path"] for hit in _searched(call, "walnut treasure", "--scope", scope)["hits"]}
        for scope in ("user:mara", "user:ivo")
    }
    assert "private.md" in paths["user:mara"]
    assert "private.md" not in paths["user:ivo"]


def test_another_store_is_another_memory(call: Run) -> None:
    call("ingest", "notes/tea.md", "--store", "other.db", "--embedding", "none")
    assert call("status", "--store", "other.db", "--json").data["files"] == 1


def test_a_setting_is_taken_out_again_and_others_stay(call: Run, workspace: Path) -> None:
    call("config", "limit", "2")
    call("config", "chunk.tokens", "300")
    told = call("config", "chunk.tokens", "--default")
    assert told.status == 0
    assert f"not in {workspace / 'whyrank.toml'}" in told.out
    assert "chunk.tokens = 400  (default" in told.out
    assert call("config", "limit", "--json").data["settings"]["limit"]["value"] == 2


def test_a_setting_that_was_never_made_makes_no_file(call: Run, workspace: Path) -> None:
    assert call("config", "limit", "--default").status == 0
    assert not (workspace / "whyrank.toml").exists()


def test_a_default_that_does_not_go_with_the_rest_is_refused(call: Run, workspace: Path) -> None:
    call("config", "chunk.overlap", "20")
    call("config", "chunk.tokens", "50")
    before = (workspace / "whyrank.toml").read_text()
    refused = call("config", "chunk.overlap", "--default")
    assert refused.status != 0
    assert "chunk.overlap is 80 (default), chunk.tokens 50" in refused.err
    assert (workspace / "whyrank.toml").read_text() == before


def test_what_holds_when_a_setting_is_taken_out_is_what_the_environment_says(call: Run) -> None:
    call("config", "chunk.overlap", "20")
    call("config", "chunk.tokens", "50")
    assert "chunk.overlap = 10" in call("config", "chunk.overlap", "--default", WHYRANK_CHUNK_OVERLAP="10").out


def test_a_question_to_a_store_that_is_not_there_makes_none(call: Run, workspace: Path) -> None:
    done = call("search", "tea", "--store", "nowhere.db")
    assert done.status == 8
    assert "whyrank ingest PATH" in done.err
    assert not (workspace / "nowhere.db").exists()


def test_a_dry_run_makes_no_store(call: Run, workspace: Path) -> None:
    done = call("ingest", "notes", "--dry-run", "--store", "nowhere.db", "--embedding", "none")
    assert "  new      notes/tea.md" in done.out.replace(str(workspace) + "/", "")
    assert not (workspace / "nowhere.db").exists()


def test_a_budget_keeps_whole_memories_and_says_what_is_missing(call: Run) -> None:
    everything = _searched(call, "tea")["hits"]
    first = len(everything[0]["text"]) // 4 + 1
    told = call("search", "tea", "--max-tokens", str(first), "--json", "--explain").data
    assert [hit["id"] for hit in told["hits"]] == [everything[0]["id"]]
    assert "budget" in {notice["code"] for notice in told["notices"]}
    assert "budget" in {hit["trail"][-1]["stage"] for hit in told["dropped"]}


def test_searching_leaves_the_store_file_as_it_is(call: Run, workspace: Path) -> None:
    before = (workspace / ".whyrank/memory.db").read_bytes()
    _searched(call, "tea")
    assert (workspace / ".whyrank/memory.db").read_bytes() == before


def test_the_environment_names_the_store(call: Run, workspace: Path) -> None:
    call("ingest", "notes/tea.md", "--embedding", "none", WHYRANK_STORE="elsewhere.db")
    named = call("status", "--json", WHYRANK_STORE="elsewhere.db").data["store"]
    assert named == str(workspace / "elsewhere.db")


def test_a_written_setting_is_read_with_its_origin(call: Run, workspace: Path) -> None:
    call("config", "limit", "2")
    setting = call("config", "limit", "--json").data["settings"]["limit"]
    assert setting == {"value": 2, "origin": str(workspace / "whyrank.toml")}


def test_a_written_setting_is_honoured(call: Run) -> None:
    call("config", "limit", "2")
    assert len(_searched(call, "tea for the boat")["hits"]) == 2


def test_the_environment_beats_the_workspace_file(call: Run) -> None:
    call("config", "limit", "2")
    setting = call("config", "limit", "--json", WHYRANK_LIMIT="3").data["settings"]["limit"]
    assert setting == {"value": 3, "origin": "environment (WHYRANK_LIMIT)"}


# -- terminals and pipes -------------------------------------------------------------------------------------


def _on_a_terminal(workspace: Path, variables: dict[str, str], *arguments: str) -> bytes:
    pty = pytest.importorskip("pty", reason="this system has no pseudo-terminals")
    ours, theirs = pty.openpty()
    with started(
        [COMMAND, *arguments], cwd=workspace, env={**os.environ, "TERM": "xterm", **variables}, stdout=theirs
    ) as process:
        os.close(theirs)
        printed = b"".join(iter(lambda: _read(ours), b""))
        process.wait(SECONDS)
    os.close(ours)
    return printed


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 65_536)
    except OSError:  # Linux says so when the other side has closed
        return b""


def test_a_terminal_gets_colours(workspace: Path) -> None:
    assert b"\x1b[" in _on_a_terminal(workspace, {}, "search", "oarlock", "--embedding", "none")


def test_no_color_takes_the_colours_away(workspace: Path) -> None:
    printed = _on_a_terminal(workspace, {"NO_COLOR": "1"}, "search", "oarlock", "--embedding", "none")
    assert b"**oarlock**" in printed
    assert b"\x1b" not in printed


def test_a_pipe_gets_no_colours(run: Run) -> None:
    done = run("search", "oarlock", "--embedding", "none")
    assert "**oarlock**" in done.out
    assert "\x1b" not in done.said


def test_a_reader_that_leaves_early_causes_no_complaint(workspace: Path, call: Run) -> None:
    turns = (json.dumps({"speaker": "Mara", "text": f"The ferry was {n} minutes late."}) for n in range(2_000))
    (workspace / "long.jsonl").write_text("\n".join(turns), encoding="utf-8")
    call("ingest", "long.jsonl", "--embedding", "none")
    # The list is longer than a pipe holds, so the command is still printing when head leaves.
    piped = subprocess.run(
        f"{COMMAND} list --limit 3000 --json | head -1", shell=True, cwd=workspace, capture_output=True, timeout=SECONDS
    )
    assert (piped.stdout, piped.stderr) == (b"{\n", b"")


def test_a_reader_that_leaves_early_takes_no_status_along(workspace: Path) -> None:
    command = f"{{ sleep 0.1; {COMMAND} eval nowhere --json; echo $? >&2; }} | true"
    piped = subprocess.run(command, shell=True, cwd=workspace, capture_output=True, timeout=SECONDS)
    assert piped.stderr == b"13\n"


def test_the_output_survives_a_terminal_that_knows_only_ascii(workspace: Path, run: Run, call: Run) -> None:
    (workspace / "notes" / "cafe.md").write_text("# Café ☕\n\nОткрыто до полуночи.\n", encoding="utf-8")
    call("ingest", "notes", "--embedding", "none")
    done = run("list", PYTHONIOENCODING="ascii")
    assert (done.status, done.err) == (0, "")
    assert "notes/cafe.md:1-3  Caf? ?" in done.out


def test_control_characters_of_a_memory_do_not_reach_a_pipe(workspace: Path, run: Run, call: Run) -> None:
    (workspace / "notes" / "evil.md").write_text("# Evil\x1b[2J title\n\nSome \x1b]0;text\x07.\n", encoding="utf-8")
    call("ingest", "notes", "--embedding", "none")
    done = run("search", "evil title", "--embedding", "none")
    assert "notes/evil.md" in done.out
    assert not {"\x1b", "\x07"} & set(done.said)


def test_every_verb_leaves_the_workspace_answering(call: Run, example: dict[str, list[str]]) -> None:
    for verb in VERBS:
        call(*example[verb])
    assert still_answers(call)


def test_a_store_made_without_vectors_answers_with_an_embedder(call: Run) -> None:
    call("ingest", "notes", "--store", "words.db", "--embedding", "none")
    assert _searched(call, "green tea", "--store", "words.db")["hits"][0]["path"] == "notes/tea.md"


def test_the_store_is_made_where_it_was_asked_for(call: Run, workspace: Path) -> None:
    (workspace / "deep" / "er").mkdir(parents=True)
    call("ingest", "notes", "--store", "deep/er/words.db", "--embedding", "none")
    assert (workspace / "deep" / "er" / "words.db").is_file()
    assert (workspace / STORE).is_file()


# -- calibration and abstention --------------------------------------------------------------------------------


def test_too_few_memories_to_calibrate_by_are_said_so(call: Run, engine: whyrank.Engine) -> None:
    done = call("calibrate")
    assert (done.status, done.out) == (2, "")
    assert "7 memories give too few questions to calibrate by" in done.err
    assert "no scope has 20 memories" in call("calibrate", "--every-scope").err


def test_status_shows_the_calibration_and_its_age(workspace: Path, call: Run) -> None:
    store = str(_bigger(workspace))
    assert "calibration: – (default thresholds" in call("status", "--store", store).out
    assert "whyrank calibrate" in call("search", "parcel", "--store", store).err
    assert call("calibrate", "--every-scope", "--store", store).status == 0
    assert re.search(
        r"calibration: global: weak from 0\.\d\d, found .* 20 memories, just now", call("status", "--store", store).out
    )
    assert call("search", "parcel", "--store", store).err == ""
    [made] = call("status", "--store", store, "--json").data["calibrations"]
    assert (made["scopes"], made["memories"], made["questions"]["own"]) == (["global"], 20, 200)
    assert made["thresholds"]["evidence"]["weak"] < made["thresholds"]["evidence"]["found"]


def test_abstention_is_measured_against_another_set(workspace: Path, call: Run) -> None:
    mine, other = _evaluation_set(workspace / "mine"), _evaluation_set(workspace / "other")
    (other / "queries.jsonl").write_text(json.dumps({"id": "q1", "text": "submarine cables"}), encoding="utf-8")
    asked = ("eval", str(mine), "--abstention", str(other), "--embedding", "none")
    done = call(*asked)
    assert "mine: questions of other" in done.out
    assert "at 95% kept: 100.0% rejected; AUC 1.000" in done.out
    assert "too few memories to calibrate by: global" in done.out
    [measured] = call(*asked, "--json").data["abstention"]
    assert measured["sides"][0]["rejected_at_95_kept"] == 1.0


@pytest.mark.parametrize(
    ("typed", "advice"),
    [
        (("--abstention",), "--abstention OTHER"),
        (("--abstention", "--run-out", "x"), "leave one of them out"),
        (("--abstention", "--plot", "curve.pdf"), "neither .png nor .svg"),
        (("--plot", "curve.png"), "add --abstention"),
        (("--abstention", "--recipe", "rrf", "--recipe", "default"), "takes one recipe"),
    ],
)
def test_what_abstention_cannot_do_is_said_before_the_work(
    workspace: Path, call: Run, typed: tuple[str, ...], advice: str
) -> None:
    done = call("eval", str(_evaluation_set(workspace / "mine")), *typed)
    assert done.status == 2
    assert advice in done.err
