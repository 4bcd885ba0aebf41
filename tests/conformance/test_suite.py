"""The sound engine passes every check, each flawed one fails exactly its own, and what was not asked is not passed."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import pytest

from whyrank_conformance import CHECKS, Adapter, Answer, Found, Note, Question, Report, Setup, examine
from whyrank_conformance.flaws import FLAWS
from whyrank_conformance.sound import Sound

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from whyrank_conformance.adapter import Door


def failed(report: Report) -> list[int]:
    return [outcome.check for outcome in report.outcomes if outcome.state == "failed"]


@pytest.mark.parametrize("seed", [1, 7, 2026])
def test_the_sound_engine_passes_all_eighteen_on_any_seed(seed: int) -> None:
    report = examine(Sound, seed=seed)
    assert [outcome.check for outcome in report.outcomes] == list(range(1, 19))
    assert failed(report) == []
    assert report.count("passed") == 18
    assert report.conforms


@pytest.mark.parametrize("number", [check.number for check in CHECKS])
@pytest.mark.parametrize("seed", [1, 5])
def test_the_engine_with_one_flaw_fails_exactly_the_check_of_that_flaw(number: int, seed: int) -> None:
    report = examine(FLAWS[number], seed=seed)
    assert failed(report) == [number]
    assert report.count("passed") == 17
    assert not report.conforms


def test_every_outcome_says_what_was_asked_what_was_expected_and_what_came_back() -> None:
    for make in (Sound, FLAWS[5], FLAWS[14]):
        for outcome in examine(make).outcomes:
            assert outcome.asked, outcome.check
            assert outcome.expected, outcome.check
            assert outcome.got, outcome.check
            assert outcome.evidence.startswith("Asked ")
            assert outcome.trials > 0


def test_of_a_failure_the_first_trial_that_failed_is_told_and_how_many_did() -> None:
    [outcome] = [one for one in examine(FLAWS[12]).outcomes if one.check == 12]
    assert "соседи" in outcome.asked
    assert (outcome.failed, outcome.trials) == (5, 6)  # of the German word something is left
    assert outcome.evidence.endswith("(5 of 6 trials failed)")


class WordsOnly(Sound):
    """An engine that promises a keyword run and nothing else."""

    promises = frozenset({"words"})
    reasons = {"vectors": "vectors are for others"}  # noqa: RUF012 - as short as an author would write it


def test_what_an_engine_does_not_promise_is_not_applicable_and_never_passed() -> None:
    outcomes = {outcome.check: outcome for outcome in examine(WordsOnly).outcomes}
    applicable = {number for number, outcome in outcomes.items() if outcome.state != "not applicable"}
    # those that need words alone (1, 2, 5, 12), and those that need nothing (14, 17)
    assert applicable == {1, 2, 5, 12, 14, 17}
    assert outcomes[13].reason == "vectors are for others"
    assert outcomes[16].reason == "it documents no note that replaces another"


class Promising(Sound):
    """An engine that promises everything and whose search raises on the names check."""

    def search(self, question: Question) -> Answer:
        if question.text == "Remind Me":
            raise ZeroDivisionError("names\x07 are hard")
        return super().search(question)


def test_an_engine_that_raises_has_failed_and_the_report_says_with_what() -> None:
    report = examine(Promising)
    assert failed(report) == [10]
    assert report.outcomes[9].got == "ZeroDivisionError: names\\x07 are hard"


class Doorless(Sound):
    """An engine that promises doors and has none."""

    def doors(self) -> Mapping[str, Door]:
        return {}


def test_a_promise_that_nothing_could_be_asked_of_is_not_kept() -> None:
    report = examine(Doorless)
    assert failed(report) == [15]
    outcome = report.outcomes[14]
    assert (outcome.asked, outcome.got) == ("what check 15 asks", "nothing was tried")


class Missing(Sound):
    """An engine whose answers leave out one or both of the matches that check 1 compares."""

    left_out: ClassVar[set[str]] = {"strong-match", "weak-match"}

    def search(self, question: Question) -> Answer:
        found = super().search(question)
        return Answer(tuple(hit for hit in found.hits if hit.id not in self.left_out), found.verdict)


class OnlyWeak(Missing):
    """One that never finds the strong match."""

    left_out: ClassVar[set[str]] = {"strong-match"}


class OnlyStrong(Missing):
    """One that never finds the weak match."""

    left_out: ClassVar[set[str]] = {"weak-match"}


@pytest.mark.parametrize(
    ("make", "got"),
    [
        (Missing, "of the two neither, then neither"),
        (OnlyWeak, "of the two weak-match alone, then weak-match alone"),
        (OnlyStrong, "of the two strong-match alone, then strong-match alone"),
    ],
)
def test_two_matches_have_an_order_only_where_both_are_found(make: type[Adapter], got: str) -> None:
    [outcome] = examine(make, checks=CHECKS[:1]).outcomes
    assert (outcome.state, outcome.got) == ("failed", got)


class Forgetful(Adapter):
    """An engine that finds nothing."""

    name = "forgetful"

    def open(self, setup: Setup) -> None:
        self.known: list[str] = []

    def add(self, notes: Sequence[Note]) -> None:
        self.known = [note.id for note in notes]

    def delete(self, ids: Sequence[str]) -> None:
        pass

    def search(self, question: Question) -> Answer:
        return Answer()

    def close(self) -> None:
        pass


class Hoarding(Forgetful):
    """An engine that finds everything, deleted or not."""

    def search(self, question: Question) -> Answer:
        return Answer(tuple(Found(id) for id in self.known))


class Refusing(Forgetful):
    """An engine that cannot be opened."""

    def open(self, setup: Setup) -> None:
        raise OSError("no room")


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (Forgetful, "it does not find a note by its own words and vector: came back nothing"),
        (Hoarding, "it finds a note that was deleted"),
        (Refusing, "it cannot be used: OSError: no room"),
    ],
)
def test_an_adapter_that_does_not_work_is_not_judged(make: type[Adapter], why: str) -> None:
    report = examine(make)
    assert report.broken == why
    assert report.outcomes == ()
    assert not report.conforms


def test_every_flaw_names_the_check_it_is_for() -> None:
    assert list(FLAWS) == [check.number for check in CHECKS]
    for number, flaw in FLAWS.items():
        assert (flaw.__doc__ or "").startswith(f"{number}: ")
