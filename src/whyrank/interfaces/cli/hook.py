"""`whyrank hook HOST`: answer the hook of a host with what its agent should be reminded of, or with nothing.

The host waits for this process, and one that fails may block a prompt. So the exit status is always 0, nothing but an
answer is printed, and all work is done in a thread that is left behind when the time is over.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ...config import load as settings
from ...config.settings import setting_named
from ...engine.recall_log import MOST_SESSION, RecallEntry, RecallLog, log_file
from ...errors import StoreError, WhyrankError
from ..errors import OK
from .output import complain

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterator, Mapping

MOST_INPUT = 1_048_576  # bytes: a prompt, not a transcript
_MOST_DRAINED = 64 * MOST_INPUT  # read and dropped, so that the host is not stopped by a closed pipe
_PIECE = 65_536
_MOST_CHARACTERS = 10_000  # that Claude Code delivers whole; of more it shows a preview
_CHARACTERS_PER_TOKEN = 4  # at most, in the estimate of the budget
_LOOK_SECONDS = 0.02  # between two looks at the time limit, which settings may shorten
_SETTINGS_SECONDS = 2.0  # to read the settings on a machine that is busy
_VERSIONS = (None, 1, "1")  # of the input
_MOST_PROMPT = 200_000  # characters
# The reasons of a new session in which nothing is left of what was injected before.
_RESTARTS = frozenset({"clear", "compact"})


class HookHost(NamedTuple):
    """How a host names its events and fields, and what it takes as an answer."""

    prompts: tuple[str, ...]  # events before a turn
    others: tuple[str, ...]  # events that are known, and answered by nothing
    answer: Callable[[str, str], dict[str, Any]]


def _specific(event: str, text: str) -> dict[str, Any]:
    return {"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}}


_STARTS = ("SessionStart", "PreCompact", "SessionEnd", "sessionStart", "session_start")
HOSTS = {
    "claude-code": HookHost(("UserPromptSubmit",), _STARTS, _specific),
    "codex": HookHost(("UserPromptSubmit",), _STARTS, _specific),
    "cursor": HookHost(
        ("beforeSubmitPrompt",), _STARTS, lambda _, text: {"continue": True, "additional_context": text}
    ),
    "gemini": HookHost(("BeforeAgent",), _STARTS, _specific),
    "openclaw": HookHost(("before_prompt_build",), _STARTS, lambda _, text: {"prependContext": text}),
}  # fmt: skip


class Event(NamedTuple):
    """Fields of a turn in a host's message; empty where it has none."""

    name: str
    prompt: str
    session: str
    folder: str
    source: str


class _Silent(Exception):
    """Nothing is to be said, for a reason that goes into the log; none: the event is no turn."""


def hook(asked: argparse.Namespace) -> int:
    """Answer one call of a host; whatever happens, the status is 0."""
    if sys.stdin is None:  # it was closed by whoever started this process
        return OK
    if sys.stdin.isatty():
        complain(f"{asked.host} runs this command and gives it JSON; `whyrank hook --help` shows how to set it up")
        return OK
    work = _Work(asked)
    thread = threading.Thread(target=work.run, name="whyrank-hook", daemon=True)
    thread.start()
    while thread.is_alive() and (left := work.until - time.monotonic()) > 0:
        thread.join(min(left, _LOOK_SECONDS))
    if thread.is_alive():
        work.say_nothing(f"it took longer than {work.limit_ms} ms (recall.timeout_ms)")
        os._exit(OK)  # the thread may wait for a pipe or a lock for ever, and has nothing to lose
    if work.text:
        print(work.text)
    return OK


def _usual_limit() -> int:
    """Return the time limit in ms that counts until the settings are read: that of the environment, or the default."""
    usual = setting_named("recall.timeout_ms")
    try:
        return int(usual.read(os.environ.get(usual.variable) or usual.default))
    except ValueError:
        return int(usual.default)


@dataclass
class _Work:
    """One call of a host, done in a thread."""

    asked: argparse.Namespace
    start: float = field(default_factory=time.monotonic)
    limit_ms: int = field(default_factory=_usual_limit)
    has_input: bool = False
    config: settings.Config | None = None
    text: str = ""

    @property
    def until(self) -> float:
        """Return the moment, by `time.monotonic()`, at which the host is answered by nothing."""
        is_unsettled = self.has_input and self.config is None  # a longer limit may stand in a file of settings
        return self.start + max(self.limit_ms / 1_000, _SETTINGS_SECONDS if is_unsettled else 0.0)

    def run(self) -> None:
        """Do all of it; every failure is a line in the log."""
        try:
            self.text = self._answer()
        except _Silent as silence:
            if reason := str(silence):
                self.say_nothing(reason)
        except WhyrankError as error:
            self.say_nothing(f"{type(error).__name__}: {error.message}")
        except BaseException as error:  # the host must not see a failure of ours
            self.say_nothing(f"{type(error).__name__}: {error}")

    def say_nothing(self, reason: str) -> None:
        """Log why nothing was said, beside the store or in the user's cache."""
        if self.config is not None:
            file, keeps = log_file(self.config), bool(self.config["recall.log"])
        else:
            file, keeps = settings.user_cache(os.environ) / "hooks.recalls", True
        milliseconds = round(1_000 * (time.monotonic() - self.start), 1)
        entry = RecallEntry(
            time=time.time(), host=self.asked.host, reason=reason[:500], milliseconds=milliseconds
        )  # fmt: skip
        RecallLog(file, keeps=keeps).add(entry)

    def _answer(self) -> str:
        host = HOSTS[self.asked.host]
        raw = _input()
        self.has_input = True
        event = event_of(raw, host)
        config = self._settings(event)
        if event.name not in host.prompts:
            if event.source in _RESTARTS and event.session:
                anew = RecallEntry(time=time.time(), session=event.session, is_reset=True)
                RecallLog(log_file(config), keeps=config["recall.log"]).add(anew)
            raise _Silent
        room = min(self.asked.max_tokens or config["recall.max_tokens"], _MOST_CHARACTERS // _CHARACTERS_PER_TOKEN)
        answer = self._by_server if config["recall.server"] else self._by_store
        text = answer(config, event, room)
        return json.dumps(host.answer(event.name, text)) if text else ""

    @property
    def _left_ms(self) -> int:
        return max(1, int(1_000 * (self.until - time.monotonic())))

    def _by_store(self, config: settings.Config, event: Event, room: int) -> str:
        if not config.has_store:
            raise StoreError(f"there is no store at {config.store}")
        from ...engine.open import open_engine  # the index and the embedder: most of the time of this process

        with open_engine(config.store, workspace=config.workspace, embedding=self.asked.embedding) as memory:
            reminder = memory.recall(
                event.prompt, budget=room, scope=self.asked.scope, session=event.session, host=self.asked.host,
                timeout_ms=self._left_ms,
            )  # fmt: skip
        return reminder.text

    def _by_server(self, config: settings.Config, event: Event, room: int) -> str:
        """Ask a server that has the store open: it spares this process numpy, the model and the index."""
        from http.client import HTTPConnection, HTTPException, HTTPSConnection
        from urllib.parse import urlsplit

        place = urlsplit(config["recall.server"])
        asked = {"turn": event.prompt, "max_tokens": room, "session": event.session, "timeout_ms": self._left_ms}
        body = json.dumps({**asked, **({"scope": self.asked.scope} if self.asked.scope else {})})
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {settings.token() or ''}"}
        kind = HTTPSConnection if place.scheme == "https" else HTTPConnection
        connection = kind(place.hostname or "", place.port, timeout=self._left_ms / 1_000)
        try:
            connection.request("POST", f"{place.path.rstrip('/')}/recall", body, headers)
            response = connection.getresponse()
            told = json.loads(response.read(MOST_INPUT))
        except (OSError, HTTPException, ValueError) as error:
            raise _Silent(f"the server {config['recall.server']} (recall.server) did not answer: {error}") from error
        finally:
            connection.close()
        if response.status != 200:  # an error of ours has a message; whatever else listens there, none
            message = told["error"]["message"] if isinstance(told, dict) and "error" in told else ""
            raise _Silent(f"the server {config['recall.server']} answered {response.status}: {message}")
        return str(told["text"])

    def _settings(self, event: Event) -> settings.Config:
        store = None if self.asked.store is None else settings.store_setting(self.asked.store)
        given = {"store": store, "embedding": self.asked.embedding}
        config = settings.load(given, workspace=_workspace(self.asked.workspace, event))
        self.limit_ms = config["recall.timeout_ms"]
        self.config = config
        return config


def event_of(raw: bytes, host: HookHost) -> Event:
    """Read the input of a hook; raise a silence with the reason if it is none, or none that is known."""
    try:
        data = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise _Silent("the input is not JSON") from error
    if not isinstance(data, dict):
        raise _Silent("the input is not a JSON object")
    if data.get("version") not in _VERSIONS:
        raise _Silent(f"version {data['version']!r:.40} of the input is unknown")
    parts = [data, *(part for name in ("event", "ctx", "context") if isinstance(part := data.get(name), dict))]
    name = _first(parts, "hook_event_name", "hookEventName", "hook_name", "hook") or host.prompts[0]
    if name not in (*host.prompts, *host.others):
        raise _Silent(f"the event {name[:60]!r} is unknown")
    prompt = _first(parts, "prompt", "user_prompt", "userPrompt")
    if name in host.prompts and not prompt.strip():
        raise _Silent("the input has no prompt")
    if prompt.startswith("/") and len(prompt.split()) == 1:
        raise _Silent  # a command of the host, such as /clear
    session = _first(parts, "session_id", "sessionId", "conversation_id", "sessionKey", "session")[:MOST_SESSION]
    return Event(
        name, prompt[:_MOST_PROMPT], session, _folder(parts), _first(parts, "source", "trigger", "reason")
    )  # fmt: skip


def _first(parts: list[dict[str, Any]], *names: str) -> str:
    """Return the first text among some fields."""
    texts = (part.get(name) for part in parts for name in names)
    return next((text for text in texts if isinstance(text, str) and text), "")


def _folder(parts: list[dict[str, Any]]) -> str:
    named = _first(parts, "cwd", "workspaceDir", "workspace_dir", "workspace")
    roots = parts[0].get("workspace_roots")
    first = roots[0] if isinstance(roots, list) and roots else None
    return first if isinstance(first, str) else named


def _workspace(given: str | None, event: Event, environment: Mapping[str, str] = os.environ) -> Path | None:
    """Return the workspace: named, of the environment, else the project that the host works in."""
    if given:
        return Path(given)
    if any(environment.get(name) for name in settings.WORKSPACE_VARIABLES):
        return None
    for folder in (environment.get("CLAUDE_PROJECT_DIR"), event.folder):
        if folder and "\0" not in folder and os.path.isdir(folder):
            return Path(folder)
    return None


def _input() -> bytes:
    """Read the input whole; drop what is too long."""
    held: list[bytes] = []
    length = 0
    for piece in _pieces():
        length += len(piece)
        if length <= MOST_INPUT:
            held.append(piece)
        if length > _MOST_DRAINED:
            break
    if length > MOST_INPUT:
        raise _Silent(f"the input is longer than {MOST_INPUT:,} bytes")
    return b"".join(held)


def _pieces() -> Iterator[bytes]:
    # Not by `sys.stdin`: a thread that is left behind would hold its lock when the process ends.
    descriptor = sys.stdin.fileno()
    while piece := os.read(descriptor, _PIECE):
        yield piece
