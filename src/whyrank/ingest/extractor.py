"""Facts from files by a language model: read, cut, ask part by part, check every line, store what is new.

What was asked and the facts that came of it are written together, part by part, so that a run that was stopped goes on
where it was, and a run over files that have not changed asks nothing.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from ..analysis.text import clean, estimated_tokens, same_text
from ..errors import ConfigError, ProviderError, ProviderRefused
from ..lifetimes import expiry
from ..ports import Changes, Completion, Embedder, Entry, Llm, Message, Store
from ..types import Memory, Scope, Source
from ..wording import counted
from .answers import MAX_FACTS, Answer, Fact, read_answer
from .asked import (
    DECAY,
    KEPT_LINES,
    LeftOut,
    Part,
    Record,
    as_note,
    left_out_of,
    name_of,
    record_of,
    records_of,
    with_lines,
)  # fmt: skip
from .dates import date_in_name
from .entries import content_hash, entry_for, id_for
from .extraction import ANSWER_TOKENS, Extraction, Learned
from .familiar import SAME_COSINE, Familiar
from .filling import PROVIDER, REFUSALS_OF_EVERYBODY, Attempt, Desk, Progress
from .globs import MISSING, is_match, matching
from .prompts import asked, asked_again
from .renewal import Renewal
from .walk import Found, Skipped, read
from .windows import WindowSize, windows

TAG = "ingest"
ANSWER_LIMIT_TOKENS = 4_096  # twenty facts take half of it; the rest is for models that think aloud
PROVIDER_FAILURES = 3  # in a row: then it is not the text

# No key, not paid for, not allowed, no such model or address: the next part would fare no better.


@dataclass(frozen=True)
class ExtractionSettings:
    """Which files are read, and how; `named` if somebody asked for these patterns."""

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
        """Ask about every part that is new; a dry run stores nothing, a plan does not even ask."""
        report, now = self.report, self.clock()
        report.dry_run, report.plan, report.model = dry_run, plan, self.llm.model if self.llm else ""
        parts = list(self._parts())
        records = records_of(self.store, self.scope)
        waiting = self._waiting(parts, records, now)
        report.chunks, report.waiting = len(parts), len(waiting)
        report.done_before = len(parts) - len(waiting)
        report.estimated_tokens = sum(_estimate(part) for part in waiting)
        looked_at = {name for name, record in records.items() if self._is_looked_at(record.path)}
        renewal = Renewal(self.store, self.scope, now, {part.fingerprint for part in parts}, records, looked_at)
        report.fading = renewal.fading()
        if not plan:
            self._ask_all(waiting, progress)
        if not plan and not dry_run:
            report.renewed = renewal.renew(self.settings.language)
        return report

    # -- reading ---------------------------------------------------------------------------------------------

    def _parts(self) -> Iterator[Part]:
        settings, report = self.settings, self.report
        for item in matching(settings.workspace, settings.patterns):
            if isinstance(item, Skipped):
                # Of the usual files nobody need have all.
                if settings.named or item.reason != MISSING:
                    report.skipped.append(item)
                continue
            content = read(item, settings.max_bytes)
            if isinstance(content, Skipped):
                report.skipped.append(content)
                continue
            report.files += 1
            cleaned, name = clean(content.text), self._name(item)
            self._read.add(name)
            if cleaned.replaced or content.replaced:
                report.remarks.append((name, "characters that cannot be stored were replaced"))
            if content.remark:
                report.remarks.append((name, content.remark))
            yield from (Part(name, window, date_in_name(name)) for window in windows(cleaned.text, settings.size))

    def _name(self, file: Found) -> str:
        """Return the path a file is known by, as ingest has it: relative to where the store is, if it is below."""
        absolute = Path(os.path.abspath(file.path))
        base = self.settings.base
        return (absolute.relative_to(base) if absolute.is_relative_to(base) else absolute).as_posix()

    def _is_looked_at(self, path: str) -> bool:
        """Tell whether this run has read a file, or would have if it were still there."""
        if path in self._read:
            return True
        place, workspace = self.settings.base / path, self.settings.workspace
        if os.path.lexists(place) or not place.is_relative_to(workspace):
            return False
        name = place.relative_to(workspace).as_posix()
        return any(is_match(name, pattern) for pattern in self.settings.patterns)

    def _waiting(self, parts: Sequence[Part], records: dict[str, Record], now: float) -> list[Part]:
        """Return the parts that are to be asked about, each text once."""
        done = {name for name, record in records.items() if record.is_fresh(now)}
        texts = {records[name].fingerprint for name in done}
        first = {part.fingerprint: part for part in reversed(parts)}
        new = [part for part in parts if first[part.fingerprint] is part]
        if self.llm is None:  # a plan without a model can only say what no model has been asked
            return [part for part in new if part.fingerprint not in texts]
        return [part for part in new if name_of(self.scope, part.key(self.llm.model)) not in done]

    # -- asking ----------------------------------------------------------------------------------------------

    def _ask_all(self, waiting: Sequence[Part], progress: Progress) -> None:
        """Ask about part after part, until all are done or the model answers no more."""
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
        """Say how far it is, in few letters: a bar has no room for more."""
        about, tokens = "~" if self.report.tokens.is_estimate else "", self.report.tokens.total
        facts = counted(len(self.report.stored), "fact")
        return f"{done}/{counted(files, 'file')}, {facts}, {about}{tokens / 1_000:.1f}k tokens"

    def _ask(self, llm: Llm, part: Part) -> Heard:
        """Ask about one part, and once more if the answer cannot be used as it is."""
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
        return Heard(Answer(facts, refused, answer.is_nothing or mended.is_nothing))

    def _complete(self, llm: Llm, messages: tuple[Message, ...]) -> Completion:
        self.report.calls += 1
        answer = llm.complete(messages, max_tokens=ANSWER_LIMIT_TOKENS)
        self.report.tokens.count(messages, answer)
        return answer

    # -- storing ---------------------------------------------------------------------------------------------

    def _settle(self, part: Part, heard: Heard, familiar: Familiar) -> None:
        """Store what is new of one part together with the record that it was asked about, or that it failed."""
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
        refused = left_out_of(heard.answer.refused)
        report.lines += heard.answer.lines
        report.count_unused(part, known, refused, KEPT_LINES)
        if heard.failure:
            report.fail(part, heard.failure)
        if report.dry_run:
            return
        facts = tuple(entry.memory.id for entry in entries)
        record = replace(record_of(part, report.model, now), reason=heard.failure, facts=facts)
        record = with_lines(replace(record, outcome="failed" if heard.failure else "done"), known + refused)
        self._write(part, list(new.values()), embedded, record)
        familiar.leave_to_store()

    def _write(self, part: Part, new: Sequence[Entry], embedded: Attempt, record: Record) -> None:
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
            remark = ("embedding", f"failed; facts that say nearly the same are not told apart meanwhile: {done.wrong}")
            self.report.remarks += [] if remark in self.report.remarks else [remark]
        return done

    def _memory(self, part: Part, fact: Fact, now: float) -> Memory:
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
    """What came of asking about one part: an answer, and what went wrong if something did."""

    answer: Answer = field(default_factory=Answer)
    error: str = ""
    is_hopeless: bool = False

    @property
    def failure(self) -> str:
        """Say why nothing came of it, if nothing did: a model that says so knows of no fact."""
        if self.answer.facts or (self.answer.is_nothing and not self.error):
            return ""
        first = self.answer.refused[0].reason if self.answer.refused else "the answer was empty"
        return self.error or f"no line of the answer could be used; the first: {first}"


def _is_hopeless(error: ProviderError) -> bool:
    """Tell whether asking about another part would be refused likewise."""
    return isinstance(error, ProviderRefused) and error.status in REFUSALS_OF_EVERYBODY


def _estimate(part: Part) -> int:
    """Estimate the tokens one part takes, if it is asked about once."""
    return sum(estimated_tokens(message.text) for message in asked(part.path, part.window)) + ANSWER_TOKENS
