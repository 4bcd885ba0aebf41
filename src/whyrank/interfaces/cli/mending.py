"""The verb that looks whether a store is in order, and mends what can be made anew."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from typing import Any

from ...checkups import Checkup, Finding
from ...errors import StoreDamaged, StoreError
from ...ingest.entries import READER_VERSION
from ...opening import doctor as looked_after
from ...wording import counted, on_one_line
from .. import shapes, space_shapes
from ..failures import OK, WAITING, failure_of
from . import output
from .verbs import open_or_make, settings_of

_EARLIER = "read by an earlier whyrank"


def doctor(asked: argparse.Namespace) -> int:
    """Look whether the file, the words and the vectors of a store are in order; with `--repair`, make them so."""
    place = settings_of(asked).store
    if not os.path.lexists(place):
        raise StoreError(f"there is no store at {place}", "`whyrank ingest PATH` makes one; --store names another")
    if not place.is_file():
        open_or_make(asked).close()  # which says what it is instead
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
    (_say_json if asked.json else _say)(asked, found)
    if not found.is_sound:
        return failure_of(StoreDamaged("")).exit_status
    return OK if found.is_whole else WAITING.exit_status


def _give_up(asked: argparse.Namespace) -> int:
    """Forget what was set aside, and say what that was: it is the last that will be heard of it."""
    with open_or_make(asked) as engine:
        gone = engine.give_up_damaged()
    if asked.json:
        output.say_json({"given_up": list(gone), "format": shapes.FORMAT})
    else:
        output.say(f"gave up {counted(len(gone), 'damaged memory', 'damaged memories')}")
        for identity in gone:
            output.say(f"  {identity}")
    return OK


def _say_json(asked: argparse.Namespace, found: Checkup) -> None:
    damage = [{**finding._asdict(), "names": list(finding.names)} for finding in found.findings]
    told: dict[str, Any] = {
        "file": {"sound": found.is_sound, "findings": damage, "kept": found.kept or None},
        "free_bytes": found.free_bytes,
        "words": None,
        "vectors": None,
        "compared": None if found.compared is None else found.compared._asdict(),
        "notices": [],
        "format": shapes.FORMAT,
    }
    if found.looked_inside:
        with open_or_make(asked) as engine:
            behind, notices = engine.backlog(), (*engine.word_notices(), *engine.vector_notices())
        told["words"] = {"reader": READER_VERSION, "old": found.old_words, "read_anew": found.read_anew}
        told["vectors"] = {
            **space_shapes.backlog(behind),
            "earlier": found.has_earlier_vectors,
            "embedded": found.embedded,
        }
        told["notices"] = shapes.notices(notices)
    output.say_json(told)


def _say(asked: argparse.Namespace, found: Checkup) -> None:
    _say_file([finding for finding in found.findings if finding.code != "disk"], found.kept)
    _say_disk(found)
    if found.compared is not None:
        done = found.compared
        output.say(
            f"compared anew in {done.seconds:.1f} s: {counted(done.memories, 'memory', 'memories')}, "
            f"{counted(done.words, 'word')}, {counted(done.segments, 'segment')}, {counted(done.vectors, 'vector')}"
        )
    if not found.looked_inside:
        return
    with open_or_make(asked) as engine:
        behind, notices = engine.backlog(), (*engine.word_notices(), *engine.vector_notices())
    if asked.repair:
        read = counted(found.read_anew, "memory was", "memories were")
        output.say(f"{read} read anew, {counted(found.embedded, 'text was', 'texts were')} embedded")
    old = found.old_words
    output.say("words: in order" if not old else f"words: {counted(old, 'memory was', 'memories were')} {_EARLIER}")
    if found.has_earlier_vectors:
        output.say("vectors: as an earlier whyrank made them; they go on answering")
    elif not behind.waiting:
        output.say("vectors: in order")
    output.show_backlog(behind)
    output.show_notices(notices)


def _say_disk(found: Checkup) -> None:
    """Print that little room is left on the disk of the store, and what to do about it; `status` prints how much."""
    for finding in found.findings:
        if finding.code == "disk":
            output.say(on_one_line(f"disk: {finding.message} ({finding.hint})"))


def _say_file(findings: Sequence[Finding], kept: str) -> None:
    """Print what is wrong with the file: each thing on a line, with what to do about it."""
    if not findings:
        output.say("file: in order")
        return
    left = [finding for finding in findings if not finding.mended]
    output.say("file: damaged" if left else "file: mended")
    for finding in findings:
        what_next = "mended" if finding.mended else finding.hint
        output.say(on_one_line(f"  {finding.code}: {finding.message}" + (f" ({what_next})" if what_next else "")))
    if kept:
        output.say(f"the store as it was is kept as {kept}; delete it when nothing is missing")
