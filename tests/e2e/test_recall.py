"""`whyrank recall` and the hooks of hosts, as a user and a host run them."""

from __future__ import annotations

import json
import os
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from whyrank.interfaces.cli.hook import HOSTS, MOST_INPUT
from whyrank.interfaces.cli.main import HOOKED

from .conftest import COMMAND, SECONDS, STORE, Finished, Run
from .rest import TOKEN, serving

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

TURN = "what does Suzy drink in the morning?"
FOREIGN = "quarterly revenue of semiconductor vendors"
PATIENT = {"WHYRANK_RECALL_TIMEOUT_MS": "120000"}  # the machine of a test may be busy
LOG = STORE.with_suffix(".recalls")


@pytest.fixture
def hook(workspace: Path, call: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Finished]:
    """Return a function that gives a host's JSON, or bytes, to the hook."""

    def hook(given: Any, host: str = "claude-code", *arguments: str, **variables: str) -> Finished:
        file = tmp_path / "input"
        file.write_bytes(given if isinstance(given, bytes) else json.dumps(given).encode())
        with file.open() as stdin, monkeypatch.context() as patched:
            patched.setattr("sys.stdin", stdin)
            return call("hook", host, *arguments, **{**PATIENT, **variables})

    return hook


def prompt(text: str = TURN, **more: object) -> dict[str, object]:
    return {"hook_event_name": "UserPromptSubmit", "session_id": "s1", "prompt": text, **more}


def last_reason(folder: Path) -> str:
    return str(json.loads((folder / LOG).read_text().splitlines()[-1])["reason"])


def test_a_turn_is_answered_by_the_text_to_inject(call: Run) -> None:
    found = call("recall", TURN)
    assert (found.status, found.err) == (0, "")
    assert "> Suzy drinks green tea in the morning" in found.out
    assert 'source="notes/tea.md#L7-L9"' in found.out


def test_nothing_is_printed_where_nothing_is_relevant_and_the_status_is_0(call: Run) -> None:
    found = call("recall", FOREIGN)
    assert (found.status, found.out) == (0, "")
    assert found.err.startswith("nothing to recall: ")


def test_the_turn_may_come_from_standard_input(workspace: Path) -> None:
    done = subprocess.run(
        [COMMAND, "recall", "-"], cwd=workspace, input=TURN, text=True, capture_output=True, timeout=SECONDS, check=True
    )
    assert "green tea" in done.stdout


def test_the_json_has_the_text_its_sources_and_what_was_left_out(call: Run) -> None:
    data = call("recall", TURN, "--json", "--max-tokens", "300").data
    assert list(data) == [
        "id", "text", "verdict", "reason", "tokens", "memories", "left_out", "notices", "format",
    ]  # fmt: skip
    assert data["memories"][0]["citation"] == "notes/tea.md#L7-L9"
    assert data["tokens"] <= 300


def test_a_session_is_given_nothing_twice(call: Run) -> None:
    outputs = [call("recall", TURN, "--session", "today").out for _ in range(2)]
    assert [bool(out) for out in outputs] == [True, False]


def test_the_log_tells_what_was_given_and_why_nothing(call: Run) -> None:
    call("recall", TURN, "--session", "today")
    call("recall", FOREIGN)
    shown = call("recall", "--log").out
    assert shown.index("nothing relevant is stored") < shown.index("notes/tea.md#L7-L9")  # the latest first
    recalls = call("recall", "--log", "--json", "--limit", "1").data["recalls"]
    assert [one["query"] for one in recalls] == [FOREIGN]


def test_why_explains_a_recall_by_its_trails(call: Run) -> None:
    identity = call("recall", TURN, "--json").data["id"]
    told = call("why", "--recall", identity)
    assert told.status == 0
    assert "notes/tea.md#L7-L9" in told.out
    assert "keyword" in told.out
    data = call("why", "--recall", identity, "--json").data
    assert data["memories"][0]["score"] == data["memories"][0]["score_now"]
    assert data["memories"][0]["trail"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["recall"], "there is no turn to recall for"),
        (["recall", "tea", "--log"], "--log takes no turn"),
        (["recall", "tea", "--limit", "3"], "--limit is for --log"),
        (["recall", "--log", "--limit", "0"], "--limit is 0"),
        (["recall", "tea", "--max-tokens", "0"], "budget is 0"),
        (["why", "--recall", "r_0", "tea"], "--recall takes no question"),
        (["why", "tea"], "a question and a memory are needed"),
    ],
)
def test_what_makes_no_sense_is_an_error_that_says_so(call: Run, arguments: list[str], said: str) -> None:
    found = call(*arguments)
    assert found.status == 2
    assert said in found.err


def test_an_unknown_recall_is_not_found(call: Run) -> None:
    assert call("why", "--recall", "r_0").status == 3


@pytest.mark.parametrize(
    ("host", "event", "place"),
    [
        ("claude-code", "UserPromptSubmit", ("hookSpecificOutput", "additionalContext")),
        ("codex", "UserPromptSubmit", ("hookSpecificOutput", "additionalContext")),
        ("gemini", "BeforeAgent", ("hookSpecificOutput", "additionalContext")),
        ("cursor", "beforeSubmitPrompt", ("additional_context",)),
        ("openclaw", "before_prompt_build", ("prependContext",)),
    ],
)
def test_each_host_gets_the_answer_it_wants(
    hook: Callable[..., Finished], host: str, event: str, place: tuple[str, ...]
) -> None:
    found = hook(prompt(hook_event_name=event), host)
    assert (found.status, found.err) == (0, "")
    text = found.data
    for name in place:
        text = text[name]
    assert "> Suzy drinks green tea" in text
    if place[0] == "hookSpecificOutput":
        assert found.data["hookSpecificOutput"]["hookEventName"] == event


def test_the_hosts_of_the_help_are_those_that_are_known() -> None:
    assert tuple(HOSTS) == HOOKED


def test_a_host_may_put_its_fields_into_event_and_context(hook: Callable[..., Finished]) -> None:
    given = {"event": {"prompt": TURN}, "ctx": {"sessionKey": "agent:main"}}
    assert "prependContext" in hook(given, "openclaw").data
    assert hook(given, "openclaw").out == ""  # the same session


def test_a_compacted_session_is_reminded_anew(hook: Callable[..., Finished]) -> None:
    start = {"hook_event_name": "SessionStart", "session_id": "s1", "source": "compact"}
    given = [bool(hook(one).out) for one in (prompt(), prompt(), start, prompt())]
    assert given == [True, False, False, True]


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (b"", "the input is not JSON"),
        (b"\xff\xfe not json", "the input is not JSON"),
        (b"[" * 100_000, "the input is not JSON"),
        (b"[1]", "the input is not a JSON object"),
        ({"hook_event_name": "PreToolUse"}, "the event 'PreToolUse' is unknown"),
        (prompt(version=2), "version 2 of the input is unknown"),
        (prompt(""), "the input has no prompt"),
        (prompt(7), "the input has no prompt"),  # type: ignore[arg-type]
        (b" " * (MOST_INPUT + 1), "the input is longer than 1,048,576 bytes"),
    ],
)
def test_bad_input_is_answered_by_nothing_and_the_log_says_why(
    hook: Callable[..., Finished], tmp_path: Path, given: Any, reason: str
) -> None:
    found = hook(given, XDG_CACHE_HOME=str(tmp_path / "cache"))
    assert found == (0, "", "")
    (line,) = (tmp_path / "cache/whyrank/hooks.recalls").read_text().splitlines()  # no settings were read
    assert json.loads(line)["reason"] == reason


@pytest.mark.parametrize("name", ["SessionStart", "PreCompact"])
def test_events_that_are_no_turns_are_answered_by_nothing_and_not_logged(
    hook: Callable[..., Finished], workspace: Path, name: str
) -> None:
    assert hook({"hook_event_name": name, "session_id": "s", "source": "startup"}) == (0, "", "")
    assert not (workspace / LOG).exists()


def test_a_command_of_the_host_is_no_turn(hook: Callable[..., Finished], workspace: Path) -> None:
    assert hook(prompt("/clear")) == (0, "", "")
    assert not (workspace / LOG).exists()


def test_a_missing_store_is_silence_and_makes_no_folder(hook: Callable[..., Finished], tmp_path: Path) -> None:
    bare = tmp_path / "bare"
    bare.mkdir()
    found = hook(prompt(cwd=str(bare)), XDG_CACHE_HOME=str(tmp_path / "cache"))
    assert found == (0, "", "")
    assert not list(bare.iterdir())
    assert "there is no store at" in (tmp_path / "cache/whyrank/hooks.recalls").read_text()


def test_the_folder_that_the_host_names_is_the_workspace(
    hook: Callable[..., Finished], workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert hook(prompt(cwd=str(workspace))).out
    assert hook({"prompt": TURN, "workspace_roots": [str(workspace)]}, "cursor").out


def test_a_damaged_store_is_silence(hook: Callable[..., Finished], workspace: Path) -> None:
    (workspace / STORE).write_bytes(b"not a database" * 1_000)
    assert hook(prompt()) == (0, "", "")
    assert last_reason(workspace).startswith("Store")


def test_a_mistake_in_the_settings_is_silence(hook: Callable[..., Finished], workspace: Path, tmp_path: Path) -> None:
    (workspace / "whyrank.toml").write_text("no_such_setting = 1\n")
    assert hook(prompt(), XDG_CACHE_HOME=str(tmp_path / "cache")) == (0, "", "")
    assert "no setting 'no_such_setting'" in (tmp_path / "cache/whyrank/hooks.recalls").read_text()


def test_a_host_that_is_not_known_is_told_to_a_person_and_breaks_nothing(call: Run) -> None:
    found = call("hook", "clade-code")
    assert (found.status, found.out) == (0, "")
    assert "did you mean 'claude-code'?" in found.err
    assert call("hook", "claude-code", "--no-such-option").status == 0
    assert call("hook").status == 0


def test_an_answer_is_never_longer_than_what_the_host_delivers(
    hook: Callable[..., Finished], call: Run, workspace: Path
) -> None:
    for number in range(3):  # at most five chunks of a file are given, of about 1,600 characters each
        (workspace / f"notes/long-{number}.md").write_text("Suzy drinks green tea in the morning. " * 400)
    call("ingest", "notes")
    room = {"WHYRANK_RECALL_MAX_TOKENS": "50000", "WHYRANK_RECALL_LIMIT": "100"}
    answered = hook(prompt(), **room).data["hookSpecificOutput"]["additionalContext"]
    assert 8_000 < len(answered) <= 10_000


def test_a_server_is_asked_in_place_of_the_store(
    hook: Callable[..., Finished], workspace: Path, tmp_path: Path
) -> None:
    bare = tmp_path / "bare"
    bare.mkdir()
    with serving(workspace) as server:
        named = {"WHYRANK_RECALL_SERVER": server.url, "WHYRANK_TOKEN": TOKEN, "XDG_CACHE_HOME": str(tmp_path / "cache")}
        given = hook(prompt(cwd=str(bare)), **named)
        assert given.out, (tmp_path / "cache/whyrank/hooks.recalls").read_text()
        assert "> Suzy drinks green tea" in given.data["hookSpecificOutput"]["additionalContext"]
        assert hook(prompt(cwd=str(bare)), **named).out == ""  # the same session
        assert hook(prompt(FOREIGN, cwd=str(bare)), **named) == (0, "", "")
        assert hook(prompt(cwd=str(bare)), **{**named, "WHYRANK_TOKEN": "wrong"}) == (0, "", "")
    assert hook(prompt(cwd=str(bare)), **named) == (0, "", "")  # nobody listens any more
    reasons = [
        json.loads(line)["reason"] for line in (tmp_path / "cache/whyrank/hooks.recalls").read_text().splitlines()
    ]
    assert "answered 401" in reasons[0]
    assert "did not answer" in reasons[1]


def test_a_workspace_may_not_say_which_server_is_asked(hook: Callable[..., Finished], workspace: Path) -> None:
    (workspace / "whyrank.toml").write_text('[recall]\nserver = "http://example.org"\n')
    assert hook(prompt(), XDG_CACHE_HOME=str(workspace)) == (0, "", "")
    assert "recall.server" in (workspace / "whyrank/hooks.recalls").read_text()


def test_input_that_never_ends_is_left_when_the_time_is_over(workspace: Path) -> None:
    with subprocess.Popen(
        [COMMAND, "hook", "claude-code"], cwd=workspace, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        env={**os.environ, "XDG_CACHE_HOME": str(workspace)},
    ) as process:  # fmt: skip
        assert process.stdout is not None
        assert process.stdout.read() == b""  # while its input is still open
        assert process.wait(SECONDS) == 0
    assert "it took longer than 400 ms" in (workspace / "whyrank/hooks.recalls").read_text()


@pytest.mark.parametrize("closed", ["<&-", "</dev/null >&-"])
def test_a_closed_input_or_output_is_silence(workspace: Path, closed: str) -> None:
    done = subprocess.run(
        ["sh", "-c", f'"$0" hook claude-code {closed}', COMMAND],
        cwd=workspace,
        capture_output=True,
        timeout=SECONDS,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_a_search_that_takes_too_long_is_silence(workspace: Path) -> None:
    done = subprocess.run(
        [COMMAND, "hook", "claude-code"], cwd=workspace, input=json.dumps(prompt()), text=True, capture_output=True,
        timeout=SECONDS, check=False, env={**os.environ, "WHYRANK_RECALL_TIMEOUT_MS": "1"},
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
