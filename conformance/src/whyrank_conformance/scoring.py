"""Checks 1 to 4 and 7 to 9: what scores do to each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .adapter import Answer, Question
from .corpora import everyday, planted
from .meanings import Corpus, Planted
from .trial import Lab, Trial, among, before, quoted, told

if TYPE_CHECKING:
    from collections.abc import Iterator

_MANY = 20  # notes between the strongest and the weakest match, so that ranks tell them apart too
_VOYAGE = Question("ferry harbour", limit=30)
_STRONG = " ".join(["ferry harbour"] * 4)
_RAMBLING = (
    "Because the ferry was late again we sat on a bench by the harbour for most of the morning, talked about the book "
    "that Ines had left at home, counted the gulls on the roof, ate what was left of the bread and cheese, and then "
    "walked back up the hill to see whether anybody had found the key that was lost the evening before"
)


def sign(lab: Lab) -> Iterator[Trial]:
    """1: how strongly words match counts, so that the order is not the vectors' alone."""
    weak_nearer = lab.ask(_graded(lab, strong=0.60, weak=0.62, strong_first=False), _VOYAGE)
    strong_nearer = lab.ask(_graded(lab, strong=0.62, weak=0.60, strong_first=True), _VOYAGE)
    follows = _first_of(weak_nearer) == "weak-match" and _first_of(strong_nearer) == "strong-match"
    yield Trial(
        _has_both(weak_nearer) and _has_both(strong_nearer) and not follows,
        f"{quoted(_VOYAGE)}, of a short note that holds its words four times and a long one that holds them once; "
        "first the long, then the short one is nearer by a cosine of 0.02, and stored first",
        "an order that depends on how strongly the words match",
        f"of the two {_told_of(weak_nearer)}, then {_told_of(strong_nearer)}",
    )


def upside_down(lab: Lab) -> Iterator[Trial]:
    """2: the better match never has the lower score."""
    answer = lab.ask(_graded(lab, strong=0.62, weak=0.60, strong_first=True), _VOYAGE)
    yield before(answer, "strong-match", "weak-match", _VOYAGE, "it matches better and is nearer by vector")


def _graded(lab: Lab, strong: float, weak: float, *, strong_first: bool) -> Corpus:
    """All matches hold all the words, so that it does not matter how they are joined."""
    best = planted("strong-match", _STRONG, {"voyage": strong})
    worst = planted("weak-match", _RAMBLING, {"voyage": weak})
    between = [
        planted(f"match-{i}", f"The ferry leaves the harbour with bulletin {i} and a crew of nine")
        for i in range(_MANY)
    ]
    ends = (best, worst) if strong_first else (worst, best)
    return Corpus((*ends, *between, *everyday(36, lab.seed)), {_VOYAGE.text: "voyage"})


_BOTH = ("strong-match", "weak-match")


def _first_of(answer: Answer) -> str:
    return next((id for id in answer.ids if id in _BOTH), "neither")


def _has_both(answer: Answer) -> bool:
    return all(id in answer.ids for id in _BOTH)


def _told_of(answer: Answer) -> str:
    """Say which of the two is first; what is not there has no place in an order."""
    first = _first_of(answer)
    return f"{first} first" if _has_both(answer) else "neither" if first == "neither" else f"{first} alone"


_MEETING = (
    "At the yearly meeting there was a quorum when the treasurer said that the audit of the ledger had shown a surplus "
    "from the levy because the new tariff was paid by more people than anybody had hoped for"
)


def unbounded(lab: Lab) -> Iterator[Trial]:
    """3: a great many matching words do not drown the vectors."""
    question = Question("tariff ledger quorum audit levy surplus", limit=10)
    corpus = Corpus(
        (
            planted("the-words", " ".join([question.text] * 4)),
            planted("the-meaning", _MEETING, {"money": 0.95}),
            *everyday(_MANY, lab.seed, {"money": 0.3}),
        ),
        {question.text: "money"},
    )
    why = "it is nearest by vector and second by words; the other only repeats the words"
    yield before(lab.ask(corpus, question), "the-meaning", "the-words", question, why)


_CERTAIN = 0.75  # of the relevance of a full match; what matched one word of six is less than that


def lone_weak_hit(lab: Lab) -> Iterator[Trial]:
    """4: one lone, weak keyword hit is not called as relevant as a full match."""
    weak = Question("quarterly revenue forecast spreadsheet of the printer division")
    full = Question("the printer stands in the cellar")
    corpus = Corpus(
        (
            planted("printer", "The printer stands in the cellar", {"weak": 0.05, "full": 0.95}),
            *everyday(12, lab.seed),
        ),
        {weak.text: "weak", full.text: "full"},
    )
    with lab.planted(corpus) as engine:
        lone, whole = _relevance(engine.search(weak)), _relevance(engine.search(full))
    yield Trial(
        whole is not None and (lone is None or lone <= _CERTAIN * whole),
        f"{quoted(weak)}, of which one word stands in one note; then {quoted(full)}, which is that note",
        f"a relevance of at most {_CERTAIN} of the full match's, or no such hit",
        f"{_number(lone)} for one word, {_number(whole)} for the full match",
    )


def _relevance(answer: Answer) -> float | None:
    return next((hit.relevance for hit in answer.hits if hit.id == "printer"), None)


def _number(value: float | None) -> str:
    return "no hit" if value is None else f"{value:.3f}"


def missing_run(lab: Lab) -> Iterator[Trial]:
    """7: a keyword run that found nothing does not drag a hit down."""
    question = Question("ailing puppy")
    corpus = Corpus(
        (*everyday(20, lab.seed), planted("the-dog", "Rex limps and eats little; ask the vet", {"dog": 0.45})),
        {question.text: "dog"},
    )
    why = "no word of the question is stored anywhere, and it alone is near (cosine 0.45)"
    yield among(lab.ask(corpus, question), "the-dog", 1, question, why)


def minimum_on_the_sum(lab: Lab) -> Iterator[Trial]:
    """8: a keyword hit without a cosine is not dropped by the engine's own minimum."""
    question = Question("cardamom delivery")
    corpus = Corpus(
        (
            planted("by-words", "The cardamom delivery is due at the side entrance"),
            planted("near-1", "Parcels from the spice merchant", {"spice": 0.6}),
            planted("near-2", "A bag of cloves came by post", {"spice": 0.55}),
            *everyday(12, lab.seed),
        ),
        {question.text: "spice"},
    )
    why = "it alone holds the words of the question; its cosine is 0"
    yield among(lab.ask(corpus, question), "by-words", 5, question, why)


def minimum_on_ranks(lab: Lab) -> Iterator[Trial]:
    """9: a threshold between 0 and 1 keeps a full match and lets the hopeless go."""
    question = Question("the gardener prunes the roses", limit=20, minimum=0.5)
    hopeless = everyday(8, lab.seed)
    corpus = Corpus(
        (planted("roses", "The gardener prunes the roses", {"roses": 0.95}), *hopeless), {question.text: "roses"}
    )
    answer = lab.ask(corpus, question)
    yield among(answer, "roses", 1, question, "it says what was asked, word for word, with a cosine of 0.95")
    kept = [id for id in answer.ids if id in _ids(hopeless)]
    yield Trial(not kept, quoted(question), "no note that shares neither word nor meaning", told(answer.ids))


def _ids(notes: list[Planted]) -> set[str]:
    return {one.note.id for one in notes}
