"""What a recall injected is counted by question and by memory."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import whyrank
from benchmarks.recall import Tally, count
from whyrank.evaluation.datasets import load_set
from whyrank.evaluation.harness import fill

if TYPE_CHECKING:
    from pathlib import Path

CORPUS = {
    "tea": "Suzy drinks green tea in the morning.",
    "boat": "The left oarlock of the boat squeaks.",
    "fence": "The fence behind the shed was mended.",
}
QUERIES = {"q1": ("what does Suzy drink in the morning?", "tea"), "q2": ("who mended the fence?", "boat")}


def test_right_and_irrelevant_injections_are_counted_and_so_is_silence(tmp_path: Path) -> None:
    rows = [{"id": name, "text": text} for name, text in CORPUS.items()]
    (tmp_path / "corpus.jsonl").write_text("\n".join(map(json.dumps, rows)))
    asked = [{"id": name, "text": text} for name, (text, _) in QUERIES.items()]
    (tmp_path / "queries.jsonl").write_text("\n".join(map(json.dumps, asked)))
    judged = [f"{name}\t{document}\t1" for name, (_, document) in QUERIES.items()]
    (tmp_path / "qrels.tsv").write_text("\n".join(["query\tdocument\tgain", *judged]))
    dataset, tally = load_set(tmp_path), Tally()
    foreign = [dataset.questions[0]._replace(text="quarterly revenue of semiconductor vendors")]
    with whyrank.open(tmp_path / "memory.db", workspace=tmp_path, embedding="none", recall_log=False) as memory:
        fill(memory, dataset)
        count(memory, dataset, dataset.questions, foreign, tally)
    # q1 is given tea, which is right; q2 is given fence, which is judged irrelevant: one memory of two is relevant.
    assert (tally.answerable, tally.right, tally.stained, tally.silent) == (2, 1, 1, 0)
    assert (tally.foreign, tally.injected) == (1, 0)
    assert tally.memories == {True: 1, False: 1}
    assert tally.row().startswith("50 | 0 | 50 | 50 | 0 | ")
