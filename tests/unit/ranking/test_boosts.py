"""Points for words of names, slugs and summaries, counted out."""

from __future__ import annotations

import pytest

from tests.unit.ranking.builders import context, hit, memory, ranking
from whyrank.ranking.boosts import PRESETS, Boosts, TokenGate, TokenMatch, token_points
from whyrank.types.trail import NameMatch, Step

REMIND_ME = ("remind", "me")


@pytest.mark.parametrize(
    ("asked", "text", "points"),
    [
        (REMIND_ME, "remind me of things", 2 + 2 + 3),  # both words, and all of them
        (REMIND_ME, "reminders for me", 1 + 2 + 3),  # "remind" only begins "reminders"
        (REMIND_ME, "reminds metres", 1 + 1 + 3),
        (REMIND_ME, "tell me", 0),  # one of two is not enough
        (("remind",), "remind", 2 + 3),
        (("remind",), "reminder", 1 + 3),
        (("remind",), "notify", 0),
        (("set", "a", "timer"), "a timer", 2 + 2),  # two of three are 67 %, without the bonus for all
        (("set", "a", "timer"), "timer", 0),  # one of three is 33 %
        (("a", "b", "c", "d", "e"), "a b c", 2 + 2 + 2),  # three of five are 60 %
        (("a", "b", "c", "d", "e"), "a b", 0),
        ((), "anything", 0),
    ],
)
def test_points_for_the_words_of_a_query(asked: tuple[str, ...], text: str, points: float) -> None:
    assert token_points(asked, text.split()).value == points


def test_token_match_adds_its_points_and_names_what_it_counted() -> None:
    skill = memory("a", name="Remind Me", summary="sets alarms")
    ranked = TokenMatch(weight=0.5)(ranking(hit(skill, 0.4)), context(skill, text="Remind Me"))
    assert ranked.hits[0].score == 0.4 + 0.5 * 7
    assert ranked.hits[0].trail[-1] == Step("token-match", "add", 3.5, "0.5 × 7 points: 2 words and 0 beginnings of 2")


def test_what_matches_nothing_gets_no_step() -> None:
    skill = memory("a", name="Notifications")
    before = ranking(hit(skill, 0.4))
    for stage in (TokenMatch(), PRESETS["clawhub"], PRESETS["clawhub-266"]):
        assert stage(before, context(skill, text="Remind Me")).hits[0].trail == before.hits[0].trail


def test_the_presets_are_those_of_the_registry_and_of_its_pull_request() -> None:
    assert PRESETS["clawhub"] == Boosts(1.4, 0.8, 1.1, 0.6, 0.0)
    assert PRESETS["clawhub-266"] == Boosts(3.0, 1.5, 2.5, 1.2, 0.3)


def test_an_exact_name_adds_up_to_more_than_any_cosine() -> None:
    skill = memory("a", name="Remind Me", slug="remind-me", summary="Remind me of things later")
    near = memory("b", name="Notifications", slug="notify", summary="Tells me when something happens")
    asked = context(skill, near, text="Remind Me")
    before = ranking(hit(near, 0.9), hit(skill, 0.4))
    old = PRESETS["clawhub"](before, asked)
    assert [found.id for found in old.hits] == ["a", "b"]
    assert old.hits[0].score == 0.4 + 1.4 + 1.1
    new = PRESETS["clawhub-266"](before, asked)
    assert new.hits[0].score == 0.4 + 3.0 + 2.5 + 0.3 * (2 + 2 + 3)
    assert [step.why for step in new.hits[0].trail[1:]] == [
        "slug: every word",
        "name: every word",
        "summary: 0.3 × 7 points, 2 words and 0 beginnings of 2",
    ]
    assert new.hits[1].score == 0.9  # "me" alone is not "Remind Me"


def test_beginnings_of_words_get_the_smaller_bonus_and_only_that() -> None:
    skill = memory("a", name="Reminder Menu", slug="reminders-menu")
    [found] = PRESETS["clawhub-266"](ranking(hit(skill, 0.0)), context(skill, text="remind me")).hits
    assert found.score == 1.5 + 1.2


def passed(text: str, *names: tuple[str, NameMatch]) -> list[str]:
    """Return which of some skills pass the gate for a query."""
    skills = [
        memory("both", name="Remind Me", summary="sets alarms"),
        memory("beginnings", name="Reminders", slug="reminders", summary="a menu of them"),
        memory("split", name="Remind", summary="tells me things"),
        memory("one", name="Tell Me", summary="says things"),
        memory("body", "remind me of the tea"),
        memory("summary", "remind me of the tea", summary="notes"),
    ]
    before = ranking(*(hit(skill, 0.5) for skill in skills))
    after = TokenGate()(before, context(*skills, text=text, names=dict(names)))
    assert len(after.hits) + len(after.dropped) == len(skills)
    return [found.id for found in after.hits]


def test_of_one_or_two_words_all_must_match() -> None:
    # A word counts where it begins one; a text counts where there is no summary.
    assert passed("Remind Me") == ["both", "beginnings", "split", "body"]
    assert passed("remind") == ["both", "beginnings", "split", "body"]
    assert passed("tell me") == ["split", "one"]
    assert passed("me") == ["both", "beginnings", "split", "one", "body"]


def test_longer_queries_are_not_gated() -> None:
    assert len(passed("remind me later")) == 6
    assert len(passed("")) == 6


def test_what_is_called_so_passes_however_its_words_are_written() -> None:
    assert passed("remindme", ("both", NameMatch("equal", "Remind Me"))) == ["both"]
    assert passed("remimd me", ("both", NameMatch("one edit", "Remind Me"))) == ["both"]
    assert passed("remimd me", ("both", NameMatch("all words", "Remind Me"))) == []


def test_the_gate_says_which_word_is_lacking_and_when_nothing_passes() -> None:
    skill = memory("a", name="Tell Me", summary="says things")
    after = TokenGate()(ranking(hit(skill, 0.5)), context(skill, text="remind me"))
    assert after.dropped[0].trail[-1] == Step(
        "token-gate", "drop", why="it does not contain 'remind', and a query of 2 words must match completely"
    )
    assert [notice.code for notice in after.notices] == ["token-gate"]
    assert TokenGate()(ranking(hit(skill, 0.5)), context(skill, text="tell me")).notices == ()
