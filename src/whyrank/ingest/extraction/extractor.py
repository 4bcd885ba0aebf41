"""Extract facts from files with a language model."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ...analysis.document import content_hash, entry_for, id_for
from ...analysis.normalize import clean, estimated_tokens, same_text
from ...errors import ConfigError, ProviderError, ProviderRefused
from ...formatting import counted
from ...protocols import Changes, Completion, Embedder, Llm, Message, Store
from ...types.memory import Entry, Memory, Scope, Source, expiry
from ..documents import date_in_name
from ..embedding import PROVIDER, REFUSALS_OF_EVERYBODY, Attempt, Desk, Progress
from ..walk import MISSING, FileEntry, SkippedPath, is_match, matching, read
from .ledger import (
    DECAY,
    KEPT_LINES,
    SAME_COSINE,
    Familiar,
    FilePart,
    LeftOut,
    PartRecord,
    Renewal,
    as_note,
    name_of,
    record_of,
    records_of,
    with_lines,
)
from .prompts import MAX_FACTS, Fact, ParsedAnswer, WindowSize, asked, asked_again, read_answer, windows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

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
    """Part of a file without a usable answer; the next run tries it again."""

    path: str
    start_line: int
    end_line: int
    reason: str


@dataclass
class Tokens:
    """Token counts of prompts and answers, as the model reports them; estimated where it does not."""

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
    """Report of an extraction: files read, chunks sent to the model, and the outcome of every answer line."""

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
    skipped: list[SkippedPath] = field(default_factory=list)
    remarks: list[tuple[str, str]] = field(default_factory=list)
    stopped: str = ""

    @property
    def unread(self) -> list[SkippedPath]:
        """Return the files that should have been readable and were not."""
        return [skipped for skipped in self.skipped if skipped.failed]

    @property
    def left(self) -> int:
        """Count the chunks still to be sent to the model: those that failed, and those not reached."""
        return self.waiting - self.asked + len(self.failed)

    def count_unused(self, part: FilePart, known: list[LeftOut], refused: list[LeftOut]) -> None:
        """Add the lines of one part that were not stored; of those refused only the first are listed."""
        place = part.path, part.window.start_line, part.window.end_line
        self.refused_lines += len(refused)
        self.known += [Unused(*place, *line) for line in known]
        self.refused += [Unused(*place, *line) for line in refused[:KEPT_LINES]]


TAG = "ingest"
ANSWER_LIMIT_TOKENS = 4_096  # twenty facts take half of it; the rest is for models that write out their reasoning
PROVIDER_FAILURES = 3  # in a row: then it is not the text


@dataclass(frozen=True)
class ExtractionSettings:
    """Settings of the files to read; `named` if the patterns were given explicitly."""

    workspace: Path
    base: Path
    patterns: tuple[str, ...]
    named: bool
    size: WindowSize
    language: str
    max_bytes: int
    same_cosine: float = SAME_COSINE


@dataclass
class Extractor:
    """Learns facts from the files of a workspace into one scope."""

    store: Store
    embedder: Embedder | None
    llm: Llm | None
    settings: ExtractionSettings
    scope: Scope
    clock: Callable[[], float]
    report: Extraction = field(default_factory=Extraction)
    _read: set[str] = field(default_factory=set)

    def extract(
        self, *, dry_run: bool = False, plan: bool = False, progress: Progress = lambda done, total, label: None
    ) -> Extraction:
        """Extract facts from every new part; a dry run stores nothing, a plan does not even call the model."""
        report, now = self.report, self.clock()
        report.dry_run, report.plan, report.model = dry_run, plan, self.llm.model if self.llm else ""
        parts = list(self._parts())
        records = records_of(self.store, self.scope)
        waiting = self._waiting(parts, records, now)
        report.chunks, report.waiting = len(parts), len(waiting)
        report.done_before = len(parts) - len(waiting)
        messages = (message for part in waiting for message in asked(part.path, part.window))
        report.estimated_tokens = ANSWER_TOKENS * len(waiting) + sum(estimated_tokens(one.text) for one in messages)
        looked_at = {name for name, record in records.items() if self._is_looked_at(record.path)}
        renewal = Renewal(self.store, self.scope, now, {part.fingerprint for part in parts}, records, looked_at)
        report.fading = renewal.fading()
        if not plan:
            self._ask_all(waiting, progress)
        if not plan and not dry_run:
            report.renewed = renewal.renew(self.settings.language)
        return report

    # -- reading ---------------------------------------------------------------------------------------------

    def _parts(self) -> Iterator[FilePart]:
        settings, report = self.settings, self.report
        for item in matching(settings.workspace, settings.patterns):
            if isinstance(item, SkippedPath):
                # The default files need not all exist.
                if settings.named or item.reason != MISSING:
                    report.skipped.append(item)
                continue
            content = read(item, settings.max_bytes)
            if isinstance(content, SkippedPath):
                report.skipped.append(content)
                continue
            report.files += 1
            cleaned, name = clean(content.text), self._name(item)
            self._read.add(name)
            if cleaned.replaced or content.replaced:
                report.remarks.append((name, "characters that cannot be stored were replaced"))
            if content.remark:
                report.remarks.append((name, content.remark))
            yield from (FilePart(name, window, date_in_name(name)) for window in windows(cleaned.text, settings.size))

    def _name(self, file: FileEntry) -> str:
        """Return the stored path of a file, as ingest has it: relative to the store's folder, if below it."""
        absolute = Path(os.path.abspath(file.path))
        base = self.settings.base
        return (absolute.relative_to(base) if absolute.is_relative_to(base) else absolute).as_posix()

    def _is_looked_at(self, path: str) -> bool:
        """Return whether this run has read a file, or would have if it were still there."""
        if path in self._read:
            return True
        place, workspace = self.settings.base / path, self.settings.workspace
        if os.path.lexists(place) or not place.is_relative_to(workspace):
            return False
        name = place.relative_to(workspace).as_posix()
        return any(is_match(name, pattern) for pattern in self.settings.patterns)

    def _waiting(self, parts: Sequence[FilePart], records: dict[str, PartRecord], now: float) -> list[FilePart]:
        """Return the parts to be sent to the model, each text once."""
        done = {name for name, record in records.items() if record.is_fresh(now)}
        texts = {records[name].fingerprint for name in done}
        first = {part.fingerprint: part for part in reversed(parts)}
        new = [part for part in parts if first[part.fingerprint] is part]
        if self.llm is None:  # a plan without a model counts the texts that were sent to no model
            return [part for part in new if part.fingerprint not in texts]
        return [part for part in new if name_of(self.scope, part.key(self.llm.model)) not in done]

    # -- calls to the model ---------------------------------------------------------------------------------

    def _ask_all(self, waiting: Sequence[FilePart], progress: Progress) -> None:
        """Send part after part to the model, until all are done or the provider keeps failing or refuses all."""
        if not waiting:
            return
        if self.llm is None:
            raise ConfigError("there is no language model", "set llm.url and llm.model, or open the store with llm=…")
        space = self.embedder.fingerprint if self.embedder else ""
        familiar = Familiar(self.store, self.scope, space, self.clock(), self.settings.same_cosine)
        failures = 0
        files = list(dict.fromkeys(part.path for part in waiting))
        for number, part in enumerate(waiting):
            progress(number, len(waiting), self._figures(files.index(part.path), len(files)))
            heard = self._ask(self.llm, part)
            self._settle(part, heard, familiar)
            self.report.asked += 1
            failures = failures + 1 if heard.error else 0
            if failures == PROVIDER_FAILURES or heard.is_hopeless:
                self.report.stopped = heard.error
                return
        progress(len(waiting), len(waiting), self._figures(len(files), len(files)))

    def _figures(self, done: int, files: int) -> str:
        """Return the progress as a short text, to fit beside a progress bar."""
        about, tokens = "~" if self.report.tokens.is_estimate else "", self.report.tokens.total
        facts = counted(len(self.report.stored), "fact")
        return f"{done}/{counted(files, 'file')}, {facts}, {about}{tokens / 1_000:.1f}k tokens"

    def _ask(self, llm: Llm, part: FilePart) -> Heard:
        """Send one part to the model, and once more if the answer cannot be used as it is."""
        messages = asked(part.path, part.window)
        try:
            first = self._complete(llm, messages)
        except ProviderError as error:
            return Heard(error=str(error), is_hopeless=_is_hopeless(error))
        answer = read_answer(first.text, part.window.text)
        if not answer.needs_repair:
            return Heard(answer)
        try:
            second = self._complete(llm, asked_again(messages, first.text, answer.refused))
        except ProviderError as error:
            return Heard(answer, error=str(error), is_hopeless=_is_hopeless(error))
        mended = read_answer(second.text, part.window.text, MAX_FACTS - len(answer.facts))
        facts, refused = (*answer.facts, *mended.facts), (*answer.refused, *mended.refused)
        return Heard(ParsedAnswer(facts, refused, answer.is_nothing or mended.is_nothing))

    def _complete(self, llm: Llm, messages: tuple[Message, ...]) -> Completion:
        self.report.calls += 1
        answer = llm.complete(messages, max_tokens=ANSWER_LIMIT_TOKENS)
        self.report.tokens.count(messages, answer)
        return answer

    # -- storing ---------------------------------------------------------------------------------------------

    def _settle(self, part: FilePart, heard: Heard, familiar: Familiar) -> None:
        """Store the new facts of one part together with the record of its success or failure."""
        report, now = self.report, self.clock()
        entries = [entry_for(self._memory(part, fact, now), self.settings.language) for fact in heard.answer.facts]
        embedded = self._embedded(entries)
        vectors = embedded.vectors
        new: dict[str, Entry] = {}
        known: list[LeftOut] = []
        for fact, entry in zip(heard.answer.facts, entries, strict=True):
            reason = familiar.reason(entry, vectors.get(entry.embed_hash))
            if reason is None:
                new[entry.memory.id] = entry
                familiar.learn([entry], vectors)
                report.stored.append(Learned(entry.memory, fact.evidence))
            else:
                known.append(LeftOut(fact.text, reason))
        refused = [LeftOut(bad.line, bad.reason) for bad in heard.answer.refused]
        report.count_unused(part, known, refused)
        if heard.failure:
            report.failed.append(Failed(part.path, part.window.start_line, part.window.end_line, heard.failure))
        report.lines += heard.answer.lines
        if report.dry_run:
            return
        facts = tuple(entry.memory.id for entry in entries)
        record = with_lines(record_of(part, report.model, now, heard.failure, facts), known + refused)
        self._write(part, list(new.values()), embedded, record)
        familiar.leave_to_store()

    def _write(self, part: FilePart, new: Sequence[Entry], embedded: Attempt, record: PartRecord) -> None:
        kept = {entry.embed_hash for entry in new}
        self.store.write(
            Changes(
                put=new,
                space=self.embedder.fingerprint if self.embedder else "",
                vectors={key: vector for key, vector in embedded.vectors.items() if key in kept},
                failures={key: failure for key, failure in embedded.failures.items() if key in {PROVIDER, *kept}},
                notes={name_of(self.scope, part.key(record.model)): as_note(record)},
            )
        )

    def _embedded(self, entries: Sequence[Entry]) -> Attempt:
        """Embed facts; a failing embedder is a remark, and the facts can be found by their words meanwhile."""
        if self.embedder is None or not entries:
            return Attempt()
        desk = Desk(self.store, self.embedder, self.clock)
        done = desk.attempt_in_time({entry.embed_hash: entry.embed_text for entry in entries})
        if done.wrong:
            remark = ("embedding", f"failed; until it works, near-duplicate facts are not detected: {done.wrong}")
            self.report.remarks += [] if remark in self.report.remarks else [remark]
        return done

    def _memory(self, part: FilePart, fact: Fact, now: float) -> Memory:
        window = part.window
        return Memory(
            id=id_for(self.scope, "", same_text(fact.text)),
            text=fact.text,
            source=Source(part.path, window.start_line, window.end_line, content_hash(fact.text)),
            scope=self.scope,
            category=fact.category,
            tags=tuple(dict.fromkeys((*fact.tags, TAG))),
            importance=fact.importance,
            created=now,
            date=part.date if part.date is not None else now,
            decay=DECAY,
            expires=expiry(DECAY, now),
            trust="ingested",
        )


@dataclass(frozen=True)
class Heard:
    """Outcome of one part: an answer, and the error if there was one."""

    answer: ParsedAnswer = field(default_factory=ParsedAnswer)
    error: str = ""
    is_hopeless: bool = False

    @property
    def failure(self) -> str:
        """Return the reason of a failure, or an empty text; an explicit answer of no facts is no failure."""
        if self.answer.facts or (self.answer.is_nothing and not self.error):
            return ""
        first = self.answer.refused[0].reason if self.answer.refused else "the answer was empty"
        return self.error or f"no line of the answer could be used; the first: {first}"


def _is_hopeless(error: ProviderError) -> bool:
    """Return whether the provider would refuse every other part likewise."""
    return isinstance(error, ProviderRefused) and error.status in REFUSALS_OF_EVERYBODY
