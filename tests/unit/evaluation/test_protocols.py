"""The evaluation set in `examples/protocols` is what its README says, and shares no words where it says so."""

from __future__ import annotations

import hashlib
from collections import Counter
from pathlib import Path

import pytest

from whyrank.analysis.tokenizer import tokens_of
from whyrank.evaluation.datasets import Question, load_set

FOLDER = Path(__file__).parents[3] / "examples" / "protocols"
FILES = FOLDER / "files"
SET = load_set(FOLDER)
KINDS = ("direct", "natural", "adjacent", "vague", "cross-domain")
WORDLESS = [question for question in SET.questions if question.kind in KINDS[3:]]


def shared_terms(question: Question, note: str) -> set[str]:
    """Return the content terms of a question that its note holds: in the path, the front matter or the text."""
    return set(tokens_of(question.text)).intersection(tokens_of(f"{note}\n{(FILES / note).read_text('utf-8')}"))


def test_it_has_12_protocols_and_33_other_notes() -> None:
    notes = [file.relative_to(FILES).parts[0] for file in FILES.rglob("*.md")]
    assert notes.count("protocols") == 12
    assert len(notes) == 12 + 33
    assert len([file for file in FILES.rglob("*") if file.is_file()]) == len(notes)


def test_it_has_60_questions_12_of_each_kind() -> None:
    assert Counter(question.kind for question in SET.questions) == dict.fromkeys(KINDS, 12)
    assert SET.unjudged == 0


def test_every_question_has_one_or_two_notes_that_exist() -> None:
    assert SET.judgements.keys() == {question.id for question in SET.questions}
    for notes in SET.judgements.values():
        assert 1 <= len(notes) <= 2
        assert all((FILES / note).is_file() for note in notes)


def test_three_of_five_questions_ask_for_protocols_three_for_each() -> None:
    asked = Counter(note for notes in SET.judgements.values() for note in notes if note.startswith("protocols/"))
    assert len(asked) == 12
    assert set(asked.values()) == {3}


@pytest.mark.parametrize("question", WORDLESS, ids=lambda question: question.id)
def test_a_vague_or_cross_domain_question_shares_no_content_term_with_its_note(question: Question) -> None:
    for note in SET.judgements[question.id]:
        assert shared_terms(question, note) == set()


def test_a_direct_question_shares_at_least_two_content_terms_with_its_note() -> None:
    for question in SET.questions:
        if question.kind == "direct":
            assert all(len(shared_terms(question, note)) >= 2 for note in SET.judgements[question.id])


def test_it_is_as_it_was_before_the_first_search_ran_on_it() -> None:
    written = sorted([*FILES.rglob("*.md"), FOLDER / "queries.jsonl", FOLDER / "qrels.tsv"])
    whole = "\0".join(f"{file.relative_to(FOLDER).as_posix()}\0{file.read_text('utf-8')}" for file in written)
    assert hashlib.sha256(whole.encode()).hexdigest()[:16] == "e18a7adf1ca3dd2d"
