"""Checks 15 to 18: what an engine owes to whoever asks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .adapter import Answer, Question
from .corpora import everyday, planted
from .meanings import Corpus
from .trial import Lab, Trial, quoted, told

if TYPE_CHECKING:
    from collections.abc import Iterator

_TEA = (
    ("green", "green tea is steeped at seventy degrees"),
    ("black", "black tea wants boiling water"),
    ("pot", "the teapot has a crack, buy green glaze"),
    ("list", "to be done: order tea, return the kettle"),
    ("visit", "Ines comes for tea in the afternoon"),
    ("zoo", "the zoo is closed in winter"),
)


def doors(lab: Lab) -> Iterator[Trial]:
    """15: the same question has the same answer through every door."""
    notes = [planted(id, text, {"tea": round(0.7 - 0.1 * i, 1)}) for i, (id, text) in enumerate(_TEA)] + everyday(
        30, lab.seed
    )
    questions = [Question("green tea"), Question("what is to be done about tea?", limit=3)]
    corpus = Corpus(tuple(notes), {question.text: "tea" for question in questions})
    with lab.planted(corpus, own_model=True) as engine:
        for question in questions:
            wanted = engine.search(question).ids
            for name, door in engine.doors().items():
                got = tuple(door(question))
                expected = f"the same through its door “{name}”: {told(wanted)}"
                yield Trial(got == wanted and bool(wanted), quoted(question), expected, told(got))


def superseded(lab: Lab) -> Iterator[Trial]:
    """16: what was replaced does not come back, and its correction does."""
    question = Question("what coffee does Robin drink?")
    corpus = Corpus(
        (
            planted("old", "Robin drinks coffee, coffee and only coffee", {"drink": 0.9}),
            planted("new", "Robin prefers tea now", {"drink": 0.6}, supersedes="old"),
            *everyday(12, lab.seed),
        ),
        {question.text: "drink"},
    )
    ids = lab.ask(corpus, question).ids
    passed = "old" not in ids and ids[:1] == ("new",)
    yield Trial(passed, quoted(question), "“new” first, and “old”, which it replaces, not at all", told(ids))


def limits(lab: Lab) -> Iterator[Trial]:
    """17: the first of one result is the first of twenty."""
    text = "orchestra rehearsal schedule"
    corpus = Corpus(
        (
            planted("by-words", "orchestra rehearsal schedule and once more orchestra rehearsal schedule"),
            planted("by-vector", "When the string players meet", {"music": 0.9}),
            planted("by-both", "The rehearsal schedule of the orchestra hangs in the hall", {"music": 0.85}),
            *everyday(30, lab.seed, {"music": 0.2}),
        ),
        {text: "music"},
    )
    with lab.planted(corpus) as engine:
        answers = {limit: engine.search(Question(text, limit)).ids for limit in (1, 5, 20)}
    first = {limit: ids[:1] for limit, ids in answers.items()}
    yield Trial(
        len(set(first.values())) == 1 and bool(first[1]),
        f"“{text}”, for 1, 5 and 20 results",
        "the same first hit each time",
        "; ".join(f"of {limit}: {told(ids)}" for limit, ids in first.items()),
    )


# A question that nothing stored is about, and one that is answered: in English and in German.
_FOREIGN = ("mitochondrial membrane potential of zebrafish embryos", "Quantenzahlen angeregter Heliumatome")
_ANSWERED = Question("where does the gardener keep the rose scissors?")


def nothing_relevant(lab: Lab) -> Iterator[Trial]:
    """18: a question about something else is answered with nothing, or with the word that it is nothing."""
    foreign = [Question(text, limit=10) for text in _FOREIGN]
    scissors = planted("scissors", "The gardener keeps the rose scissors in the shed", {"roses": 0.8})
    topics = {question.text: f"foreign-{i}" for i, question in enumerate(foreign)}
    corpus = Corpus((scissors, *everyday(40, lab.seed)), {**topics, _ANSWERED.text: "roses"})
    with lab.planted(corpus) as engine:
        answered = engine.search(_ANSWERED)
        yield Trial(
            answered.ids[:1] == ("scissors",) and answered.verdict != "nothing",
            quoted(_ANSWERED),
            "“scissors” first, and not called nothing: words and meaning are the same",
            _with_verdict(answered),
        )
        for question in foreign:
            answer = engine.search(question)
            expected = "no results, or the verdict “nothing”: no word and no meaning is shared"
            passed = not answer.hits or answer.verdict == "nothing"
            yield Trial(passed, quoted(question), expected, _with_verdict(answer))


def _with_verdict(answer: Answer) -> str:
    return told(answer.ids) + (f"; verdict “{answer.verdict}”" if answer.verdict else "")
