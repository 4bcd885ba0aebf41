"""The verb that looks whether a store is in order, and mends what can be made anew."""

from __future__ import annotations

import argparse

from ...ingest.entries import READER_VERSION
from .. import shapes, space_shapes
from ..failures import OK, WAITING
from . import output
from .verbs import open_existing


def doctor(asked: argparse.Namespace) -> int:
    """Look whether the words and vectors of a store are those of today; with `--repair`, make them so."""
    read, embedded = 0, 0
    with open_existing(asked) as engine:
        if asked.repair:
            with output.progress("reading words anew", quiet=asked.json) as tick:
                read = engine.read_anew(tick)
            with output.progress("embedding", quiet=asked.json) as tick:
                embedded = engine.renew_vectors(tick) + engine.embed(tick).embedded
        old, behind, earlier = engine.old_words(), engine.backlog(), engine.has_earlier_vectors()
        notices = (*engine.word_notices(), *engine.vector_notices())
    is_whole = not old and not behind.waiting and not earlier
    if asked.json:
        words = {"reader": READER_VERSION, "old": old, "read_anew": read}
        vectors = {**space_shapes.backlog(behind), "earlier": earlier, "embedded": embedded}
        told = {"words": words, "vectors": vectors, "notices": shapes.notices(notices), "format": shapes.FORMAT}
        output.say_json(told)
        return OK if is_whole else WAITING.exit_status
    if asked.repair:
        output.say(f"{read} memories were read anew, {embedded} texts were embedded")
    output.say("words: in order" if not old else f"words: {old} memories were read by an earlier whyrank")
    if earlier:
        output.say("vectors: as an earlier whyrank made them; they go on answering")
    elif not behind.waiting:
        output.say("vectors: in order")
    output.show_backlog(behind)
    output.show_notices(notices)
    return OK if is_whole else WAITING.exit_status
