"""Turns are shuffled, the slow get fewer, and ratios are those of the turns both had."""

from __future__ import annotations

import itertools
import threading
import time
from typing import TYPE_CHECKING

import pytest

from benchmarks.speed.measurement import (
    PATIENCE_SECONDS,
    Ratio,
    Span,
    be_still,
    is_spent,
    quantile,
    ratio,
    seconds_of_others,
    shuffled,
    take_turns,
)

if TYPE_CHECKING:
    from collections.abc import Callable


def test_everybody_follows_everybody_and_the_order_of_a_turn_is_always_the_same() -> None:
    orders = [shuffled("abcd", turn) for turn in range(40)]
    assert all(sorted(order) == ["a", "b", "c", "d"] for order in orders)
    followed = {(before, after) for order in orders for before, after in itertools.pairwise(order)}
    assert len(followed) == 4 * 3
    assert {order[0] for order in orders} == {*"abcd"}
    assert orders == [shuffled("abcd", turn) for turn in range(40)]


def test_contestants_take_turns_question_by_question() -> None:
    asked: list[tuple[str, int]] = []

    def contestant(name: str) -> Callable[[int], None]:
        return lambda turn: asked.append((name, turn))

    spans = take_turns({name: contestant(name) for name in "ab"}, 3)
    assert [turn for _, turn in asked] == [0, 0, 1, 1, 2, 2]
    assert all({name for name, at in asked if at == turn} == {"a", "b"} for turn in range(3))
    assert {name: sorted(turns) for name, turns in spans.items()} == {"a": [0, 1, 2], "b": [0, 1, 2]}


def test_what_another_thread_worked_is_of_others() -> None:
    def work() -> None:
        end = time.thread_time() + 0.05
        while time.thread_time() < end:
            pass

    thread, before = threading.Thread(target=work), seconds_of_others()
    thread.start()
    thread.join()
    assert seconds_of_others() - before >= 0.05


def test_whoever_still_works_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.speed.measurement.PATIENCE_SECONDS", 60.0)  # however long a sleep takes
    looks = iter([1.0, 1.01, 1.015, 1.0154, 2.0])  # the last step but one is below 0.05 × 0.01 seconds
    be_still(lambda: next(looks))
    assert list(looks) == [2.0]


def test_something_may_be_done_before_each_turn() -> None:
    done: list[str] = []
    take_turns({"a": lambda turn: done.append("a")}, 2, before=lambda: done.append("before"))
    assert done == ["before", "a", "before", "a"]


def test_whoever_never_rests_is_not_waited_for_for_ever() -> None:
    looks = itertools.count(1.0)
    begun = time.perf_counter()
    be_still(lambda: next(looks))
    assert time.perf_counter() - begun >= PATIENCE_SECONDS
    assert next(looks) > 2.0


def test_answers_are_heard_with_their_turn() -> None:
    heard: list[tuple[str, int, int]] = []
    take_turns({"a": lambda turn: turn * 10}, 2, lambda *said: heard.append(said))
    assert heard == [("a", 0, 0), ("a", 1, 10)]


def test_who_took_more_than_a_second_has_eight_turns() -> None:
    quick, slow = Span(1, 1), Span(900, 1_001)
    assert not is_spent(dict.fromkeys(range(60), quick))
    assert not is_spent({**dict.fromkeys(range(6), quick), 6: slow})
    assert is_spent({**dict.fromkeys(range(7), quick), 7: slow})


def test_a_ratio_is_that_of_the_medians_of_the_turns_both_had() -> None:
    theirs = {0: Span(30, 60), 1: Span(50, 80), 2: Span(40, 70)}
    ours = {0: Span(10, 10), 1: Span(20, 10), 2: Span(30, 10), 3: Span(1_000, 1_000)}
    # Turns 0 to 2: medians 40/20 and 70/10; turn 3 was not theirs.
    assert ratio(theirs, ours) == Ratio(cpu=2.0, wall=7.0)


def test_there_is_no_ratio_of_those_who_never_met() -> None:
    assert ratio({0: Span(1, 1)}, {1: Span(1, 1)}) is None


@pytest.mark.parametrize(("share", "value"), [(0.0, 1.0), (0.5, 2.5), (0.95, 3.85), (1.0, 4.0)])
def test_a_quantile_lies_between_two_values_where_it_falls_between(share: float, value: float) -> None:
    # 0.95 of the way from place 0 to place 3 is 2.85: 3 + 0.85 × (4 − 3).
    assert quantile([4.0, 1.0, 3.0, 2.0], share) == pytest.approx(value)
