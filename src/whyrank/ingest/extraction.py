"""What an extraction of facts did, or would do: every line of every answer is stored, known already, or refused."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from ..analysis.text import estimated_tokens
from ..ports import Completion, Message
from ..types import Memory
from .asked import LeftOut, Part
from .walk import Skipped

ANSWER_TOKENS = 150  # of a usual answer: three facts


class Learned(NamedTuple):
    """A fact that was stored, or would be, and the words it rests on."""

    memory: Memory
    evidence: str


class Unused(NamedTuple):
    """A line of an answer that was not stored, where it came from, and why."""

    path: str
    start_line: int
    end_line: int
    line: str
    reason: str


class Failed(NamedTuple):
    """A part of a file of which nothing came; it is asked about again by the next run."""

    path: str
    start_line: int
    end_line: int
    reason: str


@dataclass
class Tokens:
    """What was asked and answered, as the model counts it; estimated where it does not say."""

    prompt: int = 0
    completion: int = 0
    is_estimate: bool = False

    def count(self, messages: tuple[Message, ...], answer: Completion) -> None:
        """Add one call."""
        self.is_estimate |= not (answer.prompt_tokens and answer.completion_tokens)
        self.prompt += answer.prompt_tokens or sum(estimated_tokens(message.text) for message in messages)
        self.completion += answer.completion_tokens or estimated_tokens(answer.text)

    @property
    def total(self) -> int:
        """Return both together."""
        return self.prompt + self.completion


@dataclass
class Extraction:
    """The report: files read, chunks asked about, and what became of every line of every answer."""

    model: str = ""
    dry_run: bool = False
    plan: bool = False
    files: int = 0
    chunks: int = 0
    done_before: int = 0
    waiting: int = 0
    estimated_tokens: int = 0
    asked: int = 0
    calls: int = 0
    lines: int = 0
    stored: list[Learned] = field(default_factory=list)
    known: list[Unused] = field(default_factory=list)
    refused: list[Unused] = field(default_factory=list)
    refused_lines: int = 0
    failed: list[Failed] = field(default_factory=list)
    renewed: int = 0
    fading: list[Memory] = field(default_factory=list)
    tokens: Tokens = field(default_factory=Tokens)
    skipped: list[Skipped] = field(default_factory=list)
    remarks: list[tuple[str, str]] = field(default_factory=list)
    stopped: str = ""

    @property
    def unread(self) -> list[Skipped]:
        """Return what should have been readable and was not."""
        return [skipped for skipped in self.skipped if skipped.failed]

    @property
    def left(self) -> int:
        """Count the chunks that are still to be asked about: those that failed, and those nobody came to."""
        return self.waiting - self.asked + len(self.failed)

    def count_unused(self, part: Part, known: list[LeftOut], refused: list[LeftOut], kept: int) -> None:
        """Add the lines of one part that were not stored; of those refused only the first are listed."""
        self.refused_lines += len(refused)
        self.known += [_unused(part, line) for line in known]
        self.refused += [_unused(part, line) for line in refused[:kept]]

    def fail(self, part: Part, reason: str) -> None:
        """Add a part of which nothing came."""
        self.failed.append(Failed(part.path, part.window.start_line, part.window.end_line, reason))


def _unused(part: Part, left_out: LeftOut) -> Unused:
    return Unused(part.path, part.window.start_line, part.window.end_line, *left_out)
