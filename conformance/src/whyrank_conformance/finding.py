"""Checks 5, 6, 10 to 14: what is found at all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .adapter import Adapter, Question
from .corpora import IN_OTHER_TONGUES, everyday, planted
from .meanings import Corpus
from .trial import Lab, Trial, among, printable, quoted, told

if TYPE_CHECKING:
    from collections.abc import Iterator

# A question as people ask it, and a note that shares some words of it: in English, German and Spanish.
_ASKED = (
    (
        "which experiment should I try when I am completely stuck with a problem?",
        "Write down the smallest experiment first; ask which constraint can move",
    ),
    (
        "was soll ich machen, wenn der Drucker im Keller wieder streikt?",
        "Wenn der Drucker klemmt hilft Strom aus und bis zehn warten",
    ),
    (
        "donde puedo encontrar el manual de la caldera cuando hace mucho viento?",
        "el manual y la garantia de la caldera estan en la carpeta verde",
    ),
)
# Cosines of notes that are not meant and of the one that is: the words have to bring it, but need not weigh much.
_NEAR, _FAR = 0.4, 0.35
_SOME = 12  # notes nearer than the one that is meant: fewer than any usual pool


def joined_words(lab: Lab) -> Iterator[Trial]:
    """5: a question finds a note that holds some of its words."""
    for question_text, text in _ASKED:
        question = Question(question_text)
        notes = (planted("shares-words", text, {"asked": _FAR}), *everyday(_SOME, lab.seed, {"asked": _NEAR}))
        answer = lab.ask(Corpus(notes, {question.text: "asked"}), question)
        yield among(answer, "shares-words", 5, question, "it shares content words with the question, no other does")


_MANY = 160  # notes nearer by vector than the one that is meant: more than any usual pool


def own_candidates(lab: Lab) -> Iterator[Trial]:
    """6: what only the keyword run lists is a candidate."""
    question = Question("ticket zqx4471")
    meant = planted("ticket", "ticket zqx4471 asks to count the crates of lemons every week", {"ticket": _FAR})
    corpus = Corpus((*everyday(_MANY, lab.seed, {"ticket": _NEAR}), meant), {question.text: "ticket"})
    why = f"it alone holds the words; {_MANY} notes are nearer by vector"
    yield among(lab.ask(corpus, question), "ticket", 5, question, why)


def buried_name(lab: Lab) -> Iterator[Trial]:
    """10: an exact name comes first."""
    questions = [Question(text) for text in ("Remind Me", "remind me")]
    chatter = [
        planted(f"chatter-{i}", f"remind me to remind Ines, and remind me again, note {i}", {"name": 0.6})
        for i in range(40)
    ]
    named = planted("the-named", "Sets alarms for later", {"name": 0.1}, name="Remind Me")
    corpus = Corpus((*chatter, named), {question.text: "name" for question in questions})
    with lab.planted(corpus) as engine:
        for question in questions:
            why = "it is called so; forty others only hold the words"
            yield among(engine.search(question), "the-named", 1, question, why)


_CROWD, _FEW = 147, 3  # notes of a large scope, and of one with two per cent of all


def starved_scope(lab: Lab) -> Iterator[Trial]:
    """11: a small scope keeps its results, however good the others' are."""
    question = Question("tea ceremony bowl", limit=_FEW, scope="few")
    crowd = [
        planted(f"crowd-{i}", f"tea ceremony and the bowl of the tea ceremony number {i}", {"tea": 0.8}, scope="many")
        for i in range(_CROWD)
    ]
    few = [
        planted(f"few-{i}", f"a bowl for the next tea ceremony stands on shelf {i}", {"tea": 0.6}, scope="few")
        for i in range(_FEW)
    ]
    answer = lab.ask(Corpus((*crowd, *few), {question.text: "tea"}), question)
    wanted = {one.note.id for one in few}
    yield Trial(
        set(answer.ids) == wanted,
        f"{quoted(question)}; {_CROWD} notes of another scope match better",
        f"all {_FEW} notes of the scope, and no other",
        f"{len(wanted.intersection(answer.ids))} of {_FEW}, {len(set(answer.ids) - wanted)} of the other scope",
    )


# A word as it stands in a note, and the note; in scripts without spaces it stands between others.
_TONGUES = (
    ("Russian", "соседи", "Шумные соседи сверху ходят ночью"),
    ("Chinese", "茶馆", "下周三去茶馆测量混响时间"),
    ("Japanese", "延期", "金沢の発表会は十月に延期された"),
    ("Korean", "월요일", "월요일 아침에 회의가 있다"),
    ("Greek", "λιμάνι", "Το λιμάνι κλείνει νωρίς"),
    ("German", "Lärmschutzgutachten", "Das Lärmschutzgutachten liegt im Ordner"),
)


def other_scripts(lab: Lab) -> Iterator[Trial]:
    """12: words are found in every script."""
    notes = [planted(tongue, text, {tongue: _FAR}) for tongue, _, text in _TONGUES]
    nearer = {tongue: _NEAR for tongue, _, _ in _TONGUES}
    others = [planted(f"other-{i}", text, nearer) for i, text in enumerate(IN_OTHER_TONGUES)]
    corpus = Corpus((*others, *notes), {word: tongue for tongue, word, _ in _TONGUES})
    with lab.planted(corpus) as engine:
        for tongue, word, _ in _TONGUES:
            question = Question(word)
            why = f"it alone holds the word, which is {tongue}; {len(others)} are nearer by vector"
            yield among(engine.search(question), tongue, 3, question, why)


_LONG = 9.0  # times unit length


def length_of_vectors(lab: Lab) -> Iterator[Trial]:
    """13: the length of a vector says nothing about its note."""
    question = Question("ailing puppy")
    for meant, others in ((_LONG, 1.0), (1.0, _LONG)):
        corpus = Corpus(
            (
                *everyday(20, lab.seed, {"dog": _NEAR}, length=others),
                planted("the-dog", "Rex limps and eats little; ask the vet", {"dog": 0.9}, length=meant),
            ),
            {question.text: "dog"},
        )
        why = f"its cosine is 0.9, all others' are {_NEAR}; its vector has length {meant:g}, theirs {others:g}"
        yield among(lab.ask(corpus, question), "the-dog", 1, question, why)


# Its words all stand in the note that is meant, where no syntax that we know gives them another meaning.
_HOSTILE = (
    "c++ lantern",
    "lantern-door",
    "lantern/door",
    "lantern don't",
    'lantern"',
    '"lantern',
    "(lantern",
    "lantern)",
    "lantern: door",
    "lantern ^",
    "lantern {}",
    "lantern [",
    "lantern, door.",
    "lantern'; --",
    "lantern ~ & | ! \\",
)
# These mean nothing, or something else where there is a syntax; they need not find anything.
_HARMLESS = (
    "NOT", "AND OR NOT", '"', "*", "a:b", "NEAR(a b)", "-lantern", "^", "\\", "C#", "%", "lantern*", " ", "?",
    "'; DROP TABLE notes; --",
)  # fmt: skip


def hostile_text(lab: Lab) -> Iterator[Trial]:
    """14: no question raises, and signs in it do not hide what its words find."""
    meant = planted("lantern", "The lantern hangs behind the door of block C; don't move it", {"asked": _FAR})
    corpus = Corpus(
        (meant, *everyday(_SOME, lab.seed, {"asked": _NEAR})), dict.fromkeys((*_HOSTILE, *_HARMLESS), "asked")
    )
    has_words = lab.promises("words")
    with lab.planted(corpus) as engine:
        for text in (*_HOSTILE, *_HARMLESS):
            yield _survives(engine, Question(text), must_find=has_words and text in _HOSTILE)


def _survives(engine: Adapter, question: Question, *, must_find: bool) -> Trial:
    expected = "“lantern” among the first 5: it alone holds the word" if must_find else "an answer, whatever it is"
    try:
        answer = engine.search(question)
    except Exception as error:  # whatever an engine raises is what is looked for
        got = f"{type(error).__name__}: {printable(str(error))[:200]}"
        return Trial(False, quoted(question), expected, got)
    return Trial(not must_find or "lantern" in answer.ids[:5], quoted(question), expected, told(answer.ids))
