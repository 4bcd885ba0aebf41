"""Verbs that write memories: facts, extraction, import and export, backup, repair."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ...analysis.document import READER_VERSION
from ...config import load as settings
from ...engine.arguments import MAX_FACT_CHARACTERS, UNSAID, scope_of
from ...engine.engine import check_workspace
from ...engine.open import check_backup, count_memories, served_llm
from ...engine.open import doctor as looked_after
from ...engine.open import restore as restored_into
from ...engine.records import Added, lost_past
from ...errors import ConfigError, ProviderError, StoreDamaged, StoreError
from ...formatting import counted, on_one_line
from ...ingest.walk import parsed
from ...types.memory import GLOBAL, Memory, Notice
from .. import serialize
from ..errors import FORMAT, OK, PARTLY_READ, WAITING, failure_of
from ..serialize import extraction, left_out
from . import output
from .files import check_export
from .output import settings_of
from .search import name_of, open_existing, open_or_make, suggesting, writable

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence

    from ...engine.copy import Copied
    from ...engine.engine import Engine
    from ...ingest.extraction.extractor import Extraction, Unused
    from ...ingest.extraction.ledger import PartRecord
    from ...storage.sqlite.check import Checkup, Finding

_SHOWN = 20  # of each kind; --json has all, and left-out lines stay recorded
_SHOWN_CHARACTERS = 160


def ingest_files(asked: argparse.Namespace) -> int:
    """Extract facts from files, print the plan, or list lines left out before."""
    if asked.left_out:
        return _show_left_out(asked)
    _check(asked)
    # A run that stores nothing must not create a store.
    asked.dry_run = asked.dry_run or asked.plan
    with writable(asked) as engine, output.progress("ingest-files", quiet=asked.json) as tick:
        report = engine.ingest_files(
            asked.paths,
            scope=asked.scope,
            dry_run=asked.dry_run and not asked.plan,
            plan=asked.plan,
            base=settings_of(asked).notes,
            progress=tick,
        )
    if asked.json:
        output.say_json(extraction(report))
    else:
        _say(report)
    if report.stopped:
        return failure_of(ProviderError(report.stopped)).exit_status
    return PARTLY_READ.exit_status if report.unread or report.failed else OK


def _check(asked: argparse.Namespace) -> None:
    """Refuse invalid arguments before a store is created."""
    config = settings_of(asked)
    scope_of(asked.scope)
    parsed(config["ingest.paths"] if asked.paths is None else asked.paths)
    check_workspace(config.workspace)
    if not asked.plan:
        served_llm(config)


def _show_left_out(asked: argparse.Namespace) -> int:
    with open_existing(asked) as engine:
        records = engine.memories.extraction_rejects(scope=asked.scope)
    if asked.json:
        output.say_json(left_out(records))
        return OK
    _say_records(records)
    return OK


def _say_records(records: Sequence[PartRecord]) -> None:
    if not records:
        output.say("every line was stored")
    for record in records:
        how = f"failed: {record.reason}" if record.outcome == "failed" else "done"
        output.say(on_one_line(f"{record.path}:{record.start_line}-{record.end_line}  {how} ({record.model})"))
        for line, reason in record.left_out:
            output.say(f"  {line}\n    {reason}")
        if record.more_left_out:
            output.say(f"  … {counted(record.more_left_out, 'line')} more, not kept")


def _say(report: Extraction) -> None:
    output.say(f"files: {report.files}; chunks: {report.chunks}, {report.done_before} of them done before")
    if not report.files:
        output.complain("no file matches; --paths names others, --workspace another folder")
    if report.plan:
        output.say(f"would ask about {counted(report.waiting, 'chunk')}, some {report.estimated_tokens:,} tokens")
    elif report.waiting:
        _say_asked(report)
    _say_facts(report)
    _say_trouble(report)


def _say_asked(report: Extraction) -> None:
    tokens = report.tokens
    about = "about " if tokens.is_estimate else ""
    output.say(
        f"asked {report.model} about {report.asked} of {counted(report.waiting, 'chunk')} "
        f"in {counted(report.calls, 'call')}: {about}{tokens.prompt:,} tokens sent, {about}{tokens.completion:,} "
        f"received"
    )
    would = "would be " if report.dry_run else ""
    known = f"{len(report.known)} known already, {counted(report.refused_lines, 'line')} refused"
    output.say(f"facts: {len(report.stored)} {would}stored, {known}")


def _say_facts(report: Extraction) -> None:
    for learned in report.stored:
        output.say(f"  {output.place(learned.memory)}  {learned.memory.text}")
    if report.renewed:
        output.say(f"renewed: {counted(report.renewed, 'fact')} whose text is still in the file")
    if report.fading:
        fading = counted(len(report.fading), "fact")
        output.say(f"fading: {fading} whose text is gone from the file; `whyrank forget ID` removes one at once")
        for memory in report.fading[:_SHOWN]:
            output.say(f"  {memory.id}  {output.place(memory)}  {memory.text}")


def _say_trouble(report: Extraction) -> None:
    _complain_of("known already", report.known)
    _complain_of("refused", report.refused)
    if not report.dry_run and (report.known or report.refused):
        output.complain("`whyrank ingest-files --left-out` prints all of these")
    for path, start, end, reason in report.failed[:_SHOWN]:
        output.complain(f"failed {path}:{start}-{end}: {reason}")
    for path, reason, failed in report.skipped:
        output.complain(f"{'could not read' if failed else 'skipped'} {path}: {reason}")
    for path, remark in report.remarks:
        output.complain(f"{path}: {remark}")
    if report.stopped:
        output.complain(f"stopped: {report.stopped}")
    if report.left and not report.plan and not report.dry_run:
        output.complain(
            f"{counted(report.left, 'chunk is', 'chunks are')} left; run the same command again to continue"
        )


def _complain_of(what: str, lines: Sequence[Unused]) -> None:
    for path, start, end, line, reason in lines[:_SHOWN]:
        output.complain(f"{what} {path}:{start}-{end}: {line[:_SHOWN_CHARACTERS]}: {reason[:_SHOWN_CHARACTERS]}")
    if len(lines) > _SHOWN:
        output.complain(f"{what}: {counted(len(lines) - _SHOWN, 'line')} more")


_EARLIER = "indexed by an earlier whyrank"


def doctor(asked: argparse.Namespace) -> int:
    """Check the file, the words and the vectors of a store; with `--repair`, repair them."""
    place = settings_of(asked).store
    if not settings.is_there(place):
        raise StoreError(f"there is no store at {place}", "`whyrank ingest PATH` creates one; --store names another")
    if isinstance(place, Path) and not place.is_file():
        open_or_make(asked).close()  # opening it reports what it is instead
    if asked.give_up:
        return _give_up(asked)
    with output.progress("repairing" if asked.repair else "looking", quiet=asked.json) as tick:
        found = looked_after(
            asked.store,
            workspace=asked.workspace,
            repair=asked.repair,
            deep=asked.deep,
            progress=tick,
            embedding=asked.embedding,
        )
    (_say_json if asked.json else _say_checkup)(asked, found)
    if not found.is_sound:
        return failure_of(StoreDamaged("")).exit_status
    return OK if found.is_whole else WAITING.exit_status


def reindex(asked: argparse.Namespace) -> int:
    """Reindex the memories that an earlier analyzer indexed."""
    with open_existing(asked) as engine, output.progress("reindexing", quiet=asked.json) as tick:
        done = engine.maintenance.reindex(tick)
    if asked.json:
        output.say_json({"reindexed": done, "reader": READER_VERSION, "format": FORMAT})
    else:
        output.say(f"{counted(done, 'memory', 'memories')} reindexed")
    return OK


def _give_up(asked: argparse.Namespace) -> int:
    """Delete the damaged memories that were set aside, and print their ids for the last time."""
    with open_or_make(asked) as engine:
        gone = engine.maintenance.discard_damaged()
    if asked.json:
        output.say_json({"given_up": list(gone)})
    else:
        output.say(f"gave up {counted(len(gone), 'damaged memory', 'damaged memories')}")
        for identity in gone:
            output.say(f"  {identity}")
    return OK


def _say_json(asked: argparse.Namespace, found: Checkup) -> None:
    damage = [{**finding._asdict(), "names": list(finding.names)} for finding in found.findings]
    told: dict[str, Any] = {
        _kept_in(asked): {"sound": found.is_sound, "findings": damage, "kept": found.kept or None},
        "free_bytes": found.free_bytes,
        "words": None,
        "vectors": None,
        "compared": None if found.compared is None else found.compared._asdict(),
        "notices": [],
        "format": FORMAT,
    }
    if found.looked_inside:
        with open_or_make(asked) as engine:
            behind, notices = engine.models.backlog(), (*engine.maintenance.stale_notices(), *engine.models.notices())
        told["words"] = {"reader": READER_VERSION, "old": found.old_words, "read_anew": found.read_anew}
        told["vectors"] = {
            **serialize.backlog(behind),
            "earlier": found.has_earlier_vectors,
            "embedded": found.embedded,
        }
        told["notices"] = serialize.notices(notices)
    output.say_json(told)


def _say_checkup(asked: argparse.Namespace, found: Checkup) -> None:
    damage = [finding for finding in found.findings if finding.code not in ("disk", "server")]
    _say_damage(_kept_in(asked), damage, found.kept)
    _say_surroundings(found)
    if found.compared is not None:
        done = found.compared
        output.say(
            f"compared in {done.seconds:.1f} s: {counted(done.memories, 'memory', 'memories')}, "
            f"{counted(done.words, 'word')}, {counted(done.segments, 'segment')}, {counted(done.vectors, 'vector')}"
        )
    if not found.looked_inside:
        return
    with open_or_make(asked) as engine:
        behind, notices = engine.models.backlog(), (*engine.maintenance.stale_notices(), *engine.models.notices())
    if asked.repair:
        read = counted(found.read_anew, "memory was", "memories were")
        output.say(f"{read} reindexed, {counted(found.embedded, 'text was', 'texts were')} embedded")
    old = found.old_words
    output.say("words: in order" if not old else f"words: {counted(old, 'memory was', 'memories were')} {_EARLIER}")
    if found.has_earlier_vectors:
        output.say("vectors: made by an earlier whyrank and still used")
    elif not behind.waiting:
        output.say("vectors: in order")
    output.show_backlog(behind)
    output.show_notices(notices)


def _kept_in(asked: argparse.Namespace) -> str:
    """Return what holds the store: a file, or tables of a server."""
    return "file" if isinstance(settings_of(asked).store, Path) else "tables"


def _say_surroundings(found: Checkup) -> None:
    """Print low disk space and risky settings of a server, with hints; `status` prints the amounts."""
    for finding in found.findings:
        if finding.code in ("disk", "server"):
            what_next = "repaired" if finding.mended else finding.hint
            output.say(on_one_line(f"{finding.code}: {finding.message} ({what_next})"))


def _say_damage(holder: str, findings: Sequence[Finding], kept: str) -> None:
    """Print the damage of the file or tables, one finding per line, with a hint."""
    if not findings:
        output.say(f"{holder}: in order")
        return
    left = [finding for finding in findings if not finding.mended]
    output.say(f"{holder}: {'damaged' if left else 'repaired'}")
    for finding in findings:
        what_next = "repaired" if finding.mended else finding.hint
        output.say(on_one_line(f"  {finding.code}: {finding.message}" + (f" ({what_next})" if what_next else "")))
    if kept:
        output.say(f"the old store is kept as {kept}; delete it when nothing is missing")


def copy(asked: argparse.Namespace) -> int:
    """Copy a store into another; exit status 14 if the other holds some memories with other content."""
    from ...engine.copy import copy_store  # no other verb here needs it

    if asked.store is not None:
        raise ConfigError("--store is given", "name both stores: `whyrank copy SRC DST`")
    with output.progress("copy", quiet=asked.json) as tick:
        done = copy_store(
            asked.source,
            asked.destination,
            scope=asked.scope,
            merge=asked.merge,
            workspace=asked.workspace,
            progress=tick,
        )
    if asked.json:
        unlike = [one._asdict() for one in done.unlike]
        output.say_json({**asdict(done), "unlike": unlike, "notices": serialize.notices(done.notices)})
    else:
        _say_copied(done)
    return PARTLY_READ.exit_status if done.unlike else OK


def _say_copied(done: Copied) -> None:
    if done.has_changed:
        beside = (counted(done.history, "former text"), counted(done.keys, "key"), counted(done.files, "file"))
        output.say(f"{_memories(done.memories)} copied from {done.source} to {done.destination}, verified")
        output.say(f"with {', '.join(beside)}, {counted(done.notes, 'note')} and {counted(done.pins, 'pin')}")
        for space, count in done.vectors.items():
            output.say(f"{counted(count, 'vector')} of {space}")
        others = {"replaced": done.replaced, "removed": done.removed, "unchanged": done.unchanged}
        if told := [f"{count:,} {name}" for name, count in others.items() if count]:
            output.say(", ".join(told))
    else:
        output.say(f"nothing to copy: {done.destination} holds {_memories(done.unchanged)} of {done.source} already")
    for identity, reason in done.unlike[:_LINES_SHOWN]:
        output.complain(f"not copied {identity}: {reason}")
    if len(done.unlike) > _LINES_SHOWN:
        output.complain(f"not copied {len(done.unlike) - _LINES_SHOWN:,} more (--json names all of them)")
    output.show_notices(done.notices)


_YES = "yes"
_LINES_SHOWN = 20


def backup(asked: argparse.Namespace) -> int:
    """Copy the store into one verified file."""
    with open_existing(asked) as engine, output.progress("backup", quiet=asked.json) as tick:
        made = engine.backup(asked.file, progress=tick)
    if asked.json:
        data = {**made._asdict(), "created": serialize.moment(made.created)}
        output.say_json({**data})
    else:
        output.say(f"{_memories(made.memories)} written to {asked.file} ({made.bytes:,} bytes, verified)")
    return OK


def restore(asked: argparse.Namespace) -> int:
    """Replace the content of the store by that of a backup."""
    store = settings_of(asked).store
    if isinstance(store, Path) and not asked.yes:
        check_backup(asked.file, store)
        _confirm_restoring(asked, str(store), count_memories(store))
    with output.progress("restore", quiet=asked.json) as tick:
        done = restored_into(asked.file, asked.store, workspace=asked.workspace, keep=not asked.no_keep, progress=tick)
    if asked.json:
        data = {"restored": done.memories, "file": asked.file, "created": serialize.moment(done.created)}
        output.say_json({**data, "schema": done.schema, "kept": done.kept or None})
        return OK
    since = f" of {serialize.moment(done.created)}" if done.created else ""
    output.say(f"{_memories(done.memories)} restored from {asked.file}{since}")
    if done.kept:
        output.say(f"the old store is kept as {done.kept}; delete it when nothing is missing")
    return OK


def _confirm_restoring(asked: argparse.Namespace, store: str, held: int | None) -> None:
    if held == 0:
        return
    what = f"this replaces {'everything' if held is None else _memories(held)} in {store}"
    prompt = f"{what[0].upper()}{what[1:]}. Type {_YES} to continue:"
    confirm(asked, what, prompt, _YES, ConfigError(f"that was not {_YES}", "nothing was changed"))


def confirm(asked: argparse.Namespace, what: str, prompt: str, answer: str, refusal: ConfigError) -> None:
    """Ask for confirmation before memories are lost; without a terminal, require --yes."""
    if asked.json or not sys.stdin.isatty():
        raise ConfigError(what, "pass --yes to confirm")
    output.complain(prompt)
    if sys.stdin.readline().strip() != answer:
        raise refusal


def _memories(count: int) -> str:
    return counted(count, "memory", "memories")


STANDARD_INPUT = "-"
_NOTHING = "none"
_MOST_BYTES = 4 * MAX_FACT_CHARACTERS  # of one fact in UTF-8
_BYTES_FROM = 0xDC00  # first surrogate of undecodable bytes (PEP 383)
_TOLD = {
    "known": "it was stored already",
    "merged": "the new fact was merged into this near-duplicate",
    "replacing": "it was stored already, and now replaces the other",
    "revived": "it was stored before and is found again",
}


class RefusedFact(NamedTuple):
    """A line that could not be stored, and why."""

    line: int
    reason: str


def add(asked: argparse.Namespace) -> int:
    """Store facts, each durable once its id is printed; a line that fails does not stop the others."""
    from_input = asked.text == [STANDARD_INPUT]
    if from_input and (asked.supersedes or asked.name or asked.key):
        raise ConfigError("a name, a key and a replaced memory apply to one fact only", "give the fact as an argument")
    fields = _fields(asked)
    refused: list[RefusedFact] = []
    stored: list[Added] = []
    with open_or_make(asked) as engine:
        one = (_added(engine, asked, text, fields) for text in [" ".join(asked.text)])
        for done in _from_lines(engine, asked, fields, refused) if from_input else one:
            stored.append(done)
            if not asked.json:
                _say_added(done)
        waiting = engine.models.waiting_notices()
    if not stored and not refused:
        waiting = (Notice("nothing-given", "standard input holds no line, so nothing was stored"), *waiting)
    for line, reason in refused:
        output.complain(f"line {line} was not stored: {reason}")
    if asked.json:
        data = {"memories": [serialize.added(done) for done in stored], "refused": [one._asdict() for one in refused]}
        output.say_json({**data, "notices": serialize.notices(waiting)})
    output.show_notices(() if asked.json else waiting)
    return PARTLY_READ.exit_status if refused else OK


def update(asked: argparse.Namespace) -> int:
    """Change a fact."""
    text = asked.text
    if text == STANDARD_INPUT:
        given = sys.stdin.buffer.read(_MOST_BYTES + 1)
        if len(given) > _MOST_BYTES:
            told = f"standard input holds more than {MAX_FACT_CHARACTERS:,} characters"
            raise ConfigError(told, "put it into a file and ingest the file; nothing was changed")
        text = given.decode("utf-8", errors="surrogateescape")
        if (wrong := _undecoded(text)) is not None:
            raise ConfigError(f"standard input cannot be read: {wrong}", "nothing was changed")
    with open_existing(asked) as engine:
        fields = {"text": text, "supersedes": _replaced(asked.supersedes), **_fields(asked)}
        with suggesting(engine, asked, asked.id, asked.supersedes):
            done = engine.facts.revise(asked.id, scope=asked.scope, **fields)
        memory = done.memory
        if asked.json:
            history = engine.history(memory.id, scope=asked.scope)
            output.say_json(serialize.changed(done, history, engine.memories.replaced(memory.id, scope=asked.scope)))
        else:
            output.say(f"{memory.id}  {memory.text}")
            output.show_notices(done.notices)
    return OK


def _say_added(done: Added) -> None:
    identity = done.memory.id
    output.say(f"{identity}  {done.memory.text}")
    if done.outcome in _TOLD:
        output.complain(f"{identity}: {_TOLD[done.outcome]}")
    for near in done.near if done.outcome != "merged" else ():
        same = f"{near.memory.id} is a near-duplicate ({near.cosine:.2f}): {near.memory.text}"
        output.complain(f"{identity}: {same}")
    output.show_notices(done.notices)


def _from_lines(
    engine: Engine, asked: argparse.Namespace, fields: dict[str, Any], refused: list[RefusedFact]
) -> Iterator[Added]:
    # Bytes that are not UTF-8 refuse their line, not all lines.
    for number, line in enumerate(_lines(), 1):
        if len(line) > _MOST_BYTES:
            refused.append(
                RefusedFact(number, f"it has more than {MAX_FACT_CHARACTERS:,} characters, too many for a fact")
            )
            continue
        text = line.decode("utf-8", errors="surrogateescape").strip()
        if not text:
            continue
        if (wrong := _undecoded(text)) is not None:
            refused.append(RefusedFact(number, wrong))
            continue
        try:
            yield _added(engine, asked, text, fields)
        except ConfigError as error:
            refused.append(RefusedFact(number, error.message))


def _lines() -> Iterator[bytes]:
    """Yield the lines of standard input; a long one is truncated, which bounds memory use."""
    while line := sys.stdin.buffer.readline(_MOST_BYTES + 1):
        yield line
        while len(line) > _MOST_BYTES and not line.endswith(b"\n"):
            line = sys.stdin.buffer.readline(_MOST_BYTES + 1)


def _undecoded(text: str) -> str | None:
    """Return an error about a byte that is not UTF-8, or None; such bytes are surrogates in the text."""
    byte = next((ord(letter) - _BYTES_FROM for letter in text if "\udc80" <= letter <= "\udcff"), None)
    return None if byte is None else f"it is not UTF-8 (byte 0x{byte:02x}); convert it, for instance with iconv"


def _added(engine: Engine, asked: argparse.Namespace, text: str, fields: dict[str, Any]) -> Added:
    return engine.facts.remember(text, scope=asked.scope, supersedes=asked.supersedes, key=asked.key, **fields)


def _replaced(named: str | None) -> str | None:
    """Return the id of the replaced fact, UNSAID if not given; `none` clears it."""
    unsaid: str = UNSAID
    return unsaid if named is None else None if named == _NOTHING else named


def _fields(asked: argparse.Namespace) -> dict[str, Any]:
    """Return the given fields; `none` clears one."""
    given = {
        **serialize.fields(asked, "name category"), "tags": asked.tag, "entities": asked.entity,
        **serialize.fields(asked, "importance decay date valid_from valid_until expires trust"),
        **serialize.fields(asked, "metadata subject attribute"),
    }  # fmt: skip
    named: dict[str, Any] = {key: value for key, value in given.items() if value is not None}
    read = {key: None if value in (_NOTHING, [_NOTHING]) else value for key, value in named.items()}
    importance = read.get("importance")
    if importance is not None and importance.isdecimal():
        read["importance"] = int(importance[:3])
    return read


def _shown_value(value: object) -> str:
    """Return a field of a memory on its line: lists with commas, metadata as JSON."""
    if isinstance(value, list):
        return ", ".join(value)
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict) else str(value)


_PRUNED_SHOWN = 20
_MICROSECONDS = re.compile(r"(?<=:\d\d)\.\d{6}Z$")
_APART = ("text", "format", "history", "replaced", "notices", "superseded_by", "superseded_at")


def show(asked: argparse.Namespace) -> int:
    """Print one memory with its history."""
    with open_existing(asked) as engine:
        wanted = name_of(engine, asked.id, asked.scope)
        with suggesting(engine, asked, wanted):
            memory = engine.get(wanted, scope=asked.scope)
        history = engine.history(memory.id, scope=asked.scope)
        altered = engine.memories.text_notices([memory], scope=asked.scope)
        data = serialize.shown(memory, history, engine.memories.replaced(memory.id, scope=asked.scope), altered)
    notices = (*altered, *lost_past(history))
    if asked.json:
        output.say_json(data)
        return OK
    for key, value in data.items():
        if value not in (None, "", [], {}, 0) and key not in _APART:
            output.say(f"{key}: {on_one_line(_shown_value(value))}")
    _say_past(memory, data)
    output.say()
    output.say(memory.text)
    output.show_notices(notices)
    return OK


def _say_past(memory: Memory, data: dict[str, Any]) -> None:
    if memory.superseded_by:
        output.say(f"replaced by: {memory.superseded_by} on {(data['superseded_at'] or '')[:10]}")
    for one in data["replaced"]:
        output.say(f"replaced: {one['id']}  {_line(one['text'])}")
    for change in data["history"]:
        was = "; ".join(f"{name}: {_plainly(value)}" for name, value in change["was"].items())
        until = str(change["changed"])[:19] if change["changed"] else "a time that was damaged"
        output.say(f"until {until}: {was or 'damaged'}")


def _plainly(value: Any) -> str:
    """Format an old value of a field; timestamps to the second."""
    if value in (None, "", []):
        return "none"
    return ", ".join(value) if isinstance(value, list) else _MICROSECONDS.sub("Z", _line(str(value)))


def _line(text: str) -> str:
    return " ".join(text.split())


def recalled(asked: argparse.Namespace) -> int:
    """Count a recall for each memory."""
    with open_existing(asked) as engine:
        ids = [name_of(engine, typed, asked.scope) for typed in asked.id]
        with suggesting(engine, asked, *ids):
            count = engine.mark_used(*ids, scope=asked.scope)
    if asked.json:
        output.say_json({"recalled": list(dict.fromkeys(asked.id))})
    else:
        output.say(f"{_memories(count)} recorded as useful")
    return OK


def forget(asked: argparse.Namespace) -> int:
    """Remove memories by exact id, or a whole scope; if one id does not exist, none is removed."""
    if bool(asked.id) == bool(asked.whole_scope):
        raise ConfigError("name what to forget", "give ids, or --whole-scope with one scope")
    ids = list(dict.fromkeys(asked.id))
    with open_existing(asked) as engine:
        if asked.whole_scope:
            if not asked.yes:
                _confirm_forgetting(asked)
            done = engine.memories.forget_scope(asked.whole_scope, purge=asked.purge)
        else:
            ids = [name_of(engine, typed, asked.scope) for typed in ids]
            with suggesting(engine, asked, *ids):
                done = engine.forget(*ids, scope=asked.scope, purge=asked.purge)
    if asked.json:
        output.say_json(serialize.forgotten(ids, asked.whole_scope, done))
    elif asked.whole_scope:
        output.say(f"forgot {_memories(done.memories)} of {asked.whole_scope}")
    else:
        output.say("\n".join(f"forgot {identity}" for identity in ids))
    for remains in done.remains if not asked.json else ():
        output.complain(f"mind: {remains}")
    return OK


def _confirm_forgetting(asked: argparse.Namespace) -> None:
    scope = asked.whole_scope
    prompt = f"This removes everything in {scope}. Type the scope again to continue:"
    refusal = ConfigError("the names differ", "nothing was removed")
    confirm(asked, f"this removes everything in {scope}", prompt, scope, refusal)


def prune(asked: argparse.Namespace) -> int:
    """Remove expired memories."""
    with open_existing(asked) as engine, output.progress("prune", quiet=asked.json or asked.dry_run) as tick:
        gone = engine.memories.prune(
            scope=asked.scope, every_scope=asked.every_scope, dry_run=asked.dry_run, progress=tick
        )
    if asked.json:
        ids = [memory.id for memory in gone]
        output.say_json({"pruned": ids, "dry_run": asked.dry_run})
        return OK
    output.say(f"{_memories(len(gone))} {'would be ' if asked.dry_run else ''}pruned")
    _say_some(gone if asked.dry_run else [])
    return OK


def _say_some(memories: Sequence[Memory]) -> None:
    for memory in memories[:_PRUNED_SHOWN]:
        output.say(f"  {memory.id}  {(serialize.moment(memory.expires) or '')[:10]}  {output.heading(memory)}")
    if len(memories) > _PRUNED_SHOWN:
        output.say(f"  … {len(memories) - _PRUNED_SHOWN} more (`whyrank list --expired` lists all that have expired)")


def export(asked: argparse.Namespace) -> int:
    """Write all memories of one scope, or of all, as JSON lines."""
    if asked.every_scope and asked.scope:
        raise ConfigError("--scope and --every-scope are given", "give one of them")
    scope = asked.scope or str(GLOBAL)
    if asked.out:
        check_export(Path(asked.out), None if asked.every_scope else str(scope_of(scope)))
    quiet = asked.json or (asked.out is None and sys.stdout.isatty())
    with open_existing(asked) as engine, output.progress("export", quiet=quiet) as tick:
        notices: list[Notice] = []
        whose = {"scope": scope, "every_scope": asked.every_scope}
        count = engine.export(asked.out or sys.stdout, **whose, progress=tick, notices=notices)
    if asked.json and asked.out:
        told = {"exported": count, "scope": None if asked.every_scope else scope, "file": asked.out}
        output.say_json({**told, "notices": serialize.notices(notices)})
        return OK
    if asked.out:
        output.say(f"{_memories(count)} of {'every scope' if asked.every_scope else scope} written to {asked.out}")
    output.show_notices(tuple(notices))
    return OK
