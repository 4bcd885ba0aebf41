"""The suite: eighteen checks, what each needs, and the engine that is put to them."""

from __future__ import annotations

import platform
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from . import behaving, finding, scoring
from .adapter import ABILITIES, Ability, Adapter, Question
from .corpora import everyday, planted
from .meanings import Corpus
from .outcome import Outcome, Report
from .trial import Lab, Trial, printable, told

Tell = Callable[[str], None]
_BOTH: tuple[Ability, ...] = ("words", "vectors")


@dataclass(frozen=True, slots=True)
class Check:
    """One failure of hybrid search: what goes wrong, what is owed instead, and who can be asked."""

    number: int
    title: str
    owed: str
    needs: tuple[Ability, ...]
    trials: Callable[[Lab], Iterator[Trial]]


CHECKS: tuple[Check, ...] = (
    Check(1, "word scores are flat", "how strongly words match counts", ("words",), scoring.sign),
    Check(2, "word scores are upside down", "the better match scores higher", ("words",), scoring.upside_down),
    Check(3, "word scores drown vectors", "no run counts more than its share", _BOTH, scoring.unbounded),
    Check(4, "a lone weak hit looks certain", "weak matches are called weak", ("relevance",), scoring.lone_weak_hit),
    Check(5, "all words must match", "some words of a question are enough", ("words",), finding.joined_words),
    Check(6, "candidates by vector alone", "every run brings candidates", _BOTH, finding.own_candidates),
    Check(7, "a run without hits counts as zero", "a run without hits changes nothing", _BOTH, scoring.missing_run),
    Check(8, "a minimum drops keyword hits", "no hit is lost for a signal it lacks", _BOTH, scoring.minimum_on_the_sum),
    Check(9, "a threshold on rank scores", "a threshold means what it says", ("threshold",), scoring.minimum_on_ranks),
    Check(10, "an exact name is buried", "an exact name comes first", ("names",), finding.buried_name),
    Check(11, "filters run after the cut", "a small scope keeps its results", ("scopes",), finding.starved_scope),
    Check(12, "words of other scripts are lost", "words are found in every script", ("words",), finding.other_scripts),
    Check(13, "vectors must be unit length", "direction counts, not length", ("vectors",), finding.length_of_vectors),
    Check(14, "signs break the query", "no question raises or is silenced", (), finding.hostile_text),
    Check(15, "doors rank differently", "one answer through every door", ("doors",), behaving.doors),
    Check(16, "the replaced comes back first", "what was replaced is gone", ("supersession",), behaving.superseded),
    Check(17, "the limit changes the first hit", "one result is the head of many", (), behaving.limits),
    Check(18, "nothing relevant, ten results", "nothing is called nothing", ("abstention",), behaving.nothing_relevant),
)  # fmt: skip


def examine(
    make: Callable[[], Adapter], *, seed: int = 1, tell: Tell = lambda _: None, checks: Iterable[Check] = CHECKS
) -> Report:
    """Put one engine to the checks, each on planted corpora of its own, and report what was seen."""
    engine, begun = make(), time.monotonic()
    outcomes: list[Outcome] = []
    with tempfile.TemporaryDirectory(prefix="whyrank-conformance-", ignore_cleanup_errors=True) as place:
        lab = Lab(make, Path(place), seed)
        broken = _broken(lab)
        for check in checks if not broken else ():
            tell(f"{engine.name}: {check.number} of {len(CHECKS)}, {check.owed}")
            outcomes.append(_outcome(check, engine, lab))
    return Report(
        engine.name,
        engine.about,
        engine.call,
        engine.versions(),
        tuple(outcomes),
        round(time.monotonic() - begun, 1),
        time.strftime("%Y-%m-%d", time.gmtime()),
        platform.python_version(),
        broken,
    )


def _outcome(check: Check, engine: Adapter, lab: Lab) -> Outcome:
    lacking = next((need for need in check.needs if need not in engine.promises), None)
    if lacking is not None:
        reason = engine.reasons.get(lacking, ABILITIES[lacking][1])
        return Outcome(check.number, check.title, "not applicable", reason=reason)
    # a promise that nothing could be asked of is not kept
    trials = list(_tried(check, lab)) or [Trial(False, _asked(check), check.owed, "nothing was tried")]
    bad = [trial for trial in trials if not trial.passed]
    shown = bad[0] if bad else trials[-1]
    return Outcome(
        check.number,
        check.title,
        "failed" if bad else "passed",
        shown.asked,
        shown.expected,
        shown.got,
        choice=engine.choices.get(check.number, "") if bad else "",
        trials=len(trials),
        failed=len(bad),
    )


def _tried(check: Check, lab: Lab) -> Iterator[Trial]:
    """Make the trials; an engine that raises has failed the one it raised in."""
    try:
        yield from check.trials(lab)
    except Exception as error:  # an engine under test may raise anything; the report says what
        yield Trial(False, _asked(check), check.owed, _raised(error))


def _asked(check: Check) -> str:
    return f"what check {check.number} asks"


def _broken(lab: Lab) -> str:
    """Say why an engine cannot be judged: it must find what it was given, and not what it was told to delete."""
    question = Question("the walrus naps on the pier", limit=3)
    notes = (planted("walrus", "The walrus naps on the pier", {"walrus": 0.95}), *everyday(6, lab.seed))
    try:
        with lab.planted(Corpus(notes, {question.text: "walrus"})) as engine:
            found = engine.search(question).ids
            engine.delete(["walrus"])
            left = engine.search(question).ids
    except Exception as error:
        return f"it cannot be used: {_raised(error)}"
    if found[:1] != ("walrus",):
        return f"it does not find a note by its own words and vector: came back {told(found)}"
    return "it finds a note that was deleted" if "walrus" in left else ""


def _raised(error: Exception) -> str:
    return f"{type(error).__name__}: {printable(str(error))[:300]}"
